"""Variants of one pull request: what each starts from, what solves it, and which tests speak of it.

``fix`` is the pull request as it came. ``optimize`` starts there too, and counts nothing but speed. ``author`` starts
from the merged source without the bodies of the changed kernels, so that interface and host code are those that the
merged tests call, and its reference gives the bodies back. ``port`` starts as ``author`` does, for kernels that are
wanted in another language; the old ones lie beside it to be read, and are gone when it is graded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Literal

from smith.errors import BadInput, PatchError
from smith.freeze.bodies import Emptied, empty
from smith.freeze.globs import glob_pattern
from smith.freeze.hidden import HiddenTests, collectable, guard_files, steers_tests, test_file_list
from smith.git.objects import shown
from smith.git.patches import apply, changes, diff
from smith.git.repository import Repository
from smith.git.trees import TreeEntry, list_tree, overlay, read_file, write_blob, write_tree
from smith.mine import kernels as kernel_reader
from smith.mine.reach import ReachIndex
from smith.mine.rules import Rules
from smith.records.base import Reason
from smith.records.candidate import Candidate, KernelChange, Kind
from smith.records.signals import Reach
from smith.records.task import Leak, LeakKind, Port, Variant, suffix_of

SPEED = (Kind.PERF, Kind.TUNING)
"""Kinds of pull request that are about speed."""
ORACLE = "port_reference"
"""Folder of a port's starting tree with the kernels as they were merged."""
_MOST_REACHING = 3
"""So many unchanged tests that reach the kernels are run besides the changed ones."""


@dataclass(frozen=True)
class Asked:
    """The variant that is asked for. Raises :class:`BadInput` where its parts do not belong together."""

    variant: Variant = Variant.FIX
    to: Literal["triton", "hip"] | None = None
    solution: bytes | None = None
    """A patch that solves a port: no pull request has one."""

    def __post_init__(self) -> None:
        if self.variant is Variant.PORT and self.to is None:
            raise BadInput("a port into which language?", hint="--variant port --to triton, or --to hip")
        if self.variant is not Variant.PORT and (self.to is not None or self.solution is not None):
            raise BadInput(f"the variant {self.variant.value} takes neither --to nor --solution", hint="only port does")

    @property
    def name(self) -> str:
        """``fix``, ``author``, ``port-triton``."""
        return suffix_of(self.variant, self.to) or self.variant.value

    @property
    def suffix(self) -> str:
        """What the id of a task has behind that of the plain fix."""
        return "" if self.variant is Variant.FIX else f"~{self.name}"


PLAIN = Asked()


@dataclass(frozen=True)
class Draft:
    """What a variant is made of, before its source is kept."""

    start: str
    """Tree that it starts from, with all that upstream has."""
    reference: bytes
    kernels: tuple[KernelChange, ...]
    languages: tuple[str, ...]
    editable: tuple[str, ...]
    hidden: HiddenTests
    start_patch: bytes | None = None
    """From the base to :attr:`start`, where that is another tree."""
    port: Port | None = None
    leaks: tuple[Leak, ...] = ()


@dataclass(frozen=True)
class Whole:
    """The trees of a pull request, and what was found in them."""

    repo: Repository
    candidate: Candidate
    base: str
    reference: bytes
    """The whole change outside of the tests, as a patch on the base."""
    touched: Sequence[str]
    """Paths of :attr:`reference`."""
    hidden: HiddenTests


def draft(source: Whole, asked: Asked, editable: tuple[str, ...], rules: Rules) -> Draft | Reason:
    """What ``asked`` is made of; ``editable`` is what a submission for the plain fix may touch.

    A :class:`Reason` where the pull request gives no such task. Raises :class:`PatchError` where its change does not
    apply to its base, :class:`BadInput` where a given solution cannot be one.
    """
    candidate = source.candidate
    languages = tuple(sorted({k.language for k in candidate.kernels} | set(candidate.languages)))
    if asked.variant is Variant.OPTIMIZE and candidate.kind not in SPEED:
        detail = f"optimize needs a pull request about speed, and #{candidate.pr} is of kind {candidate.kind.value}"
        return Reason(code="unfit_variant", detail=detail)
    if not asked.variant.has_own_start:
        return Draft(source.base, source.reference, candidate.kernels, languages, editable, source.hidden)
    if asked.to is not None and asked.to in {k.language for k in candidate.kernels if k.code}:
        return Reason(code="unfit_variant", detail=f"#{candidate.pr} changes kernels in {asked.to} already")
    merged = apply(source.repo, source.base, source.reference)
    kernels = [k for k in candidate.kernels if k.path in source.touched]
    contents = {k.path: read_file(source.repo, merged, k.path) for k in kernels}
    emptied = empty(kernels, contents, rules)
    if isinstance(emptied, Reason):
        return emptied
    start = _replaced(source.repo, merged, emptied.files)
    if asked.to is None:
        return Draft(
            start=start,
            reference=diff(source.repo, start, merged),
            kernels=emptied.kernels,
            languages=_languages(emptied),
            editable=tuple(sorted(emptied.files)),
            hidden=source.hidden,
            start_patch=diff(source.repo, source.base, start),
        )
    return _port(source, asked, emptied, merged, start, editable, rules)


def _port(
    source: Whole,
    asked: Asked,
    emptied: Emptied,
    merged: str,
    start: str,
    editable: tuple[str, ...],
    rules: Rules,
) -> Draft | Reason:
    assert asked.to is not None
    repo = source.repo
    oracle = {f"{ORACLE}/{path}": read_file(repo, merged, path) or b"" for path in sorted(emptied.files)}
    if any(shown(e.path).startswith(f"{ORACLE}/") for e in list_tree(repo, merged)):
        return Reason(code="unfit_variant", detail=f"upstream has a folder {ORACLE} of its own")
    start = _replaced(repo, start, oracle)
    allowed = _host_code(repo, start, editable) if asked.to == "triton" else editable
    if not allowed:
        return Reason(code="unfit_variant", detail="no Python lies beside the changed code to launch Triton from")
    hidden = replace(source.hidden, removed=tuple(sorted({*source.hidden.removed, *oracle})))
    # Without a solution the old bodies stand in for one: they show that the tests tell, and nothing else.
    reference = asked.solution
    if reference is None:
        reference = diff(repo, start, merged, sorted(emptied.files))
    else:
        _check_solution(repo, start, reference, allowed, hidden)
    return Draft(
        start=start,
        reference=reference,
        kernels=emptied.kernels,
        languages=(asked.to,),
        editable=allowed,
        hidden=hidden,
        start_patch=diff(repo, source.base, start),
        port=Port(to=asked.to, origin=_languages(emptied), oracle=tuple(oracle), solved=asked.solution is not None),
        leaks=tuple(_incumbents(repo, start, emptied, asked.to, rules)),
    )


def _replaced(repo: Repository, tree: str, files: Mapping[str, bytes]) -> str:
    """``tree`` with these files in it, modes of those that it has kept."""
    modes = {shown(entry.path): entry.mode for entry in list_tree(repo, tree)}
    laid = [
        TreeEntry(modes.get(path, "100644"), "blob", write_blob(repo, data), path.encode("utf-8", "surrogateescape"))
        for path, data in files.items()
    ]
    return overlay(repo, tree, write_tree(repo, laid))


def _languages(emptied: Emptied) -> tuple[str, ...]:
    return tuple(sorted({kernel.language for kernel in emptied.kernels}))


def _host_code(repo: Repository, tree: str, editable: Iterable[str]) -> tuple[str, ...]:
    """Python below the editable folders that hold any: whoever may touch nothing else cannot keep the old language."""
    paths = [shown(entry.path) for entry in list_tree(repo, tree)]
    found = []
    for glob in editable:
        wanted = f"{glob}/*.py" if glob.endswith("/**") else glob
        pattern = glob_pattern(wanted)
        if wanted.endswith(".py") and any(pattern.fullmatch(path) for path in paths):
            found.append(wanted)
    return tuple(found)


def _check_solution(
    repo: Repository, start: str, solution: bytes, editable: Iterable[str], hidden: HiddenTests
) -> None:
    """Raise :class:`BadInput` where a submission may not be as ``solution`` is."""
    try:
        solved = apply(repo, start, solution, allow_empty=False)
    except PatchError as error:
        raise BadInput(
            f"--solution: {error}", hint="make it in the folder that smith task open gives for the port"
        ) from error
    allowed = [glob_pattern(glob) for glob in editable]
    for change in changes(repo, start, solved):
        for path in filter(None, (change.path, change.old_path)):
            if hidden.hides(path) or steers_tests(path) or not any(p.fullmatch(path) for p in allowed):
                raise BadInput(f"--solution: {path} is not among the editable paths ({', '.join(editable)})")


def _incumbents(repo: Repository, tree: str, emptied: Emptied, to: str, rules: Rules) -> Iterable[Leak]:
    """Files named like a kernel's that hold kernels in the wanted language already."""
    stems = {PurePosixPath(path).stem for path in emptied.files}
    for entry in list_tree(repo, tree):
        path = shown(entry.path)
        if entry.kind != "blob" or PurePosixPath(path).stem not in stems or not rules.may_hold_kernels(path):
            continue
        found = kernel_reader.read(read_file(repo, tree, path), path, rules).kernels
        if any(kernel.language == to for kernel in found.values()):
            words = f"a kernel of this name is in {to} already"
            yield Leak(kind=LeakKind.SOURCE, action="noted", path=path, excerpt=words)


def chosen_tests(whole: Whole, made: Draft, asked: Asked, merged: str, rules: Rules) -> tuple[list[str], list[str]]:
    """The test files to run, and the guards among unchanged ones. ``merged`` is the tree that holds them.

    What the plain fix is told from its base by is what the pull request changed. The other variants are about the
    kernels, so that every test which reaches them speaks, whoever wrote it.
    """
    repo, candidate, hidden = whole.repo, whole.candidate, made.hidden
    paths = {shown(entry.path) for entry in list_tree(repo, merged)}
    files = list(test_file_list(candidate, paths))
    guards = list(guard_files(repo, merged, candidate, hidden))
    if asked.variant is Variant.FIX:
        return files, guards
    with ReachIndex(repo, rules) as index:
        tests = index.tests_of(merged, candidate.files, made.kernels)
    leading = [test.path for test in tests if test.reach is not Reach.CHANGED_ALONE and test.runner == "pytest"]
    # What imports do not tell (a native kernel behind the name of a library) the words of a test may.
    further = [path for path in leading or guards if collectable(path) and hidden.hides(path) and path not in files]
    files += further[:_MOST_REACHING]
    return files, [path for path in guards if path not in files]
