"""Addresses of endpoints."""

from __future__ import annotations

from urllib.parse import urlsplit

from smith.errors import BadInput


def checked_url(url: str) -> str:
    """The address without a slash at its end. Raises :class:`BadInput` for what is none, or holds a password."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadInput(f"{url[:80]!r} is no address of an endpoint", hint="e.g. http://localhost:8000/v1")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise BadInput("an endpoint's address holds no password, query or fragment", hint="give the key otherwise")
    return url.rstrip("/")
