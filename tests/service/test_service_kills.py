"""Answered documents survive every end of the service: kills under load, signals, full disks."""

from __future__ import annotations

import contextlib
import os
import queue
import random
import resource
import signal
import sqlite3
import threading
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from commands import refused
from kills import kill_count
from sentences import says
from serving import DOCUMENTS, MAIN, Process, document, enter, problem, served, texts, until

import neardup as nd
from neardup.stream.store import StoreReader

#: Kills under load; a hundred in long runs: NEARDUP_LONG=1 python -m pytest tests/service -k every_kill
KILLS = kill_count(2)
#: Callers, and documents of each between two kills: few, because each start restores all earlier ones.
CALLERS, EACH = 8, 3


def verdict_fields(item: dict[str, Any]) -> tuple[Any, ...]:
    verdict = item["verdict"]
    return item["id"], verdict["kind"], verdict["of"], verdict["similarity"]


def load(address: str, waiting: queue.SimpleQueue[dict[str, Any]], answered: dict[str, tuple[Any, ...]]) -> None:
    """Enter documents until the service is gone; one without an answer is tried again later."""
    # Nothing is encrypted, and loading certificates for thousands of clients would take longer than their requests.
    with httpx.Client(base_url=address, timeout=300, verify=False) as client:  # noqa: S501
        while True:
            try:
                one = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                reply = enter(client, one)
            except httpx.TransportError:
                waiting.put(one)
                return
            assert reply.status_code in (200, 201), reply.text
            item = reply.json()["documents"][0]
            # An earlier answer to the same document stays valid.
            assert answered.setdefault(one["id"], verdict_fields(item)) == verdict_fields(item)


def enough_of(answered: dict[str, Any], count: int, callers: list[threading.Thread]) -> bool:
    return len(answered) >= count or not any(one.is_alive() for one in callers)


def test_every_answered_document_survives_every_kill(tmp_path: Path) -> None:
    dice, store = random.Random(KILLS), tmp_path / "news.db"
    stream = {f"d{n}": text for n, text in enumerate(texts(CALLERS * EACH * (KILLS + 1), seed=3))}
    left, answered = list(stream.items()), dict[str, tuple[Any, ...]]()
    waiting: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    for round_number in range(KILLS + 1):
        for name, text in left[: CALLERS * EACH]:
            waiting.put(document(name, text))
        del left[: CALLERS * EACH]
        with Process(store, "--window", "endless") as process:
            with httpx.Client(base_url=process.address, timeout=300, verify=False) as client:  # noqa: S501
                for one in dice.sample(sorted(answered), min(len(answered), 5)):
                    found = client.get(f"{DOCUMENTS}/{one}").json()
                    assert verdict_fields(found) == answered[one]
            callers = [threading.Thread(target=load, args=(process.address, waiting, answered)) for _ in range(CALLERS)]
            before = len(answered)
            for caller in callers:
                caller.start()
            if round_number < KILLS:
                until(partial(enough_of, answered, before + dice.randrange(1, CALLERS * EACH // 2), callers))
                process.end(signal.SIGKILL)
            for caller in callers:
                caller.join()
    # The last round enters all remaining documents.
    assert answered.keys() == stream.keys()
    with StoreReader(store) as reader:
        rows = reader.latest_documents(len(stream) + 1)
    assert sorted(row.id for row in rows) == sorted(stream)
    stored = {row.id: (row.id, row.verdict.kind, row.verdict.of, row.verdict.similarity) for row in rows}
    assert stored == answered
    # An uninterrupted index gives the same verdicts in the same order.
    with nd.Index(window="endless") as index:
        expected = index.add_many(nd.Document(row.id, stream[row.id]) for row in rows)
    assert [(one.id, one.kind, one.of, one.similarity) for one in expected] == [stored[row.id] for row in rows]
    with contextlib.closing(sqlite3.connect(store)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_after_sigterm_it_answers_what_it_accepted(tmp_path: Path) -> None:
    store, answered = tmp_path / "news.db", dict[str, tuple[Any, ...]]()
    waiting: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    for n, text in enumerate(texts(1500, seed=5)):
        waiting.put(document(f"d{n}", text))
    with Process(store) as process:
        callers = [threading.Thread(target=load, args=(process.address, waiting, answered)) for _ in range(CALLERS)]
        for caller in callers:
            caller.start()
        until(lambda: len(answered) > 50)
        code, output = process.end(signal.SIGTERM)
        for caller in callers:
            caller.join()
    assert (code, "stopped; every returned verdict is on the disk" in output) == (0, True), output
    assert "Traceback" not in output
    with StoreReader(store) as reader:
        assert {row.id for row in reader.latest_documents(10_000)} >= answered.keys()
    # It was closed cleanly, so no other file is left.
    assert {path.name for path in tmp_path.iterdir()} == {"news.db", "news.db.lock"}


def test_a_store_in_use_and_wrong_options_are_refused(tmp_path: Path) -> None:
    with served(tmp_path):
        assert says(refused("serve", "--store", tmp_path / "news.db"), "is in use by process", f"{os.getpid()}")
    message = refused("serve", "--store", tmp_path / "news.db", "--window", "7d")
    assert "made with window 'endless', not '168h'" in message
    message = refused("serve", "--store", tmp_path / "other.db", "--host", "192.0.2.1")
    assert "anybody there could write" in message
    assert not (tmp_path / "other.db").exists()


@pytest.mark.usefixtures("no_bytecode")
def test_a_full_disk_is_reported_and_the_service_goes_on(tmp_path: Path) -> None:
    """A limit on the size of files is like a full disk."""
    batch = [document(f"d{n}", text) for n, text in enumerate(texts(1000, seed=7))]
    with Process(tmp_path / "news.db") as process, httpx.Client(base_url=process.address, timeout=300) as client:
        assert enter(client, *batch[:10]).is_success
        before = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (8192, before[1]))
        reply = enter(client, *batch)
        assert int(reply.headers["retry-after"]) >= 1
        for refused_reply in (reply, client.get("/readyz")):
            detail = problem(refused_reply, 503, "free some space")["detail"]
            assert detail.startswith("the store of index 'main' cannot be written: the disk is full"), detail
        # Stored documents can still be read.
        assert client.get(MAIN).json()["documents"] == 10
        assert client.post(f"{MAIN}/query", json={"text": batch[0]["text"]}).json()["similar"][0]["id"] == "d0"
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, before)
        assert client.get("/readyz").is_success
        reply = enter(client, *batch)
        assert [one["status"] for one in reply.json()["documents"]] == [200] * 10 + [201] * 990


def test_an_unfinished_index_is_dropped_at_the_next_start(tmp_path: Path) -> None:
    """A process that is killed between making a store and storing its recipe has told no caller of it."""
    with served(tmp_path) as client:
        client.put("/v1/indexes/wire", json={"window": "7d"}).raise_for_status()
    with contextlib.closing(sqlite3.connect(tmp_path / "news.db.indexes" / "wire.db")) as connection:
        connection.execute("DELETE FROM state")
        connection.commit()
    with served(tmp_path) as client:
        problem(client.get("/v1/indexes/wire"), 404)
        assert client.put("/v1/indexes/wire", json={"recipe": "ddd"}).status_code == 201
