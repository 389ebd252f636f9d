"""What was seen, bounded and free of repetition: one finding for each kind, kernel and line."""

from __future__ import annotations

import os
import sys
from typing import Any

from triton.runtime import interpreter as triton_interpreter

from .. import launches

LIMIT = 20
"""At most so many faults, and as many informations, between two calls of :func:`take`."""
INFORMATION = frozenset({"same_value_write", "outside_view"})
"""Kinds that are no faults."""

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_TRITON = os.path.dirname(os.path.dirname(os.path.abspath(triton_interpreter.__file__))) + os.sep

_findings: dict[tuple[str, str, str, int], dict[str, Any]] = {}


def take() -> list[dict[str, Any]]:
    """The findings since the last call, in the order in which they were first seen. They are then forgotten."""
    found = list(_findings.values())
    _findings.clear()
    return found


def add(
    kind: str,
    kernel: str,
    operation: str,
    program: tuple[int, int, int],
    *,
    argument: str,
    offset: int | None,
    lanes: int,
    other: tuple[int, int, int] | None = None,
) -> None:
    """Note that an access went wrong, at the line of the kernel that is running now.

    ``offset`` counts elements from where ``argument`` points to, ``lanes`` how many of the block's elements it was
    the first time; ``other`` is the program that wrote there before.
    """
    path, line = _place()
    key = (kind, kernel, path, line)
    known = _findings.get(key)
    if known is not None:
        known["times"] += 1
        return
    if sum((each["kind"] in INFORMATION) is (kind in INFORMATION) for each in _findings.values()) >= LIMIT:
        return
    _findings[key] = {
        "kind": kind,
        "kernel": kernel,
        "function": launches.innermost() or kernel,
        "path": path,
        "line": line,
        "program": program,
        "other": other,
        "operation": operation,
        "argument": argument,
        "offset": offset,
        "lanes": lanes,
        "times": 1,
    }


def _place() -> tuple[str, int]:
    """File and line of the innermost frame that is neither Triton's nor ours."""
    frame = sys._getframe(1)
    while frame is not None:
        name = os.path.abspath(frame.f_code.co_filename)
        if not name.startswith((_HERE, _TRITON)):
            return name, frame.f_lineno
        frame = frame.f_back  # type: ignore[assignment]
    return "", 0
