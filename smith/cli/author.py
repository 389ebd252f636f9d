"""``smith author``."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

import click
from rich.text import Text

from smith import sandbox as sandboxes
from smith import temporary
from smith.author import report
from smith.author.answers import Answers, binding_of, folder_name, prepared
from smith.author.ask import Asker
from smith.author.author import DEFAULT_ATTEMPTS, Authoring, Outcome
from smith.author.client import Client, Settings
from smith.author.dialects import DIALECTS, dialect_of
from smith.author.documents import gather
from smith.author.judge import Judge, adopt
from smith.author.roles import Roles
from smith.cli.amounts import Dollars
from smith.cli.common import (
    device_option,
    json_option,
    machine_devices,
    print_json,
    progress,
    sandbox_option,
    screen,
    store,
)
from smith.cli.grade import expected_receipt
from smith.errors import EXIT_NO, BadInput
from smith.freeze.authored import NOTE, notes
from smith.freeze.bundle import Bundle, Store
from smith.grade.environments import Environments
from smith.ledger import Ledger, Limits
from smith.ledger.prices import Prices
from smith.models.keys import find_key
from smith.paths import locked, remove_tree
from smith.records.authoring import Authored

Say = Callable[[str], None]


@dataclass(frozen=True)
class Reach:
    """How a model is reached, and what it may cost."""

    model: str | None
    endpoint: str | None
    dialect: str | None
    provider: str | None
    key_file: Path | None
    budget_usd: int | None
    """Micro-dollars."""
    max_output_tokens: int
    timeout: float

    @property
    def settings(self) -> Settings | None:
        """None where no model is named."""
        if self.model is None:
            return None
        return Settings(self.model, self.provider, self.max_output_tokens, self.timeout)


@click.command("author")
@click.argument("task")
@click.option("--model", help="The model to ask, as its endpoint calls it.")
@click.option(
    "--endpoint", help="Address of the endpoint [default: OPENAI_BASE_URL or ANTHROPIC_BASE_URL, else the maker's]."
)
@click.option(
    "--dialect",
    type=click.Choice(sorted(DIALECTS)),
    help="How the endpoint is asked [default: anthropic for claude models, else openai].",
)
@click.option("--provider", help="For the price list, where one model's name means several.")
@click.option(
    "--key-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File with the endpoint's key [default: the variable OPENAI_API_KEY or ANTHROPIC_API_KEY].",
)
@click.option("--budget-usd", type=Dollars(), help="The most that authoring this task may spend in all.")
@click.option(
    "--attempts",
    type=click.IntRange(1, 9),
    default=DEFAULT_ATTEMPTS,
    show_default=True,
    help="Designs, repaired ones among them, that are put through the gates.",
)
@click.option(
    "--max-output-tokens",
    type=click.IntRange(256, 200_000),
    default=16_000,
    show_default=True,
    help="Cap of one answer.",
)
@click.option(
    "--timeout", type=click.FloatRange(1, 7200), default=600.0, show_default=True, help="Seconds for one answer."
)
@click.option(
    "--answers", type=click.Path(path_type=Path, file_okay=False), help="Prepared answers, used before any model."
)
@click.option("--fresh", is_flag=True, help="Ask anew: this model's kept answers are removed first.")
@click.option("--again", is_flag=True, help="Author a task further that was authored already.")
@click.option("--dry-run", is_flag=True, help="Show the next prompts and what all could cost; ask and change nothing.")
@device_option
@click.option("--repeats", type=click.IntRange(min=2), default=3, show_default=True, help="Runs of each arm.")
@sandbox_option
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    task: str,
    attempts: int,
    answers: Path | None,
    fresh: bool,
    again: bool,
    dry_run: bool,
    device: str,
    repeats: int,
    sandbox: str,
    as_json: bool,
    **reach: Any,
) -> None:
    """Let a language model write a better instruction, extra hidden tests and probes for TASK.

    TASK must have a valid receipt. A design is accepted only where every gate passes again: nothing of the solution in
    the instruction, nothing lost that hidden tests need, and a validation in which extra tests, wrong and alternative
    solutions do what they must. Otherwise the bundle stays as it is, and the exit status is 1.
    """
    how = Reach(**reach)
    if how.model is not None and (not how.model.strip() or not how.model.isprintable()):
        raise BadInput(f"{how.model!a} names no model")
    if how.endpoint is not None and urlsplit_or_none(how.endpoint) is None:
        raise BadInput(f"{how.endpoint!a} is no address of an endpoint", hint="as in http://localhost:8000/v1")
    if how.key_file is not None and not how.key_file.is_file():
        raise BadInput(f"{how.key_file}: No such file")
    if how.model is None and answers is None:
        raise BadInput("give --model, or prepared answers with --answers", hint="see: smith author --help")
    found = store(ctx)
    bundle = found.load(task)
    with locked(found.layout.volatile / "locks" / f"author-{bundle.id}.lock", wait=False):
        already = _authored(found, bundle)
        if already is not None and not again and not dry_run:
            _say_already(already, as_json)
            return
        work = _Work(found, bundle, how, answers, device)
        if dry_run:
            planned = report.plan(work.roles, work.kept, attempts, how.settings, Prices.of(found.layout))
            _show(planned, report.plan_lines, as_json)
            return
        if fresh:
            remove_tree(work.kept.folder)
        with progress(f"authoring {bundle.id}", None) as show:
            result = work.run(attempts, repeats, sandbox, lambda text: show(text, 1))
    _show(result, report.lines, as_json)
    ctx.exit(0 if result["accepted"] else EXIT_NO)


def urlsplit_or_none(address: str) -> SplitResult | None:
    """The parts of an http address; None where it is none."""
    try:
        parts = urlsplit(address)
        return parts if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 else None
    except ValueError:
        return None


class _Work:
    """One authoring, with everything that it needs from the world."""

    def __init__(self, found: Store, bundle: Bundle, how: Reach, answers: Path | None, device: str) -> None:
        self.found, self.bundle, self.how = found, bundle, how
        self.devices = machine_devices()
        self.before = expected_receipt(found, bundle, device, self.devices.machine).receipt
        found.require_sources(bundle)
        self.documents = gather(found, bundle, self.before)
        self.roles = Roles(bundle, self.documents, found.layout.prompts)
        binding = binding_of(bundle)
        self.model = how.model or "prepared"
        folder = found.layout.authoring / bundle.id / binding[:16] / folder_name(self.model)
        self.kept = Answers(folder, bundle.id, binding, strict=False)
        self.given = prepared(answers, bundle.id, binding) if answers is not None else None
        self.scope = f"author/{bundle.id}/{binding[:12]}"

    def run(self, attempts: int, repeats: int, sandbox: str, say: Say) -> dict[str, Any]:
        found = self.found
        builder = Environments(found.layout.environments, found.layout.logs).build
        box, device = sandboxes.make(sandbox), self.before.device
        purpose = f"author {self.bundle.id}"
        with (
            self._client(say) as (client, ledger),
            temporary.folder("author") as aside,
            self.devices.bench(found, box, device, purpose=purpose, step=say) as bench,
        ):
            judge = Judge(found, self.bundle, bench, self.before, self.documents, builder, repeats, say)
            asker = Asker(client, self.kept, self.given, found.layout.prompts, say)
            outcome = Authoring(self.roles, asker, judge, attempts=attempts, aside=aside, say=say).run()
            tree = self._adopt(outcome)
            spent = ledger.balance(self.scope).spent.usd_micros if ledger is not None else 0
            return {
                **report.result(self.bundle, outcome, tree, self.before.device),
                "calls": {
                    "sent": client.sent if client else 0,
                    "reused": asker.reused,
                    "uncertain": client.uncertain if client else 0,
                    "spent_usd": spent / 1e6,
                    "scope": self.scope if client else None,
                },
                "answers": str(self.kept.folder.relative_to(found.layout.root)),
            }

    @contextlib.contextmanager
    def _client(self, say: Say) -> Iterator[tuple[Client | None, Ledger | None]]:
        """The model to ask, with the ledger that it is paid from; nothing where no model is named."""
        how, settings = self.how, self.how.settings
        if settings is None:
            yield None, None
            return
        dialect = dialect_of(settings.model, how.dialect)
        url = how.endpoint or os.environ.get(dialect.url_variable) or dialect.default_url
        key = find_key(how.key_file, dialect.key_variable)
        prices = Prices.of(self.found.layout)
        with Ledger.open(self.found.layout.ledger) as ledger:
            if how.budget_usd is not None:
                ledger.set_limit(self.scope, Limits(usd_micros=how.budget_usd), who="smith author", why="--budget-usd")
            with Client(url, key, dialect, settings, ledger=ledger, prices=prices, scope=self.scope, say=say) as client:
                yield client, ledger

    def _adopt(self, outcome: Outcome) -> str | None:
        """Write what was accepted; the new tree, None where nothing was."""
        judgement = outcome.judgement
        if judgement is None or judgement.staged is None or judgement.receipt is None:
            return None
        made = judgement.staged.bundle
        note = Authored(
            task=self.bundle.id,
            binding=self.kept.binding,
            before=self.bundle.tree,
            tree=made.tree,
            device=self.before.device,
            number=outcome.number,
            model=self.model,
            open_faults=outcome.open_faults,
        )
        adopt(self.found, self.bundle, made, judgement.receipt, note, self.kept.folder / NOTE)
        return made.tree


def _authored(found: Store, bundle: Bundle) -> Authored | None:
    """The note of the authoring that this very bundle came of."""
    of_this = (note for note in notes(found.layout, bundle.id) if note.tree == bundle.tree != note.before)
    return next(of_this, None)


def _say_already(note: Authored, as_json: bool) -> None:
    document = {"task": note.task, "accepted": True, "before": note.before, "tree": note.tree, "already": True}
    words = f"{note.task} was authored already: {note.before[:12]} became {note.tree[:12]}; --again goes on from there"
    _show(document, lambda _: [words], as_json)


def _show(document: dict[str, Any], lines: Callable[[dict[str, Any]], list[str]], as_json: bool) -> None:
    if as_json:
        print_json(document)
        return
    for line in lines(document):
        screen.print(Text(line), soft_wrap=True)
