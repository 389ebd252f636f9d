"""What each changed file of a pull request is for, and which kernels in it changed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Literal, NamedTuple

from smith.git.history import Change
from smith.mine import kernels
from smith.mine.blobs import Blobs
from smith.mine.devices import Named, named
from smith.mine.lines import changed_lines
from smith.mine.remembered import HandedOn
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
_REMEMBERED_BYTES = 16 << 20
"""Of what was read, and as much again of blobs."""
_AT_ONCE = 64
"""Changes whose blobs are held together: a mass edit may be larger than memory."""

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
        self._read: HandedOn[_Version, Source] = HandedOn(_REMEMBERED_BYTES)
        self._data: HandedOn[str, bytes] = HandedOn(_REMEMBERED_BYTES)

    def shape(self, changes: Sequence[Change]) -> Shape:
        """Classify the raw ``changes`` of one pull request."""
        roles = [self._role_by_path(change) for change in changes]
        judged = [
            change
            for change, role in zip(changes, roles, strict=True)
            if role not in _BY_PATH_ONLY and self._rules.may_hold_kernels(change.path)
        ]
        compiled = {
            change.path: _Content(Role.KERNEL, language, () if change.exact else (COMPILED,))
            for change, role in zip(changes, roles, strict=True)
            if role not in _BY_PATH_ONLY and (language := self._rules.binary(change.path))
        }
        contents, added, removed = self._contents(judged, kernels_change=bool(compiled))
        contents |= compiled
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

    def _contents(self, judged: Sequence[Change], *, kernels_change: bool) -> tuple[dict[str, _Content], int, int]:
        """What the content of each of ``judged`` says, by path; and how many lines they add and remove in all.

        Only a change of kernels can become a task, and counting costs as much as looking for them: without
        ``kernels_change`` nothing is counted where none of these files holds any.
        """
        # In a mass edit nobody looks at each kernel, and telling code from text would take longer than all else.
        mass = len(judged) >= self._rules.limits.mass_kernel_files
        contents: dict[str, _Content] = {}
        counts: list[tuple[int, int]] = []
        waiting: list[Change] = []
        for some in _parts(judged):
            data: dict[str, bytes | None] = {}
            sources = self._sources(some, data)
            for change in some:
                told = contents[change.path] = self._content(change, sources, tell_text=not mass)
                kernels_change = kernels_change or (told.role is Role.KERNEL and told.language is not None)
            if kernels_change:
                counts.append(self._count(some, data))
            else:
                waiting += some
            self._hand_on(some, sources, data)
        if kernels_change:
            counts += [self._count(some, {}) for some in _parts(waiting)]
        return contents, sum(more for more, _ in counts), sum(fewer for _, fewer in counts)

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

    def _sources(self, changes: Sequence[Change], data: dict[str, bytes | None]) -> dict[_Version, Source]:
        """Both sides of ``changes``; the blobs that had to be read for them are in ``data`` then."""
        versions = dict.fromkeys(version for change in changes for version in _versions(change) if version)
        known = {version: self._read.take(version) for version in versions}
        self._read_data((version[0] for version, source in known.items() if source is None), data)
        return {
            version: kernels.read(data[version[0]], version[1], self._rules) if source is None else source
            for version, source in known.items()
        }

    def _count(self, changes: Sequence[Change], data: dict[str, bytes | None]) -> tuple[int, int]:
        """How many lines ``changes`` add and remove in all."""
        added = removed = 0
        edited = [change for change in changes if not change.exact]
        self._read_data((version[0] for change in edited for version in _versions(change) if version), data)
        for change in edited:
            before, after = (data[version[0]] if version else b"" for version in _versions(change))
            if before is not None and after is not None and b"\0" not in before[:8000] + after[:8000]:
                more, fewer = changed_lines(before, after)
                added, removed = added + more, removed + fewer
        return added, removed

    def _read_data(self, oids: Iterable[str], data: dict[str, bytes | None]) -> None:
        """Fill in the content of blobs."""
        wanted = [oid for oid in dict.fromkeys(oids) if oid not in data]
        held = {oid: content for oid in wanted if (content := self._data.take(oid)) is not None}
        data.update(held)
        data.update(self._blobs.read(oid for oid in wanted if oid not in held))

    def _hand_on(
        self, changes: Sequence[Change], sources: Mapping[_Version, Source], data: Mapping[str, bytes | None]
    ) -> None:
        """Keep the old sides: those landings that are looked at next, older ones, made most of them."""
        for change in changes:
            version = _versions(change)[0]
            if version is not None:
                self._read.hand_on(version, sources[version], sources[version].size)
                if (content := data.get(version[0])) is not None:
                    self._data.hand_on(version[0], content, len(content))

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
        return all(self._moves_only(one, name) for one in edited)

    def _moves_only(self, change: Change, name: re.Pattern[bytes]) -> bool:
        data: dict[str, bytes | None] = {}
        self._read_data((change.old_oid, change.new_oid), data)
        return _lines(data[change.old_oid], name) == _lines(data[change.new_oid], name)


def _parts(changes: Sequence[Change]) -> Iterator[Sequence[Change]]:
    return (changes[start : start + _AT_ONCE] for start in range(0, len(changes), _AT_ONCE))


def _lines(data: bytes | None, moved: re.Pattern[bytes]) -> list[bytes]:
    """The lines of a file without what moved, in no order: a renamed import is sorted elsewhere."""
    return sorted(moved.sub(b"", line).strip() for line in (data or b"").splitlines())


def _versions(change: Change) -> tuple[_Version | None, _Version | None]:
    """Both sides of a change, None where the file does not exist."""
    before = (change.old_oid, change.before) if change.before else None
    return before, None if change.status == "D" else (change.new_oid, change.path)
