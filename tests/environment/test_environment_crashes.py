"""Making layers: killed, at once, damaged, displaced."""

from __future__ import annotations

import dataclasses
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from wheel_shelf import Shelf, ask, choice

from smith.environment import layers
from smith.environment.base import own_base
from smith.environment.installer import EnvironmentFailed
from smith.environment.layers import build, layer_key

BUILDER = """
import sys, time
from pathlib import Path
from smith.environment import layers
from smith.records.recipe import EnvironmentChoice
root, log, hang = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3] == "hang"
def hanging_install(base, python, *rest):
    next(python.parents[1].glob("lib/python*/site-packages")).joinpath("half.py").write_text("")
    print("half installed", flush=True)
    time.sleep(300)
if hang:
    layers.install = hanging_install
print(layers.build(EnvironmentChoice(name="era", packages=("tiny-thing",)), root, log=log).python, flush=True)
"""


def builder(root: Path, log: Path, mode: str = "go") -> subprocess.Popen[str]:
    argv = [sys.executable, "-c", BUILDER, str(root), str(log), mode]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)


def test_a_kill_leaves_no_finished_looking_layer(tmp_path: Path, shelf: Shelf) -> None:
    shelf.add("tiny-thing", "1.5")
    root = tmp_path / "environments"
    key = layer_key(choice("tiny-thing"), own_base())
    killed = builder(root, tmp_path / "log", "hang")
    assert killed.stdout is not None
    assert killed.stdout.readline() == "half installed\n"
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    killed.stdout.close()
    assert not (root / key).exists()
    assert list(root.glob(f".{key}.new.*")), "what was made so far lies aside"
    environment = build(choice("tiny-thing"), root)
    assert ask(environment, "import tiny_thing; print(tiny_thing.__version__)") == "1.5"
    assert sorted(p.name for p in root.iterdir()) == [key, f"{key}.lock"]


def test_two_builders_install_once(tmp_path: Path, shelf: Shelf) -> None:
    shelf.add("tiny-thing", "1.5")
    both = [builder(tmp_path / "environments", tmp_path / "log") for _ in range(2)]
    said = [process.communicate(timeout=120)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert said[0] == said[1] != ""
    assert (tmp_path / "log").read_text().count("$ pip install") == 1


def put(python: Path, name: str) -> None:
    """What stands in for pip: the metadata of a distribution, put into the layer of ``python``."""
    info = next(python.parents[1].glob("lib/python*/site-packages")) / f"{name}-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")


def test_a_damaged_or_displaced_layer_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    monkeypatch.setattr(layers, "install", lambda base, python, *rest: made.append(put(python, "tiny-thing")))
    root = tmp_path / "environments"
    layer = build(choice("tiny-thing"), root).python.parents[1]
    build(choice("tiny-thing"), root)
    assert len(made) == 1
    (layer / layers.MARKER).write_text("{")
    build(choice("tiny-thing"), root)
    assert len(made) == 2
    # The same versions, but another Python's site folder: the digest is the same, the layer would point elsewhere.
    moved = dataclasses.replace(own_base(), paths=(*own_base().paths, tmp_path))
    assert layer_key(choice("tiny-thing"), moved) == layer.name
    monkeypatch.setattr(layers, "own_base", lambda: moved)
    environment = build(choice("tiny-thing"), root)
    assert len(made) == 3
    assert str(tmp_path) in ask(environment, "import sys; print(*sys.path, sep='\\n')").split()


def test_a_kill_between_the_two_renames_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    monkeypatch.setattr(layers, "install", lambda base, python, *rest: made.append(put(python, "tiny-thing")))
    layer = build(choice("tiny-thing"), tmp_path).python.parents[1]
    layer.rename(layer.with_name(f".{layer.name}.old"))
    build(choice("tiny-thing"), tmp_path)
    assert len(made) == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == [layer.name, f"{layer.name}.lock"]


def test_a_package_that_would_replace_torch_after_all_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def install(base: object, python: Path, *rest: object) -> None:
        put(python, "tiny-thing")
        put(python, "torch")

    monkeypatch.setattr(layers, "install", install)
    with pytest.raises(EnvironmentFailed, match="would replace torch"):
        build(choice("tiny-thing"), tmp_path)


@pytest.mark.parametrize("how", ["variable", "file"])
def test_settings_that_lead_pip_elsewhere_lead_it_nowhere(
    tmp_path: Path, shelf: Shelf, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    shelf.add("tiny-thing", "1.0")
    if how == "variable":
        monkeypatch.setenv("PIP_DRY_RUN", "1")
    else:
        (tmp_path / "pip.conf").write_text(f"[install]\ntarget = {tmp_path / 'elsewhere'}\n")
        monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    made = build(choice("tiny-thing"), tmp_path / "environments")
    assert made.used.packages["tiny-thing"] == "1.0" and not (tmp_path / "elsewhere").exists()


def test_a_layer_that_lacks_what_was_asked_for_is_not_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "install", lambda base, python, *rest: None)
    with pytest.raises(EnvironmentFailed, match="pip left out tiny-thing"):
        build(choice("tiny-thing"), tmp_path)
