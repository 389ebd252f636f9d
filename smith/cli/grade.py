"""``smith grade``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from smith import sandbox as sandboxes
from smith.cli import isa
from smith.cli.common import (
    device_option,
    device_wait_option,
    json_option,
    machine_devices,
    print_json,
    progress,
    sandbox_option,
    screen,
    store,
    targets_option,
)
from smith.errors import EXIT_NO, BadInput
from smith.freeze.bundle import Bundle, Store
from smith.freeze.panels import StoredReceipt, receipts_of
from smith.gpus.machine import Machine
from smith.grade.environments import Environments
from smith.grade.grader import grade
from smith.grade.hollow import hollow
from smith.harness.compiling import processors
from smith.records.grade import Grade, GradeVerdict
from smith.records.receipt import Verdict
from smith.validate.devices import choose_device
from smith.validate.gate import parse_targets
from smith.validate.submitted import OfSubmission


@click.command("grade")
@click.argument("task")
@click.argument("patchfile", type=click.Path(path_type=Path, dir_okay=False))
@device_option
@device_wait_option
@click.option("--check", is_flag=True, help="Exit status 1 unless the verdict is solved.")
@click.option("--sanitize", is_flag=True, help="What passes must be clean under the sanitizer too (interpreter).")
@targets_option
@sandbox_option
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    task: str,
    patchfile: Path,
    device: str,
    device_wait: float,
    check: bool,
    sanitize: bool,
    targets: str | None,
    sandbox: str,
    as_json: bool,
) -> None:
    """Grade PATCHFILE, a patch against the source that TASK starts from.

    With --targets the launches that its kernels make in the tests are compiled for GPUs that need not be here, and
    shown beside the base's and the reference's, where the receipt has those (smith validate --targets).
    """
    found = store(ctx)
    parsed = parse_targets(targets)
    compiler = OfSubmission(parsed, processors()) if parsed else None
    bundle = found.load(task)
    try:
        patch = patchfile.read_bytes()
    except OSError as error:
        raise BadInput(f"{patchfile}: {error.strerror}") from error
    devices = machine_devices(device_wait)
    expected = expected_receipt(found, bundle, device, devices.machine)
    box, name = sandboxes.make(sandbox), expected.receipt.device
    environments = Environments(found.layout.environments, found.layout.logs)
    with progress(f"grading {bundle.id}", None) as show:
        step: Callable[[str], None] = lambda text: show(text, 0)  # noqa: E731
        found.require_sources(bundle)
        environment = environments.for_receipt(bundle.recipe, expected.receipt)
        with devices.bench(found, box, name, purpose=f"grade {bundle.id}", step=step) as bench:
            result = grade(
                bundle,
                patch,
                expected,
                bench,
                environment,
                sanitize=sanitize,
                emptier=hollow,
                compiler=compiler,
                step=step,
            )
    if as_json:
        print_json(document(result))
    else:
        screen.print(Text(f"{bundle.id}: {result.verdict.value} on {result.device}"))
        screen.print(
            Text(
                f"  fail-to-pass {result.fail_to_pass.passed}/{result.fail_to_pass.total}, "
                f"pass-to-pass {result.pass_to_pass.passed}/{result.pass_to_pass.total}, speed-up "
                + (f"{result.speedup.geomean:.2f}x" if result.speedup else f"none ({result.speedup_reason})")
            )
        )
        if result.oracle is not None:
            said = result.oracle
            more = f", {len(said.skipped)} not comparable this time" if said.skipped else ""
            screen.print(Text(f"  oracle: agrees in {said.agreed} of {said.calls} calls on fresh inputs{more}"))
        isa.show_submission(result.targets, expected.receipt.targets)
        if compiler is not None and not result.targets:
            screen.print(Text("  nothing was compiled: the tests did not run to their end, or launch nothing"))
        for note in result.notes:
            screen.print(Text(f"  note: {note}"), soft_wrap=True)
        for reason in result.reasons:
            screen.print(Text(f"  {reason}"), soft_wrap=True)
    refused = check and result.verdict is not GradeVerdict.SOLVED
    ctx.exit(EXIT_NO if refused else 0)


def expected_receipt(found: Store, bundle: Bundle, device: str, machine: Machine) -> StoredReceipt:
    """The valid receipt of this very tree that gives the expectations.

    Raises :class:`BadInput` where there is none.
    """
    stored = receipts_of(found.layout, bundle.id, bundle.tree)
    valid = [s for s in stored if s.receipt.verdict is Verdict.VALID]
    if device != "auto":
        name = choose_device(device, bundle.spec, machine).name
        valid = [s for s in valid if s.receipt.device == name]
    if not valid:
        said = ", ".join(f"{s.receipt.device}: {s.receipt.verdict.value}" for s in stored) or "it was never validated"
        raise BadInput(f"{bundle.id} has no valid receipt for this tree ({said})", hint=f"smith validate {bundle.id}")
    return valid[0]


def document(result: Grade) -> dict[str, Any]:
    """What ``smith grade --json`` says."""
    timing = result.speedup
    whole = result.model_dump(mode="json")
    return {
        "task": result.task,
        "tree": result.tree,
        "device": result.device,
        "verdict": result.verdict.value,
        "reasons": [str(r) for r in result.reasons],
        "fail_to_pass": whole["fail_to_pass"],
        "pass_to_pass": whole["pass_to_pass"],
        "speedup": None
        if timing is None
        else {"geomean": timing.geomean, "low": timing.low, "high": timing.high, "worst": timing.worst},
        "speedup_reason": result.speedup_reason,
        **({"oracle": whole["oracle"]} if result.oracle is not None else {}),
        **({"targets": whole["targets"]} if result.targets else {}),
        "notes": list(result.notes),
        "seconds": result.seconds,
    }
