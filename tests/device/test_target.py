"""Device profiles."""

from __future__ import annotations

import pytest

from smith.device.interpreter import find_target
from smith.device.interpreter.target import TARGETS, UnknownTarget


@pytest.mark.parametrize("arch", sorted(TARGETS))
def test_a_profile_is_coherent(arch: str) -> None:
    target = find_target(arch)
    assert target.arch == arch
    assert target.backend == ("hip" if arch.startswith("gfx") else "cuda")
    assert target.warp_size == (64 if target.backend == "hip" else 32)
    assert target.triton_arch == (arch if target.backend == "hip" else int(arch.removeprefix("sm_")))


def test_an_unknown_target_names_the_known_ones() -> None:
    with pytest.raises(UnknownTarget, match="gfx942"):
        find_target("gfx0")
