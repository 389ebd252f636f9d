"""What a scan holds of what it read: bounded, and without any influence on what it finds."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smith.mine import mine, rules
from smith.mine.blobs import Blobs
from smith.mine.classify import Classifier
from smith.mine.remembered import HandedOn
from smith.mine.survey import survey
from tests.mine.mine_upstreams import Upstream, kernel

RULES = rules.load()


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 60), st.booleans())))
def test_what_is_handed_on_is_taken_once_and_bounded(steps: list[tuple[int, int, bool]]) -> None:
    held: HandedOn[int, int] = HandedOn(100)
    waiting: dict[int, int] = {}
    for key, size, gives in steps:
        if gives:
            waiting.pop(key, None)
            held.hand_on(key, size, size)
            waiting[key] = size
            while sum(waiting.values()) > 100:
                waiting.pop(next(iter(waiting)))
        else:
            assert held.take(key) == waiting.pop(key, None)


@pytest.mark.parametrize("holds_kernels", [True, False])
def test_a_landing_of_many_files_is_read_whole(tmp_path: Path, holds_kernels: bool) -> None:
    upstream = Upstream.make(tmp_path / "up.git")
    last, later = (kernel(value=1), kernel(value=2)) if holds_kernels else ("x = 1\n", "x = 2\n")
    upstream.squash(1, "Add all", {f"pkg/m{n:03}.py": f"y = {n}\n" for n in range(150)} | {"pkg/z.py": last})
    changed = {f"pkg/m{n:03}.py": f"y = {n}\nz = 0\n" for n in range(150)}
    upstream.squash(2, "Change all", changed | {"pkg/z.py": later})
    upstream.squash(3, "Change some", {path: f"{text}a = 1\n" for path, text in list(changed.items())[:100]})
    newest_first = [case.merged.changes for case in survey(upstream.repo, repo="o/r").cases]
    with Blobs(upstream.repo, largest=RULES.limits.largest_source) as blobs:
        one_by_one = [Classifier(blobs, RULES).shape(changes) for changes in newest_first]
        classifier = Classifier(blobs, RULES)
        assert [classifier.shape(changes) for changes in newest_first] == one_by_one
    everything = one_by_one[1]
    assert len(everything.files) == 151
    assert (everything.lines_added, everything.lines_removed) == ((151, 1) if holds_kernels else (0, 0))


def test_signals_are_read_once_and_a_damaged_row_is_made_again(tmp_path: Path) -> None:
    upstream, cache = Upstream.make(tmp_path / "up.git"), tmp_path / "mining.db"
    for number in range(1, 4):
        upstream.squash(number, f"Speed up softmax by {number}x on H100", {"pkg/add.py": kernel(value=number + 7)})

    def run() -> list[str]:
        found = mine(upstream.repo, repo="o/r", url="u", cache=cache).candidates
        return [one.signals.dumps().decode() for one in found if one.signals]

    def rows() -> dict[bytes, bytes]:
        with sqlite3.connect(cache) as db:
            return dict(db.execute("SELECT key, signals FROM signals").fetchall())

    first, kept = run(), rows()
    assert len(first) == len(kept) == 3 and "H100" in first[0]
    assert run() == first and rows() == kept
    with sqlite3.connect(cache) as db:
        db.execute("UPDATE signals SET signals = (SELECT signals FROM signals ORDER BY key LIMIT 1)")
    assert len(set(run())) == 1  # so they are not read again
    with sqlite3.connect(cache) as db:
        db.execute("UPDATE signals SET signals = x'00'")
    assert run() == first and rows() == kept
    upstream.squash(4, "Speed up softmax by 4x on MI300X", {"pkg/add.py": kernel(value=99)})
    assert "MI300X" in run()[0] and len(rows()) == 4
