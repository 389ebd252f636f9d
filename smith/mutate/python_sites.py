"""Where and how a Python file can be made wrong: every operator at every node of kernels and other functions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator

from smith.mine import python_source
from smith.mine.rules import Rules
from smith.mutate import python_memory, python_values
from smith.mutate.edits import Edit, Site
from smith.mutate.python_view import Function, View
from smith.syntax import parse

Operator = Callable[[View, ast.AST, Function], Iterator[tuple[Edit, ...]]]

OPERATORS: tuple[Operator, ...] = (
    python_memory.mask_removed,
    python_memory.boundary_shifted,
    python_memory.loop_shortened,
    python_memory.stride_swapped,
    python_memory.atomic_made_plain,
    python_memory.barrier_removed,
    python_values.accumulator_lowered,
    python_values.axis_changed,
    python_values.epsilon_changed,
    python_values.sign_flipped,
    python_values.plus_and_minus,
    python_values.times_and_by,
    python_values.constant_shifted,
    python_values.condition_negated,
    python_values.function_confused,
    python_values.extreme_confused,
)
INVISIBLE = {"interpreter": frozenset({"barrier_removed"})}
"""Operators whose faults a kind of device can never show."""


def sites(text: str, rules: Rules, kernels: Collection[str], lines: Collection[int], device: str) -> list[Site]:
    """Every site in the kernels named, in those with one of ``lines``, and in functions that are no kernels; empty
    where the file does not parse.

    Other kernels are left alone: the reference did not change them.
    """
    tree = parse(text)
    if tree is None:
        return []
    # Both parse the same text, so that a position names the same function.
    located = {(k.node.lineno, k.node.col_offset): k.name for k in python_source.locate(text, rules.decorators)}
    view = View.of(text)
    found: list[Site] = []
    for function in (node for node in ast.walk(tree) if isinstance(node, Function)):
        name = located.get((function.lineno, function.col_offset), "")
        span = range(function.lineno, (function.end_lineno or function.lineno) + 1)
        if not name or name in kernels or any(line in span for line in lines):
            found += _of_function(view, function, name, INVISIBLE.get(device.partition(":")[0], frozenset()))
    return found


def _of_function(view: View, function: Function, kernel: str, invisible: frozenset[str]) -> Iterator[Site]:
    for node in list(view.nodes(function)):
        for operator in OPERATORS:
            if operator.__name__ not in invisible:
                for edits in operator(view, node, function):
                    yield Site(operator.__name__, edits, kernel)
