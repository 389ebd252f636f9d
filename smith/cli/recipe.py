"""``smith recipe``."""

from __future__ import annotations

from dataclasses import replace

import click

from smith.cli.common import json_option, print_json, progress, store
from smith.environment.recipes import recipe_name
from smith.errors import BadInput
from smith.freeze.recipe import detect_recipe, recipe_text
from smith.git.mirrors import open_upstream
from smith.git.sources import scratch
from smith.mine import mine
from smith.paths import write_atomically
from smith.records.config import Config


@click.command("recipe")
@click.argument("repo")
@click.option("--pr", "number", type=int, required=True, help="The merged pull request to look at.")
@click.option("--name", help="owner/name, where a local path does not tell.")
@click.option("--write", is_flag=True, help="Keep it below recipes/, where it counts for every task of this upstream.")
@json_option
@click.pass_context
def command(ctx: click.Context, repo: str, number: int, name: str | None, write: bool, as_json: bool) -> None:
    """Detect how an upstream is built and tested, as it was when a pull request was merged.

    Read from its project files, requirement and lock files, CI workflows, container files and imports; nothing of it is
    run. The recipe is printed as TOML with where each part comes from.
    """
    found = store(ctx)
    upstream = open_upstream(repo, found.layout.mirrors, name=name)
    with progress("reading", 1) as step:
        step(f"#{number}", 0)
        config = Config.load(found.layout.config).mine
        mined = mine(
            upstream.repository,
            repo=upstream.repo,
            url=upstream.url,
            numbers=(number,),
            config=config,
            cache=found.layout.mining,
        )
        if not mined.candidates:
            why = mined.rejections[0] if mined.rejections else None
            reason = f"{why.reason} ({why.detail or why.title})" if why else "it changes no kernel"
            raise BadInput(f"#{number} is no candidate: {reason}", hint=f"smith mine {repo} --explain {number}")
        data = scratch(found.data, found.layout.objects, also=(upstream.repository,))
        detected = detect_recipe(data, mined.candidates[0])
        step(None, 1)
    if write:
        # For every pull request of this upstream, each with the versions of its own day.
        choices = [
            choice.model_copy(update={"as_of": "merge"}) if choice.as_of else choice
            for choice in detected.recipe.environments
        ]
        recipe = detected.recipe.model_copy(update={"environments": tuple(choices)})
        detected = replace(detected, recipe=recipe)
    text = recipe_text(detected.recipe, detected, f"# The packages are those that the tests of #{number} import.\n")
    place = found.layout.recipes / recipe_name(upstream.repo)
    if write:
        if place.exists():
            raise BadInput(f"{place} is there already", hint="change it, or remove it first")
        write_atomically(place, text.encode())
    if as_json:
        print_json(
            {
                "recipe": detected.recipe.model_dump(mode="json", exclude_none=True),
                "evidence": [{"what": one.what, "where": one.where} for one in detected.evidence],
                "unknown": dict(detected.unknown),
                "path": str(place.relative_to(found.layout.root)) if write else None,
            }
        )
    else:
        click.echo(text, nl=False)
        if write:
            click.echo(f"written to {place.relative_to(found.layout.root)}", err=True)
