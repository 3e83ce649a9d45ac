"""Faults of a store from outside: killed writers, damaged files, full disks, other processes. Nothing is mocked."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sentences import says
from storing import IDENTITY, Twin, batch, open_store, stored_document
from streaming import AT_LENGTH

import neardup as nd
from neardup.errors import StoreError
from neardup.stream.store import Store, StoreReader
from neardup.stream.store_file import APPLICATION

HERE = str(Path(__file__).parent)
WRITER = """
    import sys, time
    sys.path.insert(0, {here!r})
    from pathlib import Path
    from storing import batch, open_store
    with open_store(Path(sys.argv[1])) as store:
        print("open", flush=True)
        for number in range(store.next_serial // 7, 100_000):
            store.record(batch(number), {{"batch": str(number)}})
            print(number, flush=True)
            if number % 50 == 49:
                store.forget(number * 7 - 140)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "news.db"


@contextlib.contextmanager
def running(path: Path, script: str = WRITER) -> Iterator[subprocess.Popen[str]]:
    """Run a script with a store, and kill it with SIGKILL at the end."""
    code = textwrap.dedent(script).format(here=HERE)
    with subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGKILL)


def line(process: subprocess.Popen[str]) -> str:
    return "" if process.stdout is None else process.stdout.readline().strip()


def contents(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder, without the lock and the shared memory, which contain no data."""
    return {found.name: found.read_bytes() for found in folder.iterdir() if not found.name.endswith((".lock", "-shm"))}


def refused(path: Path, *parts: str, **changes: object) -> None:
    """Check that a store is refused twice with one sentence, without a change."""
    before = contents(path.parent)
    for _ in range(2):
        with pytest.raises(StoreError) as caught:
            open_store(path, **changes)
        assert says(caught.value, str(path), *parts)
        assert contents(path.parent) == before


def complete(store: Store) -> int:
    """Check that a store has the first batches and nothing else; return their number."""
    number = store.next_serial // 7
    assert store.next_serial == number * 7
    assert store.counts["arrived"] == number * 7
    assert store.state("batch") == (str(number - 1) if number else None)
    forgotten = max([done * 7 - 140 for done in range(49, number, 50)], default=0)
    held = [row for found in store.window_documents() for row in found]
    # The kill may come between ``record`` and the following ``forget``.
    first = held[0].serial if held else 0
    assert first in {max(forgotten, 0), max(forgotten - 350, 0)}
    assert held == [row for done in range(number) for row in batch(done) if row.serial >= first]
    assert [row.serial for row in store.unplaced_documents()] == list(range(number * 7))
    return number


def test_a_killed_writer_leaves_every_confirmed_batch(path: Path) -> None:
    choose = random.Random(7)
    confirmed = -1
    for _ in range(8 if AT_LENGTH else 2):
        with running(path) as process:
            assert line(process) == "open"
            for _ in range(choose.randrange(10, 60)):
                confirmed = int(line(process))
        with open_store(path) as store:
            assert complete(store) > confirmed
    assert confirmed > 10


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store whose writer was killed with a dozen batches in the log."""
    path = tmp_path_factory.mktemp("killed") / "news.db"
    with running(path) as process:
        line(process)
        while int(line(process)) < 12:
            pass
    return path


def test_a_damaged_log_is_applied_up_to_its_last_commit(killed: Path, tmp_path: Path) -> None:
    log = killed.with_name("news.db-wal").read_bytes()
    choose = random.Random(8)
    sizes = {0, 1, 31, 32, 33, len(log), *(choose.randrange(len(log)) for _ in range(60 if AT_LENGTH else 12))}
    torn = [log[:size] for size in sorted(sizes)]
    for _ in range(30 if AT_LENGTH else 6):
        damaged = bytearray(log)
        damaged[choose.randrange(len(log))] ^= 1 << choose.randrange(8)
        torn.append(bytes(damaged))
    found = []
    for number, content in enumerate(torn):
        copy = tmp_path / f"copy{number}" / "news.db"
        copy.parent.mkdir()
        shutil.copy(killed, copy)
        copy.with_name("news.db-wal").write_bytes(content)
        with open_store(copy) as store:
            found.append(complete(store))
    found = found[: len(sizes)]
    assert found == sorted(found)
    assert (found[0], found[-1] >= 13, len(set(found)) > 5) == (0, True, True)


def test_remains_of_an_unfinished_store_are_replaced(path: Path) -> None:
    path.with_name("news.db.new").write_bytes(b"half a store")
    path.with_name("news.db.new-journal").write_bytes(b"half a journal")
    with open_store(path) as store:
        store.record(batch(0))
    assert set(contents(path.parent)) == {"news.db"}


def filled(path: Path) -> Twin:
    twin = Twin()
    with open_store(path) as store:
        for number in range(4):
            store.record(batch(number))
            twin.record(batch(number), {})
    return twin


def test_a_truncated_store_is_refused(path: Path) -> None:
    filled(path)
    whole = path.read_bytes()
    choose = random.Random(10)
    lost = {1, 8192, *(choose.randrange(1, 8192) for _ in range(40 if AT_LENGTH else 1))}
    for size in (1, 16, 99, 100, *(len(whole) - bytes_lost for bytes_lost in lost)):
        path.write_bytes(whole[:size])
        refused(path, "is damaged (", "from a copy", "move it away")
    for content, words in (
        (whole + b"\0" * 100, (f"is damaged ({len(whole) + 100:,} bytes", f"instead of {len(whole):,})")),
        (b"", ("is empty", "remove it")),
        (b"\0" * len(whole), ("is damaged", "header is gone")),
    ):
        path.write_bytes(content)
        refused(path, *words)


def test_a_page_of_zeros_is_detected(path: Path) -> None:
    twin = filled(path)
    whole = path.read_bytes()
    choose = random.Random(11)
    caught = 0
    for page in range(len(whole) // 8192):
        for begin in (0, choose.randrange(8192), choose.randrange(8192)):
            start, end = page * 8192 + begin, (page + 1) * 8192
            path.write_bytes(whole[:start] + bytes(end - start) + whole[end:])
            try:
                with open_store(path) as store:
                    twin.check(store)
            except StoreError:
                caught += 1
    assert caught > len(whole) // 8192


def test_a_changed_text_or_row_is_detected_when_it_is_read(path: Path) -> None:
    filled(path)
    text, row = (f"the {part} of document number 3 is not what was written" for part in ("text", "row"))
    for change, words in (
        ("held SET text = 'another'", text),
        ("held SET text = x'ff'", text),
        ("held SET title = 'Another'", text),
        ("documents SET time = time + 1", row),
        ("documents SET id = x'ff'", row),
        ("documents SET score = 1.25, measures = '{}'", row),
        ("held SET text = CAST(x'ff' AS TEXT)", "is damaged .*UTF-8"),
    ):
        copy = path.with_name("copy.db")
        shutil.copy(path, copy)
        with contextlib.closing(sqlite3.connect(copy)) as connection, connection:
            connection.execute(f"UPDATE {change} WHERE serial = 3")
        with open_store(copy) as store, pytest.raises(StoreError, match=words):
            list(store.window_documents())


def test_damage_found_later_is_a_store_error(path: Path) -> None:
    filled(path)
    state = path.stat()
    whole = bytearray(path.read_bytes())
    with contextlib.closing(sqlite3.connect(path)) as connection:
        roots = dict(connection.execute("SELECT name, rootpage FROM sqlite_schema"))
    begin = (roots["sqlite_autoindex_documents_1"] - 1) * 8192
    whole[begin : begin + 8] = b"\xee" * 8
    path.write_bytes(whole)
    # Keep the times of the closed file, so that it is not checked at the start.
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    with open_store(path) as store:
        with pytest.raises(StoreError, match="is damaged"):
            store.judged_ids(["doc1"])
        with pytest.raises(StoreError, match="is damaged"):
            store.record([stored_document(store.next_serial)])
        assert store.next_serial == 28
    path.touch()
    refused(path, "is damaged")


def test_other_files_are_refused_and_not_changed(path: Path, tmp_path: Path) -> None:
    path.write_text("id,text\n1,hello\n" * 20)
    refused(path, "not a store of neardup", "move it away")
    path.unlink()
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE mine (a)")
    refused(path, "not a store of neardup")
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute("PRAGMA user_version = 99")
    refused(path, "format 99", "only", "that wrote it")
    assert [found.name for found in tmp_path.iterdir()] == ["news.db"]
    with pytest.raises(StoreError, match=r"is a folder; a store is a file.*/news\.db"):
        open_store(tmp_path)
    with pytest.raises(StoreError, match=r"nowhere is not a folder.*news\.db"):
        open_store(tmp_path / "nowhere" / "news.db")
    path.unlink()
    path.with_name("news.db-wal").write_bytes(b"verdicts")
    refused(path, "is gone", "news.db-wal is still there")


@pytest.mark.parametrize("after", ["a clean end", "a kill"])
def test_another_recipe_or_window_is_refused_without_a_change(path: Path, killed: Path, after: str) -> None:
    if after == "a kill":
        for ending in ("", "-wal"):
            shutil.copy(killed.with_name(f"news.db{ending}"), path.with_name(f"news.db{ending}"))
    else:
        filled(path)
    settings = dict(IDENTITY.settings)
    refused(path, "another recipe or classifier", "fingerprint 'f1', not 'f2'", fingerprint="f2")
    refused(path, "window '24h', not '48h'", settings=settings | {"window": "48h"})
    refused(path, "extra none, not 'x'", settings=settings | {"extra": "x"})
    refused(path, "window '24h', not none", settings={k: v for k, v in settings.items() if k != "window"})
    with open_store(path) as store:
        assert store.next_serial


def test_a_store_has_one_living_writer(path: Path) -> None:
    path.with_name("link.db").symlink_to(path)
    with running(path) as process:
        assert line(process) == "open"
        with pytest.raises(StoreError) as caught:
            open_store(path)
        assert says(caught.value, "in use", f"process {process.pid};", "one writer")
    path.with_name("news.db.lock").write_text("pid 1\n")
    with open_store(path) as store, open_store(path.with_name("other.db")):
        complete(store)
        for same in (path, path.with_name("link.db")):
            with pytest.raises(StoreError) as caught:
                open_store(same)
            assert says(caught.value, "news.db is in use", f"process {os.getpid()} (this one)")


def test_another_writing_program_is_named_as_the_cause(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neardup.stream.store_file._BUSY_SECONDS", 0.05)
    with open_store(path) as store, contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError) as caught:
            store.record(batch(0))
        assert says(caught.value, str(path), "written", "by another program")
        other.execute("ROLLBACK")
        store.record(batch(0))
        assert store.next_serial == 7


@pytest.mark.parametrize(
    ("file", "folder", "words"),
    [
        (0o000, 0o777, ("cannot be opened", "(Permission denied)")),
        (0o444, 0o777, ("cannot be opened", "(Permission denied)")),
        (0o666, 0o555, ("cannot be locked", "news.db.lock cannot be written")),
    ],
)
def test_a_missing_permission_is_reported_in_one_sentence(
    path: Path, file: int, folder: int, words: tuple[str, ...]
) -> None:
    filled(path)
    path.with_name("news.db.lock").unlink()
    root = os.geteuid() == 0
    # The folders of pytest are private; another user must be able to reach the store.
    above = [at for at in path.parents if at.stat().st_mode & 0o001 == 0] if root else []
    modes = {at: at.stat().st_mode & 0o7777 for at in {*above, path.parent, path}}
    try:
        for at in above:
            at.chmod(0o755)
        path.chmod(file)
        path.parent.chmod(folder)
        if root:
            os.seteuid(65534)
        with pytest.raises(StoreError) as caught:
            open_store(path)
        assert says(caught.value, *words)
    finally:
        if root:
            os.seteuid(0)
        for at, mode in modes.items():
            at.chmod(mode)
    with open_store(path) as store:
        assert store.next_serial == 28


def test_a_full_disk_stores_nothing_and_the_store_continues(
    path: Path, full_disk: Callable[[int | None], None]
) -> None:
    twin, rows = Twin(), batch(0)
    with open_store(path) as store:
        full_disk(300_000)
        with contextlib.suppress(StoreError):
            while rows:
                store.record(rows, {"batch": str(rows[0].serial)})
                twin.record(rows, {"batch": str(rows[0].serial)})
                rows = batch(store.next_serial // 7)
        for _ in range(3):
            with pytest.raises(StoreError) as caught:
                store.record([stored_document(store.next_serial, text="too long " * 200_000)])
            assert says(caught.value, "news.db cannot be written", "nothing was stored", "free some space")
            twin.check(store)
        full_disk(None)
        store.record(rows)
    assert twin.rows


#: Changes to single values of a store, as by another program.
CHANGES = (
    "UPDATE state SET value = '{}' WHERE name = 'clock'",
    "UPDATE state SET value = 'nonsense' WHERE name = 'clock'",
    "UPDATE state SET value = '[1, 2]' WHERE name = 'clock'",
    "UPDATE state SET value = 'null' WHERE name = 'clock'",
    "UPDATE state SET value = '3' WHERE name = 'clock'",
    "UPDATE state SET value = x'00ff' WHERE name = 'clock'",
    """UPDATE state SET value = replace(value, '"count": ', '"count": "x", "y": ')""",
    "DELETE FROM state WHERE name = 'clock'",
    "UPDATE state SET value = 'name = [' WHERE name = 'recipe'",
    "UPDATE tally SET value = 'many' WHERE name = 'originals'",
    "UPDATE tally SET value = value + 1 WHERE name = 'originals'",
    "UPDATE tally SET value = 1e300 WHERE name = 'forgotten'",
    "UPDATE tally SET value = 99 WHERE name = 'forgotten'",
    "UPDATE documents SET serial = 9223372036854775807 WHERE serial = 1",
    "UPDATE documents SET measures = '{' WHERE serial = 0",
    "UPDATE documents SET version_of = 'x' WHERE serial = 0",
    "UPDATE held SET serial = 77 WHERE serial = 0",
    "UPDATE kept SET digest = 'text' WHERE serial = 0",
    "DROP TABLE state",
    "DROP TABLE kept",
    "ALTER TABLE documents DROP COLUMN version_of",
    "PRAGMA user_version = 2",
)


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_value_is_damage(path: Path, change: str) -> None:
    documents = [nd.Document("a", "one text of some words", 1e9), nd.Document("b", "and another text of words", 1e9)]
    with nd.Index("ddd", path=path) as index:
        index.add_many(documents)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript(f"PRAGMA ignore_check_constraints = ON; {change}")
    with pytest.raises(StoreError) as caught, nd.Index("ddd", path=path) as index:
        index.add_many(documents)
    assert says(caught.value, f"{path} is damaged (", "restore it from a copy")


def test_a_release_that_was_changed_is_damage(path: Path) -> None:
    with nd.Index("ddd", path=path, keep_texts=True) as index:
        index.add_many(nd.Document(name, "one text of some words", 1e9) for name in "ab")
        index.release("b", "ann")
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript("UPDATE released SET similarity = 'x'")
    with StoreReader(path) as reader, pytest.raises(StoreError, match="the release of document number 2 is not"):
        reader.releases(0)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript("PRAGMA user_version = 99")
    with pytest.raises(StoreError, match="has the format 99, and neardup"):
        StoreReader(path)
