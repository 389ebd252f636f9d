"""From what pytest saw of one test id to one typed outcome. The words are those of ``smith.records.results``."""

from __future__ import annotations

import os
from typing import Any

from smith.inside.failures import chain, failure_of

NOT_INTERPRETABLE = "smith: not interpretable:"
MESSAGE_BYTES = 2000
MESSAGE_LINES = 12


class IdTimeout(BaseException):
    """Raised in the main thread when a test id has used up its time. No ``except Exception`` catches it."""


def text_of(error: BaseException) -> str:
    """Class and message in a few lines; an exception that cannot even be printed is only named."""
    try:
        text = str(error)
    except BaseException:
        text = "<no message>"
    lines = f"{type(error).__name__}: {text}".splitlines()[:MESSAGE_LINES]
    return "\n".join(lines)[:MESSAGE_BYTES]


def not_interpretable(error: BaseException | None) -> bool:
    """Whether the device refused by name, however deep the refusal was wrapped."""
    return any(NOT_INTERPRETABLE in text_of(each) for each in chain(error))


class Phases:
    """What the phases (setup, call, teardown) of the running id have shown so far."""

    def __init__(self) -> None:
        self.outcomes: dict[str, str] = {}
        self.failure: str | None = None
        self.message = ""
        self.timed_out = False
        self.refused = False

    def add(self, when: str, error: BaseException | None, report: Any) -> None:
        """Take in one phase: the real exception first, pytest's report only for what an exception cannot tell."""
        outcome = self._phase(when, error, report)
        self.outcomes[when] = outcome
        if outcome in ("failed", "error") and not self.message:
            if error is not None:
                self.failure, self.message = failure_of(error), text_of(error)
                self.refused = not_interpretable(error)
            else:
                self.failure, self.message = "other", str(report.longrepr)[:MESSAGE_BYTES]
        elif outcome in ("skipped", "xfailed") and not self.message:
            self.message = text_of(error) if error is not None else ""

    @staticmethod
    def _phase(when: str, error: BaseException | None, report: Any) -> str:
        expected = hasattr(report, "wasxfail")
        if report.skipped:
            return "xfailed" if expected else "skipped"
        if report.passed and error is None:
            return "xpassed" if expected else "passed"
        if error is None and "[XPASS(strict)]" in str(report.longrepr):
            return "xpassed"
        # An exception that some hook turned into a pass stays a failure.
        return "failed" if when == "call" else "error"

    def outcome(self) -> tuple[str, str | None]:
        """The outcome of the id and how it failed. Only three clean phases are a pass."""
        seen = self.outcomes
        if self.timed_out:
            return "timeout", "timeout"
        if self.refused:
            return "not_interpretable", self.failure
        for word in ("failed", "error"):
            if word in seen.values():
                return word, self.failure
        if seen.get("setup") == "skipped" or seen.get("setup") == "xfailed":
            return seen["setup"], None
        if set(seen) == {"setup", "call", "teardown"}:
            return seen["call"], None
        self.message = self.message or "the test ended without reporting all of its phases"
        return "error", "harness"


def size_of(params: Any) -> int:
    """The product of all positive whole numbers among the parameters of a test: how big it is, roughly."""
    size = 1
    waiting = list(params.values())
    while waiting:
        value = waiting.pop()
        if isinstance(value, (tuple, list)):
            waiting.extend(value)
        elif type(value) is int and value > 0:
            size = min(size * value, 2**53)
    return size


def relative(key: str, root: str) -> str:
    """``path::qualified.name`` with the path relative to ``root`` where it lies below it."""
    path, mark, name = key.partition("::")
    full = os.path.realpath(os.path.join(root, path))
    if full.startswith(root + os.sep):
        path = os.path.relpath(full, root)
    return path + mark + name
