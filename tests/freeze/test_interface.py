"""What hidden tests use that the start lacks: found by parsing, with signatures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.freeze.freeze_worlds import Worlds, by_name

START = {
    "pkg/__init__.py": "from pkg.ops import scale\n",
    "pkg/ops.py": """
        def scale(x, factor=1.0):
            return x * factor

        def split(x):
            return x, x

        class Layer(Base):
            def __init__(self, width):
                self.width = width
            def forward(self, x):
                return x
        """,
}


@pytest.fixture
def worlds(tmp_path: Path) -> Iterator[Worlds]:
    made = Worlds(tmp_path / "w.git")
    with made.blobs:
        yield made


def ops(more: str) -> dict[str, str]:
    return {"pkg/ops.py": START["pkg/ops.py"] + more}


def test_nothing_is_needed_where_tests_use_what_is_there(worlds: Worlds) -> None:
    test = "from pkg import scale\nimport pkg.ops as o\n\ndef test_it():\n    assert o.split(scale(1, factor=2))\n"
    assert worlds.interface(START, ops("\n        ANY = 1\n"), {"tests/test_a.py": test}).items == ()


def test_a_new_function_is_listed_with_its_signature(worlds: Worlds) -> None:
    more = "\n        def norm(x, *, eps: float = 1e-6) -> Tensor:\n            secret = 1\n            return x\n"
    test = "from pkg.ops import norm\n\ndef test_it():\n    norm(1)\n"
    found = by_name(worlds.interface(START, ops(more), {"tests/test_a.py": test}))
    assert set(found) == {"norm"}
    assert found["norm"].signature == "def norm(x, *, eps: float=1e-06) -> Tensor: ..."
    assert found["norm"].module == "pkg.ops"
    assert "secret" not in found["norm"].signature


def test_a_name_that_a_package_newly_hands_on_is_listed(worlds: Worlds) -> None:
    test = "import pkg\n\ndef test_it():\n    pkg.split(1)\n"
    reference = {"pkg/__init__.py": "from pkg.ops import scale, split\n"}
    found = worlds.interface(START, reference, {"tests/test_a.py": test})
    assert not found.unnamed
    # ``split`` itself is there already; what is new is the place that it is taken from.
    assert [(i.name, i.module) for i in found.items] == [("split", "pkg")]


@pytest.mark.parametrize(
    ("call", "missing"),
    [
        ("scale(1, bias=2)", "parameter `bias`"),
        ("scale(1, 2.0, 3)", "3 positional arguments"),
        ("partial_(scale)(1) or scale(1, **{'bias': 1})", "parameter `bias`"),
        ("scale(1, **OPTIONS)", "parameter `bias`"),
    ],
)
def test_new_parameters_are_listed(worlds: Worlds, call: str, missing: str) -> None:
    reference = {"pkg/ops.py": START["pkg/ops.py"].replace("factor=1.0)", "factor=1.0, bias=0)")}
    test = f"from pkg.ops import scale\nOPTIONS = dict(bias=3)\n\ndef test_it():\n    {call}\n"
    found = by_name(worlds.interface(START, reference, {"tests/test_a.py": test}))
    assert found["scale"].missing == (missing,)
    assert "bias=0" in found["scale"].signature


def test_keywords_that_the_start_swallows_are_listed(worlds: Worlds) -> None:
    start = START | {"pkg/ops.py": START["pkg/ops.py"].replace("factor=1.0)", "**kwargs)").replace("* factor", "")}
    named = {"pkg/ops.py": start["pkg/ops.py"].replace("**kwargs)", "bias=0, **kwargs)")}
    handed_on = {"pkg/ops.py": start["pkg/ops.py"].replace("return x \n", "return x + kwargs.get('bias')\n")}
    test = "from pkg.ops import scale\n\ndef test_it():\n    scale(1, bias=2, other=3)\n"
    for reference in (named, handed_on):
        found = by_name(worlds.interface(start, reference, {"tests/test_a.py": test}))
        assert found["scale"].missing == ("parameter `bias`",)


def test_names_behind_a_star_beside_a_foreign_star_are_found(worlds: Worlds) -> None:
    start = START | {"pkg/__init__.py": "from torch import *\nfrom .ops import *\n"}
    test = "import pkg\n\ndef test_it():\n    pkg.norm(1)\n    pkg.scale(1)\n    pkg.tensor(1)\n"
    found = worlds.interface(start, ops("\n        def norm(x): ...\n"), {"tests/test_a.py": test})
    assert set(by_name(found)) == {"norm"}


def test_another_number_of_returned_values_is_listed(worlds: Worlds) -> None:
    reference = {"pkg/ops.py": START["pkg/ops.py"].replace("return x, x", "rest = x\n            return x, x, rest")}
    test = "from pkg.ops import split\n\ndef test_it():\n    a, b, c = split(1)\n"
    found = by_name(worlds.interface(START, reference, {"tests/test_a.py": test}))
    assert found["split"].missing == ("3 values returned",)
    assert found["split"].signature.endswith("# returns 3 values: x, x, rest")


def test_new_methods_attributes_and_constructor_parameters_of_a_class(worlds: Worlds) -> None:
    new = (
        START["pkg/ops.py"]
        .replace("(self, width):", "(self, width, depth=1):\n                self.depth = depth")
        .replace("            def forward", "            def reset(self, hard=False): ...\n            def forward")
    )
    test = """
        from pkg.ops import Layer
        def test_it():
            layer = Layer(4, depth=2).to("cpu")
            layer.reset()
            assert layer.depth == layer.width
        """
    found = by_name(worlds.interface(START, {"pkg/ops.py": new}, {"tests/test_a.py": test}))
    assert set(found["Layer"].missing) == {"parameter `depth` of `__init__`", "`reset`", "`depth`"}
    assert "def reset(self, hard=False): ..." in found["Layer"].signature
    assert "def __init__(self, width, depth=1): ..." in found["Layer"].signature
    assert "forward" not in found["Layer"].signature


def test_the_context_of_an_autograd_function_is_no_argument(worlds: Worlds) -> None:
    function = (
        "\n        class Scale(Function):\n            @staticmethod\n            def forward(ctx, x{}):\n"
        "                return x\n"
    )
    start = START | ops(function.format(""))
    test = "from pkg.ops import Scale\n\ndef test_it():\n    Scale.apply(1)\n    Scale.apply(1, 2)\n"
    found = by_name(worlds.interface(start, ops(function.format(", mode=0")), {"tests/test_a.py": test}))
    assert found["Scale"].missing == ("2 positional arguments of `forward`",)
    same = worlds.interface(start, ops(function.format("") + "\n        Z = 1\n"), {"tests/test_a.py": test[:60]})
    assert same.items == ()


def test_a_whole_new_module_is_named_by_what_is_used_of_it(worlds: Worlds) -> None:
    reference = {"pkg/fresh.py": "LIMIT = 8\n\ndef one(): ...\n\ndef two(): ...\n"}
    test = "import pkg.fresh as f\n\ndef test_it():\n    assert f.one() is f.LIMIT\n"
    found = by_name(worlds.interface(START, reference, {"tests/test_a.py": test}))
    assert set(found) == {"one", "LIMIT"}
    assert found["LIMIT"].signature == "LIMIT = 8"


def test_what_a_star_import_brings_is_named(worlds: Worlds) -> None:
    reference = {"pkg/fresh.py": "def one(): ...\n\ndef two(): ...\n"}
    test = "from pkg.fresh import *\n\ndef test_it():\n    one()\n"
    found = worlds.interface(START, reference, {"tests/test_a.py": test})
    assert "one" in by_name(found)
    assert "two" not in by_name(found)
    assert not found.unnamed


def test_names_that_a_new_module_makes_or_a_test_computes_cannot_be_named(worlds: Worlds) -> None:
    reference = {"pkg/fresh.py": "def __getattr__(name):\n    return name\n"}
    star = worlds.interface(START, reference, {"tests/test_a.py": "from pkg.fresh import *\n"})
    assert star.unnamed
    computed = "import pkg.fresh as f\n\ndef test_it(kind):\n    getattr(f, kind + '_fwd')()\n"
    assert worlds.interface(START, reference, {"tests/test_b.py": computed}).unnamed


def test_support_files_count_as_far_as_tests_import_them(worlds: Worlds) -> None:
    reference = ops("\n        def norm(x): ...\n\n        def other(x): ...\n")
    tests = {
        "tests/helpers.py": "from pkg.ops import norm\n",
        "tests/unused.py": "from pkg.ops import other\n",
        "tests/test_a.py": "from tests.helpers import norm\n",
    }
    assert set(by_name(worlds.interface(START, reference, tests))) == {"norm"}


def test_exceptions_and_strings_that_only_the_reference_knows(worlds: Worlds) -> None:
    new = START["pkg/ops.py"].replace(
        "return x * factor",
        "if factor == 'auto_mode':\n                raise ValueError('factor must not be auto')\n            return x",
    )
    test = """
        import pytest
        from pkg.ops import scale
        def test_it():
            scale(1, factor="auto_mode")
            with pytest.raises(ValueError, match="must not be"):
                scale(1)
            with pytest.raises(KeyError):
                scale(2)
        """
    items = worlds.interface(START, {"pkg/ops.py": new}, {"tests/test_a.py": test}).items
    told = [(i.kind, i.name, i.signature) for i in items]
    assert ("value", "auto_mode", "value of `factor` of `scale`") in told
    assert [t for t in told if t[0] == "error"] == [
        ("error", "scale", "`ValueError`, with a message that matches `must not be`")
    ]


def test_files_that_cannot_be_parsed_ask_for_nothing(worlds: Worlds) -> None:
    tests = {"tests/test_a.py": "def broken(:\n", "tests/test_b.py": "from pkg.ops import scale\n"}
    assert worlds.interface(START, {"pkg/ops.py": "print 'python 2'\n"}, tests).items == ()
