"""The file of a store: how it is made, and what is checked before it is used.

Anybody may read it while it is in use, for example with the ``sqlite3`` shell; only neardup writes to it.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import struct
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from neardup.errors import StoreError
from neardup.flow.locking import Lock
from neardup.recipe.dependencies import difference

FORMAT = 1
#: "NDUP", by which the file says whose it is.
APPLICATION = 0x4E445550
#: Nine texts of 0.8 KB to a page; in pages of half the size a fifth of the room is lost.
_PAGE = 8192
#: The log goes into the file at 32 MB: the larger, the less is written twice, and the longer the pause.
_WAL_PAGES = 4000
_WAL_BYTES = 64 << 20
_CACHE_KIB = 64 << 10
_BUSY_S = 10.0
#: Up to here a suspect file is checked with its indexes, 2 s per GB; beyond only its structure, 0.6 s per GB.
_THOROUGH = 4 << 30

TALLIES = ("arrived", "originals", "duplicates", "late", "ahead", "future", "undecidable")

_SCHEMA = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE documents (
    serial INTEGER PRIMARY KEY,            -- in order of arrival
    id TEXT NOT NULL UNIQUE,
    origin TEXT NOT NULL,
    time INTEGER NOT NULL,                 -- microseconds since 1970, UTC
    entered INTEGER NOT NULL,              -- likewise: by which it leaves the window
    judged REAL NOT NULL,                  -- seconds since 1970, UTC
    kind TEXT NOT NULL CHECK (kind IN ('original', 'near', 'exact')),
    of TEXT,                               -- the id of the document that it repeats
    similarity REAL,
    o INTEGER, a INTEGER, b INTEGER,
    flag TEXT NOT NULL,
    sum INTEGER NOT NULL,                  -- CRC-32 of the columns above
    placed INTEGER NOT NULL
);
CREATE INDEX of_origin ON documents (origin) WHERE origin <> '';
CREATE INDEX unplaced ON documents (placed) WHERE placed = 0;
CREATE TABLE held (serial INTEGER PRIMARY KEY, text TEXT, sum INTEGER NOT NULL);  -- what is in the window
CREATE TABLE tally (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE state (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""
#: Of learned decisions. Older stores get these tables when they are opened, and an older neardup passes over them.
_MORE_TABLES = (
    # the measures by name, each with what it says and by how much it pushed g
    "CREATE TABLE IF NOT EXISTS learned (serial INTEGER PRIMARY KEY, g REAL NOT NULL, measures TEXT NOT NULL)",
    # of what is in the window; the checksum in held covers them
    "CREATE TABLE IF NOT EXISTS titles (serial INTEGER PRIMARY KEY, title TEXT NOT NULL)",
)

#: How the names of settings and dependencies begin in the table meta.
_SETTING, _DEPENDENCY = "setting ", "depends on "

_ANOTHER = "move it away to begin a new one, or name another path"
_RESTORE = f"bring it back from a copy, or {_ANOTHER}"
_FULL = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE}
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def damaged(path: Path, what: str) -> StoreError:
    """Return the error for a file that is not what was written."""
    return StoreError(f"{path} is damaged ({what}); {_RESTORE}")


def explained(path: Path, error: Exception) -> StoreError:
    """Return what SQLite says as an error of ours."""
    code = getattr(error, "sqlite_errorcode", 0)
    if code in _FULL:
        return StoreError(f"{path} cannot grow ({error}); nothing of this was stored: free space there and go on")
    if code & 0xFF in _DAMAGED or "decode to UTF-8" in str(error):
        return damaged(path, str(error))
    if code & 0xFF in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return StoreError(
            f"{path} is being written to by another program ({error}); only neardup may write to it: end that program"
        )
    if code & 0xFF == sqlite3.SQLITE_CONSTRAINT:
        return StoreError(f"{path} has no place for this ({error}); give every document an id and a serial of its own")
    if code & 0xFF in {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH}:
        return StoreError(f"{path} cannot be written ({error}); a store and its folder must be yours to write to")
    if isinstance(error, (sqlite3.DataError, OverflowError)):
        return StoreError(f"{path} cannot hold this ({error}); a text may have up to 1 GB: leave it out or split it")
    return StoreError(f"{path} cannot be used ({error}); look after its disk, or name another path")


def look(path: Path) -> bool:
    """Say whether the store is there, without touching anything.

    Only for a store that no connection of this process has open: closing a file gives up all locks of the process
    on it, SQLite's too.

    Raises
    ------
    StoreError
        If something else is there, or what is left of a store.
    """
    try:
        with path.open("r+b") as file:
            head, size = file.read(100), os.fstat(file.fileno()).st_size
    except FileNotFoundError:
        _check_place(path)
        return False
    except IsADirectoryError:
        raise StoreError(f"{path} is a folder; a store is a file: name one, for example {path / 'news.db'}") from None
    except OSError as error:
        raise StoreError(
            f"{path} cannot be opened ({error.strerror}); a store must be yours to read and write"
        ) from None
    if not size:
        raise StoreError(f"{path} is empty, and a store never is; remove it to begin a new one, or name another path")
    if not head.startswith(b"SQLite format 3\0"[: len(head)]) and any(head):
        raise StoreError(f"{path} is no SQLite file, so it is no store; {_ANOTHER}")
    if len(head) < 100 or not any(head):
        raise damaged(path, "its head is gone")
    form, application = struct.unpack(">I4xI", head[60:72])
    if application != APPLICATION:
        raise StoreError(f"{path} is a SQLite file, but not a store of neardup; {_ANOTHER}")
    if form != FORMAT:
        raise StoreError(
            f"{path} has the format {form}, and neardup {version('neardup')} knows {FORMAT} only; use the neardup that "
            "wrote it, or name another path"
        )
    if not _beside(path, "-wal"):
        page, pages = struct.unpack(">H10xI", head[16:32])
        _check_size(path, size, pages * (page if page > 1 else 65536))
    return True


def _check_place(path: Path) -> None:
    if not path.parent.is_dir():
        raise StoreError(f"{path.parent} is no folder, so {path.name} cannot be in it; make it first")
    for ending in ("-wal", "-journal"):
        if _beside(path, ending):
            raise StoreError(
                f"{path} is gone, but {path.name}{ending} is still there with verdicts in it; bring the store back, "
                "or remove that too to begin a new one"
            )


def _beside(path: Path, ending: str) -> int:
    """Return the size of a file beside the store, 0 if it is not there."""
    try:
        return path.with_name(path.name + ending).stat().st_size
    except OSError:
        return 0


def _check_size(path: Path, size: int, expected: int) -> None:
    """Refuse a file that is longer or shorter than it says: SQLite reads half a page as if the rest were zeros."""
    if size != expected:
        raise damaged(path, f"{size:,} bytes long instead of {expected:,}")


def create(path: Path, fingerprint: str, settings: Mapping[str, str], dependencies: Mapping[str, str]) -> None:
    """Make a new store, whole or not at all: under another name, which it loses at the end."""
    new = path.with_name(f"{path.name}.new")
    _remove(new)
    try:
        with contextlib.closing(sqlite3.connect(new, isolation_level=None)) as connection:
            _fill(connection, fingerprint, settings, dependencies)
            _set_wal(connection, path)
        new.rename(path)
    except BaseException:
        _remove(new)
        raise
    _sync_folder(path.parent)


def _remove(new: Path) -> None:
    for ending in ("", "-journal", "-wal", "-shm"):
        new.with_name(new.name + ending).unlink(missing_ok=True)


def _fill(
    connection: sqlite3.Connection, fingerprint: str, settings: Mapping[str, str], dependencies: Mapping[str, str]
) -> None:
    meta = {"fingerprint": fingerprint, "neardup": version("neardup")}
    meta |= {f"{_SETTING}{name}": value for name, value in settings.items()}
    meta |= {f"{_DEPENDENCY}{name}": value for name, value in dependencies.items()}
    connection.execute(f"PRAGMA page_size = {_PAGE}")
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {FORMAT}")
    connection.executescript(_SCHEMA)
    _add_tables(connection)
    connection.executemany("INSERT INTO meta VALUES (?, ?)", sorted(meta.items()))
    connection.executemany("INSERT INTO tally VALUES (?, 0)", [(name,) for name in (*TALLIES, "forgotten")])


def _add_tables(connection: sqlite3.Connection) -> None:
    for statement in _MORE_TABLES:
        connection.execute(statement)


def _set_wal(connection: sqlite3.Connection, path: Path) -> None:
    mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        raise StoreError(f"{path} cannot have a write-ahead log there (SQLite: {mode}); keep it on a local disk")


def _sync_folder(folder: Path) -> None:
    with contextlib.suppress(OSError):  # not every file system can
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def check(
    path: Path, lock: Lock, fingerprint: str, settings: Mapping[str, str], dependencies: Mapping[str, str]
) -> None:
    """Refuse a store that is damaged or another's, through a connection that cannot write.

    Raises
    ------
    StoreError
        The store is as it was before.
    """
    log = _beside(path, "-wal")
    # Without a log there is nothing to share with other readers, and so no file to make beside it.
    with contextlib.closing(_connect(path, "ro" if log else "ro&immutable=1")) as connection:
        if log or not lock.left_as_it_is:
            thorough = path.stat().st_size <= _THOROUGH
            pragma = "PRAGMA integrity_check(1)" if thorough else "PRAGMA quick_check(1)"
            found = connection.execute(pragma).fetchone()[0]
            if found != "ok":
                raise damaged(path, " ".join(found.split()))
        meta = dict(connection.execute("SELECT name, value FROM meta"))
    if meta.get("fingerprint") != fingerprint:
        if clause := difference(_named(meta, _DEPENDENCY), dependencies):
            raise StoreError(f"{path} was made {clause}; use what it was made with, or name another path")
        raise StoreError(
            f"{path} was made with another recipe or decision (fingerprint {_shown(meta.get('fingerprint'))}, not "
            f"{_shown(fingerprint)}); a store keeps its own: take that one, or name another path"
        )
    has = _named(meta, _SETTING)
    for name in sorted({*has, *settings}):
        if has.get(name) != settings.get(name):
            raise StoreError(
                f"{path} was made with {name} {_shown(has.get(name))}, not {_shown(settings.get(name))}; a store keeps "
                "its settings: take that one, or name another path"
            )


def _named(meta: Mapping[str, str], kind: str) -> dict[str, str]:
    return {name.removeprefix(kind): value for name, value in meta.items() if name.startswith(kind)}


def connect(path: Path) -> sqlite3.Connection:
    """Return the connection that writes.

    Raises
    ------
    StoreError
        If the file is still torn after the log of a crash was put into it.
    """
    connection = _connect(path, "rw")
    try:
        _set_wal(connection, path)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_WAL_PAGES}")
        connection.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES}")
        connection.execute("PRAGMA trusted_schema = OFF")
        if _beside(path, "-wal"):
            busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            if not busy:
                pages, page = (connection.execute(f"PRAGMA {of}").fetchone()[0] for of in ("page_count", "page_size"))
                _check_size(path, path.stat().st_size, pages * page)
        _add_tables(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    name = f"{path.absolute().as_uri()}?mode={mode}"
    return sqlite3.connect(name, uri=True, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)


def _shown(value: str | None) -> str:
    text = ascii(value) if value is not None else "none"
    return text if len(text) <= 60 else f"{text[:57]}..."
