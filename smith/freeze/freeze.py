"""From a candidate to a bundle: trees kept, patch taken, tests hidden, instruction written."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import tomlkit

from smith import sample, temporary
from smith.environment.recipes import find_recipe, load_recipe
from smith.errors import PatchError, RecordError
from smith.freeze import bundle as layout_of
from smith.freeze.authored import came_of
from smith.freeze.bundle import Store
from smith.freeze.environment import dockerfile
from smith.freeze.globs import glob_pattern
from smith.freeze.hidden import (
    HiddenTests,
    collect_hidden,
    guard_files,
    steers_tests,
    test_file_list,
    test_roots,
)
from smith.freeze.instruction import render
from smith.freeze.leakage import check_no_history, instruction_leaks
from smith.freeze.study import Trees, study
from smith.git.mirrors import Upstream
from smith.git.patches import apply, diff
from smith.git.repository import Repository
from smith.git.sources import keep, scratch
from smith.git.trees import list_tree, read_blobs, tree_of_folder
from smith.paths import locked, recover, replacing
from smith.records.base import Reason
from smith.records.candidate import REFERENCE_ROLES, Candidate, ChangedFile, Kind
from smith.records.recipe import Recipe
from smith.records.task import Excluded, Leak, Metadata, Selection, SmithMetadata, Source, TaskFile, TaskName

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

_DESCRIPTIONS = {"triton": "Triton", "hip": "HIP", "cuda": "CUDA", "native": "native CPU"}


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


def freeze(candidate: Candidate, upstream: Upstream, store: Store) -> Frozen | Refused:
    """Write the bundle of ``candidate`` into the data repository. Freezing twice gives the same tree.

    Raises :class:`smith.errors.BadInput` where recipe or prompts are unusable; what the pull request itself lacks is
    a :class:`Refused`; so is one whose answer lies in sight, or whose tests use what cannot be named.
    """
    odd = next((f.path for f in candidate.files if not f.path.isprintable()), None)
    if odd is not None:
        # TOML holds no bytes, and no instruction could name such a file.
        return Refused(candidate.pr, Reason(code="path_not_text", detail=ascii(odd)))
    repo = scratch(store.data, store.layout.objects, also=(upstream.repository,))
    base = repo.resolve(candidate.base, "tree")
    merged = repo.resolve(candidate.merged, "tree")
    paths = [e.path.decode("utf-8", "surrogateescape") for e in list_tree(repo, base)]
    recipe, recipe_file = recipe_for(candidate, store, paths)

    hidden = collect_hidden(repo, candidate, merged, base, test_roots(candidate, recipe.test_roots))
    reference_paths = _reference_paths(candidate, hidden)
    if not reference_paths:
        return Refused(candidate.pr, Reason(code="no_reference", detail="every changed file is a test, docs or CI"))
    kept = keep(store.data, upstream.repository, base)
    try:
        reference = diff(repo, base, merged, reference_paths)
        solved = apply(repo, kept.tree, reference)
    except PatchError as error:
        return Refused(candidate.pr, Reason(code="reference_does_not_apply", detail=str(error)))
    if solved == kept.tree:
        return Refused(candidate.pr, Reason(code="no_reference", detail="the change is empty outside tests"))

    merged_paths = {e.path.decode("utf-8", "surrogateescape") for e in list_tree(repo, merged)}
    files = test_file_list(candidate, merged_paths)
    guards = guard_files(repo, merged, candidate, hidden)
    workloads = _workloads(recipe, recipe_file, reference_paths) if candidate.kind in (Kind.PERF, Kind.TUNING) else {}
    if not files and not guards:
        return Refused(
            candidate.pr, Reason(code="no_tests", detail="no test file was changed and none imports the code")
        )
    keep(store.data, repo, hidden.tree)
    for tree in (kept.tree, hidden.tree):
        check_no_history(store.data, tree)
    found = study(repo, candidate, recipe, Trees(base, merged, kept.tree, solved, hidden), files, reference)
    if found.unnamed:
        return Refused(candidate.pr, Reason(code="unspecified_interface", detail="; ".join(found.unnamed)[:500]))
    if any(leak.action == "refused" for leak in found.leaks):
        return _leaked(candidate.pr, found.leaks)

    languages = tuple(sorted({k.language for k in candidate.kernels} | set(candidate.languages)))
    devices = tuple(dict.fromkeys(d for lang in languages for d in _DEVICES.get(lang, ())))
    spec = SmithMetadata(
        id=task_id(candidate.repo, candidate.pr),
        kind=candidate.kind,
        languages=languages,
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
        kernels=candidate.kernels,
        editable=editable_globs(reference_paths, hidden),
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
        files=files,
        guards=guards,
        changed_tests=found.changed_tests,
        workloads=tuple(workloads),
    )
    overlay = diff(repo, base, merged, sorted({p for f in candidate.files for p in _paths(f) if hidden.hides(p)}))
    told = render(candidate, spec.editable, devices=devices, override=store.layout.prompts, briefing=found.briefing)
    given_away = instruction_leaks(told.text, found.briefing.addition, found.briefing.tests, told.naming)
    if given_away:
        return _leaked(candidate.pr, given_away)
    spec = spec.model_copy(update={"leaks": (*found.leaks, *told.leaks)})
    destination = store.layout.task(spec.id)
    with (
        locked(store.layout.volatile / "locks" / f"{spec.id}.lock"),
        temporary.folder("freeze") as aside,
    ):
        recover(destination)
        made = aside / spec.id
        _write(made, spec, selection, recipe, recipe_file, reference, told.text, overlay, workloads)
        tree = tree_of_folder(store.scratch, made)
        # An unchanged bundle keeps its folder, so that freezing again never disturbs a reader; and one that authoring
        # made from this very bundle stands for it.
        there = tree_of_folder(store.scratch, destination) if destination.is_dir() else ""
        if there and came_of(store.layout, spec.id, tree, there):
            tree = there
        if there != tree:
            with replacing(destination) as fresh:
                shutil.copytree(made, fresh, dirs_exist_ok=True)
    return Frozen(candidate.pr, spec.id, tree, destination, spec.leaks)


def _leaked(pr: int, leaks: Sequence[Leak]) -> Refused:
    """The refusal of a task whose answer lies about."""
    first = next(leak for leak in leaks if leak.action == "refused")
    return Refused(pr, Reason(code="answer_in_sight", detail=str(first)), tuple(leaks))


def recipe_for(candidate: Candidate, store: Store, paths: list[str]) -> tuple[Recipe, Path | None]:
    """The data repository's recipe for this upstream, else the one that comes with the sample, else a guess.

    Raises :class:`smith.errors.RecordError` for a recipe that cannot be used.
    """
    recipe, file = find_recipe(candidate.repo, [store.layout.recipes], paths)
    if file is None and candidate.url == sample.URL:
        file = sample.recipe_path()
        recipe = load_recipe(file, candidate.repo)
    return recipe, file


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


def _write(
    root: Path,
    spec: SmithMetadata,
    selection: Selection,
    recipe: Recipe,
    recipe_file: Path | None,
    reference: bytes,
    instruction: str,
    overlay: bytes,
    workloads: dict[str, bytes],
) -> None:
    """Lay out the bundle's files below ``root``."""
    kernels = ", ".join(_DESCRIPTIONS.get(lang, lang) for lang in spec.languages)
    file = TaskFile(
        task=TaskName(
            name=f"smith/{spec.id}",
            description=f"{spec.kind.value} of {kernels} kernels in {spec.source.repo}",
            keywords=("gpu-kernels", spec.kind.value, *spec.languages),
        ),
        metadata=Metadata(smith=spec),
    )
    placed: dict[str, bytes] = {
        layout_of.TASK_FILE: file.dumps_toml(),
        layout_of.INSTRUCTION: instruction.encode(),
        str(layout_of.REFERENCE): reference,
        str(layout_of.SOLVE): _SOLVE.encode(),
        str(layout_of.TEST_SCRIPT): _TEST.encode(),
        str(layout_of.SELECTION): selection.dumps(),
        "environment/Dockerfile": dockerfile(spec, recipe).encode(),
    }
    if recipe.prelude is not None and recipe_file is not None:
        placed["environment/prelude.py"] = (recipe_file.parent / recipe.prelude).read_bytes()
        recipe = recipe.model_copy(update={"prelude": "prelude.py"})
    placed[str(layout_of.RECIPE)] = tomlkit.dumps(
        recipe.model_copy(update={"workloads": ()}).model_dump(mode="json", exclude_none=True)
    ).encode()
    placed["tests/overlay.patch"] = overlay
    placed |= {f"tests/workloads/{name}": data for name, data in workloads.items()}
    for name, data in placed.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(0o755 if name.endswith(".sh") else 0o644)


_SOLVE = """#!/bin/sh
# Apply the reference patch to the source in the working directory.
set -eu
exec git apply --whitespace=nowarn "$(dirname "$0")/reference.patch"
"""

_TEST = """#!/bin/sh
# The expectations of a bundle live in its receipts, one a device; a bundle by itself says nothing about outcomes.
# So this script cannot reward anything yet: it says so and gives 0. Grade with: smith grade TASK PATCHFILE
set -eu
mkdir -p /logs/verifier
echo "no expectations in this bundle: grade it with 'smith grade'" >&2
echo '{"reward": 0}' > /logs/verifier/reward.json
"""
