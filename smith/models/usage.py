"""What an endpoint says that a call used, in the words of each dialect. What it does not say is None, never zero."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from smith.ledger.tariff import Usage


def chat_usage(told: Any) -> Usage | None:
    """``usage`` of a chat completion."""
    if not isinstance(told, Mapping):
        return None
    cached = _detail(told, "prompt_tokens_details", "cached_tokens")
    return _usage(_count(told, "prompt_tokens"), _count(told, "completion_tokens"), cached)


def responses_usage(told: Any) -> Usage | None:
    """``usage`` of a response of OpenAI's responses dialect."""
    if not isinstance(told, Mapping):
        return None
    cached = _detail(told, "input_tokens_details", "cached_tokens")
    return _usage(_count(told, "input_tokens"), _count(told, "output_tokens"), cached)


def messages_usage(told: Any) -> Usage | None:
    """``usage`` of an Anthropic message, where ``input_tokens`` leaves out what the cache read or wrote."""
    if not isinstance(told, Mapping):
        return None
    read, written = (_count(told, f"cache_{how}_input_tokens") or 0 for how in ("read", "creation"))
    plain = _count(told, "input_tokens")
    whole = None if plain is None else plain + read + written
    for_an_hour = _detail(told, "cache_creation", "ephemeral_1h_input_tokens")
    return _usage(whole, _count(told, "output_tokens"), read, written, for_an_hour)


def _count(told: Mapping[str, Any], key: str) -> int | None:
    value = told.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _detail(told: Mapping[str, Any], group: str, key: str) -> int:
    details = told.get(group)
    return (_count(details, key) or 0) if isinstance(details, Mapping) else 0


def _usage(
    read: int | None, written: int | None, cached: int, cache_written: int = 0, for_an_hour: int = 0
) -> Usage | None:
    if read is None or written is None:
        return None
    cached = min(cached, read)
    cache_written = min(cache_written, read - cached)
    return Usage(
        input_tokens=read,
        output_tokens=written,
        cached_tokens=cached,
        cache_write_tokens=cache_written,
        cache_write_1h_tokens=min(for_an_hour, cache_written),
    )
