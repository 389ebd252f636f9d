"""Candidates out of other sets' rows: SWE-bench, SWE-rebench (the same columns and more) and GSO.

A candidate names commits that its upstream has, so that anybody can fetch it again. So a row is taken for the landing
of the pull request (or, as in GSO, of the commit) that it names, and refused where the history has none; and its
patches are compared with what landed, so that no row silently becomes another task.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from smith.errors import PatchError, RecordError
from smith.export.rows import Row
from smith.export.swebench import Refused
from smith.git.mirrors import Upstream
from smith.git.patches import apply, changes
from smith.git.repository import OID
from smith.git.sources import scratch
from smith.mine import mine
from smith.mine.discover import History, discover
from smith.records.base import Reason
from smith.records.candidate import RECOMMENDED_REJECTS, Candidate
from smith.records.config import MineConfig

_REPO = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9._-]*[A-Za-z0-9_-][A-Za-z0-9._-]*\Z")
_NUMBER = re.compile(r"-([0-9]{1,9})(?:\.[a-z]+(?:-[a-z]+)?)?\Z")


@dataclass(frozen=True)
class Imported:
    """A candidate, with the row that it came from."""

    row: Row
    candidate: Candidate


def import_rows(
    rows: Sequence[Row],
    open_repo: Callable[[str], Upstream],
    objects: Path,
    *,
    config: MineConfig | None = None,
    cache: Path | None = None,
) -> list[Imported | Refused]:
    """Candidates for rows, in their order.

    ``open_repo`` gives the upstream of a row's ``repo``; ``objects`` is a folder for scratch git objects; ``cache``
    that of :func:`smith.mine.mine`. Raises what ``open_repo`` raises.
    """
    by_repo: dict[str, list[int]] = {}
    found: dict[int, Imported | Refused] = {}
    for place, row in enumerate(rows):
        try:
            repo = row.text("repo")
        except RecordError as error:
            found[place] = Refused(row.instance_id, Reason(code="bad_row", detail=str(error)))
            continue
        if not _REPO.match(repo):
            found[place] = Refused(row.instance_id, Reason(code="bad_row", detail=f"repo is {repo!r}: no owner/name"))
            continue
        by_repo.setdefault(repo, []).append(place)
    for repo, places in by_repo.items():
        chosen = [rows[place] for place in places]
        results = _of_one(chosen, open_repo(repo), objects, config, cache)
        found |= dict(zip(places, results, strict=True))
    return [found[place] for place in range(len(rows))]


def _of_one(
    rows: Sequence[Row], upstream: Upstream, objects: Path, config: MineConfig | None, cache: Path | None
) -> list[Imported | Refused]:
    history = discover(upstream.repository, upstream.repository.default_branch)
    numbers = [_landed(row, history, upstream) for row in rows]
    wanted = {number for number in numbers if isinstance(number, int)}
    mined = mine(
        upstream.repository,
        repo=upstream.repo,
        url=upstream.url,
        numbers=wanted,
        # Somebody has chosen these rows already: what a filter only recommends to leave out stays.
        allow=[flag.value for flag in RECOMMENDED_REJECTS],
        config=config,
        cache=cache,
    ) if wanted else None  # fmt: skip
    candidates = {c.pr: c for c in mined.candidates} if mined else {}
    rejected = {r.pr: Reason(code=r.reason, detail=r.detail or r.title) for r in mined.rejections} if mined else {}
    seen: set[int] = set()
    results: list[Imported | Refused] = []
    for row, number in zip(rows, numbers, strict=True):
        if isinstance(number, Reason):
            results.append(Refused(row.instance_id, number))
            continue
        candidate = candidates.get(number)
        if candidate is None:
            results.append(Refused(row.instance_id, rejected[number]))
            continue
        reason = _unlike(row, candidate, upstream, objects)
        if reason is None and number in seen:
            reason = Reason(code="twice", detail=f"#{number} came with an earlier row")
        seen.add(number)
        results.append(Refused(row.instance_id, reason) if reason else Imported(row, candidate))
    return results


def _landed(row: Row, history: History, upstream: Upstream) -> int | Reason:
    """The number of the pull request that a row is about."""
    by_commit = {landing.oid: one.number for one in history.merged for landing in one.landings}
    for column in ("opt_commit", "merge_commit"):
        commit = row.columns.get(column)
        if isinstance(commit, str) and OID.match(commit):
            if commit in by_commit:
                return by_commit[commit]
            if column == "opt_commit":
                return Reason(code="not_in_history", detail=f"{commit[:12]} is no landing of {upstream.repo}")
    number = row.columns.get("pull_number")
    if not isinstance(number, int):
        match = _NUMBER.search(row.instance_id)
        number = int(match[1]) if match else None
    if number is None:
        return Reason(code="no_number", detail="its instance_id ends in no number, and it names no landed commit")
    if not any(one.number == number for one in history.merged):
        return Reason(code="not_merged", detail=f"{upstream.repo} has no merged pull request #{number}")
    return number


def _unlike(row: Row, candidate: Candidate, upstream: Upstream, objects: Path) -> Reason | None:
    """Why a row is not what landed: each path that its patches touch must be as it is on the merged side."""
    repo = scratch(upstream.repository, objects)
    base, merged = repo.resolve(candidate.base, "tree"), repo.resolve(candidate.merged, "tree")
    try:
        texts = [row.text("patch") or row.text("gt_diff"), row.text("test_patch")]
        row.tests("FAIL_TO_PASS"), row.tests("PASS_TO_PASS")
    except RecordError as error:
        return Reason(code="bad_row", detail=str(error))
    if not texts[0].strip():
        return None  # nothing to compare: the row trusts the history
    tree = base
    try:
        for text in texts:
            tree = apply(repo, tree, _whole(text))
    except (PatchError, UnicodeEncodeError) as error:
        return Reason(code="differs_from_landing", detail=f"on the base of #{candidate.pr}: {error}")
    touched = {path for change in changes(repo, base, tree) for path in (change.path, change.old_path) if path}
    differing = {path for change in changes(repo, tree, merged) for path in (change.path, change.old_path) if path}
    wrong = sorted(touched & differing)
    if wrong:
        more = f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        return Reason(code="differs_from_landing", detail=f"#{candidate.pr} landed another {wrong[0]}{more}")
    return None


def _whole(patch: str) -> bytes:
    """Other sets strip their patches; git wants the last line ended."""
    return (patch if not patch.strip() or patch.endswith("\n") else f"{patch}\n").encode()
