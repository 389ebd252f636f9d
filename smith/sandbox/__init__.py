"""Sandboxes: one Protocol, and a file for each maker. :func:`make` gives one by name."""

from __future__ import annotations

from smith.errors import BadInput
from smith.sandbox.base import Bind, Command, Ended, Limits, Sandbox
from smith.sandbox.bubblewrap import Bubblewrap
from smith.sandbox.host import Host

_MAKERS: dict[str, type[Bubblewrap] | type[Host]] = {"bubblewrap": Bubblewrap, "host": Host}
NAMES = tuple(_MAKERS)


def make(name: str) -> Sandbox:
    """The sandbox called ``name``, seen to work on this machine.

    Raises :class:`BadInput` for an unknown name and :class:`Unavailable` (with how to mend it) where it cannot work.
    """
    if name not in _MAKERS:
        raise BadInput(f"unknown sandbox {name!r}", hint=f"one of: {', '.join(NAMES)}")
    sandbox = _MAKERS[name]()
    sandbox.require()
    return sandbox


__all__ = ["NAMES", "Bind", "Command", "Ended", "Limits", "Sandbox", "make"]
