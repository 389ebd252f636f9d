"""A shelf of wheels made by hand, which is all that pip sees: no test here needs a network."""

from __future__ import annotations

import base64
import hashlib
import os
import subprocess
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from smith.environment.layers import LayeredEnvironment
from smith.records.recipe import EnvironmentChoice


@dataclass(frozen=True)
class Shelf:
    """A folder of wheels."""

    folder: Path

    def add(
        self, name: str, version: str, *, requires: tuple[str, ...] = (), files: Mapping[str, str] | None = None
    ) -> Path:
        """Put a wheel of one module on the shelf; the module knows its own version."""
        module = name.replace("-", "_")
        info = f"{module}-{version}.dist-info"
        contents = {
            f"{module}/__init__.py": f"__version__ = {version!r}\n",
            **(files or {}),
            f"{info}/METADATA": "\n".join(
                ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
                + [f"Requires-Dist: {line}" for line in requires]
                + [""]
            ),
            f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        record = []
        path = self.folder / f"{module}-{version}-py3-none-any.whl"
        with zipfile.ZipFile(path, "w") as wheel:
            for file, text in contents.items():
                wheel.writestr(file, text)
                digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
                record.append(f"{file},sha256={digest},{len(text.encode())}\n")
            wheel.writestr(f"{info}/RECORD", "".join(record) + f"{info}/RECORD,,\n")
        return path


def choice(*packages: str) -> EnvironmentChoice:
    return EnvironmentChoice(name="era", packages=packages)


def ask(environment: LayeredEnvironment, code: str) -> str:
    """What ``code`` prints in the environment."""
    return subprocess.run(
        [environment.python, "-I", "-c", code],
        env={**os.environ, **environment.env},
        check=True,
        text=True,
        capture_output=True,
    ).stdout.strip()
