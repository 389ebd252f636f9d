"""Collecting: ids with their functions and sizes, and errors by file."""

from __future__ import annotations

from harness_bench import Bench


def test_ids_carry_function_and_size(bench: Bench) -> None:
    bench.write(
        "tests/test_a.py",
        """\
        import pytest
        @pytest.mark.parametrize("shape", [(2, 3), [4, (5, 1)]])
        @pytest.mark.parametrize("n,flag,scale,name", [(8, True, 0.5, "a[b]"), (0, False, -1, None)])
        def test_sizes(shape, n, flag, scale, name): pass
        class TestA:
            class TestB:
                @pytest.mark.parametrize("m", [7])
                def test_nested(self, m): pass
        def test_plain(): pass
        """,
    )
    found = bench.collect("tests/test_a.py")
    assert [(i.function, i.size) for i in found.ids] == [
        ("tests/test_a.py::test_sizes", 48),
        ("tests/test_a.py::test_sizes", 160),
        ("tests/test_a.py::test_sizes", 6),
        ("tests/test_a.py::test_sizes", 20),
        ("tests/test_a.py::TestA::TestB::test_nested", 7),
        ("tests/test_a.py::test_plain", 1),
    ]
    assert {i.file for i in found.ids} == {"tests/test_a.py"}
    assert found.ids[0].id == "tests/test_a.py::test_sizes[8-True-0.5-a[b]-shape0]"
    assert found.complete and found.ending == "ok" and found.errors == {}


def test_a_file_that_does_not_import_hides_no_other(bench: Bench) -> None:
    bench.write("test_exit.py", "import pytest; pytest.exit('enough')\n")
    bench.write("test_import.py", "from no_such_module import kernel\n")
    bench.write("test_syntax.py", "def (\n")
    bench.write("test_skip.py", "import pytest; pytest.skip('elsewhere', allow_module_level=True)\n")
    bench.write("test_good.py", "def test_1(): pass\n")
    names = ("exit", "import", "syntax", "skip", "absent", "good")
    found = bench.collect(*(f"test_{name}.py" for name in names))
    assert [i.id for i in found.ids] == ["test_good.py::test_1"]
    assert {part.node: part.error for part in found.uncollected} == {
        "test_absent.py": "FileNotFoundError",
        "test_exit.py": "Exit",
        "test_import.py": "ModuleNotFoundError",
        "test_syntax.py": "SyntaxError",
        "test_skip.py": "Skipped",
    }
    assert "test_skip.py" not in found.errors and "no_such_module" in found.errors["test_import.py"]
    assert found.complete


def test_a_file_that_never_ends_importing_leaves_an_incomplete_collection(bench: Bench) -> None:
    bench.write("test_a.py", "while True: pass\n")
    found = bench.collect("test_a.py", wall_s=3)
    assert found.ids == () and not found.complete and found.ending.startswith("timed out")


def test_nothing_is_run(bench: Bench) -> None:
    bench.write("test_a.py", "import os\ndef test_1(): os._exit(1)\n")
    assert [i.id for i in bench.collect("test_a.py").ids] == ["test_a.py::test_1"]
