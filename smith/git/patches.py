"""Patches: made from two trees, applied to a tree. No work tree takes part in either.

What a patch says depends on the two trees alone: see :mod:`smith.git.objects` for what is kept out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from smith.errors import CommandFailed, PatchError
from smith.git.objects import SYMLINK, index, index_tree, object_id, plain, shown, unsafe
from smith.git.repository import Repository

# Everything that configuration could choose is chosen here, renames and their limit too.
_RENAMES = ("-M50%", "-l4000")
_FORMAT = (
    "-p",
    "--binary",
    "--full-index",
    "--unified=3",
    "--inter-hunk-context=0",
    "--diff-algorithm=myers",
    "--indent-heuristic",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "--ignore-submodules=none",
    "--submodule=short",
    "--no-relative",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "-O/dev/null",
)


# Where a folder's name ends in a space, older versions of git apply cannot read the header of an empty file that they
# wrote themselves; in quotes they can. No line of content starts like this: each has a sign before it.
_AMBIGUOUS = re.compile(rb"^diff --git a/(.* /.*) b/\1$", re.MULTILINE)


@dataclass(frozen=True)
class Change:
    """One path that differs between two trees.

    ``status`` is git's letter: A, D, M, R (renamed) or T (another type of file). ``old_path`` is given where it is
    not ``path``. Paths are text without loss (``surrogateescape``); an absent side has a mode and an id of zeros.
    """

    status: str
    old_mode: str
    new_mode: str
    old_oid: str
    new_oid: str
    path: str
    old_path: str | None = None


def diff(repo: Repository, old_tree: str, new_tree: str, paths: Sequence[str] | None = None) -> bytes:
    """The exact patch from one tree to the other; empty where they are equal.

    With ``paths`` it is restricted to these literal paths (a folder stands for all below it), and a rename with one
    side outside becomes an addition or a deletion.
    """
    if old_tree == new_tree or (paths is not None and not paths):
        return b""
    sides = (object_id(old_tree), object_id(new_tree), *(["--", *paths] if paths is not None else []))
    patch = plain(repo).git("diff-tree", "-r", *_RENAMES, *_FORMAT, *sides)
    if b"\nrename from " in patch and _link_gives_way(changes(repo, old_tree, new_tree)):
        patch = plain(repo).git("diff-tree", "-r", "--no-renames", *_FORMAT, *sides)
    return _AMBIGUOUS.sub(rb'diff --git "a/\1" "b/\1"', patch)


def _link_gives_way(found: Sequence[Change]) -> bool:
    """Whether a link is renamed and a folder takes its place.

    An exact rename states no mode, so that git apply does not see the link go and takes the folder for one behind it.
    """
    links = [f"{c.old_path}/" for c in found if c.status == "R" and c.old_mode == SYMLINK]
    return any(c.path.startswith(link) for link in links for c in found)


def changes(repo: Repository, old_tree: str, new_tree: str) -> list[Change]:
    """The paths that differ between two trees, renames found."""
    out = plain(repo).git(
        "diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--ignore-submodules=none", *_RENAMES,
        object_id(old_tree), object_id(new_tree),
    )  # fmt: skip
    fields = iter(out.split(b"\0"))
    found: list[Change] = []
    for head in fields:
        if not head:
            break
        old_mode, new_mode, old_oid, new_oid, status = head.decode().lstrip(":").split()
        path = shown(next(fields))
        old_path = None
        if status[0] in "RC":
            old_path, path = path, shown(next(fields))
        found.append(Change(status[0], old_mode, new_mode, old_oid, new_oid, path, old_path))
    return found


def apply(repo: Repository, tree: str, patch: bytes, *, allow_empty: bool = True) -> str:
    """The tree after the patch; its objects are written into ``repo``.

    An empty patch gives the same tree. Raises :class:`PatchError` with the rule ``malformed``, ``escapes_tree`` (a
    path outside, inside ``.git`` or through a link), ``does_not_apply``, or ``empty`` where ``allow_empty`` is false.
    """
    if not patch.strip():
        if not allow_empty:
            raise PatchError("the patch is empty", rule="empty")
        return tree
    with index(repo, tree) as view:
        # Read first, applied second: what cannot be read is told from what does not fit.
        read = view.run("apply", "--numstat", "-z", "-", input=patch)
        if not read.ok:
            _refuse(read.stderr.text, "malformed")
        for name in _numstat_paths(read.stdout.data):
            if unsafe(name):
                raise PatchError("the patch leaves the tree", rule="escapes_tree", path=shown(name))
        done = view.run("apply", "--cached", "--binary", "--whitespace=nowarn", "-", input=patch)
        if not done.ok:
            _refuse(done.stderr.text, "does_not_apply")
        return index_tree(view, missing_ok=True)


def _numstat_paths(out: bytes) -> list[bytes]:
    return [record.split(b"\t", 2)[2] for record in out.split(b"\0") if record]


# git's own words in the C locale, which clean_environment fixes.
_ESCAPES = re.compile(r"error: (?:invalid path '(?P<bad>.*)'|affected file '(?P<link>.*)' is beyond a symbolic link)\Z")
_PLACE = re.compile(
    r"error: (?:patch failed: (?P<failed>.*):\d+"
    r"|(?P<file>.*): (?:patch does not apply|does not exist in index|already exists in index|wrong type))\Z"
)
_SYNTAX = re.compile(r"error: (?:corrupt|No valid patches|patch fragment without|git (?:diff|apply)|unrecognized)")


def _refuse(said: str, rule: str) -> NoReturn:
    """Raise what git's complaint means."""
    lines = [line for line in said.splitlines() if line.startswith(("error:", "fatal:"))]
    path = ""
    for line in lines:
        if escape := _ESCAPES.match(line):
            raise PatchError("the patch leaves the tree", rule="escapes_tree", path=escape["bad"] or escape["link"])
        if place := _PLACE.match(line):
            path = path or place["failed"] or place["file"]
        elif _SYNTAX.match(line):
            rule = "malformed"
    if path and unsafe(path.encode("utf-8", "surrogateescape")):
        raise PatchError("the patch leaves the tree", rule="escapes_tree", path=path)
    if not lines and "apply.c:" in said:
        # git's own assertions: `patch->is_new <= 0` is one that a bent header breaks.
        raise PatchError("the patch is malformed: git breaks off over it", rule="malformed")
    if not lines:
        raise CommandFailed(["git", "apply"], "failed without a word", said)
    detail = lines[0].split(": ", 1)[1]
    heading = "the patch is malformed" if rule == "malformed" else "the patch does not apply"
    raise PatchError(f"{heading}: {detail}", rule=rule, path=path)
