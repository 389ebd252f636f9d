"""Hunks and mutants as trees: on every kernel of the sample upstream, and on changes made for it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smith.git.patches import apply, diff
from smith.git.repository import Repository
from smith.git.trees import TreeEntry, list_tree, overlay, read_file, write_blob, write_tree
from smith.mine.kernels import read
from smith.mine.rules import load
from smith.mutate import c_sites, python_sites
from smith.mutate.edits import Site, decoded, edited, encoded
from smith.mutate.hunks import hunks
from smith.mutate.mutants import Target, mutants
from smith.mutate.same import same_program

RULES = load()
ALL = frozenset(range(100_000))


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return Repository.init_bare(tmp_path_factory.mktemp("trees") / "scratch.git")


def tree_of(repo: Repository, files: dict[str, bytes]) -> str:
    entries = [TreeEntry("100644", "blob", write_blob(repo, data), path.encode()) for path, data in files.items()]
    return write_tree(repo, entries)


# -- every site of the sample ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sample(upstream_dir: Path) -> tuple[Repository, str, list[tuple[str, bytes, Site]]]:
    """The sample at its tip, and every site of every kernel in it."""
    upstream = Repository.discover(upstream_dir)
    tree = upstream.resolve("refs/heads/main", "tree")
    return upstream, tree, list(every_site(upstream, tree))


def every_site(upstream: Repository, tree: str) -> Iterator[tuple[str, bytes, Site]]:
    for entry in list_tree(upstream, tree):
        path = entry.path.decode()
        data = read_file(upstream, tree, path) if RULES.may_hold_kernels(path) else None
        kernels = read(data, path, RULES).kernels
        if data is None or not kernels:
            continue
        text, _ = decoded(data) or ("", False)
        if path.endswith(".py"):
            found = python_sites.sites(text, RULES, kernels, (), "cpu")
        else:
            found = c_sites.sites(text, path, RULES, kernels, ())
        yield from ((path, data, site) for site in found if site.kernel)


def test_the_sample_has_sites_of_most_operators(
    sample: tuple[Repository, str, list[tuple[str, bytes, Site]]],
) -> None:
    found = {site.operator for _, _, site in sample[2]}
    assert len(sample[2]) > 400
    assert len(found) >= 13, found


def test_every_mutant_of_every_kernel_of_the_sample_parses_and_is_another_program(
    sample: tuple[Repository, str, list[tuple[str, bytes, Site]]],
) -> None:
    for path, data, site in sample[2]:
        text, crlf = decoded(data) or ("", False)
        new = encoded(edited(text, site.edits), crlf)
        if path.endswith(".py"):
            ast.parse(new)
        assert not same_program(path, data, new, RULES.source_suffixes), (path, site)


@given(number=st.integers(min_value=0))
@settings(max_examples=60)
def test_the_diff_of_a_mutant_gives_its_tree(
    sample: tuple[Repository, str, list[tuple[str, bytes, Site]]], number: int
) -> None:
    upstream, tree, found = sample
    path, data, site = found[number % len(found)]
    text, crlf = decoded(data) or ("", False)
    blob = write_blob(upstream, encoded(edited(text, site.edits), crlf))
    made = overlay(upstream, tree, write_tree(upstream, [TreeEntry("100644", "blob", blob, path.encode())]))
    patch = diff(upstream, tree, made)
    assert apply(upstream, tree, patch) == made
    # In one place: the edits of one site lie in one expression or statement.
    assert patch.count(b"\n@@ ") == 1


# -- the sample of mutants -------------------------------------------------------------------------------------------

KERNEL = b"""\
import triton
import triton.language as tl


@triton.jit
def k(X, n, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    x = tl.load(X + cols, mask=cols < n, other=0.0)
    tl.store(X + cols, x * 2 - n, mask=cols < n)


def host(x, n):
    if n > 3:
        return n - 1
    return n + 1
"""


def chosen(count: int, lines: frozenset[int], seed: str = "a") -> list[tuple[str, int]]:
    target = Target("k.py", KERNEL, lines, frozenset({"k"}))
    found, _ = mutants(seed, [target], RULES, "cpu", count)
    assert len({m.data for m in found}) == len(found)
    return [(m.operator, m.line) for m in found]


def test_a_larger_sample_begins_with_the_smaller_one() -> None:
    assert chosen(20, ALL)[:5] == chosen(5, ALL)
    assert chosen(0, ALL) == []


def test_the_sample_depends_on_the_task_and_on_nothing_else() -> None:
    assert chosen(6, ALL) == chosen(6, ALL)
    assert len({tuple(chosen(6, ALL, seed)) for seed in "abcdefgh"}) > 1


def test_changed_lines_come_first_then_the_rest_of_changed_kernels_and_nothing_else() -> None:
    found = chosen(99, frozenset({9, 13}))
    lines = [line for _, line in found]
    assert set(lines) == {8, 9, 13}
    assert lines == sorted(lines, key=lambda line: line == 8)
    assert 13 in lines[:4], "a line of the host's comes among the first few"


def test_operators_take_turns() -> None:
    first = [operator for operator, _ in chosen(5, frozenset({8, 9}))]
    assert len(set(first)) == 5


def test_line_ends_stay_and_what_cannot_be_written_back_is_left_alone() -> None:
    crlf = KERNEL.replace(b"\n", b"\r\n")
    found, _ = mutants("a", [Target("k.py", crlf, ALL, frozenset({"k"}))], RULES, "cpu", 3)
    assert found
    assert all(m.data.count(b"\r\n") == m.data.count(b"\n") for m in found)
    for broken in (KERNEL.replace(b"\n", b"\r\n", 1), b"\xff" + KERNEL):
        assert mutants("a", [Target("k.py", broken, ALL, frozenset({"k"}))], RULES, "cpu", 3) == ([], 0)


# -- hunks -----------------------------------------------------------------------------------------------------------

BEFORE = b"".join(b"line %d\n" % n for n in range(1, 40))


def test_each_hunk_is_taken_back_alone(repo: Repository) -> None:
    after = BEFORE.replace(b"line 5\n", b"five\nand more\n").replace(b"line 20\n", b"").replace(b"line 35\n", b"x\n")
    start, solution = tree_of(repo, {"a.py": BEFORE}), tree_of(repo, {"a.py": after})
    found = list(hunks(repo, start, solution, "a.py"))
    assert [(h.line, sorted(h.lines)) for h in found] == [(5, [5, 6]), (21, []), (35, [35])]
    texts = [read_file(repo, apply(repo, solution, h.patch), "a.py") for h in found]
    assert texts[0] == BEFORE.replace(b"line 20\n", b"").replace(b"line 35\n", b"x\n")
    assert texts[1] == after.replace(b"line 19\n", b"line 19\nline 20\n")
    assert texts[2] == after.replace(b"x\n", b"line 35\n")


@pytest.mark.parametrize(
    ("before", "after", "count"),
    [
        ({}, {"a.py": BEFORE}, 1),
        ({"a.py": BEFORE}, {}, 1),
        ({"a.py": b""}, {}, 0),
        ({"a.py": b"\0\1"}, {"a.py": b"\0\2"}, 1),
        ({"a.py": b"x"}, {"a.py": b"x\n"}, 1),
        ({"a.py": BEFORE}, {"a.py": BEFORE}, 0),
    ],
)
def test_files_that_come_and_go(
    repo: Repository, before: dict[str, bytes], after: dict[str, bytes], count: int
) -> None:
    other = {"other.py": b"1\n"}
    start, solution = tree_of(repo, before | other), tree_of(repo, after | other)
    found = list(hunks(repo, start, solution, "a.py"))
    assert len(found) == count
    for hunk in found:
        assert apply(repo, solution, hunk.patch) == start


LINES = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"-- x\n", b"@@ -1 +1 @@\n", b"\n"]), max_size=40).map(
    b"".join
)


@given(before=LINES, after=LINES)
@settings(max_examples=40)
def test_all_hunks_together_lead_back(repo: Repository, before: bytes, after: bytes) -> None:
    other = {"other.py": b"1\n"}
    start, solution = tree_of(repo, {"a.py": before} | other), tree_of(repo, {"a.py": after} | other)
    tree = solution
    # From the end, so that none moves what another one stands on.
    for hunk in reversed(list(hunks(repo, start, solution, "a.py"))):
        alone = apply(repo, solution, hunk.patch)
        assert alone != solution
        tree = apply(repo, tree, hunk.patch)
    assert tree == start


@pytest.mark.parametrize(
    ("path", "one", "other", "same"),
    [
        ("a.py", b"x = 1  # a\n", b"x = (1)\n", True),
        ("a.py", b'"""A."""\ndef f():\n    """B."""\n', b'"""B."""\ndef f():\n    """C."""\n', True),
        ("a.py", b"x = 1\n", b"x = 2\n", False),
        ("a.py", b"x = 1\n", b"x = \n", False),
        ("a.hip", b"int x; // a\n", b"int  x;\n", True),
        ("a.hip", b"int x;\n", b"int y;\n", False),
        ("a.toml", b"a = 1\n", b"a = 1\n\n", True),
        ("a.py", None, b"\n", True),
        ("a.py", b"x\n", None, False),
    ],
)
def test_which_changes_are_none(path: str, one: bytes | None, other: bytes | None, same: bool) -> None:
    assert same_program(path, one, other, RULES.source_suffixes) is same
