"""Measuring wins again: real patches of real runs, graded once more; and cards that have grown old."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from smith.errors import BadInput
from smith.evaluate.run import RUN_FILE, attempt_folder
from smith.freeze.bundle import TASK_FILE, Store
from smith.git.sources import keep
from smith.knowledge.age import outside
from smith.knowledge.base import evidence_paths, load_evidence
from smith.knowledge.cards import SECTIONS, CardFile, body_of, load, path_of, save, with_identifier
from smith.knowledge.effects import effects_of
from smith.paths import Layout, write_atomically
from smith.records.card import Aim, AppliesTo, Card, Status
from smith.records.grade import Count, Grade, GradeVerdict
from smith.records.sealed import Control, Evidence, Use, UseOutcome
from smith.records.task import TaskFile
from tests.evaluate.model_world import smith, tiny_world
from tests.validate.tiny_tasks import TASK, tree_of


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory, sandbox_name: str) -> Store:
    return tiny_world(tmp_path_factory.mktemp("revalidate") / "data")


@pytest.fixture
def store(template: Store, tmp_path: Path) -> Store:
    shutil.copytree(template.layout.root, tmp_path / "data", symlinks=True)
    return Store(Layout(tmp_path / "data"))


def learn(store: Store, agent: str, lever: str, **more: Any) -> Card:
    """A card whose one win is, as its evidence has it, the patch that ``agent`` hands in at the tiny task."""
    run = json.loads(smith(store, "eval", "tiny", "--agent", agent, "--json"))["run"]
    folder = attempt_folder(store.layout, run, TASK, 1)
    graded = Grade.load(folder / "grade.json")

    def digest(path: Path) -> str:
        return hashlib.sha256(path.read_bytes()).hexdigest()

    where = AppliesTo(operator="other", languages=("native",), devices=("cpu",), toolchain=more.pop("toolchain", {}))
    card = with_identifier(
        Card(id="0" * 12, title=f"{lever} for scales", aim=Aim.CORRECTNESS, lever=lever, applies_to=where, **more)
    )
    body = body_of({name: f"What {lever} has to say of {name.lower()}." for name in SECTIONS})
    save(store.layout, CardFile(path_of(card), card, body))
    assert graded.receipt is not None
    use = Use(
        task=TASK,
        tree=graded.tree,
        attempt=1,
        device="cpu",
        verdict=GradeVerdict.SOLVED,
        outcome=UseOutcome.WIN,
        fail_to_pass=Count(passed=1, total=1),
        pass_to_pass=Count(passed=0, total=0),
        control=Control(verdict=GradeVerdict.FAILED, grade_sha256="2" * 64, patch_sha256="3" * 64),
        patch_sha256=graded.patch_sha256,
        grade_sha256=digest(folder / "grade.json"),
        attempt_sha256=digest(folder / "attempt.json"),
        receipt=graded.receipt,
    )
    evidence = Evidence(
        card=card.id,
        founding=True,
        run=digest(store.layout.run(run) / RUN_FILE),
        panel="tiny",
        agent=agent,
        uses=(use,),
    )
    data = evidence.model_copy(update={"effects": effects_of((use,))}).dumps()
    write_atomically(store.layout.evidence / f"{hashlib.sha256(data).hexdigest()}.json", data)
    return card


def knowledge(store: Store, *argv: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "smith.cli.main", "-C", str(store.layout.root), "knowledge", *argv, "--json"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def revalidate(store: Store, *argv: str, check: int = 0) -> dict[str, dict[str, Any]]:
    done = knowledge(store, "revalidate", *argv)
    assert done.returncode == check, done.stderr + done.stdout
    return {one["id"]: one for one in json.loads(done.stdout)["cards"]}


def status(store: Store, card: Card) -> tuple[Status, str]:
    found = load(store.layout, store.layout.root / path_of(card)).card
    return found.status, found.reason


def codes(store: Store) -> list[str]:
    done = knowledge(store, "check")
    return [error["code"] for error in json.loads(done.stdout)["errors"]]


def test_what_holds_is_filed_and_what_was_forged_is_found(store: Store) -> None:
    real = learn(store, "oracle", "doubling")
    # Nobody can tell from this evidence that its patch changes nothing: only measuring again does.
    forged = learn(store, "nop", "whispering")
    assert codes(store) == []
    found = revalidate(store, check=1)
    assert (found[real.id]["measured"], found[real.id]["held"], found[real.id]["status"]) == (1, 1, "active")
    assert (found[forged.id]["measured"], found[forged.id]["held"]) == (1, 0)
    assert status(store, real) == (Status.ACTIVE, "")
    stale, reason = status(store, forged)
    assert stale is Status.STALE and "1 of 1 wins did not hold when measured" in reason
    again = [load_evidence(store.layout, path).evidence for path in evidence_paths(store.layout)]
    by_card = {one.card: one for one in again if one.again is not None}
    assert by_card[real.id].uses[0].outcome is UseOutcome.WIN and not by_card[real.id].founding
    assert by_card[forged.id].uses[0].outcome is UseOutcome.NO_EFFECT
    assert codes(store) == []

    # The same patch is no new trial: nothing that is told of the lever has changed but that it held.
    shown = json.loads(smith(store, "knowledge", "show", real.id, "--json"))
    assert shown["helps"]["own"]["counts"] == {"wins": 1, "losses": 0, "no_effects": 0} and len(shown["evidence"]) == 2
    assert "measured again: 1 of 1 wins held" in smith(store, "knowledge", "show", real.id)

    # Once more is a file more, and is no duplicate; what it was measured for may not go.
    assert revalidate(store, real.id)[real.id]["held"] == 1
    assert codes(store) == [] and len(evidence_paths(store.layout)) == 5
    founding = next(s for s in map(lambda p: load_evidence(store.layout, p), evidence_paths(store.layout))
                    if s.evidence.card == real.id and s.evidence.founding)  # fmt: skip
    (store.layout.evidence / f"{founding.digest}.json").unlink()
    assert "evidence_missing" in codes(store)


def test_what_is_not_here_is_said_plainly(store: Store, tmp_path: Path) -> None:
    card = learn(store, "oracle", "doubling")
    run = next(store.layout.runs.iterdir())
    patch = run / "attempts" / TASK / "001" / "submission.patch"
    kept = patch.read_bytes()
    patch.write_bytes(kept + b"\n")
    assert "is not the one that was measured" in revalidate(store, check=1)[card.id]["not_measured"][0]
    patch.unlink()
    assert "has no patch of attempt 1 any more" in revalidate(store, check=1)[card.id]["not_measured"][0]
    run.rename(tmp_path / "elsewhere")
    words = revalidate(store, check=1)[card.id]
    assert "is not on this machine" in words["not_measured"][0] and words["evidence"] == []
    assert status(store, card) == (Status.ACTIVE, "") and codes(store) == []


def test_a_card_grows_old_by_its_toolchain_and_becomes_current_again(store: Store) -> None:
    card = learn(store, "oracle", "doubling", toolchain={"pytest": "<1", "nowhere": ">=2"})
    assert revalidate(store, "--age", check=1)[card.id]["status"] == "stale"
    stale, reason = status(store, card)
    assert stale is Status.STALE and reason.startswith("pytest ") and reason.endswith(" is not in <1.")
    assert codes(store) == []
    changed = load(store.layout, store.layout.root / path_of(card))
    where = changed.card.applies_to.model_copy(update={"toolchain": {"pytest": ">=1"}})
    save(store.layout, CardFile(changed.where, changed.card.model_copy(update={"applies_to": where}), changed.body))
    assert revalidate(store, "--age", check=1)[card.id]["status"] == "stale"  # only measuring makes it current
    assert revalidate(store)[card.id]["status"] == "active"
    assert status(store, card) == (Status.ACTIVE, "")


def test_a_card_grows_old_when_what_it_relies_on_is_gone_from_a_newer_source(store: Store) -> None:
    held, lost = "lab/tiny:tiny/scale.py::scale", "lab/tiny:tiny/scale.py::gone"
    card = learn(store, "oracle", "doubling", symbols=(held,))
    other = learn(store, "oracle", "tripling", symbols=(held, lost))
    assert {one["status"] for one in revalidate(store, "--age").values()} == {"active"}  # nothing is newer

    def newer(number: int, files: dict[str, str]) -> None:
        tree = tree_of(store, files)
        keep(store.data, store.scratch, tree)
        told = TaskFile.load(store.layout.task(TASK) / TASK_FILE)
        spec = told.metadata.smith
        source = spec.source.model_copy(
            update={"pr": number, "base_tree": tree, "tree": tree, "merged_at": f"2025-0{number}-01T00:00:00+00:00"}
        )
        name = f"lab__tiny-{number}"
        spec = spec.model_copy(update={"id": name, "source": source})
        metadata = told.metadata.model_copy(update={"smith": spec})
        task = told.task.model_copy(update={"name": f"smith/{name}"})
        write_atomically(
            store.layout.task(name) / TASK_FILE,
            told.model_copy(update={"task": task, "metadata": metadata}).dumps_toml(),
        )

    newer(8, {"tiny/scale.py": "def scale(x):\n    return x\n"})
    found = revalidate(store, "--age", check=1)
    assert found[card.id]["status"] == "active"
    assert found[other.id]["reason"] == "tiny/scale.py of lab/tiny has no gone before #8."
    newer(9, {"tiny/other.py": ""})
    assert (
        revalidate(store, card.id, "--age", check=1)[card.id]["reason"]
        == "tiny/scale.py is gone from lab/tiny before #9."
    )


def test_a_range_that_is_none_is_said() -> None:
    where = AppliesTo(operator="other", languages=("native",), devices=("cpu",), toolchain={"triton": "new ones"})
    card = Card(id="0" * 12, title="t", aim=Aim.SPEED, lever="x", applies_to=where)
    with pytest.raises(BadInput, match="'new ones' is no range of versions of triton"):
        list(outside(card, {"triton": "3.5"}))
    fine = card.model_copy(update={"applies_to": where.model_copy(update={"toolchain": {"triton": ">=3.4,<4"}})})
    assert list(outside(fine, {"triton": "3.6.0+git1"})) == [] and list(outside(fine, {})) == []
    assert list(outside(fine, {"triton": "4.0"})) == ["triton 4.0 is not in >=3.4,<4"]
