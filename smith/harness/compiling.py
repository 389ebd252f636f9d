"""Compile captured launches of a place in the sandbox, and say what is to be believed of the answers."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from smith.harness.channel import Channel, Compiled, Compiler
from smith.harness.stage import Stage
from smith.records.compiled import CompiledLaunch, CompileFailure, Launch
from smith.sandbox.base import Limits

LAUNCH_S = 120.0
"""One launch on one target at most: large tiles in single precision take half a minute on a busy core."""
IMPORT_S = 300.0
START_S = 120.0
MOST_S = 3600.0
"""All launches of one side at most."""
WORKER_BYTES = 3 << 30
"""Memory of each worker, beside what the process has anyway."""


@dataclass
class CompiledSide:
    """What came of the launches of one tree: by target, one answer for each launch, in their order."""

    answers: dict[str, list[CompiledLaunch]] = field(default_factory=dict)
    triton: str = ""
    caveat: str = ""
    """What this compiler leaves out on AMD targets."""
    seconds: float = 0.0
    note: str = ""
    """Why answers are missing, where some are."""


def processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0))


def compile_launches(
    stage: Stage,
    launches: Sequence[Launch],
    targets: Sequence[str],
    known: Mapping[str, Sequence[str]],
    jobs: int,
    *,
    launch_s: float = LAUNCH_S,
) -> CompiledSide:
    """Compile every launch for every target with at most ``jobs`` workers, ``launch_s`` for each at most.

    Launches whose key is among ``known`` (by target) are not compiled again; their answer says so. Whatever the tree's
    code does to the compilers is a result; an answer that does not come is ``not_tried``.
    """
    side = CompiledSide()
    limit = min(MOST_S, START_S + IMPORT_S + launch_s * len(launches) * len(targets))
    with Channel() as channel:
        plan: dict[str, Any] = {
            "root": stage.source,
            "python_path": list(stage.recipe.python_path),
            "prelude": stage.prelude_inside,
            "tmp": stage.tmp,
            "launches": [launch.model_dump(mode="json", exclude_defaults=True) for launch in launches],
            "targets": list(targets),
            "known": {target: list(keys) for target, keys in known.items()},
            "jobs": max(1, jobs),
            "launch_s": launch_s,
            "import_s": IMPORT_S,
            "key": channel.key.hex(),
            "channel": channel.fd,
        }
        ended = stage.run(
            stage.module("compile_launches"),
            Limits(wall_s=limit, memory_bytes=(8 << 30) + WORKER_BYTES * jobs),
            pass_fds=[channel.fd],
            input=json.dumps(plan).encode() + b"\n",
        )
    side.seconds = ended.seconds
    missing = CompiledLaunch(failure=CompileFailure.NOT_TRIED, detail="the compiler's process ended before")
    answers: dict[str, list[CompiledLaunch]] = {target: [missing] * len(launches) for target in targets}
    able: tuple[str, ...] | None = None
    for record in channel.records:
        if isinstance(record, Compiler):
            side.triton, side.caveat, able = record.triton, record.note[:200], record.targets
        elif isinstance(record, Compiled) and record.target in answers and 0 <= record.launch < len(launches):
            plain = CompiledLaunch(**record.model_dump(exclude={"kind", "target", "launch"}))
            answers[record.target][record.launch] = plain
    if channel.fault is not None:
        side.note = f"tampered: {channel.fault}"
    elif able is None or not ended.ok:
        words = ended.stderr.text.strip().splitlines()
        side.note = f"the compilers ended ({ended.ending}){': ' + words[-1][:300] if words else ''}"
    for target in targets:
        if able is not None and target not in able:
            why = f"triton {side.triton} has no back end for {target}" if side.triton else "there is no triton"
            absent = CompiledLaunch(failure=CompileFailure.NOT_TRIED, detail=why)
            answers[target] = [absent] * len(launches)
    side.answers = answers
    return side
