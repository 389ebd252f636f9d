"""``smith``: the top-level command. Commands are imported only when they are called, so that help comes at once."""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import sys
import threading
import time
import traceback
from pathlib import Path

import click

from smith import __version__
from smith.errors import EXIT_BAD_INPUT, EXIT_DEFECT, EXIT_INTERRUPTED, SmithError

COMMANDS = {
    "init": ("smith.cli.init", "Make a data repository."),
    "doctor": ("smith.cli.doctor", "Say what this machine can prove, and what is missing."),
    "demo": ("smith.cli.demo", "Walk the whole way on the bundled sample upstream."),
    "mine": ("smith.cli.mine", "Find the merged kernel pull requests of a repository."),
    "recipe": ("smith.cli.recipe", "Detect how an upstream is built and tested."),
    "freeze": ("smith.cli.freeze", "Freeze pull requests into task bundles."),
    "validate": ("smith.cli.validate", "Run baseline and reference solutions; write receipts."),
    "author": ("smith.cli.author", "Let a language model improve a task, behind deterministic gates."),
    "task": ("smith.cli.task", "Show, verify or open a task bundle."),
    "panel": ("smith.cli.panel", "Make, show or check a panel."),
    "grade": ("smith.cli.grade", "Grade a patch on a task."),
    "redteam": ("smith.cli.redteam", "Attack the grader with every known reward hack."),
    "eval": ("smith.cli.evaluate", "Run an agent over a panel."),
    "resume": ("smith.cli.resume", "Go on with an interrupted run."),
    "runs": ("smith.cli.runs", "List runs."),
    "report": ("smith.cli.report", "Report a run."),
    "regrade": ("smith.cli.regrade", "Grade again what a run handed in."),
    "compare": ("smith.cli.compare", "Compare runs, task by task."),
    "leaderboard": ("smith.cli.leaderboard", "Rank runs of one panel, each with its sealed evidence."),
    "knowledge": ("smith.cli.knowledge", "Search, use, propose and check what runs have learned."),
    "budget": ("smith.cli.budget", "Show, limit and check what was spent."),
    "export": ("smith.cli.export", "Write tasks or submissions in the formats of other tools."),
    "import": ("smith.cli.import_", "Take tasks or submissions from the formats of other tools."),
    "push": ("smith.cli.sync", "Push the branch and the frozen sources together."),
    "pull": ("smith.cli.sync", "Pull the branch and the frozen sources together."),
    "schema": ("smith.cli.schema", "Print the JSON Schema of a record."),
}


class LazyGroup(click.Group):
    """A group that knows its commands' names and summaries without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(COMMANDS[cmd_name][0])
        command = getattr(module, "COMMANDS", {}).get(cmd_name) or module.command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "-C",
    "directory",
    type=click.Path(path_type=Path, file_okay=False),
    default=None,
    help="The data repository (default: the nearest parent with a smith.toml).",
)
@click.version_option(__version__, prog_name="smith")
@click.pass_context
def cli(ctx: click.Context, directory: Path | None) -> None:
    """Benchmarks and training environments from merged GPU-kernel pull requests.

    \b
    Exit status: 0 done and good; 1 done and the answer is no; 2 wrong use or bad input;
    3 a defect in smith; 4 budget refused; 130 interrupted (state kept, resumable).
    """
    ctx.obj = (directory or Path.cwd()).absolute()


def main() -> None:
    """Run the command line; every error becomes one line and the right exit status."""
    os.environ.pop("GIT_PYTHON_GIT_EXECUTABLE", None)  # GitPython would refuse to be imported
    try:
        status = cli.main(standalone_mode=False)
        code = status if isinstance(status, int) else 0
        sys.stdout.flush()
    except click.exceptions.Exit as error:
        code = error.exit_code
    except click.Abort:
        click.echo("smith: interrupted; state is kept", err=True)
        code = EXIT_INTERRUPTED
    except click.ClickException as error:
        name = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "smith"
        click.echo(f"smith: {' '.join(error.format_message().split())} (see: {name} --help)", err=True)
        code = EXIT_BAD_INPUT
    except KeyboardInterrupt:
        click.echo("smith: interrupted; state is kept", err=True)
        code = EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has gone (e.g. `| head`); that is no fault of ours.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except SmithError as error:
        click.echo(f"smith: {error}", err=True)
        code = error.exit_code
        if code == EXIT_DEFECT:
            click.echo(f"smith: details in {_log(error)}", err=True)
    except Exception as error:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
            click.echo(f"smith: cannot write: {error.strerror}", err=True)
            os._exit(EXIT_BAD_INPUT)  # what is still in a buffer cannot be written either
        click.echo(f"smith: defect: {type(error).__name__}: {error}", err=True)
        click.echo(f"smith: details in {_log(error)}; please report it", err=True)
        code = EXIT_DEFECT
    _leave(code)


def _leave(code: int) -> None:
    """End the process; after an error or an interrupt without waiting for threads, and with every child ended."""
    from smith import process

    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    if threading.active_count() > 1:
        process.kill_all()
        os._exit(code)
    sys.exit(code)


def _log(error: BaseException) -> str:
    """Write the traceback to a log, below the data repository where there is one, and return its path."""
    from smith.paths import Layout, find_root

    try:
        root = find_root(Path.cwd())
    except OSError:
        root = None  # the working directory is gone
    folder = Layout(root).logs if root else Path(os.environ.get("TMPDIR", "/tmp")) / "smith-logs"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}.log"
        path.write_text(
            f"smith {__version__}\nargv: {sys.argv[1:]!r}\n" + "".join(traceback.format_exception(error)), "utf-8"
        )
        return str(path)
    except OSError as failed:
        return f"(no log could be written: {failed.strerror})"


if __name__ == "__main__":
    main()
