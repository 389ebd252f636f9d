"""Scopes: exact paths in a tree, such as ``eval/RUN/TASK/attempt-001``. Nothing is ever matched by a part of a name."""

from __future__ import annotations

import re

from smith.errors import BadInput

_SEGMENT = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._~-]{0,199}")
_KEY = re.compile(r"[!-~]{1,400}")
DEEPEST = 12


def path_of(scope: str) -> tuple[str, ...]:
    """The scope and everything above it, from the root down. Raises :class:`BadInput` for what is no scope."""
    segments = scope.split("/")
    wrong = next((s for s in segments if not _SEGMENT.fullmatch(s)), None)
    if wrong is not None:
        raise BadInput(
            f"{scope[:200]!r} is no scope: {wrong[:80]!r} is no part of one",
            hint="letters, digits and ._~- between single slashes, e.g. eval/RUN/TASK",
        )
    if len(segments) > DEEPEST:
        raise BadInput(f"{scope[:200]!r} is no scope: more than {DEEPEST} parts")
    return tuple("/".join(segments[: n + 1]) for n in range(len(segments)))


def check_key(key: str) -> str:
    """The key of a hold, as it is. Raises :class:`BadInput` where it is empty, too long or holds spaces."""
    if not _KEY.fullmatch(key):
        raise BadInput(f"{key[:80]!r} is no key of a hold", hint="1 to 400 characters of ASCII without spaces")
    return key
