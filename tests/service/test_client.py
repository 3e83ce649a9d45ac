"""The client returns what an index returns, and raises errors of neardup."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from serving import EDITED, FOX, OTHER, served, texts

import neardup as nd
from neardup.errors import InputError, NeardupError, StoreError, UnknownDocument
from neardup.service.guard import Tokens


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with served(tmp_path_factory.mktemp("client")) as service_client:
        yield service_client


@pytest.fixture
def client(service: httpx.Client, request: pytest.FixtureRequest) -> Iterator[nd.Client]:
    name = f"t{abs(hash(request.node.name))}"
    service.put(f"/v1/indexes/{name}", json={"window": "endless"}).raise_for_status()
    with nd.Client(str(service.base_url), index=name) as service_client:
        yield service_client


TIMES: list[Any] = [
    1e9 + 0.25,
    "2012-03-01T08:00",
    date(2012, 3, 2),
    datetime(2012, 3, 3, 4, 5, 6, 7, UTC),
    "1330600000",
    np.int64(1_330_700_000),
]


def test_a_client_returns_what_an_index_returns(client: nd.Client) -> None:
    stream = [nd.Document(f"d/{n} ü", text, TIMES[n % 6]) for n, text in enumerate(texts(40, seed=2))]
    with nd.Index(window="endless") as index:
        assert client.check(stream[:1]) == index.check(stream[:1])
        assert client.add(stream[0]) == index.add(stream[0])
        assert client.add_many(stream[1:]) == index.add_many(stream[1:])
        changed = nd.Document("new", f"{stream[-1].text} again", 2e9)
        assert client.check([changed]) == index.check([changed])
        assert client.query(changed) == index.query(changed)
        assert client.query(changed.text, 3) == index.query(changed.text, 3)
        names = [*(one.id for one in stream), "nobody"]
        assert [client.verdict_of(name) for name in names] == [index.verdict_of(name) for name in names]
        assert [name in client for name in names] == [name in index for name in names]
        assert len(client) == len(index)


def test_a_client_releases_replaces_and_forgets(client: nd.Client) -> None:
    client.add_many([nd.Document("a", FOX), nd.Document("b", EDITED)])
    assert client.text_of("b") == EDITED
    assert client.release("b", by="ann").kind == "original"
    assert client.replace(nd.Document("a", OTHER)).kind == "original"
    assert client.add(nd.Document("c", FOX)).of == "b"
    assert client.release(nd.Document("c", FOX)).kind == "original"
    client.forget("a")
    assert client.text_of("a") is None
    for name in ("a", ".", "..", "x/../y"):
        with pytest.raises(UnknownDocument):
            client.forget(name)
    assert client.add(nd.Document("..", f"{OTHER} more")).id == ".."
    assert ".." in client
    assert client.explain(FOX, EDITED)["match"] is True


def test_a_repeated_document_is_no_error_and_another_text_is(client: nd.Client) -> None:
    first = client.add(nd.Document("a", FOX))
    assert not first.known
    assert client.add(nd.Document("a", FOX)) == first._replace(known=True)
    (checked,) = client.check([nd.Document("a", FOX)])
    assert (checked.kind, checked.known) == ("exact", False)
    again = client.add_many([nd.Document("a", FOX), nd.Document("n", OTHER), nd.Document("n", OTHER)])
    assert [verdict.known for verdict in again] == [True, False, True]
    with pytest.raises(InputError, match="belongs to another text"):
        client.add(nd.Document("a", OTHER))
    with pytest.raises(InputError, match="'a': This id"):
        client.add_many([nd.Document("a", OTHER), nd.Document("b", OTHER)])
    with pytest.raises(InputError, match="k is 0; give 1 or more"):
        client.query(FOX, 0)


IDS = [
    "a\nb",
    "a\r\nb\n",
    "\n",
    ".",
    "..",
    "a/../b",
    "/",
    "//a",
    "a%2Fb",
    "%",
    "a?b#c",
    "a b\t",
    "\0",
    "a/release",
    "é\u2028",
    "~2",
]


@pytest.mark.parametrize("name", IDS, ids=ascii)
def test_an_id_may_hold_any_character(client: nd.Client, name: str) -> None:
    client.add_many([nd.Document("first", FOX), nd.Document(name, EDITED)])
    verdict = client.verdict_of(name)
    assert verdict is not None
    assert (verdict.id, verdict.of, client.text_of(name), name in client) == (name, "first", EDITED, False)
    assert client.add(nd.Document(name, EDITED)).known
    assert client.release(name).kind == "original"
    assert client.replace(nd.Document(name, OTHER)).kind == "original"
    assert name in client
    client.forget(name)
    assert client.verdict_of(name) is None


def test_missing_tokens_and_indexes_are_errors(tmp_path: Path) -> None:
    with served(tmp_path, tokens=Tokens(write=("w" * 20,))) as service:
        address = str(service.base_url)
        with nd.Client(address) as stranger, pytest.raises(InputError, match="has no token"):
            stranger.add(nd.Document("a", FOX))
        with nd.Client(address, token="w" * 20) as other_client:
            assert other_client.add(nd.Document("a", FOX)).kind == "original"
        with nd.Client(address, token="w" * 20, index="none") as lost, pytest.raises(UnknownDocument, match="'none'"):
            lost.add(nd.Document("a", FOX))
        with nd.Client(address, token="w" * 20, index="none") as lost, pytest.raises(UnknownDocument, match="'none'"):
            lost.verdict_of("a")


@pytest.mark.parametrize("address", ["news.example", "ftp://news.example", "http://", "http://[::1"])
def test_an_invalid_address_is_refused(address: str) -> None:
    with pytest.raises(InputError, match="is not an address"):
        nd.Client(address)


def test_a_missing_service_is_reported() -> None:
    with nd.Client("http://127.0.0.1:9") as client, pytest.raises(NeardupError, match="is neardup serve running there"):
        client.add(nd.Document("a", FOX))


def test_a_client_retries_while_the_service_is_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    replies: list[httpx.Response] = []
    monkeypatch.setattr(httpx.Client, "request", lambda *_, **__: replies.pop(0))
    verdict = {"kind": "original", "of": None, "similarity": None, "time": 1.0, "flag": "", "counts": None}
    answer = {"documents": [{"id": "a", "status": 201, "verdict": verdict | {"score": None, "measures": []}}]}
    busy = httpx.Response(429, headers={"Retry-After": "0"}, json={"detail": "busy"})
    refusals: list[tuple[list[httpx.Response], type[NeardupError], str]] = [
        ([busy] * 6, NeardupError, "busy"),
        ([httpx.Response(503, json={"detail": "the disk is full"})], StoreError, "disk is full"),
        ([httpx.Response(418, content=b"teapot")], InputError, "418 without a sentence"),
        ([httpx.Response(200, content=b"<html>")], InputError, "200 without a sentence"),
    ]
    with nd.Client("http://news.example") as client:
        replies += [busy, busy, httpx.Response(200, json=answer)]
        assert client.add(nd.Document("a", FOX)).kind == "original"
        for replies[:], error, sentence in refusals:
            with pytest.raises(error, match=sentence):
                client.add(nd.Document("a", FOX))
            assert replies == []
