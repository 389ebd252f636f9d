"""Records: frozen, unknown keys forbidden, one line for a fault, the same bytes for the same value."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smith.cli.schema import RECORDS
from smith.errors import RecordError
from smith.records.base import Reason
from smith.records.panel import Panel, PanelTask
from smith.records.receipt import Receipt, Verdict
from smith.records.recipe import EnvironmentChoice, Recipe
from smith.records.results import Failure

OID = st.text("0123456789abcdef", min_size=40, max_size=40)
TASK = st.from_regex(r"\A[a-z0-9]{1,8}__[a-z0-9._-]{1,8}-[0-9]{1,4}\Z")
TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=40)

RECEIPTS = st.builds(
    Receipt,
    task=TASK,
    tree=OID,
    device=st.sampled_from(["interpreter:gfx942", "cpu"]),
    verdict=st.sampled_from(Verdict),
    reasons=st.lists(st.builds(Reason, code=st.just("no_tests"), detail=TEXT), max_size=2).map(tuple),
    fail_to_pass=st.lists(TEXT, max_size=3).map(tuple),
    base_failures=st.dictionaries(TEXT, st.sampled_from(Failure), max_size=2),
    launches=st.dictionaries(TEXT, st.integers(0, 9), max_size=2),
)
PANELS = st.builds(
    Panel,
    name=st.just("sample"),
    description=TEXT,
    tasks=st.lists(
        st.builds(PanelTask, id=TASK, tree=OID, receipts=st.dictionaries(st.just("cpu"), OID, max_size=1)),
        max_size=3,
        unique_by=lambda t: t.id,
    ).map(tuple),
)


@given(RECEIPTS)
def test_a_receipt_survives_its_file(receipt: Receipt) -> None:
    assert Receipt.loads(receipt.dumps(), "r.json") == receipt
    assert Receipt.loads(receipt.dumps(), "r.json").dumps() == receipt.dumps()


@given(PANELS)
def test_a_panel_survives_toml(panel: Panel) -> None:
    assert Panel.loads(panel.dumps_toml(), "p.toml") == panel


# Made once: making the schema and checking it against its own takes longer than an example does.
RECEIPT_SCHEMA = jsonschema.Draft202012Validator(Receipt.model_json_schema())


@given(RECEIPTS)
def test_what_is_written_fits_the_exported_schema(receipt: Receipt) -> None:
    RECEIPT_SCHEMA.validate(json.loads(receipt.dumps()))


@pytest.mark.parametrize("name", RECORDS)
def test_every_schema_forbids_unknown_keys(name: str) -> None:
    schema = RECORDS[name].model_json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["additionalProperties"] is False


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"name = 'x'\n", "tasks is missing"),
        (b"name = 'x'\ntasks = []\nsurprise = 1\n", "surprise is no known key"),
        (b"name = 'x'\ntasks = []\nschema_version = 2\n", "schema_version"),
        (b"name = ", "not TOML"),
        (b"\xff\xfe", "not TOML"),
    ],
)
def test_a_fault_is_one_line_that_names_file_and_key(data: bytes, words: str) -> None:
    with pytest.raises(RecordError) as caught:
        Panel.loads(data, "panels/x.toml")
    assert words in str(caught.value)
    assert "panels/x.toml" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="no such file"):
        Panel.load(tmp_path / "nowhere.toml")


def test_a_task_may_be_listed_once_only() -> None:
    task = {"id": "a__b-1", "tree": "0" * 40, "receipts": {}}
    with pytest.raises(RecordError, match="once only"):
        Panel.parse({"name": "x", "tasks": [task, task]}, "x")


def test_records_are_frozen() -> None:
    panel = Panel(name="x", tasks=())
    with pytest.raises(ValueError, match="frozen"):
        panel.name = "y"  # type: ignore[misc]


@given(st.dates(date(2020, 1, 1), date(2030, 1, 1)))
def test_environments_of_the_era_come_first_and_none_is_lost(day: date) -> None:
    recipe = Recipe(
        repo="o/r",
        environments=(
            EnvironmentChoice(name="new", merged_after=date(2025, 1, 1)),
            EnvironmentChoice(name="old", merged_before=date(2025, 1, 1)),
            EnvironmentChoice(name="any"),
        ),
    )
    order = [e.name for e in recipe.candidates(day)]
    assert sorted(order) == ["any", "new", "old"]
    assert order[0] == ("new" if day >= date(2025, 1, 1) else "old")
    assert order[-1] == ("old" if day >= date(2025, 1, 1) else "new")
