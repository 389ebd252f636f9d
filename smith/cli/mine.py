"""``smith mine``."""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from smith.cli.common import json_option, print_json, progress, screen
from smith.errors import BadInput
from smith.git.mirrors import open_upstream
from smith.mine import Sampling, explain, mine
from smith.mine.funnel import Enrich
from smith.mine.sampling import DEFAULT_BY
from smith.paths import Layout, find_root, write_atomically
from smith.records.candidate import Flag, Kind, Mined
from smith.records.config import Config, MineConfig
from smith.report import mined

_NAME = re.compile(r"[A-Za-z0-9._-]+/[A-Za-z0-9._-]+")


@click.command("mine")
@click.argument("repo")
@click.option("--since", help="Only pull requests merged on or after this date (YYYY-MM-DD).")
@click.option("--until", help="Only pull requests merged on or before this date (YYYY-MM-DD).")
@click.option("--pr", "numbers", type=int, multiple=True, help="Only this pull request; repeatable.")
@click.option("--language", help="Only these kernel languages, with commas: triton,hip,cuda,native,...")
@click.option("--kind", help=f"Only these kinds, with commas: {','.join(k.value for k in Kind)}.")
@click.option("--operator", help="Only these operator classes, with commas: norm,attention,gemm,moe,quant,...")
@click.option("--limit", type=click.IntRange(min=1), help="At most so many candidates, newest first.")
@click.option("--branch", help="Another branch than the default one.")
@click.option("--name", help="owner/name, where a local path does not tell.")
@click.option("--reject", help=f"Also leave out what has these flags, with commas: {','.join(f.value for f in Flag)}.")
@click.option("--allow", help="Do not leave out what has these flags, with commas.")
@click.option("--sample", type=click.IntRange(min=0), help="Draw so many of the candidates, stratified.")
@click.option("--by", help=f"What a sample is stratified by, with commas (default: {','.join(DEFAULT_BY)}).")
@click.option("--seed", default="0", show_default=True, help="Of the sample and of the split.")
@click.option("--holdout", type=click.FloatRange(min=0, max=1, max_open=True), help="Share to hold out, by lineage.")
@click.option("--tests", is_flag=True, help="Also find the tests that lead to the changed kernels.")
@click.option("--verify", is_flag=True, help="Merge base and head of each candidate again and compare the trees.")
@click.option("--rejects", is_flag=True, help="Also list what was left out, and why.")
@click.option("--all", "everything", is_flag=True, help="Every pull request that changes a kernel body.")
@click.option("--explain", "explained", type=int, help="Say how one pull request was judged.")
@click.option("--github", is_flag=True, help="Ask GitHub for bodies, labels, issues and review comments.")
@click.option("--github-url", default=None, help="Another address of its interface (GitHub Enterprise).")
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
    operator: str | None,
    limit: int | None,
    branch: str | None,
    name: str | None,
    reject: str | None,
    allow: str | None,
    sample: int | None,
    by: str | None,
    seed: str,
    holdout: float | None,
    tests: bool,
    verify: bool,
    rejects: bool,
    everything: bool,
    explained: int | None,
    github: bool,
    github_url: str | None,
    out: Path | None,
    no_fetch: bool,
    as_json: bool,
) -> None:
    """Find the merged kernel pull requests of REPO, from git alone.

    REPO is a URL, owner/name on GitHub, a local path, or smith:sample.
    """
    if github_url is not None and not github:
        raise BadInput("--github-url is for --github", hint="give --github too")
    if name is not None and not _NAME.fullmatch(name):
        raise BadInput(f"--name {name!r}: is not owner/name")
    if explained is not None and (out is not None or numbers):
        raise BadInput("--explain is about one pull request", hint="leave out --out and --pr")
    place = mirrors(ctx)
    cache, config = place.parent / "mining.db", settings(ctx)
    drawn = _sampling(sample, by, seed, holdout)
    if out is not None:
        _check_out(ctx, out)
    upstream = open_upstream(repo, place, name=name, refresh=not no_fetch)
    if upstream.stale:
        click.echo(f"smith: {upstream.repo}: using the mirror as it is: {upstream.stale}", err=True)
    if explained is not None:
        lines = explain(
            upstream.repository, repo=upstream.repo, number=explained, branch=branch, config=config, cache=cache
        )
        if as_json:
            print_json({"repo": upstream.repo, "pr": explained, "explanation": lines})
        else:
            click.echo("\n".join(lines))
        return
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
            kinds=words(kind),
            operators=words(operator),
            reject=words(reject),
            allow=words(allow),
            limit=limit,
            all=everything,
            sample=drawn,
            tests=tests,
            verify=verify,
            enrich=_github(upstream.repo, place.parent / "github.db", github_url) if github else None,
            config=config,
            cache=cache,
            progress=lambda what, done, total: step(f"{what} {done}/{total}" if total else what, 0),
        )
    for note in found.notes:
        click.echo(f"smith: {note}", err=True)
    if out is not None:
        records = b"".join(c.dump_line() + b"\n" for c in found.candidates)
        if out.exists() and not out.is_file():
            with out.open("wb") as stream:  # a pipe or a device is written to, never replaced
                stream.write(records)
        else:
            write_atomically(out, records)
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


def settings(ctx: click.Context) -> MineConfig:
    """The table ``[mine]`` of the data repository's ``smith.toml``, or an empty one where there is none."""
    root = find_root(ctx.find_root().obj)
    return Config.load(Layout(root).config).mine if root is not None else MineConfig()


def _github(repo: str, cache: Path, url: str | None) -> Enrich:
    """Ask GitHub with a token from the environment or from ``gh``, or anonymously."""
    from smith.mine.github import API, GitHub, find_token  # only who asks for it pays for its libraries

    base = url or API
    token = find_token(base_url=base)
    client = GitHub(repo, token=token, cache=cache, base_url=base, say=lambda line: click.echo(line, err=True))
    return lambda texts: {one.number: one for one in client.enrich(list(texts), texts)}


def _check_out(ctx: click.Context, out: Path) -> None:
    """Say before an hour of work that its result could not be written, or would replace what it must not."""
    root = find_root(ctx.find_root().obj)
    try:
        there = out.exists()
        if str(out) in ("", ".") or out.is_dir():
            raise BadInput(f"--out {str(out)!r}: is no file")
        if root is not None and out.resolve() == Layout(root).config.resolve():
            raise BadInput(f"--out {out}: is the settings of the data repository")
        if not there and not out.absolute().parent.is_dir():
            raise BadInput(f"--out {out}: its folder does not exist")
    except OSError as error:
        raise BadInput(f"--out {str(out)[:80]}: {error.strerror}") from error


def _sampling(count: int | None, by: str | None, seed: str, holdout: float | None) -> Sampling | None:
    if count is None and holdout is None:
        if by is not None:
            raise BadInput("--by is for a sample", hint="give --sample N too")
        if seed != "0":
            raise BadInput("--seed is for a sample or a split", hint="give --sample N or --holdout SHARE too")
        return None
    return Sampling(count=count, by=tuple(words(by)) or DEFAULT_BY, seed=seed, holdout=holdout or 0.0)


def words(value: str | None) -> list[str]:
    """A list given with commas."""
    return [w.strip() for w in value.split(",") if w.strip()] if value else []


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
    if found.candidates:
        screen.print(mined.candidates(found))
    screen.print(Text(f"{found.repo}: {found.seen} merged pull requests", style="bold"))
    screen.print(mined.funnel(found))
    for line in mined.made_of(found):
        screen.print(Text(line), soft_wrap=True)
    if rejects:
        for one in found.rejections:
            screen.print(Text(f"  #{one.pr} {one.reason}: {one.detail or one.title}"), soft_wrap=True)
    if out is not None:
        screen.print(Text(f"written to {out}; freeze them with: smith freeze --candidates {out}"), soft_wrap=True)
