"""Repositories in temporary folders, and surroundings as hostile as they come."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from git_worlds import git

from smith.git.repository import Repository


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    """An empty bare repository."""
    return Repository.init_bare(tmp_path / "data.git")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """One repository for a whole module: property tests make many trees."""
    return Repository.init_bare(tmp_path_factory.mktemp("shared") / "data.git")


EVIL_CONFIG = """
[core]
    autocrlf = true
    eol = crlf
    fileMode = false
    symlinks = false
    quotePath = false
    abbrev = 4
    bigFileThreshold = 1
    attributesFile = {home}/attributes
    excludesFile = {home}/excludes
    hooksPath = {home}/hooks
    whitespace = cr-at-eol,trailing-space
[diff]
    noprefix = true
    external = {home}/evil
    renames = copies
    context = 9
    algorithm = patience
    orderFile = {home}/order
    ignoreSubmodules = all
    indentHeuristic = false
    suppressBlankEmpty = true
[diff "evil"]
    command = {home}/evil
    textconv = {home}/evil
    binary = true
    xfuncname = "(.*)"
[filter "evil"]
    clean = {home}/evil
    smudge = {home}/evil
    required = true
[apply]
    whitespace = error-all
    ignoreWhitespace = change
[commit]
    gpgSign = true
[color]
    ui = always
[i18n]
    commitEncoding = ISO-8859-1
[init]
    templateDir = {home}/template
    defaultBranch = evil
[pack]
    window = 3
"""
EVIL_ATTRIBUTES = (
    "* text eol=crlf ident filter=evil diff=evil merge=evil working-tree-encoding=UTF-16 export-ignore "
    "export-subst whitespace=trailing-space\n"
)


def make_hostile(repo: Repository, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let everything speak against ``repo`` that could change what git prints, but not its objects."""
    home = place / "home"
    for name in ("hooks", "template/hooks", ".config/git", "cwd"):
        (home / name).mkdir(parents=True)
    (home / "evil").write_text(f"#!/bin/sh\ntouch {home}/was-run\necho evil\nexit 1\n")
    (home / "evil").chmod(0o755)
    for hook in ("reference-transaction", "post-checkout", "pre-commit", "update", "post-index-change", "pre-push"):
        for folder in (home / "hooks", home / "template/hooks", repo.git_dir / "hooks"):
            folder.mkdir(exist_ok=True)
            (folder / hook).write_bytes((home / "evil").read_bytes())
            (folder / hook).chmod(0o755)
    config = EVIL_CONFIG.format(home=home)
    for target in (home / ".gitconfig", home / ".config/git/config"):
        target.write_text(config)
    with (repo.git_dir / "config").open("a") as file:
        file.write(config)
    (home / "order").write_text("z*\n")
    (repo.git_dir / "info").mkdir(exist_ok=True)
    ignore = "*\n"
    attributes = (home / "attributes", home / ".config/git/attributes", repo.git_dir / "info/attributes")
    excludes = (home / "excludes", home / ".config/git/ignore", repo.git_dir / "info/exclude")
    for path in (*attributes, home / "cwd/.gitattributes", repo.git_dir / ".gitattributes"):
        path.write_text(EVIL_ATTRIBUTES + "* -diff\n")
    for path in (*excludes, home / "cwd/.gitignore"):
        path.write_text(ignore)
    monkeypatch.chdir(home / "cwd")
    for name, value in {
        "HOME": home,
        "XDG_CONFIG_HOME": home / ".config",
        "GIT_DIR": home,
        "GIT_WORK_TREE": home / "cwd",
        "GIT_INDEX_FILE": home / "index",
        "GIT_OBJECT_DIRECTORY": home / "objects",
        "GIT_EXTERNAL_DIFF": home / "evil",
        "GIT_DIFF_OPTS": "--unified=9",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "diff.noprefix",
        "GIT_CONFIG_VALUE_0": "true",
        "GIT_CONFIG_PARAMETERS": "'core.quotepath=false'",
        "GIT_GLOB_PATHSPECS": "1",
        "GIT_NAMESPACE": "evil",
        "GIT_TRACE": "1",
        "GIT_AUTHOR_DATE": "yesterday",
        "LANG": "de_DE.UTF-8",
    }.items():
        monkeypatch.setenv(name, str(value))


@pytest.fixture
def turn_hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Repository], None]]:
    """Call it to surround a repository with hostility; afterwards no foreign program must have been run."""
    yield lambda repo: make_hostile(repo, tmp_path, monkeypatch)
    assert not (tmp_path / "home/was-run").exists()


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """An empty work tree that is a repository."""
    folder = tmp_path / "work"
    folder.mkdir()
    git("init", "-q", "-b", "main", cwd=folder)
    return folder


@pytest.fixture(autouse=True)
def _children_leave_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that a test kills cannot tidy up their temporary folders: pytest does."""
    (tmp_path / ".tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / ".tmp"))
