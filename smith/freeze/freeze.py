"""From a candidate to a bundle: trees kept, patch taken, tests hidden, instruction written."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from smith import temporary
from smith.errors import PatchError, RecordError
from smith.freeze.authored import came_of
from smith.freeze.bundle import Store
from smith.freeze.globs import glob_pattern
from smith.freeze.hidden import HiddenTests, collect_hidden, steers_tests, test_roots
from smith.freeze.instruction import render
from smith.freeze.leakage import check_no_history, instruction_leaks
from smith.freeze.recipe import complete, recipe_for
from smith.freeze.study import Trees, study
from smith.freeze.variant_instruction import render_variant
from smith.freeze.variants import PLAIN, SPEED, Asked, Whole, chosen_tests, draft
from smith.freeze.writing import Contents, write
from smith.git.mirrors import Upstream
from smith.git.patches import apply, diff
from smith.git.repository import Repository
from smith.git.sources import keep, scratch
from smith.git.trees import list_tree, read_blobs, tree_of_folder
from smith.mine import rules
from smith.paths import locked, recover, replacing
from smith.records.base import Reason
from smith.records.candidate import REFERENCE_ROLES, Candidate, ChangedFile
from smith.records.config import Config
from smith.records.recipe import Recipe
from smith.records.task import (
    Excluded,
    Leak,
    Selection,
    SmithMetadata,
    Source,
    Variant,
)

_DEVICES = {
    "triton": ("interpreter", "rocm", "cuda"),
    "gluon": ("rocm", "cuda"),
    "native": ("cpu",),
    "hip": ("rocm",),
    "ck": ("rocm",),
    "flydsl": ("rocm",),
    "asm": ("rocm",),
    "code_object": ("rocm",),
    "cubin": ("cuda",),
    "cuda": ("cuda",),
    "cute": ("cuda",),
    "cutile": ("cuda",),
    "tilelang": ("rocm", "cuda"),
}
"""Which kinds of device can run kernels of a language."""


@dataclass(frozen=True)
class Frozen:
    """A bundle was written (or stands already as it would be written)."""

    pr: int
    id: str
    tree: str
    path: Path
    leaks: tuple[Leak, ...] = ()
    """What the leakage scan noted or took out."""


@dataclass(frozen=True)
class Refused:
    """No bundle can be made of this pull request."""

    pr: int
    reason: Reason
    leaks: tuple[Leak, ...] = ()


def task_id(repo: str, number: int) -> str:
    """``owner__repo-number`` in lower case."""
    return f"{repo.replace('/', '__').lower()}-{number}"


def freeze(candidate: Candidate, upstream: Upstream, store: Store, asked: Asked = PLAIN) -> Frozen | Refused:
    """Write the bundle of a variant of ``candidate`` into the data repository. Freezing twice gives the same tree.

    Raises :class:`smith.errors.BadInput` where recipe or prompts are unusable; what the pull request itself lacks is
    a :class:`Refused`; so is one whose answer lies in sight, or whose tests use what cannot be named.
    """
    odd = next((f.path for f in candidate.files if not f.path.isprintable()), None)
    if odd is not None:
        # TOML holds no bytes, and no instruction could name such a file.
        return Refused(candidate.pr, Reason(code="path_not_text", detail=ascii(odd)))
    table = rules.load(Config.load(store.layout.config).mine.rules)
    repo = scratch(store.data, store.layout.objects, also=(upstream.repository,))
    base = repo.resolve(candidate.base, "tree")
    merged = repo.resolve(candidate.merged, "tree")
    chosen = recipe_for(repo, candidate, store, base)
    recipe, recipe_file = chosen.recipe, chosen.file

    hidden = collect_hidden(repo, candidate, merged, base, test_roots(candidate, recipe.test_roots))
    reference_paths = _reference_paths(candidate, hidden)
    if not reference_paths:
        return Refused(candidate.pr, Reason(code="no_reference", detail="every changed file is a test, docs or CI"))
    try:
        whole = Whole(repo, candidate, base, diff(repo, base, merged, reference_paths), reference_paths, hidden)
        made = draft(whole, asked, editable_globs(reference_paths, hidden), table)
        if isinstance(made, Reason):
            return Refused(candidate.pr, made)
        kept = keep(store.data, upstream.repository if made.start == base else repo, made.start)
        solved = apply(repo, kept.tree, made.reference)
    except PatchError as error:
        return Refused(candidate.pr, Reason(code="reference_does_not_apply", detail=str(error)))
    if solved == kept.tree:
        return Refused(candidate.pr, Reason(code="no_reference", detail="the change is empty outside tests"))
    hidden = made.hidden

    files, guards = chosen_tests(whole, made, asked, merged, table)
    timed = candidate.kind in SPEED and not asked.variant.has_own_start
    workloads = _workloads(recipe, recipe_file, reference_paths) if timed else {}
    if not files and not guards:
        return Refused(
            candidate.pr, Reason(code="no_tests", detail="no test file was changed and none imports the code")
        )
    detected = None
    if recipe_file is None:
        detected = complete(repo, candidate, recipe, merged, [*files, *guards], hidden.roots)
        recipe = detected.recipe
    keep(store.data, repo, hidden.tree)
    for tree in (kept.tree, hidden.tree):
        check_no_history(store.data, tree)
    trees = Trees(base, merged, kept.tree, solved, hidden)
    found = study(repo, candidate, recipe, trees, files, made.reference, asked.variant)
    if found.unnamed:
        return Refused(candidate.pr, Reason(code="unspecified_interface", detail="; ".join(found.unnamed)[:500]))
    seen = tuple(leak for leak in found.leaks if made.port is None or leak.path not in made.port.oracle) + made.leaks
    if any(leak.action == "refused" for leak in seen):
        return _leaked(candidate.pr, seen)

    devices = tuple(dict.fromkeys(d for lang in made.languages for d in _DEVICES.get(lang, ())))
    spec = SmithMetadata(
        id=task_id(candidate.repo, candidate.pr) + asked.suffix,
        variant=asked.variant,
        port=made.port,
        kind=candidate.kind,
        languages=made.languages,
        devices=devices,
        source=Source(
            repo=candidate.repo,
            url=store.remember(candidate.repo, candidate.url),
            pr=candidate.pr,
            base=candidate.base,
            base_tree=base,
            tree=kept.tree,
            left_out=tuple(kept.left_out),
            merged=candidate.merged,
            merged_at=candidate.merged_at,
            license=_license(repo, base),
        ),
        kernels=made.kernels,
        editable=made.editable,
        excluded=tuple(
            Excluded(path=f.path, role=f.role)
            for f in candidate.files
            if f.path not in reference_paths and not hidden.hides(f.path)
        ),
        interface=found.briefing.interface,
    )
    selection = Selection(
        tree=hidden.tree,
        roots=hidden.roots,
        extra=hidden.extra,
        removed=hidden.removed,
        left_out=hidden.left_out,
        files=tuple(files),
        guards=tuple(guards),
        changed_tests=found.changed_tests,
        workloads=tuple(workloads),
    )
    overlay = diff(repo, base, merged, sorted({p for f in candidate.files for p in _paths(f) if hidden.hides(p)}))
    if asked.variant is Variant.FIX:
        told = render(candidate, spec.editable, devices=devices, override=store.layout.prompts, briefing=found.briefing)
    else:
        told = render_variant(spec, store.layout.prompts, found.briefing)
    given_away = instruction_leaks(told.text, found.briefing.addition, found.briefing.tests, told.naming)
    if given_away:
        return _leaked(candidate.pr, given_away)
    spec = spec.model_copy(update={"leaks": (*seen, *told.leaks)})
    destination = store.layout.task(spec.id)
    with (
        locked(store.layout.volatile / "locks" / f"{spec.id}.lock"),
        temporary.folder("freeze") as aside,
    ):
        recover(destination)
        folder = aside / spec.id
        write(folder, Contents(spec, selection, recipe, recipe_file, detected, made, told.text, overlay, workloads))
        tree = tree_of_folder(store.scratch, folder)
        # An unchanged bundle keeps its folder, so that freezing again never disturbs a reader; and one that authoring
        # made from this very bundle stands for it.
        there = tree_of_folder(store.scratch, destination) if destination.is_dir() else ""
        if there and came_of(store.layout, spec.id, tree, there):
            tree = there
        if there != tree:
            with replacing(destination) as fresh:
                shutil.copytree(folder, fresh, dirs_exist_ok=True)
    return Frozen(candidate.pr, spec.id, tree, destination, spec.leaks)


def _leaked(pr: int, leaks: Sequence[Leak]) -> Refused:
    """The refusal of a task whose answer lies about."""
    first = next(leak for leak in leaks if leak.action == "refused")
    return Refused(pr, Reason(code="answer_in_sight", detail=str(first)), tuple(leaks))


def _reference_paths(candidate: Candidate, hidden: HiddenTests) -> list[str]:
    """Paths, old and new, whose changes make up the reference patch."""
    paths = []
    for file in candidate.files:
        if file.role in REFERENCE_ROLES and not hidden.hides(file.path) and not steers_tests(file.path):
            paths += [file.path, *([file.old_path] if file.old_path and not hidden.hides(file.old_path) else [])]
    return sorted(set(paths))


def editable_globs(paths: Iterable[str], hidden: HiddenTests) -> tuple[str, ...]:
    """What a submission may touch: the packages that the reference touches, and its files at the top by name."""
    globs = set()
    for path in paths:
        parts = PurePosixPath(path).parts
        if len(parts) == 1:
            globs.add(path)
        elif parts[0] in ("src", "python", "lib") and len(parts) > 2:
            globs.add(f"{parts[0]}/{parts[1]}/**")
        else:
            globs.add(f"{parts[0]}/**")
    return tuple(sorted(globs))


def _workloads(recipe: Recipe, recipe_file: Path | None, touched: Iterable[str]) -> dict[str, bytes]:
    """File name to content of the recipe's timing workloads for these paths."""
    if recipe_file is None:
        return {}
    paths = list(touched)
    found: dict[str, bytes] = {}
    for workload in recipe.workloads:
        patterns = [glob_pattern(glob) for glob in workload.paths]
        if any(pattern.fullmatch(path) for pattern in patterns for path in paths):
            file = recipe_file.parent / workload.file
            if file.name in found:
                raise RecordError(f"{recipe_file}: two workloads are called {file.name}", hint="rename one")
            found[file.name] = file.read_bytes()
    return found


def _license(repo: Repository, tree: str) -> str | None:
    """Name of the licence file's kind, where one lies at the top of the tree."""
    for entry in list_tree(repo, tree, recursive=False):
        name = entry.path.decode("utf-8", "replace")
        if entry.kind == "blob" and name.upper().startswith(("LICENSE", "LICENCE", "COPYING")):
            text = (dict(read_blobs(repo, [entry.oid])).get(entry.oid) or b"").decode("utf-8", "replace").lower()
            for mark, spdx in _LICENSE_MARKS:
                if mark in text:
                    return spdx
    return None


_LICENSE_MARKS = (
    ("apache license", "Apache-2.0"),
    ("permission is hereby granted, free of charge", "MIT"),
    ("neither the name of", "BSD-3-Clause"),
    ("redistribution and use in source and binary forms", "BSD-2-Clause"),
    ("mozilla public license", "MPL-2.0"),
    ("gnu lesser general public license", "LGPL"),
    ("gnu general public license", "GPL"),
)


def _paths(file: ChangedFile) -> list[str]:
    return [file.path, *([file.old_path] if file.old_path else [])]
