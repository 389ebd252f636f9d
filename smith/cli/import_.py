"""``smith import``."""

from __future__ import annotations

from pathlib import Path

import click
from rich.text import Text

from smith.cli.common import json_option, print_json, screen
from smith.cli.export import refusals, show
from smith.cli.mine import mirrors, settings
from smith.errors import EXIT_NO
from smith.export.swebench import Refused


@click.group("import")
def command() -> None:
    """Take tasks or submissions from the formats of other tools."""


@command.command("swebench")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Write candidates as JSON lines.")
@click.option("--upstream", help="Where the commits are (default: each row's repo on GitHub).")
@click.option("--no-fetch", is_flag=True, help="Use the mirror as it is.")
@json_option
@click.pass_context
def swebench(
    ctx: click.Context, file: Path, out: Path | None, upstream: str | None, no_fetch: bool, as_json: bool
) -> None:
    """Make candidates of the rows in FILE: SWE-bench, SWE-rebench or GSO; JSON lines, JSON or Parquet.

    --upstream is a URL, owner/name, a local path or smith:sample; it stands for the repo of every row.
    """
    from smith import temporary
    from smith.export.candidates import Imported, import_rows
    from smith.export.rows import read_rows
    from smith.git.mirrors import Upstream, open_upstream
    from smith.paths import write_atomically

    place = mirrors(ctx)

    def open_repo(repo: str) -> Upstream:
        return open_upstream(upstream or f"https://github.com/{repo}", place, name=repo, refresh=not no_fetch)

    with temporary.folder("import") as aside:
        results = import_rows(
            read_rows(file), open_repo, aside / "objects", config=settings(ctx), cache=place.parent / "mining.db"
        )
    made = [one.candidate for one in results if isinstance(one, Imported)]
    refused = [one for one in results if isinstance(one, Refused)]
    if out is not None and made:
        write_atomically(out, b"".join(one.dump_line() + b"\n" for one in made))
    if as_json:
        print_json({"candidates": [one.model_dump(mode="json") for one in made], "refused": refusals(refused)})
    else:
        for one in made:
            screen.print(Text(f"candidate  {one.repo}#{one.pr}  {one.kind.value}  {one.title}"), soft_wrap=True)
        show(refused)
        if out is not None and made:
            screen.print(Text(f"written to {out}; freeze them with: smith freeze --candidates {out}"), soft_wrap=True)
    ctx.exit(0 if made or not refused else EXIT_NO)


@command.command("predictions")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.argument("out_dir", type=click.Path(path_type=Path, file_okay=False))
@json_option
@click.pass_context
def predictions(ctx: click.Context, file: Path, out_dir: Path, as_json: bool) -> None:
    """Write SWE-bench predictions as OUT_DIR/<model>/<task>.patch, for smith eval --agent patch --patches."""
    from smith.export.predictions import read_predictions, to_patches

    results = list(to_patches(read_predictions(file), out_dir))
    made = [one for one in results if isinstance(one, Path)]
    refused = [one for one in results if isinstance(one, Refused)]
    folders = sorted({str(path.parent) for path in made})
    if as_json:
        print_json({"folders": folders, "patches": len(made), "refused": refusals(refused)})
    else:
        show(refused)
        for folder in folders:
            count = sum(str(path.parent) == folder for path in made)
            screen.print(Text(f"{count} patches; smith eval PANEL --agent patch --patches {folder}"), soft_wrap=True)
    ctx.exit(0 if made or not refused else EXIT_NO)
