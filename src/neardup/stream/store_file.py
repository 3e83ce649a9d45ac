"""The file of a store: how it is made, found, checked and opened."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from neardup.errors import StoreError
from neardup.files import flush_folder, sqlite_error
from neardup.recipe.recipe import difference
from neardup.stream.document import COUNTS
from neardup.stream.lock import Lock

FORMAT = 3
#: The format before documents had versions; a store in it gets the columns when it is opened for writing.
EARLIER_FORMAT = 2
#: "NDUP": marks the file as a store of neardup.
APPLICATION = 0x4E445550
#: Nine texts of 0.8 KB fit into a page; half the size would waste a fifth of the space.
_PAGE = 8192
#: The log is checkpointed at 4 MB and then overwritten, which takes a third of the time of extending it.
_WAL_PAGES = 500
_WAL_BYTES = 64 << 20
_CACHE_KIB = 64 << 10
_BUSY_SECONDS = 10.0

_SCHEMA = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE documents (
    serial INTEGER PRIMARY KEY,            -- in order of arrival
    id TEXT NOT NULL UNIQUE,
    origin TEXT NOT NULL,
    time INTEGER NOT NULL,                 -- microseconds since 1970, UTC
    leaves INTEGER NOT NULL,               -- likewise: the time by which it leaves the window
    judged REAL NOT NULL,                  -- seconds since 1970, UTC
    kind TEXT NOT NULL CHECK (kind IN ('original', 'near', 'exact')),
    of TEXT,                               -- the id of the document that it repeats
    similarity REAL,
    o INTEGER, a INTEGER, b INTEGER,
    flag TEXT NOT NULL,
    score REAL, measures TEXT,             -- of a classifier: measures by name, each with its value and contribution
    sum INTEGER NOT NULL,                  -- checksum of the columns above, and of version_of unless it is null
    placed INTEGER NOT NULL,
    version_of TEXT                        -- the id that it was given, if that id belongs to another text
);
CREATE INDEX of_origin ON documents (origin) WHERE origin <> '';
CREATE INDEX unplaced ON documents (placed) WHERE placed = 0;
CREATE TABLE held (serial INTEGER PRIMARY KEY, text TEXT, title TEXT NOT NULL, sum INTEGER NOT NULL);
CREATE TABLE tally (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
-- sum: checksum of name and value; null in a store that a version of neardup without it wrote
CREATE TABLE state (name TEXT PRIMARY KEY, value TEXT NOT NULL, sum INTEGER) WITHOUT ROWID;
-- duplicates that somebody took back: when (seconds since 1970), who, and what their verdicts had been
CREATE TABLE released (serial INTEGER PRIMARY KEY, id TEXT NOT NULL, at REAL NOT NULL, by TEXT NOT NULL,
    kind TEXT NOT NULL, of TEXT, similarity REAL);
-- the digest of each text; of an index that keeps texts, also what the window does not hold until it is past that
CREATE TABLE kept (serial INTEGER PRIMARY KEY, digest BLOB NOT NULL, text TEXT, title TEXT NOT NULL,
    sum INTEGER NOT NULL);                 -- checksum of number, digest and title; the digest is that of the text
CREATE INDEX kept_text ON kept (serial) WHERE text IS NOT NULL;
CREATE INDEX kept_digest ON kept (digest);
-- duplicates that somebody wants to take back while a watcher has the store, and what it answers
CREATE TABLE requests (id TEXT PRIMARY KEY, by TEXT NOT NULL, answer TEXT) WITHOUT ROWID;
"""

#: Prefixes of settings and dependencies in the table meta.
SETTING, _DEPENDENCY = "setting ", "depends on "

_CHOOSE_ANOTHER = "move it away to create a new one, or name another path"
_RESTORE = f"restore it from a copy, or {_CHOOSE_ANOTHER}"


def damage_error(path: Path, cause: str) -> StoreError:
    """Return the error for a file whose content is not what was written."""
    return StoreError(f"{path} is damaged ({cause}); {_RESTORE}")


def translate_error(path: Path, error: Exception) -> StoreError:
    """Translate an error of SQLite."""
    if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_CONSTRAINT:
        return StoreError(f"{path} cannot store this ({error}); give every document its own id and serial")
    if isinstance(error, (sqlite3.DataError, OverflowError)):
        return StoreError(f"{path} cannot hold this ({error}); a text may have up to 1 GB: leave it out or split it")
    if getattr(error, "sqlite_errorcode", 0) in (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_MISMATCH):
        # Such as a missing table: the queries are those of the store.
        return damage_error(path, str(error))
    return sqlite_error(path, error, way_out=_CHOOSE_ANOTHER)


def find_store(path: Path) -> bool:
    """Return whether a store exists, without changing anything.

    Only for a store that no connection of this process has open: closing a file releases all locks of the process
    on it, including those of SQLite.

    Raises ``StoreError`` if something else is there, or the remains of a store.
    """
    try:
        with path.open("r+b") as file:
            head = file.read(100)
    except FileNotFoundError:
        _check_place(path)
        return False
    except IsADirectoryError:
        raise StoreError(f"{path} is a folder; a store is a file: name one, for example {path / 'news.db'}") from None
    except OSError as error:
        raise StoreError(f"{path} cannot be opened ({error.strerror}); a store must be readable and writable") from None
    if not head:
        raise StoreError(
            f"{path} is empty, which a store never is; remove it to create a new one, or name another path"
        )
    if len(head) < 100 or not any(head):
        raise damage_error(path, "its header is gone")
    has_log = bool(companion_size(path, "-wal"))
    with contextlib.closing(connect(path, "ro" if has_log else "ro&immutable=1")) as connection:
        check_kind(path, connection)
        if not has_log:
            _check_size(path, connection)
    return True


def check_kind(path: Path, connection: sqlite3.Connection) -> int:
    """Return the format of a store; raise ``StoreError`` if the file is no store, or of a format that is not known."""
    try:
        application, store_format = (_number(connection, name) for name in ("application_id", "user_version"))
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_NOTADB:
            raise
        application = store_format = 0
    if application != APPLICATION:
        raise StoreError(
            f"{path} is not a store of neardup; name the store of a watcher or an index; to create one here, "
            "move it away first"
        )
    if store_format not in (EARLIER_FORMAT, FORMAT):
        raise StoreError(
            f"{path} has the format {store_format}, and neardup {version('neardup')} knows {FORMAT} only; use the "
            "neardup that wrote it, or name another path"
        )
    return store_format


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    return int(connection.execute(f"PRAGMA {pragma}").fetchone()[0])


def _check_place(path: Path) -> None:
    if not path.parent.is_dir():
        raise StoreError(f"{path.parent} is not a folder, so {path.name} cannot be in it; create it first")
    for ending in ("-wal", "-journal"):
        if companion_size(path, ending):
            raise StoreError(
                f"{path} is gone, but {path.name}{ending} is still there with verdicts in it; restore the store, "
                "or remove that file too to create a new one"
            )


def companion_size(path: Path, ending: str) -> int:
    """Return the size of a file beside a store, 0 if there is none."""
    try:
        return path.with_name(path.name + ending).stat().st_size
    except OSError:
        return 0


def _check_size(path: Path, connection: sqlite3.Connection) -> None:
    """Compare the size of a file without a log: SQLite reads half a page as if the rest were zeros."""
    size, expected = path.stat().st_size, _number(connection, "page_count") * _number(connection, "page_size")
    if size != expected:
        raise damage_error(path, f"{size:,} bytes long instead of {expected:,}")


class StoreIdentity(NamedTuple):
    """The recipe and settings that the verdicts of a store depend on."""

    fingerprint: str  #: of the recipe
    settings: Mapping[str, str]  #: window, unit of the window, and what documents are compared with
    #: The inputs of the fingerprint (``Recipe.dependencies``), for messages about differences.
    dependencies: Mapping[str, str] = MappingProxyType({})


def create_store(path: Path, identity: StoreIdentity) -> None:
    """Create a store under a temporary name, then rename it, so that it is complete or absent."""
    new = path.with_name(f"{path.name}.new")
    _remove(new)
    meta = {"fingerprint": identity.fingerprint, "neardup": version("neardup")}
    meta |= {f"{SETTING}{name}": value for name, value in identity.settings.items()}
    meta |= {f"{_DEPENDENCY}{name}": value for name, value in identity.dependencies.items()}
    try:
        with contextlib.closing(sqlite3.connect(new, isolation_level=None)) as connection:
            connection.execute(f"PRAGMA page_size = {_PAGE}")
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {FORMAT}")
            connection.executescript(_SCHEMA)
            connection.executemany("INSERT INTO meta VALUES (?, ?)", sorted(meta.items()))
            connection.executemany("INSERT INTO tally VALUES (?, 0)", [(name,) for name in (*COUNTS, "forgotten")])
            _set_wal(connection, path)
        new.rename(path)
    except BaseException:
        _remove(new)
        raise
    with contextlib.suppress(OSError):
        flush_folder(path.parent)


def _remove(new: Path) -> None:
    for ending in ("", "-journal", "-wal", "-shm"):
        new.with_name(new.name + ending).unlink(missing_ok=True)


def _set_wal(connection: sqlite3.Connection, path: Path) -> None:
    mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        raise StoreError(f"{path} cannot have a write-ahead log there (SQLite: {mode}); keep it on a local disk")


def check_store(path: Path, lock: Lock, identity: StoreIdentity) -> None:
    """Check that a store is intact and has the same recipe and settings, over a read-only connection.

    Raises ``StoreError``; the store is unchanged.
    """
    log = companion_size(path, "-wal")
    # Without a log, nothing is shared with other readers, so no shared-memory file is needed.
    with contextlib.closing(connect(path, "ro" if log else "ro&immutable=1")) as connection:
        if log or not lock.is_unchanged:
            found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            if found != "ok":
                raise damage_error(path, " ".join(found.split()))
        meta = dict(connection.execute("SELECT name, value FROM meta"))
    if meta.get("fingerprint") != identity.fingerprint:
        if clause := difference(_with_prefix(meta, _DEPENDENCY), identity.dependencies):
            raise StoreError(f"{path} was made {clause}; use what it was made with, or name another path")
        raise StoreError(
            f"{path} was made with another recipe or classifier (fingerprint {shorten(meta.get('fingerprint'))}, not "
            f"{shorten(identity.fingerprint)}); a store keeps its own: take that one, or name another path"
        )
    stored = _with_prefix(meta, SETTING)
    for name in sorted({*stored, *identity.settings}):
        if stored.get(name) != identity.settings.get(name):
            raise StoreError(
                f"{path} was made with {name} {shorten(stored.get(name))}, not "
                f"{shorten(identity.settings.get(name))}; a store keeps its settings: take that one, or name "
                "another path"
            )


def _with_prefix(meta: Mapping[str, str], kind: str) -> dict[str, str]:
    return {name.removeprefix(kind): value for name, value in meta.items() if name.startswith(kind)}


def shorten(value: str | None) -> str:
    """Return a value for a message."""
    text = ascii(value) if value is not None else "none"
    return text if len(text) <= 60 else f"{text[:57]}..."


def open_for_writing(path: Path) -> sqlite3.Connection:
    """Return the writing connection.

    Raises ``StoreError`` if the file is still torn after the log of a crash was applied.
    """
    connection = connect(path, "rw")
    try:
        _set_wal(connection, path)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_WAL_PAGES}")
        connection.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES}")
        connection.execute("PRAGMA trusted_schema = OFF")
        if _number(connection, "user_version") == EARLIER_FORMAT:
            connection.executescript(
                "BEGIN IMMEDIATE; ALTER TABLE documents ADD COLUMN version_of TEXT; "
                "ALTER TABLE state ADD COLUMN sum INTEGER; "
                f"CREATE INDEX kept_digest ON kept (digest); PRAGMA user_version = {FORMAT}; COMMIT"
            )
        if companion_size(path, "-wal"):
            busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            if not busy:
                _check_size(path, connection)
    except BaseException:
        connection.close()
        raise
    return connection


def connect(path: Path, mode: str) -> sqlite3.Connection:
    """Return a connection in a mode of SQLite: rw, ro, or ro without locks."""
    name = f"{path.absolute().as_uri()}?mode={mode}"
    return sqlite3.connect(name, uri=True, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)


def connect_to_read(path: Path) -> sqlite3.Connection:
    """Return a connection that writes nothing; a read-only one would leave the log behind when it closes last."""
    if os.access(path, os.W_OK) and os.access(path.parent, os.W_OK):
        connection = connect(path, "rw")
        connection.execute("PRAGMA query_only = ON")
        return connection
    return connect(path, "ro" if companion_size(path, "-wal") else "ro&immutable=1")
