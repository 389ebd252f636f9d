"""How the two families of endpoints are asked, and what they answer: OpenAI chat completions, Anthropic messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from smith.ledger.prices import Usage
from smith.models.usage import chat_usage, messages_usage
from smith.secret import Token

_ANTHROPIC_VERSION = "2023-06-01"


@dataclass(frozen=True)
class Message:
    """One turn."""

    role: Literal["user", "assistant"]
    text: str


@dataclass(frozen=True)
class Reply:
    """What a model said. ``cut``: it ended at the cap and not by itself. ``usage`` is None where none was given."""

    text: str
    cut: bool
    usage: Usage | None


class Unreadable(Exception):
    """An answer with status 200 that is not of the dialect."""


class OpenAI:
    """Chat completions, as OpenAI and most local servers speak them."""

    name = "openai"
    default_url = "https://api.openai.com/v1"
    path = "/chat/completions"
    key_variable = "OPENAI_API_KEY"
    url_variable = "OPENAI_BASE_URL"

    def __init__(self, cap: str = "max_tokens") -> None:
        self.cap = cap
        """Older servers know only ``max_tokens``; newer models of OpenAI's only ``max_completion_tokens``."""

    def headers(self, key: Token | None) -> dict[str, str]:
        """The headers that carry the key."""
        return {"Authorization": f"Bearer {key.secret.get_secret_value()}"} if key else {}

    def body(self, model: str, system: str, messages: Sequence[Message], most: int) -> dict[str, Any]:
        """The JSON to post; ``most`` caps the tokens of the reply."""
        turns = [{"role": "system", "content": system}, *({"role": m.role, "content": m.text} for m in messages)]
        return {"model": model, "messages": turns, self.cap: most}

    def read(self, data: Any, most: int) -> Reply:
        """The reply in a JSON answer. Raises :class:`Unreadable`."""
        try:
            choice = data["choices"][0]
            text = choice["message"]["content"]
        except (KeyError, IndexError, TypeError):
            raise Unreadable("no choice with a message") from None
        usage = chat_usage(data.get("usage"))
        # Some servers say "stop" whatever happened, so the count is looked at as well.
        cut = choice.get("finish_reason") == "length" or (usage is not None and usage.output_tokens >= most)
        return Reply(text if isinstance(text, str) else "", cut, usage)


class Anthropic:
    """Anthropic's messages."""

    name = "anthropic"
    default_url = "https://api.anthropic.com"
    path = "/v1/messages"
    key_variable = "ANTHROPIC_API_KEY"
    url_variable = "ANTHROPIC_BASE_URL"

    def headers(self, key: Token | None) -> dict[str, str]:
        """The headers that carry the key."""
        own = {"x-api-key": key.secret.get_secret_value()} if key else {}
        return {"anthropic-version": _ANTHROPIC_VERSION, **own}

    def body(self, model: str, system: str, messages: Sequence[Message], most: int) -> dict[str, Any]:
        """The JSON to post; ``most`` caps the tokens of the reply."""
        turns = [{"role": m.role, "content": m.text} for m in messages]
        return {"model": model, "system": system, "messages": turns, "max_tokens": most}

    def read(self, data: Any, most: int) -> Reply:
        """The reply in a JSON answer. Raises :class:`Unreadable`."""
        blocks = data.get("content") if isinstance(data, Mapping) else None
        if not isinstance(blocks, list):
            raise Unreadable("no content")
        text = "".join(str(b.get("text", "")) for b in blocks if isinstance(b, Mapping) and b.get("type") == "text")
        usage = messages_usage(data.get("usage"))
        cut = data.get("stop_reason") == "max_tokens" or (usage is not None and usage.output_tokens >= most)
        return Reply(text, cut, usage)


DIALECTS: dict[str, type[OpenAI] | type[Anthropic]] = {"openai": OpenAI, "anthropic": Anthropic}


def dialect_of(model: str, asked: str | None) -> OpenAI | Anthropic:
    """The dialect asked for, else that of the model's maker; chat completions where the name does not tell."""
    return DIALECTS[asked or ("anthropic" if model.startswith("claude") else "openai")]()
