"""What the store holds of a document, and how that lies in its tables: every row with a checksum."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from neardup.decision.evidence import Push
from neardup.flow.document import Verdict

#: The columns of a row in the order of the table, up to its checksum.
COLUMNS = "serial, id, origin, time, entered, judged, kind, of, similarity, o, a, b, flag"

_OF_D = ", ".join(f"d.{name}" for name in COLUMNS.split(", "))
_FIELDS = f"SELECT {_OF_D}, d.sum, l.g, l.measures, h.text, t.title, h.sum, h.serial FROM"
_MORE = "LEFT JOIN learned l ON l.serial = d.serial LEFT JOIN titles t ON t.serial = d.serial"
#: From what is held, which is little, to the documents, which are all there ever were: so CROSS JOIN.
HELD = (
    f"{_FIELDS} held h CROSS JOIN documents d ON d.serial = h.serial {_MORE} "
    "WHERE h.serial >= ? ORDER BY h.serial LIMIT ?"
)
_EACH = f"{_FIELDS} documents d LEFT JOIN held h ON h.serial = d.serial {_MORE} WHERE"
UNPLACED = f"{_EACH} d.placed = 0 AND d.serial >= ? ORDER BY d.serial LIMIT ?"
OF_ID = f"{_EACH} d.id = ?"
#: The same without texts.
_NO_TEXT = "NULL, NULL, NULL, NULL FROM documents d LEFT JOIN learned l ON l.serial = d.serial"
_BARE = f"SELECT {_OF_D}, d.sum, l.g, l.measures, {_NO_TEXT} WHERE"
BARE_SINCE = f"{_BARE} d.serial >= ? ORDER BY d.serial LIMIT ?"
BARE_OF_ID = f"{_BARE} d.id = ?"
_INSERT = f"INSERT INTO documents ({COLUMNS}, sum, placed) VALUES ({'?, ' * 14}?)"  # noqa: S608
#: What the window holds of documents from one number to below another.
LET_GO = tuple(f"DELETE FROM {table} WHERE serial >= ? AND serial < ?" for table in ("held", "titles"))  # noqa: S608

Row = tuple[Any, ...]

_NUMBERS = struct.Struct("<3q2d3q")


class Stored(NamedTuple):
    """A document that was judged.

    Attributes
    ----------
    serial : int
        Its number in the order of arrival.
    id, origin : str
        As in the Document.
    time, entered : int
        Microseconds: its time, and the time by which it leaves the window.
    held : bool
        Whether the window holds it.
    text : str or None
        Its text while it is held.
    verdict : Verdict
        What was decided.
    title : str
        Its title while it is held, where the decision goes by titles.
    """

    serial: int
    id: str
    origin: str
    time: int
    entered: int
    held: bool
    text: str | None
    verdict: Verdict
    title: str = ""


def statements(rows: Sequence[Stored]) -> list[tuple[str, list[Row]]]:
    """Return what puts documents into the tables: statements, and the values of each."""
    held = [row for row in rows if row.held]
    learned = [row for row in rows if row.verdict.g is not None]
    return [
        (_INSERT, [(*to_row(row), int(not row.origin)) for row in rows]),
        (
            "INSERT INTO held VALUES (?, ?, ?)",
            [(int(row.serial), row.text, text_sum(int(row.serial), row.text, row.title)) for row in held],
        ),
        ("INSERT INTO titles VALUES (?, ?)", [(int(row.serial), row.title) for row in held if row.title]),
        ("INSERT INTO learned VALUES (?, ?, ?)", [(int(row.serial), *learned_row(row.verdict)) for row in learned]),
    ]


def to_row(stored: Stored) -> Row:
    """Return a document as a row: the columns and their checksum."""
    verdict = stored.verdict
    # NumPy's numbers are turned into Python's, of which SQLite keeps each as it is.
    similarity = None if verdict.similarity is None else float(verdict.similarity) + 0.0  # SQLite has no -0.0
    o, a, b = (None, None, None) if verdict.counts is None else map(int, verdict.counts)
    row = (
        int(stored.serial),
        stored.id,
        stored.origin,
        int(stored.time),
        int(stored.entered),
        float(verdict.time) + 0.0,
        verdict.kind,
        verdict.of,
        similarity,
        o,
        a,
        b,
        verdict.flag,
    )
    return *row, row_sum(row, *learned_row(verdict))


def learned_row(verdict: Verdict) -> tuple[float | None, str | None]:
    """Return g and the measures of a verdict as they are stored; None for both where no learned decision decided."""
    if verdict.g is None:
        return None, None
    said = {push.measure: [push.value, push.push] for push in verdict.measures}
    return float(verdict.g) + 0.0, json.dumps(said, separators=(",", ":"))


def from_row(row: Row, forgotten: int) -> tuple[Stored | None, str]:
    """Return the document that one of the queries found, or which part of it is not what was written.

    Parameters
    ----------
    row : tuple
        The columns, their checksum, g and measures, and where it is held the text, its title, the checksum of both
        and its serial.
    forgotten : int
        Documents with smaller serials are no longer held, even where their texts are still there.
    """
    *columns, row_check, g, measures, text, title, text_check, held = row
    try:
        if row_sum(tuple(columns), g, measures) != row_check:
            return None, "row"
        if held is not None and text_sum(held, text, title or "") != text_check:
            return None, "text"
        pushes = tuple(Push(name, *both) for name, both in json.loads(measures or "{}").items())
    except (struct.error, TypeError, AttributeError, ValueError):  # SQLite keeps any type in any column
        return None, "row"
    serial, name, origin, time, entered, judged, kind, of, similarity, o, a, b, flag = columns
    verdict = Verdict(name, kind, of, similarity, judged, flag, None if o is None else (o, a, b), g, pushes)
    holds = held is not None and held >= forgotten
    kept = (text, verdict, title or "") if holds else (None, verdict, "")
    return Stored(serial, name, origin, time, entered, holds, *kept), ""


def row_sum(row: Row, g: float | None = None, measures: str | None = None) -> int:
    """Return the checksum of the columns of a row, and of what a learned decision says besides.

    Raises
    ------
    struct.error, TypeError, AttributeError
        If a column holds another type of value.
    """
    serial, name, origin, time, entered, judged, kind, of, similarity, o, a, b, flag = row
    # What is not there counts as some number: a checksum need not tell all rows apart.
    alike = -1.0 if similarity is None else similarity
    o, a, b = (-1, -1, -1) if o is None else (o, a, b)
    numbers = _NUMBERS.pack(serial, time, entered, judged, alike, o, a, b)
    found = zlib.crc32("\0".join((name, origin, kind, of or "", flag)).encode(), zlib.crc32(numbers))
    if g is None and measures is None:
        return found
    return zlib.crc32((measures or "").encode(), zlib.crc32(struct.pack("<d", g), found))


def text_sum(serial: int, text: str | None, title: str = "") -> int:
    """Return the checksum of a held text, which goes with its serial, and of a title."""
    found = zlib.crc32(b"" if text is None else text.encode(), serial & 0xFFFFFFFF)
    return zlib.crc32(title.encode(), found) if title else found


def added(tally: Mapping[str, int], rows: Sequence[Stored]) -> dict[str, int]:
    """Return the counts with some more documents."""
    total = dict(tally)
    for row in rows:
        total["arrived"] += 1
        total["duplicates" if row.verdict.is_duplicate else "originals"] += 1
        if row.verdict.flag:
            total[row.verdict.flag] += 1
    return total


def storable(name: str) -> bool:
    """Whether UTF-8 can hold an id; one that it cannot was never stored."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
