"""Operators on tokens of C-like kernels. Each gives the edits of its mutants between ``begin`` and ``end``.

Tokens do not tell everything that a grammar would (a template's bracket from a comparison): what is doubtful is left
out, and what still does not compile is no mutant that counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from smith.mutate.edits import Edit

Edits = tuple[Edit, ...]

_COMPARE = re.compile(r"(?<=[\w)\] ])(<=|>=| < | > )(?=[\w(\- ])")
_SHIFTED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
_HEADER = re.compile(r"\bfor\s*\(")
_IF = re.compile(r"\bif\s*\(")
_PLUS = re.compile(r"(?<=[\w)\]])\s*(?<![+\-])([+-])(?![+\->])(=?)\s*(?=[\w(*])")
_EXPONENT = re.compile(r"(?:\b\d[\d.]*|\.\d+)[eE]\Z")
_TIMES = re.compile(r"(\b\w+|[)\]]) ([*/]) (?=[\w(])")
_TYPE = re.compile(
    r"(?:void|char|short|int|long|float|double|half|bool|auto|unsigned|signed|const|T|\w+_t|\w+\d(?:_t)?)\Z"
)
_INDEX = re.compile(r"stride|blockIdx|threadIdx|blockDim|gridDim|offset|\brows?\b|\bcols?\b", re.IGNORECASE)
_SIGN = re.compile(r"(?<=[=(,?:])\s*(-)(?![-=>])|(?<=return)\s+(-)(?![-=>])")
_BARRIER = re.compile(r"\b(?:__syncthreads|__syncwarp|__threadfence(?:_block)?|__builtin_amdgcn_s_barrier)\s*\(\s*\)")
_ATOMIC = re.compile(r"(?<=[;{})])\s*(atomicAdd|unsafeAtomicAdd)\s*(\()|\belse\s+(atomicAdd)\s*(\()")
_DOUBLE = re.compile(r"\bdouble\b")
_SUM = re.compile(r"\b(float)\b(?=\s+\w+\s*=\s*-?0(?:\.0*)?f?\b)")
_INDEXED = re.compile(r"(?P<before>[\w>*&]\s+[*&]?\s*)?(?<![\w.])(?P<name>[A-Za-z_][\w.]*)\[")
_EPSILON = re.compile(r"\b\w*eps(?:ilon)?\b|\b(?:\d+\.?\d*|\.\d+)[eE]-\d+[fF]?\b")
_OTHER_FUNCTION = {
    "exp": "exp2", "expf": "exp2f", "__expf": "exp2f", "exp2f": "expf", "log": "log2", "logf": "log2f",
    "__logf": "log2f", "rsqrt": "sqrt", "rsqrtf": "sqrtf", "sin": "cos", "sinf": "cosf", "cos": "sin",
    "cosf": "sinf", "floorf": "ceilf", "ceilf": "floorf", "floor": "ceil", "ceil": "floor",
}  # fmt: skip
_OTHER_EXTREME = {
    "fmaxf": "fminf", "fminf": "fmaxf", "fmax": "fmin", "fmin": "fmax", "max": "min", "min": "max",
    "atomicMax": "atomicMin", "atomicMin": "atomicMax",
}  # fmt: skip
_HALF = {"hip": "_Float16", "native": "_Float16", "cuda": "__half"}


def boundary_shifted(text: str, plain: str, begin: int, end: int, language: str) -> Iterator[Edits]:
    """``<`` becomes ``<=``, ``>`` becomes ``>=``, and the other way. A bare bracket counts between blanks only."""
    for match in _COMPARE.finditer(plain, begin, end):
        sign = match[1].strip()
        at = plain.index(sign, match.start(1))
        yield (Edit(at, at + len(sign), _SHIFTED[sign]),)


def loop_shortened(text: str, plain: str, begin: int, end: int, language: str) -> Iterator[Edits]:
    """A loop that ends one before its bound."""
    for match in _HEADER.finditer(plain, begin, end):
        close = _closing(plain, match.end() - 1, end)
        parts = _split(plain, match.end(), close, ";")
        if len(parts) == 3:
            first, last = parts[1]
            condition = plain[first:last]
            if re.search(r"[<>]", condition) and not re.search(r"&&|\|\||[?,]", condition):
                stop = first + len(condition.rstrip())
                yield (Edit(stop, stop, " + 1" if ">" in condition and "->" not in condition else " - 1"),)


def plus_and_minus(text: str, plain: str, begin: int, end: int, language: str) -> Iterator[Edits]:
    """``+`` and ``-``, ``+=`` and ``-=`` confused."""
    for match in _PLUS.finditer(plain, begin, end):
        if not _EXPONENT.search(plain, max(begin, match.start() - 20), match.start(1)):
            yield (Edit(match.start(1), match.end(1), "-" if match[1] == "+" else "+"),)


def times_and_by(text: str, plain: str, begin: int, end: int, language: str) -> Iterator[Edits]:
    """``*`` and ``/`` confused; beside an index ``*`` becomes ``+``. A pointer's star is left alone."""
    for match in _TIMES.finditer(plain, begin, end):
        if match[2] == "*" and _TYPE.match(match[1]):
            continue
        near = plain[max(begin, match.start() - 20) : match.end() + 20].split(";")
        other = "*" if match[2] == "/" else "+" if any(map(_INDEX.search, near)) else "/"
        yield (Edit(match.start(2), match.end(2), other),)


def sign_flipped(text: str, plain: str, begin: int, end: int, language: str) -> Iterator[Edits]:
    """A minus sign that is not there."""
    for match in _SIGN.finditer(plain, begin, end):
        at = match.start(1) if match[1] else match.start(2)
        yield (Edit(at, at + 1, ""),)


def barrier_removed(text: str, plain: str, begin: int, end: int, language: str) -> Iterator[Edits]:
    """No barrier or fence."""
    for match in _BARRIER.finditer(plain, begin, end):
        yield (Edit(match.start(), match.end(), "((void)0)"),)


def atomic_made_plain(text: str, plain: str, begin: int, end: int, language: str) -> Iterator[Edits]:
    """``atomicAdd(&x, v)`` as ``x += v``."""
    for match in _ATOMIC.finditer(plain, begin, end):
        at, opened = (match.start(1), match.start(2)) if match[1] else (match.start(3), match.start(4))
        close = _closing(plain, opened, end)
        parts = _split(plain, opened + 1, close, ",")
        if len(parts) == 2 and plain[close + 1 : end].lstrip().startswith(";"):
            target, value = (text[first:last].strip() for first, last in parts)
            place = target[1:] if target.startswith("&") else f"*({target})"
            yield (Edit(at, close + 1, f"{place} += {value}"),)


def accumulator_lowered(text: str, plain: str, begin: int, end: int, language: str) -> Iterator[Edits]:
    """``double`` as ``float``, and a sum that starts as a ``float`` of zero in half the bits."""
    for match in _DOUBLE.finditer(plain, begin, end):
        yield (Edit(match.start(), match.end(), "float"),)
    if language in _HALF:
        for match in _SUM.finditer(plain, begin, end):
            yield (Edit(match.start(1), match.end(1), _HALF[language]),)


def index_shifted(text: str, plain: str, begin: int, end: int, language: str) -> Iterator[Edits]:
    """The element behind the one that is meant. The size of an array that is declared is no index."""
    for match in _INDEXED.finditer(plain, begin, end):
        before = (match["before"] or "").strip()
        word = re.search(r"(\w+)\W*\Z", plain[max(begin, match.start() - 30) : match.start("name")])
        declared = word is not None and before and _TYPE.match(word[1]) is not None
        close = _closing(plain, match.end() - 1, end)
        if not declared and plain[match.end() : close].strip():
            yield (Edit(close, close, " + 1"),)


def epsilon_changed(text: str, plain: str, begin: int, end: int, language: str) -> Iterator[Edits]:
    """An epsilon a hundred times as large: by name, or a constant with a negative exponent."""
    for match in _EPSILON.finditer(plain, begin, end):
        if not re.match(r"\s*(?:=[^=]|\()", plain[match.end() : match.end() + 3]):
            yield (Edit(match.start(), match.end(), f"({match[0]} * 100)"),)


def condition_negated(text: str, plain: str, begin: int, end: int, language: str) -> Iterator[Edits]:
    """The other branch of an ``if``."""
    for match in _IF.finditer(plain, begin, end):
        close = _closing(plain, match.end() - 1, end)
        yield Edit(match.end(), match.end(), "!("), Edit(close, close, ")")


def function_confused(text: str, plain: str, begin: int, end: int, language: str) -> Iterator[Edits]:
    """Another function of the family: ``expf`` and ``exp2f``, ``logf`` and ``log2f``, ..."""
    yield from _renamed(plain, begin, end, _OTHER_FUNCTION)


def extreme_confused(text: str, plain: str, begin: int, end: int, language: str) -> Iterator[Edits]:
    """Minimum and maximum confused."""
    yield from _renamed(plain, begin, end, _OTHER_EXTREME)


def _renamed(plain: str, begin: int, end: int, others: dict[str, str]) -> Iterator[Edits]:
    for match in re.compile(r"\b(\w+)(?=\s*\()").finditer(plain, begin, end):
        if match[1] in others:
            yield (Edit(match.start(1), match.end(1), others[match[1]]),)


def _closing(plain: str, opened: int, end: int) -> int:
    """Offset of the bracket that closes the one at ``opened``; ``end`` where none does."""
    depth = 0
    for at in range(opened, end):
        depth += (plain[at] in "([{") - (plain[at] in ")]}")
        if depth == 0:
            return at
    return end


def _split(plain: str, begin: int, end: int, separator: str) -> list[tuple[int, int]]:
    """The spans between separators that stand in no brackets."""
    spans, depth, start = [], 0, begin
    for at in range(begin, end):
        depth += (plain[at] in "([{") - (plain[at] in ")]}")
        if plain[at] == separator and depth == 0:
            spans.append((start, at))
            start = at + 1
    return [*spans, (start, end)]
