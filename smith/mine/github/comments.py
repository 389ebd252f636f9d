"""Review comments by pull request: from the list of the whole repository or one pull request at a time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from smith.mine.github.client import Client
from smith.mine.github.numbered import PER_PAGE, Item

_FEW = 3
_PULL = re.compile(r"/pulls/(\d{1,9})\Z")
_MONTH = re.compile(r"\d{4}-\d\d-")


class Comments:
    """The review comments of ``pulls`` (number to item), below ``path`` (such as ``/repos/owner/name/pulls``).

    One pull request by itself gives its first hundred comments; the list gives all of them.
    """

    def __init__(self, client: Client, path: str, pulls: Mapping[int, Item]) -> None:
        self.found: dict[int, list[Item]] = {}
        self._client = client
        self._path = path
        # The item of one pull request counts its comments, that of a list does not.
        none = {number for number, item in pulls.items() if item.get("review_comments") == 0}
        self.found.update((number, []) for number in none)
        self.lacking = set(pulls) - none
        made = [item["created_at"] for item in pulls.values() if isinstance(item.get("created_at"), str)]
        # No comment is older than its pull request. A whole month, so that the next call asks for the same pages.
        oldest = min(made, default="")
        since = f"&since={oldest[:7]}-01T00:00:00Z" if len(made) == len(pulls) and _MONTH.match(oldest) else ""
        self._list = client.url(f"{path}/comments?sort=created&direction=asc&per_page={PER_PAGE}{since}")

    @property
    def cost(self) -> int:
        """How many requests :meth:`fetch` takes at most, where nothing fails."""
        return len(self.lacking) + (len(self.lacking) > _FEW)

    def recall(self) -> None:
        """Take what needs no request."""
        for number in sorted(self.lacking):
            if self._client.is_fresh(self._one(number)):
                self._single(number)
        self._from_list(spend=False)

    def fetch(self) -> None:
        """Get all that is lacking."""
        if len(self.lacking) > _FEW:
            self._from_list(spend=True)
        for number in sorted(self.lacking):
            self._single(number)

    def _one(self, number: int) -> str:
        return self._client.url(f"{self._path}/{number}/comments?per_page={PER_PAGE}")

    def _single(self, number: int) -> None:
        self.found[number] = [item for item in self._client.get(self._one(number), list).data or () if _is_item(item)]
        self.lacking.discard(number)

    def _from_list(self, *, spend: bool) -> None:
        """Walk the whole list where it costs less; without ``spend``, where it costs nothing."""
        found: dict[int, dict[int, Item]] = {number: {} for number in self.lacking}
        walked: set[str] = set()
        seen: set[int] = set()
        following: str | None = self._list
        last: int | None = None
        while following is not None and found:
            fresh = self._client.is_fresh(following)
            # The first page is worth a look, since it tells how many there are.
            if not fresh and (not spend or (walked and (last is None or last - len(walked) >= len(found)))):
                return
            page = self._client.get(following, list)
            walked.add(page.url)
            if not page.found or page.next in walked:
                return
            ids = {_id(item) for item in page.data}
            if ids and ids <= seen:
                return  # a list that repeats itself would go on for ever
            seen |= ids
            for item in page.data:
                number = _pull_of(item)
                if number in found:
                    found[number][_id(item)] = item
            last, following = page.last or last, page.next if page.data else None
        self.found.update((number, list(items.values())) for number, items in found.items())
        self.lacking -= found.keys()


def _is_item(item: Any) -> bool:
    return isinstance(item, dict)


def _id(item: Any) -> int:
    """The id by which a comment that comes twice is known; 0 for what has none."""
    value = item.get("id") if isinstance(item, dict) else None
    return value if isinstance(value, int) else 0


def _pull_of(item: Any) -> int | None:
    url = item.get("pull_request_url") if isinstance(item, dict) else None
    match = _PULL.search(url) if isinstance(url, str) else None
    return int(match[1]) if match else None
