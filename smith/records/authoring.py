"""What a language model may answer when it helps to author a task, and how an answer is kept.

Each role has one record. What a record has no field for, no answer can say: the reference patch, the frozen source and
upstream's own hidden tests have none.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from smith.records.base import Document, Record, TaskId

Sentence = Annotated[str, StringConstraints(strip_whitespace=True, min_length=4, max_length=600)]
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
PartName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{1,39}$")]
Role = Literal["investigate", "design", "review", "repair"]

MOST_PARTS = 8
"""Extra tests, wrong solutions and alternative solutions: at most so many of each."""


class Quote(Record):
    """Words that stand in a document, exactly."""

    document: Annotated[str, StringConstraints(min_length=1, max_length=300)]
    """Its name, as the prompt gives it."""
    quote: Annotated[str, StringConstraints(min_length=3, max_length=2000)]
    """Copied character for character; one line or several."""


class Observation(Record):
    """Something that was found, with where it stands."""

    statement: Sentence
    evidence: Annotated[tuple[Quote, ...], Field(min_length=1, max_length=6)]


class Investigation(Record):
    """What the hidden tests check, what they do not, and what they need to run."""

    summary: Sentence
    checked: tuple[Observation, ...] = Field(default=(), max_length=20)
    """Behaviours that hidden tests check."""
    gaps: tuple[Observation, ...] = Field(default=(), max_length=20)
    """Behaviours that the reference has or changes and no hidden test checks."""
    environment: tuple[Observation, ...] = Field(default=(), max_length=20)
    """What tests need: fixtures, helpers, devices, data types that are skipped."""


class Requirement(Record):
    """Something that a right solution must do, as an agent is told it."""

    statement: Sentence
    """Goes into the instruction, so it may say nothing of the solution."""
    evidence: Annotated[tuple[Quote, ...], Field(min_length=1, max_length=6)]
    """For review, not for the agent."""


class ExtraTest(Record):
    """A hidden test that upstream does not have: a pytest module ``test_extra_<name>.py``."""

    name: PartName
    purpose: Sentence
    content: Annotated[str, StringConstraints(min_length=10, max_length=20_000)]


class Edit(Record):
    """A change of one file: ``find`` stands there exactly once and is replaced."""

    path: Annotated[str, StringConstraints(min_length=1, max_length=300)]
    find: str
    """Empty for a file that is new."""
    replace: Annotated[str, StringConstraints(max_length=40_000)]


class Solution(Record):
    """A wrong or an alternative solution, as edits."""

    name: PartName
    focus: Sentence
    """What it gets wrong, or in what it differs from the reference."""
    base: Literal["start", "reference"]
    """What the edits apply to: the source that the task starts from, or that with the reference patch."""
    edits: Annotated[tuple[Edit, ...], Field(min_length=1, max_length=20)]


class Design(Record):
    """A better instruction, extra hidden tests, and solutions that show what the tests tell apart."""

    title: Annotated[str, StringConstraints(strip_whitespace=True, min_length=8, max_length=160, pattern=r"^[^\n]*$")]
    description: Annotated[str, StringConstraints(strip_whitespace=True, min_length=20, max_length=8000)]
    """Markdown without headings of the first two levels: the problem in the words of a report."""
    requirements: Annotated[tuple[Requirement, ...], Field(min_length=1, max_length=12)]
    tests: tuple[ExtraTest, ...] = Field(default=(), max_length=MOST_PARTS)
    wrong: tuple[Solution, ...] = Field(default=(), max_length=MOST_PARTS)
    alternatives: tuple[Solution, ...] = Field(default=(), max_length=MOST_PARTS)

    @model_validator(mode="after")
    def _distinct(self) -> Design:
        for names in ([t.name for t in self.tests], [s.name for s in (*self.wrong, *self.alternatives)]):
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise ValueError(f"two parts are called {twice[0]}")
        return self


class ReviewFault(Record):
    """Something that is wrong with a design."""

    document: Annotated[str, StringConstraints(min_length=1, max_length=300)]
    quote: Annotated[str, StringConstraints(min_length=3, max_length=2000)]
    """The words at fault, copied exactly out of that document."""
    problem: Sentence
    severity: Literal["blocking", "minor"]
    suggestion: str = ""


class Review(Record):
    """What a second reading found. It is advice: no gate opens or closes by it."""

    summary: Sentence
    faults: tuple[ReviewFault, ...] = Field(default=(), max_length=20)


class TextEdit(Record):
    """A change of one text of the design: ``find`` stands there exactly once and is replaced."""

    document: Annotated[str, StringConstraints(min_length=1, max_length=300)]
    """``title``, ``description`` or ``tests/<name>``; nothing else can be edited."""
    find: Annotated[str, StringConstraints(min_length=1)]
    replace: str


class Repair(Record):
    """Changes of a design that was refused or found at fault."""

    explanation: Sentence
    edits: tuple[TextEdit, ...] = Field(default=(), max_length=40)
    requirements: tuple[Requirement, ...] | None = None
    """All of them, in the place of those before; null where they stay."""
    tests: tuple[ExtraTest, ...] = Field(default=(), max_length=MOST_PARTS)
    """New ones, and whole ones in the place of those of the same name."""
    wrong: tuple[Solution, ...] = Field(default=(), max_length=MOST_PARTS)
    alternatives: tuple[Solution, ...] = Field(default=(), max_length=MOST_PARTS)
    remove: tuple[str, ...] = Field(default=(), max_length=3 * MOST_PARTS)
    """``tests/<name>``, ``wrong/<name>`` or ``alternatives/<name>``."""


RECORDS: dict[Role, type[Investigation] | type[Design] | type[Review] | type[Repair]] = {
    "investigate": Investigation,
    "design": Design,
    "review": Review,
    "repair": Repair,
}


class Answer(Document):
    """One accepted answer of a role, kept so that it is never paid for twice."""

    task: TaskId
    binding: Digest
    """Of source, hidden tests, reference and instruction, as the answer was given for them."""
    role: Role
    number: int = Field(ge=1)
    """Of the design that it makes or is about: 1 is the first design, every repair makes the next."""
    follows: Digest | None = None
    """Digest of what it was given to read: the investigation for a first design, the design for a review or repair."""
    model: str
    """As asked for; ``hand`` where a person wrote the answer."""
    usd: float | None = None
    """What it cost by the price list; null where nobody knows."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    investigate: Investigation | None = None
    design: Design | None = None
    review: Review | None = None
    repair: Repair | None = None

    @model_validator(mode="after")
    def _one(self) -> Answer:
        given = [role for role in RECORDS if getattr(self, role) is not None]
        if given != [self.role]:
            raise ValueError(f"an answer of the role {self.role} holds {self.role} and nothing else")
        return self


class Authored(Document):
    """What became of authoring a task: kept beside its answers where a design was accepted."""

    task: TaskId
    binding: Digest
    before: str
    """Tree of the bundle that was authored."""
    tree: str
    """Tree of the bundle that came of it."""
    device: str
    """On which every gate passed."""
    number: int
    """Of the accepted design."""
    model: str
    open_faults: tuple[ReviewFault, ...] = ()
    """What the last review found and no repair mended."""
