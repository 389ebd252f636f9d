"""Mining against a hand-checked list and against plain git: ``make bench-mining CLONE=DIR YARDSTICK=FILE``.

CLONE is a git repository with pull refs; without one, histories of 1,000, 10,000 and 100,000 commits are made up, and
scanned one after the other to see how the time grows. YARDSTICK holds one merged pull request a line, as JSON: ``pr``,
``base``, ``head`` (the landed commit), ``form``, ``kernel_files``, ``kernel_body_files``, ``tests``. A kernel file of
the list is ``.cu``, ``.cuh``, ``.hip``, ``.metal`` or a Python file with a kernel decorator, outside of benchmarks and
examples; the body of a kernel changes where a line inside such a function does, or where such a file is new, deleted or
native.

Without YARDSTICK only the times are taken: a scan with nothing remembered, one with everything remembered, and what git
alone takes to print the history and to read the blobs that mining had to read. Each scan is a process of its own with
its workers and git's processes; processor time and memory are theirs together. Memory is that of one scan more, since
measuring it slows one down. Wall times say little on a machine that does something else besides: then compare
processor times.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from processes import Usage, run

from smith.git.repository import Repository
from smith.mine import rules as rules_
from smith.mine.decide import Case
from smith.mine.survey import Survey, survey
from smith.records.candidate import Role

NATIVE = (".cu", ".cuh", ".hip", ".metal")
OUTSIDE = ("benchmark", "benchmarks", "example", "examples")


def kernel_files(case: Case) -> set[str]:
    """Files of the list's definition among the changed ones."""
    kernels = {kernel.path for kernel in case.shape.kernels}
    return {
        file.path
        for file in case.shape.files
        if (file.path.endswith(NATIVE) or (file.path in kernels and file.path.endswith(".py"))) and _counts(file.path)
    }


def body_files(case: Case) -> set[str]:
    """Those in which the body of a kernel changed."""
    changed = {kernel.path for kernel in case.shape.kernels if kernel.symbols}
    whole = {file.path for file in case.shape.files if file.change in ("added", "deleted")}
    return {path for path in kernel_files(case) if path in changed or path in whole or path.endswith(NATIVE)}


def tests(case: Case) -> set[str]:
    """Changed test files."""
    return {file.path for file in case.shape.files if file.role is Role.TEST}


def _counts(path: str) -> bool:
    return not any(part in OUTSIDE for part in PurePosixPath(path).parts[:-1])


def compare(found: Survey, rows: Sequence[Mapping[str, Any]], shown: int) -> None:
    """Print recall and precision of what the list holds, and the differences."""
    ours = {case.merged.number: case for case in found.cases}
    theirs = {int(row["pr"]): row for row in rows}
    _share("merged pull requests", set(ours), set(theirs), shown)
    both = sorted(set(ours) & set(theirs))
    for name, key, value in (
        ("form", "form", lambda case: case.merged.pull_request.form.value),
        ("base commit", "base", lambda case: case.merged.pull_request.base),
        ("merged commit", "head", lambda case: case.merged.pull_request.merged),
    ):
        wrong = [(n, value(ours[n]), theirs[n][key]) for n in both if value(ours[n]) != theirs[n][key]]
        print(f"{name:24} {len(both) - len(wrong)} of {len(both)} agree{'' if not wrong else f': {wrong[:shown]}'}")
    for name, key, files in (
        ("kernel files", "kernel_files", kernel_files),
        ("kernel body files", "kernel_body_files", body_files),
        ("test files", "tests", tests),
    ):
        _share(
            name, {(n, p) for n in both for p in files(ours[n])}, {(n, p) for n in both for p in theirs[n][key]}, shown
        )


def _share(name: str, ours: set[Any], theirs: set[Any], shown: int) -> None:
    common = len(ours & theirs)
    recall, precision = common / max(1, len(theirs)), common / max(1, len(ours))
    print(f"{name:24} {len(theirs)} in the list, {len(ours)} found: recall {recall:.2%}, precision {precision:.2%}")
    for what, some in (("missed", theirs - ours), ("extra", ours - theirs)):
        for one in sorted(some)[:shown]:
            print(f"    {what}: {one}")


SCAN = """
import sys, time
from pathlib import Path
from smith.git.repository import Repository
from smith.mine.survey import survey
repo, cache = Repository.discover(Path(sys.argv[1])), Path(sys.argv[2])
began = time.perf_counter()
survey(repo, repo="bench/mark", cache=cache)
print(time.perf_counter() - began)
"""
BARE = """
git --git-dir="$0" log --first-parent -m --raw --no-abbrev "$1" >/dev/null
git --git-dir="$0" cat-file --batch --buffer <"$2" >/dev/null
"""


def scan(place: Path, cache: Path, *, memory: bool = False) -> tuple[float, Usage]:
    """Wall seconds of one survey of the repository at ``place`` without the start of its process, and what it took."""
    used = run([sys.executable, "-c", SCAN, str(place), str(cache)], memory=memory)
    return float(used.output), used


FILE = """import triton
import triton.language as tl


@triton.jit
def kernel_{n}(x, size, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK) + {value}
    tl.store(x + offsets, tl.load(x + offsets, mask=offsets < size), mask=offsets < size)


def launch(x):
    kernel_{n}[(1,)](x, 8, BLOCK=16)
"""


def make_up(place: Path, commits: int) -> Repository:
    """A history of so many squashed pull requests over 200 files, half of them with a head."""
    repo = Repository.init_bare(place)
    child = repo.popen("fast-import", "--quiet", "--done")
    assert child.stdin is not None
    child.stdin.write(b"feature done\n")
    for number in range(commits + 1):
        n = number % 200
        text = FILE.format(n=n, value=number).encode()
        words = b"Fix kernel %d (#%d)" % (n, number) if number else b"Begin"
        child.stdin.write(
            b"commit refs/heads/main\ncommitter A <a@example.org> %d +0000\ndata %d\n%s\n"
            % (1_500_000_000 + 60 * number, len(words), words)
        )
        child.stdin.write(b"M 100644 inline pkg/ops/k%d.py\ndata %d\n%s\n" % (n, len(text), text))
        if number % 2:
            child.stdin.write(b"reset refs/pull/%d/head\nfrom refs/heads/main\n\n" % number)
    child.stdin.write(b"done\n")
    child.stdin.close()
    if child.wait() != 0:
        raise SystemExit("the history could not be made up")
    return repo


def growth(sizes: Sequence[int]) -> None:
    """Scan histories of growing length."""
    for size in sizes:
        with tempfile.TemporaryDirectory() as place:
            repo = make_up(Path(place) / "up.git", size)
            cache = Path(place) / "mining.db"
            full, used = scan(repo.git_dir, cache)
            again, used_again = scan(repo.git_dir, cache)
            _, watched = scan(repo.git_dir, Path(place) / "watched.db", memory=True)
        print(
            f"{size:7} commits   full {full:7.2f} s, {used.processor:7.2f} s of processors,"
            f" {1000 * used.processor / size:.2f} ms a commit   "
            f"nothing new {again:6.2f} s, {used_again.processor:6.2f} s of processors   {watched.memory:.0f} MB"
        )


def _middle(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.2f}"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the comparison, then the times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clone", type=Path, nargs="?")
    parser.add_argument("--sizes", default="1000,10000,100000", help="lengths of histories that are made up")
    parser.add_argument("--yardstick", type=Path)
    parser.add_argument("--show", type=int, default=20, help="differences shown of each sort")
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args(argv)
    if asked.clone is None:
        growth([int(size) for size in asked.sizes.split(",")])
        return 0
    repo = Repository.discover(asked.clone)
    branch = repo.default_branch
    found = survey(repo, repo="bench/mark")
    print(f"{len(found.history.landings)} landings, {len(found.history.heads)} heads, {len(found.cases)} merged")
    if asked.yardstick:
        rows = [json.loads(line) for line in asked.yardstick.read_text("utf-8").splitlines() if line]
        compare(found, rows, asked.show)
    rules = rules_.load()
    # In the order of history, which is the best one for git.
    judged = {
        oid: None
        for case in found.cases
        for change in case.merged.changes
        if rules.may_hold_kernels(change.path) and not change.exact
        for oid in (change.old_oid, change.new_oid)
        if set(oid) != {"0"}
    }
    with tempfile.TemporaryDirectory() as place:
        blobs = Path(place) / "blobs"
        blobs.write_text("".join(f"{oid}\n" for oid in judged))
        bare = ["sh", "-ec", BARE, str(repo.git_dir), repo.resolve(branch), str(blobs)]
        full, again, plain = [], [], []
        for turn in range(asked.rounds):
            cache = Path(place) / f"{turn}.db"
            full.append(scan(repo.git_dir, cache))
            again.append(scan(repo.git_dir, cache))
            plain.append(run(bare))
        _, most = scan(repo.git_dir, Path(place) / "watched.db", memory=True)
    walls = [a.seconds for a in plain]
    ratios = [one / other for (one, _), other in zip(full, walls, strict=True)]
    effort = [one.processor / other.processor for (_, one), other in zip(full, plain, strict=True)]
    middle = _middle(walls), _middle([a.processor for a in plain])
    print(f"git log, {len(judged)} blobs   {middle[0]} s, {middle[1]} s of processors")
    for name, scans in (("full scan", full), ("scan of nothing new", again)):
        middle = _middle([wall for wall, _ in scans]), _middle([used.processor for _, used in scans])
        start = _middle([used.seconds - wall for wall, used in scans])
        print(f"{name:23} {middle[0]} s, {middle[1]} s of processors (and {start} s to start)")
    print(f"full scan / git alone   {_middle(ratios)}x the time, {_middle(effort)}x the processor time")
    each = ", ".join(f"{name.split()[0]} {size:.0f}" for name, size in most.peak.items())
    print(f"memory at the peak      {most.memory:.0f} MB in all processes: {each}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
