"""A merged pull request, as found in git."""

from __future__ import annotations

from enum import StrEnum

from smith.records.base import Oid, Record


class MergeForm(StrEnum):
    """How a pull request landed."""

    SQUASH = "squash"
    MERGE = "merge"
    REBASE = "rebase"


class Evidence(StrEnum):
    """By what a landing was recognised."""

    SUBJECT = "subject"
    """The landed commit's subject states the number, by ending in ``(#N)`` mostly."""
    MERGE_SUBJECT = "merge_subject"
    """A merge commit states the number, in the words of one of the forges."""
    PATCH_ID = "patch_id"
    """The commits of ``refs/pull/N/head`` have the same stable patch ids as a run of landed commits."""
    AUTHOR_AND_SUBJECT = "author_and_subject"
    """Author, date and subject agree where the patch ids do not (a rewritten history)."""
    MERGED_HEAD = "merged_head"
    """A merge commit that states no number has ``refs/pull/N/head`` as its second parent."""
    SAME_TREE = "same_tree"
    """A landed commit that states no number is, file for file, the merge of ``refs/pull/N/head`` into its parent."""


class Verified(StrEnum):
    """What merging base and head of a pull request again comes to, beside the tree that landed."""

    SAME_TREE = "same_tree"
    OTHER_TREE = "other_tree"
    """It landed with edits, or the head moved on afterwards."""
    CONFLICT = "conflict"
    """Base and head do not merge cleanly, or not here (blobs are missing)."""
    NO_HEAD = "no_head"


class PullRequest(Record):
    """One merged pull request. ``base`` is the parent that the landing really had."""

    number: int
    title: str
    body: str = ""
    author: str = ""
    form: MergeForm
    evidence: Evidence
    certain: bool = True
    """False where the landing is likely rather than proved."""
    base: Oid
    merged: Oid
    head: Oid | None = None
    """``refs/pull/N/head`` (or that of a merge request) where it is present."""
    merged_at: str
    """Date of the landing commit, ISO 8601 with offset."""
    commits: int = 1
    """How many commits landed on the first-parent line (more than one for a rebase of several)."""
