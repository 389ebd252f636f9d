"""The verifier of an exported Harbor task: ``smith grade`` on what lies beside it, with Harbor's reward file as result.

Runs in a fresh environment as root, where the submission has never been. A data repository of one task is made from
``tests/data``, the pristine source and ``tests/hidden``; the grader and its verdict are smith's own. Tests run as
another user id, or where this process is not root in bubblewrap.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smith import process
from smith.errors import BadInput, Stale, Unavailable
from smith.export.harbor_user import OtherUser
from smith.freeze.bundle import Bundle, Store
from smith.freeze.panels import StoredReceipt, load_receipt
from smith.git.objects import GITLINK, SYMLINK, TreeEntry, write_blob
from smith.git.repository import Repository
from smith.git.sources import has, keep
from smith.git.trees import overlay, tree_of_folder, write_tree
from smith.grade.grader import grade
from smith.grade.trial import Bench
from smith.paths import Layout, remove_tree, write_atomically
from smith.records.grade import Count, Grade, GradeVerdict
from smith.records.receipt import UsedEnvironment
from smith.sandbox import Sandbox
from smith.sandbox.bubblewrap import Bubblewrap
from smith.sandbox.host import Host

NOTHING = {"reward": 0, "correct": 0, "speedup": 0, "speedup_measured": 0}
_VERSIONS = """
import importlib.metadata, json, platform, sys
found = {}
for name in sys.argv[1:]:
    try:
        found[name] = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        pass
print(json.dumps([platform.python_version(), found]))
"""


@dataclass(frozen=True)
class PresentEnvironment:
    """The Python that tests run in, as the container or whoever started this process has it."""

    python: Path
    binds: Sequence[Path]
    env: Mapping[str, str]
    used: UsedEnvironment

    def describe(self) -> UsedEnvironment:
        """What is installed, for the grade."""
        return self.used

    @classmethod
    def find(cls, expected: UsedEnvironment | None) -> PresentEnvironment:
        """``SMITH_TEST_ENVIRONMENT`` (JSON: python, binds, env) where it is set, else the container's ``python3``.

        Raises :class:`Unavailable` where that is no Python.
        """
        told: dict[str, Any] = json.loads(os.environ.get("SMITH_TEST_ENVIRONMENT", "{}"))
        python = told.get("python") or shutil.which("python3")
        if python is None:
            raise Unavailable("there is no python3 to run tests with")
        names = list(expected.packages) if expected else []
        env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP")}
        done = process.run([python, "-c", _VERSIONS, *names], cwd=Path("/"), env={**env, **told.get("env", {})})
        if not done.ok:
            raise Unavailable(f"{python}: {done.ending}")
        version, packages = json.loads(done.stdout.text)
        # As of smith.environment.layers: equal where the same is installed.
        digest = hashlib.sha256(json.dumps({"python": version, "packages": packages}, sort_keys=True).encode())
        used = UsedEnvironment(
            name=expected.name if expected else "container",
            digest=digest.hexdigest()[:32],
            packages=packages,
            python=version,
        )
        return cls(Path(python), tuple(map(Path, told.get("binds", ()))), told.get("env", {}), used)


def choose_sandbox() -> tuple[Sandbox, str]:
    """A sandbox that works here, and a warning where it is none.

    Raises :class:`Unavailable` where tests could only run as this very user, unless ``SMITH_SANDBOX=host`` asks for it.
    """
    whys = []
    for sandbox in (OtherUser(), Bubblewrap()):
        why = sandbox.check()
        if why is None:
            return sandbox, ""
        whys.append(f"{sandbox.name}: {why}")
    if os.environ.get("SMITH_SANDBOX") == "host":
        return Host(), "tests ran as the verifier's own user: a submission could have written its own reward"
    raise Unavailable(
        f"nothing here keeps tests from the verifier ({'; '.join(whys)})",
        hint="run the verifier as root, or accept it with SMITH_SANDBOX=host",
    )


def data_repository(tests: Path, base: Path, root: Path) -> tuple[Store, Bundle, StoredReceipt]:
    """Make at ``root`` the data repository that ``tests/data`` describes, with source and hidden tests in its store.

    ``base`` is the git directory that holds the frozen source. Raises :class:`Stale` where a tree is not the one that
    the bundle names, :class:`smith.errors.RecordError` for broken records.
    """
    shutil.copytree(tests / "data", root, dirs_exist_ok=True)
    process.run(["git", "init", "-q", str(root)], timeout_s=60).check()
    store = Store(Layout(root))
    (task,) = store.ids()
    bundle = store.load(task)
    (path,) = (store.layout.tasks / "receipts" / task / bundle.tree).glob("*.json")
    receipt = load_receipt(path, task, bundle.tree)
    keep(store.data, Repository(base), bundle.spec.source.tree)
    hidden = tree_of_folder(store.scratch, tests / "hidden")
    hidden = overlay(store.scratch, hidden, write_tree(store.scratch, _left_out(store, tests / "hidden.entries")))
    keep(store.data, store.scratch, hidden)
    for tree, what in ((bundle.spec.source.tree, "source"), (bundle.selection.tree, "hidden tests")):
        if not has(store.data, tree):
            raise Stale(f"{task}: the exported {what} are not those of the bundle ({tree})", hint="export it again")
    return store, bundle, receipt


def _left_out(store: Store, entries: Path) -> list[TreeEntry]:
    """Tree entries for what a folder of plain files leaves out: ``link|module``, target or commit, path, by tabs."""
    found = []
    for line in entries.read_bytes().split(b"\n"):
        if line and not line.startswith(b"#"):
            kind, target, path = line.split(b"\t")
            if kind == b"link":
                found.append(TreeEntry(SYMLINK, "blob", write_blob(store.scratch, target), path))
            else:
                found.append(TreeEntry(GITLINK, "commit", target.decode(), path))
    return found


def rewards(result: Grade) -> dict[str, float]:
    """Harbor's rewards: finite numbers only. What was not measured is 0 with ``speedup_measured`` 0 beside it."""

    def whole(count: Count) -> bool:
        return count.passed == count.total

    correct = whole(result.fail_to_pass) and whole(result.pass_to_pass) and bool(result.tests)
    correct = correct and result.verdict in (GradeVerdict.SOLVED, GradeVerdict.FAILED)
    # Results without the kernels that were to be written are somebody else's.
    correct = correct and all(reason.code != "not_launched" for reason in result.reasons)
    return {
        "reward": int(result.verdict is GradeVerdict.SOLVED),
        "correct": int(correct),
        "speedup": result.speedup.geomean if result.speedup else 0,
        "speedup_measured": int(result.speedup is not None),
    }


def verify(tests: Path, submission: Path, base: Path, logs: Path, work: Path) -> Grade:
    """Grade the patch ``submission`` and write ``reward.json`` and ``grade.json`` into ``logs``.

    The failing reward is written first. Raises :class:`smith.errors.SmithError` for what is no submission's fault.
    """
    store, bundle, expected = data_repository(tests, base, work / "data")
    # Whoever runs tests may pass through to the places below, and read neither expectations nor the reference.
    for passed in (work, store.layout.root):
        passed.chmod(0o755)
    for secret in (store.layout.tasks, store.data.git_dir, store.layout.objects):
        secret.chmod(0o700)
    sandbox, warning = choose_sandbox()
    environment = PresentEnvironment.find(expected.receipt.environment)
    bench = Bench(store, sandbox, expected.receipt.device)
    patch = submission.read_bytes() if submission.is_file() and not submission.is_symlink() else b""
    result = grade(bundle, patch, expected, bench, environment, step=lambda text: print(text, flush=True))
    if warning:
        result = result.model_copy(update={"notes": (*result.notes, warning)})
    result.save(logs / "grade.json")
    write_reward(logs, rewards(result))
    return result


def write_reward(logs: Path, values: Mapping[str, float]) -> None:
    """Write ``reward.json``, and remove the other form, which Harbor would read where this one is missing."""
    (logs / "reward.txt").unlink(missing_ok=True)
    write_atomically(logs / "reward.json", json.dumps(dict(values)).encode() + b"\n")


def _shut(folder: Path, mode: int) -> None:
    """Keep other users out of a folder, as far as it is ours."""
    if folder.stat().st_uid == os.geteuid() or os.geteuid() == 0:
        folder.chmod(mode)


def _options(arguments: Sequence[str]) -> Namespace:
    parser = ArgumentParser(description="Grade the submission of an exported task.")
    parser.add_argument("--tests", type=Path, default=Path("/tests"))
    parser.add_argument("--submission", type=Path, default=Path("/opt/smith/submission/submission.patch"))
    parser.add_argument("--base", type=Path, default=Path("/opt/smith/base.git"))
    parser.add_argument("--logs", type=Path, default=Path("/logs/verifier"))
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """0 when a grade was made, whatever it says; 1 when the verifier could not work, and then there is no reward."""
    options = _options(arguments)
    options.logs.mkdir(parents=True, exist_ok=True)
    _shut(options.logs, 0o700)
    _shut(options.tests, 0o700)
    write_reward(options.logs, NOTHING)
    work = Path(tempfile.mkdtemp(prefix="smith-verify-"))
    try:
        result = verify(options.tests, options.submission, options.base, options.logs, work)
        print(f"{result.task}: {result.verdict.value}", *map(str, result.reasons), *result.notes, sep="\n  ")
        if result.verdict is GradeVerdict.INFRA:
            raise Unavailable(f"{result.task}: could not be graded: {'; '.join(map(str, result.reasons))}")
        return 0
    except BadInput as error:
        # Not the submission's fault: no reward is an error to Harbor, which can be tried again; 0 would be a failure.
        (options.logs / "reward.json").unlink(missing_ok=True)
        print(f"smith: {error}", file=sys.stderr)
        return 1
    finally:
        remove_tree(work)
        _shut(options.logs, 0o777)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
