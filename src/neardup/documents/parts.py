"""What a reader hands over: parts of an input, and the records in it that are broken."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from neardup.documents.discover import Found

NOT_JSON = "not valid JSON"
NOT_AN_OBJECT = "not a JSON object"
NO_TEXT = "no text"
NOT_A_STRING = "text is not a string"
NOT_UTF8 = "not valid UTF-8"
NO_ID = "no id"
#: Given by the caller, who alone sees all ids.
REPEATED_ID = "repeated id"
BAD_ID = "id is neither a string nor a number"
WRONG_FIELDS = "wrong number of fields"
OPEN_QUOTE = "quote never closed"
TOO_LONG = "longer than the largest document allowed"
CUT_SHORT = "compressed data is cut short or damaged"
UNREADABLE_GROUP = "unreadable row group"
UNREADABLE_FILE = "unreadable file"

REASONS = (
    BAD_ID,
    CUT_SHORT,
    NOT_AN_OBJECT,
    NOT_A_STRING,
    NOT_JSON,
    NOT_UTF8,
    NO_ID,
    NO_TEXT,
    OPEN_QUOTE,
    REPEATED_ID,
    TOO_LONG,
    UNREADABLE_FILE,
    UNREADABLE_GROUP,
    WRONG_FIELDS,
)
"""Every reason for which a reader sets a record aside; the words are stable, so they can be counted."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The columns pass one reads, and the limit it holds documents to."""

    text: str
    id: str | None = None
    order: str | None = None
    max_document: int | None = None

    @property
    def names(self) -> list[str]:
        """The distinct column names, text first."""
        return list(dict.fromkeys(name for name in (self.text, self.id, self.order) if name is not None))


@dataclass(frozen=True, slots=True)
class Broken:
    """A record that cannot be used: where it is, why, and its bytes where the reader has them."""

    row: int
    reason: str
    count: int = 1
    line: int | None = None
    detail: str = ""
    record: bytes | None = None


@dataclass(slots=True)
class Part:
    """A run of raw rows of one input, read."""

    rows: int
    texts: Any
    ids: Any = None
    order: Any = None
    positions: np.ndarray | None = None
    """Row of each array item, counted from the part's first; None when every row is in the arrays."""
    broken: list[Broken] = field(default_factory=list)
    """What the reader itself refused, rows counted from the part's first."""
    consumed: int = 0
    locate: Callable[[int], tuple[int, bytes]] | None = None
    """Row of the part -> (1-based line, its bytes); None where there are no lines."""


@dataclass(frozen=True, slots=True)
class Raw:
    """One raw record as the quarantine wants it."""

    row: int
    line: int | None
    record: bytes


class Source(Protocol):
    """One input with its format: the two passes, and looking up single rows.

    Rows are counted from the source's first. A mask over them says which rows the second pass wants.
    """

    found: Found

    def columns(self) -> dict[str, pa.DataType]:
        """Names and types of the columns, as far as the start of the input shows them."""
        ...

    def parts(self, wanted: Wanted) -> Generator[Part, None, None]:
        """Pass one: the wanted columns, part by part."""
        ...

    def schema(self, keep: np.ndarray) -> pa.Schema:
        """Give the schema that holds all kept rows."""
        ...

    def tables(self, keep: np.ndarray, schema: pa.Schema) -> Iterator[pa.Table]:
        """Pass two: the kept rows as tables of this schema, in order."""
        ...

    def records(self, keep: np.ndarray) -> Iterator[Raw]:
        """Give the kept rows one by one, as raw as the format allows."""
        ...
