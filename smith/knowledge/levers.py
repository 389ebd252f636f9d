"""Which levers a patch pulls, by a table of patterns: facts of the patch, no judgement of it."""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from pydantic import TypeAdapter

from smith.freeze.overlap import added_lines
from smith.records.base import Record
from smith.records.task import SmithMetadata

_SUFFIXES = {
    ".py": "triton", ".c": "native", ".cc": "native", ".cpp": "native", ".cxx": "native", ".h": "native",
    ".hpp": "native", ".cu": "cuda", ".cuh": "cuda", ".hip": "hip",
}  # fmt: skip
_MOST = 3
"""More levers than this at once say nothing about any of them."""


class Lever(Record):
    """One row of ``levers.toml``."""

    title: str
    how: str
    languages: tuple[str, ...]
    pattern: str
    symbols: tuple[str, ...] = ()
    opposite: str | None = None
    drops: bool = False


class Pulled(NamedTuple):
    """What a patch does: the codes, sorted and joined by ``+``, and the languages in which it does so."""

    lever: str
    languages: tuple[str, ...]


@cache
def table() -> Mapping[str, Lever]:
    """Every lever that is known, by code."""
    raw = tomllib.loads((files("smith.knowledge") / "levers.toml").read_text("utf-8"))
    return TypeAdapter(dict[str, Lever]).validate_python(raw)


@cache
def _patterns() -> Mapping[str, re.Pattern[str]]:
    return {code: re.compile(lever.pattern) for code, lever in table().items()}


def opposites() -> dict[str, str]:
    """Lever to the one that undoes it, both ways."""
    one_way = {code: lever.opposite for code, lever in table().items() if lever.opposite}
    return one_way | {other: code for code, other in one_way.items()}


def pulled(patch: bytes, task: SmithMetadata) -> Pulled | None:
    """The levers that ``patch`` pulls in a task's languages; None where the table knows none, or too many."""
    codes: set[str] = set()
    languages: set[str] = set()
    added, dropped = added_lines(patch), added_lines(_reversed(patch))
    for path in sorted(added.keys() | dropped.keys()):
        language = _language(path, task)
        plus, minus = ("\n".join(lines.get(path, ())) for lines in (added, dropped))
        for code, lever in table().items():
            if language not in lever.languages:
                continue
            difference = len(_patterns()[code].findall(plus)) - len(_patterns()[code].findall(minus))
            if (-difference if lever.drops else difference) > 0:
                codes.add(code)
                languages.add(language)
    if not codes or len(codes) > _MOST:
        return None
    return Pulled("+".join(sorted(codes)), tuple(sorted(languages)))


def _language(path: str, task: SmithMetadata) -> str:
    named = {kernel.path: kernel.language for kernel in task.kernels}
    if path in named:
        return named[path]
    guess = _SUFFIXES.get(path[path.rfind(".") :] if "." in path else "", "")
    return guess if guess in task.languages else ""


_SIGNS = {"+": "-", "-": "+"}
_HUNK = re.compile(r"^@@ -(\d+(?:,\d+)?) \+(\d+(?:,\d+)?) @@")


def _reversed(patch: bytes) -> bytes:
    """The patch the other way round, as far as reading its added lines needs it."""
    lines, left = [], [0, 0]
    old = ""
    for line in patch.decode("utf-8", "replace").split("\n"):
        if left[0] > 0 or left[1] > 0:
            left[0] -= line[:1] in ("-", " ", "")
            left[1] -= line[:1] in ("+", " ", "")
            line = _SIGNS.get(line[:1], line[:1]) + line[1:]
        elif head := _HUNK.match(line):
            left = [int(span.partition(",")[2] or 1) for span in head.groups()]
            line = f"@@ -{head[2]} +{head[1]} @@"
        elif line.startswith("--- "):
            old = line[4:].removeprefix("a/")
            continue
        elif line.startswith("+++ "):
            # A file keeps one name here: the one that it has afterwards, else the one that it had.
            new = line[4:].removeprefix("b/")
            line = f"+++ b/{new if new != '/dev/null' else old}"
        lines.append(line)
    return "\n".join(lines).encode()


def titles(lever: str) -> list[str]:
    """The titles of a lever's codes; a code that the table does not know stands for itself."""
    known: defaultdict[str, str] = defaultdict(str, {code: row.title for code, row in table().items()})
    return [known[code] or code.replace("-", " ") for code in lever.split("+")]
