"""What voids a timed block: other processes on the processors, or a clock that changed."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from smith.grade.disturbance import Watch


def machine(place: Path, *, busy_s: float, mhz: int) -> None:
    """Lay out the files that Linux has."""
    ticks = int(busy_s * os.sysconf("SC_CLK_TCK"))
    (place / "proc").mkdir(exist_ok=True)
    (place / "proc" / "stat").write_text(f"cpu  {ticks} 0 0 999 5 0 0 0 0 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n")
    for cpu in ("cpu0", "cpu1"):
        folder = place / "cpus" / cpu / "cpufreq"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "scaling_cur_freq").write_text(f"{mhz * 1000}\n")


def between(place: Path, *, busy_s: float, own_s: float, mhz: int) -> str | None:
    """What a watch of two processors says of ten seconds."""
    times, owns = iter([0.0, 10.0]), iter([0.0, own_s])
    machine(place, busy_s=100, mhz=2000)
    watch = Watch(
        proc=place / "proc", cpus=place / "cpus", now=lambda: next(times), own=lambda: next(owns), processors=2
    )
    before = watch.moment()
    machine(place, busy_s=100 + busy_s, mhz=mhz)
    return watch.disturbed(before, watch.moment())


def test_our_own_work_disturbs_nothing(tmp_path: Path) -> None:
    assert between(tmp_path, busy_s=10, own_s=9.5, mhz=2000) is None


def test_the_work_of_others_does(tmp_path: Path) -> None:
    assert between(tmp_path, busy_s=13, own_s=9.5, mhz=2000) == "other processes used 0.35 of 2 processors"


def test_a_clock_that_changed_does(tmp_path: Path) -> None:
    assert between(tmp_path, busy_s=10, own_s=9.5, mhz=1700) == "the processors' clock went from 2000 to 1700 MHz"


def test_where_nothing_is_known_nothing_is_said(tmp_path: Path) -> None:
    watch = Watch(proc=tmp_path / "none", cpus=tmp_path / "none")
    assert not watch.knows
    assert watch.disturbed(watch.moment(), watch.moment()) is None


def test_what_a_timed_process_says_it_took_is_our_own(tmp_path: Path) -> None:
    machine(tmp_path, busy_s=100, mhz=2000)
    times = iter([0.0, 10.0])
    watch = Watch(proc=tmp_path / "proc", cpus=tmp_path / "none", now=lambda: next(times), own=lambda: 0, processors=2)
    before = watch.moment()
    machine(tmp_path, busy_s=109, mhz=2000)
    watch.used(8.5)
    after = watch.moment()
    assert (before.own, after.own) == (0, 8.5)
    assert watch.disturbed(before, after) is None
    assert watch.disturbed(before, replace(after, own=0)) == "other processes used 0.90 of 2 processors"


def test_this_machine_is_read() -> None:
    watch = Watch()
    before = watch.moment()
    sum(range(20_000_000))
    after = watch.moment()
    assert after.own > before.own and after.wall > before.wall
    assert not watch.knows or after.busy >= before.busy > 0
