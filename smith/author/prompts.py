"""Prompts of the roles, rendered from files; a data repository's ``prompts/`` comes before smith's own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from smith.author.documents import Documents
from smith.errors import BadInput
from smith.freeze.instruction import prompt_template
from smith.records.authoring import RECORDS, Role


def rendered(name: str, override: Path, **variables: Any) -> str:
    """The prompt file ``name``. Raises :class:`BadInput` for one that cannot be rendered."""
    template = prompt_template(name, override)
    try:
        return template.render(**variables).strip() + "\n"
    except Exception as error:  # a template is a program of the user's: whatever it raises is theirs to mend
        raise BadInput(f"{override / name}: {error}", hint="mend the prompt or remove it") from error


def system_prompt(role: Role, fence: str, override: Path) -> str:
    """What a role is told first: the rules, and the schema of its answer."""
    schema = json.dumps(RECORDS[role].model_json_schema(), ensure_ascii=False, separators=(",", ":"))
    return rendered("author-system.md.j2", override, role=role, fence=fence, schema=schema)


def documents_prompt(documents: Documents, override: Path) -> str:
    """All documents that fit, each in its fence."""
    shown = rendered(
        "author-documents.md.j2",
        override,
        documents=documents.shown,
        left_out=documents.hidden,
        fence=documents.fence,
    )
    return f"{shown}\n"


def again_prompt(faults: Sequence[str], override: Path, *, cut: bool) -> str:
    """Asks once more, with what was wrong."""
    return rendered("author-again.md.j2", override, faults=list(faults), cut=cut)
