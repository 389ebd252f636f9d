"""The endpoint behind the gateway. The key goes there and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from smith import __version__
from smith.errors import Unavailable
from smith.gateway.dialects import Dialect, key_headers
from smith.gateway.replayed import Recorded
from smith.models.address import checked_url
from smith.secret import Token

CONNECT_S = 15.0
PASSED_ON = ("anthropic-beta", "anthropic-version", "openai-beta")
"""Headers of an agent that go on to the endpoint: they choose features of the dialect."""


class NotSent(Exception):
    """No connection was made: nothing can have been charged."""


class Broken(Exception):
    """The request went out and no whole answer came: it may have been charged."""


@dataclass(frozen=True)
class Endpoint:
    """Where a model is: the address without the dialect's own path, whose family it speaks, and what opens it."""

    url: str
    family: str
    key: Token | None
    timeout_s: float = 600.0
    """For one answer, from its first byte to its last."""
    record: Path | None = None
    """Exchanges of an earlier attempt, whose answers are given instead of any from the address."""

    @property
    def host(self) -> str:
        return urlsplit(self.url).hostname or ""


class Upstream:
    """Connections to an endpoint. Raises :class:`smith.errors.BadInput` for an address that is none."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._url = checked_url(endpoint.url)
        limits = httpx.Timeout(endpoint.timeout_s, connect=min(CONNECT_S, endpoint.timeout_s))
        pool = httpx.Limits(max_connections=None, max_keepalive_connections=16, keepalive_expiry=30)
        # Nothing packed: events of a stream would be held back until a block is full.
        packing = {"accept-encoding": "identity"}
        headers = {"user-agent": f"smith/{__version__}", "content-type": "application/json", **packing}
        try:
            self._http = httpx.AsyncClient(
                timeout=limits,
                limits=pool,
                follow_redirects=False,
                headers=headers,
                transport=Recorded(endpoint.record) if endpoint.record is not None else None,
            )
        except (ValueError, ImportError, OSError, httpx.InvalidURL):
            # What is said may hold a proxy's password.
            line = "the proxy or certificate settings of this machine cannot be used"
            raise Unavailable(line, hint="look at HTTPS_PROXY, ALL_PROXY and SSL_CERT_FILE") from None

    async def send(self, dialect: Dialect, body: bytes, headers: Mapping[str, str], query: str) -> httpx.Response:
        """The answer's head; its body is still to be read. Raises :class:`NotSent` or :class:`Broken`."""
        passed = {name: headers[name] for name in PASSED_ON if name in headers}
        request = self._http.build_request(
            "POST",
            self._url + dialect.upstream + (f"?{query}" if query else ""),
            content=body,
            headers={**key_headers(dialect, self.endpoint.key), **passed},
        )
        # What the library says may quote what was sent, so nothing of it is kept.
        try:
            return await self._http.send(request, stream=True)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol):
            raise NotSent("no connection to the endpoint") from None
        except httpx.TimeoutException:
            raise Broken(f"no answer within {self.endpoint.timeout_s:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            raise Broken(f"the answer broke off: {type(error).__name__}") from None

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()
