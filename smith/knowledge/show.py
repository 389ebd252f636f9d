"""Which cards the tasks of a panel are shown in a run: what :mod:`smith.knowledge.retrieve` gives, settled once."""

from __future__ import annotations

from smith.errors import BadInput
from smith.freeze.bundle import Store
from smith.freeze.panels import pinned_receipt
from smith.knowledge.held_out import HeldOut
from smith.knowledge.index import open_index
from smith.knowledge.retrieve import retrieve
from smith.records.panel import Panel
from smith.records.shown import FrozenCard, RunCards, TaskCards


def cards_for(store: Store, panel: Panel, device: str) -> RunCards:
    """Choose cards for every task of a panel, for the device that it is graded on. The same base gives the same.

    Raises :class:`BadInput` where there is no card for any of them.
    """
    with open_index(store.layout) as index:
        known = list(index.every())
    held_out = HeldOut.of(store.layout)
    found = {}
    for pin in panel.tasks:
        family = pinned_receipt(store, pin, device).receipt.device.partition(":")[0]
        got = retrieve(known, store.load(pin.id), family, held_out)
        cards = tuple(
            FrozenCard(card=one.known.file.card.id, file_sha256=one.known.file.digest, why=one.why, text=one.text)
            for one in got.chosen
        )
        found[pin.id] = TaskCards(device=family, cards=cards, refused=len(got.left_out))
    if not any(one.cards for one in found.values()):
        raise BadInput(
            f"there is no card for any task of the panel {panel.name}",
            hint=f"smith knowledge retrieve {panel.tasks[0].id} --explain says why; or leave --knowledge out",
        )
    return RunCards(tasks=found)
