"""A layer without packages of its own: it sees those below, and pip is shown what it must not replace."""

from __future__ import annotations

import importlib.metadata
import os
import sysconfig
import venv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from smith.environment.base import TORCH, TRITON, Base
from smith.environment.requirements import requirement_name
from smith.paths import remove_tree

BELOW = "_smith_below.pth"


@dataclass(frozen=True)
class EmptyLayer:
    """``pins`` are versions that must stay as they are below."""

    python: Path
    site: Path
    pins: Mapping[str, str]
    stand_ins: Sequence[Path]

    def take_stand_ins_away(self) -> None:
        """Remove what only pip was to see."""
        for folder in self.stand_ins:
            remove_tree(folder)


def empty_layer(folder: Path, base: Base, packages: Iterable[str], *, hide_triton: bool = False) -> EmptyLayer:
    """Make a virtual environment in ``folder`` into which ``packages`` are going to be installed.

    ``hide_triton``: show pip an old Triton where one is asked for, so that the present one never fulfils the request.
    """
    asked = {requirement_name(package) for package in packages}
    venv.EnvBuilder(symlinks=True, with_pip=False).create(folder)
    site = Path(sysconfig.get_path("purelib", "venv", {"base": str(folder), "platbase": str(folder)}))
    (site / BELOW).write_bytes(b"".join(os.fsencode(path) + b"\n" for path in base.paths))
    pins = base.pins((*TORCH, *TRITON))
    for name in asked.intersection(TRITON):
        pins.pop(name, None)
    pins.setdefault("torch", "0")  # where there is none, none is to be had
    stand_ins = _stand_ins(base, site, triton_asked=bool(asked.intersection(TRITON)))
    if hide_triton:
        stand_ins += [_stand_in(site, name, "0", ()) for name in sorted(asked.intersection(TRITON, base.versions))]
    return EmptyLayer(folder / "bin" / "python", site, pins, stand_ins)


def _stand_ins(base: Base, site: Path, *, triton_asked: bool) -> list[Path]:
    """Metadata shown to pip while it resolves, and removed afterwards.

    Without it pip would install ``triton`` over the one that a ROCm torch brings under another name, and would
    refuse a Triton of another era because some builds of torch demand exactly their own.
    """
    made = []
    if not triton_asked and "triton" not in base.versions:
        for name in TRITON:
            if name in base.versions:
                made.append(_stand_in(site, "triton", base.versions[name], ()))
                break
    if triton_asked and "torch" in base.versions:
        requires = _requirements("torch", base)
        kept = [line for line in requires if requirement_name(line) not in TRITON]
        if len(kept) != len(requires):
            made.append(_stand_in(site, "torch", base.versions["torch"], kept))
    return made


def _requirements(name: str, base: Base) -> list[str]:
    found = next(iter(importlib.metadata.distributions(name=name, path=[str(path) for path in base.paths])), None)
    return list(found.requires or ()) if found is not None else []


def _stand_in(site: Path, name: str, version: str, requires: Iterable[str]) -> Path:
    folder = site / f"{name}-{version}.dist-info"
    folder.mkdir()
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {name}",
        f"Version: {version}",
        *(f"Requires-Dist: {r}" for r in requires),
    ]
    (folder / "METADATA").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "INSTALLER").write_text("smith\n")
    (folder / "RECORD").write_text("")
    return folder
