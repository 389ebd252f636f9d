"""A place and a sandbox for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from harness_bench import Bench

from smith.harness.place import Place
from smith.sandbox import Sandbox
from smith.sandbox.bubblewrap import Bubblewrap
from smith.sandbox.host import Host


@pytest.fixture(scope="session")
def bubblewrap() -> Sandbox:
    """The real one. Where it cannot work its absence is named; the continuous integration installs it."""
    sandbox = Bubblewrap()
    if reason := sandbox.check():
        pytest.skip(f"bubblewrap cannot work on this machine: {reason}")
    return sandbox


@pytest.fixture
def bench(bubblewrap: Sandbox, tmp_path: Path) -> Iterator[Bench]:
    with Place.create(tmp_path / "work") as place:
        yield Bench(bubblewrap, place)


@pytest.fixture
def host_bench(tmp_path: Path) -> Iterator[Bench]:
    """The same without isolation."""
    with Place.create(tmp_path / "work") as place:
        yield Bench(Host(), place)
