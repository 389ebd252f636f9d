"""The one door to subprocesses.

Every child runs in its own process group, under a time limit, with its output captured as bytes. Of a long output
the head and the tail are kept in memory and the whole is spilled to a file, so that nothing is lost and nothing
can fill the memory. When the limit is out, the whole group is killed and seen to be gone.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import tempfile
import threading
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO

from smith.errors import CommandFailed, Unavailable

HEAD_BYTES = 64 * 1024
TAIL_BYTES = 192 * 1024


DISK = ("No space left on device", "Disk quota exceeded", "Read-only file system")
"""What a program says where the fault is the disk's and not its own."""


@dataclass(frozen=True)
class Output:
    """What one stream of a child said. ``total`` counts all bytes, ``cut`` those missing between head and tail."""

    head: bytes
    tail: bytes
    total: int
    spilled: Path | None = None

    @property
    def cut(self) -> int:
        return self.total - len(self.head) - len(self.tail)

    @property
    def data(self) -> bytes:
        """Head and tail, with a marked gap where something was cut."""
        if not self.cut:
            return self.head + self.tail
        where = f", whole in {self.spilled.name}" if self.spilled else ""
        return self.head + f"\n[... {self.cut} bytes cut{where} ...]\n".encode() + self.tail

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "replace")


@dataclass(frozen=True)
class Completed:
    """How a child ended. ``status`` is the exit status, negative for a signal; ``timed_out`` wins over it."""

    argv: tuple[str, ...]
    status: int
    stdout: Output
    stderr: Output
    seconds: float
    timed_out: bool = False

    @property
    def ok(self) -> bool:
        return self.status == 0 and not self.timed_out

    @property
    def ending(self) -> str:
        """``ok``, ``status N``, ``signal NAME`` or ``timed out``."""
        if self.timed_out:
            return f"timed out after {self.seconds:.0f} s"
        if self.status < 0:
            known = {s.value: s.name for s in signal.Signals}  # most real-time signals have no name
            return f"killed by {known.get(-self.status, f'signal {-self.status}')}"
        return "ok" if self.status == 0 else f"status {self.status}"

    def check(self) -> Completed:
        """Return self, or raise :class:`CommandFailed` when the child did not end well."""
        if not self.ok:
            full = next((line for line in self.stderr.text.splitlines() if any(w in line for w in DISK)), None)
            if full is not None:
                raise Unavailable(f"{self.argv[0]}: {full.strip()}", hint="nothing was changed")
            raise CommandFailed(list(self.argv), self.ending, self.stderr.text or self.stdout.text)
        return self


class _Capture:
    """Keeps the head and the tail of a stream, spilling all of it to a file once it outgrows memory."""

    def __init__(self, spill: Path | None, head: int, tail: int) -> None:
        self._head, self._tail = bytearray(), bytearray()
        self._head_limit, self._tail_limit = head, tail
        self._spill_path = spill
        self._file: IO[bytes] | None = None
        self.total = 0

    def feed(self, chunk: bytes) -> None:
        self.total += len(chunk)
        if self._spill_path is not None:
            try:
                self._spill(chunk, self._spill_path)
            except OSError as error:
                raise Unavailable(f"{self._spill_path}: cannot be written: {error.strerror}") from error
        room = self._head_limit - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        self._tail += chunk
        # Trimmed at twice the limit, so that the cost of trimming stays linear in the output.
        if len(self._tail) > 2 * self._tail_limit or (self._file is None and self._spill_path is None):
            self._trim()

    def _spill(self, chunk: bytes, path: Path) -> None:
        if self._file is None and self.total > self._head_limit + self._tail_limit:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("wb", buffering=0)  # unbuffered: what was seen is on disk when smith is killed
            self._file.write(bytes(self._head) + bytes(self._tail))
        if self._file is not None:
            self._file.write(chunk)

    def _trim(self) -> None:
        if len(self._tail) > self._tail_limit:
            del self._tail[: len(self._tail) - self._tail_limit]

    def close(self) -> Output:
        spilled = None
        if self._file is not None:
            self._file.close()
            spilled = self._spill_path
            self._trim()
        return Output(bytes(self._head), bytes(self._tail), self.total, spilled)


def exited(process: subprocess.Popen[bytes]) -> bool:
    """Whether the child has ended, without reaping it: until then its number cannot become another group's."""
    if process.returncode is not None:
        return True
    try:
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


def _await_exit(process: subprocess.Popen[bytes], deadline: float | None) -> bool:
    """Wait without reaping; false when the deadline came first."""
    pause = 0.0005
    while not exited(process):
        now = time.monotonic()
        if deadline is not None and now >= deadline:
            return False
        time.sleep(pause if deadline is None else min(pause, deadline - now))
        pause = min(2 * pause, 0.02)
    return True


def kill_group(process: subprocess.Popen[bytes], *, grace_s: float = 0.0) -> bool:
    """Kill the whole group of ``process``, wait for its leader and see that no member is left.

    TERM comes first where ``grace_s`` allows. False when a member could not be seen to go within five seconds.
    """
    if grace_s > 0 and not exited(process):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGTERM)
        _await_exit(process, time.monotonic() + grace_s)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return _seen_gone(process.pid, time.monotonic() + 5.0)


def _seen_gone(group: int, deadline: float) -> bool:
    pause = 0.0005
    while True:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            pass
        # Signals reach zombies too, and nobody may ever reap an orphan where the first process is not an init.
        if pause > 0.005 and not _alive(group):
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(pause)
        pause = min(2 * pause, 0.05)


def _alive(group: int) -> bool:
    """Whether a member of the group is more than a zombie."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _parent, its_group = stat.read_text("utf-8", "replace").rpartition(")")[2].split()[:3]
            if int(its_group) == group and state not in "ZX":
                return True
    return not Path("/proc/self/stat").exists()


_STARTED: weakref.WeakSet[subprocess.Popen[bytes]] = weakref.WeakSet()


def kill_all() -> None:
    """Kill the group of every child that still runs: the last act of an interrupted process."""
    for process in list(_STARTED):
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)


def start(
    argv: Sequence[str | os.PathLike[str]],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: int | IO[bytes] | None = subprocess.DEVNULL,
    stdout: int | IO[bytes] | None = subprocess.PIPE,
    stderr: int | IO[bytes] | None = subprocess.PIPE,
    pass_fds: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Start a child in a new process group. The caller reads its pipes and ends it (:func:`kill_group`).

    Raises :class:`Unavailable` when the program does not exist or cannot be started.
    """
    try:
        process = subprocess.Popen(
            [os.fspath(a) for a in argv],
            cwd=cwd,
            env=None if env is None else dict(env),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            pass_fds=tuple(pass_fds),
            start_new_session=True,
        )
        _STARTED.add(process)
        return process
    except FileNotFoundError as error:
        if cwd is not None and not Path(cwd).is_dir():
            raise Unavailable(f"the folder {cwd} does not exist") from error
        raise Unavailable(f"the program {argv[0]} is not installed") from error
    except OSError as error:  # not executable, a file for a folder, too many arguments, no memory
        raise Unavailable(f"the program {argv[0]} cannot be started: {error.strerror}") from error


@contextlib.contextmanager
def _interrupt_held() -> Iterator[None]:
    """Hold Ctrl-C back while a child is made: in between, nobody would know the child and end it."""
    came: list[FrameType | None] = []
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    signal.signal(signal.SIGINT, lambda _number, frame: came.append(frame))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            before(signal.SIGINT, came[0])


def run(
    argv: Sequence[str | os.PathLike[str]],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    input: bytes | None = None,
    timeout_s: float | None = None,
    pass_fds: Sequence[int] = (),
    spill: Path | None = None,
    keep: tuple[int, int] | None = (HEAD_BYTES, TAIL_BYTES),
) -> Completed:
    """Run a child to its end and return how it ended; never raises for a bad status (see ``Completed.check``).

    ``input`` is written to its standard input. ``timeout_s`` bounds the wall time, after which the whole group is
    killed. ``keep`` bounds the bytes of head and tail kept in memory for each stream (``None``: keep all, for
    output that is data rather than a log); with ``spill`` a longer output is written whole to ``<spill>.stdout``
    and ``<spill>.stderr``.
    """
    began = time.monotonic()
    head, tail = keep if keep is not None else (2**62, 0)
    captures = {
        name: _Capture(spill.with_name(f"{spill.name}.{name}") if spill else None, head, tail)
        for name in ("stdout", "stderr")
    }
    deadline = None if timeout_s is None else began + timeout_s
    stdin = subprocess.PIPE if input is not None else subprocess.DEVNULL
    process: subprocess.Popen[bytes] | None = None
    try:
        with _interrupt_held():
            process = start(argv, cwd=cwd, env=env, stdin=stdin, pass_fds=pass_fds)
        timed_out = _pump(process, captures, input, deadline) or not _await_exit(process, deadline)
    finally:
        # Background children that outlive the leader are killed too: they would spoil later measurements.
        if process is not None:
            kill_group(process)
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()
    return Completed(
        argv=tuple(os.fspath(a) for a in argv),
        status=process.returncode,
        stdout=captures["stdout"].close(),
        stderr=captures["stderr"].close(),
        seconds=time.monotonic() - began,
        timed_out=timed_out,
    )


def _pump(
    process: subprocess.Popen[bytes],
    captures: Mapping[str, _Capture],
    data: bytes | None,
    deadline: float | None,
) -> bool:
    """Move bytes until every pipe is closed or the leader has exited; true when the deadline came first."""
    pending = memoryview(data) if data else memoryview(b"")
    with selectors.DefaultSelector() as selector:
        for name in ("stdout", "stderr"):
            stream = getattr(process, name)
            os.set_blocking(stream.fileno(), False)
            selector.register(stream, selectors.EVENT_READ, name)
        if process.stdin is not None:
            os.set_blocking(process.stdin.fileno(), False)
            if pending:
                selector.register(process.stdin, selectors.EVENT_WRITE, "stdin")
            else:
                process.stdin.close()
        exited_at: float | None = None
        # A child may close its outputs and go on reading, so its input counts as well.
        while keys := selector.get_map():
            now = time.monotonic()
            if deadline is not None and now >= deadline:
                return True
            if exited_at is None and exited(process):
                exited_at = now
            # A grandchild can hold the pipes open after the leader is gone; half a second is enough to drain.
            if exited_at is not None and (now - exited_at > 0.5 or all(k.data == "stdin" for k in keys.values())):
                return False
            wait = 0.1 if deadline is None else min(0.1, deadline - now)
            for key, _ in selector.select(max(wait, 0.0)):
                if key.data == "stdin":
                    try:
                        pending = pending[os.write(key.fd, pending[:65536]) :]
                    except BlockingIOError:
                        continue
                    except BrokenPipeError:
                        pending = memoryview(b"")
                    if not pending:
                        selector.unregister(key.fileobj)
                        assert process.stdin is not None
                        process.stdin.close()
                    continue
                try:
                    chunk = os.read(key.fd, 65536)
                except BlockingIOError:
                    continue
                if chunk:
                    captures[key.data].feed(chunk)
                else:
                    selector.unregister(key.fileobj)
    return False


def stream(
    argv: Sequence[str | os.PathLike[str]],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    chunk: int = 1 << 20,
) -> Iterator[bytes]:
    """Yield a child's standard output in chunks as it comes; raise :class:`CommandFailed` on a bad end.

    Closing the iterator early kills the child. For output that may be larger than memory should hold.
    """
    with tempfile.TemporaryFile() as said:
        process = start(argv, cwd=cwd, env=env, stderr=said)
        assert process.stdout is not None
        try:
            while data := process.stdout.read1(chunk):  # type: ignore[attr-defined]
                yield data
            _await_exit(process, None)
        finally:
            kill_group(process)
            process.stdout.close()
        if process.returncode != 0:
            said.seek(max(0, said.seek(0, os.SEEK_END) - TAIL_BYTES))
            output = said.read().decode("utf-8", "replace")
            raise CommandFailed([os.fspath(a) for a in argv], f"status {process.returncode}", output)
