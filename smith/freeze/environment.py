"""The bundle's container files: the same environment as the layered one, for tools that run containers.

One Dockerfile serves every kind of machine: the image to start from and the torch to install are build arguments. An
image of a GPU's maker brings its own torch, which must stay.
"""

from __future__ import annotations

import shlex
from datetime import date

from smith.environment.base import TRITON
from smith.environment.requirements import requirement_name
from smith.records.recipe import EnvironmentChoice, Recipe
from smith.records.task import SmithMetadata

PYTHON = "3.11"
TORCH = "torch==2.13.0 triton==3.9.0 numpy==2.4.6"
PYTEST = "pytest==9.2.0"
_SYSTEM = ("git", "gcc", "g++", "libc6-dev")


def dockerfile(spec: SmithMetadata, recipe: Recipe) -> str:
    """A Dockerfile for the era of the pull request. The source is copied from ``source/``, which an export fills."""
    choice = recipe.candidates(date.fromisoformat(spec.source.merged_at[:10]))[0]
    system = " ".join((*_SYSTEM, *(recipe.system_packages or ())))
    lines = [
        "# The frozen source is kept by tree id, not in the bundle: an export writes it to environment/source/.",
        "# The defaults need no GPU. For ROCm or CUDA give an image that brings its torch, and no torch to install:",
        "#   docker build --build-arg BASE_IMAGE=rocm/pytorch:latest --build-arg TORCH= .",
        "#   docker build --build-arg BASE_IMAGE=pytorch/pytorch:latest --build-arg TORCH= .",
        f"ARG BASE_IMAGE=python:{PYTHON}-slim-bookworm",
        "FROM ${BASE_IMAGE}",
        f'ARG TORCH="{TORCH}"',
        f"RUN apt-get update && apt-get install -y --no-install-recommends {system} \\",
        "    && rm -rf /var/lib/apt/lists/*",
        "RUN pip install --no-cache-dir 'pip>=26.0' \\",
        f"    && pip install --no-cache-dir ${{TORCH}} {PYTEST}",
        *_installed(choice),
        "COPY source/ /workspace/",
        "WORKDIR /workspace",
        f"ENV PYTHONPATH={':'.join('/workspace' if p == '.' else f'/workspace/{p}' for p in recipe.python_path)}",
        *[f"ENV {name}={_quoted(value)}" for name, value in sorted(recipe.env.items())],
    ]
    return "\n".join(lines) + "\n"


def rocm_compose() -> str:
    """A compose file that gives the container the AMD devices: ``docker compose -f compose.rocm.yaml run main``."""
    return _COMPOSE


def _installed(choice: EnvironmentChoice) -> list[str]:
    if not choice.packages:
        return []
    dated = f"--uploaded-prior-to {choice.as_of.isoformat()}T00:00:00Z " if choice.as_of else ""
    # Builds of torch demand exactly their own Triton; one of another era is put in its place.
    triton = [one for one in choice.packages if requirement_name(one) in TRITON]
    others = [one for one in choice.packages if one not in triton]
    lines = [f"RUN pip install --no-cache-dir {dated}{shlex.join(others)}"] if others else []
    return [*lines, *([f"RUN pip install --no-cache-dir --no-deps {dated}{shlex.join(triton)}"] if triton else [])]


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
