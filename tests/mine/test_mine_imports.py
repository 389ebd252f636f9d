"""Imports and uses of Python files, and which file an import means."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smith.mine.bindings import read_build, read_native, read_native_code, words, wrappers
from smith.mine.imports import Import, Modules, find_imports, last_name, read_code


def code(text: str):  # type: ignore[no-untyped-def]
    return read_code(text, find_imports(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import a.b\n", Import("a.b", 0, "", "a.b")),
        ("import a.b as c\n", Import("a.b", 0, "", "c")),
        ("from a.b import c as d\n", Import("a.b", 0, "c", "d")),
        ("from a import *\n", Import("a", 0, "*", "*")),
        ("from . import c\n", Import("", 1, "c", "c")),
        ("from ..x.y import (\n    c,  # why\n)\n", Import("x.y", 2, "c", "c")),
        ("from a import \\\n    c\n", Import("a", 0, "c", "c")),
        ("def f():\n    from .late import g\n", Import("late", 1, "g", "g")),
        ('m = importlib.import_module("a.b")\n', Import("a.b", 0, "", "m")),
        ('use(import_module(".b"), 1)\n', Import("b", 1, "", "")),
        ('m = pytest.importorskip("a")\n', Import("a", 0, "", "m")),
    ],
)
def test_imports_are_found(text: str, expected: Import) -> None:
    assert find_imports(f'"""Words."""\n{text}') == (expected,)


def test_prose_is_no_import_and_broken_files_tell_theirs() -> None:
    text = "from here import that goes wrong\nimport this or that\nimport a\nprint 'old'\ndef broken(:\n"
    assert find_imports(text) == (Import("a", 0, "", "a"),)


def test_foreign_imports() -> None:
    assert [one.foreign for one in find_imports("import torch.nn\nimport os\nimport mine\nfrom .os import x\n")] == [
        True,
        True,
        False,
        False,
    ]


def test_names_lead_through_statements() -> None:
    text = """\
from .kernels import kernel, other


class Op(Base):
    def forward(self, x):
        return launch(x)


@decorated(
    1,
)
def launch(x):
    kernel[(1,)](x)


TABLE = {"x": Op.apply}
if FAST:
    def quick(x):
        return launch(x)
else:
    quick = other
unrelated = other(kernel_like=1)
"""
    names, reached = code(text).close({"kernel": 1})
    assert reached == 1
    assert set(names) == {"kernel", "launch", "Op", "TABLE", "quick"}
    assert set(code(text).close({"other": 2})[0]) == {"other", "quick", "unrelated"}


@pytest.mark.parametrize("text", ['"""kernel(x)"""\n', "# kernel(x)\n", "x = 'kernel'\n", "y = z().kernel\n"])
def test_strings_comments_and_attributes_of_expressions_are_no_uses(text: str) -> None:
    assert code(f"from a import kernel\n{text}").close({"kernel": 1})[1] == 0


def test_importing_is_no_use() -> None:
    assert code("from a import kernel\n").close({"kernel": 1})[1] == 0


def test_attributes_of_modules_are_told_apart() -> None:
    found = code("import a.b as m\n\n\ndef test():\n    m.one.apply(1)\n\n\ndef more():\n    pass_on(m)\n")
    assert found.close({"m.one": 1})[1] == 1
    assert found.close({"m.two": 1})[1] == 0
    assert found.close({"m!": 1})[0].keys() == {"m!", "more"}


def test_with_a_star_any_name_may_be_imported() -> None:
    assert code("from a import *\n\n\ndef f(x):\n    return kernel(x)\n").close({"kernel": 1})[0].keys() == {
        "kernel",
        "f",
    }
    assert code("from a import b\n\n\ndef f(x):\n    return kernel(x)\n").close({"kernel": 1})[1] == 0


def test_units_keep_their_place_in_the_text() -> None:
    text = 'a = """\nb = 1\n"""\nc = (\n    a,\n)\n\n\n@d\ndef e():\n    pass\n'
    units = code(text).units
    assert [unit.defines for unit in units if unit.defines] == [("a",), ("c",), ("e",)]
    assert "".join(text[unit.begin : unit.end] for unit in units) == text


@given(st.text(alphabet="ab\"'#\\\n =@:(def", max_size=80))
def test_units_cover_any_text(text: str) -> None:
    units = code(text).units
    assert "".join(text[unit.begin : unit.end] for unit in units) == text


def modules(*paths: str) -> Modules:
    made = Modules()
    for path in paths:
        made.add(path)
    return made


@pytest.mark.parametrize(
    ("module", "level", "folder", "expected"),
    [
        ("pkg", 0, "tests", "src/pkg/__init__.py"),
        ("pkg.ops.add", 0, "tests", "src/pkg/ops/add.py"),
        ("add", 1, "src/pkg/ops", "src/pkg/ops/add.py"),
        ("ops", 2, "src/pkg/ops", "src/pkg/ops/__init__.py"),
        ("", 1, "src/pkg/ops", "src/pkg/ops/__init__.py"),
        ("helper", 0, "tests", "tests/helper.py"),
        ("helper", 0, "bench", None),
        ("ops.add", 0, "tests", None),
        ("add", 5, "src/pkg/ops", None),
        ("tool", 0, "tests", "python/tool.py"),
    ],
)
def test_imports_are_resolved(module: str, level: int, folder: str, expected: str | None) -> None:
    tree = modules(
        "src/pkg/__init__.py", "src/pkg/ops/__init__.py", "src/pkg/ops/add.py", "tests/helper.py", "python/tool.py"
    )
    assert tree.resolve(module, level, folder) == expected


def test_the_outermost_root_is_meant_and_what_is_gone_is_not() -> None:
    tree = modules("old/copy/pkg/a.py", "pkg/a.py")
    assert tree.resolve("pkg.a", 0, "tests") == "pkg/a.py"
    tree.remove("pkg/a.py")
    assert tree.resolve("pkg.a", 0, "tests") == "old/copy/pkg/a.py"
    tree.remove("old/copy/pkg/a.py")
    assert tree.resolve("pkg.a", 0, "tests") is None


def test_last_names() -> None:
    assert [last_name(path) for path in ("a/b.py", "a/b/__init__.py", "b.py")] == ["b", "b", "b"]


def test_bindings_and_includes_of_native_files() -> None:
    native = read_native(
        '#include "norm.h"\n# include <torch/extension.h>\n// m.def("gone", &gone);\n'
        '#define BIND \\\n    m.def("norm_fwd", \\\n          &ns::norm, "doc");\n'
        'TORCH_LIBRARY_IMPL(ns, CUDA, m) { m.impl("ns::add_op", torch::dispatch(CUDA, &add)); }\n'
    )
    assert native.includes == ("norm.h", "torch/extension.h")
    assert native.bound[0] == ("norm", "norm_fwd")
    assert not native.runs
    assert read_native("TEST(Add, Small) {}").runs and read_native("int main() {}").runs


def test_names_lead_through_native_code() -> None:
    found = read_native_code(
        "namespace a {\ntemplate <int N> __global__ void __launch_bounds__(256) kern(float* x) { if (x) { } }\n}\n"
        "#define LAUNCH(x) \\\n    a::kern<4><<<1, 1>>>(x)\n"
        'extern "C" void run(float* x) { LAUNCH(x); }\nstruct Other { int y; };\nvoid other() { puts("kern"); }\n'
    )
    assert set(found.close({"kern": 1})[0]) == {"kern", "LAUNCH", "run"}


def test_build_descriptions() -> None:
    data = b'{"module_norm": {"srcs": ["csrc/kernels/norm.cu", "csrc/gen/make.py"]}, "other": ["x.cu"], "n": 1}'
    assert read_build(data) == {
        "norm.cu": ("module_norm",),
        "x.cu": ("other",),
        "kernels/": ("module_norm",),
        "gen/": ("module_norm",),
    }
    assert read_build(b'["norm.cu"]') == {} and read_build(b'{"a.cu"') == {}


@pytest.mark.parametrize(
    ("text", "defined"),
    [
        ('@bind("module_norm", name="norm_fwd")\ndef fwd(x): ...\n', {"fwd"}),
        ("@bind\ndef norm_fwd(x) -> None: ...\n", {"norm_fwd"}),
        ("from . import _C\n\n\ndef fwd(x):\n    return _C.norm_fwd(x)\n", {"fwd"}),
        ("import torch\n\n\ndef fwd(x):\n    return torch.ops.lib.norm_fwd(x)\n", {"fwd"}),
        ('lib = load(name="x", sources=["csrc/norm_fwd"])\n', {"lib"}),
        ("def norm_fwd(x):\n    return x + 1\n", set()),
        ("def fwd(x):\n    return model.norm_fwd(x)\n", set()),
        ('NAMES = ["norm_fwd", "others"]\n', set()),
        ("def fwd(x):\n    return _C.norm_fwd_other(x)\n", set()),
    ],
)
def test_wrappers(text: str, defined: set[str]) -> None:
    assert wrappers(text, code(text), ["norm_fwd"]).keys() == defined


def test_words_of_tests_are_operators_and_files_only() -> None:
    text = 'x = "norm_fwd"\ny = torch.ops.lib.add_op(1)\nz = ["csrc/norm.cu"]\n'
    assert words(text, is_test=True) == {"torch.ops.add_op", "norm.cu"}
    assert words(text, is_test=False) >= {"norm_fwd", "torch.ops.add_op", "norm.cu"}
