"""What a program sees of the GPUs of a machine when one was leased for it. The device nodes are stand-ins."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from gpu_recordings import NVIDIA, amd_machine, machine, nvidia_machine

from smith.errors import Unavailable
from smith.gpus.base import Gpu, GpuState
from smith.gpus.lease import Leases
from smith.gpus.machine import Machine
from smith.gpus.pinned import PinnedSandbox
from smith.sandbox import Bind, Command, Ended, Limits, Sandbox
from smith.sandbox.bubblewrap import Bubblewrap, may_mount
from smith.sandbox.host import Host
from smith.sandbox.limits import prefix


class Recorder:
    """A sandbox that only notes what it is to run."""

    name = "recorder"

    def __init__(self, remaps: bool) -> None:
        self.remaps = remaps
        self.command: Command | None = None

    def check(self) -> str | None:
        return None

    def run(self, command: Command) -> Ended:
        self.command = command
        raise Unavailable("it runs nothing")


@pytest.fixture
def amd(tmp_path: Path) -> Machine:
    return machine(amd_machine(tmp_path / "amd"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "leases").mkdir()
    return tmp_path / "leases"


def pinned(sandbox: Sandbox, gpu: Gpu, folder: Path, root: Path) -> Iterator[PinnedSandbox]:
    with Leases(folder, lambda gpu: ()).hold([gpu], purpose="test") as lease:
        yield PinnedSandbox(sandbox, lease, GpuState, root)


def command_of(gpu: Gpu, folder: Path, root: Path, env: Mapping[str, str], remaps: bool = True) -> Command:
    recorder = Recorder(remaps)
    for sandbox in pinned(recorder, gpu, folder, root):
        with pytest.raises(Unavailable, match="runs nothing"):
            sandbox.run(Command(["true"], "/", Limits(wall_s=1), env=env))
    assert recorder.command is not None
    return recorder.command


def test_one_gpu_is_named_and_a_recipe_cannot_name_others(amd: Machine, folder: Path) -> None:
    gpu = amd.inventory("rocm").gpus[1]
    meddling = {
        "PATH": "/usr/bin",
        "HIP_VISIBLE_DEVICES": "0,1",
        "CUDA_VISIBLE_DEVICES": "0",
        "ROCR_VISIBLE_DEVICES": "0,1",
        "GPU_DEVICE_ORDINAL": "0",
        "HSA_OVERRIDE_GFX_VERSION": "9.5.0",
        "TRITON_INTERPRET": "1",
        "OTHER": "kept",
    }
    command = command_of(gpu, folder, amd.root, meddling)
    assert command.env == {
        "PATH": "/usr/bin:/opt/rocm/bin",
        "OTHER": "kept",
        "ROCM_PATH": "/opt/rocm",
        "ROCR_VISIBLE_DEVICES": "GPU-91a80c4d5e6f7081",
    }


def test_only_its_own_nodes_are_shown(amd: Machine, folder: Path) -> None:
    gpu = amd.inventory("rocm").gpus[1]
    shown = {bind.target: bind for bind in command_of(gpu, folder, amd.root, {}).binds}
    nodes = [target for target in shown if target.startswith("/dev/")]
    assert nodes == ["/dev/kfd", "/dev/dri/renderD136"]
    assert {"/opt/rocm", "/opt/rocm-6.4.0", "/sys/class/kfd", "/sys/devices/pci0000:00/0000:20:00.0"} <= set(shown)
    assert not any("0000:0c:00.0" in target for target in shown)
    assert not any(bind.writable for bind in shown.values())


def test_a_gpu_without_a_serial_number_is_pinned_by_its_place(amd: Machine, folder: Path) -> None:
    gpu = dataclasses.replace(amd.inventory("rocm").gpus[1], uuid="")
    # Where the others' nodes are hidden the runtime counts from 0; where they are not, in its own order.
    assert command_of(gpu, folder, amd.root, {}).env["ROCR_VISIBLE_DEVICES"] == "0"
    assert command_of(gpu, folder, amd.root, {}, remaps=False).env["ROCR_VISIBLE_DEVICES"] == "1"


def test_an_nvidia_gpu_is_pinned_by_its_uuid(tmp_path: Path, folder: Path) -> None:
    here = machine(nvidia_machine(tmp_path / "nvidia"), NVIDIA)
    command = command_of(here.inventory("cuda").gpus[0], folder, here.root, {"CUDA_VISIBLE_DEVICES": "1"})
    assert command.env == {
        "CUDA_VISIBLE_DEVICES": "GPU-8f6b0c9e-3a51-4b6e-9a27-0d6d6f1c2b3a",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
    }
    assert [bind.target for bind in command.binds] == ["/dev/nvidia1", "/dev/nvidiactl", "/dev/nvidia-uvm"]


def test_no_process_is_limited_in_what_it_maps(amd: Machine, folder: Path) -> None:
    limits = command_of(amd.inventory("rocm").gpus[0], folder, amd.root, {}).limits
    words = prefix(limits)
    assert not any(word.startswith(("--data", "--as")) for word in words)
    assert any(word.startswith("--data") for word in prefix(Limits(wall_s=1)))
    assert limits.memory_bytes == Limits(wall_s=1).memory_bytes  # the watcher's bound for the whole tree stays


@pytest.fixture(params=["own-id", "user-namespace"])
def bubblewrap(request: pytest.FixtureRequest) -> Sandbox:
    as_root = request.param == "own-id"
    if as_root and not may_mount():
        pytest.skip("becoming a fresh user id needs a root that may mount")
    sandbox = Bubblewrap(may_mount=lambda: as_root)
    if reason := sandbox.check():
        pytest.skip(f"bubblewrap ({request.param}) cannot work here: {reason}")
    return sandbox


def test_the_real_sandbox_shows_one_gpu(amd: Machine, folder: Path, bubblewrap: Sandbox) -> None:
    script = (
        "ls /dev /dev/dri; cat /sys/class/kfd/kfd/topology/nodes/2/gpu_id /sys/module/amdgpu/version; "
        "echo > /dev/kfd && cat < /dev/dri/renderD136 && echo opened; cat /opt/rocm/.info/version; "
        "ls /sys/bus/pci/devices/0000:0c:00.0/ 2>&1; cat /sys/bus/pci/devices/0000:20:00.0/gpu_busy_percent; "
        "touch /opt/rocm/x 2>&1; echo $ROCR_VISIBLE_DEVICES; ulimit -d; ulimit -v"
    )
    for sandbox in pinned(bubblewrap, amd.inventory("rocm").gpus[1], folder, amd.root):
        ended = sandbox.run(Command(["sh", "-c", script], "/", Limits(wall_s=30)))
    lines = ended.stdout.text.split("\n")
    assert "kfd" in lines and "renderD136" in lines and "renderD128" not in lines
    after = lines[lines.index("renderD136") + 1 :]
    assert after[:4] == ["61002", "6.12.12", "opened", "6.4.0-47"]
    assert "No such file" in after[4] and after[5] == "0" and "Read-only" in after[6]
    assert after[7:10] == ["GPU-91a80c4d5e6f7081", "unlimited", "unlimited"]


def test_a_group_of_its_own_may_use_a_node(amd: Machine, folder: Path) -> None:
    """As distributions set it up: root:render, 0660. The fresh user id of a real root is in that group only."""
    if not may_mount():
        pytest.skip("becoming a fresh user id needs a root that may mount")
    if reason := Bubblewrap().check():
        pytest.skip(f"bubblewrap cannot work here: {reason}")
    for path in (amd.root / "dev/kfd", amd.root / "dev/dri/renderD128"):
        os.chown(path, 0, 4242)
        path.chmod(0o660)
    for sandbox in pinned(Bubblewrap(), amd.inventory("rocm").gpus[0], folder, amd.root):
        ended = sandbox.run(Command(["sh", "-c", "echo > /dev/kfd && id -G"], "/", Limits(wall_s=30)))
        assert ended.ok, ended.stderr.text
        assert ended.stdout.text.split()[1:] == ["4242"]
        os.chown(amd.root / "dev/kfd", 0, 0)
        with pytest.raises(Unavailable, match="/dev/kfd: only root may open it"):
            sandbox.run(Command(["true"], "/", Limits(wall_s=30)))


def test_a_node_that_went_away_is_said(amd: Machine, folder: Path) -> None:
    if reason := Bubblewrap().check():
        pytest.skip(f"bubblewrap cannot work here: {reason}")
    gpu = amd.inventory("rocm").gpus[0]
    (amd.root / "dev/dri/renderD128").unlink()
    for sandbox in pinned(Bubblewrap(), gpu, folder, amd.root):
        with pytest.raises(Unavailable, match="renderD128: cannot be shown"):
            sandbox.run(Command(["true"], "/", Limits(wall_s=30)))


def test_without_a_sandbox_the_variable_alone_pins(amd: Machine, folder: Path, tmp_path: Path) -> None:
    for sandbox in pinned(Host(), amd.inventory("rocm").gpus[0], folder, amd.root):
        command = Command(
            ["sh", "-c", "echo $ROCR_VISIBLE_DEVICES; ulimit -d"], str(tmp_path), Limits(wall_s=30),
            binds=[Bind(tmp_path, str(tmp_path))],
        )  # fmt: skip
        assert sandbox.run(command).stdout.text.split() == ["GPU-4b2c9a6f00d1e2f3", "unlimited"]
