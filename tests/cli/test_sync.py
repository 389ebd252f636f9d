"""``smith push`` and ``smith pull``: a second clone gets branch and frozen sources, and a refusal is one line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TASK = "smith-lab__minikernels-60"


def smith(root: Path, *args: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "smith.cli.main", "-C", str(root), *args]
    return subprocess.run(argv, capture_output=True, text=True, check=False, env=_environment(root))


def git(folder: Path, *args: str) -> str:
    done = subprocess.run(
        ["git", *args], cwd=folder, capture_output=True, text=True, check=False, env=_environment(folder)
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def _environment(folder: Path) -> dict[str, str]:
    names = {f"GIT_{role}_{what}": "a@example.com" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    return {**os.environ, "HOME": str(folder.parent), "GIT_CONFIG_NOSYSTEM": "1", **names}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data repository with one frozen task, committed, and a remote called origin."""
    root = tmp_path / "data"
    subprocess.run([sys.executable, "-m", "smith.cli.main", "init", str(root)], check=True, capture_output=True)
    git(tmp_path, "init", "-q", "--bare", "--initial-branch=main", "remote.git")
    git(root, "remote", "add", "origin", str(tmp_path / "remote.git"))
    assert smith(root, "freeze", "smith:sample", "--pr", "60").returncode == 0
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "a task")
    return root


def test_what_was_pushed_is_whole_for_another_clone(data: Path, tmp_path: Path) -> None:
    pushed = smith(data, "push")
    assert pushed.returncode == 0, pushed.stderr
    assert pushed.stdout == "pushed main and the frozen sources to origin\n"

    git(tmp_path, "clone", "-q", "remote.git", "other")
    other = tmp_path / "other"
    assert not git(other, "for-each-ref", "refs/smith")
    pulled = smith(other, "pull")
    assert pulled.returncode == 0, pulled.stderr
    assert git(other, "for-each-ref", "refs/smith") == git(data, "for-each-ref", "refs/smith") != ""
    # Upstream is not asked: sources and hidden tests are here.
    opened = smith(other, "task", "open", TASK, str(tmp_path / "open"))
    assert opened.returncode == 0, opened.stderr
    assert not (other / ".smith" / "mirrors").exists()


def test_pull_brings_what_is_new_and_merges_nothing(data: Path, tmp_path: Path) -> None:
    smith(data, "push")
    git(tmp_path, "clone", "-q", "remote.git", "other")
    other = tmp_path / "other"
    smith(other, "pull")
    assert smith(data, "freeze", "smith:sample", "--pr", "53").returncode == 0
    git(data, "add", "-A")
    git(data, "commit", "-q", "-m", "another task")
    assert smith(data, "push").returncode == 0
    assert smith(other, "pull").returncode == 0
    assert (other / "tasks" / "smith-lab__minikernels-53").is_dir()

    (other / "mine.txt").write_text("mine")
    git(other, "add", "-A")
    git(other, "commit", "-q", "-m", "mine")
    (data / "theirs.txt").write_text("theirs")
    git(data, "add", "-A")
    git(data, "commit", "-q", "-m", "theirs")
    assert smith(data, "push").returncode == 0
    for refused, word in ((smith(other, "pull"), "fast-forward"), (smith(other, "push"), "smith pull")):
        assert refused.returncode == 2
        assert len(refused.stderr.splitlines()) == 1 and word in refused.stderr.lower()
    assert git(other, "log", "-1", "--format=%s") == "mine"


def test_refusals_are_one_line(data: Path) -> None:
    for args, word in ((("push", "nowhere"), "nowhere"), (("pull", "nowhere"), "nowhere")):
        done = smith(data, *args)
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) == 1 and word in done.stderr
    git(data, "checkout", "-q", "--detach")
    done = smith(data, "push")
    assert done.returncode == 2 and "HEAD is detached" in done.stderr and len(done.stderr.splitlines()) == 1
