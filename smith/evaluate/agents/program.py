"""Where a command-line agent is installed, and what of the machine the sandbox must show so that it runs."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from smith import process
from smith.errors import Unavailable
from smith.records.agent_file import PLACES, AgentFile

_SHOWN_ANYWAY = (Path("/usr"), Path("/bin"), Path("/lib"), Path("/lib64"))


@dataclass(frozen=True)
class Program:
    """An installed program: its path, the folders to show for it, and its interpreter where that is Python."""

    path: Path
    binds: tuple[Path, ...]
    python: Path | None
    version: str

    @classmethod
    def find(cls, file: AgentFile, search: str | None = None) -> Program:
        """The program of an agent; ``search`` is a path list to look in (default: this process's).

        Raises :class:`Unavailable`, saying how to install it, where it is missing or does not even say its version.
        """
        found = shutil.which(file.program, path=search)
        if found is None:
            raise Unavailable(f"agent {file.name}: {file.program} is not installed", hint=file.install)
        path = Path(found).absolute()
        roots = {path.parent, *_roots(path.resolve())}
        python = _python_of(path)
        if python is not None:
            roots |= {python.parent.parent, python.resolve().parent.parent}
        places = {**dict.fromkeys(PLACES, ""), "program": str(path), "python": str(python or "")}
        asked = process.run(
            [file.filled(word, places) for word in file.version],
            env={"PATH": f"{path.parent}:{search or '/usr/local/bin:/usr/bin:/bin'}", "HOME": "/nonexistent"},
            timeout_s=60,
        )
        said = asked.stdout.text.strip() or asked.stderr.text.strip()
        if not asked.ok or not said:
            raise Unavailable(f"agent {file.name}: {file.program} does not run: {asked.ending}", hint=file.install)
        kept = tuple(sorted(r for r in roots if not any(r.is_relative_to(shown) for shown in _SHOWN_ANYWAY)))
        return cls(path, _outermost(kept), python, said.splitlines()[-1][:200])


def _roots(real: Path) -> list[Path]:
    """The folder that an installation lies in: all of ``node_modules``, where it is a package of Node's."""
    modules = [parent for parent in real.parents if parent.name == "node_modules"]
    return [modules[-1] if modules else real.parent]


def _python_of(path: Path) -> Path | None:
    """The interpreter in the first line of a script, where that is a Python of its own environment."""
    with path.open("rb") as file:
        first = file.readline(512)
    if not first.startswith(b"#!"):
        return None
    words = first[2:].decode("utf-8", "replace").split()
    named = Path(words[0]) if words else Path()
    return named if named.name.startswith("python") and named.is_absolute() and named.exists() else None


def _outermost(folders: tuple[Path, ...]) -> tuple[Path, ...]:
    return tuple(f for f in folders if not any(f != other and f.is_relative_to(other) for other in folders))
