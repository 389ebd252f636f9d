"""Two trees in a real repository, with hidden tests laid over both, as freezing reads them."""

from __future__ import annotations

import subprocess
from pathlib import Path
from textwrap import dedent

from smith.freeze.interface import Interface, find_interface
from smith.freeze.modules import World
from smith.git.repository import Repository
from smith.git.trees import write_blob
from smith.mine.blobs import Blobs
from smith.records.task import InterfaceItem


class Worlds:
    """Makes worlds of dictionaries: path to text."""

    def __init__(self, folder: Path) -> None:
        subprocess.run(["git", "init", "-q", "--bare", str(folder)], check=True)
        self.repo = Repository.discover(folder)
        self.blobs = Blobs(self.repo, largest=10_000_000)

    def files(self, texts: dict[str, str]) -> dict[str, str]:
        """Path to blob id."""
        return {path: write_blob(self.repo, dedent(text).encode()) for path, text in texts.items()}

    def interface(self, start: dict[str, str], reference: dict[str, str], tests: dict[str, str]) -> Interface:
        """What the tests need, where ``reference`` says what changes of ``start``."""
        after = start | reference
        before = World(self.blobs, self.files(start | tests))
        solved = World(self.blobs, self.files(after | tests))
        wanted = [path for path in tests if path.rpartition("/")[2].startswith("test_")]
        return find_interface(before, solved, wanted, tests, reference)


def by_name(found: Interface) -> dict[str, InterfaceItem]:
    """Items by their names, those of modules by their paths."""
    return {item.name or item.path: item for item in found.items}
