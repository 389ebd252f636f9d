"""Which tests lead to which kernels, on real trees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from smith.git.repository import Repository
from smith.mine import mine
from smith.mine import rules as rules_
from smith.mine.listing import Listing
from smith.mine.reach import ReachIndex
from smith.records.candidate import Candidate, ChangedFile, KernelChange, Role
from smith.records.signals import Reach, TestFile
from tests.mine.mine_upstreams import Upstream, kernel

LIBRARY = {
    "src/pkg/__init__.py": "from .ops import launch_add\nfrom .ops.mul import launch_mul as mul\nfrom . import late\n",
    "src/pkg/ops/__init__.py": "from .add import *\n",
    "src/pkg/ops/add.py": kernel("add").replace("def launch(", "def launch_add("),
    "src/pkg/ops/mul.py": kernel("mul").replace("def launch(", "def launch_mul("),
    "src/pkg/late.py": "def late(x):\n    from pkg.ops.mul import launch_mul\n    return launch_mul(x)\n",
}
ADD = (KernelChange(path="src/pkg/ops/add.py", language="triton", symbols=("add",)),)
MUL = (KernelChange(path="src/pkg/ops/mul.py", language="triton", symbols=("mul",)),)


def body(use: str) -> str:
    return f"\n\ndef test_it():\n    {use}\n"


class World:
    """One repository whose trees are asked for one after another."""

    def __init__(self, path: Path) -> None:
        self.upstream = Upstream.make(path, LIBRARY)
        self.index = ReachIndex(self.upstream.repo, rules_.load())

    def push(self, changes: Mapping[str, str | None]) -> str:
        return self.upstream.repo.resolve(self.upstream.push("more", changes), "tree")

    def ask(
        self,
        files: Mapping[str, str | None],
        kernels: tuple[KernelChange, ...] = ADD,
        changed: tuple[ChangedFile, ...] = (),
    ) -> dict[str, TestFile]:
        return {test.path: test for test in self.index.tests_of(self.push(files), changed, kernels)}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "up.git")
    with made.index:
        yield made


@pytest.mark.parametrize(
    ("text", "distance"),
    [
        ("from pkg.ops.add import launch_add" + body("launch_add(1)"), 0),
        ("from pkg.ops.add import add" + body("add[(1,)](1)"), 0),
        ("import pkg.ops.add" + body("pkg.ops.add.launch_add(1)"), 0),
        ("import pkg.ops.add as m" + body("m.launch_add(1)"), 0),
        ("from pkg.ops import add as m" + body("m.launch_add(1)"), 0),
        ("import importlib\n\nm = importlib.import_module('pkg.ops.add')" + body("m.launch_add(1)"), 0),
        ("from pkg.ops import launch_add" + body("launch_add(1)"), 1),
        ("import pkg" + body("pkg.launch_add(1)"), 2),
        ("import pkg" + body("pkg.ops.add.launch_add(1)"), 0),
        ("def test_it():\n    from pkg import launch_add as f\n    f(1)\n", 2),
    ],
)
def test_a_test_leads_to_what_it_uses(world: World, text: str, distance: int) -> None:
    found = world.ask({"tests/test_it.py": text})
    one = found["tests/test_it.py"]
    assert (one.reach, one.runner, one.distance) == (Reach.IMPORTS, "pytest", distance)
    assert one.kernels == ("src/pkg/ops/add.py::add",)


@pytest.mark.parametrize(
    "text",
    [
        "import pkg" + body("pkg.mul(1)"),
        "from pkg import launch_add, mul" + body("mul(1)"),
        "from pkg.ops.mul import launch_mul" + body("launch_mul(1)"),
        "from elsewhere.ops.add import launch_add" + body("launch_add(1)"),
        "import pkg" + body("print('pkg.launch_add')"),
    ],
)
def test_the_front_door_alone_leads_nowhere(world: World, text: str) -> None:
    assert world.ask({"tests/test_it.py": text}) == {}


def test_names_are_followed_through_functions_helpers_and_aliases(world: World) -> None:
    found = world.ask(
        {
            "tests/test_late.py": "from pkg.late import late" + body("late(1)"),
            "tests/test_alias.py": "import pkg" + body("pkg.mul(1)"),
            "tests/helpers.py": "from pkg import mul\n\n\ndef check(x):\n    mul(x)\n",
            "tests/test_helped.py": "from helpers import check" + body("check(1)"),
        },
        MUL,
    )
    assert {path: one.distance for path, one in found.items()} == {
        "tests/test_late.py": 1,
        "tests/test_alias.py": 1,
        "tests/test_helped.py": 2,
    }


def test_changed_tests_come_first_whether_or_not_they_lead(world: World) -> None:
    files = {
        "tests/test_a.py": "from pkg.ops.add import launch_add" + body("launch_add(1)"),
        "tests/test_b.py": "from pkg.ops.add import launch_add" + body("launch_add(1)"),
        "tests/test_c.py": "def test_c():\n    pass\n",
        "tests/run.py": "import argparse\nfrom pkg import launch_add\n\nlaunch_add(1)\n",
        "tests/conftest.py": "import pytest\n",
        "tests/data.json": "{}",
        "benchmarks/bench_add.py": "import pkg\n\npkg.launch_add(1)\n",
        "benchmarks/results.csv": "1\n",
    }
    roles = {"tests/test_c.py": Role.TEST, "tests/test_b.py": Role.TEST, "benchmarks/bench_add.py": Role.BENCHMARK}
    roles |= dict.fromkeys(("tests/run.py", "tests/conftest.py", "tests/data.json"), Role.TEST_SUPPORT)
    roles |= {"benchmarks/results.csv": Role.BENCHMARK, "tests/gone.py": Role.TEST, "src/pkg/ops/add.py": Role.KERNEL}
    changed = tuple(
        ChangedFile(path=path, change="deleted" if "gone" in path else "modified", role=role)
        for path, role in roles.items()
    )
    found = world.ask(files, ADD, changed)
    assert [(path, one.runner, one.reach) for path, one in found.items()] == [
        ("tests/test_b.py", "pytest", Reach.CHANGED),
        ("tests/run.py", "script", Reach.CHANGED),
        ("tests/test_c.py", "pytest", Reach.CHANGED_ALONE),
        ("tests/test_a.py", "pytest", Reach.IMPORTS),
        ("benchmarks/bench_add.py", "benchmark", Reach.CHANGED),
        ("tests/conftest.py", "support", Reach.CHANGED_ALONE),
        ("tests/data.json", "support", Reach.CHANGED_ALONE),
    ]


@pytest.mark.parametrize(
    ("text", "runner"),
    [
        ("def test_a():\n    launch_add(1)\n", "pytest"),
        ("import pytest\n\n\n@pytest.mark.parametrize('n', [1])\ndef test_a(n):\n    launch_add(n)\n", "pytest"),
        ("class TestA:\n    def test_a(self):\n        launch_add(1)\n", "pytest"),
        (
            "import argparse\n\n\ndef test_a(n):\n    launch_add(n)\n\n\nif __name__ == '__main__':\n    test_a(1)\n",
            "script",
        ),
        ("def run(n):\n    launch_add(n)\n\n\nif __name__ == '__main__':\n    run(1)\n", "script"),
    ],
)
def test_what_a_test_is_run_by(world: World, text: str, runner: str) -> None:
    found = world.ask({"tests/test_it.py": f"from pkg import launch_add\n\n\n{text}"})
    assert found["tests/test_it.py"].runner == runner


def test_unchanged_tests_are_few_the_nearest_and_most_particular_first(world: World) -> None:
    near = "from pkg.ops.add import launch_add" + body("launch_add(1)")
    files = {f"tests/test_{index:02}.py": "import pkg" + body("pkg.launch_add(1)") for index in range(30)}
    files |= {f"benchmarks/bench_{index}.py": near for index in range(9)}
    files |= {"tests/test_y.py": f"from pkg import late, mul\n{near}", "tests/test_z.py": near}
    found = list(world.ask(files))
    assert found[:3] == ["tests/test_z.py", "tests/test_y.py", "tests/test_00.py"]
    assert len([path for path in found if path.startswith("tests")]) == 20
    assert len([path for path in found if path.startswith("benchmarks")]) == 4


def test_several_kernels_are_told_apart(world: World) -> None:
    found = world.ask(
        {
            "tests/test_a.py": "import pkg" + body("pkg.mul(1)"),
            "tests/test_b.py": "import pkg" + body("pkg.mul(pkg.launch_add(1))"),
        },
        ADD + MUL,
    )
    assert found["tests/test_a.py"].kernels == ("src/pkg/ops/mul.py::mul",)
    assert found["tests/test_b.py"].kernels == ("src/pkg/ops/add.py::add", "src/pkg/ops/mul.py::mul")


def test_without_symbols_a_file_ties_and_names_nothing(world: World) -> None:
    bare = (KernelChange(path="src/pkg/ops/add.py", language="triton"),)
    found = world.ask({"tests/test_a.py": "import pkg" + body("pkg.launch_add(1)")}, bare)
    assert found["tests/test_a.py"].kernels == () and found["tests/test_a.py"].reach is Reach.IMPORTS
    assert world.ask({}, bare + MUL) == {}


def test_a_backend_is_reached_by_the_name_that_it_defines_again(world: World) -> None:
    other = KernelChange(path="src/pkg/backends/add.py", language="triton", symbols=("add_vendor",))
    again = kernel("add_vendor").replace("def launch(", "def launch_add(")
    found = world.ask(
        {"src/pkg/backends/add.py": again, "tests/test_a.py": "import pkg" + body("pkg.launch_add(1)")}, (other,)
    )
    assert found["tests/test_a.py"].kernels == ("src/pkg/backends/add.py::add_vendor",)


NATIVE = {
    "csrc/norm.cu": '#include "norm.h"\n__global__ void norm_kernel(float* x) { x[0] = 1; }\n'
    "void norm_launch(float* x) { norm_kernel<<<1, 1>>>(x); }\nvoid spare_launch(float* x) {}\n",
    "csrc/norm.h": "void norm_launch(float* x);\nvoid spare_launch(float* x);\n",
    "csrc/bind.cpp": '#include "norm.h"\nPYBIND11_MODULE(_C, m) { m.def("norm_fwd", &norm_launch); '
    'm.def("spare_fwd", &spare_launch); }\n',
    "pkg/native.py": "from . import _C\n\n\ndef norm(x):\n    return _C.norm_fwd(x)\n\n\n"
    "def spare(x):\n    return _C.spare_fwd(x)\n",
    "tests/test_norm.py": "from pkg.native import norm" + body("norm(1)"),
    "tests/test_spare.py": "from pkg.native import spare" + body("spare(1)"),
    "tests/cpp/test_norm.cpp": '#include "../../csrc/norm.h"\nint main() { norm_launch(nullptr); }\n',
    "tests/cpp/test_spare.cpp": '#include "../../csrc/norm.h"\nint main() { spare_launch(nullptr); }\n',
}
NORM = (KernelChange(path="csrc/norm.cu", language="cuda", symbols=("norm_kernel",)),)


def test_native_kernels_are_reached_by_bindings_and_includes(world: World) -> None:
    found = world.ask(NATIVE, NORM)
    assert {path: one.runner for path, one in found.items()} == {
        "tests/test_norm.py": "pytest",
        "tests/cpp/test_norm.cpp": "cpp",
    }
    assert all(one.kernels == ("csrc/norm.cu::norm_kernel",) for one in found.values())


def test_native_kernels_are_reached_by_operators_and_files(world: World) -> None:
    library = 'TORCH_LIBRARY(lib, m) { m.def("norm_op(Tensor x) -> Tensor", &norm_launch); }\n'
    found = world.ask(
        {
            "csrc/norm.cu": NATIVE["csrc/norm.cu"] + library,
            "tests/test_op.py": "import torch" + body("torch.ops.lib.norm_op(1)"),
            "tests/test_other.py": "import torch" + body("torch.ops.lib.other_op(1)"),
            "pkg/build.py": 'ext = load(name="x", sources=["csrc/norm.cu"])\n',
            "tests/test_built.py": "from pkg.build import ext" + body("ext.run(1)"),
        },
        NORM,
    )
    assert found.keys() == {"tests/test_op.py", "tests/test_built.py"}


def test_native_kernels_are_reached_by_build_descriptions(world: World) -> None:
    found = world.ask(
        {
            "csrc/gemm/include/common.cuh": "template <int N> __device__ void gemm_impl(float* x) { x[0] = N; }\n",
            "pkg/build.json": '{"module_gemm": {"srcs": ["csrc/gemm/gemm.cu"]}, "module_norm": ["csrc/norm.cu"]}',
            "pkg/gemm.py": '@bind("module_gemm")\ndef gemm(x): ...\n\n\n@bind("module_norm")\ndef norm(x): ...\n',
            "tests/test_gemm.py": "from pkg.gemm import gemm" + body("gemm(1)"),
            "tests/test_norm.py": "from pkg.gemm import norm" + body("norm(1)"),
        },
        (KernelChange(path="csrc/gemm/include/common.cuh", language="cuda", symbols=("gemm_impl",)),),
    )
    assert found.keys() == {"tests/test_gemm.py"}


def test_python_operators_are_followed(world: World) -> None:
    found = world.ask(
        {
            "src/pkg/registered.py": "import torch\nfrom .ops.add import launch_add\n\n\n"
            '@torch.library.custom_op("lib::add_op", mutates_args=())\ndef add_op(x):\n    return launch_add(x)\n',
            "tests/test_op.py": "import torch\nimport pkg" + body("torch.ops.lib.add_op(1)"),
        }
    )
    assert found["tests/test_op.py"].kernels == ("src/pkg/ops/add.py::add",)


def test_trees_may_be_asked_for_in_any_order(world: World) -> None:
    """What is derived from the last tree equals what is read anew."""
    text = "import pkg" + body("pkg.launch_add(1)")
    trees = [
        world.push({"tests/test_a.py": text}),
        world.push({"src/pkg/ops/add.py": None, "src/pkg/ops/plus.py": LIBRARY["src/pkg/ops/add.py"]}),
        world.push({"src/pkg/ops/__init__.py": "from .plus import launch_add\n"}),
        world.push({"tests/test_a.py": None, "tests/test_b.py": text, **NATIVE}),
        world.push({"csrc/bind.cpp": None, "csrc/norm.h": None}),
    ]
    kernels = (*ADD, KernelChange(path="src/pkg/ops/plus.py", language="triton", symbols=("add",)), *NORM)
    fresh = []
    for tree in trees:
        with ReachIndex(world.upstream.repo, rules_.load()) as index:
            fresh.append(index.tests_of(tree, (), kernels))
    assert [bool(one) for one in fresh] == [True, False, True, True, True]
    for order in ((0, 1, 2, 3, 4), (4, 3, 2, 1, 0), (2, 0, 4, 1, 3, 3)):
        for number in order:
            assert world.index.tests_of(trees[number], (), kernels) == fresh[number], number


def test_a_listing_follows_its_trees(tmp_path: Path) -> None:
    upstream = Upstream.make(tmp_path / "up.git", {"a\nb.py": "1", "c/d.py": "2", "e": "3"})
    first = upstream.repo.resolve(upstream.main, "tree")
    second = upstream.repo.resolve(upstream.push("more", {"a\nb.py": None, "e": "4", "f/ü.py": "5"}), "tree")
    with Listing(upstream.repo) as listing:
        assert listing.move_to(first).keys() == {"a\nb.py", "c/d.py", "e"}
        changes = listing.move_to(second)
        assert {path for path, oid in changes.items() if oid is None} == {"a\nb.py"}
        assert changes.keys() == {"a\nb.py", "e", "f/ü.py"} and listing.move_to(second) == {}
        with Listing(upstream.repo) as other:
            other.move_to(second)
            assert other.blobs == listing.blobs


def test_candidates_have_their_tests(tmp_path: Path) -> None:
    upstream = Upstream.make(tmp_path / "up.git", LIBRARY)
    upstream.squash(
        1,
        "Fix add",
        {
            "src/pkg/ops/add.py": LIBRARY["src/pkg/ops/add.py"].replace("+ 1", "+ 2"),
            "tests/test_add.py": "import pkg" + body("pkg.launch_add(1)"),
        },
    )
    (candidate,) = _mined(upstream.repo)
    with ReachIndex(upstream.repo, rules_.load()) as index:
        tree = upstream.repo.resolve(candidate.merged, "tree")
        (one,) = index.tests_of(tree, candidate.files, candidate.kernels)
    assert (one.path, one.reach, one.kernels) == ("tests/test_add.py", Reach.CHANGED, ("src/pkg/ops/add.py::add",))


def _mined(repo: Repository) -> tuple[Candidate, ...]:
    return mine(repo, repo="o/r", url="u").candidates
