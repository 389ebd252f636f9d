"""A conversation with a model: its size in tokens, and old outputs left out of it when it grows too large."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

KEPT_OUTPUTS = 6
"""The newest outputs of tools are never left out."""
LEFT_OUT = "[output of {size} characters, left out to make room; ask again if you need it]"
_SHORT = 400
BYTES_PER_TOKEN = 3
"""For what no endpoint has counted yet; code and prose have more."""
_SILENT = ("refusal", "annotations", "audio", "function_call")
"""Keys of a reply that mean nothing when they are sent back, and that some endpoints then refuse."""


@dataclass
class Conversation:
    """Turns in the dialect of chat completions. ``room`` is how many tokens of prompt there may be."""

    room: int
    turns: list[dict[str, Any]] = field(default_factory=list)
    compacted: int = 0
    """Outputs left out so far."""
    _counted: int = 0
    """Tokens of the first ``_known`` turns, as the endpoint counted them."""
    _known: int = 0

    def add(self, turn: Mapping[str, Any]) -> None:
        """Append a turn. Of a reply all is kept that its endpoint may want back, reasoning among it."""
        self.turns.append({key: value for key, value in turn.items() if value is not None and key not in _SILENT})

    def counted(self, tokens: int) -> None:
        """Take the endpoint's word for the size of all turns so far."""
        self._counted, self._known = tokens, len(self.turns)

    @property
    def size(self) -> int:
        """Tokens of the prompt: as counted last, and an estimate of what has come since."""
        return self._counted + sum(_size(turn) for turn in self.turns[self._known :])

    def compact(self) -> int:
        """Where the room is nearly used up, leave out old outputs until half of it is free; gives how many."""
        if self.size <= self.room * 0.85:
            return 0
        before = self.compacted
        outputs = [turn for turn in self.turns if turn["role"] == "tool"]
        for turn in outputs[: -KEPT_OUTPUTS or None]:
            content = turn["content"]
            if len(content) <= _SHORT:
                continue
            saved = _size(turn)
            turn["content"] = LEFT_OUT.format(size=len(content))
            self._counted = max(0, self._counted - saved + _size(turn))
            self.compacted += 1
            if self.size <= self.room * 0.5:
                break
        return self.compacted - before

    @property
    def full(self) -> bool:
        """Whether no further reply fits."""
        return self.size > self.room


def _size(turn: Mapping[str, Any]) -> int:
    return len(json.dumps(turn, ensure_ascii=False).encode("utf-8", "replace")) // BYTES_PER_TOKEN + 4


class Watchdog:
    """Tells an agent that works from one that goes round in circles. Reading is work; the same again is not."""

    def __init__(self, *, warn: int = 3, end: int = 6, window: int = 16) -> None:
        self._warn, self._end, self._window = warn, end, window
        self._seen: dict[str, int] = {}
        self._recent: list[bool] = []
        self._last, self._row = "", 0
        self.idle = 0
        """Replies in a row without any tool."""

    def saw(self, call: str, result: str) -> str:
        """Take in one action and what came of it: ``""``, ``"warn"`` or ``"stuck"``."""
        mark = f"{call}\0{result}"
        self._row = self._row + 1 if mark == self._last else 1
        self._last = mark
        self._recent.append(mark in self._seen)
        self._seen[mark] = self._seen.get(mark, 0) + 1
        circling = len(self._recent) >= self._window and all(self._recent[-self._window :])
        if self._row >= self._end or circling:
            return "stuck"
        return "warn" if self._row == self._warn else ""


def arguments_of(call: Mapping[str, Any]) -> tuple[str, dict[str, Any] | None, str]:
    """Name and arguments of a tool call; None with what is wrong where they cannot be read."""
    function = call.get("function")
    name = str(function.get("name", "")) if isinstance(function, Mapping) else ""
    text = function.get("arguments") if isinstance(function, Mapping) else None
    try:
        given = json.loads(text or "{}") if isinstance(text, str) else text
    except (ValueError, RecursionError) as error:
        return name, None, f"the arguments are no JSON: {error}"
    if not isinstance(given, dict):
        return name, None, "the arguments are no JSON object"
    return name, given, ""


def calls_of(turn: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The tool calls of a reply."""
    calls = turn.get("tool_calls")
    return [call for call in calls if isinstance(call, Mapping)] if isinstance(calls, list) else []
