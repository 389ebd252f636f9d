"""The sanitizer: what a kernel does to memory that a CPU forgives, seen while tests run in the interpreter.

A mode of the device ``interpreter``: :func:`install` patches it further, in a process that asked for it and in no
other. Seen are

- reads and writes outside the allocation that a pointer was made for (they are then not carried out),
- reads of memory that came from ``torch.empty`` and its kin and that nothing has written,
- writes of different values by two programs of one launch to one address, without an atomic that orders them.

Two more are told as information, not as faults: two programs that write the same value, and accesses that leave the
view which was passed but not its storage. Where the sanitizer cannot tell, it says nothing: for pointers that a kernel
made of integers nothing outside the known allocations is a finding.

:func:`take` gives and forgets the findings since it was last called.
"""

from __future__ import annotations

from .report import take

__all__ = ["install", "installed", "take"]

_installed = False


def installed() -> bool:
    """Whether this process is watched."""
    return _installed


def install() -> None:
    """Watch the kernels of this process. The device must be installed; a second call does nothing.

    :raises RuntimeError: the interpreter device is not installed.
    """
    global _installed
    if _installed:
        return
    from .. import installed as device

    if device() is None:
        raise RuntimeError("the sanitizer watches the interpreter device, which is not installed")
    from . import accesses, launched, pointers, poison

    poison.install()
    pointers.install()
    accesses.install()
    launched.install()
    _installed = True
