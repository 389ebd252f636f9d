"""A trial: one tree in one fresh place, built once, its tests run in the sandbox."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from smith.freeze.bundle import Bundle, Store
from smith.git.patches import apply
from smith.git.trees import materialise, overlay
from smith.grade.canaries import mixed
from smith.grade.quiet import shared
from smith.harness.build import build
from smith.harness.compiling import CompiledSide, compile_launches
from smith.harness.environment import TestEnvironment
from smith.harness.place import Place
from smith.harness.run import Capture, Group, Record, collect, run_groups
from smith.harness.run import Collection as Collected
from smith.harness.stage import COMPILE, Stage
from smith.paths import remove_tree
from smith.records.compiled import Launch
from smith.records.results import TestRun
from smith.sandbox.base import Sandbox

SANITIZER_SLOWER = 4
"""How much more time a test has under the sanitizer; about 1.5 times was measured."""
IMPORT_S = 120.0
"""What importing a repository may take at worst on a busy machine, on top of the tests' own time."""


@dataclass(frozen=True)
class Bench:
    """Where trees are tried: a sandbox, a device, and the store they come from."""

    store: Store
    sandbox: Sandbox
    device: str


@dataclass(frozen=True)
class Trial:
    """A place that holds one built tree."""

    bench: Bench
    bundle: Bundle
    environment: TestEnvironment
    place: Place
    build_error: str | None
    """Why the build failed, in one line; nothing else can then be run here."""

    def collect(self, files: Sequence[str]) -> Collected:
        """Collect test ids of ``files`` without running them."""
        with shared(self.bench.store.layout.quiet):
            return self._collect(files)

    def _collect(self, files: Sequence[str]) -> Collected:
        return collect(
            self.bench.sandbox,
            self.place,
            self.environment,
            self.bundle.recipe,
            self.bench.device,
            files,
            prelude=self.bundle.prelude,
        )

    def run(
        self,
        ids: Sequence[str],
        *,
        stop_after_s: float | None = None,
        alone: Collection[str] = (),
        sanitize: bool = False,
        seed: int = 0,
        capture: Capture | None = None,
        record: Record | None = None,
        stop_at_failure: bool = False,
        among: Mapping[str, Sequence[str]] | None = None,
    ) -> TestRun:
        """Run ``ids`` in this order, those of one file in one process, file by file; those ``alone`` in one each.
        ``among`` names further ids by folder, which are run at drawn places in each process of that folder.

        With ``stop_at_failure`` those behind the first that does not pass are not run. A collection error fails a whole
        file; run apart, one file's error can not make another file's ids fail. Under the sanitizer each id has more
        time.
        """
        limit = self.bundle.selection.id_timeout_s * (SANITIZER_SLOWER if sanitize else 1)
        groups = grouped(
            self.bundle,
            ids,
            limit,
            stop_after_s=stop_after_s,
            alone=alone,
            stop_at_failure=stop_at_failure,
            among=among or {},
        )
        return self._run_groups(groups, seed=seed, sanitize=sanitize, capture=capture, record=record)

    def checks(self, sets: Sequence[Sequence[str]], seconds: float, *, broken: bool) -> TestRun:
        """Run each set of ids in a process of its own, all in one sandbox; with every kernel ``broken`` on purpose.

        ``seconds`` is what a set should take without imports; ten times as long it may.
        """
        limit = self.bundle.selection.id_timeout_s
        wall = IMPORT_S + limit + 10 * seconds
        groups = [Group(tuple(ids), id_timeout_s=limit, wall_s=wall, broken=broken) for ids in sets if ids]
        return self._run_groups(groups) if groups else TestRun(results=())

    def lay_out(self) -> None:
        """Put smith's own modules into the place, as every run does."""
        bench = self.bench
        Stage(
            bench.sandbox, self.place, self.environment, self.bundle.recipe, bench.device, self.bundle.prelude
        ).lay_out()

    @property
    def source_inside(self) -> str:
        """The source root as tests see it."""
        return "/smith/source" if self.bench.sandbox.remaps else str(self.place.source)

    def _run_groups(
        self,
        groups: Sequence[Group],
        *,
        seed: int = 0,
        sanitize: bool = False,
        capture: Capture | None = None,
        record: Record | None = None,
    ) -> TestRun:
        # Tests wait while somebody measures.
        with shared(self.bench.store.layout.quiet):
            return join(
                run_groups(
                    self.bench.sandbox,
                    self.place,
                    self.environment,
                    self.bundle.recipe,
                    self.bench.device,
                    groups,
                    prelude=self.bundle.prelude,
                    seed=seed,
                    sanitize=sanitize,
                    capture=capture,
                    record=record,
                )
            )

    def compile(
        self, launches: Sequence[Launch], targets: Sequence[str], known: Mapping[str, Sequence[str]], jobs: int
    ) -> CompiledSide:
        """Compile captured launches of this tree, as :func:`smith.harness.compiling.compile_launches` has it."""
        bench = self.bench
        stage = Stage(
            bench.sandbox, self.place, self.environment, self.bundle.recipe, COMPILE, prelude=self.bundle.prelude
        )
        with shared(bench.store.layout.quiet):
            done = compile_launches(stage, launches, targets, known, jobs)
        done.answers = {
            target: [a.model_copy(update={"detail": _portable(a.detail, self.place, self.environment)}) for a in some]
            for target, some in done.answers.items()
        }
        return done


def grouped(
    bundle: Bundle,
    ids: Sequence[str],
    limit: float,
    *,
    stop_after_s: float | None = None,
    alone: Collection[str] = (),
    stop_at_failure: bool = False,
    among: Mapping[str, Sequence[str]] | None = None,
) -> list[Group]:
    """``ids`` by the processes that they share: one for each file, one for each that is run ``alone``.

    ``among`` names further ids by folder, which are put at drawn places among those of each process of that folder.
    """
    members: dict[str, list[str]] = {}
    for test_id in ids:
        members.setdefault(test_id if test_id in alone else test_id.split("::", 1)[0], []).append(test_id)
    groups = []
    for name, own in members.items():
        group = mixed(own, (among or {}).get(str(PurePosixPath(name.partition("::")[0]).parent), ()))
        stop = stop_after_s
        if stop is not None and name.split("::", 1)[0] in bundle.selection.guards:
            stop /= 4
        wall = limit * len(group) if stop is None else stop + limit
        groups.append(
            Group(
                tuple(group),
                id_timeout_s=limit,
                wall_s=IMPORT_S + wall,
                stop_after_s=stop,
                stop_at_failure=stop_at_failure,
            )
        )
    return groups


def join(runs: Sequence[TestRun]) -> TestRun:
    """Several runs as one; complete only where all are."""
    endings = [r.ending for r in runs if r.ending != "ok"]
    return TestRun(
        results=tuple(result for r in runs for result in r.results),
        collected=tuple(test_id for r in runs for test_id in r.collected),
        ending=endings[0] if endings else "ok",
        complete=all(r.complete for r in runs),
        seconds=sum(r.seconds for r in runs),
        note="; ".join(r.note for r in runs if r.note),
        captured=tuple({launch.key: launch for r in runs for launch in r.captured}.values()),
        uncaptured=sum(r.uncaptured for r in runs),
        recorded=tuple(call for r in runs for call in r.recorded),
        unrecorded=tuple(one for r in runs for one in r.unrecorded),
        altered=tuple(dict.fromkeys(name for r in runs for name in r.altered)),
    )


@contextlib.contextmanager
def trial(
    bench: Bench, bundle: Bundle, environment: TestEnvironment, tree: str, *, bare: bool = False
) -> Iterator[Trial]:
    """A fresh place with ``tree`` in it, built by the recipe; removed at the end, whatever was left in it.

    A ``bare`` one is of a tree without hidden tests, and gets none.
    """
    with Place.create(bench.store.layout.work) as place:
        materialise(bench.store.scratch, tree, place.source)
        with shared(bench.store.layout.quiet):
            done = build(bench.sandbox, place, environment, bundle.recipe, bench.device, prelude=bundle.prelude)
        error = None
        if done is not None and not bare:
            # The source was writable while it was built: whatever a build did to the tests is undone.
            lay_again(bench.store, bundle, place)
        if done is not None and not done.ok:
            words = (done.stderr.text or done.stdout.text).strip().splitlines()
            error = f"{done.ending}: {_portable(words[-1], place, environment)[:300] if words else 'no output'}"
        yield Trial(bench, bundle, environment, place, error)


def _portable(words: str, place: Place, environment: TestEnvironment) -> str:
    """What a program said, without paths of this machine: it goes into receipts and grades."""
    words = words.replace(str(place.root), "<place>").replace(str(environment.python), "python")
    for folder in environment.binds:
        words = words.replace(str(folder), "<environment>")
    return words


def lay_again(store: Store, bundle: Bundle, place: Place) -> None:
    """Put the hidden tests into a place once more: their folders and files are removed and written afresh."""
    selection = bundle.selection
    fresh = place.root / "hidden"
    remove_tree(fresh)
    materialise(store.scratch, store.hidden_tests(bundle), fresh)
    for name in selection.places:
        target = place.source / name
        for folder in reversed(target.relative_to(place.source).parents[:-1]):
            inner = place.source / folder
            # A link or a file in the way of a folder would send the tests elsewhere.
            if inner.is_symlink() or not inner.is_dir():
                remove_tree(inner)
                inner.mkdir()
        remove_tree(target)
        if (fresh / name).exists() or (fresh / name).is_symlink():
            (fresh / name).rename(target)
    remove_tree(fresh)


def graded_tree(store: Store, bundle: Bundle, submission: str) -> str:
    """The tree that is tested: a submission's tree with the hidden tests laid over it."""
    return overlay(store.scratch, submission, store.hidden_tests(bundle), bundle.selection.removed)


def base_tree(store: Store, bundle: Bundle) -> str:
    """Tree of the baseline (``nop``) with the hidden tests laid over it."""
    return graded_tree(store, bundle, bundle.spec.source.tree)


def reference_tree(store: Store, bundle: Bundle) -> str:
    """Tree of the reference solution with the hidden tests laid over it. Raises :class:`smith.errors.PatchError`."""
    return graded_tree(store, bundle, apply(store.scratch, bundle.spec.source.tree, bundle.reference))
