"""What freezing finds out about a pull request by reading both sides of it: interface, demands, leaks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from smith.freeze.demands import find_demands
from smith.freeze.hidden import HiddenTests, changed_tests
from smith.freeze.instruction import Briefing, code_like, words_of
from smith.freeze.interface import Interface, find_interface
from smith.freeze.leakage import SourceScan, declared_names, environment_leaks, sibling_leaks
from smith.freeze.modules import LARGEST, World
from smith.freeze.overlap import Addition, added_lines
from smith.git.objects import shown
from smith.git.repository import Repository
from smith.git.trees import list_tree
from smith.mine.blobs import Blobs
from smith.records.candidate import Candidate
from smith.records.recipe import Recipe
from smith.records.task import Leak, LeakKind, Variant

_MOST_ARCHIVES = 4


@dataclass(frozen=True)
class Trees:
    """The trees that a task is made of."""

    base: str
    merged: str
    start: str
    solved: str
    hidden: HiddenTests


@dataclass(frozen=True)
class Study:
    """``unnamed`` says what the tests use that no instruction can name."""

    briefing: Briefing
    changed_tests: tuple[str, ...]
    leaks: tuple[Leak, ...] = ()
    unnamed: tuple[str, ...] = ()


def study(
    repo: Repository,
    candidate: Candidate,
    recipe: Recipe,
    trees: Trees,
    files: Sequence[str],
    reference: bytes,
    variant: Variant = Variant.FIX,
) -> Study:
    """Read the starting tree, the reference and the hidden tests. ``files`` are the test files to run."""
    start, solved, tests = (files_of(repo, tree) for tree in (trees.start, trees.solved, trees.hidden.tree))
    new_tests = changed_tests(repo, trees.base, trees.merged, files)
    with Blobs(repo, largest=LARGEST) as blobs:
        seen = World(blobs, start)
        before = World(blobs, _laid_over(start, tests, trees.hidden.removed))
        after = World(blobs, _laid_over(solved, tests, trees.hidden.removed))
        added = added_lines(reference)
        addition = Addition(added, _texts(seen, added))
        # What tests ask for that the base lacks is no part of making the base faster: such tests guard nothing.
        asks = variant is not Variant.OPTIMIZE
        interface = find_interface(before, after, files, tests, added) if asks else Interface()
        told = words_of(candidate)
        asked = [name for name in addition.identifiers if code_like(name) and name in told]
        scan = SourceScan(blobs, start, addition, asked)
        briefing = Briefing(
            addition=addition,
            tests=Addition({p: tuple(after.text(p).splitlines()) for p in files}, _texts(seen, files)),
            known=frozenset(scan.words),
            interface=interface.items,
            demands=find_demands([after.tree(path) for path in files], new_tests),
        )
        names = declared_names(seen.text(path) for path in ("pyproject.toml", "setup.py", "setup.cfg"))
    packages = [package for choice in recipe.environments for package in choice.packages]
    archives = [
        Leak(kind=LeakKind.ARCHIVE, action="noted", path=path, excerpt="not looked into")
        for path in scan.archives[:_MOST_ARCHIVES]
    ]
    copies = sibling_leaks(addition) if variant.has_own_start else []
    leaks = (*copies, *scan.leaks(), *environment_leaks(candidate.repo, names, packages), *archives)
    return Study(briefing, new_tests, leaks, interface.unnamed)


def files_of(repo: Repository, tree: str) -> dict[str, str]:
    """Path to blob id of the plain files of a tree."""
    return {shown(e.path): e.oid for e in list_tree(repo, tree) if e.kind == "blob" and e.mode != "120000"}


def _laid_over(below: Mapping[str, str], over: Mapping[str, str], removed: Iterable[str]) -> dict[str, str]:
    gone = frozenset(removed)
    return {**{path: oid for path, oid in below.items() if path not in gone}, **over}


def _texts(world: World, paths: Iterable[str]) -> dict[str, str]:
    return {path: world.text(path) for path in paths if path in world.files}
