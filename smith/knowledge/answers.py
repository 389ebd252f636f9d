"""Whether a card gives an answer away: long runs that it shares with the reference patch of a task.

Compared are runs of tokens and of words that the patch adds and the lines around do not have
(:mod:`smith.freeze.overlap`), so that naming the kernel is no leak and quoting its new body is one.
"""

from __future__ import annotations

from collections.abc import Mapping

from smith.freeze.bundle import REFERENCE, Store
from smith.freeze.overlap import PROSE_RUN, added_lines, runs, tokens, words

CODE_RUN = 12
"""Tokens in a row; shorter runs are idioms of a language."""
_LEAST_SIGNS = 3

Run = tuple[str, ...]


class Answers:
    """The runs of every reference patch of a data repository."""

    def __init__(self, code: Mapping[Run, str], prose: Mapping[Run, str]) -> None:
        self._kinds = [
            (cut, length, known, {run[0] for run in known})
            for cut, length, known in ((tokens, CODE_RUN, code), (words, PROSE_RUN, prose))
        ]

    @classmethod
    def of(cls, store: Store) -> Answers:
        """Read every bundle's reference patch."""
        code: dict[Run, str] = {}
        prose: dict[Run, str] = {}
        for task in store.ids():
            path = store.layout.task(task) / REFERENCE
            patch = path.read_bytes() if path.is_file() else b""
            before = "\n".join(_before(patch))
            old_code, old_prose = runs(tokens(before), CODE_RUN), runs(words(before), PROSE_RUN)
            for lines in added_lines(patch).values():
                text = "\n".join(lines)
                code.update((run, task) for run in runs(tokens(text), CODE_RUN) - old_code if _is_code(run))
                prose.update((run, task) for run in runs(words(text), PROSE_RUN) - old_prose)
        return cls(code, prose)

    def given_by(self, text: str) -> str:
        """The task whose answer ``text`` repeats a part of; empty where it repeats none."""
        for cut, length, known, first in self._kinds:
            parts = cut(text)
            for at in range(len(parts) - length + 1):
                # Nearly every part begins no run: a run is made only of those that do.
                if parts[at] in first and (task := known.get(tuple(parts[at : at + length]))):
                    return task
        return ""


def _is_code(run: Run) -> bool:
    return sum(not part[0].isalnum() and part[0] != "_" for part in run) >= _LEAST_SIGNS


def _before(patch: bytes) -> list[str]:
    """Lines that a patch takes away or leaves: nobody's answer."""
    lines = patch.decode("utf-8", "replace").split("\n")
    return [line[1:] for line in lines if line[:1] in (" ", "-") and not line.startswith("--- ")]
