"""One worker of the compile gate: a process with one target, into which the repository's modules are imported."""

from __future__ import annotations

import importlib
import json
import os
import runpy
import sys
from typing import Any

WORDS = 400


def prepare(plan: dict[str, Any], target: str) -> None:
    """Make this process one of ``target``: driver and answers of torch, the repository's folders, its prelude."""
    os.chdir(plan["root"])
    device: Any = importlib.import_module("smith.device.interpreter")
    device.stand_in(target)
    folders = [os.path.normpath(os.path.join(plan["root"], entry)) for entry in plan["python_path"]]
    sys.path[:] = folders + [entry for entry in sys.path if entry not in ("", os.path.abspath(plan["tmp"]))]
    if plan["prelude"]:
        runpy.run_path(plan["prelude"], run_name="smith_prelude")


def work(plan: dict[str, Any], target: str, asked: int, answers: int, errors: str) -> int:
    """Compile the launches whose numbers come over ``asked``, one a line; ``errors`` is the file behind stderr.

    The first line said is ``{"ready": true}`` or ``{"broken": WHY}``.
    """
    write = os.write
    try:
        prepare(plan, target)
        find_target: Any = importlib.import_module("smith.device.interpreter.target").find_target
        kernels: Any = importlib.import_module("smith.device.compiler.kernels").Kernels()
        compile_: Any = importlib.import_module("smith.device.compiler.compile")
        compiler = compile_.Compiler(find_target(target), kernels, plan["known"].get(target, ()))
        for launch in plan["launches"]:
            try:
                kernels.load(launch["module"], launch["path"])
            except ImportError:
                continue  # the launches of this module say so, one by one
    except BaseException as error:
        text = " ".join(str(error).split())[:WORDS]
        write(answers, json.dumps({"broken": f"{type(error).__name__}: {text}"}).encode() + b"\n")
        return 1
    write(answers, b'{"ready": true}\n')
    with os.fdopen(asked, "r") as lines:
        for line in lines:
            number = int(line)
            os.truncate(errors, 0)
            answer = compiler.answer(plan["launches"][number])
            if answer.get("failure") == "back_end":
                answer["detail"] = _with_words(answer["detail"], errors)
            data = json.dumps({"launch": number, **answer}).encode() + b"\n"
            while data:
                data = data[write(answers, data) :]
    return 0


def _with_words(detail: str, errors: str) -> str:
    """The compiler's passes say why on stderr, and raise ``PassManager::run failed``."""
    said = last_words(errors, "error:")
    return f"{detail}: {said}" if said else detail


def last_words(path: str, mark: str = "") -> str:
    """The first line of a file with ``mark`` in it, or without one the last; empty where there is none."""
    try:
        with open(path, errors="replace") as file:
            lines = [line.strip() for line in file.read(1 << 20).splitlines() if line.strip()]
    except OSError:
        return ""
    if mark:
        lines = [line for line in lines if mark in line][:1]
    return lines[-1][:WORDS] if lines else ""
