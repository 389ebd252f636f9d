"""The outline of Python tells what the parser tells of the whole: where functions are, and what decorates them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import smith
from smith.mine import kernels, rules
from smith.mine.python_skeleton import skeleton

RULES = rules.load()
Places = list[tuple[str, list[str], int, int | None]]


def places(text: str) -> Places:
    """Every function and class that is decorated or holds one that is, with its decorators and lines."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    found = [node for node in ast.walk(ast.parse(text)) if isinstance(node, kinds)]
    telling = [one for one in found if any(getattr(node, "decorator_list", None) for node in ast.walk(one))]
    return [(one.name, [*map(ast.unparse, one.decorator_list)], one.lineno, one.end_lineno) for one in telling]


SIMPLE = st.sampled_from(
    [
        "x = 1",
        "x = f(a,\n    b)  # ) not here",
        '"""words\ndef no(): pass\n@no\n"""',
        "y = '#' + \"'\" # '",
        "z = [\n  (1, {2: '''\n)'''})]",
        "a = 1; b = 2",
        "w = 1 + \\\n    2",
        "match = case = 3",
        "return_ = lambda: 0",
        "# only a comment",
        "",
        "s = r'\\'' + '\\''",
    ]
)
HEADS = st.sampled_from(
    [
        "def f(a, b=(1,\n  2)):",
        "@d.e(x=[1,\n2])\ndef g():",
        "class A(B):",
        "if x:",
        "async def h():",
        "for i in (1,\n2):",
        "with a as b:",
        "@d\n# between\n@e\nclass C:",
        "while '#':",
        "try:",
    ]
)


@st.composite
def suites(draw: st.DrawFn, depth: int = 3) -> list[str]:
    """Lines of a block; what stands in a long string or in brackets is not indented."""
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 4))):
        if depth and draw(st.booleans()):
            head = draw(HEADS)
            lines += [head, *(_indented(line) for line in draw(suites(depth - 1)))]
            if head == "try:":
                lines += ["except E:", *(_indented(line) for line in draw(suites(depth - 1)))]
            elif head == "if x:" and draw(st.booleans()):
                lines += ["else:", *(_indented(line) for line in draw(suites(depth - 1)))]
        else:
            lines.append(draw(SIMPLE))
    return [*lines, "last = 0"]


def _indented(line: str) -> str:
    heads = [part for part in line.split("\n") if part.lstrip().startswith(("@", "def", "class", "#", "async"))]
    if line.lstrip().startswith("@"):  # decorators and what they decorate stand in lines of their own
        return "\n".join(f"  {part}" if part in heads else part for part in line.split("\n"))
    return f"  {line}"


@given(suites())
def test_an_outline_has_the_functions_of_the_whole(lines: list[str]) -> None:
    text = "\n".join(lines)
    outline = skeleton(text)
    assert outline is not None
    assert outline.count("\n") == text.count("\n") + 1
    assert places(outline) == places(text)


def test_outlines_of_real_files() -> None:
    whole = []
    for path in sorted(Path(smith.__file__).parent.rglob("*.py")):
        text = path.read_text("utf-8")
        outline = skeleton(text)
        if outline is None:
            whole.append(path)  # deep brackets: such a file is parsed as it is
            continue
        assert places(outline) == places(text), path
        assert len(outline) < len(text)
    assert len(whole) < 5, whole


@pytest.mark.parametrize(
    "text", ["x = (1\n", "x = '\n", '"""\n', "x = )\n", "x = 1\n\f\ny = 2\n", "((((((((0))))))))\n"]
)
def test_what_cannot_be_told_apart_is_left_to_the_parser(text: str) -> None:
    assert skeleton(text) is None


@pytest.mark.parametrize(
    "text", ["(" * 20_000, "'" * 20_001, '"""' + "a'" * 20_000, "x = [\n" * 5_000, "\\\n" * 20_000]
)
def test_hostile_text_takes_no_time(text: str) -> None:
    assert skeleton(text) is None or text.startswith("\\")


def test_kernels_in_functions_are_found_whatever_stands_around_them() -> None:
    text = (
        "import triton\n\ndef build(n):\n    words = '''\n@triton.jit\ndef no(): pass\n'''\n    if n:\n"
        "        @triton.jit\n        def inner(x,\n  y):\n            a = (1,\n2)\n            # end\n        b = 1\n"
        "    else:\n        @triton.jit\n        def other(x): return (x,\n    1)\n    return inner\n"
    )
    found = kernels.read(text.encode(), "pkg/ops/x.py", RULES).kernels
    assert set(found) == {"build.inner", "build.other"}
    assert found["build.inner"].text == "        @triton.jit\n        def inner(x,\n  y):\n            a = (1,\n2)\n"
    assert found["build.other"].text == "        @triton.jit\n        def other(x): return (x,\n    1)\n"
