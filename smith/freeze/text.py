"""The words of a pull request without what is no part of a report: links, numbers, trailers, templates, results."""

from __future__ import annotations

import re

_TRAILER = re.compile(
    r"^[ \t]*(co-authored-by|signed-off-by|reviewed-by|acked-by|tested-by|cc|change-id|pull request resolved|"
    r"approved by|differential revision|git-svn-id|cherry-picked?|made-with|assisted-by|generated (?:by|with)|"
    r"\(cherry picked|this reverts commit|reverts commit)\b.*$",
    re.IGNORECASE | re.MULTILINE,
)
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_DETAILS = re.compile(
    r"</?(?:details|summary|br|p|div|sub|sup|b|i|em|strong|h\d|ul|ol|li|center|a|span|kbd)\b[^>]*>", re.I
)
_SCRIPT = re.compile(r"<(script|style|iframe|svg|video)\b.*?(?:</\1\s*>|\Z)", re.IGNORECASE | re.DOTALL)
_IMAGE = re.compile(r"!\[[^\]]*\]\([^)]*\)|<img\b[^>]*>", re.IGNORECASE | re.DOTALL)
_NAMED_LINK = re.compile(r"\[([^\]]+)\]\(\s*(?:https?://|/|#|\.\.?/)[^)]*\)")
_LINK = re.compile(r"\(\s*https?://[^)\s]*\s*\)|<?https?://[^\s>)]*>?")
_TABLE = re.compile(r"^\s*\|.*$", re.MULTILINE)
_SUBJECT_LINE = re.compile(r"^\* \S.*$", re.MULTILINE)  # a forge's default squash message lists the commits so
_HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*#*$")
_BOLD_HEADING = re.compile(r"^\*\*([^*]{2,60})\*\*:?$")
_LABEL_LINE = re.compile(r"^([A-Z][\w /&'().,-]{1,60}):$")
_RESULTS = re.compile(
    r"benchmark|performance|speed|memory|result|profil|\btest(s|ing|ed|[ -]plan)?\b|check ?list|screenshot|accuracy|"
    r"how (was|has) this|verif|validat|files?\b.*\b(added|changed|modified)|numbers|measure|coverage|review|reproducib|"
    r"submission|contribut|assist|disclos|follow[ -]?up|todo|next steps|notes? (for|to) reviewers?",
    re.IGNORECASE,
)
"""Headings of sections that tell of measurements, tests, files or the review: the solution's, not the problem's."""
_CHORE = re.compile(
    r"^[ \t]*(?:[-*][ \t]+)?(?:(?:docs?|tests?|ci|chore|style|lint|bench\w*)(?:\([^)\n]*\))?: .*|"
    r"[\w/]+: (?:tests?|docs?|lint|format\w*))$",
    re.IGNORECASE | re.MULTILINE,
)
"""Subjects of commits that belong to no problem."""
_FOLLOWS = re.compile(r"\b(?:follow(?:-|\s)?up\s+(?:of|to|on|for)|part\s+of)\s+#\d+\s*[:,.-]?\s*", re.I)
_CLOSES = re.compile(r"\s*\(#\d+\)|\b(?:fix(?:es|ed)?|close[sd]?|resolve[sd]?)\s+#\d+\.?", re.I)
_NUMBER = re.compile(r"(?<![\w&])#\d+\b")
_ELSEWHERE = re.compile(r"\b[\w.-]+/[\w.-]+#\d+\b")
_COMMIT_ID = re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b")
_TEMPLATE = re.compile(r"^\s*[-*]\s*\[[ xX]\].*$|^\s*[-*]?\s*Hardware Type:.*$", re.MULTILINE)
_MENTION = re.compile(r"(?<![\w`/@.])@[A-Za-z][\w-]*+(?:\[bot\])?(?!\(|\.\w)")  # not a decorator
_EMPTY_HEADING = re.compile(r"^#{1,6}[^\n]*\n(?=\s*(?:#{1,6}\s|\Z))", re.MULTILINE)
_FENCE = re.compile(r"^\s*(```+|~~~+)")


def clean(text: str) -> str:
    """Text of a pull request without what points at the solution.

    Links, numbers, commit ids, mentions, trailers, templates, HTML, lists of commits, tables and sections of measured
    results go.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = "".join(c if c.isprintable() or c in "\n\t" else " " if c.isspace() else "" for c in text)
    for pattern in (_COMMENT, _SCRIPT, _TRAILER, _TEMPLATE, _SUBJECT_LINE, _CHORE, _IMAGE):
        text = pattern.sub("", text)
    text = _without_results(text)
    text = _TABLE.sub("", text)
    text = _NAMED_LINK.sub(r"\1", text)
    for pattern in (_LINK, _FOLLOWS, _CLOSES):
        text = pattern.sub("", text)
    text = _ELSEWHERE.sub("an earlier change", text)
    text = _NUMBER.sub("an earlier change", text)
    text = _COMMIT_ID.sub("an earlier commit", text)
    text = _DETAILS.sub("", text)
    text = _MENTION.sub("somebody", text)
    text = re.sub(r"^[ \t]*(?:-{3,}|\*{3,}|_{3,})[ \t]*$", "", text, flags=re.MULTILINE)
    text = "\n".join(line.rstrip() for line in text.split("\n"))
    while (shorter := _EMPTY_HEADING.sub("", text)) != text:
        text = shorter
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def heading_of(line: str) -> tuple[int, str] | None:
    """Level and words of a heading; a line in bold alone, or of a few words and a colon, is one of a low level."""
    if match := _HEADING.match(line):
        return len(match[1]), match[2]
    if match := _BOLD_HEADING.match(line.strip()):
        return 7, match[1]
    label = _LABEL_LINE.match(line)
    return (8, label[1]) if label else None


def fenced(lines: list[str]) -> list[bool]:
    """For each line, whether it is in a fenced block of code (its fences too)."""
    found, mark = [], ""
    for line in lines:
        fence = _FENCE.match(line)
        if mark:
            found.append(True)
            if fence and fence[1].startswith(mark) and not line.strip().strip(mark[0]):
                mark = ""
        else:
            mark = fence[1] if fence else ""
            found.append(bool(mark))
    return found


def _without_results(text: str) -> str:
    """Leave out sections, each with those below it, whose heading tells of results."""
    kept: list[str] = []
    dropped_at = 0  # level of the heading whose section is being left out
    lines = text.split("\n")
    for line, inside in zip(lines, fenced(lines), strict=True):
        heading = None if inside else heading_of(line)
        if heading:
            level, title = heading
            if dropped_at and level <= dropped_at:
                dropped_at = 0
            if not dropped_at and _RESULTS.search(title):
                dropped_at = level
        if not dropped_at:
            kept.append(line)
    return "\n".join(kept)
