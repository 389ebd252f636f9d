"""The issues that a text closes, by GitHub's keywords (close, fix, resolve and their forms before a reference)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_CHARS = 100_000
# Comments and code close nothing; templates are full of "<!-- Fixes #123 -->". What is not closed reaches to the end.
_HIDDEN = re.compile(r"<!--(?:.*?-->|.*\Z)|```(?:.*?```|.*\Z)|`[^`\n]*`", re.DOTALL)
_CLOSES = re.compile(
    r"\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?)\b:?[ \t]+"
    r"(?:https?://(?P<host>[\w.-]+(?::\d+)?)/(?P<url_repo>[\w.-]+/[\w.-]+)/(?:issues|pull)/(?P<url_number>\d{1,9})\b"
    r"|(?P<repo>[\w-]+/[\w.-]+)?#(?P<number>\d{1,9})\b"
    r"|GH-(?P<gh>\d{1,9})\b)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Reference:
    """An issue by its repository (``owner/name``, as written) and number."""

    repo: str
    number: int


def closed_by(text: str, *, repo: str, host: str) -> Iterator[Reference]:
    """What ``text`` closes, in its order; ``repo`` is meant where it names none, URLs count only on ``host``."""
    for match in _CLOSES.finditer(_HIDDEN.sub(" ", text[:_CHARS])):
        if match["host"] and match["host"].lower() != host.lower():
            continue
        number = int(match["url_number"] or match["number"] or match["gh"])
        named = match["url_repo"] or match["repo"] or repo
        if number > 0:
            yield Reference(repo if named.lower() == repo.lower() else named, number)
