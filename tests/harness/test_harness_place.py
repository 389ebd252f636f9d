"""Places are fresh, and gone afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from smith.errors import Unavailable
from smith.harness.place import Place, clean


def test_a_place_is_fresh_and_gone_afterwards(tmp_path: Path) -> None:
    with Place.create(tmp_path) as one, Place.create(tmp_path) as other:
        assert one.root != other.root
        for folder in (one.source, one.home, one.tmp, one.lib):
            assert folder.is_dir() and not any(folder.iterdir())
        (one.source / "x").write_text("x")
    assert list(tmp_path.iterdir()) == []


def test_it_is_gone_after_an_error_and_whatever_lies_in_it(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("x")
    with pytest.raises(KeyError), Place.create(tmp_path / "work") as place:
        (place.source / "link").symlink_to(outside)
        os.mkfifo(place.source / "fifo")
        locked = place.source / "locked"
        (locked / "in").mkdir(parents=True)
        (locked / "in").chmod(0)
        locked.chmod(0)
        raise KeyError
    assert list((tmp_path / "work").iterdir()) == []
    assert (outside / "kept").exists()


def test_scratch_is_emptied_on_request(tmp_path: Path) -> None:
    with Place.create(tmp_path) as place:
        (place.tmp / "cache").write_text("x")
        (place.home / "cache").write_text("x")
        (place.source / "kept").write_text("x")
        place.refresh()
        assert not any(place.tmp.iterdir()) and not any(place.home.iterdir()) and any(place.source.iterdir())


DIE = """
import os, sys
from pathlib import Path
from smith.harness.place import Place
with Place.create(Path(sys.argv[1])) as place:
    (place.source / "left").write_text("x")
    print(place.root.name, flush=True)
    os._exit(1) if sys.argv[2] == "die" else sys.stdin.read()
"""


def test_places_of_dead_processes_are_cleaned_and_those_of_living_ones_kept(tmp_path: Path) -> None:
    command = [sys.executable, "-c", DIE, str(tmp_path)]
    subprocess.run([*command, "die"], stdout=subprocess.DEVNULL, check=False)
    assert len(list(tmp_path.iterdir())) == 2
    with subprocess.Popen([*command, "live"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as living:
        assert living.stdout is not None
        name = living.stdout.readline().strip()
        clean(tmp_path)
        assert {p.name for p in tmp_path.iterdir()} == {name, f"{name}.lock"}
        living.kill()
    clean(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(Unavailable, match="file"), Place.create(tmp_path / "file"):
        pass
