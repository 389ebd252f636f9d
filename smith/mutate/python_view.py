"""A Python file as operators see it: syntax with offsets, what names stand for, and what around a node matters."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from smith.mine.python_source import imported_names
from smith.mutate.edits import Edit

Function = ast.FunctionDef | ast.AsyncFunctionDef

_LANGUAGE = ("triton.language", "triton.experimental.gluon")
_HEADS = ("tl", "gl", "ttgl")
_HINTS = frozenset(
    {
        "static_assert", "static_print", "device_assert", "device_print", "assume", "multiple_of", "max_contiguous",
        "max_constancy", "print", "warn",
    }
)  # fmt: skip
"""Calls that compute nothing: a fault in one is no fault of the kernel."""
_PLUMBING = frozenset(
    {
        "stride", "size", "program_id", "num_programs", "arange", "view", "reshape", "permute", "transpose", "trans",
        "expand", "expand_dims", "unsqueeze", "squeeze", "flatten", "split", "broadcast_to", "zeros", "ones", "full",
        "empty", "dim",
    }
)  # fmt: skip
"""Calls whose constants are shapes and numbers of axes: another one is an error at once, and tells nothing."""
_PLUMBING_KEYWORDS = frozenset(
    {"axis", "dim", "dims", "num_stages", "num_warps", "num_ctas", "keepdim", "keep_dims", "loop_unroll_factor"}
)
_OPERATOR = re.compile(r"#[^\n]*|(<=|>=|==|!=|//|<<|>>|\*\*|[<>+\-*/%])")


@dataclass
class View:
    """One parsed file. ``parents`` are filled for the functions that were entered with :meth:`nodes`."""

    text: str
    names: Mapping[str, str]
    starts: list[int]
    lines: list[str]
    parents: dict[ast.AST, ast.AST] = field(default_factory=dict)

    @classmethod
    def of(cls, text: str) -> View:
        """The view of a file."""
        lines = text.split("\n")
        starts = [0]
        for line in lines:
            starts.append(starts[-1] + len(line) + 1)
        return cls(text, imported_names(text), starts, lines)

    def nodes(self, function: Function) -> Iterator[ast.AST]:
        """Every node of a function's body that computes something: no annotation, decorator, docstring, hint or inner
        function."""
        for statement in function.body:
            self.parents[statement] = function
            yield from self._below(statement)

    def _below(self, node: ast.AST) -> Iterator[ast.AST]:
        if isinstance(node, Function | ast.ClassDef | ast.Lambda | ast.Raise | ast.Assert | ast.JoinedStr):
            return
        if isinstance(node, ast.Import | ast.ImportFrom) or (isinstance(node, ast.Expr) and is_text(node.value)):
            return
        if isinstance(node, ast.Call) and last_name(node.func) in _HINTS:
            return
        yield node
        for name, child in ast.iter_fields(node):
            if name == "annotation":
                continue
            for one in child if isinstance(child, list) else [child]:
                if isinstance(one, ast.AST):
                    self.parents[one] = node
                    yield from self._below(one)

    # -- where a node stands ----------------------------------------------------------------------------------------

    def begin(self, node: ast.AST) -> int:
        """Offset of a node's first character."""
        return self._offset(node.lineno, node.col_offset)  # type: ignore[attr-defined]

    def end(self, node: ast.AST) -> int:
        """Offset behind a node's last character."""
        return self._offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]

    def _offset(self, line: int, column: int) -> int:
        text = self.lines[line - 1]
        if not text.isascii():  # columns count bytes
            column = len(text.encode()[:column].decode())
        return self.starts[line - 1] + column

    def source(self, node: ast.AST) -> str:
        """A node's own text."""
        return self.text[self.begin(node) : self.end(node)]

    def replaced(self, node: ast.AST, text: str) -> Edit:
        """The edit that puts ``text`` in the place of a node."""
        return Edit(self.begin(node), self.end(node), text)

    def between(self, left: ast.AST, right: ast.AST, operator: str, text: str) -> Edit | None:
        """The edit that replaces an operator between two nodes; None where it is not found there."""
        for match in _OPERATOR.finditer(self.text, self.end(left), self.begin(right)):
            if match[1]:
                return Edit(match.start(1), match.end(1), text) if match[1] == operator else None
        return None

    # -- what it means ----------------------------------------------------------------------------------------------

    def dotted(self, node: ast.AST) -> str:
        """What a name or attribute stands for (``triton.language.load``); empty for other expressions."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        return ".".join([self.names.get(node.id, node.id), *reversed(parts)])

    def is_language(self, node: ast.AST) -> bool:
        """Whether a name or attribute is of the kernel language (``tl.load``)."""
        full = self.dotted(node)
        return full.startswith(_LANGUAGE) or full.partition(".")[0] in _HEADS

    def is_plumbing(self, node: ast.AST) -> bool:
        """Whether a node is (part of) a shape, an index of an axis, or an option of the compiler."""
        while not isinstance(node, ast.stmt):
            parent = self.parents[node]
            if isinstance(parent, ast.keyword) and parent.arg in _PLUMBING_KEYWORDS:
                return True
            if isinstance(parent, ast.Subscript) and node is parent.slice:
                return True
            if isinstance(parent, ast.Call) and node is not parent.func and last_name(parent.func) in _PLUMBING:
                return True
            node = parent
        return False


def last_name(node: ast.AST) -> str:
    """The last part of a dotted name; empty for other expressions."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def is_text(node: ast.AST) -> bool:
    """Whether a node is a string or builds one."""
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def number(node: ast.AST | None) -> int | float | None:
    """The value of a literal number, with its sign; None for everything else."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = number(node.operand)
        return None if value is None else -value
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return node.value  # type: ignore[return-value]
    return None


def argument(call: ast.Call, name: str, position: int) -> ast.expr | None:
    """An argument by its keyword or its place; None where it is not given, or hidden behind a star."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    before = call.args[: position + 1]
    if len(before) <= position or any(isinstance(one, ast.Starred) for one in before):
        return None
    return before[position]
