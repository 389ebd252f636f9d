"""What is taken out of a pull request's text before an agent reads it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smith.freeze.instruction import clean


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Fix the tail (#12)", "Fix the tail"),
        ("Follow-up of #31: mask it", "mask it"),
        ("As in #31, mask it", "As in an earlier change, mask it"),
        ("Broken since 1a2b3c4d5e", "Broken since an earlier commit"),
        ("See https://github.com/o/r/pull/7/files for more", "See  for more"),
        ("See [the report](https://example.org/x) now", "See the report now"),
        ("Wrong.\n\nCo-authored-by: A <a@b.c>\nSigned-off-by: B <b@c.d>", "Wrong."),
        ("Wrong.\n- [x] I ran the tests\n- [ ] docs", "Wrong."),
        ("Wrong.<!-- describe\nyour change -->", "Wrong."),
        ("* [Conv] fold cases\n\nThe gradient is wrong.\n\n* lint", "The gradient is wrong."),
        ("Slow.\n\n## Benchmark Results\n\n| 1 | 9 |\n### Speed\n2x\n## Cause\nOdd.", "Slow.\n\n## Cause\nOdd."),
        ("Slow.\r\n\r\n\r\n\r\nVery.", "Slow.\n\nVery."),
        ("A colour #fff0 and C# stay; so does 0x1234567", "A colour #fff0 and C# stay; so does 0x1234567"),
        ("```\n# Results of a shell\n```", "```\n# Results of a shell\n```"),
    ],
)
def test_clean(text: str, kept: str) -> None:
    assert clean(text) == kept


@given(st.text(max_size=300))
def test_cleaning_never_fails_and_settles(text: str) -> None:
    once = clean(text)
    assert "\r" not in once
    assert once == once.strip()
