"""A task repository as ``swebench`` 5 reads it: a folder a task, from which it builds images and datasets.

``sweb.yaml`` names the dataset; ``tasks/<instance>/`` holds what a row holds, each long column as a file of its own,
and the build context of its image. ``swebench dataset check`` and ``swebench dataset build`` read it.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import smith
from smith.errors import BadInput
from smith.export import meets_target
from smith.export.rows import FAIL_TO_PASS, PASS_TO_PASS
from smith.export.script import TARGET, dockerfile
from smith.export.swebench import SPLIT, Exported
from smith.freeze.bundle import Bundle, Store
from smith.git.trees import materialise
from smith.harness.stage import PRELUDE, SHOWN
from smith.paths import replacing

CONFIG, TASK, TESTS = "sweb.yaml", "task.yaml", "tests.json"
FILES = {
    "patch": "gold.patch",
    "test_patch": "test.patch",
    "eval_script": "eval.sh",
    "problem_statement": "problem_statement.md",
    "hints_text": "hints.md",
}
"""Columns that are files of their own."""

_LINE_ENDS = re.compile("[\x7f-\x9f\u2028\u2029\ufeff]")


def write_task_repository(store: Store, folder: Path, exported: Sequence[Exported], dataset: str) -> None:
    """Write ``folder`` whole, or leave it as it was.

    Raises :class:`BadInput` where something else than a task repository is there.
    """
    if folder.exists() and not (folder / CONFIG).is_file() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInput(f"{folder} is there, and no task repository", hint="name a new folder")
    with replacing(folder) as fresh:
        (fresh / CONFIG).write_text(_yaml({"datasets": [dataset], "splits": [SPLIT]}), "utf-8")
        for one in exported:
            place = fresh / "tasks" / one.row.instance_id
            place.mkdir(parents=True)
            _write_task(place, dict(one.row.columns), dataset)
            _write_context(store, one.bundle, place)


def _write_task(place: Path, columns: dict[str, Any], dataset: str) -> None:
    tests = {key: columns.pop(key) for key in (FAIL_TO_PASS, PASS_TO_PASS)}
    for column, name in FILES.items():
        text = columns.pop(column)
        # Its loader takes an absent hints.md for an empty one, and wants none that is empty.
        if text or column != "hints_text":
            (place / name).write_bytes(text.encode("utf-8"))
    (place / TESTS).write_text(json.dumps(tests, indent=2, ensure_ascii=False) + "\n", "utf-8")
    (place / TASK).write_text(_yaml({**columns, "datasets": [dataset]}), "utf-8")


def _yaml(columns: dict[str, Any]) -> str:
    """YAML in which each value is JSON on its line. Escapes only what YAML takes for an end of line or refuses: an
    escaped character beyond the first plane would become two."""

    def value(data: Any) -> str:
        return _LINE_ENDS.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(data, ensure_ascii=False))

    return "".join(f"{key}: {value(columns[key])}\n" for key in sorted(columns))


def _write_context(store: Store, bundle: Bundle, place: Path) -> None:
    """What the image is built from: the frozen source, the bundle's environment, and what runs the tests."""
    shutil.copytree(bundle.path / "environment", place, dirs_exist_ok=True)
    (place / "Dockerfile").write_text(dockerfile(bundle), "utf-8")
    (place / "source").mkdir(exist_ok=True)
    materialise(store.scratch, bundle.spec.source.tree, place / "source")
    library, package = place / "smith-lib", Path(smith.__file__).parent
    for name in SHOWN:
        target = library / "smith" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (package / name).is_dir():
            shutil.copytree(package / name, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(package / name, target)
    if bundle.prelude is not None:
        shutil.copy(bundle.prelude, library / PRELUDE)
    if bundle.selection.workloads:
        shutil.copy(meets_target.__file__, library / TARGET)
