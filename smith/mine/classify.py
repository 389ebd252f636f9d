"""What each changed file of a pull request is for, and which kernels in it changed."""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Literal, NamedTuple

from smith.git.history import Change
from smith.mine import kernels
from smith.mine.blobs import Blobs
from smith.mine.devices import Named, named
from smith.mine.lines import changed_lines
from smith.mine.rules import Rules
from smith.mine.source import NOTHING, Source, main_language
from smith.records.base import Record
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
COMPILED = "<compiled>"
"""Stands for the kernels of a code object, whose names are not read."""
_REMEMBERED = 2000
_REMEMBERED_BYTES = 64 << 20

_Version = tuple[str, str]
"""One version of a file: object id and path."""


class Shape(Record):
    """The changed files of one pull request, and the kernels among them that changed."""

    files: tuple[ChangedFile, ...]
    kernels: tuple[KernelChange, ...]
    """One entry a changed file that holds kernels; without symbols where only code beside them changed."""
    moves_only: bool = False
    """Whether files only move: no edits but to the lines that name what moved."""
    lines_added: int = 0
    """Lines with a text that was not there, in files that can hold kernels; 0 where no such file holds any."""
    lines_removed: int = 0
    devices: tuple[str, ...] = ()
    """What guards in the changed kernels name: ``rocm``, ``MI300X``, ..."""
    architectures: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    """Changed files whose content is not here (a partial clone): of these nothing is known."""

    @property
    def roles(self) -> frozenset[Role]:
        return frozenset(file.role for file in self.files)

    @property
    def symbols(self) -> tuple[str, ...]:
        """Every kernel in which a line changed."""
        return tuple(symbol for kernel in self.kernels for symbol in kernel.symbols)

    @property
    def code(self) -> tuple[str, ...]:
        """Every kernel whose code changed."""
        return tuple(symbol for kernel in self.kernels for symbol in kernel.code)

    @property
    def languages(self) -> tuple[str, ...]:
        """Languages of the changed kernels; of the files beside which code changed where no kernel did."""
        touched = [one for one in self.kernels if one.symbols] or self.kernels
        return tuple(sorted({kernel.language for kernel in touched}))


class _Content(NamedTuple):
    """What the content of a changed file says."""

    role: Role | None = None
    """None: nothing."""
    language: str | None = None
    touched: tuple[str, ...] = ()
    text_only: tuple[str, ...] = ()
    guards: Named = Named()


class Classifier:
    """Classifies the changes of one repository, remembering what it read.

    The base side of one landing is mostly the merged side of an earlier one.
    """

    def __init__(self, blobs: Blobs, rules: Rules) -> None:
        self._blobs = blobs
        self._rules = rules
        self._read: OrderedDict[_Version, Source] = OrderedDict()
        self._data: OrderedDict[str, bytes | None] = OrderedDict()
        self._data_bytes = 0

    def shape(self, changes: Sequence[Change]) -> Shape:
        """Classify the raw ``changes`` of one pull request."""
        roles = [self._role_by_path(change) for change in changes]
        judged = [
            change
            for change, role in zip(changes, roles, strict=True)
            if role not in _BY_PATH_ONLY and self._rules.may_hold_kernels(change.path)
        ]
        sources = self._sources(judged)
        # In a mass edit nobody looks at each kernel, and telling code from text would take longer than all else.
        mass = len(judged) >= self._rules.limits.mass_kernel_files
        contents = {change.path: self._content(change, sources, tell_text=not mass) for change in judged}
        contents |= {
            change.path: _Content(Role.KERNEL, language, () if change.exact else (COMPILED,))
            for change, role in zip(changes, roles, strict=True)
            if role not in _BY_PATH_ONLY and (language := self._rules.binary(change.path))
        }
        files: list[ChangedFile] = []
        touched: list[KernelChange] = []
        for change, path_role in zip(changes, roles, strict=True):
            told = contents.get(change.path, _Content())
            role = told.role or path_role or Role.HOST
            if role is Role.KERNEL and told.language:
                touched.append(
                    KernelChange(
                        path=change.path,
                        language=told.language,
                        symbols=told.touched,
                        text_only=told.text_only or None,
                    )
                )
            files.append(
                ChangedFile(
                    path=change.path,
                    old_path=change.old_path,
                    change=_CHANGES.get(change.status, "modified"),
                    role=role,
                    language=told.language,
                )
            )
        edits = any(kernel.code for kernel in touched)
        # Only a change of kernels can become a task, and counting costs as much as looking for them.
        added, removed = self._count(judged) if touched else (0, 0)
        return Shape(
            files=tuple(files),
            kernels=tuple(touched),
            moves_only=bool(changes) and not edits and self._only_moves(changes, files),
            lines_added=added,
            lines_removed=removed,
            devices=tuple(dict.fromkeys(name for told in contents.values() for name in told.guards.devices)),
            architectures=tuple(
                dict.fromkeys(name for told in contents.values() for name in told.guards.architectures)
            ),
            unread=tuple(
                change.path
                for change in judged
                if any(version and version[0] in self._blobs.missing for version in _versions(change))
            ),
        )

    def _role_by_path(self, change: Change) -> Role | None:
        if _SUBMODULE in (change.old_mode, change.new_mode):
            return Role.VENDORED
        role = self._rules.role(change.path)
        if role is None and not self._rules.may_hold_kernels(change.path):
            return Role.OTHER
        return role

    def _content(self, change: Change, sources: Mapping[_Version, Source], *, tell_text: bool) -> _Content:
        before, after = (sources[version] if version else NOTHING for version in _versions(change))
        language = after.language or before.language
        if after.generated:
            return _Content(Role.GENERATED, language)
        if language is None:
            return _Content()
        found = {} if change.exact else kernels.changed(before.kernels, after.kernels)
        text_only = kernels.text_only(found, before.kernels) if tell_text else ()
        guards = named(codes=(kernel.text for kernel in found.values())) if tell_text else Named()
        return _Content(Role.KERNEL, main_language(found) or language, tuple(found), tuple(text_only), guards)

    def _sources(self, changes: Sequence[Change]) -> dict[_Version, Source]:
        """Both sides of ``changes``."""
        versions = dict.fromkeys(version for change in changes for version in _versions(change) if version)
        data = self._read_data(oid for oid, path in versions if (oid, path) not in self._read)
        return {version: self._source(version, data.get(version[0])) for version in versions}

    def _count(self, changes: Sequence[Change]) -> tuple[int, int]:
        """How many lines ``changes`` add and remove in all."""
        added = removed = 0
        edited = [change for change in changes if not change.exact]
        data = self._read_data(version[0] for change in edited for version in _versions(change) if version)
        for change in edited:
            before, after = (data[version[0]] if version else b"" for version in _versions(change))
            if before is not None and after is not None and b"\0" not in before[:8000] + after[:8000]:
                more, fewer = changed_lines(before, after)
                added, removed = added + more, removed + fewer
        return added, removed

    def _source(self, version: _Version, data: bytes | None) -> Source:
        if version not in self._read:
            self._read[version] = kernels.read(data, version[1], self._rules)
            if len(self._read) > _REMEMBERED:
                self._read.popitem(last=False)
        self._read.move_to_end(version)
        return self._read[version]

    def _read_data(self, oids: Iterable[str]) -> dict[str, bytes | None]:
        """The content of blobs, the last read ones from memory."""
        wanted = list(dict.fromkeys(oids))
        fresh = self._blobs.read(oid for oid in wanted if oid not in self._data)
        self._data.update(fresh)
        self._data_bytes += sum(len(data) for data in fresh.values() if data)
        found = {}
        for oid in wanted:
            self._data.move_to_end(oid)
            found[oid] = self._data[oid]
        while self._data_bytes > _REMEMBERED_BYTES:
            self._data_bytes -= len(self._data.popitem(last=False)[1] or b"")
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
        data = self._read_data(oid for change in edited for oid in (change.old_oid, change.new_oid))
        return all(_lines(data[one.old_oid], name) == _lines(data[one.new_oid], name) for one in edited)


def _lines(data: bytes | None, moved: re.Pattern[bytes]) -> list[bytes]:
    """The lines of a file without what moved, in no order: a renamed import is sorted elsewhere."""
    return sorted(moved.sub(b"", line).strip() for line in (data or b"").splitlines())


def _versions(change: Change) -> tuple[_Version | None, _Version | None]:
    """Both sides of a change, None where the file does not exist."""
    before = (change.old_oid, change.before) if change.before else None
    return before, None if change.status == "D" else (change.new_oid, change.path)
