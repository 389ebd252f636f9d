"""History, streamed: each question is one git process over all commits, never one process a commit.

One ``git log --first-parent -m --raw`` over 2,800 landings takes a fraction of a second, where walking the same
objects from Python takes minutes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import IO

from smith import process
from smith.errors import CommandFailed
from smith.git.repository import EMPTY_TREE, Repository

NULL_OID = "0" * 40

# Inexact renames cost (created x deleted) comparisons of blobs; above this a landing moves half the repository and
# only identical files are paired. At git's default a 2,800-commit history took three times as long.
_RENAMES = ("-M", "-l200")

_PATCH = ("-p", "-r", "--root", "--full-index", "--no-ext-diff", "--no-textconv")

_FIELDS = ("%H", "%P", "%T", "%an", "%ae", "%aI", "%cn", "%cI", "%s", "%b")


@dataclass(frozen=True, slots=True)
class Change:
    """One changed path of a raw diff. Paths are surrogate-escaped where they are not UTF-8."""

    old_mode: str
    new_mode: str
    old_oid: str
    new_oid: str
    status: str
    """One letter: A, M, D, R (renamed), C (copied) or T (type changed)."""
    path: str
    old_path: str | None = None

    @property
    def before(self) -> str | None:
        """The path on the old side, None where the file is new."""
        return None if self.status == "A" else self.old_path or self.path

    @property
    def exact(self) -> bool:
        """Whether both sides hold the same content (a pure rename or a mode change)."""
        return self.old_oid == self.new_oid


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit's own words."""

    oid: str
    parents: tuple[str, ...]
    tree: str
    author: str
    email: str
    authored: str
    committer: str
    committed: str
    subject: str
    body: str


@dataclass(frozen=True, slots=True)
class Landing(Commit):
    """A commit of the first-parent line with what it changed against its first parent."""

    changes: tuple[Change, ...] = ()

    @property
    def base(self) -> str | None:
        """The commit it landed on; None for a root."""
        return self.parents[0] if self.parents else None


def first_parent(
    repo: Repository, branch: str, *, after: str | None = None, on_missing: Callable[[], None] = lambda: None
) -> Iterator[Landing]:
    """Yield the landings of ``branch``, newest first; with ``after`` only those that this commit does not reach.

    Needs no blob that is missing from a partial mirror: where inexact rename detection meets one, ``on_missing`` is
    called, and what follows comes with exact renames only. Raises :class:`~smith.errors.BadInput` where ``branch``
    names no commit.
    """
    wanted = [repo.resolve(branch), *([f"^{after}"] if after else [])]
    seen = 0
    try:
        for landing in _log(repo, wanted, _RENAMES):
            seen += 1
            yield landing
    except CommandFailed:
        on_missing()
        # Identical content is told by object id alone, so this pass reads no blob.
        for landing in _log(repo, wanted, ("-M100%",)):
            if seen:
                seen -= 1
            else:
                yield landing


def _log(repo: Repository, wanted: Sequence[str], renames: Sequence[str]) -> Iterator[Landing]:
    argv = ["log", "--first-parent", "-m", "--root", "--raw", "-z", "--no-abbrev", "--no-notes", *renames]
    tokens = _Tokens(process.stream(repo.argv(*argv, _format(), *wanted, "--"), env=repo.environment))
    while (oid := tokens.next()) is not None:
        fields = _commit_fields(oid, tokens)
        yield Landing(*fields, changes=tuple(_changes(tokens)))


def _format() -> str:
    # The object id comes first: it tells the next commit from a further raw record, which begins with a colon.
    return "--format=" + "%x00".join(_FIELDS)


def _commit_fields(oid: str, tokens: _Tokens) -> tuple[str, tuple[str, ...], str, str, str, str, str, str, str, str]:
    rest = [tokens.take() for _ in _FIELDS[1:]]
    parents, tree, author, email, authored, committer, committed, subject, body = rest
    words = (tree, author, email, moment(authored), committer, moment(committed), subject, body.strip("\n"))
    return oid, tuple(parents.split()), *words


def moment(text: str) -> str:
    """A date that can be read as one: commits hold years beyond 9999, offsets of days and no date at all.

    What cannot be read is the beginning of time.
    """
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return "1970-01-01T00:00:00+00:00"
    return text


def commits(
    repo: Repository, tips: Iterable[str], *, exclude: Iterable[str] = (), walk: bool = True
) -> Iterator[Commit]:
    """Yield what is reachable from ``tips`` and not from ``exclude``, children before parents, without diffs.

    With ``walk=False`` only the tips themselves. Tips that are missing here are skipped.
    """
    order = "--topo-order" if walk else "--no-walk=unsorted"
    wanted = [*tips, *(f"^{oid}" for oid in exclude)]
    if not wanted:
        return  # with no revision at all git would begin at HEAD
    with _stdin(wanted) as revisions:
        child = repo.popen(
            "log", "-z", order, "--no-notes", "--ignore-missing", _format(), "--stdin", stdin=revisions.fileno()
        )
        tokens = _Tokens(_drain(child.stdout))
        try:
            while (oid := tokens.next()) is not None:
                yield Commit(*_commit_fields(oid, tokens))
        finally:
            process.kill_group(child)


def changes_between(repo: Repository, pairs: Sequence[tuple[str, str]]) -> list[tuple[Change, ...]]:
    """The raw changes of each pair of trees, in order, from one ``git diff-tree``.

    Raises :class:`CommandFailed` where a tree is missing.
    """
    if not pairs:
        return []
    order = [f"{old} {new}" for old, new in pairs]
    argv = ["diff-tree", "--stdin", "-r", "--raw", "-z", "--no-abbrev", "-M100%"]
    out = repo.git(*argv, input="".join(f"{line}\n" for line in order).encode())
    # A pair is announced by its own line; the raw records that follow are NUL-terminated.
    results: list[tuple[Change, ...]] = []
    tokens = _Tokens(iter([out]))
    found: dict[int, list[Change]] = {}
    current = -1
    while (token := tokens.next()) is not None:
        head, newline, tail = token.rpartition("\n")
        if newline:
            for line in head.splitlines():
                current = _advance(order, current, line)
            token = tail
        if token:
            found.setdefault(current, []).append(_change(token, tokens))
    results.extend(tuple(found.get(index, ())) for index in range(len(order)))
    return results


def _advance(order: Sequence[str], current: int, line: str) -> int:
    index = current + 1
    while order[index] != line.strip():
        index += 1
    return index


def patch_ids(
    repo: Repository, oids: Iterable[str], *, on_missing: Callable[[], None] = lambda: None
) -> dict[str, str]:
    """The stable patch id of each commit that has one, from ``git diff-tree -p`` piped into ``git patch-id``.

    Merges and empty commits have none. Nor have commits whose blobs are missing from a partial mirror: git dies on
    the first, so the stream is taken up again behind it, and ``on_missing`` is called.
    """
    wanted = list(dict.fromkeys(oids))
    found: dict[str, str] = {}
    while wanted:
        ids, reached = _patch_ids(repo, wanted)
        found.update(ids)
        # What was being shown when the stream broke has an id of half a patch.
        if reached is not None:
            on_missing()
            found.pop(reached, None)
            wanted = wanted[wanted.index(reached) + 1 :]
        else:
            wanted = []
    return found


def _patch_ids(repo: Repository, oids: Sequence[str]) -> tuple[dict[str, str], str | None]:
    """One pass; the second value is the commit at which it broke."""
    with _stdin(oids) as source:
        diff = repo.popen("diff-tree", "--stdin", *_PATCH, stdin=source.fileno())
        assert diff.stdout is not None
        digest = repo.popen("patch-id", "--stable", stdin=diff.stdout.fileno())
        diff.stdout.close()  # the digest holds the only reading end
        try:
            out = b"".join(_drain(digest.stdout)).decode("ascii")
            broken = diff.wait() != 0
        finally:
            process.kill_group(diff)
            process.kill_group(digest)
    pairs = [line.split() for line in out.splitlines()]
    ids = {commit: patch for patch, commit in pairs}
    if not broken:
        return ids, None
    return ids, _first_unreadable(repo, oids, ids)


def _first_unreadable(repo: Repository, oids: Sequence[str], ids: dict[str, str]) -> str:
    """The first commit from the last shown one on whose patch cannot be made."""
    shown = [index for index, oid in enumerate(oids) if oid in ids]
    for oid in oids[shown[-1] if shown else 0 :]:
        if not repo.run("diff-tree", *_PATCH, oid).ok:
            return oid
    return oids[-1]


def _changes(tokens: _Tokens) -> Iterator[Change]:
    while (token := tokens.peek()) is not None and token.lstrip("\n").startswith(":"):
        tokens.next()
        yield _change(token.lstrip("\n"), tokens)


def _change(meta: str, tokens: _Tokens) -> Change:
    old_mode, new_mode, old_oid, new_oid, status = meta.removeprefix(":").split(" ")
    first = tokens.take()
    if status[0] in "RC":
        return Change(old_mode, new_mode, old_oid, new_oid, status[0], tokens.take(), first)
    return Change(old_mode, new_mode, old_oid, new_oid, status[0], first)


class _Tokens:
    """The NUL-separated fields of a byte stream, with one of look-ahead."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._fields = _split(chunks)
        self._ahead: list[str] = []

    def next(self) -> str | None:
        return self._ahead.pop() if self._ahead else next(self._fields, None)

    def peek(self) -> str | None:
        if not self._ahead:
            field = next(self._fields, None)
            if field is None:
                return None
            self._ahead.append(field)
        return self._ahead[0]

    def take(self) -> str:
        """The next field of a record that has begun; a stream that ends inside a record is empty from there on."""
        return self.next() or ""


def _split(chunks: Iterator[bytes]) -> Iterator[str]:
    rest = b""
    for chunk in chunks:
        *fields, rest = (rest + chunk).split(b"\0")
        for field in fields:
            yield field.decode("utf-8", "surrogateescape")
    if rest:
        yield rest.decode("utf-8", "surrogateescape")


def _stdin(lines: Iterable[str]) -> IO[bytes]:
    """A file to be read as standard input: writing to a pipe while reading another could block both ends."""
    file = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
    file.write("".join(f"{line}\n" for line in lines).encode())
    file.flush()
    file.seek(0)
    return file


def _drain(stream: IO[bytes] | None) -> Iterator[bytes]:
    assert stream is not None
    with stream:
        while chunk := stream.read(1 << 20):
            yield chunk


__all__ = [
    "EMPTY_TREE",
    "NULL_OID",
    "Change",
    "Commit",
    "Landing",
    "changes_between",
    "commits",
    "first_parent",
    "patch_ids",
]
