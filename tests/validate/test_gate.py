"""From answers to a report, what is remembered, and what a receipt says of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smith.errors import BadInput
from smith.records.compiled import CompiledLaunch, CompileFailure, KernelFacts, Launch, TargetReport
from smith.records.receipt import Receipt, Verdict
from smith.validate.compiled import CompiledBefore
from smith.validate.gate import not_proved, parse_targets, report, worst
from smith.validate.receipts import keep


def launch(symbol: str = "k", text: str = "1") -> Launch:
    argument = {"name": "N", "kind": "integer", "constant": True, "text": text}
    return Launch.model_validate(
        {"module": "m", "symbol": symbol, "path": "m.py", "line": 1, "arguments": (argument,), "grid": (3,)}
    )


def good(key: str = "a", **facts: int) -> CompiledLaunch:
    return CompiledLaunch(key=key, facts=KernelFacts(**facts))


def bad(code: CompileFailure, key: str = "") -> CompiledLaunch:
    return CompiledLaunch(failure=code, detail="why", key=key)


def of(
    reference: list[CompiledLaunch], base: list[CompiledLaunch] | None = None, symbols: str = "kkkk"
) -> TargetReport:
    base = base or []
    return report(
        {
            "reference": [launch(s, str(n)) for n, (s, _) in enumerate(zip(symbols, reference, strict=False))],
            "base": [launch(s, str(n)) for n, (s, _) in enumerate(zip(symbols, base, strict=False))],
        },
        {"reference": reference, "base": base},
        compiler="3.9.0",
        missed=0,
        note="",
    )


def test_the_verdict_is_about_the_reference() -> None:
    assert of([good(), good()]).verdict == "compiled"
    assert of([good()], [bad(CompileFailure.LANGUAGE)]).verdict == "compiled"
    assert of([good(), bad(CompileFailure.BACK_END)]).verdict == "failed"
    assert of([good(), bad(CompileFailure.NOT_FOUND)]).verdict == "not_compilable"
    assert of([bad(CompileFailure.NOT_FOUND), bad(CompileFailure.CRASHED)]).verdict == "failed"
    assert of([good(), bad(CompileFailure.TIMEOUT)]).verdict == "not_compilable"
    empty = of([], [good()])
    assert (empty.verdict, empty.reason) == ("not_compilable", "no launch of a kernel was captured")


@given(codes=st.lists(st.one_of(st.none(), st.sampled_from(list(CompileFailure))), max_size=6))
def test_no_launch_that_did_not_compile_hides(codes: list[CompileFailure | None]) -> None:
    found = of([good() if code is None else bad(code) for code in codes], symbols="kkllmm")
    assert found.launches == len(codes) and found.compiled == codes.count(None)
    assert (found.verdict == "compiled") == (bool(codes) and None is max(codes, key=lambda c: c is not None))
    assert sum(f.launches for f in found.failures) == len(codes) - codes.count(None)
    assert sum(k.launches for k in found.kernels) == len(codes)
    again = TargetReport.loads(found.dumps(), "a report")
    assert again == found


def test_sides_stand_beside_each_other() -> None:
    found = of(
        [good(vgpr=10, occupancy=8, lds_bytes=0), good(vgpr=40, occupancy=4, lds_bytes=64), good(vgpr=1)],
        [good(vgpr=90, occupancy=2)],
        symbols="kkl",
    )
    k, other = found.kernels
    assert (k.symbol, k.launches, k.vgpr, k.occupancy, k.lds_bytes) == ("m.py::k", 2, 40, 4, 64)
    assert k.baseline is not None and (k.baseline.vgpr, k.baseline.occupancy, k.baseline.lds_bytes) == (90, 2, None)
    assert other.baseline is None
    assert worst([]) == {}


def test_targets_are_checked_before_anything_runs() -> None:
    assert parse_targets("gfx942, gfx950,gfx942") == ("gfx942", "gfx950")
    assert parse_targets(None) == ()
    for wrong in ("gfx1", "gfx942;gfx950", "h100"):
        with pytest.raises(BadInput) as caught:
            parse_targets(wrong)
        assert "gfx950" in str(caught.value.hint)
    with pytest.raises(BadInput):
        parse_targets(",")


def test_what_lasts_is_remembered_by_upstream(tmp_path: Path) -> None:
    path = tmp_path / "compiled.db"
    mine, theirs = CompiledBefore(path, "o/mine"), CompiledBefore(path, "o/theirs")
    launches = [launch("a"), launch("b"), launch("c"), launch("d")]
    answers = [
        good("1", vgpr=7),
        bad(CompileFailure.BACK_END, "2"),
        bad(CompileFailure.TIMEOUT, "3"),
        bad(CompileFailure.NOT_FOUND),
    ]
    assert mine.complete(launches, {"gfx942": answers}) == {"gfx942": answers}
    assert mine.keys(launches, ["gfx942", "gfx950"]) == {"gfx942": ["1", "2"], "gfx950": []}
    assert mine.keys(launches[:1], ["gfx942"]) == {"gfx942": ["1"]}
    assert theirs.keys(launches, ["gfx942"]) == {"gfx942": []}
    known = CompiledLaunch(key="1", cached=True, seconds=0.01, dropped=("kpack",))
    (filled,) = mine.complete(launches[:1], {"gfx942": [known]})["gfx942"]
    assert filled == CompiledLaunch(key="1", facts=KernelFacts(vgpr=7), cached=True, seconds=0.01, dropped=("kpack",))
    (gone,) = theirs.complete(launches[:1], {"gfx942": [known]})["gfx942"]
    assert gone.failure is CompileFailure.NOT_TRIED


def test_what_is_not_proved_names_the_targets() -> None:
    assert not_proved({}) == ["that the kernels compile for a GPU, or are right on one"]
    words = not_proved(
        {
            "gfx942": of([good()]),
            "gfx950": of([good()]),
            "sm_90": of([good(), bad(CompileFailure.BACK_END)]),
            "sm_80": of([]),
        }
    )
    assert words[0] == "that the kernels compile for a GPU other than gfx942 and gfx950, or are right on one"
    assert "that the kernels compile for sm_90: 1 of 2 launches do not" in words
    assert "that the kernels compile for sm_80: no launch of a kernel was captured" in words


def receipt(**targets: TargetReport) -> Receipt:
    return Receipt(
        task="lab__tiny-7", tree="1" * 40, device="interpreter:gfx942", verdict=Verdict.VALID, targets=targets
    )


def test_a_receipt_without_targets_keeps_its_bytes_and_its_place(tmp_path: Path) -> None:
    assert b"targets" not in receipt().dumps()
    path = tmp_path / "interpreter-gfx942.json"
    keep(receipt(), path)
    keep(receipt(gfx942=of([good()])), path)
    before = path.read_bytes()
    assert b"targets" in before
    # Not to have asked, or to have asked for less, contradicts nothing.
    keep(receipt(), path)
    keep(receipt(gfx942=of([good()])), path)
    assert path.read_bytes() == before
    keep(receipt(gfx942=of([bad(CompileFailure.BACK_END)])), path)
    assert path.read_bytes() != before


def test_a_launch_is_another_where_its_code_may_be() -> None:
    assert launch("k", "1").key == launch("k", "1").model_copy(update={"grid": (9, 9)}).key
    assert launch("k", "1").key != launch("k", "2").key
    assert launch("k").key != launch("l").key
