"""Frozen source: trees kept in the data repository's own object store, so that upstream may vanish.

A kept tree is a parentless commit under ``refs/smith/sources/<tree>``. No history means that no future can leak; one
reference a tree means that ``git gc``, ``push`` and ``fetch`` know what to do with it.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from smith import process, temporary
from smith.errors import BadInput, CommandFailed, Unavailable
from smith.git.objects import TreeEntry, list_tree, object_id, objects_of, plain, present, shown, write_tree
from smith.git.repository import EMPTY_TREE, Repository

SOURCES = "refs/smith/sources/"

# Below this many objects loose files are better than one more pack (git's own fetch decides alike).
_FEW = 100
# A reference must never outlive a power cut that its objects did not.
_DURABLE = ("-c", "core.fsync=committed,loose-object")


@dataclass(frozen=True)
class Kept:
    """``tree`` is what is kept now; ``left_out`` the paths that the source itself lacked."""

    tree: str
    left_out: tuple[str, ...] = ()


def keep(data: Repository, source: Repository, tree: str) -> Kept:
    """Copy everything that ``tree`` needs from ``source`` into ``data``, and refer to it there.

    Files whose content ``source`` lacks (a partial mirror) are left out and named; submodules stay as they are.
    Doing it again changes nothing; a kill at any instant leaves no reference or a complete one. ``source`` is never
    written to. Raises :class:`BadInput` when the tree cannot be read, :class:`Unavailable` when the data repository
    cannot be written.
    """
    data = Repository(data.git_dir)  # never a scratch store: the reference is in the real one
    with temporary.folder("keep") as place:
        aside = scratch(source, place / "objects")
        needed = list(list_tree(aside, object_id(tree), trees=True))
        there = present(aside, (e.oid for e in needed if e.kind == "blob"))
        lost = [e for e in needed if e.kind == "blob" and e.oid not in there]
        if lost:
            gone = {e.path for e in lost}
            # Written where no other store is seen: git touches the times of objects that it finds already there.
            alone = source.with_env({**aside.environment, "GIT_ALTERNATE_OBJECT_DIRECTORIES": ""})
            rest = [e for e in needed if e.kind != "tree" and e.path not in gone]
            tree = write_tree(alone, rest, missing_ok=True)
            needed = list(list_tree(aside, tree, trees=True))
        oids = _objects(tree, needed)
        # Twice, since a git gc of the user's may prune what was there unreferenced when it was first looked for.
        for _ in range(2):
            _copy(data, aside, oids - present(data, oids))
            _refer(data, tree)
            if present(data, oids) == oids:
                return Kept(tree, tuple(shown(e.path) for e in lost))
    raise Unavailable(f"{data.git_dir}: objects of tree {tree} vanish while they are written")


def has(data: Repository, tree: str) -> bool:
    """Whether ``tree`` is kept in ``data``: the reference is there, and every object."""
    view = Repository(data.git_dir)
    done = view.run("rev-parse", "--verify", "--quiet", f"{SOURCES}{object_id(tree)}^{{tree}}")
    if not done.ok or done.stdout.text.strip() != tree:
        return False
    try:
        oids = _objects(tree, list_tree(view, tree, trees=True))
    except BadInput:
        return False
    return present(view, oids) == oids


def scratch(data: Repository, objects: Path, *, also: Sequence[Repository] = ()) -> Repository:
    """The same repository, writing its objects into ``objects`` and reading those of ``data`` and ``also`` too.

    So trees can be computed while nothing is added to the store of ``data``; at most git freshens the times of objects
    found there. Raises :class:`Unavailable` when the folder cannot be made.
    """
    try:
        for name in ("info", "pack"):
            (objects / name).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Unavailable(f"{objects}: cannot be written: {error.strerror}") from error
    stores = [_quoted(objects_of(data))]
    for repo in (data, *also):
        inherited = repo.environment.get("GIT_ALTERNATE_OBJECT_DIRECTORIES")
        stores += [_quoted(objects_of(repo))] * (repo is not data) + ([inherited] if inherited else [])
    return data.with_env(
        {
            "GIT_OBJECT_DIRECTORY": str(objects.absolute()),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": ":".join(dict.fromkeys(stores)),
        }
    )


def _quoted(path: Path) -> str:
    """A path in a list that git splits at colons."""
    text = str(path)
    if ":" not in text and not text.startswith('"'):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _objects(tree: str, entries: Iterable[TreeEntry]) -> set[str]:
    """The ids of a tree and of all that lies in it; a submodule's commit is somewhere else."""
    return {tree, *(e.oid for e in entries if e.kind != "commit")} - {EMPTY_TREE}


def _copy(data: Repository, source: Repository, oids: set[str]) -> None:
    """Copy objects as one checked pack; nothing is believed that does not hash to its name."""
    if not oids:
        return
    into, out_of = plain(data), plain(source)
    unpack = ["unpack-objects", "-q"] if len(oids) < _FEW else ["index-pack", "--stdin"]
    with tempfile.TemporaryFile() as wanted, tempfile.TemporaryFile() as said:
        wanted.write("".join(f"{oid}\n" for oid in sorted(oids)).encode())
        wanted.seek(0)
        # A search for new deltas takes three quarters of the time and saves a fiftieth of the space.
        packing = process.start(
            out_of.argv("pack-objects", "--stdout", "-q", "--delta-base-offset", "--window=0"),
            env=out_of.environment,
            stdin=wanted,
            stderr=subprocess.DEVNULL,
        )
        try:
            assert packing.stdout is not None
            unpacking = process.start(
                into.argv(*_DURABLE, *unpack),
                env=into.environment,
                stdin=packing.stdout,
                stdout=subprocess.DEVNULL,
                stderr=said,
            )
            packing.stdout.close()  # so that packing ends when unpacking does
            try:
                status, packed = unpacking.wait(), packing.wait()
            finally:
                process.kill_group(unpacking)
        finally:
            process.kill_group(packing)
        said.seek(0)
        words = said.read().decode("utf-8", "replace")
    if packed != 0 and status == 0:
        raise CommandFailed(["git", "pack-objects"], f"status {packed}")
    if status != 0:
        raise Unavailable(f"{data.git_dir}: objects cannot be written: {' '.join(words.split()[-20:])}")


def _refer(data: Repository, tree: str) -> None:
    """Make the parentless commit, the same one everywhere, and the reference to it."""
    who = "smith <smith@localhost> 0 +0000"
    text = f"tree {tree}\nauthor {who}\ncommitter {who}\n\nFrozen source {tree}\n"
    writing = (*_DURABLE, "hash-object", "-w", "-t", "commit", "--stdin")
    commit = plain(data).text(*writing, input=text.encode())
    name = SOURCES + tree
    for _ in range(50):
        done = data.run("update-ref", name, commit)
        if done.ok:
            return
        # Another process may hold the lock, most likely for the very same reference.
        time.sleep(0.1)
    raise Unavailable(f"{data.git_dir}: {name} cannot be written: {done.stderr.text.strip()}")
