"""One GET at a time through the cache: conditional, within the rate limits, with patience for passing faults."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

import httpx

from smith.errors import BadInput, Unavailable
from smith.mine.github import limits, urls
from smith.mine.github.cache import Cache, Page
from smith.mine.github.limits import Quota, RateLimited
from smith.mine.github.wire import Answer, Fault, Wire
from smith.secret import Token

GONE_FRESH_S = 600.0
"""What is not there may only be hidden from this token: the word for it holds for minutes."""

_BACKOFF_S = (1.0, 2.0, 4.0)
_HOPS = 5
_SAID_EVERY = 50
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_GONE = frozenset({404, 410, 451})
_NOT_PAGED = 422

Shape = type[list[Any]] | type[dict[str, Any]]


@dataclass(frozen=True)
class Settings:
    """How a client behaves; times in seconds."""

    say: Callable[[str], None]
    sleep: Callable[[float], None]
    clock: Callable[[], float]
    """Seconds since the epoch."""
    random: Callable[[], float]
    """In [0, 1): spreads the retries of several processes."""
    wait_s: float
    """How long rate limits may hold up one request, in all."""
    fresh_s: float
    """How long an answer is taken as current without asking."""
    timeout_s: float
    """How long one answer may take, from the first byte to the last."""


class Client:
    """Asks ``base_url`` through ``cache``; a context manager that closes its connections."""

    def __init__(
        self,
        base_url: str,
        token: Token | None,
        cache: Cache,
        settings: Settings,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.base_url = base_url
        self.host = urlsplit(base_url).netloc
        self.requests = 0
        """Sent so far, retries and redirects too."""
        self.quota: Quota | None = None
        self._token = token
        self._cache = cache
        self._settings = settings
        self._moved: tuple[str, str] | None = None
        self._wire = Wire(base_url, token, timeout_s=settings.timeout_s, transport=transport)

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._wire.close()

    def say(self, line: str) -> None:
        """Tell the user, never the token."""
        self._settings.say(self._wire.hide(line))

    def url(self, path: str) -> str:
        """The URL of ``path`` (with a leading slash)."""
        return f"{self.base_url}{path}"

    def is_fresh(self, url: str) -> bool:
        """Whether :meth:`get` would answer without a request."""
        kept = self._cache.fetched(url)
        return kept is not None and self._holds(*kept)

    def get(self, url: str, shape: Shape, *, key: str = "") -> Page:
        """The page at ``url``, whose JSON is of ``shape`` and has ``key``; one of status 404, 410, 422 or 451 has none.

        Raises :class:`RateLimited` where a limit would take too long, :class:`~smith.errors.Unavailable` where the
        forge cannot be reached or talks nonsense, :class:`~smith.errors.BadInput` where it refuses the token.
        """
        kept = self._cache.get(url)
        if kept is not None and self._holds(kept.status, kept.fetched_at):
            return kept
        answer = self._ask(url, shape, kept if kept is not None and kept.found else None, key=key)
        page = self._page(url, shape, answer, kept)
        # A list that is not there is a repository that is not there; one that is refused is asked for otherwise.
        if page.found or (shape is dict and page.status != _NOT_PAGED):
            self._cache.put(page)
        return page

    def ask_quota(self) -> Quota | None:
        """The primary limit, by a request that does not count; None where the forge has none."""
        answer = self._ask(self.url("/rate_limit"), dict, None, free=True)
        if answer.status == 200:
            resources = json.loads(answer.body).get("resources")
            core = resources.get("core") if isinstance(resources, dict) else None
            if isinstance(core, dict):
                headers = {f"x-ratelimit-{key}": str(core.get(key)) for key in ("limit", "remaining", "reset")}
                headers["date"] = answer.headers.get("date", "")
                self.quota = limits.read_quota(headers, self._settings.clock())
        return self.quota

    def _holds(self, status: int, fetched_at: float) -> bool:
        age = self._settings.clock() - fetched_at
        return 0 <= age < (self._settings.fresh_s if status == 200 else min(GONE_FRESH_S, self._settings.fresh_s))

    def _page(self, url: str, shape: Shape, answer: Answer, kept: Page | None) -> Page:
        now = self._settings.clock()
        if answer.status == 304 and kept is not None:
            following, last = self._links(url, answer)
            if "link" not in answer.headers:
                following, last = kept.next, kept.last
                # The last page may have become full since: then there are more, though this one is unchanged.
                if following is None and shape is list and len(kept.data) >= urls.per_page(url):
                    following = urls.next_page(url)
            return replace(kept, next=following, last=last, fetched_at=now)
        if answer.status != 200:
            return Page(url=url, status=answer.status, body=b"", fetched_at=now)
        following, last = self._links(url, answer)
        return Page(
            url=url,
            status=200,
            body=answer.body,
            etag=_plain(answer.headers.get("etag")),
            last_modified=_plain(answer.headers.get("last-modified")),
            next=following,
            last=last,
            fetched_at=now,
        )

    def _links(self, url: str, answer: Answer) -> tuple[str | None, int | None]:
        following, last = urls.links(url, answer.headers.get("link", ""))
        if following is not None and urls.origin(following) != urls.origin(self.base_url):
            name = urls.origin(following)[1]
            raise Unavailable(f"{self.host} continues a list on another host, {name}: not followed")
        return following, last

    def _ask(self, url: str, shape: Shape, kept: Page | None, *, key: str = "", free: bool = False) -> Answer:
        """Send until there is an answer that stands: past redirects, limits and faults."""
        settings = self._settings
        target, waited, hops, faults, refusals = self._now_at(url), 0.0, 0, 0, 0
        while True:
            if not free and self.quota is not None and (wait_s := self.quota.wait(settings.clock())):
                waited = self._wait(wait_s, waited)
            try:
                answer = self._send(target, shape, kept, key)
            except Fault as fault:
                if faults == len(_BACKOFF_S):
                    hint = "what was fetched is kept; try again later"
                    raise Unavailable(f"{self.host}: {fault}", hint=hint) from None
                backoff = _BACKOFF_S[faults] * (0.5 + settings.random())
                faults += 1
                settings.sleep(max(backoff, fault.after or 0.0) if (fault.after or 0.0) <= settings.wait_s else backoff)
                continue
            if answer.status in _REDIRECTS:
                hops += 1
                if hops > _HOPS:
                    raise Unavailable(f"{self.host} redirects {urls.path(url)} in circles")
                target = self._follow(url, target, answer)
                continue
            refused_s = limits.pause(answer.status, answer.headers, answer.message, settings.clock(), refusals)
            if refused_s is None:
                self._refuse(answer, url)
                return answer
            refusals += 1
            waited = self._wait(refused_s, waited)

    def _send(self, url: str, shape: Shape, kept: Page | None, key: str) -> Answer:
        """One request. Raises :class:`Fault` for everything that another try may mend."""
        validators = {"If-None-Match": kept.etag, "If-Modified-Since": kept.last_modified} if kept else {}
        self.requests += 1
        if self.requests % _SAID_EVERY == 0:
            self.say(f"{self.host}: {self.requests} requests made{f'; {self.quota}' if self.quota else ''}")
        answer = self._wire.get(url, {name: value for name, value in validators.items() if value})
        now = self._settings.clock()
        self.quota = limits.read_quota(answer.headers, now) or self.quota
        if answer.status in (408, 425) or answer.status >= 500:
            raise Fault(f"status {answer.status}", limits.retry_after(answer.headers, now))
        if answer.status == 200 and not answer.has(shape, key):
            raise Fault(f"{urls.path(url)}: the answer is not the JSON that it should be")
        if answer.status == 304 and kept is None:
            raise Fault(f"{urls.path(url)}: 'not modified', though nothing was there before")
        return answer

    def _refuse(self, answer: Answer, url: str) -> None:
        """Raise for an answer that no patience mends."""
        if answer.status in (200, 304, _NOT_PAGED) or answer.status in _GONE:
            return
        if answer.status == 401:
            if self._token is None:
                raise BadInput(f"{self.host} answers nobody without a token", hint="set GITHUB_TOKEN")
            hint = "it has expired, was revoked or is another host's"
            raise BadInput(f"{self.host} does not accept the token of {self._token.source}", hint=hint)
        if answer.status == 403 and "x-github-sso" in answer.headers:
            raise BadInput(
                f"{self.host} wants the token to be authorised for the organisation's single sign-on",
                hint="in the settings of the token: Configure SSO",
            )
        said = f": {answer.message}" if answer.message else ""
        raise BadInput(f"{self.host} refuses {urls.path(url)} with status {answer.status}{said}")

    def _wait(self, seconds: float, waited: float) -> float:
        """Wait, or raise :class:`RateLimited` where that would be too long in all; returns the time in all."""
        settings = self._settings
        until = settings.clock() + seconds
        if waited + seconds > settings.wait_s:
            hint = "run it again then" + ("" if self._token else "; with a token (GITHUB_TOKEN) it allows more")
            line = f"{self.host}: rate limit; goes on at {limits.moment(until)}; what was fetched is kept"
            raise RateLimited(line, until=until, hint=hint)
        self.say(f"{self.host}: rate limit; waiting {seconds:.0f} s")
        settings.sleep(seconds)
        self.quota = None  # what was known is of before
        return waited + seconds

    def _follow(self, url: str, target: str, answer: Answer) -> str:
        """Where a redirect leads. A moved repository is remembered, so that it costs one request only."""
        place = urls.join(target, answer.headers.get("location", ""))
        if urls.origin(place) != urls.origin(self.base_url):
            raise Unavailable(f"{self.host} redirects to another host, {urls.origin(place)[1]}: not followed")
        # Only pull requests cannot move by themselves; an issue may have been transferred.
        asked, is_pulls, rest = url.partition("/pulls")
        if is_pulls and place.endswith(is_pulls + rest):
            now_at = place.removesuffix(is_pulls + rest)
            if self._moved is None and now_at != asked:
                self.say(f"{asked.partition('/repos/')[2]} has moved; following")
            self._moved = (asked, now_at)
        return place

    def _now_at(self, url: str) -> str:
        if self._moved is not None and url.startswith(f"{self._moved[0]}/"):
            return self._moved[1] + url.removeprefix(self._moved[0])
        return url


def _plain(value: str | None) -> str | None:
    """A header that can be sent back as it came."""
    return value if value and value.isascii() and value.isprintable() else None
