"""A branch with one commit on top of what is checked out, made without touching the work tree.

What is proposed to a data repository (cards, entries of a leaderboard) enters by such a branch and a pull request.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from smith import process
from smith.errors import BadInput
from smith.git.objects import TreeEntry, write_blob, write_tree
from smith.git.repository import Repository
from smith.git.trees import overlay

_IDENT = re.compile(r"(?P<name>[^<]*?) <(?P<mail>[^>]*)> \d+ [+-]\d{4}\Z")


def clean_head(root: Path, repo: Repository) -> str:
    """What is checked out. Raises :class:`BadInput` where the work tree is not that, or nothing was committed yet."""
    head = repo.run("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    if not head.ok:
        raise BadInput(f"{root}: nothing is committed yet", hint="git add -A && git commit")
    status = process.run(
        ["git", "status", "--porcelain", "-z", "--untracked-files=all", "--", "."],
        cwd=root, env=_user_environment(), timeout_s=600,
    ).check()  # fmt: skip
    dirty = [entry for entry in status.stdout.text.split("\0") if entry]
    if dirty:
        more = f" and {len(dirty) - 1} more" if len(dirty) > 1 else ""
        raise BadInput(
            f"the work tree is not what is committed: {dirty[0][3:]}{more}",
            hint="commit it: a proposal stands on what others can see",
        )
    return head.stdout.text.strip()


def _user_environment() -> dict[str, str]:
    """The user's own configuration counts here: who they are, and what they ignore."""
    hidden = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")
    return {k: v for k, v in os.environ.items() if k not in hidden} | {"LC_ALL": "C.UTF-8"}


def _identity(root: Path) -> dict[str, str]:
    """Variables that name the committer. Raises :class:`BadInput` where git does not know them."""
    done = process.run(
        ["git", "-c", "user.useConfigOnly=true", "var", "GIT_COMMITTER_IDENT"],
        cwd=root, env=_user_environment(), timeout_s=60,
    )  # fmt: skip
    found = _IDENT.match(done.stdout.text.strip())
    if not done.ok or not found:
        raise BadInput("git does not know who commits", hint="git config user.name NAME; git config user.email MAIL")
    return {f"GIT_{who}_{key}": found[group] for who in ("AUTHOR", "COMMITTER")
            for key, group in (("NAME", "name"), ("EMAIL", "mail"))}  # fmt: skip


def commit(root: Path, repo: Repository, head: str, files: Mapping[str, bytes], message: str, branch: str) -> str:
    """Commit ``files`` (paths below ``root``) on top of ``head`` as the branch ``branch`` (``refs/heads/...``).

    The same files on the same head are the same proposal, whose commit is given again. Raises :class:`BadInput` where
    the branch holds something else, or git does not know who commits.
    """
    prefix = process.run(
        ["git", "rev-parse", "--show-prefix"], cwd=root, env=repo.environment, timeout_s=60
    ).check().stdout.text.strip()  # fmt: skip
    entries = [TreeEntry("100644", "blob", write_blob(repo, data), f"{prefix}{where}".encode())
               for where, data in sorted(files.items())]  # fmt: skip
    tree = overlay(repo, repo.resolve(head, "tree"), write_tree(repo, entries))
    if not repo.run("check-ref-format", branch).ok:
        raise BadInput(f"{branch} is no name for a branch")
    before = repo.run("rev-parse", "--verify", "--quiet", f"{branch}^{{commit}}")
    if before.ok:
        there = before.stdout.text.strip()
        if repo.resolve(there, "tree") == tree and repo.text("rev-parse", f"{there}^") == head:
            return there  # the very same proposal
        name = branch.removeprefix("refs/heads/")
        raise BadInput(f"the branch {name} is there and holds something else", hint=f"git branch -D {name}")
    as_user = repo.with_env(_identity(root))
    made = as_user.text("commit-tree", tree, "-p", head, input=message.encode())
    repo.git("update-ref", branch, made, "0" * len(made))
    return made
