"""The funnel: reasons, filters, and that nothing is ever lost."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smith.errors import BadInput, UnknownTask
from smith.mine import explain, mine
from smith.records.candidate import Kind, Mined, Role
from tests.mine.mine_upstreams import Upstream, kernel

HOST = "def helper(x):\n    return x\n"


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    return Upstream.make(tmp_path / "up.git")


def run(upstream: Upstream, **how: object) -> Mined:
    return mine(upstream.repo, repo="o/r", url="u", **how)  # type: ignore[arg-type]


def reason(upstream: Upstream, number: int, **how: object) -> str:
    result = run(upstream, **how)
    return {one.pr: one.reason for one in result.rejections}.get(number, "candidate")


@pytest.mark.parametrize(
    ("title", "changes", "expected"),
    [
        ("Fix add", {"pkg/add.py": kernel(value=2)}, "candidate"),
        ("Launch larger", {"pkg/add.py": kernel(host=16)}, "candidate"),
        ("Say more", {"README.md": "more\n"}, "docs_only"),
        ("Run more", {".github/workflows/ci.yml": "on: push\n", "docs/ci.md": "x"}, "ci_only"),
        ("Test more", {"tests/test_add.py": "def test(): pass\n", "README.md": "x"}, "tests_only"),
        ("Measure", {"benchmarks/bench_add.py": kernel()}, "benchmark_only"),
        ("Newer torch", {"pyproject.toml": "x", "setup.py": "y"}, "build_only"),
        ("Tune for the new card", {"pkg/configs/add.json": "{}"}, "config_only"),
        ("Helper", {"pkg/helper.py": HOST}, "no_kernel_change"),
        ("Release 1.2.0", {"pkg/version.py": "1.2.0", "pkg/add.py": kernel(value=3)}, "maintenance"),
        ("Move it", {"pkg/add.py": None, "pkg/plus.py": kernel()}, "rename_only"),
        ("Nothing", {}, "empty"),
        ("Vendored", {"third_party/k.cu": "__global__ void f() {}"}, "no_kernel_change"),
    ],
)
def test_reasons(upstream: Upstream, title: str, changes: Mapping[str, str | None], expected: str) -> None:
    upstream.squash(1, title, changes)
    assert reason(upstream, 1) == expected


def test_a_move_may_edit_the_lines_that_name_it(upstream: Upstream) -> None:
    upstream.push(
        "Use it", {"pkg/__init__.py": "from .add import launch\nfrom .zoo import x\n", "pkg/zoo.py": "x = 1\n"}
    )
    text = "from .zoo import x\nfrom .zplus import launch\n"
    upstream.squash(1, "Rename", {"pkg/add.py": None, "pkg/zplus.py": kernel(), "pkg/__init__.py": text})
    assert reason(upstream, 1) == "rename_only"


def test_mass_edits(upstream: Upstream) -> None:
    upstream.squash(1, "Change the world", {f"pkg/k{index}.py": kernel(f"k{index}") for index in range(70)})
    assert reason(upstream, 1) == "mass_edit"
    assert reason(upstream, 1, all=True) == "candidate"


def test_reverted_reverts_and_relands(upstream: Upstream) -> None:
    upstream.squash(1, "Faster add", {"pkg/add.py": kernel(value=2)})
    upstream.squash(2, 'Revert "Faster add"', {"pkg/add.py": kernel()}, body="Reverts o/r#1")
    upstream.squash(3, 'Reland "Faster add"', {"pkg/add.py": kernel(value=3)})
    assert [reason(upstream, number) for number in (1, 2, 3)] == ["reverted", "revert", "candidate"]
    (candidate,) = run(upstream).candidates
    assert candidate.kind is Kind.RELAND and "reland" in candidate.flags
    assert {one.pr for one in run(upstream, all=True).candidates} == {1, 2, 3}


def test_a_pushed_revert_counts_and_the_same_title_lands_again(upstream: Upstream) -> None:
    landed = upstream.squash(1, "Faster add", {"pkg/add.py": kernel(value=2)})
    upstream.push(f'Revert "Faster add (#1)"\n\nThis reverts commit {landed}.\n', {"pkg/add.py": kernel()})
    upstream.squash(2, "Faster add", {"pkg/add.py": kernel(value=2)})
    assert reason(upstream, 1) == "reverted"
    assert [(one.pr, one.kind) for one in run(upstream).candidates] == [(2, Kind.RELAND)]


def test_the_phrase_in_a_body_reverts_nothing(upstream: Upstream) -> None:
    landed = upstream.squash(1, "Faster add", {"pkg/add.py": kernel(value=2)})
    upstream.squash(2, "Add more", {"pkg/b.py": kernel("b")}, body=f"* try\n\n* This reverts commit {landed}.")
    assert reason(upstream, 1) == "candidate"


def test_a_revert_of_a_revert_lands_again(upstream: Upstream) -> None:
    upstream.squash(1, "Faster add", {"pkg/add.py": kernel(value=2)})
    upstream.squash(2, 'Revert "Faster add"', {"pkg/add.py": kernel()}, body="Reverts o/r#1")
    upstream.squash(3, 'Revert "Revert "Faster add""', {"pkg/add.py": kernel(value=2)}, body="Reverts o/r#2")
    assert [(one.pr, one.kind) for one in run(upstream).candidates] == [(3, Kind.RELAND)]


def test_reverts_of_reverts_in_the_words_of_the_forge(upstream: Upstream) -> None:
    steps = [(14, "X", 2), (15, 'Revert "X (#14)"', 1), (16, 'Revert "Revert "X (#14)" (#15)"', 2)]
    steps.append((17, 'Revert "Revert "Revert "X (#14)" (#15)" (#16)"', 1))
    for number, title, value in steps:
        body = f"Reverts o/r#{number - 1}" if number > 14 else ""
        upstream.squash(number, title, {"pkg/add.py": kernel(value=value + 10)}, body=body)
        found = {one.pr: one for one in run(upstream, all=True).candidates}
    assert {n: one.kind for n, one in found.items()} == {
        14: Kind.OTHER,
        15: Kind.REVERT,
        16: Kind.RELAND,
        17: Kind.REVERT,
    }
    signals = {n: one.signals for n, one in found.items() if one.signals}
    assert {n: one.reverted_by for n, one in signals.items()} == {14: "#17", 15: "#16", 16: "#17", 17: None}
    assert signals[16].lands_again == 14 and signals[14].landed_again_by == 16
    assert len({one.lineage for one in found.values()}) == 1


def test_odd_commits_do_not_stop_a_scan(upstream: Upstream) -> None:
    upstream.squash(1, "Fix one", {"pkg/add.py": kernel(value=2)})
    for subject in ("Fix it (#0)", f"Fix it (#{'9' * 5000})", "Fix it (#٣٤)"):
        upstream.push(subject, {"a": subject})
    tree = upstream.repo.text("rev-parse", "main^{tree}")
    for when in ("33658000000000 +0000", "1700000000 +9999", "1700000000 -2459", "-5 +0000", "x"):
        raw = f"tree {tree}\nparent {upstream.main}\nauthor A <a@x> {when}\ncommitter A <a@x> {when}\n\nFix (#9)\n"
        oid = upstream.repo.text("hash-object", "-t", "commit", "-w", "--literally", "--stdin", input=raw.encode())
        upstream.ref("refs/heads/main", oid)
        upstream.main = oid
        upstream.trees[oid] = {}
        assert {one.pr for one in run(upstream).candidates} == {1}


@pytest.mark.parametrize(
    ("title", "body"),
    [
        ("[" + " " * 6000 + " fix", ""),
        ("x" + " " * 150_000 + "y", ""),
        ("Fix", "fixes " + "a/" * 60_000),
        ("Fix", ("1us -> " * 250 + "\n") * 34),
        ("Fix", "| a " * 20_000),
    ],
)
def test_no_words_take_forever(upstream: Upstream, title: str, body: str) -> None:
    upstream.push(f"{title} (#1)\n\n{body}\n", {"pkg/add.py": kernel(value=2)})
    assert len(run(upstream, all=True).candidates) == 1  # the time limit of the test is what fails


@pytest.mark.parametrize("line", ["@" * 300_000, "x = " + "a@" * 100_000, "# " + "triton.jit" * 30_000])
def test_no_line_takes_forever(upstream: Upstream, line: str) -> None:
    upstream.push("Fix (#1)", {"pkg/add.py": kernel(value=2) + line + "\n"})
    run(upstream, all=True)


def test_the_users_filters_give_reasons(upstream: Upstream) -> None:
    upstream.squash(1, "Fix add", {"pkg/add.py": kernel(value=2)})
    upstream.squash(2, "Add b", {"pkg/b.py": kernel("b")})
    assert reason(upstream, 1, languages=["hip"]) == "language_filter"
    assert reason(upstream, 1, kinds=["feature"]) == "kind_filter"
    assert reason(upstream, 1, limit=1) == "over_limit"
    assert [one.pr for one in run(upstream, limit=1).candidates] == [2]


def test_dates_are_inclusive_and_select_what_is_seen(upstream: Upstream) -> None:
    upstream.squash(1, "Fix add", {"pkg/add.py": kernel(value=2)})
    day = run(upstream).candidates[0].merged_at[:10]
    assert run(upstream, since=day, until=day).seen == 1
    assert run(upstream, since="2030-01-01").seen == 0
    assert run(upstream, until="2001-01-01").seen == 0
    assert run(upstream, since="2001-01-01T00:00:00+02:00", numbers=[1]).seen == 1


@pytest.mark.parametrize(
    "how", [{"since": "soon"}, {"languages": ["cobol"]}, {"kinds": ["fun"]}, {"limit": -1}, {"branch": "x"}]
)
def test_what_cannot_be_meant_is_bad_input(upstream: Upstream, how: dict[str, object]) -> None:
    with pytest.raises(BadInput):
        run(upstream, **how)


def test_a_number_that_is_not_merged(upstream: Upstream) -> None:
    upstream.pull(4, [("Open", {"a": "1"})])
    with pytest.raises(UnknownTask, match=r"refs/pull/4/head exists"):
        run(upstream, numbers=[4])
    with pytest.raises(UnknownTask, match="nothing is known"):
        explain(upstream.repo, repo="o/r", number=5)


def test_a_candidate_holds_all_that_freezing_needs(upstream: Upstream) -> None:
    base = upstream.main
    changes = {
        "pkg/add.py": kernel(value=2),
        "tests/test_add.py": "x\n",
        "tests/conftest.py": "y\n",
        "README.md": "z\n",
    }
    landed = upstream.squash(1, "Fix add", changes)
    (one,) = run(upstream).candidates
    assert (one.repo, one.url, one.pr, one.base, one.merged) == ("o/r", "u", 1, base, landed)
    assert one.head == upstream.repo.resolve("refs/pull/1/head")
    assert one.source_files == ("pkg/add.py",)
    assert one.test_files == ("tests/conftest.py", "tests/test_add.py")
    assert [(kernel.path, kernel.language, kernel.symbols) for kernel in one.kernels] == [
        ("pkg/add.py", "triton", ("add",))
    ]
    assert {file.path: file.role for file in one.files}["tests/conftest.py"] is Role.TEST_SUPPORT


def test_progress_counts_to_the_end(upstream: Upstream) -> None:
    for number in (1, 2):
        upstream.squash(number, f"Change {number}", {"pkg/add.py": kernel(value=number + 1)})
    seen: list[tuple[str, int, int]] = []
    run(upstream, verify=True, progress=lambda *step: seen.append(step))
    assert seen[0][0] == "reading the history"
    for what in ("classifying", "merging again"):
        assert [step for step in seen if step[0] == what][-1][1:] == (2, 2)


_PATHS = st.sampled_from(
    ["pkg/add.py", "pkg/b.py", "tests/test_a.py", "README.md", "csrc/k.c", "pkg/configs/c.json", "x.bin"]
)
_CONTENTS = st.sampled_from(
    [kernel(value=3), kernel("other"), HOST, "", "void f(int n) { for (;n;) n--; }\n", "\0bin", None]
)
_TITLES = st.sampled_from(["Fix it", "Add it", 'Revert "Add it"', "Bump to 1.0.0", "Reland it", "chore: x", "…", ""])
_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["push", "squash", "merge", "rebase"]), _TITLES, st.dictionaries(_PATHS, _CONTENTS, max_size=3)
    ),
    max_size=6,
)


@settings(max_examples=12)
@given(_STEPS, st.booleans(), st.sampled_from([None, 0, 1]), st.sampled_from([(), ("triton",), ("native",)]))
def test_the_funnel_adds_up(
    steps: list[tuple[str, str, dict[str, str | None]]], everything: bool, limit: int | None, languages: tuple[str, ...]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        upstream = Upstream.make(Path(folder) / "up.git")
        numbered = set()
        for number, (style, title, changes) in enumerate(steps, 1):
            if style == "push":
                upstream.push(title or "x", changes)
            elif style == "rebase":
                upstream.rebase(number, [(title or "x", changes)])
            else:
                getattr(upstream, style)(number, title, changes)
                numbered.add(number)
        result = run(upstream, all=everything, limit=limit, languages=languages)
    seen = [*(one.pr for one in result.candidates), *(one.pr for one in result.rejections)]
    assert result.seen == len(seen) == len(set(seen))
    assert numbered <= set(seen)
    order = [one.pr for one in result.candidates]
    assert order == sorted(order, reverse=True)
