"""What the words and the change of each candidate tell, from the cache where they were read before.

Reading words takes longer than all the rest of a scan that finds nothing new, and follows from title, body and change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

from smith.mine.decide import Case
from smith.mine.signals import read
from smith.mine.store import Store
from smith.records.signals import Signals

_TABLES = ("devices.toml", "operators.toml")


class Told:
    """Signals by case and body; what came later is not among them. Nothing is kept before :meth:`keep`."""

    def __init__(self, store: Store, wanted: Iterable[tuple[Case, str]]) -> None:
        """``wanted`` are the cases that may be asked for, with the body of each: known ones are looked up at once."""
        self._store = store
        self._known = store.signals(self._key(case, body) for case, body in wanted)
        self._fresh: dict[bytes, Signals] = {}

    def signals(self, case: Case, body: str) -> Signals:
        """As :func:`~smith.mine.signals.read` reads them."""
        key = self._key(case, body)
        if key not in self._known:
            title, shape = case.merged.pull_request.title, case.shape
            self._known[key] = read(title=title, body=body, files=shape.files, kernels=shape.kernels)
            # What could not be read may be here another time, and then the change is another one.
            if not shape.unread:
                self._fresh[key] = self._known[key]
        return self._known[key]

    def keep(self) -> None:
        """Keep for another time what was read."""
        self._store.remember_signals(self._fresh)
        self._fresh = {}

    def _key(self, case: Case, body: str) -> bytes:
        digest = hashlib.blake2b(_tables(), digest_size=20)
        digest.update(self._store.key(case.merged.changes))
        digest.update("\0".join((case.merged.pull_request.title, body)).encode("utf-8", "surrogatepass"))
        return digest.digest()


@cache
def _tables() -> bytes:
    """A name of the tables of words."""
    return hashlib.sha256(b"\0".join((files("smith.mine") / name).read_bytes() for name in _TABLES)).digest()
