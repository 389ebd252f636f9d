"""Variants of the sample's pull requests: what each starts from, what solves it, and what is refused."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from smith import sample
from smith.errors import BadInput, RecordError
from smith.freeze.bundle import START, Bundle, Store
from smith.freeze.freeze import Frozen, Refused, freeze
from smith.freeze.lineages import lineage_of, remember_lineages
from smith.freeze.panels import load_panel, make_panel
from smith.freeze.review import notes, review
from smith.freeze.variants import ORACLE, Asked
from smith.git.mirrors import Upstream, open_upstream
from smith.git.patches import apply, changes
from smith.git.repository import Repository
from smith.git.sources import SOURCES, has
from smith.git.trees import list_tree, read_file
from smith.mine import mine
from smith.paths import Layout
from smith.records.candidate import Candidate
from smith.records.receipt import Receipt, Verdict
from smith.records.task import SmithMetadata, Variant
from tests.conftest import new_data_repository
from tests.freeze.variant_worlds import TRITON_TRANSPOSE, patch_of

AUTHOR, OPTIMIZE = Asked(Variant.AUTHOR), Asked(Variant.OPTIMIZE)
TO_TRITON, TO_HIP = Asked(Variant.PORT, "triton"), Asked(Variant.PORT, "hip")
GATHER, MATVEC, TRANSPOSE = 53, 24, 20
NUMBERS = (8, 13, GATHER, MATVEC, TRANSPOSE, 45, 50, 63)
PLAIN = "smith-lab__minikernels-{}".format


@pytest.fixture(scope="module")
def mined(upstream_dir: Path) -> tuple[Upstream, dict[int, Candidate]]:
    upstream = Upstream(sample.REPO, sample.URL, Repository.discover(upstream_dir))
    found = mine(upstream.repository, repo=upstream.repo, url=upstream.url, numbers=NUMBERS)
    return upstream, {c.pr: c for c in found.candidates}


@pytest.fixture(scope="module")
def world(mined: tuple[Upstream, dict[int, Candidate]], tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = new_data_repository(tmp_path_factory.mktemp("variants") / "data")
    for number, asked in ((GATHER, AUTHOR), (MATVEC, AUTHOR), (MATVEC, OPTIMIZE), (TRANSPOSE, TO_TRITON), (8, TO_HIP)):
        assert isinstance(made(store, mined, number, asked), Frozen)
    return store


def made(store: Store, mined: tuple[Upstream, dict[int, Candidate]], number: int, asked: Asked) -> Frozen | Refused:
    upstream, candidates = mined
    return freeze(candidates[number], upstream, store, asked)


def file_of(store: Store, tree: str, path: str) -> str:
    return (read_file(store.scratch, tree, path) or b"").decode()


def solved(store: Store, bundle: Bundle) -> str:
    return apply(store.scratch, bundle.spec.source.tree, bundle.reference)


def test_the_plain_fix_is_the_same_bytes_as_before_there_were_variants(
    store: Store, mined: tuple[Upstream, dict[int, Candidate]]
) -> None:
    pinned = {t.id: t.tree for t in load_panel(Layout(Path(__file__).parents[2]), "sample").tasks}
    for number in (8, 13, GATHER, MATVEC, TRANSPOSE):
        result = made(store, mined, number, Asked())
        assert isinstance(result, Frozen)
        assert (result.id, result.tree) == (PLAIN(number), pinned[PLAIN(number)])
        assert not (result.path / START).exists()


def test_an_author_starts_from_the_merged_source_without_the_bodies(
    world: Store, mined: tuple[Upstream, dict[int, Candidate]]
) -> None:
    bundle = world.load(f"{PLAIN(GATHER)}~author")
    path = "minikernels/ops/paged_gather.py"
    merged = mined[0].repository.text("show", f"{mined[1][GATHER].merged}:{path}")
    assert bundle.spec.variant is Variant.AUTHOR
    assert [(k.path, k.symbols) for k in bundle.spec.kernels] == [(path, ("_paged_gather_kernel",))]
    assert bundle.spec.editable == (path,)
    start = file_of(world, bundle.spec.source.tree, path)
    assert "static_assert(False" in start
    # The other kernel of the file and the host code are as they were merged, and the reference gives the rest.
    assert start.split("def slot_mapping")[1].strip() == merged.split("def slot_mapping")[1].strip()
    assert start.split("def _paged_gather_kernel")[0] == merged.split("def _paged_gather_kernel")[0]
    assert file_of(world, solved(world, bundle), path).strip() == merged.strip()
    assert [c.path for c in changes(world.scratch, bundle.spec.source.tree, solved(world, bundle))] == [path]


def test_a_native_author_and_the_base_do_not_meet(world: Store) -> None:
    """The body that the pull request replaced is no more in the start than the one that it brought."""
    bundle = world.load(f"{PLAIN(MATVEC)}~author")
    text = file_of(world, bundle.spec.source.tree, "minikernels/csrc/cpu/int8_matvec.c")
    assert "__builtin_trap();" in text
    assert "for (" not in text
    assert "tests/test_native_int8_matvec.py" in bundle.selection.files
    assert bundle.selection.workloads == ()  # writing it is not about speed


def test_an_optimizer_starts_from_the_base(world: Store, mined: tuple[Upstream, dict[int, Candidate]]) -> None:
    bundle = world.load(f"{PLAIN(MATVEC)}~optimize")
    assert bundle.spec.source.tree == bundle.spec.source.base_tree
    assert bundle.selection.workloads == ("int8_matvec.py",)
    assert "tests/test_native_int8_matvec.py" in bundle.selection.files
    assert bundle.spec.interface == ()


def test_a_port_has_the_old_kernels_to_be_read_and_they_are_gone_when_graded(world: Store) -> None:
    bundle = world.load(f"{PLAIN(TRANSPOSE)}~port-triton")
    port = bundle.spec.port
    assert port is not None
    path = "minikernels/csrc/cpu/transpose.c"
    assert (port.to, port.origin, port.oracle, port.solved) == ("triton", ("native",), (f"{ORACLE}/{path}",), False)
    start = bundle.spec.source.tree
    assert "for (" in file_of(world, start, f"{ORACLE}/{path}")
    assert "__builtin_trap" in file_of(world, start, path)
    assert set(port.oracle) <= set(bundle.selection.removed)
    assert bundle.spec.devices == ("interpreter", "rocm", "cuda")
    assert bundle.spec.editable == ("minikernels/**/*.py",)
    assert world.load(f"{PLAIN(8)}~port-hip").spec.devices == ("rocm",)


def test_instructions_say_the_task_and_nothing_of_the_pull_request(
    world: Store, mined: tuple[Upstream, dict[int, Candidate]]
) -> None:
    heads = {
        f"{PLAIN(GATHER)}~author": "# Write `_paged_gather_kernel`\n",
        f"{PLAIN(MATVEC)}~author": "# Write `int8_matvec`\n",
        f"{PLAIN(MATVEC)}~optimize": "# Make `int8_matvec` faster\n",
        f"{PLAIN(TRANSPOSE)}~port-triton": "# Port `transpose` to Triton\n",
        f"{PLAIN(8)}~port-hip": "# Port `_rms_norm_fwd` to HIP C++\n",
    }
    assert world.ids() == sorted(heads)
    for task, head in heads.items():
        bundle = world.load(task)
        words = bundle.instruction
        assert words.startswith(head)
        assert all(glob in words for glob in bundle.spec.editable)
        candidate = mined[1][bundle.spec.source.pr]
        assert candidate.title not in words
        assert not any(line and line in words for line in candidate.body.splitlines())
        counts = "has not passed" in words
        assert counts is (bundle.spec.variant.has_own_start and "interpreter" in bundle.spec.devices)
        # Harbor's names know no tilde.
        assert bundle.file.task.name == f"smith/{task.replace('~', '.')}"


def test_freezing_twice_gives_the_same_tree(world: Store, mined: tuple[Upstream, dict[int, Candidate]]) -> None:
    for number, asked in ((GATHER, AUTHOR), (TRANSPOSE, TO_TRITON), (MATVEC, OPTIMIZE)):
        before = world.load(PLAIN(number) + asked.suffix).tree
        again = made(world, mined, number, asked)
        assert isinstance(again, Frozen)
        assert again.tree == before


def test_a_clone_without_the_sources_makes_them_again(world: Store, upstream_dir: Path, tmp_path: Path) -> None:
    root = tmp_path / "clone"
    shutil.copytree(world.layout.root, root, ignore=shutil.ignore_patterns(".git", ".smith"))
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    clone = Store(Layout(root))
    open_upstream(sample.URL, clone.layout.mirrors)
    for task in clone.ids():
        bundle = clone.load(task)
        assert not has(clone.data, bundle.spec.source.tree)
        clone.require_sources(bundle)
        assert has(clone.data, bundle.spec.source.tree)
        assert clone.data.text("rev-list", "--count", f"{SOURCES}{bundle.spec.source.tree}") == "1"
    (clone.load(f"{PLAIN(GATHER)}~author").path / START).unlink()
    with pytest.raises(RecordError, match=r"start\.patch: is missing"):
        clone.load(f"{PLAIN(GATHER)}~author")


@pytest.mark.parametrize(
    ("number", "asked", "code", "words"),
    [
        (GATHER, OPTIMIZE, "unfit_variant", "of kind fix"),
        (GATHER, TO_TRITON, "unfit_variant", "in triton already"),
        (50, TO_HIP, "unfit_variant", "in hip already"),
        (63, AUTHOR, "no_kernel_left", "minikernels/ops/matmul.py"),
        (45, TO_HIP, "no_kernel_left", "minikernels/ops/softmax.py"),
    ],
)
def test_a_pull_request_that_gives_no_such_task_is_refused(
    store: Store, mined: tuple[Upstream, dict[int, Candidate]], number: int, asked: Asked, code: str, words: str
) -> None:
    result = made(store, mined, number, asked)
    assert isinstance(result, Refused)
    assert result.reason.code == code
    assert words in result.reason.detail
    assert store.ids() == []


def test_a_variant_is_never_guessed() -> None:
    for arguments in ((Variant.PORT,), (Variant.AUTHOR, "triton"), (Variant.FIX, None, b"x")):
        with pytest.raises(BadInput):
            Asked(*arguments)  # type: ignore[arg-type]


def test_the_id_and_the_variant_agree(world: Store) -> None:
    spec = world.load(f"{PLAIN(TRANSPOSE)}~port-triton").spec.model_dump(mode="json")
    for change in (
        {"id": PLAIN(TRANSPOSE)},
        {"id": f"{PLAIN(TRANSPOSE)}~port-hip"},
        {"variant": "author"},
        {"port": None},
        {"id": PLAIN(TRANSPOSE), "variant": "fix"},
    ):
        with pytest.raises(RecordError):
            SmithMetadata.parse({**spec, **change}, "task.toml")


def test_a_solution_must_be_what_a_submission_may_be(
    world: Store, mined: tuple[Upstream, dict[int, Candidate]], store: Store, tmp_path: Path
) -> None:
    port = world.load(f"{PLAIN(TRANSPOSE)}~port-triton")
    bodies = port.reference
    own = patch_of(world, port, tmp_path / "c", {"minikernels/csrc/cpu/mine.c": "int x;\n"})
    for patch, words in ((bodies, "not among"), (own, "not among"), (b"", "empty"), (b"rubbish\n", "malformed")):
        with pytest.raises(BadInput, match=words):
            made(store, mined, TRANSPOSE, Asked(Variant.PORT, "triton", patch))
    good = patch_of(world, port, tmp_path / "py", {"minikernels/native/transpose.py": TRITON_TRANSPOSE})
    result = made(store, mined, TRANSPOSE, Asked(Variant.PORT, "triton", good))
    assert isinstance(result, Frozen)
    bundle = store.load(result.id)
    assert bundle.reference == good
    assert bundle.spec.port is not None and bundle.spec.port.solved
    assert bundle.spec.source.tree == port.spec.source.tree


def test_a_kernel_with_a_whole_twin_beside_it_is_nobody_s_to_write(
    store: Store, tmp_path: Path, upstream_dir: Path
) -> None:
    """A second kernel with the same lines, in the same file or in another: both are the answer."""
    for name, path in (("same", "minikernels/ops/paged_gather.py"), ("other", "minikernels/ops/gather_twin.py")):
        clone = tmp_path / name
        subprocess.run(["git", "clone", "-q", str(upstream_dir), str(clone)], check=True)
        whole = (clone / "minikernels/ops/paged_gather.py").read_text()
        begin = whole.index("@triton.jit\ndef _paged_gather_kernel")
        kernel = whole[begin : whole.index("\n\n\n", begin)]
        twin = kernel.replace("_paged_gather_kernel", "_twin_kernel")
        before = kernel[: kernel.index("):\n") + 3] + "    pass\n"
        imports = "import triton\nimport triton.language as tl\n\n\n"

        def commit(message: str, clone: Path = clone) -> None:
            who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
            for args in (["add", "-A"], [*who, "commit", "-q", "-m", message]):
                subprocess.run(["git", *args], cwd=clone, check=True)

        (clone / "minikernels/ops/paged_gather.py").write_text(whole.replace(kernel, before))
        commit("take it out")
        (clone / "minikernels/ops/paged_gather.py").write_text(whole)
        with (clone / path).open("a") as file:
            file.write(f"\n\n{twin}\n" if name == "same" else f"{imports}{twin}\n")
        (clone / "tests/test_paged_gather.py").open("a").write("\n# looked at\n")
        commit("paged_gather: bring it back (#900)")
        upstream = open_upstream(str(clone), store.layout.mirrors, name=f"lab/{name}")
        (candidate,) = mine(upstream.repository, repo=upstream.repo, url=upstream.url, numbers=[900]).candidates
        # What the pull request adds beside the kernel is emptied too where it is a kernel: only the one that is not
        # among its changed kernels can give it away.
        only = tuple(
            k.model_copy(update={"symbols": ("_paged_gather_kernel",)})
            for k in candidate.kernels
            if k.path == "minikernels/ops/paged_gather.py"
        )
        result = freeze(candidate.model_copy(update={"kernels": only}), upstream, store, AUTHOR)
        assert isinstance(result, Refused), name
        assert result.reason.code == "answer_in_sight"
        assert path in result.reason.detail


# -- panels -------------------------------------------------------------------------------------------------------


@pytest.fixture
def panelled(world: Store, mined: tuple[Upstream, dict[int, Candidate]], tmp_path: Path) -> Store:
    """A data repository of its own with receipts for both variants of one pull request."""
    shutil.copytree(world.layout.root, tmp_path / "data", symlinks=True)
    store = Store(Layout(tmp_path / "data"))
    for task in (f"{PLAIN(MATVEC)}~author", f"{PLAIN(MATVEC)}~optimize"):
        tree = store.load(task).tree
        receipt = Receipt(task=task, tree=tree, device="cpu", verdict=Verdict.VALID, fail_to_pass=("t.py::t",))
        receipt.save(store.layout.receipt(task, tree, "cpu"))
    return store


def test_variants_may_share_a_panel_and_that_is_said(panelled: Store) -> None:
    both = [f"{PLAIN(MATVEC)}~author", f"{PLAIN(MATVEC)}~optimize"]
    make_panel(panelled, "both", both).save(panelled.layout.panel("both"))
    make_panel(panelled, "one", both[:1]).save(panelled.layout.panel("one"))
    assert review(panelled) == []
    (note,) = notes(panelled)
    assert all(task in note for task in both) and "panels/both.toml" in note
    assert notes(panelled, ["one"]) == []


@pytest.mark.parametrize("known", [None, "smith-lab__minikernels-24", "smith-lab__minikernels-24~author"])
def test_all_variants_lie_on_one_side_of_a_split(panelled: Store, known: str | None) -> None:
    if known is not None:
        remember_lineages(panelled.layout, {known: "smith-lab/minikernels#19"})
    for name, task, split in (("a", "~author", "train"), ("b", "~optimize", "held_out")):
        panel = make_panel(panelled, name, [PLAIN(MATVEC) + task], split=split)  # type: ignore[arg-type]
        panel.save(panelled.layout.panel(name))
    (finding,) = review(panelled)
    assert finding.code == "split"
    assert ("#19" if known else PLAIN(MATVEC)) in finding.message


def test_a_lineage_is_that_of_the_pull_request() -> None:
    known = {"a__b-1": "a/b#1", "a__b-2~author": "a/b#1", "a__b-20": "a/b#20"}
    for task, lineage in (
        ("a__b-1~author", "a/b#1"),
        ("a__b-2", "a/b#1"),
        ("a__b-2~port-hip", "a/b#1"),
        ("a__b-3~author", "a__b-3"),
    ):
        assert lineage_of(known, task) == lineage


def test_paths_of_a_start_are_those_of_the_merge_and_no_test_of_it(world: Store) -> None:
    """The start has the tests of the base, not those that are hidden."""
    bundle = world.load(f"{PLAIN(GATHER)}~author")
    paths = {e.path.decode() for e in list_tree(world.scratch, bundle.spec.source.tree)}
    assert "tests/test_paged_gather.py" in paths
    hidden = file_of(world, bundle.selection.tree, "tests/test_paged_gather.py")
    seen = file_of(world, bundle.spec.source.tree, "tests/test_paged_gather.py")
    assert "test_partial_last_page" in hidden
    assert "test_partial_last_page" not in seen
