"""``smith push`` and ``smith pull``: the branch and ``refs/smith/*`` together."""

from __future__ import annotations

import os

import click
import git as gitpython

from smith import process
from smith.cli.common import layout
from smith.errors import BadInput
from smith.paths import Layout

SOURCES = "refs/smith/*:refs/smith/*"


@click.command("push")
@click.argument("remote", default="origin")
@click.pass_context
def push(ctx: click.Context, remote: str) -> None:
    """Push the current branch and the frozen sources to REMOTE, all or nothing."""
    found = layout(ctx)
    branch = _branch(found)
    _git(found, "push", "--atomic", remote, f"{branch}:{branch}", SOURCES)
    click.echo(f"pushed {branch.removeprefix('refs/heads/')} and the frozen sources to {remote}")


@click.command("pull")
@click.argument("remote", default="origin")
@click.pass_context
def pull(ctx: click.Context, remote: str) -> None:
    """Bring the frozen sources from REMOTE, and the current branch where that needs no merge."""
    found = layout(ctx)
    branch = _branch(found)
    _git(found, "fetch", "--no-tags", remote, SOURCES)
    _git(found, "pull", "--ff-only", remote, branch)
    click.echo(f"pulled {branch.removeprefix('refs/heads/')} and the frozen sources from {remote}")


def _branch(found: Layout) -> str:
    repo = gitpython.Repo(found.root, search_parent_directories=True)
    if repo.head.is_detached:
        raise BadInput(f"{found.root}: HEAD is detached", hint="check out a branch")
    return str(repo.head.reference.path)


def _git(found: Layout, *args: str) -> None:
    """Run git as the user would, with their configuration: talking to a remote needs their credentials."""
    env = {k: v for k, v in os.environ.items() if k not in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")}
    done = process.run(["git", *args], cwd=found.root, env={**env, "GIT_TERMINAL_PROMPT": "0"}, timeout_s=3600)
    if not done.ok:
        refused = [" ".join(line.split()) for line in done.stderr.text.splitlines() if line.startswith(" ! [rejected]")]
        if refused:
            raise BadInput(
                f"git {args[0]}: {'; '.join(refused)}: what is there holds commits that are not here",
                hint="smith pull, or git pull where both sides went on; then again",
            )
        words = [line for line in done.stderr.text.splitlines() if line.startswith(("fatal:", "error:", " !"))]
        raise BadInput(f"git {args[0]}: {'; '.join(words) or done.stderr.text.strip() or done.ending}")


COMMANDS = {"push": push, "pull": pull}
