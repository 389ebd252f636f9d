"""From a design to a bundle beside the real one: the only parts that authoring may change, and nothing else.

The instruction above its first section, extra hidden tests, and probes. Everything else is copied byte for byte, and
that is checked at the end from the two trees.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from smith.author.prompts import rendered
from smith.errors import BadInput, Defect, PatchError
from smith.freeze.bundle import EXTRA_TESTS, INSTRUCTION, PROBE_PATCHES, PROBES, SELECTION, Bundle, Store
from smith.freeze.text import fenced
from smith.git.patches import apply, changes, diff
from smith.git.trees import TreeEntry, list_tree, overlay, read_blobs, write_blob, write_tree
from smith.grade.grader import checked_tree
from smith.grade.trial import Bench
from smith.paths import remove_tree
from smith.records.authoring import Design, Edit, ExtraTest, Repair, Solution, TextEdit
from smith.records.base import Reason
from smith.records.task import Probe, Probes

MOST_EXTRA = 24
"""Extra tests, and probes, that a bundle can have in all."""


class Refused(Exception):
    """A design or repair that cannot be: not even a bundle can be made of it."""

    def __init__(self, reasons: Sequence[Reason]) -> None:
        super().__init__("; ".join(map(str, reasons)))
        self.reasons = tuple(reasons)


@dataclass(frozen=True)
class Staged:
    """A bundle made from a design, in a folder of its own."""

    bundle: Bundle
    authored: str
    """The part of its instruction that is the design's."""
    patches: dict[str, str]
    """``wrong/<name>`` and ``alternatives/<name>`` to the patch, as text."""


def test_folder(bundle: Bundle) -> str:
    """Where extra tests lie: beside the first of upstream's hidden tests. Raises :class:`BadInput` without any."""
    files = (*bundle.selection.files, *bundle.selection.guards)
    if not files:
        raise BadInput(f"{bundle.id} has no hidden tests to stand beside")
    folder = PurePosixPath(files[0]).parent
    return "" if str(folder) == "." else str(folder)


def test_path(bundle: Bundle, name: str) -> str:
    """Path in the source of the extra test ``name``."""
    folder = test_folder(bundle)
    return f"{folder}/test_extra_{name}.py" if folder else f"test_extra_{name}.py"


def sections_of(instruction: str) -> str:
    """An instruction from its first heading of the second level on; empty where it has none."""
    lines = instruction.splitlines()
    for at, (line, inside) in enumerate(zip(lines, fenced(lines), strict=True)):
        if not inside and line.startswith("## "):
            return "\n".join(lines[at:]).strip()
    return ""


def stage(store: Store, bench: Bench, bundle: Bundle, design: Design, folder: Path) -> Staged:
    """Make the bundle of ``design`` in ``folder``, which is replaced. Raises :class:`Refused`."""
    reasons: list[Reason] = []
    sections = sections_of(bundle.instruction)
    told = rendered(
        "authored-instruction.md.j2",
        store.layout.prompts,
        title=design.title,
        description=design.description,
        requirements=[r.statement for r in design.requirements],
        sections=sections,
    )
    extra = {test_path(bundle, test.name): test.content for test in design.tests}
    taken = {e.path.decode("utf-8", "surrogateescape") for e in list_tree(store.scratch, bundle.selection.tree)}
    taken |= {e.path.decode("utf-8", "surrogateescape") for e in list_tree(store.scratch, bundle.spec.source.tree)}
    for path in sorted(taken & extra.keys()):
        reasons.append(Reason(code="extra_test", detail=f"upstream has a file {path}"))
    probes = {probe.name: (probe, bundle.probe_patch(probe.name)) for probe in bundle.probes}
    patches: dict[str, str] = {}
    for kind, place, solutions in (
        ("wrong", "wrong", design.wrong),
        ("alternative", "alternatives", design.alternatives),
    ):
        for solution in solutions:
            try:
                patch = patch_of(store, bench, bundle, solution)
            except PatchError as error:
                where = f"{error.path}: " if error.path and error.path not in error.message else ""
                detail = f"{place}/{solution.name}: {where}{error.message}"
                reasons.append(Reason(code=error.rule, detail=detail))
                continue
            probe = Probe.parse({"name": solution.name, "kind": kind, "focus": solution.focus}, solution.name)
            probes[solution.name] = (probe, patch)
            patches[f"{place}/{solution.name}"] = patch.decode("utf-8", "replace")
    authored = tuple(sorted({*bundle.selection.authored, *extra}))
    if len(authored) > MOST_EXTRA or len(probes) > MOST_EXTRA:
        reasons.append(Reason(code="too_many", detail=f"more than {MOST_EXTRA} extra tests or probes in all"))
    if reasons:
        raise Refused(reasons)
    remove_tree(folder)
    shutil.copytree(bundle.path, folder)
    (folder / INSTRUCTION).write_text(told, "utf-8")
    for path, content in extra.items():
        _place(folder / EXTRA_TESTS / path, content.encode())
    selection = bundle.selection.model_copy(update={"authored": authored})
    (folder / SELECTION).write_bytes(selection.dumps())
    if probes:
        (folder / PROBES).write_bytes(Probes(probes=tuple(p for p, _ in probes.values())).dumps())
        for name, (_, patch) in probes.items():
            _place(folder / PROBE_PATCHES / f"{name}.patch", patch)
    made = store.load_folder(folder, bundle.id)
    check_untouched(store, bundle, made)
    body = told.removesuffix(sections + "\n") if sections else told
    return Staged(made, body, patches)


def _place(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(0o644)


def check_untouched(store: Store, before: Bundle, after: Bundle) -> None:
    """See that nothing differs but what authoring may change. Raises :class:`Defect` where something does."""
    for change in changes(store.scratch, before.tree, after.tree):
        for path in filter(None, (change.path, change.old_path)):
            allowed = path in (INSTRUCTION, str(SELECTION), str(PROBES)) or path.startswith(
                (f"{EXTRA_TESTS}/", f"{PROBE_PATCHES}/")
            )
            if not allowed or change.status == "D":
                raise Defect(f"authoring has changed {path} of {before.id}")
    if after.selection.model_copy(update={"authored": before.selection.authored}) != before.selection:
        raise Defect(f"authoring has changed the selection of {before.id}")


def patch_of(store: Store, bench: Bench, bundle: Bundle, solution: Solution) -> bytes:
    """The patch of a solution against the frozen source. Raises :class:`PatchError` where it may not or cannot be."""
    start = bundle.spec.source.tree
    base = start if solution.base == "start" else apply(store.scratch, start, bundle.reference)
    tree = base
    for edit in solution.edits:
        tree = _edited(store, tree, edit)
    if tree == base:
        raise PatchError("its edits change nothing", rule="empty")
    patch = diff(store.scratch, start, tree)
    checked_tree(bundle, patch, bench)
    return patch


def _edited(store: Store, tree: str, edit: Edit) -> str:
    """``tree`` with one edit made."""
    raw = edit.path.encode("utf-8", "surrogateescape")
    entry = next((e for e in list_tree(store.scratch, tree) if e.path == raw), None)
    if entry is None:
        if edit.find:
            raise PatchError("the source has no such file", rule="no_such_file", path=edit.path)
        content, mode = edit.replace, "100644"
    elif entry.kind != "blob" or entry.mode == "120000":
        raise PatchError("is no plain file", rule="no_such_file", path=edit.path)
    else:
        mode = entry.mode
        before = (dict(read_blobs(store.scratch, [entry.oid])).get(entry.oid) or b"").decode("utf-8", "surrogateescape")
        content = replaced(before, edit.find, edit.replace, edit.path)
    data = content.encode("utf-8", "surrogateescape")
    try:
        fresh = TreeEntry(mode, "blob", write_blob(store.scratch, data), raw)
        return overlay(store.scratch, tree, write_tree(store.scratch, [fresh]))
    except BadInput as error:
        raise PatchError("the edit leaves the tree", rule="escapes_tree", path=edit.path) from error


def replaced(text: str, find: str, replace: str, where: str) -> str:
    """``text`` with the one place of ``find`` replaced. Raises :class:`PatchError` unless there is exactly one."""
    count = text.count(find) if find else 0
    if count != 1:
        words = "is empty" if not find else f"stands there {count} times" if count else "does not stand there"
        raise PatchError(f"find {words}: {find[:80]!r}", rule="edit_does_not_fit", path=where)
    return text.replace(find, replace)


def repaired(design: Design, repair: Repair) -> Design:
    """The design after a repair. Raises :class:`Refused` for one that does not fit, or reaches for what it may not."""
    try:
        return _repaired(design, repair)
    except PatchError as error:
        raise Refused([Reason(code=error.rule, detail=f"{error.path}: {error.message}")]) from error


def _repaired(design: Design, repair: Repair) -> Design:
    title, description = design.title, design.description
    tests = {test.name: test for test in design.tests}
    wrong = {solution.name: solution for solution in design.wrong}
    alternatives = {solution.name: solution for solution in design.alternatives}
    for edit in repair.edits:
        if edit.document == "title":
            title = replaced(title, edit.find, edit.replace, edit.document)
        elif edit.document == "description":
            description = replaced(description, edit.find, edit.replace, edit.document)
        else:
            test = _named_test(edit, tests)
            content = replaced(test.content, edit.find, edit.replace, edit.document)
            tests[test.name] = test.model_copy(update={"content": content})
    groups: dict[str, dict[str, ExtraTest] | dict[str, Solution]]
    groups = {"tests": tests, "wrong": wrong, "alternatives": alternatives}
    for name in repair.remove:
        group, _, part = name.partition("/")
        if part not in groups.get(group, {}):
            raise PatchError("there is no such part of the design", rule="not_repairable", path=name)
        groups[group].pop(part)
    tests.update({test.name: test for test in repair.tests})
    wrong.update({solution.name: solution for solution in repair.wrong})
    alternatives.update({solution.name: solution for solution in repair.alternatives})
    whole = {
        "title": title,
        "description": description,
        "requirements": design.requirements if repair.requirements is None else repair.requirements,
        "tests": tuple(tests.values()),
        "wrong": tuple(wrong.values()),
        "alternatives": tuple(alternatives.values()),
    }
    try:
        # Checked anew: a model_copy would let pass what the record refuses.
        return Design.parse({k: _plain(v) for k, v in whole.items()}, "the repaired design")
    except BadInput as error:
        raise Refused([Reason(code="not_a_design", detail=error.message)]) from error


def _plain(value: object) -> object:
    return [item.model_dump(mode="json") for item in value] if isinstance(value, tuple) else value


def _named_test(edit: TextEdit, tests: dict[str, ExtraTest]) -> ExtraTest:
    group, _, name = edit.document.partition("/")
    if group != "tests" or name not in tests:
        raise PatchError(
            "a repair may edit title, description and tests/<name> only", rule="not_repairable", path=edit.document
        )
    return tests[name]
