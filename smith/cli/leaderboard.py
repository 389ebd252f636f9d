"""``smith leaderboard``."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path

import click
from rich.text import Text

from smith.cli.common import console, json_option, print_json, screen, store
from smith.errors import EXIT_NO, BadInput
from smith.evaluate.run import load_run
from smith.leaderboard.board import Leaderboard, leaderboard, rule
from smith.leaderboard.check import check as check_all
from smith.leaderboard.entry import entry_folders
from smith.leaderboard.seal import add as add_run
from smith.leaderboard.shown import as_markdown, notes, table, title
from smith.paths import write_atomically

_OUT = click.Path(path_type=Path, dir_okay=False)


@click.group("leaderboard", invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Rank runs of one panel tree, each with its sealed evidence. See docs/reports.md.

    Without a command: the table of every panel that has entries.
    """
    if ctx.invoked_subcommand is not None:
        return
    found = store(ctx)
    panels = sorted({folder.parent.name for folder in entry_folders(found.layout)})
    for panel in panels:
        try:
            _print(leaderboard(found, panel))
        except BadInput as error:  # a folder of no panel keeps no other's table back; the check refuses it
            screen.print(Text(f"leaderboard/{panel}: {error.message}"), soft_wrap=True)
    if not panels:
        screen.print("no entries yet: smith leaderboard add RUN")


@command.command("show")
@click.argument("panel")
@click.option("--tree", default="", help="Another tree of the panel than its present one, or how that begins.")
@click.option("--with", "also", multiple=True, metavar="RUN", help="Rank this run of yours too, marked as not sealed.")
@click.option("--markdown", type=_OUT, help="Also write tables for a pull request.")
@click.option("--html", type=_OUT, help="Also write a page that needs no network and runs no script.")
@json_option
@click.pass_context
def show(
    ctx: click.Context,
    panel: str,
    tree: str,
    also: tuple[str, ...],
    markdown: Path | None,
    html: Path | None,
    as_json: bool,
) -> None:
    """Rank the runs of PANEL. Those that share a letter cannot be told apart.

    Only entries that the check lets pass are ranked, and only runs of one tree of the panel, graded on the same
    devices.
    """
    found = store(ctx)
    ranked = leaderboard(found, panel, tree=tree, also=[load_run(found.layout, run) for run in also])
    if markdown is not None:
        write_atomically(markdown, as_markdown(ranked).encode())
    if html is not None:
        from smith.leaderboard.page import render  # plots take a second to import

        write_atomically(html, render(ranked).encode("utf-8", "replace"))
    if as_json:
        print_json(ranked.model_dump(mode="json"))
    else:
        _print(ranked)
    for path in filter(None, (markdown, html)):
        console.print(f"wrote {path}", markup=False)


def _print(found: Leaderboard) -> None:
    screen.print(Text(title(found)), soft_wrap=True)
    for board in found.boards:
        screen.print(table(board))
        if board.pairs:
            screen.print(Text(rule(board)), soft_wrap=True)
    for note in notes(found):
        screen.print(Text(f"note: {note}"), soft_wrap=True)


@command.command("add", short_help="Seal the evidence of a run on a branch.")
@click.argument("run", default="latest")
@json_option
@click.pass_context
def add(ctx: click.Context, run: str, as_json: bool) -> None:
    """Seal the evidence of RUN (default: the latest) on a branch leaderboard/RUN with one commit.

    The work tree must be what is committed, and stays as it is. Sealed are patches, grades, what attempts cost and what
    agents say of themselves; prompts, trajectories and what tests printed are not, nor anything of this machine.
    """
    found = store(ctx)
    made = add_run(found, load_run(found.layout, run), machine=socket.gethostname())
    files, size = len(made.sealed.files), sum(map(len, made.sealed.files.values()))
    if as_json:
        print_json(
            {
                "branch": made.branch,
                "commit": made.commit,
                "entry": made.sealed.digest,
                "path": made.where,
                "panel_tree": made.sealed.manifest.panel_tree,
                "files": files,
                "bytes": size,
                "message": made.message,
            }
        )
        return
    screen.print(Text(made.message.rstrip()), soft_wrap=True)
    screen.print(Text(f"\n{made.where}: {files} files, {size:,} bytes"), soft_wrap=True)
    screen.print(
        Text(f"branch {made.branch}, commit {made.commit[:12]}; next: git push origin {made.branch}"), soft_wrap=True
    )


@command.command("check", short_help="Check every entry, as for a pull request.")
@click.option("--base", metavar="REF", help="Also check that nothing which was there at this commit is gone.")
@json_option
@click.pass_context
def check(ctx: click.Context, base: str | None, as_json: bool) -> None:
    """Check every entry, as a data repository's checks do on a pull request.

    Digests, figures and grades must follow from the files and from the panel's receipts. One line for each finding,
    with its code (docs/reports.md); exit status 1 where there are any. It runs no test: smith regrade --entry does.
    """
    found = check_all(store(ctx), base=base, machine=socket.gethostname())
    if as_json:
        errors = [{"entry": f.where, "code": f.code, "message": f.message} for f in found.findings]
        print_json({"entries": found.entries, "errors": errors})
    else:
        _say([str(finding) for finding in found.findings], found.entries)
    ctx.exit(EXIT_NO if found.findings else 0)


def _say(findings: Sequence[str], entries: int) -> None:
    for line in findings:
        screen.print(Text(line), soft_wrap=True)
    if not findings:
        screen.print(Text(f"all {entries} entries are as they should be" if entries else "there are no entries yet"))
