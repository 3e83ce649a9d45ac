"""The label store, a SQLite file: each labeller's answer to a pair, its time, and the checksums of the texts."""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from neardup.errors import RecipeError, StoreError
from neardup.files import open_file, sqlite_error

SAME, DIFFERENT, UNSURE = "same", "different", "unsure"
#: The answers that the store keeps as labels; the first two are the classes.
ANSWERS = (SAME, DIFFERENT, UNSURE)
_REAL = float | None
#: No answer: the pair comes again when no other is left.
SKIP = "skip"
#: The longest name of a labeller.
_MAX_NAME_LENGTH = 60


def labeller_name(name: str) -> str:
    """Return a labeller's name with its spaces collapsed; raise ``RecipeError`` if it is not usable."""
    collapsed = re.sub(r"\s+", " ", name).strip()
    if not collapsed or len(collapsed) > _MAX_NAME_LENGTH or not collapsed.isprintable():
        raise RecipeError(
            f"labeller {name[:_MAX_NAME_LENGTH]!r} is not a valid name; give one of 1 to "
            f"{_MAX_NAME_LENGTH} visible characters"
        )
    return collapsed


FORMAT = 1
#: The application id of the SQLite file: "NLAB".
APPLICATION = 0x4E4C4142
_BUSY_S = 10.0

_SCHEMA = """
CREATE TABLE labels (                      -- the valid answers: one row for each pair and labeller
    id1 TEXT NOT NULL,
    id2 TEXT NOT NULL,
    labeller TEXT NOT NULL,
    answer TEXT NOT NULL CHECK (answer IN ('same', 'different', 'unsure')),
    serial INTEGER NOT NULL REFERENCES history,
    PRIMARY KEY (id1, id2, labeller),
    CHECK (id1 < id2)
) WITHOUT ROWID;
CREATE TABLE history (                     -- all answers ever given, in order
    serial INTEGER PRIMARY KEY AUTOINCREMENT,
    id1 TEXT NOT NULL,
    id2 TEXT NOT NULL,
    labeller TEXT NOT NULL,
    answer TEXT NOT NULL CHECK (answer IN ('same', 'different', 'unsure', 'skip')),
    reason TEXT NOT NULL,                  -- why the pair was chosen
    similarity REAL,                       -- by the candidate rule's measure
    seconds REAL,                          -- how long the labeller looked at the pair
    sum1 TEXT NOT NULL,                    -- checksum of the text of id1
    sum2 TEXT NOT NULL,                    -- checksum of the text of id2
    time REAL NOT NULL,                    -- seconds since 1970, UTC
    undone REAL                            -- time of the undo, likewise
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
_DELETE_OPEN_PAIR = "DELETE FROM asked WHERE (labeller, id1, id2) = (?, ?, ?)"
_SELECT_LAST = """
SELECT serial, id1, id2, answer, reason, similarity FROM history
WHERE labeller = ? AND undone IS NULL AND reason <> 'imported' ORDER BY serial DESC LIMIT 1
"""
_SELECT_PREVIOUS = """
SELECT answer, serial FROM history
WHERE (id1, id2, labeller) = (?, ?, ?) AND undone IS NULL AND answer <> 'skip' ORDER BY serial DESC LIMIT 1
"""


def _open_store(path: Path) -> sqlite3.Connection:
    """Return a connection that reads and writes, of a new file if it is missing; an unfit file stays unchanged."""
    if not path.parent.is_dir():
        raise StoreError(f"{path.parent} is not a folder, so {path.name} cannot be created in it; create it first")
    is_new = not _has_tables(path)
    connection = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
    try:
        if connection.execute("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
            raise StoreError(f"{path} is on a disk without support for write-ahead logs; move it to a local disk")
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


def _has_tables(path: Path) -> bool:
    """Return whether the file is a label store, False if it is missing or empty; else raise ``StoreError``."""
    try:
        with open_file(path) as file:
            head = file.read(16)
    except FileNotFoundError:
        if path.with_name(f"{path.name}-wal").exists():
            raise StoreError(
                f"{path} is missing, but {path.name}-wal with labels of it exists; restore the store, or remove that "
                "file too to create a new one"
            ) from None
        return False
    except IsADirectoryError:
        raise StoreError(f"{path} is a folder, but a store is a file; name one, such as {path / 'labels.db'}") from None
    except OSError as error:
        raise StoreError(f"{path} cannot be opened ({error.strerror}); get read access to it") from None
    if not head:
        return False
    if not head.startswith(b"SQLite format 3\0"):
        raise StoreError(f"{path} is not a SQLite file, so it is not a label store; name another path")
    with contextlib.closing(_connect_read_only(path)) as connection:
        # The header of the file may be older than its log, so only SQLite knows.
        (application,), (format_version,) = (
            connection.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")
        )
        schema = _schema_of(connection)
        is_empty = not schema
    if is_empty and not application:
        return False
    if application != APPLICATION:
        raise StoreError(f"{path} is a SQLite file, but not a label store; name another path")
    if format_version != FORMAT:
        raise StoreError(
            f"{path} has format {format_version}, but neardup {version('neardup')} reads format {FORMAT} only; use the "
            "neardup that wrote it, or name another path"
        )
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        _create_tables(connection)
        # Views, triggers and other columns could answer with anything, and never end.
        if schema != _schema_of(connection):
            raise _damage(path)
    return True


def _schema_of(connection: sqlite3.Connection) -> list[tuple[object, ...]]:
    return connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name").fetchall()


def _damage(path: Path) -> StoreError:
    return StoreError(f"{path} is damaged: restore it from a copy, or name another path")


def _connect_read_only(path: Path) -> sqlite3.Connection:
    # Without a log nobody writes, and an immutable connection creates no files beside the store.
    has_log = path.with_name(f"{path.name}-wal").exists()
    mode = "mode=ro" if has_log else "mode=ro&immutable=1"
    return sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True, timeout=_BUSY_S, isolation_level=None)


#: The ids of two documents, the smaller first.
IdPair = tuple[str, str]


def id_pair(first: str, second: str) -> IdPair:
    """Return two ids in the order of the store."""
    return (first, second) if first < second else (second, first)


class Judgement(NamedTuple):
    """A labeller's answer to a pair."""

    pair: IdPair
    labeller: str
    answer: str  #: ``same``, ``different``, ``unsure``, or ``skip`` for no answer
    reason: str = ""  #: why the pair was chosen
    similarity: float | None = None  #: by the candidate rule's measure
    seconds: float | None = None  #: how long the labeller looked at the pair
    checksums: tuple[str, str] = ("", "")  #: checksums of the two texts, in the order of the ids; empty if unknown
    time: float = 0.0  #: seconds since 1970; 0 for now


class OpenPair(NamedTuple):
    """A pair that was shown to a labeller and is not answered yet."""

    pair: IdPair
    reason: str
    similarity: float | None


class LabelStore:
    """A store of labels, for reading and writing.

    When ``record`` returns, its judgements are on the disk (WAL, ``synchronous=FULL``). There is one label for each
    pair and labeller; earlier and undone answers stay in the history. Several processes and threads may use a store at
    the same time.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._lock = threading.RLock()
        self._data_version = -1
        self._version = 0
        self._labels: dict[IdPair, dict[str, str]] = {}
        self._skipped: dict[str, list[IdPair]] = {}
        with self._locked():
            self._connection = _open_store(self.path)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        with self._lock:
            try:
                yield
            except sqlite3.Error as error:
                raise sqlite_error(self.path, error) from error

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
        """The answers to each pair by labeller; pairs in the order of their first answers."""
        self._refresh()
        return self._labels

    @property
    def labellers(self) -> list[str]:
        """The names of all labellers, sorted."""
        return sorted({name for answers in self.labels.values() for name in answers})

    def skipped(self, labeller: str) -> list[IdPair]:
        """Return the pairs that a labeller skipped and has not judged since, the earliest first."""
        self._refresh()
        return list(self._skipped.get(labeller, ()))

    def counts(self, labeller: str | None = None) -> dict[str, int]:
        """Return the number of labels by answer, of one labeller or of all."""
        counts = Counter(
            answer
            for answers in self.labels.values()
            for name, answer in answers.items()
            if labeller is None or name == labeller
        )
        return {answer: counts[answer] for answer in ANSWERS}

    def _refresh(self) -> None:
        with self._locked():
            (data_version,) = self._connection.execute("PRAGMA data_version").fetchone()
            if data_version == self._data_version:
                return
            labels = _select_labels(self._connection, self.path)
            skipped: dict[str, dict[IdPair, None]] = {}
            for id1, id2, name in _checked(self._connection.execute(_SELECT_SKIPPED), (str,) * 3, self.path):
                # A pair that is skipped again moves to the end.
                if name not in labels.get((id1, id2), {}):
                    skipped.setdefault(name, {}).pop((id1, id2), None)
                    skipped[name][(id1, id2)] = None
            self._labels, self._data_version = labels, data_version
            self._skipped = {name: list(pairs) for name, pairs in skipped.items()}
            self._version += 1

    def judgements(self) -> list[Judgement]:
        """Return all labels with reason, time and checksums, in the order of their times."""
        with self._locked():
            kinds = (*(str,) * 5, _REAL, _REAL, str, str, float)
            rows = list(_checked(self._connection.execute(_SELECT_JUDGEMENTS), kinds, self.path))
        return [
            Judgement((id1, id2), name, answer, reason, similarity, seconds, (sum1, sum2), moment)
            for id1, id2, name, answer, reason, similarity, seconds, sum1, sum2, moment in rows
        ]

    def record(self, judgements: Sequence[Judgement]) -> None:
        """Write judgements to the disk, all or none; a labeller's new answer to a pair replaces the old one."""
        with self._transaction() as connection:
            for judgement in judgements:
                label = (*judgement.pair, judgement.labeller, judgement.answer)
                circumstances = (judgement.reason, judgement.similarity, judgement.seconds, *judgement.checksums)
                values = (*label, *circumstances, judgement.time or time.time())
                serial = connection.execute(_INSERT_HISTORY, values).lastrowid
                if judgement.answer != SKIP:
                    connection.execute(_REPLACE_LABEL, (*label, serial))
                connection.execute(_DELETE_OPEN_PAIR, (judgement.labeller, *judgement.pair))

    def undo(self, labeller: str) -> Judgement | None:
        """Undo a labeller's last answer and return it; None if nothing is left to undo."""
        with self._transaction() as connection:
            found = connection.execute(_SELECT_LAST, (labeller,))
            row = next(_checked(found, (int, *(str,) * 4, _REAL), self.path), None)
            if row is None:
                return None
            serial, id1, id2, answer, reason, similarity = row
            connection.execute("UPDATE history SET undone = ? WHERE serial = ?", (time.time(), serial))
            previous = connection.execute(_SELECT_PREVIOUS, (id1, id2, labeller)).fetchone()
            if answer != SKIP and previous is None:
                connection.execute("DELETE FROM labels WHERE (id1, id2, labeller) = (?, ?, ?)", (id1, id2, labeller))
            elif answer != SKIP:
                connection.execute(_REPLACE_LABEL, (id1, id2, labeller, *previous))
        return Judgement((id1, id2), labeller, answer, reason, similarity)

    def open_pair(self, labeller: str) -> OpenPair | None:
        """Return the open pair of a labeller."""
        return self.open_pairs().get(labeller)

    def open_pairs(self) -> dict[str, OpenPair]:
        """Return the open pair of each labeller who has one."""
        with self._locked():
            found = self._connection.execute("SELECT labeller, id1, id2, reason, similarity FROM asked")
            rows = list(_checked(found, (*(str,) * 4, _REAL), self.path))
        return {name: OpenPair((id1, id2), reason, similarity) for name, id1, id2, reason, similarity in rows}

    def set_open_pair(self, labeller: str, pair: OpenPair) -> None:
        """Store the open pair of a labeller, with which the next session starts."""
        with self._transaction() as connection:
            values = (labeller, *pair.pair, pair.reason, pair.similarity)
            connection.execute("INSERT OR REPLACE INTO asked VALUES (?, ?, ?, ?, ?)", values)

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
    try:
        if not _has_tables(store):
            raise StoreError(f"{path} is not a label store: it is missing or empty; create one with neardup label")
        with contextlib.closing(_connect_read_only(store)) as connection:
            return _select_labels(connection, store)
    except sqlite3.Error as error:
        raise sqlite_error(store, error) from error


def _select_labels(connection: sqlite3.Connection, path: Path) -> dict[IdPair, dict[str, str]]:
    labels: dict[IdPair, dict[str, str]] = {}
    for id1, id2, name, answer in _checked(connection.execute(_SELECT_LABELS), (str,) * 4, path):
        if answer not in ANSWERS:
            raise _damage(path)
        labels.setdefault((id1, id2), {})[name] = answer
    return labels


def _checked(rows: Iterable[tuple[Any, ...]], kinds: Sequence[Any], path: Path) -> Iterator[tuple[Any, ...]]:
    """Yield rows whose values are of the kinds of their columns; SQLite itself allows any value in any column."""
    for row in rows:
        if not all(map(isinstance, row, kinds)):
            raise _damage(path)
        yield row


def majority_labels(path: str | os.PathLike[str]) -> list[tuple[str, str, int]]:
    """Return the majority labels of a store as (id, id, 1 or 0), sorted and without ties; the store may be in use."""
    labels = {pair: majority_label(answers) for pair, answers in load_labels(path).items()}
    return sorted((*pair, label) for pair, label in labels.items() if label is not None)
