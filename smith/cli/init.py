"""``smith init``."""

from __future__ import annotations

from pathlib import Path

import click

from smith import process
from smith.errors import BadInput
from smith.git.repository import clean_environment
from smith.paths import MARKER, write_atomically

_FILES = {
    ".gitignore": ".smith/\n",
    # A task is identified by its bytes: no checkout may change a line ending in it.
    ".gitattributes": "tasks/** -text -filter -ident\npanels/** -text\nknowledge/** -text\n"
    "leaderboard/** -text -filter -ident\n",
    "README.md": (
        "# Kernel tasks\n\n"
        "A data repository of smith: tasks frozen from merged kernel pull requests, panels that pin them, and\n"
        "receipts of what was measured.\n\n"
        "    smith mine owner/name --out candidates.jsonl\n"
        "    smith freeze --candidates candidates.jsonl --limit 5\n"
        "    smith validate --all\n"
        "    smith panel new first --valid\n"
        "    smith eval first --agent oracle\n\n"
        "What an upstream needs to be built and tested goes into `recipes/<owner>__<name>.toml`.\n"
    ),
    # Runs where a forge runs workflows of this kind; elsewhere it is an example of what to run.
    ".github/workflows/panels.yml": (
        "name: panels\n"
        "on: [pull_request]\n"
        "permissions:\n"
        "  contents: read\n"
        "jobs:\n"
        "  check:\n"
        "    runs-on: ubuntu-latest\n"
        "    steps:\n"
        "      - uses: actions/checkout@v4\n"
        "        with:\n"
        "          fetch-depth: 0\n"
        "      - uses: actions/setup-python@v5\n"
        "        with:\n"
        '          python-version: "3.12"\n'
        "      # The smith that made this repository: a release, or its own repository at a commit.\n"
        "      - run: pip install smith\n"
        '      - run: smith panel check --base "origin/${{ github.base_ref }}"\n'
        '      - run: smith knowledge check --base "origin/${{ github.base_ref }}"\n'
        '      - run: smith leaderboard check --base "origin/${{ github.base_ref }}"\n'
    ),
    "tasks/.gitkeep": "",
    "panels/.gitkeep": "",
    "recipes/.gitkeep": "",
}


@click.command("init")
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
def command(directory: Path) -> None:
    """Make DIRECTORY a data repository. What is there already stays as it is."""
    make(directory)
    click.echo(f"{directory}: a data repository; next: cd {directory} and smith mine owner/name")


def make(directory: Path, settings: str = "") -> None:
    """Make a data repository, inside an existing git repository or as a new one; ``settings`` are tables of TOML.

    The marker is written last, so that a killed call is simply called again. Raises :class:`BadInput` where there is
    one already.
    """
    if (directory / MARKER).exists():
        raise BadInput(f"{directory / MARKER} exists: this is a data repository already")
    for name, text in _FILES.items():
        if not (directory / name).exists():
            write_atomically(directory / name, text.encode())
    inside = process.run(["git", "rev-parse", "--git-dir"], cwd=directory, env=clean_environment(), timeout_s=60)
    if not inside.ok:
        argv = ["git", "init", "-q", "--template=", "--initial-branch=main", str(directory)]
        process.run(argv, env=clean_environment(), timeout_s=60).check()
    write_atomically(directory / MARKER, f"schema_version = 1\n{settings}".encode())
