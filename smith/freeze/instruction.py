"""The instruction: all that an agent is told, rendered from a prompt file, the same for the same candidate.

The problem in the words of a report, where it is, what the hidden tests use and demand, and what counts. Nothing of the
solution: see :mod:`smith.freeze.text`, :mod:`smith.freeze.statement` and :mod:`smith.freeze.retell` for what is taken
out and why.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path, PurePosixPath

import jinja2

from smith.errors import BadInput
from smith.freeze.demands import Demands
from smith.freeze.overlap import Addition
from smith.freeze.retell import Retold, Secret, retell
from smith.freeze.statement import framed, state
from smith.freeze.text import clean
from smith.records.candidate import Candidate, KernelChange, Kind
from smith.records.task import InterfaceItem, Leak, LeakKind

__all__ = ["Briefing", "Instruction", "clean", "interface_text", "prompt_template", "render", "scope_of"]

_OPENING = {
    Kind.FIX: "The code in this repository does not behave as it should. Correct it.",
    Kind.PERF: "Make this part of the repository faster without changing what it computes.",
    Kind.TUNING: "Make this part of the repository faster without changing what it computes.",
    Kind.FEATURE: "Add what is described above to this repository.",
}
DEVICE_NAMES = {
    "rocm": "an AMD GPU (ROCm)",
    "cuda": "an NVIDIA GPU (CUDA)",
    "cpu": "a CPU",
    "interpreter": "Triton's interpreter on a CPU",
}
_MOST_SUBJECTS = 3
_MOST_SCRUBBED = 8
_CODE_LIKE = re.compile(r"[^\W\d]\w*(?:_\w|[a-z][A-Z]|[A-Za-z]\d)\w*|_\w+")


@dataclass(frozen=True)
class Briefing:
    """What freezing found out for the instruction, besides the candidate."""

    addition: Addition = field(default_factory=lambda: Addition({}, {}))
    """What the reference adds."""
    tests: Addition = field(default_factory=lambda: Addition({}, {}))
    """What the hidden tests add."""
    known: frozenset[str] = frozenset()
    """Identifiers of :attr:`addition` that the starting tree has somewhere."""
    interface: tuple[InterfaceItem, ...] = ()
    demands: Demands = field(default_factory=Demands)


@dataclass(frozen=True)
class Instruction:
    """The text, the lines of it that are meant to name code (interface, kernels in scope), and what was taken out of
    the pull request's words."""

    text: str
    naming: str
    leaks: tuple[Leak, ...] = ()


_SCOPED = re.compile(r"(?P<scope>[^:\n]{1,40}): (?P<label>Wanted|Missing|Slow|Fault): ")


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


def code_like(name: str) -> bool:
    """Whether a word can only be a name in code: English has no underscores and no capitals inside."""
    return len(name) > 3 and _CODE_LIKE.fullmatch(name) is not None


def words_of(candidate: Candidate) -> str:
    """All text that an instruction may be made of."""
    issues = candidate.enrichment.issues if candidate.enrichment else ()
    return "\n".join([candidate.title, candidate.body, *(part for i in issues for part in (i.title, i.body))])


def scope_of(kernels: tuple[KernelChange, ...], before: Mapping[str, str]) -> list[KernelChange]:
    """The kernels whose code changes, as far as the start has them: what the reference calls its own parts is not told.

    ``before`` are the texts of the changed files as they were.
    """
    scope = []
    for kernel in kernels:
        if kernel.path not in before or (kernel.symbols and not kernel.code):
            continue
        there = [s for s in kernel.code if re.search(rf"\b{re.escape(s.rpartition('.')[2])}\b", before[kernel.path])]
        scope.append(kernel.model_copy(update={"symbols": tuple(there), "text_only": None}))
    return scope


def render(
    candidate: Candidate,
    editable: tuple[str, ...],
    *,
    devices: tuple[str, ...],
    override: Path,
    briefing: Briefing | None = None,
) -> Instruction:
    """The instruction of a candidate. Raises :class:`BadInput` where an overriding prompt fails."""
    known = briefing or Briefing()
    named = frozenset(name for item in known.interface for name in names_in(item))
    secret = Secret(
        known.addition,
        known.tests,
        names=frozenset(name for name in known.addition.identifiers - known.known if code_like(name)),
        named=named,
    )
    scope = scope_of(candidate.kernels, known.addition.before)
    told, reports = _tell(candidate, secret)
    demands = known.demands
    heading, removed = _heading(candidate, secret, scope, bool(told.text or reports or demands.behaviours))
    interface = interface_text(known.interface)
    template = prompt_template("instruction.md.j2", override)
    perf = candidate.kind in (Kind.PERF, Kind.TUNING)
    try:
        text = template.render(
            title=_scoped(heading),
            body=told.text,
            reports=[r.text for r in reports],
            opening=_OPENING.get(candidate.kind, "Make the change described above."),
            kernels=scope,
            editable=editable,
            perf=perf,
            interface=interface,
            behaviours=demands.behaviours,
            types=demands.types,
            tolerances=demands.tolerances,
            devices=[DEVICE_NAMES[d] for d in devices if d in DEVICE_NAMES],
            interpreter="interpreter" in devices,
        )
    except Exception as error:  # a template is a program of the user's: whatever it raises is theirs to mend
        raise BadInput(f"{override / 'instruction.md.j2'}: {error}", hint="mend the prompt or remove it") from error
    text = re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"
    scrubbed = [*removed, *told.removed, *(line for r in reports for line in r.removed)]
    leaks = [
        Leak(kind=LeakKind.INSTRUCTION, action="scrubbed", path="instruction.md", excerpt=" ".join(line.split())[:120])
        for line in scrubbed[:_MOST_SCRUBBED]
    ]
    places = tuple(f"- `{kernel.path}` (" for kernel in scope)
    naming = [interface, *(line for line in text.splitlines() if line.startswith(places))]
    return Instruction(text, "\n".join(naming), tuple(leaks))


def _tell(candidate: Candidate, secret: Secret) -> tuple[Retold, list[Retold]]:
    """What stays of the body, and of each issue that it closes: an issue is the best report of a problem."""
    body = candidate.body
    # A forge cuts a long title and lets the body begin with the rest of it.
    if candidate.title.rstrip().endswith("…") and body.startswith("…"):
        body = body.partition("\n")[2]
    told = retell(_without_title(clean(body), candidate.title), candidate.kind, secret)
    reports = []
    for issue in candidate.enrichment.issues if candidate.enrichment else ():
        if issue.known and not issue.pull_request:
            report = retell(clean(f"{issue.title}\n\n{issue.body}"), Kind.FEATURE, secret)
            if report.text:
                reports.append(report)
    return told, reports


def _scoped(heading: str) -> str:
    """ "Fault in softmax: ..." reads as a report does; "Softmax: Fault: ..." does not."""
    match = _SCOPED.match(heading)
    if match is None:
        return heading
    scope = match["scope"] if re.search(r"[A-Z].*[A-Z_]|_", match["scope"]) else match["scope"].lower()
    return f"{match['label']} in {scope}: {heading[match.end() :]}"


def _without_title(body: str, title: str) -> str:
    """The body without a first line that says the title again."""
    first, _, rest = body.partition("\n")
    plain = re.sub(r"\W+", " ", first).strip().lower()
    return rest.strip() if plain and plain in re.sub(r"\W+", " ", title).lower() else body


def _heading(
    candidate: Candidate, secret: Secret, scope: list[KernelChange], told_elsewhere: bool
) -> tuple[str, list[str]]:
    """The title as a statement, and the words that had to go."""
    title = candidate.title
    if title.rstrip().endswith("…") and candidate.body.startswith("…"):
        title = title.rstrip()[:-1].rstrip() + candidate.body.partition("\n")[0][1:]
    title = " ".join(clean(title).split())
    names = list(dict.fromkeys(s.rpartition(".")[2] for kernel in scope for s in kernel.symbols))[:_MOST_SUBJECTS]
    names = names or list(dict.fromkeys(PurePosixPath(kernel.path).name for kernel in scope))[:_MOST_SUBJECTS]
    subject = ", ".join(f"`{name}`" for name in names)
    stated = state(title, candidate.kind, subject)
    if secret.addition.quoted_by(stated.heading) or (
        candidate.kind not in (Kind.FEATURE, Kind.RELAND) and secret.gives_away(stated.heading)
    ):
        stated = state("", candidate.kind, subject)
    heading, removed = stated.heading, [] if stated.told else [title]
    perf = candidate.kind in (Kind.PERF, Kind.TUNING)
    if (
        not stated.told
        and not told_elsewhere
        and not perf
        and not secret.gives_away(title)
        and (words := framed(title))
    ):
        heading, removed = words, []
    return heading[:1].upper() + heading[1:] if not re.match(r"\w+[_(.]", heading) else heading, removed


def names_in(item: InterfaceItem) -> set[str]:
    """The identifiers that an item tells."""
    return set(re.findall(r"[^\W\d]\w*", f"{item.module} {item.name} {item.signature} {' '.join(item.missing)}"))


def interface_text(items: tuple[InterfaceItem, ...]) -> str:
    """The items in Markdown, by module."""
    parts: list[str] = []
    place = ""
    for item in items:
        if item.kind in ("value", "error"):
            continue
        here = f"`{item.module}`" + (f" (`{item.path}`)" if item.path else "")
        if here != place:
            parts.append(f"In {here}:" if item.kind != "module" else f"A module {here}.")
            place = here if item.kind != "module" else ""
        if item.kind == "module":
            continue
        lacks = f"Not there yet: {', '.join(item.missing)}." if item.missing else ""
        if item.signature:
            parts.append(f"```python\n{item.signature}\n```" + (f"\n\n{lacks}" if lacks else ""))
        else:
            parts.append(f"- `{item.name}`" + (f": {lacks}" if lacks else ""))
    extra = [f"- The string `{i.name}`: {i.signature}." for i in items if i.kind == "value"]
    extra += [f"- `{i.name}` raises {i.signature}." for i in items if i.kind == "error"]
    return "\n\n".join([*parts, *(["\n".join(extra)] if extra else [])])
