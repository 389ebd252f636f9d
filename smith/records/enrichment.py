"""What a forge knows of a pull request and git does not: labels, issues, review comments. All text is bounded."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from smith.records.base import Document, Oid, Record
from smith.records.pull_request import MergeForm

NAME_CHARS = 200
"""Logins, labels, branch names."""
TITLE_CHARS = 500
BODY_CHARS = 20_000
ISSUE_BODY_CHARS = 10_000
COMMENT_CHARS = 2_000
PATH_CHARS = 1_000
MOST_LABELS = 30
MOST_ISSUES = 10
MOST_COMMENTS = 50


class LinkedIssue(Record):
    """An issue that a pull request closes, by its own words (``Fixes #12``)."""

    repo: str
    """``owner/name``; another one than the pull request's where the words say so."""
    number: int = Field(ge=1)
    where: Literal["title", "body", "commits"]
    """Whose words name it."""
    known: bool = False
    """Whether the forge gave it. The rest is empty for what is gone, or of another repository."""
    title: str = Field(default="", max_length=TITLE_CHARS)
    body: str = Field(default="", max_length=ISSUE_BODY_CHARS)
    labels: tuple[str, ...] = Field(default=(), max_length=MOST_LABELS)
    pull_request: bool = False
    """Whether the number is a pull request's."""


class ReviewComment(Record):
    """A comment of a review on a line of the change."""

    path: str = Field(max_length=PATH_CHARS)
    line: int | None = None
    """In the file as reviewed; None where the comment is on the whole file, or the forge does not tell."""
    author: str = Field(default="", max_length=NAME_CHARS)
    bot: bool = False
    body: str = Field(default="", max_length=COMMENT_CHARS)


class Enrichment(Document):
    """What a forge says of one pull request. HTML and Markdown stay as they are: it is text, never to be rendered."""

    repo: str
    """``owner/name`` as asked for; a renamed repository keeps the old name here."""
    number: int = Field(ge=1)
    title: str = Field(max_length=TITLE_CHARS)
    body: str = Field(default="", max_length=BODY_CHARS)
    author: str = Field(default="", max_length=NAME_CHARS)
    """Login; empty where the account is gone."""
    bot: bool = False
    draft: bool = False
    labels: tuple[str, ...] = Field(default=(), max_length=MOST_LABELS)
    base_ref: str = Field(default="", max_length=NAME_CHARS)
    """The branch that it was made for."""
    merged_at: str | None = None
    """ISO 8601 in UTC; None where the forge does not count it as merged."""
    merge_commit_sha: Oid | None = None
    """The landed commit (of a rebase the last one); None where it is not merged."""
    merge_method: MergeForm | None = None
    """Only where it was merged automatically: else the forge does not tell, and git's own finding stands."""
    issues: tuple[LinkedIssue, ...] = Field(default=(), max_length=MOST_ISSUES)
    comments: tuple[ReviewComment, ...] = Field(default=(), max_length=MOST_COMMENTS)
    """Oldest first; where there are too many, those of bots are left out first."""
    comments_left_out: int = Field(default=0, ge=0)
    """Of those that were read: the first hundred where the pull request was asked for by itself."""
