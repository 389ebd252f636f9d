"""Versions of a C-like file share most of what is read of them, and are read as if each were the only one."""

from __future__ import annotations

from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smith.mine import c_functions, c_lexical, c_source, rules
from smith.mine.remembered import Remembered

RULES = rules.load()

FILE = """\
#pragma once
#include <hip/hip_runtime.h>
#define DINLINE __device__ __forceinline__

// The first of two.
namespace a {
/* A comment

   with a blank line { in it. */
template <typename T, int N>
__global__ void __launch_bounds__(256) first(T* x) {
  // one

  for (int i = 0; i < N; i++) { x[i] = '{'; }
#if defined(__gfx942__)
  if (x[0]) {
#else
  if (x[1]) {
#endif

    x[0] = 1;
  }
}

struct S {
  DINLINE S(int x) : a{x} { g(); }
  __device__ float m() const { return a; }

  float a;
};

static const int table[] = {1, 2};
DINLINE int helper(int x = {}) { return x; }

#if A
__global__ void both() { g(); }
#else

__global__ void both(int x) { h("a  {b"); }
#endif

extern "C" {
__global__ void plain() { g(); }
}

}  // namespace a

void launch() {
  a::first<<<1, 64>>>(x);

}
PYBIND11_MODULE(name, m) { m.def("launch", &launch); }
"""

JUNK = [
    *(
        "\n",
        "\n\n",
        "  ",
        "}\n",
        "{",
        "};\n",
        "(",
        ")",
        ";",
        ",",
        "=",
        "\\\n",
        "\\",
        "'",
        '"',
        "R",
        '"(',
        ')"',
        'R"(',
        "R(",
    ),
    *("//", "/*", "*/", "/* x */", "// y\n", "#", "#if B\n", "#else\n", "#endif\n", "#if 0\n", "#ifndef C\n"),
    *(
        "#define OTHER __device__\n",
        "#define ENTRY __global__\n",
        "#define X \\\n  1 \\\n\n",
        '#include "ck_tile/core.hpp"\n',
    ),
    *("namespace b {\n", "namespace {\n", "inline ", 'extern "C" ', "struct T {\n", "class ", "template <class T>\n"),
    *(
        "__device__ int one() { return 1; }\n",
        "OTHER void two() { g(); }\n",
        "ENTRY void three() {\n\n}\n",
        "MACRO(x)\n",
    ),
    *(
        "kernel ",
        "cudaStream_t",
        "cute::",
        "operator",
        "for (",
        "auto f = [] (int x) { return x; };\n",
        "\u00e9",
        "\U0001f600",
    ),
]
Edit = tuple[str, int, int, str]
EDITS: st.SearchStrategy[list[Edit]] = st.lists(
    st.tuples(
        st.sampled_from(["insert", "delete", "move", "cut"]),
        st.integers(0, len(FILE)),
        st.integers(0, 12),
        st.sampled_from(JUNK),
    ),
    min_size=1,
    max_size=6,
)
PATHS = st.sampled_from(["csrc/k.cu", "csrc/k.h", "k.hip", "k.cl", "k.metal", "csrc/k.cpp"])


def edited(text: str, edits: list[Edit]) -> str:
    """``text`` with characters inserted or taken away, and lines deleted or moved."""
    for what, where, much, junk in edits:
        lines = text.splitlines(keepends=True) or [""]
        line = where % len(lines)
        if what == "insert":
            at = where % (len(text) + 1)
            text = text[:at] + junk + text[at:]
        elif what == "cut":
            at = where % (len(text) + 1)
            text = text[:at] + text[at + much :]
        else:
            moved, rest = lines[line : line + much], lines[:line] + lines[line + much :]
            if what == "move":
                rest[much:much] = moved
            text = "".join(rest)
    return text


@given(st.lists(st.tuples(EDITS, PATHS), min_size=1, max_size=4))
def test_a_version_is_read_as_if_it_were_the_only_one(history: list[tuple[list[Edit], str]]) -> None:
    memory = c_source.Memory()
    text = FILE
    first: tuple[list[Edit], str] = ([], "csrc/k.cu")
    for edits, path in [first, *history]:
        text = edited(text, edits)
        assert c_source.read(text, path, RULES.sources, memory) == c_source.read(text, path, RULES.sources)


@given(st.lists(st.sampled_from([*JUNK, *FILE.splitlines(keepends=True)]), max_size=60).map("".join))
def test_text_is_lexed_by_pieces_as_in_one(text: str) -> None:
    pieces: c_lexical.Pieces = Remembered(1 << 20)
    whole = c_lexical.lex(text)
    assert c_lexical.lex(text, pieces) == whole
    assert c_lexical.lex(text, pieces) == whole


@given(EDITS, st.integers(0, 3))
def test_what_stands_before_changes_no_definition(edits: list[Edit], copies: int) -> None:
    text = "int first;\n" + edited(FILE, edits)
    before = "namespace c {\n__device__ int f() { return 1; }\n}\n" * copies + "MACRO(x) int y;\n"
    alone = c_functions.functions(c_lexical.lex(text))
    found = c_functions.functions(c_lexical.lex(before + text))
    moved = [
        one._replace(begin=one.begin + len(before), body=one.body + len(before), end=one.end + len(before))
        for one in alone
    ]
    assert found[copies:] == moved and [one.name for one in found[:copies]] == ["c::f"] * copies


Key = TypeVar("Key")
Value = TypeVar("Value")


class Recording(Remembered[Key, Value]):
    """Tells what it was given to keep."""

    def __init__(self) -> None:
        super().__init__(1 << 20)
        self.kept: list[Key] = []

    def keep(self, key: Key, value: Value, size: int) -> None:
        self.kept.append(key)
        super().keep(key, value, size)


def test_only_what_is_new_in_a_version_is_read() -> None:
    lexed: Recording[str, c_lexical.Piece] = Recording()
    declared: Recording[tuple[bytes, bool], c_functions.Definitions] = Recording()
    memory = c_source.Memory(lexed, declared)
    c_source.read(FILE, "csrc/k.cu", RULES.sources, memory)
    assert lexed.kept and declared.kept
    lexed.kept.clear()
    declared.kept.clear()
    old, new = "DINLINE int helper(int x = {}) { return x; }", "DINLINE int helper(int x = {}) { return x + 1; }"
    c_source.read(FILE.replace(old, new), "csrc/k.cu", RULES.sources, memory)
    assert ["return x + 1" in text for text in lexed.kept] == [True] and declared.kept == []
    c_source.read(FILE.replace(old, old.replace("int x", "long x")), "csrc/k.cu", RULES.sources, memory)
    assert [b"long x" in piece for piece, _ in declared.kept] == [True]


@pytest.mark.parametrize("many", [10, 1000])
def test_memory_is_bounded_and_keeps_what_was_used_last(many: int) -> None:
    memory: Remembered[int, str] = Remembered(100)
    memory.keep(-1, "too large", 101)
    for number in range(many):
        memory.keep(number, str(number), 10)
        assert memory.get(0) == "0"
    kept = [number for number in range(-1, many) if memory.get(number) is not None]
    assert kept[-1] == many - 1 and -1 not in kept and 10 <= len(kept) <= 20


def test_comments_with_blank_lines_cost_no_square() -> None:
    pieces: Recording[str, c_lexical.Piece] = Recording()
    text = "/*\n\n*/ " * 2000
    assert c_lexical.lex(text, pieces) == c_lexical.lex(text)
    assert sum(map(len, pieces.kept)) <= 2 * len(text)
