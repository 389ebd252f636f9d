"""Collect and run tests of a place in the sandbox, and say what is to be believed of their report."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smith.errors import Unavailable
from smith.harness.channel import Channel, ChildEnded, Collected, Uncollected
from smith.harness.environment import TestEnvironment
from smith.harness.judge import INTERNAL_ERROR, USAGE_ERROR, Account, death_of
from smith.harness.place import Place
from smith.harness.stage import Stage
from smith.process import Completed, Output
from smith.records.recipe import Recipe
from smith.records.results import TestRun
from smith.sandbox.base import Ended, Limits, Sandbox

# Imported before the repository's folders are on the path: no file there can stand for them.
PRELOAD = ("numpy", "torch", "triton")
# What torch.testing.assert_close imports when it is first called; worth having before many forks.
LAZY = ("torch.distributed.tensor",)
COLLECT_WALL_S = 300.0
START_S = 120.0
"""What starting the sandbox and importing the libraries may take at worst, on a busy machine."""
EMPTY = Output(b"", b"", 0)
FOREVER_S = 1e9
Plan = dict[str, Any]
"""What ``smith.inside.run_tests`` reads of one plan, without key and channel."""


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
    plan = {"mode": "collect", "files": list(files), "wall_s": wall_s}
    (session,) = sessions(stage, [(plan, frozenset())], False, spill)
    account = session.account
    return Collection(
        ids=tuple(account.collected),
        uncollected=tuple(account.uncollected),
        ending=session.ending,
        complete=account.complete,
        seconds=session.seconds,
        note=session.note,
    )


@dataclass(frozen=True)
class Group:
    """Ids that share a process. ``wall_s`` bounds all of it, ``stop_after_s`` the starting of further ids."""

    ids: tuple[str, ...]
    id_timeout_s: float
    wall_s: float
    stop_after_s: float | None = None
    broken: bool = False
    """Kernels are broken on purpose: see :mod:`smith.device.interpreter.broken`."""
    stop_at_failure: bool = False
    """After an id that does not pass nothing more is run, of later groups neither."""


@dataclass(frozen=True)
class Capture:
    """Asks for the distinct launches of kernels in files of the tree, except those below ``excluded``."""

    excluded: tuple[str, ...] = ()


@dataclass(frozen=True)
class Record:
    """Asks for the calls that tests make into files of the tree, except those below ``excluded``, and that launch one
    of ``kernels`` (``path::symbol``; where none is known, one of ``files``). Where launches are not ``counted``, for
    all of them."""

    excluded: tuple[str, ...]
    kernels: tuple[str, ...]
    files: tuple[str, ...]
    counted: bool


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
    sanitize: bool = False,
) -> TestRun:
    """Run ``ids`` in this order in one process; every one of them has a result.

    ``id_timeout_s`` bounds each id, ``wall_s`` everything. After ``stop_after_s`` no further id is started: those left
    are ``missing`` although the run is complete, and the note says so. The source is read-only unless asked otherwise.
    """
    group = Group(tuple(ids), id_timeout_s, wall_s, stop_after_s)
    (done,) = run_groups(
        sandbox,
        place,
        environment,
        recipe,
        device,
        [group],
        prelude=prelude,
        spill=spill,
        source_writable=source_writable,
        sanitize=sanitize,
    )
    return done


def run_groups(
    sandbox: Sandbox,
    place: Place,
    environment: TestEnvironment,
    recipe: Recipe,
    device: str,
    groups: Sequence[Group],
    *,
    prelude: Path | None = None,
    spill: Path | None = None,
    source_writable: bool = False,
    seed: int = 0,
    sanitize: bool = False,
    capture: Capture | None = None,
    record: Record | None = None,
) -> list[TestRun]:
    """Run each group in a process of its own, one after the other in one sandbox: libraries are loaded only once.

    No process of one group lives on into the next, but they share the scratch space. ``seed`` is that of every
    generator that tests do not seed themselves. With ``sanitize`` results carry what the sanitizer saw; raises
    :class:`smith.errors.Unavailable` where the device has none.
    """
    stage = Stage(sandbox, place, environment, recipe, device, prelude, seed)
    capturing = None if capture is None or stage.plugin is None else list(capture.excluded)
    recording = None if record is None else vars(record)
    plans = [({**plan, "capture": capturing, "record": recording}, ids) for plan, ids in map(plan_of, groups)]
    return [run_of(g, s) for g, s in zip(groups, sessions(stage, plans, source_writable, spill, sanitize), strict=True)]


def plan_of(group: Group) -> tuple[Plan, frozenset[str]]:
    """The plan of a group, and the ids that may be told of."""
    expected = list(dict.fromkeys(group.ids))
    plan = {
        "mode": "run",
        "files": list(dict.fromkeys(name.partition("::")[0] for name in expected)),
        "ids": expected,
        "id_timeout_s": group.id_timeout_s,
        "stop_after_s": group.stop_after_s,
        "stop_at_failure": group.stop_at_failure,
        "broken": group.broken,
        "wall_s": group.wall_s,
    }
    return plan, frozenset(expected)


def run_of(group: Group, session: Session) -> TestRun:
    """The results of a group from what came of its plan."""
    account = session.account
    return TestRun(
        results=tuple(account.verdict(list(dict.fromkeys(group.ids)), session.timed_out)),
        collected=tuple(account.announced),
        ending=session.ending,
        complete=account.complete,
        seconds=session.seconds,
        note=session.note,
        captured=tuple(account.captured),
        uncaptured=account.end.uncaptured if account.end else 0,
        recorded=tuple(account.recorded),
        unrecorded=account.end.unrecorded if account.end else (),
        altered=account.end.altered if account.end else (),
    )


@dataclass(frozen=True)
class Session:
    """What came of one plan: its records, and how its process (or the whole sandbox before it) ended."""

    account: Account
    whole: Ended
    child: ChildEnded | None

    @property
    def begun(self) -> bool:
        """Whether its process was there at all."""
        return self.child is not None or self.account.greeted

    @property
    def timed_out(self) -> bool:
        return self.child.timed_out if self.child else self.whole.timed_out

    @property
    def seconds(self) -> float:
        return self.child.seconds if self.child else self.whole.seconds

    @property
    def _how(self) -> str:
        if self.child is None or self.whole.breach is not None:
            return self.whole.ending
        child = Completed((), self.child.status, EMPTY, EMPTY, self.child.seconds, self.child.timed_out)
        return child.ending

    @property
    def ending(self) -> str:
        """pytest's own statuses (tests failed, nothing collected, ...) are told by the results: no bad ending."""
        end = self.account.end
        closed = self.child is not None and end is not None and self.child.status == end.status & 0xFF
        return "ok" if closed and not self.timed_out and self.whole.breach is None else self._how

    @property
    def note(self) -> str:
        """What people should know: tampering, an early stop, or the last words of a process that ended too early."""
        account = self.account
        if account.fault is not None:
            return f"tampered: {account.fault}"
        words = self.whole.stderr.text.strip().splitlines()
        last = f": {words[-1][:300]}" if words else ""
        if account.end is None:
            return f"no closing record ({self._how}){last}"
        if account.end.status in (INTERNAL_ERROR, USAGE_ERROR):
            return f"pytest gave up (status {account.end.status}){last}"
        if account.end.stopped:
            return f"stopped early: {len(account.announced) - len(account.results)} ids were not run"
        return ""


def sessions(
    stage: Stage,
    plans: Sequence[tuple[Plan, frozenset[str]]],
    source_writable: bool = False,
    spill: Path | None = None,
    sanitize: bool = False,
    begin_until_s: float = math.inf,
) -> list[Session]:
    """Run plans one after the other in one sandbox. Keys go by standard input: in no file, argv or variable.

    The forking process has a channel of its own, over which it says how each child ended. ``begin_until_s``: see
    ``smith.inside.run_tests``.
    """
    if sanitize and stage.kind != "interpreter":
        raise Unavailable(f"the sanitizer watches kernels in the interpreter, not on {stage.device}")
    with contextlib.ExitStack() as stack:
        control = stack.enter_context(Channel())
        channels = [stack.enter_context(Channel()) for _ in plans]
        shared = {
            "root": stage.source,
            "python_path": list(stage.recipe.python_path),
            "pytest_args": list(stage.recipe.pytest_args),
            # What is loaded before the fork is paid for once; a single plan on the CPU may need none of it.
            "preload": [*PRELOAD, *(LAZY if len(plans) > 1 else ())] if stage.plugin or len(plans) > 1 else [],
            "device_plugin": stage.plugin,
            "seed": stage.seed,
            "prelude": stage.prelude_inside,
            "alone": stage.sandbox.remaps,
            "sanitize": sanitize,
            "scratch": stage.scratch,
            "begin_until_s": min(begin_until_s, FOREVER_S),
            "key": control.key.hex(),
            "channel": control.fd,
            "channels": [channel.fd for channel in channels],
        }
        lines = [shared] + [
            {**plan, "key": channel.key.hex(), "channel": channel.fd}
            for (plan, _), channel in zip(plans, channels, strict=True)
        ]
        whole = stage.run(
            stage.module("run_tests"),
            Limits(wall_s=START_S + sum(plan["wall_s"] for plan, _ in plans)),
            source_writable=source_writable,
            pass_fds=[control.fd, *(channel.fd for channel in channels)],
            input=b"".join(json.dumps(line).encode() + b"\n" for line in lines),
            spill=spill,
        )
    children = {r.plan: r for r in control.records if isinstance(r, ChildEnded)}
    found = []
    for index, ((_, expected), channel) in enumerate(zip(plans, channels, strict=True)):
        account = Account(expected)
        account.take(channel.records)
        account.fault = account.fault or channel.fault
        child = children.get(index)
        account.death = death_of(child.status if child else whole.status, whole.breach)
        found.append(Session(account, whole, child))
    return found
