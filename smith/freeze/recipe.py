"""The recipe of a task: the data repository's, the sample's, or one detected from the source tree."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import tomlkit

from smith import sample
from smith.environment.detect import Detected, detect, layout
from smith.environment.recipes import find_recipe, load_recipe
from smith.environment.source import SourceFiles
from smith.freeze.bundle import Store
from smith.freeze.hidden import collect_hidden, guard_files, test_file_list, test_roots
from smith.freeze.imported import imported_modules
from smith.freeze.modules import LARGEST, World
from smith.git.objects import list_tree, shown
from smith.git.repository import Repository
from smith.mine.blobs import Blobs
from smith.records.candidate import Candidate
from smith.records.recipe import Recipe


@dataclass(frozen=True)
class RecipeFor:
    """A recipe and the file that it was read from. Without a file it is only a layout, see :func:`complete`."""

    recipe: Recipe
    file: Path | None


def recipe_for(repo: Repository, candidate: Candidate, store: Store, tree: str) -> RecipeFor:
    """The data repository's recipe for this upstream, else the one that comes with the sample, else a layout.

    Raises :class:`smith.errors.RecordError` for a recipe that cannot be used.
    """
    _, file = find_recipe(candidate.repo, [store.layout.recipes])
    if file is None and candidate.url == sample.URL:
        file = sample.recipe_path()
    if file is not None:
        return RecipeFor(load_recipe(file, candidate.repo).dated(_merged_on(candidate)), file)
    files = tree_files(repo, tree)
    with Blobs(repo, largest=LARGEST) as blobs:
        return RecipeFor(layout(SourceFiles(list(files), World(blobs, files).text), candidate.repo), None)


def complete(
    repo: Repository, candidate: Candidate, recipe: Recipe, merged: str, tests: Sequence[str], roots: Collection[str]
) -> Detected:
    """Detect the rest of a recipe from the tree ``merged``, whose test files ``tests`` are run."""
    files = tree_files(repo, merged)
    with Blobs(repo, largest=LARGEST) as blobs:
        world = World(blobs, files)
        imported = imported_modules(
            world, tests, recipe.python_path, lambda path: any(path.startswith(f"{root}/") for root in roots)
        )
        return detect(SourceFiles(list(files), world.text), recipe, imported, _merged_on(candidate))


def _merged_on(candidate: Candidate) -> date:
    return date.fromisoformat(candidate.merged_at[:10])


def detect_recipe(repo: Repository, candidate: Candidate) -> Detected:
    """What would be detected for ``candidate`` if nobody had written a recipe. ``repo`` sees upstream's objects."""
    base, merged = repo.resolve(candidate.base, "tree"), repo.resolve(candidate.merged, "tree")
    files = tree_files(repo, base)
    with Blobs(repo, largest=LARGEST) as blobs:
        recipe = layout(SourceFiles(list(files), World(blobs, files).text), candidate.repo)
    hidden = collect_hidden(repo, candidate, merged, base, test_roots(candidate, recipe.test_roots))
    tests = [*test_file_list(candidate, tree_files(repo, merged)), *guard_files(repo, merged, candidate, hidden)]
    return complete(repo, candidate, recipe, merged, tests, hidden.roots)


def tree_files(repo: Repository, tree: str) -> Mapping[str, str]:
    """Path to blob id of the plain files of a tree."""
    return {shown(e.path): e.oid for e in list_tree(repo, tree) if e.kind == "blob" and e.mode != "120000"}


def recipe_text(recipe: Recipe, detected: Detected | None = None, note: str = "") -> str:
    """The recipe as TOML; a detected one with what it was told from, for whoever wants to keep and change it.

    ``note`` is a comment more.
    """
    head = ""
    if detected is not None:
        lines = [f"{one}" for one in detected.evidence]
        lines += [
            f"unknown module {name}, not installed: {where} imports it" for name, where in detected.unknown.items()
        ]
        head = "# Detected from the project's own files. To change it, keep it as a recipe of the data repository.\n"
        head += note + "".join(
            f"# - {line}\n" for line in (" ".join(line.split()) for line in lines) if line.isprintable()
        )
    return head + tomlkit.dumps(recipe.model_dump(mode="json", exclude_none=True))
