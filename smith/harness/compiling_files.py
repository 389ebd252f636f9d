"""Compile files of device code of a place with clang in the sandbox, and say what came of each."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from smith.harness.channel import Channel, Clang, FileCompiled
from smith.harness.stage import Stage
from smith.records.compiled import CompiledFile
from smith.records.compiled_files import FileFailure
from smith.sandbox.base import Bind, Limits
from smith.sandbox.limits import PATH

ROCM = Path("/opt/rocm")
FILE_S = 300.0
"""One file for one target at most: large kernels take a minute on a quiet core."""
MOST_S = 3600.0
START_S = 240.0
MOST_INCLUDES = 60
HEADERS = ("include", "csrc")
"""Folders of these names are searched for headers, as nearly every build does."""
_VERSIONED = re.compile(r"clang-(\d+)")


@dataclass
class CompiledFiles:
    """Answers by target, one for each file in their order; and the compiler's own word on its version."""

    answers: dict[str, list[CompiledFile]] = field(default_factory=dict)
    compiler: str = ""


def find_clang(path: str = f"{ROCM}/bin:{ROCM}/llvm/bin:{PATH}") -> str | None:
    """The clang to compile device code with: ROCm's, else the newest ``clang-NN``, else ``clang`` or ``hipcc``."""
    versions = {
        int(match[1]): name
        for folder in path.split(":")
        if os.path.isdir(folder)
        for name in os.listdir(folder)
        if (match := _VERSIONED.fullmatch(name))
    }
    names = ("amdclang++", *(versions[number] for number in sorted(versions, reverse=True)), "clang", "hipcc")
    return next((found for name in names if (found := shutil.which(name, path=path))), None)


def compile_files(
    stage: Stage, files: Sequence[str], targets: Sequence[str], jobs: int, *, clang: str | None, file_s: float = FILE_S
) -> CompiledFiles:
    """Compile every file of the place for every target, with at most ``jobs`` compilers at a time.

    What the files make of the compiler is a result; an answer that does not come is ``not_tried``.
    """
    done = CompiledFiles()
    if clang is None:
        lacking = "there is no clang here: install Debian's clang-19, or ROCm"
        done.answers = {t: [_untried(path, lacking) for path in files] for t in targets}
        return done
    limit = min(MOST_S, START_S + file_s * len(files) * len(targets) / max(1, jobs))
    rocm = [Bind(ROCM, str(ROCM))] if ROCM.is_dir() else []
    with Channel() as channel:
        plan: dict[str, Any] = {
            "root": stage.source,
            "files": list(files),
            "targets": list(targets),
            "clang": clang,
            "includes": [".", *_includes(stage.place.source)],
            "tmp": stage.tmp,
            "jobs": max(1, jobs),
            "file_s": file_s,
            "key": channel.key.hex(),
            "channel": channel.fd,
        }
        ended = stage.run(
            stage.module("compile_files"),
            Limits(wall_s=limit, memory_bytes=(4 << 30) + (2 << 30) * jobs, each_process=False),
            pass_fds=[channel.fd],
            input=json.dumps(plan).encode() + b"\n",
            more=rocm,
        )
    why = f"the compiler's process ended before ({ended.ending})"
    answers = {target: {path: _untried(path, why) for path in files} for target in targets}
    for record in channel.records:
        if isinstance(record, Clang):
            done.compiler = record.version
        elif isinstance(record, FileCompiled) and record.path in answers.get(record.target, {}):
            answers[record.target][record.path] = CompiledFile(**record.model_dump(exclude={"kind", "target"}))
    done.answers = {target: list(some.values()) for target, some in answers.items()}
    return done


def _untried(path: str, why: str) -> CompiledFile:
    return CompiledFile(path=path, failure=FileFailure.NOT_TRIED, detail=why[:600])


def _includes(source: Path) -> list[str]:
    """Folders of headers, the least deep first."""
    return sorted(_named(source), key=lambda path: (path.count("/"), path))[:MOST_INCLUDES]


def _named(source: Path) -> Iterator[str]:
    for folder, inner, _ in os.walk(source):
        inner[:] = [name for name in inner if not name.startswith(".")]
        for name in inner:
            if name in HEADERS:
                yield str((Path(folder) / name).relative_to(source))
