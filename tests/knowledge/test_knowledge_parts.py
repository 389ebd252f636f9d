"""Levers of patches, effects and posteriors of uses, the index, retrieval within its bounds."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from knowledge_worlds import GATHER, HERE, MATVEC, TRANSPOSE, commit, git, hand_in, sample_data, smith
from scipy.stats import beta

from smith.freeze.bundle import REFERENCE, TASK_FILE, Store
from smith.knowledge.base import Known, Sealed
from smith.knowledge.cards import CardFile, path_of
from smith.knowledge.distil import Key, card_of
from smith.knowledge.effects import effects_of, outcome, same_effects
from smith.knowledge.held_out import HeldOut
from smith.knowledge.index import Wanted, open_index
from smith.knowledge.levers import opposites, pulled, table
from smith.knowledge.posterior import posterior
from smith.knowledge.prose import text_of
from smith.knowledge.retrieve import retrieve
from smith.paths import Layout
from smith.records.card import Aim, Counts
from smith.records.grade import Count, GradeVerdict
from smith.records.receipt import Answer
from smith.records.sealed import Control, Evidence, Speed, Use, UseOutcome
from smith.records.task import SmithMetadata, TaskFile

DIGEST = "a" * 64
SOLVED, FAILED = GradeVerdict.SOLVED, GradeVerdict.FAILED


def task(name: str) -> SmithMetadata:
    return TaskFile.load(HERE / "tasks" / name / TASK_FILE).metadata.smith


def reference(name: str) -> bytes:
    return (HERE / "tasks" / name / REFERENCE).read_bytes()


@pytest.mark.parametrize(
    ("name", "lever"),
    [(TRANSPOSE, "loop-tiling+restrict-pointers"), (GATHER, "mask-conjunction+rounded-up-grid"),
     (MATVEC, "independent-accumulators+restrict-pointers+row-tail")],
)  # fmt: skip
def test_levers_are_read_from_patches(name: str, lever: str) -> None:
    found = pulled(reference(name), task(name))
    assert found is not None and found.lever == lever


def test_taking_a_lever_back_is_not_pulling_it() -> None:
    lines = ["--- a/minikernels/ops/paged_gather.py", "+++ b/minikernels/ops/paged_gather.py", "@@ -1,2 +1,1 @@",
             "-    tl.atomic_add(OUT, x)", " y = 1", ""]  # fmt: skip
    found = pulled("\n".join(lines).encode(), task(GATHER))
    assert found is not None and found.lever == "no-atomics"
    moved = [*lines[:2], "@@ -1,2 +1,2 @@", "-    tl.atomic_add(OUT, x)", " y = 1", "+    tl.atomic_add(OUT, x)", ""]
    assert pulled("\n".join(moved).encode(), task(GATHER)) is None
    assert pulled(b"", task(GATHER)) is None
    assert opposites()["atomic-update"] == "no-atomics" and opposites()["no-atomics"] == "atomic-update"


def test_every_lever_of_the_table_can_be_told_of_a_patch() -> None:
    for code, row in table().items():
        assert row.how.endswith(".") and row.languages, code
        assert row.opposite is None or row.opposite in table()


def speed(ratio: float, spread: float = 1.05, answer: Answer | None = None) -> Speed:
    return Speed(ratio=ratio, low=ratio / spread, high=ratio * spread, worst=ratio, rounds=5, noise_low=1.0,
                 noise_high=1.0, answer=answer)  # fmt: skip


def use(name: str = "a__b-1", attempt: int = 1, verdict: GradeVerdict = SOLVED, ratio: float | None = None,
        control: GradeVerdict | None = None) -> Use:  # fmt: skip
    fast = speed(ratio) if ratio is not None else None
    pair = Control(verdict=control, grade_sha256=DIGEST, patch_sha256=DIGEST) if control is not None else None
    return Use(
        task=name, tree="0" * 40, attempt=attempt, device="cpu", verdict=verdict,
        outcome=outcome(verdict, fast, pair), fail_to_pass=Count(passed=0, total=0),
        pass_to_pass=Count(passed=1, total=1), speed=fast, control=pair, patch_sha256=DIGEST, grade_sha256=DIGEST,
        attempt_sha256=DIGEST, receipt="0" * 40,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("verdict", "found", "control", "wanted"),
    [
        (SOLVED, speed(1.2), None, UseOutcome.WIN),
        (SOLVED, speed(1.2, answer=Answer.UNRESOLVED), None, UseOutcome.NO_EFFECT),
        (FAILED, speed(1.02), None, UseOutcome.NO_EFFECT),
        (FAILED, speed(0.8), None, UseOutcome.LOSS),
        (FAILED, None, None, UseOutcome.LOSS),
        (SOLVED, None, FAILED, UseOutcome.WIN),
        (SOLVED, None, SOLVED, UseOutcome.NO_EFFECT),
        (FAILED, None, FAILED, UseOutcome.NO_EFFECT),
        (FAILED, None, SOLVED, UseOutcome.LOSS),
    ],
)
def test_outcomes(verdict: GradeVerdict, found: Speed | None, control: GradeVerdict | None, wanted: UseOutcome) -> None:
    pair = Control(verdict=control, grade_sha256=DIGEST, patch_sha256=DIGEST) if control else None
    assert outcome(verdict, found, pair) is wanted


def test_effects_are_means_of_logarithms_over_tasks() -> None:
    uses = [
        use("a__b-1", 1, ratio=2.0),
        use("a__b-1", 2, ratio=8.0),
        use("a__b-2", 1, ratio=1.0),
        use("a__b-3", 1, FAILED),
    ]
    (effect,) = effects_of(uses)
    assert effect.value == 2.0 and (effect.tasks, effect.uses) == (2, 3)
    half = 12.7062 * math.log(2)  # Student's quantile with one degree of freedom, times the standard error
    assert effect.low == pytest.approx(2 * math.exp(-half), abs=1e-3)
    (paired,) = effects_of([use("a__b-1", n, SOLVED, control=FAILED if n < 4 else SOLVED) for n in range(1, 11)])
    # Of 10 of 10 and 7 of 10: Wilson's intervals are 0.7225 to 1 and 0.3968 to 0.8922.
    assert paired.value == 0.3
    assert paired.low == pytest.approx(0.3 - math.hypot(1 - 0.7225, 0.8922 - 0.7), abs=1e-3)
    assert paired.high == pytest.approx(0.3 + 0.7 - 0.3968, abs=1e-3)


@given(st.permutations([(n % 3, n, 1 + n / 7) for n in range(1, 7)]))
def test_effects_do_not_depend_on_order(drawn: list[tuple[int, int, float]]) -> None:
    uses = [use(f"a__b-{name}", attempt, ratio=ratio) for name, attempt, ratio in drawn]
    assert same_effects(effects_of(uses), effects_of(sorted(uses, key=lambda one: one.attempt)))


@given(st.integers(0, 400), st.integers(0, 400))
def test_the_posterior_is_that_of_beta(wins: int, losses: int) -> None:
    found = posterior(Counts(wins=wins, losses=losses))
    assert found.mean == pytest.approx((wins + 1) / (wins + losses + 2))
    assert (found.low, found.high) == pytest.approx(beta(wins + 1, losses + 1).interval(0.95), abs=1e-9)


def test_a_use_that_is_told_twice_counts_once() -> None:
    key = Key(Aim.SPEED, "loop-tiling", "layout", ("native",), "cpu")
    stated = card_of(key)
    sealed = [
        Sealed(digit * 64, Evidence(card=stated.id, founding=True, run=DIGEST, panel="p", agent="a", uses=uses))
        for digit, uses in (("1", (use(ratio=2.0),)), ("2", (use(ratio=2.0), use(attempt=2, ratio=2.0))))
    ]
    known = Known(CardFile(path_of(stated), stated, text_of(stated)), tuple(sealed), {})
    assert len(known.uses) == 2


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = sample_data(tmp_path_factory.mktemp("parts") / "data")
    hand_in(store.layout, "first", lambda name, n: (SOLVED, 3.5), (TRANSPOSE, MATVEC))
    git(store, "merge", "-q", smith(store, "knowledge", "propose", "first")[1]["branch"])
    return store.layout.root


@pytest.fixture
def data(ready: Path, tmp_path: Path) -> Iterator[Store]:
    shutil.copytree(ready, tmp_path / "data", symlinks=True)
    yield Store(Layout(tmp_path / "data"))


def test_the_index_follows_the_files(data: Store) -> None:
    def found(words: str) -> list[str]:
        with open_index(data.layout) as index:
            return [known.file.where for known in index.search(words, Wanted(), 10)]

    (where,) = found("tiles cache")
    path = data.layout.root / where
    before = os.stat(path)
    text = path.read_text().replace("in tiles of", "in patches of", 1)
    path.write_text(text)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))  # an edit that hides when it was made
    assert found("patches cache") == [where]
    path.rename(path.with_name("moved.md"))
    assert [Path(one).name for one in found("patches cache")] == ["moved.md"]
    path.with_name("moved.md").unlink()
    assert found("patches cache") == []
    assert found('"; DROP TABLE cards; -- OR NEAR(') == []
    data.layout.knowledge_index.write_bytes(b"no database")
    status, error = smith(data, "knowledge", "search", "sums")
    assert status == 2 and "made anew" in error
    data.layout.knowledge_index.unlink()
    assert smith(data, "knowledge", "search", "sums")[0] == 0


def test_retrieval_keeps_within_its_bounds(data: Store) -> None:
    with open_index(data.layout) as index:
        cards = list(index.every())
    bundle = data.load(TRANSPOSE)
    held_out = HeldOut.of(data.layout)
    first = retrieve(cards, bundle, "cpu", held_out, own=True)
    assert first == retrieve(list(reversed(cards)), bundle, "cpu", held_out, own=True)
    (chosen,) = first.chosen
    assert not retrieve(cards, bundle, "cpu", held_out, own=True, tokens=chosen.tokens - 1).chosen
    assert retrieve(cards, bundle, "cpu", held_out, own=True, tokens=chosen.tokens).chosen == first.chosen
    assert not retrieve(cards, bundle, "rocm", held_out, own=True).chosen
    assert str(data.layout.root) not in chosen.text


def test_a_data_repository_may_lie_within_another(data: Store, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    shutil.copytree(data.layout.root, outer / "inner", ignore=shutil.ignore_patterns(".git"))
    git(data, "init", "-q", "-b", "main", str(outer))
    store = Store(Layout(outer / "inner"))
    for name, value in (("user.name", "A"), ("user.email", "a@example.org")):
        git(store, "config", name, value)
    commit(store)
    hand_in(store.layout, "second", lambda name, n: (SOLVED, 2.0), (TRANSPOSE,))
    made = smith(store, "knowledge", "propose", "second")[1]
    files = git(store, "diff", "--name-only", "HEAD", made["branch"]).splitlines()
    assert files == [f"inner/knowledge/evidence/{made['evidence'][0]}.json"]
    git(store, "merge", "-q", made["branch"])
    assert smith(store, "knowledge", "check", "--base", "HEAD~1")[1]["errors"] == []
    (store.layout.evidence / f"{made['evidence'][0]}.json").unlink()
    errors = smith(store, "knowledge", "check", "--base", "HEAD")[1]["errors"]
    assert [error["code"] for error in errors] == ["evidence_removed"]


def test_who_commits_must_be_known(data: Store) -> None:
    git(data, "config", "--unset", "user.name")
    hand_in(data.layout, "second", lambda name, n: (SOLVED, 2.0), (TRANSPOSE,))
    status, error = smith(data, "knowledge", "propose", "second")
    assert status == 2 and "git config user.name" in error
    assert git(data, "branch", "--list", "knowledge/second") == ""
