"""Which versions a day had: requirements resolved with what was published before it, and remembered.

The answer depends on the index, which only ever grows; so it is kept, and an environment made twice is the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path

from smith import temporary
from smith.environment.base import TORCH, TRITON, Base
from smith.environment.empty import empty_layer
from smith.environment.installer import EnvironmentFailed, resolve_as_of
from smith.errors import RecordError
from smith.paths import locked
from smith.records.base import Document
from smith.records.recipe import EnvironmentChoice

FOLDER = "resolved"
LAYOUT = 1
"""Part of every note's name: raised when versions are looked up in another way."""


class _Resolved(Document):
    packages: tuple[str, ...]


def resolve(
    choice: EnvironmentChoice, base: Base, root: Path, log: Path | None, progress: Callable[[str], None] | None
) -> tuple[str, ...]:
    """The exact versions that ``choice`` meant on its day, beyond what lies below already.

    Kept below ``root``. Raises :class:`EnvironmentFailed` where there is no such set of versions, or none can be told.
    """
    assert isinstance(choice.as_of, date)
    place = root.resolve() / FOLDER / f"{_key(choice, base)}.json"
    with locked(place.with_suffix(".lock")):
        try:
            return _Resolved.load(place).packages
        except RecordError:
            pass  # not there, or damaged
        if progress is not None:
            progress(f"looking up versions of {choice.as_of.isoformat()}")
        with temporary.folder("resolve") as aside:
            layer = empty_layer(aside / "layer", base, choice.packages, hide_triton=True)
            try:
                found = resolve_as_of(
                    base, layer.python, choice.packages, layer.pins, choice.as_of, aside / "constraints.txt", log
                )
            except EnvironmentFailed as error:
                message = f"environment {choice.name}, as of {choice.as_of.isoformat()}: {error.message}"
                raise EnvironmentFailed(message, hint=error.hint, output=error.output) from error
        if choice.as_of <= datetime.now(UTC).date():
            _Resolved(packages=found).save(place)  # of a day that is over; until then more may be published
        return found


def _key(choice: EnvironmentChoice, base: Base) -> str:
    asked = {
        "layout": LAYOUT,
        "packages": sorted({" ".join(package.split()) for package in choice.packages}),
        "as_of": str(choice.as_of),
        "python": f"{base.implementation}-{base.python}-{base.machine}",
        "below": dict(sorted(base.versions.items())),
        "held": base.pins((*TORCH, *TRITON)),
    }
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:32]
