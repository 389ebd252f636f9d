"""Whether an error of a hidden test is about something that the instruction does not name.

Only a run can tell what names a test computes. How a test failed comes typed (:class:`Failure`); which name was missing
stands only in Python's own messages, whose forms are fixed, so those are read, and nothing else of a message is.
"""

from __future__ import annotations

import re

from smith.freeze.overlap import Addition
from smith.records.results import Failure, TestResult

INTERFACE_FAILURES = frozenset({Failure.INTERFACE, Failure.IMPORT, Failure.COLLECTION})

_FORMS = tuple(
    re.compile(rf"^\w*(?:Error|Exception): {form}")
    for form in (
        r"cannot import name '(?P<name>\w+)' from ",
        r"No module named '(?P<name>[\w.]+)'",
        r"module '[\w.]+' has no attribute '(?P<name>\w+)'",
        r"(?:type object )?'(?!NoneType'|Tensor'|int'|float'|str'|tuple'|list'|dict'|bool')[\w.]+'"
        r"(?: object)? has no attribute '(?P<name>\w+)'",
        r"'_OpNamespace' '\w+' object has no attribute '(?P<name>\w+)'",
        r"[\w.<>]+\(\) got an unexpected keyword argument '(?P<name>\w+)'",
        r"(?:[\w.<>]+\.)?(?P<name>\w+)\(\) takes (?:from )?\d+",
        r"(?:[\w.<>]+\.)?(?P<name>\w+)\(\) missing \d+ required",
        r"name '(?P<name>\w+)' is not defined",
    )
)


def missing_name(result: TestResult) -> str | None:
    """The name that the base lacks by a test's error; None where the error is not about a name."""
    if result.failure not in INTERFACE_FAILURES:
        return None
    first = result.message.partition("\n")[0]
    for form in _FORMS:
        if match := form.match(first):
            return match["name"].rpartition(".")[2]
    return None


def unnamed(result: TestResult, instruction: str, reference: Addition) -> str | None:
    """The name that a test's error on the base is about, where only the reference has it and the instruction does not
    say it. None for every other failure: an error of the faulty code itself is no matter of the interface."""
    name = missing_name(result)
    if name is None or re.search(rf"\b{re.escape(name)}\b", instruction):
        return None
    added = any(re.search(rf"\b{re.escape(name)}\b", line) for lines in reference.lines.values() for line in lines)
    made = any(path.rpartition("/")[2].removesuffix(".py") == name for path in reference.lines)
    return name if added or made else None
