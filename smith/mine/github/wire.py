"""One request: what is sent, and an answer read whole or not at all. The token goes to one host and nowhere else."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from smith import __version__
from smith.errors import Unavailable
from smith.mine.github.urls import origin
from smith.secret import Token

LARGEST_BODY = 64 * 1024 * 1024
"""Bytes; a page of a hundred pull requests has one to three million."""


@dataclass(frozen=True)
class Answer:
    """What came back, without the token wherever the server may have quoted it."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes

    @property
    def message(self) -> str:
        """What the forge says in words, in one short line."""
        data = _json(self.body)
        message = data.get("message") if isinstance(data, dict) else None
        return " ".join(message.split())[:200] if isinstance(message, str) else ""

    def has(self, shape: type[Any], key: str) -> bool:
        """Whether the body is JSON of ``shape`` and, where ``key`` is not empty, has it."""
        data = _json(self.body)
        return isinstance(data, shape) and (not key or key in data)


class Fault(Exception):
    """Something that may pass: the network, the server, half an answer. ``after``: seconds that the server asks for."""

    def __init__(self, words: str, after: float | None = None) -> None:
        super().__init__(words)
        self.after = after


class Wire:
    """Connections to ``base_url``'s host. Raises :class:`Unavailable` for proxy settings that cannot be used."""

    def __init__(
        self, base_url: str, token: Token | None, *, timeout_s: float, transport: httpx.BaseTransport | None
    ) -> None:
        self._origin = origin(base_url)
        self._token = token
        self._timeout_s = timeout_s
        headers = {
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
            "User-Agent": f"smith/{__version__}",
        }
        try:
            self._http = httpx.Client(transport=transport, timeout=timeout_s, follow_redirects=False, headers=headers)
        except (ValueError, ImportError, OSError, httpx.InvalidURL):
            # What is said may hold a proxy's password.
            line = "the proxy or certificate settings of this machine cannot be used"
            raise Unavailable(line, hint="look at HTTPS_PROXY, ALL_PROXY and SSL_CERT_FILE") from None

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def hide(self, text: str) -> str:
        """``text`` without the token."""
        return text if self._token is None else self._token.hide(text)

    def get(self, url: str, headers: Mapping[str, str]) -> Answer:
        """The answer to one GET. Raises :class:`Fault` where there is none, or not the whole of it."""
        headers = dict(headers)
        if self._token is not None and origin(url) == self._origin:
            headers["Authorization"] = f"Bearer {self._token.secret.get_secret_value()}"
        deadline = time.monotonic() + self._timeout_s
        # Errors of the library may quote what a server sent, so none of them is kept as a cause.
        try:
            with self._http.stream("GET", url, headers=headers) as response:
                body = _read(response, deadline)
        except httpx.TimeoutException:
            raise Fault(f"no whole answer within {self._timeout_s:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            raise Fault(self.hide(f"no answer: {error or type(error).__name__}")) from None
        told = {name.lower(): self.hide(value) for name, value in response.headers.items()}
        return Answer(response.status_code, told, body if self._token is None else self._token.hide_bytes(body))


def _read(response: httpx.Response, deadline: float) -> bytes:
    """The whole body; a fault where it is too large, or comes too slowly however steadily."""
    chunks: list[bytes] = []
    size = 0
    for chunk in response.iter_bytes():
        size += len(chunk)
        if size > LARGEST_BODY:
            raise Fault(f"an answer of more than {LARGEST_BODY} bytes")
        if time.monotonic() > deadline:
            raise httpx.ReadTimeout("too slow")
        chunks.append(chunk)
    return b"".join(chunks)


def _json(body: bytes) -> Any:
    """The JSON of ``body``; None for what is none."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None
