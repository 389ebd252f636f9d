"""``smith budget``."""

from __future__ import annotations

import getpass
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path

import click
from rich import box
from rich.table import Table
from rich.text import Text

from smith.cli.amounts import limit, number, pairs
from smith.cli.common import json_option, layout, print_json, screen
from smith.errors import EXIT_NO, BadInput
from smith.ledger import Amounts, Balance, Hold, Ledger, Limits, State
from smith.ledger.amounts import LABELS, RESOURCES, shown
from smith.ledger.chain import FIRST

_LIVE = (State.OPEN, State.UNCERTAIN, State.OVERRUN)


def _one_line(ctx: click.Context, param: click.Parameter, value: str) -> str:
    if not value.isprintable():
        raise BadInput("--why must be one line of visible characters")
    return value


why_option = click.option("--why", required=True, callback=_one_line, help="For the record.")
who_option = click.option("--who", help="For the record (default: the name of your login).")


@click.group("budget")
def command() -> None:
    """Show, limit and check what was spent."""


@command.command("show")
@click.argument("scope", required=False)
@click.option("--depth", type=click.IntRange(min=1), help="How deep to go (default: 2, or all of SCOPE).")
@json_option
@click.pass_context
def show(ctx: click.Context, scope: str | None, depth: int | None, as_json: bool) -> None:
    """Show limits, what was spent, what is held, and holds that nobody has ended; all of it, or SCOPE."""
    path = layout(ctx).ledger
    balances: list[Balance] = []
    holds: list[Hold] = []
    head = (0, FIRST)
    if path.is_file():
        with Ledger.open(path) as ledger:
            balances, holds, head = ledger.balances(scope), ledger.holds(scope, _LIVE), ledger.head()
    if scope is not None and not balances:
        raise BadInput(f"the ledger has no scope {scope[:200]!r}", hint="see: smith budget show --depth 9")
    depth = depth or (2 if scope is None and not as_json else 99)
    above = 0 if scope is None else scope.count("/")
    balances = [b for b in balances if b.scope.count("/") - above < depth]
    if as_json:
        rows = [hold.model_dump(mode="json", exclude={"fresh"}) for hold in holds]
        print_json(
            {
                "scopes": [b.document() for b in balances],
                "holds": rows,
                "head": head_text(head),
            }
        )
        return
    if not balances:
        click.echo("nothing was spent and nothing is limited yet")
        return
    screen.print(_scopes(balances))
    if holds:
        screen.print(_holds(holds))
    screen.print(f"head {head_text(head)}", style="dim", markup=False)


@command.command("set")
@click.argument("scope")
@click.argument("amounts", nargs=-1, required=True)
@why_option
@who_option
@click.pass_context
def set_(ctx: click.Context, scope: str, amounts: tuple[str, ...], why: str, who: str | None) -> None:
    """Give SCOPE its first limit: AMOUNTS such as usd=100 wall-s=7200; what is not named is unlimited.

    All runs together have the scope eval; one run has eval/RUN.
    """
    chosen = Limits(**{name: limit(name, value) for name, value in pairs(amounts).items()})
    with Ledger.open(layout(ctx).ledger) as ledger:
        ledger.set_limit(scope, chosen, who=_who(who), why=why)
        screen.print(_scopes([ledger.balance(scope)]))


@command.command("raise")
@click.argument("scope")
@click.argument("amounts", nargs=-1, required=True)
@why_option
@who_option
@click.pass_context
def raise_(ctx: click.Context, scope: str, amounts: tuple[str, ...], why: str, who: str | None) -> None:
    """Raise the limit of SCOPE: AMOUNTS such as usd=20:50, from what it is to what it shall be (or unlimited).

    Refused where it is not (any more) what you say it is.
    """
    old, new = {}, {}
    for name, value in pairs(amounts).items():
        before, colon, after = value.partition(":")
        if not colon:
            raise BadInput(f"{value[:40]!r} does not say from what to what", hint="such as usd=20:50")
        old[name], new[name] = limit(name, before), limit(name, after)
    with _existing(layout(ctx).ledger) as ledger:
        now = ledger.balance(scope).limit
        ledger.raise_limit(
            scope, now.model_copy(update=old), now.model_copy(update=new), who=_who(who), why=why
        )  # what is not named is expected to be, and stays, as it is
        screen.print(_scopes([ledger.balance(scope)]))


@command.command("reconcile")
@click.argument("key")
@click.argument("amounts", nargs=-1)
@why_option
@who_option
@click.pass_context
def reconcile(ctx: click.Context, key: str, amounts: tuple[str, ...], why: str, who: str | None) -> None:
    """Decide what the uncertain or overrun hold KEY really cost: AMOUNTS such as usd=0.0123 output-tokens=800.

    What is not named was not used; without AMOUNTS nothing was spent at all.
    """
    used = Amounts(**{name: number(name, value) for name, value in pairs(amounts).items()})
    with _existing(layout(ctx).ledger) as ledger:
        ledger.reconcile(key, used, who=_who(who), why=why, evidence={})
        screen.print(_scopes([ledger.balance(next(h.scope for h in ledger.holds() if h.key == key))]))


@command.command("check")
@click.option("--head", help="ENTRY:DIGEST as shown by an earlier call: nothing before it may have changed.")
@json_option
@click.pass_context
def check(ctx: click.Context, head: str | None, as_json: bool) -> None:
    """Prove the ledger from its entries: the chain of digests, every rule, all sums and holds."""
    path = layout(ctx).ledger
    known = None if head is None else _head(head)
    last, faults = (0, FIRST), [] if known is None else ["there is no ledger"]
    if path.is_file():
        with Ledger.open(path) as ledger:
            last, faults = ledger.head(), ledger.check(known)
    if as_json:
        print_json({"entries": last[0], "head": head_text(last), "faults": faults})
    else:
        for fault in faults:
            click.echo(fault)
        click.echo(f"{last[0]} entries, {len(faults)} faults" if faults else f"{last[0]} entries, all sums agree")
    ctx.exit(EXIT_NO if faults else 0)


def _existing(path: Path) -> AbstractContextManager[Ledger]:
    if not path.is_file():
        raise BadInput("there is no ledger yet", hint="smith eval makes one, or: smith budget set")
    return Ledger.open(path)


def _who(who: str | None) -> str:
    if who is not None:
        return who
    try:
        return getpass.getuser()
    except (OSError, KeyError) as error:
        raise BadInput("your login has no name", hint="give one with --who") from error


def head_text(head: tuple[int, str]) -> str:
    """As ``--head`` takes it."""
    return f"{head[0]}:{head[1]}"


def _head(text: str) -> tuple[int, str]:
    number, _, digest = text.partition(":")
    if not (number.isascii() and number.isdigit() and len(number) < 19 and len(digest) == 64):
        raise BadInput(f"{text[:80]!r} is no head", hint="ENTRY:DIGEST, with all 64 digits of the digest")
    return int(number), digest


def _scopes(balances: list[Balance]) -> Table:
    """The scopes as a tree, with a column for each resource that is limited, held or spent anywhere."""
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("scope", overflow="fold")
    columns = [
        n
        for n in range(len(RESOURCES))
        if n == 0 or any(b.limit.values[n] is not None or b.spent.values[n] or b.held.values[n] for b in balances)
    ]
    for n in columns:
        table.add_column(LABELS[RESOURCES[n]].removesuffix("-s"), justify="right")
    for balance in balances:
        cells = [Text(_cell(balance, n), style="red" if _over(balance, n) else "") for n in columns]
        name = Text(balance.scope)
        if balance.overruns:
            name.append(f"  {balance.overruns} overrun", style="bold red")
        table.add_row(name, *cells)
    return table


def _cell(balance: Balance, n: int) -> str:
    resource, most, held = RESOURCES[n], balance.limit.values[n], balance.held.values[n]
    text = shown(resource, balance.spent.values[n])
    if held:
        text += f" + {shown(resource, held)} held"
    return text if most is None else f"{text} of {shown(resource, most)}"


def _over(balance: Balance, n: int) -> bool:
    most = balance.limit.values[n]
    return most is not None and balance.spent.values[n] + balance.held.values[n] > most


def _holds(holds: list[Hold]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, title="holds that nobody has ended", title_justify="left")
    for name in ("key", "state", "since", "ceiling", "used"):
        table.add_column(name, overflow="fold")
    for hold in holds:
        since = datetime.fromtimestamp(hold.at_ms / 1000, UTC).isoformat(timespec="seconds")
        used = "" if hold.used is None else _amounts(hold.used)
        style = "" if hold.state is State.OPEN else "yellow"
        table.add_row(Text(hold.key), Text(hold.state, style=style), since, _amounts(hold.ceiling), used)
    return table


def _amounts(amounts: Amounts) -> str:
    parts = [
        f"{LABELS[name].removesuffix('-s')} {shown(name, value)}"
        for name, value in zip(RESOURCES, amounts.values, strict=True)
        if value
    ]
    return ", ".join(parts).replace("usd $", "$") or "-"
