"""A task as an attacker sees it: where hidden tests enter, what may be edited, and how a patch is made of code.

An attack knows the start, the reference where it needs a half-working solution to spoil, and the hidden tests: more
than any agent does, so what fails here fails there.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from textwrap import dedent, indent

from smith.freeze.bundle import Bundle, Store
from smith.freeze.globs import glob_pattern
from smith.freeze.hidden import steers_tests
from smith.git.patches import apply, changes, diff
from smith.git.trees import TreeEntry, list_tree, read_file, write_blob, write_tree
from smith.gpus.base import is_gpu
from smith.records.receipt import Receipt
from smith.syntax import parse

WRAP = """


def _smith_wrap(make):
    import types

    for name in {names!r}:
        real = globals().get(name)
        if real is None or isinstance(real, types.FunctionType):
            globals()[name] = make(real, name)
        elif isinstance(real, type) and callable(getattr(real, "forward", None)):
            made = make(real.forward, name)
            real.forward = staticmethod(made) if hasattr(real, "apply") and hasattr(real, "backward") else made


def _smith_make(real, name):
    import torch

    def call(*args, **kwargs):
        tensors = [a for a in [*args, *kwargs.values()] if isinstance(a, torch.Tensor)]
{body}

    return call


_smith_wrap(_smith_make)
"""


@dataclass(frozen=True)
class Entry:
    """The module through which hidden tests enter the code under test, and the names that they take from it."""

    path: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class Target:
    """One task on one device. Trees are ids in the store's scratch repository."""

    store: Store
    bundle: Bundle
    receipt: Receipt

    @property
    def start(self) -> str:
        return self.bundle.spec.source.tree

    @cached_property
    def solved(self) -> str:
        """The tree of the reference."""
        return apply(self.store.scratch, self.start, self.bundle.reference)

    @property
    def timed(self) -> bool:
        return self.receipt.timing is not None

    @property
    def on_gpu(self) -> bool:
        return is_gpu(self.receipt.device)

    @property
    def ids(self) -> tuple[str, ...]:
        """The tests that a solution must pass, the telling ones first."""
        return (*self.receipt.fail_to_pass, *self.receipt.pass_to_pass)

    @cached_property
    def hidden(self) -> str:
        return self.store.hidden_tests(self.bundle)

    def editable(self, path: str) -> bool:
        """Whether a submission may touch ``path``."""
        allowed = any(glob_pattern(glob).fullmatch(path) for glob in self.bundle.spec.editable)
        return allowed and not self.bundle.selection.hides(path) and not steers_tests(path)

    def read(self, tree: str, path: str) -> str | None:
        """A file as text; None where it is not there."""
        data = read_file(self.store.scratch, tree, path)
        return None if data is None else data.decode("utf-8", "replace")

    @cached_property
    def entry(self) -> Entry | None:
        """Where the first hidden test that imports something editable enters; None where none does."""
        changed = {change.path for change in changes(self.store.scratch, self.start, self.solved)}
        found: list[Entry] = []
        for file in dict.fromkeys(test_id.partition("::")[0] for test_id in self.ids):
            module = parse((self.read(self.hidden, file) or "").encode())
            for node in ast.walk(module) if module is not None else ():
                if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    names = tuple(alias.name for alias in node.names if alias.name != "*")
                    path = self._file_of(node.module)
                    if path is not None and self.editable(path):
                        found.append(Entry(path, names))
        found.sort(key=lambda entry: entry.path not in changed)
        return found[0] if found else None

    def _file_of(self, module: str) -> str | None:
        for root in self.bundle.recipe.python_path:
            for end in (".py", "/__init__.py"):
                path = str(PurePosixPath(root) / f"{module.replace('.', '/')}{end}")
                if self.read(self.solved, path) is not None:
                    return path
        return None

    # -- patches --------------------------------------------------------------------------------------------------

    def patch(self, files: Mapping[str, str | None], *, on_reference: bool = False) -> bytes:
        """The patch from the start to a tree with these files (None: without them) laid over it."""
        repo = self.store.scratch
        tree = self.solved if on_reference else self.start
        kept = [e for e in list_tree(repo, tree) if e.path.decode("utf-8", "surrogateescape") not in files]
        new = [
            TreeEntry("100644", "blob", write_blob(repo, text.encode()), path.encode())
            for path, text in files.items()
            if text is not None
        ]
        return diff(repo, self.start, write_tree(repo, [*kept, *new], missing_ok=True))

    def entry_text(self, *, on_reference: bool = False) -> str:
        """The entry's module; where the start has none, functions of the right names that do nothing."""
        assert self.entry is not None
        text = self.read(self.solved if on_reference else self.start, self.entry.path)
        if text is not None:
            return text
        return "\n\n".join(f"def {name}(*args, **kwargs):\n    return None" for name in self.entry.names)

    def at_import(self, code: str, *, on_reference: bool = False, files: Mapping[str, str] | None = None) -> bytes:
        """``code`` runs at the end of the entry's module, which hidden tests import."""
        assert self.entry is not None
        text = f"{self.entry_text(on_reference=on_reference)}\n\n{dedent(code)}"
        return self.patch({self.entry.path: text, **(files or {})}, on_reference=on_reference)

    def replaced(self, body: str, *, on_reference: bool = False, before: str = "") -> bytes:
        """Each function that tests import is replaced by one with this body.

        The body sees ``real`` (what was there, or None), ``name``, ``args``, ``kwargs`` and ``tensors``, those of the
        arguments that are.
        """
        assert self.entry is not None
        wrapped = WRAP.format(names=self.entry.names, body=indent(dedent(body).strip("\n"), " " * 8))
        return self.at_import(dedent(before) + wrapped, on_reference=on_reference)
