"""What runs beside the tests on a GPU, as far as no GPU is needed (see also tests/harness/test_harness_gpu.py)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from smith.device.native.plugin import opened

REFERS = """
import triton
from smith.device.native.launches import key_of, referred

@triton.jit
def leaf(x): return x

@triton.jit
def middle(x): return leaf(x)

@triton.jit
def around(x): return again(x)

@triton.jit
def again(x): return around(x)

def make(helper):
    @triton.jit
    def kernel(x): return helper(x) + middle(x)
    return kernel

print(*sorted(key_of(k.fn).partition("::")[2] for k in referred(make(leaf))))
print(*sorted(key_of(k.fn).partition("::")[2] for k in referred(around)))
"""


def test_a_runtime_that_an_import_woke_is_seen(tmp_path: Path) -> None:
    (tmp_path / "3").symlink_to("/dev/null")
    (tmp_path / "4").symlink_to("/dev/dri/renderD128")  # tools that only look open these
    (tmp_path / "5").write_text("no link at all")
    assert opened(str(tmp_path)) is None
    (tmp_path / "6").symlink_to("/dev/kfd")
    assert opened(str(tmp_path)) == "/dev/kfd"


def test_what_a_kernel_refers_to(tmp_path: Path) -> None:
    """Through closures, through others, and in circles; the file must exist, since Triton reads it."""
    (tmp_path / "refers.py").write_text(REFERS)
    done = subprocess.run([sys.executable, "refers.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["leaf middle", "again"]


def test_torch_of_this_machine_says_what_it_is() -> None:
    done = subprocess.run([sys.executable, "-m", "smith.inside.say_device"], capture_output=True, text=True, check=True)
    said = json.loads(done.stdout)
    assert said["torch"] and said["triton"]
    assert len(said["gpus"]) == 0 or said["hip"] or said["cuda"]
