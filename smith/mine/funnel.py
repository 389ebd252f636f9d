"""The funnel: every merged pull request becomes a candidate or a rejection with its reason; nothing is lost."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time
from pathlib import Path

from smith.errors import BadInput
from smith.git.repository import Repository
from smith.mine import rules as rules_
from smith.mine.decide import Case, Filters, Reason, decide
from smith.mine.rules import Rules
from smith.mine.sampling import DEFAULT_BY, Entry, choose
from smith.mine.signals import Ahead, operator_classes, read
from smith.mine.survey import Progress, Survey, Wanted, survey
from smith.mine.verify import verify_all
from smith.records.candidate import HIDDEN_ROLES, REFERENCE_ROLES, Candidate, Flag, Kind, Mined, Rejection
from smith.records.config import MineConfig
from smith.records.signals import Signals


@dataclass(frozen=True)
class Sampling:
    """How to draw from the candidates; with ``count=None`` all are kept and only their sides are told."""

    count: int | None = None
    by: tuple[str, ...] = DEFAULT_BY
    seed: str = "0"
    holdout: float = 0.0


def mine(
    upstream_repo: Repository,
    *,
    repo: str,
    url: str,
    branch: str | None = None,
    since: str | None = None,
    until: str | None = None,
    numbers: Collection[int] = (),
    languages: Collection[str] = (),
    kinds: Collection[str] = (),
    operators: Collection[str] = (),
    reject: Collection[str] = (),
    allow: Collection[str] = (),
    limit: int | None = None,
    sample: Sampling | None = None,
    all: bool = False,
    verify: bool = False,
    config: MineConfig | None = None,
    cache: Path | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Mined:
    """Find the kernel pull requests that were merged into ``branch`` (default: the repository's default branch).

    ``repo`` (``owner/name``) and ``url`` are written into the records. ``since``, ``until`` (ISO dates, both
    inclusive) and ``numbers`` select what is seen; ``languages``, ``kinds``, ``reject`` (flags) and ``limit`` reject.
    ``all`` drops the recommended filters: whatever changes the body of a kernel is a candidate; ``allow`` drops single
    ones. ``verify`` merges base and head of each candidate again. ``cache`` is a file that makes the next scan fast;
    ``jobs`` processes classify (default: one a core). Candidates come newest first.

    Raises :class:`~smith.errors.UnknownTask` for a number that is not merged, :class:`~smith.errors.BadInput` for a
    date, language, kind, flag or branch that does not exist.
    """
    config = config or MineConfig()
    rules = rules_.load(config.rules)
    wanted = Wanted(
        since=_moment(since, time.min) if since else None,
        until=_moment(until, time.max) if until else None,
        numbers=frozenset(numbers),
        filters=_filters(rules, config, languages, kinds, reject, allow, all),
        limit=_limit(limit),
    )
    found = survey(
        upstream_repo, repo=repo, branch=branch, wanted=wanted, rules=rules, cache=cache, jobs=jobs, progress=progress
    )
    _all_known("operator class", wanted_operators := tuple(operators or config.operators), operator_classes())
    chosen: list[tuple[Case, Candidate]] = []
    rejections: dict[int, Reason] = {}
    for case in found.cases:
        reason = decide(case, wanted.filters)
        if reason is None and wanted.limit is not None and len(chosen) >= wanted.limit:
            reason = "over_limit", f"the first {wanted.limit} were asked for"
        if reason is None:
            candidate = _candidate(case, found, repo, url)
            told = candidate.signals.operators if candidate.signals else ()
            if wanted_operators and not set(wanted_operators) & set(told):
                reason = "operator_filter", ", ".join(told)
            else:
                chosen.append((case, candidate))
        if reason is not None:
            rejections[case.merged.number] = reason
    if sample is not None:
        chosen = _sampled(chosen, sample, rejections)
    if verify:
        verified = verify_all(upstream_repo, [case.merged for case, _ in chosen], progress)
        chosen = [(c, one.model_copy(update={"verified": verified[one.pr]})) for c, one in chosen]
    titles = {case.merged.number: case.merged.pull_request.title for case in found.cases}
    return Mined(
        repo=repo,
        seen=len(found.cases),
        candidates=tuple(candidate for _, candidate in chosen),
        rejections=tuple(
            Rejection(pr=number, title=titles[number], reason=rejections[number][0], detail=rejections[number][1])
            for number in titles
            if number in rejections
        ),
        notes=found.notes,
    )


def _sampled(
    chosen: Sequence[tuple[Case, Candidate]], sample: Sampling, rejections: dict[int, Reason]
) -> list[tuple[Case, Candidate]]:
    """Those of ``chosen`` that a stratified sample takes, with their side; the others are rejected."""
    entries = [Entry(one, one.signals or Signals(), one.lineage or f"{one.repo}#{one.pr}") for _, one in chosen]
    count = len(entries) if sample.count is None else sample.count
    taken = choose(entries, count, by=sample.by, seed=sample.seed, holdout=sample.holdout)
    sides = {entry.candidate.pr: side for side in ("train", "held_out") for entry in getattr(taken, side)}
    kept = []
    for case, one in chosen:
        if one.pr in sides:
            side = sides[one.pr] if sample.holdout else None
            kept.append((case, one.model_copy(update={"split": side})))
        else:
            rejections[one.pr] = "not_sampled", f"{len(sides)} of {len(entries)} were drawn"
    return kept


def _candidate(case: Case, found: Survey, repo: str, url: str) -> Candidate:
    record, files, shape = case.merged.pull_request, case.shape.files, case.shape
    ahead = found.ahead.get(record.number, Ahead(reverted_by=case.reverted_by))
    signals = read(title=record.title, body=record.body, files=files, kernels=shape.kernels).model_copy(
        update={
            "later_fixes": ahead.later_fixes,
            "reverted_by": ahead.reverted_by,
            "lands_again": ahead.lands_again,
            "landed_again_by": ahead.landed_again_by,
            "lines_added": shape.lines_added,
            "lines_removed": shape.lines_removed,
        }
    )
    return Candidate(
        repo=repo,
        url=url,
        pr=record.number,
        title=record.title,
        body=record.body,
        author=record.author,
        form=record.form,
        evidence=record.evidence,
        certain=record.certain,
        base=record.base,
        merged=record.merged,
        head=record.head,
        merged_at=record.merged_at,
        kind=case.kind,
        kind_evidence=case.kind_evidence,
        languages=case.shape.languages,
        kernels=case.shape.kernels,
        source_files=tuple(file.path for file in files if file.role in REFERENCE_ROLES),
        test_files=tuple(file.path for file in files if file.role in HIDDEN_ROLES and file.change != "deleted"),
        files=files,
        flags=case.flags,
        signals=signals,
        lineage=found.lineages.get(record.number),
    )


def _filters(
    rules: Rules,
    config: MineConfig,
    languages: Collection[str],
    kinds: Collection[str],
    reject: Collection[str],
    allow: Collection[str],
    all: bool,
) -> Filters:
    """The filters of this call; what it does not say is taken from ``smith.toml``."""
    languages, kinds = languages or config.languages, kinds or config.kinds
    _all_known("language", languages, rules.languages)
    _all_known("kind", kinds, list(Kind))
    for flags in (reject, allow):
        _all_known("flag", flags, list(Flag))
    return Filters(
        languages=frozenset(languages),
        kinds=frozenset(map(Kind, kinds)),
        reject=frozenset(map(Flag, (*config.reject, *reject))) - frozenset(map(Flag, allow)),
        allow=frozenset(map(Flag, (*config.allow, *allow))),
        all=all,
    )


def _all_known(what: str, asked: Iterable[str], known: Collection[str]) -> None:
    for name in asked:
        if name not in known:
            raise BadInput(f"unknown {what} {name!r}", hint=f"one of: {', '.join(sorted(known))}")


def _limit(limit: int | None) -> int | None:
    if limit is not None and limit < 0:
        raise BadInput(f"the limit {limit} is negative")
    return limit


def _moment(text: str, day: time) -> datetime:
    """A date means its first or last moment; times without an offset are UTC."""
    try:
        when = datetime.fromisoformat(text)
    except ValueError as error:
        raise BadInput(f"{text!r} is no date", hint="write it as YYYY-MM-DD") from error
    if len(text) == 10 and day is time.max:
        when = datetime.combine(when.date(), day)
    return when if when.tzinfo else when.replace(tzinfo=UTC)
