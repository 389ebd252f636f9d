"""``smith knowledge uplift`` on the evidence of runs: harm is named, what says nothing is left out and counted."""

from __future__ import annotations

from pathlib import Path

import pytest
from knowledge_worlds import GATHER, MATVEC, TRANSPOSE, WIDE, git, hand_in, sample_data, show, smith

from smith.evaluate.advice import arm_of
from smith.evaluate.run import attempt_folder, load_run
from smith.freeze.bundle import Store
from smith.knowledge.uplift import uplift_of
from smith.records.attempt import Attempt
from smith.records.grade import GradeVerdict
from smith.records.shown import Arm, Told

SOLVED, FAILED = GradeVerdict.SOLVED, GradeVerdict.FAILED
TASKS = (GATHER, WIDE, MATVEC, TRANSPOSE)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return sample_data(tmp_path_factory.mktemp("uplift") / "data")


def shown(task: str, number: int) -> bool:
    return arm_of("ab", 3, task, number) is Arm.SHOWN


def test_a_card_that_harms_is_named_with_the_command_that_takes_it_back(world: Store) -> None:
    hand_in(world.layout, "made", lambda task, n: (SOLVED, 3.0), (TRANSPOSE,))
    made = smith(world, "knowledge", "propose", "made")[1]
    git(world, "merge", "-q", "--no-edit", made["branch"])
    (card,) = made["added"]
    config = hand_in(
        world.layout, "harm", lambda task, n: (FAILED if shown(task, n) else SOLVED, None), TASKS, attempts=4
    )
    show(world.layout, config, card)
    status, told = smith(world, "knowledge", "uplift", "harm")
    assert status == 0 and told["uplift"]["effect"]["answer"] == "harms"
    assert told["uplift"]["effect"]["solved"]["value"] == -1.0 and told["uplift"]["cited"] == 8
    retract = told["harmful"][card]
    assert retract.startswith(f"smith knowledge retract {card} --reason ")
    # The command works as it stands, and what it writes passes the gate's rules for text.
    reason = retract.split('"')[1]
    assert smith(world, "knowledge", "retract", card, "--reason", reason)[0] == 0
    codes = {error["code"] for error in smith(world, "knowledge", "check")[1]["errors"]}
    assert codes <= {"stray"}


def test_slower_code_is_harm_too(world: Store) -> None:
    config = hand_in(
        world.layout, "slow", lambda task, n: (SOLVED, 1.5 if shown(task, n) else 3.0), (TRANSPOSE, MATVEC), attempts=8
    )
    show(world.layout, config, "0123456789ab")
    told = uplift_of(world.layout, [load_run(world.layout, "slow")])
    speed = told.uplift.effect.speed
    assert speed is not None and speed.value == pytest.approx(0.5, rel=0.01) and speed.high is not None
    assert speed.high < 1 and told.uplift.effect.answer.value == "harms"
    assert "wrote slower code: 0.50x" in told.harmful["0123456789ab"]


def test_what_says_nothing_is_left_out_and_counted(world: Store) -> None:
    def outcome(task: str, n: int) -> tuple[GradeVerdict, None] | None:
        if (task, n) == (GATHER, 1):
            return None
        return (GradeVerdict.INFRA if (task, n) == (WIDE, 4) else SOLVED, None)

    config = show(world.layout, hand_in(world.layout, "gaps", outcome, TASKS, attempts=4), "0123456789ab")
    for task, number, told in (
        (MATVEC, 1, Told(arm=Arm.NOTHING)),
        (TRANSPOSE, 1, None),
        (TRANSPOSE, 3, Told(arm=Arm.COLD if shown(TRANSPOSE, 3) else Arm.SHOWN)),
    ):
        path = attempt_folder(world.layout, "gaps", task, number) / "attempt.json"
        Attempt.load(path).model_copy(update={"knowledge": told}).save(path)
    found = uplift_of(world.layout, [config])
    assert found.left_out == {
        "an attempt has no grade yet": 2,
        "an attempt is not in the arm that was drawn": 1,
        "there was no card for its task": 1,
        "what an attempt was shown is not recorded": 1,
    }
    assert found.uplift.effect.solved.pairs == 3
    assert found.uplift.cards[0].effect is None


def test_runs_whose_arms_nobody_drew_are_refused(world: Store, tmp_path: Path) -> None:
    hand_in(world.layout, "plain", lambda task, n: (SOLVED, None), (GATHER,))
    status, words = smith(world, "knowledge", "uplift", "plain")
    assert status == 2 and "nobody drew" in words and "smith compare" in words
    config = hand_in(world.layout, "none", lambda task, n: None, (GATHER,), attempts=2)
    show(world.layout, config, "0123456789ab")
    status, words = smith(world, "knowledge", "uplift", "none")
    assert status == 2 and "smith resume none" in words
    status, words = smith(world, "knowledge", "uplift", "none", "none")
    assert status == 2 and "named twice" in words
