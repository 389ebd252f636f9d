"""Pull requests or issues by number: from lists of a hundred or one by one, whichever costs fewer requests."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Literal

from smith.errors import BadInput
from smith.mine.github.cache import Page
from smith.mine.github.client import Client
from smith.mine.github.read import slim

PER_PAGE = 100
_FEW = 3
"""So few are never worth the look at a list."""

Item = dict[str, Any]
Direction = Literal["asc", "desc"]


class Numbered:
    """The items of ``wanted`` numbers, below ``path`` (such as ``/repos/owner/name/pulls``).

    Lists are in the order of numbers, so a walk ends where no wanted number can follow. From the oldest on, pages
    hardly ever change and cost nothing when asked for again; the newest come first only where that spares most of the
    pages. An item that slips from one page to another while pages are read is asked for by itself.
    """

    def __init__(self, client: Client, path: str, wanted: Collection[int], *, state: str) -> None:
        self.found: dict[int, Item] = {}
        self.lacking = {number for number in wanted if number > 0}
        self.gone: set[int] = set()
        """Asked for and not there."""
        self._client = client
        self._path = path
        self._state = state
        self._walked: set[str] = set()
        self._begin(self._choose())

    @property
    def cost(self) -> int:
        """How many requests :meth:`fetch` takes at most, where nothing fails and the lists hold all that is wanted."""
        looks = 1 if self._looks() else 0
        return min(len(self.lacking) + looks, max(self._left(), looks)) if self.lacking else 0

    def recall(self) -> None:
        """Take what needs no request."""
        for number in sorted(self.lacking):
            if self._client.is_fresh(self._one(number)):
                self._single(number)
        while self.lacking and self._next is not None and self._client.is_fresh(self._next):
            self._turn(self._client.get(self._next, list))

    def fetch(self) -> None:
        """Get all that is lacking."""
        while self.lacking and self._next is not None:
            if not (self._client.is_fresh(self._next) or self._left() < len(self.lacking) or self._looks()):
                break
            page = self._client.get(self._next, list)
            if page.status in (404, 451):
                raise no_repository(self._client, self._path.removeprefix("/repos/").rpartition("/")[0])
            self._turn(page)
        for number in sorted(self.lacking):
            self._single(number)

    def _begin(self, direction: Direction) -> None:
        query = f"state={self._state}&sort=created&direction={direction}&per_page={PER_PAGE}"
        self._direction: Direction = direction
        self._next: str | None = self._client.url(f"{self._path}?{query}")
        self._pages = 0
        self._last: int | None = None
        self._edge: int | None = None

    def _one(self, number: int) -> str:
        return self._client.url(f"{self._path}/{number}")

    def _single(self, number: int) -> None:
        data = self._client.get(self._one(number), dict, key="number").data
        self.lacking.discard(number)
        if data is None:
            self.gone.add(number)
        else:
            self.found[number] = slim(data)

    def _choose(self) -> Direction:
        if not self.lacking:
            return "asc"
        span = (max(self.lacking) - min(self.lacking)) // PER_PAGE + 2
        return "desc" if 2 * span < max(self.lacking) / PER_PAGE else "asc"

    def _left(self) -> int:
        """How many pages follow at most until no wanted number can follow."""
        if not self.lacking or self._next is None:
            return 0
        if self._direction == "asc":
            span = max(self.lacking) - (self._edge or 0)
        else:
            newest = self._edge - 1 if self._edge is not None else max(self.lacking)
            span = newest - min(self.lacking) + 1
        pages = max(0, -(-span // PER_PAGE))
        return pages if self._last is None else min(pages, max(0, self._last - self._pages))

    def _looks(self) -> bool:
        """Whether the first page is worth a look, for it tells how many there are: numbers are shared by two kinds."""
        return not self._walked and len(self.lacking) > _FEW and self._left() < 2 * len(self.lacking)

    def _turn(self, page: Page) -> None:
        """Take the items of ``page`` and go to the next one."""
        self._walked.add(page.url)
        self._pages += 1
        items = [item for item in page.data or () if isinstance(item, dict) and isinstance(item.get("number"), int)]
        numbers = [item["number"] for item in items]
        for item in items:
            if item["number"] in self.lacking:
                self.lacking.discard(item["number"])
                self.found[item["number"]] = slim(item)
        self._last = page.last or self._last
        edge = (max if self._direction == "asc" else min)(numbers, default=None)
        # A list that repeats itself, or goes back, would go on for ever.
        stuck = edge is None or page.next in self._walked or not self._onward(edge)
        past = not self.lacking or self._passed(edge)
        self._edge = edge if edge is not None else self._edge
        self._next = None if stuck or past else page.next
        if self._next and self._direction == "desc" and self._pages == 1 and self._far() < self._left():
            self._begin("asc")  # the newest ones are much newer than what is wanted

    def _far(self) -> int:
        """How many pages there are at most from the oldest on."""
        return -(-max(self.lacking) // PER_PAGE)

    def _onward(self, edge: int) -> bool:
        return self._edge is None or (edge > self._edge if self._direction == "asc" else edge < self._edge)

    def _passed(self, edge: int | None) -> bool:
        if edge is None:
            return True
        return edge >= max(self.lacking) if self._direction == "asc" else edge <= min(self.lacking)


def no_repository(client: Client, repo: str) -> BadInput:
    """The error for a repository that is not there, or hidden: the forge does not tell which."""
    return BadInput(f"{client.host} has no repository {repo}", hint="is it spelled right, and may the token see it?")
