"""``smith mine``."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import click
from rich import box
from rich.table import Table
from rich.text import Text

from smith.cli.common import json_option, print_json, progress, screen
from smith.errors import BadInput
from smith.git.mirrors import open_upstream
from smith.mine import explain, mine
from smith.paths import Layout, find_root, write_atomically
from smith.records.candidate import Candidate, Kind, Mined


@click.command("mine")
@click.argument("repo")
@click.option("--since", help="Only pull requests merged on or after this date (YYYY-MM-DD).")
@click.option("--until", help="Only pull requests merged before this date (YYYY-MM-DD).")
@click.option("--pr", "numbers", type=int, multiple=True, help="Only this pull request; repeatable.")
@click.option("--language", help="Only these kernel languages, with commas: triton,hip,cuda,native,...")
@click.option("--kind", help=f"Only these kinds, with commas: {','.join(k.value for k in Kind)}.")
@click.option("--limit", type=click.IntRange(min=1), help="At most so many candidates, newest first.")
@click.option("--branch", help="Another branch than the default one.")
@click.option("--name", help="owner/name, where a local path does not tell.")
@click.option("--rejects", is_flag=True, help="Also list what was left out, and why.")
@click.option("--all", "everything", is_flag=True, help="Every pull request that changes a kernel body.")
@click.option("--explain", "explained", type=int, help="Say how one pull request was judged.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Write candidates as JSON lines.")
@click.option("--no-fetch", is_flag=True, help="Use the mirror as it is.")
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    repo: str,
    since: str | None,
    until: str | None,
    numbers: tuple[int, ...],
    language: str | None,
    kind: str | None,
    limit: int | None,
    branch: str | None,
    name: str | None,
    rejects: bool,
    everything: bool,
    explained: int | None,
    out: Path | None,
    no_fetch: bool,
    as_json: bool,
) -> None:
    """Find the merged kernel pull requests of REPO, from git alone.

    REPO is a URL, owner/name on GitHub, a local path, or smith:sample.
    """
    upstream = open_upstream(repo, mirrors(ctx), name=name, refresh=not no_fetch)
    if upstream.stale:
        click.echo(f"smith: {upstream.repo}: using the mirror as it is: {upstream.stale}", err=True)
    if explained is not None:
        for line in explain(upstream.repository, repo=upstream.repo, url=upstream.url, number=explained, branch=branch):
            click.echo(line)
        return
    if upstream.repository.text("rev-parse", "--is-shallow-repository") == "true":
        raise BadInput(f"{repo} is a shallow clone: its history is cut off", hint="git fetch --unshallow")
    with progress(f"mining {upstream.repo}", None) as step:
        found = mine(
            upstream.repository,
            repo=upstream.repo,
            url=upstream.url,
            branch=branch,
            since=since,
            until=until,
            numbers=numbers,
            languages=words(language),
            kinds=_kinds(kind),
            limit=limit,
            all=everything,
            progress=lambda done, total: step(f"{done}/{total}", 0),
        )
    if out is not None:
        lines = b"".join(c.model_dump_json().encode() + b"\n" for c in found.candidates)
        if out.exists() and not out.is_file():
            with out.open("wb") as stream:  # a pipe or a device is written to, never replaced
                stream.write(lines)
        else:
            write_atomically(out, lines)
    if as_json:
        print_json(_document(found, rejects))
    else:
        _show(found, rejects, out)


def mirrors(ctx: click.Context) -> Path:
    """Where mirrors lie: in the data repository, or in the user's cache where there is none."""
    start = ctx.find_root().obj
    root = find_root(start)
    if root is not None:
        return Layout(root).mirrors
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "smith" / "mirrors"


def words(value: str | None) -> list[str]:
    """A list given with commas."""
    return [w.strip() for w in value.split(",") if w.strip()] if value else []


def _kinds(value: str | None) -> list[str]:
    known = [k.value for k in Kind]
    for word in words(value):
        if word not in known:
            raise BadInput(f"--kind {word}: no such kind", hint=f"one of: {', '.join(known)}")
    return words(value)


def _document(found: Mined, rejects: bool) -> dict[str, Any]:
    document: dict[str, Any] = {
        "repo": found.repo,
        "seen": found.seen,
        "candidates": [c.model_dump(mode="json") for c in found.candidates],
        "rejected": dict(sorted(Counter(r.reason for r in found.rejections).items())),
    }
    if rejects:
        document["rejects"] = [r.model_dump(mode="json") for r in found.rejections]
    return document


def _show(found: Mined, rejects: bool, out: Path | None) -> None:
    table = Table(box=box.SIMPLE_HEAD)
    for column in ("PR", "merged", "kind", "languages", "kernels", "tests"):
        right = column in ("PR", "kernels", "tests")
        table.add_column(column, justify="right" if right else "left", no_wrap=True)
    table.add_column("title", overflow="fold")
    for c in found.candidates:
        table.add_row(
            str(c.pr),
            c.merged_at[:10],
            c.kind.value,
            ",".join(c.languages),
            str(_symbols(c)),
            str(len(c.test_files)),
            Text(c.title),
        )
    if found.candidates:
        screen.print(table)
    left_out = ", ".join(f"{n} {r}" for r, n in Counter(r.reason for r in found.rejections).most_common())
    screen.print(
        Text(
            f"{found.repo}: {found.seen} merged pull requests, {len(found.candidates)} candidates; left out: "
            f"{left_out or 'none'}"
        )
    )
    if rejects:
        for r in found.rejections:
            screen.print(Text(f"  #{r.pr} {r.reason}: {r.detail or r.title}"))
    if out is not None:
        screen.print(Text(f"written to {out}; freeze them with: smith freeze --candidates {out}"))


def _symbols(candidate: Candidate) -> int:
    return sum(len(k.symbols) for k in candidate.kernels)
