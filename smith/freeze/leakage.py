"""Whether the answer lies about: in the frozen source, in the instruction, in the environment, in git data.

A gate at freezing. What is searched for are the *telling* lines that the reference adds
(:mod:`smith.freeze.overlap`): those of the changed files themselves (moved code) and those that several files of the
starting tree have (idioms, siblings) are nobody's answer.

File times tell nothing: a materialised tree carries one constant time for all files. Git data tells nothing: the frozen
source is a commit without parents, with a message and a date that are the same for every tree
(:func:`check_no_history` sees to it).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from smith.errors import Defect
from smith.freeze.overlap import Addition, squeezed, telling
from smith.git.repository import Repository
from smith.mine.blobs import Blobs
from smith.records.task import Leak, LeakKind

REFUSED_SHARE = 0.75
"""Of the telling lines, in what is no live source: documents, patches, notebooks, build outputs, vendored copies."""
SIBLING_SHARE = 0.95
"""The same for live source. New kernels begin as copies of their siblings: of 400 real pull requests three had 80 to
89 % of their lines in a sibling and none more, short ones aside; a copy of the answer has all of them."""
NOTED_SHARE = 0.4
LEAST_LINES = 6
"""A patch of fewer telling lines is found whole by chance: it is noted, never refused."""
IDIOM_FILES = 3
"""Lines that so many files of the starting tree have are idioms of that repository."""
LARGEST = 4_000_000
"""Bytes of a file that is still searched."""
_MOST = 12
_EXCERPT = 120

_DOCUMENTS = (".md", ".rst", ".txt", ".html", ".htm", ".adoc", ".tex")
_PATCHES = (".patch", ".diff", ".rej", ".orig", ".mbox")
_ARCHIVES = (".whl", ".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".egg", ".7z", ".bundle", ".pack")
_BINARIES = (
    ".png",
    ".jpg",
    ".jpeg",
    ".gif",
    ".pdf",
    ".co",
    ".hsaco",
    ".cubin",
    ".so",
    ".o",
    ".a",
    ".bin",
    ".pt",
    ".npy",
)
_BUILT = re.compile(r"^(build|dist|site)/|(^|/)(_build|\.eggs|[^/]+\.egg-info|__pycache__|\.ipynb_checkpoints)/")
_VENDORED = re.compile(r"(^|/)(third_?party|3rd_?party|vendor(ed)?|extern(al)?s?|deps)/", re.IGNORECASE)
# What surrounds a line of code in a notebook (a JSON string) or in a patch.
_WRAPPED = re.compile(r'^[+>"\s]+|(?:\\n)?",?\s*$')


class SourceScan:
    """One pass over the files of a starting tree: where the reference's lines are, and which words it has."""

    def __init__(self, blobs: Blobs, files: Mapping[str, str], addition: Addition, asked: Iterable[str]) -> None:
        self.addition = addition
        self.hits: dict[str, dict[str, int]] = {}
        """Path to the telling lines found there, each with its first line number."""
        self._raw = {line.encode() for line in addition.distinct}
        self.archives: list[str] = []
        self.words: set[str] = set()
        """Those of ``asked`` that some file has."""
        self._asked = {word: word.encode() for word in asked}
        paths: dict[str, list[str]] = {}
        for path, oid in files.items():
            suffix = posixpath.splitext(path)[1].lower()
            if suffix in _ARCHIVES:
                self.archives.append(path)
            elif suffix not in _BINARIES:
                paths.setdefault(oid, []).append(path)
        wanted = list(paths)
        for start in range(0, len(wanted), 200):
            for oid, data in blobs.read(wanted[start : start + 200]).items():
                if data is not None and b"\0" not in data[:8000]:
                    self._read(paths[oid], data)

    def _read(self, paths: list[str], data: bytes) -> None:
        for word in [w for w, raw in self._asked.items() if w not in self.words and raw in data]:
            self.words.add(word)
        wanted = self.addition.distinct
        if not wanted or all(path in self.addition.before for path in paths):
            return
        wrapped = posixpath.splitext(paths[0])[1].lower() in (*_PATCHES, ".ipynb")
        if not wrapped and self._raw.isdisjoint(map(bytes.strip, data.splitlines())):
            return  # nearly every file; a line that is spaced otherwise inside is no copy
        lines = data.decode("utf-8", "replace").splitlines()
        found: dict[str, int] = {}
        for number, raw in enumerate(lines, start=1):
            line = squeezed(raw)
            if line not in wanted and wrapped:
                line = squeezed(_WRAPPED.sub("", raw).replace('\\"', '"'))
            if line in wanted:
                found.setdefault(line, number)
        if found:
            self.hits.update((path, found) for path in paths if path not in self.addition.before)

    def leaks(self) -> list[Leak]:
        """Files that hold a notable share of the reference, the most telling first."""
        total = len(self.addition.distinct)
        counts: dict[str, int] = {}
        for lines in self.hits.values():
            for line in lines:
                counts[line] = counts.get(line, 0) + 1
        found = []
        for path, lines in self.hits.items():
            # A line that the tree has in many places is an idiom; a tree with many whole copies is still told, since
            # the share is taken of all lines and those copies agree in more than idioms.
            telling = {line: at for line, at in lines.items() if counts[line] < IDIOM_FILES or len(lines) == total}
            share = len(telling) / total
            if share < NOTED_SHARE or len(telling) < 2:
                continue
            first = min(telling.values())
            text = next(line for line, at in telling.items() if at == first)
            kind = kind_of(path)
            refused = share >= (SIBLING_SHARE if kind is LeakKind.SOURCE else REFUSED_SHARE) and total >= LEAST_LINES
            found.append(
                Leak(
                    kind=kind,
                    action="refused" if refused else "noted",
                    path=path,
                    line=first,
                    share=round(share, 3),
                    excerpt=text[:_EXCERPT],
                )
            )
        found.sort(key=lambda leak: (-(leak.share or 0), leak.path))
        return found[:_MOST]


def sibling_leaks(addition: Addition) -> list[Leak]:
    """Changed files that still hold what the reference adds to them: a kernel whose sibling in the same file is whole.

    For a change such lines are moved code and nobody's answer; where bodies were taken out, they are the answer.
    """
    found = []
    for path, lines in addition.lines.items():
        before = {squeezed(line): number for number, line in _numbered(addition.before.get(path, ""))}
        told = {line for line in map(squeezed, lines) if telling(line)}
        there = told & before.keys()
        share = len(there) / len(told) if told else 0.0
        if share < NOTED_SHARE or len(there) < 2:
            continue
        first = min(there, key=lambda line: before[line])
        found.append(
            Leak(
                kind=LeakKind.SOURCE,
                action="refused" if share >= SIBLING_SHARE and len(told) >= LEAST_LINES else "noted",
                path=path,
                line=before[first],
                share=round(share, 3),
                excerpt=first[:_EXCERPT],
            )
        )
    return found


def _numbered(text: str) -> list[tuple[int, str]]:
    """Lines with their numbers from 1, the last first, so that a mapping of them keeps the first of equal ones."""
    return list(enumerate(text.splitlines(), start=1))[::-1]


def kind_of(path: str) -> LeakKind:
    """What kind of file a path names."""
    suffix = posixpath.splitext(path)[1].lower()
    if _BUILT.search(path):
        return LeakKind.BUILD_OUTPUT
    if suffix == ".ipynb":
        return LeakKind.NOTEBOOK
    if suffix in _PATCHES:
        return LeakKind.PATCH
    if _VENDORED.search(path):
        return LeakKind.VENDORED
    if suffix in _DOCUMENTS or PurePosixPath(path).name.upper().startswith(("CHANGELOG", "NEWS", "HISTORY")):
        return LeakKind.DOCUMENT
    return LeakKind.SOURCE


def instruction_leaks(instruction: str, addition: Addition, tests: Addition, allowed: str = "") -> list[Leak]:
    """Lines of the finished instruction that repeat the reference or the bodies of hidden tests.

    ``allowed`` are the lines that are meant to name code. A template of a data repository passes through
    here too, so this is the last word about an instruction.
    """
    found = []
    given = {squeezed(line) for line in allowed.splitlines()}
    for number, raw in enumerate(instruction.splitlines(), start=1):
        line = squeezed(raw)
        if line in given:
            continue
        if addition.quoted_by(line) or line.strip("`") in addition.distinct or tests.copied_by(line):
            found.append(
                Leak(
                    kind=LeakKind.INSTRUCTION,
                    action="refused",
                    path="instruction.md",
                    line=number,
                    excerpt=line[:_EXCERPT],
                )
            )
    return found[:_MOST]


def environment_leaks(repo: str, names: Iterable[str], packages: Iterable[str]) -> list[Leak]:
    """Packages of the recipe's environments that are a release of the upstream itself.

    ``names`` are the distribution names that the frozen source declares.
    """
    own = {_normal(name) for name in (repo.rpartition("/")[2], *names) if name}
    found = []
    for package in packages:
        if _normal(re.split(r"[\s\[<>=!~;@]", package.strip(), maxsplit=1)[0]) in own:
            found.append(
                Leak(kind=LeakKind.ENVIRONMENT, action="refused", path="environment/recipe.toml", excerpt=package)
            )
    return found


_DECLARED = re.compile(r"""^\s*name\s*=\s*["']([\w.-]+)["']""", re.MULTILINE)


def declared_names(texts: Iterable[str]) -> list[str]:
    """Distribution names that ``pyproject.toml`` or ``setup.py`` declare."""
    return [name for text in texts for name in _DECLARED.findall(text)]


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def check_no_history(data: Repository, tree: str) -> None:
    """See that the kept source ``tree`` is one commit without parents. Raises :class:`Defect` where it is not."""
    ref = f"refs/smith/sources/{tree}"
    if data.text("rev-list", "--count", ref).strip() != "1":
        raise Defect(f"{ref} has a history: the frozen source must be a commit without parents")
