"""Which device a task is tried on, and what smith can do on it here."""

from __future__ import annotations

import re
from dataclasses import dataclass

from smith.device.interpreter.target import UnknownTarget, find_target
from smith.errors import BadInput
from smith.gpus.base import KINDS as GPUS
from smith.gpus.machine import Machine
from smith.records.task import SmithMetadata

DEFAULT_TARGET = "gfx942"
EVERYWHERE = ("interpreter", "cpu")
"""Kinds that need nothing of the machine but a processor."""
KINDS = (*EVERYWHERE, *GPUS)
_TARGET = {"interpreter": r"gfx[0-9a-f]+|sm_[0-9]+[a-z]?", "rocm": r"gfx[0-9a-f]+", "cuda": r"sm_[0-9]+[a-z]?"}


@dataclass(frozen=True)
class Choice:
    """A device name for receipts, and why nothing can be run on it (None: it can)."""

    name: str
    refusal: str | None = None


def choose_device(asked: str, spec: SmithMetadata, machine: Machine) -> Choice:
    """The device for a task: the one asked for, or with ``auto`` the first of its kinds that ``machine`` has.

    A GPU that is here is named with its architecture. Raises :class:`BadInput` for a name that is no device.
    """
    kind, target = _parsed(asked)
    if asked == "auto":
        usable = (k for k in spec.devices if k in EVERYWHERE or machine.matching(k).gpus)
        kind = next(usable, spec.devices[0] if spec.devices else "rocm")
        asked = kind
    if kind == "interpreter":
        asked = f"interpreter:{target or DEFAULT_TARGET}"
    if kind not in spec.devices:
        languages = ", ".join(spec.languages) or "no known language"
        return Choice(
            asked, f"kernels in {languages} cannot be run on {kind}; it needs {' or '.join(spec.devices) or 'a GPU'}"
        )
    if kind not in GPUS:
        return Choice(asked)
    here = machine.matching(asked)
    return Choice(here.gpus[0].device) if here.gpus else Choice(asked, here.reason)


def _parsed(asked: str) -> tuple[str, str]:
    """Kind and target of a device's name. Raises :class:`BadInput` for what is none."""
    kind, _, target = asked.partition(":")
    if asked != "auto" and kind not in KINDS:
        raise BadInput(f"{asked!r} is no device", hint=f"one of: auto, {', '.join(KINDS)}, interpreter:gfx950, ...")
    if asked.endswith(":") or (target and not re.fullmatch(_TARGET.get(kind, r"(?!)"), target)):
        example = {"rocm": "like rocm:gfx942", "cuda": "like cuda:sm_90"}.get(kind, "like gfx942 or sm_90")
        raise BadInput(f"{asked!r} is no device", hint=f"a target looks {example}")
    if kind == "interpreter" and target:
        try:
            find_target(target)
        except UnknownTarget as error:
            raise BadInput(str(error)) from error
    return kind, target
