"""Upstream repositories: in place, mirrored, refreshed, stale; and names and addresses."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from git_worlds import commit_all, git

from smith.errors import NotARepository, Unavailable
from smith.git import mirrors
from smith.git.mirrors import open_upstream, reopen_upstream
from smith.git.repository import Repository


@pytest.fixture
def forge(work: Path) -> Path:
    """A repository such as a forge serves it: branches, tags, heads of pull requests, merge requests."""
    (work / "f").write_text("1")
    first = commit_all(work, "first")
    git("tag", "v1", cwd=work)
    git("branch", "release/2", cwd=work)
    for name in ("refs/pull/7/head", "refs/pull/7/merge", "refs/merge-requests/3/head", "refs/hidden/x"):
        git("update-ref", name, first, cwd=work)
    return work


def served(forge: Path) -> str:
    return f"file://{forge}"


def test_a_local_repository_is_used_in_place(forge: Path, tmp_path: Path) -> None:
    before = sorted(str(p) for p in forge.rglob("*"))
    upstream = open_upstream(str(forge), tmp_path / "mirrors")
    assert upstream.repository.git_dir == forge / ".git"
    assert upstream.repo == f"{tmp_path.name}/work"
    assert upstream.url == f"file://{forge}"
    assert not (tmp_path / "mirrors").exists()
    assert sorted(str(p) for p in forge.rglob("*")) == before
    assert open_upstream(str(forge), tmp_path / "mirrors", name="some/thing").repo == "some/thing"
    again = reopen_upstream(upstream.url, tmp_path / "mirrors")
    assert again.repository.git_dir == forge / ".git" and not (tmp_path / "mirrors").exists()


@pytest.mark.parametrize(
    ("origin", "repo", "url"),
    [
        ("https://user:secret@github.com/ROCm/aiter.git", "ROCm/aiter", "https://github.com/ROCm/aiter.git"),
        ("git@github.com:fla-org/fla.git", "fla-org/fla", "git@github.com:fla-org/fla.git"),
        ("ssh://git@host.example:2222/a/b", "a/b", "ssh://host.example:2222/a/b"),
    ],
)
def test_a_clone_is_named_after_its_origin(forge: Path, tmp_path: Path, origin: str, repo: str, url: str) -> None:
    git("remote", "add", "origin", origin, cwd=forge)
    upstream = open_upstream(str(forge), tmp_path / "mirrors")
    assert (upstream.repo, upstream.url) == (repo, url)


@pytest.mark.parametrize(
    ("path", "repo"),
    [
        ("linkedin+Liger-Kernel/repo", "linkedin/Liger-Kernel"),
        ("linkedin+Liger-Kernel", "linkedin/Liger-Kernel"),
        ("ROCm/aiter.git", "ROCm/aiter"),
        ("ROCm/aiter/.git", "ROCm/aiter"),
        ("odd owner/odd name!", "odd-owner/odd-name"),
    ],
)
def test_names_out_of_paths(tmp_path: Path, path: str, repo: str) -> None:
    (tmp_path / path).mkdir(parents=True)
    Repository.init_bare(tmp_path / path)
    assert open_upstream(str(tmp_path / path), tmp_path / "mirrors").repo == repo


def test_a_mirror_has_all_that_mining_needs(forge: Path, tmp_path: Path) -> None:
    upstream = open_upstream(served(forge), tmp_path / "mirrors")
    assert set(upstream.repository.refs()) == {
        "refs/heads/main",
        "refs/heads/release/2",
        "refs/tags/v1",
        "refs/pull/7/head",
        "refs/merge-requests/3/head",
    }
    assert upstream.repository.default_branch == "refs/heads/main"
    assert upstream.repo == f"{tmp_path.name}/work" and not upstream.stale
    assert upstream.repository.git_dir.is_relative_to(tmp_path / "mirrors")
    assert [p.name for p in upstream.repository.git_dir.parent.iterdir() if p.suffix != ".lock"] == ["work.git"]


def test_refresh_follows_and_prunes(forge: Path, tmp_path: Path) -> None:
    open_upstream(served(forge), tmp_path / "mirrors")
    (forge / "f").write_text("2")
    second = commit_all(forge, "second")
    git("branch", "-D", "release/2", cwd=forge)
    git("branch", "release", cwd=forge)  # a branch where a folder of branches was
    git("branch", "-m", "main", "trunk", cwd=forge)
    git("update-ref", "refs/pull/7/head", second, cwd=forge)  # forced
    old = open_upstream(served(forge), tmp_path / "mirrors", refresh=False)
    assert "refs/heads/release/2" in old.repository.refs()
    new = open_upstream(served(forge), tmp_path / "mirrors")
    refs = new.repository.refs()
    assert refs["refs/pull/7/head"] == refs["refs/heads/trunk"] == refs["refs/heads/release"] == second
    assert "refs/heads/main" not in refs
    assert new.repository.default_branch == "refs/heads/trunk"


def test_a_mirror_that_cannot_be_refreshed_is_stale(forge: Path, tmp_path: Path) -> None:
    first = open_upstream(served(forge), tmp_path / "mirrors")
    forge.rename(tmp_path / "gone")
    again = open_upstream(served(forge), tmp_path / "mirrors")
    assert "cannot be read" in again.stale and "\n" not in again.stale
    assert again.repository.refs() == first.repository.refs()
    assert not open_upstream(served(forge), tmp_path / "mirrors", refresh=False).stale


def test_two_repositories_of_one_name_do_not_mix(tmp_path: Path) -> None:
    places = []
    for place in ("here", "there"):
        folder = tmp_path / place / "owner/name"
        folder.mkdir(parents=True)
        (folder / "f").write_text(place)
        commit_all(folder)
        places.append(open_upstream(f"file://{folder}", tmp_path / "mirrors").repository.git_dir)
    assert places[0] != places[1]


@pytest.mark.parametrize(
    "spec", ["", "nowhere", "/no/such/path", "a/b/c", "--upload-pack=evil", "ext::sh -c evil", "./x/y", "http://", "~x"]
)
def test_what_is_no_address(tmp_path: Path, spec: str) -> None:
    with pytest.raises(NotARepository) as caught:
        open_upstream(spec, tmp_path / "mirrors")
    assert "\n" not in str(caught.value)
    assert not list((tmp_path / "mirrors").rglob("*.git"))


def test_what_is_no_repository(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("x")
    for spec in (str(tmp_path / "folder"), str(tmp_path / "file"), f"file://{tmp_path}/folder", "file:///no/such"):
        with pytest.raises(NotARepository):
            open_upstream(spec, tmp_path / "mirrors")
    assert not list((tmp_path / "mirrors").rglob("*.git"))
    assert not list((tmp_path / "mirrors").rglob(".*.new.*"))


def test_sha256_repositories_are_refused(tmp_path: Path) -> None:
    git("init", "-q", "--object-format=sha256", "s", cwd=tmp_path)
    with pytest.raises(NotARepository, match="SHA-1"):
        open_upstream(str(tmp_path / "s"), tmp_path / "mirrors")


def test_an_unreachable_network_is_said_so_and_no_secret_told(tmp_path: Path) -> None:
    with pytest.raises(NotARepository, match="network is unreachable") as caught:
        open_upstream("http://user:secret@127.0.0.1:9/owner/name", tmp_path / "mirrors")
    assert "secret" not in str(caught.value)
    assert not list((tmp_path / "mirrors").rglob("*.git"))


def test_owner_and_name_mean_github(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(mirrors, "_fetch", lambda mirror, address: asked.append(address.fetch))
    upstream = open_upstream("ROCm/aiter", tmp_path)
    assert asked == ["https://github.com/ROCm/aiter"]
    assert upstream.repository.git_dir == tmp_path / "github.com/ROCm/aiter.git"
    assert (upstream.repo, upstream.url) == ("ROCm/aiter", "https://github.com/ROCm/aiter")
    assert open_upstream("https://gitlab.com/g/sub/x.git", tmp_path).repo == "g/sub/x"


def test_an_unwritable_place_is_unavailable(forge: Path) -> None:
    with pytest.raises(Unavailable):
        open_upstream(served(forge), Path("/proc/smith"))


CODE = """
import sys; from pathlib import Path
from smith.git.mirrors import open_upstream, reopen_upstream
print(1, flush=True)
open_upstream(sys.argv[1], Path(sys.argv[2]))
"""


def test_a_killed_first_fetch_leaves_nothing(forge: Path, tmp_path: Path) -> None:
    argv = [sys.executable, "-c", CODE, served(forge), str(tmp_path / "mirrors")]
    for delay in (0.0, 0.03, 0.06, 0.1, 0.2):
        child = subprocess.Popen(argv, stdout=subprocess.PIPE)
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(delay)
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        for left in (tmp_path / "mirrors").rglob("work.git"):
            assert len(Repository(left).refs()) == 5
    for _ in range(50):  # an orphan of the killed process may still be writing
        assert len(open_upstream(served(forge), tmp_path / "mirrors").repository.refs()) == 5
        if not list((tmp_path / "mirrors").rglob(".*.new.*")):
            return
        time.sleep(0.1)
    raise AssertionError("what killed processes left is still there")


def test_two_processes_share_a_mirror(forge: Path, tmp_path: Path) -> None:
    argv = [sys.executable, "-c", CODE, served(forge), str(tmp_path / "mirrors")]
    children = [subprocess.Popen(argv, stdout=subprocess.DEVNULL) for _ in range(3)]
    assert [child.wait() for child in children] == [0, 0, 0]


def test_lock_files_of_a_killed_git_are_removed(forge: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    upstream = open_upstream(served(forge), tmp_path / "mirrors")
    (forge / "f").write_text("2")
    second = commit_all(forge)
    lock = upstream.repository.git_dir / "refs/heads/main.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.write_text("")
    assert open_upstream(served(forge), tmp_path / "mirrors").stale  # it may still be held
    monkeypatch.setattr(mirrors, "_STALE_LOCK_S", -1.0)
    assert not open_upstream(served(forge), tmp_path / "mirrors").stale
    assert upstream.repository.resolve("refs/heads/main") == second


def test_the_sample(tmp_path: Path) -> None:
    upstream = open_upstream("smith:sample", tmp_path)
    assert (upstream.repo, upstream.url) == ("smith-lab/minikernels", "smith:sample")
    assert upstream.repository.resolve("HEAD")
