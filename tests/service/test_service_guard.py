"""Access to the service, its limits, and its answers to invalid requests."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import socket
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from serving import DOCUMENTS, EDITED, FOX, MAIN, OTHER, document, enter, problem, served

import neardup as nd
from neardup.errors import InputError, OutputError, RecipeError
from neardup.service.app import Service
from neardup.service.bodies import DocumentsBody
from neardup.service.guard import Limits, Tokens
from neardup.service.refusals import Problem, read_body
from neardup.service.server import host_name, is_loopback

#: Simultaneous connections; 10,000 in long runs.
CONNECTIONS = 10_000 if os.environ.get("NEARDUP_LONG") == "1" else 250
READ, WRITE = "r" * 20, "w" * 20
EVERYWHERE = "0.0.0.0"  # noqa: S104
TOKENS = Tokens((READ,), (WRITE,))


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def port_of(client: httpx.Client) -> int:
    port = client.base_url.port
    assert port is not None
    return port


def head_of(length: int) -> str:
    kind = "Content-Type: application/json"
    return f"POST {DOCUMENTS} HTTP/1.1\r\nHost: localhost\r\n{kind}\r\nContent-Length: {length}\r\n\r\n"


def raw(client: httpx.Client, sent: bytes, *, seconds: float = 300) -> bytes:
    """Send bytes, and return the answer until the connection is closed."""
    with socket.create_connection(("127.0.0.1", port_of(client)), timeout=seconds) as connection:
        connection.sendall(sent)
        received = b""
        with contextlib.suppress(ConnectionError):
            while part := connection.recv(65536):
                received += part
        return received


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A service without tokens; each test enters documents of its own."""
    with served(tmp_path_factory.mktemp("guard")) as made:
        yield made


def test_readers_may_not_write_and_others_need_a_token(tmp_path: Path) -> None:
    writes: list[tuple[str, str, Any]] = [
        ("POST", DOCUMENTS, {"documents": [document("a")]}),
        ("PUT", f"{DOCUMENTS}/b", {"text": OTHER}),
        ("POST", f"{DOCUMENTS}/b/release", {}),
        ("DELETE", f"{DOCUMENTS}/b", None),
        ("PUT", "/v1/indexes/wire", {}),
        ("DELETE", "/v1/indexes/wire", None),
    ]
    reads: list[tuple[str, str, Any]] = [
        ("POST", f"{DOCUMENTS}?mode=check", {"documents": [document("z")]}),
        ("POST", f"{MAIN}/query", {"text": FOX}),
        ("GET", f"{DOCUMENTS}/a", None),
        ("GET", "/info", None),
        ("GET", "/metrics", None),
    ]
    with served(tmp_path, tokens=TOKENS) as client:
        for method, path, body in [*writes, *reads]:
            reply = client.request(method, path, json=body)
            problem(reply, 401, "has no token")
            assert reply.headers["www-authenticate"] == "Bearer"
        for headers in (bearer("x" * 20), {"Authorization": f"Basic {WRITE}"}):
            problem(client.get("/info", headers=headers), 401, "not known")
        for method, path, body in writes:
            problem(client.request(method, path, json=body, headers=bearer(READ)), 403, "may only read")
            assert client.request(method, path, json=body, headers=bearer(WRITE)).status_code in (200, 201, 204, 409)
        for method, path, body in reads:
            assert client.request(method, path, json=body, headers=bearer(READ)).status_code == 200
        for path in ("/", "/healthz", "/readyz", "/docs", "/openapi.json"):
            assert client.get(path).status_code == 200
        # A token in an address ends up in logs.
        for name in ("access_token", "TOKEN"):
            problem(client.get("/info", params={name: WRITE}, headers=bearer(WRITE)), 400, "ends up in logs")


def test_tokens_are_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text(f"# the CMS\nwrite {WRITE}\n\n  read   {READ}\n")
    found = Tokens.of_file(str(path))
    assert [found.rights(token) for token in (WRITE, READ, f"{WRITE[1:]}x", "\ud800")] == ["write", "read", "", ""]
    assert Tokens((WRITE,), (WRITE,)).rights(WRITE) == "write"
    for content, sentence in (
        ("", "holds no token"),
        ("write short", "shorter than 16 characters"),
        (f"write {'ü' * 20}", "ASCII"),
        (f"admin {WRITE}", "line 1 is not like"),
        (WRITE, "line 1 is not like"),
    ):
        path.write_text(content)
        with pytest.raises(InputError, match=sentence):
            Tokens.of_file(str(path))
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="not UTF-8"):
        Tokens.of_file(str(path))
    with pytest.raises(InputError, match="cannot be read"):
        Tokens.of_file(str(tmp_path / "none"))


def test_other_machines_need_a_token(tmp_path: Path) -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.9.9.9", "::1", "localhost")))
    for host in (EVERYWHERE, "x.org"):
        assert not is_loopback(host)
        with pytest.raises(RecipeError, match="anybody there could write"):
            Service(str(tmp_path / "news.db"), host=host)
        assert not (tmp_path / "news.db").exists()
    # A service at all addresses needs a name as well.
    with pytest.raises(RecipeError, match="hosts"):
        Service(str(tmp_path / "news.db"), host=EVERYWHERE, tokens=TOKENS)
    with served(tmp_path, host=EVERYWHERE, tokens=TOKENS, hosts=["News.example"]) as client:
        assert client.get(f"http://127.0.0.1:{port_of(client)}/healthz", headers={"Host": "news.example"}).is_success


def test_a_port_in_use_is_refused_before_a_store_is_made(client: httpx.Client, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="is in use"), served(tmp_path, port=port_of(client)):
        pass
    assert not list(tmp_path.iterdir())


def test_other_host_names_are_refused(client: httpx.Client) -> None:
    """A page whose name leads to this machine is no page of the service (DNS rebinding)."""
    hosts = ["evil.example", "127.0.0.1.evil.example", "", "localhost:80:80", "[::2]"]
    for host in [*hosts, "localhost\r\nHost: evil.example"]:
        head = f"GET /info HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        assert b" 400 " in raw(client, head.encode()).split(b"\r\n")[0]
    names = {"localhost:8321": "localhost", "[::1]:8321": "[::1]", "[::1]": "[::1]", "X.org": "x.org", "a:b": "a:b"}
    assert {header: host_name(header) for header in names} == names


def test_pages_of_other_sites_are_refused(client: httpx.Client) -> None:
    for headers in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": "null"}):
        problem(client.post(f"{MAIN}/query", json={"text": FOX}, headers=headers), 403, "another site")
    headers = {"Origin": str(client.base_url).rstrip("/"), "Sec-Fetch-Site": "same-origin"}
    assert client.post(f"{MAIN}/query", json={"text": FOX}, headers=headers).is_success


def test_every_answer_restricts_browsers(client: httpx.Client) -> None:
    for path in ("/", "/docs", "/info", "/nothing", f"{DOCUMENTS}/nobody", "/metrics"):
        headers = client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "server" not in headers


#: Invalid bodies, and a part of the message about each.
INVALID_BODIES = {
    b"": "The body is missing; send an object in JSON, its fields are documents",
    b"{bad": "The body is not valid JSON (object keys must be strings (byte 1)); send JSON in UTF-8",
    b"null": "The body is null, and must be an object; its fields are documents",
    b"{}": "documents is missing; give it",
    b'{"documents": {}}': "documents is an object, and must be a list; write it in square brackets",
    b'{"documents": [{"id": "a"}]}': "documents.0.text is missing; give it; no document of the request was",
    b'{"documents": [{"id": 7, "text": "x"}]}': "documents.0.id is 7, and must be a text; write it in quotes",
    b'{"documents": [{"id": "a", "txt": "", "text": ""}]}': "documents.0.txt is not known; its fields are id,",
    b'{"documents": [{"id": "a", "text": "\\ud800"}]}': "half a character (a lone surrogate); send whole characters",
    b'{"documents": [{"id": "a", "text": "x", "timestamp": 1e999}]}': "must be a finite number",
    b'{"documents": [{"id": "a", "text": "x", "timestamp": []}]}': "is a list, and must be a number or a text",
    b'{"documents": [{"id": "a", "text": "x", "timestamp": true}]}': "is true, and must be a number or a text",
    b'{"documents": [{"id": "a", "text": "\xff"}]}': "send JSON in UTF-8",
    b"[" * 200_000: "The body is a list, and must be an object; its fields are documents",
}


def test_an_invalid_body_is_refused_with_a_sentence(client: httpx.Client) -> None:
    before = client.get(MAIN).json()["documents"]
    for body, sentence in INVALID_BODIES.items():
        reply = client.post(DOCUMENTS, content=body, headers={"Content-Type": "application/json"})
        problem(reply, 422, sentence)
    for headers, sentence in (
        ({"Content-Type": "text/plain"}, "application/json"),
        ({"Content-Type": "application/json; charset=latin-1"}, "UTF-8"),
        ({"Content-Type": "application/json", "Content-Encoding": "gzip"}, "as it is"),
    ):
        problem(client.post(DOCUMENTS, content=b'{"documents": []}', headers=headers), 415, sentence)
    assert client.get(MAIN).json()["documents"] == before


def test_large_bodies_and_batches_are_refused(tmp_path: Path) -> None:
    with served(tmp_path, limits=Limits(max_body=10_000, max_batch=2)) as client:
        problem(enter(client, document("a", "x " * 10_000)), 413, "10,000 bytes")
        # An announced gigabyte is refused before it is read, and an unannounced one is cut short.
        announced = head_of(1_000_000_000).replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n")
        assert b" 413 " in raw(client, announced.encode()).split(b"\r\n")[0]
        with contextlib.suppress(httpx.TransportError):
            endless = (b"x" * 100_000 for _ in range(10_000))
            problem(client.post(DOCUMENTS, content=endless, headers={"Content-Type": "application/json"}), 413)
        three = [document(name) for name in "abc"]
        problem(enter(client, *three), 413, "send up to 2 at a time")
        problem(client.post("/v1/pairs", json={"documents": three}), 413)
        assert enter(client).json() == {"documents": []}
        assert client.get(MAIN).json()["documents"] == 0


def test_invalid_heads_are_refused(client: httpx.Client) -> None:
    for sent in (
        b"NONSENSE\r\n\r\n",
        b"GET /info HTTP/1.1\r\nHost: localhost\r\nX: a\x00b\r\n\r\n",
        b"POST "
        + DOCUMENTS.encode()
        + b" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
        b"GET /" + b"a" * 300_000 + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    ):
        first = raw(client, sent).split(b"\r\n")[0]
        assert first == b"" or b" 4" in first, first
    # Parts of an address cannot become headers of the answer.
    reply = client.get(f"{DOCUMENTS}/a%0d%0aSet-Cookie:%20x=1")
    assert "set-cookie" not in problem(reply, 404) | dict(reply.headers)


def test_slow_callers_are_disconnected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neardup.service.server._HEAD_S", 0.2)
    monkeypatch.setattr("neardup.service.guard._BODY_TIMEOUT_S", 0.2)
    with served(tmp_path) as client:
        assert raw(client, b"GET /info HTTP/1.1\r\nHost: loc") == raw(client, b"") == b""
        assert b" 408 " in raw(client, (head_of(99) + "{").encode()).split(b"\r\n")[0]
        assert client.get("/healthz").is_success


def test_too_many_requests_at_a_time_are_refused(tmp_path: Path) -> None:
    with served(tmp_path, limits=Limits(max_waiting=1)) as client:
        many = [document(f"d{n}", f"{OTHER} {n} " * 200) for n in range(300)]
        with ThreadPoolExecutor(8) as pool:
            replies = list(pool.map(lambda n: enter(client, *many[n::8]), range(8)))
        refused = [reply for reply in replies if reply.status_code == 429]
        assert refused
        for reply in refused:
            problem(reply, 429, "ask again in a moment")
            assert int(reply.headers["retry-after"]) >= 1
        assert client.get("/healthz").is_success


def test_callers_that_hang_up_do_no_harm(client: httpx.Client) -> None:
    body = json.dumps({"documents": [document("gone")]}).encode()
    head = head_of(len(body))
    for cut in (10, len(head), len(head) + 20, len(head) + len(body)):
        with socket.create_connection(("127.0.0.1", port_of(client))) as connection:
            connection.sendall((head.encode() + body)[:cut])
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
    assert enter(client, document("gone")).status_code in (200, 201)


def test_expect_100_continue_is_answered_before_the_body(client: httpx.Client) -> None:
    """The caller waits for it before it sends the body."""
    body = json.dumps({"documents": [document("expected")]}).encode()
    head = head_of(len(body)).replace("\r\n\r\n", "\r\nExpect: 100-continue\r\n\r\n").encode()
    with socket.create_connection(("127.0.0.1", port_of(client)), timeout=300) as connection:
        for status in (b"201", b"200"):
            connection.sendall(head)
            assert connection.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
            connection.sendall(body)
            first, _, rest = connection.recv(65536).partition(b"\r\n")
            assert first.split(b" ")[1] == status
            # Head and body of the answer arrive together.
            assert json.loads(rest.partition(b"\r\n\r\n")[2])["documents"][0]["id"] == "expected"


def test_many_connections_at_once_are_all_answered(tmp_path: Path) -> None:
    """Each has sent the head of a request but not its body, while another document is entered."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limits[1], limits[1]))
    body = json.dumps({"documents": [document("b")]}).encode()
    head = head_of(len(body)).replace(DOCUMENTS, f"{DOCUMENTS}?mode=check").encode()
    try:
        with served(tmp_path) as client, contextlib.ExitStack() as opened:
            many = []
            for _ in range(min(CONNECTIONS, limits[1] // 2 - 500)):
                connection = socket.create_connection(("127.0.0.1", port_of(client)), timeout=300)
                many.append(opened.enter_context(connection))
                connection.sendall(head)
            assert enter(client, document("a")).status_code == 201
            for one in many:
                # On a slow machine, the time for the body may be over, and the request already answered.
                with contextlib.suppress(ConnectionError):
                    one.sendall(body)
            statuses = {one.recv(65536).split(b" ", 2)[1] for one in many}
            assert b"200" in statuses
            assert statuses <= {b"200", b"408", b"429"}
            assert client.get("/healthz").is_success
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_no_refusal_names_a_path_of_the_server(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder, classifiers = tmp_path / "news.db.indexes", tmp_path / "classifiers"
    folder.mkdir()
    classifiers.mkdir()
    (classifiers / "broken").write_bytes(b"not a classifier")
    (classifiers / "folder").mkdir()
    with served(tmp_path, classifiers=str(classifiers)) as client:
        refusals: dict[str, httpx.Response] = {}
        for name in ("broken", "folder", "none"):
            refusals[f"classifier {name}"] = client.put("/v1/indexes/new", json={"classifier": name})
        (folder / "foreign.db").write_bytes(b"something else" * 20)
        refusals["foreign"] = client.put("/v1/indexes/foreign", json={})
        with nd.Index(path=folder / "used.db"):
            refusals["in use"] = client.put("/v1/indexes/used", json={})
        (folder / "taken.db").mkdir()
        refusals["a folder"] = client.put("/v1/indexes/taken", json={})
        # Rows of both kinds of store change under the service.
        for name, path in (("main", tmp_path / "news.db"), ("wire", folder / "wire.db")):
            client.put("/v1/indexes/wire", json={})
            documents = [document("a"), document("b", EDITED), document("c", OTHER)]
            client.post(f"/v1/indexes/{name}/documents", json={"documents": documents}).raise_for_status()
            with contextlib.closing(sqlite3.connect(path)) as connection:
                connection.execute("UPDATE documents SET judged = judged + 1 WHERE id IN ('a', 'b')")
                connection.execute("UPDATE held SET text = 'changed'")
                connection.execute("UPDATE kept SET text = 'changed', digest = x'00' WHERE text IS NOT NULL")
                connection.commit()
            call = f"/v1/indexes/{name}"
            refusals |= {
                f"{name} {part}": reply
                for part, reply in {
                    "read": client.get(f"{call}/documents/a"),
                    "text": client.get(f"{call}/documents/c"),
                    "stopped": client.get(f"{call}/stopped"),
                    "again": client.post(f"{call}/documents", json={"documents": documents}),
                    "put": client.put(f"{call}/documents/a", json={"text": OTHER}),
                    "release": client.post(f"{call}/documents/b/release"),
                    "forget": client.delete(f"{call}/documents/a"),
                    "page": client.post("/page/stopped", json={"index": name}),
                    "explain": client.post(
                        "/v1/explain", json={"left": {"id": "a"}, "right": {"text": FOX}, "index": name}
                    ),
                }.items()
            }
        shutil.rmtree(folder)
        folder.write_text("a file")
        refusals["no folder"] = client.put("/v1/indexes/other", json={})
    for name, reply in refusals.items():
        status = 422 if name.startswith("classifier") else 503
        detail = problem(reply, status)["detail"]
        assert str(tmp_path) not in reply.text, name
        assert "/" not in detail.replace("/healthz", ""), (name, detail)
        if name.startswith(("main ", "wire ")):
            assert f"the store of index '{name[:4]}'" in detail, (name, detail)
    # The log has the paths, for those who can do something about it.
    assert f"GET /v1/indexes/wire/documents/a: {folder / 'wire.db'} is damaged" in caplog.text
    assert "classifier none cannot be read" in refusals["classifier none"].json()["detail"]


def test_a_body_is_read_up_to_its_first_fault(client: httpx.Client) -> None:
    """Otherwise a million tiny faults would stop the service for seconds."""
    for body in (b'{"documents":[' + b"{}," * 999_999 + b"{}]}", b"{" + b'"a":1,' * 999_999 + b'"a":1}'):
        begin = time.process_time()
        with pytest.raises(Problem):
            read_body(body, DocumentsBody)
        assert time.process_time() - begin < 1
    # All of these are valid, but too many.
    body = b'{"documents":[' + b'{"id":"a","text":""},' * 99_999 + b'{"id":"a","text":""}]}'
    reply = client.post(DOCUMENTS, content=body, headers={"Content-Type": "application/json"})
    problem(reply, 413, "The batch has 100,000 documents; send up to 1,000 at a time")
