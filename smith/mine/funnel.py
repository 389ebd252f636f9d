"""The funnel: every merged pull request becomes a candidate or a rejection with its reason; nothing is lost."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time
from pathlib import Path

from smith.errors import BadInput
from smith.git.repository import Repository
from smith.mine import kind as kinds_
from smith.mine import rules as rules_
from smith.mine.decide import Case, Filters, Reason, decide
from smith.mine.reach import ReachIndex
from smith.mine.rules import Rules
from smith.mine.sampling import DEFAULT_BY, Entry, Side, check_by, choose, split
from smith.mine.signals import Ahead, operator_classes
from smith.mine.store import Store, open_store
from smith.mine.survey import Progress, Survey, Wanted, survey
from smith.mine.told import Told
from smith.mine.verify import verify_all
from smith.mine.worker import without_collection
from smith.records.candidate import HIDDEN_ROLES, REFERENCE_ROLES, Candidate, Flag, Kind, Mined, Rejection
from smith.records.config import MineConfig
from smith.records.enrichment import Enrichment
from smith.records.signals import Signals

_DAY = re.compile(r"\d{4}-?\d\d-?\d\d")

Enrich = Callable[[Mapping[int, str]], Mapping[int, Enrichment]]
"""Numbers with the words of their landed commits in; what a forge says of each out, as far as it does."""


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
    tests: bool = False,
    verify: bool = False,
    enrich: Enrich | None = None,
    config: MineConfig | None = None,
    cache: Path | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Mined:
    """Find the kernel pull requests that were merged into ``branch`` (default: the repository's default branch).

    ``repo`` (``owner/name``) and ``url`` are written into the records. ``since``, ``until`` (ISO dates, both
    inclusive) and ``numbers`` select what is seen; ``languages``, ``kinds``, ``reject`` (flags) and ``limit`` reject.
    ``all`` drops the recommended filters: whatever changes the body of a kernel is a candidate; ``allow`` drops single
    ones. ``enrich`` asks a forge about those that may become candidates. ``sample`` draws from the candidates.
    ``tests`` finds the tests that lead to the changed kernels. ``verify`` merges base and head of each candidate again.
    ``cache`` is a file that makes the next scan fast; ``jobs`` processes classify (default: one a core). Candidates
    come newest first.

    Raises :class:`~smith.errors.UnknownTask` for a number that is not merged, :class:`~smith.errors.BadInput` for a
    date, language, kind, flag or branch that does not exist.
    """
    config = config or MineConfig()
    rules = rules_.load(config.rules)
    wanted = Wanted(
        since=None if since is None else _moment(since, time.min),
        until=None if until is None else _moment(until, time.max),
        numbers=frozenset(numbers),
        filters=_filters(rules, config, languages, kinds, reject, allow, all),
        limit=_limit(limit),
    )
    _all_known("operator class", operators, operator_classes())
    _all_known("operator class", config.operators, operator_classes(), where="smith.toml: [mine] operators: ")
    wanted_operators = frozenset(operators or config.operators)
    if sample is not None:
        check_by(sample.by)
    found = survey(
        upstream_repo, repo=repo, branch=branch, wanted=wanted, rules=rules, cache=cache, jobs=jobs, progress=progress
    )
    cases, enrichments = found.cases, dict[int, Enrichment]()
    if enrich is not None:
        cases, enrichments = _enriched(cases, wanted.filters, enrich)
    with open_store(cache, rules) as store:
        chosen, rejections = _decided(found, cases, wanted, wanted_operators, enrichments, store, repo, url)
    if sample is not None:
        chosen = _sampled(chosen, sample, rejections)
    if tests:
        chosen = _with_tests(upstream_repo, chosen, rules, progress)
    if verify:
        verified = verify_all(upstream_repo, [case.merged for case, _ in chosen], progress)
        chosen = [(c, one.model_copy(update={"verified": verified[one.pr]})) for c, one in chosen]
    titles = {case.merged.number: case.merged.pull_request.title for case in cases}
    return Mined(
        repo=repo,
        seen=len(cases),
        candidates=tuple(candidate for _, candidate in chosen),
        rejections=tuple(
            Rejection(pr=number, title=titles[number], reason=rejections[number][0], detail=rejections[number][1])
            for number in titles
            if number in rejections
        ),
        notes=found.notes,
    )


@without_collection()
def _decided(
    found: Survey,
    cases: Sequence[Case],
    wanted: Wanted,
    operators: Collection[str],
    enrichments: Mapping[int, Enrichment],
    store: Store,
    repo: str,
    url: str,
) -> tuple[list[tuple[Case, Candidate]], dict[int, Reason]]:
    """The candidates among ``cases``, and the reasons against the others by number."""
    chosen: list[tuple[Case, Candidate]] = []
    rejections: dict[int, Reason] = {}
    reasons = [decide(case, wanted.filters) for case in cases]
    hopeful = [case for case, reason in zip(cases, reasons, strict=True) if reason is None]
    if not operators:
        hopeful = hopeful[: wanted.limit]
    told = Told(store, ((case, _body(case, enrichments)) for case in hopeful))
    for case, reason in zip(cases, reasons, strict=True):
        over = wanted.limit is not None and len(chosen) >= wanted.limit
        # Reading the words of each takes time; what is over the limit is read only where that may give another reason.
        if reason is None and (not over or operators):
            signals = told.signals(case, _body(case, enrichments))
            if operators and set(operators).isdisjoint(signals.operators):
                reason = "operator_filter", ", ".join(signals.operators)
            elif not over:
                chosen.append((case, _candidate(case, found, signals, enrichments, repo, url)))
        if reason is None and over:
            reason = "over_limit", f"the first {wanted.limit} were asked for"
        if reason is not None:
            rejections[case.merged.number] = reason
    told.keep()
    return chosen, rejections


def _body(case: Case, enrichments: Mapping[int, Enrichment]) -> str:
    """Where a forge was asked, its body is the author's own; a squash has the commits' words instead."""
    enrichment = enrichments.get(case.merged.number)
    return enrichment.body if enrichment and enrichment.body else case.merged.pull_request.body


def _with_tests(
    repo: Repository, chosen: Sequence[tuple[Case, Candidate]], rules: Rules, progress: Progress | None
) -> list[tuple[Case, Candidate]]:
    """Say which tests lead to the changed kernels of each."""
    found = []
    with ReachIndex(repo, rules) as index:
        for done, (case, one) in enumerate(chosen, start=1):
            reached = index.tests_of(case.merged.landings[-1].tree, case.shape.files, case.shape.kernels)
            found.append((case, one.model_copy(update={"tests": reached})))
            if progress is not None:
                progress("finding tests", done, len(chosen))
    return found


def _enriched(
    cases: Sequence[Case], filters: Filters, enrich: Enrich
) -> tuple[tuple[Case, ...], dict[int, Enrichment]]:
    """Ask the forge about every pull request that may become a candidate, and tell their kinds anew by labels."""
    anyway = replace(filters, kinds=frozenset())
    asked = {case.merged.number: _words(case) for case in cases if decide(case, anyway) is None}
    answers = dict(enrich(asked))
    told = []
    for case in cases:
        answer = answers.get(case.merged.number)
        if answer is not None and case.kind is not Kind.RELAND:
            record = case.merged.pull_request
            kind, evidence = kinds_.tell(record.title, answer.body or record.body, case.shape, answer.labels)
            case = replace(case, kind=kind, kind_evidence=evidence)
        told.append(case)
    return tuple(told), answers


def _words(case: Case) -> str:
    return "\n".join(f"{landing.subject}\n{landing.body}" for landing in case.merged.landings)


def _sampled(
    chosen: Sequence[tuple[Case, Candidate]], sample: Sampling, rejections: dict[int, Reason]
) -> list[tuple[Case, Candidate]]:
    """Those of ``chosen`` that a stratified sample takes, with their side; the others are rejected."""
    entries = [Entry(one, one.signals or Signals(), one.lineage or f"{one.repo}#{one.pr}") for _, one in chosen]
    if sample.count is None:
        of = split({entry.lineage for entry in entries}, sample.holdout, sample.seed)
        sides: dict[int, Side] = {entry.candidate.pr: of[entry.lineage] for entry in entries}
    else:
        drawn = choose(entries, sample.count, by=sample.by, seed=sample.seed, holdout=sample.holdout)
        sides = {entry.candidate.pr: "train" for entry in drawn.train}
        sides |= {entry.candidate.pr: "held_out" for entry in drawn.held_out}
    kept = []
    for case, one in chosen:
        if one.pr in sides:
            kept.append((case, one.model_copy(update={"split": sides[one.pr] if sample.holdout else None})))
        else:
            rejections[one.pr] = "not_sampled", f"{len(sides)} of {len(entries)} were drawn"
    return kept


def _candidate(
    case: Case, found: Survey, told: Signals, enrichments: Mapping[int, Enrichment], repo: str, url: str
) -> Candidate:
    record, files, shape = case.merged.pull_request, case.shape.files, case.shape
    ahead = found.ahead.get(record.number, Ahead(reverted_by=case.reverted_by))
    signals = told.model_copy(
        update={
            "later_fixes": ahead.later_fixes,
            "reverted_by": ahead.reverted_by,
            "lands_again": ahead.lands_again,
            "landed_again_by": ahead.landed_again_by,
            "devices": tuple(dict.fromkeys((*told.devices, *shape.devices))),
            "architectures": tuple(dict.fromkeys((*told.architectures, *shape.architectures))),
            "lines_added": shape.lines_added,
            "lines_removed": shape.lines_removed,
        }
    )
    return Candidate(
        repo=repo,
        url=url,
        pr=record.number,
        title=record.title,
        body=_body(case, enrichments),
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
        enrichment=enrichments.get(record.number),
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
    _all_known("language", config.languages, rules.languages, where="smith.toml: [mine] languages: ")
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


def _all_known(what: str, asked: Iterable[str], known: Collection[str], *, where: str = "") -> None:
    for name in asked:
        if name not in known:
            raise BadInput(f"{where}unknown {what} {name!r}", hint=f"one of: {', '.join(sorted(known))}")


def _limit(limit: int | None) -> int | None:
    if limit is not None and limit < 0:
        raise BadInput(f"the limit {limit} is negative")
    return limit


def _moment(text: str, day: time) -> datetime:
    """A date means its first or last moment; times without an offset are UTC."""
    try:
        if _DAY.fullmatch(text):
            return datetime.combine(datetime.fromisoformat(text).date(), day, tzinfo=UTC)
        when = datetime.fromisoformat(text)
    except ValueError as error:
        raise BadInput(f"{text!r} is no date", hint="write it as YYYY-MM-DD") from error
    return when if when.tzinfo else when.replace(tzinfo=UTC)
