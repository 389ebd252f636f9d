"""Fixtures of the evaluations that ask a scripted model."""

from __future__ import annotations

import pytest

from smith.freeze.bundle import Store
from tests.evaluate.model_world import tiny_world


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory, sandbox_name: str) -> Store:
    """A data repository with one task in the panel ``tiny``; runs of several tests share it."""
    return tiny_world(tmp_path_factory.mktemp("evaluate") / "data")
