"""The store of a flow: one SQLite file with all verdicts and the documents of the window; one writer, many readers."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import sqlite3
import threading
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self
from urllib.parse import quote

from neardup.classifier.evidence import Contribution
from neardup.errors import ClosedStore, InputError, StoreError, UnknownDocument, quoted
from neardup.search.window import EventTime
from neardup.stream.document import COUNTS, Arrival, Verdict, count
from neardup.stream.lock import Lock
from neardup.stream.store_file import (
    EARLIER_FORMAT,
    SETTING,
    StoreIdentity,
    check_kind,
    check_store,
    connect,
    connect_to_read,
    create_store,
    damage_error,
    find_store,
    open_for_writing,
    shorten,
    translate_error,
)

#: Far above any serial, and far below the largest integer of SQLite.
_MAX_SERIAL = 1 << 62
_SECOND = 1_000_000

#: The columns of a row in the order of the table, up to its checksum.
_COLUMNS = "serial, id, origin, time, leaves, judged, kind, of, similarity, o, a, b, flag, score, measures"

_DOCUMENT_COLUMNS = ", ".join(f"d.{name}" for name in _COLUMNS.split(", "))
_WITH_TEXT, _WITHOUT_TEXT = "h.serial, h.text, h.title, h.sum", "NULL, NULL, NULL, NULL"
_WITH_FIELDS = f"SELECT {_DOCUMENT_COLUMNS}, d.sum, d.version_of, {_WITH_TEXT} FROM"
_DOCUMENTS = f"{_WITH_FIELDS} documents d LEFT JOIN held h ON h.serial = d.serial WHERE"
_DOCUMENTS_BARE = f"SELECT {_DOCUMENT_COLUMNS}, d.sum, d.version_of, {_WITHOUT_TEXT} FROM documents d WHERE"  # noqa: S608
#: From the few documents in the window to all documents ever stored; a text without its document fails the check.
_SELECT_HELD = f"{_WITH_FIELDS} held h LEFT JOIN documents d ON d.serial = h.serial WHERE"
_STOPPED = "d.kind <> 'original' AND d.judged >= ?"
#: The order of batches, which begin at a serial.
_IN_ORDER = "d.serial >= ? ORDER BY d.serial LIMIT ?"
_SELECT_STOPPED_TEXT = (
    "SELECT k.digest, k.text, k.title FROM documents d JOIN kept k ON k.serial = d.serial "
    "WHERE d.id = ? AND k.serial >= ?"
)
_SELECT_JUDGED = (
    f"SELECT {_DOCUMENT_COLUMNS}, d.sum, d.version_of, {_WITHOUT_TEXT}, k.digest, k.title, k.sum FROM documents d "  # noqa: S608
    "LEFT JOIN kept k ON k.serial = d.serial WHERE d.id IN"
)
_EQUAL = (
    f"SELECT {_DOCUMENT_COLUMNS}, d.sum, d.version_of, {_WITHOUT_TEXT} FROM kept k "  # noqa: S608
    "CROSS JOIN documents d ON d.serial = k.serial WHERE k.digest = ?"
)
#: An original before a duplicate; of those the first.
_SELECT_EQUAL = f"{_EQUAL} ORDER BY d.kind <> 'original', d.serial LIMIT 2"
#: Between "a~" and the next text after all that begin with it; then digits only.
_SELECT_VERSION = (
    f"{_EQUAL} AND d.id > ? AND d.id < ? AND substr(d.id, ?) NOT GLOB '*[^0-9]*' ORDER BY d.serial LIMIT 1"
)
_DELETE_HELD = "DELETE FROM held WHERE serial >= ? AND serial < ?"
_DELETE_KEPT_TEXTS = "UPDATE kept SET text = NULL WHERE serial >= ? AND serial < ? AND text IS NOT NULL"
_OLDEST_TEXT = (
    "SELECT min(serial) FROM (SELECT min(serial) AS serial FROM held UNION ALL "
    "SELECT min(serial) FROM kept WHERE text IS NOT NULL)"
)

Row = tuple[Any, ...]


class Release(NamedTuple):
    """A released duplicate."""

    serial: int  #: its serial as an original
    id: str
    at: float  #: when, in seconds since 1970
    by: str  #: who
    #: Its former verdict.
    kind: str
    of: str
    similarity: float


def text_digest(text: str) -> bytes:
    """Return a digest that distinguishes texts: 16 bytes of BLAKE2b of the UTF-8."""
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def checksum(*values: Any) -> int:
    """Return a checksum of values in the form that SQLite returns."""
    return zlib.crc32(repr(values).encode())


#: Rows per INSERT statement.
_ROWS_PER_INSERT = 16


def insert_documents(connection: sqlite3.Connection, rows: Sequence[Arrival], *, placed: bool) -> None:
    """Insert documents: rows, texts in the window, and digests with the texts of duplicates."""
    held = [(int(row.serial), row.text, row.title) for row in rows if row.is_held]
    kept = [
        (int(row.serial), row.digest, None if row.is_held else row.text, "" if row.is_held else row.title)
        for row in rows
        if row.digest
    ]
    documents = [(*to_row(row), int(placed or not row.origin), row.verdict.version_of) for row in rows]
    _insert(connection, f"documents ({_COLUMNS}, sum, placed, version_of)", documents)
    _insert(connection, "held", [(*values, checksum(*values)) for values in held])
    _insert(connection, "kept", [(*values, checksum(values[0], values[1], values[3])) for values in kept])


def _write_state(connection: sqlite3.Connection, state: Mapping[str, str]) -> None:
    rows = [(name, value, checksum(name, value)) for name, value in state.items()]
    connection.executemany("INSERT OR REPLACE INTO state VALUES (?, ?, ?)", rows)


def _insert(connection: sqlite3.Connection, table: str, rows: Sequence[Row]) -> None:
    """Insert rows, many per statement: each statement lets other threads run, whose turns take longer than a row."""
    for begin in range(0, len(rows), _ROWS_PER_INSERT):
        part = rows[begin : begin + _ROWS_PER_INSERT]
        marks = ", ".join([f"({', '.join('?' * len(part[0]))})"] * len(part))
        connection.execute(f"INSERT INTO {table} VALUES {marks}", [value for row in part for value in row])  # noqa: S608


def to_row(stored: Arrival) -> Row:
    """Return a document as a row: columns and checksum."""
    verdict = stored.verdict
    # SQLite keeps Python's numbers exactly, except -0.0; NumPy's are converted.
    similarity, score = (None if value is None else float(value) + 0.0 for value in (verdict.similarity, verdict.score))
    measures = {item.measure: [item.value, item.amount] for item in verdict.measures}
    row = (
        int(stored.serial),
        verdict.id,
        stored.origin,
        int(stored.event_time.time),
        int(stored.event_time.expiry),
        float(verdict.time) + 0.0,
        verdict.kind,
        verdict.of,
        similarity,
        *((None, None, None) if verdict.counts is None else map(int, verdict.counts)),
        verdict.flag,
        score,
        None if score is None else json.dumps(measures, separators=(",", ":")),
    )
    return *row, _row_checksum(row, verdict.version_of)


def _row_checksum(row: Row, version_of: str | None) -> int:
    # Without a version as in the format before.
    return checksum(*row) if version_of is None else checksum(*row, version_of)


def is_storable(name: str) -> bool:
    """Return whether UTF-8 can hold an id; other ids were never stored."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


#: Rows and ids per query: short queries let the log be checkpointed in between.
_ROWS_PER_QUERY, _IDS_PER_QUERY = 4096, 500


class _Connections:
    """Connections to a store for reading, each used by one thread at a time.

    A thread takes an idle connection, or opens one if all are in use; one stays open between uses.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._changed = threading.Condition()
        self._idle: list[sqlite3.Connection] = []
        self._used_count = 0
        self._closed = False

    @contextlib.contextmanager
    def use(self) -> Iterator[sqlite3.Connection]:
        """Give a connection for the duration of the block.

        Raises ``ClosedStore`` after ``close``.
        """
        with self._changed:
            if self._closed:
                raise closed_error(self._path)
            connection = self._idle.pop() if self._idle else None
            self._used_count += 1
        try:
            if connection is None:
                connection = connect_to_read(self._path)
            yield connection
        finally:
            with self._changed:
                self._used_count -= 1
                is_surplus = bool(self._idle)
                if connection is not None and not is_surplus:
                    self._idle.append(connection)
                self._changed.notify_all()
            if connection is not None and is_surplus:
                connection.close()

    def close(self) -> None:
        """Refuse further use, wait for the threads that are reading, and close all connections."""
        with self._changed:
            self._closed = True
            self._changed.wait_for(lambda: not self._used_count)
            while self._idle:
                self._idle.pop().close()


def closed_error(path: Path) -> ClosedStore:
    """Return the error for the use of a store after it was closed."""
    return ClosedStore(f"{path} is closed; open it again")


class StoreReader:
    """Reads a store and never writes to it; another process may write at the same time.

    The checksum of every row and text is checked. Any number of threads may use it at once.

    Raises ``StoreError`` if there is no store, or it cannot be read.
    """

    _forgotten: int
    _is_earlier_format = False

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise StoreError(f"{path} is not a file, so it is not a store; name the store of a watcher or an index")
        self._connections = _Connections(self.path)
        try:
            with self._reading() as connection:
                self._is_earlier_format = check_kind(self.path, connection) == EARLIER_FORMAT
            self._forgotten = self._numbers()["forgotten"]
        except BaseException:
            self._connections.close()
            raise

    @contextlib.contextmanager
    def _translated_errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OverflowError) as error:
            raise translate_error(self.path, error) from error
        except OSError as error:
            raise StoreError(f"{self.path} cannot be used ({error.strerror}); check its disk") from error

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._translated_errors(), self._connections.use() as connection:
            yield connection

    def _rows(self, query: str, *parameters: object) -> list[Row]:
        # Fetched completely, so that others may write between two queries.
        with self._reading() as connection:
            if self._is_earlier_format:
                query = query.replace("d.version_of", "NULL")
            return connection.execute(query, parameters).fetchall()

    def _value(self, query: str, *parameters: object) -> str | None:
        """Return the text in the only row of a result, None if there is none."""
        rows = self._rows(query, *parameters)
        return str(rows[0][0]) if rows else None

    def _numbers(self) -> dict[str, int]:
        return self._checked_tally(self._rows("SELECT name, value FROM tally"))

    def _checked_tally(self, rows: Sequence[Row]) -> dict[str, int]:
        """Return the counts, after a check of what has no checksum."""
        tally: dict[str, int] = dict(rows)
        if set(tally) != {*COUNTS, "forgotten"}:
            raise damage_error(self.path, "its counts are gone")
        if not all(isinstance(value, int) and value >= 0 for value in tally.values()):
            raise damage_error(self.path, "its counts are not what was written")
        if tally["arrived"] != tally["originals"] + tally["duplicates"]:
            raise damage_error(self.path, "its counts contradict each other")
        return tally

    @property
    def counts(self) -> dict[str, int]:
        """How many documents arrived, how many were originals and duplicates, and how many had each flag."""
        found = self._numbers()
        return {name: found[name] for name in COUNTS}

    @property
    def held_count(self) -> int:
        """Number of documents in the window."""
        return int(self._rows("SELECT count(*) FROM held WHERE serial >= ?", self._forgotten)[0][0])

    def meta(self, name: str) -> str | None:
        """Return an entry of the table meta: ``fingerprint``, or ``setting`` and a name."""
        return self._value("SELECT value FROM meta WHERE name = ?", name)

    @property
    def settings(self) -> dict[str, str]:
        """The settings of the store: ``window``, ``window_by`` and ``against``, as ``Index`` takes them."""
        return {name: self.meta(f"{SETTING}{name}") or "" for name in ("window", "window_by", "against")}

    def window_documents(self, batch: int = 4096) -> Iterator[list[Arrival]]:
        """Yield the documents in the window in batches, in order of serial."""
        yield from self._batches(f"{_SELECT_HELD} h.serial >= ? ORDER BY h.serial LIMIT ?", self._forgotten, batch)

    def unplaced_documents(self) -> Iterator[Arrival]:
        """Yield the judged documents that are not yet in their place, in order of serial."""
        for found in self._batches(f"{_DOCUMENTS} d.placed = 0 AND {_IN_ORDER}", -(2**63), 256):
            yield from found

    def _batches(self, query: str, begin: int, batch: int, *parameters: float) -> Iterator[list[Arrival]]:
        while True:
            rows = self._rows(query, *parameters, begin, batch)
            found = list(map(self._document, rows))
            if found:
                yield found
            if len(rows) < batch:
                return
            begin = found[-1].serial + 1

    def _document(self, row: Row) -> Arrival:
        """Return the document of a result row, after a check of both checksums."""
        *columns, row_sum, version_of, held, text, title, text_sum = row
        if _row_checksum(tuple(columns), version_of) != row_sum:
            raise self._change_error("row", row[0])
        if held is not None and checksum(held, text, title) != text_sum:
            raise self._change_error("text", row[0])
        serial, name, origin, time, leaves, judged, kind, of, similarity, o, a, b, flag, score, measures = columns
        measured = tuple(Contribution(measure, *values) for measure, values in json.loads(measures or "{}").items())
        counts = None if o is None else (o, a, b)
        verdict = Verdict(name, kind, of, similarity, judged, flag, counts, score, measured, version_of)
        is_held = held is not None and held >= self._forgotten
        text, title = (text, title) if is_held else (None, "")
        event_time = EventTime(time, leaves, 0, round(judged * _SECOND))
        return Arrival(
            name,
            text,
            title,
            origin,
            version_of=version_of,
            serial=serial,
            event_time=event_time,
            is_held=is_held,
            verdict=verdict,
        )

    def _change_error(self, part: str, serial: int) -> StoreError:
        return damage_error(self.path, f"the {part} of document number {serial} is not what was written")

    def latest_documents(self, count: int) -> list[Arrival]:
        """Return the documents that arrived last, in order of arrival, without their texts."""
        ((top,),) = self._rows("SELECT max(serial) FROM documents")
        if top is None:
            return []
        batches = self._batches(f"{_DOCUMENTS_BARE} {_IN_ORDER}", top + 1 - count, _ROWS_PER_QUERY)
        return [row for rows in batches for row in rows if row.serial <= top]

    def stopped_documents(self, since: float, *, after: int = -1) -> Iterator[Arrival]:
        """Yield the duplicates with a time (seconds since 1970) from one on, in order of arrival, without their texts.

        Released documents are no longer duplicates.
        """
        for found in self._batches(f"{_DOCUMENTS_BARE} {_STOPPED} AND {_IN_ORDER}", after + 1, _ROWS_PER_QUERY, since):
            yield from found

    def latest_stopped(self, since: float, limit: int) -> list[Arrival]:
        """Return the latest duplicates with a time from one on, the newest first, without their texts."""
        query = f"{_DOCUMENTS_BARE} {_STOPPED} ORDER BY d.serial DESC LIMIT ?"
        return list(map(self._document, self._rows(query, since, limit)))

    def find(self, name: str, *, text: bool = True) -> Arrival | None:
        """Return the document of that id; None if it has no verdict."""
        rows = self._rows_of_ids(f"{_DOCUMENTS if text else _DOCUMENTS_BARE} d.id IN", [name])
        return next(map(self._document, rows), None)

    def text_beginnings(self, serials: Sequence[int], characters: int) -> dict[int, str]:
        """Return the beginnings of the texts of those documents that are in the window, by serial."""
        found: dict[int, str] = {}
        for begin in range(0, len(serials), _IDS_PER_QUERY):
            batch_ids = [serial for serial in serials[begin : begin + _IDS_PER_QUERY] if serial >= self._forgotten]
            marks = ", ".join("?" * len(batch_ids))
            query = f"SELECT serial, substr(text, 1, ?) FROM held WHERE serial IN ({marks})"  # noqa: S608
            found |= dict(self._rows(query, characters, *batch_ids))
        return found

    def judged_ids(self, ids: Sequence[str]) -> set[str]:
        """Return which of the ids have a verdict."""
        return {name for (name,) in self._rows_of_ids("SELECT id FROM documents WHERE id IN", ids)}

    def judged_documents(self, ids: Sequence[str]) -> dict[str, Arrival]:
        """Return the judged documents among some ids."""
        found: dict[str, Arrival] = {}
        for *row, digest, title, kept_sum in self._rows_of_ids(_SELECT_JUDGED, ids):
            stored = self._document(tuple(row))
            if digest is not None and checksum(stored.serial, digest, title) != kept_sum:
                raise self._change_error("digest", stored.serial)
            stored.digest = digest or b""
            found[stored.id] = stored
        return found

    def first_equal(self, digest: bytes, excluded: str) -> Arrival | None:
        """Return the first original with a text of that digest, or else the first duplicate, without the text.

        ``excluded`` is the id of a document that is about to be replaced, or empty.
        """
        rows = map(self._document, self._rows(_SELECT_EQUAL, digest))
        return next((row for row in rows if row.id != excluded), None)

    def version(self, name: str, digest: bytes) -> Arrival | None:
        """Return the document with a text of that digest whose id is that of a version of another document."""
        begin = f"{name}~"
        parameters = digest, begin, f"{name}\x7f", len(begin) + 1
        return next(map(self._document, self._rows(_SELECT_VERSION, *parameters)), None)

    def _rows_of_ids(self, query: str, ids: Sequence[str]) -> Iterator[Row]:
        """Yield the rows that a query, which lacks its list of ids, finds for ids."""
        valid = [name for name in ids if is_storable(name)]
        for begin in range(0, len(valid), _IDS_PER_QUERY):
            batch_ids = valid[begin : begin + _IDS_PER_QUERY]
            yield from self._rows(f"{query} ({', '.join('?' * len(batch_ids))})", *batch_ids)

    def stopped_text(self, name: str) -> tuple[str, str] | None:
        """Return text and title of a document that is not in the window, None if they are not kept."""
        rows = self._rows(_SELECT_STOPPED_TEXT, name, self._forgotten) if is_storable(name) else []
        if not rows or rows[0][1] is None:
            return None
        ((digest, text, title),) = rows
        if text_digest(text) != digest:
            raise damage_error(self.path, f"the text of {shorten(name)} is not what was written")
        return text, title

    def ids_with_words(self, words: Sequence[str], limit: int, recent: int) -> list[str]:
        """Return the ids of documents whose ids or texts contain all of some words, the newest first.

        ASCII letters match in either case. At most ``limit`` ids are returned, of the ``recent`` latest documents.
        Raising ``recent`` takes time in proportion.
        """
        conditions = " AND ".join(
            ["(d.id LIKE ? ESCAPE '!' OR coalesce(h.text, k.text) LIKE ? ESCAPE '!')"] * len(words)
        )
        query = (
            "SELECT d.id FROM documents d LEFT JOIN held h ON h.serial = d.serial "  # noqa: S608
            "LEFT JOIN kept k ON k.serial = d.serial "
            f"WHERE d.serial > (SELECT max(serial) FROM documents) - ? AND {conditions} ORDER BY d.serial DESC LIMIT ?"
        )
        patterns = ["%" + re.sub("[!%_]", r"!\g<0>", word) + "%" for word in words for _ in range(2)]
        return [name for (name,) in self._rows(query, recent, *patterns, limit)]

    def verdict_of(self, name: str) -> Verdict | None:
        """Return the verdict on a document, None if there is none."""
        found = self.find(name, text=False)
        return None if found is None else found.verdict

    def releases(self, since: int) -> list[Release]:
        """Return the released duplicates from a serial on, in order."""
        query = "SELECT serial, id, at, by, kind, of, similarity FROM released WHERE serial >= ? ORDER BY serial"
        rows = self._rows(query, since)
        for row in rows:
            types: tuple[Any, ...] = (int, str, float, str, str, (str, type(None)), (float, type(None)))
            if not all(isinstance(value, kind) for value, kind in zip(row, types, strict=True)):
                raise self._change_error("release", row[0])
        return [Release(*row) for row in rows]

    def stopped_document(self, name: str) -> Arrival:
        """Return the duplicate of an id, without its text.

        Raises ``UnknownDocument`` if the id has no verdict, and ``InputError`` if it was not stopped or was already
        released.
        """
        row = self.find(name, text=False)
        if row is None:
            raise UnknownDocument(
                f"{self.path} has no item with the id {name!r}; neardup store list shows all that can be released"
            )
        if row.verdict.is_duplicate:
            return row
        released = self._rows("SELECT by, at FROM released WHERE serial = ?", row.serial)
        if not released:
            raise InputError(f"{name!r} was not stopped: it is an original, so there is nothing to release")
        ((by, at),) = released
        released_at = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        releaser = f" by {by}" if by else ""
        raise InputError(f"{name!r} was released already{releaser} at {released_at}, so there is nothing to release")

    def judged_count(self, origin: str) -> int:
        """Return the number of judged documents of an origin that is not empty."""
        # The second condition makes the index serve.
        return int(self._rows("SELECT count(*) FROM documents WHERE origin = ? AND origin <> ''", origin)[0][0])

    def state(self, key: str) -> str | None:
        """Return the text stored under a key, None if there is none."""
        checked = "NULL" if self._is_earlier_format else "sum"
        for value, written in self._rows(f"SELECT value, {checked} FROM state WHERE name = ?", key):  # noqa: S608
            if not isinstance(value, str) or (written is not None and written != checksum(key, value)):
                raise damage_error(self.path, f"its state {quoted(key)} is not what was written")
            return value
        return None

    def close(self) -> None:
        """Close the store once no thread is reading it; a second call does nothing."""
        self._connections.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


#: Forgotten texts deleted at once, at least with each ``record``, and per recorded document.
_FORGET_BATCH, _MIN_DELETED, _DELETED_PER_ROW = 4096, 256, 4


class Store(StoreReader):
    """The durable state of a flow.

    When ``record`` returns, its documents are on disk (WAL, ``synchronous=FULL``); after a failure none of them is.
    One process writes at a time. It may use the store from several threads if it serializes them with a lock;
    others may read the file at the same time, for example with the ``sqlite3`` shell.

    Damage is detected at two times. Opening checks the kind of file, recipe, settings and size; and, unless the store
    was closed cleanly and size and time are unchanged, runs ``PRAGMA quick_check``, 0.6 s per GB, which skips the
    content of indexes. After a crash, the log is applied up to its last complete commit. Reading checks the
    checksum of every row and text, and reports the errors of SQLite. A damaged store is refused, never repaired.

    ``path``: the file, created if missing; ``.lock``, ``-wal`` and ``-shm`` files accompany it. Raises ``StoreError``
    if the file cannot be used; it is left unchanged.
    """

    _connection: sqlite3.Connection
    _closed = False
    #: Whether the counts and the next serial are those of the disk; False if that cannot be read after a failure.
    is_certain = False

    def __init__(self, path: str | os.PathLike[str], identity: StoreIdentity) -> None:
        self.path = Path(os.path.realpath(path))
        if not Lock.path_for(self.path).exists():  # do not create a lock for a file that is not a store
            with self._translated_errors():
                find_store(self.path)
        self._lock = Lock(self.path)
        clean = False
        try:
            with self._translated_errors():
                if find_store(self.path):
                    clean = self._lock.is_unchanged
                    check_store(self.path, self._lock, identity)
                else:
                    create_store(self.path, identity)
                self._connection = open_for_writing(self.path)
                try:
                    self._load()
                except BaseException:
                    self._connection.close()
                    raise
        except BaseException:
            self._lock.release(clean=clean)
            raise
        self._closed = False

    def _load(self) -> None:
        """Read the counts and the next serial from the disk, without what a failed transaction has changed."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        tally = self._checked_tally(self._connection.execute("SELECT name, value FROM tally").fetchall())
        self._forgotten: int = tally.pop("forgotten")
        self._tally: dict[str, int] = {name: tally[name] for name in COUNTS}
        (last_serial,) = self._connection.execute("SELECT max(serial) FROM documents").fetchone()
        self._next = 0 if last_serial is None else last_serial + 1
        if self._next > _MAX_SERIAL or self._forgotten > self._next:
            raise damage_error(self.path, "its serial numbers are not what was written")
        (first,) = self._connection.execute(_OLDEST_TEXT).fetchone()
        self._has_forgotten_texts = first is not None and first < self._forgotten
        self.is_certain = True

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        if self._closed:
            raise closed_error(self.path)
        with self._translated_errors():
            if not self.is_certain:
                self._load()
            yield self._connection

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Run one transaction, which is on disk when the block ends."""
        with self._reading() as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                self.is_certain = False
                with contextlib.suppress(sqlite3.Error, StoreError):
                    self._load()  # an interrupt may come before or after the commit
                raise

    @property
    def next_serial(self) -> int:
        """The serial after the last one."""
        with self._reading():
            return self._next

    @property
    def counts(self) -> dict[str, int]:
        """How many documents arrived, how many were originals and duplicates, and how many had each flag."""
        with self._reading():
            return dict(self._tally)

    def record(
        self,
        rows: Sequence[Arrival],
        state: Mapping[str, str] | None = None,
        *,
        removed: Arrival | None = None,
        released_by: str | None = None,
    ) -> None:
        """Write documents and their verdicts, all or none, and delete one in the same transaction.

        ``rows`` have new ids and serials; those with an origin are not yet in their place. ``state`` holds texts to
        store with them, as in ``set_state``. Of the document ``removed``, verdict, text and part in the counts are
        deleted, and a row may reuse its id; with ``released_by``, the person who released it, the only row is the
        original that it becomes, already in its place. Raises ``StoreError`` if they cannot be written, for example
        because the disk is full; the store remains usable.
        """
        if not rows and not state and removed is None:
            return
        tally = dict(self._tally)
        count(tally, [row.verdict for row in rows])
        with self._writing() as connection:
            if removed is not None:
                count(tally, [removed.verdict], -1)
                for table in ("documents", "held", "kept"):
                    connection.execute(f"DELETE FROM {table} WHERE serial = ?", (removed.serial,))  # noqa: S608
            insert_documents(connection, rows, placed=released_by is not None)
            if removed is not None and released_by is not None:
                former = removed.verdict
                release = (int(rows[0].serial), removed.id, time.time(), released_by)
                released = (*release, former.kind, former.of, former.similarity)
                connection.execute("INSERT INTO released VALUES (?, ?, ?, ?, ?, ?, ?)", released)
            changed = [(value, name) for name, value in tally.items() if value != self._tally[name]]
            connection.executemany("UPDATE tally SET value = ? WHERE name = ?", changed)
            if state:
                _write_state(connection, state)
            has_forgotten = self._has_forgotten_texts and self._delete_forgotten(
                connection, max(_MIN_DELETED, _DELETED_PER_ROW * len(rows))
            )
        self._tally, self._has_forgotten_texts = tally, has_forgotten
        self._next = max(self._next, *(int(row.serial) + 1 for row in rows)) if rows else self._next

    def forget(self, serials_below: int, oldest_segment: int = 0) -> None:
        """Forget the texts of all documents with smaller serials, which have left the window.

        This takes effect at once; the texts themselves are deleted in batches, now and with later records, and
        their space in the file is reused.
        """
        del oldest_segment  # a store keeps all verdicts
        below = min(int(serials_below), self._next)  # later documents are not forgotten
        if below <= self._forgotten:
            return
        with self._writing() as connection:
            connection.execute("UPDATE tally SET value = ? WHERE name = 'forgotten'", (below,))
            has_forgotten = self._delete_forgotten(connection, _FORGET_BATCH, below)
        self._forgotten, self._has_forgotten_texts = below, has_forgotten

    def _delete_forgotten(self, connection: sqlite3.Connection, max_rows: int, below: int | None = None) -> bool:
        """Delete some forgotten texts; return whether there are more."""
        end = self._forgotten if below is None else below
        (first,) = connection.execute(_OLDEST_TEXT).fetchone()
        if first is None or first >= end:
            return False
        for statement in (_DELETE_HELD, _DELETE_KEPT_TEXTS):
            connection.execute(statement, (first, min(first + max_rows, end)))
        return bool(first + max_rows < end)

    def delete_text(self, serial: int) -> None:
        """Delete the text of a document that was removed from the window explicitly."""
        with self._writing() as connection:
            connection.execute(_DELETE_HELD, (int(serial), int(serial) + 1))

    def requests(self) -> list[tuple[str, str]]:
        """Return the unanswered requests for a release: ids, and who asks."""
        return self._rows("SELECT id, by FROM requests WHERE answer IS NULL ORDER BY id")

    def answer_request(self, name: str, answer: Mapping[str, str]) -> None:
        """Answer a request with the ``file`` that the item is in now, or with the ``error``."""
        with self._writing() as connection:
            connection.execute("UPDATE requests SET answer = ? WHERE id = ?", (json.dumps(answer), name))

    def record_address(self, address: str) -> None:
        """Publish the address of the service that has this store open."""
        self._lock.record_address(address)

    def mark_placed(self, serials: Sequence[int]) -> None:
        """Record that documents are in their place; on disk when this returns."""
        if serials:
            with self._writing() as connection:
                rows = [(int(serial),) for serial in serials]
                connection.executemany("UPDATE documents SET placed = 1 WHERE serial = ?", rows)

    def set_state(self, key: str, value: str) -> None:
        """Store a small text under a key; on disk when this returns."""
        with self._writing() as connection:
            _write_state(connection, {key: value})

    def close(self) -> None:
        """Checkpoint the log and close the store; a second call does nothing."""
        if self._closed:
            return
        clean = False
        try:
            with contextlib.suppress(StoreError):  # the next start cleans up the rest
                while self._has_forgotten_texts:
                    with self._writing() as connection:
                        self._has_forgotten_texts = self._delete_forgotten(connection, _FORGET_BATCH)
                with self._translated_errors():
                    clean = not self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        finally:
            self._closed = True
            self._connection.close()
            self._lock.release(clean=clean)


#: Seconds between two checks for an answer.
_POLL_SECONDS = 0.1


def request_release(path: str | os.PathLike[str], name: str, by: str, seconds: float) -> dict[str, str]:
    """Ask the watcher that has a store open to release a duplicate, and return its answer.

    Raises ``StoreError`` if the store cannot be written, a service has it open, or nobody answers; then nothing has
    changed.
    """
    store, answer = Path(os.path.realpath(path)), None
    _check_not_served(store, name)
    try:
        with contextlib.closing(connect(store, "rw")) as connection:
            connection.execute("INSERT OR REPLACE INTO requests VALUES (?, ?, NULL)", (name, by))
            try:
                end = time.monotonic() + seconds
                while answer is None and time.monotonic() < end:
                    # A service that was starting has an address by now.
                    _check_not_served(store, name)
                    time.sleep(_POLL_SECONDS)
                    (answer,) = connection.execute("SELECT answer FROM requests WHERE id = ?", (name,)).fetchone()
            finally:
                connection.execute("DELETE FROM requests WHERE id = ?", (name,))
    except sqlite3.Error as error:
        raise translate_error(store, error) from error
    if answer is None:
        raise StoreError(
            f"{store} is in use by a process that has not answered for {seconds:g} s; stop it and release {name!r} "
            "again"
        )
    found: dict[str, str] = json.loads(answer)
    return found


def _check_not_served(store: Path, name: str) -> None:
    """Check that no service has the store open; a service is asked over HTTP instead."""
    if address := Lock.service_address(store):
        raise StoreError(
            f"{store} is in use by neardup serve: release {name!r} on its page, or with POST "
            f"{address}/documents/{quote(name, safe='')}/release"
        )
