"""Rows of a table: to a file, or on stdout parted by tabs or as JSON lines."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from neardup.cli.screen import speaks_unicode, visible

if TYPE_CHECKING:
    import pyarrow as pa

    from neardup.retrieval.asking import Table

_ROWS_AT_A_TIME = 1 << 16


def write_rows(found: Table, output: str, *, force: bool) -> None:
    """Write a table in the format of the name."""
    from neardup.documents import open_writer

    table = found.to_arrow()
    with open_writer(output, table.schema, force) as writer:
        writer.write(table)


def print_rows(tables: Iterable[pa.Table], columns: Sequence[str], *, as_json: bool) -> None:
    """Print tables to stdout one after the other, parted by tabs below the names of columns, or as JSON lines."""
    ascii_only = not speaks_unicode()
    if not as_json:
        sys.stdout.write("\t".join(columns) + "\n")
    for table in tables:
        for begin in range(0, len(table), _ROWS_AT_A_TIME):
            rows = table.slice(begin, _ROWS_AT_A_TIME).to_pylist()
            lines = (json.dumps(row, ensure_ascii=ascii_only) for row in rows) if as_json else map(_line, rows)
            sys.stdout.write("".join(f"{line}\n" for line in lines))
    # What is said on stderr afterwards comes after it in a pipe that takes both, too.
    sys.stdout.flush()


def _line(row: dict[str, Any]) -> str:
    return "\t".join(_field(value) for value in row.values())


def _field(value: Any) -> str:
    """Return a value as a field of a line, empty for none; an id with a tab or a line break has it written out."""
    if value is None:
        return ""
    text = visible(str(value)) if sys.stdout.isatty() else str(value)
    return text.replace("\\", r"\\").replace("\t", r"\t").replace("\n", r"\n").replace("\r", r"\r")
