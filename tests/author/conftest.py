"""A data repository with one frozen task of the sample upstream and the receipt that its validation gave."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from smith import sample
from smith.freeze.bundle import Bundle, Store
from smith.freeze.freeze import Frozen, freeze
from smith.git.mirrors import open_upstream
from smith.mine import mine
from smith.paths import Layout
from smith.records.receipt import Receipt
from tests.author.author_answers import TASK
from tests.conftest import new_data_repository

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def frozen_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pull request 60, frozen; with the receipt of this very tree that this repository holds."""
    store = new_data_repository(tmp_path_factory.mktemp("frozen") / "data")
    upstream = open_upstream(sample.URL, store.layout.mirrors)
    (candidate,) = mine(upstream.repository, repo=upstream.repo, url=upstream.url, numbers=(60,)).candidates
    frozen = freeze(candidate, upstream, store)
    assert isinstance(frozen, Frozen)
    path = store.layout.receipt(TASK, frozen.tree, "cpu")
    path.parent.mkdir(parents=True)
    shutil.copyfile(REPOSITORY / path.relative_to(store.layout.root), path)
    with store.layout.config.open("a") as config:
        config.write('[prices."scripted"]\ninput_mtok = 1\noutput_mtok = 4\n')
    return store.layout.root


@pytest.fixture
def data(frozen_once: Path, tmp_path: Path) -> Store:
    """A copy of it that a test may change."""
    root = tmp_path / "data"
    shutil.copytree(frozen_once, root, symlinks=True, ignore=shutil.ignore_patterns("mirrors"))
    return Store(Layout(root))


@pytest.fixture
def bundle(data: Store) -> Bundle:
    return data.load(TASK)


@pytest.fixture
def receipt(data: Store, bundle: Bundle) -> Receipt:
    return Receipt.load(data.layout.receipt(TASK, bundle.tree, "cpu"))
