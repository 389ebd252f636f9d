"""The one place that knows where things lie, and how a file is written.

A folder with a ``smith.toml`` is a data repository. Versioned things (``tasks/``, ``panels/``, ``knowledge/``,
``recipes/``, ``prompts/``) lie in the open; volatile ones lie below ``.smith/``, which git ignores.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from smith import process
from smith.errors import BadInput, Unavailable

ATTEMPTS = "attempts"
"""Below the folder of a run: the evidence of its attempts."""
MARKER = "smith.toml"


@dataclass(frozen=True)
class Layout:
    """Where things lie in the data repository at ``root``."""

    root: Path

    @property
    def config(self) -> Path:
        return self.root / MARKER

    @property
    def tasks(self) -> Path:
        return self.root / "tasks"

    @property
    def lineages(self) -> Path:
        return self.tasks / "lineages.json"

    @property
    def panels(self) -> Path:
        return self.root / "panels"

    @property
    def knowledge(self) -> Path:
        return self.root / "knowledge"

    @property
    def cards(self) -> Path:
        return self.knowledge / "cards"

    @property
    def evidence(self) -> Path:
        """Sealed evidence behind cards; each file is named by its own digest."""
        return self.knowledge / "evidence"

    @property
    def knowledge_index(self) -> Path:
        """The full-text index of the cards; it is made anew from them whenever it is missing or behind."""
        return self.volatile / "knowledge.db"

    @property
    def leaderboard(self) -> Path:
        """Sealed evidence of runs, ``<panel>/<digest>/``."""
        return self.root / "leaderboard"

    @property
    def recipes(self) -> Path:
        return self.root / "recipes"

    @property
    def prompts(self) -> Path:
        return self.root / "prompts"

    @property
    def volatile(self) -> Path:
        return self.root / ".smith"

    @property
    def mirrors(self) -> Path:
        return self.volatile / "mirrors"

    @property
    def mining(self) -> Path:
        """What mining remembers; it may be lost at any time."""
        return self.volatile / "mining.db"

    @property
    def environments(self) -> Path:
        return self.volatile / "environments"

    @property
    def runs(self) -> Path:
        return self.volatile / "runs"

    @property
    def work(self) -> Path:
        """Scratch places; anything in it may be removed when no smith process holds its lock."""
        return self.volatile / "work"

    @property
    def objects(self) -> Path:
        """Scratch git objects, so that grading writes nothing into the data repository's own store."""
        return self.volatile / "objects"

    @property
    def state(self) -> Path:
        return self.volatile / "state.db"

    @property
    def authoring(self) -> Path:
        """Answers of language models about tasks, by task."""
        return self.tasks / "authoring"

    @property
    def ledger(self) -> Path:
        """What was spent. Unlike the rest of ``.smith/`` it cannot be made anew."""
        return self.volatile / "ledger.db"

    @property
    def rates(self) -> Path:
        """How fast providers of models were called; it may be lost at any time."""
        return self.volatile / "rates"

    @property
    def compiled(self) -> Path:
        """What the compile gate remembers; it may be lost at any time."""
        return self.volatile / "compiled.db"

    @property
    def logs(self) -> Path:
        return self.volatile / "logs"

    @property
    def quiet(self) -> Path:
        """Lock that keeps timings and other trials apart."""
        return self.volatile / "quiet.lock"

    def task(self, task_id: str) -> Path:
        return self.tasks / task_id

    def receipt(self, task_id: str, tree: str, device: str) -> Path:
        """A receipt's file. The colon of a device name becomes a dash: not every checkout can hold a colon."""
        return self.tasks / "receipts" / task_id / tree / f"{device.replace(':', '-')}.json"

    def workload(self, task_id: str, tree: str, digest: str) -> Path:
        """A recorded workload, by the SHA-256 of its bytes: receipts name it so."""
        return self.tasks / "receipts" / task_id / tree / "workloads" / f"{digest}.json"

    def panel(self, name: str) -> Path:
        return self.panels / f"{name}.toml"

    def run(self, run_id: str) -> Path:
        return self.runs / run_id

    def attempts(self, run_id: str) -> Path:
        """The evidence of a run's attempts: ``<task>/<number>``."""
        return self.run(run_id) / ATTEMPTS

    def mirror(self, host: str, owner: str, name: str) -> Path:
        return self.mirrors / host / owner / f"{name}.git"


def find_root(start: Path) -> Path | None:
    """The nearest folder at or above ``start`` that holds a ``smith.toml``."""
    start = start.resolve()
    return next((p for p in (start, *start.parents) if (p / MARKER).is_file()), None)


def require_root(start: Path) -> Layout:
    """The data repository at or above ``start``. Raises :class:`BadInput` where there is none."""
    root = find_root(start)
    if root is None:
        raise BadInput(f"no {MARKER} in {start} or above it", hint="make a data repository with: smith init DIR")
    return Layout(root)


def write_atomically(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Write ``data`` aside, flush it to disk and rename it over ``path``: a kill leaves the old file or the new one.

    Raises :class:`Unavailable` when the disk is full or the folder cannot be written; nothing is then left behind.
    """
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}.", suffix=".tmp")
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, path)
        _flush_folder(path.parent)
    except OSError as error:
        raise Unavailable(f"{path}: cannot be written: {error.strerror}", hint="nothing was changed") from error
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def _flush_folder(folder: Path) -> None:
    """Make a rename last through a power cut, where the file system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a fresh folder beside ``path``; on success put it in the place of ``path``, else remove it.

    An older folder at ``path`` is moved aside first and removed last, so that a kill at any instant leaves the old
    one, the new one, or (between two renames) the old one beside its place, from where :func:`recover` returns it.
    Two processes must not replace one path at the same time (:func:`locked`). Raises :class:`Unavailable` when the
    disk is full or the folder cannot be written.
    """
    recover(path)
    old = path.with_name(f".{path.name}.old")
    try:
        fresh, held = _fresh_beside(path)
    except OSError as error:
        raise Unavailable(f"{path}: cannot be written: {error.strerror}", hint="nothing was changed") from error
    try:
        yield fresh
        if os.path.lexists(path):
            remove_tree(old)
            path.rename(old)
        fresh.rename(path)
        _flush_folder(path.parent)
        remove_tree(old)
    except OSError as error:
        recover(path)
        raise Unavailable(f"{path}: cannot be written: {error.strerror}", hint="nothing was changed") from error
    finally:
        os.close(held)
        remove_tree(fresh)


def _fresh_beside(path: Path) -> tuple[Path, int]:
    """A new folder beside ``path``, locked while this process lives: :func:`recover` removes only those of the dead."""
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        fresh = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}.new."))
        held = os.open(fresh, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(held, fcntl.LOCK_EX)
        if fresh.exists():  # else somebody's recover() came between making and locking it
            fresh.chmod(0o755)
            return fresh, held
        os.close(held)


def recover(path: Path) -> None:
    """Bring back the folder that a killed :func:`replacing` had moved aside, and remove what it left.

    Does nothing while a living process is replacing ``path``, so readers may call it too.
    """
    prefix = f".{path.name}.new."
    old = path.with_name(f".{path.name}.old")
    with contextlib.suppress(OSError):  # what cannot be mended here is said by the write that follows
        left = [path.parent / name for name in os.listdir(path.parent) if name.startswith(prefix)]
        if not all([_removed_if_dead(folder) for folder in left]):
            return
        if old.exists() and not path.exists():
            old.rename(path)
        remove_tree(old)


def _removed_if_dead(folder: Path) -> bool:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        remove_tree(folder)
    except BlockingIOError:
        return False
    finally:
        os.close(handle)
    return True


def remove_tree(path: Path) -> None:
    """Remove a folder whatever modes or depth a hostile program left inside it. A link is removed, never followed."""
    if path.is_symlink() or path.is_file():
        path.unlink(missing_ok=True)
        return
    if not path.exists():
        return
    try:
        shutil.rmtree(path)
    except (OSError, RecursionError):
        # These walk by descriptor, so that no path is too long, and open each folder before they enter it.
        process.run(["chmod", "-R", "u+rwx", "--", path])
        process.run(["rm", "-rf", "--", path])


@contextlib.contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold an exclusive lock on ``path`` (made where missing); the kernel frees it when the process dies.

    Raises :class:`BadInput` when ``wait`` is false and another process holds it, :class:`Unavailable` when the file
    cannot be made.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a")
    except OSError as error:
        raise Unavailable(f"{path}: cannot be written: {error.strerror}") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError as error:
            raise BadInput(f"{path.stem} is in use by another smith process", hint="wait for it to end") from error
        yield
