"""A submission's tree with its native kernels emptied: what still passes there was not decided by them.

It finds kernels with the parsers of mining, so whoever grades hands it in: the grader in a Harbor dataset has neither.
"""

from __future__ import annotations

import re

from smith.freeze.bodies import Emptied, empty
from smith.freeze.bundle import Bundle, Store
from smith.git.patches import changes
from smith.git.trees import TreeEntry, list_tree, read_file, write_blob, write_tree
from smith.mine import c_source
from smith.mine.rules import load
from smith.records.candidate import KernelChange
from smith.records.config import Config

_TRAP = re.compile(rb"(\bvoid\s+[\w:]+\s*\([^;{}]*\)[^;{}]*\{\s*)__(?:builtin_)?trap\(\);")
"""A function without a result can do nothing at all: what launches it for show must not be given away by a crash."""


def hollow(store: Store, bundle: Bundle, submission: str) -> str | None:
    """``submission`` with the bodies of all kernels in C-like files that it changes, or that the task names, taken out.

    The same tree where there is no such kernel; None where a body cannot be taken out without harm around it.
    """
    repo, rules = store.scratch, load(Config.load(store.layout.config).mine.rules)
    paths = {kernel.path for kernel in bundle.spec.kernels}
    paths |= {change.path for change in changes(repo, bundle.spec.source.tree, submission)}
    contents = {path: read_file(repo, submission, path) for path in paths if not path.endswith(".py")}
    kernels = []
    for path, data in contents.items():
        text = (data or b"").decode("utf-8", "replace").replace("\r\n", "\n")
        found = c_source.locate(text, path, rules.sources)
        if found:
            names = tuple(dict.fromkeys(one.name for one in found))
            kernels.append(KernelChange(path=path, language=found[0].language, symbols=names))
    if not kernels:
        return submission
    done = empty(kernels, contents, rules)
    if not isinstance(done, Emptied):
        return None
    kept = [e for e in list_tree(repo, submission) if e.path.decode("utf-8", "surrogateescape") not in done.files]
    new = [
        TreeEntry("100644", "blob", write_blob(repo, _TRAP.sub(rb"\1", data)), path.encode())
        for path, data in done.files.items()
    ]
    return write_tree(repo, [*kept, *new], missing_ok=True)
