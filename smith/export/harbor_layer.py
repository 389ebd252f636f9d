"""Build the layered environment of an exported task and say where it is: ``python -m smith.export.harbor_layer``.

Run by the Python that carries torch; Harbor itself may run in another one. Arguments: the file
``environment/smith.json`` of a task and the folder for layers. Prints JSON: ``python``, ``binds``, ``env``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from smith.environment.layers import build
from smith.errors import SmithError
from smith.records.recipe import EnvironmentChoice


def main(arguments: list[str]) -> int:
    """0 when the document was printed; 1, with a line on standard error, when the environment cannot be built."""
    about, root = Path(arguments[0]), Path(arguments[1])
    try:
        choice = EnvironmentChoice.parse(json.loads(about.read_text("utf-8"))["environment"], str(about))
        built = build(choice, root, progress=lambda text: print(text, file=sys.stderr))
    except SmithError as error:
        print(error, file=sys.stderr)
        return 1
    document = {"python": str(built.python), "binds": [str(p) for p in built.binds], "env": dict(built.env)}
    print(json.dumps(document))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
