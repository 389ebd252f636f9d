"""Collect and run tests of a place in the sandbox, and say what is to be believed of their report."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smith.harness.channel import Channel, Collected, Uncollected
from smith.harness.environment import TestEnvironment
from smith.harness.judge import INTERNAL_ERROR, USAGE_ERROR, Account
from smith.harness.place import Place
from smith.harness.stage import Stage
from smith.records.recipe import Recipe
from smith.records.results import TestRun
from smith.sandbox.base import Ended, Limits, Sandbox

# Imported before the repository's folders are on the path: no file there can stand for them.
PRELOAD = ("numpy", "torch", "triton")
COLLECT_WALL_S = 300.0


@dataclass(frozen=True)
class Collection:
    """The test ids of some files, and what of the files gave none."""

    ids: tuple[Collected, ...]
    uncollected: tuple[Uncollected, ...] = ()
    ending: str = "ok"
    complete: bool = True
    seconds: float = 0.0
    note: str = ""

    @property
    def errors(self) -> dict[str, str]:
        """Error by file or folder; ``""`` stands for everything (a conftest or the prelude)."""
        return {part.node: part.message for part in self.uncollected if not part.skipped}


def collect(
    sandbox: Sandbox,
    place: Place,
    environment: TestEnvironment,
    recipe: Recipe,
    device: str,
    files: Sequence[str],
    *,
    prelude: Path | None = None,
    wall_s: float = COLLECT_WALL_S,
    spill: Path | None = None,
) -> Collection:
    """The test ids of ``files``, in the order of pytest, without running any."""
    stage = Stage(sandbox, place, environment, recipe, device, prelude)
    plan = {"mode": "collect", "files": list(files)}
    ended, account = _pytest(stage, plan, frozenset(), Limits(wall_s=wall_s), False, spill)
    return Collection(
        ids=tuple(account.collected),
        uncollected=tuple(account.uncollected),
        ending=_ending(ended, account),
        complete=account.complete,
        seconds=ended.seconds,
        note=_note(ended, account),
    )


def run(
    sandbox: Sandbox,
    place: Place,
    environment: TestEnvironment,
    recipe: Recipe,
    device: str,
    ids: Sequence[str],
    *,
    id_timeout_s: float,
    wall_s: float,
    prelude: Path | None = None,
    spill: Path | None = None,
    stop_after_s: float | None = None,
    source_writable: bool = False,
) -> TestRun:
    """Run ``ids`` in this order in one process; every one of them has a result.

    ``id_timeout_s`` bounds each id, ``wall_s`` everything. After ``stop_after_s`` no further id is started: those left
    are ``missing`` although the run is complete, and the note says so. The source is read-only unless asked otherwise.
    """
    expected = list(dict.fromkeys(ids))
    stage = Stage(sandbox, place, environment, recipe, device, prelude)
    plan = {
        "mode": "run",
        "files": list(dict.fromkeys(name.partition("::")[0] for name in expected)),
        "ids": expected,
        "id_timeout_s": id_timeout_s,
        "stop_after_s": stop_after_s,
    }
    ended, account = _pytest(stage, plan, frozenset(expected), Limits(wall_s=wall_s), source_writable, spill)
    return TestRun(
        results=tuple(account.verdict(expected, ended.timed_out)),
        collected=tuple(account.announced),
        ending=_ending(ended, account),
        complete=account.complete,
        seconds=ended.seconds,
        note=_note(ended, account),
    )


def _pytest(
    stage: Stage,
    plan: dict[str, Any],
    expected: frozenset[str],
    limits: Limits,
    source_writable: bool,
    spill: Path | None,
) -> tuple[Ended, Account]:
    """Run one plan in one process. The key goes by standard input: not to be found in a file, argv or a variable."""
    plugin = stage.plugin
    with Channel() as channel:
        whole = {
            **plan,
            "root": stage.source,
            "python_path": list(stage.recipe.python_path),
            "pytest_args": list(stage.recipe.pytest_args),
            "preload": list(PRELOAD) if plugin else [],
            "device_plugin": plugin,
            "prelude": stage.prelude_inside,
            "key": channel.key.hex(),
            "channel": channel.fd,
        }
        ended = stage.run(
            stage.module("run_tests"),
            limits,
            source_writable=source_writable,
            pass_fds=[channel.fd],
            input=json.dumps(whole).encode(),
            spill=spill,
        )
    account = Account(expected)
    account.take(channel.records)
    account.fault = account.fault or channel.fault
    return ended, account


def _ending(ended: Ended, account: Account) -> str:
    """pytest's own statuses (tests failed, nothing collected, ...) are told by the results and are no bad ending."""
    closed = account.end is not None and ended.status == account.end.status
    return "ok" if closed and not ended.timed_out and ended.breach is None else ended.ending


def _note(ended: Ended, account: Account) -> str:
    """What people should know: tampering, an early stop, or the last words of a process that ended too early."""
    if account.fault is not None:
        return f"tampered: {account.fault}"
    words = ended.stderr.text.strip().splitlines()
    last = f": {words[-1][:300]}" if words else ""
    if account.end is None:
        return f"no closing record ({ended.ending}){last}"
    if account.end.status in (INTERNAL_ERROR, USAGE_ERROR):
        return f"pytest gave up (status {account.end.status}){last}"
    if account.end.stopped:
        return f"stopped early: {len(account.announced) - len(account.results)} ids were not run"
    return ""
