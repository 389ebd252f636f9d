"""A task bundle on disk: loaded whole, checked whole, identified by its git tree."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from smith.errors import BadInput, PatchError, RecordError, Stale, UnknownTask
from smith.freeze.hidden import hidden_tree
from smith.git.mirrors import reopen_upstream
from smith.git.objects import shown
from smith.git.patches import apply
from smith.git.repository import Repository
from smith.git.sources import has, keep, scratch
from smith.git.trees import TreeEntry, list_tree, overlay, tree_of_folder, write_blob, write_tree
from smith.paths import Layout, recover, write_atomically
from smith.records.recipe import Recipe
from smith.records.task import Probe, Probes, Selection, SmithMetadata, Source, TaskFile

TASK_FILE = "task.toml"
INSTRUCTION = "instruction.md"
REFERENCE = PurePosixPath("solution/reference.patch")
SOLVE = PurePosixPath("solution/solve.sh")
START = PurePosixPath("solution/start.patch")
"""How the start of a variant that has its own is made from the base. Part of the solution: it shows what is gone."""
RECIPE = PurePosixPath("environment/recipe.toml")
SELECTION = PurePosixPath("tests/selection.json")
TEST_SCRIPT = PurePosixPath("tests/test.sh")
EXTRA_TESTS = PurePosixPath("tests/extra")
PROBES = PurePosixPath("solution/probes.json")
PROBE_PATCHES = PurePosixPath("solution/probes")


_TASK_ID = re.compile(r"[a-z0-9][a-z0-9._-]*__[a-z0-9._-]+-[0-9]+(~[a-z]+(-[a-z]+)?)?")


@dataclass(frozen=True)
class Bundle:
    """A bundle as it lies on disk. ``tree`` is the git tree id of its folder, which is its identity."""

    path: Path
    tree: str
    file: TaskFile
    selection: Selection
    recipe: Recipe
    probes: tuple[Probe, ...] = ()

    @property
    def id(self) -> str:
        return self.spec.id

    @property
    def spec(self) -> SmithMetadata:
        return self.file.metadata.smith

    @property
    def instruction(self) -> str:
        return (self.path / INSTRUCTION).read_text("utf-8")

    @property
    def reference(self) -> bytes:
        return (self.path / REFERENCE).read_bytes()

    def probe_patch(self, name: str) -> bytes:
        """The patch of one probe, against the source that the task starts from."""
        return (self.path / PROBE_PATCHES / f"{name}.patch").read_bytes()

    @property
    def prelude(self) -> Path | None:
        return self.path / "environment" / self.recipe.prelude if self.recipe.prelude else None


class Store:
    """The data repository with its bundles, and a scratch object store to compute trees in.

    ``layout`` says where things lie, ``data`` is the git repository around them.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.data = Repository.containing(layout.root)
        self.scratch = scratch(self.data, layout.objects)

    def ids(self) -> list[str]:
        """All bundles, by name."""
        if not self.layout.tasks.is_dir():
            return []
        return sorted(p.parent.name for p in self.layout.tasks.glob(f"*/{TASK_FILE}"))

    def load(self, task_id: str) -> Bundle:
        """Load and check a bundle.

        Raises :class:`UnknownTask` where there is none, :class:`RecordError` naming file and key where it is broken.
        """
        if not _TASK_ID.fullmatch(task_id) or len(task_id) > 200:
            raise UnknownTask(f"{task_id[:80]!r} is no task id", hint="owner__repo-number, as in tasks/")
        path = self.layout.task(task_id)
        recover(path)
        if not (path / TASK_FILE).is_file():
            raise UnknownTask(f"no task {task_id} in {self.layout.tasks}", hint="make it with: smith freeze")
        return self.load_folder(path, task_id)

    def load_folder(self, path: Path, task_id: str) -> Bundle:
        """Load and check the bundle ``task_id`` that lies in the folder ``path``, wherever that is.

        Raises :class:`RecordError` naming file and key where it is broken.
        """
        where = path / TASK_FILE
        file = TaskFile.load(where)
        if file.metadata.smith.id != task_id:
            raise RecordError(f"{where}: metadata.smith.id is {file.metadata.smith.id}, but the folder is {task_id}")
        for needed in (INSTRUCTION, REFERENCE, SELECTION, RECIPE, TEST_SCRIPT, SOLVE):
            if not (path / needed).is_file():
                raise RecordError(f"{path / needed}: is missing", hint="freeze the pull request again")
        if file.metadata.smith.variant.has_own_start and not (path / START).is_file():
            raise RecordError(f"{path / START}: is missing", hint="freeze the pull request again")
        probes = Probes.load(path / PROBES).probes if (path / PROBES).is_file() else ()
        bundle = Bundle(
            path=path,
            tree=tree_of_folder(self.scratch, path),
            file=file,
            selection=Selection.load(path / SELECTION),
            recipe=Recipe.load(path / RECIPE),
            probes=probes,
        )
        authored = [path / EXTRA_TESTS / name for name in bundle.selection.authored]
        for named in (*authored, *(path / PROBE_PATCHES / f"{probe.name}.patch" for probe in probes)):
            if not named.is_file():
                raise RecordError(f"{named}: is missing")
        if bundle.prelude is not None and not bundle.prelude.is_file():
            raise RecordError(f"{bundle.prelude}: is missing", hint="environment/recipe.toml names it as prelude")
        for workload in bundle.selection.workloads:
            if not (path / "tests" / "workloads" / workload).is_file():
                raise RecordError(f"{path / 'tests' / 'workloads' / workload}: is missing")
        return bundle

    def hidden_tests(self, bundle: Bundle) -> str:
        """The tree of all hidden tests of a bundle: upstream's, and the extra ones laid over them."""
        selection = bundle.selection
        if not selection.authored:
            return selection.tree
        extra = []
        for name in selection.authored:
            oid = write_blob(self.scratch, (bundle.path / EXTRA_TESTS / name).read_bytes())
            extra.append(TreeEntry("100644", "blob", oid, name.encode()))
        return overlay(self.scratch, selection.tree, write_tree(self.scratch, extra))

    def remember(self, repo: str, url: str) -> str:
        """The public address of an upstream. That of a local clone is kept outside the bundle: no path of a machine may
        be part of a bundle's identity."""
        if not url.startswith("file://"):
            return url
        write_atomically(self._note(repo), url.encode())
        return f"local:{repo}"

    def _note(self, repo: str) -> Path:
        return self.layout.volatile / "upstreams" / repo.lower().replace("/", "__")

    def _location(self, source: Source) -> str:
        if not source.url.startswith("local:"):
            return source.url
        if not self._note(source.repo).is_file():
            raise BadInput(
                f"the source of {source.repo}#{source.pr} is not here, and it was frozen from somebody's local clone",
                hint="smith pull, or freeze it from a clone of yours",
            )
        return self._note(source.repo).read_text()

    def require_sources(self, bundle: Bundle) -> None:
        """See that the frozen source and the hidden tests are here; where they are not, bring them from upstream.

        A plain clone of one branch lacks ``refs/smith/sources/*``. What is fetched again must have the very tree ids
        that the bundle names. Raises :class:`Stale` where it has not, :class:`BadInput` where upstream is gone.
        """
        source, selection = bundle.spec.source, bundle.selection
        if has(self.data, source.tree) and has(self.data, selection.tree):
            return
        url = self._location(source)
        upstream = reopen_upstream(url, self.layout.mirrors, name=source.repo, refresh=False)
        if not upstream.repository.has(source.merged):
            upstream = reopen_upstream(url, self.layout.mirrors, name=source.repo)
        for commit in (source.base, source.merged):
            if not upstream.repository.has(commit):
                raise BadInput(f"{bundle.id}: {source.url} no longer has the commit {commit}", hint="try: smith pull")
        with_upstream = scratch(self.data, self.layout.objects, also=(upstream.repository,))
        base = [e for e in list_tree(with_upstream, source.base_tree) if shown(e.path) not in source.left_out]
        start = write_tree(with_upstream, base, missing_ok=True) if source.left_out else source.base_tree
        if bundle.spec.variant.has_own_start:
            try:
                start = apply(with_upstream, start, (bundle.path / START).read_bytes())
            except PatchError as error:
                raise RecordError(f"{bundle.path / START}: {error}", hint="freeze it again") from error
        kept = keep(self.data, with_upstream, start)
        entries = list_tree(with_upstream, upstream.repository.resolve(source.merged, "tree"))
        tests = hidden_tree(with_upstream, entries, selection.roots, selection.extra, selection.left_out)
        if kept.tree != source.tree or tests != selection.tree:
            raise Stale(f"{bundle.id}: upstream gives other trees than the bundle names", hint="freeze it again")
        keep(self.data, with_upstream, tests)
