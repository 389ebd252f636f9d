"""Read a folder back as a tree: exact bytes and modes, whatever a hostile program left in it.

Nothing inside the folder is believed: not its ``.gitattributes``, not a ``.git`` of its own at any depth, and of
``.gitignore`` only the rules of the tree that the folder started from.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from smith import temporary
from smith.errors import BadInput, CommandFailed, PatchError
from smith.git.objects import GITLINK, SYMLINK, TreeEntry, list_tree, plain, read_blobs, shown, write_tree
from smith.git.repository import Repository


@dataclass(frozen=True)
class _Found:
    path: bytes
    mode: str
    """A git mode; empty for a socket, a pipe or a device."""


def snapshot(repo: Repository, folder: Path, *, base: str | None = None) -> str:
    """The id of the tree of what lies in ``folder`` now; its objects are written into ``repo``.

    A path of ``base`` always counts; another does not where the ignore rules *of base* match it, nor when it is a
    compiled Python cache. A ``.git`` is never entered or recorded, the files beside a nested one are ordinary. A
    submodule of ``base`` is kept while its folder is empty. Raises :class:`PatchError` with rule ``special_file``
    or ``unreadable``; :class:`BadInput` when there is no such folder.
    """
    tracked = {e.path: e for e in list_tree(repo, base)} if base is not None else {}
    above = {parent for path in tracked for parent in _parents(path)}
    found, folders = _scan(folder, above, keep_caches=False)
    rules = [e for e in tracked.values() if os.path.basename(e.path) == b".gitignore" and e.mode.startswith("100")]
    dropped = _ignored(repo, rules, [f.path for f in found if f.path not in tracked])
    kept = [f for f in found if f.path not in dropped]
    occupied = {parent for f in kept for parent in _parents(f.path)}
    gitlinks = [e for e in tracked.values() if e.mode == GITLINK and e.path in folders and e.path not in occupied]
    return write_tree(repo, [*_record(repo, folder, kept, tracked), *gitlinks], missing_ok=True)


def tree_of_folder(repo: Repository, folder: Path) -> str:
    """The id that git gives to ``folder`` once all of it is committed; its objects are written into ``repo``.

    Nothing is ignored. Raises as :func:`snapshot` does.
    """
    found, _ = _scan(folder, set(), keep_caches=True)
    return write_tree(repo, _record(repo, folder, found, {}))


def _parents(path: bytes) -> Iterator[bytes]:
    while path := os.path.dirname(path):
        yield path


def _scan(folder: Path, above: Collection[bytes], *, keep_caches: bool) -> tuple[list[_Found], set[bytes]]:
    """Everything below ``folder`` but ``.git``, without following links; and the set of folders seen."""
    root = os.fsencode(folder)
    if not os.path.isdir(root):
        raise BadInput(f"{folder}: no such folder")
    found: list[_Found] = []
    pending, folders = [b""], set[bytes]()
    while pending:
        here = pending.pop()
        for entry in _listed(root, here):
            path = os.path.join(here, entry.name)
            if entry.name.lower() == b".git":
                continue
            if entry.is_dir(follow_symlinks=False):
                if keep_caches or entry.name != b"__pycache__" or path in above:
                    pending.append(path)
                    folders.add(path)
            else:
                found.append(_Found(path, _git_mode(entry.stat(follow_symlinks=False).st_mode)))
    return found, folders


def _listed(root: bytes, here: bytes) -> list[os.DirEntry[bytes]]:
    try:
        with os.scandir(os.path.join(root, here)) as entries:
            return list(entries)
    except OSError as error:  # closed to us, or nested deeper than a path can say
        raise PatchError(f"a folder cannot be read: {error.strerror}", rule="unreadable", path=shown(here)) from error


def _git_mode(mode: int) -> str:
    if stat.S_ISLNK(mode):
        return SYMLINK
    if stat.S_ISREG(mode):
        return "100755" if mode & stat.S_IXUSR else "100644"
    return ""


def _ignored(repo: Repository, rules: Iterable[TreeEntry], paths: Collection[bytes]) -> set[bytes]:
    """Those of ``paths`` that the ``.gitignore`` files in ``rules`` match, and compiled Python files."""
    dropped = {p for p in paths if p.endswith(b".pyc") or b"__pycache__" in p.split(b"/")[:-1]}
    asked = [p for p in paths if p not in dropped]
    listed = list(rules)
    if not asked or not listed:
        return dropped
    # Only git itself reads its ignore rules rightly, and it reads them from a work tree: here is one with nothing else.
    with temporary.folder("rules") as place:
        for rule, (_, data) in zip(listed, read_blobs(repo, (r.oid for r in listed)), strict=True):
            target = os.path.join(os.fsencode(place), rule.path)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            Path(os.fsdecode(target)).write_bytes(data or b"")
        # check-ignore refuses literal pathspecs, so the leading dot keeps a path such as ":(top)" from being one.
        view = plain(repo).with_env({"GIT_WORK_TREE": str(place), "GIT_LITERAL_PATHSPECS": "0"})
        asking = b"".join(b"./" + path + b"\0" for path in asked)
        done = view.run("check-ignore", "-z", "--stdin", "--no-index", input=asking, cwd=place)
    if done.timed_out or done.status not in (0, 1):
        raise CommandFailed(["git", "check-ignore"], done.ending, done.stderr.text)
    return dropped | {line[2:] for line in done.stdout.data.split(b"\0") if line}


def _record(
    repo: Repository, folder: Path, found: Iterable[_Found], tracked: Mapping[bytes, TreeEntry]
) -> list[TreeEntry]:
    """Tree entries for files, writing only what ``tracked`` does not already have."""
    root = os.fsencode(folder)
    entries: list[TreeEntry] = []
    fresh: list[_Found] = []
    for item in found:
        if not item.mode:
            raise PatchError("a socket, pipe or device", rule="special_file", path=shown(item.path))
        known = tracked.get(item.path)
        if known is not None and known.kind == "blob" and _blob_id(root, item, len(known.oid)) == known.oid:
            entries.append(TreeEntry(item.mode, "blob", known.oid, item.path))
        else:
            fresh.append(item)
    written = _write_files(repo, root, fresh)
    return entries + [TreeEntry(f.mode, "blob", oid, f.path) for f, oid in zip(fresh, written, strict=True)]


def _blob_id(root: bytes, item: _Found, width: int) -> str:
    whole = os.path.join(root, item.path)
    try:
        if item.mode == SYMLINK:
            data = os.readlink(whole)
        else:
            with open(os.open(whole, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
                data = file.read()
    except OSError as error:
        raise PatchError("a file cannot be read", rule="unreadable", path=shown(item.path)) from error
    digest = hashlib.sha1 if width == 40 else hashlib.sha256
    return digest(b"blob %d\0" % len(data) + data).hexdigest()


def _write_files(repo: Repository, root: bytes, items: Iterable[_Found]) -> list[str]:
    """Write files and the targets of links as blobs through one process; their ids in order."""
    with temporary.folder("links") as place:
        names: list[bytes] = []
        for item in items:
            whole = os.path.join(root, item.path)
            if item.mode == SYMLINK:
                aside = os.path.join(os.fsencode(place), b"%d" % len(names))
                Path(os.fsdecode(aside)).write_bytes(os.readlink(whole))
                whole = aside
            elif not os.access(whole, os.R_OK):
                raise PatchError("a file cannot be read", rule="unreadable", path=shown(item.path))
            names.append(os.path.abspath(whole))
        if not names:
            return []
        lines = b"".join(_quoted(name) + b"\n" for name in names)
        arguments = ("hash-object", "-w", "-t", "blob", "--no-filters", "--stdin-paths")
        return plain(repo).text(*arguments, input=lines).split("\n")


def _quoted(path: bytes) -> bytes:
    """A path in the C-like quotes that git reads from a line, so that it may hold a line end."""
    plain_bytes = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+ "
    return b'"' + b"".join(bytes([c]) if c in plain_bytes else b"\\%03o" % c for c in path) + b'"'
