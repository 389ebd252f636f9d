"""From runs to a leaderboard and back: sealed on a branch, merged, checked, ranked, and every change found."""

from __future__ import annotations

import hashlib
import json
import random
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from leaderboard_worlds import commit_all, draw, merge, parsed, sample_data, smith

from smith.errors import BadInput
from smith.evaluate.run import load_run
from smith.freeze.bundle import Store
from smith.leaderboard.board import leaderboard
from smith.leaderboard.check import Gate, check
from smith.leaderboard.entry import entry_folders, find_entry
from smith.leaderboard.page import render
from smith.leaderboard.seal import LEFT_OUT, add, seal
from smith.leaderboard.shown import as_markdown
from smith.paths import Layout

MODEL = "m|<script>document.title='owned'</script>@someone"


def some(name: str, share: float) -> Callable[[str, int], bool]:
    drawn = random.Random(name)
    return lambda task, attempt: drawn.random() < share


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Three runs, sealed and merged: two alike and one that solves nothing."""
    store = sample_data(tmp_path_factory.mktemp("leaderboard") / "data")
    private = {"endpoint": "http://10.0.0.8:8000/v1", "key_file": "/home/somebody/key", "sampling.temperature": "0.2"}
    draw(store, "good", some("good", 0.85), attempts=2, options=private, reason="it fails in /home/somebody/x.py")
    draw(store, "alike", some("alike", 0.8), attempts=2, model=MODEL)
    draw(store, "nothing", lambda *_: False, agent="nop", model=None, usd=0)
    for name in ("good", "alike", "nothing"):
        made = parsed(store, "leaderboard", "add", name)
        assert made["branch"] == f"leaderboard/{name}"
        assert not (store.layout.root / made["path"]).exists()  # nothing is checked out
        merge(store, made["branch"])
    return store


@pytest.fixture
def copied(world: Store, tmp_path: Path) -> Store:
    """A copy to be spoiled."""
    shutil.copytree(world.layout.root, tmp_path / "data")
    return Store(Layout(tmp_path / "data"))


def git(store: Store, *args: str) -> str:
    argv = ["git", "-C", str(store.layout.root), *args]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


def codes(store: Store, base: str | None = None) -> set[str]:
    return {finding.code for finding in check(store, base=base).findings}


def entry_of(store: Store, run: str) -> Path:
    return next(f for f in entry_folders(store.layout) if json.loads((f / "manifest.json").read_text())["run"] == run)


def resealed(folder: Path, change: Callable[[Path], None]) -> Path:
    """Change files of an entry and give it the manifest and the name that go with them, as a forger would."""
    change(folder)
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["files"] = {
        f.relative_to(folder).as_posix(): hashlib.sha256(f.read_bytes()).hexdigest()
        for f in sorted(folder.rglob("*"))
        if f.is_file() and f != path
    }
    path.write_text(json.dumps(manifest))
    moved = folder.with_name(hashlib.sha256(path.read_bytes()).hexdigest())
    folder.rename(moved)
    return moved


def edit(pattern: str, change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    """Edit the first JSON file below an entry that ``pattern`` names and ``change`` takes."""

    def apply(folder: Path) -> None:
        for path in sorted(folder.glob(pattern)):
            document = json.loads(path.read_text())
            if change(document) is not False:
                path.write_text(json.dumps(document))
                return
        raise AssertionError(f"nothing to change in {pattern}")

    return apply


def test_an_entry_is_one_commit_and_says_nothing_of_the_machine(world: Store) -> None:
    names = git(world, "diff", "--name-only", "leaderboard/good^", "leaderboard/good").split()
    folder = entry_of(world, "good")
    assert {name.split("/")[2] for name in names} == {folder.name}
    text = "\n".join(p.read_text() for p in folder.rglob("*") if p.is_file())
    assert "somebody" not in text and "10.0.0.8" not in text and "/tmp/secret" not in text
    assert "sampling.temperature" in text and LEFT_OUT in text
    body = git(world, "log", "-1", "--format=%B", "leaderboard/good")
    assert f"Smith-Entry: {folder.name}" in body and "Smith-Run: good" in body


def test_the_same_evidence_gives_the_same_entry(world: Store) -> None:
    config = load_run(world.layout, "good")
    assert seal(world, config).digest == seal(world, config).digest == entry_of(world, "good").name


def test_the_check_lets_them_pass_and_nothing_may_go(copied: Store) -> None:
    assert parsed(copied, "leaderboard", "check", "--base", "HEAD") == {"entries": 3, "errors": []}
    shutil.rmtree(entry_of(copied, "nothing"))
    assert codes(copied) == set()
    assert codes(copied, base="HEAD") == {"removed"}
    assert [e["code"] for e in parsed(copied, "leaderboard", "check", "--base", "HEAD", status=1)["errors"]] == [
        "removed"
    ]
    assert "nowhere" in smith(copied, "leaderboard", "check", "--base", "nowhere", status=2)


def test_ranks_say_what_can_be_told(world: Store) -> None:
    found = parsed(world, "leaderboard", "show", "sample")
    (board,) = found["boards"]
    rank = {row["run"]: (row["rank"], row["letters"]) for row in board["rows"]}
    assert rank == {"good": (1, "a"), "alike": (1, "a"), "nothing": (3, "b")}
    assert [row["run"] for row in board["rows"]][2] == "nothing" and len(board["pairs"]) == 3
    # The comparison is the one of smith compare: the same tasks and p-value, corrected over three pairs.
    alone = parsed(world, "compare", "good", "alike")["others"][0]["comparison"]
    (pair,) = [p["comparison"] for p in board["pairs"] if {p["first"], p["second"]} == {0, 1}]
    assert pair["tasks"] == alone["tasks"] and abs(pair["difference"]) == pytest.approx(abs(alone["difference"]))
    assert pair["p_value"] >= alone["p_value"]
    scores = parsed(world, "report", "good")["scores"]
    row = next(r for r in board["rows"] if r["run"] == "good")
    assert row["pass_at_1"]["mean"] == pytest.approx(scores["pass_at_1"])
    assert row["usd_per_solved_task"] == pytest.approx(scores["costs"]["usd_per_solved_task"])


def test_a_run_of_mine_is_ranked_and_marked(world: Store) -> None:
    draw(world, "mine", lambda *_: True, model="local")
    found = parsed(world, "leaderboard", "show", "sample", "--with", "mine")
    first = found["boards"][0]["rows"][0]
    assert (first["run"], first["entry"]) == ("mine", None)
    assert "not sealed" in smith(world, "leaderboard", "show", "sample", "--with", "mine")
    assert "mine" not in smith(world, "leaderboard")


def test_results_of_other_trees_and_devices_stay_apart(copied: Store) -> None:
    path = copied.layout.panel("sample")
    before = leaderboard(copied, "sample").panel_tree
    parts = path.read_text().split("[[tasks]]")
    path.write_text("[[tasks]]".join(parts[:-1]).replace("revision = 4", "revision = 5"))
    found = leaderboard(copied, "sample")
    assert found.panel_tree != before and found.boards == () and found.other_trees == {before: 3}
    commit_all(copied, "fewer tasks")
    old = leaderboard(copied, "sample", tree=before[:8])
    assert old.panel_tree == before and len(old.boards[0].rows) == 3 and not old.current
    assert codes(copied) == set()
    path.unlink()  # even where the panel has gone, what it was is known
    assert codes(copied) == set()


FORGED = [
    (
        "attempts/*/001/grade.json",
        lambda d: d["verdict"] == "failed" and d.update(verdict="solved", reasons=[]),
        "evidence",
    ),
    (
        "attempts/*/001/grade.json",
        lambda d: d["fail_to_pass"].update(passed=d["fail_to_pass"]["total"] + 1),
        "evidence",
    ),
    ("attempts/*/001/grade.json", lambda d: d["tests"].pop(), "evidence"),
    ("attempts/*/001/grade.json", lambda d: d.update(receipt="1" * 40), "evidence"),
    ("attempts/*/001/grade.json", lambda d: d.update(verdict="infra"), "evidence"),
    ("attempts/*/001/grade.json", lambda d: bool(d["speedup"]) and d["speedup"].update(geomean=99.0), "evidence"),
    ("attempts/*/001/grade.json", lambda d: d.update(notes=["at /home/somebody/x"]), "private"),
    ("attempts/*/001/attempt.json", lambda d: d.update(micro_usd=1), "evidence"),
    ("attempts/*/001/attempt.json", lambda d: d.update(patch_sha256="0" * 64), "evidence"),
    ("figures.json", lambda d: d["figures"][0].update(value=1.0), "figures"),
    ("figures.json", lambda d: d["figures"].pop(), "figures"),
    ("run.json", lambda d: d["tasks"].pop(), "panel"),
    ("run.json", lambda d: d.update(attempts=1), "stray"),
    ("run.json", lambda d: d.update(attempts=10**7), "schema"),
    ("run.json", lambda d: d.update(run="other"), "panel"),
    ("run.json", lambda d: d["agent_options"].update(endpoint="somewhere"), "private"),
]


@pytest.mark.parametrize(
    ("pattern", "change", "code"), FORGED, ids=[f"{p.split('/')[-1]}-{n}" for n, (p, _, _) in enumerate(FORGED)]
)
def test_a_forged_entry_is_found_though_its_digests_fit(
    copied: Store, pattern: str, change: Callable[[dict[str, Any]], object], code: str
) -> None:
    folder = resealed(entry_of(copied, "good"), edit(pattern, change))
    gate = Gate(copied)
    _, findings = gate.findings(folder)
    assert code in {f.code for f in findings}, findings
    found = leaderboard(copied, "sample")
    assert found.left_out == {folder.name: len(findings)} and "good" not in {r.run for r in found.boards[0].rows}


def test_a_run_may_be_there_once_and_strays_are_found(copied: Store) -> None:
    def add_note(document: dict[str, Any]) -> None:
        document["notes"] = ["again"]

    folder = entry_of(copied, "good")
    shutil.copytree(folder, folder.with_name("f" * 64))
    assert codes(copied) == {"digest", "duplicate"}
    resealed(folder.with_name("f" * 64), edit("attempts/*/001/grade.json", add_note))
    assert codes(copied) == {"duplicate"}
    (copied.layout.leaderboard / "sample" / "notes.txt").write_text("x")
    (folder / "more.txt").write_text("x")
    (copied.layout.leaderboard / "sample" / "link").symlink_to(folder)
    assert codes(copied) == {"duplicate", "stray"}
    shutil.copytree(folder, copied.layout.leaderboard / "nowhere" / folder.name)
    assert "panel" in codes(copied)
    said = smith(copied, "leaderboard")
    assert "leaderboard/nowhere: there is no panel nowhere here" in said and "on cpu, interpreter" in said
    (folder / "run.json").unlink()
    (folder / "run.json").symlink_to(copied.layout.config)
    assert "schema" in codes(copied)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_byte_of_an_entry_can_change_unseen(world: Store, data: st.DataObject) -> None:
    folder = entry_of(world, "nothing")
    path = data.draw(st.sampled_from(sorted(p for p in folder.rglob("*") if p.is_file())))
    before = path.read_bytes()
    place = data.draw(st.integers(0, len(before) - 1))
    flip = data.draw(st.integers(1, 255))
    try:
        path.write_bytes(before[:place] + bytes([before[place] ^ flip]) + before[place + 1 :])
        assert Gate(world).findings(folder)[1]
    finally:
        path.write_bytes(before)


ODD = st.sampled_from([None, True, 0, -1, 10**30, 1e308, float("nan"), float("inf"), "", "x", "/", [], {}, ["x"]])


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where a JSON document holds something that is no list or object."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path] if not isinstance(value, dict | list) else [leaf for k, v in inner for leaf in leaves(v, (*path, k))]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_odd_values_are_findings_and_never_break_the_check(world: Store, data: st.DataObject) -> None:
    folder = entry_of(world, "alike")
    manifest = folder / "manifest.json"
    files = [*sorted(folder.glob("*.json")), *sorted(folder.glob("attempts/*/001/*.json"))]
    path = data.draw(st.sampled_from(files))
    before, sealed = path.read_bytes(), manifest.read_bytes()
    document = json.loads(before)
    *inner, last = data.draw(st.sampled_from(leaves(document)))
    place = document
    for key in inner:
        place = place[key]
    place[last] = data.draw(ODD)
    try:
        path.write_text(json.dumps(document))
        if path != manifest:
            named = json.loads(sealed)
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            named["files"][path.relative_to(folder).as_posix()] = digest
            manifest.write_text(json.dumps(named))
        assert Gate(world).findings(folder)[1]
    finally:
        path.write_bytes(before)
        manifest.write_bytes(sealed)


def test_what_cannot_be_added_is_one_line(world: Store) -> None:
    draw(world, "torn", lambda task, n: None if n == 2 else True, attempts=2)
    draw(world, "named", lambda *_: True, model="on http://10.1.2.3/v1")
    config = draw(world, "keyed", lambda *_: True)
    patch = world.layout.run("keyed") / "attempts" / config.tasks[0].id / "001" / "submission.patch"
    key = "token = 'sk-" + "a1b2c3d4" * 4 + "'\n"
    patch.write_text(key)
    digest = hashlib.sha256(key.encode()).hexdigest()
    for name in ("grade.json", "attempt.json"):
        document = json.loads(patch.with_name(name).read_text())
        patch.with_name(name).write_text(json.dumps({**document, "patch_sha256": digest}))
    said = smith(world, "leaderboard", "add", "torn", status=2)
    assert "26 missing" in said and len(said.strip().splitlines()) == 1
    for run, words in (
        ("named", "no entry may say"),
        ("keyed", "looks like a key"),
        ("good", "is in the leaderboard already"),
    ):
        with pytest.raises(BadInput, match=words):
            add(world, load_run(world.layout, run))
    (world.layout.root / "untracked").write_text("x")
    try:
        with pytest.raises(BadInput, match="the work tree is not what is committed"):
            add(world, load_run(world.layout, "torn"))
    finally:
        (world.layout.root / "untracked").unlink()
    for panel, tree, words in (("nothere", "", "no panel nothere"), ("sample", "zz", "no tree of the panel sample")):
        with pytest.raises(BadInput, match=words):
            leaderboard(world, panel, tree=tree)
    with pytest.raises(BadInput, match="no entry of the leaderboard"):
        find_entry(world.layout, "0" * 12)
    assert "and none" in smith(world, "regrade", "good", "--entry", "0" * 12, status=2)


def test_text_of_a_run_stays_text(world: Store) -> None:
    found = leaderboard(world, "sample")
    page, words = render(found), as_markdown(found)
    assert "<script" not in page and "&lt;script&gt;" in page
    assert not re.search(r"\son\w+=|<(link|img|iframe|form)|url\((?!#)|@import", page)
    assert "<script" not in words.replace("\\<", "") and "@someone" not in words


def test_a_browser_shows_the_page(world: Store, tmp_path: Path, dom: Callable[[Path], str]) -> None:
    smith(world, "leaderboard", "show", "sample", "--html", str(tmp_path / "board.html"))
    shown = dom(tmp_path / "board.html")
    assert "<title>Leaderboard of sample</title>" in shown
    assert find_entry(world.layout, entry_of(world, "good").name[:12]).digest[:12] in shown
