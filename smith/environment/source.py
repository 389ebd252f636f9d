"""The files of a source tree as detection reads them: by name, as text, never run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

LARGEST = 400_000
"""Characters of a file that are read: project files and workflows are small, some lock files are not."""


@dataclass(frozen=True)
class SourceFiles:
    """``paths`` are POSIX paths relative to the root; ``read`` gives a file's text, empty where there is none."""

    paths: Sequence[str]
    read: Callable[[str], str]

    @cached_property
    def known(self) -> frozenset[str]:
        return frozenset(self.paths)

    def has_folder(self, folder: str) -> bool:
        """Whether any file lies below ``folder``."""
        return any(path.startswith(f"{folder}/") for path in self.paths)

    def has_file(self, name: str) -> bool:
        """Whether a file of this name lies anywhere."""
        return any(path == name or path.endswith(f"/{name}") for path in self.paths)

    def text(self, path: str) -> str:
        """The beginning of a file's text; empty where the tree has no such file."""
        return self.read(path)[:LARGEST] if path in self.known else ""

    def beside(self, path: str, name: str) -> str:
        """The path that ``name`` means when written in the file at ``path``."""
        parts: list[str] = []
        for part in (PurePosixPath(path).parent / name).parts:
            if part == ".." and parts:
                parts.pop()
            elif part not in ("..", "."):
                parts.append(part)
        return "/".join(parts)
