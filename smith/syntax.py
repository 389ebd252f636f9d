"""Somebody else's Python as a syntax tree: read, never run."""

from __future__ import annotations

import ast
import gc
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


def parse(text: str | bytes) -> ast.Module | None:
    """The syntax tree of a file or a part of one, None where this Python cannot parse it."""
    try:
        with warnings.catch_warnings(), _no_collection():
            warnings.simplefilter("ignore")  # invalid escapes in somebody else's strings
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@contextmanager
def _no_collection() -> Iterator[None]:
    """A growing tree is many objects and no garbage; looking for some in between costs a quarter of mining."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
