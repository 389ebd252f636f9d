"""``smith demo``: the whole way on the bundled sample upstream."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import click
from rich import box
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from smith import sample
from smith.cli import init
from smith.cli import validate as validate_command
from smith.cli.common import machine_devices, progress, sandbox_option, screen
from smith.cli.evaluate import work_on
from smith.errors import EXIT_NO, Defect
from smith.evaluate.run import start_run
from smith.freeze.bundle import Store
from smith.freeze.freeze import Frozen, freeze
from smith.freeze.panels import make_panel
from smith.git.mirrors import open_upstream
from smith.mine import mine
from smith.paths import MARKER, Layout
from smith.records.receipt import Receipt, Verdict
from smith.report.run_report import RunReport, percent

DEFAULT = Path("smith-demo")
PANEL = "demo"
DEMO = (18, 24, 43, 45, 50, 53, 60)
"""Pull requests of the sample that the demo takes: every merge style, both devices, and three that must be refused."""
DEMO_TASK = "smith-lab__minikernels-24"


@click.command("demo")
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False), default=DEFAULT)
@click.option("--jobs", type=click.IntRange(min=1), default=2, show_default=True, help="Tasks at a time.")
@sandbox_option
@click.pass_context
def command(ctx: click.Context, directory: Path, jobs: int, sandbox: str) -> None:
    """Walk the whole way on the bundled sample upstream, in DIRECTORY (default: smith-demo).

    Mines, freezes, validates, makes a panel, runs the agents oracle and nop, and reports. Exit status 1 unless
    oracle solves every task and nop none.
    """
    began = time.monotonic()
    if not (directory / MARKER).exists():
        # It is run beside other things, and shows the way rather than a figure.
        init.make(directory, "\n[timing]\nforeign = 1.0\n")
    found = Store(Layout(directory.resolve()))
    frozen = _mine_and_freeze(found)
    receipts = _validate(found, frozen, jobs, sandbox)
    valid = [r.task for r in receipts if r.verdict is Verdict.VALID]
    _title("panel", f"{PANEL}: the valid tasks, pinned by tree and receipt")
    panel = make_panel(found, PANEL, valid, "What the demo found valid in the sample upstream.")
    panel.save(found.layout.panel(PANEL))
    screen.print(f"panels/{PANEL}.toml: {len(panel.tasks)} tasks")

    _title("eval", "two agents: oracle hands in the reference, nop nothing")
    reports = []
    for agent in ("oracle", "nop"):
        config = start_run(found, panel, agent=agent, jobs=jobs, sandbox=sandbox)
        reports.append(work_on(found, config))
        screen.print(Text(f"{agent}: {percent(reports[-1].scores.solved)} solved  (run {reports[-1].run})"))

    _title("report", f"the whole way in {time.monotonic() - began:.0f} s")
    screen.print(_result([t.id for t in panel.tasks], reports))
    _next_steps(directory)
    good = all(
        line.verdict == "solved" if report.agent == "oracle" else line.verdict == "failed"
        for report in reports
        for line in report.attempts
    )
    ctx.exit(0 if good and panel.tasks else EXIT_NO)


def _title(step: str, words: str) -> None:
    screen.print()
    screen.print(Rule(Text.assemble((step, "bold"), f"  {words}"), align="left", style="dim"))


def _mine_and_freeze(found: Store) -> list[Frozen]:
    _title("mine", f"{sample.REPO}: a small kernel library that comes with smith")
    upstream = open_upstream(sample.URL, found.layout.mirrors)
    with progress("mining", None):
        mined = mine(upstream.repository, repo=upstream.repo, url=upstream.url)
    reasons = Counter(r.reason for r in mined.rejections)
    screen.print(
        Text(
            f"{mined.seen} merged pull requests, {len(mined.candidates)} candidates; left out: "
            + ", ".join(f"{count} {reason}" for reason, count in reasons.most_common())
        )
    )
    _title("freeze", "source by tree id, tests hidden, instruction written")
    wanted = [c for c in mined.candidates if c.pr in DEMO]
    frozen = []
    for candidate in sorted(wanted, key=lambda c: c.pr):
        result = freeze(candidate, upstream, found)
        if not isinstance(result, Frozen):
            raise Defect(f"the sample's pull request {candidate.pr} was refused: {result.reason}")
        frozen.append(result)
        screen.print(Text.assemble(f"tasks/{result.id}  ", (result.tree[:12], "dim"), f"  {candidate.title}"))
    return frozen


def _validate(found: Store, frozen: Sequence[Frozen], jobs: int, sandbox: str) -> list[Receipt]:
    _title("validate", "baseline and reference, three times each, every time in a fresh sandbox")
    ids, devices = [f.id for f in frozen], machine_devices()
    receipts = validate_command.validate_all(
        found, ids, device="auto", repeats=3, jobs=jobs, sandbox=sandbox, devices=devices
    )
    screen.print(validate_command.table(receipts))
    for receipt in receipts:
        for line in validate_command.remarks(receipt):
            screen.print(Text(f"{receipt.task}: {line}"), soft_wrap=True)
    return receipts


def _result(tasks: Sequence[str], reports: Sequence[RunReport]) -> Table:
    shown = Table(box=box.SIMPLE_HEAD)
    shown.add_column("task")
    for report in reports:
        shown.add_column(report.agent)
    shown.add_column("speed-up", justify="right")
    for task in tasks:
        lines = [line for report in reports for line in report.attempts if line.task == task]
        speed = next((line.speedup for line in lines if line.speedup is not None), None)
        shown.add_row(
            Text(task),
            *[Text(line.verdict or "missing", style="green" if line.verdict == "solved" else "red") for line in lines],
            f"{speed:.2f}x" if speed is not None else "-",
        )
    shown.add_section()
    shown.add_row("solved", *[f"{r.scores.solved.count}/{r.scores.solved.total}" for r in reports], "")
    return shown


def _next_steps(directory: Path) -> None:
    screen.print("Look around, then do it with a repository of your own:", style="bold")
    for line in (
        f"cd {directory} && smith task show {DEMO_TASK} && smith report --html report.html",
        "smith init ../kernels && cd ../kernels",
        "smith mine linkedin/Liger-Kernel --language triton --kind fix --out fixes.jsonl",
        "smith freeze --candidates fixes.jsonl --limit 3",
        "smith validate --all && smith panel new first --valid && smith eval first --agent oracle",
    ):
        screen.print(Text(f"  {line}"), soft_wrap=True)
    screen.print(
        Text("What a repository needs beyond torch and triton goes into recipes/OWNER__NAME.toml: see docs/recipes.md"),
        soft_wrap=True,
        style="dim",
    )
