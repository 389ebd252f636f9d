"""A data repository with one tiny, validated task in a panel, for agents that ask a scripted model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from smith.freeze.bundle import Store
from tests.validate.tiny_tasks import TASK, new_store, validated, write_task

KEY = "sk-canary-of-the-endpoint-31415926"
TESTS = {"tests/test_scale.py": "from tiny.scale import scale\n\ndef test_scale():\n    assert scale(4) == 8\n"}
PRICES = "[prices.scripted]\ninput_mtok = 1\noutput_mtok = 4\ncache_read_mtok = 0.5\n"


def tiny_world(root: Path) -> Store:
    """The data repository, with the panel ``tiny``."""
    root.mkdir(parents=True)
    store = new_store(root)
    with store.layout.config.open("a") as config:
        config.write(PRICES)
    receipt = validated(store, write_task(store, TESTS), repeats=2)
    receipt.save(store.layout.receipt(TASK, receipt.tree, "cpu"))
    smith(store, "panel", "new", "tiny", TASK)
    return store


def smith(store: Store, *argv: str, check: int = 0, env: dict[str, str] | None = None) -> str:
    """Run the command line; gives standard output, or where a fault is expected (status 2 and above) standard error."""
    done = subprocess.run(
        [sys.executable, "-m", "smith.cli.main", "-C", str(store.layout.root), *argv],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY, **(env or {})},
    )
    assert done.returncode == check, done.stderr + done.stdout
    assert KEY not in done.stdout + done.stderr
    return done.stderr if check > 1 else done.stdout


def evaluate(store: Store, agent: str, url: str, *more: str) -> tuple[dict[str, Any], Path]:
    """One evaluation: its report, and the folder of its one attempt."""
    argv = ["eval", "tiny", "--agent", agent, "--model", "scripted", "--endpoint", url, "--json", *more]
    said = json.loads(smith(store, *argv))
    return said, store.layout.run(said["run"]) / "attempts" / TASK / "001"


def nowhere(secret: str, folder: Path) -> None:
    """See that a secret is in no file below ``folder``."""
    found = [p for p in folder.rglob("*") if p.is_file() and not p.is_symlink() and secret.encode() in p.read_bytes()]
    assert not found
