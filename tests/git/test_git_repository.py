"""Repositories are found where they are, and called so that only their contents count."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from git_worlds import commit_all, git

from smith.errors import BadInput, CommandFailed, NotARepository
from smith.git.repository import Repository, clean_environment


def test_discover(work: Path, tmp_path: Path) -> None:
    assert Repository.discover(work).git_dir == work / ".git"
    assert Repository.discover(work / ".git").git_dir == work / ".git"
    bare = Repository.init_bare(tmp_path / "bare.git")
    assert Repository.discover(bare.git_dir).git_dir == bare.git_dir
    (bare.git_dir / "config").unlink()  # mirrors made by other means may have none
    assert Repository.discover(bare.git_dir).git_dir == bare.git_dir


def test_discover_does_not_search_above(work: Path) -> None:
    (work / "sub").mkdir()
    with pytest.raises(NotARepository):
        Repository.discover(work / "sub")
    assert Repository.containing(work / "sub").git_dir == work / ".git"
    with pytest.raises(NotARepository):
        Repository.discover(work / "absent")


def test_a_dollar_sign_in_a_path_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELSEWHERE", "/")
    made = Repository.init_bare(tmp_path / "$ELSEWHERE")
    assert Repository.discover(tmp_path / "$ELSEWHERE").git_dir == made.git_dir


def test_a_damaged_configuration_is_no_defect(work: Path) -> None:
    (work / ".git/config").write_bytes(b"core]\n\xff broken = \n")
    try:
        found = Repository.discover(work)
    except NotARepository:
        return
    with pytest.raises((BadInput, CommandFailed)):
        found.resolve("HEAD")


def test_a_relative_path_stays_valid(work: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    commit = commit_all(work)
    monkeypatch.chdir(work)
    repo = Repository(Path(".git"))
    monkeypatch.chdir(tmp_path)
    assert repo.resolve("HEAD") == commit
    assert repo.text("rev-parse", "HEAD") == commit


def test_resolve(work: Path) -> None:
    commit = commit_all(work)
    repo = Repository.discover(work)
    assert repo.resolve("HEAD") == repo.resolve("main") == repo.resolve(commit[:12]) == commit
    assert repo.resolve("HEAD", "tree") == git("rev-parse", "HEAD^{tree}", cwd=work)
    for bad in ("nowhere", "1" * 40, "--all", "", "HEAD:absent", "HEAD\n"):
        with pytest.raises(BadInput):
            repo.resolve(bad)


def test_refs_with_odd_names(work: Path) -> None:
    commit = commit_all(work)
    for name in ("refs/heads/line\u2028separator", "refs/heads/next\u0085line", "refs/tags/v1"):
        git("update-ref", name, commit, cwd=work)
    repo = Repository.discover(work)
    assert set(repo.refs()) == {
        "refs/heads/main",
        "refs/heads/line\u2028separator",
        "refs/heads/next\u0085line",
        "refs/tags/v1",
    }
    assert set(repo.refs("refs/tags/")) == {"refs/tags/v1"}
    assert repo.refs("refs/none") == {}


def test_default_branch(work: Path) -> None:
    with pytest.raises(BadInput):
        _ = Repository.discover(work).default_branch
    commit_all(work)
    assert Repository.discover(work).default_branch == "refs/heads/main"
    git("checkout", "-q", "--detach", cwd=work)
    assert Repository.discover(work).default_branch == "refs/heads/main"


def test_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GIT_DIR", "GIT_CONFIG_PARAMETERS", "GIT_EXTERNAL_DIFF", "GIT_ASKPASS", "GIT_NEWLY_INVENTED"):
        monkeypatch.setenv(name, "evil")
    monkeypatch.setenv("GIT_SSH_COMMAND", "ssh -4")
    env = clean_environment({"GIT_INDEX_FILE": "/x"})
    assert "evil" not in env.values()
    assert env["GIT_SSH_COMMAND"] == "ssh -4" and env["GIT_INDEX_FILE"] == "/x"
    assert env["GIT_CONFIG_GLOBAL"] == os.devnull and env["LC_ALL"] == "C.UTF-8"


def test_hooks_and_configuration_are_not_heeded(repo: Repository, turn_hostile: Callable[[Repository], None]) -> None:
    turn_hostile(repo)
    blob = repo.text("hash-object", "-w", "--stdin", input=b"a\r\n")
    assert repo.git("cat-file", "blob", blob) == b"a\r\n"
    repo.git("update-ref", "refs/heads/x", repo.text("hash-object", "-w", "-t", "commit", "--stdin", input=COMMIT))
    assert list(repo.refs()) == ["refs/heads/x"]
    made = Repository.init_bare(repo.git_dir.with_name("made.git"))
    assert not (made.git_dir / "hooks").exists()
    assert (made.git_dir / "HEAD").read_text() == "ref: refs/heads/main\n"


COMMIT = b"tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nauthor a <a> 0 +0000\ncommitter a <a> 0 +0000\n\nx\n"


def test_errors_show_what_git_said(repo: Repository) -> None:
    with pytest.raises(CommandFailed, match="cat-file blob absent: status 128"):
        repo.git("cat-file", "blob", "absent")
