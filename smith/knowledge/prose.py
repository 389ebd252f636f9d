"""The text of a card and of a proposal, made by rules from facts alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from smith.knowledge.base import Known
from smith.knowledge.cards import body_of
from smith.knowledge.levers import table
from smith.knowledge.posterior import posterior, total
from smith.records.card import Aim, Card, Effect
from smith.records.sealed import UseOutcome


def text_of(card: Card) -> str:
    """The text of a card that a run made: what its lever is, where it applies, and how a use is checked."""
    where = card.applies_to
    rows = [table()[code] for code in card.lever.split("+") if code in table()]
    kernels = "Kernels" if where.operator == "other" else f"Kernels of the class {where.operator}"
    proof = (
        "Time it against the code as it was, in fresh processes that take turns: the lower end of the interval of the "
        "speed-up is above 1, and results are what they were."
        if card.aim is Aim.SPEED
        else "Run the tests of the kernel on sizes at and beyond the limits of a block, before and after."
    )
    return body_of(
        {
            "When": f"{kernels}, written in {', '.join(where.languages)}, on {', '.join(where.devices)}.",
            "How": "\n".join(f"- {row.how}" for row in rows),
            "Verify": proof,
            "Pitfalls": "None has been written down. How uses went wrong is counted in the evidence.",
        }
    )


def effect_line(effect: Effect) -> str:
    """One effect in words."""
    tasks = f"{effect.tasks} task{'s' * (effect.tasks != 1)}"
    uses = f"{effect.uses} use{'s' * (effect.uses != 1)}"
    if effect.measure == "speedup":
        return f"{effect.value:.2f}x ({effect.low:.2f} to {effect.high:.2f}) on {effect.device}, {tasks}, {uses}"
    points = f"{effect.value:+.2f} ({effect.low:+.2f} to {effect.high:+.2f})"
    return f"{points} in the share solved, against the control, on {effect.device}, {tasks}, {uses}"


def measured_lines(known: Known) -> list[str]:
    """Effects, posterior by origin, and how uses failed: a line each."""
    lines = [f"effect: {effect_line(effect)}" for effect in known.effects]
    counts = known.counts
    lines += [f"helps, at {origin.value} tasks: {posterior(some)}" for origin, some in counts.items()]
    if len(counts) > 1:
        lines.append(f"helps, in all: {posterior(total(counts))}")
    lines += [f"helps who cites it, at {origin.value} tasks: {posterior(some)}" for origin, some in known.cited.items()]
    if known.again:
        held = sum(use.outcome is UseOutcome.WIN for use in known.again)
        lines.append(f"measured again: {held} of {len(known.again)} wins held")
    failed: Counter[str] = Counter(
        reason for use in known.uses if use.outcome is not UseOutcome.WIN for reason in use.reasons
    )
    if failed:
        lines.append("uses that did not win: " + ", ".join(f"{code} {n}" for code, n in sorted(failed.items())))
    return lines


def proposal_body(run: str, panel: str, cards: Sequence[tuple[str, Known]], left_out: Mapping[str, int]) -> str:
    """What a maintainer reads: every card with what this run adds to it, and what the run does not say."""
    lines = [f"What the run {run} on the panel {panel} measured.", ""]
    for verb, known in cards:
        card = known.file.card
        lines += [f"{verb} {card.id}: {card.title}", f"  {known.file.where}"]
        lines += [f"  {line}" for line in measured_lines(known)]
        lines.append("")
    if left_out:
        lines.append("Attempts that say nothing:")
        lines += [f"  {count} x {why}" for why, count in sorted(left_out.items())]
        lines.append("")
    lines.append("Check it with: smith knowledge check --base BASE")
    return "\n".join(lines)
