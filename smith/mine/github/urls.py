"""URLs as servers give them: never an error, whatever they are."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urljoin, urlsplit

_LINK = re.compile(r'<([^<>]*)>\s*;[^,<]*?\brel="?(next|last)"?')

Origin = tuple[str, str, int | None]
"""Scheme, host and port."""


def origin(url: str) -> Origin:
    """Where ``url`` leads; three times nothing for what is no URL."""
    try:
        parts = urlsplit(url)
        return parts.scheme, parts.hostname or "", parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return "", "", None


def join(url: str, reference: str) -> str:
    """``reference`` as seen from ``url``; empty for what is no URL."""
    try:
        return urljoin(url, reference)
    except ValueError:
        return ""


def path(url: str) -> str:
    """The path alone, for messages."""
    return urlsplit(url).path


def links(url: str, header: str) -> tuple[str | None, int | None]:
    """The URL of the next page and the number of the last one, as a ``Link`` header tells them (RFC 8288)."""
    found = {rel: join(url, target) for target, rel in _LINK.findall(header)}
    last = parse_qs(urlsplit(found.get("last", "")).query).get("page", [""])[0]
    return found.get("next"), int(last) if last.isascii() and last.isdigit() and len(last) < 9 else None


def per_page(url: str) -> int:
    """How many items a full page has (GitHub gives 30 where nothing is said)."""
    return int(parse_qs(urlsplit(url).query).get("per_page", ["30"])[0])


def next_page(url: str) -> str | None:
    """The URL of the page after ``url``; None where its pages are not numbered."""
    parts = urlsplit(url)
    query = {name: values[0] for name, values in parse_qs(parts.query).items()}
    if "after" in query:
        return None
    query["page"] = str(int(query.get("page", "1")) + 1)
    return parts._replace(query="&".join(f"{name}={value}" for name, value in query.items())).geturl()
