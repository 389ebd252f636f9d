"""Grade one submission: allow-list, fresh place, hidden tests laid over, typed results, a verdict."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from smith.errors import PatchError
from smith.freeze.bundle import Bundle
from smith.freeze.globs import glob_pattern
from smith.freeze.hidden import steers_tests
from smith.freeze.panels import StoredReceipt
from smith.freeze.workloads import load_workload
from smith.git.patches import Change, apply, changes
from smith.git.trees import list_tree, read_blobs
from smith.grade.clean import not_clean
from smith.grade.devices import hardware_of
from smith.grade.integrity import NATIVE, Emptier, Integrity, run_guarded
from smith.grade.launched import is_asked, own_launches, touched
from smith.grade.oracle import ask
from smith.grade.seal import digest
from smith.grade.timed_processes import CannotTime, Tampered
from smith.grade.timing import measure
from smith.grade.trial import Bench, base_tree, graded_tree, trial
from smith.harness.environment import TestEnvironment
from smith.harness.hardware import Unfit
from smith.records.base import Reason
from smith.records.compiled import TargetReport
from smith.records.grade import Count, Grade, GradeVerdict
from smith.records.receipt import Answer
from smith.records.results import Outcome, TestResult, TestRun
from smith.records.task import Variant

MAX_PATCH_BYTES = 8 << 20
MAX_FILES = 400
NOISY = 1.25
"""A baseline that differs from itself by more than this leaves nothing to be told."""


Compiler = Callable[[Bench, Bundle, TestEnvironment, str, Sequence[str]], Mapping[str, TargetReport]]
"""Compiles what a submission's tree launches in these tests: see :class:`smith.validate.submitted.OfSubmission`."""


def grade(
    bundle: Bundle,
    patch: bytes,
    expected: StoredReceipt,
    bench: Bench,
    environment: TestEnvironment,
    *,
    save: Path | None = None,
    sanitize: bool = False,
    emptier: Emptier | None = None,
    compiler: Compiler | None = None,
    step: Callable[[str], None] = lambda text: None,
) -> Grade:
    """The verdict on ``patch``. With ``save`` a failing grade is written there first, and replaced at the end.

    With ``sanitize`` what passes is run once more under the sanitizer, and fails as ``not_clean`` where that sees a
    fault; on devices other than the interpreter a note says that nobody looked. With ``emptier`` native kernels are
    emptied and what still passes is refused; without, a note says that nobody did. With ``compiler`` what the
    submission launches is compiled too, in a run of its own; the verdict does not hang on it.

    Whatever the submission does is a verdict; only smith's own faults raise.
    """
    began = time.monotonic()
    receipt = expected.receipt
    workload = load_workload(bench.store.layout, receipt)
    used = environment.describe()
    unlike = used.unlike(receipt.environment) if receipt.environment else ""
    notes = (f"the environment is not the receipt's: {unlike}",) if unlike else ()
    if sanitize and not receipt.device.startswith("interpreter"):
        notes = (*notes, f"not sanitized: the sanitizer watches the interpreter only, and this is {receipt.device}")
    if emptier is None and NATIVE & set(bundle.spec.languages):
        notes = (*notes, "native kernels were not emptied: whether the tests need them was not asked")
    shape: dict[str, object] = {
        "task": bundle.id,
        "tree": bundle.tree,
        "device": receipt.device,
        "patch_sha256": hashlib.sha256(patch).hexdigest(),
        "receipt": expected.blob,
        "sandbox": bench.sandbox.name,
        "environment": used,
        "notes": notes,
    }
    zero_f2p, zero_p2p = (Count(passed=0, total=len(ids)) for ids in (receipt.fail_to_pass, receipt.pass_to_pass))

    def verdict(
        kind: GradeVerdict,
        reasons: Sequence[Reason] = (),
        *,
        f2p: Count = zero_f2p,
        p2p: Count = zero_p2p,
        tests: Sequence[TestResult] = (),
        **more: object,
    ) -> Grade:
        more.setdefault("speedup_reason", "correctness_failed" if kind is not GradeVerdict.SOLVED else "not_asked")
        document = Grade.parse(
            {
                **shape,
                "verdict": kind,
                "reasons": tuple(reasons),
                "fail_to_pass": f2p,
                "pass_to_pass": p2p,
                "tests": tuple(tests),
                "seconds": round(time.monotonic() - began, 2),
                **more,
            },
            f"grade of {bundle.id}",
        )
        if save is not None:
            document.save(save)
        return document

    verdict(GradeVerdict.FAILED, [Reason(code="unfinished", detail="the grader has not finished")])
    try:
        submission = checked_tree(bundle, patch, bench)
    except PatchError as error:
        detail = f"{error.path}: {error.message}" if error.path and error.path not in error.message else error.message
        return verdict(GradeVerdict.INVALID_PATCH, [Reason(code=error.rule, detail=detail)])

    stands_on = hardware_of(bench, bundle, environment)
    if isinstance(stands_on, Unfit):
        # No test could pass: that is no fault of the submission.
        return verdict(GradeVerdict.INFRA, [Reason(code="needs_device", detail=stands_on.reason)])
    tree = graded_tree(bench.store, bundle, submission)
    ids = [*receipt.fail_to_pass, *receipt.pass_to_pass]
    watch = sanitize and receipt.device.startswith("interpreter")
    step("tests")
    with trial(bench, bundle, environment, tree) as place:
        if place.build_error:
            return verdict(GradeVerdict.FAILED, [Reason(code="build_failed", detail=place.build_error)])
        place.lay_out()
        sealed = digest(place)
        guarded = run_guarded(place, ids)
        run, integrity = guarded.run, Integrity(place, receipt, submission, guarded, emptier)
        owned = integrity.first()
        if owned is None and run.complete and _all_pass(run) and not _tampered(run):
            step("checks")
            owned = integrity.second()
        if owned is None and digest(place) != sealed:
            detail = "the toolchain, smith's modules or hidden tests have changed"
            owned = GradeVerdict.TAMPERED, Reason(code="toolchain", detail=detail)
        watched = place.run(ids, sanitize=True) if watch and run.complete and _all_pass(run) else None
    results = run.by_id()
    tests = tuple(results.get(i, TestResult(id=i, outcome=Outcome.MISSING)) for i in ids)
    f2p, p2p = (_count(results, wanted) for wanted in (receipt.fail_to_pass, receipt.pass_to_pass))
    kind, reasons = decide(run, tests, f2p, p2p)
    if owned is not None and kind is not GradeVerdict.TAMPERED:
        kind, reasons = owned[0], (owned[1],)
    if kind is GradeVerdict.SOLVED and is_asked(bundle, receipt.device):
        files = touched(bench.store, bundle, submission)
        idle = [i for i in receipt.fail_to_pass if not own_launches(bundle, results[i], files)]
        if idle:
            kind = GradeVerdict.FAILED
            reasons = tuple(Reason(code="not_launched", detail=f"{i} passes without the kernels") for i in idle[:10])
    if kind is GradeVerdict.SOLVED and watched is not None:
        faults = not_clean(watched, ids, receipt)
        kind, reasons = (GradeVerdict.FAILED, faults) if faults else (kind, reasons)
    if kind is GradeVerdict.SOLVED and workload is not None and workload.calls:
        shape["oracle"] = said = ask(bench, bundle, environment, workload, submission, step=step)
        if said.differences:
            kind = GradeVerdict.FAILED
            reasons = tuple(Reason(code="oracle_mismatch", detail=words) for words in said.differences)
        elif not said.agreed:
            kind, reasons = GradeVerdict.INFRA, (Reason(code="oracle_silent", detail="; ".join(said.skipped[:2])),)
    if compiler is not None and run.complete and kind in (GradeVerdict.SOLVED, GradeVerdict.FAILED):
        step("compiling")
        shape["targets"] = dict(compiler(bench, bundle, environment, submission, ids))
    if kind is not GradeVerdict.SOLVED or receipt.timing is None:
        return verdict(kind, reasons, f2p=f2p, p2p=p2p, tests=tests)

    if submission == bundle.spec.source.tree:
        # An unchanged kernel earns nothing, and needs no clock to say so.
        return verdict(
            GradeVerdict.FAILED,
            [Reason(code="not_faster", detail="the submission changes nothing")],
            f2p=f2p,
            p2p=p2p,
            tests=tests,
            speedup_reason="unchanged",
        )
    step("timing")
    try:
        timing = measure(bench, bundle, environment, base_tree(bench.store, bundle), tree, workload)
    except CannotTime as error:
        # What only the baseline fails is no fault of the submission's.
        kind = GradeVerdict.FAILED if error.candidate else GradeVerdict.INFRA
        code = "workload_failed"
        if isinstance(error, Tampered) and error.candidate:
            kind, code = GradeVerdict.TAMPERED, "timing"
        reason = Reason(code=code, detail=str(error))
        return verdict(kind, [reason], f2p=f2p, p2p=p2p, tests=tests, speedup_reason="workload_failed")
    if bundle.spec.variant is Variant.OPTIMIZE:
        notes = (*notes, f"{bundle.id}: {timing.geomean:.2f}x; validation found {receipt.timing.geomean:.2f}x")
    if timing.answer is not Answer.FASTER:
        detail = (
            f"{timing.answer}: {timing.geomean:.2f}x, interval {timing.low:.2f} to {timing.high:.2f}, "
            f"noise {timing.noise_low:.2f} to {timing.noise_high:.2f}, {timing.void} blocks void"
        )
        # A machine that could not have seen a difference says nothing of the submission.
        noisy = timing.answer is Answer.UNRESOLVED and timing.noise_high / timing.noise_low > NOISY
        return verdict(
            GradeVerdict.INFRA if noisy else GradeVerdict.FAILED,
            [Reason(code="noisy" if noisy else "not_faster", detail=detail)],
            f2p=f2p,
            p2p=p2p,
            tests=tests,
            speedup=timing,
            speedup_reason="noisy" if noisy else "measured",
            notes=notes,
        )
    return verdict(
        GradeVerdict.SOLVED, f2p=f2p, p2p=p2p, tests=tests, speedup=timing, speedup_reason="measured", notes=notes
    )


def decide(
    run: TestRun, tests: Sequence[TestResult], f2p: Count, p2p: Count
) -> tuple[GradeVerdict, tuple[Reason, ...]]:
    """The verdict from typed results: everything expected must have passed, over a channel that was whole."""
    if _tampered(run):
        return GradeVerdict.TAMPERED, (Reason(code="channel", detail=run.note),)
    missed = [t for t in tests if t.outcome is not Outcome.PASSED]
    reasons = tuple(
        Reason(code=t.outcome.value, detail=f"{t.id}{': ' + t.message.splitlines()[0][:200] if t.message else ''}")
        for t in missed[:10]
    )
    if not missed and run.complete and f2p.passed == f2p.total and p2p.passed == p2p.total:
        return GradeVerdict.SOLVED, ()
    if not missed:
        return GradeVerdict.FAILED, (Reason(code="incomplete", detail=run.ending),)
    if all(t.outcome in (Outcome.TIMEOUT, Outcome.MISSING) for t in missed) and any(
        t.outcome is Outcome.TIMEOUT for t in missed
    ):
        return GradeVerdict.TIMEOUT, reasons
    return GradeVerdict.FAILED, reasons


def _tampered(run: TestRun) -> bool:
    return run.note.startswith("tampered") or "; tampered" in run.note


def checked_tree(bundle: Bundle, patch: bytes, bench: Bench) -> str:
    """The tree of the submission. Raises :class:`PatchError` with the rule and the path where it is not allowed."""
    if len(patch) > MAX_PATCH_BYTES:
        raise PatchError(f"the patch has {len(patch)} bytes, more than {MAX_PATCH_BYTES}", rule="too_large")
    repo = bench.store.scratch
    tree = apply(repo, bundle.spec.source.tree, patch)
    touched = changes(repo, bundle.spec.source.tree, tree)
    if len(touched) > MAX_FILES:
        raise PatchError(f"the patch touches {len(touched)} files, more than {MAX_FILES}", rule="too_many_files")
    allowed = [glob_pattern(g) for g in bundle.spec.editable]
    for change in touched:
        for path in filter(None, (change.path, change.old_path)):
            _check_path(path, change, bundle, allowed)
    _check_case(bundle, tree, touched, bench)
    sizes = dict(read_blobs(repo, [c.new_oid for c in touched if set(c.new_oid) != {"0"}]))
    total = sum(len(data) for data in sizes.values() if data is not None)
    if total > 4 * MAX_PATCH_BYTES:
        raise PatchError(f"the changed files have {total} bytes in all", rule="too_large")
    return tree


def _check_path(path: str, change: Change, bundle: Bundle, allowed: Sequence[re.Pattern[str]]) -> None:
    if bundle.selection.hides(path):
        raise PatchError("hidden tests lie there", rule="hidden_path", path=path)
    if steers_tests(path):
        raise PatchError("this file changes how tests are run", rule="test_configuration", path=path)
    if not any(pattern.fullmatch(path) for pattern in allowed):
        globs = ", ".join(bundle.spec.editable)
        raise PatchError(f"not among the editable paths ({globs})", rule="not_editable", path=path)
    if change.new_mode in ("120000", "160000") and change.new_mode != change.old_mode:
        what = "symbolic link" if change.new_mode == "120000" else "submodule"
        raise PatchError(f"a new {what} is not allowed", rule=what.replace(" ", "_"), path=path)


def _check_case(bundle: Bundle, tree: str, touched: Sequence[Change], bench: Bench) -> None:
    """Raise where a new path is another one's but for upper and lower case: where case does not count, one of the two
    is lost, and which one is luck."""
    new = {c.path for c in touched if c.status in "AR"}
    paths = [e.path.decode("utf-8", "surrogateescape") for e in list_tree(bench.store.scratch, tree)] if new else []
    first: dict[str, str] = {}
    for path in paths:
        other = first.setdefault(path.casefold(), path)
        if other != path and new & {path, other}:
            detail = f"differs from {other} in upper and lower case only"
            raise PatchError(detail, rule="case_collision", path=path)


def _all_pass(run: TestRun) -> bool:
    return all(result.outcome is Outcome.PASSED for result in run.results)


def _count(results: dict[str, TestResult], ids: Sequence[str]) -> Count:
    passed = sum(1 for i in ids if i in results and results[i].outcome is Outcome.PASSED)
    return Count(passed=passed, total=len(ids))
