"""One POST: what is sent, and an answer read whole or not at all. The key goes to one host and nowhere else."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from smith import __version__
from smith.errors import Unavailable
from smith.models.address import checked_url
from smith.models.faults import code_of, message_of
from smith.secret import Token

LARGEST_BODY = 16 * 1024 * 1024
"""Bytes of an answer."""
CONNECT_S = 15.0


@dataclass(frozen=True)
class Answer:
    """What came back, whole; the key is taken out wherever the server may have quoted it."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def data(self) -> Any:
        """The JSON of the body; None for what is none."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None

    @property
    def message(self) -> str:
        """What the endpoint says went wrong, in one short line."""
        return message_of(self.data)

    @property
    def code(self) -> str:
        """The endpoint's own name for the fault, where it gives one."""
        return code_of(self.data)


class NotSent(Exception):
    """No connection was made: nothing can have been charged."""


class Broken(Exception):
    """The request went out and no whole answer came: it may have been charged."""


class Wire:
    """Connections to one endpoint. Raises :class:`smith.errors.BadInput` for an address that is none."""

    def __init__(self, url: str, key: Token | None, *, timeout_s: float) -> None:
        self.url = checked_url(url)
        self._key = key
        self._timeout_s = timeout_s
        limits = httpx.Timeout(timeout_s, connect=min(CONNECT_S, timeout_s))
        headers = {"User-Agent": f"smith/{__version__}", "Content-Type": "application/json"}
        try:
            self._http = httpx.Client(timeout=limits, follow_redirects=False, headers=headers)
        except (ValueError, ImportError, OSError, httpx.InvalidURL):
            # What is said may hold a proxy's password.
            line = "the proxy or certificate settings of this machine cannot be used"
            raise Unavailable(line, hint="look at HTTPS_PROXY, ALL_PROXY and SSL_CERT_FILE") from None

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def hide(self, text: str) -> str:
        """``text`` without the key."""
        return text if self._key is None else self._key.hide(text)

    def post(self, path: str, headers: Mapping[str, str], body: Mapping[str, Any]) -> Answer:
        """The whole answer. Raises :class:`NotSent` or :class:`Broken` where there is none."""
        deadline = time.monotonic() + self._timeout_s
        data = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        # Errors of the library may quote what a server sent, so none of them is kept as a cause.
        try:
            with self._http.stream("POST", self.url + path, headers=dict(headers), content=data) as response:
                raw = _read(response, deadline)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol) as error:
            raise NotSent(self.hide(f"no connection: {error or type(error).__name__}")) from None
        except httpx.TimeoutException:
            raise Broken(f"no whole answer within {self._timeout_s:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            raise Broken(self.hide(f"the answer broke off: {error or type(error).__name__}")) from None
        told = {name.lower(): self.hide(value) for name, value in response.headers.items()}
        return Answer(response.status_code, told, raw if self._key is None else self._key.hide_bytes(raw))


def _read(response: httpx.Response, deadline: float) -> bytes:
    """The whole body; broken where it is too large, or comes too slowly however steadily."""
    chunks: list[bytes] = []
    size = 0
    for chunk in response.iter_bytes():
        size += len(chunk)
        if size > LARGEST_BODY:
            raise Broken(f"an answer of more than {LARGEST_BODY} bytes")
        if time.monotonic() > deadline:
            raise httpx.ReadTimeout("too slow")
        chunks.append(chunk)
    return b"".join(chunks)
