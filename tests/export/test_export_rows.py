"""Rows and predictions through files and back: nothing that the format can hold is lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smith.errors import RecordError, Unavailable
from smith.export.predictions import (
    Prediction,
    folder_of,
    model_of,
    read_predictions,
    to_patches,
    write_predictions,
)
from smith.export.rows import (
    FAIL_TO_PASS,
    PERF_TARGET,
    Row,
    instance_of,
    read_rows,
    task_of,
    write_documents,
    write_rows,
)
from smith.export.swebench import Refused

# What JSON can hold: every character, line separators of all kinds among them, but no half of one.
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
patches = st.one_of(
    text,
    st.sampled_from(
        [
            "",
            "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\r\n+b\r\n",
            "diff --git a/é b/é\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b",
            "one\x85two\u2028three\u2029four\x0cfive\x1c",
            "diff --git a/a b/b\nsimilarity index 100%\nrename from a\nrename to b\n",
        ]
    ),
)
scalars: st.SearchStrategy[Any] = st.one_of(st.none(), st.booleans(), st.integers(), text)
columns = st.dictionaries(text, st.one_of(scalars, st.lists(text), st.dictionaries(text, scalars, max_size=3)))
names = st.from_regex(r"[a-z0-9]{1,5}__[a-z0-9]{1,5}-[0-9]{1,4}", fullmatch=True)


@given(st.lists(st.tuples(names, patches, columns), max_size=4), st.sampled_from(["jsonl", "json"]))
def test_rows_survive_a_file(
    tmp_path_factory: pytest.TempPathFactory, given_rows: list[tuple[str, str, dict[str, Any]]], suffix: str
) -> None:
    path = tmp_path_factory.mktemp("rows") / f"rows.{suffix}"
    rows = [Row({**more, "instance_id": name, "patch": patch}) for name, patch, more in given_rows]
    write_rows(path, rows)
    assert [row.columns for row in read_rows(path)] == [row.columns for row in rows]
    # Stock SWE-bench reads JSON lines so, and must see the same rows.
    if suffix == "jsonl":
        assert [json.loads(line) for line in path.read_text().splitlines()] == [row.columns for row in rows]


@given(st.lists(text), st.booleans())
def test_tests_are_read_from_lists_and_from_json_strings(tests: list[str], as_text: bool) -> None:
    row = Row({"FAIL_TO_PASS": json.dumps([*tests, PERF_TARGET]) if as_text else [*tests, PERF_TARGET]})
    assert row.fail_to_pass == tuple(tests) and PERF_TARGET in row.tests(FAIL_TO_PASS)
    assert row.pass_to_pass == ()


@pytest.mark.parametrize("broken", ["[", 3, [1], {"a": 1}, '{"a": 1}', '"a"', "[1]"])
def test_a_list_of_tests_that_is_none_is_refused_with_its_place(broken: Any) -> None:
    with pytest.raises(RecordError, match=r"f:3: a__b-1: PASS_TO_PASS"):
        Row({"instance_id": "a__b-1", "PASS_TO_PASS": broken}, "f:3").tests("PASS_TO_PASS")


def test_a_file_tells_its_form_by_its_content(tmp_path: Path) -> None:
    one, two = {"instance_id": "a__b-1", "x": 1}, {"instance_id": "a__b-2", "x": None}
    forms = {
        "lines.json": "\n".join(map(json.dumps, (one, two))) + "\n\n",
        "list.json": json.dumps([one, two], indent=2),
        "object.json": json.dumps({"a__b-1": {"x": 1}, "a__b-2": two}),
    }
    for name, content in forms.items():
        (tmp_path / name).write_text(content)
        assert [row.columns for row in read_rows(tmp_path / name)] == [one, two], name
    (tmp_path / "single.json").write_text(json.dumps(one, indent=2))
    assert [row.columns for row in read_rows(tmp_path / "single.json")] == [one]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"instance_id": "a__b-1"}\n{broken\n', r"rows\.jsonl:2: not JSON"),
        ('{"instance_id": "a__b-1"}\n[]\n', r"rows\.jsonl:2: is no object"),
        ('{"patch": ""}\n', r"rows\.jsonl:1: is no object with an instance_id"),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "rows.jsonl").write_text(content)
    with pytest.raises(RecordError, match=said):
        read_rows(tmp_path / "rows.jsonl")


def test_parquet_works_or_says_what_is_missing(tmp_path: Path) -> None:
    rows = [Row({"instance_id": "a__b-1", "FAIL_TO_PASS": ["t::é[0, 1]"], "patch": "a\r\nb", "meta": {"n": 1}})]
    path = tmp_path / "rows.parquet"
    try:
        import pyarrow  # type: ignore[import-not-found,unused-ignore]  # noqa: F401
    except ImportError:
        with pytest.raises(Unavailable, match="pip install pyarrow"):
            write_rows(path, rows)
        path.write_bytes(b"PAR1")
        with pytest.raises(Unavailable, match="pip install pyarrow"):
            read_rows(path)
    else:
        write_rows(path, rows)
        assert [row.columns for row in read_rows(path)] == [row.columns for row in rows]


def test_an_unknown_form_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"name it \.jsonl"):
        write_documents(tmp_path / "rows.csv", [])


@given(st.from_regex(r"[a-z0-9][a-z0-9._-]{0,8}__[a-z0-9._-]{1,8}-[0-9]{1,4}(~[a-z]{1,8})?", fullmatch=True))
def test_task_ids_survive_as_instance_ids(task: str) -> None:
    assert task_of(instance_of(task)) == task
    assert "~" not in instance_of(task)


predictions = st.builds(Prediction, names, text, st.one_of(st.none(), patches))


@given(st.lists(predictions, max_size=4), st.sampled_from(["jsonl", "json"]))
def test_predictions_survive_a_file(
    tmp_path_factory: pytest.TempPathFactory, made: list[Prediction], suffix: str
) -> None:
    path = tmp_path_factory.mktemp("predictions") / f"p.{suffix}"
    write_predictions(path, made)
    assert read_predictions(path) == made


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20))
def test_a_models_name_survives_as_a_folder(model: str) -> None:
    folder = folder_of(model)
    assert model_of(folder) == model
    assert "/" not in folder and not folder.startswith(".") and "\0" not in folder


@given(st.dictionaries(st.tuples(names, st.sampled_from(["m", "a/b", "..", "é ü"])), patches, max_size=4))
def test_patches_are_written_byte_for_byte(
    tmp_path_factory: pytest.TempPathFactory, made: dict[tuple[str, str], str]
) -> None:
    out = tmp_path_factory.mktemp("patches")
    written = list(to_patches([Prediction(name, model, patch) for (name, model), patch in made.items()], out))
    assert len(written) == len(made) == len(list(out.glob("*/*.patch")))
    for (name, model), patch in made.items():
        assert (out / folder_of(model) / f"{name}.patch").read_bytes() == patch.encode()


def test_what_is_no_submission_is_refused_by_name(tmp_path: Path) -> None:
    given = [
        Prediction("ROCm__aiter-5", "m", "x"),
        Prediction("rocm__aiter-5", "m", "y"),
        Prediction("../../etc-1", "m", "x"),
        Prediction("a__b-1", "m", None),
        Prediction("a__b-2", "m", "\ud83d"),
        Prediction("a__b-3", "", "x"),
        Prediction("a__b-4", "n" * 300, "x"),
    ]
    results = list(to_patches(given, tmp_path / "out"))
    assert results[0] == tmp_path / "out" / "m" / "rocm__aiter-5.patch"
    codes = [one.reason.code for one in results if isinstance(one, Refused)]
    assert codes == ["twice", "no_task_id", "no_patch", "not_utf8", "no_folder", "no_folder"]
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == ["rocm__aiter-5.patch"]
    assert (tmp_path / "out" / "m" / "rocm__aiter-5.patch").read_text() == "x"


def test_an_absent_patch_and_name_are_read_as_swebench_reads_them(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    path.write_text('{"a__b-1": {"model_patch": null}, "a__b-2": {"model_patch": 3}}')
    with pytest.raises(RecordError, match="a__b-2: model_patch is int"):
        read_predictions(path)
    path.write_text('{"a__b-1": {"model_patch": null}}')
    assert read_predictions(path) == [Prediction("a__b-1", "None", None)]
