"""Fixtures for all tests. No test may touch the user's home or see their git configuration."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from smith import sample
from smith.freeze.bundle import Store
from smith.paths import Layout
from smith.sandbox.bubblewrap import Bubblewrap

# Nothing is left to luck: the same examples every time, and no deadline that a busy machine could miss.
settings.register_profile("smith", deadline=None, derandomize=True)
# For `make fuzz`: other examples each time, and many.
settings.register_profile("fuzz", deadline=None, max_examples=4000, print_blob=True)
settings.load_profile("smith")


@pytest.fixture(autouse=True, scope="session")
def _home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    home = tmp_path_factory.mktemp("home")
    before = os.environ.get("HOME")
    os.environ["HOME"] = str(home)
    yield
    if before is not None:
        os.environ["HOME"] = before
    # Caches of torch or triton may appear; nothing of smith's own may.
    assert not list(home.rglob("*smith*"))


@pytest.fixture(scope="session")
def upstream_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample upstream, built once a session."""
    return sample.build(tmp_path_factory.mktemp("upstream") / "minikernels.git")


def new_data_repository(root: Path) -> Store:
    """An empty data repository."""
    root.mkdir(parents=True, exist_ok=True)
    subprocess.run(["git", "init", "-q", "-b", "main", str(root)], check=True)
    # Tests run beside each other.
    (root / "smith.toml").write_text("schema_version = 1\n\n[timing]\nforeign = 1.0\n")
    (root / ".gitignore").write_text(".smith/\n")
    return Store(Layout(root))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty data repository."""
    return new_data_repository(tmp_path / "data")


@pytest.fixture(scope="session")
def sandbox_name() -> str:
    """``bubblewrap``, or a skip that says why it cannot work here."""
    why = Bubblewrap().check()
    if why is not None:
        pytest.skip(f"bubblewrap: {why}")
    return "bubblewrap"


@pytest.fixture
def dom(tmp_path: Path) -> Callable[[Path], str]:
    """What a headless browser makes of a page, scripts run; a skip where there is none (CI installs one)."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("neither chromium nor google-chrome is on PATH (Debian: chromium)")

    def shown(page: Path) -> str:
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
        argv = [browser, *options, "--virtual-time-budget=3000", "--dump-dom", page.as_uri()]
        return subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False).stdout

    return shown


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The files that take longest come first, so that no process ends with one of them while the others wait."""
    longest = ("test_pipeline.py", "test_variants.py", "test_author_command.py")
    items.sort(key=lambda item: item.path.name not in longest)
