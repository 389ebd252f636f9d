"""One task from choice to receipt on a GPU. The GPU and its torch are stand-ins; leases and sandbox are real."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from smith.cli.validate import validate_all
from smith.environment.layers import LayeredEnvironment, build
from smith.freeze.bundle import Bundle, Store
from smith.freeze.panels import receipts_of
from smith.git.objects import TreeEntry, write_blob, write_tree
from smith.git.patches import diff
from smith.git.sources import keep
from smith.git.trees import overlay
from smith.gpus.lease import DeviceBusy
from smith.grade.devices import Devices
from smith.grade.grader import grade
from smith.parallel import each
from smith.records.candidate import KernelChange, Kind
from smith.records.grade import GradeVerdict
from smith.records.receipt import Answer, Arm, Receipt, Verdict
from smith.records.recipe import EnvironmentChoice, Recipe
from smith.records.task import Metadata, Selection, SmithMetadata, Source, TaskFile, TaskName
from smith.sandbox import make
from smith.validate.validate import Validation
from smith.verdict.recheck import recheck
from tests.gpus.gpu_recordings import ROCMINFO, amd_machine, machine, occupy

TASK = "lab__tiny-7"
TEST = """
import os
from tiny.scale import scale

def test_scale():
    assert scale(3) == 6

def test_zero():
    assert scale(0) == 0
    assert os.environ["SMITH_DEVICE"] == "rocm:gfx942"
"""
# What `torch` of a ROCm machine answers; it sees as many GPUs as the runtime's variable leaves.
TORCH = """
import os
import time
from types import SimpleNamespace as Made

__version__ = "2.9.0+rocm6.4"
version = Made(hip="6.4.43482", cuda=None)
seen = ["GPU-4b2c9a6f00d1e2f3", "GPU-91a80c4d5e6f7081"]
seen = [one for one in seen if one in os.environ.get("ROCR_VISIBLE_DEVICES", ",".join(seen))]
properties = Made(name="AMD Instinct MI300X", gcnArchName="gfx942:sramecc+:xnack-", major=9, minor=4)
uint8 = "uint8"


class Event:
    def __init__(self, enable_timing):
        self.at = 0.0

    def record(self):
        self.at = time.perf_counter()

    def elapsed_time(self, other):
        return (other.at - self.at) * 1e3


class Tensor:
    def zero_(self):
        time.sleep(0.0002)


cuda = Made(
    device_count=lambda: len(seen), get_device_properties=lambda index: properties, Event=Event,
    synchronize=lambda: None, mem_get_info=lambda: (1 << 34, 1 << 35),
)


def empty(count, dtype, device):
    return Tensor()


def manual_seed(seed):
    pass


def ones(count, device):
    return Made(sum=lambda: Made(item=lambda: float(count)))
"""


def tree_of(store: Store, files: dict[str, str]) -> str:
    blobs = [(name, write_blob(store.scratch, text.encode())) for name, text in files.items()]
    return write_tree(store.scratch, [TreeEntry("100644", "blob", oid, name.encode()) for name, oid in blobs])


FIXED = "def scale(x):\n    return 2 * x\n"


@pytest.fixture
def bundle(store: Store) -> Bundle:
    return written(store, "def scale(x):\n    return x\n")


def written(store: Store, text: str, kind: Kind = Kind.FIX, workloads: Mapping[str, bytes] | None = None) -> Bundle:
    """The task whose start is ``text``."""
    base = tree_of(store, {"tiny/__init__.py": "", "tiny/scale.py": text})
    fixed = overlay(store.scratch, base, tree_of(store, {"tiny/scale.py": FIXED}))
    hidden = tree_of(store, {"tests/test_scale.py": TEST})
    for tree in (base, hidden):
        keep(store.data, store.scratch, tree)
    source = Source(
        repo="lab/tiny", url="local:lab/tiny", pr=7, base="2" * 40, base_tree=base, tree=base, merged="3" * 40,
        merged_at="2025-01-01T00:00:00+00:00",
    )  # fmt: skip
    spec = SmithMetadata(
        id=TASK, kind=kind, languages=("hip",), devices=("rocm",), source=source,
        kernels=(KernelChange(path="tiny/scale.py", language="hip"),), editable=("tiny/**",),
    )  # fmt: skip
    selection = Selection(
        tree=hidden, roots=("tests",), files=("tests/test_scale.py",), workloads=tuple(workloads or ())
    )  # fmt: skip
    placed = {
        **{f"tests/workloads/{name}": data for name, data in (workloads or {}).items()},
        "task.toml": TaskFile(task=TaskName(name=f"smith/{TASK}"), metadata=Metadata(smith=spec)).dumps_toml(),
        "instruction.md": b"scale(x) must give twice x.\n",
        "environment/recipe.toml": Recipe(repo="lab/tiny", environments=(EnvironmentChoice(name="own"),)).dumps_toml(),
        "solution/reference.patch": diff(store.scratch, base, fixed),
        "solution/solve.sh": b"#!/bin/sh\n",
        "tests/selection.json": selection.dumps(),
        "tests/test.sh": b"#!/bin/sh\n",
    }
    for name, data in placed.items():
        path = store.layout.task(TASK) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return store.load(TASK)


@pytest.fixture
def devices(tmp_path: Path) -> Devices:
    (tmp_path / "leases").mkdir()
    here = machine(amd_machine(tmp_path / "machine"), {"rocminfo": ROCMINFO})
    return Devices(here, 0.0, lambda: tmp_path / "leases")


@pytest.fixture
def rocm_environment(store: Store, tmp_path: Path) -> Callable[[EnvironmentChoice], LayeredEnvironment]:
    """The own environment with a torch in front that answers as a ROCm build does."""
    folder = tmp_path / "rocm-torch"
    (folder / "torch").mkdir(parents=True)
    (folder / "torch" / "__init__.py").write_text(TORCH)

    def builder(choice: EnvironmentChoice) -> LayeredEnvironment:
        own = build(choice, store.layout.environments)
        return replace(own, binds=(*own.binds, folder), env={**own.env, "PYTHONPATH": str(folder)})

    return builder


def test_from_a_lease_to_a_receipt_and_a_grade(
    store: Store,
    bundle: Bundle,
    devices: Devices,
    rocm_environment: Callable[[EnvironmentChoice], LayeredEnvironment],
    sandbox_name: str,
) -> None:
    with devices.bench(store, make(sandbox_name), "rocm", purpose="first") as bench:
        assert bench.device == "rocm:gfx942"
        receipt = Validation(bundle, bench, repeats=2, builder=rocm_environment).receipt()
        # While it lasts the other card is given, and then none.
        other = Devices(devices.machine, 0.0, devices.folder)
        with (
            devices.bench(store, make(sandbox_name), "rocm", purpose="second"),
            pytest.raises(DeviceBusy, match=r"\(first\).*\(second\)"),
            other.bench(store, make(sandbox_name), "rocm"),
        ):
            pass
    assert receipt.verdict is Verdict.VALID, receipt.reasons
    assert receipt.fail_to_pass == ("tests/test_scale.py::test_scale",)
    assert receipt.device == "rocm:gfx942"
    found = receipt.hardware
    assert found is not None
    assert (found.name, found.torch_toolkit, found.driver) == (
        "AMD Instinct MI300X",
        "hip 6.4.43482",
        "amdgpu 6.12.12",
    )
    assert 0 < found.held_ms < 600_000
    assert any("calls are not counted on this device" in one for one in receipt.not_proved)

    path = store.layout.receipt(TASK, bundle.tree, receipt.device)
    receipt.save(path)
    assert path.name == "rocm-gfx942.json"
    assert Receipt.load(path).hardware == found
    (stored,) = receipts_of(store.layout, TASK, bundle.tree)
    environment = rocm_environment(EnvironmentChoice(name="own"))
    with devices.bench(store, make(sandbox_name), receipt.device) as bench:
        solved = grade(bundle, bundle.reference, stored, bench, environment)
        assert solved.verdict is GradeVerdict.SOLVED
        # A machine whose torch has lost the GPU fails nobody's submission.
        lost = grade(bundle, bundle.reference, stored, bench, build(EnvironmentChoice(name="own"), path.parent / "e"))
    assert lost.verdict is GradeVerdict.INFRA
    assert "is built without HIP" in str(lost.reasons[0])


def test_speed_is_measured_by_events_of_the_device(
    store: Store,
    devices: Devices,
    rocm_environment: Callable[[EnvironmentChoice], LayeredEnvironment],
    sandbox_name: str,
) -> None:
    """Leg by leg in the sandbox, with torch's events (those of a stand-in); what the card did is watched."""
    slow = "import time\n\n\n" + FIXED.replace("return", "time.sleep(0.02)\n    return")
    cases = (
        b"import random\n\nfrom tiny.scale import scale\n\n\ndef case():\n    x = random.randrange(99)\n"
        b"    return lambda: scale(x)\n\n\ndef cases():\n    return [('twice', case)]\n"
    )
    timed = written(store, slow, Kind.PERF, {"twice.py": cases})
    (store.layout.root / "smith.toml").write_text("schema_version = 1\n\n[timing]\nforeign = 1.0\n")
    with devices.bench(store, make(sandbox_name), "rocm") as bench:
        receipt = Validation(timed, bench, repeats=1, builder=rocm_environment).receipt()
    assert (receipt.verdict, receipt.device) == (Verdict.VALID, "rocm:gfx942"), receipt.reasons
    timing = receipt.timing
    assert timing is not None and timing.answer is Answer.FASTER and timing.low > 10
    assert "events of the device around each call" in timing.method
    assert "flushed before every timed call" in timing.method
    assert "one after the other" in timing.method
    assert recheck(receipt) == []


def test_the_command_refuses_in_exact_words_and_keeps_what_was_found(
    store: Store, bundle: Bundle, devices: Devices, sandbox_name: str
) -> None:
    def validate() -> Receipt:
        (receipt,) = validate_all(
            store, [TASK], device="auto", repeats=1, jobs=1, sandbox=sandbox_name, devices=devices
        )
        return receipt

    path = store.layout.receipt(TASK, bundle.tree, "rocm:gfx942")
    unfit = validate()
    assert unfit.verdict is Verdict.UNRESOLVABLE and unfit.reasons[0].code == "needs_device"
    assert "is built without HIP" in unfit.reasons[0].detail
    assert b"hardware" not in path.read_bytes()

    for gpu_id in (45412, 61002):
        occupy(devices.machine.root, 4713, gpu_id, 1 << 30, "train")
    busy = validate()
    assert "in use by process 4713 (train)" in busy.reasons[0].detail
    assert busy.reasons[0].code == "needs_device"

    ran = Arm(arm="nop", repeat=1, passed=0, failed=1, other=0, seconds=1.0)
    unfit.model_copy(update={"verdict": Verdict.VALID, "reasons": (), "arms": (ran,)}).save(path)
    before = path.read_bytes()
    assert validate().verdict is Verdict.UNRESOLVABLE
    assert path.read_bytes() == before


def test_tasks_of_one_run_wait_for_each_other_without_a_bound(store: Store, devices: Devices) -> None:
    """Two cards, five tasks at a time, and no patience with others: none of the five is refused."""

    def work(number: int) -> str:
        with devices.bench(store, make("host"), "rocm", purpose=str(number)) as bench:
            time.sleep(0.1)
            return bench.device

    done = dict(each(work, range(5), 5))
    assert done == dict.fromkeys(range(5), "rocm:gfx942")


def test_doctor_lists_gpus_and_says_what_was_never_run() -> None:
    argv = [sys.executable, "-m", "smith.cli.main", "doctor"]
    said = json.loads(subprocess.run([*argv, "--json"], capture_output=True, text=True, check=True).stdout)
    assert [fact["name"] for fact in said["facts"]][3:5] == ["rocm", "cuda"]
    assert isinstance(said["gpus"], list)
    text = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    assert "rocm: written against the documented interfaces; never run on an AMD GPU by us" in text
