"""The address of the interface: GitHub's own, or a GitHub Enterprise server's."""

from __future__ import annotations

from urllib.parse import urlsplit

from smith.errors import BadInput

API = "https://api.github.com"

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def checked(base_url: str, *, secret: bool) -> str:
    """``base_url`` without a final slash. ``secret``: whether a token travels there.

    Raises :class:`~smith.errors.BadInput`, without its content, for what is no plain URL, and for http where a token
    would travel in the clear.
    """
    hint = f"give it like {API} or https://HOST/api/v3"
    try:
        parts = urlsplit(base_url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise BadInput("the address of the interface is no URL", hint=hint) from None
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment or "@" in parts.netloc:
        raise BadInput("the address of the interface is no plain http or https URL", hint=hint)
    if secret and parts.scheme == "http" and host not in _LOOPBACK:
        raise BadInput(f"http://{parts.netloc} would carry the token in the clear", hint="give an https address")
    return base_url.rstrip("/")


def web_host(base_url: str) -> str:
    """Where people read what the interface gives: github.com for api.github.com, an Enterprise server itself."""
    parts = urlsplit(base_url)
    return parts.netloc if parts.path.strip("/") else parts.netloc.removeprefix("api.")
