"""The outline of a piece of Python: its compound statements at their lines, and hardly anything else.

Only where functions begin and end is of interest, and the parser of Python takes ten times as long over all the
statements in them. So each run of simple statements becomes one ``pass`` on its last line.
"""

from __future__ import annotations

import re

_STRING = (
    r'"{3}(?:[^"\\]|\\.|"(?!""))*+"{3}|\'{3}(?:[^\'\\]|\\.|\'(?!\'\'))*+\'{3}'
    r'|"(?!"")(?:[^"\\\n]|\\.)*+"|\'(?!\'\')(?:[^\'\\\n]|\\.)*+\''
)
_COMMENT = r"\#[^\n]*+"
# Brackets in brackets. What is deeper is left to the parser.
_BRACKETS = r"(?!)"
for _ in range(6):
    _BRACKETS = rf"[(\[{{](?:[^\"'\#()\[\]{{}}\\]++|{_STRING}|{_COMMENT}|\\.|{_BRACKETS})*+[)\]}}]"
# One logical line from anywhere in it.
_REST = rf"(?:[^\"'\#()\[\]{{}}\\\n]++|{_STRING}|{_COMMENT}|\\\n|{_BRACKETS})*+\n"
_BLANK = rf"[ \t]*+(?:{_COMMENT})?\n"
# `match` and `case` may be names as well, and then their lines are kept for nothing.
_WORD = r"(?:@|(?:def|class|async|if|elif|else|try|except|finally|with|for|while|match|case)\b)"
_SIMPLE = rf"(?![ \t\n\#]|{_WORD}){_REST}"
_LINES = re.compile(
    rf"(?P<blank>(?:{_BLANK})++)"
    rf"|(?P<compound>[ \t]*+{_WORD}{_REST})"
    rf"|(?P<indent>[ \t]*+){_SIMPLE}(?:(?:{_BLANK})*+(?P=indent){_SIMPLE})*+",
    re.DOTALL,
)


def skeleton(text: str) -> str | None:
    """``text`` with its lines where they are, without simple statements; None where its lines cannot be told apart."""
    if "\f" in text or "\r" in text:
        return None
    if not text.endswith("\n"):
        text += "\n"
    lines: list[str] = []
    at = 0
    while at < len(text):
        match = _LINES.match(text, at)
        if match is None:
            return None
        begin, at = match.span()
        if match["compound"] is not None:
            lines.append(match["compound"])
        elif match["blank"] is not None:
            lines.append("\n" * text.count("\n", begin, at))
        else:
            lines.append("\n" * (text.count("\n", begin, at) - 1) + match["indent"] + "pass\n")
    return "".join(lines)
