"""Layers: the layer's packages win, those below stay visible, torch stays, and a kill leaves nothing half done."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest
from wheel_shelf import Shelf, ask, choice

from smith.environment import layers
from smith.environment.base import Base, own_base
from smith.environment.installer import EnvironmentFailed, available, explain
from smith.environment.layers import build, layer_key
from smith.records.recipe import EnvironmentChoice


def below(tmp_path: Path, **distributions: tuple[str, tuple[str, ...]]) -> Base:
    """A Python like this one whose site folder holds only the metadata given: name to version and requirements."""
    site = tmp_path / "below" / "site-packages"
    site.mkdir(parents=True)
    versions = {}
    for key, (version, requires) in distributions.items():
        name = key.replace("_", "-")
        versions[name] = version
        info = site / f"{key}-{version}.dist-info"
        info.mkdir()
        lines = [f"Requires-Dist: {line}" for line in requires]
        (info / "METADATA").write_text(
            "\n".join(["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *lines, ""])
        )
    return dataclasses.replace(own_base(), paths=(site,), versions=versions)


def test_no_packages_means_no_layer(tmp_path: Path) -> None:
    environment = build(EnvironmentChoice(name="default"), tmp_path / "environments")
    assert environment.python == Path(sys.executable)
    assert not (tmp_path / "environments").exists()
    used = environment.describe()
    assert used.name == "default"
    assert used.packages["pytest"] == pytest.__version__


def test_the_layers_packages_win_and_those_below_stay_visible(tmp_path: Path, shelf: Shelf) -> None:
    shelf.add("tiny-thing", "1.5", requires=("pluggy",))
    shelf.add("tabulate", "0.1")
    log = tmp_path / "logs" / "pip.log"
    said: list[str] = []
    wanted = choice("tiny-thing", "tabulate==0.1")
    environment = build(wanted, tmp_path / "environments", log=log, progress=said.append)
    versions = "print(tiny_thing.__version__, tabulate.__version__, pytest.__version__)"
    found = ask(environment, f"import tiny_thing, tabulate, pytest, pluggy; {versions}")
    assert found == f"1.5 0.1 {pytest.__version__}"
    used = environment.describe()
    assert used.packages["tiny-thing"] == "1.5"
    assert used.packages["tabulate"] == "0.1"
    assert used.packages["pytest"] == pytest.__version__
    assert "pluggy" not in used.packages, "it is satisfied from below"
    assert said == ["installing tiny-thing, tabulate==0.1"]
    assert "$ pip install tiny-thing tabulate==0.1" in log.read_text()
    assert str(Path(layers.__file__).parents[2]) not in ask(environment, "import sys; print(sys.path)").split("'")

    # Found again, under another name too, without asking pip.
    shelf.folder.rename(tmp_path / "gone")
    again = build(wanted.model_copy(update={"name": "other"}), tmp_path / "environments", log=log)
    assert again.python == environment.python
    assert again.describe() == used.model_copy(update={"name": "other"})
    assert log.read_text().count("$ pip") == 1


def test_scripts_name_the_place_where_the_layer_lies(tmp_path: Path, shelf: Shelf) -> None:
    entry = {"tool_pkg-1.dist-info/entry_points.txt": "[console_scripts]\ntool = tool_pkg:main\n"}
    body = {"tool_pkg/__init__.py": "def main():\n    print('ran')\n"}
    shelf.add("tool-pkg", "1", files={**entry, **body})
    environment = build(choice("tool-pkg"), tmp_path / "environments")
    script = environment.python.with_name("tool")
    assert subprocess.run([script], check=True, text=True, capture_output=True).stdout == "ran\n"


def test_another_torch_is_refused_by_name(tmp_path: Path, shelf: Shelf) -> None:
    shelf.add("torch", "1.0.1")
    shelf.add("old-kernels", "1", requires=("torch==1.0.1",))
    with pytest.raises(EnvironmentFailed, match=r"environment era: old-kernels: .*torch==1\.0\.1") as caught:
        build(choice("old-kernels"), tmp_path / "environments")
    assert "\n" not in str(caught.value)
    left = [p for p in (tmp_path / "environments").iterdir() if p.suffix != ".lock"]
    assert left == []


def test_a_missing_package_is_named_with_what_there_is(tmp_path: Path, shelf: Shelf) -> None:
    shelf.add("tiny-thing", "1.5")
    with pytest.raises(EnvironmentFailed, match=r"environment era: tiny-thing==9: .*there are 1\.5"):
        build(choice("tiny-thing==9"), tmp_path / "environments")


def test_a_package_that_only_exists_as_source_is_explained(tmp_path: Path, shelf: Shelf) -> None:
    (shelf.folder / "tiny-thing-1.5.tar.gz").write_bytes(b"never opened")
    with pytest.raises(EnvironmentFailed, match="environment era: tiny-thing: no release") as caught:
        build(choice("tiny-thing"), tmp_path / "environments")
    assert caught.value.exit_code == 2
    assert "only wheels are used" in caught.value.hint


def test_without_a_network_the_words_are_clear(tmp_path: Path, shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")  # the discard port: nobody listens
    monkeypatch.setenv("PIP_RETRIES", "1")
    with pytest.raises(EnvironmentFailed, match="no package index can be reached"):
        build(choice("tiny-thing"), tmp_path / "environments")


def test_a_rocm_triton_under_another_name_is_not_overlaid(
    tmp_path: Path, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = below(
        tmp_path,
        torch=("2.9.0+rocm7", ("pytorch-triton-rocm==3.5.0",)),
        pytorch_triton_rocm=("3.5.0", ()),
    )
    monkeypatch.setattr(layers, "own_base", lambda: base)
    shelf.add("triton", "9.9")
    shelf.add("kernels", "1", requires=("triton>=3.0", "torch>=2.4"))
    used = build(choice("kernels"), tmp_path / "environments").describe()
    assert used.packages == {"kernels": "1", "torch": "2.9.0+rocm7", "pytorch-triton-rocm": "3.5.0"}


def test_a_triton_that_is_asked_for_wins_though_torch_demands_its_own(
    tmp_path: Path, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = below(
        tmp_path, torch=("2.13.0+cu", ("triton==3.9.0", "tiny-thing")), triton=("3.9.0", ()), tiny_thing=("1", ())
    )
    monkeypatch.setattr(layers, "own_base", lambda: base)
    shelf.add("triton", "3.4.0")
    shelf.add("kernels", "1", requires=("triton>=3.0", "torch>=2.4"))
    environment = build(choice("kernels", "triton==3.4.0"), tmp_path / "environments")
    assert environment.describe().packages == {"kernels": "1", "torch": "2.13.0+cu", "triton": "3.4.0"}
    assert ask(environment, "import triton; print(triton.__version__)") == "3.4.0"
    assert not list(environment.python.parents[1].glob("lib/*/site-packages/torch*"))


def test_without_torch_below_none_is_installed(tmp_path: Path, shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    base = below(tmp_path)
    monkeypatch.setattr(layers, "own_base", lambda: base)
    shelf.add("torch", "1.0.1")
    shelf.add("kernels", "1", requires=("torch",))
    with pytest.raises(EnvironmentFailed, match="never installs torch"):
        build(choice("kernels"), tmp_path / "environments")


def test_the_digest_covers_what_matters_and_no_place(tmp_path: Path) -> None:
    base = own_base()
    key = layer_key(choice("a", "b>=1"), base)
    assert key == layer_key(EnvironmentChoice(name="other", packages=("b>=1", "a", "a")), base)
    elsewhere = dataclasses.replace(base, executable=tmp_path, prefix=tmp_path, base_prefix=tmp_path, paths=())
    assert key == layer_key(choice("a", "b>=1"), elsewhere)
    assert key != layer_key(choice("a", "b>=2"), base)
    assert key != layer_key(choice("a", "b>=1"), dataclasses.replace(base, python="3.99.0"))
    assert key != layer_key(choice("a", "b>=1"), dataclasses.replace(base, versions={**base.versions, "torch": "0.1"}))


def test_the_binds_are_all_that_the_interpreter_needs(tmp_path: Path, shelf: Shelf) -> None:
    shelf.add("tiny-thing", "1.5")
    environment = build(choice("tiny-thing"), tmp_path / "environments")
    assert all(path.is_absolute() and path.exists() for path in environment.binds)
    argv = ["bwrap", "--unshare-all", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
    for system in ("/usr", "/bin", "/lib", "/lib64"):
        if Path(system).exists():
            argv += ["--ro-bind", system, system]
    try:
        if subprocess.run([*argv, "true"], capture_output=True).returncode != 0:
            pytest.skip("bubblewrap cannot make a sandbox here")
    except FileNotFoundError:
        pytest.skip("bubblewrap is not installed")
    for path in environment.binds:
        argv += ["--ro-bind", str(path), str(path)]
    code = "import ctypes, sqlite3, ssl, json, pytest, tiny_thing; print(tiny_thing.__version__)"
    done = subprocess.run(
        [*argv, environment.python, "-c", code], env=dict(environment.env), text=True, capture_output=True
    )
    assert done.stdout == "1.5\n", done.stderr


def test_available_says_with_what() -> None:
    able, words = available(own_base())
    assert able
    assert words.startswith("pip ")


def test_without_pip_the_words_are_clear(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 'No module named pip' >&2\nexit 1\n")
    python.chmod(0o755)
    base = dataclasses.replace(own_base(), executable=python)
    assert available(base) == (False, "pip is not installed in the Python that smith runs in")
    monkeypatch.setattr(layers, "own_base", lambda: base)
    with pytest.raises(EnvironmentFailed, match="pip is not installed"):
        build(choice("tiny-thing"), tmp_path / "environments")


def test_unknown_words_of_pip_are_handed_on() -> None:
    assert explain("Collecting a\nERROR: [Errno 28] No space left on device\n", ["a"]) == (
        "a: [Errno 28] No space left on device"
    )
    assert explain("", ["a", "b"]) == "a, b: pip said nothing"
