"""From the forge's JSON to records. What is missing, or of another kind than documented, is left empty."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from smith.mine.github.closing import Reference
from smith.records import enrichment as bounds
from smith.records.enrichment import Enrichment, LinkedIssue, ReviewComment
from smith.records.pull_request import MergeForm

_OID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?\Z")
_CUT = " […]"
_READ = (
    *("number", "title", "body", "user", "draft", "labels", "created_at", "merged_at", "merge_commit_sha"),
    *("auto_merge", "review_comments", "pull_request"),
)


def text(value: Any, most: int) -> str:
    """``value`` as text of at most ``most`` characters, without lone surrogates; cut with a mark."""
    if not isinstance(value, str):
        return ""
    cut = value if len(value) <= most else value[: most - len(_CUT)] + _CUT
    return cut.encode("utf-8", "replace").decode("utf-8")


def slim(item: dict[str, Any]) -> dict[str, Any]:
    """``item`` with what is read of it only: each one describes two repositories and an account at length."""
    kept = {key: item[key] for key in _READ if key in item}
    return {**kept, "base": {"ref": _dict(item.get("base")).get("ref")}}


def pull_request(
    repo: str,
    item: dict[str, Any],
    number: int,
    issues: Iterable[LinkedIssue],
    comments: Iterable[dict[str, Any]],
) -> Enrichment:
    """The record of one pull request."""
    author, merged_at = _dict(item.get("user")), item.get("merged_at")
    merged = isinstance(merged_at, str) and bool(merged_at)
    sha = item.get("merge_commit_sha")
    chosen, left_out = _choose([_comment(comment) for comment in comments])
    return Enrichment(
        repo=repo,
        number=number,
        title=text(item.get("title"), bounds.TITLE_CHARS),
        body=text(item.get("body"), bounds.BODY_CHARS),
        author=text(author.get("login"), bounds.NAME_CHARS),
        bot=_is_bot(author),
        draft=item.get("draft") is True,
        labels=_labels(item),
        base_ref=text(_dict(item.get("base")).get("ref"), bounds.NAME_CHARS),
        merged_at=text(merged_at, bounds.NAME_CHARS) if merged else None,
        # Of one that is not merged it is a trial merge, which nobody ever sees.
        merge_commit_sha=sha if merged and isinstance(sha, str) and _OID.match(sha) else None,
        merge_method=_method(item) if merged else None,
        issues=tuple(issues),
        comments=chosen,
        comments_left_out=left_out,
    )


def issue(reference: Reference, where: str, item: dict[str, Any] | None) -> LinkedIssue:
    """The record of an issue; ``item`` is None where it is not known."""
    found = item or {}
    return LinkedIssue.model_validate(
        {
            "repo": text(reference.repo, bounds.NAME_CHARS),
            "number": reference.number,
            "where": where,
            "known": item is not None,
            "title": text(found.get("title"), bounds.TITLE_CHARS),
            "body": text(found.get("body"), bounds.ISSUE_BODY_CHARS),
            "labels": _labels(found),
            "pull_request": isinstance(found.get("pull_request"), dict),
        }
    )


def _comment(item: dict[str, Any]) -> ReviewComment:
    author = _dict(item.get("user"))
    lines = (item.get("line"), item.get("original_line"))
    return ReviewComment(
        path=text(item.get("path"), bounds.PATH_CHARS),
        line=next((line for line in lines if isinstance(line, int) and not isinstance(line, bool)), None),
        author=text(author.get("login"), bounds.NAME_CHARS),
        bot=_is_bot(author),
        body=text(item.get("body"), bounds.COMMENT_CHARS),
    )


def _choose(comments: list[ReviewComment]) -> tuple[tuple[ReviewComment, ...], int]:
    """The comments to keep, in their order, and how many are left out."""
    first = sorted(range(len(comments)), key=lambda at: (comments[at].bot, at))[: bounds.MOST_COMMENTS]
    return tuple(comments[at] for at in sorted(first)), len(comments) - len(first)


def _labels(item: dict[str, Any]) -> tuple[str, ...]:
    """Labels are objects, in old answers also plain words."""
    labels = item.get("labels")
    names = [_dict(one).get("name") or one for one in labels] if isinstance(labels, list) else []
    words = [text(name, bounds.NAME_CHARS) for name in names]
    return tuple(word for word in words if word)[: bounds.MOST_LABELS]


def _is_bot(user: dict[str, Any]) -> bool:
    login = user.get("login")
    return user.get("type") == "Bot" or (isinstance(login, str) and login.endswith("[bot]"))


def _method(item: dict[str, Any]) -> MergeForm | None:
    method = _dict(item.get("auto_merge")).get("merge_method")
    return MergeForm(method) if isinstance(method, str) and method in list(MergeForm) else None


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
