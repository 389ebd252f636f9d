"""Take the bodies of kernels out of their files: signature, decorators and docstring stay, and what takes a body's
place compiles, imports, and fails loudly as soon as the kernel runs or is compiled for a GPU.

Found by the parsers that mining names kernels with, so what is emptied is what a candidate says has changed.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from smith.mine import c_source, python_source
from smith.mine.rules import Rules
from smith.records.base import Reason
from smith.records.candidate import KernelChange

_ASSERTS = ("triton.language", "triton.experimental.gluon.language")
"""Modules whose ``static_assert`` the compiler and the interpreter both know."""
_PYTHON = frozenset({"triton", "gluon"})
"""Python languages whose functions are compiled at the first launch. Others are parsed when the module is imported, so
that nothing that fails can stand in them."""
_C_LIKE = frozenset({"native", "hip", "cuda", "ck"})
_FIXED_BY_BODY = re.compile(r"\b(?:constexpr|consteval)\b|\bauto\b(?![^{]*->)")
_GPU_ONLY = re.compile(r"__(?:global|device)__")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(if|el|endif)", re.MULTILINE)


@dataclass(frozen=True)
class Emptied:
    """New contents by path, and the kernels whose bodies are gone: by file and language."""

    files: Mapping[str, bytes]
    kernels: tuple[KernelChange, ...]


class _Fixed(Exception):
    """A body that cannot be taken out, and why."""


def empty(kernels: Iterable[KernelChange], contents: Mapping[str, bytes | None], rules: Rules) -> Emptied | Reason:
    """Take out the bodies of ``kernels``, as far as ``contents`` (path to file) have them.

    A :class:`Reason` where none is there (``no_kernel_left``), or one cannot be taken out without harm to what stands
    around it (``body_is_fixed``).
    """
    files: dict[str, bytes] = {}
    found: list[KernelChange] = []
    for kernel in kernels:
        data = contents.get(kernel.path)
        if data is None or not kernel.code:
            continue
        try:
            text, crlf = _decoded(data)
            if kernel.path.lower().endswith(".py"):
                changed, names = _python(text, kernel.code, rules)
            else:
                changed, names = _c_like(text, kernel.path, kernel.code, rules)
        except _Fixed as fixed:
            return Reason(code="body_is_fixed", detail=f"{kernel.path}: {fixed}")
        if names:
            files[kernel.path] = (changed.replace("\n", "\r\n") if crlf else changed).encode("utf-8")
            found += [
                KernelChange(path=kernel.path, language=language, symbols=tuple(n for n, of in names if of == language))
                for language in dict.fromkeys(of for _, of in names)
            ]
    if not files:
        there = ", ".join(kernel.path for kernel in kernels) or "none"
        return Reason(
            code="no_kernel_left",
            detail=f"no kernel whose code changed is in source after the merge: {there}",
        )
    return Emptied(files, tuple(found))


def _decoded(data: bytes) -> tuple[str, bool]:
    """The text with ``\\n`` as line end, and whether its line ends are ``\\r\\n``."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _Fixed("is not UTF-8") from error
    crlf = "\r\n" in text
    if crlf and text.count("\r\n") != text.count("\n"):
        raise _Fixed("mixes line ends")
    text = text.replace("\r\n", "\n")
    if "\r" in text:
        raise _Fixed("mixes line ends")
    return text, crlf


# -- Python -------------------------------------------------------------------------------------------------------


def _python(text: str, wanted: Collection[str], rules: Rules) -> tuple[str, list[tuple[str, str]]]:
    """``text`` with the bodies of the kernels ``wanted`` replaced, and their names and languages."""
    located = [one for one in python_source.locate(text, rules.decorators) if one.name in wanted]
    for one in located:
        if one.language not in _PYTHON:
            raise _Fixed(f"{one.name} is in {one.language}, whose functions are read when the module is imported")
    lines = _LINE.findall(text)
    last = len(lines) + 1
    for one in reversed(located):
        node = one.node
        if (node.end_lineno or 0) >= last:
            continue  # inside of a kernel that was emptied already
        last = node.lineno
        first, head = node.body[0], _header_end(lines, node.lineno)
        end = _with_comments(lines, node.end_lineno or head, node.col_offset)
        if first.lineno == head:  # def kernel(X): pass
            lines[head - 1] = _until(lines[head - 1], first.col_offset).rstrip() + "\n"
            lines[head:end] = [_python_stub(text, one, _until(lines[node.lineno - 1], node.col_offset) + "    ")]
            continue
        begin = python_source.docstring_end(node) or head
        if begin > head:  # nothing may stand behind the docstring
            lines[begin - 1] = _until(lines[begin - 1], first.end_col_offset or 0) + "\n"
        lines[begin:end] = [_python_stub(text, one, _until(lines[first.lineno - 1], first.col_offset))]
    names = dict.fromkeys((one.name, one.language) for one in located)
    return "".join(lines), list(names)


def _python_stub(text: str, one: python_source.Located, indentation: str) -> str:
    """A static assertion: the compiler refuses it, and the interpreter raises it where the kernel is launched."""
    names = python_source.imported_names(text)
    module = next((name for name, means in names.items() if means in _ASSERTS), None)
    if module is None and "triton" in names and one.language == "triton":
        module = "triton.language"
    # Where a module of the upstream's own hands Triton's language on, it keeps the name that everybody gives it.
    module = module or next((name for name in ("tl", "gl", "ttgl") if name in names), None)
    if module is None:
        raise _Fixed(f"{one.name}: nothing in the file names the language's module")
    return f'{indentation}{module}.static_assert(False, "the body of {one.name} is not written yet")\n'


def _header_end(lines: list[str], begin: int) -> int:
    """The line (from 1) with the colon that ends the header of the function that begins at line ``begin``."""
    depth = 0
    for token in tokenize.generate_tokens(io.StringIO("".join(lines[begin - 1 :])).readline):
        if token.type == tokenize.OP:
            depth += (token.string in "([{") - (token.string in ")]}")
            if token.string == ":" and depth == 0:
                return begin - 1 + token.start[0]
    raise _Fixed(f"the function at line {begin} has no end of its header")


def _until(line: str, column: int) -> str:
    """A line up to a column of a syntax tree, which counts bytes."""
    return line.encode("utf-8")[:column].decode("utf-8")


def _with_comments(lines: list[str], end: int, column: int) -> int:
    """The end of a body with the comments that follow it, indented as it is: they speak of it."""
    at = end
    while at < len(lines):
        line = lines[at]
        ink = line.lstrip()
        if ink and not (ink.startswith("#") and len(line) - len(ink) > column):
            break
        at += 1
        if ink:
            end = at
    return end


# -- C, C++, HIP, CUDA --------------------------------------------------------------------------------------------


def _c_like(text: str, path: str, wanted: Collection[str], rules: Rules) -> tuple[str, list[tuple[str, str]]]:
    located = [one for one in c_source.locate(text, path, rules.sources) if one.name in wanted]
    last = len(text) + 1
    for one in reversed(located):
        if one.language not in _C_LIKE:
            raise _Fixed(f"{one.name} is in {one.language}, in which nothing known fails loudly")
        if one.end > last:
            continue
        header, body = text[one.begin : one.body], text[one.body : one.end]
        if _FIXED_BY_BODY.search(header):
            raise _Fixed(f"{one.name} is constexpr or deduces its type: without its body it is another function")
        _check_conditionals(one.name, body)
        text = text[: one.body] + _c_stub(one, header) + text[one.end :]
        last = one.begin
    return text, list(dict.fromkeys((one.name, one.language) for one in located))


def _c_stub(one: c_source.Located, header: str) -> str:
    trap = "__builtin_trap"
    if one.language == "cuda" and _GPU_ONLY.search(header):
        if "__host__" in header:
            raise _Fixed(f"{one.name} is for host and device, and no one trap is known to both")
        trap = "__trap"
    return f"{{\n    {trap}();  /* the body of {one.name} is not written yet */\n}}"


def _check_conditionals(name: str, body: str) -> None:
    """Raise where a conditional of the preprocessor begins inside of a body and ends outside, or the other way."""
    depth = 0
    for match in _DIRECTIVE.finditer(body):
        depth += {"if": 1, "endif": -1}.get(match[1], 0)
        if depth < 0 or (match[1] == "el" and depth == 0):
            break
    else:
        if depth == 0:
            return
    raise _Fixed(f"a conditional of the preprocessor crosses the body of {name}")
