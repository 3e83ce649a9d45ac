"""Texts that are made to keep a service busy: it goes on answering."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from serving import DOCUMENTS, FOX, MAIN, Process, document, served

#: Far above the time of an answer on a busy machine, and far below the time of work that takes quadratic time.
LONGEST_PAUSE_S = 2.0

HOSTILE = {
    "marks": "e" + "\u0301\u0323" * 400_000,
    "joiners": "a" + "\u200d" * 1_000_000,
    "dots": "a.b." * 250_000,
    "no spaces": "x" * 5_000_000,
    "angles": "<" * 200_000,
    "line feeds": "\n" * 1_000_000,
    "ligatures": "\ufdfa" * 200_000,
}


@pytest.mark.parametrize("options", [(), ("--content", "tags"), ("--second-step", "edit >= 0.9")], ids=" ".join)
def test_a_hostile_text_does_not_stop_the_service(tmp_path: Path, options: tuple[str, ...]) -> None:
    with Process(tmp_path / "news.db", *options) as service:
        with httpx.Client(base_url=service.address, timeout=300) as client:
            client.post(DOCUMENTS, json={"documents": [document("first", FOX)]}).raise_for_status()
        pauses: list[float] = []
        ended = threading.Event()

        def ask() -> None:
            with httpx.Client(base_url=service.address, timeout=300) as client:
                while not ended.is_set():
                    begin = time.monotonic()
                    client.get("/healthz").raise_for_status()
                    pauses.append(time.monotonic() - begin)
                    time.sleep(0.01)

        asking = threading.Thread(target=ask)
        asking.start()
        longest = {}
        try:
            with httpx.Client(base_url=service.address, timeout=300) as client:
                for name, text in HOSTILE.items():
                    for query in ({"mode": "check"}, {}, {"mode": "check"}):
                        begin, first = time.monotonic(), len(pauses)
                        posted = document(name, f"{FOX} {text} {FOX}")
                        reply = client.post(DOCUMENTS, json={"documents": [posted]}, params=query)
                        assert reply.status_code in (200, 201, 413, 422), reply.text
                        took, pause = time.monotonic() - begin, max(pauses[first:], default=0.0)
                        longest[name, str(query), reply.status_code] = round(took, 2), round(pause, 2)
        finally:
            ended.set()
            asking.join()
        assert max(pause for _, pause in longest.values()) < LONGEST_PAUSE_S, longest


#: Requests of the drill; some thousand in long runs: NEARDUP_LONG=1 python -m pytest tests/service -k drill
DRILL = 3000 if os.environ.get("NEARDUP_LONG") == "1" else 120
MAX_BODY = 10_000_000 if os.environ.get("NEARDUP_LONG") == "1" else 200_000

IDS = [
    "a",
    "",
    ".",
    "..",
    "a/b",
    "//",
    "%",
    "%2F",
    "a\nb",
    "\r\n",
    "\0",
    "é\u2028",
    "😀" * 200,
    "x" * 1025,
    "a/release",
    "?#&",
]
RAW_IDS = [*(quote(name, safe="") for name in IDS), "%FF", "%ED%A0%80", "%", "%zz", "a%00b", "%2e%2e/%2e", "x" * 20_000]
NAMES = ["main", "wire", "UPPER", "x" * 64, "..", "main%00", "%ff", "a%2Fb", "none"]
#: Parts of bodies that are repeated up to the limit.
PIECES = [
    *("{},", "[],", "1,", '"a",', "null,", '{"id":"a","text":""},', '{"id":"a"},', "[[],[]],", '{"a":{"a":{}}},'),
    *("[", '{"a":', "1e999,", "-", "9", " ", "\\u0000", "\\ud83d\\ude00", "\\ud800", "\\", '"', "\0"),
    *("é", "word ", "a\u0301", "😀", "NaN,", "true,"),
]
VALUES: list[Any] = [
    None,
    True,
    -1,
    0,
    3.0,
    1e300,
    10**400,
    "",
    "x",
    "\u0000",
    FOX,
    [],
    {},
    [[]],
    {"a": 1},
    "2026-01-01",
    [FOX] * 9,
]
FIELDS = [
    "id",
    "text",
    "timestamp",
    "title",
    "documents",
    "k",
    "by",
    "left",
    "right",
    "index",
    "recipe",
    "choices",
    "window",
    "asked",
    "zz",
]
PATHS = [
    *(
        f"{MAIN}/{call}"
        for call in ("documents", "documents?mode=check", "query", "documents/a", "documents/a/release")
    ),
    *(f"/page/{part}" for part in ("similar", "stopped", "found", "flow", "release")),
    *("/v1/explain", "/v1/pairs", "/v1/indexes/wire"),
]
QUERIES = [
    "",
    "?limit=0",
    "?limit=1e400",
    "?cursor=x",
    "?cursor=" + "9" * 30,
    "?since=%FF",
    "?since=" + "9" * 5000,
    "?evidence=maybe",
    "?zz",
    "?a=%",
]


def drill_body(dice: random.Random) -> bytes:
    """Return the body of a request: valid, changed, or made to keep the service busy."""
    kind = dice.randrange(6)
    if kind == 0:
        return json.dumps({dice.choice(FIELDS): dice.choice(VALUES) for _ in range(dice.randrange(5))}).encode()
    if kind == 1:
        documents = [{name: dice.choice(VALUES) for name in dice.sample(FIELDS, 3)} for _ in range(dice.randrange(3))]
        return json.dumps({"documents": documents}).encode()
    size = dice.choice([10, 1000, MAX_BODY // 10, MAX_BODY - 200, MAX_BODY + 1000])
    piece = dice.choice(PIECES)
    filling = (piece * (size // len(piece.encode()) + 1)).encode()[:size]
    if kind == 2:
        return filling
    if kind == 3:
        return b'{"documents":[' + filling.rstrip(b",") + b"]}"
    if kind == 4:
        names = b",".join(b'"k%d":1' % at for at in range(size // 12))
        return b"{" + names + b"}" if dice.random() < 0.5 else b'{"documents":[{' + names + b"}]}"
    field = dice.choice(FIELDS).encode()
    other = dice.choice([b'"text":"x"', b'"id":"a"', b'"left":{"text":"a"}', b'"asked":"a"'])
    body = b"{" + other + b',"' + field + b'":"' + filling.replace(b'"', b"'") + b'"}'
    return b'{"documents":[' + body + b"]}" if dice.random() < 0.5 else body


def drill_request(dice: random.Random, address: httpx.URL) -> httpx.Request:
    if dice.random() < 0.3:
        name, id = dice.choice(NAMES), dice.choice(RAW_IDS)
        path = dice.choice(
            [f"/v1/indexes/{name}{end}" for end in ("", "/stopped", f"/documents/{id}", f"/documents/{id}/release")]
        )
        path += dice.choice(QUERIES)
        method = dice.choice(["GET", "PUT", "POST", "DELETE", "PATCH"])
    else:
        path, method = dice.choice(PATHS), dice.choice(["POST", "POST", "POST", "PUT"])
    body = b"" if method in ("GET", "DELETE") else drill_body(dice)
    url = httpx.URL(address, raw_path=path.encode())
    return httpx.Request(method, url, content=body, headers={"content-type": "application/json"} if body else {})


def test_a_drill_of_requests_that_break_rules(tmp_path: Path) -> None:
    """Each is answered soon, by a sentence if it is refused, and none fails the service or names its paths."""
    dice, took, statuses = random.Random(DRILL), dict[str, float](), set[int]()
    store = tmp_path / "news.db"
    with Process(store, "--max-body", str(MAX_BODY), "--max-answer", "1MB") as service:
        with httpx.Client(base_url=service.address, timeout=60) as client:
            for number in range(DRILL):
                request = drill_request(dice, client.base_url)
                sent = request.content
                about = f"{number}: {request.method} {str(request.url)[:200]} {sent[:80]!r} of {len(sent):,}"
                begin = time.monotonic()
                try:
                    reply = client.send(request)
                except httpx.TransportError:
                    # A body that is announced as too large is refused before it was sent.
                    assert len(sent) > MAX_BODY or len(request.url.raw_path) > 9000, about
                    continue
                seconds = time.monotonic() - begin
                statuses.add(reply.status_code)
                assert reply.status_code < 500, (about, reply.text)
                assert str(tmp_path) not in reply.text, about
                assert len(reply.content) <= 1_000_000 or request.url.path == "/", about
                if reply.status_code >= 400 and reply.headers["content-type"] == "application/problem+json":
                    detail = reply.json()["detail"]
                    assert 5 < len(detail) <= 2010, about
                    assert "\n" not in detail, about
                    took[f"{about}: {reply.status_code} {detail[:80]}"] = seconds
            assert client.get("/healthz").is_success
        code, output = service.end(signal.SIGTERM)
    assert (code, "Traceback" in output) == (0, False), output
    assert statuses >= {400, 404, 405, 413, 422}
    slowest = sorted(took.items(), key=lambda item: -item[1])[:5]
    assert slowest[0][1] < LONGEST_PAUSE_S, slowest


def test_slow_calls_keep_no_other_waiting(tmp_path: Path) -> None:
    """Two of them run at a time; the others wait for these, and nothing else does."""
    left, right = (" ".join(f"a b {end}{number} c" for number in range(1_500)) for end in "yz")
    with served(tmp_path) as client, ThreadPoolExecutor(12) as pool:
        client.post(DOCUMENTS, json={"documents": [document("first", FOX)]}).raise_for_status()
        # Kernels may be compiled first, which stops everything.
        client.post("/v1/explain", json={"left": {"text": left[:90]}, "right": {"text": right[:90]}}).raise_for_status()
        body = {"left": {"text": left}, "right": {"text": right}}
        slow = [pool.submit(client.post, "/v1/explain", json=body) for _ in range(5)]
        pauses = []
        for number in range(10):
            begin = time.monotonic()
            client.get("/healthz").raise_for_status()
            client.get(f"{DOCUMENTS}/first").raise_for_status()
            client.post(DOCUMENTS, json={"documents": [document(f"d{number}", FOX)]}).raise_for_status()
            pauses.append(time.monotonic() - begin)
        assert max(pauses) < 3 * LONGEST_PAUSE_S
        assert {one.result().status_code for one in slow} == {200}
