"""The one JSON object in a model's reply, whatever it wrapped around it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

_FENCED = re.compile(r"```(?:json)?[ \t]*\n(.*?)\n[ \t]*```", re.DOTALL)
_THOUGHT = re.compile(r"\A\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)


def json_object(reply: str) -> dict[str, Any] | None:
    """The object that a reply is or holds; None where there is none.

    Taken are, in this order: the whole reply (after its thoughts), what stands in a fence, and what begins at the first
    brace of a line.
    """
    for text in _candidates(_THOUGHT.sub("", reply, count=1)):
        try:
            found, _ = json.JSONDecoder(strict=False).raw_decode(text)
            # A lone half of a surrogate pair is text for JSON and for nobody else.
            json.dumps(found, ensure_ascii=False).encode()
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            return found
    return None


def _candidates(reply: str) -> Iterator[str]:
    yield reply.strip()
    for match in _FENCED.finditer(reply):
        yield match[1].strip()
    first = re.search(r"^[ \t]*\{", reply, re.MULTILINE)
    if first is not None:
        yield reply[first.start() :].strip()
