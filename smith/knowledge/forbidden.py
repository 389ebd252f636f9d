"""What no card may say: a typed code for each kind of content.

A card is read by agents on other machines, about other tasks. A time of a clock means nothing there, a path or a
machine's name gives somebody away, and an order is not what a card is for.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

_NUMBER = r"(?<![\w.])\d[\d_,]*(?:\.\d+)?"


class Found(NamedTuple):
    """One forbidden thing: its code, and what it is, quoted in short."""

    code: str
    quoted: str


def _pattern(*alternatives: str, flags: int = re.IGNORECASE) -> re.Pattern[str]:
    return re.compile("|".join(alternatives), flags)


_DIGITS = tuple("0123456789")
_KEYS = ("sk-", "sk_", "pk-", "pk_", "rk-", "rk_", "gho_", "ghp_", "ghs_", "ghu_", "ghr_", "github_pat_", "glpat-",
         "hf_", "xox", "akia", "asia", "aiza", ".ey", "-----begin")  # fmt: skip
_ORDERS = (
    "ignore",
    "disregard",
    "forget",
    "override",
    "you",
    "must",
    "shall",
    "always",
    "never",
    "prompt",
    "hidden",
    "<",
)
_PATTERNS: tuple[tuple[str, tuple[str, ...], re.Pattern[str]], ...] = (
    (
        "wall_clock",
        _DIGITS,
        _pattern(
            _NUMBER + r"\s*(?:ns|us|µs|μs|ms|s|sec|secs|min|mins|h|hrs?)\b",
            _NUMBER + r"\s*(?:nano|micro|milli)?(?:second|minute|hour)s?\b",
            _NUMBER + r"\s*(?:[kmgtp]?(?:flops|flop/s|i?b/s|bytes/s)|tok(?:ens?)?/s|it/s|iterations/s)(?!\w)",
        ),
    ),
    (
        "absolute_path",
        ("/", "\\", "~"),
        _pattern(
            r"(?<![\w.:/~<-])/(?:[\w.+@-]+/)+[\w.+@-]*",
            r"(?<![\w.:/~<-])/(?:home|root|tmp|usr|var|opt|etc|mnt|data|dev|proc|sys|scratch|work|workspace)\b",
            r"(?<!\w)~[\w-]*/\w",
            r"(?<!\w)[a-z]:\\\w",
            r"\\\\[\w.-]+\\\w",
            r"\bfile://",
        ),
    ),
    (
        "machine_name",
        (".local", ".internal", ".lan", ".corp", ".intra", ".cluster", ".home", ".svc"),
        _pattern(r"\b[\w-]+\.(?:local|internal|lan|corp|intranet|intra|cluster|localdomain|home\.arpa|svc)\b(?!\w*\()"),
    ),
    (
        "machine_name",
        _DIGITS,
        _pattern(r"\b(?:node|host|gpu|worker|compute|login)[-_]?\d{2,}\b", r"\bip-\d+-\d+-\d+-\d+\b"),
    ),
    ("address", _DIGITS, _pattern(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.]*\d)")),
    (
        "address",
        (":",),
        _pattern(
            r"(?<![\w:])(?:[0-9a-f]{1,4}:){4,7}[0-9a-f]{1,4}(?![\w:])",
            r"(?<![\w:])(?:[0-9a-f]{2}:){5}[0-9a-f]{2}(?![\w:])",
        ),
    ),
    ("address", ("://",), _pattern(r"\b[a-z][a-z0-9+.-]*://[^\s>)\]]+")),
    ("address", ("@",), _pattern(r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+")),
    (
        "secret",
        _KEYS,
        re.compile(
            r"\b(?:sk|pk|rk)[-_](?:[a-z]+[-_])*[A-Za-z0-9_]{16,}|\bgh[opsur]_[A-Za-z0-9]{20,}|\bgithub_pat_\w{20,}"
            r"|\bglpat-[\w-]{16,}|\bhf_[A-Za-z0-9]{20,}|\bxox[abprs]-[\w-]{10,}|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"
            r"|\bAIza[\w-]{30,}|\bey[A-Za-z0-9_-]{10,}\.ey[A-Za-z0-9_-]{10,}\.|-----BEGIN [A-Z ]*PRIVATE KEY"
        ),
    ),
    (
        "secret",
        ("api", "access", "passw", "secret", "token"),
        _pattern(
            r"\b(?:api[_-]?key|access[_-]?key|password|passwd|secret|auth[_-]?token|access[_-]?token)\b\s*[:=]\s*"
            r"[\"']?[^\s\"']{8,}"
        ),
    ),
    (
        "order",
        (
            "ignore",
            "disregard",
            "forget",
            "override",
            "you ",
            "must",
            "shall",
            "always",
            "never",
            "prompt",
            "hidden",
            "<",
        ),
        _pattern(
            r"\b(?:ignore|disregard|forget|override)\s+(?:\w+\s+){0,4}(?:instruction|prompt|rule|constraint|test|above)s?\b",
            r"\byou\s+(?:must|shall|have\s+to|are\s+required|are\s+now)\b",
            r"\b(?:must|shall)\s+(?:always|never)\b|^\s*(?:[-*]\s+)?(?:always|never)\s+\w+",
            r"\bsystem\s+prompt\b|\bhidden\s+tests?\s+(?:are|is|can|check|expect)\b|<\|?(?:im_start|system|assistant|user)\b",
            flags=re.IGNORECASE | re.MULTILINE,
        ),
    ),
    (
        "hidden_text",
        ("<", "[//"),
        _pattern(r"<!--", r"</?(?:script|style|iframe|img|details|a|div|span)\b", r"\[//\]:"),
    ),
)
"""Code, what the text in lower case must hold for the pattern to be tried at all, and the pattern."""
_PLAIN = re.compile(r"[\t\n\x20-\x7e]*\Z")


def forbidden(text: str, *, machine: str = "") -> Iterator[Found]:
    """What ``text`` holds and may not, the first of each kind. ``machine`` is the name of this machine, if it has one.

    Patterns find what is usual; they prove nothing of a text that hides what it says on purpose.
    """
    lowered, told = text.lower(), set()
    for code, needed, pattern in _PATTERNS:
        if code not in told and _holds(lowered, needed) and (match := pattern.search(text)):
            told.add(code)
            yield Found(code, _shown(match[0]))
    if len(machine) > 3 and re.search(rf"(?<![\w-]){re.escape(machine)}(?![\w-])", text, re.IGNORECASE):
        yield Found("machine_name", machine)
    if not _PLAIN.match(text):
        for sign in text:
            # Signs that are not seen: another order of reading, no width, control.
            if unicodedata.category(sign) in ("Cf", "Cc", "Co", "Cn") and sign not in "\n\t":
                yield Found("hidden_text", f"U+{ord(sign):04X}")
                break


def _holds(text: str, parts: tuple[str, ...]) -> bool:
    for part in parts:  # noqa: SIM110 - a generator takes as long as the search, for every card a dozen times
        if part in text:
            return True
    return False


def _shown(text: str) -> str:
    short = " ".join(text.split())
    return f"{short[:20]}..." if len(short) > 40 else short
