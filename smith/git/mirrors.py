"""Upstream repositories: a local one used in place, or a bare mirror fetched over plain git.

Forges serve the heads of pull requests as references, so no token, interface or rate limit is involved.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

from smith import process
from smith.errors import NotARepository, SmithError, Unavailable
from smith.git.repository import NETWORK, Repository
from smith.paths import locked, recover, replacing

SAMPLE = "smith:sample"
REFSPECS = (
    "+refs/heads/*:refs/heads/*",
    "+refs/tags/*:refs/tags/*",
    "+refs/pull/*/head:refs/pull/*/head",
    "+refs/merge-requests/*/head:refs/merge-requests/*/head",
)
FETCH_LIMIT_S = 4 * 3600.0
_STALE_LOCK_S = 600.0

_SHORT = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]+\Z")
_SCP = re.compile(r"(?:[^/@:\s]+@)?(?P<host>[^/:@\s]+):(?P<path>[^:\s].*)\Z")


@dataclass(frozen=True)
class Upstream:
    """An upstream to read: ``repo`` is ``owner/name``; ``url`` says where it comes from, without any secret.

    ``stale`` is empty, or the reason why what is there could not be refreshed.
    """

    repo: str
    url: str
    repository: Repository
    stale: str = ""


@dataclass(frozen=True)
class _Address:
    """A URL taken apart: ``fetch`` goes to git as it is, ``public`` is written down."""

    fetch: str
    public: str
    host: str
    owner: str
    name: str


def open_upstream(spec: str, mirrors: Path, *, name: str | None = None, refresh: bool = True) -> Upstream:
    """The upstream that ``spec`` means: ``smith:sample``, a local repository, ``owner/name`` on GitHub, or a URL.

    A local repository is used in place and only read. Anything else is mirrored below ``mirrors`` and fetched again
    with ``refresh``; a mirror that cannot be refreshed is returned with the reason in ``stale``. Raises
    :class:`NotARepository` when there is nothing to read, :class:`Unavailable` when the mirror cannot be written.
    """
    if spec == SAMPLE:
        return _sample(mirrors, name)
    path = Path(os.path.expanduser(spec))
    with contextlib.suppress(OSError, ValueError):  # a URL may be too long to be a path
        if spec and path.exists():
            return _local(path, name)
    address = _parse(spec)
    target = mirrors / address.host / address.owner / f"{address.name}.git"
    stale = _bring_up(address, target, refresh)
    return Upstream(name or f"{address.owner}/{address.name}", address.public, Repository(target), stale)


def reopen_upstream(url: str, mirrors: Path, *, name: str | None = None, refresh: bool = True) -> Upstream:
    """The upstream that a record names by :attr:`Upstream.url`: a local repository is used in place again.

    Raises as :func:`open_upstream`.
    """
    parts = urlsplit(url)
    spec = unquote(parts.path) if parts.scheme == "file" else url
    return open_upstream(spec, mirrors, name=name, refresh=refresh)


def _sample(mirrors: Path, name: str | None) -> Upstream:
    from smith import sample  # only who asks for it pays for it

    # Named by its commit: a smith with another sample has it in another place.
    target = mirrors / "smith" / f"minikernels-{sample.MAIN_COMMIT[:12]}.git"
    sample.build(target)
    return Upstream(name or sample.REPO, sample.URL, Repository.discover(target))


def _local(path: Path, name: str | None) -> Upstream:
    repository = Repository.discover(path)
    form = repository.run("rev-parse", "--show-object-format")
    if form.stdout.text.strip() != "sha1":
        why = form.stderr.text.strip() or "it does not use SHA-1 object ids"
        raise NotARepository(f"{path} cannot be read: {why}", hint="give a git repository's path or URL")
    origin = repository.run("config", "--get", "remote.origin.url").stdout.text.strip()
    with contextlib.suppress(NotARepository):
        address = _parse(origin)
        if not address.host.startswith("local-"):
            return Upstream(name or f"{address.owner}/{address.name}", address.public, repository)
    return Upstream(name or _name_of_path(path.resolve()), path.resolve().as_uri(), repository)


def _name_of_path(path: Path) -> str:
    """``owner/name`` out of the last parts of a path, in which a plus sign may stand for the slash."""
    parts = [part.removesuffix(".git") for part in path.parts[1:] if part not in (".git", "repo")]
    owner, plus, last = parts[-1].partition("+") if parts else ("", "", "")
    if not plus:
        owner, last = (parts[-2] if len(parts) > 1 else "local"), owner
    return f"{_word(owner) or 'local'}/{_word(last) or 'repository'}"


def _word(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.")


def _parse(spec: str) -> _Address:
    """Take an address apart. Raises :class:`NotARepository` for what is none."""
    if _SHORT.match(spec):
        spec = f"https://github.com/{spec}"
    elif "://" not in spec and (scp := _SCP.match(spec)) and "::" not in spec and not spec.startswith("-"):
        return _address(spec, spec, scp["host"], scp["path"])
    parts = urlsplit(spec)
    if "://" not in spec or spec.startswith("-"):
        hint = "give a local repository, owner/name, or a URL"
        raise NotARepository(f"{spec or 'nothing'}: no such folder, and no address either", hint=hint)
    if parts.scheme == "file":
        where = unquote(parts.path)
        digest = hashlib.sha256(where.encode()).hexdigest()[:8]
        owner, last = _name_of_path(Path(where)).split("/")
        return _Address(spec, spec, f"local-{digest}", owner, last)
    # Whoever signs in through the URL must not find the password in a bundle later.
    host = parts.netloc.rpartition("@")[2]
    public = urlunsplit((parts.scheme, host, parts.path, "", ""))
    return _address(spec, public, host, unquote(parts.path))


def _address(fetch: str, public: str, host: str, path: str) -> _Address:
    parts = [word for part in path.strip("/").removesuffix(".git").split("/") if (word := _word(part))]
    if not parts or not _word(host):
        raise NotARepository(f"{public}: the address names no repository", hint="give a URL such as host/owner/name")
    owner = "/".join(parts[:-1]) or _word(host)
    return _Address(fetch, public, _word(host.lower()), owner, parts[-1])


def _bring_up(address: _Address, target: Path, refresh: bool) -> str:
    """Make or refresh the mirror at ``target``; returns why it could not be refreshed, if so."""
    with locked(target.with_name(f"{target.name}.lock")):
        recover(target)
        if not target.exists():
            with replacing(target) as fresh:
                _fetch(Repository.init_bare(fresh), address)
            return ""
        if refresh:
            _clear_locks(target)
            try:
                _fetch(Repository(target), address)
            except SmithError as error:
                return error.message
        return ""


def _fetch(mirror: Repository, address: _Address) -> None:
    options = ["--quiet", "--prune", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules"]
    patience = ["-c", "http.lowSpeedLimit=1000", "-c", "http.lowSpeedTime=120"]
    heads = _network(mirror, address, *patience, "ls-remote", "--symref", "--", address.fetch, "HEAD")
    _network(mirror, address, *patience, "fetch", *options, "--", address.fetch, *REFSPECS)
    if (head := re.match(r"ref: (refs/heads/\S+)\tHEAD", heads)) is not None:
        mirror.git("symbolic-ref", "HEAD", head[1])


def _network(mirror: Repository, address: _Address, *args: str) -> str:
    done = mirror.with_env(NETWORK).run(*args, timeout_s=FETCH_LIMIT_S)
    if not done.ok:
        raise _explain(address, done)
    return done.stdout.text


def _explain(address: _Address, done: process.Completed) -> SmithError:
    said = done.stderr.text.replace(address.fetch, address.public)
    lines = [line for line in said.splitlines() if line.startswith(("fatal:", "error:", "remote:", "ssh:"))]
    detail = next((line for line in lines if not line.startswith("remote:")), done.ending).split(": ", 1)[-1]
    if done.timed_out or re.search(
        r"resolve host|Failed to connect|onnection (?:timed out|refused|reset)|unreachable|Operation too slow", said
    ):
        return NotARepository(f"{address.public}: the network is unreachable: {detail}", hint="or give a local clone")
    if re.search(r"No space left|Disk quota|Read-only file system|unable to create|cannot create", said):
        return Unavailable(f"the mirror of {address.public} cannot be written: {detail}")
    return NotARepository(f"{address.public} cannot be read: {detail}", hint="is it there, and public?")


def _clear_locks(mirror: Path) -> None:
    """Remove lock files that a killed git left: nobody else fetches here, and none of them is held for this long."""
    before = time.time() - _STALE_LOCK_S
    for lock in (*mirror.glob("*.lock"), *(mirror / "refs").rglob("*.lock")):
        with contextlib.suppress(OSError):
            if lock.stat().st_mtime < before:
                lock.unlink()
