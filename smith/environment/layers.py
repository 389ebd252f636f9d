"""Layered environments: the packages of one choice on top of the Python that smith runs in.

The Python below keeps its torch: on a ROCm machine that is a build which no index can give back. A virtual
environment made from another does not see that one's packages, so a layer is a virtual environment of the same
base interpreter with a ``.pth`` file that names the site folders below. Lines of that file come after the layer's
own folder, so what is installed in the layer wins: a Triton of the pull request's era over the present one.
``.pth`` files in those folders are not read again, which keeps editable installations (smith's own above all) out.

A layer is made aside and renamed. Virtual environments do not survive that in all parts: the scripts in ``bin``
name the interpreter by its old place. Only ``bin/python`` is ever used, which is a link to the base interpreter
and finds its environment from where it lies; scripts of packages are pointed to the new place all the same.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.specifiers import SpecifierSet

from smith import process
from smith.environment.base import TORCH, TRITON, Base, clean_environment, own_base
from smith.environment.dated import resolve
from smith.environment.empty import empty_layer
from smith.environment.installer import EnvironmentFailed, install
from smith.environment.requirements import canonical, is_needed, requirement_name
from smith.errors import RecordError
from smith.paths import locked, recover, remove_tree, replacing
from smith.records.base import Document
from smith.records.receipt import UsedEnvironment
from smith.records.recipe import EnvironmentChoice

LAYOUT = 1
"""Part of a layer's digest: raised when layers are made in another way."""
MARKER = "smith-layer.json"
REPORTED = (*TORCH, *TRITON, "numpy", "pytest")
"""Distributions below a layer that its digest and its description cover."""

# Asked of the finished layer itself, so that what is reported is what its programs will import.
_DESCRIBE = """
import importlib.metadata, json, sys
versions, own = {}, []
for d in importlib.metadata.distributions():
    versions.setdefault(d.metadata["Name"], d.version)
for d in importlib.metadata.distributions(path=[sys.argv[1]]):
    own.append(d.metadata["Name"])
print(json.dumps({"versions": versions, "own": own}))
"""


@dataclass(frozen=True)
class LayeredEnvironment:
    """An interpreter with its packages.

    ``binds`` are the folders that a sandbox must show, read-only and at the same place, for ``python`` to run;
    ``env`` are the variables that it should have.
    """

    python: Path
    binds: Sequence[Path]
    env: Mapping[str, str]
    used: UsedEnvironment

    def describe(self) -> UsedEnvironment:
        """What is installed, for a receipt."""
        return self.used


class _Marker(Document):
    """Written last into a layer: with it the layer is finished."""

    python: str
    packages: dict[str, str]
    executable: str
    below: tuple[str, ...]


def build(
    choice: EnvironmentChoice, root: Path, *, log: Path | None = None, progress: Callable[[str], None] | None = None
) -> LayeredEnvironment:
    """The environment of ``choice``, built below ``root`` or found there finished.

    ``log`` is a file to which pip's words are appended; ``progress`` is told what is going on. Raises
    :class:`EnvironmentFailed` when a package cannot be installed.
    """
    base = own_base()
    _check_python(choice, base)
    if choice.as_of == "merge":
        raise EnvironmentFailed(f"environment {choice.name}: it is as of a merge, and no day is known")
    if choice.as_of is not None and choice.packages:
        # Choices of many days come to the same versions, and so to one layer.
        choice = choice.model_copy(update={"packages": resolve(choice, base, root, log, progress), "as_of": None})
    if not choice.packages:
        return _environment(choice.name, base, base.executable, None, base.python, base.pins(REPORTED))
    key = layer_key(choice, base)
    layer = root.resolve() / key
    with locked(layer.with_name(f"{key}.lock")):
        recover(layer)
        marker = _finished(layer, base)
        if marker is None:
            if progress is not None:
                progress(f"installing {', '.join(choice.packages)}")
            # Nobody else builds this one, so what lies aside was left by a killed builder.
            for leftover in layer.parent.glob(f".{key}.new.*"):
                remove_tree(leftover)
            with replacing(layer) as fresh:
                marker = _make(choice, base, fresh, layer, log)
    return _environment(choice.name, base, layer / "bin" / "python", layer, marker.python, marker.packages)


def _check_python(choice: EnvironmentChoice, base: Base) -> None:
    if choice.python is not None and not SpecifierSet(choice.python).contains(base.python, prereleases=True):
        raise EnvironmentFailed(
            f"environment {choice.name}: it needs Python {choice.python}, and this is {base.python}",
            hint="run smith with another Python",
        )


def layer_key(choice: EnvironmentChoice, base: Base) -> str:
    """The digest that names a layer: interpreter, versions below that matter and packages; no paths, no times."""
    return _digest(
        {
            "layout": LAYOUT,
            "python": f"{base.implementation}-{base.python}-{base.machine}",
            "below": base.pins(REPORTED),
            "packages": sorted({" ".join(package.split()) for package in choice.packages}),
        }
    )


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:32]


def _finished(layer: Path, base: Base) -> _Marker | None:
    """The marker of a layer that is whole and lies over ``base`` itself, not over a Python elsewhere like it."""
    try:
        marker = _Marker.load(layer / MARKER)
    except RecordError:
        return None
    python = (layer / "bin" / "python").resolve()
    same = marker.below == tuple(map(str, base.paths)) and marker.executable == str(python) == str(
        base.executable.resolve()
    )
    return marker if same and python.exists() else None


def _make(choice: EnvironmentChoice, base: Base, fresh: Path, place: Path, log: Path | None) -> _Marker:
    """Fill the empty folder ``fresh``, which is going to lie at ``place``."""
    layer = empty_layer(fresh, base, choice.packages)
    try:
        install(base, layer.python, choice.packages, layer.pins, fresh / "constraints.txt", log)
    except EnvironmentFailed as error:
        raise EnvironmentFailed(
            f"environment {choice.name}: {error.message}", hint=error.hint, output=error.output
        ) from error
    layer.take_stand_ins_away()
    _repoint_scripts(fresh, place)
    own, versions = _ask(layer.python, layer.site)
    if lost := [one for one in choice.packages if is_needed(one) and requirement_name(one) not in versions]:
        # Some settings of pip's let it end well without having installed anything here.
        hint = "look for settings such as dry-run or target in: pip config list"
        raise EnvironmentFailed(f"environment {choice.name}: pip left out {', '.join(lost)}", hint=hint)
    if replaced := own.intersection(layer.pins):
        raise EnvironmentFailed(f"environment {choice.name}: it would replace {', '.join(sorted(replaced))}")
    marker = _Marker(
        python=base.python,
        packages={name: versions[name] for name in sorted(versions) if name in own or name in REPORTED},
        executable=str(base.executable.resolve()),
        below=tuple(map(str, base.paths)),
    )
    marker.save(fresh / MARKER)
    return marker


def _repoint_scripts(fresh: Path, place: Path) -> None:
    old, new = os.fsencode(fresh / "bin"), os.fsencode(place / "bin")
    for script in (fresh / "bin").iterdir():
        if script.is_file() and not script.is_symlink():
            with script.open("rb") as file:
                is_script = file.read(2) == b"#!"
            if is_script:
                # Not the first line alone: pip writes a shell line below it where the path is long.
                script.write_bytes(script.read_bytes().replace(old, new))


def _ask(python: Path, site: Path) -> tuple[set[str], dict[str, str]]:
    """Names of the distributions in the layer itself, and versions of all that ``python`` sees."""
    done = process.run([python, "-I", "-c", _DESCRIBE, site], env=clean_environment(), timeout_s=120).check()
    facts = json.loads(done.stdout.text)
    versions: dict[str, str] = {}
    for name, version in facts["versions"].items():
        versions.setdefault(canonical(name), version)
    return {canonical(name) for name in facts["own"]}, versions


def _environment(
    name: str, base: Base, python: Path, layer: Path | None, version: str, packages: Mapping[str, str]
) -> LayeredEnvironment:
    env = {"VIRTUAL_ENV": str(layer or base.prefix), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONNOUSERSITE": "1"}
    if layer is None and base.user_base is not None and any(p.is_relative_to(base.user_base) for p in base.paths):
        # torch may lie in the user's own site folder, which a sandbox with another HOME would not find.
        del env["PYTHONNOUSERSITE"]
        env["PYTHONUSERBASE"] = str(base.user_base)
    used = UsedEnvironment(
        name=name,
        digest=_digest({"python": version, "packages": dict(packages)}),
        packages=dict(packages),
        python=version,
    )
    return LayeredEnvironment(python=python, binds=_binds(base, python, layer), env=env, used=used)


def _binds(base: Base, python: Path, layer: Path | None) -> tuple[Path, ...]:
    wanted = [base.prefix, base.base_prefix, *base.paths]
    if layer is not None:
        wanted.append(layer)
    # Every hop of bin/python, since each link's target must be visible where it says.
    hop = python
    wanted.append(hop.parent)
    while hop.is_symlink():
        hop = Path(os.path.normpath(hop.parent / hop.readlink()))
        wanted.append(hop.parent)
    # A folder reached through links is needed under both its names.
    both = sorted({path for p in wanted for path in (p, p.resolve()) if path.exists()})
    kept: list[Path] = []
    for path in both:
        if not any(path.is_relative_to(other) for other in kept):
            kept.append(path)
    return tuple(kept)
