"""Kernels in C-like files: functions that their header (or body) marks as device code or as a loop nest.

A scanner of braces over text without comments, strings and preprocessor lines; it understands namespaces, classes and
``extern "C"`` blocks, and treats what it does not understand as no kernel.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from smith.mine.rules import SourceRule
from smith.mine.source import NOTHING, Kernel, Source

_NOISE = re.compile(r"""//(?:[^\n\\]|\\.)*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)'""", re.DOTALL)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\\n|\\.)*", re.MULTILINE)
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"]([^>\"\n]+)", re.MULTILINE)
_STOP = re.compile(r"[{};]")
_ATTRIBUTE = re.compile(r"\b(?:__\w+__|alignas|noexcept|decltype|requires|[A-Z][A-Z0-9_]+)\s*\((?:[^()]|\([^()]*\))*\)")
_FUNCTION = re.compile(r"(~?[A-Za-z_]\w*(?:\s*::\s*~?[A-Za-z_]\w*)*|operator\s*[^\s\w(]+|operator\s*\(\s*\))\s*\(")
_SCOPE = re.compile(r"\b(namespace|struct|class|union)\b(?:\s+[A-Z_]+(?:\([^)]*\))?)?\s+([A-Za-z_][\w:]*)[^()=]*\Z")
_ANGLE = re.compile(r"[<>]")
_TEMPLATE = re.compile(r"^\s*template\s*<")
_NOT_FUNCTIONS = frozenset({"if", "for", "while", "switch", "catch", "return", "sizeof", "defined"})
_BLANK = re.compile(r"\s+")
_ASSEMBLY_NAME = re.compile(r"^\s*\.(?:globl|global|amdhsa_kernel|entry|visible\s+\.entry)\s+([\w.$]+)", re.MULTILINE)


def read(text: str, path: str, rules: Sequence[SourceRule]) -> Source:
    """The kernels of a C-like file at ``path``."""
    if path.lower().endswith((".s", ".asm", ".sass")):
        return _assembly(text)
    plain = without_comments(text)
    includes = _INCLUDE.findall(plain)
    rule = next((rule for rule in rules if rule.matches(path.lower(), plain, includes)), None)
    if rule is None:
        return NOTHING
    kernels: dict[str, Kernel] = {}
    for name, header, body in _functions(_DIRECTIVE.sub("", _without_strings(plain))):
        if rule.kernel.search(header) and (rule.body is None or rule.body.search(body)):
            definition = _BLANK.sub(" ", f"{header}{{{body}}}").strip()
            # Overloads share a name; their texts are joined.
            earlier = kernels.get(name)
            kernels[name] = Kernel(rule.language, f"{earlier.text} {definition}" if earlier else definition)
    return Source(rule.language, kernels) if kernels else NOTHING


def without_comments(text: str) -> str:
    """``text`` without comments; strings stay, since an include is one."""
    return _NOISE.sub(lambda match: " " if match[0].startswith("/") else match[0], text)


def _without_strings(text: str) -> str:
    """Braces and semicolons in strings would mislead the scanner; their content still tells changes apart."""
    return _NOISE.sub(lambda match: re.sub(r"[{};#]", "\x1a", match[0]), text)


def _functions(text: str) -> Iterator[tuple[str, str, str]]:
    """Qualified name, header and body of every function definition outside of other functions."""
    scopes: list[str] = []
    begin = 0
    stops = _STOP.finditer(text)
    for stop in stops:
        if stop[0] == "{":
            header = text[begin : stop.start()]
            name = _function_name(header)
            if name is None:
                scope = _SCOPE.search(header)
                scopes.append(scope[2] if scope else "")
                begin = stop.end()
                continue
            end = _end_of_body(stops)
            body = text[stop.end() : end if end is not None else len(text)]
            yield "::".join([*(scope for scope in scopes if scope), name]), header, body
            begin = len(text) if end is None else end + 1
            continue
        if stop[0] == "}" and scopes:
            scopes.pop()
        begin = stop.end()


def _end_of_body(stops: Iterator[re.Match[str]]) -> int | None:
    depth = 1
    for stop in stops:
        depth += {"{": 1, "}": -1, ";": 0}[stop[0]]
        if depth == 0:
            return stop.start()
    return None


def _function_name(header: str) -> str | None:
    plain = _ATTRIBUTE.sub(" ", _after_template(header))
    match = _FUNCTION.search(plain)
    if not match or "=" in plain[: match.start()]:
        return None
    name = _BLANK.sub("", match[1])
    return None if name in _NOT_FUNCTIONS else name


def _after_template(header: str) -> str:
    """The header without its ``template <...>``, whose defaults may hold parentheses."""
    while match := _TEMPLATE.match(header):
        depth, end = 1, len(header)
        for bracket in _ANGLE.finditer(header, match.end()):
            depth += 1 if bracket[0] == "<" else -1
            if depth == 0:
                end = bracket.end()
                break
        header = header[end:]
    return header


def _assembly(text: str) -> Source:
    plain = _BLANK.sub(" ", re.sub(r"(?://|;|#)[^\n]*", "", text))
    names = _ASSEMBLY_NAME.findall(text) or ["<file>"]
    return Source("asm", {name: Kernel("asm", plain) for name in dict.fromkeys(names)})
