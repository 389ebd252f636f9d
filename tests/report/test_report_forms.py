"""The forms of a report: the same figures in each, nothing of a submission runs, and a large run is quick."""

from __future__ import annotations

import csv
import hashlib
import json
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest
from drawn_runs import draw, pins, sample_data

from smith.evaluate.run import attempt_folder
from smith.freeze.bundle import Store
from smith.records.base import Reason
from smith.records.grade import Grade, GradeVerdict
from smith.report.html.page import render
from smith.report.run_report import read

SOLVED, FAILED = GradeVerdict.SOLVED, GradeVerdict.FAILED
HOSTILE = "</pre></details><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = sample_data(tmp_path_factory.mktemp("forms") / "data")
    timed = {"smith-lab__minikernels-24": 3.5, "smith-lab__minikernels-46": 2.25}
    draw(
        store.layout,
        "mixed",
        lambda task, n: (SOLVED if n == 1 or task in timed else FAILED, timed.get(task)),
        attempts=2,
    )
    return store


@pytest.fixture(scope="module")
def forms(world: Store, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All forms of one report, written by one command."""
    out = tmp_path_factory.mktemp("written")
    options = [w for f in ("html", "csv", "markdown", "sqlite") for w in (f"--{f}", str(out / f"r.{f}"))]
    done = subprocess.run(
        [sys.executable, "-m", "smith.cli.main", "-C", str(world.layout.root), "report", "mixed", *options, "--json"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    (out / "r.json").write_text(done.stdout)
    (out / "r.txt").write_text(
        subprocess.run(
            [sys.executable, "-m", "smith.cli.main", "-C", str(world.layout.root), "report", "mixed"],
            capture_output=True, text=True, check=True,
        ).stdout
    )  # fmt: skip
    return out


def test_one_figure_is_the_same_in_every_form(forms: Path) -> None:
    document = json.loads((forms / "r.json").read_text())
    solved = document["scores"]["solved"]["count"]
    total = 2 * len(pins())
    assert document["scores"]["solved"]["total"] == total
    with (forms / "r.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert sum(row["solved"] == "1" for row in rows) == solved and len(rows) == total
    db = sqlite3.connect(forms / "r.sqlite")
    assert db.execute("SELECT sum(solved), count(*) FROM report").fetchone() == (solved, total)
    share = db.execute("SELECT value FROM figures WHERE figure = 'pass@1'").fetchone()[0]
    assert share == pytest.approx(document["scores"]["pass_at_1"]) == solved / total
    page, text, words = (unescape((forms / f"r.{form}").read_text()) for form in ("html", "txt", "markdown"))
    assert f"{solved} of {total}" in page and f"solved {solved}/{total}" in text and f"solved {solved}/{total}" in words
    assert f"| pass@1 | {share:.4g} |" in words
    # The speed-up of a task, in each.
    assert "3.50x" in page and "3.50x" in text and "| 3.50 |" in words and {r["speedup"] for r in rows} >= {"3.5"}


class Page(HTMLParser):
    """What tags there are, and whether they close in order."""

    VOID = frozenset({"meta", "br", "hr", "img", "link", "input"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.faults: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}> at {self.getpos()}")


def parsed(text: str) -> Page:
    page = Page()
    page.feed(text)
    assert page.faults == [] and page.open == []
    return page


def test_the_page_stands_alone_and_is_well_formed(forms: Path) -> None:
    text = (forms / "r.html").read_text()
    page = parsed(text)
    tags = {tag for tag, _ in page.tags}
    assert not tags & {"script", "link", "img", "iframe", "object", "embed", "form"}
    for tag, attributes in page.tags:
        assert not any(name.startswith("on") for name in attributes), tag
        target = attributes.get("href") or attributes.get("xlink:href") or "#"
        assert target.startswith("#"), target
        assert attributes.get("src") is None
    assert not re.search(r"url\((?!#)", text) and "@import" not in text
    ids = {a["id"] for _, a in page.tags if "id" in a}
    assert all((a.get("href") or "#tasks")[1:] in ids for tag, a in page.tags if tag == "a")
    assert sum(tag == "svg" for tag, _ in page.tags) == 3
    assert all(a.get("aria-label") for tag, a in page.tags if tag == "svg")


def hostile(store: Store) -> str:
    """A run whose every text of the agent's and the submission's is markup; the page of it."""
    config = draw(store.layout, "hostile", lambda *_: (FAILED, None), tasks=pins()[:2], model=HOSTILE)
    for pinned in config.tasks:
        folder = attempt_folder(store.layout, config.run, pinned.id, 1)
        graded = Grade.load(folder / "grade.json")
        reasons = (Reason(code="failed", detail=HOSTILE),)
        patch = f"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-{HOSTILE}\n+{HOSTILE}\n".encode()
        digest = hashlib.sha256(patch).hexdigest()
        (folder / "submission.patch").write_bytes(patch)
        graded.model_copy(update={"reasons": reasons, "patch_sha256": digest, "notes": (HOSTILE,)}).save(
            folder / "grade.json"
        )
        attempt = json.loads((folder / "attempt.json").read_text())
        (folder / "attempt.json").write_text(json.dumps(attempt | {"patch_sha256": digest, "detail": HOSTILE}))
        steps = [{"step_id": 1, "source": HOSTILE, "message": HOSTILE,
                  "tool_calls": [{"function_name": HOSTILE, "arguments": {HOSTILE: HOSTILE}}],
                  "observation": {"results": [{"content": HOSTILE}]}}]  # fmt: skip
        (folder / "trajectory.json").write_text(json.dumps({"schema_version": "ATIF-v1.8", "steps": steps}))
    return render(store.layout, config, read(store.layout, config))


def test_text_of_an_agent_stays_text(world: Store) -> None:
    text = hostile(world)
    page = parsed(text)
    assert not {tag for tag, _ in page.tags} & {"script", "img"}
    assert text.count("&lt;script&gt;") >= 2 * 8  # it is all there, as text


def test_a_browser_runs_nothing_of_it(world: Store, tmp_path: Path, dom: Callable[[Path], str]) -> None:
    (tmp_path / "hostile.html").write_text(hostile(world))
    # The same text without our escaping must not run either: the page forbids itself scripts.
    bare = re.sub("</body>", lambda _: f"{HOSTILE}</body>", (tmp_path / "hostile.html").read_text())
    (tmp_path / "bare.html").write_text(bare)
    for name in ("hostile", "bare"):
        shown = dom(tmp_path / f"{name}.html")
        assert "<title>drawn on sample: hostile</title>" in shown, name
        assert "owned" in shown


def test_a_trajectory_that_is_none_is_left_out(world: Store) -> None:
    config = draw(world.layout, "odd", lambda *_: (FAILED, None), tasks=pins()[:1])
    folder = attempt_folder(world.layout, "odd", pins()[0].id, 1)
    for content in (b"", b"[]", b'{"steps": 3}', b'{"steps": [4]}', b"\xff"):
        (folder / "trajectory.json").write_bytes(content)
        assert "Trajectory" not in render(world.layout, config, read(world.layout, config))


def test_a_cell_of_a_table_cannot_become_a_formula_or_a_mention(world: Store) -> None:
    from smith.report.flat import as_csv, as_markdown

    config = draw(world.layout, "formula", lambda *_: (FAILED, None), tasks=pins()[:1], model="=1+1|@someone")
    found = read(world.layout, config)
    assert "'=1+1|@someone" in as_csv(found.rows)
    words = as_markdown(found.report, found.rows)
    assert "=1+1|@someone" not in words and "@someone" not in words
