"""Freezing the sample upstream: what a bundle holds, and what it must not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from smith import sample
from smith.errors import BadInput, RecordError, Stale, UnknownTask
from smith.freeze.bundle import Bundle, Store
from smith.freeze.freeze import Frozen, Refused, freeze
from smith.git.mirrors import Upstream, open_upstream
from smith.git.patches import apply, changes
from smith.git.repository import Repository
from smith.git.sources import SOURCES, has
from smith.git.trees import list_tree
from smith.grade.trial import reference_tree
from smith.mine import mine
from smith.records.candidate import Candidate
from tests.conftest import new_data_repository


@pytest.fixture(scope="module")
def mined(upstream_dir: Path) -> tuple[Upstream, dict[int, Candidate]]:
    upstream = Upstream(sample.REPO, sample.URL, Repository.discover(upstream_dir))
    found = mine(upstream.repository, repo=upstream.repo, url=upstream.url)
    return upstream, {c.pr: c for c in found.candidates}


@pytest.fixture(scope="module")
def world(mined: tuple[Upstream, dict[int, Candidate]], tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A data repository with every candidate of the sample frozen."""
    store = new_data_repository(tmp_path_factory.mktemp("frozen"))
    upstream, candidates = mined
    refused = [r for c in candidates.values() if isinstance(r := freeze(c, upstream, store), Refused)]
    assert not refused
    return store


def bundles(store: Store) -> list[Bundle]:
    return [store.load(task_id) for task_id in store.ids()]


def text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def test_every_candidate_becomes_a_bundle_in_the_harbor_shape(world: Store) -> None:
    found = bundles(world)
    assert len(found) == len([e for e in sample.expectations() if e.mined == "candidate"])
    for bundle in found:
        for name in ("task.toml", "instruction.md", "environment/Dockerfile", "solution/solve.sh", "tests/test.sh"):
            assert (bundle.path / name).is_file()
        assert os.access(bundle.path / "tests/test.sh", os.X_OK)
        assert set(tomllib.loads((bundle.path / "task.toml").read_text())["metadata"]) == {"smith"}


def test_base_plus_reference_plus_hidden_tests_is_what_was_merged(
    world: Store, mined: tuple[Upstream, dict[int, Candidate]]
) -> None:
    upstream, candidates = mined
    for bundle in bundles(world):
        merged = upstream.repository.resolve(candidates[bundle.spec.source.pr].merged, "tree")
        both = Repository(
            world.scratch.git_dir,
            env={
                **world.scratch._env,
                "GIT_ALTERNATE_OBJECT_DIRECTORIES": os.pathsep.join(
                    [
                        world.scratch._env["GIT_ALTERNATE_OBJECT_DIRECTORIES"],
                        str(upstream.repository.git_dir / "objects"),
                    ]
                ),
            },
        )
        left = {c.path for c in changes(both, reference_tree(world, bundle), merged)}
        assert left <= {e.path for e in bundle.spec.excluded}, bundle.id


def test_the_source_is_kept_without_history_and_without_the_future(world: Store) -> None:
    for bundle in bundles(world):
        assert has(world.data, bundle.spec.source.tree)
        assert has(world.data, bundle.selection.tree)
        ref = f"refs/smith/sources/{bundle.spec.source.tree}"
        assert world.data.text("rev-list", "--count", ref) == "1"
        # Neither the merged commit nor any commit of upstream came along.
        assert not world.data.has(bundle.spec.source.merged)
        assert not world.data.has(bundle.spec.source.base)


def test_no_hidden_test_is_in_the_reference_patch(world: Store) -> None:
    for bundle in bundles(world):
        solved = apply(world.scratch, bundle.spec.source.tree, bundle.reference)
        for change in changes(world.scratch, bundle.spec.source.tree, solved):
            assert not change.path.startswith("tests/"), bundle.id


def test_the_instruction_does_not_point_at_the_solution(world: Store) -> None:
    for bundle in bundles(world):
        words = bundle.instruction
        assert f"#{bundle.spec.source.pr}" not in words
        assert bundle.spec.source.merged[:7] not in words
        assert "Co-authored-by" not in words
        assert "Signed-off-by" not in words
        assert "/pull/" not in words


def test_freezing_twice_gives_the_same_tree(world: Store, mined: tuple[Upstream, dict[int, Candidate]]) -> None:
    upstream, candidates = mined
    before = world.load("smith-lab__minikernels-8").tree
    again = freeze(candidates[8], upstream, world)
    assert isinstance(again, Frozen)
    assert again.tree == before == world.load(again.id).tree


def test_the_identity_is_what_git_says_once_committed(world: Store) -> None:
    root = world.layout.root
    env = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null"}
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@t", "-C", str(root)]
    subprocess.run([*git, "add", "-A"], check=True, env=env)
    subprocess.run([*git, "commit", "-qm", "tasks"], check=True, env=env)
    for bundle in bundles(world)[:5]:
        said = subprocess.run(
            [*git, "rev-parse", f"HEAD:tasks/{bundle.id}"], check=True, env=env, capture_output=True, text=True
        ).stdout.strip()
        assert said == bundle.tree


def test_a_clone_without_the_sources_brings_them_back_by_tree_id(world: Store) -> None:
    bundle = world.load("smith-lab__minikernels-15")
    for tree in (bundle.spec.source.tree, bundle.selection.tree):
        world.data.git("update-ref", "-d", SOURCES + tree)
    assert not has(world.data, bundle.selection.tree)
    world.require_sources(bundle)
    assert has(world.data, bundle.spec.source.tree)
    assert has(world.data, bundle.selection.tree)


def test_hidden_tests_hold_the_support_files_too(world: Store) -> None:
    bundle = world.load("smith-lab__minikernels-35")
    paths = {text(e.path) for e in list_tree(world.scratch, bundle.selection.tree)}
    assert "tests/helpers.py" in paths
    assert all(p.startswith("tests/") for p in paths)


def test_a_performance_pull_request_without_tests_is_guarded_by_existing_ones(world: Store) -> None:
    bundle = world.load("smith-lab__minikernels-24")
    assert not bundle.selection.files
    assert bundle.selection.guards
    assert bundle.selection.workloads == ("int8_matvec.py",)


def edit(path: Path, old: str, new: str) -> None:
    content = path.read_text()
    assert old in content
    path.write_text(content.replace(old, new, 1))


@pytest.fixture
def one(store: Store, mined: tuple[Upstream, dict[int, Candidate]]) -> Bundle:
    upstream, candidates = mined
    made = freeze(candidates[60], upstream, store)
    assert isinstance(made, Frozen)
    return store.load(made.id)


def test_a_missing_key_is_named(store: Store, one: Bundle) -> None:
    edit(one.path / "task.toml", 'kind = "fix"\n', "")
    with pytest.raises(RecordError, match=r"task\.toml: metadata\.smith\.kind is missing"):
        store.load(one.id)


def test_an_unknown_key_is_named(store: Store, one: Bundle) -> None:
    edit(one.path / "tests/selection.json", '"roots"', '"rootz": [], "roots"')
    with pytest.raises(RecordError, match=r"selection\.json: rootz is no known key"):
        store.load(one.id)


def test_a_missing_file_is_named(store: Store, one: Bundle) -> None:
    (one.path / "solution/reference.patch").unlink()
    with pytest.raises(RecordError, match=r"reference\.patch: is missing"):
        store.load(one.id)


@pytest.mark.parametrize("name", ["nowhere__x-1", "../etc", "", "receipts"])
def test_an_unknown_task_is_said_to_be_unknown(store: Store, name: str) -> None:
    with pytest.raises(UnknownTask):
        store.load(name)


def test_a_renamed_bundle_is_refused(store: Store, one: Bundle) -> None:
    one.path.rename(one.path.with_name("smith-lab__minikernels-61"))
    with pytest.raises(RecordError, match="the folder is"):
        store.load("smith-lab__minikernels-61")


def test_any_edit_changes_the_identity(store: Store, one: Bundle) -> None:
    (one.path / "instruction.md").write_text("Do something else.\n")
    assert store.load(one.id).tree != one.tree


def test_trees_that_upstream_does_not_give_are_refused(store: Store, one: Bundle) -> None:
    other = "0" * 39 + "1"
    edit(one.path / "task.toml", f'\ntree = "{one.spec.source.tree}"', f'\ntree = "{other}"')
    with pytest.raises(Stale, match="other trees"):
        store.require_sources(store.load(one.id))


def test_a_broken_prompt_of_the_data_repository_is_named(
    store: Store, mined: tuple[Upstream, dict[int, Candidate]]
) -> None:
    upstream, candidates = mined
    store.layout.prompts.mkdir()
    (store.layout.prompts / "instruction.md.j2").write_text("{{ no_such_thing }}")
    with pytest.raises(BadInput, match=r"instruction\.md\.j2: 'no_such_thing' is undefined"):
        freeze(candidates[60], upstream, store)
    assert not store.layout.task("smith-lab__minikernels-60").exists()


def test_prompts_can_be_overridden(store: Store, mined: tuple[Upstream, dict[int, Candidate]]) -> None:
    upstream, candidates = mined
    store.layout.prompts.mkdir()
    (store.layout.prompts / "instruction.md.j2").write_text("# {{ title }}\n\nMend it.\n")
    freeze(candidates[60], upstream, store)
    assert store.load("smith-lab__minikernels-60").instruction.endswith("Mend it.\n")


def test_a_kill_at_any_instant_leaves_a_whole_bundle_or_none(tmp_path: Path, upstream_dir: Path) -> None:
    store = new_data_repository(tmp_path / "killed")
    code = (
        "import sys; from pathlib import Path; from smith import sample; from smith.freeze.bundle import Store\n"
        "from smith.freeze.freeze import freeze; from smith.git.mirrors import Upstream\n"
        "from smith.git.repository import Repository; from smith.mine import mine; from smith.paths import Layout\n"
        "store = Store(Layout(Path(sys.argv[1]))); up = Repository.discover(Path(sys.argv[2]))\n"
        "u = Upstream(sample.REPO, sample.URL, up)\n"
        "cs = mine(up, repo=u.repo, url=u.url, numbers=[8, 60]).candidates\n"
        "print('ready', flush=True)\n"
        "while True:\n"
        "    for c in cs: freeze(c, u, store)\n"
    )
    for delay in (0.02, 0.15, 0.3, 0.45, 0.7, 1.1):
        child = subprocess.Popen(
            [sys.executable, "-c", code, str(store.layout.root), str(upstream_dir)], stdout=subprocess.PIPE
        )
        assert child.stdout is not None
        child.stdout.readline()
        try:
            child.wait(delay)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        for task_id in store.ids():
            store.require_sources(store.load(task_id))
    # And the next start works.
    upstream = open_upstream(str(upstream_dir), store.layout.mirrors, name=sample.REPO)
    for candidate in mine(upstream.repository, repo=upstream.repo, url=sample.URL, numbers=[8, 60]).candidates:
        assert isinstance(freeze(candidate, upstream, store), Frozen)
    assert store.ids() == ["smith-lab__minikernels-60", "smith-lab__minikernels-8"]
