"""Globs over paths in a tree."""

from __future__ import annotations

import re


def glob_pattern(glob: str) -> re.Pattern[str]:
    """A pattern for one editable glob: ``*`` and ``?`` stay inside a folder, ``**`` crosses folders."""
    parts = re.split(r"(\*\*/?|\*|\?)", glob)
    table = {"**": ".*", "**/": "(?:.*/)?", "*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(table.get(part, re.escape(part)) for part in parts), re.DOTALL)
