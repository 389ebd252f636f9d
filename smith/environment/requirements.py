"""Requirement specifiers as recipes may hold them: a named package, never an option and never a path."""

from __future__ import annotations

import re

from smith.errors import RecordError

_REQUIREMENT = re.compile(
    r"""(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)  # the distribution
        \s*(?:\[[A-Za-z0-9._,\s-]*\])?                         # extras
        \s*(?:@\s*\S+|\(?[<>=!~][^;@]*)?                       # a URL, or versions
        \s*(?:;.*)?                                            # an environment marker
    """,
    re.VERBOSE,
)


def canonical(name: str) -> str:
    """A distribution's name as package indexes compare it: lower case, with single dashes."""
    return re.sub(r"[-_.]+", "-", name).lower()


def requirement_name(text: str) -> str:
    """The canonical name of the package that a requirement asks for.

    Raises :class:`RecordError` for what pip would read as an option, a path or several requirements.
    """
    found = _REQUIREMENT.fullmatch(text.strip())
    if found is None:
        raise RecordError(f"{text!r} is no requirement", hint="write one as in 'triton==3.4.0'")
    return canonical(found["name"])
