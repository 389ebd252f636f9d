"""The Python below every layer: the one that smith runs in, with its torch, which is never replaced."""

from __future__ import annotations

import functools
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import smith
from smith import process
from smith.environment.requirements import canonical
from smith.errors import Unavailable

TORCH = ("torch", "torchvision", "torchaudio")
TRITON = ("triton", "pytorch-triton-rocm", "triton-rocm", "pytorch-triton")
"""Distributions that provide the module ``triton``: a ROCm build of torch brings it under another name."""
SITE_FOLDERS = ("site-packages", "dist-packages")

# Run with -S, so that what `site` adds to the standard library's paths can be told apart from them.
_PROBE = """
import sys
standard = set(sys.path)
import site
site.main()
import importlib.metadata, json, platform
versions = {}
for d in importlib.metadata.distributions():
    versions.setdefault(d.metadata["Name"], d.version)
print(json.dumps({
    "python": platform.python_version(),
    "implementation": sys.implementation.name,
    "machine": platform.machine(),
    "prefix": sys.prefix,
    "base_prefix": sys.base_prefix,
    "paths": [p for p in dict.fromkeys(sys.path) if p and p not in standard],
    "user_base": site.getuserbase() if site.ENABLE_USER_SITE else "",
    "versions": {k: v for k, v in versions.items() if k},
}))
"""


@dataclass(frozen=True)
class Base:
    """What was found about an interpreter. ``paths`` are its site folders; ``versions`` its distributions."""

    executable: Path
    python: str
    implementation: str
    machine: str
    prefix: Path
    base_prefix: Path
    paths: tuple[Path, ...]
    user_base: Path | None
    versions: dict[str, str]

    def pins(self, names: tuple[str, ...]) -> dict[str, str]:
        """The installed ones of ``names``, with their versions."""
        return {name: self.versions[name] for name in names if name in self.versions}


def clean_environment() -> dict[str, str]:
    """This process's environment without what would lead another interpreter astray."""
    return {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP"}}


@functools.cache
def read_base(executable: Path) -> Base:
    """Ask the interpreter at ``executable`` about itself. Raises :class:`Unavailable` where it cannot say."""
    done = process.run([executable, "-E", "-P", "-S", "-c", _PROBE], env=clean_environment(), timeout_s=120)
    try:
        facts = json.loads(done.check().stdout.text)
    except json.JSONDecodeError as error:
        raise Unavailable(f"{executable}: does not answer like a Python") from error
    return Base(
        executable=executable,
        python=facts["python"],
        implementation=facts["implementation"],
        machine=facts["machine"],
        prefix=Path(facts["prefix"]),
        base_prefix=Path(facts["base_prefix"]),
        paths=tuple(path for path in map(Path, facts["paths"]) if path.exists() and not _is_checkout(path)),
        user_base=Path(facts["user_base"]) if facts["user_base"] else None,
        versions={canonical(name): version for name, version in facts["versions"].items()},
    )


def own_base() -> Base:
    """The interpreter that smith runs in."""
    # Not resolved: the link in a virtual environment's bin is what makes it that environment.
    return read_base(Path(os.path.abspath(sys.executable)))


def _is_checkout(path: Path) -> bool:
    """Whether this is smith's own checkout, put on the path by an editable installation.

    Its folders (``tests``, ``docs``, ...) must not be found where an upstream's are meant. An ordinary installation
    of smith lies in the site folder among the other packages and is seen by upstream code; that is harmless.
    """
    return path.name not in SITE_FOLDERS and path.resolve() == Path(smith.__file__).resolve().parent.parent
