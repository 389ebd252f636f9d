"""``smith knowledge revalidate``."""

from __future__ import annotations

from datetime import UTC, datetime

import click
from rich.text import Text

from smith import sandbox as sandboxes
from smith.cli.common import (
    device_wait_option,
    json_option,
    machine_devices,
    print_json,
    progress,
    sandbox_option,
    screen,
    store,
)
from smith.errors import EXIT_NO
from smith.grade.environments import Environments
from smith.knowledge.age import Bases, outside
from smith.knowledge.base import Known
from smith.knowledge.cards import find
from smith.knowledge.index import open_index
from smith.knowledge.revalidate import Artifacts, Grading, Revalidated, revalidate
from smith.records.card import Status


@click.command("revalidate")
@click.argument("cards", nargs=-1, metavar="[CARD]...")
@click.option("--age", "age_only", is_flag=True, help="Look at toolchain and upstream symbols only; run nothing.")
@device_wait_option
@sandbox_option
@json_option
@click.pass_context
def command(
    ctx: click.Context, cards: tuple[str, ...], age_only: bool, device_wait: float, sandbox: str, as_json: bool
) -> None:
    """Measure the wins behind CARDs (default: all that are not retracted) again, with what is on this machine.

    The winning patches that are still in their run's folder here are graded again. What holds is filed as new evidence;
    where something does not hold, or a range of versions or a symbol upstream has gone, the card is marked as stale.
    Files are written into the work tree, for you to commit. Exit status 0 where every card was measured and holds (with
    --age: where none is stale).
    """
    found = store(ctx)
    with open_index(found.layout) as index:
        every = [known for known in index.every() if known.file.card.status is not Status.RETRACTED]
    chosen = _chosen(every, cards)
    for known in chosen:
        list(outside(known.file.card, {}))  # a range that is none is said before anything is run
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    artifacts, bases = Artifacts.of(found.layout), Bases.of(found)
    told: list[tuple[Known, Revalidated]] = []
    with progress("measuring again", len(chosen)) as step:
        grading = None
        if not age_only:
            environments = Environments(found.layout.environments, found.layout.logs)
            grading = Grading(found, sandboxes.make(sandbox), machine_devices(device_wait), environments, stamp,
                          say=lambda text: step(text, 0))  # fmt: skip
        for known in chosen:
            told.append((known, revalidate(known, artifacts, bases, grading)))
            step(known.file.card.id, 1)
    if as_json:
        print_json({"cards": [_document(known, one) for known, one in told]})
    else:
        _show(told, age_only)
    good = [one.status is Status.ACTIVE if age_only else one.good for _, one in told]
    ctx.exit(0 if all(good) else EXIT_NO)


def _chosen(every: list[Known], wanted: tuple[str, ...]) -> list[Known]:
    files = [known.file for known in every]
    ids = {find(files, one).card.id for one in wanted}
    return [known for known in every if not wanted or known.file.card.id in ids]


def _document(known: Known, one: Revalidated) -> dict[str, object]:
    return {
        "id": one.card,
        "file": known.file.where,
        "status": one.status.value,
        "reason": one.reason,
        "measured": one.measured,
        "held": one.held,
        "evidence": one.evidence,
        "not_measured": one.why,
    }


def _show(told: list[tuple[Known, Revalidated]], age_only: bool) -> None:
    written = 0
    for known, one in told:
        before = known.file.card.status
        state = one.status.value if one.status is before else f"{before.value} -> {one.status.value}"
        words = "" if age_only else f", {one.held} of {one.measured} wins held"
        screen.print(Text(f"{one.card}  {known.file.card.title}: {state}{words}"), soft_wrap=True)
        for line in ([one.reason] if one.reason else []) + [f"not measured: {why}" for why in one.why]:
            screen.print(Text(f"  {line}"), soft_wrap=True)
        written += len(one.evidence) + (one.status is not before)
    if not told:
        screen.print("there are no cards")
    elif written:
        screen.print("next: git add knowledge && git commit")
