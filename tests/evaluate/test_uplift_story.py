"""An agent whose success truly depends on the card, asked over real HTTP in the real sandbox: the uplift is found."""

from __future__ import annotations

import json
from pathlib import Path

from tests.evaluate.card_world import add_card, reader
from tests.evaluate.model_world import evaluate, smith, tiny_world
from tests.gateway.scripted_model import serving


def test_uplift_is_found_where_success_depends_on_the_card(tmp_path: Path, sandbox_name: str) -> None:
    store = tiny_world(tmp_path / "data")
    card = add_card(store)
    with serving(reader) as model:
        argv = ("--knowledge", "ab", "--attempts", "12", "--jobs", "2", "--seed", "5")
        said, _ = evaluate(store, "tools", f"{model.url}/v1", *argv)
    told = json.loads(smith(store, "knowledge", "uplift", said["run"], "--json"))
    effect = told["uplift"]["effect"]
    assert (effect["answer"], effect["solved_shown"], effect["solved_cold"]) == ("helps", 1.0, 0.0)
    assert effect["solved"]["low"] > 0 and effect["solved"]["pairs"] == 6 and effect["solved"]["over"] == "pairs"
    assert effect["solved"]["p_value"] == 2 / 2**6 and effect["speed"] is None
    (one,) = told["uplift"]["cards"]
    assert (one["card"], one["cited"], one["effect"]["answer"]) == (card.id, 6, "helps")
    assert told["harmful"] == {} and "one lineage" in told["notes"][0]
    words = smith(store, "knowledge", "uplift", said["run"])
    assert "100% shown, 0% cold: +100.0 points" in words and "showing cards helps: n = 6 pairs, 1 task" in words
