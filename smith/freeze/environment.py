"""The bundle's container files: the same environment as the layered one, for tools that run containers.

One Dockerfile serves every kind of machine: the image to start from and the torch to install are build arguments. An
image of a GPU's maker brings its own torch, which must stay.
"""

from __future__ import annotations

import re
import shlex
from datetime import date

from packaging.specifiers import SpecifierSet

from smith.environment.base import TORCH, TRITON
from smith.environment.requirements import requirement_name
from smith.records.recipe import EnvironmentChoice, Recipe
from smith.records.task import SmithMetadata

PYTHONS = ("3.11", "3.12", "3.13", "3.10")
"""Of these the first that a recipe allows."""
TOOLCHAIN = "torch==2.13.0 triton==3.9.0 numpy==2.4.6"
PYTEST = "pytest==9.2.0"
_PLAIN = re.compile(r"[\w./:-]+")
_SYSTEM = ("git", "gcc", "g++", "libc6-dev")


def dockerfile(spec: SmithMetadata, recipe: Recipe) -> str:
    """A Dockerfile for the era of the pull request. The source is copied from ``source/``, which an export fills."""
    choice = recipe.candidates(date.fromisoformat(spec.source.merged_at[:10]))[0]
    system = " ".join((*_SYSTEM, *(recipe.system_packages or ())))
    path = ":".join("/workspace" if p == "." else f"/workspace/{p}" for p in recipe.python_path)
    lines = [
        "# The frozen source is kept by tree id, not in the bundle: an export writes it to environment/source/.",
        "# The defaults need no GPU. For ROCm or CUDA give an image that brings its torch, and no torch to install:",
        "#   docker build --build-arg BASE_IMAGE=rocm/pytorch:latest --build-arg TORCH= .",
        "#   docker build --build-arg BASE_IMAGE=pytorch/pytorch:latest --build-arg TORCH= .",
        f"ARG BASE_IMAGE=python:{_python(choice)}-slim-bookworm",
        "FROM ${BASE_IMAGE}",
        f'ARG TORCH="{TOOLCHAIN}"',
        f"RUN apt-get update && apt-get install -y --no-install-recommends {system} \\",
        "    && rm -rf /var/lib/apt/lists/*",
        "RUN pip install --no-cache-dir 'pip>=26.0' \\",
        f"    && pip install --no-cache-dir ${{TORCH}} {PYTEST}",
        *_installed(choice),
        "COPY source/ /workspace/",
        "WORKDIR /workspace",
        f"ENV PYTHONPATH={path if _PLAIN.fullmatch(path) else _quoted(path)}",
        *[f"ENV {name}={_quoted(value)}" for name, value in sorted(recipe.env.items())],
    ]
    return "\n".join(lines) + "\n"


def rocm_compose() -> str:
    """A compose file that gives the container the AMD devices: ``docker compose -f compose.rocm.yaml run main``."""
    return _COMPOSE


def _python(choice: EnvironmentChoice) -> str:
    allowed = SpecifierSet(choice.python or "")
    return next((version for version in PYTHONS if allowed.contains(f"{version}.99")), PYTHONS[0])


def _installed(choice: EnvironmentChoice) -> list[str]:
    if not choice.packages:
        return []
    dated = f"--uploaded-prior-to {choice.as_of.isoformat()}T00:00:00Z " if isinstance(choice.as_of, date) else ""
    # Builds of torch demand exactly their own Triton; one of another era is put in its place.
    triton = [one for one in choice.packages if requirement_name(one) in TRITON]
    others = [one for one in choice.packages if one not in triton and requirement_name(one) not in TORCH]
    lines: list[str] = []
    if others:
        lines += [
            "# What the packages need must not replace torch.",
            "RUN (pip freeze | grep -iE '^(torch|numpy)==' || true) > /opt/pins.txt \\",
            f"    && pip install --no-cache-dir --constraint /opt/pins.txt {dated}{shlex.join(others)}",
        ]
    if triton:
        lines += [
            "RUN pip uninstall --yes triton \\",
            f"    && pip install --no-cache-dir --no-deps {dated}{shlex.join(triton)}",
        ]
    return lines


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$") + '"'


_COMPOSE = """# For machines with AMD GPUs. ROCM_IMAGE is an image that brings its torch for ROCm.
services:
  main:
    build:
      context: .
      args:
        BASE_IMAGE: ${ROCM_IMAGE:-rocm/pytorch:latest}
        TORCH: ""
    devices:
      - /dev/kfd
      - /dev/dri
    group_add:
      - video
    ipc: host
    security_opt:
      - seccomp=unconfined
"""
