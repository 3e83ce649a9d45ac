"""The store of a flow: documents, their verdicts and what the window holds, in one SQLite file."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Self

from neardup.errors import StoreError
from neardup.flow import schema
from neardup.flow.document import Verdict
from neardup.flow.locking import Lock
from neardup.flow.rows import (
    HELD,
    LET_GO,
    OF_ID,
    UNPLACED,
    Row,
    Stored,
    added,
    from_row,
    statements,
    storable,
)
from neardup.flow.schema import FORMAT, TALLIES

__all__ = ["FORMAT", "Store", "Stored"]

#: How many ids one question asks for.
_IDS = 500
#: Texts deleted at once when they are forgotten, at least with each record, and per document recorded.
_PIECE, _SWEEP, _SWEEP_EACH = 4096, 256, 4


class Store:
    """Keeps what a flow must not lose.

    What ``record`` was given is on the disk when it returns (WAL, ``synchronous=FULL``): all of it, or after a
    failure none of it. One process writes at a time, and it may use the store from several threads as long as a
    lock of its own keeps them apart; anybody may read the file meanwhile, for example with the ``sqlite3`` shell.

    What is found out about damage, and when. At opening: another kind of file, another recipe or other settings; a
    file that is longer or shorter than it says; and, unless the store was closed in order and is the same file as
    then by size and time, whatever ``PRAGMA integrity_check`` finds (beyond 4 GB ``quick_check``, which leaves the
    indexes out). After a crash the log is taken up to its last whole commit. Later: every row and text that is read
    is compared with its checksum, and what SQLite itself meets is reported. A damaged store is refused, never
    repaired.

    Parameters
    ----------
    path : str or PathLike
        The file; a new one is made where there is none. ``.lock``, ``-wal`` and ``-shm`` files lie beside it.
    fingerprint : str
        Of the recipe.
    settings : dict
        What else the verdicts depend on, as texts: the window and how it is measured.
    dependencies : dict
        What the fingerprint is of (``Recipe.dependencies``), to say what differs.

    Raises
    ------
    StoreError
        If the file cannot be used; it is left as it was.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        fingerprint: str,
        settings: Mapping[str, str],
        dependencies: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.path = Path(os.path.realpath(path))
        if not Lock.beside(self.path).exists():  # no store yet, or not ours: no lock is put beside what is another's
            schema.look(self.path)
        self._lock = Lock(self.path)
        clean = False
        try:
            with self._explained():
                if schema.look(self.path):
                    clean = self._lock.left_as_it_is
                    schema.check(self.path, self._lock, fingerprint, settings, dependencies)
                else:
                    schema.create(self.path, fingerprint, settings, dependencies)
                self._connection = schema.connect(self.path)
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
        """Take the numbers that are kept in memory from the file."""
        tally = dict(self._connection.execute("SELECT name, value FROM tally"))
        if set(tally) != {*TALLIES, "forgotten"}:
            raise schema.damaged(self.path, "its counts are gone")
        self._forgotten: int = tally.pop("forgotten")
        self._tally: dict[str, int] = {name: tally[name] for name in TALLIES}
        (last,) = self._connection.execute("SELECT max(serial) FROM documents").fetchone()
        self._next = 0 if last is None else last + 1
        (first,) = self._connection.execute("SELECT min(serial) FROM held").fetchone()
        self._behind = first is not None and first < self._forgotten

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OverflowError) as error:
            raise schema.explained(self.path, error) from error
        except OSError as error:
            raise StoreError(f"{self.path} cannot be used ({error.strerror}); look after its disk") from error

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        if self._closed:
            raise StoreError(f"{self.path} is closed; open it again with a new Store")
        with self._explained():
            yield self._connection

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Give one transaction, on the disk when the block is left."""
        with self._reading() as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error, StoreError):
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    self._load()  # an interrupt may come before or after the commit
                raise

    @property
    def next_serial(self) -> int:
        """The serial after the last one."""
        return self._next

    @property
    def counts(self) -> dict[str, int]:
        """How many documents arrived, how many were originals and duplicates, and how many had each flag."""
        return dict(self._tally)

    def record(self, rows: Sequence[Stored], state: Mapping[str, str] | None = None) -> None:
        """Put documents and their verdicts on the disk, all or none.

        Parameters
        ----------
        rows : sequence of Stored
            New ids, with serials that no document has. Rows with an origin are not yet in their place.
        state : dict, optional
            Small texts that change with them, as in ``set_state``.

        Raises
        ------
        StoreError
            If they cannot be written, for example because the disk is full; the store goes on without them.
        """
        if not rows and not state:
            return
        tally = added(self._tally, rows)
        with self._writing() as connection:
            for statement, values in statements(rows):
                connection.executemany(statement, values)
            changed = [(value, name) for name, value in tally.items() if value != self._tally[name]]
            connection.executemany("UPDATE tally SET value = ? WHERE name = ?", changed)
            if state:
                connection.executemany("INSERT OR REPLACE INTO state VALUES (?, ?)", list(state.items()))
            behind = self._behind and self._sweep(connection, max(_SWEEP, _SWEEP_EACH * len(rows)))
        self._tally, self._behind = tally, behind
        self._next = max(self._next, *(int(row.serial) + 1 for row in rows)) if rows else self._next

    def held(self, batch: int = 4096) -> Iterator[list[Stored]]:
        """Yield what the window holds in order of serial.

        Parameters
        ----------
        batch : int
            How many at a time.
        """
        yield from self._batches(HELD, self._forgotten, batch)

    def unplaced(self) -> Iterator[Stored]:
        """Yield the documents with verdicts that are not yet in their place, in order of serial."""
        for found in self._batches(UNPLACED, -(2**63), 256):
            yield from found

    def _batches(self, query: str, begin: int, batch: int) -> Iterator[list[Stored]]:
        # Each question is answered whole, so that others may write between two batches.
        while True:
            with self._reading() as connection:
                rows = connection.execute(query, (begin, batch)).fetchall()
                found = [self._stored(row) for row in rows]
            if found:
                yield found
            if len(rows) < batch:
                return
            begin = found[-1].serial + 1

    def _stored(self, row: Row) -> Stored:
        found, wrong = from_row(row, self._forgotten)
        if found is None:
            raise schema.damaged(self.path, f"the {wrong} of document number {row[0]} is not what was written")
        return found

    def forget(self, serials_below: int) -> None:
        """Let go of the texts of all documents with smaller serials: the window holds them no longer.

        It holds for everything this store says from now on; the texts themselves are deleted in pieces, now and
        along with what is recorded next, and their room in the file is used again.
        """
        below = min(int(serials_below), self._next)  # those to come are not forgotten
        if below <= self._forgotten:
            return
        with self._writing() as connection:
            connection.execute("UPDATE tally SET value = ? WHERE name = 'forgotten'", (below,))
            behind = self._sweep(connection, _PIECE, below)
        self._forgotten, self._behind = below, behind

    def _sweep(self, connection: sqlite3.Connection, most: int, below: int | None = None) -> bool:
        """Delete some of the texts that are forgotten; whether there are more."""
        end = self._forgotten if below is None else below
        (first,) = connection.execute("SELECT min(serial) FROM held").fetchone()
        if first is None or first >= end:
            return False
        for statement in LET_GO:
            connection.execute(statement, (first, min(first + most, end)))
        return bool(first + most < end)

    def unhold(self, serial: int) -> None:
        """Let go of the text of one document that was removed from the window by hand."""
        with self._writing() as connection:
            for statement in LET_GO:
                connection.execute(statement, (int(serial), int(serial) + 1))

    def known(self, ids: Sequence[str]) -> set[str]:
        """Return which of the ids have a verdict."""
        found: set[str] = set()
        able = [name for name in ids if storable(name)]
        with self._reading() as connection:
            for begin in range(0, len(able), _IDS):
                asked = able[begin : begin + _IDS]
                marks = ", ".join("?" * len(asked))
                found.update(
                    name
                    for (name,) in connection.execute(f"SELECT id FROM documents WHERE id IN ({marks})", asked)  # noqa: S608
                )
        return found

    def _find(self, name: str) -> Stored | None:
        with self._reading() as connection:
            row = connection.execute(OF_ID, (name,)).fetchone() if storable(name) else None
            return None if row is None else self._stored(row)

    def verdict_of(self, name: str) -> Verdict | None:
        """Return the Verdict on the document of that id, None if there is none."""
        found = self._find(name)
        return None if found is None else found.verdict

    def text_of(self, name: str) -> str | None:
        """Return the text of the document of that id, None unless the window holds it."""
        found = self._find(name)
        return None if found is None else found.text

    def judged(self, origin: str) -> int:
        """Return how many documents of that origin (not the empty one) have verdicts."""
        with self._reading() as connection:
            query = "SELECT count(*) FROM documents WHERE origin = ? AND origin <> ''"
            return int(connection.execute(query, (origin,)).fetchone()[0])

    def placed(self, serials: Sequence[int]) -> None:
        """Note that documents are in their place; on the disk when it returns."""
        if serials:
            with self._writing() as connection:
                rows = [(int(serial),) for serial in serials]
                connection.executemany("UPDATE documents SET placed = 1 WHERE serial = ?", rows)

    def state(self, key: str) -> str | None:
        """Return the text kept under a name, None if there is none."""
        with self._reading() as connection:
            row = connection.execute("SELECT value FROM state WHERE name = ?", (key,)).fetchone()
            return None if row is None else str(row[0])

    def set_state(self, key: str, value: str) -> None:
        """Keep a small text under a name; on the disk when it returns."""
        with self._writing() as connection:
            connection.execute("INSERT OR REPLACE INTO state VALUES (?, ?)", (key, value))

    def close(self) -> None:
        """Put the log into the file and let go of it; a second time does nothing."""
        if self._closed:
            return
        clean = False
        try:
            with contextlib.suppress(StoreError):  # what is not tidied up now is so at the next start
                while self._behind:
                    with self._writing() as connection:
                        self._behind = self._sweep(connection, _PIECE)
                with self._explained():
                    clean = not self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        finally:
            self._closed = True
            self._connection.close()
            self._lock.release(clean=clean)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
