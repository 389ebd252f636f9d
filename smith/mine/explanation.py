"""One pull request's way through mining, in lines for people."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from smith.git.repository import Repository
from smith.mine import rules as rules_
from smith.mine.decide import Case, Filters, decide
from smith.mine.reach import ReachIndex
from smith.mine.survey import Wanted, survey
from smith.mine.verify import verify_all
from smith.records.config import MineConfig
from smith.records.pull_request import Verified
from smith.records.signals import Reach, TestFile


def explain(
    upstream_repo: Repository,
    *,
    repo: str,
    number: int,
    branch: str | None = None,
    config: MineConfig | None = None,
    cache: Path | None = None,
) -> list[str]:
    """How pull request ``number`` was found, what it changed and what was decided, in lines for people.

    Raises :class:`~smith.errors.UnknownTask` where it is not merged.
    """
    config = config or MineConfig()
    rules = rules_.load(config.rules)
    filters = Filters.of(config)
    wanted = Wanted(numbers=frozenset({number}))
    (case,) = survey(upstream_repo, repo=repo, branch=branch, wanted=wanted, rules=rules, cache=cache).cases
    verified = verify_all(upstream_repo, [case.merged])[number]
    with ReachIndex(upstream_repo, rules) as index:
        tests = index.tests_of(case.merged.landings[-1].tree, case.shape.files, case.shape.kernels)
    return [f"{repo}#{number}: {_shown(case.merged.pull_request.title)}", *_story(case, verified, tests, filters)]


def _story(case: Case, verified: Verified, tests: Sequence[TestFile], filters: Filters) -> list[str]:
    record = case.merged.pull_request
    certain = "" if record.certain else ", not proved"
    lines = [
        f"  found by    {record.evidence.value} ({record.form.value}, {record.commits} landed commit(s){certain})",
        f"  base        {record.base}",
        f"  merged      {record.merged} at {record.merged_at}",
        f"  head        {record.head or 'not present here'}",
        f"  merge again {_VERIFIED[verified]}",
        f"  kind        {case.kind.value}: {_shown(case.kind_evidence)}",
        f"  size        {case.shape.lines_added} lines added and {case.shape.lines_removed} removed in sources",
        *(f"  flag        {flag.value}" for flag in case.flags),
    ]
    kernels = {kernel.path: kernel for kernel in case.shape.kernels}
    for file in case.shape.files:
        moved = f" (was {_shown(file.old_path)})" if file.old_path else ""
        language = f" {file.language}" if file.language else ""
        kernel = kernels.get(file.path)
        named = [f"{s} (text only)" if s not in kernel.code else s for s in kernel.symbols] if kernel else []
        tail = f"{': ' if named else ''}{', '.join(named)}"
        lines.append(f"  {file.change:<11} {_shown(file.path)}{moved}: {file.role.value}{language}{tail}")
    for test in tests:
        names = ", ".join(kernel.rpartition("::")[2] for kernel in test.kernels[:_MOST_NAMES])
        more = f" and {len(test.kernels) - _MOST_NAMES} more" if len(test.kernels) > _MOST_NAMES else ""
        reached = f" {names}{more}" if names else ""
        lines.append(f"  test        {_shown(test.path)}: {test.runner}, {_REACH[test.reach]}{reached}")
    reason, whole = decide(case, filters), decide(case, Filters(all=True))
    lines.append(f"  decision    {_decision(reason)}")
    if (reason is None) != (whole is None):
        lines.append(f"  with --all  {_decision(whole)}")
    return lines


_MOST_NAMES = 4
_REACH = {
    Reach.CHANGED: "changed, leads to",
    Reach.CHANGED_ALONE: "changed, leads to no changed kernel",
    Reach.IMPORTS: "not changed, leads to",
}
_VERIFIED = {
    Verified.SAME_TREE: "base and head give the tree that landed",
    Verified.OTHER_TREE: "base and head give another tree than landed: edited while landing, or the head moved on",
    Verified.CONFLICT: "base and head do not merge cleanly here",
    Verified.NO_HEAD: "the head is not present here",
}


def _decision(reason: tuple[str, str] | None) -> str:
    return "candidate" if reason is None else f"rejected: {reason[0]}{f' ({reason[1]})' if reason[1] else ''}"


def _shown(text: str) -> str:
    """Text of others, fit for a terminal: nothing in it moves the cursor or turns the direction of writing."""
    readable = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in readable)
