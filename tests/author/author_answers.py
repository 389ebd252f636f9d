"""What a scripted model answers about pull request 60 of the sample upstream (native RMS norm of odd widths)."""

from __future__ import annotations

import json
from typing import Any

TASK = "smith-lab__minikernels-60"
SOURCE = "minikernels/csrc/cpu/rms_norm.c"
HIDDEN = "hidden/tests/test_native_rms_norm.py"
LOOP = "        for (int64_t c = 0; c + 1 < cols; c += 2) {\n"
CALL = "        const float scale = 1.0f / sqrtf((even + odd) / (float)cols + eps);\n"
FIX = "        if (cols % 2)\n            even += in[cols - 1] * in[cols - 1];\n"

EXTRA_TEST = """import pytest
import torch

from minikernels.native.rms_norm import rms_norm


@pytest.mark.parametrize("cols", [5, 7])
def test_every_column_counts_alike(cols):
    for last in range(cols):
        x = torch.zeros(1, cols)
        x[0, last] = 2.0
        y = rms_norm(x, torch.ones(cols))
        torch.testing.assert_close(y[0, last], torch.tensor(float(cols) ** 0.5))
"""


def investigation() -> dict[str, Any]:
    quote = {"document": HIDDEN, "quote": 'pytest.mark.parametrize("cols", [1, 3, 17, 255])'}
    return {
        "summary": "The tests compare odd widths with a reference in torch.",
        "checked": [{"statement": "Odd widths from 1 to 255 are right.", "evidence": [quote]}],
        "gaps": [{"statement": "No test looks at each column of a row by itself.", "evidence": [quote]}],
    }


def wrong(**more: Any) -> dict[str, Any]:
    return {
        "name": "twice",
        "focus": "Adds the last column of every row, so that an even width counts it twice.",
        "base": "start",
        "edits": [{"path": SOURCE, "find": CALL, "replace": FIX.replace("if (cols % 2)", "if (cols > 0)") + CALL}],
        **more,
    }


def alternative(**more: Any) -> dict[str, Any]:
    return {
        "name": "one_sum",
        "focus": "Goes through the columns one by one with a single sum.",
        "base": "start",
        "edits": [
            {"path": SOURCE, "find": LOOP, "replace": LOOP.replace("c + 1 < cols; c += 2", "c < cols; ++c")},
            {"path": SOURCE, "find": "            odd += in[c + 1] * in[c + 1];\n", "replace": ""},
        ],
        **more,
    }


def design(**more: Any) -> dict[str, Any]:
    return {
        "title": "RMS norm ignores a column where a matrix has an odd number of them",
        "description": "For matrices with an odd number of columns the native RMS norm gives results that are too "
        "large: one column of each row has no influence on how the row is scaled. Even widths are right.",
        "requirements": [
            {
                "statement": "Every column of a row has the same influence on its scale, for widths from 1 on.",
                "evidence": [{"document": HIDDEN, "quote": "def test_native_rms_norm_of_an_odd_width(cols):"}],
            }
        ],
        "tests": [
            {"name": "columns", "purpose": "Each column by itself scales a row alike.", "content": EXTRA_TEST},
        ],
        "wrong": [wrong()],
        "alternatives": [alternative()],
        **more,
    }


def review(*faults: dict[str, Any]) -> dict[str, Any]:
    return {"summary": "Read against the hidden tests.", "faults": list(faults)}


def fault(**more: Any) -> dict[str, Any]:
    return {
        "document": "new/instruction.md",
        "quote": "results that are too large",
        "problem": "For a column of zeros the result is not too large.",
        "severity": "blocking",
        "suggestion": "Say that the results are wrong.",
        **more,
    }


def repair(**more: Any) -> dict[str, Any]:
    return {
        "explanation": "Says it without claiming too much.",
        "edits": [{"document": "description", "find": "results that are too large", "replace": "wrong results"}],
        **more,
    }


def text(answer: dict[str, Any]) -> str:
    return json.dumps(answer, indent=1)
