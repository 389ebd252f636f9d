"""The three dialects as the gateway needs them: where a call goes, what bounds its cost, and what it says it used."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from smith.ledger.tariff import Usage
from smith.models.usage import chat_usage, messages_usage, responses_usage
from smith.secret import Token

OPENAI_URL = "https://api.openai.com/v1"
ANTHROPIC_URL = "https://api.anthropic.com"
_ANTHROPIC_VERSION = "2023-06-01"


@dataclass(frozen=True)
class Dialect:
    """One way of asking. ``family`` is who an endpoint must be to understand it: ``openai`` or ``anthropic``."""

    name: str
    family: str
    served: str
    """The path at which the gateway serves it."""
    upstream: str
    """What is added to the endpoint's address."""
    turns: str
    """The key of the request that holds the conversation."""
    caps: tuple[str, ...]
    """Keys that cap the tokens of a reply; the first is used where a request has none."""
    usage: Callable[[Any], Usage | None]


CHAT = Dialect(
    name="chat",
    family="openai",
    served="/v1/chat/completions",
    upstream="/chat/completions",
    turns="messages",
    caps=("max_tokens", "max_completion_tokens"),
    usage=chat_usage,
)
RESPONSES = Dialect(
    name="responses",
    family="openai",
    served="/v1/responses",
    upstream="/responses",
    turns="input",
    caps=("max_output_tokens",),
    usage=responses_usage,
)
MESSAGES = Dialect(
    name="messages",
    family="anthropic",
    served="/v1/messages",
    upstream="/v1/messages",
    turns="messages",
    caps=("max_tokens",),
    usage=messages_usage,
)
DIALECTS = {dialect.name: dialect for dialect in (CHAT, RESPONSES, MESSAGES)}
FAMILIES = {
    "openai": (OPENAI_URL, "OPENAI_BASE_URL", "OPENAI_API_KEY"),
    "anthropic": (ANTHROPIC_URL, "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"),
}
"""By family: the maker's address, and the variables that name another one and the key."""


def key_headers(dialect: Dialect, key: Token | None) -> dict[str, str]:
    """The headers that open an endpoint."""
    secret = key.secret.get_secret_value() if key else None
    if dialect.family == "anthropic":
        return {"anthropic-version": _ANTHROPIC_VERSION, **({"x-api-key": secret} if secret else {})}
    return {"authorization": f"Bearer {secret}"} if secret else {}


def error_body(dialect: Dialect, kind: str, message: str) -> dict[str, Any]:
    """An error document of the dialect; ``kind`` is a key of :data:`KINDS`."""
    openai, anthropic = KINDS[kind]
    if dialect.family == "anthropic":
        return {"type": "error", "error": {"type": anthropic, "message": message}}
    return {"error": {"message": message, "type": openai, "code": openai, "param": None}}


KINDS = {
    "budget": ("insufficient_quota", "billing_error"),
    "bad_request": ("invalid_request_error", "invalid_request_error"),
    "token": ("invalid_api_key", "authentication_error"),
    "model": ("model_not_found", "not_found_error"),
    "path": ("not_found", "not_found_error"),
    "too_large": ("invalid_request_error", "request_too_large"),
    "unavailable": ("server_error", "api_error"),
    "refused": ("permission_denied", "permission_error"),
}
"""What the dialects call a fault: OpenAI's ``code`` and Anthropic's ``type``."""


class StreamReader:
    """Reads what a stream of events says of its usage and its end, one whole event after the other."""

    def __init__(self, dialect: Dialect) -> None:
        self.ended = False
        """Whether the stream said that the reply is complete."""
        self._dialect = dialect
        self._told: dict[str, Any] = {}

    @property
    def usage(self) -> Usage | None:
        """What was used; None unless the stream came to its end and said so."""
        return self._dialect.usage(self._told) if self.ended and self._told else None

    def event(self, raw: bytes) -> Any:
        """Take in one event; its document where it held anything of interest."""
        if not any(mark in raw for mark in (b'"usage"', b'"finish_reason"', b"[DONE]", b"message_stop")):
            return None
        data = b"\n".join(line[5:].strip() for line in raw.splitlines() if line.startswith(b"data:"))
        if data == b"[DONE]":
            self.ended = True
            return None
        try:
            said = json.loads(data)
        except (ValueError, RecursionError):
            return None
        if isinstance(said, dict):
            getattr(self, f"_{self._dialect.name}")(said)
        return said

    def _chat(self, said: Mapping[str, Any]) -> None:
        choices = said.get("choices")
        if isinstance(choices, list) and any(isinstance(c, dict) and c.get("finish_reason") for c in choices):
            self.ended = True
        if isinstance(said.get("usage"), dict):
            self._told = said["usage"]

    def _responses(self, said: Mapping[str, Any]) -> None:
        response = said.get("response")
        done = said.get("type") in ("response.completed", "response.incomplete", "response.failed")
        if done and isinstance(response, dict):
            self.ended = True
            if isinstance(response.get("usage"), dict):
                self._told = response["usage"]

    def _messages(self, said: Mapping[str, Any]) -> None:
        kind = said.get("type")
        message = said.get("message")
        told = message.get("usage") if kind == "message_start" and isinstance(message, dict) else None
        if kind == "message_delta":
            # Counts of a delta are those of the whole message so far; what it leaves out stands from the start.
            told = said.get("usage")
        if isinstance(told, dict):
            self._told = {**self._told, **{k: v for k, v in told.items() if v is not None}}
        self.ended = self.ended or kind == "message_stop"


def usage_alone(said: Any) -> bool:
    """Whether a chat event holds nothing but the usage: who did not ask for it may not expect it."""
    return isinstance(said, dict) and said.get("choices") == [] and isinstance(said.get("usage"), dict)
