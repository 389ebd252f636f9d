"""What a sandbox is: a way to run one command so that it sees only what it is given and outlives nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from smith.process import Completed

Breach = Literal["memory", "processes", "output"]
"""A limit of the whole sandbox (not of one process) that ended a run."""


@dataclass(frozen=True)
class Bind:
    """A folder or file of the host, seen inside at the absolute path ``target``."""

    source: Path
    target: str
    writable: bool = False


@dataclass(frozen=True)
class Limits:
    """Bounds of one run. Memory and processes count the whole tree, ``file_bytes`` each file and each output.

    ``each_process``: the kernel also refuses memory to any process that alone reaches the bound.
    """

    wall_s: float
    memory_bytes: int = 8 << 30
    processes: int = 1024
    file_bytes: int = 2 << 30
    open_files: int = 4096
    each_process: bool = True


@dataclass(frozen=True)
class Command:
    """What to run, and what it sees and may use. ``cwd`` is a path of the inside, ``spill`` a file for long output.

    ``started`` is told the process at the root of the tree, as the machine counts, once that is known.
    """

    argv: Sequence[str]
    cwd: str
    limits: Limits
    env: Mapping[str, str] = field(default_factory=dict)
    binds: Sequence[Bind] = ()
    pass_fds: Sequence[int] = ()
    input: bytes | None = None
    spill: Path | None = None
    started: Callable[[int], None] = lambda pid: None


@dataclass(frozen=True)
class Ended(Completed):
    """How a sandboxed command ended. ``breach`` names the limit for which the sandbox killed it."""

    breach: Breach | None = None

    @property
    def ok(self) -> bool:
        return self.breach is None and super().ok

    @property
    def ending(self) -> str:
        """As of :class:`Completed`, or ``over the limit of ...``."""
        return f"over the limit of {self.breach}" if self.breach else super().ending


class Sandbox(Protocol):
    """One maker of sandboxes. It holds no state: the same object may run commands at the same time."""

    @property
    def name(self) -> str:
        """As people choose it and receipts tell it."""

    @property
    def remaps(self) -> bool:
        """Whether a bind's target may differ from its source."""

    def check(self) -> str | None:
        """None when it works on this machine, else why not, in one line."""

    def run(self, command: Command) -> Ended:
        """Run a command to its end; when this returns, every process it started is gone.

        Inside, the environment is the command's over fixed HOME, TMPDIR, PATH and LANG and nothing inherited. Never
        raises for how the command ended; raises :class:`Unavailable` when the sandbox itself cannot be made.
        """


def breached(completed: Completed, breach: Breach | None) -> Ended:
    """``completed`` with the limit that ended it, if one did."""
    return Ended(
        argv=completed.argv,
        status=completed.status,
        stdout=completed.stdout,
        stderr=completed.stderr,
        seconds=completed.seconds,
        timed_out=completed.timed_out,
        breach=breach,
    )
