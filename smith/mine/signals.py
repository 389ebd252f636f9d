"""Hints read out of a pull request's words, its change and what came after it.

They steer what is chosen (:mod:`smith.mine.sampling`) and never what is decided about a task.
"""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files as package_files
from itertools import chain

from smith.mine import claims as claims_
from smith.mine import devices as devices_
from smith.mine.reverts import Reverts
from smith.records.candidate import ChangedFile, KernelChange, Kind, Role
from smith.records.signals import Signals

_PART = re.compile(r"[A-Za-z0-9]+")
_CASED = re.compile(r"[A-Z]+(?![a-z])\d*|[A-Z]?[a-z]+\d*|\d+[a-z]*")
# A term that begins with a letter of its own, and not with a choice.
_BEGINS = re.compile(r"[a-z](?![?*|])")
# A title is what a person wrote about the change; symbols are the change; a folder holds many things.
_TITLE, _SYMBOLS, _NAME, _FOLDER = 2.0, 3.0, 2.0, 0.5
_LEAST_SCORE = 1.0
_LEAST_SHARE = 0.25
"""Of the score of the surest class."""
_MOST_OPERATORS = 4
_MOST_SYMBOLS = 400
_MOST_LATER_FIXES = 5
_NO_PLACE_OF_KERNELS = frozenset({Role.DOCS, Role.CI})

KernelId = tuple[str, str]
"""A kernel by path and qualified name."""


@dataclass(frozen=True)
class Landed:
    """One merged pull request of a history, as far as looking back and ahead needs it."""

    number: int
    kind: Kind
    merged_at: str
    """ISO 8601 with an offset."""
    kernels: frozenset[KernelId] = frozenset()
    """Changed kernels, paths as they are after it landed."""
    renames: tuple[tuple[str, str], ...] = ()
    """Old and new path of each file that it renamed."""
    title: str = ""
    body: str = ""
    mass: bool = False
    """Whether it changes so much that sharing a kernel with it says nothing."""


@dataclass(frozen=True)
class Ahead:
    """What came after one pull request; the fields are those of :class:`~smith.records.signals.Signals`."""

    later_fixes: tuple[int, ...] = ()
    reverted_by: str | None = None
    lands_again: int | None = None
    landed_again_by: int | None = None


def read(
    *,
    title: str,
    body: str = "",
    subjects: Sequence[str] = (),
    files: Sequence[ChangedFile] = (),
    kernels: Sequence[KernelChange] = (),
    texts: Iterable[str] = (),
) -> Signals:
    """Operators, devices, architectures, claims and tuned configurations; what came later is :func:`look_ahead`'s.

    ``subjects`` are those of the commits of its head, oldest first; ``texts`` the changed kernels or whole changed
    files, of which only guards for devices are read.
    """
    named = devices_.named(
        title=title,
        paths=(file.path for file in files if file.role not in _NO_PLACE_OF_KERNELS),
        codes=texts,
        body=claims_.plain(body),
    )
    return Signals(
        operators=operators(title, files, kernels),
        devices=named.devices,
        architectures=named.architectures,
        claims=claims_.find(title, body, subjects),
        configs=tuple(file.path for file in files if file.role is Role.CONFIG),
    )


def operators(title: str, files: Sequence[ChangedFile], kernels: Sequence[KernelChange]) -> tuple[str, ...]:
    """The classes of operators that a change is about, the surest first; none where nothing tells.

    Each place gives the weight of its words: a symbol or a file in proportion to its share of all, so that one helper
    among fifty kernels does not name the change.
    """
    score: dict[str, float] = defaultdict(float)
    _add(score, [title], _TITLE)
    symbols = [symbol for kernel in kernels for symbol in kernel.symbols][:_MOST_SYMBOLS]
    _add(score, symbols, _SYMBOLS)
    paths = _telling_paths(files, kernels)
    _add(score, [path.rpartition("/")[2].rpartition(".")[0] for path in paths], _NAME)
    _add(score, [path.rpartition("/")[0] for path in paths], _FOLDER)
    best = max(score.values(), default=0.0)
    sure = [name for name in score if score[name] >= max(_LEAST_SCORE, _LEAST_SHARE * best)]
    return tuple(sorted(sure, key=lambda name: (-score[name], name))[:_MOST_OPERATORS])


def _telling_paths(files: Sequence[ChangedFile], kernels: Sequence[KernelChange]) -> list[str]:
    """Paths of the files that say most about the change: of changed kernels, else of sources, else of all code."""
    touched = [kernel.path for kernel in kernels if kernel.symbols] or [kernel.path for kernel in kernels]
    for roles in ((Role.KERNEL, Role.HOST), (Role.CONFIG,), (Role.TEST, Role.BENCHMARK)):
        touched = touched or [file.path for file in files if file.role in roles]
    return touched


def _add(score: dict[str, float], names: Sequence[str], factor: float) -> None:
    for name in names:
        for operator, weight in _told(name).items():
            score[operator] += factor * weight / len(names)


@dataclass(frozen=True)
class _Words:
    """The table of words: patterns with one named group a term, and what each term tells."""

    patterns: Mapping[str, re.Pattern[str]]
    """By first character; "" for all others. One pattern of all terms takes ten times as long."""
    rows: tuple[Mapping[str, float], ...]

    def match(self, text: str, at: int) -> re.Match[str] | None:
        """The longest term that begins at ``at``, which is the beginning of a word."""
        return self.patterns.get(text[at], self.patterns[""]).match(text, at)


@cache
def _load() -> _Words:
    table = tomllib.loads((package_files("smith.mine") / "operators.toml").read_text("utf-8"))
    terms = [(term, row["tells"]) for row in table["words"] for term in row["match"]]
    # The first alternative that fits is taken, so the longest come first.
    terms.sort(key=lambda term: (-term[0].count(" "), -len(term[0])))
    begins = [match[0] if (match := _BEGINS.match(term)) else "" for term, _ in terms]
    patterns = {
        first: _pattern([(row, term) for row, (term, _) in enumerate(terms) if begins[row] in ("", first)])
        for first in {"", *begins}
    }
    return _Words(patterns, tuple(tells for _, tells in terms))


def _pattern(terms: Iterable[tuple[int, str]]) -> re.Pattern[str]:
    return re.compile(rf"(?:{'|'.join(f'(?P<row{row}>{term})' for row, term in terms)})s?\d*(?!\S)")


def operator_classes() -> frozenset[str]:
    """Every class that the table knows."""
    return frozenset(chain.from_iterable(_load().rows))


@lru_cache(maxsize=20_000)
def _told(name: str) -> Mapping[str, float]:
    """What the words of one name tell: each class with its largest weight."""
    table, found = _load(), dict[str, float]()
    text, at = " ".join(words(name)), 0
    while at < len(text):
        match = table.match(text, at)
        if match is not None and match.lastgroup is not None:
            for operator, weight in table.rows[int(match.lastgroup.removeprefix("row"))].items():
                found[operator] = max(found.get(operator, 0.0), float(weight))
        blank = text.find(" ", at if match is None else match.end())
        at = len(text) if blank < 0 else blank + 1
    return found


def words(name: str) -> list[str]:
    """The words of a name or a sentence, in lower case: ``fusedRMSNorm_fwd`` is fused, rms, norm and fwd.

    A part that is a word of the table as it stands stays whole, whatever its case: ``RoPE``, ``SwiGLU``.
    """
    return list(chain.from_iterable(_parted(part) for part in _PART.findall(name)))


@lru_cache(maxsize=20_000)
def _parted(part: str) -> tuple[str, ...]:
    whole = part.lower()
    if _load().match(whole, 0) is not None:
        return (whole,)
    return tuple(one.lower() for one in _CASED.findall(part))


def look_ahead(
    history: Sequence[Landed], reverts: Reverts, followed: Sequence[frozenset[KernelId]] | None = None
) -> dict[int, Ahead]:
    """For each pull request of ``history`` (in landing order, oldest first) what came after it, by number.

    A later fix is a fix or a revert of a kernel that it changed, nearest first; mass edits are none. One pass from the
    newest to the oldest, with a short list a kernel. ``followed`` is what :func:`follow_renames` gives, where it is
    known already.
    """
    followed = follow_renames(history) if followed is None else followed
    again_by: dict[int, int] = {}
    for one in history:
        if (first := reverts.lands_again.get(one.number)) is not None:
            again_by.setdefault(first, one.number)
    coming: dict[KernelId, tuple[int, ...]] = {}
    """Positions of the next fixes of each kernel, the nearest first."""
    found: dict[int, Ahead] = {}
    for position in range(len(history) - 1, -1, -1):
        one, kernels = history[position], followed[position]
        later = sorted({at for kernel in kernels for at in coming.get(kernel, ())})[:_MOST_LATER_FIXES]
        found[one.number] = Ahead(
            later_fixes=tuple(history[at].number for at in later),
            reverted_by=reverts.reverted.get(one.number),
            lands_again=reverts.lands_again.get(one.number),
            landed_again_by=again_by.get(one.number),
        )
        if one.kind in (Kind.FIX, Kind.REVERT) and not one.mass:
            for kernel in kernels:
                coming[kernel] = (position, *coming.get(kernel, ())[: _MOST_LATER_FIXES - 1])
    return found


def follow_renames(history: Sequence[Landed]) -> list[frozenset[KernelId]]:
    """The kernels of each pull request of ``history`` (oldest first), with one name a file whatever it was called.

    A file that takes the path of one that moved away is another file.
    """
    known: dict[str, str] = {}
    found: list[frozenset[KernelId]] = []
    for position, one in enumerate(history):
        moved = [(new, known.get(old, old)) for old, new in one.renames]
        # First all that leave and then all that come: two files may swap their names.
        known.update((old, f"{old}\0{position}") for old, _ in one.renames)
        known.update(moved)
        found.append(frozenset((known.get(path, path), symbol) for path, symbol in one.kernels))
    return found
