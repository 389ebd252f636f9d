"""The real bubblewrap in both of its ways, wherever it works."""

from __future__ import annotations

import pytest

from smith.sandbox import Sandbox
from smith.sandbox.bubblewrap import Bubblewrap, may_mount


@pytest.fixture(params=["own-id", "user-namespace"])
def as_root(request: pytest.FixtureRequest) -> bool:
    """Which of the two ways: ``own-id`` is what a real root gets, ``user-namespace`` what everybody else gets."""
    if request.param == "own-id" and not may_mount():
        pytest.skip("becoming a fresh user id needs a root that may mount")
    return bool(request.param == "own-id")


@pytest.fixture
def bubblewrap(as_root: bool) -> Sandbox:
    """Where bubblewrap cannot work the skip names why; the continuous integration installs it."""
    sandbox = Bubblewrap(may_mount=lambda: as_root)
    if reason := sandbox.check():
        pytest.skip(f"bubblewrap ({'own id' if as_root else 'user namespace'}) cannot work here: {reason}")
    return sandbox
