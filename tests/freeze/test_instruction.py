"""What is taken out of a pull request's text before an agent reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smith.freeze.demands import Demands
from smith.freeze.instruction import Briefing, clean, render
from smith.freeze.overlap import Addition
from smith.records.candidate import Candidate
from smith.records.task import InterfaceItem


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Fix the tail (#12)", "Fix the tail"),
        ("Follow-up of #31: mask it", "mask it"),
        ("Wrong.\ndocs: a page on it\nsoftmax: tests", "Wrong."),
        ("Part of #31. Mask it", "Mask it"),
        ("Wrong, says @somebody-else.\n\nThis reverts commit 1a2b3c4d5e.", "Wrong, says somebody."),
        ("<details>Wrong<script>alert(1)</script></details>", "Wrong"),
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


def candidate(**more: Any) -> Candidate:
    oid = "a" * 40
    told = {"title": "Fix NaN in softmax of masked rows (#9)", "body": "Rows that are masked as a whole give NaN."}
    fields = {"form": "squash", "evidence": "subject", "base": oid, "merged": oid, "merged_at": "2026-01-01T00:00:00Z"}
    upstream = {"repo": "o/r", "url": "https://example.org/o/r", "pr": 9, "kind": "fix"}
    kernels = [{"path": "k.py", "language": "triton", "symbols": ["_old", "_new", "_words"], "text_only": ["_words"]}]
    return Candidate.model_validate({**told, **fields, **upstream, "kernels": kernels, **more})


def told(of: Candidate, briefing: Briefing, folder: Path) -> str:
    return render(of, ("pkg/**",), devices=("interpreter",), override=folder, briefing=briefing).text


BRIEFING = Briefing(addition=Addition({"k.py": ("def _new(x):",)}, {"k.py": "def _old(x): ...\ndef _words(x): ..."}))


def test_only_kernels_that_the_start_has_and_whose_code_changes_are_in_scope(tmp_path: Path) -> None:
    text = told(candidate(), BRIEFING, tmp_path)
    assert text.startswith("# NaN in softmax of masked rows\n\nRows that are masked as a whole give NaN.\n")
    assert "- `k.py` (triton): `_old`\n" in text
    assert "_new" not in text
    assert "_words" not in text
    assert "## Interface" not in text


def test_linked_issues_are_reports_and_what_a_forge_does_not_know_is_none(tmp_path: Path) -> None:
    known = {"repo": "o/r", "number": 4, "where": "body", "known": True, "title": "Softmax gives NaN"}
    issues = [known | {"body": "Call it with a row of -inf, see #3."}, {"repo": "o/r", "number": 5, "where": "body"}]
    enrichment = {"repo": "o/r", "number": 9, "title": "x", "issues": issues}
    text = told(candidate(enrichment=enrichment), BRIEFING, tmp_path)
    assert "A report of it:\n\nSoftmax gives NaN\n\nCall it with a row of -inf, see an earlier change.\n" in text
    assert text.count("A report of it:") == 1


def test_interface_and_demands_are_listed(tmp_path: Path) -> None:
    item = InterfaceItem(kind="function", path="k.py", module="pkg.k", name="norm", signature="def norm(x): ...")
    demands = Demands(types=("float32",), tolerances=("absolute 0.01",), behaviours=("keeps small values",))
    briefing = Briefing(addition=BRIEFING.addition, interface=(item,), demands=demands)
    text = told(candidate(), briefing, tmp_path)
    for line in (
        "- keeps small values",
        "In `pkg.k` (`k.py`):",
        "def norm(x): ...",
        "in the tests: float32.",
        "absolute 0.01.",
    ):
        assert line in text


def test_words_that_say_only_how_are_told_where_nothing_else_is(tmp_path: Path) -> None:
    bare = candidate(title="[Norm] Move eps out of the root", body="")
    assert told(bare, BRIEFING, tmp_path).startswith("# Wanted in norm: move eps out of the root\n")
    more = candidate(title="[Norm] Move eps out of the root", body="Small rows explode.")
    assert told(more, BRIEFING, tmp_path).startswith("# Norm: Fault in `_old`\n")
