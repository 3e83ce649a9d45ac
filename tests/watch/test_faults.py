"""Faults of a watched folder: one clear line, nothing lost or judged twice, and the watcher continues afterwards."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from forking import STEPS
from newsroom import Newsroom, feed_of, files_in, lines_of, names_in, rows_of, sidecar, text_of, without_digits
from sentences import says

from neardup.errors import InputError, OutputError, StoreError
from neardup.stream.store import Store
from neardup.watch import judging, outputs, watcher
from neardup.watch.inbox import Inbox, inbox_lock, read_unchanged


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try again at once after a fault."""
    monkeypatch.setattr(judging, "_MAX_RETRY_S", 0.01)
    monkeypatch.setattr(watcher, "_MAX_PAUSE_S", 0.01)


def all_is_placed_once(room: Newsroom, names: list[str]) -> None:
    assert sorted([*names_in(room.out), *names_in(room.duplicates)]) == sorted(names)
    assert sorted(row[0] for row in rows_of(room.store)) == sorted(names)
    assert all(row[-1] for row in rows_of(room.store))
    assert names_in(room.inbox) == []


@pytest.mark.parametrize("once", [False, True])
def test_a_full_disk_is_waited_for_and_loses_nothing(
    once: bool, room: Newsroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    link, full = os.link, True

    def linking(source: str, target: str, **options: Any) -> None:
        if full and "/out/" in target:
            raise OSError(errno.ENOSPC, "No space left on device", source, None, target)
        link(source, target, **options)

    monkeypatch.setattr(os, "link", linking)
    names = [f"{number:02}.txt" for number in range(6)]
    for number, name in enumerate(names):
        room.deliver(name, text_of(number))
    if once:
        with pytest.raises(OutputError) as caught:
            room.run_once()
        assert says(caught.value, "free some space", "nothing is lost", "start again")
        assert names_in(room.inbox) == names
        full = False
        room.run_once()
        assert [event for event, _ in room.events_seen] == ["resumed"]
    else:
        with room.watching():
            room.wait_until(lambda: bool(room.events("trouble")))
            message = room.events("trouble")[0]["message"]
            assert says(message, "cannot be written", "free some space", "nothing is lost", "tried again")
            full = False
            room.wait_until(lambda: names_in(room.out) == names)
        assert room.events("well")
    all_is_placed_once(room, names)


@pytest.mark.parametrize("elsewhere", [False, True], ids=["one disk", "two disks"])
def test_the_file_that_does_not_fit_is_named(elsewhere: bool, room: Newsroom, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error of a write to a full disk names no file."""

    def fail(number: int) -> Any:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", lambda _: fail(errno.ENOSPC))
    if elsewhere:
        monkeypatch.setattr(os, "link", lambda *_, **__: fail(errno.EXDEV))
        room.deliver("one.txt", text_of(1))
    else:
        room.deliver("one.txt", feed_of([("a", text_of(1)), ("b", text_of(2))]))
    name = room.out / ("one.txt" if elsewhere else "one.txt.jsonl")
    with pytest.raises(OutputError) as caught:
        room.run_once()
    assert says(caught.value, f"{name} cannot be written", "free some space", "nothing is lost")
    assert names_in(room.out) == []
    assert not [file for file in room.out.rglob("*") if file.is_file()]


def test_a_missing_output_folder_is_waited_for(room: Newsroom, tmp_path: Path) -> None:
    with room.watching() as running:
        room.deliver("one.txt", text_of(1))
        # The file is placed before the folder is flushed and the store updated; the folder must exist until then.
        room.wait_until(lambda: running.counters.files == 1)
        room.out.rename(tmp_path / "away")
        room.deliver("two.txt", text_of(2))
        room.deliver("three.jsonl", lines_of([{"id": i, "text": text_of(30 + i)} for i in range(3)]))
        room.wait_until(lambda: bool(room.events("trouble")))
        assert not room.out.exists()
        (tmp_path / "away").rename(room.out)
        room.wait_until(lambda: (room.done / "three.jsonl").exists())
    assert "the folder is gone" in room.events("trouble")[0]["message"]
    assert names_in(room.out) == ["one.txt", "three.jsonl", "two.txt"]
    assert len(rows_of(room.store)) == 5


def test_a_missing_inbox_is_waited_for(room: Newsroom, tmp_path: Path) -> None:
    names = [f"{number}.txt" for number in range(6)]
    with room.watching() as running:
        for number in range(3):
            room.deliver(names[number], text_of(number))
        room.wait_until(lambda: running.counters.files == 3)
        room.inbox.rename(tmp_path / "away")
        room.wait_until(lambda: bool(room.events("trouble")))
        (tmp_path / "away").rename(room.inbox)
        for number in range(3, 6):
            room.deliver(names[number], text_of(number))
        room.wait_until(lambda: len(names_in(room.out)) == 6)
    assert says(room.events("trouble")[0]["message"], "cannot be read", "no such file")
    assert len(room.events("well")) == 1
    all_is_placed_once(room, names)


@pytest.mark.parametrize(("step", "number"), [("read", errno.EACCES), ("moved", errno.EPERM)])
def test_a_file_that_may_not_be_touched_stops_no_other(
    step: str, number: int, room: Newsroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    unlink, read, refusals = os.unlink, read_unchanged, 2

    def refuse(path: str) -> None:
        nonlocal refusals
        if path.endswith("locked.txt") and refusals:
            refusals -= 1
            raise PermissionError(number, os.strerror(number), path)

    def refuse_to_unlink(path: Any, **options: Any) -> None:
        if "/inbox/" in str(path):
            refuse(str(path))
        unlink(path, **options)

    def refuse_to_read(path: str, stamp: Any) -> Any:
        refuse(path)
        return read(path, stamp)

    if step == "read":
        monkeypatch.setattr("neardup.watch.delivery.read_unchanged", refuse_to_read)
    else:
        monkeypatch.setattr(os, "unlink", refuse_to_unlink)
    room.deliver("locked.txt", text_of(1))
    room.deliver("free.txt", text_of(2))
    with room.watching():
        room.wait_until(lambda: (room.out / "free.txt").exists())
        room.wait_until(lambda: (room.out / "locked.txt").exists())
    assert [event for event, _ in room.events_seen if event in ("trouble", "well")] == ["trouble", "well"]
    message = room.events("trouble")[0]["message"]
    assert says(message, f"locked.txt cannot be {step}", os.strerror(number).lower(), "left in the inbox")
    all_is_placed_once(room, ["free.txt", "locked.txt"])


def test_a_folder_that_may_not_be_written_to_is_a_fault_of_all_files(
    room: Newsroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    access = os.access

    def refuse(_source: str, _stamp: Any, target: str, _temporary_path: str) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", target)

    room.deliver("one.txt", text_of(1))
    with monkeypatch.context() as closed:
        closed.setattr(outputs, "move", refuse)
        closed.setattr(os, "access", lambda path, mode: access(path, mode) and Path(path) != room.out)
        with pytest.raises(OutputError) as caught:
            room.run_once()
    assert says(caught.value, f"{room.out / 'one.txt'} cannot be written", "permission denied", "start again")
    room.run_once()
    all_is_placed_once(room, ["one.txt"])


def test_an_inbox_has_one_moving_watcher(room: Newsroom) -> None:
    inbox = str(room.inbox)
    with inbox_lock(inbox, shared=False), pytest.raises(InputError, match="is watched by another process"):
        inbox_lock(inbox, shared=False).__enter__()
    with (
        inbox_lock(inbox, shared=True),
        inbox_lock(inbox, shared=True),
        pytest.raises(InputError, match="--place link"),
    ):
        inbox_lock(inbox, shared=False).__enter__()
    with inbox_lock(inbox, shared=False):
        pass


@pytest.mark.parametrize("grows", [False, True])
def test_a_file_that_changes_while_it_is_read_is_judged_once(
    grows: bool, room: Newsroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, changed = os.read, list[bool]()

    def changing(handle: int, size: int) -> bytes:
        if not changed:
            changed.append(True)
            if grows:
                with (room.inbox / "news.txt").open("a") as file:
                    file.write(" and more of it")
            else:
                room.deliver("news.txt", text_of(2), at=99.0)
        return read(handle, size)

    room.deliver("news.txt", text_of(1))
    monkeypatch.setattr(os, "read", changing)
    room.run_once()
    expected = f"{text_of(1)} and more of it" if grows else text_of(2)
    assert files_in(room.out) == {"news.txt": expected.encode()}
    assert len(rows_of(room.store)) == 1


@pytest.mark.parametrize("place", ["move", "link"])
def test_a_file_replaced_after_its_verdict_loses_neither_version(
    place: str, room: Newsroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    record, replaced = Store.record, list[bool]()

    def recording(store: Store, *rows: Any, **more: Any) -> None:
        record(store, *rows, **more)
        if not replaced:
            replaced.append(True)
            room.deliver("news.txt", text_of(2), at=99.0)

    room.deliver("news.txt", text_of(1))
    monkeypatch.setattr(Store, "record", recording)
    room.run_once(place=place)
    placed = files_in(room.out)
    assert without_digits(placed) == ["news.txt", "news~19700101T000139.txt"]
    assert list(placed.values()) == [text_of(1).encode(), text_of(2).encode()]
    assert room.verdicts() == {"news.txt": ("original", None), "news.txt~2": ("original", None)}
    assert room.events("replaced")[0]["file"] == "news.txt"


@pytest.mark.parametrize("no_links", [False, True])
def test_a_file_replaced_during_its_move_is_judged_too(
    no_links: bool, room: Newsroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    link, replaced = os.link, list[bool]()

    def linking(source: str, target: str, **options: Any) -> None:
        if "inbox/news.txt" in source and not replaced:
            replaced.append(True)
            room.deliver("news.txt", text_of(2), at=99.0)
        if no_links:
            raise PermissionError(errno.EPERM, "Operation not permitted", source, None, target)
        link(source, target, **options)

    room.deliver("news.txt", text_of(1))
    monkeypatch.setattr(os, "link", linking)
    room.run_once()
    placed = files_in(room.out)
    assert without_digits(placed) == ["news.txt", "news~19700101T000139.txt"]
    assert list(placed.values()) == [text_of(1).encode(), text_of(2).encode()]


def test_a_file_of_200_mb_is_rejected_without_being_read(room: Newsroom, monkeypatch: pytest.MonkeyPatch) -> None:
    path = room.deliver("huge.txt", "")
    os.truncate(path, 200_000_000)
    room.deliver("good.txt", text_of(1))
    room.run_once(patience=30.0)
    assert not path.exists()
    assert (room.quarantine / "huge.txt").stat().st_size == 200_000_000
    reason = "200,000,000 bytes are more than --largest allows (64,000,000)"
    assert sidecar(room.quarantine / "huge.txt")["reason"] == reason
    assert names_in(room.out) == ["good.txt"]


def test_a_name_taken_meanwhile_places_no_item_twice(room: Newsroom, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another program takes the name of the duplicates after the originals were written."""
    write_new, taken = outputs.write_new, list[bool]()

    def writing(content: bytes, target: str, *rest: Any, **more: Any) -> None:
        if target.endswith("duplicates/feed.xml.jsonl") and not taken:
            taken.append(True)
            Path(target).write_text("another program")
        write_new(content, target, *rest, **more)

    monkeypatch.setattr(outputs, "write_new", writing)
    room.deliver("feed.xml", feed_of([("a", text_of(1)), ("b", text_of(1))]))
    room.run_once()
    assert names_in(room.out) == ["feed.xml.jsonl"]
    assert len(names_in(room.duplicates)) == 2


def test_a_file_in_an_unreadable_folder_is_not_new_afterwards(room: Newsroom, monkeypatch: pytest.MonkeyPatch) -> None:
    room.deliver("wire/one.txt", text_of(1))
    inbox, scandir = Inbox(str(room.inbox), 0.0), os.scandir
    assert [path for path, _ in inbox.scan().new] == ["wire/one.txt"]
    assert inbox.next_settled() is not None

    def refusing(path: str) -> Any:
        if path.endswith("wire"):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return scandir(path)

    with monkeypatch.context() as broken:
        broken.setattr(os, "scandir", refusing)
        assert [path for path, _ in inbox.scan().failed] == ["wire"]
    assert inbox.scan().new == []


def test_a_full_store_is_waited_for(room: Newsroom, monkeypatch: pytest.MonkeyPatch) -> None:
    record, full = Store.record, 2

    def failing(store: Store, *rows: Any, **more: Any) -> None:
        nonlocal full
        if full:
            full -= 1
            raise StoreError(f"{store.path} cannot be written: the disk is full; free some space")
        record(store, *rows, **more)

    monkeypatch.setattr(Store, "record", failing)
    room.deliver("one.txt", text_of(1))
    room.deliver("two.txt", text_of(1))
    with room.watching():
        room.wait_until(lambda: (room.duplicates / "two.txt").exists())
    assert [event for event, _ in room.events_seen if event in ("trouble", "well")] == ["trouble", "well"]
    assert "the disk is full" in room.events("trouble")[0]["message"]
    all_is_placed_once(room, ["one.txt", "two.txt"])


class Crash(BaseException):
    """A process that ends here."""


@pytest.mark.parametrize("place", ["move", "link"])
@pytest.mark.parametrize("elsewhere", [False, True], ids=["one disk", "two disks"])
def test_a_crash_at_every_step_leaves_each_item_in_one_place(
    place: str, elsewhere: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if elsewhere:
        # The error of a link to another file system.
        link = os.link

        def far(source: str, target: str, **options: Any) -> None:
            if "/inbox/" in source:
                raise OSError(errno.EXDEV, "Invalid cross-device link", source, None, target)
            link(source, target, **options)

        monkeypatch.setattr(os, "link", far)
    # All steps take minutes; a run of the suite checks some, different ones in each of the four cases.
    stride = 1 if os.environ.get("NEARDUP_KILLS") else 5 if os.environ.get("NEARDUP_LONG") else 17
    steps = 0 if stride == 1 else 4 * elsewhere + 8 * (place == "link")
    expected: dict[str, Any] | None = None
    while True:
        room = Newsroom(tmp_path / str(steps))
        room.deliver("one.txt", text_of(1))
        room.deliver("again.txt", text_of(1))
        room.deliver("feed.xml", feed_of([("a", text_of(2)), ("b", text_of(1)), ("c", text_of(3))]))
        room.deliver("bad.txt", b"no\0text")
        with monkeypatch.context() as crashing:
            for module, name in STEPS:
                crashing.setattr(module, name, _counted(getattr(module, name)))
            remaining[0] = steps
            try:
                room.run_once(place=place)
                crashed = False
            except Crash:
                crashed = True
        room.run_once(place=place)
        trees = {name: files_in(getattr(room, name)) for name in ("out", "done", "quarantine", "duplicates")}
        found = {name: _without_times(tree) for name, tree in trees.items()}
        expected = expected or found
        assert found == expected, f"after a crash at step {steps}"
        assert [row[:3] for row in rows_of(room.store)] == [
            ("one.txt", "original", None),
            ("again.txt", "exact", "one.txt"),
            ("a", "original", None),
            ("b", "exact", "one.txt"),
            ("c", "original", None),
        ]
        assert all(row[-1] for row in rows_of(room.store))
        if not crashed:
            break
        steps += stride
    assert steps > 40


#: Steps that may still be done before the process ends.
remaining = [0]


def _counted(function: Any) -> Any:
    def counted(*values: Any, **options: Any) -> Any:
        if remaining[0] <= 0:
            raise Crash
        remaining[0] -= 1
        return function(*values, **options)

    return counted


def _without_times(tree: dict[str, bytes]) -> dict[str, Any]:
    return {name: content if ".neardup.json" not in name else _timeless(content) for name, content in tree.items()}


def _timeless(content: bytes) -> list[str]:
    return [part for part in content.decode().replace(", ", "\n").splitlines() if '"time"' not in part]
