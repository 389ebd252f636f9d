"""Where the key of an endpoint comes from: a file or the environment, never the command line."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from smith.errors import BadInput
from smith.secret import Token


def find_key(file: Path | None, variable: str, environ: Mapping[str, str] = os.environ) -> Token | None:
    """The key in ``file``, else in the environment variable ``variable``, else None: local servers need none.

    Raises :class:`BadInput`, without its content, for what cannot be a key.
    """
    if file is not None:
        try:
            text = file.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            said = error.strerror if isinstance(error, OSError) else "is no text"
            raise BadInput(f"{file}: {said}", hint="a file with the key and nothing else") from error
        return Token.parse(text, str(file))
    value = environ.get(variable, "")
    return Token.parse(value, variable) if value.strip() else None
