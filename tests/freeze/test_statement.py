"""Titles as statements of a report."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smith.freeze.statement import framed, state
from smith.records.candidate import Kind


@pytest.mark.parametrize(
    ("title", "kind", "heading"),
    [
        ("Fix NaN in softmax when rows are masked (#12)", Kind.FIX, "NaN in softmax when rows are masked"),
        ("[Fix] Fix layer norm kernels", Kind.FIX, "Fault in layer norm kernels"),
        ("fix(rope): out-of-bounds reads", Kind.FIX, "rope: Out-of-bounds reads"),
        ("[Conv] Fix grads of chunks below `W - 1`", Kind.FIX, "Conv: Fault in grads of chunks below `W - 1`"),
        ("Prevent overflow of offsets", Kind.FIX, "Wanted: prevent overflow of offsets"),
        ("Add top-k kernel and corresponding tests", Kind.FEATURE, "Missing: top-k kernel"),
        ("[GDN] Support strided input", Kind.FEATURE, "GDN: Missing: support for strided input"),
        ("Optimize matmul by using larger tiles", Kind.PERF, "Slow: matmul"),
        ("Optimize norm: replace atomics with a tree", Kind.PERF, "Slow: norm"),
        ("perf: 1.8x faster softmax", Kind.PERF, "Slow: the kernels below"),
        ('Reland "rope: interleaved layout (#4)" (#9)', Kind.RELAND, "rope: Wanted: interleaved layout"),
        ("slice acc into two parts to reduce registers", Kind.OTHER, "Wanted: reduce registers"),
        ("RMSNorm aggregation", Kind.FIX, "Fault: RMSNorm aggregation"),
        ("Multi-token attention", Kind.FEATURE, "Wanted: Multi-token attention"),
    ],
)  # fmt: skip
def test_titles_say_what_is_wrong_or_wanted(title: str, kind: Kind, heading: str) -> None:
    assert state(title, kind).heading == heading


@pytest.mark.parametrize("title", ["Use tl.exp2 everywhere", "Replace atomics with a tree", "Hoist the load", "(#3)"])
def test_titles_that_say_only_how_are_not_told(title: str) -> None:
    stated = state(title, Kind.FIX, "`_kernel`")
    assert not stated.told
    assert stated.heading == "Fault in `_kernel`"


def test_where_nothing_else_tells_the_words_get_a_neutral_frame() -> None:
    assert framed("[Norm] Move eps out of the root (#7)") == "Norm: Wanted: move eps out of the root"


@given(st.text(max_size=120), st.sampled_from(Kind))
def test_every_title_gives_one_line(title: str, kind: Kind) -> None:
    heading = state(" ".join(title.split()), kind, "x").heading
    assert heading.strip()
    assert "\n" not in heading
