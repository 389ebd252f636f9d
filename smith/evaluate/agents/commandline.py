"""Agents that are somebody's program: started in the sandbox without network, with the gateway on its loopback."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from functools import cached_property
from importlib import resources
from pathlib import Path

from smith.errors import BadInput, Unavailable
from smith.evaluate.agents.base import Desk, Ending, Workspace
from smith.evaluate.agents.program import Program
from smith.evaluate.agents.start import begin_history, build_words, rendered
from smith.evaluate.agents.toolbox import agent_env
from smith.gateway.dialects import DIALECTS, Dialect
from smith.gateway.session import Session
from smith.paths import write_atomically
from smith.records.agent_file import AgentFile
from smith.records.attempt import Ended
from smith.sandbox.base import Bind, Command, Limits
from smith.sandbox.base import Ended as SandboxEnded

SOCKET, PORT = "/smith/gateway.sock", 8700
HOME = "/home/smith"
ROOT_URL = f"http://127.0.0.1:{PORT}"
PROMPT = "command-line-agent.md.j2"
KEPT = "agent"
"""The folder of evidence that holds what the program itself wrote of its work."""
LARGEST_KEPT, MOST_KEPT = 64 << 20, 2000
_MEMORY = 16 << 30


def shipped() -> dict[str, AgentFile]:
    """The agents that come with smith, by name."""
    folder = resources.files("smith.evaluate.agents")
    found = [entry for entry in folder.iterdir() if entry.name.endswith(".toml")]
    files = [AgentFile.loads(entry.read_bytes(), entry.name) for entry in sorted(found, key=lambda e: e.name)]
    return {file.name: file for file in files}


class CommandLine:
    """One program, as its file describes it. ``search`` is the path list in which it is looked up."""

    def __init__(self, file: AgentFile, search: str | None = None) -> None:
        self.file, self._search = file, search

    @property
    def name(self) -> str:
        return self.file.name

    @property
    def dialect(self) -> Dialect:
        return DIALECTS[self.file.dialect]

    @cached_property
    def program(self) -> Program:
        """The installed program. Raises :class:`Unavailable`."""
        return Program.find(self.file, self._search)

    def require(self) -> None:
        """Raise :class:`Unavailable` unless the program is installed."""
        assert self.program

    def describe(self) -> dict[str, str]:
        """The program's own word for its version, and the digest of its description."""
        digest = hashlib.sha256(self.file.dumps()).hexdigest()
        return {"version": self.program.version, "file_sha256": digest}

    def run(self, workspace: Workspace) -> Ending:
        """Start the program and wait for its end."""
        desk = workspace.desk
        assert desk is not None
        stage, program = desk.stage, self.program
        if not stage.sandbox.remaps:
            raise Unavailable(
                f"agent {self.name}: needs a sandbox with a network of its own", hint="--sandbox bubblewrap"
            )
        begin_history(desk)
        prompt = rendered(
            PROMPT,
            workspace.store.layout.prompts,
            instruction=workspace.instruction,
            source=stage.source,
            build=build_words(desk),
            interpreter=stage.kind == "interpreter",
        )
        write_atomically(desk.evidence / KEPT / "prompt.md", prompt.encode())
        places = self._places(desk, prompt)
        for name, text in self.file.files.items():
            path = stage.place.home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.file.filled(text, places), "utf-8")
        try:
            ended = stage.sandbox.run(self._command(desk, program, places))
        finally:
            for kept in self.file.trajectory:
                keep(stage.place.home, kept, desk.evidence / KEPT, desk.gateway.session)
        return _ending(ended, desk)

    def _places(self, desk: Desk, prompt: str) -> dict[str, str]:
        session = desk.gateway.session
        return {
            "program": str(self.program.path),
            "python": str(self.program.python or desk.stage.environment.python),
            "base_url": f"{ROOT_URL}/v1",
            "root_url": ROOT_URL,
            "token": session.token.secret.get_secret_value(),
            "model": session.model,
            "prompt": prompt,
            "home": HOME,
            "source": desk.stage.source,
            "max_output_tokens": str(session.most_output),
        }

    def _command(self, desk: Desk, program: Program, places: dict[str, str]) -> Command:
        stage, fill = desk.stage, self.file.filled
        env = {k: v for k, v in agent_env(stage).items() if k not in self.file.unset}
        env["PATH"] = f"{env['PATH']}:{program.path.parent}"
        env |= {name: fill(text, places) for name, text in self.file.env.items()}
        door = stage.module("forward", SOCKET, str(PORT), f"{self.file.grace_s:g}", "--")
        # The task's variables are for the task's Python; the door is started by it, the program by the door.
        return Command(
            [*door, *(fill(word, places) for word in self.file.command)],
            stage.source,
            # Programs of Node and Go map far more than they use, so only what is really used is bounded.
            Limits(wall_s=desk.timeout_s, memory_bytes=_MEMORY, each_process=False, open_files=65536),
            env=env,
            binds=[
                *stage.binds(source_writable=True, scratch_on_disk=True),
                *(Bind(folder, str(folder)) for folder in program.binds),
                Bind(desk.gateway.path, SOCKET),
            ],
            spill=desk.evidence / KEPT / "output",
        )


def _ending(ended: SandboxEnded, desk: Desk) -> Ending:
    """How the program ended, and where all of what it said lies."""
    folder, session = desk.evidence / KEPT, desk.gateway.session
    folder.mkdir(parents=True, exist_ok=True)
    for name, output in (("stdout", ended.stdout), ("stderr", ended.stderr)):
        path = folder / f"output.{name}"
        if not path.exists():
            path.write_bytes(output.data)
        path.write_bytes(session.redactor.data(path.read_bytes()))
    totals = session.count()
    words = (ended.stderr.text.strip() or ended.stdout.text.strip()).splitlines()
    last = session.redactor.text(words[-1])[:300] if words else ""
    if session.why == "budget":
        return Ending(Ended.OUT_OF_BUDGET, session.detail)
    if session.why == "provider":
        return Ending(Ended.PROVIDER_ERROR, session.detail)
    if ended.timed_out:
        return Ending(Ended.OUT_OF_TIME, f"{desk.timeout_s:g} s are over")
    if not totals.calls:
        raise Unavailable(f"the program asked its model nothing: {ended.ending}{f': {last}' if last else ''}")
    if not ended.ok and totals.faults:
        return Ending(
            Ended.PROVIDER_ERROR, f"{ended.ending} after {totals.faults} calls that were not answered: {last}"
        )
    return Ending(Ended.SUBMITTED) if ended.ok else Ending(Ended.STOPPED, f"{ended.ending}: {last}")


def keep(home: Path, name: str, target: Path, session: Session) -> None:
    """Copy a file or folder that a program left below ``home``, without secrets; links and devices are left out."""
    size = count = 0
    source = home / name
    if any((home / parent).is_symlink() for parent in (*Path(name).parents, Path(name))):
        return
    walked: Iterable[tuple[str, list[str]]] = [(str(source.parent), [source.name])]
    if not source.is_file():
        walked = _files(source)
    for folder, files in walked:
        for file in sorted(files):
            path = Path(folder, file)
            try:
                fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            except OSError:
                continue
            with os.fdopen(fd, "rb") as opened:
                if not stat.S_ISREG(os.fstat(fd).st_mode):
                    continue
                data = opened.read(LARGEST_KEPT - size + 1)
            size, count = size + len(data), count + 1
            if size > LARGEST_KEPT or count > MOST_KEPT:
                return
            copy = target / path.relative_to(home)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(session.redactor.data(data))


def _files(folder: Path) -> Iterator[tuple[str, list[str]]]:
    for place, _, files in os.walk(folder, followlinks=False):
        yield place, files


def agent_file(path: Path) -> AgentFile:
    """An agent that a user describes. Raises :class:`smith.errors.RecordError` and :class:`BadInput`."""
    if path.suffix != ".toml":
        raise BadInput(f"{path}: is no description of an agent", hint="NAME.toml, see docs/agents.md")
    return AgentFile.load(path)
