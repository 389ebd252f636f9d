"""What a project's automation runs: workflows, container files and scripts, told from their text.

A shell is not understood here, only split into commands: enough to see what is installed, built and tested, and never a
reason to run any of it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from packaging.requirements import Requirement

from smith.environment.declared import load_yaml, requirement
from smith.environment.source import SourceFiles
from smith.records.recipe import is_line, is_system_package, is_variable

_WORKFLOW = re.compile(
    r"\.github/(?:workflows|actions/[\w.-]+)/[\w.-]+\.ya?ml|\.gitlab-ci\.yml|\.buildkite/[\w.-]+\.ya?ml"
)
_DOCKERFILE = re.compile(
    r"(?:(?:docker|\.ci|ci|\.github|\.devcontainer|dev)/(?:[\w.-]+/)?)?(?:Docker|Container)file[\w.-]*"
)
_SCRIPT = re.compile(r"(?:\.github/scripts|\.ci|ci|scripts/ci|dev/ci)/[\w./-]+\.sh|Makefile|noxfile\.py|tox\.ini")
_MOST_FILES = 80
_MOST_VALUES = 20_000
_SPLIT = re.compile(r"&&|\|\||[;|]|\n")
_VARIABLE = re.compile(r"[A-Za-z_]\w*=")
_PYTHON = re.compile(r"python(?:3(?:\.\d+)?)?\Z")
_PREFIXES = frozenset({"sudo", "exec", "time", "-", "env"})
_TELLING = ("pytest", "pip install", "python-version", "build_ext")
_COMMANDS = ("pytest", "pip", "apt", "build_ext")
# Tools of the one who works on a machine, and what every image of smith's has.
_TOOL = re.compile(
    r"(?:python3?[\d.]*(?:-\w+)?|git|curl|wget|make|sudo|vim|nano|gcc|g\+\+|build-essential|ca-certificates|gnupg2?"
    r"|software-properties-common|apt-transport-https|lsb-release|jq|unzip|zip|rsync|openssh-\w+|tree|htop|tmux)\Z"
)
_REDIRECTION = re.compile(r"[0-9&]?[<>]")
_LONGEST = 20_000
_MOST_WORDS = 400
_NUMBER = re.compile(r"3\.(?:[89]|[1-9]\d)\Z")
# Options of pip's that are followed by a value.
_FILES = ("-r", "--requirement")
_VALUED = frozenset({
    *_FILES, "-c", "--constraint", "-e", "--editable", "-i", "--index-url", "--extra-index-url", "-f", "--find-links",
    "-t", "--target", "--platform", "--python", "--python-version", "--cache-dir", "--log", "--retries", "--timeout",
    "--progress-bar", "--root", "--prefix", "--src",
})  # fmt: skip
# Says "this is CI", which makes tests lenient: one upstream's own comparison only warns where it is set.
_CI = re.compile(r"(?:\w+_)?CI(?:_\w+)?\Z")
_SECRET = re.compile(r".*(?:TOKEN|SECRET|PASSWORD|KEY|CREDENTIAL)")


@dataclass
class Automation:
    """What was seen, each with the file it stands in, in the order of the files."""

    pythons: list[tuple[str, str]] = field(default_factory=list)
    packages: list[tuple[Requirement, str]] = field(default_factory=list)
    requirement_files: list[tuple[str, str]] = field(default_factory=list)
    system: list[tuple[str, str]] = field(default_factory=list)
    env: list[tuple[str, str, str]] = field(default_factory=list)
    """Name, value and file: once for each job, or line of a script, that runs tests."""
    jobs: int = 0
    """How many jobs, or lines of scripts, run tests."""
    tests: list[tuple[str, str]] = field(default_factory=list)
    """Commands that run pytest."""
    builds: list[tuple[str, str]] = field(default_factory=list)
    """Commands of jobs with tests that build extensions in place."""
    images: list[tuple[str, str]] = field(default_factory=list)
    """Images that containers start from."""


def read_automation(source: SourceFiles) -> Automation:
    """Read the tree's workflows, container files and scripts."""
    seen = Automation()
    kinds = ((_WORKFLOW, _workflow), (_DOCKERFILE, _dockerfile), (_SCRIPT, _script))
    for pattern, reader in kinds:
        for path in sorted(p for p in source.paths if pattern.fullmatch(p))[:_MOST_FILES]:
            reader(seen, path, source.text(path))
    return seen


def _workflow(seen: Automation, path: str, text: str) -> None:
    if not any(word in text for word in _TELLING):
        return
    try:
        document = _mapping(load_yaml(text))
    except ValueError:
        return
    for job in list(_mapping(document.get("jobs")).values()) or [document]:
        tests, system, builds = len(seen.tests), len(seen.system), len(seen.builds)
        for key, value in _walk(job):
            if key in ("run", "script"):
                _shell(seen, path, value)
            elif key in ("python-version", "python_version") and _NUMBER.match(value):
                seen.pythons.append((value, path))
            elif key in ("image", "container"):
                seen.images.append((value, path))
        if len(seen.tests) == tests:
            del seen.system[system:], seen.builds[builds:]  # of a job for something else
            continue
        for own in _environments(job):
            variables = [document.get("env"), _mapping(job).get("env"), own]
            _keep_variables(seen, path, {k: v for env in variables for k, v in _mapping(env).items()})


def _dockerfile(seen: Automation, path: str, text: str) -> None:
    for line in text.replace("\\\n", " ").splitlines():
        word, _, rest = line.strip().partition(" ")
        if word.upper() == "FROM":
            seen.images.append((rest.split(" ")[0], path))
        elif word.upper() == "RUN":
            builds = len(seen.builds)
            _shell(seen, path, rest)
            del seen.builds[builds:]  # whether tests are run in such a container is not known


def _script(seen: Automation, path: str, text: str) -> None:
    system, builds = len(seen.system), len(seen.builds)
    for line in text.replace("\\\n", " ").splitlines():
        tests = len(seen.tests)
        variables = _shell(seen, path, line)
        if len(seen.tests) > tests:
            _keep_variables(seen, path, variables)
    del seen.system[system:], seen.builds[builds:]


def _shell(seen: Automation, path: str, text: str) -> dict[str, object]:
    """Note what a piece of shell runs; the variables that are set for its pytest are returned."""
    variables: dict[str, object] = {}
    for line in _SPLIT.split(text.replace("\\\n", " ")):
        if not any(command in line for command in _COMMANDS):
            continue
        words, own = _until_redirected(_words(line[:_LONGEST]))[:_MOST_WORDS], {}
        while words and (_VARIABLE.match(words[0]) or words[0] in _PREFIXES):
            name, sign, value = words[0].partition("=")
            if sign:
                own[name] = value
            words = words[1:]
        for start in range(min(len(words), 8)):
            if _is_install(words, start):
                _installed(seen, path, words[words.index("install", start) + 1 :])
                break
            if words[start] in ("apt-get", "apt") and "install" in words[start:]:
                names = _apt_names(words[words.index("install", start) + 1 :])
                seen.system += [(name, path) for name in names if not _TOOL.match(name)]
                break
            if _is_pytest(words, start):
                seen.tests.append((" ".join(["pytest", *words[start + 1 :]]), path))
                variables |= own
                break
            if _PYTHON.match(words[start]) and words[start + 1 : start + 3] == ["setup.py", "build_ext"]:
                if not any("$" in word for word in words[start:]):
                    seen.builds.append(("python " + shlex.join(words[start + 1 :]), path))
                break
    return variables


def _words(line: str) -> list[str]:
    line = line.strip().lstrip("@")
    if not line or line.startswith("#"):
        return []
    try:
        return shlex.split(line, comments=True)
    except ValueError:
        return line.split()


def _until_redirected(words: list[str]) -> list[str]:
    end = (i for i, word in enumerate(words) if _REDIRECTION.match(word))
    return words[: next(end, len(words))]


def _apt_names(words: list[str]) -> Iterator[str]:
    """The packages of a call of apt, without its options and their values."""
    skip = False
    for word in words:
        if skip or word.startswith("-"):
            skip = not skip and word in ("-t", "-o", "-c", "--target-release", "--option")
        elif is_system_package(name := word.partition("=")[0].partition(":")[0]):
            yield name


def _is_install(words: list[str], at: int) -> bool:
    """Whether a call of pip that installs begins at ``at``."""
    if words[at] in ("pip", "pip3") or (words[at] == "-m" and words[at + 1 : at + 2] == ["pip"]):
        return "install" in words[at:]
    return words[at].endswith(("/pip", "/pip3")) and "install" in words[at:]


def _is_pytest(words: list[str], at: int) -> bool:
    return words[at] == "pytest" or words[at].endswith("/pytest")


def _installed(seen: Automation, path: str, words: list[str]) -> None:
    skip = ""
    for word in words:
        if skip:
            if skip in _FILES:
                seen.requirement_files.append((word, path))
            skip = ""
        elif word in _VALUED:
            skip = word
        elif word.startswith(("#", ">", "2>", "<")):
            return
        elif _named(word) and (one := requirement(word)):
            seen.packages.append((one, path))


def _named(word: str) -> bool:
    """Whether a word asks for a package by name: it is no option, path, file or variable."""
    return not word.startswith("-") and not any(mark in word for mark in "$/") and not word.endswith(".whl")


def _keep_variables(seen: Automation, path: str, variables: Mapping[str, object]) -> None:
    seen.jobs += 1
    for name, value in variables.items():
        text = str(value)
        plain = is_variable(name) and is_line(text) and len(text) < 200 and not any(mark in text for mark in "$`")
        if plain and not _CI.match(name) and not _SECRET.match(name):
            seen.env.append((name, text, path))


def _environments(job: object) -> Iterator[Mapping[str, object]]:
    """The own variables of each step of a job that runs tests; of the job itself where steps are not told apart."""
    steps = _mapping(job).get("steps")
    own = [
        _mapping(_mapping(step).get("env"))
        for step in (steps if isinstance(steps, list) else ())
        if isinstance(_mapping(step).get("run"), str) and "pytest" in str(_mapping(step).get("run"))
    ]
    yield from own or [{}]


def _walk(value: object) -> Iterator[tuple[str, str]]:
    """Keys with strings below them, lists taken apart; an alias that is used a thousand times is read once."""
    pending: list[tuple[str, object]] = [("", value)]
    read: set[int] = set()
    for _ in range(_MOST_VALUES):
        if not pending:
            return
        key, one = pending.pop()
        if isinstance(one, str):
            yield key, one
        elif isinstance(one, dict | list) and id(one) not in read:
            read.add(id(one))
            items = list(one.items()) if isinstance(one, dict) else [(key, part) for part in one]
            pending += [(str(name), part) for name, part in reversed(items)]


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}
