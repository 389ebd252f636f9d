"""The whole story in real git: runs, two proposals at once, their merge, the check, retrieval, retraction."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from knowledge_worlds import GATHER, MATVEC, TRANSPOSE, WIDE, commit, git, hand_in, sample_data, smith

from smith.freeze.bundle import Store
from smith.records.grade import GradeVerdict

SOLVED, FAILED = GradeVerdict.SOLVED, GradeVerdict.FAILED


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return sample_data(tmp_path_factory.mktemp("story") / "data")


def test_from_two_runs_to_a_card_that_is_shown_and_taken_back(world: Store, tmp_path: Path) -> None:
    # Two people run the same panel, and both find that tiling helps; one also measured another kernel.
    hand_in(world.layout, "ann", lambda task, n: (SOLVED, 3.5), (TRANSPOSE,), attempts=2)
    hand_in(world.layout, "ben", lambda task, n: (SOLVED, 2.5), (TRANSPOSE, MATVEC))
    hand_in(world.layout, "fix", lambda task, n: (SOLVED, None), (GATHER, WIDE), attempts=2)
    hand_in(world.layout, "cold", lambda task, n: (SOLVED if (task, n) == (WIDE, 1) else FAILED, None), (GATHER, WIDE),
            attempts=2)  # fmt: skip
    before = git(world, "rev-parse", "main")
    status, ann = smith(world, "knowledge", "propose", "ann")
    assert status == 0 and len(ann["added"]) == 1
    status, ben = smith(world, "knowledge", "propose", "ben")
    assert status == 0 and len(ben["added"]) == 2 and ann["added"][0] in ben["added"]
    status, fix = smith(world, "knowledge", "propose", "fix", "--control", "cold")
    assert status == 0 and len(fix["added"]) == 2

    # Each is one commit on what is checked out, which stays as it was.
    assert git(world, "rev-parse", "main", f"{ann['branch']}^") == f"{before}\n{before}"
    assert git(world, "status", "--porcelain") == ""
    trailers = git(world, "log", "-1", "--format=%(trailers:only)", ben["branch"])
    assert "Smith-Run: ben" in trailers and all(f"Smith-Evidence: {digest}" in trailers for digest in ben["evidence"])
    # Asked again, it is the same commit.
    assert smith(world, "knowledge", "propose", "ann")[1]["commit"] == ann["commit"]

    # All merge without conflict, the same new card included.
    for proposal in (ann, ben, fix):
        git(world, "merge", "-q", "--no-edit", proposal["branch"])
    assert smith(world, "knowledge", "check", "--base", before) == (0, {"cards": 4, "errors": []})
    status, nothing = smith(world, "knowledge", "propose", "ann")
    assert status == 1 and nothing["left_out"] == {"it is filed already": 2}

    # What both measured is one card with the uses of both.
    tiling = ann["added"][0]
    status, shown = smith(world, "knowledge", "show", tiling)
    assert len(shown["uses"]) == 3 and shown["helps"]["own"]["counts"] == {"wins": 3, "losses": 0, "no_effects": 0}
    (effect,) = shown["effects"]
    assert (effect["device"], effect["tasks"], effect["uses"]) == ("cpu", 1, 3)
    assert effect["low"] < 2.51 and effect["high"] > 3.5 and effect["low"] < effect["value"] < effect["high"]
    paired = smith(world, "knowledge", "show", fix["added"][0])[1]
    other = smith(world, "knowledge", "show", fix["added"][1])[1]
    by_task = {found["uses"][0]["task"]: found for found in (paired, other)}
    assert by_task[GATHER]["helps"]["own"]["counts"]["wins"] == 2
    assert by_task[WIDE]["helps"]["own"]["counts"] == {"wins": 1, "losses": 0, "no_effects": 1}
    assert by_task[WIDE]["effects"][0]["value"] == 0.5

    # Search finds it by words and by place.
    found = smith(world, "knowledge", "search", "tiles", "cache", "--language", "native")[1]
    assert [one["id"] for one in found["cards"]] == [tiling]
    assert smith(world, "knowledge", "search", "tiles", "--language", "triton")[0] == 1

    # A task is not told what was learned at it, unless that is asked for.
    status, got = smith(world, "knowledge", "retrieve", TRANSPOSE)
    assert status == 1 and {"id": tiling, "why": "was learned at this task, or at a relative of it"} in got["left_out"]
    status, got = smith(world, "knowledge", "retrieve", TRANSPOSE, "--own")
    assert status == 0 and [one["id"] for one in got["chosen"]] == [tiling]
    assert got["chosen"][0]["tokens"] <= 1000 and "in tiles of a fixed size" in got["chosen"][0]["text"]

    # A later run loses with it at the same lever: filed with the same card, and counted.
    hand_in(world.layout, "later", lambda task, n: (FAILED, 0.8), (TRANSPOSE,), attempts=4)
    status, later = smith(world, "knowledge", "propose", "later")
    assert (status, later["added"], later["updated"]) == (0, [], [tiling])
    git(world, "merge", "-q", "--no-edit", later["branch"])
    counts = smith(world, "knowledge", "show", tiling)[1]["helps"]["all"]["counts"]
    assert counts == {"wins": 3, "losses": 4, "no_effects": 0}

    # A maintainer writes the figures into the cards; what is written is checked.
    assert smith(world, "knowledge", "index", "--figures")[1]["figures"] == 4
    commit(world, "Figures")
    assert smith(world, "knowledge", "check") == (0, {"cards": 4, "errors": []})
    lines = [json.loads(line) for line in (world.layout.volatile / "knowledge.jsonl").read_text().splitlines()]
    assert [line["id"] for line in lines] == sorted(line["id"] for line in lines) and len(lines) == 4

    # As skills for agents.
    assert smith(world, "export", "skills", str(tmp_path / "skills"))[0] == 0
    skill = next((tmp_path / "skills").glob("layout-*/SKILL.md"))
    head = skill.read_text().split("---\n")[1]
    assert f"name: {skill.parent.name}\n" in head and len(skill.parent.name) <= 64

    # Taken back: kept with what speaks against it, shown to nobody, still checked.
    status, _ = smith(world, "knowledge", "retract", tiling, "--reason", "Slower in every later use.")
    assert status == 0
    commit(world, "Retract")
    assert smith(world, "knowledge", "check", "--base", "HEAD~1") == (0, {"cards": 4, "errors": []})
    status, got = smith(world, "knowledge", "retrieve", TRANSPOSE, "--own")
    assert status == 1 and {"id": tiling, "why": "is retracted: Slower in every later use."} in got["left_out"]
    assert smith(world, "knowledge", "search", "tiles", "cache")[0] == 1
    card = smith(world, "knowledge", "search", "tiles", "cache", "--all")[1]["cards"][0]
    assert card["id"] == tiling and card["status"] == "retracted"


def test_nothing_is_proposed_from_a_dirty_tree_or_without_a_win(world: Store) -> None:
    hand_in(world.layout, "lost", lambda task, n: (FAILED, 0.9), (MATVEC,), patch=lambda task: PADDED)
    status, made = smith(world, "knowledge", "propose", "lost")
    assert status == 1 and made["left_out"] == {"no win was measured with its lever, and no card has it": 1}
    (world.layout.root / "note.txt").write_text("mine")
    status, error = smith(world, "knowledge", "propose", "lost")
    assert status == 2 and "note.txt" in error and "commit it" in error
    (world.layout.root / "note.txt").unlink()
    assert smith(world, "knowledge", "propose", "lost", "--control", "lost")[0] == 2
    branches = subprocess.run(["git", "branch"], cwd=world.layout.root, capture_output=True, text=True).stdout
    assert "knowledge/lost" not in branches


PADDED = b"""diff --git a/minikernels/csrc/cpu/int8_matvec.c b/minikernels/csrc/cpu/int8_matvec.c
--- a/minikernels/csrc/cpu/int8_matvec.c
+++ b/minikernels/csrc/cpu/int8_matvec.c
@@ -1,2 +1,3 @@
 /* a */
+#pragma omp parallel for
 /* b */
"""
