"""A sandbox inside a container: another user id. The container is the isolation; this keeps tests from the verifier.

No mount is made, which most containers would refuse. What runs is a user id that owns nothing but what it is lent, so
that it can neither write rewards nor read expectations, and everything that carries the id is killed afterwards.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Sequence
from dataclasses import replace

from smith import process
from smith.errors import Unavailable
from smith.sandbox.base import Command, Ended, Limits
from smith.sandbox.host import Host
from smith.sandbox.limits import program

FIRST_ID, LAST_ID = 20_000, 59_999
"""User ids that no distribution gives away, and that containers with 65,536 ids still have."""
_KILL = "import os, signal; os.kill(-1, signal.SIGKILL)"


class OtherUser:
    """Runs commands as a fresh user id. Needs root."""

    name = "user"
    remaps = False

    def check(self) -> str | None:
        """None when it works here, else why not, in one line."""
        if os.geteuid() != 0:
            return "only root can become another user"
        try:
            ended = self.run(Command(["true"], "/", Limits(wall_s=20)))
        except Unavailable as error:
            return error.message
        return None if ended.ok else f"a first command did not run: {ended.ending}"

    def run(self, command: Command) -> Ended:
        """As :meth:`smith.sandbox.base.Sandbox.run`. Writable binds, HOME and TMPDIR are lent for the time it takes."""
        user = FIRST_ID + secrets.randbelow(LAST_ID - FIRST_ID)
        lent = [str(b.source) for b in command.binds if b.writable]
        lent += [command.env[name] for name in ("HOME", "TMPDIR") if name in command.env]
        _own(lent, user)
        try:
            return Host().run(replace(command, argv=[*_become(user), *command.argv]))
        finally:
            process.run([*_become(user), sys.executable, "-I", "-S", "-c", _KILL], timeout_s=60)
            _own(lent, os.geteuid())


def _become(user: int) -> list[str]:
    identity = [f"--reuid={user}", f"--regid={user}", "--clear-groups", "--no-new-privs"]
    return [program("setpriv"), *identity, "--inh-caps=-all", "--ambient-caps=-all", "--"]


def _own(folders: Sequence[str], user: int) -> None:
    """Give trees to ``user``, links themselves and never what they point at. Raises :class:`Unavailable`."""
    if folders and not process.run(["chown", "-R", "-h", "-P", f"{user}:{user}", "--", *folders]).ok:
        raise Unavailable(f"{folders[0]}: cannot be lent to another user id")
