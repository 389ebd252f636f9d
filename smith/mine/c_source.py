"""Kernels in C-like files: functions that their header (or body) marks as device code or as a loop nest."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from smith.mine import c_functions, c_lexical
from smith.mine.remembered import Remembered
from smith.mine.rules import SourceRule
from smith.mine.source import NOTHING, Kernel, Source

_INCLUDE = re.compile(r"#[ \t]*include[ \t]*[<\"]([^>\"\n]+)")
_ENTRY = re.compile(r"\b(?:__global__|[A-Z_]+_(?:GLOBAL|KERNEL))\b")
# Languages whose entries have a word of their own.
_KERNEL_WORD = {"opencl": re.compile(r"\b(?:__)?kernel\b"), "metal": re.compile(r"\bkernel\b")}
_WORD = re.compile(r"\w+")
_COLONS = re.compile(r":{3,}")
# A macro of one line: longer ones define functions.
_SPECIFIER_MACRO = re.compile(
    r"#[ \t]*define[ \t]+(?P<name>\w+)[ \t]+(?P<body>[^\n{;(]*__(?:device|global)__[^\n{;]*)\Z"
)
_ASSEMBLY = (".s", ".asm", ".sass", ".ptx")
_ASSEMBLY_NAME = re.compile(
    r"^[ \t]*\.(?P<how>globl|global|amdhsa_kernel|entry|visible[ \t]+\.entry)[ \t]+(?P<name>[\w.$]+)", re.MULTILINE
)


@dataclass(frozen=True)
class Memory:
    """What was read of earlier files and is likely to be in later ones: parts of text, and only so many bytes."""

    lexed: c_lexical.Pieces = field(default_factory=lambda: Remembered(2 << 20))
    declared: c_functions.Pieces = field(default_factory=lambda: Remembered(2 << 20))
    likely: Remembered[str, bool] = field(default_factory=lambda: Remembered(2 << 20))
    """Paths of files that held kernels."""


def read(text: str, path: str, rules: Sequence[SourceRule], memory: Memory | None = None) -> Source:
    """The kernels of a C-like file at ``path``; overloads and specializations are joined under one name.

    With ``memory``, reading further versions of a file takes a fraction of the time, with the same result.
    """
    if path.lower().endswith(_ASSEMBLY):
        return _assembly(text)
    matching = _matching(text, path, rules, memory)
    if matching is None:
        return NOTHING
    rule, lexed = matching
    kernels: dict[str, Kernel] = {}
    for one, entry in _kernels(rule, lexed, memory):
        kernel = _kernel(rule.language, text[one.begin : one.end], *_rest_of_lines(text, one.begin, one.end), entry)
        earlier = kernels.get(one.name)
        kernels[one.name] = _joined(earlier, kernel) if earlier else kernel
    if memory and kernels:
        memory.likely.keep(path.lower(), True, 100 + len(path))
    return Source(rule.language, kernels) if kernels else NOTHING


@dataclass(frozen=True)
class Located:
    """One kernel where it stands: offsets of its first specifier, of its opening brace, and behind the closing one."""

    name: str
    language: str
    begin: int
    body: int
    end: int


def locate(text: str, path: str, rules: Sequence[SourceRule]) -> list[Located]:
    """Every kernel of a C-like file with its place, in order; overloads are listed each. Assembly has none."""
    matching = None if path.lower().endswith(_ASSEMBLY) else _matching(text, path, rules, None)
    if matching is None:
        return []
    rule, lexed = matching
    found = (one for one, _ in _kernels(rule, lexed, None))
    return [Located(one.name, rule.language, one.begin, one.body, one.end) for one in found]


def _matching(
    text: str, path: str, rules: Sequence[SourceRule], memory: Memory | None
) -> tuple[SourceRule, c_lexical.Text] | None:
    """The rule that a file fits and its text in parts; None where it holds no kernels."""
    where = path.lower()
    # Most files hold no kernels, and their text with its comments tells so already.
    if not (memory and memory.likely.get(where)):
        includes = _INCLUDE.findall(text)
        if not any(_loosened(rule).matches(where, text, includes) and _marked(rule, text) for rule in rules):
            return None
    lexed = c_lexical.lex(text, memory.lexed if memory else None)
    includes = _INCLUDE.findall(lexed.words)
    rule = next((rule for rule in rules if rule.matches(where, lexed.words, includes)), None)
    return (rule, lexed) if rule is not None and _marked(rule, lexed.words) else None


def _kernels(
    rule: SourceRule, lexed: c_lexical.Text, memory: Memory | None
) -> Iterator[tuple[c_functions.Function, bool]]:
    """Each kernel by the rule, and whether the host launches it."""
    own = _own_specifiers(lexed)
    entry = _KERNEL_WORD.get(rule.language, _ENTRY)
    pieces = memory.declared if memory else None
    for one in c_functions.functions(lexed, words=rule.language in _KERNEL_WORD, pieces=pieces):
        header = lexed.plain[one.begin : one.body]
        specifiers = [own[word] for word in _WORD.findall(header) if word in own] if own else []
        if specifiers or rule.is_kernel(header, lexed.plain[one.body : one.end]):
            named = one._replace(name=_COLONS.sub("::", one.name))
            yield named, any(specifiers) or entry.search(header) is not None


@lru_cache
def _loosened(rule: SourceRule) -> SourceRule:
    """What a file's text with its comments must fulfil for ``rule``: a comment can only add what must be lacking."""
    return replace(rule, lacks_includes=None, lacks_words=())


def _marked(rule: SourceRule, text: str) -> bool:
    if rule.always is not None and rule.always.search(text):
        return True
    return rule.kernel.search(text) is not None and (rule.body is None or rule.body.search(text) is not None)


def _own_specifiers(lexed: c_lexical.Text) -> dict[str, bool]:
    """Macros of this file that stand for ``__device__`` or ``__global__``, and whether for the latter."""
    own: dict[str, bool] = {}
    for one in lexed.directives:
        if one.word == "define" and (match := _SPECIFIER_MACRO.match(lexed.raw, one.begin, one.end)):
            own[match["name"]] = "__global__" in match["body"]
    return own


def _rest_of_lines(text: str, begin: int, end: int) -> tuple[str, str]:
    """What stands before and after a definition on its first and last line."""
    line_end = text.find("\n", end)
    return text[text.rfind("\n", 0, begin) + 1 : begin], text[end : len(text) if line_end < 0 else line_end + 1]


@lru_cache(maxsize=2048)
def _kernel(language: str, definition: str, before: str, after: str, entry: bool) -> Kernel:
    """One kernel, and the same object for the same definition: versions of a file share most of theirs."""
    return Kernel(language, before + definition + after, entry, ((len(before), len(before) + len(definition)),))


def _joined(one: Kernel, other: Kernel) -> Kernel:
    there = len(one.text)
    more = ((there + begin, there + end) for begin, end in other.definitions)
    return Kernel(one.language, one.text + other.text, one.entry or other.entry, (*one.definitions, *more))


def _assembly(text: str) -> Source:
    """Every entry of an assembly file, each with the whole file: what belongs to which cannot be told."""
    names: dict[str, bool] = {}
    for match in _ASSEMBLY_NAME.finditer(text):
        names[match["name"]] = names.get(match["name"], False) or not match["how"].startswith("glob")
    whole = {entry: Kernel("asm", text, entry) for entry in (True, False)}
    return Source("asm", {name: whole[entry] for name, entry in (names or {"<file>": False}).items()})
