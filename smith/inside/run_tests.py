"""Run pytest as plans from standard input say: ``python -m smith.inside.run_tests < plans``, one JSON document a line.

The first line prepares the process: ``root``, ``python_path``, ``preload``, ``device_plugin``, ``prelude``,
``pytest_args``, ``seed``, ``alone``, ``sanitize``, ``key`` (hexadecimal), ``channel`` (a descriptor) and ``channels``
(those of all plans).
Each further line is one plan, run in a forked child of its own: ``mode`` (``collect`` or ``run``), ``files``, ``ids``,
``id_timeout_s``, ``stop_after_s``, ``stop_at_failure``, ``wall_s``, ``broken``, ``key`` and ``channel``. Libraries and
device are loaded once, before the fork; no code of the repository runs in the process that reads the plans.

Plans may be of several trees: each then names its ``root`` and its ``series``. Between two series everything in the
folders ``scratch`` that was not there at first is removed, after ``begin_until_s`` seconds none is begun, and a failure
stops only its own.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import runpy
import sys
import time
from typing import Any

import pytest

from smith.inside.channel import Send, open_channel
from smith.inside.children import emptied, entries, hide, read_line, run_child
from smith.inside.guard import Guard
from smith.inside.outcomes import text_of
from smith.inside.reporter import Findings, Launches, Reporter, Uncaptured, uncollected
from smith.inside.seeds import seed_all

# They rerun, reorder, distribute or time tests, which is the harness's business.
UNWANTED = {
    "flaky", "pytest_forked", "pytest_randomly", "pytest_repeat", "pytest_rerunfailures", "pytest_timeout",
    "random_order", "xdist",
}  # fmt: skip
SANITIZER = "smith.device.interpreter.sanitizer"
BROKEN = "smith.device.interpreter.broken"
UNUSABLE = int(pytest.ExitCode.USAGE_ERROR)
OPTIONS = [
    "-o", "addopts=", "-o", "log_cli=false", "-o", "console_output_style=classic",
    "-p", "no:cacheprovider", "-p", "no:rerunfailures", "-p", "no:flaky", "-p", "no:xdist", "-p", "no:timeout",
    "--continue-on-collection-errors", "--color=no", "--tb=short", "-q",
]  # fmt: skip


def main() -> int:
    """Prepare the process in the one order that keeps the reporter ours, then run plan after plan."""
    hide()
    shared: dict[str, Any] = json.loads(read_line(0))
    report_fd = int(shared.pop("channel"))
    report = open_channel(report_fd, bytes.fromhex(shared.pop("key")))
    report("hello", python=sys.version.split()[0], pytest=pytest.__version__)
    prelude = os.environ.pop("SMITH_PRELUDE", None)  # the device's own plug-in would run it here, before the fork
    for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS"):
        os.environ.pop(name, None)
    os.chdir(shared["root"])
    _preload(shared["preload"])
    plugins = _plugins()
    error = _device(shared["device_plugin"], shared["sanitize"])
    if prelude is not None:
        os.environ["SMITH_PRELUDE"] = prelude
    there = set(entries(shared["scratch"]))
    began, series, given_up = time.monotonic(), None, set()
    for number, line in enumerate(iter(lambda: read_line(0), b"")):
        plan = {**shared, **json.loads(line)}
        mine = plan.get("series")
        if mine in given_up:
            continue
        if series is not None and mine != series:
            late = time.monotonic() - began > shared["begin_until_s"]
            if late or not emptied(shared["scratch"], there):
                break
        series = mine
        others = [fd for fd in (report_fd, *shared["channels"]) if fd != plan["channel"]]
        ended = run_child(
            lambda plan=plan: _one(plan, plugins, error),  # type: ignore[misc]
            wall_s=float(plan["wall_s"]),
            close=others,
            alone=bool(shared["alone"]),
        )
        report("ended", plan=number, status=ended.status, timed_out=ended.timed_out, seconds=ended.seconds)
        if plan.get("stop_at_failure") and ended.status != 0:
            given_up.add(mine)
    return 0


def _one(plan: dict[str, Any], plugins: list[Any], error: BaseException | None) -> int:
    """Run one plan, in a process that ends with it."""
    send = open_channel(int(plan.pop("channel")), bytes.fromhex(plan.pop("key")))
    send("hello", python=sys.version.split()[0], pytest=pytest.__version__)
    os.chdir(plan["root"])
    seed_all(int(plan["seed"]), int(plan.get("shift", 0)))
    guard = Guard(plan["root"])
    _extend_path(plan["root"], plan["python_path"])
    error = error or _prelude(plan["prelude"])
    if error is not None:
        send("uncollected", **uncollected("", error))
        send("end", status=UNUSABLE)
        return UNUSABLE
    if plan.get("broken"):
        importlib.import_module(BROKEN).install()
    recorder = _recorder(plan, send)
    reporter = Reporter(
        plan,
        send,
        _launches(),
        _findings(),
        _capture(plan, send),
        lambda config: [*guard.altered(), *(guard.plugins(config) if config is not None else ())],
    )
    if recorder is not None:
        reporter.unrecorded = recorder.left_out
    status = _pytest(plan, send, [*plugins, reporter, *([recorder] if recorder is not None else [])])
    reporter.end(status)
    return status


def _preload(names: tuple[str, ...]) -> None:
    """Import libraries before the repository's folders are on the path, so that no file there can stand for them."""
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError:
            continue


def _plugins() -> list[Any]:
    """The environment's own pytest plug-ins; pytest would also take those of a repository's egg-info on the path."""
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    found: dict[str, Any] = {}
    points: Any = importlib.metadata.entry_points()
    for point in points.select(group="pytest11") if hasattr(points, "select") else points.get("pytest11", ()):
        if point.value.partition(":")[0].partition(".")[0] not in UNWANTED:
            try:
                found[point.value] = point.load()
            except Exception as error:
                print(f"smith: the pytest plug-in {point.name} does not load: {text_of(error)}", file=sys.stderr)
    return list(found.values())


def _extend_path(root: str, entries: tuple[str, ...]) -> None:
    """Put the repository's folders first, here and for child processes. smith's own modules are loaded by now."""
    folders = [os.path.normpath(os.path.join(root, entry)) for entry in entries]
    here = os.path.abspath(os.environ.get("TMPDIR", "/tmp"))
    sys.path[:] = folders + [entry for entry in sys.path if entry not in ("", here)]
    inherited = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = os.pathsep.join([*folders, inherited] if inherited else folders)


def _device(plugin: str | None, sanitize: bool) -> BaseException | None:
    """Install the device, and the sanitizer where it is asked for; what went wrong, if something did."""
    try:
        if plugin:
            importlib.import_module(plugin)
        if sanitize:
            importlib.import_module(SANITIZER).install()
    except BaseException as error:
        return error
    return None


def _prelude(path: str | None) -> BaseException | None:
    """Run the recipe's prelude; what went wrong, if something did."""
    try:
        if path:
            runpy.run_path(path, run_name="smith_prelude")
    except BaseException as error:
        return error
    return None


def _launches() -> Launches:
    """A function that gives the launches and nested calls by kernel since it was last called."""
    names = ("smith.device.interpreter.launches", "smith.device.native.launches")
    module: Any = next((sys.modules[name] for name in names if name in sys.modules), None)
    if module is None:
        return lambda: {}
    snapshot, reset = module.snapshot, module.reset

    def take() -> dict[str, int]:
        counts = {key: each["launches"] + each["calls"] for key, each in snapshot().items()}
        reset()
        return {key: count for key, count in counts.items() if count}

    return take


def _findings() -> Findings:
    """A function that gives what the sanitizer saw since it was last called."""
    module: Any = sys.modules.get(SANITIZER)
    return (lambda: []) if module is None else module.take


def _capture(plan: dict[str, Any], send: Send) -> Uncaptured:
    """Tell of distinct launches where the plan asks for them; gives how many could not be told."""
    if plan.get("capture") is None:
        return lambda: 0
    module: Any = importlib.import_module("smith.device.interpreter.capture")
    capture = module.install(lambda launch: send("launch", **launch), plan["root"], plan["capture"])
    return lambda: int(capture.dropped)


def _recorder(plan: dict[str, Any], send: Send) -> Any:
    """What tells of calls into the package, where the plan asks for it; None else."""
    if plan.get("record") is None:
        return None
    return importlib.import_module("smith.inside.recording").install(plan["record"], plan["root"], send)


def _pytest(plan: dict[str, Any], send: Send, plugins: list[Any]) -> int:
    """pytest on the files that exist; the others are reported as not collected."""
    present = [name for name in plan["files"] if os.path.exists(name)]
    for name in plan["files"]:
        if name not in present:
            send("uncollected", **uncollected(name, FileNotFoundError("no such file")))
    if not present:
        return 5
    arguments = [*OPTIONS, f"--rootdir={plan['root']}", *plan.get("pytest_args", ())]
    if plan["mode"] == "collect":
        arguments.append("--collect-only")
    named = [f"./{name}" if name.startswith("-") else name for name in present]
    return int(pytest.main([*arguments, *named], plugins=plugins))


if __name__ == "__main__":
    sys.exit(main())
