"""Answers as files: bound to what they were given for, used again without a call, refused where that has changed."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from smith.errors import BadInput, RecordError, Stale
from smith.freeze.bundle import EXTRA_TESTS, Bundle
from smith.records.authoring import Answer, Role
from smith.records.base import Record, to_json


def binding_of(bundle: Bundle) -> str:
    """Digest of all that an answer is about: source, reference, hidden and extra tests, probes, instruction."""
    extra = {name: (bundle.path / EXTRA_TESTS / name).read_bytes() for name in bundle.selection.authored}
    probes = {probe.name: bundle.probe_patch(probe.name) for probe in bundle.probes}
    parts = {
        "task": bundle.id,
        "source": bundle.spec.source.tree,
        "hidden_tests": bundle.selection.tree,
        "files": [*bundle.selection.files, *bundle.selection.guards],
        "reference": _sha256(bundle.reference),
        "instruction": _sha256(bundle.instruction.encode()),
        "extra_tests": {name: _sha256(data) for name, data in extra.items()},
        "probes": {name: _sha256(data) for name, data in probes.items()},
    }
    return _sha256(to_json(parts))


def digest_of(record: Record) -> str:
    """Digest of a record's content."""
    return _sha256(record.dump_line())


def folder_name(model: str) -> str:
    """A model's name as the name of a folder: readable, and no two models share one."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", model).strip("-.")[:60] or "model"
    return plain if plain == model else f"{plain}-{_sha256(model.encode())[:8]}"


class Answers:
    """The answers below ``folder``, one file each. With ``strict`` one that does not fit is refused, not asked anew."""

    def __init__(self, folder: Path, task: str, binding: str, *, strict: bool) -> None:
        self.folder, self.task, self.binding, self.strict = folder, task, binding, strict

    def path(self, role: Role, number: int) -> Path:
        return self.folder / f"{number:02d}-{role}.json"

    def get(self, role: Role, number: int, follows: str | None) -> Answer | None:
        """The answer of a role about design ``number``; None where there is none that fits.

        With ``strict``, raises :class:`RecordError` for a broken one and :class:`Stale` for one that was given for
        another source, other tests, another instruction or another earlier answer.
        """
        path = self.path(role, number)
        if not path.is_file():
            return None
        try:
            answer = Answer.load(path)
        except RecordError:
            if self.strict:
                raise
            return None
        fault = self._unlike(answer, role, number, follows)
        if fault and self.strict:
            raise Stale(f"{path}: {fault}", hint="prepared answers are only good for what they were given for")
        return None if fault else answer

    def _unlike(self, answer: Answer, role: Role, number: int, follows: str | None) -> str:
        if answer.task != self.task:
            return f"was given for {answer.task}"
        if answer.binding != self.binding:
            return "was given for another source, other tests or another instruction"
        if (answer.role, answer.number) != (role, number):
            return f"is {answer.role} of design {answer.number}"
        return "" if answer.follows == follows else "follows another answer than the one before it"

    def put(self, answer: Answer) -> None:
        """Keep an answer."""
        answer.save(self.path(answer.role, answer.number))


def prepared(folder: Path, task: str, binding: str) -> Answers:
    """The answers that somebody gives with ``--answers``. Raises :class:`BadInput` where the folder holds none."""
    if not folder.is_dir() or not any(folder.glob("[0-9][0-9]-*.json")):
        raise BadInput(f"{folder}: holds no answers", hint="files such as 01-design.json, see docs/authoring.md")
    return Answers(folder, task, binding, strict=True)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
