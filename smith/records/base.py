"""What all records share: they are frozen, they forbid unknown keys, and they are written one way only."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import tomlkit
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from smith.errors import RecordError
from smith.paths import write_atomically

Oid = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}([0-9a-f]{24})?$")]
"""A git object id, SHA-1 or SHA-256, whole and in lower case."""

TaskId = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]*__[a-z0-9._-]+-[0-9]+(~[a-z]+(-[a-z]+)?)?$")]
"""``owner__repo-number`` in lower case (SWE-bench's form), with ``~variant`` where a bundle is not the plain fix:
``~author``, ``~optimize``, ``~port-triton``."""

Name = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9][a-zA-Z0-9._-]{0,63}$")]


class Record(BaseModel):
    """A frozen value with no room for unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    @classmethod
    def parse(cls, data: Any, where: str) -> Self:
        """Check ``data`` (what JSON or TOML gave). Raises :class:`RecordError` naming ``where`` and the key."""
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            raise RecordError(f"{where}: {explain(error)}") from error

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a ``.toml`` or JSON file. Raises :class:`RecordError`."""
        return cls.loads(read(path), str(path))

    @classmethod
    def loads(cls, data: bytes, where: str) -> Self:
        """Parse the bytes of a file called ``where``, whose suffix tells TOML from JSON."""
        return cls.parse(decode(data, where), where)

    def dumps(self) -> bytes:
        """JSON in declared key order, two spaces, one final newline: the same value is the same bytes."""
        return to_json(self.model_dump(mode="json"), indent=2) + b"\n"

    def dump_line(self) -> bytes:
        """The same on one line, without its end: for files that hold a record a line."""
        return to_json(self.model_dump(mode="json"))

    def dumps_toml(self) -> bytes:
        """TOML, leaving out what is ``None`` (TOML has no null)."""
        return tomlkit.dumps(self.model_dump(mode="json", exclude_none=True)).encode()

    def save(self, path: Path) -> None:
        """Write atomically; the suffix tells TOML from JSON."""
        write_atomically(path, self.dumps_toml() if path.suffix == ".toml" else self.dumps())


class Document(Record):
    """A record that is written to a file of its own, as JSON or TOML."""

    schema_version: Literal[1] = 1
    """Version of this record's layout."""


class Reason(Record):
    """Why something was refused or could not be decided: a typed code, and a detail for people."""

    code: str
    """Snake case, from the published list of codes."""
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}" if self.detail else self.code


def to_json(data: Any, indent: int | None = None) -> bytes:
    """JSON as UTF-8; in ASCII where a text holds what UTF-8 cannot (bytes of a path, surrogate-escaped)."""
    separators = (",", ":") if indent is None else None
    try:
        return json.dumps(data, indent=indent, separators=separators, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(data, indent=indent, separators=separators).encode()


def read(path: Path) -> bytes:
    """The bytes of a record's file. Raises :class:`RecordError` where it cannot be read."""
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise RecordError(f"{path}: no such file") from error
    except OSError as error:
        raise RecordError(f"{path}: {error.strerror}") from error


def decode(data: bytes, where: str) -> Any:
    """Decode TOML (``.toml``) or JSON. Raises :class:`RecordError` with line and column."""
    try:
        if where.endswith(".toml"):
            return tomllib.loads(data.decode("utf-8"))
        return json.loads(data)
    except (ValueError, RecursionError) as error:  # also numbers of thousands of digits, and nesting without end
        kind = "TOML" if where.endswith(".toml") else "JSON"
        raise RecordError(f"{where}: not {kind}: {error}") from error


def explain(error: ValidationError) -> str:
    """The first fault of a failed validation in one line: which key, what is wrong, and how many more."""
    faults = error.errors(include_url=False)
    first = faults[0]
    key = ".".join(str(part) for part in first["loc"]) or "the document"
    message = {"missing": "is missing", "extra_forbidden": "is no known key"}.get(first["type"], first["msg"])
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    return f"{key} {message}{more}" if message.startswith("is ") else f"{key}: {message}{more}"


__all__ = ["Document", "Field", "Name", "Oid", "Reason", "Record", "TaskId", "decode", "explain", "read", "to_json"]
