"""SWE-bench rows as files hold them: JSON lines, a JSON list or object, or Parquet.

A row is kept as the columns that its file gave, known or not, so that reading and writing again loses nothing. The
meaning of the columns is SWE-bench's (Jimenez et al. 2024, package ``swebench`` 5); SWE-rebench and GSO have the same
ones and more.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smith.errors import RecordError
from smith.paths import write_atomically
from smith.records.base import decode, read
from smith.report.dataset_files import arrow

FAIL_TO_PASS, PASS_TO_PASS = "FAIL_TO_PASS", "PASS_TO_PASS"
PERF_TARGET = "perf::meets_target"
"""Stands in FAIL_TO_PASS for the speed that a task asks for: SWE-bench's checker refuses an empty list."""

_SHORT = re.compile(r"(?P<task>.+-[0-9]+)\.(?P<variant>[a-z]+(?:-[a-z]+)?)\Z")


@dataclass(frozen=True)
class Row:
    """One row: its columns, and ``where`` it was read for messages."""

    columns: Mapping[str, Any]
    where: str = ""

    @property
    def instance_id(self) -> str:
        return str(self.columns.get("instance_id", ""))

    def text(self, name: str) -> str:
        """A column of text; empty where it is absent or null. Raises :class:`RecordError` for anything else."""
        value = self.columns.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise RecordError(f"{self._place(name)} is {type(value).__name__}, not text")
        return value

    def tests(self, name: str) -> tuple[str, ...]:
        """A list of tests, which some sets hold as a list and some as a JSON string. Raises :class:`RecordError`."""
        value = self.columns.get(name)
        if isinstance(value, str):
            try:
                value = json.loads(value) if value.strip() else []
            except ValueError as error:
                raise RecordError(f"{self._place(name)} is neither a list nor one in JSON") from error
        if value is None:
            return ()
        if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
            raise RecordError(f"{self._place(name)} holds something that is not text")
        return tuple(value)

    @property
    def fail_to_pass(self) -> tuple[str, ...]:
        """The tests that must begin to pass, without the stand-in for a speed."""
        return tuple(one for one in self.tests(FAIL_TO_PASS) if one != PERF_TARGET)

    @property
    def pass_to_pass(self) -> tuple[str, ...]:
        return self.tests(PASS_TO_PASS)

    def _place(self, name: str) -> str:
        return f"{self.where or 'row'}: {self.instance_id or 'no instance_id'}: {name}"


def instance_of(task_id: str) -> str:
    """The instance id of a task. A variant's tilde becomes a dot, since images are named after instances."""
    return task_id.replace("~", ".")


def task_of(instance_id: str) -> str:
    """The task id of an instance: :func:`instance_of` undone, in lower case."""
    short = _SHORT.match(instance_id.lower())
    return f"{short['task']}~{short['variant']}" if short else instance_id.lower()


def read_documents(path: Path) -> list[tuple[str, Any]]:
    """What a file holds, a value a row, each with its place: JSON lines, a list, an object of rows, or Parquet.

    The content decides between JSON and JSON lines, not the name. Raises :class:`RecordError` naming the line that is
    broken, :class:`Unavailable` for Parquet without ``pyarrow``.
    """
    data = read(path)
    if data[:4] == b"PAR1":
        return _numbered(path, _parquet(path))
    if path.suffix != ".jsonl":
        try:
            whole = json.loads(data)
        except (ValueError, RecursionError):
            whole = None  # perhaps lines; what is wrong is said with the line
        if isinstance(whole, list):
            return _numbered(path, whole)
        if isinstance(whole, dict) and "instance_id" not in whole and all(isinstance(v, dict) for v in whole.values()):
            return [(f"{path}: {key}", {"instance_id": key, **value}) for key, value in whole.items()]
        if isinstance(whole, dict):
            return [(str(path), whole)]
    lines = enumerate(data.split(b"\n"), start=1)
    return [(f"{path}:{number}", decode(line, f"{path}:{number}")) for number, line in lines if line.strip()]


def _numbered(path: Path, values: Iterable[Any]) -> list[tuple[str, Any]]:
    return [(f"{path}: row {number}", value) for number, value in enumerate(values, start=1)]


def _parquet(path: Path) -> list[Any]:
    pa = arrow(f"{path} is Parquet")
    try:
        return list(pa.parquet.read_table(path).to_pylist())
    except (pa.ArrowException, OSError) as error:
        raise RecordError(f"{path}: not Parquet: {error}") from error


def read_rows(path: Path) -> list[Row]:
    """The rows of a file. Raises :class:`RecordError` for one that is no object with an ``instance_id``."""
    rows = []
    for where, value in read_documents(path):
        if not isinstance(value, dict) or not isinstance(value.get("instance_id"), str):
            raise RecordError(f"{where}: is no object with an instance_id")
        rows.append(Row(value, where))
    return rows


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    """Write rows as ``.jsonl``, ``.json`` (a list) or ``.parquet``. Raises :class:`RecordError` for another name."""
    write_documents(path, [dict(row.columns) for row in rows])


def write_documents(path: Path, documents: Sequence[Mapping[str, Any]]) -> None:
    """Write objects by the name of the file, as :func:`write_rows` does.

    In ASCII: stock SWE-bench splits lines with ``str.splitlines``, which also splits at U+2028 and U+0085.
    """
    if path.suffix == ".jsonl":
        write_atomically(path, b"".join(json.dumps(one).encode() + b"\n" for one in documents))
    elif path.suffix == ".json":
        write_atomically(path, json.dumps(list(documents), indent=1).encode() + b"\n")
    elif path.suffix == ".parquet":
        _write_parquet(path, documents)
    else:
        raise RecordError(f"{path}: of what format?", hint="name it .jsonl, .json or .parquet")


def _write_parquet(path: Path, documents: Sequence[Mapping[str, Any]]) -> None:
    pa = arrow(f"{path} is Parquet")
    sink = pa.BufferOutputStream()
    pa.parquet.write_table(pa.Table.from_pylist(list(documents)), sink)
    write_atomically(path, sink.getvalue().to_pybytes())
