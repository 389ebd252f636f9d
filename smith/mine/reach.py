"""Which tests exercise which changed kernels: the changed test files, and others that lead to the kernels by imports.

Reach goes by symbol. Nearly every test imports a package's front door, so files alone would tie every test to every
kernel; here a test is tied where a statement of it uses a name that leads, through re-exports and through statements
that use it in turn, to a changed kernel. The search runs backwards from the kernels and meets only what may use them.
It reads no types and runs nothing: a name looked up by a computed string is missed, and a local variable that is called
like an imported kernel counts as a use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType

from smith.git.repository import Repository
from smith.mine.bindings import SUFFIXES
from smith.mine.codebase import TEST_ROLES, Codebase, Runner
from smith.mine.reach_search import Found, Search, Targets
from smith.mine.rules import Rules
from smith.records.candidate import ChangedFile, KernelChange, Role
from smith.records.signals import Reach, TestFile

_RUNNERS: tuple[Runner, ...] = ("pytest", "script", "cpp", "benchmark", "support")
_REACHES = (Reach.CHANGED, Reach.CHANGED_ALONE, Reach.IMPORTS)
_MOST_TESTS = 20
_MOST_BENCHMARKS = 4
_NOWHERE = 1_000


class ReachIndex:
    """Ties tests to kernels in tree after tree of one repository. A context manager that ends its processes.

    Trees are best asked for in the order of history, since only what differs from the last is read. What was read is
    kept by blob, bounded.
    """

    def __init__(self, repo: Repository, rules: Rules) -> None:
        self._base = Codebase(repo, rules)

    def __enter__(self) -> ReachIndex:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._base.__exit__(kind, value, trace)

    def tests_of(
        self, merged_tree: str, changed_files: Sequence[ChangedFile], kernels: Sequence[KernelChange]
    ) -> tuple[TestFile, ...]:
        """The tests of one pull request in the tree that it left, the surest first.

        Changed tests come before others, then what a test is run by, the distance, and tests that take fewer names
        from elsewhere; benchmarks and support files come last. At most 20 unchanged tests and 4 unchanged benchmarks
        are named. Kernels without symbols (code beside them changed) are looked for only where no kernel has any; they
        tie tests but name no kernel.

        Raises :class:`~smith.errors.BadInput` or :class:`~smith.errors.CommandFailed` where the tree cannot be read.
        """
        self._base.move_to(merged_tree)
        targets = Targets.of(kernels)
        found = Search(self._base, targets).run()
        tests = [self._changed(file, found, targets) for file in changed_files if self._is_changed_test(file)]
        changed = {file.path for file in changed_files}
        others = [
            self._test(path, self._base.runner(path), Reach.IMPORTS, one, targets)
            for path, one in found.items()
            if path not in changed and self._base.runner(path) != "support"
        ]
        others.sort(key=self._nearness)
        tests += [test for test in others if test.runner != "benchmark"][:_MOST_TESTS]
        tests += [test for test in others if test.runner == "benchmark"][:_MOST_BENCHMARKS]
        return tuple(sorted(tests, key=self._sureness))

    def _is_changed_test(self, file: ChangedFile) -> bool:
        if file.change == "deleted" or file.role not in TEST_ROLES or file.path not in self._base:
            return False
        # Benchmarks come with their results; a test's data makes the test what it is.
        return file.role is not Role.BENCHMARK or file.path.endswith((".py", ".sh", *SUFFIXES))

    def _changed(self, file: ChangedFile, found: Mapping[str, Found], targets: Targets) -> TestFile:
        one = found.get(file.path)
        reach = Reach.CHANGED if one else Reach.CHANGED_ALONE
        return self._test(file.path, self._base.runner(file.path, file.role), reach, one, targets)

    def _test(self, path: str, runner: Runner, reach: Reach, found: Found | None, targets: Targets) -> TestFile:
        return TestFile(
            path=path,
            runner=runner,
            reach=reach,
            kernels=targets.names(found.bits) if found else (),
            distance=found.distance if found else None,
        )

    def _sureness(self, test: TestFile) -> tuple[bool, int, int, int, int, str]:
        aside = test.runner in ("benchmark", "support")
        return (aside, _REACHES.index(test.reach), _RUNNERS.index(test.runner), *self._nearness(test))

    def _nearness(self, test: TestFile) -> tuple[int, int, str]:
        facts = self._base.python.get(test.path)
        return (_NOWHERE if test.distance is None else test.distance, facts.breadth if facts else 0, test.path)
