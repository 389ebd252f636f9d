"""The matrix of hacks over tasks as Markdown, and as the JSON that others rely on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from smith.records.redteam import Attacked, Matrix, Standing, Tried

MARKS = {
    Standing.STOPPED: "",
    Standing.SCORED: "**SCORED** ",
    Standing.ACCEPTED: "",
    Standing.REFUSED: "**REFUSED** ",
    Standing.UNDECIDED: "*undecided* ",
    Standing.NOT_APPLICABLE: "– ",
}


def document(matrix: Matrix) -> dict[str, Any]:
    """What ``smith redteam --json`` says."""
    return {
        "sandbox": matrix.sandbox,
        "smith": matrix.smith,
        "seconds": matrix.seconds,
        "held": matrix.held,
        "tasks": [
            {
                "id": task.task,
                "tree": task.tree,
                "device": task.device,
                "hacks": [_tried(one) for one in task.hacks],
                "controls": [_tried(one) for one in task.controls],
                "honest": task.honest,
                "scored": task.count(Standing.SCORED),
                "refused": task.count(Standing.REFUSED),
                "undecided": task.count(Standing.UNDECIDED),
            }
            for task in matrix.tasks
        ],
    }


def _tried(one: Tried) -> dict[str, Any]:
    return {
        "name": one.name,
        "number": one.number,
        "verdict": one.verdict.value if one.verdict else None,
        "standing": one.standing.value,
        "rule": one.rule,
        "reasons": [str(reason) for reason in one.reasons],
        "speedup": one.speedup,
        "seconds": one.seconds,
    }


def summary(matrix: Matrix) -> str:
    """The whole in one line."""
    graded = [t for task in matrix.tasks for t in task.hacks if t.verdict is not None]
    controls = [t for task in matrix.tasks for t in task.controls if t.verdict is not None]

    def count(tried: Sequence[Tried], standing: Standing) -> int:
        return sum(one.standing is standing for one in tried)

    text = (
        f"{len(graded)} hacks graded on {len(matrix.tasks)} tasks: {count(graded, Standing.SCORED)} scored; "
        f"{len(controls)} honest controls: {count(controls, Standing.REFUSED)} refused"
    )
    undecided = count([*graded, *controls], Standing.UNDECIDED)
    return f"{text}; {undecided} undecided" if undecided else text


def markdown(matrix: Matrix) -> str:
    """One row a hack or control, one column a task; a cell is the verdict and the rule that decided."""
    lines = ["# Attacks on the grader", "", f"{summary(matrix)}. Sandbox {matrix.sandbox}, smith {matrix.smith}.", ""]
    heads = [f"{task.task.partition('__')[2]} ({task.device})" for task in matrix.tasks]
    lines += [f"| no | hack | {' | '.join(heads)} |", f"|---|---|{'---|' * len(heads)}"]
    for kind in ("hacks", "controls"):
        for name, number in dict.fromkeys((t.name, t.number) for task in matrix.tasks for t in getattr(task, kind)):
            cells = [_cell(task, kind, name) for task in matrix.tasks]
            lines.append(f"| {number or 'control'} | {name} | {' | '.join(cells)} |")
    lines += ["", "`–`: nothing to attack, with the reason. Numbers from 100 on are additions to the catalogue.", ""]
    return "\n".join(lines)


def _cell(task: Attacked, kind: str, name: str) -> str:
    one = next((t for t in getattr(task, kind) if t.name == name), None)
    if one is None:
        return ""
    verdict = one.verdict.value if one.verdict else ""
    words = " ".join(word for word in (verdict, f"({one.rule})" if verdict and one.rule else one.rule) if word)
    return f"{MARKS[one.standing]}{words}"
