"""A Harbor environment without containers: ``harbor run -e smith.export.harbor_environment:BubblewrapEnvironment``.

Runs tasks exported by smith on a machine without Docker. What an image would hold is a folder of this machine: the
workspace made by the task's own ``prepare.sh``, and scratch space; the programs are this machine's, read-only, and
Python packages come from the recipe, layered over the installed torch. Each command is one bubblewrap; processes do not
outlive their command, files do.

Where Harbor is started by root, commands run as root of few rights or as a user of this environment alone, as in a
container. Everybody else gets a user namespace in which all commands are one user. For Python 3.12 or later with the
package ``harbor``; options (``--ek``): ``python`` (the Python that carries torch and smith, default: Harbor's own) and
``layers`` (the folder in which layered environments are kept).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import IO, Any

from harbor.environments.base import (  # type: ignore[import-not-found, unused-ignore]
    BaseEnvironment,
    ExecResult,
    SandboxBuildFailedError,
    transfer_tar_filter,
)
from harbor.environments.capabilities import EnvironmentCapabilities  # type: ignore[import-not-found, unused-ignore]

import smith
from smith import process
from smith.paths import remove_tree
from smith.sandbox.base import Limits
from smith.sandbox.limits import PATH, prefix, program

WORKSPACE = "/workspace"
AGENT = "agent"
WRITABLE = (WORKSPACE, "/logs", "/tests", "/solution", "/opt/smith", "/tmp", "/root", f"/home/{AGENT}")
"""Folders that live as long as the environment; root may write all of them, also where root is no user of its own."""
AGENTS = (WORKSPACE, "/logs", "/tmp", f"/home/{AGENT}")
"""Those that other users may write, as far as the modes of files allow."""
RIGHTS = ("chown", "dac_override", "fowner", "setuid", "setgid", "kill")
"""What root keeps: enough to lay files down and to become another user, nothing that reaches the machine."""
OUTPUT_BYTES = 1 << 20
TIMED_OUT = 124
_ETC = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime", "ssl", "ca-certificates")


class BubblewrapEnvironment(BaseEnvironment):  # type: ignore[misc, unused-ignore]
    """One environment of a trial, the agent's or the verifier's."""

    def __init__(self, *args: Any, python: str = sys.executable, layers: str = "", **kwargs: Any) -> None:
        self._python = python
        self._layers = Path(layers) if layers else Path.home() / ".cache" / "smith" / "environments"
        self._root: Path | None = None
        self._layer: dict[str, Any] = {}
        self._recipe: dict[str, Any] = {}
        self._as_root = os.geteuid() == 0
        self._user = 100_000 + secrets.randbelow(1 << 20) if self._as_root else 1000
        super().__init__(*args, **kwargs)

    @staticmethod
    def type() -> str:
        return "smith-bubblewrap"

    @property
    def capabilities(self) -> EnvironmentCapabilities:
        return EnvironmentCapabilities(disable_internet=True)

    def _validate_definition(self) -> None:
        if not (self.environment_dir / "smith.json").is_file():
            raise FileNotFoundError(f"{self.environment_dir}: not exported by smith (there is no smith.json)")

    @classmethod
    def preflight(cls, kwargs: dict[str, Any] | None = None) -> None:
        super().preflight(kwargs)
        for name in ("bwrap", "prlimit", "setpriv", "git"):
            if shutil.which(name, path=PATH) is None:
                raise SystemExit(f"smith: {name} is not installed")

    async def start(self, force_build: bool) -> None:
        """Make the folders, the layered environment and the workspace."""
        self._recipe = tomllib.loads((self.environment_dir / "recipe.toml").read_text("utf-8"))
        about = json.loads((self.environment_dir / "smith.json").read_text("utf-8"))
        self._layer = await asyncio.to_thread(self._build_layer)
        self._root = Path(tempfile.mkdtemp(prefix="smith-harbor-"))
        self._root.chmod(0o755)
        for inside in WRITABLE:
            self._host(inside).mkdir(parents=True)
            self._host(inside).chmod(0o1777 if inside == "/tmp" else 0o755)
        self._host("/logs").chmod(0o777)
        (self._root / "etc").mkdir()
        for name, text in self._accounts().items():
            (self._root / "etc" / name).write_text(text)
        remove_tree(self._host(WORKSPACE))
        shutil.copytree(self.environment_dir / "source", self._host(WORKSPACE))
        setup = self._host("/opt/smith") / "setup"
        setup.mkdir()
        for name in ("prepare.sh", "entries"):
            shutil.copy(self.environment_dir / name, setup / name)
        done = await self.exec(
            f"chown {AGENT}: /home/{AGENT} && sh /opt/smith/setup/prepare.sh {about['tree']}",
            user="root",
            timeout_sec=600,
        )
        if done.return_code != 0:
            raise SandboxBuildFailedError(f"the workspace cannot be prepared: {done.stderr or done.stdout}")
        if targets := self._mount_targets(writable_only=True):
            await self.ensure_dirs(targets)

    async def stop(self, delete: bool) -> None:
        """Remove everything; with ``delete`` false the folder stays and is named in the log."""
        root, self._root = self._root, None
        if root is not None and delete:
            await asyncio.to_thread(remove_tree, root)
        elif root is not None:
            self.logger.info(f"kept: {root}")

    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        """Run a shell command; after ``timeout_sec`` it is killed with all its processes and ends with status 124."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            status = await self._run(
                ["/bin/bash", "-c", command],
                user=self._resolve_user(user),
                cwd=cwd or self.task_env_config.workdir or WORKSPACE,
                env=self._merge_env(env) or {},
                streams=(None, out, err),
                timeout_s=timeout_sec,
            )
            return ExecResult(stdout=_said(out), stderr=_said(err), return_code=status)

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        """Copy a file of this machine to the absolute path ``target_path``."""
        target = PurePosixPath(target_path)
        await self._unpack({target.name: Path(source_path)}, str(target.parent))

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        """Copy what lies in a folder of this machine into ``target_dir``."""
        await self._unpack({child.name: child for child in Path(source_dir).iterdir()}, target_dir)

    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        """Copy one file out. Read in the sandbox, so that a link in there leads nowhere out here."""
        Path(target_path).parent.mkdir(parents=True, exist_ok=True)
        with Path(target_path).open("wb") as file:
            await self._checked(["cat", "--", source_path], f"{source_path} cannot be read", out=file)

    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        """Copy what lies in a folder out; special files and links that lead out of it stay behind."""
        Path(target_dir).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile() as packed:
            await self._checked(["tar", "-C", source_dir, "-cf", "-", "."], f"{source_dir} cannot be read", out=packed)
            packed.seek(0)
            with tarfile.open(fileobj=packed) as archive:
                archive.extractall(target_dir, filter=_harmless)

    async def _unpack(self, files: Mapping[str, Path], target: str) -> None:
        with tempfile.TemporaryFile() as packed:
            with tarfile.open(fileobj=packed, mode="w") as archive:
                for name, path in files.items():
                    archive.add(path, name, filter=_owned_by_root)
            packed.seek(0)
            script = 'mkdir -p "$1" && exec tar -C "$1" --no-same-owner -xf -'
            await self._checked(["sh", "-c", script, "sh", target], f"{target} cannot be written", into=packed)

    async def _checked(
        self, argv: Sequence[str], failure: str, *, into: IO[bytes] | None = None, out: IO[bytes] | None = None
    ) -> None:
        with tempfile.TemporaryFile() as err:
            status = await self._run(argv, user="root", cwd="/", env={}, streams=(into, out, err))
            if status != 0:
                raise RuntimeError(f"{failure} (status {status}): {_said(err)}")

    async def _run(
        self,
        argv: Sequence[str],
        *,
        user: str | int | None,
        cwd: str,
        env: Mapping[str, str],
        streams: tuple[IO[bytes] | None, IO[bytes] | None, IO[bytes] | None],
        timeout_s: float | None = None,
    ) -> int:
        """Run one command to its end. However this is left, by time or cancelling too, its processes are gone."""
        if self._root is None:
            raise RuntimeError("the environment has not been started")
        into, out, err = streams
        words = self._words(user, cwd, {**self._variables(user), **env})
        child = process.start(
            [program("bwrap"), *words, "--", *self._identity(user), *argv],
            stdin=into or subprocess.DEVNULL,
            stdout=out or subprocess.DEVNULL,
            stderr=err or subprocess.DEVNULL,
            env={"PATH": PATH},
        )
        loop = asyncio.get_running_loop()
        deadline = None if timeout_s is None else loop.time() + timeout_s
        pause = 0.005
        try:
            while not process.exited(child):
                if deadline is not None and loop.time() >= deadline:
                    return TIMED_OUT
                await asyncio.sleep(pause)
                pause = min(2 * pause, 0.2)
        finally:
            await asyncio.shield(asyncio.to_thread(process.kill_group, child))
        return child.returncode if child.returncode >= 0 else 128 - child.returncode

    def _words(self, user: str | int | None, cwd: str, env: Mapping[str, str]) -> list[str]:
        """bubblewrap's arguments: this machine's programs read-only, the environment's own folders writable."""
        assert self._root is not None
        words = ["--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try", "--die-with-parent"]
        words += ["--new-session", "--hostname", "smith", "--clearenv"]
        if not self._network_is_public:
            words.append("--unshare-net")
        if not self._as_root:
            words += ["--unshare-user", "--uid", str(self._user), "--gid", str(self._user)]
        else:
            words += ["--cap-drop", "ALL", *(w for right in RIGHTS for w in ("--cap-add", f"cap_{right}"))]
        words += ["--ro-bind", "/usr", "/usr", "--perms", "0755", "--dir", "/etc"]
        for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
            path = Path("/", name)
            if path.is_symlink():
                words += ["--symlink", os.readlink(path), str(path)]
            elif path.is_dir():
                words += ["--ro-bind", str(path), str(path)]
        for name in (*_ETC, *(("resolv.conf",) if self._network_is_public else ())):
            words += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
        for file in sorted((self._root / "etc").iterdir()):
            words += ["--ro-bind", str(file), f"/etc/{file.name}"]
        words += ["--proc", "/proc", "--dev", "/dev", "--perms", "1777", "--tmpfs", "/dev/shm"]
        words += ["--ro-bind-try", "/sys/devices/system/cpu", "/sys/devices/system/cpu"]
        shown = [(Path(path), path, "--ro-bind") for path in self._layer["binds"]]
        for folder in WRITABLE:
            writable = _is_root(user) or folder in AGENTS
            shown.append((self._host(folder), folder, "--bind" if writable else "--ro-bind"))
        for source, target, how in sorted(shown, key=lambda each: len(PurePosixPath(each[1]).parts)):
            # bubblewrap's own folders above a bind would be closed to other users.
            for parent in reversed(PurePosixPath(target).parents[:-1]):
                if not any(parent.is_relative_to(p) for p in ("/usr", "/proc", "/dev")):
                    words += ["--perms", "0755", "--dir", str(parent)]
            words += [how, str(source), target]
        for name, value in env.items():
            words += ["--setenv", name, value]
        return [*words, "--chdir", cwd]

    def _identity(self, user: str | int | None) -> list[str]:
        """Words that become ``user``: root stays what it is, every other name is this environment's own user."""
        if _is_root(user):
            return []
        limits = prefix(Limits(wall_s=0, memory_bytes=(self.task_env_config.memory_mb or 8192) << 20))
        if not self._as_root:
            return limits
        who = [f"--reuid={self._user}", f"--regid={self._user}", "--clear-groups", "--no-new-privs"]
        return [*limits, program("setpriv"), *who, "--bounding-set=-all", "--inh-caps=-all", "--"]

    def _variables(self, user: str | int | None) -> dict[str, str]:
        folders = [str(PurePosixPath(WORKSPACE, p)) for p in self._recipe.get("python_path", ())]
        return {
            "HOME": "/root" if self._as_root and _is_root(user) else f"/home/{AGENT}",
            "LANG": "C.UTF-8",
            **self._layer["env"],
            "PATH": f"{Path(self._layer['python']).parent}:{PATH}",
            "PYTHONPATH": ":".join(folders),
            # For the verifier: which Python has the grader's libraries, and what tests run in.
            "SMITH_GRADER_PYTHON": self._python,
            "SMITH_TEST_ENVIRONMENT": json.dumps(self._layer),
            **self._recipe.get("env", {}),
        }

    def _build_layer(self) -> dict[str, Any]:
        about = self.environment_dir / "smith.json"
        package = str(Path(smith.__file__).parent.parent)
        done = process.run(
            [self._python, "-P", "-m", "smith.export.harbor_layer", about, self._layers],
            env={**os.environ, "PYTHONPATH": package},
        )
        if not done.ok:
            raise SandboxBuildFailedError(f"no environment for this task: {done.stderr.text.strip()[-2000:]}")
        return dict(json.loads(done.stdout.text))

    def _accounts(self) -> dict[str, str]:
        root = "root:x:0:0::/root:/bin/bash\n"
        return {
            "passwd": f"{root}{AGENT}:x:{self._user}:{self._user}::/home/{AGENT}:/bin/bash\n",
            "group": f"root:x:0:\n{AGENT}:x:{self._user}:\n",
            "hosts": "127.0.0.1 localhost smith\n::1 localhost\n",
        }

    def _host(self, inside: str) -> Path:
        assert self._root is not None
        return self._root / inside.strip("/").replace("/", "-")


def _is_root(user: str | int | None) -> bool:
    return user is None or str(user).partition(":")[0] in ("0", "root")


def _harmless(member: tarfile.TarInfo, folder: str) -> tarfile.TarInfo | None:
    """Harbor's filter, which also leaves out what that one refuses: one bad link must not cost all other files."""
    with contextlib.suppress(tarfile.FilterError):
        kept: tarfile.TarInfo | None = transfer_tar_filter(member, folder)
        return kept
    return None


def _owned_by_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    return member


def _said(stream: IO[bytes]) -> str:
    """Head and tail of what a command said, with a marked gap where it said more than anybody reads."""
    total = stream.seek(0, os.SEEK_END)
    stream.seek(0)
    data = stream.read(OUTPUT_BYTES)
    if total > OUTPUT_BYTES:
        rest = min(OUTPUT_BYTES, total - OUTPUT_BYTES)
        stream.seek(total - rest)
        gap = total - OUTPUT_BYTES - rest
        data += (f"\n[... {gap} bytes cut ...]\n".encode() if gap else b"") + stream.read()
    return data.decode("utf-8", "replace")
