"""Requirement specifiers as recipes may hold them: a named package, never an option and never a path."""

from __future__ import annotations

import re

from packaging.requirements import InvalidRequirement, Requirement

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
    if found is None or not text.strip().isprintable():
        raise RecordError(f"{text!r} is no requirement", hint="write one as in 'triton==3.4.0'")
    return canonical(found["name"])


def is_needed(text: str) -> bool:
    """Whether the marker of a requirement, if it has one, holds for the Python that runs this."""
    try:
        marker = Requirement(text).marker
        return marker is None or marker.evaluate({"extra": ""})
    except (InvalidRequirement, ValueError, KeyError):
        return False  # pip read it, and what it made of it cannot be told
