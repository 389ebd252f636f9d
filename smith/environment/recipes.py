"""Find the recipe of an upstream, or guess one from the names of its files.

A recipe is ``recipes/<owner>__<name>.toml`` in lower case. All its paths are relative and stay where they belong:
``prelude`` and ``workloads`` in the recipe's own folder, ``python_path`` and ``test_roots`` in the source tree.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from smith.environment.requirements import requirement_name
from smith.errors import BadInput, RecordError
from smith.records.recipe import Recipe

PACKAGE_ROOTS = ("src", "python")
"""Folders that commonly hold an importable package one level below the root."""
TEST_FOLDERS = frozenset({"tests", "test", "op_tests", "unit_tests"})
VENDORED = frozenset({"third_party", "3rdparty", "vendor", "node_modules"})

_REPO = re.compile(r"(?P<owner>[A-Za-z0-9_-][A-Za-z0-9._-]*)/(?P<name>\.?[A-Za-z0-9_-][A-Za-z0-9._-]*)")
_TEST_FILE = re.compile(r"test_.*\.py|.*_test\.py")


@dataclass(frozen=True)
class Companions:
    """The files that lie beside a recipe and belong to it."""

    prelude: Path | None
    workloads: tuple[Path, ...]


def recipe_name(repo: str) -> str:
    """The file name of the recipe for ``owner/name``. Raises :class:`BadInput` for anything else."""
    found = _REPO.fullmatch(repo)
    if found is None:
        raise BadInput(f"{repo!r} does not name a repository", hint="write OWNER/NAME")
    return f"{found['owner']}__{found['name']}.toml".lower()


def find_recipe(repo: str, folders: Sequence[Path], names: Collection[str] = ()) -> tuple[Recipe, Path | None]:
    """The recipe of ``repo`` from the first folder that has one, and its file; else a guess from ``names``.

    Raises :class:`RecordError`, in one line, for a recipe that cannot be used.
    """
    wanted = recipe_name(repo)
    for folder in folders:
        path = folder / wanted
        if path.is_file():
            return load_recipe(path, repo), path
        # A recipe that is there but never read would be a puzzle.
        for other in folder.glob("*.toml") if folder.is_dir() else ():
            if other.name.lower() == wanted:
                raise RecordError(f"{other}: a recipe's file name is in lower case", hint=f"rename it to {wanted}")
    return guess(names, repo), None


def load_recipe(path: Path, repo: str) -> Recipe:
    """Read the recipe at ``path`` and check all of it that can be checked without the source tree."""
    recipe = Recipe.load(path)
    if recipe.repo.lower() != repo.lower():
        raise RecordError(f"{path}: repo: is for {recipe.repo}, not for {repo}")
    _check_inside(path, "python_path", recipe.python_path)
    _check_inside(path, "test_roots", recipe.test_roots)
    _check_environments(path, recipe)
    if any(not command for command in recipe.build):
        raise RecordError(f"{path}: build: a command is empty")
    companions(recipe, path)
    return recipe


def companions(recipe: Recipe, path: Path) -> Companions:
    """The files of the recipe read from ``path``. Raises :class:`RecordError` where one leaves its folder."""
    return Companions(
        prelude=None if recipe.prelude is None else _beside(path, "prelude", recipe.prelude),
        workloads=tuple(_beside(path, "workloads", name) for name in (w.file for w in recipe.workloads)),
    )


def guess(names: Collection[str], repo: str = "") -> Recipe:
    """A recipe from the file names of a source tree (POSIX paths relative to its root)."""
    # Strings, not path objects: a tree has ten thousand files and more.
    own = [parts for parts in (name.split("/") for name in names) if VENDORED.isdisjoint(parts)]
    layouts = [root for root in PACKAGE_ROOTS if any(_is_package_file(parts, root) for parts in own)]
    return Recipe(repo=repo, python_path=(*layouts, "."), test_roots=tuple(sorted(_test_roots(own))))


def _is_package_file(parts: Sequence[str], root: str) -> bool:
    # src/foo/bar.py: a package below src. src/foo.cpp or src/setup.py says nothing, and src/tests is none.
    return len(parts) >= 3 and parts[0] == root and parts[-1].endswith(".py") and parts[1] not in TEST_FOLDERS


def _test_roots(files: Iterable[Sequence[str]]) -> set[str]:
    """The outermost folders with a test folder's name that hold at least one test file."""
    found = set()
    for parts in files:
        if _TEST_FILE.fullmatch(parts[-1]):
            depth = next((i for i, part in enumerate(parts[:-1]) if part in TEST_FOLDERS), None)
            if depth is not None:
                found.add("/".join(parts[: depth + 1]))
    return found


def _check_inside(path: Path, key: str, values: Iterable[str]) -> None:
    for value in values:
        if not value or PurePosixPath(value).is_absolute() or ".." in PurePosixPath(value).parts:
            raise RecordError(f"{path}: {key}: {value!r} leaves the source tree")


def _check_environments(path: Path, recipe: Recipe) -> None:
    if not recipe.environments:
        raise RecordError(f"{path}: environments: is empty", hint="leave it out to use smith's own environment")
    seen: set[str] = set()
    for choice in recipe.environments:
        if choice.name in seen:
            raise RecordError(f"{path}: environments: two are called {choice.name}")
        seen.add(choice.name)
        if choice.merged_after and choice.merged_before and choice.merged_after >= choice.merged_before:
            raise RecordError(f"{path}: environments: {choice.name} fits no day")
        for package in choice.packages:
            try:
                requirement_name(package)
            except RecordError as error:
                message = f"{path}: environments: {choice.name}: {error.message}"
                raise RecordError(message, hint=error.hint) from error


def _beside(path: Path, key: str, name: str) -> Path:
    """The file called ``name`` in the folder of the recipe, links followed, for as long as it stays in there."""
    folder = path.parent.resolve()
    try:
        file = (folder / name).resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise RecordError(f"{path}: {key}: {name!r} is no usable path") from error
    if PurePosixPath(name).is_absolute() or not file.is_relative_to(folder):
        raise RecordError(f"{path}: {key}: {name!r} leaves the recipe's folder")
    if not file.is_file():
        raise RecordError(f"{path}: {key}: {name!r} is no file beside the recipe")
    return file
