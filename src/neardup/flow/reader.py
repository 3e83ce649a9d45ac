"""A store as others read it, while its watcher writes: counts, what arrived last, and the texts that are still held."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from neardup.errors import StoreError
from neardup.flow import schema
from neardup.flow.rows import BARE_OF_ID, BARE_SINCE, OF_ID, Row, Stored, from_row, storable

#: Rows and ids that one question asks for: each is over in a moment, so that the log can go into the file between two.
_AT_ONCE, _IDS = 4096, 500
_BUSY_S = 10.0


class StoreReader:
    """Reads a store and never writes to it.

    Parameters
    ----------
    path : str
        The file.

    Raises
    ------
    StoreError
        If there is no store, or it cannot be read.
    """

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        with self._explained():
            uri = f"{self.path.absolute().as_uri()}?mode=ro"
            self._connection = sqlite3.connect(uri, uri=True, timeout=_BUSY_S, isolation_level=None)
        try:
            with self._explained():
                (application,) = self._connection.execute("PRAGMA application_id").fetchone()
            if application != schema.APPLICATION:
                raise StoreError(f"{path} is no store of neardup; name the one of the watcher")
            self._forgotten = self._tally().get("forgotten", 0)
        except BaseException:
            self._connection.close()
            raise

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise StoreError(f"{self.path} cannot be read ({error}); name the store of the watcher") from error

    def _tally(self) -> dict[str, int]:
        with self._explained():
            return dict(self._connection.execute("SELECT name, value FROM tally"))

    def counts(self) -> dict[str, int]:
        """Return how many documents arrived since the store began, and what they were (``Store.counts``)."""
        found = self._tally()
        return {name: found.get(name, 0) for name in schema.TALLIES}

    def last(self, most: int) -> list[Stored]:
        """Return the documents that arrived last, in the order of their arrival, without their texts.

        Parameters
        ----------
        most : int
            How many at most.
        """
        with self._explained():
            (top,) = self._connection.execute("SELECT max(serial) FROM documents").fetchone()
        found: list[Stored] = []
        begin = 0 if top is None else top + 1 - most
        while top is not None and begin <= top:
            with self._explained():
                rows = self._connection.execute(BARE_SINCE, (begin, min(_AT_ONCE, top + 1 - begin))).fetchall()
            found += [one for one in map(self._stored, rows) if one.serial <= top]
            if not rows:
                break
            begin = rows[-1][0] + 1
        return found

    def find(self, name: str, *, text: bool) -> Stored | None:
        """Return the document of that id; None if it has no verdict.

        Parameters
        ----------
        name : str
            The id.
        text : bool
            Whether its text is wanted, too, if the window holds it.
        """
        if not storable(name):
            return None
        with self._explained():
            row = self._connection.execute(OF_ID if text else BARE_OF_ID, (name,)).fetchone()
        return None if row is None else self._stored(row)

    def beginnings(self, serials: Sequence[int], characters: int) -> dict[int, str]:
        """Return how the texts of these documents begin, of those that the window holds.

        Parameters
        ----------
        serials : sequence of int
            Numbers of documents.
        characters : int
            How many of each.
        """
        found: dict[int, str] = {}
        for begin in range(0, len(serials), _IDS):
            asked = [serial for serial in serials[begin : begin + _IDS] if serial >= self._forgotten]
            marks = ", ".join("?" * len(asked))
            query = f"SELECT serial, substr(text, 1, ?) FROM held WHERE serial IN ({marks})"  # noqa: S608
            with self._explained():
                found |= dict(self._connection.execute(query, (characters, *asked)))
        return found

    def _stored(self, row: Row) -> Stored:
        found, wrong = from_row(row, self._forgotten)
        if found is None:
            raise schema.damaged(self.path, f"the {wrong} of document number {row[0]} is not what was written")
        return found

    def close(self) -> None:
        """Let go of the store."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
