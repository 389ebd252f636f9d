"""Cards in an agent's instruction: arms, what is recorded, and that a resume shows what the run began with."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smith.evaluate.advice import CARDS_FILE, arm_of, cited_in
from smith.evaluate.run import load_run, states
from smith.freeze.bundle import Store
from smith.paths import remove_tree
from smith.records.agent_run import AgentRun
from smith.records.attempt import Attempt
from smith.records.card import Card
from smith.records.shown import Arm, ShownCard, Told
from tests.evaluate.card_world import SECRET, add_card, reader, stubborn
from tests.evaluate.model_world import evaluate, smith, tiny_world
from tests.gateway.scripted_model import Asked, Say, serving
from tests.validate.tiny_tasks import TASK


@pytest.fixture(scope="module")
def carded(tmp_path_factory: pytest.TempPathFactory, sandbox_name: str) -> tuple[Store, Card]:
    store = tiny_world(tmp_path_factory.mktemp("shown") / "data")
    return store, add_card(store)


def told(store: Store, run: str) -> list[Told]:
    found = [state.attempt for state in states(store.layout, load_run(store.layout, run))]
    assert all(attempt is not None and attempt.knowledge is not None for attempt in found)
    return [attempt.knowledge for attempt in found if attempt is not None and attempt.knowledge is not None]


@given(st.integers(0, 2**63 - 1), st.text(max_size=9), st.integers(0, 50))
def test_of_every_two_attempts_one_is_shown_the_cards(seed: int, task: str, pair: int) -> None:
    arms = [arm_of("ab", seed, task, 2 * pair + n) for n in (1, 2)]
    assert sorted(arms) == [Arm.COLD, Arm.SHOWN]
    assert arms == [arm_of("ab", seed, task, 2 * pair + n) for n in (1, 2)]
    assert arm_of("on", seed, task, pair + 1) is Arm.SHOWN


def test_arms_are_drawn_evenly_and_each_by_itself() -> None:
    first = [arm_of("ab", seed, "a", 1) is Arm.SHOWN for seed in range(2000)]
    other = [arm_of("ab", seed, "b", 1) is Arm.SHOWN for seed in range(2000)]
    third = [arm_of("ab", seed, "a", 3) is Arm.SHOWN for seed in range(2000)]
    for some in (first, other, third):
        assert 900 < sum(some) < 1100
    for some in (other, third):
        assert 900 < sum(a == b for a, b in zip(first, some, strict=True)) < 1100


def test_an_agent_is_shown_the_card_and_what_it_cites_is_recorded(carded: tuple[Store, Card]) -> None:
    store, card = carded
    with serving(reader) as model:
        said, folder = evaluate(store, "tools", f"{model.url}/v1", "--knowledge", "on")
    assert said["attempts"][0]["verdict"] == "solved"
    task = model.asked[0].turns[1]["content"]
    assert task.index("scale(x) must give twice x.") < task.index("What was learned before") < task.index(SECRET)
    assert "/tmp/CITED" in task
    attempt = Attempt.load(folder / "attempt.json")
    assert attempt.knowledge is not None
    assert (attempt.knowledge.arm, attempt.knowledge.cited) == (Arm.SHOWN, (card.id,))
    (shown,) = attempt.knowledge.shown
    assert shown.card == card.id
    assert AgentRun.load(folder / "agent.json").knowledge == attempt.knowledge
    # A file outside of the repository is no part of what is handed in.
    assert b"CITED" not in (folder / "submission.patch").read_bytes()


def test_without_the_option_no_byte_of_the_records_is_another(carded: tuple[Store, Card]) -> None:
    store, _ = carded
    with serving(stubborn) as model:
        said, folder = evaluate(store, "tools", f"{model.url}/v1")
    assert SECRET not in model.asked[0].turns[1]["content"]
    for path in (folder / "attempt.json", folder / "agent.json", store.layout.run(said["run"]) / "run.json"):
        assert b"knowledge" not in path.read_bytes()


def test_a_resume_gives_the_same_arms_and_shows_the_same_cards(carded: tuple[Store, Card], tmp_path: Path) -> None:
    store, card = carded
    seen: list[bool] = []

    def broken(asked: Asked) -> Say:
        seen.append(SECRET in asked.turns[1]["content"])
        return reader(asked) if len(seen) == 1 else Say("", status=401)

    argv = ("--knowledge", "ab", "--seed", "11", "--attempts", "4")
    with serving(broken) as model:
        url = f"{model.url}/v1"
        said, _ = evaluate(store, "tools", url, *argv)
        assert sorted({a["verdict"] for a in said["attempts"]} - {"solved", "failed"}) == ["infra"]
        kept = tmp_path / "knowledge"
        store.layout.knowledge.rename(kept)
        try:
            again: list[bool] = []

            def whole(asked: Asked) -> Say:
                again.append(SECRET in asked.turns[1]["content"])
                return reader(asked)

            model.script = whole
            smith(store, "resume", said["run"])
        finally:
            remove_tree(store.layout.knowledge) if store.layout.knowledge.exists() else None
            kept.rename(store.layout.knowledge)
    wanted = [arm_of("ab", 11, TASK, number) for number in range(1, 5)]
    found = told(store, said["run"])
    assert [one.arm for one in found] == wanted
    assert [*seen[:1], *again] == [arm is Arm.SHOWN for arm in wanted] and seen == [a is Arm.SHOWN for a in wanted]
    for one in found:
        cards = one.shown if one.arm is Arm.SHOWN else one.withheld
        assert [shown.card for shown in cards] == [card.id]
        assert one.cited == ((card.id,) if one.arm is Arm.SHOWN else ())
    # What the run began with cannot be changed under it.
    path = store.layout.run(said["run"]) / CARDS_FILE
    document: dict[str, Any] = json.loads(path.read_text())
    document["tasks"][TASK]["cards"][0]["text"] = "Something else."
    path.write_text(json.dumps(document))
    assert "is not what the run began with" in smith(store, "resume", said["run"], check=2)


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("--agent", "oracle", "--knowledge", "on"), "reads no instruction"),
        (("--agent", "tools", "--model", "scripted", "--knowledge", "ab", "--attempts", "3"), "--attempts 4"),
        (("--agent", "tools", "--model", "scripted", "--seed", "3"), "--seed draws the arms"),
    ],
)
def test_what_cannot_be_is_refused(carded: tuple[Store, Card], argv: tuple[str, ...], words: str) -> None:
    assert words in smith(carded[0], "eval", "tiny", *argv, check=2)


def test_what_was_learned_at_the_task_itself_is_never_shown(tmp_path: Path, sandbox_name: str) -> None:
    store = tiny_world(tmp_path / "data")
    add_card(store, task=TASK)
    argv = ("eval", "tiny", "--agent", "tools", "--model", "scripted", "--knowledge", "on")
    assert "there is no card for any task" in smith(store, *argv, check=2)
    assert not store.layout.runs.exists() or not list(store.layout.runs.iterdir())


def test_a_citation_is_read_as_text_and_nothing_else(tmp_path: Path) -> None:
    card = ShownCard(card="0123456789ab", file_sha256="1" * 64, text_sha256="2" * 64)
    assert cited_in(tmp_path, [card]) == ()
    file = tmp_path / "CITED"
    file.write_bytes(b"\xff\nnot ffffffffffff\n- Card 0123456789ab helped\n")
    assert cited_in(tmp_path, [card]) == ("0123456789ab",)
    file.write_text("0123456789abc 00123456789ab")
    assert cited_in(tmp_path, [card]) == ()
    other = tmp_path / "elsewhere"
    other.write_text("0123456789ab")
    file.unlink()
    file.symlink_to(other)
    assert cited_in(tmp_path, [card]) == ()
    file.unlink()
    os.mkfifo(file)
    assert cited_in(tmp_path, [card]) == ()
