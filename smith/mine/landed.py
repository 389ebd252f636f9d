"""The history of a branch, as far as possible from what was kept of it: only what is new is asked of git."""

from __future__ import annotations

import contextlib
import json
import zlib
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

from smith.git.history import Change, Landing, first_parent
from smith.git.repository import Repository
from smith.mine.discover import History, Merged, pull_heads, recognise
from smith.mine.store import Store
from smith.records.pull_request import PullRequest

_CHANGE = tuple(field.name for field in fields(Change))
_LANDING = tuple(field.name for field in fields(Landing))


def read_history(
    repo: Repository,
    branch: str,
    store: Store,
    name: str,
    *,
    on_new: Callable[[Sequence[Landing]], None] = lambda landings: None,
) -> tuple[History, bool]:
    """As :func:`~smith.mine.discover.discover`, for the repository called ``name`` in ``store``.

    Landings are named by commit, so what is kept of them holds for as long as the last of them is in the branch. What
    was recognised holds for the same landings and heads. Where blobs are missing that were needed, renames are told
    worse and what was rebased may be missed: that is kept for as long as the clone has the same objects. The second
    value says whether all were there. ``on_new`` is given the landings that are new, before it is
    recognised what they are.
    """
    tip, heads = repo.resolve(branch), pull_heads(repo)
    # What a partial clone lacks today it may hold tomorrow: then it has more objects.
    packs = store.digest(repo.text("count-objects", "-v"))
    last, kept, whole = _kept_landings(store, name, branch, packs)
    if last is not None and not repo.has(last):
        last, kept, whole = None, [], True  # the branch was rewritten, and what it held is gone

    def missing() -> None:
        nonlocal whole
        whole = False

    fresh = [] if last == tip else list(first_parent(repo, branch, after=last, on_missing=missing))
    if last is not None and last != tip and (not fresh or fresh[-1].parents[:1] != (last,)):
        kept = []  # the branch was rewritten
        fresh = list(first_parent(repo, branch, on_missing=missing))
    on_new(fresh)
    landings = (*fresh, *kept)
    key = store.digest(tip, *(f"{number} {oid}" for number, oid in sorted(heads.items())))
    known = store.recognised(name, branch, key, packs)
    if known is not None:
        with contextlib.suppress(ValueError):
            return History(landings, unpack_merged(known, landings), heads), whole
    before = whole
    history = recognise(repo, landings, heads, missing)
    again = bool(fresh) or whole is not before
    store.remember_history(
        name,
        branch,
        tip,
        pack_landings(landings) if again else None,
        key,
        pack_merged(history.merged),
        b"" if whole else packs,
    )
    return history, whole


def _kept_landings(store: Store, name: str, branch: str, packs: bytes) -> tuple[str | None, list[Landing], bool]:
    tip, data, whole = store.landings(name, branch, packs)
    if tip is not None and data is not None:
        with contextlib.suppress(ValueError):
            return tip, unpack_landings(data), whole
    return None, [], True


def pack_landings(landings: Sequence[Landing]) -> bytes:
    """Landings with all that they hold. JSON, since what lies on a disk must not be able to run code."""
    return _pack([_row(landing) for landing in landings])


def _row(landing: Landing) -> list[Any]:
    # What dataclasses have for this copies each value, which takes ten times as long.
    row = [getattr(landing, name) for name in _LANDING]
    return [*row[:-1], [_change_row(change) for change in landing.changes]]


def _change_row(change: Change) -> list[Any]:
    return [getattr(change, name) for name in _CHANGE]


def unpack_landings(data: bytes) -> list[Landing]:
    """What :func:`pack_landings` packed. Raises :class:`ValueError` for anything else."""
    try:
        return [_landing(row) for row in _unpack(data)]
    except TypeError as error:
        raise ValueError("these are no landings") from error


def _landing(row: list[Any]) -> Landing:
    oid, parents, *words, changes = row
    tree, author, email, authored, committer, committed, subject, body = words
    changed = tuple(Change(*change) for change in changes)
    return Landing(oid, tuple(parents), tree, author, email, authored, committer, committed, subject, body, changed)


def pack_merged(merged: Sequence[Merged]) -> bytes:
    """Pull requests without their landings, which are named by object id."""
    rows = []
    for one in merged:
        # Only a rebase of several commits has changes of its own.
        own = [_change_row(change) for change in one.changes] if len(one.landings) > 1 else None
        rows.append([one.pull_request.model_dump(mode="json"), [landing.oid for landing in one.landings], own])
    return _pack(rows)


def unpack_merged(data: bytes, landings: Sequence[Landing]) -> tuple[Merged, ...]:
    """What :func:`pack_merged` packed, with the landings of the same history. Raises :class:`ValueError`."""
    at = {landing.oid: landing for landing in landings}
    try:
        found = []
        for record, oids, own in _unpack(data):
            landed = tuple(at[oid] for oid in oids)
            changes = landed[-1].changes if own is None else tuple(Change(*change) for change in own)
            found.append(Merged(PullRequest.model_validate(record), landed, changes))
        return tuple(found)
    except (TypeError, KeyError) as error:
        raise ValueError("these are no pull requests of this history") from error


def _pack(rows: Any) -> bytes:
    # In ASCII: half a surrogate pair, as names that are no UTF-8 have it, is escaped.
    return zlib.compress(json.dumps(rows, separators=(",", ":")).encode(), 1)


def _unpack(data: bytes) -> Any:
    try:
        return json.loads(zlib.decompress(data))
    except zlib.error as error:
        raise ValueError("damaged") from error
