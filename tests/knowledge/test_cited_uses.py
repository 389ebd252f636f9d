"""What a run with ``--knowledge ab`` says of the cards that it showed: who cited them, and what became of that."""

from __future__ import annotations

from pathlib import Path

import pytest
from knowledge_worlds import GATHER, MATVEC, TRANSPOSE, WIDE, commit, git, hand_in, sample_data, show, smith
from pydantic import ValidationError

from smith.evaluate.advice import arm_of
from smith.freeze.bundle import Store
from smith.knowledge.base import evidence_paths, load_evidence
from smith.records.grade import GradeVerdict
from smith.records.sealed import Use, UseRead
from smith.records.shown import Arm

SOLVED, FAILED = GradeVerdict.SOLVED, GradeVerdict.FAILED
THREADS = b"""diff --git a/minikernels/csrc/cpu/int8_matvec.c b/minikernels/csrc/cpu/int8_matvec.c
--- a/minikernels/csrc/cpu/int8_matvec.c
+++ b/minikernels/csrc/cpu/int8_matvec.c
@@ -1,2 +1,3 @@
 /* a */
+#pragma omp parallel for
 /* b */
"""


@pytest.fixture
def world(tmp_path: Path) -> Store:
    return sample_data(tmp_path / "data")


def shown(task: str, number: int) -> bool:
    return arm_of("ab", 3, task, number) is Arm.SHOWN


def propose(store: Store, run: str) -> dict[str, list[str]]:
    status, made = smith(store, "knowledge", "propose", run)
    assert status == 0, made
    git(store, "merge", "-q", "--no-edit", made["branch"])
    return dict(made)


def reads(store: Store) -> dict[tuple[str, int], tuple[UseRead | None, bool]]:
    found = [load_evidence(store.layout, path).evidence for path in evidence_paths(store.layout)]
    return {(u.task, u.attempt): (u.read, u.pulled) for one in found if not one.founding for u in one.uses}


def test_who_cites_a_card_is_counted_by_origin_whatever_the_patch_does(world: Store) -> None:
    hand_in(world.layout, "made", lambda task, n: (SOLVED, 3.0), (TRANSPOSE,))
    (card,) = propose(world, "made")["added"]

    # At its own task: who was shown it wins, who was not pulls the same lever and gains nothing.
    own = hand_in(
        world.layout, "own", lambda task, n: (SOLVED, 3.0 if shown(task, n) else 1.0), (TRANSPOSE,), attempts=4
    )
    show(world.layout, own, card)
    assert propose(world, "own")["updated"] == [card]
    found = reads(world)
    assert found == {
        (TRANSPOSE, n): (UseRead.CITED if shown(TRANSPOSE, n) else UseRead.NOT_SHOWN, True) for n in range(1, 5)
    }

    # Elsewhere: who cites it does something else and is slower. Nothing is said of the lever by that.
    other = hand_in(
        world.layout, "other", lambda task, n: (SOLVED, 0.8), (MATVEC,), attempts=2, patch=lambda task: THREADS
    )
    show(world.layout, other, card)
    made = propose(world, "other")
    assert made["updated"] == [card] and made["left_out"] == {
        "no win was measured with its lever, and no card has it": 2
    }
    assert [value for key, value in reads(world).items() if key[0] == MATVEC] == [(UseRead.CITED, False)]

    told = smith(world, "knowledge", "show", card)[1]
    assert told["helps"]["own"]["counts"] == {"wins": 3, "losses": 0, "no_effects": 2} and "other" not in told["helps"]
    assert told["cited"]["own"]["counts"] == {"wins": 2, "losses": 0, "no_effects": 0}
    assert told["cited"]["other"]["counts"] == {"wins": 0, "losses": 1, "no_effects": 0}
    (effect,) = told["effects"]
    assert effect["tasks"] == 1
    assert smith(world, "knowledge", "index", "--figures")[1]["figures"] == 1
    commit(world, "Figures")
    assert smith(world, "knowledge", "check") == (0, {"cards": 1, "errors": []})
    text = next(world.layout.cards.glob("*/*.md"))
    text.write_text(text.read_text().replace("cited:\n    own:\n      wins: 2", "cited:\n    own:\n      wins: 9"))
    assert [error["code"] for error in smith(world, "knowledge", "check")[1]["errors"]] == ["figures"]


def test_the_cold_attempt_of_a_pair_is_the_control_of_the_other(world: Store) -> None:
    run = hand_in(
        world.layout, "pairs", lambda task, n: (SOLVED if shown(task, n) else FAILED, None), (GATHER, WIDE), attempts=4
    )
    show(world.layout, run, "0123456789ab")
    made = propose(world, "pairs")
    assert len(made["added"]) == 2 and made["left_out"] == {"it is the control of its pair": 4}
    for path in evidence_paths(world.layout):
        evidence = load_evidence(world.layout, path).evidence
        assert evidence.control_run == evidence.run
        assert all(use.control is not None and use.control.verdict is FAILED for use in evidence.uses)
        assert {use.read for use in evidence.uses} == {UseRead.NOT_SHOWN}  # the card that was shown is another
    assert smith(world, "knowledge", "check") == (0, {"cards": 2, "errors": []})


def test_a_use_that_neither_pulls_nor_cites_is_none(world: Store) -> None:
    hand_in(world.layout, "made", lambda task, n: (SOLVED, 3.0), (TRANSPOSE,))
    propose(world, "made")
    (path,) = evidence_paths(world.layout)
    data = load_evidence(world.layout, path).evidence.uses[0].model_dump(mode="json")
    assert "read" not in data and "pulled" not in data  # evidence that is there keeps its bytes
    with pytest.raises(ValidationError, match="pulls the lever, or cites"):
        Use.model_validate(data | {"pulled": False, "read": "shown"})
