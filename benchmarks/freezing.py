"""What freezing costs: ``make bench-freezing CLONE=DIR [NAME=owner/name] [COUNT=n]``.

CLONE is a git repository with pull refs; its newest candidates are frozen into an empty data repository. Printed are

- the seconds that one pull request takes, against plain git listing both trees and printing the patch between them;
- what the data repository's git folder takes after one task, and after all of them, packed as ``git gc`` packs;
- how long it takes to enter an environment that is built already, against starting its interpreter by itself.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from run import seconds

from smith.environment.layers import build
from smith.freeze.bundle import Store
from smith.freeze.freeze import Frozen, Refused, freeze
from smith.git.mirrors import open_upstream
from smith.git.repository import Repository
from smith.mine import mine
from smith.paths import MARKER, Layout
from smith.records.recipe import EnvironmentChoice


def main(argv: Sequence[str] | None = None) -> int:
    """Freeze, then print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clone", type=Path)
    parser.add_argument("--name", help="owner/name, where the folder does not tell")
    parser.add_argument("--count", type=int, default=20)
    asked = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as place:
        root = Path(place) / "data"
        subprocess.run(["git", "init", "-q", str(root)], check=True)
        (root / MARKER).write_text("schema_version = 1\n")
        store = Store(Layout(root))
        upstream = open_upstream(str(asked.clone), store.layout.mirrors, name=asked.name)
        mined = mine(upstream.repository, repo=upstream.repo, url=upstream.url, cache=store.layout.mining)
        objects = upstream.repository.text("count-objects", "-v").split("in-pack: ")[1].split()[0]
        print(f"{upstream.repo}: {objects} packed objects, {len(mined.candidates)} candidates")
        took: list[tuple[float, float]] = []
        frozen: list[Frozen] = []
        refused = 0
        sizes = []
        for candidate in mined.candidates:
            if len(frozen) >= asked.count:
                break
            made: list[Frozen | Refused] = []
            ours = seconds(lambda one=candidate, made=made: made.append(freeze(one, upstream, store)))
            theirs = seconds(lambda one=candidate: _least(upstream.repository, one.base, one.merged))
            (result,) = made
            if isinstance(result, Frozen):
                frozen.append(result)
                took.append((ours, theirs))
                if len(frozen) == 1:
                    sizes.append(_packed(root))
            else:
                refused += 1
        sizes.append(_packed(root))
        middle, ratio = statistics.median(a for a, _ in took), statistics.median(a / b for a, b in took)
        slowest = max(a for a, _ in took)
        print(
            f"freezing      {len(frozen)} frozen, {refused} refused: {middle:.2f} s each (at most {slowest:.2f} s), "
            f"{ratio:.1f}x of git listing and comparing the trees"
        )
        print(
            f"packed        {sizes[0] / 1e6:.1f} MB with one task, {sizes[1] / 1e6:.1f} MB with {len(frozen)}: "
            f"{sizes[1] / sizes[0]:.2f}x"
        )
        _enter(Path(place))
    return 0


def _least(repo: Repository, base: str, merged: str) -> None:
    git = ["git", f"--git-dir={repo.git_dir}"]
    for args in (["ls-tree", "-r", base], ["ls-tree", "-r", merged], ["diff", "--binary", base, merged]):
        subprocess.run([*git, *args], stdout=subprocess.DEVNULL, check=True)


def _packed(root: Path) -> int:
    subprocess.run(["git", "-C", str(root), "gc", "-q", "--prune=now"], check=True)
    return sum(path.stat().st_size for path in (root / ".git" / "objects").rglob("*") if path.is_file())


def _enter(place: Path) -> None:
    choice = EnvironmentChoice(name="bench", packages=("einops",))
    made = build(choice, place / "environments")
    start = [str(made.python), "-c", "pass"]

    def enter() -> None:
        warm = build(choice, place / "environments")
        subprocess.run([str(warm.python), "-c", "pass"], check=True)

    pairs = [(seconds(enter), seconds(lambda: subprocess.run(start, check=True))) for _ in range(9)]
    ours, ratio = statistics.median(a for a, _ in pairs), statistics.median(a / b for a, b in pairs)
    print(f"environment   entered in {ours:.2f} s once built, {ratio:.1f}x of starting its interpreter")


if __name__ == "__main__":
    sys.exit(main())
