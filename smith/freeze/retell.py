"""The text of a pull request or an issue as a report: what is wrong or wanted stays, what was done about it goes.

Works on cleaned text (:func:`smith.freeze.text.clean`), block by block and sentence by sentence. A sentence goes when
it repeats the reference patch, names what only the reference has, tells measured results or tests, or (of a fix) says
what was done. The words that stay are not changed, but for openings such as "This PR adds".
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field

from smith.freeze import phrases
from smith.freeze.overlap import LEAST_TOKENS, Addition, runs, squeezed, tokens
from smith.freeze.text import fenced, heading_of
from smith.mine import claims
from smith.records.candidate import Kind

_WIDTH = 110
_MOST_CHARS = 6000
_MOST_FENCE = 40
_SENTENCE = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[A-Z`\"'(*\[])|(?<=:)\s*\n+")
_ITEM = re.compile(r"\s*(?:[-*•]|\d+[.)])\s+")
_CODE_SPAN = re.compile(r"`([^`\n]+)`")
_NAME = re.compile(r"[^\W\d]\w*(?:\.\w+)*")


@dataclass
class Retold:
    """``text`` is what stays; ``removed`` what went because it gives the solution away, in order."""

    text: str
    removed: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Secret:
    """What no report may say: the reference's lines, and the names that only it has. ``named`` may be told (the
    interface)."""

    addition: Addition
    tests: Addition
    """What the hidden tests add."""
    names: frozenset[str] = frozenset()
    named: frozenset[str] = frozenset()

    def gives_away(self, sentence: str) -> bool:
        """Whether a sentence repeats the reference or names what only the reference has."""
        if self.addition.quoted_by(sentence) or self.tests.copied_by(sentence):
            return True
        for span in _CODE_SPAN.findall(sentence):
            parts = tokens(span)
            told = any(name in self.named for name in parts)
            if len(parts) >= LEAST_TOKENS and not told and not self.addition.short_runs.isdisjoint(runs(parts, 4)):
                return True
        return any(
            part in self.names and part not in self.named
            for name in _NAME.findall(sentence)
            for part in name.split(".")
        )


def retell(text: str, kind: Kind, secret: Secret) -> Retold:
    """What stays of a cleaned text."""
    retold = Retold("")
    kept: list[str] = []
    wants = kind in (Kind.FEATURE, Kind.RELAND)
    skip_at = 0
    for block in _blocks(text):
        head = heading_of(block) if "\n" not in block else None
        if head is not None:
            level, title = head
            if skip_at and level > skip_at:
                continue
            means = phrases.MEANS_HEADING.search(title) or (not wants and phrases.ANSWER_HEADING.match(title))
            skip_at = level if means else 0
            if skip_at:
                retold.removed.append(title)
            elif not secret.gives_away(title) and not re.fullmatch(
                r"\W*(summary|description|overview)\W*", title, re.I
            ):
                kept.append(f"{title}:" if level == 8 else f"### {title}")
            continue
        if skip_at:
            continue
        if block.lstrip().startswith(("```", "~~~")):
            _fence(block, secret, retold, kept)
        elif said := _paragraph(block, wants, secret, retold):
            kept.append(said)
    retold.text = _joined(kept)
    return retold


def _blocks(text: str) -> Iterator[str]:
    """Headings, fenced blocks, list items and paragraphs."""
    lines = text.split("\n")
    current: list[str] = []
    was_inside = False
    for line, inside in zip(lines, fenced(lines), strict=True):
        starts = inside != was_inside or (
            not inside and (not line.strip() or heading_of(line) is not None or _ITEM.match(line))
        )
        after_heading = bool(current) and not was_inside and heading_of(current[-1]) is not None
        if (starts or after_heading) and current:
            yield "\n".join(current)
            current = []
        if line.strip() or inside:
            current.append(line)
        was_inside = inside
    if current:
        yield "\n".join(current)


def _fence(block: str, secret: Secret, retold: Retold, kept: list[str]) -> None:
    """Keep a fenced block that shows the problem: no diff, no results, nothing of the reference."""
    lines = block.strip("\n").split("\n")
    body = lines[1:-1]
    diff = "diff" in lines[0].lower() or sum(1 for line in body if re.match(r"[+-](?:\s|$)", line)) > 1
    given = [squeezed(line) for line in body]
    known = sum(1 for line in given if line in secret.addition.distinct)
    copied = secret.tests.copied_by("\n".join(body))
    if diff or known or copied or any(secret.gives_away(line) for line in given if line):
        retold.removed.append(given[0][:120] if given else "")
    elif (
        len(body) <= _MOST_FENCE
        and not phrases.OUTPUT.search("\n".join(body))
        and not phrases.REVIEW.search("\n".join(body))
    ):
        kept.append("\n".join(lines))


def _paragraph(block: str, wants: bool, secret: Secret, retold: Retold) -> str:
    """The sentences of a paragraph or list item that stay; the block as it is where all do."""
    item = _ITEM.match(block)
    mark = item[0] if item else ""
    plain = block[len(mark) :].strip() if item else textwrap.dedent(block).strip()
    sentences = [" ".join(s.split()) for s in _SENTENCE.split(plain) if s and s.strip()]
    stays: list[str] = []
    if sentences and sentences[0].count(")") > sentences[0].count("(") and len(sentences[0].split()) < 8:
        sentences = sentences[1:]  # the rest of a title that a forge has cut
    for number, sentence in enumerate(sentences):
        if phrases.ANSWER_LABEL.match(sentence) and not wants:
            retold.removed += sentences[number:]
            break
        if secret.gives_away(sentence):
            retold.removed.append(sentence)
            continue
        if (
            phrases.REVIEW.search(sentence)
            or phrases.INSTRUCTS.search(sentence)
            or phrases.GAIN.search(sentence)
            or _claims(sentence)
        ):
            continue
        said = _told(sentence, wants)
        if said is None:
            retold.removed.append(sentence)
        else:
            stays.append(said)
    if not any(re.search(r"\w{2}", sentence) for sentence in stays):
        return ""
    if stays == sentences:
        return mark + plain
    hanging = " " * len(mark)
    return textwrap.fill(
        " ".join(stays),
        _WIDTH,
        initial_indent=mark,
        subsequent_indent=hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _told(sentence: str, wants: bool) -> str | None:
    """A sentence as a report says it; None where it only says what was done."""
    if match := phrases.FIXES.match(sentence):
        rest = re.sub(r"^(?:the|an?|some|this)\s+", "", match["rest"].strip(), flags=re.IGNORECASE)
        return f"{rest[:1].upper()}{rest[1:]}"
    if match := phrases.OPENING.match(sentence):
        return f"Wanted: {sentence[match.end() :]}" if wants else None
    if wants:
        return sentence
    done = (
        phrases.DONE.match(sentence)
        or phrases.DONE.match(phrases.PART.sub("", sentence, count=1))
        or phrases.PASSIVE.search(sentence)
    )
    return None if done else sentence


def _claims(sentence: str) -> bool:
    """Whether a sentence claims a measured gain."""
    return any(c.direction in ("faster", "less") for c in claims.find("", sentence))


def _joined(blocks: list[str]) -> str:
    """The blocks as text, without headings of nothing and without "as follows:" before nothing; not endless."""
    kept: list[str] = []
    for number, block in enumerate(blocks):
        following = blocks[number + 1] if number + 1 < len(blocks) else "#"
        if block.startswith("### ") and following.startswith(("#",)):
            continue
        if block.rstrip().endswith(":") and following.startswith("#"):
            sentences = _SENTENCE.split(block.rstrip())
            block = " ".join(s.strip() for s in sentences[:-1] if s)
            if not block:
                continue
        kept.append(block)
    text = ""
    for block in kept:
        if len(text) + len(block) > _MOST_CHARS:
            break
        tight = _ITEM.match(block) and _ITEM.match(text.rpartition("\n\n")[2])
        text += ("\n" if tight else "\n\n" if text else "") + block
    return text.strip()
