"""Whose turn it is on a GPU: exclusive leases over all processes of one user on one machine.

A lease is a lock that the kernel holds on a file (``flock``), so it ends with its holder however that dies. The files
lie in a folder that every process of the user finds by itself, outside of any data repository, because several
repositories share one GPU. Other users are seen by what they run: a GPU with foreign processes on it is not given.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from smith.errors import Unavailable
from smith.gpus.base import Gpu, Occupant

WAIT_S = 900.0
"""How long to wait for a GPU unless told otherwise."""
FOLDER = "SMITH_LEASES"
"""Variable that names another folder, for users or containers that share a GPU; it must exist."""
POLL_S = 0.25
SAY_AGAIN_S = 15.0


class DeviceBusy(Unavailable):
    """No GPU that fits came free in the time allowed."""


def own_folder() -> Path:
    """The folder of leases: ``$SMITH_LEASES``, else one of this user's own in ``/tmp``.

    Not ``$TMPDIR`` or ``$XDG_RUNTIME_DIR``: they differ between a login, a batch job and a cron job of the same user,
    who would not see each other. Raises :class:`Unavailable` where the folder is somebody else's.
    """
    named = os.environ.get(FOLDER)
    if named:
        folder = Path(named)
        if not folder.is_dir():
            raise Unavailable(f"{FOLDER}={named}: no such folder")
        return folder
    folder = Path("/tmp") / f"smith-{os.getuid()}-leases"
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise Unavailable(f"{folder}: belongs to somebody else", hint=f"name another folder in {FOLDER}")
    return folder


@dataclass
class Lease:
    """A GPU that nobody else is given until the lease ends."""

    gpu: Gpu
    waited_ms: int
    _began: float
    _clock: Callable[[], float]
    _ended: float | None = None

    @property
    def held_ms(self) -> int:
        """Milliseconds it has been held, or was; rounded up, since they may be charged."""
        until = self._clock() if self._ended is None else self._ended
        return -int(-(until - self._began) * 1000 // 1)


@dataclass(frozen=True)
class Leases:
    """The leases in ``folder``. ``occupants`` says which processes use a GPU now."""

    folder: Path
    occupants: Callable[[Gpu], Sequence[Occupant]]
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    @contextlib.contextmanager
    def hold(
        self,
        gpus: Sequence[Gpu],
        *,
        purpose: str,
        wait_s: float = WAIT_S,
        step: Callable[[str], None] = lambda text: None,
    ) -> Iterator[Lease]:
        """Hold the first of ``gpus`` that is free and idle, waiting for at most ``wait_s`` seconds.

        ``step`` is told now and then what is waited for, and ``purpose`` is what others are told. Raises
        :class:`DeviceBusy` with the holder of each GPU, or the processes on it, when the time is over.
        """
        began = self.clock()
        said_at = began - SAY_AGAIN_S
        while isinstance(found := self._first(gpus, purpose), str):
            waited = self.clock() - began
            if waited >= wait_s:
                raise DeviceBusy(f"no GPU came free within {wait_s:g} s: {found}")
            if self.clock() - said_at >= SAY_AGAIN_S:
                step(f"waiting for a GPU for {waited:.0f} s: {found}")
                said_at = self.clock()
            self.sleep(min(POLL_S, wait_s - waited))
        gpu, handle = found
        now = self.clock()
        lease = Lease(gpu, int((now - began) * 1000), now, self.clock)
        try:
            yield lease
        finally:
            lease._ended = self.clock()
            # What is said about the holder goes first: a free file must not name one.
            os.ftruncate(handle, 0)
            os.close(handle)

    def _first(self, gpus: Sequence[Gpu], purpose: str) -> tuple[Gpu, int] | str:
        """The first GPU that is to be had, with the descriptor of its lock, or why none is."""
        reasons = []
        for gpu in gpus:
            held = self._try(gpu, purpose)
            if isinstance(held, int):
                return gpu, held
            reasons.append(f"{gpu} is {held}")
        return "; ".join(reasons)

    def _path(self, gpu: Gpu) -> Path:
        """One file a card: partitions of a card share its clocks and power."""
        return self.folder / f"{gpu.kind}-{gpu.card.replace(':', '-') or gpu.uuid or gpu.index}.lease"

    def _try(self, gpu: Gpu, purpose: str) -> int | str:
        """The descriptor of the held lock, or why the GPU is not to be had now."""
        path = self._path(gpu)
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        except OSError as error:
            raise Unavailable(f"{path}: cannot be written: {error.strerror}") from error
        kept = False
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not _is_at(handle, path):
                return "about to come free"
            foreign = list(self.occupants(gpu))
            if foreign:
                return f"in use by {', '.join(map(str, foreign[:4]))}{' and others' if foreign[4:] else ''}"
            os.ftruncate(handle, 0)
            note = {"pid": os.getpid(), "purpose": purpose, "since": round(time.time(), 3)}
            os.pwrite(handle, json.dumps(note).encode(), 0)
            kept = True
            return handle
        except BlockingIOError:
            return _holder(handle)
        finally:
            if not kept:
                os.close(handle)


def _is_at(handle: int, path: Path) -> bool:
    """Whether the locked file is the one that others will open: a cleaner of ``/tmp`` may have come in between."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False


def _holder(handle: int) -> str:
    """Who holds the lock, as its holder wrote; only words, the lock itself decides."""
    try:
        note = json.loads(os.pread(handle, 4096, 0))
        since = max(0.0, time.time() - float(note["since"]))
        return f"held by smith process {int(note['pid'])} ({str(note['purpose'])[:80]}) for {since:.0f} s"
    except (ValueError, KeyError, TypeError):
        return "held by another smith process"
