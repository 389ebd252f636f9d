"""Plots of a report as SVG that takes its colours from the page, so that they follow dark mode and print."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

MOST_CASES = 60
"""How many timed tasks a plot shows; the tables have all."""
# matplotlib writes colours as they are given: these stand for what the style sheet says, and are in no palette.
_COLOURS = {"#010203": "var(--text)", "#010204": "var(--accent)", "#010205": "var(--faint)", "#010206": "var(--good)"}
TEXT, ACCENT, FAINT, GOOD = _COLOURS


@dataclass(frozen=True)
class Timed:
    """One timed attempt that solved."""

    label: str
    ratio: float
    low: float
    high: float
    reference: float | None


def speedups(cases: Sequence[Timed]) -> str:
    """Speed-ups with their intervals, the reference's beside them, on a logarithmic axis."""
    shown = cases[:MOST_CASES]
    figure, axes = _figure(height=1.1 + 0.28 * len(shown))
    places = range(len(shown))
    axes.axvline(1.0, color=FAINT, linewidth=1)
    axes.hlines(places, [c.low for c in shown], [c.high for c in shown], color=ACCENT, linewidth=2)
    axes.plot([c.ratio for c in shown], places, "o", color=ACCENT, markersize=5, label="submission, 95 % interval")
    known = [(c.reference, place) for place, c in enumerate(shown) if c.reference is not None]
    if known:
        axes.plot(*zip(*known, strict=True), "|", color=TEXT, markersize=11, markeredgewidth=2, label="reference")
    axes.set_yticks(list(places), [c.label for c in shown])
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}x")
    axes.xaxis.set_minor_formatter(lambda x, _: "")
    axes.set_xlabel("times as fast as the baseline")
    _legend(axes)
    return _svg(figure, f"Speed-up of {len(shown)} solved attempts with intervals, beside the reference's")


@dataclass(frozen=True)
class Solved:
    """One run: the share of its attempts that solved, with an interval."""

    label: str
    share: float
    low: float
    high: float


def shares(runs: Sequence[Solved]) -> str:
    """Shares solved with their intervals, one run a line."""
    shown = runs[:MOST_CASES]
    figure, axes = _figure(height=0.9 + 0.3 * len(shown))
    places = range(len(shown))
    axes.hlines(places, [r.low for r in shown], [r.high for r in shown], color=ACCENT, linewidth=2)
    axes.plot([r.share for r in shown], places, "o", color=ACCENT, markersize=6)
    axes.set_yticks(list(places), [r.label for r in shown])
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.set_xlim(-0.02, 1.02)
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:.0%}")
    axes.set_xlabel("attempts solved (pass@1), interval of 95 %")
    return _svg(figure, "Share solved with its interval: " + ", ".join(f"{r.label} {r.share:.0%}" for r in shown))


def cost_against_success(costs: Sequence[tuple[float, bool]], unit: str) -> str:
    """The share of all attempts that had solved by the time they had spent so much; one pair an attempt."""
    solved = sorted(spent for spent, is_solved in costs if is_solved)
    figure, axes = _figure(height=2.6)
    shares = [(n + 1) / len(costs) for n in range(len(solved))]
    most = max((spent for spent, _ in costs), default=0.0)
    axes.step(
        [0.0, *solved, most], [0.0, *shares, shares[-1] if shares else 0.0], where="post", color=ACCENT, linewidth=2
    )
    axes.set_ylim(0, 1.02)
    axes.set_xlim(left=0)
    axes.yaxis.set_major_formatter(lambda y, _: f"{y:.0%}")
    axes.set_xlabel(f"{unit} an attempt")
    axes.set_ylabel("attempts solved")
    return _svg(figure, f"Share of attempts solved against {unit} spent: {len(solved)} of {len(costs)} in the end")


def funnel(steps: Sequence[tuple[str, int]]) -> str:
    """How many attempts came how far."""
    figure, axes = _figure(height=0.6 + 0.34 * len(steps))
    places = range(len(steps))
    bars = axes.barh(places, [n for _, n in steps], color=[ACCENT] * (len(steps) - 1) + [GOOD], height=0.62)
    axes.bar_label(bars, padding=4, color=TEXT)
    axes.set_yticks(list(places), [name for name, _ in steps])
    axes.invert_yaxis()
    axes.set_xlim(right=max(1, max(n for _, n in steps)) * 1.08)
    axes.xaxis.set_visible(False)
    axes.spines["bottom"].set_visible(False)
    return _svg(figure, "Outcomes: " + ", ".join(f"{name} {n}" for name, n in steps))


def _figure(height: float) -> tuple[Any, Any]:
    # Half a second to import, and only reports in HTML need it.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.6, height), layout="constrained")
    figure.patch.set_alpha(0)
    axes = figure.add_subplot()
    axes.patch.set_alpha(0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(FAINT)
    axes.tick_params(colors=TEXT, which="both", length=0)
    axes.xaxis.label.set_color(TEXT)
    axes.yaxis.label.set_color(TEXT)
    return figure, axes


def _legend(axes: Any) -> None:
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False, labelcolor=TEXT)


def _svg(figure: Any, description: str) -> str:
    """The drawing with text as text, named for those who do not see it."""
    import matplotlib as mpl

    written = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "font.family": "sans-serif", "svg.hashsalt": "smith"}):
        figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None})
    drawn = written.getvalue()
    drawn = drawn[drawn.index("<svg") :]
    drawn = re.sub(r"<metadata>.*?</metadata>", "", drawn, flags=re.DOTALL)
    for colour, name in _COLOURS.items():
        drawn = drawn.replace(colour, name)
    drawn = re.sub(r"font: [0-9.]+px [^;\"]*", lambda m: m.group().split("px")[0] + "px var(--sans)", drawn)
    drawn = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", drawn, count=1)
    drawn = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", drawn, count=1)
    from markupsafe import escape

    return drawn.replace("<svg", f'<svg role="img" aria-label="{escape(description)}"', 1)
