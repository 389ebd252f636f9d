"""The instruction: all that an agent is told, rendered from a prompt file, the same for the same candidate."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

import jinja2

from smith.errors import BadInput
from smith.records.candidate import Candidate, Kind

_TRAILER = re.compile(
    r"^(co-authored-by|signed-off-by|reviewed-by|acked-by|tested-by|cc|change-id|pull request resolved|approved by|"
    r"differential revision|git-svn-id|cherry-picked?)\b.*$",
    re.IGNORECASE | re.MULTILINE,
)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_IMAGE = re.compile(r"!\[[^\]]*\]\([^)]*\)|<img\b[^>]*>", re.IGNORECASE | re.DOTALL)
_NAMED_LINK = re.compile(r"\[([^\]]+)\]\(\s*https?://[^)]*\)")
_LINK = re.compile(r"\(\s*https?://[^)\s]*\s*\)|<?https?://[^\s>)]*>?")
_TABLE = re.compile(r"^\s*\|.*$", re.MULTILINE)
_SUBJECT_LINE = re.compile(r"^\* \S.*$", re.MULTILINE)  # a forge's default squash message lists the commits so
_HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*#*$")
_RESULTS = re.compile(
    r"benchmark|performance|speed|memory|result|profil|test(s|ing|ed)?\b|check ?list|screenshot|how (was|has) this|"
    r"files?\b.*\b(added|changed|modified)",
    re.IGNORECASE,
)
"""Headings of sections that tell of measurements, tests or files: the solution's, not the problem's."""
_FOLLOWS = re.compile(r"\bfollow(?:-|\s)?up\s+(?:of|to|on|for)\s+#\d+\s*[:,-]?\s*", re.I)
_CLOSES = re.compile(r"\s*\(#\d+\)|\b(?:fix(?:es|ed)?|close[sd]?|resolve[sd]?)\s+#\d+\.?", re.I)
_NUMBER = re.compile(r"(?<![\w&])#\d+\b")
_COMMIT_ID = re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b")
_TEMPLATE = re.compile(r"^\s*[-*]\s*\[[ xX]\].*$", re.MULTILINE)
_PREFIX = re.compile(
    r"^\s*(?:\[[^\]]{1,24}\]\s*:?\s*|(?:fix|feat|perf|bug|bugfix|refactor|chore)(?:\([^)]*\))?!?:\s*)+", re.I
)

_OPENING = {
    Kind.FIX: "The code in this repository does not behave as described above. Correct it.",
    Kind.PERF: "Make this part of the repository faster without changing what it computes.",
    Kind.FEATURE: "Add what is described above to this repository.",
}


def prompt_template(name: str, override: Path) -> jinja2.Template:
    """The prompt ``name``, from the data repository's ``prompts/`` where it has one, else smith's own.

    Undefined variables are errors. Raises :class:`BadInput` for a template that cannot be parsed.
    """
    own = override / name
    try:
        text = own.read_text("utf-8") if own.is_file() else _shipped(name)
        environment = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True, autoescape=False)
        return environment.from_string(text)
    except jinja2.TemplateSyntaxError as error:
        raise BadInput(f"{own}:{error.lineno}: {error.message}", hint="mend the prompt or remove it") from error
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{own}: {error}", hint="mend the prompt or remove it") from error


def _shipped(name: str) -> str:
    inside = resources.files("smith").joinpath("prompts", name)
    # In a checkout the prompts lie beside the package; the wheel carries them inside.
    return (inside if inside.is_file() else Path(__file__).parents[2] / "prompts" / name).read_text("utf-8")


def clean(text: str) -> str:
    """Text of a pull request without what points at the solution.

    Links, numbers, commit ids, trailers, templates, lists of commits, tables and sections of measured results go.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    for pattern in (_COMMENT, _TRAILER, _TEMPLATE, _SUBJECT_LINE, _IMAGE):
        text = pattern.sub("", text)
    text = _without_results(text)
    text = _TABLE.sub("", text)
    text = _NAMED_LINK.sub(r"\1", text)
    for pattern in (_LINK, _FOLLOWS, _CLOSES):
        text = pattern.sub("", text)
    text = _NUMBER.sub("an earlier change", text)
    text = _COMMIT_ID.sub("an earlier commit", text)
    text = re.sub(r"^[ \t]*(?:-{3,}|\*{3,}|_{3,})[ \t]*$", "", text, flags=re.MULTILINE)
    text = "\n".join(line.rstrip() for line in text.split("\n"))
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def _without_results(text: str) -> str:
    """Leave out sections, each with those below it, whose heading tells of results."""
    kept: list[str] = []
    dropped_at = 0  # level of the heading whose section is being left out
    fenced = False
    for line in text.split("\n"):
        fenced ^= line.lstrip().startswith("```")
        heading = None if fenced else _HEADING.match(line)
        if heading:
            level = len(heading[1])
            if dropped_at and level <= dropped_at:
                dropped_at = 0
            if not dropped_at and _RESULTS.search(heading[2]):
                dropped_at = level
        if not dropped_at:
            kept.append(line)
    return "\n".join(kept)


def render(candidate: Candidate, editable: tuple[str, ...], *, devices: tuple[str, ...], override: Path) -> str:
    """The instruction of a candidate. Raises :class:`BadInput` where an overriding prompt fails."""
    title = _PREFIX.sub("", clean(candidate.title)) or clean(candidate.title) or "Kernel task"
    template = prompt_template("instruction.md.j2", override)
    try:
        text = template.render(
            title=title[0].upper() + title[1:],
            body=clean(candidate.body),
            opening=_OPENING.get(candidate.kind, "Make the change described above."),
            kernels=candidate.kernels,
            editable=editable,
            perf=candidate.kind is Kind.PERF,
            interpreter="interpreter" in devices,
        )
    except Exception as error:  # a template is a program of the user's: whatever it raises is theirs to mend
        raise BadInput(f"{override / 'instruction.md.j2'}: {error}", hint="mend the prompt or remove it") from error
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"
