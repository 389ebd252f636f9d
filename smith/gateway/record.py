"""The record of an attempt's exchanges: JSON lines, each written at once and whole, without secrets."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from smith.errors import Unavailable
from smith.records.base import to_json
from smith.secret import Token

_SECRET_NAMES = ("KEY", "TOKEN", "SECRET", "PASSWORD")
_LEAST_SECRET = 12


class Redactor:
    """Takes known secrets out of what is recorded or passed on."""

    def __init__(self, tokens: Iterable[Token | None]) -> None:
        self._tokens = [token for token in tokens if token is not None]

    @classmethod
    def of(cls, tokens: Iterable[Token | None], environ: Mapping[str, str]) -> Redactor:
        """For these tokens, and for what variables hold whose names say that it is a secret."""
        named = [
            Token.parse(value, name)
            for name, value in environ.items()
            if any(mark in name.upper() for mark in _SECRET_NAMES)
            and len(value) >= _LEAST_SECRET
            and value.isascii()
            and value.isprintable()
            and " " not in value
            and not value.startswith("/")
        ]
        return cls([*tokens, *named])

    def text(self, text: str) -> str:
        """``text`` without any of them."""
        for token in self._tokens:
            text = token.hide(text)
        return text

    def data(self, data: bytes) -> bytes:
        """``data`` without any of them."""
        for token in self._tokens:
            data = token.hide_bytes(data)
        return data


class Recorder:
    """Appends to one file. An exchange leaves out of its request what the one before it had already.

    Raises :class:`Unavailable` where the file cannot be made.
    """

    def __init__(self, path: Path, redactor: Redactor) -> None:
        self.path = path
        self._redactor = redactor
        self._lock = threading.Lock()
        self._last: dict[str, tuple[int, Mapping[str, Any]]] = {}
        try:
            self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise Unavailable(f"{path}: cannot be written: {error.strerror}") from error

    def write(self, line: Mapping[str, Any]) -> None:
        """Append one line by one call of the kernel, so that a kill leaves it whole or not there."""
        data = self._redactor.data(to_json(line)) + b"\n"
        with self._lock:
            if self._fd >= 0:
                os.write(self._fd, data)

    def request(self, number: int, body: Mapping[str, Any], turns: str) -> dict[str, Any]:
        """A request as it is recorded: keys that are as in exchange ``like`` are only named, and so are the first
        ``same`` turns."""
        with self._lock:
            like, last = self._last.get(turns, (0, {}))
            self._last[turns] = (number, body)
        now, before = body.get(turns), last.get(turns)
        same = _same(now, before) if isinstance(now, list) and isinstance(before, list) else 0
        unchanged = [key for key, value in body.items() if key != turns and key in last and last[key] == value]
        shown = {key: value for key, value in body.items() if key not in unchanged}
        if same:
            assert isinstance(now, list)
            shown[turns] = now[same:]
        if not same and not unchanged:
            return {"body": shown}
        return {"like": like, "same": same, "unchanged": unchanged, "body": shown}

    def close(self) -> None:
        """No more is written; a second time is no change."""
        with self._lock:
            if self._fd >= 0:
                os.close(self._fd)
            self._fd = -1


def _same(now: list[Any], before: list[Any]) -> int:
    count = 0
    for one, other in zip(now, before, strict=False):
        if one != other:
            break
        count += 1
    return count
