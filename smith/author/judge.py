"""The acceptance gate: a design becomes a bundle beside the real one, is read, and validated as any bundle is."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from smith.author import gates
from smith.author.compose import Refused, Staged, stage
from smith.author.documents import Documents
from smith.errors import Stale
from smith.freeze.bundle import Bundle, Store
from smith.git.trees import tree_of_folder
from smith.grade.trial import Bench
from smith.paths import locked, recover, replacing
from smith.records.authoring import Authored, Design
from smith.records.base import Reason
from smith.records.receipt import Receipt, Verdict
from smith.validate.receipts import keep
from smith.validate.validate import Builder, Step, Validation


@dataclass(frozen=True)
class Judgement:
    """What the gate said: accepted where there is no reason against it."""

    reasons: tuple[Reason, ...]
    staged: Staged | None = None
    receipt: Receipt | None = None

    @property
    def accepted(self) -> bool:
        return not self.reasons


@dataclass(frozen=True)
class Judge:
    """Judges designs for ``bundle``, of which ``before`` is the valid receipt on ``bench.device``."""

    store: Store
    bundle: Bundle
    bench: Bench
    before: Receipt
    documents: Documents
    builder: Builder
    repeats: int
    step: Step

    def judge(self, design: Design, folder: Path) -> Judgement:
        """Put a design through every gate; its bundle is made in ``folder``. The real bundle is not touched."""
        try:
            staged = stage(self.store, self.bench, self.bundle, design, folder)
        except Refused as refused:
            return Judgement(refused.reasons)
        reasons = gates.check(self.store, self.bundle, self.documents, design, staged)
        if reasons:
            return Judgement(tuple(reasons), staged)
        made = staged.bundle
        validation = Validation(made, self.bench, repeats=self.repeats, builder=self.builder, step=self.step)
        receipt = validation.receipt()
        return Judgement(tuple(self._against(made, receipt)), staged, receipt)

    def _against(self, made: Bundle, receipt: Receipt) -> list[Reason]:
        """What a validation says against a design."""
        if receipt.verdict is not Verdict.VALID:
            return list(receipt.reasons) or [Reason(code=receipt.verdict.value)]
        lost = [i for i in self.before.fail_to_pass if i not in receipt.fail_to_pass]
        found = [Reason(code="lost_test", detail=f"{i} was fail-to-pass and is no more") for i in lost]
        kept = {i.partition("::")[0] for i in (*receipt.fail_to_pass, *receipt.pass_to_pass)}
        for path in made.selection.authored:
            if path not in kept:
                detail = f"{path}: no test of it passes on the reference and tells or guards anything on this device"
                found.append(Reason(code="extra_test", detail=detail))
        return found


def adopt(store: Store, bundle: Bundle, made: Bundle, receipt: Receipt, authored: Authored, note: Path) -> None:
    """Put an accepted bundle in the place of ``bundle``: its receipt first, then the note, then the folder at once.

    Killed in between, the old bundle stands and the same command goes on from its answers. Raises :class:`Stale` where
    the bundle has changed meanwhile.
    """
    destination = store.layout.task(bundle.id)
    with locked(store.layout.volatile / "locks" / f"{bundle.id}.lock"):
        recover(destination)
        if tree_of_folder(store.scratch, destination) != bundle.tree:
            raise Stale(f"{bundle.id} has changed while it was authored", hint="author it again")
        keep(receipt, store.layout.receipt(bundle.id, made.tree, receipt.device))
        authored.save(note)
        if made.tree != bundle.tree:
            with replacing(destination) as fresh:
                shutil.copytree(made.path, fresh, dirs_exist_ok=True)
