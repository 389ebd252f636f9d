"""What a panel pins, as one git tree id: the identity of a panel, whatever it is called or described as."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from smith import process
from smith.errors import SmithError
from smith.freeze.bundle import Store
from smith.freeze.panels import blob_id, load_panel
from smith.git.objects import read_file
from smith.git.repository import Repository, clean_environment
from smith.records.panel import Panel, PanelTask

_Entry = tuple[str, bytes, str]
"""Mode, name and id."""


def panel_tree(tasks: Sequence[PanelTask], *, sanitize: bool) -> str:
    """The id that git would give a tree with ``<task>/bundle`` (the bundle's tree), ``<task>/receipts/<device>`` (the
    pinned receipts), and an empty file ``sanitize`` where submissions must be clean under the sanitizer.

    The order of the tasks does not count: results do not hang on it.
    """
    entries: list[_Entry] = []
    for task in tasks:
        receipts = [("100644", device.encode(), blob) for device, blob in task.receipts.items()]
        inner: list[_Entry] = [("40000", b"bundle", task.tree)]
        if receipts:
            inner.append(("40000", b"receipts", _tree(receipts)))
        entries.append(("40000", task.id.encode(), _tree(inner)))
    if sanitize:
        entries.append(("100644", b"sanitize", blob_id(b"")))
    return _tree(entries)


def _tree(entries: Sequence[_Entry]) -> str:
    # Git sorts folders as if their names ended in a slash.
    ordered = sorted(entries, key=lambda e: e[1] + b"/" if e[0] == "40000" else e[1])
    data = b"".join(mode.encode() + b" " + name + b"\0" + bytes.fromhex(oid) for mode, name, oid in ordered)
    return hashlib.sha1(b"tree %d\0" % len(data) + data).hexdigest()


def tree_of(panel: Panel) -> str:
    """The tree of a panel as it stands."""
    return panel_tree(panel.tasks, sanitize=panel.sanitize)


def known_trees(store: Store, name: str) -> dict[str, Panel]:
    """Every tree that the panel ``name`` has or had: as it lies here, and at each commit before this one that changed
    it. A shallow clone knows fewer."""
    found: dict[str, Panel] = {}
    try:
        panel = load_panel(store.layout, name)
    except SmithError:
        pass  # `smith panel check` says so; what was there before counts all the same
    else:
        found[tree_of(panel)] = panel
    repo = Repository(store.data.git_dir)
    path = repo_prefix(store) + store.layout.panel(name).relative_to(store.layout.root).as_posix()
    commits = repo.run("rev-list", "HEAD", "--", path)
    for commit in commits.stdout.text.split() if commits.ok else ():
        data = read_file(repo, repo.resolve(commit, "tree"), path)
        try:
            earlier = Panel.loads(data or b"", path)
        except SmithError:
            continue
        found.setdefault(tree_of(earlier), earlier)
    return found


def repo_prefix(store: Store) -> str:
    """Where the data repository lies within its git repository, with a slash at the end where that is not the root."""
    argv = ["git", "rev-parse", "--show-prefix"]
    return process.run(argv, cwd=store.layout.root, env=clean_environment(), timeout_s=60).check().stdout.text.strip()
