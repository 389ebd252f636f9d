"""Faults for one bundle: its reference without one hunk, or with one place of a kernel made wrong, each as a tree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal

from smith.errors import PatchError
from smith.freeze.bundle import Bundle, Store
from smith.freeze.globs import glob_pattern
from smith.git.objects import GITLINK, SYMLINK
from smith.git.patches import Change, apply, changes, diff
from smith.git.repository import Repository
from smith.git.trees import TreeEntry, overlay, read_file, write_blob, write_tree
from smith.mine.rules import Rules, load
from smith.mutate.hunks import Hunk, hunks
from smith.mutate.mutants import Mutant, Target, mutants
from smith.mutate.same import parses, same_program
from smith.records.config import Config
from smith.records.sensitivity import MAX_DIFF, Fate

REVERTED = "hunk_reverted"


@dataclass(frozen=True)
class Fault:
    """One planted fault. ``tree`` is the solution with it, without hidden tests; None where ``fate`` is known."""

    name: str
    kind: Literal["hunk", "mutant"]
    operator: str
    path: str
    line: int
    kernel: str = ""
    tree: str | None = None
    fate: Fate | None = None
    detail: str = ""


@dataclass(frozen=True)
class Planted:
    """All faults, in the order in which they are tried, and how many sites the mutants were chosen from."""

    solution: str
    faults: tuple[Fault, ...]
    sites: int


def plant(store: Store, bundle: Bundle, device: str, count: int, *, start_fails: bool) -> Planted:
    """Every hunk of the reference taken back and at most ``count`` mutants of it, taking turns.

    ``start_fails`` says whether tests fail on the start: where none does, a hunk back is no fault. Raises
    :class:`PatchError` where the reference does not apply.
    """
    repo, start = store.scratch, bundle.spec.source.tree
    rules = load(Config.load(store.layout.config).mine.rules)
    solution = apply(repo, start, bundle.reference)
    changed = [change for change in changes(repo, start, solution) if _is_source(bundle, change)]
    found = {change.path: _hunks(repo, start, solution, change) for change in changed}
    targets = _targets(repo, solution, bundle, changed, found, rules)
    some, sites = mutants(bundle.id, targets, rules, device, count)
    modes = {change.path: change.new_mode for change in changed}
    reverted = [
        _reverted(repo, start, solution, hunk, rules, start_fails) for change in changed for hunk in found[change.path]
    ]
    made = [_mutated(repo, solution, mutant, modes[mutant.path]) for mutant in some]
    both = (fault for pair in zip_longest(reverted, made) for fault in pair if fault is not None)
    return Planted(solution, tuple(_named(both)), sites)


def shown_diff(repo: Repository, solution: str, tree: str) -> str:
    """What leads from the solution to a fault, as text of bounded size."""
    text = diff(repo, solution, tree).decode("utf-8", "replace")
    return text if len(text) <= MAX_DIFF else f"{text[:MAX_DIFF]}\n[... {len(text) - MAX_DIFF} characters cut ...]\n"


def _is_source(bundle: Bundle, change: Change) -> bool:
    """Whether a change is of a plain file that a submission may touch."""
    if {change.old_mode, change.new_mode} & {GITLINK, SYMLINK} or bundle.selection.hides(change.path):
        return False
    return any(glob_pattern(glob).fullmatch(change.path) for glob in bundle.spec.editable)


def _hunks(repo: Repository, start: str, solution: str, change: Change) -> list[Hunk]:
    if change.old_path is not None:  # renamed: its parts say nothing alone
        return [Hunk(change.path, 1, diff(repo, solution, start, [change.path, change.old_path]))]
    return list(hunks(repo, start, solution, change.path))


def _targets(
    repo: Repository,
    solution: str,
    bundle: Bundle,
    changed: list[Change],
    found: dict[str, list[Hunk]],
    rules: Rules,
) -> Iterator[Target]:
    """The changed files that can hold kernels, as they are in the solution."""
    named = {kernel.path: kernel.code for kernel in bundle.spec.kernels}
    for change in changed:
        data = read_file(repo, solution, change.path) if rules.may_hold_kernels(change.path) else None
        if data is not None and len(data) <= rules.limits.largest_source:
            lines = frozenset(line for hunk in found[change.path] for line in hunk.lines)
            yield Target(change.path, data, lines, frozenset(named.get(change.path, ())))


def _reverted(repo: Repository, start: str, solution: str, hunk: Hunk, rules: Rules, start_fails: bool) -> Fault:
    def fault(tree: str | None, fate: Fate | None = None, detail: str = "") -> Fault:
        return Fault("", "hunk", REVERTED, hunk.path, hunk.line, tree=tree, fate=fate, detail=detail)

    try:
        tree = apply(repo, solution, hunk.patch)
    except PatchError as error:
        return fault(None, Fate.VOID, f"it cannot be taken back alone: {error.message}"[:300])
    before, after = (read_file(repo, one, hunk.path) for one in (solution, tree))
    if same_program(hunk.path, before, after, rules.source_suffixes):
        return fault(None, Fate.SAME, "it changes comments, docstrings or layout only")
    if tree == start:
        return fault(None, Fate.SAME, "it is all of the change, and the tests fail on the start anyhow")
    if not start_fails:
        return fault(None, Fate.SAME, "every test passes on the start, so a hunk back is no fault")
    if not parses(hunk.path, after):
        return fault(None, Fate.TRIVIAL, "without it the file does not parse")
    return fault(tree)


def _mutated(repo: Repository, solution: str, mutant: Mutant, mode: str) -> Fault:
    entry = TreeEntry(mode, "blob", write_blob(repo, mutant.data), mutant.path.encode("utf-8", "surrogateescape"))
    tree = overlay(repo, solution, write_tree(repo, [entry]))
    return Fault("", "mutant", mutant.operator, mutant.path, mutant.line, mutant.kernel, tree)


def _named(faults: Iterator[Fault]) -> Iterator[Fault]:
    """Each with a name of its own: operator and place, numbered where a line has several."""
    seen: Counter[str] = Counter()
    for fault in faults:
        name = f"{fault.operator}@{fault.path}:{fault.line}"
        seen[name] += 1
        yield Fault(**{**vars(fault), "name": name if seen[name] == 1 else f"{name}#{seen[name]}"})
