"""``smith knowledge``."""

from __future__ import annotations

import socket
from typing import Any

import click
from rich.text import Text

from smith.cli.common import json_option, layout, print_json, screen, store
from smith.cli.knowledge_revalidate import command as revalidate
from smith.cli.knowledge_uplift import command as uplift
from smith.errors import EXIT_NO, BadInput
from smith.knowledge.base import Known
from smith.knowledge.cards import CardFile, find, save
from smith.knowledge.check import check as check_all
from smith.knowledge.held_out import HeldOut
from smith.knowledge.index import Wanted, line_of, open_index, write_list
from smith.knowledge.propose import propose as propose_run
from smith.knowledge.prose import measured_lines
from smith.knowledge.render import render
from smith.knowledge.retract import retract as retract_card
from smith.knowledge.retrieve import retrieve as retrieve_for
from smith.records.card import Card

_DEVICES = click.Choice(["cpu", "interpreter", "rocm", "cuda"])


@click.group("knowledge")
def command() -> None:
    """Search, use, propose and check what runs have learned. See docs/knowledge.md."""


@command.command("search")
@click.argument("words", nargs=-1)
@click.option("--operator", default="", help="Only this class of operators: norm, gemm, attention, ...")
@click.option("--language", default="", help="Only this language: triton, native, hip, cuda.")
@click.option("--device", type=_DEVICES, help="Only what was measured on this family of devices.")
@click.option("--all", "everything", is_flag=True, help="Stale and retracted cards too.")
@click.option("--limit", type=click.IntRange(min=1), default=10, show_default=True)
@json_option
@click.pass_context
def search(
    ctx: click.Context,
    words: tuple[str, ...],
    operator: str,
    language: str,
    device: str | None,
    everything: bool,
    limit: int,
    as_json: bool,
) -> None:
    """Find cards that hold all WORDS, else any of them; without WORDS, all. Exit status 1 where there is none."""
    with open_index(layout(ctx)) as index:
        found = index.search(" ".join(words), Wanted(operator, language, device or "", everything), limit)
    if as_json:
        print_json({"cards": [line_of(known) for known in found]})
    else:
        for known in found:
            _short(known)
        if not found:
            screen.print("no card")
    ctx.exit(0 if found else EXIT_NO)


def _short(known: Known) -> None:
    card = known.file.card
    marked = "" if card.status.value == "active" else f" [{card.status.value}: {card.reason}]"
    screen.print(Text(f"{card.id}  {card.title}{marked}"), soft_wrap=True)
    for line in measured_lines(known):
        screen.print(Text(f"  {line}"), soft_wrap=True)


@command.command("show")
@click.argument("card")
@json_option
@click.pass_context
def show(ctx: click.Context, card: str, as_json: bool) -> None:
    """Show the card whose identifier begins with CARD, with what was measured of it."""
    found = _one(ctx, card)
    if as_json:
        uses = [
            {"evidence": sealed.digest, **use.model_dump(mode="json")}
            for sealed in found.evidence
            for use in sealed.evidence.uses
        ]
        print_json({**line_of(found), "body": found.file.body, "uses": uses})
        return
    if found.file.card.status.value != "active":
        screen.print(Text(f"{found.file.card.status.value}: {found.file.card.reason}"), soft_wrap=True)
    screen.print(Text(render(found).rstrip()), soft_wrap=True)
    screen.print(Text(f"\n{found.file.where}"), soft_wrap=True)
    for sealed in found.evidence:
        screen.print(Text(f"knowledge/evidence/{sealed.digest}.json"), soft_wrap=True)


def _one(ctx: click.Context, wanted: str) -> Known:
    with open_index(layout(ctx)) as index:
        found = index.by_id(wanted)
    file = find([known.file for known in found], wanted)
    return next(known for known in found if known.file is file)


@command.command("check")
@click.option("--base", metavar="REF", help="Also check that nothing which was there at this commit is gone.")
@json_option
@click.pass_context
def check(ctx: click.Context, base: str | None, as_json: bool) -> None:
    """Check every card and all evidence, as a data repository's checks do on a pull request.

    One line for each finding, with its code (docs/knowledge.md); exit status 1 where there are any.
    """
    found = check_all(store(ctx), base=base, machine=socket.gethostname())
    if as_json:
        errors = [{"card": f.where, "code": f.code, "message": f.message} for f in found.findings]
        print_json({"cards": found.cards, "errors": errors})
    else:
        for finding in found.findings:
            screen.print(Text(str(finding)), soft_wrap=True)
        if not found.findings:
            said = f"all {found.cards} cards are as they should be" if found.cards else "there are no cards yet"
            screen.print(Text(said))
        if found.behind:
            screen.print(
                Text(f"note: {found.behind} cards do not show all their figures: smith knowledge index --figures")
            )
    ctx.exit(EXIT_NO if found.findings else 0)


@command.command("propose")
@click.argument("run", default="latest")
@click.option("--control", metavar="RUN", help="A run without the help: its failures make solved tasks wins.")
@json_option
@click.pass_context
def propose(ctx: click.Context, run: str, control: str | None, as_json: bool) -> None:
    """Distil the measured wins of RUN into cards, on a branch knowledge/RUN with one commit.

    The work tree must be what is committed, and stays as it is. Exit status 1 where the run has nothing new to say.
    """
    made = propose_run(store(ctx), run, control)
    if as_json:
        print_json(
            {
                "branch": made.branch,
                "commit": made.commit,
                "added": list(made.added),
                "updated": list(made.updated),
                "evidence": list(made.evidence),
                "left_out": made.left_out,
                "message": made.message,
            }
        )
    elif made.commit:
        screen.print(Text(made.message.rstrip()), soft_wrap=True)
        screen.print(Text(f"\nbranch {made.branch}, commit {made.commit[:12]}; next: git push origin {made.branch}"))
    else:
        for why, count in sorted(made.left_out.items()):
            screen.print(Text(f"{count} x {why}"), soft_wrap=True)
        screen.print(Text("nothing to propose"))
    ctx.exit(0 if made.commit else EXIT_NO)


@command.command("index")
@click.option("--figures", is_flag=True, help="Also write what was measured into the front matter of each card.")
@json_option
@click.pass_context
def index(ctx: click.Context, figures: bool, as_json: bool) -> None:
    """Write the list of all cards, a line of JSON each, to .smith/knowledge.jsonl.

    It is never committed: two proposals would be in each other's way. --figures is a maintainer's, after merging.
    """
    found = layout(ctx)
    path = found.volatile / "knowledge.jsonl"
    written = 0
    with open_index(found) as opened:
        if figures:
            for known in opened.every():
                written += _write_figures(ctx, known)
            opened.refresh()
        cards = write_list(opened, path)
    if as_json:
        print_json({"cards": cards, "file": str(path), "figures": written})
    else:
        told = f"; figures of {written} cards written, to be committed" if figures else ""
        screen.print(Text(f"{path.relative_to(found.root)}: {cards} cards{told}"), soft_wrap=True)


def _write_figures(ctx: click.Context, known: Known) -> bool:
    right = known.figures() if known.evidence else None
    if known.file.card.figures == right:
        return False
    changed: dict[str, Any] = known.file.card.model_dump(mode="json") | {
        "figures": right.model_dump(mode="json") if right is not None else None
    }
    save(layout(ctx), CardFile(known.file.where, Card.parse(changed, known.file.where), known.file.body))
    return True


@command.command("retrieve")
@click.argument("task")
@click.option("--device", type=_DEVICES, help="Family of devices (default: the first of the task's).")
@click.option("--limit", type=click.IntRange(min=1), default=1, show_default=True, help="Cards at most.")
@click.option("--tokens", type=click.IntRange(min=1), default=1000, show_default=True, help="About how many, at most.")
@click.option("--own", is_flag=True, help="Also what was learned at this very task, where it is not held out.")
@click.option("--explain", is_flag=True, help="Say why each card was chosen or not, and not what it says.")
@json_option
@click.pass_context
def retrieve(
    ctx: click.Context,
    task: str,
    device: str | None,
    limit: int,
    tokens: int,
    own: bool,
    explain: bool,
    as_json: bool,
) -> None:
    """Print the cards that an agent would be shown at TASK. Exit status 1 where there is none.

    The same cards and the same task give the same answer. Nothing that was learned at a held-out task, or at a
    relative of it, is ever shown.
    """
    found = store(ctx)
    bundle = found.load(task)
    if device is not None and device not in bundle.spec.devices:
        raise BadInput(f"{task} is not for {device}", hint=f"it is for {', '.join(bundle.spec.devices)}")
    family = device or bundle.spec.devices[0]
    with open_index(found.layout) as opened:
        cards = list(opened.every())
    held_out = HeldOut.of(found.layout)
    got = retrieve_for(cards, bundle, family, held_out, limit=limit, tokens=tokens, own=own)
    if as_json:
        chosen = [
            {"id": c.known.file.card.id, "score": c.score, "why": c.why, "tokens": c.tokens, "text": c.text}
            for c in got.chosen
        ]
        print_json({"task": task, "device": family, "chosen": chosen,
                    "left_out": [{"id": i, "why": why} for i, why in got.left_out]})  # fmt: skip
    elif explain:
        for one in got.chosen:
            screen.print(Text(f"chosen    {one.known.file.card.id}  {one.score:g}  {one.why}"), soft_wrap=True)
        for identifier, why in got.left_out:
            screen.print(Text(f"left out  {identifier}  {why}"), soft_wrap=True)
    else:
        for one in got.chosen:
            click.echo(one.text)
    if not got.chosen and not as_json:
        screen.print("no card")
    ctx.exit(0 if got.chosen else EXIT_NO)


@command.command("retract")
@click.argument("card")
@click.option("--reason", required=True, help="Why, in a sentence.")
@json_option
@click.pass_context
def retract(ctx: click.Context, card: str, reason: str, as_json: bool) -> None:
    """Mark CARD as retracted, with the evidence against it. The file stays, and is for you to commit."""
    file = retract_card(layout(ctx), _one(ctx, card), reason)
    if as_json:
        print_json({"file": file.where, "card": file.card.model_dump(mode="json")})
    else:
        against = len(file.card.refuted_by)
        screen.print(Text(f"{file.where}: retracted; evidence against it: {against} files"), soft_wrap=True)


command.add_command(revalidate)
command.add_command(uplift)
