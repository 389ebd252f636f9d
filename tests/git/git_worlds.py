"""Small worlds for the git tests: a folder's content as a dictionary, random ones, and hostile surroundings."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from hypothesis import strategies as st

from smith.git.objects import unsafe

World = dict[bytes, tuple[str, bytes]]
"""Path to mode and content; ``120000`` is a link whose content is its target."""

FILE, EXEC, LINK = "100644", "100755", "120000"


def plant(folder: Path, world: World) -> Path:
    """Write a world with the plainest of means."""
    folder.mkdir(parents=True, exist_ok=True)
    for path, (mode, content) in world.items():
        target = os.path.join(os.fsencode(folder), path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if mode == LINK:
            os.symlink(content, target)
        else:
            with open(target, "wb") as file:
                file.write(content)
            os.chmod(target, 0o755 if mode == EXEC else 0o644)
    return folder


def harvest(folder: Path) -> World:
    """Read a world back with the plainest of means."""
    world: World = {}
    root = os.fsencode(folder)
    for here, folders, files in os.walk(root):
        for name in [*folders, *files]:
            whole = os.path.join(here, name)
            path = os.path.relpath(whole, root)
            if os.path.islink(whole):
                world[path] = (LINK, os.readlink(whole))
            elif os.path.isfile(whole):
                with open(whole, "rb") as file:
                    world[path] = (EXEC if os.stat(whole).st_mode & 0o100 else FILE, file.read())
    return world


def git(*args: str, cwd: Path, env: dict[str, str] | None = None) -> str:
    """The user's own git, with none of smith's precautions but those that keep the tests off the user's home."""
    base = {"PATH": os.environ["PATH"], "HOME": str(cwd), "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C.UTF-8"}
    for role in ("AUTHOR", "COMMITTER"):
        base |= {f"GIT_{role}_NAME": "A U Thor", f"GIT_{role}_EMAIL": "a@example.com"}
    done = subprocess.run(["git", *args], cwd=cwd, env=base | (env or {}), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode("utf-8", "surrogateescape").strip()


def commit_all(folder: Path, message: str = "change") -> str:
    """Commit all of a work tree (made a repository where it is none) and return the commit."""
    if not (folder / ".git").exists():
        git("init", "-q", "-b", "main", cwd=folder)
    git("add", "-A", "-f", cwd=folder)
    git("commit", "-q", "--allow-empty", "-m", message, cwd=folder)
    return git("rev-parse", "HEAD", cwd=folder)


_NAMES = st.one_of(
    st.sampled_from([b"a", b"b", b"dir", b"kernel.py", b"with space", b"tab\there", b'quo"te', b"line\nend", b"-dash"]),
    st.sampled_from([b":(top)x", b"back\\slash", "käse".encode(), b"\xff\xfe", b"end ", b"cr\r", b"git~1", b"a*?[b]"]),
    st.binary(min_size=1, max_size=6).filter(lambda name: b"\0" not in name and not unsafe(name) and b"/" not in name),
)
_PATHS = st.lists(_NAMES, min_size=1, max_size=3).map(b"/".join)
_LINES = st.lists(
    st.sampled_from(
        [b"one", b"two", b"", b"\t x", b"--- a/x", b"+++ b/y", b"@@ -1 +1 @@", b"caf\xe9", b"diff --git a/b b/b"]
    ),
    max_size=12,
)
_TEXTS = st.builds(
    lambda lines, end, last: end.join(lines) + (end if last else b""),
    _LINES,
    st.sampled_from([b"\n", b"\r\n", b"\r"]),
    st.booleans(),
)
_CONTENTS = st.one_of(_TEXTS, st.binary(max_size=200), st.sampled_from([b"", b"\n", b"\0", b"x" * 5000, b"a\n" * 300]))
_TARGETS = st.sampled_from([b"a", b"../up", b"/etc/passwd", b"dir/b", b"caf\xe9", b"no where"])
_FILES = st.one_of(
    st.tuples(st.sampled_from([FILE, FILE, EXEC]), _CONTENTS),
    st.tuples(st.just(LINK), _TARGETS),
)


def _consistent(world: World) -> World:
    """Drop what would need a file to be a folder."""
    folders = {path[:i] for path in world for i in range(len(path)) if path[i : i + 1] == b"/"}
    return {path: item for path, item in world.items() if path not in folders}


worlds = st.dictionaries(_PATHS, _FILES, max_size=8).map(_consistent)


@st.composite
def changed_worlds(draw: st.DrawFn) -> tuple[World, World]:
    """A world and another made from it: files renamed, edited, removed, given another mode or kind, and new ones."""
    old = draw(worlds)
    new: World = {}
    for path, (mode, content) in old.items():
        what = draw(st.sampled_from(["keep", "keep", "edit", "rename", "remove", "mode", "kind", "folder"]))
        if what == "edit" and mode != LINK:
            new[path] = (mode, content + draw(_CONTENTS))
        elif what == "rename":
            new[draw(_PATHS)] = (mode, content)
        elif what == "mode" and mode != LINK:
            new[path] = (EXEC if mode == FILE else FILE, content)
        elif what == "kind":
            new[path] = draw(_FILES)
        elif what == "folder":
            new[path + b"/" + draw(_NAMES)] = (mode, content)
        elif what != "remove":
            new[path] = (mode, content)
    return old, _consistent(new | draw(st.dictionaries(_PATHS, _FILES, max_size=2)))
