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


class HandedOn(Generic[Key, Value]):
    """Results that are asked for once more: what is taken goes, and over ``most`` bytes so does what waits longest.

    One side of a change is a side of the next change of that file, and of hardly any other.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: dict[Key, tuple[Value, int]] = {}
        self._size = 0

    def take(self, key: Key, default: Value | None = None) -> Value | None:
        """The result kept for ``key``, for the last time; ``default`` where there is none."""
        if key not in self._held:
            return default
        value, size = self._held.pop(key)
        self._size -= size
        return value

    def hand_on(self, key: Key, value: Value, size: int) -> None:
        """Keep ``value``, of ``size`` bytes with its key, until it is taken."""
        self.take(key)
        self._held[key] = (value, size)
        self._size += size
        while self._size > self._most:
            self.take(next(iter(self._held)))
