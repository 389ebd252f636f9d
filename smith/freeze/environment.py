"""The bundle's Dockerfile: the same environment as the layered one, for tools that run containers."""

from __future__ import annotations

from datetime import date

from smith.records.recipe import Recipe
from smith.records.task import SmithMetadata


def dockerfile(spec: SmithMetadata, recipe: Recipe) -> str:
    """A Dockerfile for the era of the pull request. The source is copied from ``source/``, which an export fills."""
    choice = recipe.candidates(date.fromisoformat(spec.source.merged_at[:10]))[0]
    layer = " ".join(f"'{p}'" for p in choice.packages)
    lines = [
        "# The frozen source is kept by tree id, not in the bundle: an export writes it to environment/source/.",
        "FROM python:3.11-slim-bookworm",
        "RUN apt-get update && apt-get install -y --no-install-recommends git gcc g++ libc6-dev \\",
        "    && rm -rf /var/lib/apt/lists/*",
        "RUN pip install --no-cache-dir torch==2.13.0 triton==3.9.0 numpy==2.4.6 pytest==9.2.0",
        *([f"RUN pip install --no-cache-dir {layer}"] if layer else []),
        "COPY source/ /workspace/",
        "WORKDIR /workspace",
        f"ENV PYTHONPATH={':'.join('/workspace' if p == '.' else f'/workspace/{p}' for p in recipe.python_path)}",
        *[f"ENV {name}={value!r}" for name, value in sorted(recipe.env.items())],
    ]
    return "\n".join(lines) + "\n"
