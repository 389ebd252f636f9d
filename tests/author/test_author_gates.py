"""What a design may not be, told before anything is run: one hostile or careless design after the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smith import sample
from smith.author import gates
from smith.author.compose import Refused, repaired, sections_of, stage
from smith.author.documents import gather
from smith.author.extra_tests import LIBRARIES, faults
from smith.errors import RecordError
from smith.freeze.bundle import Bundle, Store
from smith.freeze.freeze import Frozen, freeze
from smith.git.mirrors import open_upstream
from smith.git.trees import tree_of_folder
from smith.grade.trial import Bench
from smith.mine import mine
from smith.records.authoring import Design, Repair
from smith.records.receipt import Receipt, Verdict
from smith.sandbox.bubblewrap import Bubblewrap
from tests.author import author_answers as answers


def judged(data: Store, bundle: Bundle, receipt: Receipt, tmp_path: Path, **more: Any) -> list[str]:
    """The reasons against a design, as ``code: detail``; the bundle must stay as it was."""
    design = Design.parse(answers.design(**more), "design")
    documents = gather(data, bundle, receipt)
    try:
        staged = stage(data, Bench(data, Bubblewrap(), "cpu"), bundle, design, tmp_path / "staged")
        reasons = gates.check(data, bundle, documents, design, staged)
    except Refused as refused:
        reasons = list(refused.reasons)
    assert tree_of_folder(data.scratch, bundle.path) == bundle.tree
    return [str(reason) for reason in reasons]


def test_a_good_design_passes_and_only_its_parts_change(
    data: Store, bundle: Bundle, receipt: Receipt, tmp_path: Path
) -> None:
    assert judged(data, bundle, receipt, tmp_path) == []
    made = data.load_folder(tmp_path / "staged", bundle.id)
    assert made.tree != bundle.tree
    assert sections_of(made.instruction) == sections_of(bundle.instruction)
    assert made.instruction.startswith("# RMS norm ignores a column")
    assert made.selection.authored == ("tests/test_extra_columns.py",)
    assert [(p.name, p.kind) for p in made.probes] == [("twice", "wrong"), ("one_sum", "alternative")]
    assert made.reference == bundle.reference
    assert made.file == bundle.file


SAID = answers.design()["description"]
LEAKS = {
    "the fix as code": SAID + "\n\n`if (cols % 2) even += in[cols - 1] * in[cols - 1];`",
    "the fix in a fence": SAID + "\n\n```c\n" + answers.FIX + "```",
    "a hidden test": SAID + "\n\n```python\nx = torch.tensor([[0.0, 0.0, 3.0]])\n"
    "torch.testing.assert_close(rms_norm(x, torch.ones(3)), torch.tensor([[0.0, 0.0, 3.0**0.5]]))\n```",
}


@pytest.mark.parametrize("leak", LEAKS)
def test_what_gives_the_answer_away_is_refused(
    data: Store, bundle: Bundle, receipt: Receipt, tmp_path: Path, leak: str
) -> None:
    reasons = judged(data, bundle, receipt, tmp_path, description=LEAKS[leak])
    assert any(reason.startswith("answer_in_sight") for reason in reasons)


def test_a_requirement_that_gives_the_answer_away_is_refused(
    data: Store, bundle: Bundle, receipt: Receipt, tmp_path: Path
) -> None:
    requirement = answers.design()["requirements"][0]
    leaking = {**requirement, "statement": "Where it is odd, do even += in[cols - 1] * in[cols - 1] after the loop."}
    reasons = judged(data, bundle, receipt, tmp_path, requirements=[leaking])
    assert any(reason.startswith("answer_in_sight") for reason in reasons)


@pytest.mark.parametrize(
    ("description", "word"),
    [
        (SAID + "\n\n## Constraints\n\n- None at all.", "sections"),
        (SAID + "\n\n```\nnever closed", "sections"),
        (SAID + " See https://example.org/x for more.", "https://"),
        (SAID + " It was reported in #61.", "#61"),
        (SAID + " It came with 3f2a9c1b7d4e5f60.", "3f2a9c1b7d4e5f60"),
        (SAID + " \x1b[2J", "cannot be shown"),
        ("word " * 1590, "more than"),
    ],
)
def test_what_a_description_may_not_hold(
    data: Store, bundle: Bundle, receipt: Receipt, tmp_path: Path, description: str, word: str
) -> None:
    reasons = judged(data, bundle, receipt, tmp_path, description=description)
    assert any(reason.startswith("instruction") and word in reason for reason in reasons), reasons


@pytest.mark.parametrize(
    "quote",
    [
        {"document": answers.HIDDEN, "quote": "def test_native_rms_norm_of_an_even_width"},
        {"document": "hidden/tests/no_such.py", "quote": "def test"},
    ],
)
def test_evidence_that_is_not_there_is_refused(
    data: Store, bundle: Bundle, receipt: Receipt, tmp_path: Path, quote: dict[str, str]
) -> None:
    requirement = {**answers.design()["requirements"][0], "evidence": [quote]}
    reasons = judged(data, bundle, receipt, tmp_path, requirements=[requirement])
    assert [reason.partition(":")[0] for reason in reasons] == ["evidence"]


def edit(path: str, find: str, replace: str) -> dict[str, Any]:
    return answers.wrong(edits=[{"path": path, "find": find, "replace": replace}])


@pytest.mark.parametrize(
    ("solution", "code"),
    [
        (edit("solution/reference.patch", "", "diff"), "not_editable"),
        (edit("solution/reference.patch", "+        if", "-        if"), "no_such_file"),
        (edit("tests/test_native_rms_norm.py", "import pytest", "import torch"), "hidden_path"),
        (edit("tests/test_extra_columns.py", "", "def test_x(): pass"), "hidden_path"),
        (edit("minikernels/conftest.py", "", "x = 1"), "test_configuration"),
        (edit("pyproject.toml", "[project]", "[project] "), "not_editable"),
        (edit("../outside.c", "", "x"), "escapes_tree"),
        (edit(".git/hooks/pre-commit", "", "x"), "escapes_tree"),
        (edit(answers.SOURCE, "no such words", "x"), "edit_does_not_fit"),
        (edit(answers.SOURCE, "even", "x"), "edit_does_not_fit"),
        (edit(answers.SOURCE, answers.CALL, answers.CALL), "empty"),
    ],
)
def test_a_solution_touches_the_editable_source_and_nothing_else(
    data: Store, bundle: Bundle, receipt: Receipt, tmp_path: Path, solution: dict[str, Any], code: str
) -> None:
    reasons = judged(data, bundle, receipt, tmp_path, wrong=[solution])
    assert reasons
    assert reasons[0].startswith(f"{code}: wrong/twice: "), reasons


def test_an_extra_test_that_needs_what_only_the_reference_has_is_refused(
    data: Store, bundle: Bundle, receipt: Receipt, tmp_path: Path
) -> None:
    content = answers.EXTRA_TEST.replace("native.rms_norm import rms_norm", "native.rms_norm_odd import rms_norm")
    test = {**answers.design()["tests"][0], "content": content.replace("import torch\n", "import torch\nimport os\n")}
    reasons = judged(data, bundle, receipt, tmp_path, tests=[test])
    assert any(reason.startswith("extra_test") and "imports os" in reason for reason in reasons)


def test_an_instruction_must_go_on_naming_what_hidden_tests_use(data: Store, tmp_path: Path) -> None:
    """A data repository's own template may leave out the sections: then the interface is lost, and that is seen."""
    upstream = open_upstream(sample.URL, data.layout.mirrors)
    (candidate,) = mine(upstream.repository, repo=upstream.repo, url=upstream.url, numbers=(3,)).candidates
    frozen = freeze(candidate, upstream, data)
    assert isinstance(frozen, Frozen)
    bundle = data.load(frozen.id)
    data.layout.prompts.mkdir()
    template = data.layout.prompts / "authored-instruction.md.j2"
    design = Design.parse(answers.design(title="Missing: rotary embedding", tests=[], wrong=[], alternatives=[]), "d")
    receipt = Receipt(task=bundle.id, tree=bundle.tree, device="interpreter:gfx942", verdict=Verdict.VALID)
    documents = gather(data, bundle, receipt)
    lost: dict[str, list[str]] = {}
    for name, text in (("kept", "# {{ title }}\n\n{{ sections }}\n"), ("lost", "# {{ title }}\n\nAdd rope.\n")):
        template.write_text(text)
        staged = stage(data, Bench(data, Bubblewrap(), "cpu"), bundle, design, tmp_path / name)
        reasons = map(str, gates.check(data, bundle, documents, design, staged))
        lost[name] = [reason for reason in reasons if reason.startswith("unspecified_interface")]
    assert lost["kept"] == []
    assert len(lost["lost"]) == 1
    assert "minikernels.ops.rope.rope" in lost["lost"][0]


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ("def test_x(:\n    pass\n", "no Python"),
        ("import torch\n\n\ndef check():\n    assert True\n", "has no test function"),
        ("def test_x():\n    print(1)\n", "checks nothing"),
        ("def test_x():\n    assert 'cols' in open('x.c').read()\n", "uses open"),
        ("from pathlib import Path\n\n\ndef test_x():\n    assert Path('x').read_text()\n", "imports pathlib"),
        ("import inspect\n\n\ndef test_x():\n    assert inspect.getsource(test_x)\n", "uses getsource"),
        ("import pytest\n\n\n@pytest.mark.skip\ndef test_x():\n    assert 0\n", "uses skip"),
        ("def test_x():\n    assert __import__('os')\n", "uses __import__"),
        ("def test_x():\n    assert (lambda: 0).__globals__\n", "uses __globals__"),
    ],
)
def test_extra_tests_check_behaviour(content: str, word: str) -> None:
    assert any(word in fault for fault in faults(content, LIBRARIES))


def test_extra_tests_may_use_helpers_and_classes() -> None:
    content = "def check(x):\n    assert x\n\n\nclass TestIt:\n    def test_x(self):\n        check(1)\n"
    assert faults(content, LIBRARIES) == []


# -- repairs ----------------------------------------------------------------------------------------------------

DESIGN = Design.parse(answers.design(), "design")


@pytest.mark.parametrize(
    "document",
    ["solution/reference.patch", answers.SOURCE, "tests/test_native_rms_norm.py", "wrong/twice", "instruction.md", ""],
)
def test_a_repair_reaches_no_further_than_the_design(document: str) -> None:
    given = answers.repair(edits=[{"document": document or "reference", "find": "a", "replace": "b"}])
    with pytest.raises(Refused, match="not_repairable"):
        repaired(DESIGN, Repair.parse(given, "repair"))


def test_a_repair_has_no_field_for_reference_or_source() -> None:
    for key in ("reference", "source", "selection", "patch"):
        with pytest.raises(RecordError, match="no known key"):
            Repair.parse(answers.repair(**{key: "x"}), "repair")


def test_a_repair_edits_replaces_adds_and_removes() -> None:
    content = answers.EXTRA_TEST.replace("[5, 7]", "[9]")
    given = answers.repair(
        tests=[{"name": "more", "purpose": "Another width.", "content": content}],
        wrong=[answers.wrong(focus="Counts the last column twice, whatever the width.")],
        remove=["tests/columns", "alternatives/one_sum"],
    )
    after = repaired(DESIGN, Repair.parse(given, "repair"))
    assert "wrong results" in after.description
    assert [t.name for t in after.tests] == ["more"]
    assert [s.focus[:6] for s in after.wrong] == ["Counts"]
    assert after.alternatives == ()
    assert after.requirements == DESIGN.requirements


def test_a_repair_of_a_part_that_is_not_there_is_refused() -> None:
    with pytest.raises(Refused, match="no such part"):
        repaired(DESIGN, Repair.parse(answers.repair(remove=["wrong/other"]), "repair"))


def test_a_repair_cannot_make_what_no_design_could_be() -> None:
    many = [answers.wrong(name=f"w{n}") for n in range(8)]
    with pytest.raises(Refused, match="not_a_design"):
        repaired(DESIGN, Repair.parse(answers.repair(wrong=many), "repair"))


@given(find=st.text(min_size=1, max_size=30), replace=st.text(max_size=30))
def test_whatever_a_repair_says_only_the_named_text_changes(find: str, replace: str) -> None:
    given = Repair.parse(answers.repair(edits=[{"document": "title", "find": find, "replace": replace}]), "repair")
    try:
        after = repaired(DESIGN, given)
    except Refused:
        return
    assert DESIGN.title.count(find) == 1
    assert after.model_copy(update={"title": DESIGN.title}) == DESIGN
