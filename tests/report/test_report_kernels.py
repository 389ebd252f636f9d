"""What submissions compile to, beside base and reference: on the page, in JSON, and nowhere unless asked for."""

from __future__ import annotations

import json
from html import unescape
from pathlib import Path

from drawn_runs import draw, pins, sample_data
from test_compared_runs import smith
from test_report_forms import parsed as well_formed

from smith.evaluate.run import attempt_folder
from smith.freeze.bundle import Store
from smith.freeze.panels import load_receipt
from smith.records.attempt import RunConfig
from smith.records.compiled import FailedLaunches, KernelReport, SideFacts, TargetReport
from smith.records.grade import Grade, GradeVerdict
from smith.records.panel import PanelTask
from smith.report.html.page import render
from smith.report.kernels import compared
from smith.report.run_report import read

KERNEL = "ops/norm.py::_norm<script>"


def of(symbol: str, vgpr: int, baseline: int | None = None, **more: object) -> TargetReport:
    facts = {"vgpr": vgpr, "occupancy": 8, "launches": 3, "vgpr_spills": 0}
    before = SideFacts(vgpr=baseline, occupancy=4, launches=3, vgpr_spills=0) if baseline is not None else None
    kernel = KernelReport.model_validate({"symbol": symbol, "baseline": before, **facts})
    return TargetReport.model_validate(
        {"verdict": "compiled", "launches": 3, "compiled": 3, "kernels": (kernel,), **more}
    )


def with_targets(store: Store, pinned: PanelTask, found: dict[str, TargetReport]) -> PanelTask:
    """The pin of the same task with a receipt that knows targets."""
    device = next(iter(pinned.receipts))
    path = store.layout.receipt(pinned.id, pinned.tree, device)
    load_receipt(path, pinned.id, pinned.tree).receipt.model_copy(update={"targets": found}).save(path)
    blob = load_receipt(path, pinned.id, pinned.tree).blob
    return pinned.model_copy(update={"receipts": {device: blob}})


def drawn(store: Store, name: str, pinned: PanelTask, *submitted: dict[str, TargetReport]) -> RunConfig:
    config = draw(store.layout, name, lambda *_: (GradeVerdict.SOLVED, None), tasks=(pinned,), attempts=len(submitted))
    for number, targets in enumerate(submitted, start=1):
        path = attempt_folder(store.layout, name, pinned.id, number) / "grade.json"
        Grade.load(path).model_copy(update={"targets": targets}).save(path)
    return config


def test_base_reference_and_submissions_stand_side_by_side() -> None:
    columns, rows = compared(
        of("k", 40, baseline=30), [("submission #1", of("k", 50)), ("submission #2", of("other", 60))]
    )
    assert columns == ["kernel", "side", "launches", "VGPR", "occupancy"]  # spills are nothing anywhere
    assert [row[:2] + row[3:] for row in rows] == [
        ["k", "baseline", "30", "4"],
        ["k", "reference", "40", "8"],
        ["k", "submission #1", "50", "8"],
        ["other", "submission #2", "60", "8"],
    ]
    assert compared(None, []) == (["kernel", "side"], [])


def test_page_and_json_show_what_a_submission_compiles_to(tmp_path: Path) -> None:
    store = sample_data(tmp_path / "data")
    failure = FailedLaunches(side="submission", symbol=KERNEL, code="language", detail="<b>no</b>", launches=1)
    failed = of(KERNEL, 55, verdict="failed", failures=(failure,))
    pinned = with_targets(store, pins()[0], {"gfx942": of(KERNEL, 46, baseline=36)})
    config = drawn(store, "compiled", pinned, {"gfx942": of(KERNEL, 47), "sm_90": of(KERNEL, 32)}, {"gfx942": failed})
    page = render(store.layout, config, read(store.layout, config))
    assert not {tag for tag, _ in well_formed(page).tags} & {"script", "b>no"}
    text = unescape(page)
    assert "gfx942: reference compiled, submission #1 compiled, submission #2 failed" in text
    assert "sm_90: submission #1 compiled" in text
    for figure in (36, 46, 47, 55, 32):
        assert f'<td class="n">{figure}</td>' in page
    document = json.loads(smith(store, "report", "compiled", "--json"))
    first, second = document["attempts"]
    assert first["targets"]["sm_90"]["kernels"][0]["vgpr"] == 32
    assert second["targets"]["gfx942"]["failures"][0]["side"] == "submission"


def test_what_was_not_asked_for_is_in_no_file(tmp_path: Path) -> None:
    store = sample_data(tmp_path / "data")
    config = draw(store.layout, "plain", lambda *_: (GradeVerdict.SOLVED, None), tasks=pins()[:1])
    grade = attempt_folder(store.layout, "plain", pins()[0].id, 1) / "grade.json"
    assert b"targets" not in grade.read_bytes() and b"targets" not in config.dumps()
    assert Grade.load(grade).dumps() == grade.read_bytes()
    assert "targets" not in smith(store, "report", "plain", "--json")
    page = render(store.layout, config, read(store.layout, config))
    assert "gfx942: reference compiled<" in page and "A submission" not in page
