"""A sandbox inside a container: another user id. The container is the isolation; this keeps tests from the verifier.

No mount is made, which most containers would refuse. What runs is a user id that owns nothing but what it is lent, so
that it can neither write rewards nor read expectations, and everything that carries the id is killed afterwards.
"""

from __future__ import annotations

import os
import resource
import secrets
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from smith import process
from smith.errors import Unavailable
from smith.sandbox.base import Bind, Ended, Limits
from smith.sandbox.host import Host
from smith.sandbox.limits import program

FIRST_ID, LAST_ID = 20_000, 59_999
"""User ids that no distribution gives away, and that containers with 65,536 ids still have."""
_KILL = "import os, signal; os.kill(-1, signal.SIGKILL)"


class Contained(Host):
    """:class:`smith.sandbox.host.Host` in a container that has limits of its own, which nothing inside can raise."""

    def run(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        binds: Sequence[Bind],
        limits: Limits,
        pass_fds: Sequence[int] = (),
        input: bytes | None = None,
        spill: Path | None = None,
    ) -> Ended:
        """As :meth:`smith.sandbox.base.Sandbox.run`, with what is left of ``limits`` below the container's."""
        lowered = replace(
            limits,
            memory_bytes=_below(resource.RLIMIT_DATA, limits.memory_bytes),
            processes=_below(resource.RLIMIT_NPROC, limits.processes),
            file_bytes=_below(resource.RLIMIT_FSIZE, limits.file_bytes),
            open_files=_below(resource.RLIMIT_NOFILE, limits.open_files),
        )
        return super().run(
            argv, cwd=cwd, env=env, binds=binds, limits=lowered, pass_fds=pass_fds, input=input, spill=spill
        )


def _below(name: int, wanted: int) -> int:
    hard = resource.getrlimit(name)[1]
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)


class OtherUser:
    """Runs commands as a fresh user id, within the limits of :class:`Contained`. Needs root."""

    name = "user"
    remaps = False

    def check(self) -> str | None:
        """None when it works here, else why not, in one line."""
        if os.geteuid() != 0:
            return "only root can become another user"
        try:
            ended = self.run(["true"], cwd="/", env={}, binds=(), limits=Limits(wall_s=20))
        except Unavailable as error:
            return error.message
        return None if ended.ok else f"a first command did not run: {ended.ending}"

    def run(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        binds: Sequence[Bind],
        limits: Limits,
        pass_fds: Sequence[int] = (),
        input: bytes | None = None,
        spill: Path | None = None,
    ) -> Ended:
        """As :meth:`smith.sandbox.base.Sandbox.run`. Writable binds, HOME and TMPDIR are lent for the time it takes."""
        user = FIRST_ID + secrets.randbelow(LAST_ID - FIRST_ID)
        lent = [str(b.source) for b in binds if b.writable] + [env[n] for n in ("HOME", "TMPDIR") if n in env]
        _own(lent, user)
        try:
            return Contained().run(
                [*_become(user), *argv],
                cwd=cwd,
                env=env,
                binds=binds,
                limits=limits,
                pass_fds=pass_fds,
                input=input,
                spill=spill,
            )
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
