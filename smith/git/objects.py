"""Blobs and trees, read and written through plumbing that sees nothing but the object store.

A repository's own configuration, its ``info/attributes``, grafts and the ``.gitattributes`` of the folder that a
command happens to run in can change what git prints. None of these is an object, so the calls here run on a blank git
directory whose object store is that of the repository.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, NamedTuple

from smith import process, temporary
from smith.errors import BadInput, CommandFailed
from smith.git.repository import EMPTY_TREE, OID, Repository

GITLINK = "160000"
SYMLINK = "120000"

_making = threading.Lock()

# Smith itself decides which paths are safe (see ``unsafe``); git's rules for other file systems would refuse more.
_BLANK_CONFIG = """[core]
\trepositoryformatversion = 0
\tbare = true
\tprotectNTFS = false
\tprotectHFS = false
"""


class TreeEntry(NamedTuple):
    """One entry of a tree: ``kind`` is ``blob``, ``commit`` (a submodule) or ``tree``; ``path`` is whole, as bytes."""

    mode: str
    kind: str
    oid: str
    path: bytes


def shown(path: bytes) -> str:
    """A path as text, without loss (``surrogateescape``)."""
    return path.decode("utf-8", "surrogateescape")


def unsafe(path: bytes) -> bool:
    """Whether a path may not be written: absolute, or with an empty, ``.``, ``..`` or ``.git`` component."""
    return any(part in (b"", b".", b"..") or part.lower() == b".git" for part in path.split(b"/"))


def check_paths(paths: Iterable[bytes], what: str) -> None:
    """Raise :class:`BadInput` for the first unsafe path."""
    for path in paths:
        if unsafe(path):
            raise BadInput(f"{what}: unsafe path {shown(path)!a}")


def objects_of(repo: Repository) -> Path:
    """The folder into which ``repo`` writes its objects."""
    if (own := repo.environment.get("GIT_OBJECT_DIRECTORY")) is not None:
        return Path(own).absolute()
    common = repo.git_dir / "commondir"  # there in a linked work tree
    git_dir = repo.git_dir / common.read_text().strip() if common.is_file() else repo.git_dir
    return (git_dir / "objects").resolve()


def _blank_git_dir() -> Path:
    """An empty bare git directory that lives as long as this process."""
    blank = temporary.own() / "blank.git"
    with _making:
        if not blank.is_dir():
            with temporary.folder("blank") as fresh:
                made = fresh / "blank.git"
                (made / "objects").mkdir(parents=True)
                (made / "refs").mkdir()
                (made / "config").write_text(_BLANK_CONFIG)
                (made / "HEAD").write_text("ref: refs/heads/main\n")
                made.rename(blank)
    return blank


def plain(repo: Repository) -> Repository:
    """The objects of ``repo`` and nothing else of it: for every call whose answer must depend on objects alone."""
    env = {"GIT_OBJECT_DIRECTORY": str(objects_of(repo)), "GIT_ATTR_SOURCE": EMPTY_TREE}
    alternates = repo.environment.get("GIT_ALTERNATE_OBJECT_DIRECTORIES")
    if alternates:
        env["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = alternates
    return Repository(_blank_git_dir(), env=env)


def object_id(text: str) -> str:
    """``text`` where it is a full object id; raises :class:`BadInput` otherwise."""
    if not OID.match(text):
        raise BadInput(f"{text!a} is not a full object id")
    return text


def list_tree(repo: Repository, tree: str, *, recursive: bool = True, trees: bool = False) -> Iterator[TreeEntry]:
    """The entries of a tree (or of a commit's), streamed; with ``trees`` the folders' own entries too.

    Raises :class:`BadInput` when the tree, or a tree inside it, is not there.
    """
    options = [name for name, wanted in (("-r", recursive), ("-t", trees)) if wanted]
    view = plain(repo)
    argv = view.argv("ls-tree", "-z", "--full-tree", *options, object_id(tree))
    rest = b""
    try:
        for chunk in process.stream(argv, env=view.environment):
            *records, rest = (rest + chunk).split(b"\0")
            for record in records:
                head, path = record.split(b"\t", 1)
                mode, kind, oid = head.decode().split()
                yield TreeEntry(mode, kind, oid, path)
    except CommandFailed as error:
        raise BadInput(f"tree {tree} cannot be read whole in {repo.git_dir}") from error


def read_blobs(repo: Repository, oids: Iterable[str]) -> Iterator[tuple[str, bytes | None]]:
    """Each object's id and content, in order, through one process; ``None`` where it is missing.

    ``oids`` is read ahead in a thread, so it must not wait for what this yields. Raises what ``oids`` raises, and
    :class:`CommandFailed` where an object is damaged.
    """
    view = plain(repo)
    child = view.popen("cat-file", "--batch", "--buffer")
    feeder = _Feeder(child, oids)
    feeder.start()
    assert child.stdout is not None
    try:
        while header := child.stdout.readline():
            fields = header.decode("utf-8", "replace").split()
            if len(fields) != 3:  # "<oid> missing"
                yield fields[0], None
                continue
            size = int(fields[2])
            data = child.stdout.read(size)
            if len(data) != size or child.stdout.read(1) != b"\n":
                raise CommandFailed(["git", "cat-file", "--batch"], f"output ended within object {fields[0]}")
            yield fields[0], data
        feeder.join()
        if feeder.failure is not None:
            raise feeder.failure
        if (status := child.wait()) != 0:
            raise CommandFailed(["git", "cat-file", "--batch"], f"status {status}", "a damaged object?")
    finally:
        process.kill_group(child)
        feeder.join()
        child.stdout.close()


class _Feeder(threading.Thread):
    """Writes object ids to a child while its output is read: neither side can block the other."""

    def __init__(self, child: subprocess.Popen[bytes], oids: Iterable[str]) -> None:
        super().__init__(daemon=True)
        assert child.stdin is not None
        self._pipe: IO[bytes] = child.stdin
        self._oids = oids
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            for oid in self._oids:
                self._pipe.write(object_id(oid).encode() + b"\n")
        except BrokenPipeError:
            pass  # the reader stopped early, or the child died and the reader says so
        except BaseException as error:
            self.failure = error
        finally:
            with contextlib.suppress(OSError):
                self._pipe.close()


def present(repo: Repository, oids: Iterable[str]) -> set[str]:
    """Those of ``oids`` that are in the store."""
    asked = "".join(f"{object_id(oid)}\n" for oid in oids)
    out = plain(repo).text("cat-file", "--batch-check=%(objectname)", "--buffer", input=asked.encode())
    return {line for line in out.split("\n") if OID.match(line)}


def read_file(repo: Repository, tree: str, path: str) -> bytes | None:
    """The content of the file at ``path``; ``None`` where the tree has no such file, or lacks its content.

    Raises :class:`BadInput` when there is no such tree.
    """
    view = plain(repo)
    raw = path.encode("utf-8", "surrogateescape")
    if not unsafe(raw):
        done = view.run("cat-file", "blob", f"{object_id(tree)}:{path}")
        if done.ok:
            return done.stdout.data
    if not view.run("cat-file", "-e", f"{object_id(tree)}^{{tree}}").ok:
        raise BadInput(f"no tree {tree} in {repo.git_dir}")
    return None


def write_blob(repo: Repository, data: bytes) -> str:
    """Write exact bytes as a blob and return its id."""
    return plain(repo).text("hash-object", "-w", "-t", "blob", "--no-filters", "--stdin", input=data)


@contextlib.contextmanager
def index(repo: Repository, tree: str | None = None) -> Iterator[Repository]:
    """The plain view with an index of its own, holding ``tree`` or nothing; no work tree is involved.

    Raises :class:`BadInput` when the tree cannot be read.
    """
    with temporary.folder("index") as place:
        view = plain(repo).with_env({"GIT_INDEX_FILE": os.path.join(place, "index")})
        if tree is not None:
            done = view.run("read-tree", object_id(tree))
            if not done.ok:
                raise BadInput(f"tree {tree} cannot be read in {repo.git_dir}")
        yield view


def index_tree(view: Repository, *, missing_ok: bool = False) -> str:
    """Write the index of ``view`` as a tree. Raises :class:`BadInput` for an entry whose object is not there."""
    done = view.run("write-tree", *(["--missing-ok"] if missing_ok else []))
    if not done.ok:
        lost = re.search(r"invalid object \S+ (\S+) for '(.*)'", done.stderr.text)
        if lost:
            raise BadInput(f"{lost[2]}: its object {lost[1]} is not in the store")
        raise CommandFailed(["git", "write-tree"], done.ending, done.stderr.text)
    return done.stdout.text.strip()


def write_tree(repo: Repository, entries: Iterable[TreeEntry], *, missing_ok: bool = False) -> str:
    """Write a tree of these blobs and submodules (with whole paths) and return its id.

    A later entry wins over an earlier one at the same path, or above or below it. Submodules' commits need not be
    there; blobs must, unless ``missing_ok``. Raises :class:`BadInput`.
    """
    listed = list(entries)
    check_paths((e.path for e in listed), "the tree cannot be written")
    lines = b"".join(f"{e.mode} {object_id(e.oid)}\t".encode() + e.path + b"\0" for e in listed)
    with index(repo) as view:
        view.git("update-index", "-z", "--index-info", input=lines)
        return index_tree(view, missing_ok=missing_ok)
