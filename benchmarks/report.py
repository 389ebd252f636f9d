"""What a report costs: ``make bench-report [TASKS=200] [ATTEMPTS=5]``.

A run is drawn (its outcomes are random, its patches a hundred lines long; nothing was run) under the bundles of the
sample panel. Printed are the seconds that reading its evidence and rendering the page take, against reading the same
files and nothing else, and, where chromium is installed, what the browser takes to open the page, against an empty one.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from run import seconds

HERE = Path(__file__).parents[1]
sys.path[:0] = [str(HERE / "tests" / "report"), str(HERE)]

from drawn_runs import draw, pins, sample_data  # noqa: E402

from smith.evaluate.run import attempt_folder  # noqa: E402
from smith.freeze.bundle import Store  # noqa: E402
from smith.records.attempt import RunConfig  # noqa: E402
from smith.records.grade import GradeVerdict  # noqa: E402
from smith.report.html.page import render  # noqa: E402
from smith.report.run_report import read  # noqa: E402


def main() -> int:
    """Draw, then print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=200)
    parser.add_argument("--attempts", type=int, default=5)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        store = sample_data(Path(place) / "data")
        config = _drawn(store, asked.tasks, asked.attempts)
        files = sorted(p for p in store.layout.run(config.run).rglob("*") if p.is_file())
        alone = seconds(lambda: [p.read_bytes() for p in files])
        page = Path(place) / "report.html"
        took = seconds(lambda: page.write_text(render(store.layout, config, read(store.layout, config))))
        size = page.stat().st_size / 1e6
        again = read(store.layout, config)
        began = time.process_time()
        render(store.layout, config, again)
        print(f"processor time of rendering alone {time.process_time() - began:.2f} s")
        print(f"drawn: {asked.tasks} tasks, {asked.attempts} attempts each; a page of {size:.1f} MB")
        print(f"read and render {took:.2f} s; reading the {len(files)} files alone {alone:.2f} s")
        browser = shutil.which("chromium") or shutil.which("google-chrome")
        if browser is None:
            print("no chromium is installed: opening was not measured")
            return 0
        empty = Path(place) / "empty.html"
        empty.write_text("<!doctype html><title>empty</title>")
        times = {
            p.name: min(seconds(lambda p=p: _open(browser, p, Path(place))) for _ in range(3)) for p in (empty, page)
        }
        print(
            f"browser, from its start to a picture: {times[page.name]:.2f} s; an empty page {times[empty.name]:.2f} s"
        )
    return 0


def _open(browser: str, page: Path, place: Path) -> None:
    subprocess.run(
        [browser, "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={place / 'profile'}",
         f"--screenshot={place / 'shot.png'}", page.as_uri()], capture_output=True, check=True,
    )  # fmt: skip


def _drawn(store: Store, count: int, attempts: int) -> RunConfig:
    chance = random.Random(0)
    known = pins()
    tasks = tuple(
        known[n % len(known)].model_copy(update={"id": known[n % len(known)].id.replace("kernels", f"kernels{n}")})
        for n in range(count)
    )
    for task in tasks:  # the bundles under the names that were drawn
        original = "smith-lab__minikernels-" + task.id.rpartition("-")[2]
        shutil.copytree(store.layout.task(original), store.layout.task(task.id))
    verdicts = (GradeVerdict.SOLVED, GradeVerdict.SOLVED, GradeVerdict.FAILED, GradeVerdict.TIMEOUT)

    def outcome(task: str, number: int) -> tuple[GradeVerdict, float]:
        return chance.choice(verdicts), chance.uniform(0.8, 4)

    config = draw(store.layout, "drawn", outcome, tasks=tasks, attempts=attempts)
    patch = "--- a/x.py\n+++ b/x.py\n@@ -1,50 +1,50 @@\n" + "".join(
        f"{'-+ '[n % 3]}    value_{n} = tl.load(x + offsets * {n}, mask=offsets < n_elements)\n" for n in range(100)
    )
    digest = hashlib.sha256(patch.encode()).hexdigest()
    for task in tasks:
        for number in range(1, attempts + 1):
            folder = attempt_folder(store.layout, config.run, task.id, number)
            (folder / "submission.patch").write_text(patch)
            for name in ("attempt.json", "grade.json"):
                document = json.loads((folder / name).read_text()) | {"patch_sha256": digest}
                (folder / name).write_text(json.dumps(document))
    return config


if __name__ == "__main__":
    raise SystemExit(main())
