"""The funnel: every merged pull request becomes a candidate or a rejection with its reason; nothing is lost."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, time

from smith.errors import BadInput, UnknownTask
from smith.git.repository import Repository
from smith.mine import kind as kinds_
from smith.mine import reverts as reverts_
from smith.mine import rules as rules_
from smith.mine.blobs import Blobs
from smith.mine.classify import Classifier, Shape
from smith.mine.decide import Case, decide
from smith.mine.discover import History, Merged, discover
from smith.mine.reverts import Reverts
from smith.records.candidate import HIDDEN_ROLES, REFERENCE_ROLES, Candidate, Kind, Mined, Rejection

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Wanted:
    """What the user asked for, parsed once."""

    since: datetime | None = None
    until: datetime | None = None
    numbers: frozenset[int] = frozenset()
    languages: frozenset[str] = frozenset()
    kinds: frozenset[Kind] = frozenset()
    limit: int | None = None
    all: bool = False

    def selects(self, merged: Merged) -> bool:
        """Whether ``merged`` is within the selection by date and number."""
        when = datetime.fromisoformat(merged.pull_request.merged_at)
        if self.numbers and merged.number not in self.numbers:
            return False
        return (self.since is None or when >= self.since) and (self.until is None or when <= self.until)


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
    limit: int | None = None,
    all: bool = False,
    progress: Progress | None = None,
) -> Mined:
    """Find the kernel pull requests that were merged into ``branch`` (default: the repository's default branch).

    ``repo`` (``owner/name``) and ``url`` are written into the records. ``since``, ``until`` (ISO dates, both inclusive)
    and ``numbers`` select what is seen; ``languages``, ``kinds`` and ``limit`` reject with a reason. ``all`` drops
    the recommended filters: whatever changes the body of a kernel is a candidate. Candidates come newest first.

    Raises :class:`~smith.errors.UnknownTask` for a number that is not merged, :class:`~smith.errors.BadInput` for a
    date, language, kind or branch that does not exist.
    """
    wanted = _wanted(since, until, numbers, languages, kinds, limit, all)
    history = discover(upstream_repo, branch or upstream_repo.default_branch)
    for number in sorted(wanted.numbers):
        _known(history, number)
    selected = [one for one in history.merged if wanted.selects(one)]
    reverts = reverts_.find(history)
    candidates: list[Candidate] = []
    rejections: list[Rejection] = []
    for done, case in enumerate(_cases(upstream_repo, selected, reverts), 1):
        reason = decide(case, wanted.languages, wanted.kinds, all=wanted.all)
        if reason is None and wanted.limit is not None and len(candidates) >= wanted.limit:
            reason = "over_limit", f"the first {wanted.limit} were asked for"
        if reason is None:
            candidates.append(_candidate(case, repo, url))
        else:
            title = case.merged.pull_request.title
            rejections.append(Rejection(pr=case.merged.number, title=title, reason=reason[0], detail=reason[1]))
        if progress is not None:
            progress(done, len(selected))
    return Mined(repo=repo, seen=len(selected), candidates=tuple(candidates), rejections=tuple(rejections))


def explain(
    upstream_repo: Repository, *, repo: str, url: str, number: int, branch: str | None = None, all: bool = False
) -> list[str]:
    """How pull request ``number`` was found, what it changed and what was decided, in lines for people.

    Raises :class:`~smith.errors.UnknownTask` where it is not merged.
    """
    history = discover(upstream_repo, branch or upstream_repo.default_branch)
    merged = _known(history, number)
    case = next(_cases(upstream_repo, [merged], reverts_.find(history)))
    record = merged.pull_request
    reason = decide(case, all=all)
    certain = "" if record.certain else ", not proved"
    lines = [
        f"{repo}#{number}: {record.title}",
        f"  found by    {record.evidence.value} ({record.form.value}, {record.commits} landed commit(s){certain})",
        f"  base        {record.base}",
        f"  merged      {record.merged} at {record.merged_at}",
        f"  head        {record.head or 'not present here'}",
        f"  kind        {case.kind.value}: {case.kind_evidence}",
        *(f"  flag        {flag}" for flag in case.flags),
    ]
    symbols = {kernel.path: kernel.symbols for kernel in case.shape.kernels}
    for file in case.shape.files:
        moved = f" (was {file.old_path})" if file.old_path else ""
        named = ", ".join(symbols.get(file.path, ()))
        language = f" {file.language}" if file.language else ""
        path = file.path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        lines.append(f"  {file.change:<11} {path}{moved}: {file.role.value}{language}{': ' if named else ''}{named}")
    decision = "candidate" if reason is None else f"rejected: {reason[0]}{f' ({reason[1]})' if reason[1] else ''}"
    return [*lines, f"  decision    {decision}"]


def _cases(repo: Repository, selected: Iterable[Merged], reverts: Reverts) -> Iterator[Case]:
    rules = rules_.load()
    with Blobs(repo, largest=rules.limits.largest_source) as blobs:
        classifier = Classifier(blobs, rules)
        for merged in selected:
            yield _case(merged, classifier.shape(merged.changes), reverts, rules.limits)


def _case(merged: Merged, shape: Shape, reverts: Reverts, limits: rules_.Limits) -> Case:
    record = merged.pull_request
    kind, evidence = kinds_.tell(record.title, record.body, shape)
    if merged.number in reverts.relands:
        kind, evidence = Kind.RELAND, reverts.relands[merged.number]
    mass = len(shape.files) >= limits.mass_files or len(shape.kernels) >= limits.mass_kernel_files
    return Case(merged, shape, kind, evidence, reverts.reverted.get(merged.number), mass)


def _candidate(case: Case, repo: str, url: str) -> Candidate:
    record, files = case.merged.pull_request, case.shape.files
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
    )


def _known(history: History, number: int) -> Merged:
    found = next((one for one in history.merged if one.number == number), None)
    if found is not None:
        return found
    if number in history.heads:
        why = f"refs/pull/{number}/head exists, so it is open or was closed without a merge into this branch"
    else:
        why = "nothing is known of it here"
    raise UnknownTask(f"pull request #{number} is not merged: {why}", hint="choose one that smith mine lists")


def _wanted(
    since: str | None,
    until: str | None,
    numbers: Collection[int],
    languages: Collection[str],
    kinds: Collection[str],
    limit: int | None,
    all: bool,
) -> Wanted:
    known = rules_.load().languages
    for language in languages:
        if language not in known:
            raise BadInput(f"unknown language {language!r}", hint=f"one of: {', '.join(sorted(known))}")
    for kind in kinds:
        if kind not in list(Kind):
            raise BadInput(f"unknown kind {kind!r}", hint=f"one of: {', '.join(Kind)}")
    if limit is not None and limit < 0:
        raise BadInput(f"the limit {limit} is negative")
    return Wanted(
        since=_moment(since, time.min) if since else None,
        until=_moment(until, time.max) if until else None,
        numbers=frozenset(numbers),
        languages=frozenset(languages),
        kinds=frozenset(Kind(kind) for kind in kinds),
        limit=limit,
        all=all,
    )


def _moment(text: str, day: time) -> datetime:
    """A date means its first or last moment; times without an offset are UTC."""
    try:
        when = datetime.fromisoformat(text)
    except ValueError as error:
        raise BadInput(f"{text!r} is no date", hint="write it as YYYY-MM-DD") from error
    if len(text) == 10 and day is time.max:
        when = datetime.combine(when.date(), day)
    return when if when.tzinfo else when.replace(tzinfo=UTC)
