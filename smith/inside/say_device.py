"""Say which GPU torch sees, as one JSON document on standard output: ``python -m smith.inside.say_device``.

Nothing of a repository is imported here. What is missing is null, with the reason in ``error``.
"""

from __future__ import annotations

import json
import sys
from typing import Any


def facts() -> dict[str, Any]:
    """Versions of torch and Triton, and the visible GPUs by name and architecture."""
    found: dict[str, Any] = {"torch": None, "hip": None, "cuda": None, "triton": None, "gpus": [], "error": ""}
    try:
        import triton

        found["triton"] = str(triton.__version__)
    except Exception as error:
        found["error"] = f"triton: {error}"
    try:
        import torch

        found["torch"], found["hip"], found["cuda"] = str(torch.__version__), torch.version.hip, torch.version.cuda
        for index in range(torch.cuda.device_count()):
            found["gpus"].append(_gpu(torch, index))
        if found["gpus"]:
            # One addition shows more than any query: that the architecture is one this build has code for.
            total = float(torch.ones(4, device="cuda").sum().item())
            found["works"] = total == 4.0
    except Exception as error:
        found["error"] = f"torch: {type(error).__name__}: {error}"
    return found


def _gpu(torch: Any, index: int) -> dict[str, str]:
    properties = torch.cuda.get_device_properties(index)
    # `gfx942:sramecc+:xnack-`: the features after the colon belong to how it is set up, not to what it is.
    architecture = str(getattr(properties, "gcnArchName", "")).partition(":")[0] if torch.version.hip else ""
    return {"name": str(properties.name), "architecture": architecture or f"sm_{properties.major}{properties.minor}"}


if __name__ == "__main__":
    json.dump(facts(), sys.stdout)
    sys.stdout.flush()
