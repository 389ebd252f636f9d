"""Every pull request of the sample comes to the verdict that it was built to have: ``make test-all``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from smith import sample
from tests.conftest import new_data_repository

EXPECTED = {e.number: e for e in sample.expectations() if e.mined == "candidate"}


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory, sandbox_name: str) -> dict[int, Any]:
    store = new_data_repository(tmp_path_factory.mktemp("whole") / "data")
    smith = [sys.executable, "-m", "smith.cli.main", "-C", str(store.layout.root)]
    out = Path(store.layout.root / "candidates.jsonl")
    subprocess.run([*smith, "mine", "smith:sample", "--out", str(out)], check=True)
    subprocess.run([*smith, "freeze", "--candidates", str(out)], check=True)
    done = subprocess.run(
        [*smith, "validate", *store.ids(), "--jobs", "2", "--json"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    return {int(t["id"].rsplit("-", 1)[1]): t for t in json.loads(done.stdout)["tasks"]}


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("number", EXPECTED)
def test_the_verdict_is_the_one_that_the_pull_request_was_built_to_have(said: dict[int, Any], number: int) -> None:
    found, expected = said[number], EXPECTED[number]
    reasons = [r.split(":")[0] for r in found["reasons"]]
    assert ":".join([found["verdict"], *reasons]) == expected.verdict
    assert found["device"].split(":")[0] == expected.device
