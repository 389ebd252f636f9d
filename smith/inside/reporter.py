"""The pytest plug-in that selects, times and reports test ids over the result channel."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator
from typing import Any

import pytest
from _pytest.reports import CollectReport

from smith.inside.channel import Send
from smith.inside.clock import Clock
from smith.inside.failures import failure_of
from smith.inside.outcomes import IdTimeout, Phases, not_interpretable, relative, size_of, text_of

# Known to plug-ins that are switched off here; a strict repository must still be able to name them.
MARKERS = ("timeout", "flaky", "forked", "xdist_group", "repeat", "random_order")
OPTIONS = ("timeout", "timeout_method", "timeout_func_only", "reruns", "reruns_delay", "cache_dir")

Launches = Callable[[], dict[str, int]]
Findings = Callable[[], list[dict[str, Any]]]


Uncaptured = Callable[[], int]
Altered = Callable[[Any], list[str]]


class Reporter:
    """``plan`` is what the harness sent; ``launches`` gives and forgets the kernel launches counted so far, and
    ``findings`` what the sanitizer saw; ``uncaptured`` says how many launches could not be told, and ``altered`` what
    of the test framework is not as it was."""

    def __init__(
        self,
        plan: dict[str, Any],
        send: Send,
        launches: Launches,
        findings: Findings = lambda: [],
        uncaptured: Uncaptured = lambda: 0,
        altered: Altered = lambda config: [],
    ) -> None:
        self._send = send
        self._launches, self._findings, self._uncaptured = launches, findings, uncaptured
        self._altered, self._config = altered, None
        self.unrecorded: Callable[[], list[dict[str, Any]]] = lambda: []
        """Calls that were to be recorded and could not be."""
        self._root = os.path.realpath(plan["root"])
        self._only_collect = plan["mode"] == "collect"
        self._wanted: list[str] = list(plan.get("ids", ()))
        self._stop_after_s: float | None = plan.get("stop_after_s")
        self._stop_at_failure = bool(plan.get("stop_at_failure"))
        self._now = time.perf_counter
        self._began = self._now()
        self._clock = Clock(float(plan.get("id_timeout_s") or 0), self._stuck)
        self._phases = Phases()
        self._current = ""
        self._started = self._began
        self._stopped = False
        self.ended = False

    # Setting up

    @pytest.hookimpl(trylast=True)
    def pytest_addoption(self, parser: Any) -> None:
        """Let ini files name the options of plug-ins that are switched off."""
        for name in OPTIONS:
            try:
                parser.addini(name, "of a plug-in that is switched off")
            except ValueError:
                continue

    def pytest_configure(self, config: Any) -> None:
        """Let strict markers name the marks of plug-ins that are switched off."""
        self._config = config
        for name in MARKERS:
            config.addinivalue_line("markers", f"{name}: of a plug-in that is switched off")

    # Collecting

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_make_collect_report(self, collector: Any) -> Generator[None, Any, None]:
        """Turn what would end the whole session at import (``sys.exit``, ``pytest.exit``) into one file's error."""
        outcome = yield
        error = outcome.excinfo[1] if outcome.excinfo else None
        if error is not None:
            outcome.force_result(CollectReport(collector.nodeid, "failed", text_of(error), []))
        else:
            call = getattr(outcome.get_result(), "call", None)
            error = call.excinfo.value if call is not None and call.excinfo is not None else None
        if error is not None and outcome.get_result().failed:
            self._send("uncollected", **uncollected(collector.nodeid, error))
        elif error is not None:
            self._send("uncollected", **uncollected(collector.nodeid, error, skipped=True))

    @pytest.hookimpl(hookwrapper=True)
    def pytest_load_initial_conftests(self) -> Generator[None, Any, None]:
        """A conftest that cannot be imported ends pytest before the session: note what it raised."""
        outcome = yield
        if outcome.excinfo is not None:
            self._send("uncollected", **uncollected("", outcome.excinfo[1]))

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[Any]) -> Generator[None, Any, None]:
        """After everybody else: announce all ids, or keep the wanted ones in the wanted order."""
        yield
        if self._only_collect:
            for item in items:
                self._send("id", **describe(item))
            return
        by_id: dict[str, Any] = {}
        for item in items:
            by_id.setdefault(item.nodeid, item)
        items[:] = [by_id[name] for name in self._wanted if name in by_id]
        for item in items:
            self._send("announced", id=item.nodeid)

    # Running

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: Any, nextitem: Any) -> Generator[None, Any, None]:
        """Bound one id in time and report it, whatever happens in it."""
        self._current, self._phases = item.nodeid, Phases()
        self._send("start", id=item.nodeid)
        self._launches()
        self._findings()
        self._started = self._now()
        self._clock.arm()
        outcome = yield
        try:
            self._clock.disarm()
        except IdTimeout:
            self._clock.disarm()
        self._phases.timed_out |= self._clock.rang
        if outcome.excinfo is not None:
            error = outcome.excinfo[1]
            self._phases.failure, self._phases.message = "other", text_of(error)
            self._phases.outcomes["call"] = "failed"
            self._tear_down(item, nextitem)
            outcome.force_result(True)
        passed = self._report()
        if self._stop_at_failure and not passed:
            self._stopped = True
            item.session.shouldstop = "smith: one test is enough"
        if nextitem is not None and self._stop_after_s is not None and self._now() - self._began > self._stop_after_s:
            self._stopped = True
            item.session.shouldstop = "smith: the time for this run is used up"

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Generator[None, Any, None]:
        """Note one phase, from the exception itself."""
        outcome = yield
        if outcome.excinfo is None:
            error = call.excinfo.value if call.excinfo is not None else None
            self._phases.add(call.when, error, outcome.get_result())

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, exitstatus: Any) -> None:
        """First of all plug-ins: some repositories leave with ``os._exit`` here."""
        self.end(int(exitstatus))

    def end(self, status: int) -> None:
        """Send the closing record, once."""
        if not self.ended:
            self.ended = True
            left = {"unrecorded": found} if (found := self.unrecorded()) else {}
            altered = [] if self._only_collect else self._altered(self._config)
            more = {"altered": altered} if altered else {}
            self._send("end", status=status, stopped=self._stopped, uncaptured=self._uncaptured(), **left, **more)

    def _report(self) -> bool:
        """Send the result of the current id; whether it passed."""
        outcome, failure = self._phases.outcome()
        self._send(
            "result",
            id=self._current,
            outcome=outcome,
            seconds=round(self._now() - self._started, 4),
            failure=failure,
            message=self._phases.message,
            launches={relative(key, self._root): count for key, count in self._launches().items()},
            **self._found(),
        )
        return outcome == "passed"

    def _found(self) -> dict[str, Any]:
        findings = self._findings()
        for finding in findings:
            for key in ("kernel", "function", "path"):
                finding[key] = relative(finding[key], self._root)[-500:]
        return {"findings": findings} if findings else {}

    def _stuck(self) -> None:
        self._phases.timed_out = True
        self._phases.message = "did not come back to the interpreter within its time"
        self._report()

    def _tear_down(self, item: Any, nextitem: Any) -> None:
        """The exception left in the middle of a phase: fixtures may still be up, which the next id must not see."""
        self._clock.arm()
        try:
            item.session._setupstate.teardown_exact(nextitem)
        except BaseException as error:
            self._phases.message += f"\n(tear-down: {text_of(error)})"
        finally:
            self._clock.disarm()


def uncollected(node: str, error: BaseException, skipped: bool = False) -> dict[str, Any]:
    """The record of a part of the tree (a file, a folder, or all of it: ``""``) that gave no ids, and why."""
    if type(error).__name__ in ("CollectError", "ConftestImportFailure") and error.__cause__ is not None:
        error = error.__cause__
    return {
        "node": node,
        "error": type(error).__name__[:100],
        "failure": failure_of(error, collecting=True),
        "message": text_of(error),
        "refused": not_interpretable(error),
        "skipped": skipped,
    }


def describe(item: Any) -> dict[str, Any]:
    """The id, its file, its function (``file::Class::test``, without parameters) and the size of its parameters."""
    callspec = getattr(item, "callspec", None)
    function = item.nodeid
    if callspec is not None and function.endswith(f"[{callspec.id}]"):
        function = function[: -len(callspec.id) - 2]
    return {
        "id": item.nodeid,
        "file": item.nodeid.partition("::")[0],
        "function": function,
        "size": size_of(callspec.params) if callspec is not None else 1,
    }
