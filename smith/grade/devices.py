"""A bench on a device: for a GPU, one that holds an exclusive lease of it as long as it lives."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from smith.errors import Unavailable
from smith.freeze.bundle import Bundle, Store
from smith.gpus.base import Gpu, is_gpu
from smith.gpus.lease import WAIT_S, Leases, own_folder
from smith.gpus.machine import Machine
from smith.gpus.pinned import PinnedSandbox
from smith.grade.trial import Bench
from smith.harness.environment import TestEnvironment
from smith.harness.hardware import Unfit, look
from smith.harness.place import Place
from smith.harness.stage import Stage
from smith.records.hardware import UsedHardware
from smith.sandbox.base import Sandbox


@dataclass(frozen=True)
class Devices:
    """The devices of this machine, and how long to wait for one."""

    machine: Machine
    wait_s: float = WAIT_S
    folder: Callable[[], Path] = own_folder
    """Where leases lie."""
    say: Callable[[str], None] = lambda text: None
    """Told what is waited for, in whole lines."""
    _turns: dict[str, threading.Semaphore] = field(default_factory=dict, repr=False, compare=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    @contextlib.contextmanager
    def bench(
        self,
        store: Store,
        sandbox: Sandbox,
        device: str,
        *,
        purpose: str = "",
        step: Callable[[str], None] = lambda text: None,
    ) -> Iterator[Bench]:
        """A bench on ``device``. Raises :class:`Unavailable` where the machine lacks it, or it comes not free in time.

        One GPU is held all the while, also while a place is built: both sides of a comparison run on the same one.
        """
        if not is_gpu(device):
            yield Bench(store, sandbox, device)
            return
        gpus = self.require(device)
        leases = Leases(self.folder(), self.machine.occupants)

        def told(words: str) -> None:
            step(words)
            self.say(f"{purpose or device}: {words}")

        with (
            self._turn(gpus),
            leases.hold(gpus, purpose=purpose or device, wait_s=self.wait_s, step=told) as lease,
        ):
            look = functools.partial(self.machine.state, lease.gpu)
            yield Bench(store, PinnedSandbox(sandbox, lease, look, self.machine.root), lease.gpu.device)

    def require(self, device: str) -> tuple[Gpu, ...]:
        """The GPUs that ``device`` may be; none for a device that is no GPU. Raises :class:`Unavailable`."""
        found = self.machine.matching(device) if is_gpu(device) else None
        if found is not None and not found.gpus:
            raise Unavailable(f"{device}: {found.reason}", hint="smith doctor says what is here")
        return found.gpus if found is not None else ()

    def _turn(self, gpus: Sequence[Gpu]) -> threading.Semaphore:
        """Lets as many threads of this process on as there are cards; the others' time of waiting does not run.

        Else the bound, which is for other people's work, would refuse tasks of one run because of each other.
        """
        cards = len({gpu.card for gpu in gpus})
        with self._lock:
            return self._turns.setdefault(gpus[0].device, threading.Semaphore(cards))


def hardware_of(bench: Bench, bundle: Bundle, environment: TestEnvironment) -> UsedHardware | Unfit | None:
    """What a GPU bench stands on in this environment, or why its tests cannot run there; None for other devices."""
    if not is_gpu(bench.device):
        return None
    with Place.create(bench.store.layout.work) as place:
        return look(Stage(bench.sandbox, place, environment, bundle.recipe, bench.device))


def held_until_now(bench: Bench, hardware: UsedHardware) -> UsedHardware:
    """The same with the time that the lease has been held so far."""
    assert isinstance(bench.sandbox, PinnedSandbox)
    return hardware.model_copy(update={"held_ms": bench.sandbox.lease.held_ms})
