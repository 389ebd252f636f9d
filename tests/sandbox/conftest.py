"""The real bubblewrap in both of its ways, wherever it works."""

from __future__ import annotations

import pytest

from smith.sandbox import Sandbox
from smith.sandbox import bubblewrap as module
from smith.sandbox.bubblewrap import Bubblewrap


@pytest.fixture(params=["own-id", "user-namespace"])
def bubblewrap(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    """``own-id`` is what a real root gets, ``user-namespace`` what everybody else gets.

    Where neither can work the skip names why; the continuous integration installs bubblewrap.
    """
    if request.param == "own-id" and not module._may_mount():
        pytest.skip("becoming a fresh user id needs a root that may mount")
    monkeypatch.setattr(module, "_may_mount", lambda: request.param == "own-id")
    sandbox = Bubblewrap()
    if reason := sandbox.check():
        pytest.skip(f"bubblewrap ({request.param}) cannot work on this machine: {reason}")
    return sandbox
