"""Where and how kernels in C, C++, HIP and CUDA can be made wrong: by tokens, in the kernels that mining locates.

Comments, strings and directives are blank in what operators search (``Text.plain``), at the same offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from smith.mine import c_lexical, c_source
from smith.mine.rules import Rules
from smith.mutate import c_operators
from smith.mutate.edits import Edit, Site, line_of

Operator = Callable[[str, str, int, int, str], Iterator[tuple[Edit, ...]]]
"""Of the text, the same without comments and strings, a body's begin and end, and the language."""

OPERATORS: tuple[Operator, ...] = (
    c_operators.boundary_shifted,
    c_operators.loop_shortened,
    c_operators.plus_and_minus,
    c_operators.times_and_by,
    c_operators.sign_flipped,
    c_operators.barrier_removed,
    c_operators.atomic_made_plain,
    c_operators.accumulator_lowered,
    c_operators.index_shifted,
    c_operators.epsilon_changed,
    c_operators.condition_negated,
    c_operators.function_confused,
    c_operators.extreme_confused,
)


def sites(text: str, path: str, rules: Rules, kernels: Collection[str], lines: Collection[int]) -> list[Site]:
    """Every site in the kernels named and in those with one of ``lines``. Assembly has none."""
    plain = c_lexical.lex(text).plain
    found: list[Site] = []
    for one in c_source.locate(text, path, rules.sources):
        span = range(line_of(text, one.begin), line_of(text, one.end) + 1)
        if one.name in kernels or any(line in span for line in lines):
            for operator in OPERATORS:
                for edits in operator(text, plain, one.body, one.end, one.language):
                    found.append(Site(operator.__name__, edits, one.name))
    return found
