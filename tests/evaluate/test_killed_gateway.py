"""A kill -9 of everything in the middle of a call: the money stays held, the resume starts anew and pays once."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from smith.evaluate.spending import attempt_scope
from smith.ledger import Ledger, State
from tests.evaluate.model_world import KEY, smith, tiny_world
from tests.gateway.scripted_model import Asked, Say, serving
from tests.validate.tiny_tasks import TASK

EDIT = ("edit", {"path": "tiny/scale.py", "old": "return x", "new": "return 2 * x"})


def test_a_kill_in_mid_call(tmp_path: Path, sandbox_name: str) -> None:
    store = tiny_world(tmp_path / "data")
    stuck, killed = threading.Event(), threading.Event()

    def script(asked: Asked) -> Say:
        if len(asked.turns) > 2 and not killed.is_set():
            stuck.set()
            return Say("never read", hold=killed)
        return Say(calls=(EDIT,)) if len(asked.turns) == 2 else Say(calls=(("submit", {}),))

    with serving(script) as model:
        argv = ["eval", "tiny", "--agent", "tools", "--model", "scripted", "--endpoint", f"{model.url}/v1"]
        running = subprocess.Popen(
            [sys.executable, "-m", "smith.cli.main", "-C", str(store.layout.root), *argv, "--budget-usd", "1"],
            env={**os.environ, "OPENAI_API_KEY": KEY},
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            assert stuck.wait(120)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
            running.wait()
            killed.set()
        (folder,) = store.layout.runs.iterdir()
        scope = attempt_scope(folder.name, TASK, 1)
        with Ledger.open(store.layout.ledger) as ledger:
            open_holds = [hold for hold in ledger.holds(scope, [State.OPEN]) if hold.ceiling.usd_micros]
            assert len(open_holds) == 1
            assert ledger.balance(scope).spent.usd_micros == 46
        time.sleep(0.2)
        said = json.loads(smith(store, "resume", folder.name, "--json"))
    (attempt,) = said["attempts"]
    assert (attempt["verdict"], attempt["ended"]) == ("solved", "submitted")
    # The first try's whole call, and both calls of the second; what was under way at the kill stays held.
    assert attempt["usd"] == 3 * 46 / 1e6
    assert said["budget"]["held_usd"] == open_holds[0].ceiling.usd_micros / 1e6
    with Ledger.open(store.layout.ledger) as ledger:
        assert [hold.key for hold in ledger.holds(scope, [State.UNCERTAIN])] == [open_holds[0].key]
        assert ledger.holds(scope, [State.OPEN]) == []
        assert ledger.check() == []
    attempts = folder / "attempts" / TASK
    aside = attempts / "001.interrupted-1"
    assert len((aside / "exchanges.jsonl").read_text().splitlines()) == 1
    assert len((attempts / "001" / "exchanges.jsonl").read_text().splitlines()) == 2
    words = smith(store, "report", folder.name)
    assert "held" in words
