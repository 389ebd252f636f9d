"""Bodies of kernels taken out of their files: what stays, what takes their place, and what cannot be taken out."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent, indent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smith.freeze.bodies import Emptied, empty
from smith.mine.kernels import read
from smith.mine.rules import load
from smith.records.base import Reason
from smith.records.candidate import KernelChange

RULES = load()
IMPORTS = "import triton\nimport triton.language as tl\n\n\n"


def emptied(path: str, text: str, *names: str, language: str = "triton") -> str | Reason:
    """The file without the bodies of these kernels (default: all that mining sees in it), or why not."""
    data = text.encode()
    found = tuple(names or read(data, path, RULES).kernels)
    done = empty([KernelChange(path=path, language=language, symbols=found)], {path: data}, RULES)
    return done.files[path].decode() if isinstance(done, Emptied) else done


def python(text: str, *names: str) -> str:
    done = emptied("lib/k.py", IMPORTS + dedent(text), *names)
    assert isinstance(done, str)
    ast.parse(done)
    assert done.startswith(IMPORTS)
    return done.removeprefix(IMPORTS)


def refused(path: str, text: str, *names: str) -> str:
    done = emptied(path, text, *names)
    assert isinstance(done, Reason)
    assert done.code == "body_is_fixed"
    return done.detail


STUB = 'tl.static_assert(False, "the body of k is not written yet")'


def test_signature_decorators_and_docstring_stay_and_comments_of_the_body_go() -> None:
    done = python(
        '''
        @triton.autotune(configs=[triton.Config({"B": 16})], key=["n"])
        @triton.jit
        def k(
            X,  # the input
            B: tl.constexpr = (1, 2)[0],
        ) -> "tl.tensor":  # noqa
            # how it is done
            """What it does."""
            x = tl.load(X)

            # and then
            tl.store(X, x)
            # at last

        # of the host
        def host(x):
            return k[(1,)](x)
        '''
    )
    assert done == dedent(
        f'''
        @triton.autotune(configs=[triton.Config({{"B": 16}})], key=["n"])
        @triton.jit
        def k(
            X,  # the input
            B: tl.constexpr = (1, 2)[0],
        ) -> "tl.tensor":  # noqa
            # how it is done
            """What it does."""
            {STUB}

        # of the host
        def host(x):
            return k[(1,)](x)
        '''
    )


@pytest.mark.parametrize(
    ("body", "left"),
    [
        ("def k(X): tl.store(X, 1)\n", f"def k(X):\n    {STUB}\n"),
        ("def k(X):\n    # a secret\n    tl.store(X, 1)\n", f"def k(X):\n    {STUB}\n"),
        ("def k(X): 'é'; tl.store(X, 1)\n", f"def k(X):\n    {STUB}\n"),
        ("def k(X):\n    'é'; tl.store(X, 1)\n", f"def k(X):\n    'é'\n    {STUB}\n"),
        ("def k(X):\n    '''é\n    é'''\n    tl.store(X, 1)", f"def k(X):\n    '''é\n    é'''\n    {STUB}\n"),
        ("def k(X):\n\ttl.store(X, 1)\n\n\n", f"def k(X):\n\t{STUB}\n\n\n"),
        ("def k(X, f=lambda x: x):\n    tl.store(X, f(1))\n", f"def k(X, f=lambda x: x):\n    {STUB}\n"),
    ],
)
def test_layouts(body: str, left: str) -> None:
    assert python(f"@triton.jit\n{body}") == f"@triton.jit\n{left}"


def test_only_the_kernels_that_are_named_and_each_definition_of_a_name() -> None:
    text = """
        if new:
            @triton.jit
            def k(X):
                tl.store(X, 1)
        else:
            @triton.jit
            def k(X):
                tl.store(X, 2)

        class Box:
            @triton.jit
            def k(X):
                tl.store(X, 3)

        @triton.jit
        def other(X):
            tl.store(X, 4)
        """
    assert [n for n in "1234" if f"tl.store(X, {n})" in python(text, "k")] == ["3", "4"]
    assert [n for n in "1234" if f"tl.store(X, {n})" in python(text, "Box.k")] == ["1", "2", "4"]


def test_the_name_of_the_language_is_that_of_the_file() -> None:
    kernel = "@triton.jit\ndef k(X):\n    pass\n"
    for line, name in (
        ("import triton", "triton.language"),
        ("import triton\nfrom triton import language as lang", "lang"),
        ("import triton\nfrom .compat import tl", "triton.language"),
        ("from .compat import triton, tl", "triton.language"),
    ):
        done = emptied("lib/k.py", f"{line}\n{kernel}")
        assert isinstance(done, str)
        assert f"    {name}.static_assert(False" in done
    assert "names the language's module" in refused("k.py", "from triton import jit\n@jit\ndef k(X):\n    pass\n")


def test_line_ends_stay() -> None:
    text = IMPORTS + "@triton.jit\ndef k(X):\n    tl.store(X, 1)\n"
    crlf = emptied("k.py", text.replace("\n", "\r\n"))
    assert crlf == (IMPORTS + f"@triton.jit\ndef k(X):\n    {STUB}\n").replace("\n", "\r\n")
    assert "mixes line ends" in refused("k.py", text.replace(")\n", ")\r\n"), "k")


def test_what_cannot_be_emptied_is_said() -> None:
    tile = "import tilelang\n@tilelang.jit\ndef k():\n    return 1\n"
    assert "in tilelang" in refused("k.py", tile)
    hip = "#include <hip/hip_runtime.h>\n"
    assert "constexpr" in refused("k.hip", hip + "__device__ constexpr int k(int a) { return a; }\n")
    assert "deduces" in refused("k.hip", hip + "__device__ auto k(int a) { return a; }\n")
    crossing = "__global__ void k(int *a) {\n#ifdef FAST\n  a[0] = 1;\n}\n#else\n  a[0] = 2;\n}\n#endif\n"
    assert "conditional" in refused("k.hip", hip + crossing)
    cuda = "__host__ __device__ int k(int a) { return a; }\n__global__ void g(int *a) { a[0] = k(1); }\n"
    assert "host and device" in refused("k.cu", cuda, "k")


def test_kernels_that_are_gone_are_no_author_s_work() -> None:
    gone = empty([KernelChange(path="k.py", language="triton", symbols=("k",))], {"k.py": None}, RULES)
    other = empty([KernelChange(path="k.py", language="triton", symbols=("k",))], {"k.py": IMPORTS.encode()}, RULES)
    for reason in (gone, other, empty([], {}, RULES)):
        assert isinstance(reason, Reason)
        assert reason.code == "no_kernel_left"


def test_a_native_kernel_without_its_body_compiles_and_traps(tmp_path: Path) -> None:
    text = dedent(
        """\
        #include <stdint.h>
        /* { */
        static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

        float total(const float *x, int64_t n)
        {
        #if 1
            float sum = 0; // }
        #endif
            for (int64_t i = 0; i < least(n, 8); ++i) sum += x[i];
            return sum;
        }
        int main(void) { float x = 1; return total(&x, 1) == 1 ? 0 : 1; }
        """
    )
    done = emptied("csrc/k.c", text, language="native")
    assert isinstance(done, str)
    assert "sum += x[i]" not in done
    assert "static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }" in done
    if (compiler := shutil.which("cc")) is None:
        pytest.skip("the program cc, a C compiler, is not on PATH")
    (tmp_path / "k.c").write_text(done)
    subprocess.run([compiler, "-std=c11", "-o", str(tmp_path / "k"), str(tmp_path / "k.c")], check=True)
    assert subprocess.run([str(tmp_path / "k")], check=False).returncode < 0


def test_hip_kernels_keep_their_heads() -> None:
    text = (
        "#include <hip/hip_runtime.h>\nnamespace n {\ntemplate <int N>\n"
        "__global__ void __launch_bounds__(256) k(float *x) { x[0] = N; }\n}\n"
    )
    done = emptied("k.hip", text)
    assert isinstance(done, str)
    assert done.startswith(text[: text.index("{ x[0]")] + "{\n    __builtin_trap();")
    assert done.endswith("}\n}\n")


def test_a_gpu_s_compiler_refuses_what_takes_the_place_of_a_body(tmp_path: Path) -> None:
    """In a process without the interpreter, for a device that is not here."""
    text = (
        IMPORTS + "@triton.jit\ndef part(x):\n    return x * 2\n\n\n"
        "@triton.jit\ndef k(X, B: tl.constexpr):\n    tl.store(X, part(tl.load(X)))\n"
    )
    compiling = (
        "import sys; sys.path.insert(0, sys.argv[1]); import triton, module\n"
        "from triton.backends.compiler import GPUTarget; from triton.compiler import ASTSource\n"
        "source = ASTSource(fn=module.k, signature={'X': '*fp32', 'B': 'constexpr'}, constexprs={'B': 16})\n"
        "triton.compile(source, target=GPUTarget('hip', 'gfx942', 64))\n"
    )
    for name in ("", "k", "part"):
        folder = tmp_path / (name or "whole")
        folder.mkdir()
        (folder / "module.py").write_text(str(emptied("lib/k.py", text, name)) if name else text)
        argv = [sys.executable, "-c", compiling, str(folder)]
        env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TRITON_CACHE_DIR": str(tmp_path / "cache")}
        done = subprocess.run(argv, capture_output=True, text=True, env=env, timeout=300)
        assert (done.returncode == 0) is (not name), done.stderr
        assert not name or f"the body of {name} is not written yet" in done.stderr


STATEMENTS = st.sampled_from(
    [
        "x = tl.load(X)",
        "if True:\n    x = 1\nelse:\n    x = 2",
        "for i in range(3):\n    # a comment\n    x = i",
        "'text'",
        'y = """a\n  def k():\n@triton.jit\n"""',
        "pass  # é",
        "# alone\nx = 3",
        "def inner(a):\n    return a",
        '"what it does"; x = 4',
    ]
)
FUNCTIONS = st.lists(st.tuples(st.sampled_from("abc"), st.booleans(), st.lists(STATEMENTS, min_size=1)), min_size=1)


@given(FUNCTIONS, st.sets(st.sampled_from("abc"), min_size=1))
def test_only_bodies_of_kernels_change(functions: list[tuple[str, bool, list[str]]], wanted: set[str]) -> None:
    text = IMPORTS
    for name, kernel, statements in functions:
        body = indent("\n".join(statements) + "\npass\n", "    ")
        text += ("@triton.jit\n" if kernel else "") + f"def {name}(X, B: tl.constexpr):\n{body}\n\n"
    names = {name for name, kernel, _ in functions if kernel} & wanted
    done = emptied("k.py", text, *sorted(wanted))
    if not names:
        assert isinstance(done, Reason)
        return
    assert isinstance(done, str)
    before, after = (ast.parse(source).body for source in (text, done))
    assert len(before) == len(after)
    for old, new in zip(before, after, strict=True):
        if isinstance(old, ast.FunctionDef) and old.decorator_list and old.name in wanted:
            assert isinstance(new, ast.FunctionDef)
            assert "static_assert" in ast.unparse(new.body[-1])
            assert len(new.body) == 1 + (ast.get_docstring(old, clean=False) is not None)
            old.body = new.body = []
        assert ast.dump(old) == ast.dump(new)
