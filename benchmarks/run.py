"""Ratios that must stay small, each measured in one run: ``make bench`` or ``python benchmarks/run.py [CLONE]``.

CLONE is a git repository with pull refs (default: the sample upstream). Every figure is the ratio of what smith takes
to what plain git takes for the least work that could give the same answer; medians over paired runs.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from smith import sample
from smith.git.history import first_parent
from smith.git.repository import Repository
from smith.git.trees import materialise, snapshot
from smith.mine import mine
from smith.paths import remove_tree

ROUNDS = 5


def seconds(work: Callable[[], object]) -> float:
    """Wall seconds of one call."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def ratio(name: str, ours: Callable[[], object], theirs: Callable[[], object], versus: str) -> None:
    """Print the median ratio of paired runs."""
    ours()
    theirs()
    pairs = [(seconds(ours), seconds(theirs)) for _ in range(ROUNDS)]
    middle = statistics.median(a / b for a, b in pairs)
    spread = sorted(a / b for a, b in pairs)
    took = statistics.median(a for a, _ in pairs)
    print(f"{name:44} {middle:6.2f}x of {versus} ({spread[0]:.2f} to {spread[-1]:.2f}; {took:.3f} s)")


def main(argv: list[str]) -> int:
    """Run every benchmark on one repository."""
    with tempfile.TemporaryDirectory() as place:
        where = Path(argv[0]) if argv else sample.build(Path(place) / "sample.git")
        repo = Repository.discover(where)
        branch = repo.default_branch
        head = repo.resolve(branch)
        tree = repo.resolve(head, "tree")
        print(
            f"{where.name}: {repo.text('rev-list', '--count', '--first-parent', head)} landings, {ROUNDS} paired runs"
        )
        git = ["git", f"--git-dir={repo.git_dir}"]

        def run(*args: str) -> None:
            subprocess.run([*git, *args], stdout=subprocess.DEVNULL, check=True)

        log = ("log", "--first-parent", "-m", "--raw", "-z", "--no-abbrev", "-M", head)
        ratio("reading a history", lambda: list(first_parent(repo, branch)), lambda: run(*log), "git log --raw")
        ratio("mining it", lambda: mine(repo, repo="o/r", url="u"), lambda: run(*log), "git log --raw")

        out, index = Path(place) / "out", Path(place) / "index"

        def ours() -> None:
            remove_tree(out)
            materialise(repo, tree, out, missing="skip")

        def theirs() -> None:
            remove_tree(out)
            out.mkdir()
            env = {"GIT_INDEX_FILE": str(index), "PATH": "/usr/bin:/bin"}
            for args in (["read-tree", tree], ["checkout-index", "-a", "-f", f"--prefix={out}/"]):
                # Objects that a partial clone lacks make git fail after it has written the rest.
                subprocess.run([*git, *args], env=env, check=False, stderr=subprocess.DEVNULL)

        ratio("writing a tree into a folder", ours, theirs, "git checkout-index")
        ours()
        scratch = repo.with_env(
            {
                "GIT_OBJECT_DIRECTORY": f"{place}/objects",
                "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(repo.git_dir / "objects"),
            }
        )
        Path(place, "objects").mkdir()
        add = ["git", f"--git-dir={repo.git_dir}", f"--work-tree={out}", "add", "-A"]

        def add_all() -> None:
            index.unlink(missing_ok=True)
            env = {
                "GIT_INDEX_FILE": str(index),
                "PATH": "/usr/bin:/bin",
                "GIT_OBJECT_DIRECTORY": f"{place}/objects",
                "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(repo.git_dir / "objects"),
            }
            subprocess.run(add, env=env, check=True, stderr=subprocess.DEVNULL)

        ratio("taking a workspace back as a tree", lambda: snapshot(scratch, out, base=tree), add_all, "git add -A")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
