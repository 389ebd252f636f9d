"""The door to pip: install into another interpreter's environment, and say in one line why it failed.

pip is the one that smith's own Python has, pointed at the layer with ``--python``; the layer holds none. Its
ordinary settings (``PIP_FIND_LINKS``, ``PIP_NO_INDEX``, a configuration file, ...) apply. Two defaults are ours:

- Only wheels are used. Building a source package would run its code outside every sandbox, and in an isolated
  build pip may download another torch of several gigabytes. ``PIP_ONLY_BINARY=:none:`` lifts this.
- Two retries instead of five, so that a machine without network says so soon.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path

from smith import process
from smith.environment.base import Base, clean_environment
from smith.environment.requirements import canonical
from smith.errors import Unavailable

TIMEOUT_S = 3600.0
DATED = (26, 0)
"""The first pip that can leave out what was published later."""
_SETTING = re.compile(r"^(?:global|install|:env:)\.(?P<name>[\w.-]+)='(?P<value>[^']*)'$", re.MULTILINE)
_OFFLINE = ("NewConnectionError", "NameResolutionError", "ConnectTimeoutError", "ProxyError", "Network is unreachable")
# Would send packages elsewhere than into the layer, or others than those that are asked for.
_DIVERTING = frozenset(
    {"PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_USER", "PIP_PYTHON", "PIP_REQUIRE_VIRTUALENV"}
    | {"PIP_DRY_RUN", "PIP_REPORT", "PIP_REQUIREMENT", "PIP_EDITABLE", "PIP_NO_DEPS", "PIP_IGNORE_INSTALLED"}
)


class EnvironmentFailed(Unavailable):
    """A layered environment cannot be built here. ``output`` is all that pip said."""

    def __init__(self, message: str, *, hint: str = "", output: str = "") -> None:
        super().__init__(message, hint=hint)
        self.output = output


def available(base: Base, least: tuple[int, int] = (22, 3)) -> tuple[bool, str]:
    """Whether layers can be built on ``base`` with that pip at least, and with what or why not.

    Nothing is asked of the network.
    """
    done = process.run([base.executable, "-m", "pip", "--version"], env=clean_environment(), timeout_s=60)
    words = " ".join((done.stdout.text if done.ok else done.stderr.text).split()[:2])
    version = re.search(r"^pip (\d+)\.(\d+)", words)
    if not done.ok or version is None:
        return False, "pip is not installed in the Python that smith runs in"
    if (int(version[1]), int(version[2])) < least:
        return False, f"{words} is too old, {least[0]}.{least[1]} is needed"
    return True, words


def install(
    base: Base, python: Path, packages: Sequence[str], pins: Mapping[str, str], constraints: Path, log: Path | None
) -> None:
    """Install ``packages`` for ``python``, holding ``pins`` where they are. Raises :class:`EnvironmentFailed`."""
    _pip(base, python, packages, pins, constraints, log, (), _settings(base))


def resolve_as_of(
    base: Base,
    python: Path,
    packages: Sequence[str],
    pins: Mapping[str, str],
    as_of: date,
    constraints: Path,
    log: Path | None,
) -> tuple[str, ...]:
    """What installing ``packages`` for ``python`` would have brought before the day ``as_of``, as ``name==version``.

    Only releases count whose index says when they were published. Raises :class:`EnvironmentFailed`.
    """
    able, words = available(base, DATED)
    if not able:
        raise EnvironmentFailed(f"versions of a day cannot be told: {words}", hint="pip install --upgrade pip")
    settings = _dated_settings(base)
    report = constraints.with_name("report.json")
    more = ("--dry-run", "--report", str(report), "--uploaded-prior-to", f"{as_of.isoformat()}T00:00:00Z")
    _pip(base, python, packages, pins, constraints, log, more, settings)
    listed = json.loads(report.read_bytes())["install"]
    return tuple(sorted(f"{canonical(one['metadata']['name'])}=={one['metadata']['version']}" for one in listed))


def _settings(base: Base) -> dict[str, str]:
    """pip's settings, those of configuration files too, as variables and without what would divert it."""
    done = process.run([base.executable, "-m", "pip", "config", "list"], env=clean_environment(), timeout_s=60)
    found = {"PIP_CONFIG_FILE": os.devnull}
    for match in _SETTING.finditer(done.stdout.text):
        name = "PIP_" + match["name"].upper().replace("-", "_")
        if name not in _DIVERTING and name != "PIP_CONFIG_FILE" and match["value"]:
            found[name] = match["value"].replace("\\n", " ")
    return found


def _dated_settings(base: Base) -> dict[str, str]:
    """The same without the places of files whose age nothing tells."""
    found = {"PIP_EXTRA_INDEX_URL": "", **_settings(base), "PIP_FIND_LINKS": ""}
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"):
        if name in found:
            found[name] = " ".join(url for url in found[name].split() if not url.startswith("file:"))
    return {name: value for name, value in found.items() if value or name != "PIP_INDEX_URL"}


def _pip(
    base: Base,
    python: Path,
    packages: Sequence[str],
    pins: Mapping[str, str],
    constraints: Path,
    log: Path | None,
    more: Sequence[str],
    settings: Mapping[str, str],
) -> None:
    constraints.write_text("".join(f"{name}=={version}\n" for name, version in sorted(pins.items())))
    argv: list[str | os.PathLike[str]] = [base.executable, "-m", "pip", "--python", python, "--no-input"]
    argv += ["--disable-pip-version-check", "install", "--no-user", "--progress-bar", "off"]
    argv += ["--no-warn-script-location", "--constraint", constraints, *more, "--"]
    env = {name: value for name, value in clean_environment().items() if name not in _DIVERTING}
    env = {"PIP_ONLY_BINARY": ":all:", "PIP_RETRIES": "2", **env, **settings}
    done = process.run([*argv, *packages], env=env, timeout_s=TIMEOUT_S)
    output = f"{done.stdout.text}\n{done.stderr.text}"
    if log is not None:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a", encoding="utf-8") as file:
            file.write(f"$ pip install {' '.join([*more, *packages])}\n{output}\n{done.ending}\n")
    if not done.ok:
        able, words = available(base)
        if not able:
            raise EnvironmentFailed(f"packages cannot be installed: {words}", hint="python -m ensurepip --upgrade")
        if done.timed_out:
            raise EnvironmentFailed(f"{', '.join(packages)}: pip {done.ending}", output=output)
        raise EnvironmentFailed(explain(output, packages), hint=_hint(output, base), output=output)


def explain(output: str, packages: Sequence[str]) -> str:
    """What pip could not install and why, in one line, from all that it said."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    missing = re.search(r"No matching distribution found for (.+)", output)
    if missing is not None:
        return f"{missing[1].strip()}: no release of it can be installed here{_versions(output)}"
    if "The conflict is caused by:" in lines:
        causes = []
        for line in lines[lines.index("The conflict is caused by:") + 1 :]:
            if line.startswith("To fix this"):
                break
            causes.append(line)
        return f"{', '.join(packages)}: conflicting requirements: {'; '.join(causes[:6])}"
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR:")]
    return f"{', '.join(packages)}: {'; '.join((errors or lines or ['pip said nothing'])[-2:])}"


def _versions(output: str) -> str:
    found = re.search(r"\(from versions: ([^)]*)\)", output)
    if found is None or found[1] == "none":
        return ""
    return f" (there are {', '.join(found[1].split(', ')[-5:])})"


def _hint(output: str, base: Base) -> str:
    if any(word in output for word in _OFFLINE):
        return "no package index can be reached; PIP_FIND_LINKS may name a folder of wheels"
    if "torch" not in base.versions and re.search(r"\btorch\b", output):
        return "a layer never installs torch: install it for the Python that smith runs in"
    if "from versions: none" in output:
        return "only wheels are used; PIP_ONLY_BINARY=:none: allows building from source"
    return ""
