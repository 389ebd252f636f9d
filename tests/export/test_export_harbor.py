"""``smith export harbor``: what is written, and the verifier as Harbor would start it, on good and bad submissions."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import stat
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from smith.errors import BadInput, Stale
from smith.export import harbor_verifier
from smith.export.harbor import Exported, content_digest, export
from smith.export.harbor_package import PACKAGE, needed
from smith.export.harbor_user import OtherUser
from smith.freeze.bundle import Store
from smith.freeze.panels import make_panel
from smith.git.patches import diff
from smith.git.repository import Repository
from smith.git.sources import keep, scratch
from smith.git.trees import TreeEntry, overlay, write_blob, write_tree
from smith.records.base import Reason
from smith.records.candidate import KernelChange, Kind
from smith.records.grade import Count, Grade, GradeVerdict
from smith.records.panel import Panel
from smith.records.receipt import Receipt, UsedEnvironment, Verdict
from smith.records.recipe import Recipe
from smith.records.task import Metadata, Selection, SmithMetadata, Source, TaskFile, TaskName
from smith.sandbox.base import Bind, Command, Limits
from tests.conftest import new_data_repository

TASK = "lab__tiny-1"
BASE = {
    "tiny/__init__.py": "",
    "tiny/scale.py": "def scale(x):\n    return x\n",
    "build.sh": "#!/bin/sh\n",
    ".gitignore": "*.log\nkept.log\n",
    "kept.log": "tracked although ignored\n",
    "crlf.txt": "one\r\n",
    ".gitattributes": "*.txt text eol=lf\n",
    "tests/test_scale.py": "from tiny.scale import scale\n\n\ndef test_old():\n    assert scale(0) == 0\n",
}
TESTS = {
    "tests/test_scale.py": (
        "from tiny.scale import scale\n\n\n"
        "def test_old():\n    assert scale(0) == 0\n\n\ndef test_doubles():\n    assert scale(2) == 4\n"
    ),
    "tests/.hidden": "",
}
FIXED = "def scale(x):\n    return 2 * x\n"
F2P, P2P = "tests/test_scale.py::test_doubles", "tests/test_scale.py::test_old"


def tree_of(repo: Repository, files: dict[str, str], *more: TreeEntry) -> str:
    entries = [
        TreeEntry(
            "100755" if name.endswith(".sh") else "100644", "blob", write_blob(repo, text.encode()), name.encode()
        )
        for name, text in files.items()
    ]
    return write_tree(repo, [*entries, *more])


def make_task(store: Store) -> Panel:
    """A data repository with one task of pure Python, whose source has every kind of entry that git knows."""
    special = (
        TreeEntry("120000", "blob", write_blob(store.scratch, b"/nowhere/at all"), b"dangling"),
        TreeEntry("120000", "blob", write_blob(store.scratch, b"tiny/scale.py"), b"inner/link"),
        TreeEntry("160000", "commit", "1" * 40, b"third_party/module"),
    )
    base = tree_of(store.scratch, BASE, *special)
    link = TreeEntry("120000", "blob", write_blob(store.scratch, b"test_scale.py"), b"tests/alias.py")
    hidden = tree_of(store.scratch, TESTS, link)
    fixed = overlay(store.scratch, base, tree_of(store.scratch, {"tiny/scale.py": FIXED}))
    for tree in (base, hidden):
        keep(store.data, store.scratch, tree)
    spec = SmithMetadata(
        id=TASK,
        kind=Kind.FIX,
        languages=("native",),
        devices=("cpu",),
        source=Source(
            repo="lab/tiny",
            url="local:lab/tiny",
            pr=1,
            base="2" * 40,
            base_tree=base,
            tree=base,
            merged="3" * 40,
            merged_at="2025-01-01T00:00:00+00:00",
        ),
        kernels=(KernelChange(path="tiny/scale.py", language="native"),),
        editable=("tiny/**",),
    )
    file = TaskFile(task=TaskName(name=f"smith/{TASK}"), metadata=Metadata(smith=spec))
    selection = Selection(tree=hidden, roots=("tests",), files=("tests/test_scale.py",))
    placed = {
        "task.toml": file.dumps_toml(),
        "instruction.md": b"scale(x) must give twice x.\n",
        "environment/recipe.toml": Recipe(repo="lab/tiny", env={"WITH_DOLLAR": "a$b"}).dumps_toml(),
        "environment/Dockerfile": b"FROM scratch\n",
        "solution/reference.patch": diff(store.scratch, base, fixed),
        "solution/solve.sh": b'#!/bin/sh\nexec git apply "$(dirname "$0")/reference.patch"\n',
        "tests/selection.json": selection.dumps(),
        "tests/test.sh": b"#!/bin/sh\n",
    }
    for name, data in placed.items():
        path = store.layout.task(TASK) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    tree = store.load(TASK).tree
    receipt = Receipt(
        task=TASK,
        tree=tree,
        device="cpu",
        verdict=Verdict.VALID,
        fail_to_pass=(F2P,),
        pass_to_pass=(P2P,),
        environment=UsedEnvironment(
            name="default", digest="0" * 32, packages={"torch": "2.9.0+cpu", "pytest": "8.4.0"}, python="3.11.7"
        ),
    )
    receipt.save(store.layout.receipt(TASK, tree, "cpu"))
    panel = make_panel(store, "few", [TASK], "A few tasks")
    panel.save(store.layout.panel("few"))
    return panel


class Dataset:
    """An exported dataset, and a short way to verify a submission."""

    def __init__(self, folder: Path, exported: list[Exported], store: Store) -> None:
        self.folder, self.exported, self.store = folder, exported, store
        self.task = folder / TASK
        # The workspace as the Dockerfile makes it, at other places than in an image.
        self.workspace, self.home = folder.parent / "workspace", folder.parent / "home"
        shutil.copytree(self.task / "environment" / "source", self.workspace)

    def prepare(self, tree: str | None = None) -> subprocess.CompletedProcess[str]:
        script = self.task / "environment" / "prepare.sh"
        text = script.read_text().replace("chown -R agent:", "true")
        at = self.folder.parent / "setup"
        at.mkdir(exist_ok=True)
        (at / "prepare.sh").write_text(text)
        shutil.copy(self.task / "environment" / "entries", at)
        wanted = tree or self.store.load(TASK).spec.source.tree
        argv = ["sh", str(at / "prepare.sh"), wanted, str(self.workspace), str(self.home)]
        return subprocess.run(argv, capture_output=True, text=True, check=False)

    def collect(self) -> bytes:
        """What the collect hook takes from the workspace."""
        (hook,) = tomllib.loads((self.task / "task.toml").read_text())["verifier"]["collect"]
        command = hook["command"].replace("/workspace", str(self.workspace)).replace("/opt/smith", str(self.home))
        subprocess.run(["sh", "-c", command], check=True, capture_output=True)
        return (self.home / "submission" / "submission.patch").read_bytes()

    def verify(self, patch: bytes | None, logs: Path) -> tuple[int, dict[str, Any] | None, Grade | None, str]:
        """Exit status, rewards, grade and output of the verifier, started by the task's own ``test.sh`` line."""
        submission = logs.parent / "submission.patch"
        submission.unlink(missing_ok=True)
        if patch is not None:
            submission.write_bytes(patch)
        argv = [sys.executable, "-P", "-s", "-m", "smith.export.harbor_verifier"]
        argv += ["--tests", str(self.task / "tests"), "--submission", str(submission)]
        argv += ["--base", str(self.home / "base.git"), "--logs", str(logs)]
        told = {
            "python": os.path.abspath(sys.executable),
            "binds": [sys.prefix, sys.base_prefix],
            "env": {"VIRTUAL_ENV": sys.prefix},
        }
        env = {
            **os.environ,
            "PYTHONPATH": str(self.task / "tests" / "lib"),
            "SMITH_TEST_ENVIRONMENT": json.dumps(told),
        }
        done = subprocess.run(argv, capture_output=True, text=True, check=False, env=env, cwd="/")
        reward = logs / "reward.json"
        said = json.loads(reward.read_text()) if reward.is_file() else None
        grade = Grade.load(logs / "grade.json") if (logs / "grade.json").is_file() else None
        return done.returncode, said, grade, done.stdout + done.stderr


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dataset]:
    root = tmp_path_factory.mktemp("harbor")
    store = new_data_repository(root / "data")
    panel = make_task(store)
    made = Dataset(root / "out", export(store, panel, root / "out"), store)
    done = made.prepare()
    assert done.returncode == 0, done.stderr
    yield made
    made.task.joinpath("tests").chmod(0o755)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "verifier"
    folder.mkdir()
    return folder


def reference(dataset: Dataset) -> bytes:
    return (dataset.task / "solution" / "reference.patch").read_bytes()


# What is written


def test_a_task_has_the_files_that_harbor_wants(dataset: Dataset) -> None:
    names = {"task.toml", "instruction.md", "environment/Dockerfile", "solution/solve.sh", "tests/test.sh"}
    assert all((dataset.task / name).is_file() for name in names)
    told = tomllib.loads((dataset.task / "task.toml").read_text())
    assert told["artifacts"] == ["/opt/smith/submission/submission.patch"]
    assert told["agent"]["user"] == "agent" and told["environment"]["workdir"] == "/workspace"
    assert told["verifier"]["environment_mode"] == "separate" and "environment" not in told["verifier"]
    (hook,) = told["verifier"]["collect"]
    assert hook["user"] == "root" and "diff --cached --binary --full-index" in hook["command"]
    assert "HEAD" not in hook["command"]
    assert told["metadata"]["smith_export"]["receipt"] in dataset.store.layout.panel("few").read_text()


def test_no_link_and_no_missing_file_is_left_for_harbor_to_refuse(dataset: Dataset) -> None:
    assert not [p for p in dataset.folder.rglob("*") if p.is_symlink()]
    lines = (dataset.task / "environment" / "entries").read_text().splitlines()
    assert "link\t/nowhere/at all\tdangling" in lines and f"module\t{'1' * 40}\tthird_party/module" in lines


def test_expectations_and_hidden_tests_lie_on_the_verifiers_side_alone(dataset: Dataset) -> None:
    for part in ("environment", "solution"):
        text = b"".join(p.read_bytes() for p in (dataset.task / part).rglob("*") if p.is_file())
        assert b"test_doubles" not in text
    assert b"test_doubles" not in (dataset.task / "task.toml").read_bytes()
    assert F2P in next((dataset.task / "tests/data/tasks/receipts").rglob("cpu.json")).read_text()


def test_the_dockerfile_pins_what_the_receipt_was_made_with(dataset: Dataset) -> None:
    lines = (dataset.task / "environment" / "Dockerfile").read_text().splitlines()
    assert "FROM python:3.11-slim-bookworm" in lines
    assert "RUN pip install --no-cache-dir torch==2.9.0+cpu pytest==8.4.0" in lines
    # A build of torch's own: whoever builds the image says where it is.
    assert "ARG PIP_EXTRA_INDEX_URL" in lines
    assert 'ENV WITH_DOLLAR="a\\$b"' in lines
    installs = [line.split() for line in lines if "pip install" in line]
    flags = ("RUN", "pip", "install", "--no-cache-dir", "--target")
    asked = [w for words in installs for w in words if w not in flags and not w.startswith("/")]
    assert asked and all("==" in word for word in asked)


def test_an_index_goes_into_every_image(dataset: Dataset, tmp_path: Path) -> None:
    panel = Panel.load(dataset.store.layout.panel("few"))
    export(dataset.store, panel, tmp_path / "out", index="https://wheels.example.org/cpu")
    (made,) = (tmp_path / "out").glob("*/environment/Dockerfile")
    assert 'ARG PIP_EXTRA_INDEX_URL="https://wheels.example.org/cpu"' in made.read_text().splitlines()


def test_the_manifest_pins_each_task_by_its_content(dataset: Dataset) -> None:
    manifest = tomllib.loads((dataset.folder / "dataset.toml").read_text())
    assert manifest["schema_version"] == "1.0" and manifest["dataset"]["name"] == "smith/few"
    assert manifest["tasks"] == [{"name": f"smith/{TASK}", "digest": dataset.exported[0].digest}]
    before = content_digest(dataset.task)
    (dataset.task / "tests" / "more").write_text("")
    assert content_digest(dataset.task) != before
    (dataset.task / "tests" / "more").unlink()
    assert content_digest(dataset.task) == before == dataset.exported[0].digest


def test_the_packaged_grader_is_whole_and_knows_nothing_of_the_command_line() -> None:
    files, foreign = needed()
    rooms = {path.relative_to(PACKAGE).parts[0] for path in files}
    assert {"grade", "harness", "freeze", "git"} <= rooms
    assert not {"cli", "mine", "evaluate", "validate", "report"} & rooms
    assert foreign <= {"pydantic", "tomlkit", "git", "scipy", "numpy", "packaging", "pytest"}


def test_a_second_export_replaces_the_first_and_spares_anything_else(dataset: Dataset, tmp_path: Path) -> None:
    panel = Panel.load(dataset.store.layout.panel("few"))
    first = export(dataset.store, panel, tmp_path / "out")
    assert export(dataset.store, panel, tmp_path / "out") == first == dataset.exported
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter").write_text("dear")
    with pytest.raises(BadInput, match="no exported dataset"):
        export(dataset.store, panel, tmp_path / "mine")
    assert (tmp_path / "mine" / "letter").read_text() == "dear"


def test_a_bundle_that_changed_since_is_not_exported(tmp_path: Path) -> None:
    store = new_data_repository(tmp_path / "data")
    panel = make_task(store)
    (store.layout.task(TASK) / "instruction.md").write_text("other words\n")
    with pytest.raises(Stale):
        export(store, panel, tmp_path / "out")
    assert not (tmp_path / "out").exists()


# The workspace


def test_the_workspace_is_the_frozen_tree_to_the_bit(dataset: Dataset) -> None:
    tree = dataset.store.load(TASK).spec.source.tree
    made = Repository(dataset.home / "base.git")
    assert made.text("rev-parse", "HEAD^{tree}").strip() == tree
    assert made.text("rev-list", "--count", "HEAD").strip() == "1"
    assert os.readlink(dataset.workspace / "dangling") == "/nowhere/at all"


def test_a_source_that_was_changed_on_its_way_is_refused(dataset: Dataset) -> None:
    other = Dataset.__new__(Dataset)
    other.__dict__.update(dataset.__dict__)
    other.workspace, other.home = dataset.folder.parent / "other", dataset.folder.parent / "other-home"
    shutil.copytree(dataset.task / "environment" / "source", other.workspace)
    (other.workspace / "crlf.txt").write_text("one\n")
    done = other.prepare()
    assert done.returncode != 0 and "not what the task was frozen from" in done.stderr


def test_the_hook_takes_what_changed_whatever_the_agent_does_with_git(dataset: Dataset) -> None:
    before = (dataset.workspace / "tiny" / "scale.py").read_text()
    assert dataset.collect() == b""
    (dataset.workspace / "tiny" / "scale.py").write_text(FIXED)
    (dataset.workspace / "noise.log").write_text("ignored by the source's own rules")
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", *who, "commit", "-qam", "mine"], cwd=dataset.workspace, check=True)
    taken = dataset.collect()
    shutil.rmtree(dataset.workspace / ".git")
    assert dataset.collect() == taken
    (dataset.workspace / "tiny" / "scale.py").write_text(before)
    store = dataset.store
    aside = scratch(store.data, store.layout.objects)
    tree = store.load(TASK).spec.source.tree
    fixed = overlay(aside, tree, tree_of(aside, {"tiny/scale.py": FIXED}))
    assert taken == diff(aside, tree, fixed)


# The verifier


def test_the_reference_earns_the_reward(dataset: Dataset, logs: Path) -> None:
    status, reward, grade, said = dataset.verify(reference(dataset), logs)
    assert (status, reward) == (0, {"reward": 1, "correct": 1, "speedup": 0, "speedup_measured": 0}), said
    assert grade is not None and grade.verdict is GradeVerdict.SOLVED
    assert grade.sandbox == ("user" if os.geteuid() == 0 else "bubblewrap")


@pytest.mark.parametrize(
    ("patch", "code"), [(b"", "failed"), (b"no patch at all\n", "malformed"), ("tests", "hidden_path")]
)
def test_what_changes_nothing_or_is_not_allowed_earns_nothing(
    dataset: Dataset, logs: Path, patch: bytes | str | None, code: str
) -> None:
    if patch == "tests":
        aside = scratch(dataset.store.data, dataset.store.layout.objects)
        tree = dataset.store.load(TASK).spec.source.tree
        easy = {"tests/test_scale.py": "def test_old(): pass\ndef test_doubles(): pass\n", "tiny/scale.py": FIXED}
        patch = diff(aside, tree, overlay(aside, tree, tree_of(aside, easy)))
    assert not isinstance(patch, str)
    status, reward, grade, said = dataset.verify(patch, logs)
    assert (status, reward) == (0, harbor_verifier.NOTHING), said
    assert grade is not None and any(code in reason.code for reason in grade.reasons), grade.reasons


def test_a_submission_can_neither_forge_rewards_nor_read_expectations(dataset: Dataset, logs: Path) -> None:
    tests = dataset.task / "tests"
    forged = (
        "import glob, json, os, subprocess, sys\n"
        f"for name in ({str(logs / 'reward.json')!r}, {str(logs / 'reward.txt')!r}, '/logs/verifier/reward.json'):\n"
        "    try:\n"
        "        open(name, 'w').write('{\"reward\": 1}')\n"
        "    except OSError:\n"
        "        pass\n"
        "found = []\n"
        f"places = [{str(tests / 'data')!r} + '/**', '/tmp/smith-verify-*/data/tasks/*']\n"
        "for name in (n for place in places for n in glob.glob(place, recursive=True)):\n"
        "    if name.endswith(('.json', 'receipts')):\n"
        "        found.append(name)\n"
        "assert not found, found\n"
        "def scale(x):\n    return 3 * x\n"
    )
    aside = scratch(dataset.store.data, dataset.store.layout.objects)
    tree = dataset.store.load(TASK).spec.source.tree
    patch = diff(aside, tree, overlay(aside, tree, tree_of(aside, {"tiny/scale.py": forged})))
    status, reward, grade, said = dataset.verify(patch, logs)
    assert (status, reward) == (0, harbor_verifier.NOTHING), said
    assert not (logs / "reward.txt").exists()
    assert grade is not None
    # The assertion on the result is what failed: nothing was found before it.
    assert [t.message for t in grade.tests if t.id == F2P and "assert 6 == 4" in t.message], grade.tests


def test_a_verifier_that_cannot_work_leaves_no_reward(dataset: Dataset, logs: Path) -> None:
    damaged = Dataset.__new__(Dataset)
    damaged.__dict__.update(dataset.__dict__)
    damaged.task = logs.parent / TASK
    shutil.copytree(dataset.task / "tests", damaged.task / "tests")
    (damaged.task / "tests" / "hidden" / "tests" / "test_scale.py").write_text("def test_doubles(): pass\n")
    status, reward, grade, said = damaged.verify(reference(dataset), logs)
    assert (status, reward, grade) == (1, None, None)
    assert "hidden tests are not those of the bundle" in said


def graded(verdict: GradeVerdict, passed: int, tests: bool = True, **more: Any) -> Grade:
    results = [{"id": "a", "outcome": "passed" if passed else "failed"}] if tests else []
    return Grade.parse(
        {
            "task": TASK, "tree": "1" * 40, "device": "cpu", "verdict": verdict, "tests": results,
            "fail_to_pass": Count(passed=passed, total=1), "pass_to_pass": Count(passed=0, total=0),
            "patch_sha256": "0" * 64, "receipt": "1" * 40, "sandbox": "user", "speedup_reason": "not_asked", **more,
        },
        "test",
    )  # fmt: skip


def timing(geomean: float) -> dict[str, Any]:
    case = {"case": "a", "ratio": geomean, "low": geomean, "high": geomean}
    return {
        "method": "m", "device": "cpu", "rounds": 7, "noise_low": 0.9, "noise_high": 1.1, "cases": [case],
        "geomean": geomean, "low": geomean, "high": geomean, "worst": geomean,
    }  # fmt: skip


def test_rewards_tell_what_is_right_from_what_is_faster() -> None:
    def told(grade: Grade) -> tuple[float, ...]:
        return tuple(harbor_verifier.rewards(grade).values())

    assert list(harbor_verifier.rewards(graded(GradeVerdict.FAILED, 0))) == list(harbor_verifier.NOTHING)
    assert told(graded(GradeVerdict.SOLVED, 1, speedup=timing(2.5), speedup_reason="measured")) == (1, 1, 2.5, 1)
    assert told(graded(GradeVerdict.FAILED, 1, speedup=timing(0.9), speedup_reason="measured")) == (0, 1, 0.9, 1)
    assert told(graded(GradeVerdict.FAILED, 0)) == (0, 0, 0, 0)
    idle = Reason(code="not_launched", detail="test passes without the kernels")
    assert told(graded(GradeVerdict.FAILED, 1, reasons=(idle,))) == (0, 0, 0, 0)
    assert told(graded(GradeVerdict.TAMPERED, 1)) == (0, 0, 0, 0)
    # An invalid patch of a task without fail-to-pass tests has run nothing.
    assert told(graded(GradeVerdict.INVALID_PATCH, 1, tests=False)) == (0, 0, 0, 0)


# The sandbox that is another user


def owner_of_living(process: Path) -> int | None:
    """The user of a process that is more than a zombie, which nobody may ever reap."""
    try:
        return None if ") Z " in (process / "stat").read_text() else process.stat().st_uid
    except OSError:
        return None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_gets_what_it_is_lent_and_nothing_else() -> None:
    sandbox = OtherUser()
    assert sandbox.check() is None
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        root.chmod(0o755)
        for folder in ("home", "lent", "own"):
            (root / folder).mkdir()
        (root / "own" / "secret").write_text("s")
        (root / "own").chmod(0o700)
        script = f"id -u; touch {root}/lent/made; cat {root}/own/secret; sleep 300 & echo started"
        ended = sandbox.run(
            Command(
                ["sh", "-c", script],
                cwd=str(root / "lent"),
                env={"HOME": str(root / "home"), "TMPDIR": str(root / "home")},
                binds=[Bind(root / "lent", str(root / "lent"), True)],
                limits=Limits(wall_s=20),
            )
        )
        user = int(ended.stdout.text.split()[0])
        assert user >= 20_000 and "started" in ended.stdout.text
        assert "denied" in ended.stderr.text
        made = (root / "lent" / "made").stat()
        assert (made.st_uid, stat.S_IMODE((root / "own").stat().st_mode)) == (0, 0o700)
        assert not [pid for pid in Path("/proc").glob("[0-9]*") if owner_of_living(pid) == user]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_limits_of_the_container_are_kept_and_not_raised() -> None:
    code = (
        "import resource; from smith.export.harbor_user import OtherUser; "
        "from smith.sandbox.base import Command, Limits; "
        "command = Command(['sh', '-c', 'ulimit -n'], '/', Limits(wall_s=20)); "
        "run = lambda: OtherUser().run(command); "
        "before = run().stdout.text.strip(); "
        "resource.setrlimit(resource.RLIMIT_NOFILE, (1000, 1000)); print(before, run().stdout.text.strip())"
    )
    drop = ["setpriv", "--bounding-set=-sys_resource", "--inh-caps=-all", sys.executable, "-c", code]
    done = subprocess.run(drop, capture_output=True, text=True, check=True, cwd=PACKAGE.parent)
    assert done.stdout.split() == [str(Limits(wall_s=1).open_files), "1000"]


# The real Harbor

HARBOR = "harbor==0.26.0"
PROBE = r"""
import asyncio, json, logging, os, socket, sys
from pathlib import Path
from harbor.models.task.config import EnvironmentConfig, NetworkPolicy
from harbor.models.trial.paths import TrialPaths
from smith.export.harbor_environment import BubblewrapEnvironment

async def main(task, place, python, layers):
    trial = TrialPaths(trial_dir=place / "trial")
    trial.mkdir()
    env = BubblewrapEnvironment(
        environment_dir=task / "environment", environment_name="tiny", session_id="one", trial_paths=trial,
        task_env_config=EnvironmentConfig(network_mode="no-network", workdir="/workspace"),
        network_policy=NetworkPolicy(network_mode="no-network"), python=python, layers=layers,
    )
    await env.start(force_build=False)
    said = {}
    async def run(name, command, **more):
        done = await env.exec(command, **more)
        said[name] = [done.return_code, (done.stdout or "").strip()]
    await run("agent", "id -un; pwd; cat kept.log; git log --oneline | wc -l", user="agent")
    await run("writes", "echo '# changed' >> tiny/scale.py && echo kept > ~/file && cat ~/file", user="agent")
    await run("forbidden", "touch /opt/smith/base.git/x || touch /usr/x", user="agent")
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        code = f"import socket; socket.create_connection({address}, 5)"
        socket.create_connection(address, 5).close()
        await run("network", f"python -c '{code}'".replace("'127.0.0.1'", '"127.0.0.1"'))
    await run("import", "python -c 'import tiny.scale, os; print(os.environ[\"WITH_DOLLAR\"])'", user="agent")
    await run("slow", "sleep 600", timeout_sec=1)
    running = asyncio.create_task(env.exec("sleep 599; touch /tmp/late"))
    await asyncio.sleep(1)
    running.cancel()
    try:
        await running
    except asyncio.CancelledError:
        pass
    await run("links", "mkdir -p /logs/artifacts/d; ln -s /etc/passwd /logs/artifacts/d/out; "
              "ln -s /etc/hostname /logs/artifacts/one; echo x > /logs/artifacts/d/x", user="root")
    await env.download_dir("/logs/artifacts/d", place / "down")
    said["down"] = sorted(p.name for p in (place / "down").iterdir())
    try:
        await env.download_file("/logs/artifacts/missing", place / "file")
    except RuntimeError as error:
        said["missing"] = "cannot be read" in str(error)
    (place / "up").mkdir()
    (place / "up" / "run.sh").write_text("echo up")
    (place / "up" / "run.sh").chmod(0o755)
    await env.upload_dir(place / "up", "/tests")
    await run("up", "/tests/run.sh")
    root = env._root
    await env.stop(delete=True)
    said["gone"] = not root.exists()
    print(json.dumps(said))

logging.disable(logging.CRITICAL)
asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4]))
"""


def new_python() -> str | None:
    """A Python that Harbor can run in."""
    home = pwd.getpwuid(os.getuid()).pw_dir  # HOME is another one in tests
    versions = Path(os.environ.get("PYENV_ROOT", f"{home}/.pyenv")) / "versions"
    for number in ("3.13", "3.12"):
        for found in (shutil.which(f"python{number}"), *map(str, versions.glob(f"{number}.*/bin/python"))):
            # A name on the path may be a stand-in that starts nothing.
            if found and subprocess.run([found, "-c", "import ensurepip"], capture_output=True).returncode == 0:
                return found
    return None


@pytest.fixture(scope="module")
def harbor(tmp_path_factory: pytest.TempPathFactory, sandbox_name: str) -> Path:
    """The programs of a real Harbor: SMITH_HARBOR_BIN, or installed into an environment of its own."""
    told = os.environ.get("SMITH_HARBOR_BIN")
    if told:
        return Path(told)
    python = new_python()
    if python is None:
        pytest.skip("Harbor needs a Python 3.12 or 3.13, and none is on PATH or under pyenv (or set SMITH_HARBOR_BIN)")
    place = tmp_path_factory.mktemp("real") / "venv"
    subprocess.run([python, "-m", "venv", str(place)], check=True)
    pip = subprocess.run([place / "bin/pip", "install", "-q", HARBOR], capture_output=True, text=True, check=False)
    # Not a skip: there is a Python for it, so whoever asked for the slow tests wants to know.
    assert pip.returncode == 0, f"{HARBOR} cannot be installed (or set SMITH_HARBOR_BIN): {pip.stderr.strip()}"
    return place / "bin"


def harbor_env() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(PACKAGE.parent), "LITELLM_LOCAL_MODEL_COST_MAP": "True"}


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_stock_harbor_finds_nothing_to_say_and_counts_the_same_digest(harbor: Path, dataset: Dataset) -> None:
    lint = [harbor / "harbor", "lint", str(dataset.task), "--json"]
    done = subprocess.run(lint, capture_output=True, text=True, check=False, env=harbor_env())
    assert json.loads(done.stdout) == [], done.stderr
    code = (
        "import sys; from pathlib import Path; from harbor.publisher.packager import Packager; "
        "from harbor.models.dataset.manifest import DatasetManifest; root = Path(sys.argv[1]); "
        "manifest = DatasetManifest.from_toml((root / 'dataset.toml').read_text()); (task,) = manifest.tasks; "
        "print(task.digest == 'sha256:' + Packager.compute_content_hash(root / task.short_name)[0])"
    )
    argv = [harbor / "python", "-c", code, str(dataset.folder)]
    assert subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip() == "True"


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("agent", "reward"), [("oracle", 1.0), ("nop", 0.0)])
def test_stock_harbor_rewards_the_reference_alone(
    harbor: Path, dataset: Dataset, tmp_path: Path, agent: str, reward: float
) -> None:
    argv = [harbor / "harbor", "run", "-p", str(dataset.folder), "-a", agent, "-n", "1", "-y", "-q"]
    argv += ["-o", str(tmp_path / "jobs"), "--job-name", "one"]
    argv += ["-e", "smith.export.harbor_environment:BubblewrapEnvironment"]
    argv += ["--ek", f"python={sys.executable}", "--ek", f"layers={tmp_path / 'layers'}"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env=harbor_env())
    assert done.returncode == 0, done.stdout + done.stderr
    (result,) = (tmp_path / "jobs" / "one").glob("*/result.json")
    told = json.loads(result.read_text())
    assert told["exception_info"] is None
    assert told["verifier_result"]["rewards"] == {
        "reward": reward, "correct": reward, "speedup": 0, "speedup_measured": 0,
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_environment_without_containers_keeps_what_harbor_expects(
    harbor: Path, dataset: Dataset, tmp_path: Path
) -> None:
    argv = [harbor / "python", "-c", PROBE, str(dataset.task), str(tmp_path), sys.executable, str(tmp_path / "layers")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env=harbor_env())
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["agent"] == [0, "agent\n/workspace\ntracked although ignored\n1"]
    assert said["writes"] == [0, "kept"]
    assert said["forbidden"][0] != 0 and said["network"][0] != 0
    assert said["import"] == [0, "a$b"]
    assert said["slow"][0] == 124
    assert said["up"] == [0, "up"]
    assert "x" in said["down"] and "out" not in said["down"] and said["missing"] and said["gone"]
    assert not [p for p in Path("/proc").glob("[0-9]*/cmdline") if "sleep\0599" in _text(p)]


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
