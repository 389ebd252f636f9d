"""The four roles: what each is asked, and what its answer is checked by."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from smith.author import extra_tests
from smith.author.answers import digest_of
from smith.author.ask import Question
from smith.author.compose import Refused, Staged, repaired, sections_of, test_folder
from smith.author.documents import Documents, Text
from smith.author.prompts import documents_prompt, rendered, system_prompt
from smith.freeze.bundle import Bundle
from smith.records.authoring import Design, Investigation, Observation, Quote, Repair, Review
from smith.syntax import parse


class Roles:
    """Questions about ``bundle``, whose documents are given."""

    def __init__(self, bundle: Bundle, documents: Documents, prompts: Path) -> None:
        self.bundle, self.documents, self.prompts = bundle, documents, prompts
        tests = [text for text in documents.texts if text.name.startswith("hidden/")]
        self._rules: dict[str, Any] = {
            "sections": sections_of(bundle.instruction),
            "test_folder": test_folder(bundle) or ".",
            "allowed_imports": extra_tests.allowed_imports(parse(text.text) for text in tests),
            "editable": bundle.spec.editable,
        }

    def investigate(self) -> Question:
        """What the tests check, what they do not, what they need."""
        documents = documents_prompt(self.documents, self.prompts)
        return Question(
            role="investigate",
            number=1,
            follows=None,
            system=system_prompt("investigate", self.documents.fence, self.prompts),
            prompt=rendered("author-investigate.md.j2", self.prompts, documents=documents),
            check=lambda said: self.documents.lacking(_quotes(said)),
            salvage=self._without_false,
        )

    def _without_false(self, said: Investigation) -> Investigation:
        """An investigation without what it could not quote."""

        def true(found: Sequence[Observation]) -> tuple[Observation, ...]:
            return tuple(one for one in found if not self.documents.lacking(one.evidence))

        return said.model_copy(
            update={"checked": true(said.checked), "gaps": true(said.gaps), "environment": true(said.environment)}
        )

    def design(self, investigation: Investigation | None) -> Question:
        """The first draft."""
        told = investigation.model_dump_json(indent=1) if investigation else ""
        prompt = rendered(
            "author-design.md.j2",
            self.prompts,
            documents=documents_prompt(self.documents, self.prompts),
            investigation=told,
            **self._rules,
        )
        return Question(
            role="design",
            number=1,
            follows=digest_of(investigation) if investigation else None,
            system=system_prompt("design", self.documents.fence, self.prompts),
            prompt=prompt,
        )

    def review(self, number: int, design: Design, staged: Staged) -> Question:
        """A second reading of a design that passed the gates."""
        documents = self.documents.plus(new_texts(design, staged))

        def lacking(said: Review) -> list[str]:
            return documents.lacking(Quote(document=f.document, quote=f.quote) for f in said.faults)

        def true(said: Review) -> Review:
            kept = [f for f in said.faults if not documents.lacking([Quote(document=f.document, quote=f.quote)])]
            return said.model_copy(update={"faults": tuple(kept)})

        return Question(
            role="review",
            number=number,
            follows=digest_of(design),
            system=system_prompt("review", documents.fence, self.prompts),
            prompt=rendered("author-review.md.j2", self.prompts, documents=documents_prompt(documents, self.prompts)),
            check=lacking,
            salvage=true,
        )

    def repair(self, number: int, design: Design, reasons: Sequence[str]) -> Question:
        """Changes that make design ``number`` out of the one before it."""
        # What a gate says holds output of tests, and a design is a model's: both are fenced like every document.
        now = Text("design", design.model_dump_json(indent=1))
        about = self.documents.plus([now, Text("reasons", "\n".join(reasons))])

        def misfits(said: Repair) -> list[str]:
            try:
                repaired(design, said)
            except Refused as refused:
                return [str(reason) for reason in refused.reasons]
            return []

        return Question(
            role="repair",
            number=number,
            follows=digest_of(design),
            system=system_prompt("repair", about.fence, self.prompts),
            prompt=rendered(
                "author-repair.md.j2", self.prompts, documents=documents_prompt(about, self.prompts), **self._rules
            ),
            check=misfits,
        )


def new_texts(design: Design, staged: Staged) -> list[Text]:
    """The documents of a design, as a review reads them."""
    return [
        Text("new/instruction.md", staged.bundle.instruction),
        *(Text(f"tests/{test.name}", test.content) for test in design.tests),
        *(Text(name, patch) for name, patch in staged.patches.items()),
    ]


def _quotes(said: Investigation) -> list[Quote]:
    return [quote for one in (*said.checked, *said.gaps, *said.environment) for quote in one.evidence]
