"""Run every symptom in a plain interpreter and print what happens, as JSON by name."""

from __future__ import annotations

import json
import os

os.environ["TRITON_INTERPRET"] = "1"

import kernels


def outcome(name: str) -> str:
    try:
        return f"value {getattr(kernels, name)()!r}"
    except BaseException as error:
        return f"{type(error).__name__}: {error}"


names = [name for name in vars(kernels) if name.startswith("run_")]  # a launch adds names to the module
print(json.dumps({name: outcome(name) for name in names}))
