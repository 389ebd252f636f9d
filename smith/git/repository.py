"""One git repository, called in a way that only its contents can influence.

Inherited ``GIT_*`` variables, the user's and the system's configuration, hooks, templates, replace refs, lazy
fetching, external diff and text conversion programs, localisation: none of these may change a result.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import threading
from collections.abc import Iterator, Mapping
from configparser import Error as ConfigError
from functools import cached_property
from pathlib import Path

import git as gitpython

from smith import process
from smith.errors import BadInput, CommandFailed, NotARepository, Unavailable

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
NO_PROTOCOL = "none"
NETWORK = {"GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh"}
"""Variables for a call that is meant to reach a remote; no other call may."""
OID = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?\Z")

# Given before the sub-command, these win over every configuration file, that of the repository too.
_FIXED_CONFIG = (
    "core.quotePath=true",
    "core.hooksPath=/dev/null",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.autocrlf=false",
    "core.safecrlf=false",
    "core.eol=lf",
    "core.fileMode=true",
    "core.symlinks=true",
    "core.ignoreCase=false",
    "core.precomposeUnicode=false",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.commitGraph=true",
    "core.logAllRefUpdates=false",
    "core.alternateRefsCommand=true",
    "protocol.ext.allow=never",
    "diff.noprefix=false",
    "diff.mnemonicPrefix=false",
    "diff.external=",
    "diff.algorithm=myers",
    "diff.renames=true",
    "diff.renameLimit=2000",
    "diff.suppressBlankEmpty=false",
    "diff.interHunkContext=0",
    "diff.context=3",
    "diff.orderFile=/dev/null",
    "apply.whitespace=nowarn",
    "apply.ignoreWhitespace=no",
    "i18n.commitEncoding=UTF-8",
    "i18n.logOutputEncoding=UTF-8",
    "log.showSignature=false",
    "log.mailmap=false",
    "log.follow=false",
    "commit.gpgSign=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "fetch.fsckObjects=false",
    "uploadpack.allowFilter=true",
    "uploadpack.allowAnySHA1InWant=true",
    "safe.directory=*",
    "advice.detachedHead=false",
    "advice.graftFileDeprecated=false",
    "submodule.recurse=false",
)


def clean_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment in which git runs: no inherited ``GIT_*``, no user or system configuration, C locale."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    # A caller may need its own way to the network; everything else of the user's configuration is left out.
    for name in ("GIT_SSH_COMMAND", "GIT_SSL_CAINFO"):
        if name in os.environ:
            env[name] = os.environ[name]
    env.update(
        GIT_CONFIG_NOSYSTEM="1",
        GIT_CONFIG_GLOBAL=os.devnull,
        GIT_ATTR_NOSYSTEM="1",
        GIT_TERMINAL_PROMPT="0",
        GIT_NO_LAZY_FETCH="1",
        # Older git knows only this: a missing object of a partial clone would be fetched, by a program that the clone's
        # own configuration names.
        GIT_ALLOW_PROTOCOL=NO_PROTOCOL,
        GIT_NO_REPLACE_OBJECTS="1",
        GIT_GRAFT_FILE=os.devnull,
        GIT_OPTIONAL_LOCKS="0",
        GIT_LITERAL_PATHSPECS="1",
        GIT_PAGER="cat",
        LC_ALL="C.UTF-8",
        LANGUAGE="",
        TZ="UTC",
    )
    env.update(extra or {})
    return env


# GitPython lets errors of a damaged configuration file through as they are.
_UNREADABLE = (gitpython.InvalidGitRepositoryError, gitpython.NoSuchPathError, ConfigError, ValueError, OSError)


_ENVIRON = threading.Lock()


@contextlib.contextmanager
def _without_git_variables() -> Iterator[None]:
    """GitPython looks for a repository by the variables of this very process."""
    with _ENVIRON:
        held = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("GIT_")}
        try:
            yield
        finally:
            os.environ.update(held)


class Repository:
    """A git directory (bare or not) that is only ever read or written through plumbing.

    ``git_dir`` is the repository's own directory (``.git`` or a bare one). ``env`` adds variables to every call,
    e.g. a scratch object directory.
    """

    def __init__(self, git_dir: Path, *, env: Mapping[str, str] | None = None) -> None:
        self.git_dir = git_dir.absolute()  # a call may run in another folder
        self._env = dict(env or {})

    @classmethod
    def discover(cls, path: Path) -> Repository:
        """The repository that *is* at ``path`` (a work tree's root or a bare directory).

        Raises :class:`NotARepository`.
        """
        if not path.exists():
            raise NotARepository(f"{path}: no such file or folder", hint="give a git repository's path or URL")
        try:
            return cls._opened(path, parents=False)
        except _UNREADABLE as error:
            raise NotARepository(f"{path} is no git repository", hint="give a git repository's path or URL") from error

    @classmethod
    def containing(cls, path: Path) -> Repository:
        """The repository whose work tree contains ``path``. Raises :class:`NotARepository`."""
        try:
            return cls._opened(path, parents=True)
        except _UNREADABLE as error:
            raise NotARepository(f"{path} is not inside a git repository", hint="run git init there") from error

    @classmethod
    def init_bare(cls, git_dir: Path) -> Repository:
        """Make an empty bare repository at ``git_dir`` (which may exist) and return it."""
        argv = ["git", "init", "-q", "--bare", "--template=", "--initial-branch=main", str(git_dir)]
        process.run(argv, env=clean_environment(), timeout_s=60).check()
        return cls(git_dir)

    @classmethod
    def _opened(cls, path: Path, *, parents: bool) -> Repository:
        # A dollar sign in a path is a dollar sign.
        with (
            _without_git_variables(),
            gitpython.Repo(path, search_parent_directories=parents, expand_vars=False) as found,
        ):
            return cls(Path(found.git_dir).resolve())

    def with_env(self, extra: Mapping[str, str]) -> Repository:
        """The same repository, called with more variables."""
        return Repository(self.git_dir, env={**self._env, **extra})

    @property
    def environment(self) -> dict[str, str]:
        return clean_environment(self._env)

    def argv(self, *args: str) -> list[str]:
        """The command line of a git call on this repository."""
        fixed = [part for setting in _FIXED_CONFIG for part in ("-c", setting)]
        return ["git", *fixed, f"--git-dir={self.git_dir}", *args]

    def run(
        self, *args: str, input: bytes | None = None, timeout_s: float = 600.0, cwd: Path | None = None
    ) -> process.Completed:
        """Run git; the whole output is kept. Never raises for a bad status.

        It runs in the git directory unless ``cwd`` is given: git would read the ``.gitattributes`` of any other folder.
        """
        where = cwd or self.git_dir
        return process.run(
            self.argv(*args), env=self.environment, input=input, timeout_s=timeout_s, keep=None, cwd=where
        )

    def git(self, *args: str, input: bytes | None = None, timeout_s: float = 600.0) -> bytes:
        """Standard output of a git call. Raises :class:`CommandFailed`."""
        done = self.run(*args, input=input, timeout_s=timeout_s)
        if not done.ok:
            words = done.stderr.text
            if any(reason in words for reason in process.DISK):
                raise Unavailable(f"{self.git_dir}: {words.strip().splitlines()[-1]}", hint="nothing was changed")
            raise CommandFailed(["git", *args], done.ending, words)
        return done.stdout.data

    def text(self, *args: str, input: bytes | None = None) -> str:
        """Standard output as text without the final newline."""
        return self.git(*args, input=input).decode("utf-8", "surrogateescape").rstrip("\n")

    def popen(self, *args: str, stdin: int | None = subprocess.PIPE) -> subprocess.Popen[bytes]:
        """Start a long-lived plumbing process such as ``cat-file --batch``. The caller ends it."""
        argv = self.argv(*args)
        return process.start(argv, env=self.environment, stdin=stdin, stderr=subprocess.DEVNULL, cwd=self.git_dir)

    def resolve(self, revision: str, kind: str = "commit") -> str:
        """The object id of ``revision``, peeled to ``kind``. Raises :class:`BadInput` when there is none."""
        done = self.run("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{{kind}}}")
        oid = done.stdout.text.strip()
        if not done.ok or not OID.match(oid):
            raise BadInput(f"{revision}: no such {kind} in {self.git_dir.name}")
        return oid

    def has(self, oid: str) -> bool:
        """Whether the object is present here."""
        return self.run("cat-file", "-e", oid).ok

    def refs(self, prefix: str = "refs/") -> dict[str, str]:
        """Reference name to object id, for those below ``prefix``."""
        out = self.text("for-each-ref", "--format=%(refname)%00%(objectname)", prefix.rstrip("/"))
        pairs = (line.split("\0") for line in out.split("\n") if line)  # a name may hold other line separators
        return {name: oid for name, oid in pairs}

    @cached_property
    def default_branch(self) -> str:
        """Full name of the branch that HEAD names, or of main or master where HEAD dangles."""
        head = self.run("symbolic-ref", "--quiet", "HEAD").stdout.text.strip()
        refs = self.refs()
        for name in (
            head,
            "refs/heads/main",
            "refs/heads/master",
            "refs/remotes/origin/HEAD",
            "refs/remotes/origin/main",
            "refs/remotes/origin/master",
        ):
            if name and name in refs:
                return name
        raise BadInput(f"{self.git_dir}: no default branch", hint="name one with --branch")
