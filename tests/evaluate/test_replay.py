"""An earlier run once more, on its recorded answers: no model is asked, and nothing is paid."""

from __future__ import annotations

import json
from pathlib import Path

from smith.evaluate.attempt import AGENT
from smith.freeze.bundle import Store
from smith.records.agent_run import AgentRun
from tests.evaluate.model_world import evaluate, smith
from tests.evaluate.test_tools_agent import EDIT, SUBMIT, bash, one
from tests.gateway.scripted_model import Say, in_turn, serving
from tests.validate.tiny_tasks import TASK


def replayed(store: Store, run: str, *more: str) -> tuple[dict[str, object], Path]:
    said = json.loads(smith(store, "eval", "tiny", "--agent", "replay", "--replay", run, "--json", *more))
    return said, store.layout.attempts(said["run"]) / TASK / "001"


def test_the_same_work_for_nothing(tiny: Store) -> None:
    script = in_turn(Say("I look.", calls=(bash("date +%N; ls"),)), Say(calls=(EDIT,)), Say("Done.", calls=(SUBMIT,)))
    with serving(script) as model:
        first, folder = evaluate(tiny, "tools", f"{model.url}/v1", "--budget-usd", "1", "--steps", "9")
        asked = len(model.asked)
    assert one(first)["verdict"] == "solved" and one(first)["usd"] > 0
    # The model is gone.
    again, other = replayed(tiny, first["run"])
    assert (one(again)["verdict"], one(again)["ended"], one(again)["usd"]) == ("solved", "submitted", 0.0)
    assert (other / "submission.patch").read_bytes() == (folder / "submission.patch").read_bytes()
    about = AgentRun.load(other / AGENT)
    assert about.calls == asked == 3 and about.micro_usd == 0
    assert (about.about["replayed"], about.about["of"]) == ("tools", first["run"])
    assert json.loads(about.about["sampling"]) == {}
    # A replay is no record to replay, and one of a run that asked no model neither.
    oracle = json.loads(smith(tiny, "eval", "tiny", "--agent", "oracle", "--json"))
    for run in (again["run"], oracle["run"]):
        argv = ("eval", "tiny", "--agent", "replay", "--replay", str(run))
        assert "asked no model" in smith(tiny, *argv, check=2)
    assert "has no record of 2 attempts" in smith(
        tiny, "eval", "tiny", "--agent", "replay", "--replay", first["run"], "--attempts", "2", check=2
    )
    assert "--replay RUN" in smith(tiny, "eval", "tiny", "--agent", "replay", check=2)


def test_a_record_that_ends_early_is_said_to(tiny: Store) -> None:
    with serving(in_turn(Say(calls=(EDIT,)), Say("Done.", calls=(SUBMIT,)))) as model:
        first, folder = evaluate(tiny, "tools", f"{model.url}/v1", "--budget-usd", "1")
    record = folder / "exchanges.jsonl"
    record.write_text(record.read_text().splitlines(keepends=True)[0])
    again, _ = replayed(tiny, first["run"])
    assert (one(again)["verdict"], one(again)["ended"]) == ("infra", "provider_error")
    attempt = json.loads((tiny.layout.attempts(str(again["run"])) / TASK / "001" / "attempt.json").read_text())
    assert "the record ends after 1 answers" in attempt["detail"]
