"""What the tests of the sandboxes share: Python inside, and a look at the host's processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from smith.sandbox import Bind, Command, Ended, Limits, Sandbox

PYTHON = os.path.abspath(sys.executable)
PYTHON_BINDS = tuple(Bind(Path(path), path) for path in dict.fromkeys((sys.prefix, sys.base_prefix)))


def sh(sandbox: Sandbox, script: str, *binds: Bind, cwd: str = "/", wall_s: float = 30, **env: str) -> Ended:
    """Run a shell script."""
    return sandbox.run(Command(["sh", "-c", script], cwd=cwd, env=env, binds=binds, limits=Limits(wall_s=wall_s)))


def py(sandbox: Sandbox, script: str, *binds: Bind, cwd: str = "/", limits: Limits | None = None) -> Ended:
    """Run a Python script."""
    limits = limits or Limits(wall_s=30)
    return sandbox.run(Command([PYTHON, "-S", "-c", script], cwd=cwd, binds=[*PYTHON_BINDS, *binds], limits=limits))


def on_host(word: str) -> bool:
    """Whether a process of the host has ``word`` in its command line."""
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    return word in listed


def unique() -> str:
    """A number of seconds to sleep that is found nowhere else."""
    return f"7{int.from_bytes(os.urandom(4), 'big')}"
