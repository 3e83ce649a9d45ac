"""The label store, a SQLite file: each labeller's answer to a pair, its time, and the checksums of the texts."""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from neardup.errors import RecipeError, StoreError

SAME, DIFFERENT, UNSURE = "same", "different", "unsure"
#: The answers that the store keeps as labels; the first two are the classes.
ANSWERS = (SAME, DIFFERENT, UNSURE)
#: No answer: the pair is asked again when nothing else is left.
SKIP = "skip"
#: The longest name of a labeller.
_MAX_NAME_LENGTH = 60


def labeller_name(name: str) -> str:
    """Return a labeller's name with its spaces collapsed; raise ``RecipeError`` if it is no usable name."""
    found = re.sub(r"\s+", " ", name).strip()
    if not found or len(found) > _MAX_NAME_LENGTH or not found.isprintable():
        raise RecipeError(
            f"labeller {name[:_MAX_NAME_LENGTH]!r} is not a valid name; give one of 1 to "
            f"{_MAX_NAME_LENGTH} visible characters"
        )
    return found


FORMAT = 1
#: The application id of the SQLite file: "NLAB".
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
    similarity REAL,                       -- by the candidate rule's measure
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

_SELECT_LABELS = """
SELECT id1, id2, labeller, answer FROM labels
ORDER BY min(serial) OVER (PARTITION BY id1, id2), serial
"""
_SELECT_SKIPPED = "SELECT id1, id2, labeller FROM history WHERE answer = 'skip' AND undone IS NULL ORDER BY serial"
_SELECT_JUDGEMENTS = """
SELECT labels.id1, labels.id2, labels.labeller, labels.answer, reason, similarity, seconds, sum1, sum2, time
FROM labels JOIN history USING (serial) ORDER BY serial
"""
_INSERT_HISTORY = """
INSERT INTO history (id1, id2, labeller, answer, reason, similarity, seconds, sum1, sum2, time)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_REPLACE_LABEL = "INSERT OR REPLACE INTO labels (id1, id2, labeller, answer, serial) VALUES (?, ?, ?, ?, ?)"
_DELETE_ASKED = "DELETE FROM asked WHERE (labeller, id1, id2) = (?, ?, ?)"
_SELECT_LAST = """
SELECT serial, id1, id2, answer, reason, similarity FROM history
WHERE labeller = ? AND undone IS NULL AND reason <> 'imported' ORDER BY serial DESC LIMIT 1
"""
_SELECT_PREVIOUS = """
SELECT answer, serial FROM history
WHERE (id1, id2, labeller) = (?, ?, ?) AND undone IS NULL AND answer <> 'skip' ORDER BY serial DESC LIMIT 1
"""

_NAME_ANOTHER = "name another path"
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_UNWRITABLE = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH}


def store_error(path: Path, error: sqlite3.Error) -> StoreError:
    """Return the error of this package for an error of SQLite."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return StoreError(f"{path} cannot grow ({error}); nothing was stored: free disk space and try again")
    if code in _DAMAGED:
        return StoreError(f"{path} is damaged ({error}); restore it from a backup, or {_NAME_ANOTHER}")
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return StoreError(f"{path} is being written to by another program ({error}); stop that program and try again")
    if code in _UNWRITABLE:
        return StoreError(f"{path} cannot be written ({error}); get write access to the store and its folder")
    return StoreError(f"{path} cannot be used ({error}); check its disk, or {_NAME_ANOTHER}")


def open_store(path: Path) -> sqlite3.Connection:
    """Return a connection that reads and writes; create the file if it is missing.

    Raises ``StoreError`` if the file is no label store; the file stays unchanged.
    """
    if not path.parent.is_dir():
        raise StoreError(f"{path.parent} is no folder, so {path.name} cannot be created in it; create it first")
    is_new = not _has_tables(path)
    connection = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
    try:
        if connection.execute("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
            raise StoreError(f"{path} is on a disk that allows no write-ahead log; keep it on a local disk")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA trusted_schema = OFF")
        if is_new:
            _create_tables(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _create_tables(connection: sqlite3.Connection) -> None:
    """Create the tables, unless another process has just done so."""
    connection.execute("BEGIN IMMEDIATE")
    if not connection.execute("PRAGMA application_id").fetchone()[0]:
        for statement in _SCHEMA.split(";\n"):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {FORMAT}")
    connection.execute("COMMIT")


def open_read_only(path: Path) -> sqlite3.Connection:
    """Return a connection that cannot write."""
    if not _has_tables(path):
        raise StoreError(f"{path} is no label store: it does not exist or is empty; create one with neardup label")
    return _connect_read_only(path)


def _has_tables(path: Path) -> bool:
    """Return whether the file is a label store; False if it is missing or empty.

    Raises ``StoreError`` if it is anything else.
    """
    try:
        with path.open("rb") as file:
            head = file.read(16)
    except FileNotFoundError:
        if path.with_name(f"{path.name}-wal").exists():
            raise StoreError(
                f"{path} is gone, but {path.name}-wal remains with labels in it; restore the store, or remove that "
                "file too to begin a new one"
            ) from None
        return False
    except IsADirectoryError:
        raise StoreError(f"{path} is a folder; a store is a file: name one, for example {path / 'labels.db'}") from None
    except OSError as error:
        raise StoreError(f"{path} cannot be open_store ({error.strerror}); get read access to it") from None
    if not head:
        return False
    if not head.startswith(b"SQLite format 3\0"):
        raise StoreError(f"{path} is no SQLite file, so it is no label store; {_NAME_ANOTHER}")
    with contextlib.closing(_connect_read_only(path)) as connection:
        # The file's header may be older than its log, so SQLite is asked.
        (application,), (format_version,) = (
            connection.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")
        )
        is_empty = not connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if is_empty and not application:
        return False
    if application != APPLICATION:
        raise StoreError(f"{path} is a SQLite file, but no label store; {_NAME_ANOTHER}")
    if format_version != FORMAT:
        raise StoreError(
            f"{path} has format {format_version}, but neardup {version('neardup')} reads format {FORMAT} only; use the "
            f"neardup that wrote it, or {_NAME_ANOTHER}"
        )
    return True


def _connect_read_only(path: Path) -> sqlite3.Connection:
    # Without a log nobody is writing, and an immutable connection creates no files next to the store.
    has_log = path.with_name(f"{path.name}-wal").exists()
    mode = "mode=ro" if has_log else "mode=ro&immutable=1"
    return sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True, timeout=_BUSY_S, isolation_level=None)


#: The ids of two documents, the smaller first.
IdPair = tuple[str, str]


def id_pair(one: str, other: str) -> IdPair:
    """Return two ids in the order in which the store keeps them."""
    return (one, other) if one < other else (other, one)


class Judgement(NamedTuple):
    """A labeller's answer to a pair."""

    pair: IdPair
    labeller: str
    #: ``same``, ``different``, ``unsure``, or ``skip`` for no answer.
    answer: str
    #: Why the pair was asked.
    reason: str = ""
    #: The similarity by the candidate rule's measure.
    similarity: float | None = None
    #: How long the labeller looked at the pair.
    seconds: float | None = None
    #: Checksums of the two texts, in the order of the ids; empty if unknown.
    checksums: tuple[str, str] = ("", "")
    #: Seconds since 1970; 0 for now.
    time: float = 0.0


class OpenPair(NamedTuple):
    """A pair that a labeller was asked and has not answered."""

    pair: IdPair
    reason: str
    similarity: float | None


class LabelStore:
    """The labels of a store, for reading and writing.

    When ``record`` returns, its judgements are on the disk (WAL, ``synchronous=FULL``). There is one label for each
    pair and labeller; earlier and undone answers stay in the history. Several processes and threads may use a store at
    once.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._lock = threading.RLock()
        self._data_version = -1
        self._version = 0
        self._labels: dict[IdPair, dict[str, str]] = {}
        self._skipped: dict[str, list[IdPair]] = {}
        with self._locked():
            self._connection = open_store(self.path)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock, and raise SQLite's errors as ``StoreError``."""
        with self._lock:
            try:
                yield
            except sqlite3.Error as error:
                raise store_error(self.path, error) from error

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Run the block as one transaction, on the disk when the block ends."""
        with self._locked():
            connection = self._connection
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise
            finally:
                self._data_version = -1

    @property
    def version(self) -> int:
        """A number that grows whenever the labels change, in this process or another."""
        self._refresh()
        return self._version

    @property
    def labels(self) -> Mapping[IdPair, Mapping[str, str]]:
        """The answers of each pair by labeller; pairs in the order in which they were first judged."""
        self._refresh()
        return self._labels

    @property
    def labellers(self) -> list[str]:
        """The names of all labellers, sorted."""
        return sorted({name for answers in self.labels.values() for name in answers})

    def skipped(self, labeller: str) -> list[IdPair]:
        """Return the pairs that a labeller has skipped and not judged since, the earliest first."""
        self._refresh()
        return list(self._skipped.get(labeller, ()))

    def counts(self, labeller: str | None = None) -> dict[str, int]:
        """Return the number of labels by answer, of one labeller or of all."""
        given = Counter(
            answer
            for answers in self.labels.values()
            for name, answer in answers.items()
            if labeller is None or name == labeller
        )
        return {answer: given[answer] for answer in ANSWERS}

    def _refresh(self) -> None:
        """Read the labels again if the file has changed."""
        with self._locked():
            (data_version,) = self._connection.execute("PRAGMA data_version").fetchone()
            if data_version == self._data_version:
                return
            labels: dict[IdPair, dict[str, str]] = {}
            for one, other, name, answer in self._connection.execute(_SELECT_LABELS):
                labels.setdefault((one, other), {})[name] = answer
            skipped: dict[str, dict[IdPair, None]] = {}
            for one, other, name in self._connection.execute(_SELECT_SKIPPED):
                # A pair that is skipped again moves to the end.
                if name not in labels.get((one, other), {}):
                    skipped.setdefault(name, {}).pop((one, other), None)
                    skipped[name][(one, other)] = None
            self._labels, self._data_version = labels, data_version
            self._skipped = {name: list(pairs) for name, pairs in skipped.items()}
            self._version += 1

    def judgements(self) -> list[Judgement]:
        """Return all labels with reason, time and checksums, in the order in which they were given."""
        with self._locked():
            rows = self._connection.execute(_SELECT_JUDGEMENTS).fetchall()
        return [
            Judgement((one, other), name, answer, reason, similarity, seconds, (first, second), moment)
            for one, other, name, answer, reason, similarity, seconds, first, second, moment in rows
        ]

    def record(self, judgements: Sequence[Judgement]) -> None:
        """Write judgements to the disk, all or none; a labeller's new answer to a pair replaces the old one."""
        with self._transaction() as connection:
            for one in judgements:
                moment = one.time or time.time()
                values = (*one.pair, one.labeller, one.answer, one.reason, one.similarity, one.seconds, *one.checksums)
                serial = connection.execute(_INSERT_HISTORY, (*values, moment)).lastrowid
                if one.answer != SKIP:
                    connection.execute(_REPLACE_LABEL, (*one.pair, one.labeller, one.answer, serial))
                connection.execute(_DELETE_ASKED, (one.labeller, *one.pair))

    def undo(self, labeller: str) -> Judgement | None:
        """Undo a labeller's last answer and return it; None if nothing is left to undo."""
        with self._transaction() as connection:
            row = connection.execute(_SELECT_LAST, (labeller,)).fetchone()
            if row is None:
                return None
            serial, one, other, answer, reason, similarity = row
            connection.execute("UPDATE history SET undone = ? WHERE serial = ?", (time.time(), serial))
            before = connection.execute(_SELECT_PREVIOUS, (one, other, labeller)).fetchone()
            if answer != SKIP and before is None:
                connection.execute("DELETE FROM labels WHERE (id1, id2, labeller) = (?, ?, ?)", (one, other, labeller))
            elif answer != SKIP:
                connection.execute(_REPLACE_LABEL, (one, other, labeller, *before))
        return Judgement((one, other), labeller, answer, reason, similarity)

    def open_pair(self, labeller: str) -> OpenPair | None:
        """Return the pair that a labeller was asked last and has not answered."""
        return self.open_pairs().get(labeller)

    def open_pairs(self) -> dict[str, OpenPair]:
        """Return the pair that each labeller was asked last and has not answered, by labeller."""
        with self._locked():
            rows = self._connection.execute("SELECT labeller, id1, id2, reason, similarity FROM asked").fetchall()
        return {name: OpenPair((one, other), reason, similarity) for name, one, other, reason, similarity in rows}

    def set_open_pair(self, labeller: str, pair: OpenPair | None) -> None:
        """Store which pair a labeller is asked, so that a new session asks it again; None for none."""
        with self._transaction() as connection:
            if pair is None:
                connection.execute("DELETE FROM asked WHERE labeller = ?", (labeller,))
            else:
                connection.execute(
                    "INSERT OR REPLACE INTO asked VALUES (?, ?, ?, ?, ?)",
                    (labeller, *pair.pair, pair.reason, pair.similarity),
                )

    def close(self) -> None:
        """Merge the log into the file and close it; closing twice does nothing."""
        with self._lock:
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def majority_label(answers: Mapping[str, str]) -> int | None:
    """Return 1 (same) or 0 (different) by the majority of the sure labellers of a pair; None for a tie."""
    counts = Counter(answers.values())
    if counts[SAME] == counts[DIFFERENT]:
        return None
    return int(counts[SAME] > counts[DIFFERENT])


def load_labels(path: str | os.PathLike[str]) -> dict[IdPair, dict[str, str]]:
    """Return the answers to each pair of a store, by labeller; the store may be in use."""
    store = Path(path)
    labels: dict[IdPair, dict[str, str]] = {}
    try:
        with contextlib.closing(open_read_only(store)) as connection:
            for one, other, name, answer in connection.execute(_SELECT_LABELS):
                labels.setdefault((one, other), {})[name] = answer
    except sqlite3.Error as error:
        raise store_error(store, error) from error
    return labels


def majority_labels(path: str | os.PathLike[str]) -> list[tuple[str, str, int]]:
    """Return the majority labels of a store as (id, id, 1 or 0), sorted and without ties; the store may be in use."""
    labels = {pair: majority_label(answers) for pair, answers in load_labels(path).items()}
    return sorted((*pair, label) for pair, label in labels.items() if label is not None)
