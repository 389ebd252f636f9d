"""A request of an agent: read, checked for what no ceiling covers, and made ready to be sent on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from smith.errors import BadInput
from smith.gateway.dialects import CHAT, MESSAGES, RESPONSES, Dialect

FRAMING_TOKENS = 64
"""What an endpoint may add to a prompt for each turn: marks of roles and the like."""
TOOLS_TOKENS = 2_000
"""What an endpoint may add for tools being there at all."""
IMAGE_TOKENS = 8_000
"""More than any endpoint counts for one image."""
LEAST_OUTPUT = 256
"""A reply that may be no longer than this is not worth its prompt: then the budget is out."""

_TIERS = {"auto", "default", "standard", "standard_only"}
_UNBOUNDED = {
    CHAT.name: ("web_search_options", "audio", "prediction", "plugins", "models"),
    RESPONSES.name: ("previous_response_id", "conversation", "prompt", "background"),
    MESSAGES.name: ("mcp_servers", "container"),
}
"""Keys by which a call could cost what nothing in the request bounds, or what is not priced."""
_OWN_TOOLS = {
    CHAT.name: {"function", "custom"},
    RESPONSES.name: {"function", "custom", "local_shell", "shell", "apply_patch", "namespace"},
    MESSAGES.name: {"custom"},
}
_CLIENT_TOOLS = ("bash_", "text_editor_", "memory_", "computer_")
"""Anthropic's tools that the caller runs; the others run, and are charged, at the endpoint."""
_NO_PARTS = {"image_file", "input_file", "file", "document", "input_audio", "audio", "video", "input_video"}


@dataclass(frozen=True)
class Asked:
    """One request. ``body`` is what came, less the tools that an endpoint would run itself (``dropped``)."""

    dialect: Dialect
    body: Mapping[str, Any]
    dropped: tuple[str, ...]
    images: int

    @property
    def stream(self) -> bool:
        return self.body.get("stream") is True

    @property
    def wanted(self) -> int | None:
        """The cap of the reply that the request itself has."""
        caps = [value for key in self.dialect.caps if isinstance(value := self.body.get(key), int) and value > 0]
        return min(caps) if caps else None

    @property
    def least(self) -> int:
        """The smallest cap with which the call is still worth making."""
        thinking = self.body.get("thinking")
        reserved = thinking.get("budget_tokens") if isinstance(thinking, Mapping) else 0
        return LEAST_OUTPUT + (reserved if isinstance(reserved, int) else 0)

    @property
    def wants_usage(self) -> bool:
        """Whether a chat stream is asked for its usage by the agent itself."""
        options = self.body.get("stream_options")
        return isinstance(options, Mapping) and options.get("include_usage") is True

    def input_bound(self, sent: bytes) -> int:
        """An upper bound of the prompt's tokens: a token is at least one byte, whatever the tokenizer."""
        turns = self.body.get(self.dialect.turns)
        count = len(turns) if isinstance(turns, list) else 1
        tools = TOOLS_TOKENS if self.body.get("tools") else 0
        return len(sent) + FRAMING_TOKENS * (count + 1) + tools + IMAGE_TOKENS * self.images

    def sent(self, cap: int, cap_key: str | None = None) -> bytes:
        """The body to send on: the cap as allowed, a stream asked for its usage, all else as it came."""
        body = dict(self.body)
        present = [key for key in self.dialect.caps if key in body]
        if cap_key is not None:
            for key in present:
                del body[key]
            present = [cap_key]
        for key in present or self.dialect.caps[:1]:
            body[key] = cap
        if self.dialect is CHAT and self.stream:
            options = body.get("stream_options")
            body["stream_options"] = {**(options if isinstance(options, Mapping) else {}), "include_usage": True}
        return encoded(body)


def encoded(body: Mapping[str, Any]) -> bytes:
    """JSON as it is sent."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def read_request(dialect: Dialect, data: bytes) -> Asked:
    """Read and check a request. Raises :class:`BadInput` for what is none, and for what no ceiling would cover."""
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        raise BadInput("the request is no JSON") from None
    if not isinstance(body, dict) or not isinstance(body.get("model"), str):
        raise BadInput("the request is no JSON object with a model")
    _refuse_unbounded(dialect, body)
    images = 0
    for part in _parts(body.get(dialect.turns)):
        kind = part.get("type")
        if kind in _NO_PARTS:
            raise BadInput(f"parts of type {kind} are not priced here")
        if kind in ("image_url", "input_image", "image"):
            images += 1
    kept, dropped = _tools(dialect, body.get("tools"))
    if dropped:
        body["tools"] = kept
        if not kept:
            del body["tools"]
            body.pop("tool_choice", None)
    return Asked(dialect, body, dropped, images)


def _refuse_unbounded(dialect: Dialect, body: Mapping[str, Any]) -> None:
    found = [key for key in _UNBOUNDED[dialect.name] if body.get(key)]
    tier = body.get("service_tier")
    if tier is not None and tier not in _TIERS:
        found.append("service_tier")
    if body.get("speed", "standard") != "standard":
        found.append("speed")
    if body.get("inference_geo", "global") != "global":
        found.append("inference_geo")
    if body.get("n", 1) not in (1, None) or body.get("best_of", 1) not in (1, None):
        found.append("n")
    if found:
        raise BadInput(f"{', '.join(found)}: what this costs at most cannot be told from the request")


def _tools(dialect: Dialect, tools: Any) -> tuple[list[Any], tuple[str, ...]]:
    """The tools that the agent runs itself, and the types of those that the endpoint would run."""
    if not isinstance(tools, list):
        return [], ()
    kept: list[Any] = []
    dropped: list[str] = []
    for tool in tools:
        kind = str(tool.get("type", "custom")) if isinstance(tool, dict) else "custom"
        own = kind in _OWN_TOOLS[dialect.name] or (dialect is MESSAGES and kind.startswith(_CLIENT_TOOLS))
        if own:
            kept.append(tool)
        else:
            dropped.append(kind)
    return kept, tuple(dropped)


def _parts(value: Any, depth: int = 0) -> Iterator[Mapping[str, Any]]:
    """Every object with a type in the turns, at any place where parts of content can stand."""
    if isinstance(value, list):
        for one in value:
            yield from _parts(one, depth)
    elif isinstance(value, Mapping) and depth < 6:
        if isinstance(value.get("type"), str):
            yield value
        for key in ("content", "output", "source"):
            yield from _parts(value.get(key), depth + 1)
