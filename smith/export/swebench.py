"""Rows of SWE-bench out of bundles, their receipts and the trees that they name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from smith.errors import SmithError
from smith.export.rows import FAIL_TO_PASS, PASS_TO_PASS, PERF_TARGET, Row, instance_of
from smith.export.script import evaluation
from smith.export.texts import decoded, text_diff
from smith.freeze.bundle import Bundle, Store
from smith.freeze.panels import StoredReceipt, load_panel, pinned_receipt, receipts_of
from smith.git.patches import apply
from smith.git.trees import list_tree
from smith.grade.trial import base_tree, reference_tree
from smith.records.base import Reason
from smith.records.receipt import Receipt, Verdict

SPLIT = "test"


@dataclass(frozen=True)
class Exported:
    """A row, with the bundle that it came from."""

    row: Row
    bundle: Bundle


@dataclass(frozen=True)
class Refused:
    """A task, row or prediction that has no other form, and why."""

    id: str
    reason: Reason


@dataclass(frozen=True)
class Chosen:
    """A task with the receipt that gives its expectations."""

    bundle: Bundle
    stored: StoredReceipt


def choose(store: Store, panel: str | None, device: str) -> Iterator[Chosen | Refused]:
    """The tasks of a panel with their pinned receipts, or all tasks with a valid receipt for the tree they have now.

    ``device`` is a device's name, or ``auto``: the first that there is. A task without a receipt for it is refused.
    Raises :class:`smith.errors.BadInput` where the panel is not there or a bundle is broken.
    """
    if panel is not None:
        for task in load_panel(store.layout, panel).tasks:
            try:
                yield Chosen(store.load(task.id), pinned_receipt(store, task, device))
            except SmithError as error:
                yield Refused(task.id, Reason(code="no_receipt", detail=str(error)))
        return
    for task_id in store.ids():
        bundle = store.load(task_id)
        valid = [s for s in receipts_of(store.layout, task_id, bundle.tree) if s.receipt.verdict is Verdict.VALID]
        fitting = [s for s in valid if device in ("auto", s.receipt.device)]
        if fitting:
            yield Chosen(bundle, fitting[0])
        else:
            there = ", ".join(s.receipt.device for s in valid) or "none"
            detail = f"no valid receipt for {'any device' if device == 'auto' else device}; there are: {there}"
            yield Refused(task_id, Reason(code="no_receipt", detail=detail))


def export(store: Store, panel: str | None = None, device: str = "auto") -> Iterator[Exported | Refused]:
    """A row for every task that :func:`choose` gives, or why there is none."""
    for found in choose(store, panel, device):
        if isinstance(found, Refused):
            yield found
            continue
        try:
            made = make_row(store, found.bundle, found.stored.receipt)
        except SmithError as error:
            made = Reason(code="no_row", detail=str(error))
        yield Refused(found.bundle.id, made) if isinstance(made, Reason) else Exported(made, found.bundle)


def make_row(store: Store, bundle: Bundle, receipt: Receipt) -> Row | Reason:
    """The row of a bundle, with the expectations of ``receipt``.

    ``patch`` and ``test_patch`` are taken from git trees: the second is what the hidden tests change in the starting
    tree, and the two in either order give the tree that the reference is graded on. Raises what
    :meth:`~smith.freeze.bundle.Store.require_sources` raises, and :class:`~smith.errors.PatchError`.
    """
    if bundle.spec.variant.has_own_start:
        detail = f"{bundle.spec.variant.value} starts from a tree that no commit of upstream has: smith export harbor"
        return Reason(code="start_is_no_commit", detail=detail)
    store.require_sources(bundle)
    start = bundle.spec.source.tree
    hidden = base_tree(store, bundle)
    # The reference as the bundle has it, byte for byte, where it is text.
    patch = decoded(bundle.reference)
    if patch is None:
        patch = text_diff(store.scratch, start, apply(store.scratch, start, bundle.reference))
    test_patch = text_diff(store.scratch, start, hidden)
    if apply(store.scratch, hidden, patch.encode()) != reference_tree(store, bundle):
        return Reason(code="patches_overlap", detail="the reference patch changes what the hidden tests replace")
    fail_to_pass: Sequence[str] = receipt.fail_to_pass
    if receipt.timing is not None and bundle.selection.workloads:
        fail_to_pass = [*fail_to_pass, PERF_TARGET]
    if not fail_to_pass:
        return Reason(code="no_fail_to_pass", detail=f"the receipt for {receipt.device} names neither tests nor times")
    evaluated = evaluation(bundle, receipt, test_patch, _at_start(store, bundle))
    if evaluated is None:
        return Reason(code="unreadable_test_id", detail="no log parser of SWE-bench gives back the names of its tests")
    source, instance = bundle.spec.source, instance_of(bundle.id)
    return Row(
        {
            "repo": source.repo,
            "instance_id": instance,
            "base_commit": source.base,
            "patch": patch,
            "test_patch": test_patch,
            "problem_statement": bundle.instruction,
            "hints_text": "",
            "created_at": source.merged_at,
            "version": receipt.environment.name if receipt.environment else "default",
            FAIL_TO_PASS: list(fail_to_pass),
            PASS_TO_PASS: list(receipt.pass_to_pass),
            "environment_setup_commit": source.base,
            "eval_script": evaluated.script,
            "image": image_of(instance),
            "log_parser": evaluated.log_parser,
            "eval_type": "pass_and_fail",
            "split": SPLIT,
            "merge_commit": source.merged,
            "smith_tree": bundle.tree,
            "smith_device": receipt.device,
        },
        bundle.id,
    )


def image_of(instance_id: str) -> str:
    """The one name of an image that SWE-bench's checker accepts; its builder gives it to what it builds."""
    return f"swebench/sweb.eval.x86_64.{instance_id}:latest".lower().replace("__", "_1776_")


def _at_start(store: Store, bundle: Bundle) -> list[str]:
    """Those folders and files of the hidden tests that the starting tree has."""
    paths = [e.path.decode("utf-8", "surrogateescape") for e in list_tree(store.scratch, bundle.spec.source.tree)]
    return [
        place
        for place in bundle.selection.places
        if any(path == place or path.startswith(f"{place}/") for path in paths)
    ]
