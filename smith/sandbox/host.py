"""No isolation at all: only limits. For machines where nothing else works, and only when asked for by name."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
from pathlib import Path

from smith import process
from smith.errors import Unavailable
from smith.sandbox import limits as kernel
from smith.sandbox.base import Command, Ended, breached
from smith.sandbox.watch import Watch, descendants, wait_gone

# Tells the watcher its own pid, closes that pipe and becomes the command. (A shell cannot: dash knows no descriptor
# above 9.)
_ANNOUNCE = """
import os, sys
fd = int(sys.argv[1])
os.write(fd, b'{"child-pid": %d}' % os.getpid())
os.close(fd)
os.execvp(sys.argv[2], sys.argv[2:])
"""


class Host:
    """Runs commands on the machine itself, as the same user, with the network and every file in reach."""

    name = "host"
    remaps = False

    def check(self) -> str | None:
        """None when it works on this machine, else why not, in one line."""
        if not sys.platform.startswith("linux"):
            return "smith's limits need Linux"
        return None if shutil.which("prlimit", path=kernel.PATH) else "prlimit (util-linux) is not installed"

    def require(self) -> None:
        """Raise :class:`Unavailable` unless it works here."""
        if reason := self.check():
            raise Unavailable(f"sandbox host: {reason}", hint="run smith on Linux with util-linux")

    def run(self, command: Command) -> Ended:
        """As :meth:`Sandbox.run`; a process that left its process group is killed where it can still be found."""
        for bind in command.binds:
            if str(bind.source) != bind.target:
                raise Unavailable(f"sandbox host cannot show {bind.source} as {bind.target}")
        fixed = {"HOME": command.cwd, "TMPDIR": command.cwd, "PATH": kernel.PATH, "LANG": "C.UTF-8"}
        with Watch(command.limits, command.spill, command.started) as watch:
            marker = f"SMITH_SANDBOX_ID={os.getpid()}-{watch.fd}-{id(watch)}"
            key, _, value = marker.partition("=")
            completed = process.run(
                [
                    sys.executable,
                    "-I",
                    "-S",
                    "-c",
                    _ANNOUNCE,
                    str(watch.fd),
                    *kernel.prefix(command.limits),
                    *command.argv,
                ],
                cwd=Path(command.cwd),
                env={**fixed, **command.env, key: value},
                input=command.input,
                timeout_s=command.limits.wall_s,
                pass_fds=(*command.pass_fds, watch.fd),
                spill=command.spill,
            )
            _kill_marked(marker.encode())
        return breached(completed, watch.breach)


def _kill_marked(marker: bytes) -> None:
    """Kill what the command left in other process groups, known by a variable of its environment."""
    for _ in range(20):
        left = [pid for entry in os.listdir("/proc") if entry.isdigit() and _carries(pid := int(entry), marker)]
        if not left:
            return
        for pid in left:
            for each in descendants(pid):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(each, signal.SIGKILL)
        wait_gone(left, 1.0)


def _carries(pid: int, marker: bytes) -> bool:
    try:
        return marker in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False
