"""Write a panel as a Harbor dataset: tasks that stock Harbor runs with a verifier of their own.

The verifier is smith's own grader, copied into each task with what it imports, so that ``smith grade`` and Harbor can
never disagree about a rule; its few libraries go into a folder of the image that only the verifier looks into. There is
one image for agent and verifier: the same packages by construction, and no hidden test in any image.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import tomlkit

from smith import __version__
from smith.errors import BadInput
from smith.export.harbor_package import copy_to
from smith.freeze.bundle import INSTRUCTION, RECIPE, REFERENCE, SOLVE, Bundle, Store
from smith.freeze.panels import StoredReceipt, pinned_receipt
from smith.freeze.workloads import load_workload
from smith.git.objects import GITLINK, SYMLINK, list_tree, read_blobs
from smith.git.trees import materialise
from smith.grade.environments import exact_packages
from smith.paths import MARKER, replacing
from smith.records.base import to_json
from smith.records.config import Config
from smith.records.panel import Panel, PanelTask
from smith.records.receipt import UsedEnvironment
from smith.records.recipe import EnvironmentChoice

MANIFEST = "dataset.toml"
SUBMISSION = "/opt/smith/submission/submission.patch"
DEVICES = ("interpreter", "cpu")
"""Kinds of device whose tasks can be exported: those that the grader runs."""
EXCEPTIONS = "no exceptions are needed."
_COLLECT = (
    "cd /workspace && export GIT_DIR=/opt/smith/base.git GIT_WORK_TREE=/workspace "
    "GIT_INDEX_FILE=/opt/smith/submission/index GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null "
    "&& git read-tree {tree} && git add -A "
    "&& git diff --cached --binary --full-index --no-renames --no-ext-diff --no-textconv {tree} > {submission}"
)


@dataclass(frozen=True)
class Exported:
    """One exported task: its folder's name, and the digest by which ``dataset.toml`` pins it."""

    task: str
    name: str
    device: str
    digest: str


def export(
    store: Store,
    panel: Panel,
    out: Path,
    *,
    device: str = "auto",
    base_image: str = "",
    index: str = "",
    step: Callable[[str], None] = lambda text: None,
) -> list[Exported]:
    """Write ``panel`` as a dataset into ``out``, which must be absent, empty or an earlier export.

    ``device`` chooses among the pinned receipts (``auto``: the first of each task), ``base_image`` the image to start
    from (default: the official Python image of the receipt's version), ``index`` a further package index for pip, which
    a build such as ``torch 2.13.0+cpu`` needs. Raises :class:`BadInput` for another folder in the way, a device that
    the verifier cannot run, and names that no file can carry; :class:`smith.errors.Stale` where the panel no longer
    fits.
    """
    out = out.absolute()
    if out.exists() and not (out / MANIFEST).is_file() and (not out.is_dir() or any(out.iterdir())):
        raise BadInput(f"{out} is there already and is no exported dataset", hint="give a new folder")
    done = []
    with replacing(out) as fresh:
        for pinned in panel.tasks:
            bundle, expected = store.load(pinned.id), pinned_receipt(store, pinned, device)
            kind = expected.receipt.device.partition(":")[0]
            if kind not in DEVICES:
                raise BadInput(
                    f"{bundle.id}: the verifier cannot run tests on {expected.receipt.device}",
                    hint="choose another pinned receipt with --device",
                )
            store.require_sources(bundle)
            name = bundle.id.replace("~", ".")  # Harbor's names know no tilde
            write_task(store, panel.name, pinned, bundle, expected, fresh / name, base_image, index)
            done.append(Exported(bundle.id, name, expected.receipt.device, content_digest(fresh / name)))
            step(bundle.id)
        (fresh / MANIFEST).write_text(_manifest(panel, done), "utf-8")
        readme = _template("README.md").format(
            title=panel.description or panel.name,
            panel=panel.name,
            version=__version__,
            count=len(done),
            lint=EXCEPTIONS,
        )
        (fresh / "README.md").write_text(readme, "utf-8")
    return done


def write_task(
    store: Store,
    panel: str,
    pinned: PanelTask,
    bundle: Bundle,
    expected: StoredReceipt,
    folder: Path,
    base_image: str = "",
    index: str = "",
) -> None:
    """Write one task into the new folder ``folder``."""
    environment, tests, solution = folder / "environment", folder / "tests", folder / "solution"
    for made in (environment, tests, solution):
        made.mkdir(parents=True)
    # Harbor's packager leaves out caches and editor backups unless a task says what it ignores.
    (folder / ".gitignore").write_text("# nothing is left out\n")
    shutil.copyfile(bundle.path / INSTRUCTION, folder / INSTRUCTION)
    shutil.copyfile(bundle.path / REFERENCE, folder / REFERENCE)
    _script(folder / SOLVE, (bundle.path / SOLVE).read_text("utf-8"))

    entries = plain_files(store, bundle.spec.source.tree, environment / "source")
    (environment / "entries").write_bytes(entries)
    _script(environment / "prepare.sh", _template("prepare.sh"))
    for shown in filter(None, (bundle.path / RECIPE, bundle.prelude)):
        shutil.copyfile(shown, environment / shown.name)

    data = tests / "data"
    shutil.copytree(bundle.path, data / "tasks" / bundle.id)
    receipt = store.layout.receipt(bundle.id, bundle.tree, expected.receipt.device)
    copied = data / receipt.relative_to(store.layout.root)
    copied.parent.mkdir(parents=True)
    shutil.copyfile(receipt, copied)
    if expected.receipt.workload is not None:
        load_workload(store.layout, expected.receipt)  # a broken one is no reason to fail in the verifier
        recorded = store.layout.workload(bundle.id, bundle.tree, expected.receipt.workload.sha256)
        beside = data / recorded.relative_to(store.layout.root)
        beside.parent.mkdir()
        shutil.copyfile(recorded, beside)
    timing = Config.load(store.layout.config).timing
    (data / MARKER).write_text(f"schema_version = 1\n\n[timing]\nforeign = {timing.foreign}\n", "utf-8")
    (tests / "hidden.entries").write_bytes(plain_files(store, bundle.selection.tree, tests / "hidden"))
    requirements = copy_to(tests / "lib")
    _script(tests / "test.sh", _template("test.sh"))

    used = expected.receipt.environment
    choice = _choice(bundle, used)
    about = {"name": bundle.id, "tree": bundle.spec.source.tree, "environment": choice.model_dump(mode="json")}
    (environment / "smith.json").write_bytes(to_json(about, indent=2) + b"\n")
    image = base_image or f"python:{'.'.join((used.python if used else '3.11').split('.')[:2])}-slim-bookworm"
    (environment / "Dockerfile").write_text(_dockerfile(bundle, used, choice, image, index, requirements), "utf-8")
    (folder / "task.toml").write_text(tomlkit.dumps(_task_file(panel, pinned, bundle, expected)), "utf-8")


def plain_files(store: Store, tree: str, folder: Path) -> bytes:
    """Write the files of ``tree`` into ``folder``, and return a list of what is no plain file.

    A link that leads out of a task, or nowhere, is refused by Harbor, and not every builder of images keeps links as
    they are. So links and submodules are lines ``link<TAB>target<TAB>path`` and ``module<TAB>commit<TAB>path``. Raises
    :class:`BadInput` for a link with a tab or line end in its name.
    """
    materialise(store.scratch, tree, folder)
    special = [e for e in list_tree(store.scratch, tree) if e.mode in (SYMLINK, GITLINK)]
    targets = dict(read_blobs(store.scratch, (e.oid for e in special if e.mode == SYMLINK)))
    lines = [b"# what is no plain file: kind, target or commit, path"]
    for entry in special:
        is_link = entry.mode == SYMLINK
        target = (targets[entry.oid] or b"") if is_link else entry.oid.encode()
        if any(mark in target + entry.path for mark in (b"\t", b"\n")):
            raise BadInput(f"{entry.path!a}: a tab or line end in the name of a link cannot be exported")
        lines.append(b"\t".join((b"link" if is_link else b"module", target, entry.path)))
        place = os.path.join(os.fsencode(folder), entry.path)
        if is_link:
            os.unlink(place)
        elif os.path.isdir(place):
            os.rmdir(place)
    return b"\n".join(lines) + b"\n"


def content_digest(task: Path) -> str:
    """Harbor's content hash of a task folder: SHA-256 over the sorted lines ``path NUL sha256 LF`` of its files."""
    files = [task / name for name in ("task.toml", INSTRUCTION)]
    files += [p for part in ("environment", "tests", "solution") for p in (task / part).rglob("*") if p.is_file()]
    outer = hashlib.sha256()
    for path in sorted(files, key=lambda p: p.relative_to(task).as_posix()):
        inner = hashlib.sha256(path.read_bytes()).hexdigest()
        outer.update(f"{path.relative_to(task).as_posix()}\0{inner}\n".encode())
    return f"sha256:{outer.hexdigest()}"


def _template(name: str) -> str:
    return resources.files("smith.export").joinpath("harbor_files", name).read_text("utf-8")


def _script(path: Path, text: str) -> None:
    path.write_text(text, "utf-8")
    path.chmod(0o755)


def _choice(bundle: Bundle, used: UsedEnvironment | None) -> EnvironmentChoice:
    """The environment in which the receipt was made, with its exact versions.

    Raises :class:`BadInput` where the recipe has none of that name.
    """
    name = used.name if used else bundle.recipe.environments[0].name
    for choice in bundle.recipe.environments:
        if choice.name == name:
            exact = exact_packages(choice, used) if used else choice.packages
            return choice.model_copy(update={"packages": exact, "as_of": None})
    raise BadInput(f"{bundle.id}: the recipe has no environment {name!r}", hint="validate the task again")


def _dockerfile(
    bundle: Bundle,
    used: UsedEnvironment | None,
    choice: EnvironmentChoice,
    image: str,
    index: str,
    grader: Sequence[str],
) -> str:
    recipe = bundle.recipe
    path = ":".join("/workspace" if p == "." else f"/workspace/{p}" for p in recipe.python_path)
    variables = [f"ENV {name}={_quoted(value)}" for name, value in sorted({"PYTHONPATH": path, **recipe.env}.items())]
    pins = [f"{name}=={version}" for name, version in used.packages.items()] if used else choice.packages
    packages = [shlex.quote(pin) for pin in pins]
    return _template("Dockerfile").format(
        name=bundle.id,
        base_image=image,
        index=f"={_quoted(index)}" if index else "",
        packages=f"RUN pip install --no-cache-dir {' '.join(packages)}" if packages else "# no packages are needed",
        grader=" ".join(grader),
        tree=bundle.spec.source.tree,
        variables="\n".join(variables),
    )


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$") + '"'


def _task_file(panel: str, pinned: PanelTask, bundle: Bundle, expected: StoredReceipt) -> dict[str, Any]:
    """The bundle's ``task.toml`` with what an export adds: who works where, what crosses over, and the pins."""
    told: dict[str, Any] = bundle.file.model_dump(mode="json", exclude_none=True)
    tree = bundle.spec.source.tree
    told["artifacts"] = [SUBMISSION]
    told["task"]["name"] = told["task"]["name"].replace("~", ".")
    told["metadata"]["smith_export"] = {
        "panel": panel,
        "tree": pinned.tree,
        "device": expected.receipt.device,
        "receipt": expected.blob,
        "smith": __version__,
    }
    told["agent"]["user"] = "agent"
    told["environment"]["workdir"] = "/workspace"
    told["verifier"]["environment_mode"] = "separate"
    # Against the frozen tree and never HEAD, in a store that the agent cannot write: its commits do not matter.
    command = _COLLECT.format(tree=tree, submission=SUBMISSION)
    told["verifier"]["collect"] = [{"command": command, "user": "root", "timeout_sec": 300.0}]
    return told


def _manifest(panel: Panel, tasks: Sequence[Exported]) -> str:
    document = {
        "schema_version": "1.0",
        "dataset": {"name": f"smith/{panel.name}", "description": panel.description},
        "tasks": [{"name": f"smith/{task.name}", "digest": task.digest} for task in tasks],
    }
    return tomlkit.dumps(document)
