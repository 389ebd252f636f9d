"""Cards: the same value is the same file, the identifier follows from what is stated, faults are one line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from knowledge_worlds import BODY, card

from smith.errors import RecordError
from smith.knowledge.cards import SECTIONS, body_of, dumps, identifier, loads, path_of, well_placed, with_identifier
from smith.records.card import Aim, AppliesTo, Card, Counts, Effect, Figures, Origin, Status

LINE = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp"), exclude_characters="\ufeff"), min_size=1)
SLUG = st.from_regex(r"\A[a-z0-9]{1,8}(-[a-z0-9]{1,8})?\Z")
DIGEST = st.text("0123456789abcdef", min_size=64, max_size=64)
NUMBER = st.floats(0.01, 99, allow_nan=False)
EFFECTS = st.builds(
    Effect, measure=st.sampled_from(["speedup", "solve_difference"]), value=NUMBER, low=NUMBER, high=NUMBER,
    device=st.sampled_from(["cpu", "cuda:sm_90"]), tasks=st.integers(1, 9), uses=st.integers(1, 9),
)  # fmt: skip
FIGURES = st.builds(
    Figures,
    evidence=st.lists(DIGEST, max_size=2).map(tuple),
    effects=st.lists(EFFECTS, max_size=2).map(tuple),
    uses=st.dictionaries(st.sampled_from(Origin), st.builds(Counts, wins=st.integers(0, 9)), max_size=2),
)
APPLIES = st.builds(
    AppliesTo,
    operator=SLUG,
    languages=st.lists(SLUG, min_size=1, max_size=2, unique=True).map(lambda some: tuple(sorted(some))),
    devices=st.sampled_from([("cpu",), ("cuda", "rocm"), ("interpreter",)]),
    toolchain=st.dictionaries(SLUG, LINE, max_size=2),
    dtypes=st.lists(SLUG, max_size=2, unique=True).map(lambda some: tuple(sorted(some))),
    regime=st.just("") | LINE.map(lambda text: text[:120]),
)


@st.composite
def cards(draw: st.DrawFn) -> Card:
    status = draw(st.sampled_from(Status))
    made = Card(
        id="0" * 12, title=draw(LINE)[:160], aim=draw(st.sampled_from(Aim)),
        lever="+".join(sorted(set(draw(st.lists(SLUG, min_size=1, max_size=3))))), applies_to=draw(APPLIES),
        symbols=tuple(draw(st.lists(LINE.map(lambda text: text[:160]), max_size=2))), status=status,
        reason="" if status is Status.ACTIVE else draw(st.text(st.characters(exclude_categories=("Cs",)), min_size=1)),
        figures=draw(st.none() | FIGURES),
    )  # fmt: skip
    return with_identifier(made)


@given(cards())
def test_a_card_survives_its_file(made: Card) -> None:
    data = dumps(made, BODY)
    again = loads(data, "knowledge/cards/x/y.md")
    assert (again.card, again.body) == (made, BODY)
    assert dumps(again.card, again.body) == data


@given(cards(), cards())
def test_the_identifier_is_of_what_is_stated(one: Card, other: Card) -> None:
    prose = one.model_copy(update={"title": other.title, "symbols": other.symbols, "figures": other.figures})
    assert identifier(prose) == one.id
    stated = [(c.aim, c.lever, c.applies_to.model_copy(update={"toolchain": {}})) for c in (one, other)]
    assert (one.id == other.id) == (stated[0] == stated[1])


@given(cards())
def test_the_place_that_smith_gives_is_a_good_one(made: Card) -> None:
    assert well_placed(path_of(made), made)
    assert not well_placed(f"knowledge/cards/other-{made.applies_to.operator}/x.md", made)


def test_sections_are_found() -> None:
    texts = {name: f"The text of {name}." for name in SECTIONS}
    file = loads(dumps(card(), body_of(texts)), "c.md")
    assert {name: file.section(name) for name in SECTIONS} == texts


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("---\nschema", "schema"), "no front matter"),
        (("title:", "titel:"), "title is missing"),
        (("title:", "lever: x\ntitle:"), "lever is given twice"),
        (("title: ", "title: &a "), "YAML"),
        (("## How", "## Why"), "the sections are When, How, Verify, Pitfalls"),
        (("status: active", "status: retracted"), "says why"),
        (("status: active", "status: [*a]"), "not YAML"),
        (("lever: loop-tiling", "lever: tiling+loop"), "sorted"),
        (("status: active", "status: !!python/object/apply:os.getpid []"), "not YAML"),
    ],
)
def test_what_is_no_card_is_said_in_one_line(change: tuple[str, str], said: str) -> None:
    text = dumps(card(), BODY).decode()
    assert change[0] in text
    bad = text.replace(*change)
    if change[1] == "title: &a ":  # an anchor alone is harmless; what refers to it is refused
        bad = bad.replace("status: active", "status: active\nreason: *a")
    with pytest.raises(RecordError) as caught:
        loads(bad.encode(), "knowledge/cards/layout/x.md")
    line = str(caught.value)
    assert line.startswith("knowledge/cards/layout/x.md: ") and said in line and "\n" not in line
