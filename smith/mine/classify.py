"""What each changed file of a pull request is for, and which kernels in it changed."""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

from smith.git.history import Change
from smith.mine import kernels
from smith.mine.blobs import Blobs
from smith.mine.rules import Rules
from smith.mine.source import NOTHING, Source, main_language
from smith.records.candidate import ChangedFile, KernelChange, Role

_SUBMODULE = "160000"
_CHANGES: dict[str, Literal["added", "modified", "deleted", "renamed", "type"]] = {
    "A": "added",
    "C": "added",
    "M": "modified",
    "D": "deleted",
    "R": "renamed",
    "T": "type",
}
# Tests and data can hold kernels too; these roles are never sources of a task.
_BY_PATH_ONLY = frozenset({Role.TEST, Role.TEST_SUPPORT, Role.BENCHMARK, Role.CI, Role.VENDORED, Role.GENERATED})
_REMEMBERED = 2000

_Version = tuple[str, str]
"""One version of a file: object id and path."""


@dataclass(frozen=True)
class Shape:
    """The changed files of one pull request, and the kernels among them that changed."""

    files: tuple[ChangedFile, ...]
    kernels: tuple[KernelChange, ...]
    """One entry a changed file that holds kernels; without symbols where only code beside them changed."""
    moves_only: bool
    """Whether files only move: no edits but to the lines that name what moved."""

    @property
    def roles(self) -> frozenset[Role]:
        return frozenset(file.role for file in self.files)

    @property
    def symbols(self) -> tuple[str, ...]:
        """Every changed kernel."""
        return tuple(symbol for kernel in self.kernels for symbol in kernel.symbols)

    @property
    def languages(self) -> tuple[str, ...]:
        """Languages of the changed kernels; of the files beside which code changed where no kernel did."""
        touched = [one for one in self.kernels if one.symbols] or self.kernels
        return tuple(sorted({kernel.language for kernel in touched}))


class Classifier:
    """Classifies the changes of one repository, remembering what it read.

    The base side of one landing is mostly the merged side of an earlier one.
    """

    def __init__(self, blobs: Blobs, rules: Rules) -> None:
        self._blobs = blobs
        self._rules = rules
        self._read: OrderedDict[_Version, Source] = OrderedDict()

    def shape(self, changes: Sequence[Change]) -> Shape:
        """Classify the raw ``changes`` of one pull request."""
        roles = [self._role_by_path(change) for change in changes]
        judged = [
            change
            for change, role in zip(changes, roles, strict=True)
            if role not in _BY_PATH_ONLY and self._rules.may_hold_kernels(change.path)
        ]
        sources = self._sources(version for change in judged for version in _versions(change) if version)
        contents = {change.path: self._content(change, sources) for change in judged}
        files: list[ChangedFile] = []
        touched: list[KernelChange] = []
        for change, path_role in zip(changes, roles, strict=True):
            told, language, found = contents.get(change.path, (None, None, []))
            role = told or path_role or Role.HOST
            if role is Role.KERNEL and language:
                touched.append(KernelChange(path=change.path, language=language, symbols=tuple(found)))
            files.append(
                ChangedFile(
                    path=change.path,
                    old_path=change.old_path,
                    change=_CHANGES.get(change.status, "modified"),
                    role=role,
                    language=language,
                )
            )
        edits = any(kernel.symbols for kernel in touched)
        moves_only = bool(changes) and not edits and self._only_moves(changes, files)
        return Shape(tuple(files), tuple(touched), moves_only)

    def _role_by_path(self, change: Change) -> Role | None:
        if _SUBMODULE in (change.old_mode, change.new_mode):
            return Role.VENDORED
        role = self._rules.role(change.path)
        if role is None and not self._rules.may_hold_kernels(change.path):
            return Role.OTHER
        return role

    def _content(self, change: Change, sources: Mapping[_Version, Source]) -> tuple[Role | None, str | None, list[str]]:
        """What the content of a file says: its role (None: nothing), language and changed kernels."""
        before, after = (sources[version] if version else NOTHING for version in _versions(change))
        language = after.language or before.language
        if after.generated:
            return Role.GENERATED, language, []
        if language is None:
            return None, None, []
        found = {} if change.exact else kernels.changed(before.kernels, after.kernels)
        return Role.KERNEL, main_language(found) or language, list(found)

    def _sources(self, versions: Iterable[_Version]) -> dict[_Version, Source]:
        wanted = list(dict.fromkeys(versions))
        data = self._blobs.read(oid for oid, path in wanted if (oid, path) not in self._read)
        for version in wanted:
            if version not in self._read:
                self._read[version] = kernels.read(data[version[0]], version[1], self._rules)
            self._read.move_to_end(version)
        found = {version: self._read[version] for version in wanted}
        while len(self._read) > _REMEMBERED:
            self._read.popitem(last=False)
        return found

    def _only_moves(self, changes: Sequence[Change], files: Sequence[ChangedFile]) -> bool:
        """Whether sources only move: what else changes in code are the lines that name what moved."""
        if all(change.exact for change in changes):
            return True
        code = [change for change, file in zip(changes, files, strict=True) if file.role in (Role.KERNEL, Role.HOST)]
        stems = {
            PurePosixPath(path).stem for change in code if change.old_path for path in (change.old_path, change.path)
        }
        if not stems or any(change.status in "AD" for change in code):
            return False
        name = re.compile(rb"\b(?:" + b"|".join(re.escape(os.fsencode(stem)) for stem in sorted(stems)) + rb")\b")
        edited = [change for change in code if not change.exact]
        data = self._blobs.read(oid for change in edited for oid in (change.old_oid, change.new_oid))
        return all(_lines(data[one.old_oid], name) == _lines(data[one.new_oid], name) for one in edited)


def _lines(data: bytes | None, moved: re.Pattern[bytes]) -> list[bytes]:
    """The lines of a file without what moved, in no order: a renamed import is sorted elsewhere."""
    return sorted(moved.sub(b"", line).strip() for line in (data or b"").splitlines())


def _versions(change: Change) -> tuple[_Version | None, _Version | None]:
    """Both sides of a change, None where the file does not exist."""
    before = (change.old_oid, change.before) if change.before else None
    return before, None if change.status == "D" else (change.new_oid, change.path)
