"""A run's data set as a folder in the layout of the Hugging Face Hub: a card with front matter, and a file a table."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import yaml
from jinja2 import Environment, StrictUndefined

from smith.errors import Unavailable
from smith.freeze.panel_tree import panel_tree
from smith.paths import Layout, write_atomically
from smith.records.attempt import RunConfig
from smith.report.dataset import Column, Table, as_lines, licences, tables
from smith.report.flat import cell
from smith.report.run_report import Read, headline

Format = Literal["parquet", "jsonl"]
CARD = "README.md"
SPLIT = "test"
"""Of results there is nothing to train on."""


def arrow(why: str) -> Any:
    """``pyarrow``, which only Parquet needs. Raises :class:`Unavailable` where it is not installed."""
    try:
        importlib.import_module("pyarrow.parquet")
        return importlib.import_module("pyarrow")
    except ImportError as error:
        raise Unavailable(f"{why}, and pyarrow is not installed", hint="pip install pyarrow, or use .jsonl") from error


def write_dataset(folder: Path, layout: Layout, config: RunConfig, found: Read, form: Format) -> list[Path]:
    """Write the data set of a run into ``folder``; the card comes last. Gives the files.

    Raises :class:`Unavailable` for Parquet without ``pyarrow``.
    """
    made = tables(layout, config, found)
    content = {_name(table, form): as_parquet(table) if form == "parquet" else as_lines(table) for table in made}
    sizes = {table.name: len(content[_name(table, form)]) for table in made}
    for name, data in content.items():
        write_atomically(folder / name, data)
    write_atomically(folder / CARD, card(config, found, made, form, sizes).encode("utf-8", "replace"))
    return [*(folder / name for name in content), folder / CARD]


def _name(table: Table, form: Format) -> str:
    return f"data/{table.name}.{form}"


def as_parquet(table: Table) -> bytes:
    """A table as Parquet, with the types of its columns even where every cell is null."""
    pa = arrow("a data set in Parquet is asked for")
    types = {"string": pa.string(), "int64": pa.int64(), "float64": pa.float64(), "bool": pa.bool_()}

    def type_of(column: Column) -> Any:
        return pa.list_(types[column.dtype]) if column.many else types[column.dtype]

    schema = pa.schema([(column.name, type_of(column)) for column in table.columns])
    sink = pa.BufferOutputStream()
    pa.parquet.write_table(pa.Table.from_pylist([dict(row) for row in table.rows], schema=schema), sink)
    written: bytes = sink.getvalue().to_pybytes()
    return written


def card(config: RunConfig, found: Read, made: list[Table], form: Format, sizes: Mapping[str, int]) -> str:
    """The card: front matter that loaders read, and what a reader should know."""
    by_name = {table.name: table for table in made}
    rows = by_name["tasks"].rows
    devices = sorted({str(row["device"]) for row in rows if row["device"]})
    title = f"{config.agent} on {config.panel}" + (f" with {config.model}" if config.model else "")
    written: str = _template().render(
        front=yaml.safe_dump(_front(title, config, made, form, sizes), sort_keys=False, allow_unicode=True, width=120),
        title=cell(title),
        config=config,
        panel=cell(config.panel),
        headline=cell(headline(found.report)),
        tables=made,
        tree=panel_tree(config.tasks, sanitize=config.sanitize),
        devices=", ".join(f"`{device}`" for device in devices) or "no device",
        missing=found.report.scores.missing,
        attempts=len(found.report.attempts),
        held_out=sum(row["held_out"] for row in rows),
        licences=[(cell(repo), cell(name), count) for repo, name, count in licences(rows)],
    )
    return written


@cache
def _template() -> Any:
    text = (files("smith.report") / "dataset_card.md.j2").read_text("utf-8")
    env = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
    return env.from_string(text)


def _front(title: str, config: RunConfig, made: list[Table], form: Format, sizes: Mapping[str, int]) -> dict[str, Any]:
    total = max(len(table.rows) for table in made)
    return {
        "pretty_name": title,
        "license": "other",
        "license_name": "upstreams",
        "license_link": CARD,
        "language": ["code"],
        "tags": ["gpu-kernels", "code-generation", "evaluation-results", "agents"],
        "size_categories": ["n<1K" if total < 1000 else "1K<n<10K" if total < 10_000 else "10K<n<100K"],
        "configs": [
            {
                "config_name": table.name,
                "data_files": [{"split": SPLIT, "path": _name(table, form)}],
                **({"default": True} if place == 0 else {}),
            }
            for place, table in enumerate(made)
        ],
        "dataset_info": [
            {
                "config_name": table.name,
                "features": [_feature(column) for column in table.columns],
                "splits": [{"name": SPLIT, "num_bytes": sizes[table.name], "num_examples": len(table.rows)}],
                "download_size": sizes[table.name],
                "dataset_size": sizes[table.name],
            }
            for table in made
        ],
    }


def _feature(column: Column) -> dict[str, str]:
    return {"name": column.name, ("list" if column.many else "dtype"): column.dtype}
