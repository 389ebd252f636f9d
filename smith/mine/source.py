"""What is read out of one version of a source file: its language and its kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from smith.mine import c_lexical


@dataclass(frozen=True)
class Kernel:
    """One kernel (or device function) in one version of a file."""

    language: str
    text: str
    """The whole definition as it stands in the file: decorators or template, signature and body, comments and all."""
    entry: bool = False
    """Whether the host launches it (``__global__``); False for a device function and, where it is not told, Python."""
    definitions: tuple[tuple[int, int], ...] = ()
    """Where in a C-like ``text`` definitions begin and end: a line may hold more than one."""

    @property
    def first(self) -> str:
        """The first of its definitions; for Python the text."""
        begin, end = self.definitions[0] if self.definitions else (0, len(self.text))
        return self.text[begin:end]

    @cached_property
    def code(self) -> str | None:
        """The definition without comments and layout, by which versions are compared; None for Python, where its reader
        compares ``text``. Made where it is asked for: most kernels of a file stay as they are."""
        if self.language == "asm":
            return c_lexical.assembly(self.text)
        return " ".join(c_lexical.code(self.text[begin:end]) for begin, end in self.definitions) or None


@dataclass(frozen=True)
class Source:
    """One version of a file. ``language`` is None where it holds no kernels."""

    language: str | None = None
    kernels: Mapping[str, Kernel] = field(default_factory=dict)
    """By qualified name; definitions of one name (one a branch of an ``if``) are joined."""
    generated: bool = False
    """Whether the file says that a program wrote it."""

    @property
    def size(self) -> int:
        """About how many bytes of memory it takes."""
        return 500 + sum(500 + len(name) + len(kernel.text) for name, kernel in self.kernels.items())


NOTHING = Source()


def main_language(kernels: Mapping[str, Kernel]) -> str | None:
    """The language of most of ``kernels``, the alphabetically first of equals."""
    counts: dict[str, int] = {}
    for kernel in kernels.values():
        counts[kernel.language] = counts.get(kernel.language, 0) + 1
    return min(counts, key=lambda name: (-counts[name], name)) if counts else None
