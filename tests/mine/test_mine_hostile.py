"""Clones that lack things, names and words in any bytes, and configurations that would run code."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from smith.errors import BadInput
from smith.git.repository import Repository, clean_environment
from smith.mine import mine
from smith.records.candidate import Candidate, Mined, Role
from tests.mine.mine_upstreams import Upstream, kernel


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    upstream = Upstream.make(tmp_path / "up.git")
    upstream.squash(1, "Fix one", {"pkg/add.py": kernel(value=2)})
    upstream.merge(2, "Fix two", {"pkg/add.py": kernel(value=3), "pkg/b.py": kernel("b")})
    upstream.rebase(3, [("Fix three", {"pkg/b.py": kernel("b", value=5)}), ("And more", {"pkg/b.py": kernel("b", 6)})])
    upstream.pull(4, [("step", {"pkg/c.py": kernel("c")}), ("two", {"pkg/c.py": kernel("c", 2)})])
    upstream.push("Lost number", {"pkg/c.py": kernel("c", 2)})
    return upstream


def git(*args: str, cwd: Path | None = None) -> None:
    env = {**clean_environment(), "GIT_ALLOW_PROTOCOL": "file"}
    subprocess.run(["git", *args], cwd=cwd, env=env, check=True, capture_output=True)


def clone(upstream: Upstream, dest: Path, *options: str) -> Repository:
    upstream.repo.git("config", "uploadpack.allowFilter", "true")
    git("clone", "-q", "--mirror", *options, upstream.repo.git_dir.as_uri(), str(dest))
    return Repository(dest)


def run(repo: Repository, **how: object) -> Mined:
    return mine(repo, repo="o/r", url="u", all=True, **how)  # type: ignore[arg-type]


def numbers(found: Mined) -> list[int]:
    return [one.pr for one in found.candidates]


def test_the_whole_is_found(upstream: Upstream) -> None:
    assert numbers(run(upstream.repo)) == [4, 3, 2, 1]


def test_a_shallow_clone_is_refused(upstream: Upstream, tmp_path: Path) -> None:
    repo = clone(upstream, tmp_path / "c.git", "--depth=2")
    with pytest.raises(BadInput, match=r"shallow clone.*unshallow"):
        run(repo)


def test_a_clone_without_pull_refs_has_what_its_commits_state(upstream: Upstream, tmp_path: Path) -> None:
    git("clone", "-q", upstream.repo.git_dir.as_uri(), str(tmp_path / "c"))
    assert numbers(run(Repository.discover(tmp_path / "c"))) == [2, 1]


def test_a_clone_without_blobs_gives_no_wrong_answer(upstream: Upstream, tmp_path: Path) -> None:
    found = run(clone(upstream, tmp_path / "c.git", "--filter=blob:none"), verify=True)
    # Without content nothing says what a kernel is, and nothing is fetched to find out.
    assert found.seen >= 2 and found.candidates == ()
    assert {one.reason for one in found.rejections} == {"no_kernel_change"}
    assert any("blobs" in note for note in found.notes)


def test_one_missing_blob_hides_one_file(upstream: Upstream) -> None:
    oid = upstream.repo.text("rev-parse", "main:pkg/c.py")
    upstream.repo.git("repack", "-qadf")
    pack = next(upstream.repo.git_dir.glob("objects/pack/*.pack"))
    outside = upstream.repo.git_dir / "aside.pack"
    pack.rename(outside)
    pack.with_suffix(".idx").unlink()
    data = outside.read_bytes()
    upstream.repo.git("unpack-objects", "-q", input=data)
    (upstream.repo.git_dir / "objects" / oid[:2] / oid[2:]).unlink()
    assert set(numbers(run(upstream.repo))) >= {1, 2, 3}


def test_an_empty_repository_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no default branch|no such commit"):
        run(Repository.init_bare(tmp_path / "empty.git"))


def test_a_detached_head_in_a_clone_is_no_matter(upstream: Upstream, tmp_path: Path) -> None:
    git("clone", "-q", upstream.repo.git_dir.as_uri(), str(tmp_path / "c"))
    git("checkout", "-q", "--detach", "HEAD~1", cwd=tmp_path / "c")
    assert numbers(run(Repository.discover(tmp_path / "c"))) == [2, 1]


def test_names_and_words_in_any_bytes(upstream: Upstream) -> None:
    names = ["pkg/new\nline.py", "pkg/tab\t.py", "pkg/\udcff.py", 'pkg/"quoted".py', "pkg/ü ☃.py"]
    upstream.squash(
        9,
        "Fix \u2603 and \udcff".encode("utf-8", "surrogateescape").decode("latin-1"),
        {name: kernel(f"k{n}") for n, name in enumerate(names)},
    )
    (one,) = [c for c in run(upstream.repo).candidates if c.pr == 9]
    assert {file.path for file in one.files} == set(names)
    assert all(file.role is Role.KERNEL for file in one.files)
    assert Candidate.loads(one.dump_line(), "c.json") == one


def test_submodules_and_pointers_are_no_kernels(upstream: Upstream) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 12345\n"
    upstream.squash(9, "Move data", {"pkg/big.cu": pointer, "pkg/add.py": kernel(value=9)})
    tree = upstream.repo.text("ls-tree", "main") + "\n160000 commit " + "1" * 40 + "\tthird"
    oid = upstream.repo.text("mktree", "--missing", input=f"{tree}\n".encode())
    commit = upstream.repo.text(
        "-c", "user.name=a", "-c", "user.email=a@b", "commit-tree", oid, "-p", upstream.main, "-m", "Bump third (#10)"
    )
    upstream.ref("refs/heads/main", commit)
    upstream.ref("refs/pull/10/head", commit)
    found = run(upstream.repo)
    (nine,) = [c for c in found.candidates if c.pr == 9]
    assert [k.path for k in nine.kernels] == ["pkg/add.py"]
    assert [(r.pr, r.reason) for r in found.rejections] == [(10, "maintenance")]


def test_no_configuration_runs_code(upstream: Upstream, tmp_path: Path) -> None:
    expected = run(upstream.repo, verify=True)
    canary = tmp_path / "canary"
    evil = tmp_path / "evil"
    evil.write_text(f"#!/bin/sh\ntouch {canary}\ncat\n")
    evil.chmod(0o755)
    git_dir = upstream.repo.git_dir
    (git_dir / "info").mkdir(exist_ok=True)
    (git_dir / "info" / "attributes").write_text("* diff=evil filter=evil merge=evil\n")
    for hook in ("reference-transaction", "post-checkout", "pre-auto-gc", "fsmonitor-watchman"):
        (git_dir / "hooks").mkdir(exist_ok=True)
        (git_dir / "hooks" / hook).symlink_to(evil)
    for key, value in {
        "core.fsmonitor": str(evil),
        "core.hooksPath": str(git_dir / "hooks"),
        "core.pager": str(evil),
        "core.sshCommand": str(evil),
        "core.alternateRefsCommand": str(evil),
        "diff.external": str(evil),
        "diff.evil.command": str(evil),
        "diff.evil.textconv": str(evil),
        "filter.evil.smudge": str(evil),
        "filter.evil.clean": str(evil),
        "merge.evil.driver": f"{evil} %O %A %B",
        "merge.default": "evil",
        "gpg.program": str(evil),
        "log.showSignature": "true",
        "trailer.x.command": str(evil),
        "alias.log": f"!{evil}",
        "remote.origin.url": str(upstream.repo.git_dir),
        "remote.origin.promisor": "true",
        "remote.origin.uploadpack": str(evil),
        "extensions.partialClone": "origin",
        "core.repositoryFormatVersion": "1",
        "diff.renames": "false",
        "i18n.logOutputEncoding": "latin-1",
        "log.date": "relative",
    }.items():
        git("config", "--file", str(git_dir / "config"), key, value)
    # A missing object is what a promisor would be asked for.
    oid = upstream.repo.text("rev-parse", "main:README.md")
    (git_dir / "objects" / oid[:2] / oid[2:]).unlink(missing_ok=True)
    assert numbers(run(upstream.repo, verify=True)) == numbers(expected)
    assert not canary.exists()
