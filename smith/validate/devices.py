"""Which device a task is tried on, and what smith can do on it here."""

from __future__ import annotations

import re
from dataclasses import dataclass

from smith.device.interpreter.target import UnknownTarget, find_target
from smith.errors import BadInput
from smith.records.task import SmithMetadata

DEFAULT_TARGET = "gfx942"
KINDS = ("interpreter", "cpu", "rocm", "cuda")
_RUNS_HERE = ("interpreter", "cpu")
_TARGET = re.compile(r"gfx[0-9a-f]+|sm_[0-9]+[a-z]?")


@dataclass(frozen=True)
class Choice:
    """A device name for receipts, and why nothing can be run on it (None: it can)."""

    name: str
    refusal: str | None = None


def choose_device(asked: str, spec: SmithMetadata) -> Choice:
    """The device for a task: the one asked for, or with ``auto`` the first of its kinds that smith runs here.

    Raises :class:`BadInput` for a name that is no device.
    """
    kind, _, target = asked.partition(":")
    if asked != "auto" and kind not in KINDS:
        raise BadInput(f"{asked!r} is no device", hint=f"one of: auto, {', '.join(KINDS)}, interpreter:gfx950, ...")
    if asked.endswith(":") or (target and not (kind in ("interpreter", "rocm", "cuda") and _TARGET.fullmatch(target))):
        raise BadInput(f"{asked!r} is no device", hint="a target looks like gfx942 or sm_90")
    if kind == "interpreter" and target:
        try:
            find_target(target)
        except UnknownTarget as error:
            raise BadInput(str(error)) from error
    if asked == "auto":
        kind = next((k for k in spec.devices if k in _RUNS_HERE), spec.devices[0] if spec.devices else "rocm")
        asked = kind
    if kind == "interpreter":
        asked = f"interpreter:{target or DEFAULT_TARGET}"
    if kind not in spec.devices:
        languages = ", ".join(spec.languages) or "no known language"
        return Choice(
            asked, f"kernels in {languages} cannot be run on {kind}; it needs {' or '.join(spec.devices) or 'a GPU'}"
        )
    if kind not in _RUNS_HERE:
        return Choice(asked, f"this version of smith runs tests on {' and '.join(_RUNS_HERE)} only, not on {kind}")
    return Choice(asked)
