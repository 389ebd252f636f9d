"""Every planted fault is found, at its line and nowhere else."""

from __future__ import annotations

import inspect

import planted
import pytest

from smith.device.interpreter import sanitizer
from smith.device.interpreter.sanitizer.report import INFORMATION

sanitizer.install()


@pytest.mark.parametrize("name", sorted(planted.PLANTED))
def test_planted(name: str) -> None:
    kind, run, kernel, function = planted.PLANTED[name]
    sanitizer.take()
    run()
    found = [each for each in sanitizer.take() if each["kind"] not in INFORMATION]
    assert [each["kind"] for each in found] == [kind], found
    (one,) = found
    lines, first = inspect.getsourcelines(getattr(planted, function).fn)
    (marked,) = (number for number, text in enumerate(lines, first) if "# here" in text)
    assert one["line"] == marked
    assert one["operation"] == lines[marked - first].split("# here: ")[1].strip()
    assert one["path"] == planted.__file__
    assert one["kernel"].rpartition("::")[2] == kernel
    assert one["function"].rpartition("::")[2] == function
    assert one["argument"].endswith("_ptr")
    assert (one["other"] is not None) is (kind == "race")
