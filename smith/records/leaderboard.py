"""Entries of a leaderboard: a run's evidence, sealed, as it lies in the data repository."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from smith.records.base import Document, Name, Oid, Record

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class Manifest(Document):
    """``manifest.json`` of an entry. Its own SHA-256 is the name of the entry's folder."""

    panel: Name
    panel_tree: Oid
    """What the panel pinned when the run was made, as a git tree: results of other trees are not compared."""
    run: str = Field(pattern=r"^[a-zA-Z0-9][a-zA-Z0-9._-]*$", max_length=200)
    files: dict[str, Sha256]
    """Path below the entry's folder to SHA-256, of every file but this one."""


class Figure(Record):
    """One figure of a run, with its interval where it has one and the number of tasks behind it."""

    figure: str
    value: float | None
    low: float | None = None
    high: float | None = None
    tasks: int | None = None


class Figures(Document):
    """``figures.json`` of an entry: what the evidence beside it came to when it was sealed."""

    figures: tuple[Figure, ...]
