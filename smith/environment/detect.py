"""A recipe for an upstream that nobody has written one for, from the files of its tree.

What is installed is what the tests really import, with the versions that the project declares, as they were published
on the day of the merge: drift of versions is the main cause of failure on real upstreams. Several environments are
offered, the likeliest first; validation takes the first one in which the reference works. torch, Triton's kin, numpy
and pytest belong to the Python below and are never replaced, save for a Triton of the pull request's era.
"""

from __future__ import annotations

import configparser
import re
import shlex
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import PurePosixPath

from packaging.requirements import Requirement

from smith.environment.base import TORCH, TRITON
from smith.environment.commands import Automation, read_automation
from smith.environment.declared import FAULTS, Declarations, Declared, project_text, read_declarations
from smith.environment.recipes import guess
from smith.environment.requirements import canonical
from smith.environment.source import SourceFiles
from smith.records.recipe import EnvironmentChoice, Recipe, day_after, is_folder, is_line, is_specifier

_BELOW = frozenset(
    {*TORCH, *TRITON, "amd-triton", "numpy", "scipy", "pytest", "pip", "setuptools", "wheel"}
    | {"torch-npu", "triton-ascend", "triton-xpu", "triton-windows", "torchtext", "torchao"}
)
"""Distributions that are the Python below or replace parts of it, or run on no machine that smith knows."""
_DISTRIBUTIONS = {
    "PIL": "pillow",
    "attr": "attrs",
    "cv2": "opencv-python-headless",
    "dateutil": "python-dateutil",
    "google": "protobuf",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
    "zmq": "pyzmq",
}
"""Modules whose distribution has another name."""
_USUAL = frozenset({
    "absl-py", "einops", "expecttest", "hypothesis", "jinja2", "ml-dtypes", "networkx", "packaging", "pandas",
    "parameterized", "pillow", "psutil", "pyyaml", "regex", "requests", "rich", "safetensors", "scikit-learn", "sympy",
    "tabulate", "tokenizers", "tqdm", "transformers", "typing-extensions",
})  # fmt: skip
"""What is installed although no file of the project declares it; any other undeclared import is only reported."""
_LIBRARIES = ("HF_", "TRANSFORMERS_", "TOKENIZERS_")
_GPU_BUILDS = ("CUDAExtension", "hipcc", "nvcc", "HIP_HOME", "ROCM_HOME")
_OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
OLDEST_TRITON = "3.3"
OLDEST_TRITON_SINCE = date(2025, 5, 1)
"""From when on the index has the oldest Triton that the interpreter was tried with."""


@dataclass(frozen=True)
class Evidence:
    """Why something is in a recipe: ``what`` is the part of it, ``where`` the file that tells."""

    what: str
    where: str

    def __str__(self) -> str:
        return f"{self.what}: {self.where}"


@dataclass(frozen=True)
class Detected:
    """A recipe and where each part of it comes from. ``unknown`` are imported modules of which nothing is known."""

    recipe: Recipe
    evidence: tuple[Evidence, ...]
    unknown: Mapping[str, str] = field(default_factory=dict)


def layout(source: SourceFiles, repo: str) -> Recipe:
    """The part of a recipe that needs no imports: folders on the Python path, and test roots."""
    guessed = guess(source.paths, repo)
    settings = _pytest_settings(source)
    path = [p for p in _plain(settings.get("pythonpath", ())) if p == "." or (is_folder(p) and source.has_folder(p))]
    roots = [p for p in _plain(settings.get("testpaths", ())) if is_line(p) and source.has_folder(p)]
    return guessed.model_copy(
        update={
            "python_path": tuple(dict.fromkeys([*path, *guessed.python_path])),
            "test_roots": tuple(sorted(_outermost({*filter(is_line, guessed.test_roots), *roots}))),
        }
    )


@dataclass(frozen=True)
class Imported:
    """Top-level modules of other projects that tests import, each with a file that does."""

    surely: Mapping[str, str]
    """When they are loaded, directly or through the project's own modules."""
    perhaps: Mapping[str, str] = field(default_factory=dict)
    """Within functions or where it is tried; only of test files and what lies beside them."""


def detect(source: SourceFiles, recipe: Recipe, imported: Imported, merged_on: date) -> Detected:
    """Complete ``recipe`` (see :func:`layout`) for a pull request merged on that day."""
    automation = read_automation(source)
    declared = read_declarations(source, [path for path, _ in automation.requirement_files])
    evidence = [Evidence("cannot be read", path) for path in declared.unread]
    needed, unknown = _needed(declared, automation, imported)
    # A module of the tree that its own code puts on the path.
    unknown = {name: at for name, at in unknown.items() if not source.has_file(f"{name}.py")}
    wanted = _packages(needed, declared, automation, evidence)
    env, why = _variables(automation, needed, _own_words(source, recipe.repo, declared))
    evidence += why
    system = tuple(dict.fromkeys(name for name, _ in automation.system))[:40]
    evidence += [Evidence("system_packages", where) for where in dict.fromkeys(where for _, where in automation.system)]
    evidence += [Evidence(f"tests are run with {command[:160]}", where) for command, where in automation.tests[:3]]
    python = declared.python if is_specifier(declared.python) else ""
    if python:
        evidence.append(Evidence(f"python {python}", "requires-python"))
    elif automation.pythons:
        evidence.append(Evidence(f"python {automation.pythons[0][0]}", automation.pythons[0][1]))
    build, why = _build(source, automation)
    evidence += why
    return Detected(
        recipe.model_copy(
            update={
                "env": env,
                "build": build,
                "system_packages": system or None,
                "environments": _environments(wanted, merged_on, python),
            }
        ),
        tuple(dict.fromkeys(evidence)),
        unknown,
    )


def _needed(
    declared: Declarations, automation: Automation, imported: Imported
) -> tuple[dict[str, str], dict[str, str]]:
    """Distributions to install, each with why; and modules of which nothing is known."""
    mentioned = {one.name for one in declared.requirements} | set(declared.locked)
    mentioned |= {canonical(one.name) for one, _ in automation.packages}
    needed: dict[str, str] = {}
    unknown: dict[str, str] = {}
    for module, where in imported.surely.items():
        name = canonical(_DISTRIBUTIONS.get(module, module))
        if name in mentioned or name in _USUAL:
            needed[name] = f"{where} imports {module}"
        else:
            unknown[module] = where
    own = {one.name for one in declared.requirements}
    for module, where in imported.perhaps.items():
        name = canonical(_DISTRIBUTIONS.get(module, module))
        if name in own and name not in needed:
            needed[name] = f"{where} may import {module}"
    for one in declared.requirements:
        # An own requirement that no test reaches may still be asked for while a package is imported.
        if one.runtime and one.name in _USUAL and _applies(one):
            needed.setdefault(one.name, one.origin)
    left = {name for name in (*needed, *map(canonical, unknown)) if name in declared.own or _is_below(name)}
    return (
        {name: why for name, why in needed.items() if name not in left},
        {module: where for module, where in unknown.items() if canonical(module) not in left},
    )


def _is_below(name: str) -> bool:
    return name in _BELOW or name.startswith(("pytest-", "nvidia-"))


def _packages(
    needed: Mapping[str, str], declared: Declarations, automation: Automation, evidence: list[Evidence]
) -> dict[str, str]:
    """Requirement specifiers by name: own metadata first, then other files, then what automation installs."""
    found: dict[str, str] = {}
    for name in sorted(needed):
        rows = sorted((one for one in declared.requirements if one.name == name and _applies(one)), key=_rank)
        told = [(str(one.requirement.specifier), one.origin) for one in rows]
        version, where = declared.locked.get(name, ("", ""))
        # A lock file may hold several versions, for machines of several kinds.
        if version and all(one.requirement.specifier.contains(version, prereleases=True) for one in rows):
            told.insert(0, (f"=={version}", where))
        told += [(str(one.specifier), where) for one, where in automation.packages if canonical(one.name) == name]
        specifier, where = next(((text, where) for text, where in told if text), ("", ""))
        found[name] = f"{name}{specifier}"
        evidence.append(Evidence(found[name], f"{needed[name]}; {where}" if where else needed[name]))
    return found


def _rank(one: Declared) -> int:
    return 0 if one.runtime else 1


def _applies(one: Declared) -> bool:
    """Whether a requirement holds on the machine that smith runs on."""
    marker = one.requirement.marker
    try:
        return marker is None or marker.evaluate({"extra": ""})
    except Exception:  # a marker of a later standard
        return True


def _environments(wanted: Mapping[str, str], merged_on: date, python: str) -> tuple[EnvironmentChoice, ...]:
    """The choices to try: the day's versions with the day's Triton, the day's versions, today's versions."""
    as_of = day_after(merged_on)
    packages = tuple(wanted.values())
    needs = python or None
    relaxed = tuple(map(_without_upper_bounds, packages))
    choices = []
    if as_of >= OLDEST_TRITON_SINCE:
        era = (f"triton>={OLDEST_TRITON}", *packages)
        choices.append(EnvironmentChoice(name="era-triton", packages=era, as_of=as_of, python=needs))
    if packages:
        choices.append(EnvironmentChoice(name="era", packages=packages, as_of=as_of, python=needs))
    choices.append(EnvironmentChoice(name="current", packages=relaxed, python=needs))
    return tuple(choices)


def _without_upper_bounds(text: str) -> str:
    one = Requirement(text)
    return one.name + ",".join(sorted(str(each) for each in one.specifier if each.operator in (">=", ">", "!=")))


def _own_words(source: SourceFiles, repo: str, declared: Declarations) -> frozenset[str]:
    """Words that the upstream calls itself by: of its name, its distributions and its packages."""
    packages = {path.split("/")[-2] for path in source.paths if path.endswith("/__init__.py") and path.count("/") < 3}
    names = [repo.rpartition("/")[2], *declared.own, *packages]
    words = {word.lower() for name in names for word in re.split(r"[-_.]", name)}
    return frozenset(word for word in words if len(word) > 2 and word not in ("test", "tests", "src", "python"))


def _variables(
    automation: Automation, needed: Mapping[str, str], own: frozenset[str]
) -> tuple[dict[str, str], list[Evidence]]:
    """The upstream's own variables that most of the places which run tests agree on.

    One that a single job sets is a mode of that job; one of somebody else's means something to a machine that is not
    here, or to smith itself.
    """
    env = {"OMP_NUM_THREADS": "1"}
    if {"transformers", "tokenizers", "datasets"} & set(needed):
        env |= _OFFLINE
    evidence = []
    for (name, value), times in Counter((name, value) for name, value, _ in automation.env).items():
        ours = not own.isdisjoint(name.lower().split("_")) or name.startswith(_LIBRARIES)
        if ours and name not in env and not name.startswith("SMITH_") and times * 2 > automation.jobs:
            env[name] = value
            where = next(where for key, text, where in automation.env if (key, text) == (name, value))
            evidence.append(Evidence(f"env {name}={value}, in {times} of {automation.jobs} places with tests", where))
    return env, evidence


def _build(source: SourceFiles, automation: Automation) -> tuple[tuple[tuple[str, ...], ...], list[Evidence]]:
    """The command that compiles extensions in place, where the project's own automation runs it.

    An extension for a GPU cannot be compiled on every machine, so that it exists is only said.
    """
    text = source.text("setup.py")
    extension = next((word for word in (*_GPU_BUILDS, "CppExtension", "ext_modules") if word in text), "")
    if automation.builds and extension not in _GPU_BUILDS:
        command, where = automation.builds[0]
        return (tuple(shlex.split(command)),), [Evidence("build", where)]
    if extension == "CppExtension":
        return (("python", "setup.py", "build_ext", "--inplace"),), [Evidence("build", "setup.py: CppExtension")]
    if extension:
        return (), [Evidence("there are extensions that no command of the recipe builds", f"setup.py: {extension}")]
    return (), []


def _pytest_settings(source: SourceFiles) -> dict[str, Sequence[str]]:
    """``pythonpath`` and ``testpaths``, from the first file that pytest would take its settings from."""
    for path, section in (("pytest.ini", "pytest"), ("tox.ini", "pytest"), ("setup.cfg", "tool:pytest")):
        reader = configparser.ConfigParser(interpolation=None, strict=False)
        try:
            reader.read_string(project_text(source, path))
        except (configparser.Error, ValueError):
            continue
        if reader.has_section(section):
            return {key: value.split() for key, value in reader.items(section) if key in ("pythonpath", "testpaths")}
    try:
        options = tomllib.loads(project_text(source, "pyproject.toml"))["tool"]["pytest"]["ini_options"]
    except FAULTS:
        return {}
    found: dict[str, Sequence[str]] = {}
    for key in ("pythonpath", "testpaths"):
        value = options.get(key, []) if isinstance(options, dict) else []
        found[key] = value.split() if isinstance(value, str) else [one for one in value if isinstance(one, str)]
    return found


def _plain(paths: Iterable[str]) -> list[str]:
    return [str(PurePosixPath(path)) for path in paths]


def _outermost(folders: Iterable[str]) -> set[str]:
    some = set(folders)
    return {one for one in some if not any(one != other and one.startswith(f"{other}/") for other in some)}
