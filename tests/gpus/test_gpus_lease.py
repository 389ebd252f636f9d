"""Leases between real processes that are really killed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from lease_holder import gpu

from smith.errors import Unavailable
from smith.gpus.base import Occupant
from smith.gpus.lease import DeviceBusy, Leases, own_folder

HOLDER = Path(__file__).with_name("lease_holder.py")
A, B = "0000:0c:00", "0000:20:00"


def start(folder: Path, cards: str, wait_s: float, hold_s: float, log: Path | None = None) -> subprocess.Popen[str]:
    argv = [sys.executable, str(HOLDER), str(folder), cards, str(wait_s), str(hold_s), *([str(log)] if log else [])]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def leases(folder: Path, *occupants: Occupant) -> Leases:
    return Leases(folder, lambda gpu: occupants)


def test_one_at_a_time_and_the_next_one_takes_the_other(tmp_path: Path) -> None:
    first = start(tmp_path, f"{A},{B}", 0, 60)
    assert said(first) == f"held {A}"
    second = start(tmp_path, f"{A},{B}", 0, 60)
    assert said(second) == f"held {B}"
    third = start(tmp_path, f"{A},{B}", 0.3, 0)
    refusal = said(third)
    assert refusal.startswith(f"refused: no GPU came free within 0.3 s: AMD Instinct MI300X (gfx942, {A}) is held by")
    assert f"smith process {first.pid} (a test)" in refusal and f"smith process {second.pid}" in refusal
    for process in (first, second, third):
        process.kill()
        process.wait()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_holder_gives_back_at_once(tmp_path: Path, how: int) -> None:
    holder = start(tmp_path, A, 0, 600)
    assert said(holder) == f"held {A}"
    waiter = start(tmp_path, A, 30, 0)
    time.sleep(0.4)
    began = time.monotonic()
    holder.send_signal(how)
    holder.wait()
    assert said(waiter) == f"held {A}"
    assert time.monotonic() - began < 5
    assert waiter.wait() == 0


def test_a_child_of_a_killed_holder_does_not_keep_the_lease(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys, time; sys.path.insert(0, sys.argv[2]); from lease_holder import gpu; "
        "from pathlib import Path; from smith.gpus.lease import Leases\n"
        "with Leases(Path(sys.argv[1]), lambda g: ()).hold([gpu(sys.argv[3])], purpose='x'):\n"
        "    child = subprocess.Popen(['sleep', '60']); print(child.pid, flush=True); time.sleep(60)\n"
    )
    argv = [sys.executable, "-c", code, str(tmp_path), str(HOLDER.parent), A]
    holder = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    child = int(said(holder))
    holder.kill()
    holder.wait()
    try:
        os.kill(child, 0)  # it lives on, and has nothing of the lease
        with leases(tmp_path).hold([gpu(A)], purpose="test", wait_s=0) as lease:
            assert lease.gpu.card == A
    finally:
        os.kill(child, signal.SIGKILL)


def test_never_two_holders_whoever_is_killed_when(tmp_path: Path) -> None:
    """Twelve processes want two GPUs for twenty milliseconds each, many times, while random ones are killed."""
    log, rounds, generator = tmp_path / "log", 4, random.Random(7)
    for _ in range(rounds):
        alive = [start(tmp_path, f"{A},{B}", 60, 0.02, log) for _ in range(6)]
        for process in generator.sample(alive, 2):
            time.sleep(generator.random() * 0.4)
            process.kill()
        for process in alive:
            process.communicate(timeout=90)
    holding: dict[str, int] = {A: 0, B: 0}
    for word in log.read_text().split():
        if word.startswith("+"):
            # A killed holder never says that it gave back; the next one's plus is then the proof that it did.
            holding[word[1:]] = 1
        else:
            assert holding[word[1:]] == 1, "given back by one that another had already succeeded"
            holding[word[1:]] = 0
    assert log.read_text().count("+") >= rounds * 4


def test_threads_of_one_process_exclude_each_other_too(tmp_path: Path) -> None:
    inside, most, lock = 0, 0, threading.Lock()

    def work() -> None:
        nonlocal inside, most
        with leases(tmp_path).hold([gpu(A)], purpose="thread", wait_s=30):
            with lock:
                inside += 1
                most = max(most, inside)
            time.sleep(0.05)
            with lock:
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1


def test_foreign_processes_are_waited_for_and_then_named(tmp_path: Path) -> None:
    told: list[str] = []
    train = Occupant(4711, "train.py", 1 << 30)
    with (
        pytest.raises(DeviceBusy, match=r"within 0\.3 s: .* is in use by process 4711 \(train\.py\)") as caught,
        leases(tmp_path, train).hold([gpu(A)], purpose="x", wait_s=0.3, step=told.append),
    ):
        raise AssertionError("given although in use")
    assert caught.value.exit_code == 2
    assert told and told[0].startswith("waiting for a GPU for 0 s: ")
    here = [train]
    patient = Leases(tmp_path, lambda gpu: tuple(here), sleep=lambda seconds: here.clear())
    with patient.hold([gpu(A)], purpose="x", wait_s=10) as lease:
        assert lease.gpu.card == A


def test_partitions_of_a_card_are_one(tmp_path: Path) -> None:
    holder = start(tmp_path, A, 0, 60)
    assert said(holder) == f"held {A}"
    partition = gpu(A)
    with pytest.raises(DeviceBusy), leases(tmp_path).hold([partition], purpose="x", wait_s=0):
        pass
    holder.kill()
    holder.wait()


def test_how_long_it_was_held_is_told_in_whole_milliseconds(tmp_path: Path) -> None:
    now = [100.0]
    timed = Leases(tmp_path, lambda gpu: (), clock=lambda: now[0])
    with timed.hold([gpu(A)], purpose="x") as lease:
        now[0] += 1.2341
        assert lease.held_ms == 1235
        now[0] += 1
    now[0] += 50
    assert (lease.held_ms, lease.waited_ms) == (2235, 0)


def test_a_cleaned_folder_is_filled_again(tmp_path: Path) -> None:
    """A cleaner of temporary files may remove a lease that nobody holds."""
    with leases(tmp_path).hold([gpu(A)], purpose="first"):
        (file,) = tmp_path.iterdir()
    file.unlink()
    with leases(tmp_path).hold([gpu(A)], purpose="second"):
        (again,) = tmp_path.iterdir()
        assert again == file
        with pytest.raises(DeviceBusy), leases(tmp_path).hold([gpu(A)], purpose="third", wait_s=0):
            pass


def test_the_folder_is_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SMITH_LEASES", raising=False)
    for name in ("TMPDIR", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    assert own_folder() == Path(f"/tmp/smith-{os.getuid()}-leases")
    assert own_folder().stat().st_mode & 0o777 == 0o700
    monkeypatch.setenv("SMITH_LEASES", str(tmp_path / "absent"))
    with pytest.raises(Unavailable, match="no such folder"):
        own_folder()
    monkeypatch.setenv("SMITH_LEASES", str(tmp_path))
    assert own_folder() == tmp_path
