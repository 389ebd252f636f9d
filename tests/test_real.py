"""Real merged pull requests of real upstreams: ``make test-real SMITH_REAL_MIRRORS=DIR``.

DIR holds clones named ``owner+name`` (or ``owner+name/repo``) with their ``refs/pull/*``. The facts in
``real_cases.toml`` were found by running these pull requests by hand; packages are installed from the package index.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import new_data_repository

CASES = tomllib.loads((Path(__file__).parent / "real_cases.toml").read_text("utf-8"))["case"]
RECIPES = Path(__file__).parent.parent / "recipes"


def smith(root: Path, *args: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "smith.cli.main", "-C", str(root), *args, "--json"], capture_output=True, text=True
    )
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


@pytest.mark.real
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c['repo']}#{c['pr']}")
def test_a_real_pull_request_comes_to_the_known_outcome(case: dict[str, Any], tmp_path: Path) -> None:
    clones = Path(os.environ["SMITH_REAL_MIRRORS"])
    place = clones / case["repo"].replace("/", "+")
    clone = place / "repo" if (place / "repo").exists() else place
    if not clone.exists():
        pytest.skip(f"no clone of {case['repo']} in SMITH_REAL_MIRRORS")
    store = new_data_repository(tmp_path / "data")
    shutil.copytree(RECIPES, store.layout.recipes)
    frozen = smith(store.layout.root, "freeze", str(clone), "--name", case["repo"], "--pr", str(case["pr"]))
    if case["outcome"].startswith("refused:"):
        assert [f"refused:{r['reason']}" for r in frozen["refused"]] == [case["outcome"]]
        return
    task = frozen["tasks"][0]["id"]
    # Layers are shared between cases: building one takes a minute.
    shared = clones / ".smith-environments"
    shared.mkdir(exist_ok=True)
    store.layout.volatile.mkdir(exist_ok=True)
    store.layout.environments.symlink_to(shared)
    said = smith(store.layout.root, "validate", task, "--device", case["device"])["tasks"][0]
    reasons = [r.split(":")[0] for r in said["reasons"]]
    assert ":".join([said["verdict"], *reasons]) == case["outcome"], said
