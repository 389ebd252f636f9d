"""The part of the package ``smith`` that a verifier needs: what its entry module imports, directly or not."""

from __future__ import annotations

import ast
import importlib.metadata
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import smith
from smith.errors import Defect

ENTRY = "smith.export.harbor_verifier"
SHOWN = ("inside", "device")
"""Rooms whose modules are started by name inside a sandbox, and so are copied whole."""
DISTRIBUTIONS = {"git": "gitpython"}
"""Where a module is not called like the distribution that holds it."""
PACKAGE = Path(smith.__file__).parent


def needed(entry: str = ENTRY) -> tuple[set[Path], set[str]]:
    """Files of the package that ``entry`` reaches by imports, and the foreign top-level modules that these import."""
    files: set[Path] = set()
    foreign: set[str] = set()
    waiting = [entry]
    while waiting:
        name = waiting.pop()
        path = _file(name)
        if path is None or path in files:
            continue
        files.add(path)
        waiting += [name.rpartition(".")[0]] if "." in name else []
        for imported in _imports(path):
            if imported.partition(".")[0] == "smith":
                waiting.append(imported)
            elif imported.partition(".")[0] not in sys.stdlib_module_names:
                foreign.add(imported.partition(".")[0])
    return files, foreign


def requirements(foreign: set[str]) -> list[str]:
    """The distributions of foreign modules, pinned to what is installed here."""
    names = sorted(DISTRIBUTIONS.get(name, name) for name in foreign)
    return [f"{name}=={importlib.metadata.version(name)}" for name in names]


def copy_to(folder: Path) -> list[str]:
    """Put the package into ``folder`` and return what else it needs, pinned."""
    files, foreign = needed()
    for room in SHOWN:
        files |= {p for p in (PACKAGE / room).rglob("*") if p.is_file() and "__pycache__" not in p.parts}
    for path in sorted(files):
        target = folder / "smith" / path.relative_to(PACKAGE)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    return requirements(foreign)


def _file(name: str) -> Path | None:
    """The file of a module of smith; None for a name inside a module."""
    path = PACKAGE.joinpath(*name.split(".")[1:])
    if path.is_dir():
        return path / "__init__.py"
    return path.with_suffix(".py") if path.with_suffix(".py").is_file() else None


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level or not node.module:
                raise Defect(f"{path}: a relative import")
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names if node.module.startswith("smith"))
