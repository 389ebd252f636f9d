"""Results by what they were made of, up to a number of bytes."""

from __future__ import annotations

from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class Remembered(Generic[Key, Value]):
    """Results of a pure function that are worth their memory: the last used ones, ``most`` bytes to twice as many.

    Bytes, not a number of results, since a hostile file makes few but huge ones. Not for use by several threads.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._recent: dict[Key, tuple[Value, int]] = {}
        self._earlier: dict[Key, tuple[Value, int]] = {}
        self._size = 0

    def get(self, key: Key) -> Value | None:
        """The result kept for ``key``; None where there is none any more."""
        found = self._recent.get(key)
        if found is None:
            found = self._earlier.pop(key, None)
            if found is None:
                return None
            self.keep(key, *found)
        return found[0]

    def keep(self, key: Key, value: Value, size: int) -> None:
        """Keep ``value``, of ``size`` bytes with its key; what was not asked for since long goes instead."""
        if size > self._most:
            return
        self._size += size
        if self._size > self._most:
            self._earlier, self._recent, self._size = self._recent, {}, size
        self._recent[key] = (value, size)
