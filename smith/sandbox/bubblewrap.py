"""The default on Linux: bubblewrap. No daemon and no image, and it works in most cluster pods.

Two ways of becoming nobody, because the host's user decides which is possible:

- A real root (it may mount) makes the mounts itself and then becomes a fresh user id that owns nothing on this
  machine. For the time of the run that id is lent the writable binds, so no two runs may share one.
- Anybody else, and a root without that right, gets a user namespace in which one id stands for its own. The kernel
  does not count the processes of a root, so for that root a fork bomb is ended by the watcher alone.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from smith import process
from smith.errors import Unavailable
from smith.sandbox import limits as kernel
from smith.sandbox.base import Bind, Command, Ended, Limits, breached
from smith.sandbox.watch import Watch

HOME = "/home/smith"
INSIDE_ID = 1000
# What programs look up in /etc; users, groups and hosts are made anew.
ETC = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime")
HINT = "install Debian's package bubblewrap, allow user namespaces, or choose --sandbox host (no isolation)"
LOADED = ("LD_", "GLIBC_", "MALLOC_", "GCONV_", "LOCPATH", "NLSPATH", "LANGUAGE", "TEXTDOMAIN", "OUTPUT_CHARSET")
_CAP_SYS_ADMIN = 1 << 21


def may_mount() -> bool:
    """Whether this process is a root that may mount without a user namespace of its own."""
    if os.geteuid() != 0:
        return False
    status = Path("/proc/self/status").read_text()
    effective = next((line.split()[1] for line in status.splitlines() if line.startswith("CapEff:")), "0")
    return bool(int(effective, 16) & _CAP_SYS_ADMIN)


class Bubblewrap:
    """Own namespaces, no network but an own loopback, a minimal root, no capabilities, nothing inherited."""

    name = "bubblewrap"
    remaps = True

    def __init__(self, *, may_mount: Callable[[], bool] = may_mount) -> None:
        self._may_mount = may_mount

    def check(self) -> str | None:
        """None when it works on this machine, else why not, in one line."""
        if not sys.platform.startswith("linux"):
            return "bubblewrap needs Linux"
        try:
            for name in ("bwrap", "prlimit", "setpriv", "env"):
                kernel.program(name)
            ended = self.run(Command(["true"], "/", Limits(wall_s=20, memory_bytes=1 << 30)))
        except Unavailable as error:
            return error.message
        return None if ended.ok else f"a first command did not run: {ended.ending}"

    def require(self) -> None:
        """Raise :class:`Unavailable` unless it works here."""
        if reason := self.check():
            raise Unavailable(f"sandbox bubblewrap: {reason}", hint=HINT)

    def run(self, command: Command) -> Ended:
        """As :meth:`Sandbox.run`. ``/tmp`` and the home are fresh and in memory unless a bind lies there."""
        inside = {"HOME": HOME, "TMPDIR": "/tmp", "PATH": kernel.PATH, "LANG": "C.UTF-8", **command.env}
        as_root = self._may_mount()
        user = _fresh_id() if as_root else INSIDE_ID
        early, late = _parted(inside)
        drop = [*(_become(user, _groups(command.binds)) if as_root else []), *late]
        shown = _binds(command.binds)
        with (
            Watch(command.limits, command.spill, command.started) as watch,
            _lent(command.binds, user if as_root else None),
            _files() as make_file,
        ):
            words = [
                *_namespaces(as_root),
                "--json-status-fd", str(watch.fd),
                *_root(command.limits, make_file, user),
                *shown,
                *(word for target in ("/dev", "/") for word in ("--remount-ro", target)),
                "--chdir", command.cwd,
            ]  # fmt: skip
            # By a file, so that no host path shows in the command line that the sandboxed processes can read.
            arguments = make_file(b"".join(word.encode() + b"\0" for word in words))
            completed = process.run(
                # bwrap itself is started with the inner environment: its own can be read at /proc/1/environ.
                [
                    kernel.program("bwrap"),
                    "--args",
                    str(arguments),
                    "--",
                    *kernel.prefix(command.limits),
                    *drop,
                    *command.argv,
                ],
                env=early,
                input=command.input,
                timeout_s=command.limits.wall_s,
                pass_fds=(*command.pass_fds, watch.fd, *make_file.fds),
                spill=command.spill,
            )
        if not (watch.executed or completed.timed_out or watch.breach):
            said = completed.stderr.text.strip().splitlines()
            raise Unavailable(f"bubblewrap: {said[-1] if said else completed.ending}", hint=HINT)
        return breached(completed, watch.breach)


class _Files:
    """Small files in memory that bwrap reads by descriptor."""

    def __init__(self) -> None:
        self.fds: list[int] = []

    def __call__(self, data: bytes) -> int:
        fd = os.memfd_create("smith")
        self.fds.append(fd)
        with os.fdopen(os.dup(fd), "wb") as file:
            file.write(data)
        os.lseek(fd, 0, os.SEEK_SET)
        return fd


@contextmanager
def _files() -> Iterator[_Files]:
    files = _Files()
    try:
        yield files
    finally:
        for fd in files.fds:
            os.close(fd)


def _namespaces(as_root: bool) -> list[str]:
    words = ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    words += ["--hostname", "smith", "--die-with-parent", "--new-session"]
    if not as_root:
        words += ["--unshare-user", "--uid", str(INSIDE_ID), "--gid", str(INSIDE_ID)]
    return words


def _root(limits: Limits, make_file: _Files, user: int) -> list[str]:
    """The mounts that every sandbox has: programs read-only, and scratch space whose size counts as memory."""
    words: list[str] = ["--ro-bind", "/usr", "/usr", *_folders("/etc", HOME, "/sys/devices/system/cpu")]
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        path = Path("/", name)
        if path.is_symlink():
            words += ["--symlink", os.readlink(path), str(path)]
        elif path.is_dir():
            words += ["--ro-bind", str(path), str(path)]
    for name in ETC:
        words += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    made = {
        "passwd": f"root:x:0:0::/nonexistent:/bin/false\nsmith:x:{user}:{user}::{HOME}:/bin/sh\n",
        "group": f"root:x:0:\nsmith:x:{user}:\n",
        "hosts": "127.0.0.1 localhost smith\n::1 localhost\n",
        "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    }
    for name, text in made.items():
        words += ["--perms", "0444", "--file", str(make_file(text.encode())), f"/etc/{name}"]
    words += ["--proc", "/proc", "--dev", "/dev"]
    words += ["--ro-bind-try", "/sys/devices/system/cpu", "/sys/devices/system/cpu"]
    size = str(max(limits.memory_bytes // 4, 1 << 20))
    for target, mode in (("/tmp", "1777"), ("/dev/shm", "1777"), (HOME, "0777")):
        words += ["--size", size, "--perms", mode, "--tmpfs", target]
    return words


def _folders(*targets: str) -> list[str]:
    """Words that make the parents of ``targets``, and these, readable folders; bwrap's own would be closed ones."""
    parents = {str(parent) for target in targets for parent in PurePosixPath(target).parents}
    wanted = sorted((parents | set(targets)) - {"/", "/dev", "/tmp"}, key=len)
    return [word for folder in wanted for word in ("--perms", "0755", "--dir", folder)]


def _binds(binds: Sequence[Bind]) -> list[str]:
    words: list[str] = []
    for bind in sorted(binds, key=lambda b: len(PurePosixPath(b.target).parts)):
        parent = str(PurePosixPath(bind.target).parent)
        # Made after the bind around it, if there is one: what is made before is hidden by that.
        if parent != "/dev" and not parent.startswith(("/usr", "/proc")):
            words += _folders(parent)
        if not bind.source.exists():
            raise Unavailable(f"{bind.source}: cannot be shown in the sandbox: it does not exist")
        access = "--bind" if bind.writable else "--ro-bind"
        words += ["--dev-bind" if bind.target.startswith("/dev/") else access, str(bind.source), bind.target]
    return words


def _fresh_id() -> int:
    """A user id for one run. Where the machine has them all it is one that no user or container is given."""
    ranges = map(str.split, Path("/proc/self/uid_map").read_text().splitlines())
    ends = [int(first) + int(count) for first, _, count in ranges]
    if max(ends) > 2_100_000_000:
        return 2_000_000_000 + secrets.randbelow(100_000_000)
    top = min(max(ends), 60_000)
    return INSIDE_ID + secrets.randbelow(max(1, top - INSIDE_ID))


def _parted(env: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The variables that may be set from the beginning, and words that set the others for the command itself.

    The loader and the C library take code from some, and programs with rights still run before the command.
    """
    late = [f"{name}={value}" for name, value in env.items() if name.startswith(LOADED)]
    early = {name: value for name, value in env.items() if not name.startswith(LOADED)}
    return early, [kernel.program("env"), *late] if late else []


def _become(user: int, groups: Sequence[int]) -> list[str]:
    joined = f"--groups={','.join(map(str, groups))}" if groups else "--clear-groups"
    identity = [f"--reuid={user}", f"--regid={user}", joined, "--no-new-privs"]
    return [kernel.program("setpriv"), *identity, "--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all", "--"]


def _groups(binds: Sequence[Bind]) -> list[int]:
    """The groups (mostly ``render``) that may use the shown device nodes; a fresh user id is in none.

    Raises :class:`Unavailable` for a node that only root may open: nobody becomes root's group in a sandbox.
    """
    found = set()
    for bind in binds:
        if not bind.target.startswith("/dev/") or not bind.source.exists():
            continue
        node = bind.source.stat()
        if node.st_mode & 0o006 == 0o006:
            continue
        if node.st_gid == 0 or node.st_mode & 0o060 != 0o060:
            hint = "give it to a group of its own (render), or run smith as an ordinary user of that group"
            raise Unavailable(f"{bind.target}: only root may open it, and a sandbox is never root", hint=hint)
        found.add(node.st_gid)
    return sorted(found)


@contextmanager
def _lent(binds: Sequence[Bind], user: int | None) -> Iterator[None]:
    """Let ``user`` own the writable binds for the time of a run; afterwards everything in them is the host's again."""
    folders = [str(b.source) for b in binds if b.writable and not b.target.startswith("/dev/")]
    if user is None or not folders:
        yield
        return
    if not _chown(folders, user).ok:
        raise Unavailable(f"{folders[0]}: cannot be lent to another user id", hint="use a local file system")
    try:
        yield
    finally:
        _chown(folders, os.geteuid())


def _chown(folders: Sequence[str], user: int) -> process.Completed:
    """Give whole trees to ``user``: links themselves and never what they point at, to any depth (coreutils' way)."""
    return process.run(["chown", "-R", "-h", "-P", f"{user}:{user}", "--", *folders])
