"""Device code in C++: what clang says of a file, and the kernels in the assembly that it gives.

Nothing is linked, so a kernel that calls a function of ROCm's device library which the stand-in headers do not have is
told without figures: its registers hang on what it calls.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from typing import Any

from smith.device.compiler import amd

DETAIL = 600
_ERROR = re.compile(
    r"(?:^|\n)(?P<where>[^\n]*?): (?:fatal )?error: (?P<words>[^\n]*?)(?: \[(?P<category>[A-Z][\w ]+)\])?(?=\n|$)"
)
_MISSING = re.compile(r"'([^']+)' file not found")
_METADATA = re.compile(r"^amdhsa\.kernels:\n(?P<kernels>.*?)^amdhsa\.\w+:", re.MULTILINE | re.DOTALL)
_ENTRY = re.compile(r"^  - ", re.MULTILINE)
_NAME = re.compile(r"^    \.name:\s+'?([^\s']+)", re.MULTILINE)
_NUMBER = r"^(?:  - |    )\.{}:\s+(\d+)"
_PLAIN = re.compile(r"_Z(\d+)")
_CALLED = re.compile(r"\b([A-Za-z_]\w*)@(?:gotpcrel32|rel32)@lo")
_FRONT = frozenset(
    {"Semantic Issue", "Parse Issue", "Lexical or Preprocessor Issue", "CUDA Semantic Issue", "Inline Assembly Issue"}
)
"""Assembly of another vendor is mostly behind a macro that only the project's build sets."""


def reason_of(said: str, status: int, *, stand_ins: bool) -> tuple[str, str]:
    """Code (of ``smith.records.compiled_files``) and detail of a compilation that failed.

    Clang names the kind of each error. Where stand-in headers were used, an error of meaning may be theirs, and says
    nothing about the file; one of spelling alone does.
    """
    errors = [(m["where"], m["words"], m["category"] or "") for m in _ERROR.finditer(said)]
    missing = next((found[1] for _, words, _ in errors if (found := _MISSING.search(words))), None)
    if missing is not None:
        return "missing_header", missing[:DETAIL]
    if status < 0 or "PLEASE submit a bug report" in said:
        return "crashed", _last(said)
    if not errors:
        return "crashed", f"status {status}: {_last(said)}"[:DETAIL]
    where, words, _ = errors[0]
    detail = f"{where}: {words}"[:DETAIL]
    kinds = {category for _, _, category in errors}
    if not kinds & _FRONT:
        return "back_end", detail
    if stand_ins and kinds & _FRONT != {"Parse Issue"}:
        return "stand_in", detail
    return "language", detail


def _last(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return lines[-1][:DETAIL] if lines else "it said nothing"


def kernels(assembly: str, arch: str, lds_limit: int) -> dict[str, dict[str, int]]:
    """Figures of every kernel in the assembly of one file, by name; none for those that call what is not here.

    Waves, and with them occupancy, are those of the largest workgroup that the kernel allows; LDS is what it has
    whatever the launch.
    """
    found: dict[str, dict[str, int]] = {}
    for symbol, entry in _entries(assembly):
        body = _body(assembly, symbol)
        defined = set(re.findall(r"^([A-Za-z_]\w*):", assembly, re.MULTILINE))
        figures: dict[str, int] = {}
        if not set(_CALLED.findall(body)) - defined:
            threads, wave = _number(entry, "max_flat_workgroup_size"), _number(entry, "wavefront_size") or 64
            waves = max(1, -(-(threads or wave) // wave))
            lds = _number(entry, "group_segment_fixed_size") or 0
            known = amd.facts(body + entry, arch, lds_bytes=lds, lds_limit=lds_limit, waves=waves)
            figures = {name: value for name, value in {**known, "waves": waves}.items() if value is not None}
        name = plain_name(symbol)
        if name in found:  # overloads: the largest of each, as of launches
            figures = {key: max(figures.get(key, 0), found[name].get(key, 0)) for key in figures | found[name]}
        found[name] = figures
    return found


def _entries(assembly: str) -> Iterator[tuple[str, str]]:
    metadata = _METADATA.search(assembly)
    for entry in _ENTRY.split(metadata["kernels"])[1:] if metadata else ():
        text = f"    {entry}"
        name = _NAME.search(text)
        if name is not None:
            yield name[1], text


def _body(assembly: str, symbol: str) -> str:
    """The code of one function, with the comments behind it."""
    begin = assembly.find(f"\n{symbol}:")
    if begin < 0:
        return ""
    end = assembly.find("; -- Begin function", begin)
    return assembly[begin : end if end >= 0 else len(assembly)]


def _number(entry: str, name: str) -> int | None:
    match = re.search(_NUMBER.format(name), entry, re.MULTILINE)
    return int(match[1]) if match else None


def plain_name(symbol: str) -> str:
    """A mangled name as it is written, without result type and parameters; itself where it cannot be read."""
    text = _demangled(symbol)
    if text == symbol and (plain := _PLAIN.match(symbol)):  # newer types than the C++ library here knows
        length, rest = int(plain[1]), symbol[plain.end() :]
        return rest[:length] if len(rest) > length and rest[length] != "I" else symbol
    if not text.endswith(")"):
        return text
    depth = 0
    for at in range(len(text) - 1, -1, -1):
        depth += (text[at] == ")") - (text[at] == "(")
        if depth == 0:
            text = text[:at]
            break
    # A template's name has its result type in front.
    return text.removeprefix("void ")


def _demangled(symbol: str) -> str:
    try:
        library: Any = ctypes.CDLL("libstdc++.so.6")
        library.__cxa_demangle.restype = ctypes.c_void_p
        status = ctypes.c_int()
        at = library.__cxa_demangle(symbol.encode(), None, None, ctypes.byref(status))
        if status.value != 0 or not at:
            return symbol
        text = ctypes.string_at(at).decode("utf-8", "replace")
        ctypes.CDLL(None).free(ctypes.c_void_p(at))
        return text
    except (OSError, AttributeError):
        return symbol
