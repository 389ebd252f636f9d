"""Finding the answer in a reply, and answers that are kept under a digest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smith.author.answers import Answers, digest_of, folder_name
from smith.author.extract import json_object
from smith.errors import RecordError, Stale
from smith.records.authoring import Answer, Design
from tests.author import author_answers as answers

OBJECT = st.dictionaries(st.text(max_size=5), st.text(max_size=20) | st.integers() | st.none(), max_size=4)


@given(
    OBJECT,
    st.sampled_from(["{}", "```json\n{}\n```", "Here:\n```\n{}\n```\nDone.", "<think>{{x}}</think>\n{}", "So:\n{}"]),
)
def test_an_object_is_found_whatever_is_wrapped_around_it(data: dict[str, object], around: str) -> None:
    wrapped = around.replace("{{x}}", "{x}").replace("{}", json.dumps(data), 1)
    assert json_object(wrapped) == data


@given(st.text(alphabet='{}[]"\\`json \nu0d8<think>/', max_size=80))
def test_no_reply_is_too_odd(reply: str) -> None:
    found = json_object(reply)
    assert found is None or isinstance(found, dict)


def answer(**more: object) -> Answer:
    fields = {"task": answers.TASK, "binding": "a" * 64, "role": "design", "number": 1, "model": "m"}
    return Answer.parse({**fields, "design": answers.design(), **more}, "answer")


def test_a_kept_answer_is_used_again_only_for_what_it_was_given_for(tmp_path: Path) -> None:
    kept = Answers(tmp_path, answers.TASK, "a" * 64, strict=False)
    kept.put(answer())
    assert kept.get("design", 1, None) == answer()
    assert kept.get("design", 2, None) is None
    assert kept.get("design", 1, "b" * 64) is None
    assert Answers(tmp_path, answers.TASK, "c" * 64, strict=False).get("design", 1, None) is None
    assert Answers(tmp_path, "lab__tiny-1", "a" * 64, strict=False).get("design", 1, None) is None
    with pytest.raises(Stale, match="another source"):
        Answers(tmp_path, answers.TASK, "c" * 64, strict=True).get("design", 1, None)


def test_a_broken_answer_is_asked_for_anew_or_named(tmp_path: Path) -> None:
    (tmp_path / "01-design.json").write_text("{")
    assert Answers(tmp_path, answers.TASK, "a" * 64, strict=False).get("design", 1, None) is None
    with pytest.raises(RecordError, match=r"01-design\.json"):
        Answers(tmp_path, answers.TASK, "a" * 64, strict=True).get("design", 1, None)


def test_an_answer_holds_what_its_role_says_and_nothing_else() -> None:
    with pytest.raises(RecordError, match="nothing else"):
        answer(review=answers.review())
    with pytest.raises(RecordError, match="nothing else"):
        answer(role="review")


def test_a_digest_is_of_the_content() -> None:
    design = Design.parse(answers.design(), "design")
    assert digest_of(design) == digest_of(Design.parse(json.loads(design.dumps()), "again"))
    assert digest_of(design) != digest_of(design.model_copy(update={"title": "Another title of it"}))


def test_models_have_folders_of_their_own() -> None:
    names = ["gpt-5", "org/model", "org-model", "org model", "../..", "", "m" * 200]
    folders = [folder_name(name) for name in names]
    assert len(set(folders)) == len(names)
    assert all("/" not in folder and not folder.startswith(".") for folder in folders)
