"""What SWE-bench's harness runs in an image: the evaluation script, and the image's Dockerfile.

The harness applies a prediction in ``/testbed``, runs the script there as root, and reads the results of the tests out
of its output, between two markers and with the parser that the row names. It knows no allow-list and no sandbox inside
the image: what it says of a hostile submission is weaker than a grade by smith.
"""

from __future__ import annotations

import base64
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from smith.freeze.bundle import Bundle
from smith.records.receipt import Receipt

WORKDIR = "/testbed"
LIBRARY = "/opt/smith"
"""Where an image holds what :mod:`smith.export.task_repository` lays out as ``smith-lib/``."""
START, END = ">>>>> Start Test Output", ">>>>> End Test Output"
TARGET = "smith-meets-target.py"

_MANGLED = re.compile(r"\[\d+m|[\x00-\x1f\x7f]| - ")
_PLUGIN = "smith.device.interpreter.plugin"


@dataclass(frozen=True)
class Evaluation:
    """The script, and the name of the parser that reads its output."""

    script: str
    log_parser: str


def log_parser(ids: Sequence[str]) -> str | None:
    """SWE-bench's parser that gives back exactly these ids, the plain one where it can; None where none does.

    ``parse_log_pytest`` ends an id at the first space, so that ids such as ``test[[0, 15]-float32]`` need
    ``parse_log_pytest_v2``; that one joins words with single spaces, and takes ``[16m`` for a colour.
    """
    if not any(one.split() != [one] for one in ids):
        return "parse_log_pytest"
    if not any(" ".join(one.split()) != one or _MANGLED.search(one) for one in ids):
        return "parse_log_pytest_v2"
    return None


def evaluation(bundle: Bundle, receipt: Receipt, test_patch: str, at_start: Sequence[str]) -> Evaluation | None:
    """The evaluation of a bundle on the receipt's device; None where no parser of SWE-bench can read the test ids.

    ``at_start`` are those paths, of the hidden tests' folders and files, that the starting tree has.
    """
    ids = (*receipt.fail_to_pass, *receipt.pass_to_pass)
    parser = log_parser(ids)
    if parser is None:
        return None
    lines = [
        "#!/bin/bash",
        "set -uxo pipefail",
        f"cd {WORKDIR}",
        f"git config --global --add safe.directory {WORKDIR}",
        *(f"export {name}={shlex.quote(value)}" for name, value in _variables(bundle, receipt).items()),
        *_lay_tests(bundle, test_patch, at_start),
        *_build(bundle),
        f": '{START}'",
        *_run_tests(bundle, receipt, ids),
        f": '{END}'",
    ]
    return Evaluation("\n".join(lines) + "\n", parser)


def dockerfile(bundle: Bundle) -> str:
    """The bundle's own Dockerfile, with the source as the one commit of a repository at ``/testbed``."""
    own = (bundle.path / "environment" / "Dockerfile").read_text("utf-8").rstrip("\n")
    who = "-c user.name=smith -c user.email=smith@localhost"
    return (
        f"{own}\n"
        "# SWE-bench's harness works in /testbed, a git repository. One commit: no history means that no future can\n"
        "# leak.\n"
        f"COPY smith-lib/ {LIBRARY}/\n"
        f"RUN git -C /workspace init -q && git -C /workspace add -A -f \\\n"
        f"    && git -C /workspace {who} commit -q --allow-empty -m base && ln -s /workspace {WORKDIR}\n"
        f"WORKDIR {WORKDIR}\n"
    )


def _variables(bundle: Bundle, receipt: Receipt) -> dict[str, str]:
    """As smith's own harness sets them, for the same results."""
    folders = [WORKDIR if one == "." else f"{WORKDIR}/{one}" for one in bundle.recipe.python_path]
    kind = receipt.device.partition(":")[0]
    device = {"SMITH_DEVICE": receipt.device, "TRITON_INTERPRET": "1"} if kind == "interpreter" else {}
    if kind == "interpreter" and bundle.prelude is not None:
        device["SMITH_PRELUDE"] = f"{LIBRARY}/prelude.py"
    return {
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        **device,
        **bundle.recipe.env,
        "PYTHONPATH": ":".join([*folders, LIBRARY]),
    }


def _lay_tests(bundle: Bundle, test_patch: str, at_start: Sequence[str]) -> list[str]:
    """Whatever a submission did to the tests is undone before the hidden ones are laid over it."""
    places = bundle.selection.places
    lines = [f"rm -rf -- {_words(places)}"] if places else []
    if at_start:
        lines.append(f"git checkout -q HEAD -- {_words(at_start)}")
    if test_patch:
        lines += _fed(test_patch.encode(), "| git apply --whitespace=nowarn -")
    return lines


def _fed(data: bytes, into: str) -> list[str]:
    """Bytes that come out of the script again as they are. In base64: a patch may hold the harness's own markers."""
    return [f"base64 -d <<'SMITH_DATA' {into}", *base64.encodebytes(data).decode().splitlines(), "SMITH_DATA"]


def _build(bundle: Bundle) -> list[str]:
    """A build is the upstream's alone: without the device and without smith's own modules."""
    without = "env -u PYTHONPATH -u SMITH_DEVICE -u SMITH_PRELUDE" + (
        "" if "TRITON_INTERPRET" in bundle.recipe.env else " -u TRITON_INTERPRET"
    )
    return [f"{without} {_words(command)}" for command in bundle.recipe.build]


def _run_tests(bundle: Bundle, receipt: Receipt, ids: Sequence[str]) -> list[str]:
    """Each file in a process of its own, and one status for all; the last line's status is that of the tests."""
    by_file: dict[str, list[str]] = {}
    for one in ids:
        by_file.setdefault(one.partition("::")[0], []).append(one)
    plugin = ["-p", _PLUGIN] if receipt.device.startswith("interpreter") else []
    options = ["-rfEp", "--tb=short", "--color=no", "-o", "addopts=", "-p", "no:cacheprovider", *plugin]
    lines = ["smith_status=0"]
    for members in by_file.values():
        command = ["python", "-m", "pytest", *options, *bundle.recipe.pytest_args, *members]
        lines.append(f"{_words(command)} || smith_status=1")
    if receipt.timing is not None and bundle.selection.workloads:
        lines += _time(bundle)
    return [*lines, "(exit $smith_status)"]


def _time(bundle: Bundle) -> list[str]:
    """The base is built beside the candidate. Workloads come with the script: in the image an agent would see them."""
    base, workloads = "/tmp/smith-base", "/tmp/smith-workloads"
    build = " && ".join(_build(bundle)) or "true"
    lines = [f"rm -rf {base} {workloads} && mkdir {workloads} && git worktree prune"]
    for name in bundle.selection.workloads:
        lines += _fed((bundle.path / "tests" / "workloads" / name).read_bytes(), f"> {workloads}/{shlex.quote(name)}")
    files = [f"{workloads}/{name}" for name in bundle.selection.workloads]
    command = ["python", f"{LIBRARY}/{TARGET}", base, WORKDIR, ":".join(bundle.recipe.python_path), *files]
    return [
        *lines,
        f"git worktree add -q --detach {base} HEAD && cd {base} && {{ {build}; }}; cd {WORKDIR}",
        f"{_words(command)} || smith_status=1",
    ]


def _words(words: Sequence[str]) -> str:
    return " ".join(shlex.quote(word) for word in words)
