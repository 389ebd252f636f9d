"""The sample upstream: a small kernel library whose history is rebuilt, commit for commit, from this package.

``smith-lab/minikernels`` has pull requests of every kind that smith must tell apart: fixes, features,
speed-ups, refactorings, a revert and its re-land, documentation, a flaky test. Its kernels are in Triton, C
and HIP C++, and they landed in every style GitHub has. ``history.toml`` and ``patches/`` are its source,
``expectations.toml`` says what smith must find out about each pull request, ``recipe.toml`` how the library
is built and ``workloads/`` how it is timed.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from smith.errors import BadInput, Defect
from smith.git.repository import clean_environment
from smith.paths import locked, recover, replacing
from smith.process import run
from smith.sample._history import import_stream, read_history

__all__ = ["MAIN_COMMIT", "REPO", "URL", "Expectation", "build", "expectations", "recipe_path"]

REPO = "smith-lab/minikernels"
URL = "smith:sample"
MAIN_COMMIT = "62db001d14084602117d415de3f0d74c5c35f3b1"
"""What ``refs/heads/main`` names, on every machine."""

_DATA = Path(__file__).resolve().parent
_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Expectation:
    """What smith must find out about one merged pull request of the sample."""

    number: int
    title: str
    style: str
    """``squash``, ``merge`` or ``rebase``."""
    kind: str
    """fix, feature, perf, refactor, tuning, maintenance, revert, reland, docs, ci or tests."""
    languages: tuple[str, ...]
    """Of the kernels it touches: triton, native, hip."""
    mined: str
    """``candidate``, or the reason why default mining rejects it."""
    device: str | None = None
    """The device on which a candidate is judged: ``interpreter``, ``cpu`` or ``rocm``."""
    verdict: str | None = None
    """What validation says there: ``valid``, or ``invalid:`` or ``unresolvable:`` with the reason."""
    workload: str | None = None
    """A timing workload, relative to the recipe, where speed can be measured."""


def build(dest: Path) -> Path:
    """Make the sample upstream at ``dest``: a bare repository with ``main`` and every ``refs/pull/N/head``.

    Nothing is at ``dest`` before all of it is there; what is complete there already is left alone.
    """
    dest = Path(dest)
    if not _stands(dest):
        with locked(dest.with_name(f".{dest.name}.lock")):
            recover(dest)
            if not _stands(dest):
                with replacing(dest) as fresh:
                    _write(fresh)
    return dest


def expectations() -> list[Expectation]:
    """Return what must be found out about each merged pull request, in the order in which they landed."""
    document = tomllib.loads((_DATA / "expectations.toml").read_text("utf-8"))
    return [Expectation(**{**row, "languages": tuple(row["languages"])}) for row in document["pull"]]


def recipe_path() -> Path:
    """Return the recipe: how the library is built and tested. Workloads lie beside it."""
    return _DATA / "recipe.toml"


def _write(repository: Path) -> None:
    """Make the repository and check that it came out the same as everywhere."""
    init = ["init", "--quiet", "--bare", "--template=", "--object-format=sha1", "--initial-branch=main"]
    _git(*init, str(repository.absolute()))
    load = ["-c", "fastimport.unpackLimit=1", "fast-import", "--quiet", "--done", "--date-format=raw"]
    _git(f"--git-dir={repository.absolute()}", *load, stdin=import_stream(read_history(_DATA)))
    main = _main_commit(repository)
    if main != MAIN_COMMIT:
        raise Defect(f"the sample upstream came out as {main} instead of {MAIN_COMMIT}")


def _stands(dest: Path) -> bool:
    """Whether the sample is at ``dest``. Raises :class:`BadInput` where something else is."""
    if not dest.exists():
        return False
    if not (dest / "HEAD").is_file() or _main_commit(dest) != MAIN_COMMIT:
        raise BadInput(f"{dest} exists and is not the sample upstream", hint="remove it or choose another place")
    return True


def _main_commit(repository: Path) -> str:
    ask = ["rev-parse", "--verify", "--quiet", "refs/heads/main^{commit}"]
    return _git(f"--git-dir={repository.absolute()}", *ask, check=False)


def _git(*argv: str, stdin: bytes | None = None, check: bool = True) -> str:
    """Run git where only the arguments can influence it."""
    done = run(["git", *argv], env=clean_environment(), input=stdin, timeout_s=_TIMEOUT_S)
    if check:
        done.check()
    return done.stdout.text.strip()
