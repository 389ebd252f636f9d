"""What hidden tests demand besides names: data types, tolerances and the behaviours that their names state."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass

from smith.freeze.modules import last_name

_TYPES = {
    "float64": "float64", "double": "float64", "fp64": "float64",
    "float32": "float32", "float": "float32", "fp32": "float32",
    "float16": "float16", "half": "float16", "fp16": "float16",
    "bfloat16": "bfloat16", "bf16": "bfloat16",
    "int8": "int8", "i8": "int8", "uint8": "uint8", "int4": "int4", "i4": "int4",
    "fp8": "fp8", "fp4": "fp4", "fp4x2": "fp4", "mxfp4": "mxfp4", "mxfp8": "mxfp8",
    "float8_e4m3fn": "float8_e4m3fn", "float8_e4m3fnuz": "float8_e4m3fnuz",
    "float8_e5m2": "float8_e5m2", "float8_e5m2fnuz": "float8_e5m2fnuz",
}  # fmt: skip
"""Words for types that change what a kernel computes; those of indices and masks do not."""
_ORDER = list(dict.fromkeys(_TYPES.values()))
_HOLDERS = frozenset({"torch", "dtypes", "tl", "triton", "jnp", "np", "dtype", "types"})
_TOLERANCES = {
    "atol": "absolute",
    "rtol": "relative",
    "ratio": "error ratio",
    "err_ratio": "error ratio",
    "tol": "tolerance",
    "tolerance": "tolerance",
    "max_diff": "absolute",
}
_COMPARES = re.compile(
    r"(?:^|_)(?:all_?close|checkallclose|assert_?close|is_?close|verify_output)(?:$|_)", re.IGNORECASE
)
_EXACT = frozenset({"equal", "assert_equal", "array_equal", "assert_array_equal"})
_NOISE = frozenset(
    {"test", "tests", "correctness", "correct", "works", "basic", "simple", "case", "cases", "main", "all", "the"}
    | {"functional", "function", "module", "forward", "backward", "fwd", "bwd"}
)
_LEAST_WORDS = 2
_MOST_BEHAVIOURS = 10


@dataclass(frozen=True)
class Demands:
    """What was found, each list in a fixed order."""

    types: tuple[str, ...] = ()
    tolerances: tuple[str, ...] = ()
    """``absolute 1e-05 to 0.01``, ``relative 0.001``, ``exact equality``."""
    behaviours: tuple[str, ...] = ()


def find_demands(tests: Iterable[ast.Module | None], changed_tests: Iterable[str]) -> Demands:
    """The demands of some parsed test files, of which ``changed_tests`` (``file::test``) are new or changed."""
    types: set[str] = set()
    values: dict[str, set[float]] = {}
    exact = False
    for tree in tests:
        for node in ast.walk(tree) if tree is not None else ():
            if isinstance(node, ast.Attribute) and node.attr in _TYPES and last_name(node.value) in _HOLDERS:
                types.add(_TYPES[node.attr])
            elif isinstance(node, ast.Call):
                _of_call(node, values)
                exact |= last_name(node.func) in _EXACT
                types |= _of_strings(node)
    tolerances = [f"{word} {_range(values[word])}" for word in dict.fromkeys(_TOLERANCES.values()) if values.get(word)]
    return Demands(
        types=tuple(sorted(types, key=_ORDER.index)),
        tolerances=(*tolerances, *(["exact equality in places"] if exact else [])),
        behaviours=behaviours(changed_tests),
    )


def behaviours(changed_tests: Iterable[str]) -> tuple[str, ...]:
    """The names of changed tests as words, where they say more than the name of their file."""
    found: dict[str, None] = {}
    for test in changed_tests:
        file, _, name = test.partition("::")
        words = [w for w in re.sub(r"^test_*", "", name.rpartition("::")[2]).split("_") if w]
        known = {*_NOISE, *re.split(r"\W|_", file.lower())}
        if len([w for w in words if len(w) > 2 and w.lower() not in known]) >= _LEAST_WORDS:
            found[" ".join(words)] = None
    return tuple(found)[:_MOST_BEHAVIOURS]


def _of_call(node: ast.Call, values: dict[str, set[float]]) -> None:
    called = last_name(node.func)
    for keyword in node.keywords:
        if keyword.arg in _TOLERANCES:
            values.setdefault(_TOLERANCES[keyword.arg], set()).update(_numbers(keyword.value))
    if _COMPARES.search(called):
        for argument in node.args[2:]:
            small = {n for n in _numbers(argument) if 0 < n < 1}
            values.setdefault("tolerance" if small else "", set()).update(small)
    if called == "parametrize" and len(node.args) >= 2 and isinstance(node.args[0], ast.Constant):
        names = [n.strip() for n in str(node.args[0].value).split(",")]
        rows = node.args[1].elts if isinstance(node.args[1], ast.List | ast.Tuple) else []
        for row in rows:
            parts = row.args if isinstance(row, ast.Call) and len(names) > 1 else getattr(row, "elts", [row])
            for name, part in zip(names, parts, strict=False):
                if name in _TOLERANCES:
                    values.setdefault(_TOLERANCES[name], set()).update(_numbers(part))


def _of_strings(node: ast.Call) -> set[str]:
    """Types that are given as strings, as in ``dtype="bf16"``."""
    found: set[str] = set()
    for keyword in node.keywords:
        if keyword.arg and "dtype" in keyword.arg and isinstance(keyword.value, ast.Constant):
            found |= {_TYPES[keyword.value.value]} if keyword.value.value in _TYPES else set()
    return found


def _numbers(node: ast.expr) -> set[float]:
    """The non-negative numbers in an expression such as ``1e-3`` or ``2e-2 if half else 1e-5``."""
    if isinstance(node, ast.IfExp):
        return _numbers(node.body) | _numbers(node.orelse)
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        return {float(node.value)} if node.value >= 0 else set()
    return set()


def _range(numbers: set[float]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"
