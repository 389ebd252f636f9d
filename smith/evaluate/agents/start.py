"""What agents that work in a sandbox start from."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from smith.errors import BadInput, Unavailable
from smith.evaluate.agents.base import Desk
from smith.freeze.instruction import prompt_template
from smith.sandbox.base import Command, Limits

_COMMIT = (
    "git init -q -b main . && git config user.name smith && git config user.email smith@localhost"
    " && git add -A -f . && git commit -q --no-verify -m 'The state that was found'"
)


def begin_history(desk: Desk) -> None:
    """Make the workspace a git repository of one commit, as agents expect; what they do with it counts for nothing.

    Scratch space is emptied. Raises :class:`Unavailable` where the sandbox cannot be made.
    """
    stage = desk.stage
    stage.lay_out()
    done = stage.sandbox.run(
        Command(
            ["sh", "-c", _COMMIT],
            stage.source,
            Limits(wall_s=300),
            env=stage.env(),
            binds=stage.binds(source_writable=True, scratch_on_disk=True),
        )
    )
    if not done.ok:
        said = done.stderr.text.strip().splitlines()
        raise Unavailable(f"the workspace could not be made a git repository: {said[-1] if said else done.ending}")


def build_words(desk: Desk) -> list[str]:
    """The commands that build the repository, each as code for a prompt."""
    return [f"`{shlex.join(command)}`" for command in desk.stage.recipe.build]


def rendered(name: str, override: Path, **variables: Any) -> str:
    """The prompt file ``name``. Raises :class:`BadInput` for one that cannot be rendered."""
    template = prompt_template(name, override)
    try:
        return template.render(**variables).strip() + "\n"
    except Exception as error:  # a template is a program of the user's: whatever it raises is theirs to mend
        raise BadInput(f"{override / name}: {error}", hint="mend the prompt or remove it") from error
