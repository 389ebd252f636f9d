"""Whether instructions name what hidden tests need: ``make bench-fairness CASES=FILE CLONES=DIR``.

CASES holds one merged pull request a line, as JSON with ``repo`` (owner/name) and ``pr``; CLONES holds a clone with
pull refs of each repository, as ``OWNER+NAME`` or ``OWNER+NAME/repo``. Each case is frozen into an empty data
repository, or refused. Then its hidden tests are read once more, in a simpler way than freezing reads them: every name
that a changed test file imports, takes as an attribute or passes as a keyword, which the reference adds and the base
has nowhere, must stand in the instruction. So a name that freezing missed shows, and so may one that no test needs.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from smith.freeze.bundle import Bundle, Store
from smith.freeze.freeze import Frozen, freeze
from smith.freeze.overlap import added_lines
from smith.git.mirrors import Upstream, open_upstream
from smith.mine import mine
from smith.paths import MARKER, Layout
from smith.syntax import parse

_IDENTIFIER = re.compile(r"[^\W\d]\w*")


def used_names(tree: ast.Module) -> Iterator[str]:
    """Names of a test file that stand for something outside of it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from (node.module or "").split(".")
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (part for alias in node.names for part in alias.name.split("."))
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Call):
            yield from (keyword.arg for keyword in node.keywords if keyword.arg)


def unnamed(bundle: Bundle, store: Store) -> tuple[int, list[str]]:
    """How many new names the changed test files use, and those that the instruction lacks."""
    hidden = store.hidden_tests(bundle)
    repo = store.scratch
    used: set[str] = set()
    for file in bundle.selection.files:
        shown = repo.run("cat-file", "blob", f"{hidden}:{file}")
        tree = parse(shown.stdout.text) if shown.ok and file.endswith(".py") else None
        used.update(used_names(tree) if tree else ())
    lines = added_lines(bundle.reference)
    added = {word for some in lines.values() for line in some for word in _IDENTIFIER.findall(line)}
    added |= {part for path in lines for part in re.split(r"[/.]", path)}
    base = bundle.spec.source.tree
    new = [name for name in sorted(used & added) if not repo.run("grep", "-q", "-w", "-F", "-e", name, base).ok]
    named = set(_IDENTIFIER.findall(bundle.instruction))
    return len(new), [name for name in new if name not in named]


def main(argv: Sequence[str] | None = None) -> int:
    """Freeze and compare; print one line a case and the share."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", type=Path)
    parser.add_argument("clones", type=Path)
    asked = parser.parse_args(argv)
    rows = [json.loads(line) for line in asked.cases.read_text("utf-8").splitlines() if line.strip()]
    fair = frozen = names = 0
    with tempfile.TemporaryDirectory() as place:
        root = Path(place) / "data"
        subprocess.run(["git", "init", "-q", str(root)], check=True)
        (root / MARKER).write_text("schema_version = 1\n")
        store = Store(Layout(root))
        upstreams: dict[str, Upstream] = {}
        for row in rows:
            repo, number = str(row["repo"]), int(row["pr"])
            if repo not in upstreams:
                folder = asked.clones / repo.replace("/", "+")
                inner = folder / "repo"
                upstreams[repo] = open_upstream(
                    str(inner if inner.is_dir() else folder), store.layout.mirrors, name=repo
                )
            upstream = upstreams[repo]
            mined = mine(
                upstream.repository, repo=upstream.repo, url=upstream.url, numbers=[number], cache=store.layout.mining
            )
            if not mined.candidates:
                print(f"{repo} #{number}: refused, {mined.rejections[0].reason}")
                continue
            result = freeze(mined.candidates[0], upstream, store)
            if not isinstance(result, Frozen):
                print(f"{repo} #{number}: refused, {result.reason.code}")
                continue
            count, missing = unnamed(store.load(result.id), store)
            frozen, fair, names = frozen + 1, fair + (not missing), names + count
            print(f"{repo} #{number}: {count} new names, {'all named' if not missing else 'not named: '}", end="")
            print(", ".join(missing))
    print(f"{fair} of {frozen} frozen cases name all that their tests need ({names} new names)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
