"""The agent ``tools`` through the command line: a scripted model over real HTTP, the real gateway, the real sandbox."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from smith.evaluate.attempt import AGENT
from smith.freeze.bundle import Store
from smith.ledger import Ledger, State
from smith.records.agent_run import AgentRun
from tests.evaluate.model_world import KEY, evaluate, nowhere, smith
from tests.gateway.scripted_model import Asked, Say, in_turn, serving
from tests.validate.tiny_tasks import TASK

EDIT = ("edit", {"path": "tiny/scale.py", "old": "return x", "new": "return 2 * x"})
SUBMIT: tuple[str, dict[str, Any]] = ("submit", {})


def bash(command: str) -> tuple[str, dict[str, Any]]:
    return ("bash", {"command": command})


def outputs(asked: Asked) -> list[str]:
    """What tools answered, as the model sees it in its last request."""
    return [turn["content"] for turn in asked.turns if turn["role"] == "tool"]


def one(said: dict[str, Any]) -> dict[str, Any]:
    (attempt,) = said["attempts"]
    return dict(attempt)


def test_it_solves_a_task_and_everything_is_counted_and_written_down(tiny: Store) -> None:
    look = "cat tiny/scale.py; git log --format=%s; git status --short; touch /tmp/kept; python -c 'import tiny.scale'"
    script = in_turn(
        Say("I look.", calls=(bash(look), ("read", {"path": "tiny/scale.py", "first": 2})), thought="where?"),
        Say(calls=(SUBMIT,)),
        Say(calls=(EDIT, bash("ls /tmp/kept; git diff --stat"))),
        Say("Done.", calls=(SUBMIT,)),
    )
    with serving(script) as model:
        said, folder = evaluate(tiny, "tools", f"{model.url}/v1", "--budget-usd", "1", "--sampling", "temperature=0.25")
    attempt = one(said)
    assert (attempt["verdict"], attempt["ended"]) == ("solved", "submitted")
    # Four calls of 20 tokens of prompt, 5 of them cached, and 7 of reply.
    assert (attempt["usd"], attempt["tokens"]) == (4 * (15 + 2.5 + 28) / 1e6 + 2e-6, 4 * 27)
    assert said["budget"] == {"limit_usd": 1.0, "spent_usd": attempt["usd"], "held_usd": 0.0}
    first, second, third, last = model.asked
    assert first.body["temperature"] == 0.25
    assert "scale(x) must give twice x." in first.turns[1]["content"]
    looked, read = outputs(second)
    assert "def scale(x):" in looked
    assert "The state that was found\n[exit status 0" in looked
    assert read == "     2      return x\n[lines 2 to 2 of 2]"
    assert second.turns[2]["reasoning_content"] == "where?"
    assert outputs(third)[-1] == "not handed in: nothing is changed"
    assert "/tmp/kept" in outputs(last)[-1]
    assert "1 file changed" in outputs(last)[-1]
    about = AgentRun.load(folder / AGENT)
    assert (about.calls, about.sent, about.micro_usd) == (4, 4, round(attempt["usd"] * 1e6))
    assert json.loads(about.about["sampling"]) == {"temperature": 0.25}
    steps = [json.loads(line) for line in (folder / "trajectory.jsonl").read_text().splitlines()]
    assert json.loads((folder / "trajectory.json").read_text())["steps"] == steps
    assert [step["source"] for step in steps] == ["system", "user", *["agent"] * 4]
    assert len((folder / "exchanges.jsonl").read_text().splitlines()) == 4


def test_the_key_is_nowhere_that_an_agent_or_a_reader_looks(tiny: Store) -> None:
    look = (
        "env; cat /proc/*/environ /proc/*/cmdline; grep -rl canary-of-the-endpoint / --include=* --exclude-dir=proc "
        "--exclude-dir=sys --exclude-dir=usr 2>/dev/null; ls -A ~ /smith; python -c 'import urllib.request as u; "
        'u.urlopen("http://1.1.1.1", timeout=3)\''
    )
    script = in_turn(Say(calls=(bash(look),)), Say(f"The key is {KEY}", calls=(EDIT, SUBMIT)))
    with serving(script) as model:
        said, _ = evaluate(tiny, "tools", f"{model.url}/v1")
    assert one(said)["verdict"] == "solved"
    first, second = model.asked
    assert first.headers["authorization"] == f"Bearer {KEY}"
    (seen,) = outputs(second)
    assert "PATH=" in seen
    assert "Network is unreachable" in seen
    for text in (seen, json.dumps(said)):
        assert "canary-of-the-endpoint-" not in text.replace("grep -rl canary-of-the-endpoint", "")
    nowhere(KEY, tiny.layout.root)


def test_an_attempt_ends_when_its_budget_is_out_and_is_graded_as_it_stands(tiny: Store) -> None:
    def script(asked: Asked) -> Say:
        work = EDIT if len(outputs(asked)) == 0 else bash(f"echo {len(outputs(asked))}")
        return Say(calls=(work,), read=len(asked.raw), wrote=min(asked.cap, 1000), cached=0)

    with serving(script) as model:
        said, folder = evaluate(tiny, "tools", f"{model.url}/v1", "--budget-usd", "0.04", "--attempt-usd", "0.03")
    attempt = one(said)
    assert (attempt["verdict"], attempt["ended"]) == ("solved", "out_of_budget")
    assert 0.01 < attempt["usd"] <= 0.03
    assert said["budget"]["held_usd"] == 0
    assert AgentRun.load(folder / AGENT).refused == 1
    caps = [asked.cap for asked in model.asked]
    assert caps[-1] < caps[0]  # the last calls were lowered to what was left


def test_what_cannot_pay_a_first_call_waits_for_more_money(tiny: Store) -> None:
    script = in_turn(Say(calls=(EDIT, SUBMIT)))
    with serving(script) as model:
        argv = ["eval", "tiny", "--agent", "tools", "--model", "scripted", "--endpoint", f"{model.url}/v1"]
        words = smith(tiny, *argv, "--budget-usd", "0.001", check=4)
        assert "too little is left" in words
        run = words.split("run ", 1)[1].split()[0]
        assert model.asked == []
        report = json.loads(smith(tiny, "report", run, "--json"))
        assert one(report)["verdict"] is None
        smith(tiny, "budget", "raise", f"eval/{run}", "usd=0.001:1", "--why", "more")
        resumed = json.loads(smith(tiny, "resume", run, "--json"))
    assert one(resumed)["verdict"] == "solved"


def test_faults_of_the_model_are_answered_and_faults_of_the_endpoint_are_nobodys_result(tiny: Store) -> None:
    script = in_turn(
        Say(calls=(("fly", {}), ("read", {}), ("read", {"path": 3}), ("read", {"path": "/nowhere"}))),
        Say(calls=(("write", {"path": "setup.py", "content": "x"}), SUBMIT)),
        Say("I only talk."),
        Say(calls=(bash("rm setup.py; ln -s /etc/passwd leak; seq 9000"), ("read", {"path": "leak"}))),
        Say(calls=(bash("rm leak"), EDIT)),
        Say("", status=401),
    )
    with serving(script) as model:
        said, folder = evaluate(tiny, "tools", f"{model.url}/v1")
    attempt = one(said)
    assert (attempt["verdict"], attempt["ended"]) == ("infra", "provider_error")
    found = outputs(model.asked[-1])
    assert [text.partition(":")[2][:24] for text in found[:3]] == [
        " there is no tool 'fly';",
        " read needs path",
        " path of read must be a ",
    ]
    assert "No such file" in found[3]
    assert found[5].startswith("not handed in: setup.py is not among the paths")
    assert "bytes left out; all of it is in /tmp/outputs/" in found[6]
    assert "root:x:0:0::/nonexistent" in found[7]  # the sandbox's own, not the machine's
    assert any(turn.get("content", "").startswith("You called no tool") for turn in model.asked[-1].turns)
    assert (folder / "trajectory.json").is_file()


def test_going_round_in_circles_ends_it(tiny: Store) -> None:
    with serving(in_turn(Say(calls=(bash("cat tiny/scale.py"),)))) as model:
        said, _ = evaluate(tiny, "tools", f"{model.url}/v1")
    assert one(said)["ended"] == "stuck"
    assert len(model.asked) == 6
    assert "try something else" in outputs(model.asked[-1])[2]


@pytest.mark.slow
def test_a_conversation_that_grows_is_compacted_and_marked(tiny: Store) -> None:
    sizes = []

    def script(asked: Asked) -> Say:
        sizes.append(len(asked.raw))
        number = len(outputs(asked))
        if number >= 12:
            return Say(calls=(EDIT, SUBMIT), read=len(asked.raw) // 3)
        return Say(calls=(bash(f"seq {number}00 {number}00 | tail -1; seq 1200"),), read=len(asked.raw) // 3)

    with serving(script) as model:
        said, folder = evaluate(tiny, "tools", f"{model.url}/v1", "--context-tokens", "16000")
    assert one(said)["verdict"] == "solved"
    assert max(sizes) < 16000 * 3.3
    last = outputs(model.asked[-1])
    assert last[0].startswith("[output of ")
    assert not any(text.startswith("[output of ") for text in last[-6:])
    told = [json.loads(line)["message"] for line in (folder / "trajectory.jsonl").read_text().splitlines()]
    assert any("old outputs left out" in text for text in told)


@pytest.mark.parametrize(
    ("more", "status", "words"),
    [
        (["--agent", "tools"], 2, "--model"),
        (["--agent", "tools", "--model", "nobody-knows-this"], 4, "nobody knows what a call"),
        (["--agent", "tools", "--model", "scripted", "--sampling", "warmth=1"], 2, "warmth"),
        (["--agent", "tools", "--model", "scripted", "--sampling", "temperature=hot"], 2, "temperature"),
        (["--agent", "tools", "--model", "scripted", "--endpoint", "ftp://x"], 2, "no address"),
        (["--agent", "nop", "--model", "scripted"], 2, "asks no model"),
        (["--agent", "oracle", "--steps", "3"], 2, "--steps"),
    ],
)
def test_what_cannot_work_is_said_before_anything_is_written(
    tiny: Store, more: list[str], status: int, words: str
) -> None:
    before = sorted(p.name for p in tiny.layout.runs.glob("*"))
    assert words in smith(tiny, "eval", "tiny", *more, check=status)
    assert sorted(p.name for p in tiny.layout.runs.glob("*")) == before


def test_nothing_is_left_open_and_the_ledger_proves_itself(tiny: Store) -> None:
    with Ledger.open(tiny.layout.ledger) as ledger:
        assert ledger.check() == []
        assert ledger.holds(states=[State.OPEN]) == []
    assert TASK
    assert not list(Path(tiny.layout.work).rglob("gateway.sock"))
