"""``smith freeze``."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click
from rich.text import Text

from smith.cli.common import json_option, print_json, progress, screen, store
from smith.errors import EXIT_NO, BadInput, RecordError, SmithError
from smith.freeze.freeze import Frozen, Refused, freeze
from smith.freeze.lineages import remember_lineages
from smith.freeze.variants import Asked
from smith.git.mirrors import Upstream, open_upstream, reopen_upstream
from smith.mine import mine
from smith.records.base import Reason
from smith.records.candidate import Candidate
from smith.records.config import Config
from smith.records.task import PORT_LANGUAGES, Variant


@click.command("freeze")
@click.argument("repo", required=False)
@click.option("--pr", "numbers", type=int, multiple=True, help="The pull request; repeatable.")
@click.option(
    "--candidates",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Candidates as JSON lines, as smith mine --out writes them.",
)
@click.option("--limit", type=click.IntRange(min=1), help="At most so many of the candidates.")
@click.option("--name", help="owner/name, where a local path does not tell.")
@click.option(
    "--variant",
    "variants",
    type=click.Choice([v.value for v in Variant]),
    multiple=True,
    default=[Variant.FIX.value],
    show_default=True,
    help="What is made of each: the fix as it came, its base made faster, the kernels' bodies written anew, or the "
    "kernels in another language; repeatable.",
)
@click.option("--to", type=click.Choice(PORT_LANGUAGES), help="With --variant port: the language that is wanted.")
@click.option(
    "--solution",
    type=click.Path(path_type=Path, dir_okay=False),
    help="With --variant port: a patch that solves it, against the port's own start.",
)
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    repo: str | None,
    numbers: tuple[int, ...],
    candidates: Path | None,
    limit: int | None,
    name: str | None,
    variants: tuple[str, ...],
    to: Literal["triton", "hip"] | None,
    solution: Path | None,
    as_json: bool,
) -> None:
    """Freeze pull requests into task bundles below tasks/.

    Either REPO with --pr, or --candidates with a file that smith mine wrote. Each --variant is a bundle of its own,
    tasks/OWNER__NAME-N~VARIANT; what a pull request gives no such task for is refused with the reason.
    """
    asked = ask(variants, to, solution, one=len(numbers) == 1)
    if bool(repo) == bool(candidates) or (repo and not numbers):
        raise BadInput("give REPO with --pr N, or --candidates FILE", hint="e.g. smith freeze smith:sample --pr 3")
    found = store(ctx)
    wanted: list[Candidate] = []
    refused: list[tuple[Asked, Refused]] = []
    upstreams: dict[str, Upstream] = {}
    if repo is not None:
        upstream = open_upstream(repo, found.layout.mirrors, name=name)
        upstreams[upstream.url] = upstream
        mined = mine(
            upstream.repository,
            repo=upstream.repo,
            url=upstream.url,
            numbers=numbers,
            config=Config.load(found.layout.config).mine,
            cache=found.layout.mining,
        )
        wanted += mined.candidates
        rejected = [Refused(r.pr, Reason(code=r.reason, detail=r.detail or r.title)) for r in mined.rejections]
        refused += [(one, each) for each in rejected for one in asked]
    else:
        assert candidates is not None
        wanted = read_candidates(candidates)
        if not wanted and not as_json:
            screen.print(Text(f"{candidates}: holds no candidates"))
    frozen: list[Frozen] = []
    defects: list[Exception] = []
    with progress("freezing", len(wanted[:limit])) as step:
        for candidate in wanted[:limit]:
            step(f"#{candidate.pr}", 0)
            if candidate.url not in upstreams:
                upstreams[candidate.url] = reopen_upstream(candidate.url, found.layout.mirrors, name=candidate.repo)
            for one in asked:
                try:
                    result = freeze(candidate, upstreams[candidate.url], found, one)
                except SmithError:
                    raise
                except Exception as error:
                    # The others are frozen all the same; then the defect is told as any is.
                    defects.append(error)
                    result = Refused(
                        candidate.pr, Reason(code="defect", detail=f"{type(error).__name__}: {error}"[:300])
                    )
                if isinstance(result, Frozen):
                    frozen.append(result)
                    if candidate.lineage is not None:
                        remember_lineages(found.layout, {result.id: candidate.lineage})
                else:
                    refused.append((one, result))
            step(None, 1)
    if as_json:
        print_json(
            {
                "tasks": [
                    {
                        "id": f.id,
                        "tree": f.tree,
                        "path": str(f.path.relative_to(found.layout.root)),
                        "leaks": [leak.model_dump(mode="json") for leak in f.leaks],
                    }
                    for f in frozen
                ],
                "refused": [
                    {
                        "pr": r.pr,
                        "variant": one.name,
                        "reason": r.reason.code,
                        "detail": r.reason.detail,
                        "leaks": [leak.model_dump(mode="json") for leak in r.leaks],
                    }
                    for one, r in refused
                ],
            }
        )
    else:
        for f in frozen:
            screen.print(Text(f"frozen   {f.id}  {f.tree[:12]}  {f.path.relative_to(found.layout.root)}"))
            for leak in f.leaks:
                screen.print(Text(f"           {leak}"))
        for one, r in refused:
            screen.print(Text(f"refused  #{r.pr}{one.suffix}  {r.reason}"))
            for leak in r.leaks[1:]:
                screen.print(Text(f"           {leak}"))
        if frozen:
            screen.print(
                Text(f"next: smith validate {' '.join(f.id for f in frozen[:4])}{' ...' if len(frozen) > 4 else ''}")
            )
    if defects:
        raise defects[0]
    ctx.exit(0 if frozen or not refused else EXIT_NO)


def ask(
    variants: tuple[str, ...], to: Literal["triton", "hip"] | None, solution: Path | None, *, one: bool
) -> list[Asked]:
    """The variants that are asked for, each once. Raises :class:`BadInput` where options do not belong together."""
    wanted = [Variant(name) for name in dict.fromkeys(variants)]
    if Variant.PORT not in wanted and (to is not None or solution is not None):
        raise BadInput("--to and --solution are about a port", hint="add --variant port")
    if solution is not None and not one:
        raise BadInput("--solution solves one pull request", hint="give REPO with one --pr")
    try:
        patch = solution.read_bytes() if solution is not None else None
    except OSError as error:
        raise BadInput(f"{solution}: {error.strerror}") from error
    return [Asked(v, to, patch) if v is Variant.PORT else Asked(v) for v in wanted]


def read_candidates(path: Path) -> list[Candidate]:
    """The candidates of a JSON lines file. Raises :class:`RecordError` naming the line that is broken."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise RecordError(f"{path}: {error.strerror}", hint="make it with: smith mine REPO --out FILE") from error
    return [Candidate.loads(line, f"{path}:{number}") for number, line in enumerate(lines, start=1) if line.strip()]
