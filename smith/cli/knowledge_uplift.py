"""``smith knowledge uplift``."""

from __future__ import annotations

import click
from rich.text import Text

from smith.cli.common import json_option, layout, print_json, screen
from smith.evaluate.run import load_run
from smith.knowledge.uplift import card_line, effect_lines, sentence, uplift_of


@click.command("uplift")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@json_option
@click.pass_context
def command(ctx: click.Context, runs: tuple[str, ...], as_json: bool) -> None:
    """Do cards help? Compare the attempts of RUNs with --knowledge ab that were shown cards with the others.

    Attempts are compared in the pairs in which chance drew who was shown what; all pairs of all runs together, and card
    by card where a card was shown in six pairs or more. What the figures mean: docs/knowledge.md.
    """
    found = layout(ctx)
    told = uplift_of(found, [load_run(found, run) for run in runs])
    if as_json:
        print_json(told.model_dump(mode="json"))
        return
    for name, figure, p_value in effect_lines(told.uplift.effect):
        screen.print(Text(f"{name:7} {figure}{f', {p_value}' if p_value else ''}"), soft_wrap=True)
    screen.print(Text(f"cited   {told.uplift.cited} of {told.uplift.effect.solved.pairs} that were shown cards"))
    for one in told.uplift.cards:
        screen.print(Text(f"card    {card_line(one)}"), soft_wrap=True)
    for why, count in told.left_out.items():
        screen.print(Text(f"note: {count} pairs are left out: {why}"), soft_wrap=True)
    for note in told.notes:
        screen.print(Text(f"note: {note}"), soft_wrap=True)
    screen.print(Text(sentence(told.uplift.effect)), soft_wrap=True)
    for retract in told.harmful.values():
        screen.print(Text(retract), soft_wrap=True)
