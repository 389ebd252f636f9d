"""Enrich pull requests: the pull requests, their review comments, the issues that they close."""

from __future__ import annotations

import random as random_
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx

from smith.errors import BadInput
from smith.mine.github import read
from smith.mine.github.address import API, checked, web_host
from smith.mine.github.cache import open_cache
from smith.mine.github.client import Client, Settings
from smith.mine.github.closing import Reference, closed_by
from smith.mine.github.comments import Comments
from smith.mine.github.numbered import Item, Numbered, no_repository
from smith.records.enrichment import MOST_ISSUES, Enrichment, LinkedIssue
from smith.secret import Token

_REPO = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*/(?!\.{1,2}\Z)[A-Za-z0-9._-]+\Z")

Linked = dict[Reference, str]
"""What a pull request closes, and whose words say so."""


class GitHub:
    """The REST interface of GitHub, or of a GitHub Enterprise server, for one repository.

    ``token`` comes from :func:`~smith.mine.github.token.find_token`; without one GitHub answers what is public, and
    less often. ``cache`` is a file that several processes may use at once; what it holds is taken as current for
    ``fresh_s`` seconds, and then asked for again under a condition, which costs nothing where it is unchanged.
    ``wait_s`` bounds how long rate limits may hold up one request.

    Raises :class:`~smith.errors.BadInput` for a repository that is not ``owner/name``, or a ``base_url`` that is none
    or would carry the token in the clear.
    """

    def __init__(
        self,
        repo: str,
        *,
        token: Token | None,
        cache: Path,
        base_url: str = API,
        say: Callable[[str], None],
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.time,
        random: Callable[[], float] = random_.random,
        wait_s: float = 60.0,
        fresh_s: float = 24 * 3600.0,
        timeout_s: float = 60.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        if not _REPO.match(repo):
            raise BadInput(f"{repo!r} is no repository of GitHub", hint="give it as owner/name")
        self.repo = repo
        self._token = token
        self._cache = cache
        self._base_url = checked(base_url, secret=token is not None)
        self._settings = Settings(say, sleep, clock, random, wait_s, fresh_s, timeout_s)
        self._transport = transport

    def enrich(self, numbers: Sequence[int], texts: Mapping[int, str] | None = None) -> Iterator[Enrichment]:
        """What GitHub says of each pull request of ``numbers``, in their order; what it does not know is left out.

        ``texts`` (number to commit messages) are searched for closing keywords too. All requests are made before this
        returns. Whatever stops them, what was fetched is kept, and the next call goes on from there.

        Raises :class:`~smith.mine.github.limits.RateLimited` where a limit would hold up a request for longer than
        ``wait_s``, :class:`~smith.errors.Unavailable` where GitHub cannot be reached or the cache cannot be written,
        :class:`~smith.errors.BadInput` where GitHub refuses the token or has no such repository.
        """
        wanted = list(dict.fromkeys(numbers))
        with (
            open_cache(self._cache) as cache,
            Client(self._base_url, self._token, cache, self._settings, self._transport) as client,
        ):
            return iter(list(self._enrich(client, wanted, texts or {})))

    def _enrich(self, client: Client, wanted: list[int], texts: Mapping[int, str]) -> Iterator[Enrichment]:
        pulls = Numbered(client, f"/repos/{self.repo}/pulls", wanted, state="closed")
        pulls.recall()
        if pulls.lacking:
            self._announce(client, pulls.cost, len(wanted))
            pulls.fetch()
        if pulls.gone and not pulls.found and not client.get(client.url(f"/repos/{self.repo}"), dict).found:
            raise no_repository(client, self.repo)
        if pulls.gone:
            some = ", ".join(f"#{number}" for number in sorted(pulls.gone)[:10])
            more_of_them = f" and {len(pulls.gone) - 10} more" if len(pulls.gone) > 10 else ""
            client.say(f"{self.repo}: left out, for {client.host} knows no such pull request: {some}{more_of_them}")
        comments = Comments(client, f"/repos/{self.repo}/pulls", pulls.found)
        linked = {number: self._linked(number, item, texts.get(number, "")) for number, item in pulls.found.items()}
        here = {one.number for closed in linked.values() for one in closed if one.repo == self.repo}
        issues = Numbered(client, f"/repos/{self.repo}/issues", here, state="all")
        comments.recall()
        issues.recall()
        more = comments.cost + issues.cost
        if more:
            if client.quota is None:
                client.ask_quota()
            line = f"{self.repo}: about {more} requests for review comments and {len(issues.lacking)} issues"
            client.say(f"{line}; {self._left(client, more)}")
            comments.fetch()
            issues.fetch()
        if client.requests:
            client.say(f"{self.repo}: {client.requests} requests made")
        for number in wanted:
            if (item := pulls.found.get(number)) is not None:
                closed = [self._issue(one, where, issues.found) for one, where in linked[number].items()]
                yield read.pull_request(self.repo, item, number, closed, comments.found.get(number, []))

    def _announce(self, client: Client, cost: int, count: int) -> None:
        client.ask_quota()
        line = f"{self.repo}: about {cost} requests for {count} pull requests, then up to {count + 1} for their review"
        client.say(f"{line} comments and one for each issue that they close; {self._left(client, cost)}")

    def _left(self, client: Client, cost: int) -> str:
        who = "" if self._token else " without a token"
        if client.quota is None:
            return f"{client.host} tells no limit{who}"
        short = "; that will not do: run it again later to go on" if client.quota.remaining < cost else ""
        return f"{client.quota}{who}{short}"

    def _linked(self, number: int, item: Item, commits: str) -> Linked:
        """What the words of a pull request close; the first words that say so count."""
        found: Linked = {}
        own = Reference(self.repo, number)
        for where, words in (("title", item.get("title")), ("body", item.get("body")), ("commits", commits)):
            for one in closed_by(
                words if isinstance(words, str) else "", repo=self.repo, host=web_host(self._base_url)
            ):
                if one != own:
                    found.setdefault(one, where)
        return dict(list(found.items())[:MOST_ISSUES])

    def _issue(self, reference: Reference, where: str, items: Mapping[int, dict[str, Any]]) -> LinkedIssue:
        return read.issue(reference, where, items.get(reference.number) if reference.repo == self.repo else None)
