"""What AMD's own programs say: ``rocminfo`` (text) and ``amd-smi ... --json``.

They only add what the kernel does not tell (names, versions): the shape of their output changes between releases.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from smith.gpus.base import Run, Which, number

_FIELD = re.compile(r"^\s*([A-Za-z][\w /()-]*?):\s+(.*?)\s*$")


@dataclass(frozen=True)
class Agent:
    """One GPU as ``rocminfo`` lists it."""

    architecture: str
    name: str
    uuid: str
    card: str
    """Empty where it does not tell the address."""


def agents(text: str) -> list[Agent]:
    """The GPU agents of an output of ``rocminfo``, in its order. Only an agent's own fields count, not its pools'."""
    found = []
    for part in re.split(r"^\*+\s*\n(?=Agent \d+)", text, flags=re.MULTILINE)[1:]:
        fields: dict[str, str] = {}
        for line in part.splitlines():
            match = _FIELD.match(line)
            if match:
                fields.setdefault(match[1], match[2])
        if fields.get("Device Type") == "GPU":
            uuid = fields.get("Uuid", "")
            found.append(
                Agent(
                    architecture=fields.get("Name", ""),
                    name=fields.get("Marketing Name", ""),
                    # `GPU-XX` is how the runtime says that there is none.
                    uuid=uuid if re.fullmatch(r"GPU-[0-9a-f]{16}", uuid) else "",
                    card=_card(fields.get("BDFID", ""), fields.get("Domain", "0")),
                )
            )
    return found


def _card(bdf: str, domain: str) -> str:
    location = number(bdf)
    if location is None:
        return ""
    place = int(location)
    return f"{int(number(domain) or 0) & 0xFFFF:04x}:{place >> 8 & 0xFF:02x}:{place >> 3 & 0x1F:02x}"


@dataclass(frozen=True)
class Told:
    """What ``amd-smi static`` adds about one card."""

    name: str = ""
    driver: str = ""
    architecture: str = ""
    power_limit_w: float | None = None


def static(text: str) -> dict[str, Told]:
    """By card (PCI address without the function), from ``amd-smi static --json`` of any release so far."""
    found: dict[str, Told] = {}
    for entry in _entries(text):
        asic, driver = _mapping(entry.get("asic")), _mapping(entry.get("driver"))
        card = str(_mapping(entry.get("bus")).get("bdf", "")).lower().rpartition(".")[0]
        if not card:
            continue
        words = [_said(driver.get(key)) for key in ("name", "version")]
        limit = _mapping(entry.get("limit"))
        power = limit.get("socket_power", _mapping(limit.get("ppt0")).get("socket_power_limit"))
        told = Told(
            name=_said(asic.get("market_name")),
            driver=" ".join(word for word in words if word),
            architecture=_said(asic.get("target_graphics_version")),
            power_limit_w=number(_mapping(power).get("value")),
        )
        found.setdefault(card, told)
    return found


def rocm_version(text: str) -> str:
    """From ``amd-smi version --json``."""
    return next((said for entry in _entries(text) if (said := _said(entry.get("rocm_version")))), "")


def _entries(text: str) -> Iterator[Mapping[str, Any]]:
    """A list of one object a GPU; newer releases wrap it in ``gpu_data``. Words before the JSON are warnings."""
    start = min((at for at in (text.find("["), text.find("{")) if at >= 0), default=-1)
    try:
        data = json.loads(text[start:]) if start >= 0 else []
    except (ValueError, RecursionError):
        return
    if isinstance(data, dict):
        data = data.get("gpu_data", [data])
    if isinstance(data, list):
        yield from (entry for entry in data if isinstance(entry, dict))


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _said(value: object) -> str:
    text = str(value or "").strip()
    return "" if text.upper() == "N/A" else text


def ask(which: Which, run: Run, program: str, *arguments: str) -> str:
    """What a program says, or nothing where it is not there or fails."""
    path = which(program)
    if path is None:
        return ""
    outcome = run([path, *arguments])
    return outcome.output if outcome.status == 0 else ""
