"""Command-line agents: a program of the tests' own in every run, and the real ones where they are installed."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from smith.errors import RecordError, Unavailable
from smith.evaluate.agents.commandline import CommandLine, keep, shipped
from smith.evaluate.attempt import AGENT
from smith.freeze.bundle import Store
from smith.ledger import Ledger, State
from smith.records.agent_file import AgentFile
from smith.records.agent_run import AgentRun
from smith.records.attempt import Attempt
from tests.evaluate.card_world import SECRET, add_card
from tests.evaluate.model_world import KEY, evaluate, nowhere, smith
from tests.gateway.scripted_model import Asked, Say, Script, in_turn, serving

PROGRAMS = os.environ.get("SMITH_AGENT_PROGRAMS", os.environ["PATH"])
"""Where the real programs are looked up."""
FIX = "sed -i 's/return x/return 2 * x/' tiny/scale.py"

PROGRAM = """
    import json, os, subprocess, sys, time, urllib.error, urllib.request
    if sys.argv[1:] == ["--version"]:
        print("own 1.0")
        sys.exit()
    url, token, model, prompt = sys.argv[1:5]

    def ask(text):
        body = json.dumps({"model": model, "messages": [{"role": "user", "content": text}]}).encode()
        headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
        request = urllib.request.Request(f"{url}/chat/completions", body, headers)
        return json.load(urllib.request.urlopen(request))["choices"][0]["message"]["content"]

    seen = ""
    while True:
        try:
            command = ask(prompt + seen)
        except urllib.error.HTTPError as error:
            print(error.code, error.headers.get("x-should-retry"), error.read().decode(), flush=True)
            if os.environ.get("STUBBORN"):
                time.sleep(600)
            sys.exit(7)
        if command == "end":
            break
        seen = subprocess.run(["sh", "-c", command], capture_output=True, text=True).stdout
        with open(os.path.expanduser("~/log.jsonl"), "a") as log:
            log.write(json.dumps([command, seen]) + chr(10))
"""
FILE = """
schema_version = 1
name = "own"
dialect = "chat"
program = "own-agent"
install = "it comes with the tests"
command = ["{program}", "{base_url}", "{token}", "{model}", "{prompt}"]
trajectory = ["log.jsonl"]
grace_s = 1
[env]
"""


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the program ``own-agent`` and its description."""
    folder = tmp_path_factory.mktemp("own")
    program = folder / "own-agent"
    program.write_text(f"#!{sys.executable}\n{textwrap.dedent(PROGRAM)}")
    program.chmod(0o755)
    folder.chmod(0o755)
    (folder / "own.toml").write_text(FILE)
    (folder / "stubborn.toml").write_text(f'{FILE}STUBBORN = "1"\n')
    return folder


def run(
    tiny: Store, own: Path, script: Script, *more: str, file: str = "own.toml"
) -> tuple[dict[str, Any], Path, list[Asked]]:
    with serving(script) as model:
        argv = (str(own / file), f"{model.url}/v1", "--program-path", f"{own}:/usr/bin:/bin", *more)
        said, folder = evaluate(tiny, *argv)
    (attempt,) = said["attempts"]
    return dict(attempt), folder, model.asked


def test_a_program_works_in_the_sandbox_with_nothing_but_the_gateway(tiny: Store, own: Path) -> None:
    look = (
        "env; cat /proc/*/environ; ls -A ~ /smith /; git log --format=%s; cat /proc/net/dev; "
        "python -c 'import socket; socket.create_connection((\"1.1.1.1\", 80), 3)' 2>&1"
    )
    attempt, folder, asked = run(tiny, own, in_turn(Say(look), Say(FIX), Say("end")))
    assert (attempt["verdict"], attempt["ended"], attempt["tokens"]) == ("solved", "submitted", 81)
    prompt, seen, _ = (one.turns[0]["content"] for one in asked)
    assert "scale(x) must give twice x." in prompt
    assert "The state that was found" in seen
    assert "Network is unreachable" in seen
    assert "eth" not in seen
    assert KEY not in seen
    assert {one.headers["authorization"] for one in asked} == {f"Bearer {KEY}"}
    assert json.loads((folder / "agent" / "log.jsonl").read_text().splitlines()[1])[0] == FIX
    assert "scale(x) must give twice x." in (folder / "agent" / "prompt.md").read_text()
    about = AgentRun.load(folder / AGENT)
    assert (about.about["version"], about.agent, about.dialect) == ("own 1.0", "own", "chat")
    nowhere(KEY, tiny.layout.root)
    nowhere(KEY, own)


def test_a_program_is_shown_cards_as_any_agent_is(tiny: Store, own: Path) -> None:
    card = add_card(tiny)
    script = in_turn(Say(f"{FIX}; echo {card.id} > /tmp/CITED"), Say("end"))
    attempt, folder, asked = run(tiny, own, script, "--knowledge", "on")
    assert attempt["verdict"] == "solved"
    assert SECRET in asked[0].turns[0]["content"] and "`/tmp/CITED`" in asked[0].turns[0]["content"]
    told = Attempt.load(folder / "attempt.json").knowledge
    assert told is not None and [one.card for one in told.shown] == [card.id] and told.cited == (card.id,)


@pytest.mark.parametrize("file", ["own.toml", "stubborn.toml"])
def test_a_program_without_budget_is_told_so_and_ended_if_it_does_not_end(tiny: Store, own: Path, file: str) -> None:
    def script(asked: Asked) -> Say:
        return Say(FIX, read=len(asked.raw), wrote=asked.cap, cached=0)

    attempt, folder, asked = run(tiny, own, script, "--attempt-usd", "0.01", file=file)
    assert (attempt["verdict"], attempt["ended"]) == ("solved", "out_of_budget")
    assert attempt["usd"] <= 0.01
    assert len(asked) >= 1
    assert "402 false" in (folder / "agent" / "output.stdout").read_text()
    assert attempt["seconds"] < 120  # the stubborn one sleeps for ten minutes


@pytest.mark.slow
def test_time_is_up(tiny: Store, own: Path) -> None:
    attempt, _, _ = run(tiny, own, in_turn(Say(FIX), Say("sleep 600")), "--timeout", "8")
    assert (attempt["verdict"], attempt["ended"]) == ("solved", "out_of_time")
    with Ledger.open(tiny.layout.ledger) as ledger:
        assert ledger.holds(states=[State.OPEN]) == []


def test_a_program_that_never_asks_is_a_fault_of_the_set_up(tiny: Store, own: Path, tmp_path: Path) -> None:
    broken = tmp_path / "own.toml"
    broken.write_text(FILE.replace('command = ["{program}"', 'command = ["false"'))
    attempt, _, asked = run(tiny, tmp_path, in_turn(Say()), "--program-path", f"{own}:/usr/bin:/bin")
    assert (attempt["verdict"], attempt["ended"], asked) == ("infra", "sandbox_fault", [])
    assert "asked its model nothing" in attempt["reasons"][0]


def test_a_program_that_is_not_there_is_said_with_how_to_install_it(tiny: Store, tmp_path: Path) -> None:
    argv = ["eval", "tiny", "--agent", "codex", "--model", "scripted", "--program-path", str(tmp_path)]
    words = smith(tiny, *argv, check=2)
    assert "codex is not installed (npm install -g @openai/codex)" in words


def test_descriptions_are_checked() -> None:
    assert set(shipped()) >= {"claude-code", "codex", "mini-swe-agent", "opencode"}
    good = shipped()["codex"].model_dump()
    for change in (
        {"command": ["codex"], "files": {}, "env": {}},
        {"trajectory": ["../../etc"]},
        {"files": {"/etc/passwd": "x"}},
        {"dialect": "gopher"},
        {"colour": "red"},
    ):
        with pytest.raises(RecordError):
            AgentFile.parse({**good, **change}, "x.toml")
    filled = shipped()["codex"].filled("{prompt}", {"prompt": "{token}", "token": "secret"})
    assert filled == "{token}"  # a prompt is no template


def test_what_a_program_left_is_copied_without_following_links(tmp_path: Path) -> None:
    home, target = tmp_path / "home", tmp_path / "kept"
    (home / "log" / "deep").mkdir(parents=True)
    (tmp_path / "secret").write_text("of the machine")
    (home / "log" / "a.jsonl").write_text(f"key {KEY}")
    (home / "log" / "link").symlink_to(tmp_path / "secret")
    (home / "log" / "folder").symlink_to(tmp_path)
    (home / "linked").symlink_to(tmp_path)
    os.mkfifo(home / "log" / "deep" / "pipe")

    class Session:
        class redactor:
            @staticmethod
            def data(data: bytes) -> bytes:
                return data.replace(KEY.encode(), b"***")

    for name in ("log", "linked", "linked/secret", "nothing"):
        keep(home, name, target, Session())  # type: ignore[arg-type]
    assert [str(p.relative_to(target)) for p in sorted(target.rglob("*"))] == ["log", "log/a.jsonl"]
    assert (target / "log" / "a.jsonl").read_text() == "key ***"


def installed(name: str) -> CommandLine:
    agent = CommandLine(shipped()[name], PROGRAMS)
    try:
        agent.require()
    except Unavailable as error:
        pytest.skip(f"{error} -- or name its folder in SMITH_AGENT_PROGRAMS")
    return agent


def one_fix(calls: dict[str, tuple[str, dict[str, Any]]], end: Say) -> Script:
    """The fix by the first of these tools that is offered, then the end; side questions without tools get a word."""

    def script(asked: Asked) -> Say:
        offered = [tool.get("name") or tool.get("function", {}).get("name") for tool in asked.body.get("tools", [])]
        if not offered:
            return Say("A word.")
        if "2 * x" in json.dumps(asked.turns):
            return end
        name = next(name for name in calls if name in offered)
        return Say("I fix it.", calls=(calls[name],))

    return script


REAL = {
    "mini-swe-agent": one_fix(
        {"bash": ("bash", {"command": FIX})},
        Say("Done.", calls=(("bash", {"command": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"}),)),
    ),
    "codex": one_fix(
        {
            "exec_command": ("exec_command", {"cmd": FIX}),
            "shell": ("shell", {"command": ["bash", "-lc", FIX]}),
            "shell_command": ("shell_command", {"command": FIX}),
        },
        Say("Done."),
    ),
    "claude-code": one_fix({"Bash": ("Bash", {"command": FIX, "description": "fix"})}, Say("Done.")),
    "opencode": one_fix({"bash": ("bash", {"command": FIX, "description": "fix"})}, Say("Done.")),
}


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", sorted(REAL))
def test_the_real_program_solves_a_task(tiny: Store, name: str) -> None:
    agent = installed(name)
    with serving(REAL[name]) as model:
        url = model.url + ("" if agent.dialect.family == "anthropic" else "/v1")
        said, folder = evaluate(tiny, name, url, "--program-path", PROGRAMS, "--budget-usd", "2", "--timeout", "400")
    (attempt,) = said["attempts"]
    assert (attempt["verdict"], attempt["ended"]) == ("solved", "submitted"), attempt
    about = AgentRun.load(folder / AGENT)
    assert about.calls == len(model.asked) >= 2
    assert (about.uncertain, about.refused, about.faults) == (0, 0, 0)
    assert round(attempt["usd"] * 1e6) == about.calls * 46
    assert about.about["version"] == agent.program.version
    kept = [p for p in (folder / "agent").rglob("*") if p.is_file() and not p.name.startswith("output.")]
    assert kept
    nowhere(KEY, tiny.layout.root)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", sorted(REAL))
def test_the_real_program_ends_when_its_budget_is_out(tiny: Store, name: str) -> None:
    agent = installed(name)

    def script(asked: Asked) -> Say:
        # The first call takes nearly everything that is left for it.
        return Say("Well.", read=len(asked.raw), wrote=max(1, asked.cap - 10), cached=0, calls=_any_call(asked))

    with serving(script) as model:
        url = model.url + ("" if agent.dialect.family == "anthropic" else "/v1")
        argv = ("--program-path", PROGRAMS, "--attempt-usd", "0.30", "--timeout", "400")
        said, _ = evaluate(tiny, name, url, *argv)
    (attempt,) = said["attempts"]
    assert attempt["ended"] == "out_of_budget", attempt
    assert 0 < attempt["usd"] <= 0.30


def _any_call(asked: Asked) -> tuple[tuple[str, dict[str, Any]], ...]:
    offered = [tool.get("name") or tool.get("function", {}).get("name") for tool in asked.body.get("tools", [])]
    calls = {
        "bash": {"command": "true", "description": "nothing"},
        "Bash": {"command": "true", "description": "nothing"},
        "exec_command": {"cmd": "true"},
        "shell": {"command": ["true"]},
    }
    return next((((name, given),) for name, given in calls.items() if name in offered), ())
