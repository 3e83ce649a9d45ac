"""The store of labels, an SQLite file: what each labeller said of a pair, when, and of which texts."""

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
#: What is kept as a label; of these the first two are a class.
ANSWERS = (SAME, DIFFERENT, UNSURE)
#: No answer: the pair is put aside, and asked again when nothing else is left.
SKIP = "skip"
#: The longest name of a labeller.
_LONGEST_NAME = 60


def checked_name(name: str) -> str:
    """Return a labeller's name without spaces around it."""
    found = re.sub(r"\s+", " ", name).strip()
    if not found or len(found) > _LONGEST_NAME or not found.isprintable():
        raise RecipeError(
            f"labeller {name[:_LONGEST_NAME]!r} is no name; give one of 1 to {_LONGEST_NAME} characters, all visible"
        )
    return found


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

    Raises ``StoreError`` if the file is something else; it is left as it was.
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
    """Return a connection that cannot write."""
    if not _look(path):
        raise StoreError(f"{path} is no store of labels: there is none; neardup label makes one")
    return _reader(path)


def _look(path: Path) -> bool:
    """Say whether a store is there; an empty file is as good as none.

    Raises ``StoreError`` if something else is there.
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


#: The ids of two documents, the smaller first.
PairOfIds = tuple[str, str]


def pair_of(one: str, other: str) -> PairOfIds:
    """Return two ids as the store keeps them."""
    return (one, other) if one < other else (other, one)


class Judgement(NamedTuple):
    """What a labeller said of a pair."""

    pair: PairOfIds
    labeller: str
    #: ``same``, ``different`` or ``unsure``; ``skip`` puts the pair aside without an answer.
    answer: str
    reason: str = ""
    #: What the candidate rule's measure says of it.
    similarity: float | None = None
    #: How long the labeller looked at it.
    seconds: float | None = None
    #: Checksums of the two texts, as the ids are in order; empty where they are not known.
    sums: tuple[str, str] = ("", "")
    #: When, in seconds since 1970; 0 for now.
    time: float = 0.0


class Open(NamedTuple):
    """The pair that a labeller was asked and has not answered."""

    pair: PairOfIds
    reason: str
    similarity: float | None


class LabelStore:
    """Keeps labels.

    What ``record`` was given is on the disk when it returns (WAL, ``synchronous=FULL``). There is one label for each
    pair and labeller; what was said before, and what was taken back, stays in the history. Several processes may use a
    store at once, and it may be used from several threads.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._lock = threading.RLock()
        self._seen = -1
        self._version = 0
        self._labels: dict[PairOfIds, dict[str, str]] = {}
        self._skipped: dict[str, list[PairOfIds]] = {}
        with self._explained():
            self._connection = opened(self.path)

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        with self._lock:
            try:
                yield
            except sqlite3.Error as error:
                raise explained(self.path, error) from error

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Give one transaction, on the disk when the block is left."""
        with self._explained():
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
                self._seen = -1

    @property
    def version(self) -> int:
        """A number that grows whenever the labels have changed, by whomever."""
        self._look()
        return self._version

    @property
    def labels(self) -> Mapping[PairOfIds, Mapping[str, str]]:
        """The answers of each pair by labeller; pairs in the order in which they were first judged."""
        self._look()
        return self._labels

    @property
    def labellers(self) -> list[str]:
        """Who has given labels, by name."""
        return sorted({name for answers in self.labels.values() for name in answers})

    def skipped(self, labeller: str) -> list[PairOfIds]:
        """Return the pairs that a labeller has put aside and not judged since, the one put aside longest ago first."""
        self._look()
        return list(self._skipped.get(labeller, ()))

    def counts(self, labeller: str | None = None) -> dict[str, int]:
        """Return how many labels there are of each answer, of one labeller or of all."""
        given = Counter(
            answer
            for answers in self.labels.values()
            for name, answer in answers.items()
            if labeller is None or name == labeller
        )
        return {answer: given[answer] for answer in ANSWERS}

    def _look(self) -> None:
        """Take the labels from the file, if they have changed."""
        with self._explained():
            (seen,) = self._connection.execute("PRAGMA data_version").fetchone()
            if seen == self._seen:
                return
            labels: dict[PairOfIds, dict[str, str]] = {}
            for one, other, name, answer in self._connection.execute(LABELS):
                labels.setdefault((one, other), {})[name] = answer
            skipped: dict[str, dict[PairOfIds, None]] = {}
            for one, other, name in self._connection.execute(SKIPPED):
                # What was put aside once more goes to the end.
                if name not in labels.get((one, other), {}):
                    skipped.setdefault(name, {}).pop((one, other), None)
                    skipped[name][(one, other)] = None
            self._labels, self._seen = labels, seen
            self._skipped = {name: list(pairs) for name, pairs in skipped.items()}
            self._version += 1

    def judgements(self) -> list[Judgement]:
        """Return all labels with their circumstances, in the order in which they were given."""
        with self._explained():
            rows = self._connection.execute(JUDGEMENTS).fetchall()
        return [
            Judgement((one, other), name, answer, reason, similarity, seconds, (first, second), moment)
            for one, other, name, answer, reason, similarity, seconds, first, second, moment in rows
        ]

    def record(self, judgements: Sequence[Judgement]) -> None:
        """Put judgements on the disk, all or none; a labeller's new answer on a pair takes the place of the old one."""
        with self._writing() as connection:
            for one in judgements:
                moment = one.time or time.time()
                values = (*one.pair, one.labeller, one.answer, one.reason, one.similarity, one.seconds, *one.sums)
                serial = connection.execute(ADD, (*values, moment)).lastrowid
                if one.answer != SKIP:
                    connection.execute(SET, (*one.pair, one.labeller, one.answer, serial))
                connection.execute(CLOSE, (one.labeller, *one.pair))

    def undo(self, labeller: str) -> Judgement | None:
        """Take back what a labeller did last, and return it; None if there is nothing left to take back."""
        with self._writing() as connection:
            row = connection.execute(LAST, (labeller,)).fetchone()
            if row is None:
                return None
            serial, one, other, answer, reason, similarity = row
            connection.execute("UPDATE history SET undone = ? WHERE serial = ?", (time.time(), serial))
            before = connection.execute(BEFORE, (one, other, labeller)).fetchone()
            if answer != SKIP and before is None:
                connection.execute("DELETE FROM labels WHERE (id1, id2, labeller) = (?, ?, ?)", (one, other, labeller))
            elif answer != SKIP:
                connection.execute(SET, (one, other, labeller, *before))
        return Judgement((one, other), labeller, answer, reason, similarity)

    def asking(self, labeller: str) -> Open | None:
        """Return the pair that a labeller was asked last and has not answered."""
        return self.open().get(labeller)

    def open(self) -> dict[str, Open]:
        """Return the pairs that labellers were asked last and have not answered, by labeller."""
        with self._explained():
            rows = self._connection.execute("SELECT labeller, id1, id2, reason, similarity FROM asked").fetchall()
        return {name: Open((one, other), reason, similarity) for name, one, other, reason, similarity in rows}

    def ask(self, labeller: str, asked: Open | None) -> None:
        """Note which pair a labeller is asked, so that a new start asks the same; None for none."""
        with self._writing() as connection:
            if asked is None:
                connection.execute("DELETE FROM asked WHERE labeller = ?", (labeller,))
            else:
                connection.execute(
                    "INSERT OR REPLACE INTO asked VALUES (?, ?, ?, ?, ?)",
                    (labeller, *asked.pair, asked.reason, asked.similarity),
                )

    def close(self) -> None:
        """Put the log into the file and let go of it; a second time does nothing."""
        with self._lock:
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def majority(answers: Mapping[str, str]) -> int | None:
    """Return 1 or 0 as most labellers of a pair say; None where as many say the one, or none is sure."""
    given = Counter(answers.values())
    if given[SAME] == given[DIFFERENT]:
        return None
    return int(given[SAME] > given[DIFFERENT])


def labels_of(path: str | os.PathLike[str]) -> dict[PairOfIds, dict[str, str]]:
    """Return the answers of each pair in a store by labeller; the store is only read, and may be in use."""
    place = Path(path)
    labels: dict[PairOfIds, dict[str, str]] = {}
    try:
        with contextlib.closing(opened_to_read(place)) as connection:
            for one, other, name, answer in connection.execute(LABELS):
                labels.setdefault((one, other), {})[name] = answer
    except sqlite3.Error as error:
        raise explained(place, error) from error
    return labels


def export_rows(path: str | os.PathLike[str]) -> list[tuple[str, str, int]]:
    """Return the labels of a store as (id, id, 1 or 0), sorted: what most labellers say; ties are left out.

    The store is only read, and may be in use.
    """
    found = {pair: majority(answers) for pair, answers in labels_of(path).items()}
    return sorted((*pair, label) for pair, label in found.items() if label is not None)
