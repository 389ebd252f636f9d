"""The identity of a panel, and the display of ties: pure functions, held against git and against their definition."""

from __future__ import annotations

import subprocess
from itertools import combinations
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from smith.freeze.panel_tree import panel_tree
from smith.freeze.panels import load_panel
from smith.leaderboard.seal import private
from smith.paths import Layout
from smith.score.letters import letters

HERE = Path(__file__).parents[2]
TASKS = load_panel(Layout(HERE), "sample").tasks


def mktree(repo: Path, lines: list[str]) -> str:
    argv = ["git", "-C", str(repo), "mktree", "--missing"]
    return subprocess.run(
        argv, input="\n".join(lines) + "\n", capture_output=True, text=True, check=True
    ).stdout.strip()


def test_the_panel_tree_is_the_id_that_git_gives_it(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    lines = []
    for task in TASKS:
        receipts = mktree(tmp_path, [f"100644 blob {blob}\t{device}" for device, blob in task.receipts.items()])
        inner = mktree(tmp_path, [f"040000 tree {task.tree}\tbundle", f"040000 tree {receipts}\treceipts"])
        lines.append(f"040000 tree {inner}\t{task.id}")
    assert panel_tree(TASKS, sanitize=False) == mktree(tmp_path, lines)
    empty = subprocess.run(["git", "hash-object", "-t", "blob", "--stdin"], input=b"", capture_output=True, check=True)
    lines.append(f"100644 blob {empty.stdout.decode().strip()}\tsanitize")
    assert panel_tree(TASKS, sanitize=True) == mktree(tmp_path, lines)


def test_every_pin_counts_and_the_order_does_not() -> None:
    first = panel_tree(TASKS, sanitize=False)
    assert panel_tree(TASKS[::-1], sanitize=False) == first
    other = TASKS[0].model_copy(update={"receipts": dict.fromkeys(TASKS[0].receipts, "1" * 40)})
    moved = TASKS[0].model_copy(update={"tree": "1" * 40})
    trees = [panel_tree((one, *TASKS[1:]), sanitize=False) for one in (other, moved)]
    trees += [panel_tree(TASKS[1:], sanitize=False), panel_tree(TASKS, sanitize=True)]
    assert len({first, *trees}) == 5


@given(
    st.integers(0, 9).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.tuples(st.integers(0, 8), st.integers(0, 8)))))
)
def test_two_share_a_letter_exactly_where_they_are_not_told_apart(drawn: tuple[int, set[tuple[int, int]]]) -> None:
    count, told = drawn
    apart = sorted({(min(p), max(p)) for p in told if p[0] != p[1] and max(p) < count})
    marks = letters(count, apart)
    assert len(marks) == count and all(marks)
    for one, other in combinations(range(count), 2):
        assert bool(set(marks[one]) & set(marks[other])) is ((one, other) not in apart)


def test_what_is_of_a_machine_is_told_from_what_is_of_the_sandbox() -> None:
    assert private("see /home/somebody/x") and private("at http://10.0.0.8:8000/v1") and private("sk-" + "a" * 30)
    assert not private("failed in /smith/source/minikernels/norm.py, 3.1 s, expected 0.5")
    assert private("on buildbox", machine="buildbox")
