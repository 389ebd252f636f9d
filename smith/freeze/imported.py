"""Which modules of other projects come into a process with a set of test files, by reading imports."""

from __future__ import annotations

import re
import sys
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from smith.environment.detect import Imported
from smith.freeze.modules import World
from smith.mine.imports import without_literals

# Only what stands at the beginning of a line is imported for sure; what is tried, guarded or late is indented.
_IMPORT = re.compile(
    r"^(?P<indent>[ \t]*+)(?:from[ \t]++(?P<dots>\.{0,20}+)(?P<module>[\w.]*+)[ \t]++import[ \t]*+"
    r"(?P<names>\([^()]*+\)|[^\n;#(]*+)|import[ \t]++(?P<plain>[^\n;#]++))",
    re.MULTILINE,
)
_NAME = re.compile(r"(\w+)(?:[ \t]+as[ \t]+\w+)?")
_COMMENT = re.compile(r"#[^\n]*")
_MOST = 1500


class _Statement(NamedTuple):
    module: str
    level: int
    names: tuple[str, ...]
    sure: bool


class _Path:
    """What Python finds with ``roots`` on its path, in a tree of ``files``."""

    def __init__(self, files: Collection[str], roots: Iterable[str]) -> None:
        self._files = files
        self._roots = [f"{root}/" if root != "." else "" for root in dict.fromkeys(roots)]
        self._folders: set[str] = set()
        for path in files:
            folder = path.rpartition("/")[0] if path.endswith(".py") else ""
            while folder and folder not in self._folders:
                self._folders.add(folder)
                folder = folder.rpartition("/")[0]

    def files(self, one: _Statement, at: str) -> list[str]:
        """The files that a statement of the file ``at`` runs: packages on the way, the module, submodules it names."""
        starts = self._roots
        if one.level:
            parents = PurePosixPath(at).parents
            folder = str(parents[min(one.level, len(parents)) - 1])
            starts = [f"{folder}/" if folder != "." else ""]
        parts = one.module.split(".") if one.module else []
        found: list[str] = []
        for start in starts:
            for length in range(0 if one.level else 1, len(parts) + 1):
                found += self._module(start + "/".join(parts[:length]))
            for name in one.names:
                found += self._module(start + "/".join([*parts, name]))
            if found:
                break  # what stands first on the path wins
        return found

    def has(self, top: str) -> bool:
        """Whether a folder without ``__init__.py`` holds modules of that name."""
        return any(f"{root}{top}" in self._folders for root in self._roots)

    def _module(self, path: str) -> Iterator[str]:
        for file in (f"{path}.py", f"{path.rstrip('/')}/__init__.py".lstrip("/")):
            if file in self._files:
                yield file
                return


def imported_modules(
    world: World, files: Iterable[str], python_path: Sequence[str], is_test: Callable[[str], bool]
) -> Imported:
    """The modules of other projects that come with ``files`` and the ``conftest.py`` of their folders.

    What is imported for sure is followed through the files of the tree that ``python_path`` leads to; what may be
    imported is read in those of them that ``is_test`` knows.
    """
    starts = list(dict.fromkeys(files))
    # pytest puts the outermost folder that is no package in front of the path.
    path = _Path(world.files, [*python_path, *(_base(world, one) for one in starts)])
    waiting = deque([*starts, *_conftests(world, starts)])
    read: set[str] = set()
    surely: dict[str, str] = {}
    perhaps: dict[str, str] = {}
    while waiting and len(read) < _MOST:
        at = waiting.popleft()
        if at in read:
            continue
        read.add(at)
        for one in _imports(world.text(at)):
            if not one.sure and not is_test(at):
                continue
            inside = path.files(one, at)
            if one.sure:
                waiting.extend(inside)
            top = one.module.partition(".")[0]
            if not (inside or one.level or not top or top in sys.stdlib_module_names or path.has(top)):
                (surely if one.sure else perhaps).setdefault(top, at)
    return Imported(surely, {module: where for module, where in perhaps.items() if module not in surely})


def _base(world: World, path: str) -> str:
    folder = PurePosixPath(path).parent
    while f"{folder}/__init__.py" in world.files:
        folder = folder.parent
    return str(folder)


def _imports(text: str) -> Iterator[_Statement]:
    for match in _IMPORT.finditer(without_literals(text)):
        sure = not match["indent"]
        if match["plain"]:
            for part in filter(None, map(str.split, match["plain"].split(","))):
                yield _Statement(part[0], 0, (), sure)
        else:
            names = _NAME.findall(_COMMENT.sub("", match["names"]).strip("() \t\n"))
            yield _Statement(match["module"], len(match["dots"]), tuple(names), sure)


def _conftests(world: World, files: Iterable[str]) -> Iterator[str]:
    folders = {str(parent) for path in files for parent in PurePosixPath(path).parents}
    for folder in sorted(folders):
        path = "conftest.py" if folder == "." else f"{folder}/conftest.py"
        if path in world.files:
            yield path
