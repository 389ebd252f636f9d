"""Building as a recipe says."""

from __future__ import annotations

from harness_bench import Bench

from smith.harness.build import build
from smith.process import Completed
from smith.records.recipe import Recipe


def built(bench: Bench, *commands: tuple[str, ...], timeout_s: int = 60) -> Completed | None:
    recipe = Recipe(repo="o/r", build=commands, build_timeout_s=timeout_s, env={"FLAG": "on"})
    return build(bench.sandbox, bench.place, bench.environment, recipe, "interpreter:gfx942")


def test_without_commands_nothing_is_done(bench: Bench) -> None:
    assert built(bench) is None


def test_commands_run_in_the_writable_source_root_with_the_environments_python(bench: Bench) -> None:
    bench.write("setup.py", "import os, sys; open('made', 'w').write(os.environ['FLAG'] + ' ' + sys.executable)\n")
    done = built(bench, ("python", "setup.py", "build"), ("sh", "-c", 'test -z "$SMITH_DEVICE" && cp made python'))
    assert done is not None and done.ok, done
    made = bench.place.source / "made"
    assert made.read_text() == f"on {bench.environment.python}"
    assert (bench.place.source / "python").stat().st_uid == bench.place.source.stat().st_uid


def test_the_first_failure_is_the_last_command(bench: Bench) -> None:
    done = built(bench, ("sh", "-c", "echo broken >&2; exit 3"), ("sh", "-c", "touch reached"))
    assert done is not None and done.status == 3 and "broken" in done.stderr.text
    assert not (bench.place.source / "reached").exists()


def test_the_time_limit_is_one_for_all(bench: Bench) -> None:
    done = built(bench, ("sleep", "0.6"), ("sleep", "60"), timeout_s=1)
    assert done is not None and done.timed_out and done.seconds < 5
