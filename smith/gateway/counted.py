"""A tighter bound of a prompt: what the endpoint itself counted for the start of it, and the bytes of what is new.

An agent sends its whole conversation again and again. Of what has been sent before the endpoint has told the size;
only what was added or changed since is bounded by its bytes. So far below the bound of a token a byte for everything,
less of a budget stays unused at its end.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from typing import Any

from smith.gateway.asked import FRAMING_TOKENS, IMAGE_TOKENS, Asked, encoded

SLACK_TOKENS = 256
"""For marks that an endpoint sets differently as a conversation goes on."""
REMEMBERED = 6
"""Conversations of one attempt: agents ask side questions."""

_NO_PROMPT = {"stream", "stream_options", "max_tokens", "max_completion_tokens", "max_output_tokens", "metadata"}
"""Keys that are no part of what a model reads."""


class Counted:
    """What an endpoint counted for the latest requests. Threads may share it."""

    def __init__(self) -> None:
        self._known: deque[tuple[str, Mapping[str, Any], int]] = deque(maxlen=REMEMBERED)
        self._lock = threading.Lock()

    def remember(self, asked: Asked, input_tokens: int) -> None:
        """Take the endpoint's word for the size of a request's prompt."""
        if not _rewritten(asked.body):
            with self._lock:
                self._known.append((asked.dialect.name, asked.body, input_tokens))

    def bound(self, asked: Asked) -> int | None:
        """The lowest upper bound that an earlier request gives; None where none is the start of this one."""
        if _rewritten(asked.body):
            return None
        with self._lock:
            known = [one for one in self._known if one[0] == asked.dialect.name]
        bounds = (_grown(asked, body, tokens) for _, body, tokens in known)
        return min((bound for bound in bounds if bound is not None), default=None)


def _rewritten(body: Mapping[str, Any]) -> bool:
    """Whether the endpoint may leave out parts of the prompt, so that its count says nothing of the rest."""
    managed = body.get("context_management")
    edits = managed.get("edits") if isinstance(managed, Mapping) else managed
    # What Claude Code sends with every call is an edit that keeps everything.
    harmless = isinstance(edits, list) and all(isinstance(e, Mapping) and e.get("keep") == "all" for e in edits)
    return bool(edits and not harmless) or body.get("truncation", "disabled") != "disabled"


def _grown(asked: Asked, before: Mapping[str, Any], tokens: int) -> int | None:
    key = asked.dialect.turns
    now, then = asked.body.get(key), before.get(key)
    if not isinstance(now, list) or not isinstance(then, list) or len(then) > len(now):
        return None
    if not all(_alike(one, other) for one, other in zip(now, then, strict=False)):
        return None
    added = now[len(then) :]
    size = sum(len(encoded({"": turn})) + FRAMING_TOKENS for turn in added)
    for name, value in asked.body.items():
        if name != key and name not in _NO_PROMPT:
            size += _changed(value, before.get(name))
    return tokens + size + SLACK_TOKENS + (IMAGE_TOKENS * asked.images if added else 0)


def _changed(value: Any, before: Any) -> int:
    """The bytes of those parts of a value that are not as they were, place by place."""
    if _alike(value, before):
        return 0
    if isinstance(value, list) and isinstance(before, list):
        rest = value[len(before) :]
        return sum(_changed(*pair) for pair in zip(value, before, strict=False)) + len(encoded({"": rest}))
    return len(encoded({"": value}))


def _alike(one: Any, other: Any) -> bool:
    return bool(one == other) or _unmarked(one) == _unmarked(other)


def _unmarked(value: Any) -> Any:
    """Without marks of what is to be cached: agents move them along with a conversation."""
    if isinstance(value, dict):
        return {key: _unmarked(part) for key, part in value.items() if key != "cache_control"}
    return [_unmarked(part) for part in value] if isinstance(value, list) else value
