"""Seals of finished attempts: every change of any file of the evidence is found, by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smith.evaluate.seal import SEAL, altered, seal
from smith.freeze.bundle import Store
from tests.evaluate.model_world import smith
from tests.validate.tiny_tasks import TASK

NAMES = st.lists(st.sampled_from("abcd"), min_size=1, max_size=3).map("/".join)


@settings(max_examples=60, deadline=None)
@given(files=st.dictionaries(NAMES, st.binary(max_size=8), min_size=1, max_size=6), data=st.data())
def test_any_change_is_named(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("attempt")
    placed = {name: content for name, content in files.items() if not _inside_another(name, files)}
    for name, content in placed.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    assert altered(folder) is None
    seal(folder, "run", TASK, 1)
    assert altered(folder) == []
    before = (folder / SEAL).read_bytes()
    name = data.draw(st.sampled_from(sorted(placed)))
    how = data.draw(st.sampled_from(["changed", "gone", "link", "more"]))
    path = folder / name
    if how == "changed":
        path.write_bytes(placed[name] + b"!")
    elif how == "more":
        (path.parent / "zz").write_bytes(b"")
    else:
        path.unlink()
        if how == "link":
            path.symlink_to("elsewhere")
    found = altered(folder)
    assert found is not None and len(found) == 1
    assert found[0].startswith(str(Path(name).parent / "zz") if how == "more" else name)
    # What is sealed is not sealed again.
    seal(folder, "run", TASK, 1)
    assert (folder / SEAL).read_bytes() == before


def _inside_another(name: str, files: dict[str, bytes]) -> bool:
    return any(other != name and (name.startswith(f"{other}/")) for other in files)


def test_a_run_is_sealed_and_its_check_names_what_was_changed(tiny: Store) -> None:
    said = json.loads(smith(tiny, "eval", "tiny", "--agent", "oracle", "--attempts", "2", "--json"))
    assert "2 as sealed, 0 altered" in smith(tiny, "runs", "--check", said["run"])
    folder = tiny.layout.attempts(said["run"]) / TASK
    (folder / "001" / SEAL).unlink()
    assert "1 as sealed, 0 altered, 1 without a seal" in smith(tiny, "runs", "--check", "latest")
    # As after a kill between grade and seal.
    smith(tiny, "resume", said["run"])
    assert "2 as sealed, 0 altered" in smith(tiny, "runs", "--check", "latest")
    grade = folder / "002" / "grade.json"
    grade.write_bytes(grade.read_bytes().replace(b"solved", b"failed"))
    (folder / "001" / "note").write_text("mine")
    found = json.loads(smith(tiny, "runs", "--check", "latest", "--json", check=1))
    assert (found["sealed"], found["unsealed"]) == (0, [])
    assert found["altered"] == {f"{TASK}/001": ["note: was added"], f"{TASK}/002": ["grade.json: was changed"]}
