"""A task of the sample upstream authored from end to end: scripted model, real gates, real runs in the sandbox."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from smith.freeze.bundle import Bundle, Store
from smith.records.receipt import Receipt
from tests.author import author_answers as answers
from tests.author.author_answers import TASK
from tests.author.model_endpoint import Say, in_turn, serving
from tests.author.test_author_command import author, run

# Two validations with probes: minutes on a busy machine.
pytestmark = [pytest.mark.timeout(1800), pytest.mark.slow]

HARMLESS = answers.wrong(
    focus="Claims to be wrong and is not.",
    edits=[{"path": answers.SOURCE, "find": answers.CALL, "replace": answers.FIX + answers.CALL + "\n"}],
)


def test_from_the_first_question_to_a_better_bundle(
    data: Store, bundle: Bundle, sandbox_name: str, tmp_path: Path
) -> None:
    misquoted = answers.review(answers.fault(quote="these words are not there"))
    minor = answers.fault(quote="wrong results", severity="minor")
    script = in_turn(
        *map(
            Say,
            map(
                answers.text,
                [
                    answers.investigation(),
                    answers.design(wrong=[HARMLESS]),
                    answers.repair(wrong=[answers.wrong()]),
                    misquoted,
                    answers.review(minor),
                ],
            ),
        )
    )
    with serving(script) as endpoint:
        done = author(data, endpoint, "--repeats", "2", "--json")
        assert done.returncode == 0, done.stderr
        assert endpoint.roles == ["investigate", "design", "repair", "review", "review"]
        said = json.loads(done.stdout)
        # A wrong solution that every test lets pass is no wrong one: the first design was refused by running it.
        first, second = said["attempts"]
        assert first["reasons"] == ["wrong_passes: twice: every hidden test passes on it"]
        assert second == {"number": 2, "accepted": True, "reasons": [], "extra_tests": 1, "wrong": 1, "alternatives": 1}
        assert "does not contain 'these words are not there'" in endpoint.asked[4].turns[2]
        assert [f["severity"] for f in said["open_faults"]] == ["minor"]
        extra = [i for i in said["fail_to_pass"] if i.startswith("tests/test_extra_columns.py::")]
        assert len(extra) == 2
        old = Receipt.load(data.layout.receipt(TASK, bundle.tree, "cpu"))
        assert set(old.fail_to_pass) < set(said["fail_to_pass"])
        assert [(p["name"], p["as_expected"]) for p in said["probes"]] == [("twice", True), ("one_sum", True)]
        assert said["probes"][0]["failing"]
        assert "never with a real model" in said["not_proved"][0]

        made = data.load(TASK)
        assert said["tree"] == made.tree != bundle.tree
        receipt = Receipt.load(data.layout.receipt(TASK, made.tree, "cpu"))
        assert list(receipt.fail_to_pass) == said["fail_to_pass"]
        assert "gives wrong results" in made.instruction
        assert (made.reference, made.file) == (bundle.reference, bundle.file)

        # Authored once, it is not paid for again by accident; and freezing it again leaves it.
        again = author(data, endpoint, "--json")
        assert json.loads(again.stdout)["already"] is True
        assert len(endpoint.asked) == 5
    frozen = json.loads(run(data, "freeze", "smith:sample", "--pr", "60", "--json").stdout)
    assert frozen["tasks"][0]["tree"] == made.tree

    # Extra tests are graded, and no submission can put a file in their place.
    for name, verdict in (("one_sum", "solved"), ("twice", "failed")):
        patch = made.path / "solution" / "probes" / f"{name}.patch"
        graded = json.loads(run(data, "grade", TASK, str(patch), "--json").stdout)
        assert graded["verdict"] == verdict, graded
    cheat = tmp_path / "cheat.patch"
    path = "tests/test_extra_columns.py"
    cheat.write_text(
        f"diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x = 1\n"
    )
    graded = json.loads(run(data, "grade", TASK, str(cheat), "--json").stdout)
    assert (graded["verdict"], graded["reasons"][0].partition(":")[0]) == ("invalid_patch", "hidden_path")


@pytest.mark.slow
def test_prepared_answers_give_the_same_bundle_without_a_call(
    data: Store, bundle: Bundle, sandbox_name: str, tmp_path: Path
) -> None:
    script = in_turn(
        Say(answers.text(answers.investigation())),
        Say(answers.text(answers.design())),
        Say(answers.text(answers.review())),
    )
    with serving(script) as endpoint:
        said = json.loads(author(data, endpoint, "--repeats", "2", "--json").stdout)
    assert said["accepted"] is True
    kept = tmp_path / "kept"
    (data.layout.root / said["answers"]).rename(kept)
    with_extra = data.load(TASK)
    # The note is gone with the answers, so that freezing makes the plain bundle again.
    run(data, "freeze", "smith:sample", "--pr", "60")
    assert data.load(TASK).tree == bundle.tree
    again = json.loads(run(data, "author", TASK, "--answers", str(kept), "--repeats", "2", "--json").stdout)
    assert again["tree"] == said["tree"] == with_extra.tree
    assert (again["calls"]["sent"], again["calls"]["reused"]) == (0, 3)
