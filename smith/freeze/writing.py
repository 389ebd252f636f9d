"""A bundle's files, laid out as Harbor wants them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from smith.environment.detect import Detected
from smith.freeze import bundle as layout_of
from smith.freeze.environment import dockerfile, rocm_compose
from smith.freeze.recipe import recipe_text
from smith.freeze.variants import Draft
from smith.records.recipe import Recipe
from smith.records.task import Metadata, Selection, SmithMetadata, TaskFile, TaskName, Variant

_DESCRIPTIONS = {"triton": "Triton", "hip": "HIP", "cuda": "CUDA", "native": "native CPU"}
_WORDS = {Variant.OPTIMIZE: ("optimize",), Variant.AUTHOR: ("author",), Variant.PORT: ("port",)}
"""Keywords besides the kind of the pull request."""

_SOLVE = """#!/bin/sh
# Apply the reference patch to the source in the working directory.
set -eu
exec git apply --whitespace=nowarn "$(dirname "$0")/reference.patch"
"""

_TEST = """#!/bin/sh
# The expectations of a bundle live in its receipts, one a device; a bundle by itself says nothing about outcomes.
# So this script cannot reward anything yet: it says so and gives 0. Grade with: smith grade TASK PATCHFILE
set -eu
mkdir -p /logs/verifier
echo "no expectations in this bundle: grade it with 'smith grade'" >&2
echo '{"reward": 0}' > /logs/verifier/reward.json
"""


@dataclass(frozen=True)
class Contents:
    """All that a bundle holds."""

    spec: SmithMetadata
    selection: Selection
    recipe: Recipe
    recipe_file: Path | None
    """Where the recipe was read: its prelude lies beside it."""
    detected: Detected | None
    """Where the recipe was detected: what each part of it comes from."""
    made: Draft
    instruction: str
    overlay: bytes
    """What the hidden tests change, as a patch to be read."""
    workloads: Mapping[str, bytes]


def write(root: Path, contents: Contents) -> None:
    """Lay out the bundle's files below ``root``."""
    spec, made, recipe, recipe_file = contents.spec, contents.made, contents.recipe, contents.recipe_file
    kernels = ", ".join(_DESCRIPTIONS.get(lang, lang) for lang in spec.languages)
    file = TaskFile(
        task=TaskName(
            name=f"smith/{spec.id.replace('~', '.')}",  # Harbor's names know no tilde
            description=f"{_describe(spec, kernels)} in {spec.source.repo}",
            keywords=("gpu-kernels", *_WORDS.get(spec.variant, ()), spec.kind.value, *spec.languages),
        ),
        metadata=Metadata(smith=spec),
    )
    placed: dict[str, bytes] = {
        layout_of.TASK_FILE: file.dumps_toml(),
        layout_of.INSTRUCTION: contents.instruction.encode(),
        str(layout_of.REFERENCE): made.reference,
        str(layout_of.SOLVE): _SOLVE.encode(),
        str(layout_of.TEST_SCRIPT): _TEST.encode(),
        str(layout_of.SELECTION): contents.selection.dumps(),
        "environment/Dockerfile": dockerfile(spec, recipe).encode(),
    }
    if "rocm" in spec.devices:
        placed["environment/compose.rocm.yaml"] = rocm_compose().encode()
    if recipe.prelude is not None and recipe_file is not None:
        placed["environment/prelude.py"] = (recipe_file.parent / recipe.prelude).read_bytes()
        recipe = recipe.model_copy(update={"prelude": "prelude.py"})
    recipe = recipe.model_copy(update={"workloads": ()})
    placed[str(layout_of.RECIPE)] = recipe_text(recipe, contents.detected).encode()
    placed["tests/overlay.patch"] = contents.overlay
    if made.start_patch is not None:
        placed[str(layout_of.START)] = made.start_patch
    placed |= {f"tests/workloads/{name}": data for name, data in contents.workloads.items()}
    for name, data in placed.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(0o755 if name.endswith(".sh") else 0o644)


def _describe(spec: SmithMetadata, kernels: str) -> str:
    if spec.port is not None:
        origin = ", ".join(_DESCRIPTIONS.get(lang, lang) for lang in spec.port.origin)
        return f"port of {origin} kernels to {kernels}"
    words = {Variant.FIX: spec.kind.value, Variant.OPTIMIZE: "speed", Variant.AUTHOR: "writing"}[spec.variant]
    return f"{words} of {kernels} kernels"
