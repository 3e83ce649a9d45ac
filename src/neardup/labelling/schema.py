"""The file of a label store: its tables, what is asked of them, and what is checked before it is used."""

from __future__ import annotations

import contextlib
import sqlite3
from importlib.metadata import version
from pathlib import Path

from neardup.errors import StoreError

FORMAT = 1
#: "NLAB", by which the file says whose it is.
APPLICATION = 0x4E4C4142
_BUSY_S = 10.0

_SCHEMA = """
CREATE TABLE labels (                      -- what counts: one row for each pair and labeller
    id1 TEXT NOT NULL,
    id2 TEXT NOT NULL,
    labeller TEXT NOT NULL,
    answer TEXT NOT NULL CHECK (answer IN ('same', 'different', 'unsure')),
    serial INTEGER NOT NULL REFERENCES history,
    PRIMARY KEY (id1, id2, labeller),
    CHECK (id1 < id2)
) WITHOUT ROWID;
CREATE TABLE history (                     -- everything that was ever said, in order
    serial INTEGER PRIMARY KEY AUTOINCREMENT,
    id1 TEXT NOT NULL,
    id2 TEXT NOT NULL,
    labeller TEXT NOT NULL,
    answer TEXT NOT NULL CHECK (answer IN ('same', 'different', 'unsure', 'skip')),
    reason TEXT NOT NULL,                  -- why the pair was asked
    similarity REAL,                       -- by the net's measure
    seconds REAL,                          -- for which the pair was looked at
    sum1 TEXT NOT NULL,                    -- of the text of id1
    sum2 TEXT NOT NULL,
    time REAL NOT NULL,                    -- seconds since 1970, UTC
    undone REAL                            -- likewise: when it was taken back
);
CREATE INDEX of_labeller ON history (labeller, serial) WHERE undone IS NULL;
CREATE TABLE asked (                       -- the pair that each labeller sees now
    labeller TEXT PRIMARY KEY,
    id1 TEXT NOT NULL,
    id2 TEXT NOT NULL,
    reason TEXT NOT NULL,
    similarity REAL
) WITHOUT ROWID;
"""

LABELS = """
SELECT id1, id2, labeller, answer FROM labels
ORDER BY min(serial) OVER (PARTITION BY id1, id2), serial
"""
SKIPPED = "SELECT id1, id2, labeller FROM history WHERE answer = 'skip' AND undone IS NULL ORDER BY serial"
JUDGEMENTS = """
SELECT labels.id1, labels.id2, labels.labeller, labels.answer, reason, similarity, seconds, sum1, sum2, time
FROM labels JOIN history USING (serial) ORDER BY serial
"""
ADD = """
INSERT INTO history (id1, id2, labeller, answer, reason, similarity, seconds, sum1, sum2, time)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
SET = "INSERT OR REPLACE INTO labels (id1, id2, labeller, answer, serial) VALUES (?, ?, ?, ?, ?)"
CLOSE = "DELETE FROM asked WHERE (labeller, id1, id2) = (?, ?, ?)"
LAST = """
SELECT serial, id1, id2, answer, reason, similarity FROM history
WHERE labeller = ? AND undone IS NULL AND reason <> 'imported' ORDER BY serial DESC LIMIT 1
"""
BEFORE = """
SELECT answer, serial FROM history
WHERE (id1, id2, labeller) = (?, ?, ?) AND undone IS NULL AND answer <> 'skip' ORDER BY serial DESC LIMIT 1
"""

_ANOTHER = "name another path"
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_UNWRITABLE = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH}


def explained(path: Path, error: sqlite3.Error) -> StoreError:
    """Return what SQLite says as an error of ours."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return StoreError(f"{path} cannot grow ({error}); nothing of this was stored: free space there and go on")
    if code in _DAMAGED:
        return StoreError(f"{path} is damaged ({error}); bring it back from a copy, or {_ANOTHER}")
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return StoreError(f"{path} is being written to by another program ({error}); end that one and try again")
    if code in _UNWRITABLE:
        return StoreError(f"{path} cannot be written ({error}); a store and its folder must be yours to write to")
    return StoreError(f"{path} cannot be used ({error}); look after its disk, or {_ANOTHER}")


def opened(path: Path) -> sqlite3.Connection:
    """Return the connection that reads and writes; the file is made where there is none.

    Raises
    ------
    StoreError
        If the file is something else; it is left as it was.
    """
    if not path.parent.is_dir():
        raise StoreError(f"{path.parent} is no folder, so {path.name} cannot be in it; make it first")
    new = not _look(path)
    connection = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
    try:
        if connection.execute("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
            raise StoreError(f"{path} cannot have a write-ahead log there; keep it on a local disk")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA trusted_schema = OFF")
        if new:
            _fill(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _fill(connection: sqlite3.Connection) -> None:
    """Make the tables; of two processes that begin at once, the second finds them."""
    connection.execute("BEGIN IMMEDIATE")
    if not connection.execute("PRAGMA application_id").fetchone()[0]:
        for statement in _SCHEMA.split(";\n"):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {FORMAT}")
    connection.execute("COMMIT")


def opened_to_read(path: Path) -> sqlite3.Connection:
    """Return a connection that cannot write.

    Raises
    ------
    StoreError
        If there is no such store.
    """
    if not _look(path):
        raise StoreError(f"{path} is no store of labels: there is none; neardup label makes one")
    return _reader(path)


def _look(path: Path) -> bool:
    """Say whether a store is there; an empty file is as good as none.

    Raises
    ------
    StoreError
        If something else is there.
    """
    try:
        with path.open("rb") as file:
            head = file.read(16)
    except FileNotFoundError:
        if path.with_name(f"{path.name}-wal").exists():
            raise StoreError(
                f"{path} is gone, but {path.name}-wal is still there with labels in it; bring the store back, or "
                "remove that too to begin a new one"
            ) from None
        return False
    except IsADirectoryError:
        raise StoreError(f"{path} is a folder; a store is a file: name one, for example {path / 'labels.db'}") from None
    except OSError as error:
        raise StoreError(f"{path} cannot be opened ({error.strerror}); a store must be yours to read") from None
    if not head:
        return False
    if not head.startswith(b"SQLite format 3\0"):
        raise StoreError(f"{path} is no SQLite file, so it is no store of labels; {_ANOTHER}")
    with contextlib.closing(_reader(path)) as connection:
        # What the head of the file says may be older than what its log says.
        (application,), (form,) = (
            connection.execute(f"PRAGMA {of}").fetchone() for of in ("application_id", "user_version")
        )
        bare = not connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if bare and not application:
        return False
    if application != APPLICATION:
        raise StoreError(f"{path} is a SQLite file, but no store of labels; {_ANOTHER}")
    if form != FORMAT:
        raise StoreError(
            f"{path} has the format {form}, and neardup {version('neardup')} knows {FORMAT} only; use the neardup that "
            f"wrote it, or {_ANOTHER}"
        )
    return True


def _reader(path: Path) -> sqlite3.Connection:
    # Without a log there is nothing to share with others, and so no file to make beside it.
    log = path.with_name(f"{path.name}-wal").exists()
    mode = "mode=ro" if log else "mode=ro&immutable=1"
    return sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True, timeout=_BUSY_S, isolation_level=None)
