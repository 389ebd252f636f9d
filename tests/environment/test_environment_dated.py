"""Environments of a day: a real pip, and an index on loopback that says when each release was published."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from wheel_shelf import Shelf, ask

from smith.environment.installer import EnvironmentFailed
from smith.environment.layers import build
from smith.grade.environments import Environments, exact_packages
from smith.records.receipt import Receipt, UsedEnvironment, Verdict
from smith.records.recipe import EnvironmentChoice, Recipe


class Index:
    """A package index over a shelf, with a publishing date a wheel; it counts what is asked."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf
        self.dates: dict[str, str] = {}
        self.asked: list[str] = []

    def publish(self, name: str, version: str, day: str, *, requires: tuple[str, ...] = ()) -> None:
        self.dates[self.shelf.add(name, version, requires=requires).name] = f"{day}T12:00:00.000000Z"

    def answer(self, path: str) -> tuple[str, bytes] | None:
        self.asked.append(path)
        if path.startswith("/files/"):
            return "application/octet-stream", (self.shelf.folder / path.removeprefix("/files/")).read_bytes()
        name = path.strip("/").rpartition("/")[2]
        files = [
            {"filename": file, "url": f"/files/{file}", "hashes": {}, **({"upload-time": day} if day else {})}
            for file, day in self.dates.items()
            if file.partition("-")[0].replace("_", "-") == name
        ]
        if not files:
            return None
        page = {"meta": {"api-version": "1.1"}, "name": name, "versions": [], "files": files}
        return "application/vnd.pypi.simple.v1+json", json.dumps(page).encode()


@pytest.fixture
def index(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    made = Index(shelf)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = made.answer(self.path)
            self.send_response(200 if found else 404)
            kind, body = found or ("text/plain", b"")
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{server.server_port}/simple/")
    yield made
    server.shutdown()
    server.server_close()


def of_day(day: date, *packages: str) -> EnvironmentChoice:
    return EnvironmentChoice(name="era", packages=packages, as_of=day)


def test_versions_are_those_of_the_day_with_all_that_they_need(tmp_path: Path, index: Index) -> None:
    index.publish("kernelkit", "1.0", "2024-05-01", requires=("kernelbase",))
    index.publish("kernelkit", "2.0", "2025-05-01", requires=("kernelbase",))
    index.publish("kernelbase", "0.1", "2024-01-01")
    index.publish("kernelbase", "0.9", "2025-01-01")
    then = build(of_day(date(2024, 6, 1), "kernelkit"), tmp_path)
    assert (then.used.packages["kernelkit"], then.used.packages["kernelbase"]) == ("1.0", "0.1")
    assert ask(then, "import kernelkit; print(kernelkit.__version__)") == "1.0"
    later = build(of_day(date(2025, 2, 1), "kernelkit"), tmp_path)
    assert (later.used.packages["kernelkit"], later.used.packages["kernelbase"]) == ("1.0", "0.9")


def test_days_that_had_the_same_versions_share_a_layer(tmp_path: Path, index: Index) -> None:
    index.publish("kernelkit", "1.0", "2024-05-01")
    first = build(of_day(date(2024, 6, 1), "kernelkit"), tmp_path)
    assert build(of_day(date(2024, 9, 1), "kernelkit"), tmp_path).python == first.python
    index.asked.clear()
    assert build(of_day(date(2024, 9, 1), "kernelkit"), tmp_path).python == first.python
    assert not index.asked  # what a day had is remembered


def test_a_folder_of_wheels_has_no_days_and_does_not_count(tmp_path: Path, index: Index) -> None:
    index.publish("kernelkit", "1.0", "2024-05-01")
    index.shelf.add("kernelkit", "3.0")  # PIP_FIND_LINKS names the shelf, where nothing is dated
    then = build(of_day(date(2024, 6, 1), "kernelkit"), tmp_path)
    assert then.used.packages["kernelkit"] == "1.0"
    assert build(EnvironmentChoice(name="now", packages=("kernelkit",)), tmp_path).used.packages["kernelkit"] == "3.0"


def test_before_the_first_release_there_is_nothing_and_nothing_is_kept(tmp_path: Path, index: Index) -> None:
    index.publish("kernelkit", "1.0", "2024-05-01")
    with pytest.raises(EnvironmentFailed, match=r"environment era, as of 2024-01-01: kernelkit: no release of it"):
        build(of_day(date(2024, 1, 1), "kernelkit"), tmp_path)
    assert not list((tmp_path / "resolved").glob("*.json"))


def test_an_index_without_days_is_told_from_one_with(tmp_path: Path, index: Index) -> None:
    index.publish("kernelkit", "1.0", "2024-05-01")
    index.dates = dict.fromkeys(index.dates, "")
    with pytest.raises(EnvironmentFailed, match="kernelkit"):
        build(of_day(date(2025, 1, 1), "kernelkit"), tmp_path)


def test_a_damaged_note_of_a_day_is_made_again(tmp_path: Path, index: Index) -> None:
    index.publish("kernelkit", "1.0", "2024-05-01")
    first = build(of_day(date(2024, 6, 1), "kernelkit"), tmp_path)
    (note,) = (tmp_path / "resolved").glob("*.json")
    note.write_text("{")
    assert build(of_day(date(2024, 6, 1), "kernelkit"), tmp_path).used == first.used
    assert "kernelkit==1.0" in note.read_text()


def test_a_python_that_does_not_fit_is_named(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFailed, match=r"environment old: it needs Python <3\.9, and this is 3\."):
        build(EnvironmentChoice(name="old", python="<3.9"), tmp_path)


def test_a_receipts_packages_are_told_from_what_lay_below() -> None:
    used = UsedEnvironment(
        name="era",
        digest="0" * 32,
        python="3.11.7",
        packages={"torch": "2.13.0", "triton": "3.4.0", "numpy": "2.4.6", "pytest": "9.2.0", "einops": "0.8.1"},
    )
    with_triton = EnvironmentChoice(name="era", packages=("triton>=3.3", "einops"))
    assert exact_packages(with_triton, used) == ("einops==0.8.1", "triton==3.4.0")
    assert exact_packages(EnvironmentChoice(name="era", packages=("einops",)), used) == ("einops==0.8.1",)


def test_grading_installs_what_the_receipt_lists_and_says_what_it_could_not(tmp_path: Path, shelf: Shelf) -> None:
    recipe = Recipe(repo="owner/name", environments=(EnvironmentChoice(name="now", packages=("kernelkit",)),))
    old = shelf.add("kernelkit", "1.0")
    then = Environments(tmp_path / "there", tmp_path / "logs").build(recipe.environments[0])
    receipt = Receipt(
        task="owner__name-1",
        tree="0" * 40,
        device="cpu",
        verdict=Verdict.VALID,
        environment=then.describe(),
    )
    shelf.add("kernelkit", "2.0")
    elsewhere = Environments(tmp_path / "here", tmp_path / "logs").for_receipt(recipe, receipt)
    assert elsewhere.used.packages["kernelkit"] == "1.0" and elsewhere.used.digest == then.used.digest
    old.unlink()
    late = Environments(tmp_path / "late", tmp_path / "logs").for_receipt(recipe, receipt)
    assert late.used.packages["kernelkit"] == "2.0" and late.used.digest != then.used.digest
