"""The receipts that an entry was pinned to, also where the panel has moved on since."""

from __future__ import annotations

from smith.errors import RecordError, SmithError
from smith.freeze.bundle import Store
from smith.freeze.panels import blob_id
from smith.git.objects import read_blobs
from smith.git.repository import Repository
from smith.records.panel import PanelTask
from smith.records.receipt import Receipt


class PinnedReceipts:
    """Receipts by task and device: from their files where those are still the pinned ones, else from git's objects."""

    def __init__(self, store: Store) -> None:
        self._store, self._repo = store, Repository(store.data.git_dir)
        self._known: dict[str, Receipt | None] = {}

    def find(self, pinned: PanelTask, device: str) -> Receipt | None:
        """The receipt that ``pinned`` names for ``device``; None where it names none, or what it names is not here."""
        blob = pinned.receipts.get(device)
        if blob is None:
            return None
        if blob not in self._known:
            self._known[blob] = self._read(pinned, device, blob)
        found = self._known[blob]
        right = found is not None and (found.task, found.tree, found.device) == (pinned.id, pinned.tree, device)
        return found if right else None

    def _read(self, pinned: PanelTask, device: str, blob: str) -> Receipt | None:
        path = self._store.layout.receipt(pinned.id, pinned.tree, device)
        data = path.read_bytes() if path.is_file() else b""
        try:
            if blob_id(data) != blob:
                data = next(content for _, content in read_blobs(self._repo, [blob])) or b""
            return Receipt.loads(data, f"receipt {blob[:12]}")
        except (RecordError, SmithError):
            return None
