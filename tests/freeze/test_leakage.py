"""The answer in sight: in the frozen source, in the instruction, in the environment."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from smith.errors import Defect
from smith.freeze.leakage import SourceScan, check_no_history, environment_leaks, instruction_leaks
from smith.freeze.overlap import Addition
from smith.git.repository import Repository
from smith.records.task import LeakKind
from tests.freeze.freeze_worlds import Worlds
from tests.git.git_worlds import git

ANSWER = tuple(f"    value_{n} = combine(left_{n}, right_{n}, scale={n})" for n in range(10))
ADDITION = Addition({"pkg/k.py": ("import os", "", *ANSWER, "    return x")}, {"pkg/k.py": "def k(x):\n    return x\n"})
NONE = Addition({}, {})


@pytest.fixture
def worlds(tmp_path: Path) -> Iterator[Worlds]:
    made = Worlds(tmp_path / "w.git")
    with made.blobs:
        yield made


def scan(worlds: Worlds, files: dict[str, str], addition: Addition = ADDITION) -> SourceScan:
    return SourceScan(
        worlds.blobs, worlds.files({"pkg/k.py": "def k(x):\n    return x\n"} | files), addition, ["combine"]
    )


@pytest.mark.parametrize(
    ("path", "kind", "wrap"),
    [
        ("third_party/k.py", LeakKind.VENDORED, "{}\n"),
        ("docs/how.md", LeakKind.DOCUMENT, "{}\n"),
        ("CHANGELOG", LeakKind.DOCUMENT, "{}\n"),
        ("fix.patch", LeakKind.PATCH, "+{}\n"),
        ("build/lib/pkg/k.py", LeakKind.BUILD_OUTPUT, "{}\n"),
        ("pkg.egg-info/k.py", LeakKind.BUILD_OUTPUT, "{}\n"),
        ("other/k.py", LeakKind.SOURCE, "{}\n"),
    ],
)
def test_a_copy_of_the_answer_is_refused(worlds: Worlds, path: str, kind: LeakKind, wrap: str) -> None:
    text = "".join(wrap.format(line.strip()) for line in ANSWER)
    (leak,) = scan(worlds, {path: f"first\n{text}"}).leaks()
    assert (leak.kind, leak.action, leak.path, leak.line, leak.share) == (kind, "refused", path, 2, 1.0)
    assert "value_0" in leak.excerpt


def test_a_notebook_is_read_line_by_line(worlds: Worlds) -> None:
    cell = {"cells": [{"source": [f"{line}\n" for line in ANSWER]}]}
    (leak,) = scan(worlds, {"show.ipynb": json.dumps(cell, indent=1)}).leaks()
    assert (leak.kind, leak.action) == (LeakKind.NOTEBOOK, "refused")


def test_a_sibling_that_shares_much_is_noted_only(worlds: Worlds) -> None:
    text = "\n".join(ANSWER[:8])
    (leak,) = scan(worlds, {"pkg/sibling.py": text}).leaks()
    assert (leak.action, leak.share) == ("noted", 0.8)
    (document,) = scan(worlds, {"notes.md": text}).leaks()
    assert document.action == "refused"


def test_idioms_boilerplate_and_moved_lines_are_no_leak(worlds: Worlds) -> None:
    licence = "# Copyright (c) the authors. All rights reserved, see LICENSE for the terms\nimport os\n"
    assert scan(worlds, {"a.py": licence}, Addition({"k.py": tuple(licence.splitlines())}, {})).leaks() == []
    idioms = {f"pkg/kernel_{n}.py": "\n".join(ANSWER[:8]) for n in range(4)}
    assert scan(worlds, idioms).leaks() == []
    moved = Addition({"pkg/k.py": ANSWER}, {"pkg/k.py": "\n".join(ANSWER)})
    assert scan(worlds, {"copy.py": "\n".join(ANSWER)}, moved).leaks() == []


def test_a_short_answer_found_by_chance_is_noted(worlds: Worlds) -> None:
    short = Addition({"pkg/k.py": ANSWER[:3]}, {})
    (leak,) = scan(worlds, {"docs/a.md": "\n".join(ANSWER)}, short).leaks()
    assert leak.action == "noted"


def test_words_and_archives_are_told(worlds: Worlds) -> None:
    found = scan(worlds, {"a.py": "combine(1)\n", "old.whl": "PK"})
    assert found.words == {"combine"}
    assert found.archives == ["old.whl"]


def test_the_last_word_about_an_instruction() -> None:
    text = f"# Wrong\n\nPut this:\n{ANSWER[3]}\n"
    (leak,) = instruction_leaks(text, ADDITION, NONE)
    assert (leak.kind, leak.action, leak.line) == (LeakKind.INSTRUCTION, "refused", 4)
    assert instruction_leaks(text, ADDITION, NONE, allowed=ANSWER[3]) == []
    assert instruction_leaks("# Wrong\n\nRows are wrong.\n", ADDITION, NONE) == []


def test_a_release_of_the_upstream_in_the_environment() -> None:
    found = environment_leaks(
        "owner/Fast-Kernels", ["fast_kernels_rocm"], ["numpy>=2", "Fast_Kernels==1.0", "fast.kernels.rocm"]
    )
    assert [leak.excerpt for leak in found] == ["Fast_Kernels==1.0", "fast.kernels.rocm"]


def test_a_kept_source_with_a_history_is_a_defect(tmp_path: Path) -> None:
    git("init", "-q", "-b", "main", cwd=tmp_path)
    for message in ("one", "two"):
        git("commit", "-q", "--allow-empty", "-m", message, cwd=tmp_path)
    git("update-ref", "refs/smith/sources/x", "HEAD", cwd=tmp_path)
    with pytest.raises(Defect, match="without parents"):
        check_no_history(Repository.discover(tmp_path), "x")
    git("update-ref", "refs/smith/sources/x", "HEAD~1", cwd=tmp_path)
    check_no_history(Repository.discover(tmp_path), "x")
