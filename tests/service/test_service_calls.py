"""The calls of the service: their answers and refusals."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import Mock
from urllib.parse import quote

import httpx
import pytest
from classifiers import make_classifier
from commands import refused
from sentences import says
from serving import DOCUMENTS, EDITED, FOX, MAIN, OTHER, document, enter, problem, served, texts

import neardup as nd
from neardup.service.guard import Limits
from neardup.service.indexes import IndexOptions
from neardup.service.worker import Worker


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with served(tmp_path_factory.mktemp("service")) as options:
        yield options


@pytest.fixture
def client(shared: httpx.Client) -> httpx.Client:
    """The service with an empty index ``main``."""
    for name in [one["name"] for one in shared.get("/info").json()["indexes"] if one["name"] != "main"]:
        assert shared.delete(f"/v1/indexes/{name}").status_code == 204
    while found := shared.get(f"{MAIN}/stopped").json()["stopped"]:
        for one in found:
            shared.delete(f"{DOCUMENTS}/{one['id']}")
    for one in "abcdefgh":
        shared.delete(f"{DOCUMENTS}/{one}")
    assert shared.get(MAIN).json()["documents"] == 0
    return shared


def verdicts(reply: httpx.Response) -> list[tuple[str, int, str, str | None]]:
    assert reply.status_code in (200, 201), reply.text
    return [
        (one["id"], one["status"], one["verdict"]["kind"], one["verdict"]["of"]) for one in reply.json()["documents"]
    ]


def test_the_same_id_and_text_again_gives_the_stored_verdict(client: httpx.Client) -> None:
    enter(client, document("a"))
    first = enter(client, document("b", EDITED)).json()["documents"][0]
    repeated = enter(client, document("b", EDITED))
    assert (repeated.status_code, repeated.json()["documents"][0]["status"]) == (200, 200)
    assert repeated.json()["documents"][0]["verdict"] == first["verdict"]
    found = problem(enter(client, document("b", OTHER)), 409, "replace that document with PUT")
    assert (found["id"], found["verdict"]) == ("b", first["verdict"])
    # The others of a batch are entered.
    reply = enter(client, document("b", OTHER), *(document("c", text) for text in (OTHER, OTHER, FOX)))
    assert [row[:2] for row in verdicts(reply)] == [("b", 409), ("c", 201), ("c", 200), ("c", 409)]


def test_a_check_enters_nothing_and_an_invalid_document_is_refused_alone(client: httpx.Client) -> None:
    enter(client, document("a"))
    reply = enter(client, document("b", EDITED), document("b", EDITED), document("a", OTHER), mode="check")
    assert verdicts(reply) == [("b", 200, "near", "a"), ("b", 200, "near", "a"), ("a", 200, "original", None)]
    assert client.get(MAIN).json()["documents"] == 1
    items = enter(client, document("c", OTHER), document("b", OTHER, timestamp="yesterday")).json()["documents"]
    assert [one["status"] for one in items] == [201, 422]
    assert "yesterday" in items[1]["detail"]
    problem(enter(client, document("b", OTHER, timestamp="yesterday")), 422, "yesterday")


def test_documents_are_found_replaced_and_forgotten(client: httpx.Client) -> None:
    enter(client, document("a"), document("b", EDITED))
    found = client.get(f"{DOCUMENTS}/a").json()
    assert (found["id"], found["verdict"]["kind"], found["held"], found["text"]) == ("a", "original", True, FOX)
    found = client.get(f"{DOCUMENTS}/b", params={"evidence": True}).json()
    assert (found["verdict"]["of"], found["held"], found["text"]) == ("a", False, EDITED)
    assert len(found["verdict"]["counts"]) == 3
    replies = [
        client.put(f"{DOCUMENTS}/{id}", json={"text": text}) for id, text in (("a", FOX), ("a", OTHER), ("e", FOX))
    ]
    assert [(reply.status_code, reply.json()["verdict"]["kind"]) for reply in replies] == [
        (200, "original"), (201, "original"), (201, "original"),
    ]  # fmt: skip
    assert client.delete(f"{DOCUMENTS}/e").status_code == 204
    problem(client.get(f"{DOCUMENTS}/e"), 404, "has no document with this id")
    problem(client.delete(f"{DOCUMENTS}/e"), 404)
    assert verdicts(enter(client, document("d"))) == [("d", 201, "original", None)]


@pytest.mark.parametrize("name", ["../../etc/passwd", "https://x.org/?q=1#ü 東京", "a/release", "%2F", "."])
def test_an_id_may_be_anything(client: httpx.Client, name: str) -> None:
    enter(client, document("a"), document(name, EDITED))
    path = f"{DOCUMENTS}/{quote(name, safe='').replace('.', '%2E')}"
    answers = [
        client.send(client.build_request(method, httpx.URL(client.base_url, raw_path=f"{path}{call}".encode())))
        for method, call in (("GET", ""), ("POST", "/release"), ("DELETE", ""))
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 204]
    assert (answers[0].json()["id"], answers[1].json()["verdict"]["kind"]) == (name, "original")


def test_a_stopped_document_is_released(client: httpx.Client) -> None:
    enter(client, document("a"), document("b", EDITED))
    reply = client.post(f"{DOCUMENTS}/b/release", json={"by": "ann"})
    assert (reply.status_code, reply.json()["verdict"]["kind"]) == (200, "original")
    assert client.get(f"{MAIN}/stopped").json()["stopped"] == []
    assert verdicts(enter(client, document("c", f"{EDITED} again"))) == [("c", 201, "near", "b")]
    problem(client.post(f"{DOCUMENTS}/b/release"), 409, "'b' was released already by ann at 20")
    problem(client.post(f"{DOCUMENTS}/a/release"), 409, "'a' was not stopped: it is an original")
    problem(client.post(f"{DOCUMENTS}/nobody/release"), 404)


def test_the_release_command_names_the_call_of_the_service(tmp_path: Path) -> None:
    with served(tmp_path) as client:
        client.put("/v1/indexes/wire", json={}).raise_for_status()
        batch = {"documents": [document("a"), document("b/1", EDITED)]}
        for name, store in (("main", "news.db"), ("wire", "news.db.indexes/wire.db")):
            client.post(f"/v1/indexes/{name}/documents", json=batch).raise_for_status()
            message = refused("store", "release", tmp_path / store, "b/1")
            call = f"{str(client.base_url).rstrip('/')}/v1/indexes/{name}/documents/b%2F1/release"
            assert says(message, store, "is in use by neardup serve", "'b/1'", f"POST {call}")
            assert client.post(call).json()["verdict"]["kind"] == "original"
            assert says(refused("store", "release", tmp_path / store, "b/1"), "'b/1' was released already at 20")
            assert says(refused("store", "release", tmp_path / store, "nobody"), "no item with the id 'nobody'")


def test_stopped_documents_are_returned_in_pages(client: httpx.Client) -> None:
    client.put("/v1/indexes/old", json={}).raise_for_status()
    path, batch = "/v1/indexes/old/stopped", [document(name, timestamp=1e9 + n) for n, name in enumerate("abcdef")]
    client.post("/v1/indexes/old/documents", json={"documents": batch}).raise_for_status()
    assert [one["id"] for one in client.get(path).json()["stopped"]] == list("bcdef")
    seen_ids, cursor = list[str](), None
    for _ in range(3):
        reply = client.get(path, params={"limit": 2} | ({"cursor": cursor} if cursor else {})).json()
        seen_ids += [one["id"] for one in reply["stopped"]]
        cursor = reply["cursor"]
    assert (seen_ids, cursor) == (list("bcdef"), None)
    reply = client.get(path, params={"since": "2001-09-09T01:46:44Z"}).json()
    assert [one["id"] for one in reply["stopped"]] == list("ef")
    problem(client.get(path, params={"since": "soon"}), 422, "'soon'")
    problem(client.get(path, params={"cursor": "x"}), 422, "cursor")


def test_query_explain_and_pairs_answer_about_texts(client: httpx.Client) -> None:
    enter(client, document("a"), document("b", OTHER))
    found = client.post(f"{MAIN}/query", json={"text": EDITED}).json()["similar"]
    assert [one["id"] for one in found] == ["a"]
    found = client.post(f"{MAIN}/query", json={"text": f"{FOX} {OTHER}", "k": 2}).json()["similar"]
    assert {one["id"] for one in found} == {"a", "b"}
    explanation = client.post("/v1/explain", json={"left": {"id": "a"}, "right": {"text": EDITED}}).json()
    assert explanation["match"] is True
    problem(client.post("/v1/explain", json={"left": {}, "right": {"text": EDITED}}), 422, "give one of the two")
    problem(client.post("/v1/explain", json={"left": {"id": "nobody"}, "right": {"text": EDITED}}), 404)
    sent = {"documents": [document("x"), document("y", EDITED), document("z", OTHER)]}
    pairs = client.post("/v1/pairs", json=sent).json()["pairs"]
    assert [(one["left"], one["right"]) for one in pairs] == [("x", "y")]
    problem(client.post("/v1/pairs", json={"documents": [document("x"), document("x")]}), 422, "same id")
    assert client.post("/v1/pairs", json={"documents": []}).json() == {"pairs": []}


def test_classifiers_compare_titles_and_times_in_every_call(tmp_path: Path) -> None:
    """Explain and pairs agree with enter on documents that differ only in title or time."""
    learned = make_classifier("title, hours_apart", weights=(1.0, -0.5), bias=0.0)
    with served(tmp_path, options=IndexOptions(classifier=learned), classifiers=str(tmp_path)) as client:
        documents = [
            document("a", FOX, title="A fox runs", timestamp="2026-01-01T08:00"),
            document("b", EDITED, title="A fox runs", timestamp="2026-01-01T08:01"),
            document("c", f"{FOX} again", title="Oil prices", timestamp="2026-01-01T20:00"),
        ]
        entered = {one["id"]: one["verdict"]["of"] for one in enter(client, *documents).json()["documents"]}
        assert entered == {"a": None, "b": "a", "c": None}
        pairs = client.post("/v1/pairs", json={"documents": documents}).json()["pairs"]
        assert [(one["left"], one["right"]) for one in pairs] == [("a", "b")]
        for one in documents[1:]:
            sides = [{"id": one["id"]}, {name: value for name, value in one.items() if name != "id"}]
            for side in sides:
                explanation = client.post("/v1/explain", json={"left": {"id": "a"}, "right": side}).json()
                assert explanation["match"] is (one["id"] == "b")
        # Callers must not read other files of the server.
        for name in ("../x", str(tmp_path / "x"), ".x"):
            reply = client.put("/v1/indexes/other", json={"classifier": name})
            problem(reply, 422, "not the name of a file in the folder")


def test_indexes_are_made_found_and_removed(client: httpx.Client) -> None:
    options = {"recipe": "ddd", "choices": {"threshold": 0.5}, "window": "7d", "against": "everything"}
    reply = client.put("/v1/indexes/wire", json=options)
    assert reply.status_code == 201
    assert reply.json()["window"] == "168h"
    assert client.put("/v1/indexes/wire", json=options).status_code == 200
    problem(client.put("/v1/indexes/wire", json={"recipe": "ddd"}), 409, "already exists")
    problem(client.put("/v1/indexes/wire", json=options | {"against": "originals"}), 409, "with against 'everything'")
    client.post("/v1/indexes/wire/documents", json={"documents": [document("a")]}).raise_for_status()
    assert verdicts(enter(client, document("b", FOX))) == [("b", 201, "original", None)]
    assert {one["name"] for one in client.get("/info").json()["indexes"]} == {"main", "wire"}
    assert client.delete("/v1/indexes/wire").status_code == 204
    problem(client.get("/v1/indexes/wire"), 404, "There is no index 'wire'")
    problem(client.delete("/v1/indexes/main"), 409, "belongs to the service")


def test_an_index_may_be_deleted_while_others_read_it(client: httpx.Client) -> None:
    def ask(worker: int) -> set[tuple[str, int]]:
        path, found = "/v1/indexes/short", set[tuple[str, int]]()
        batch = {"documents": [document("a"), document("b", OTHER)]}
        for step in range(12):
            replies = {
                "made": client.put(path, json={}),
                "listed": client.get("/info"),
                "entered": client.post(f"{path}/documents", json=batch),
                "read": client.get(f"{path}/documents/a"),
                "stopped": client.get(f"{path}/stopped"),
            }
            if (worker + step) % 2:
                replies["deleted"] = client.delete(path)
            found |= {(name, reply.status_code) for name, reply in replies.items()}
        return found

    with ThreadPoolExecutor(6) as pool:
        found = set.union(*pool.map(ask, range(6)))
    assert {status for name, status in found if name == "made"} <= {200, 201, 404}
    assert {status for _, status in found} <= {200, 201, 204, 404}
    assert client.get("/readyz").status_code == 200


def test_a_service_has_as_many_indexes_as_its_limit(tmp_path: Path) -> None:
    with served(tmp_path, limits=Limits(max_indexes=2)) as client:
        assert client.put("/v1/indexes/one", json={}).status_code == 201
        problem(client.put("/v1/indexes/two", json={}), 409, "has 2 indexes and may have 2; delete one")
        assert client.put("/v1/indexes/one", json={}).status_code == 200
        assert client.get("/info").json()["limits"]["max_indexes"] == 2
        assert client.delete("/v1/indexes/one").status_code == 204
        assert client.put("/v1/indexes/two", json={}).status_code == 201


def test_a_window_is_read_back_as_it_was_given(tmp_path: Path) -> None:
    lengths = {"a": "1000001s", "b": "1.000001s", "c": "8000001 documents", "d": "90m", "e": "endless"}
    with served(tmp_path) as client:
        for name, length in lengths.items():
            assert client.put(f"/v1/indexes/{name}", json={"window": length}).json()["window"] == length
        problem(client.put("/v1/indexes/a", json={"window": "1000002s"}), 409, "with window '1000001s'")
        for length in ("99999999999999999999 documents", f"{'9' * 5000}h", "0.0000001s", "1e6s", "0 documents"):
            problem(client.put("/v1/indexes/other", json={"window": length}), 422, "window ")
    with served(tmp_path) as client:
        found = {one["name"]: one["window"] for one in client.get("/info").json()["indexes"] if one["name"] != "main"}
        assert found == lengths
        reply = client.post("/v1/indexes/c/documents", json={"documents": [document("a")]})
        assert reply.status_code == 201


@pytest.mark.parametrize(
    ("name", "body", "sentence"),
    [
        ("UPPER", {}, "cannot be the name of an index"),
        ("..%2f..%2fevil", {}, "no such call"),
        ("new", {"recipe": "/etc/passwd"}, "is not known"),
        ("new", {"recipe": "ddd", "classifier": "x"}, "one of the two"),
        ("new", {"choices": {"threshold": 2}}, "threshold"),
        (
            "new",
            {"choices": {"threshold": True}},
            "A value of choices is true or false, and must be a number or a text",
        ),
        # Options of nd.Index, and no fields of a recipe.
        ("new", {"choices": {"path": "evil.db"}}, "'path' is neither a field of a recipe"),
        ("new", {"choices": {"now": 5}}, "'now' is neither a field of a recipe"),
        ("new", {"choices": {"recipe": "ddd"}}, "'recipe' is neither a field of a recipe"),
        ("new", {"against": "nobody"}, "against"),
        ("new", {"recipe": "imatch"}, "which only the index 'main' can have; take another recipe"),
    ],
)
def test_an_invalid_index_is_refused(client: httpx.Client, name: str, body: Any, sentence: str) -> None:
    reply = client.put(f"/v1/indexes/{name}", json=body)
    problem(reply, 404 if "%2f" in name else 422, sentence)
    assert [one["name"] for one in client.get("/info").json()["indexes"]] == ["main"]


def test_everything_is_there_after_a_restart(tmp_path: Path) -> None:
    with served(tmp_path) as client:
        client.put("/v1/indexes/wire", json={"recipe": "ddd", "window": "7d"}).raise_for_status()
        enter(client, document("a"), document("b", EDITED))
        client.post("/v1/indexes/wire/documents", json={"documents": [document("x", OTHER)]}).raise_for_status()
        before = client.get("/info").json()
        entered = client.get(f"{DOCUMENTS}/b").json()
    with served(tmp_path) as client:
        assert client.get("/info").json() == before
        assert client.get(f"{DOCUMENTS}/b").json() == entered
        assert verdicts(enter(client, document("b", EDITED))) == [("b", 200, "near", "a")]
        client.delete("/v1/indexes/wire").raise_for_status()
    with served(tmp_path) as client:
        assert [one["name"] for one in client.get("/info").json()["indexes"]] == ["main"]


def test_many_callers_get_the_verdicts_of_one_index(tmp_path: Path) -> None:
    stream = {f"d{n}": text for n, text in enumerate(texts(150, seed=1))}
    with served(tmp_path, options=IndexOptions(window="endless")) as client:
        with ThreadPoolExecutor(16) as pool:
            replies = list(pool.map(lambda one: enter(client, document(*one)), stream.items()))
        verdict_by_id = {one["id"]: one["verdict"] for reply in replies for one in reply.json()["documents"]}
        assert all(reply.status_code == 201 for reply in replies)
    with nd.Index(window="endless", path=tmp_path / "news.db") as index:
        assert index.store is not None
        order = [row.id for row in index.store.latest_documents(1000)]
    with nd.Index(window="endless") as index:
        expected = [index.add(nd.Document(name, stream[name])) for name in order]
    assert [(one.id, one.kind, one.of, one.similarity) for one in expected] == [
        (name, verdict_by_id[name]["kind"], verdict_by_id[name]["of"], verdict_by_id[name]["similarity"])
        for name in order
    ]


def test_documents_that_arrive_together_are_judged_by_their_own_index() -> None:
    """All arrive before the first is judged; those of an index that follow each other form a batch."""
    sides = [Mock(), Mock()]
    batches: list[tuple[Any, list[str]]] = []

    def judging(index: Any, documents: Sequence[nd.Document]) -> list[Any]:
        batches.append((index, [one.id for one in documents]))
        return [(index, one.id) for one in documents]

    async def together() -> list[Any]:
        calls = [worker.judge(sides[number // 2 % 2], [nd.Document(str(number), FOX)]) for number in range(6)]
        return await asyncio.gather(*calls)

    worker = Worker(judging)
    # In a thread of its own, because a browser of another test may leave a loop in this one.
    with ThreadPoolExecutor(1) as thread:
        results = thread.submit(asyncio.run, together()).result()
    worker.close()
    assert batches == [(sides[0], ["0", "1"]), (sides[1], ["2", "3"]), (sides[0], ["4", "5"])]
    assert results == [[(sides[number // 2 % 2], str(number))] for number in range(6)]


@pytest.mark.parametrize(
    ("method", "call", "query", "sentence"),
    [
        ("GET", "/stopped", "limt=3", "'limt' is not known; this call takes cursor, evidence, limit and"),
        ("GET", "/stopped", "limit=0", "limit is '0'; give 1 or more"),
        ("GET", "", "limit=3", "'limit' is not known; this call takes none"),
        ("POST", "/documents", "mod=check", "'mod' is not known; this call takes evidence and mode"),
        ("POST", "/documents", "mode=chek", "mode is 'chek', which is not known; give 'enter' or 'check'"),
    ],
)
def test_unknown_query_parameters_are_refused(
    shared: httpx.Client, method: str, call: str, query: str, sentence: str
) -> None:
    body = {"documents": [document("refused")]} if method == "POST" else None
    problem(shared.request(method, f"{MAIN}{call}?{query}", json=body), 422, sentence)
    problem(shared.get(f"{DOCUMENTS}/refused"), 404)
    # Probes add parameters to bypass caches.
    assert shared.get("/readyz?now=1").is_success


def test_metrics_count_verdicts_and_requests(tmp_path: Path) -> None:
    with served(tmp_path) as client:
        enter(client, document("a"), document("b", EDITED), document("c", FOX), document("d", EDITED))
        enter(client, document("a"))
        client.get(f"{DOCUMENTS}/nobody")
        found = client.get("/metrics").text
    for sample in (
        'neardup_verdicts_total{index="main",kind="original"} 1.0',
        'neardup_verdicts_total{index="main",kind="near"} 2.0',
        'neardup_verdicts_total{index="main",kind="exact"} 1.0',
        'neardup_held{index="main"} 1.0',
        'call="POST /v1/indexes/{name}/documents",le="30.0",status="200"} 2.0',
        'call="GET /v1/indexes/{name}/documents/{id}"',
        'neardup_store_bytes{index="main"}',
        "neardup_waiting ",
    ):
        assert sample in found


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A service whose answers have at most 20 kB, with 30 copies of a text under long ids."""
    with served(tmp_path_factory.mktemp("narrow"), limits=Limits(max_answer=20_000)) as client:
        enter(client, *(document(f"{at}{'😀' * 250}") for at in range(30)))
        yield client


def test_pairs_that_are_too_large_an_answer_are_refused(narrow: httpx.Client) -> None:
    documents = [document(f"{at}{'😀' * 1000}") for at in range(20)]
    sentence = "The answer, with 190 pairs, is larger than 20,000 bytes; send fewer documents, or shorter ids"
    problem(narrow.post("/v1/pairs", json={"documents": documents}), 413, sentence)
    assert len(narrow.post("/v1/pairs", json={"documents": [document("a"), document("b")]}).json()["pairs"]) == 1


def test_verdicts_that_are_too_large_an_answer_are_there_if_asked_again(narrow: httpx.Client) -> None:
    many = [document(f"many-{at}{'😀' * 250}", OTHER) for at in range(30)]
    checked = narrow.post(DOCUMENTS, json={"documents": many}, params={"mode": "check"})
    problem(checked, 413, "larger than 20,000 bytes; send fewer documents at a time")
    problem(enter(narrow, *many), 413, "the documents were entered: for their verdicts, send them again, but fewer")
    assert [row[1:3] for row in verdicts(enter(narrow, *many[:2]))] == [(200, "original"), (200, "exact")]
    # Nothing else has a larger answer either.
    for path in ("/page/similar", "/page/stopped", "/page/found"):
        reply = narrow.post(path, json={"asked": FOX})
        assert reply.status_code in (200, 413)
        assert len(reply.content) <= 20_000, path


def test_stopped_documents_come_in_pages_that_fit(narrow: httpx.Client) -> None:
    found: list[str] = []
    cursor, pages = None, 0
    while pages == 0 or cursor is not None:
        answer = narrow.get(f"{MAIN}/stopped", params={"limit": 1000} | ({"cursor": cursor} if cursor else {}))
        assert len(answer.content) <= 20_000
        cursor, pages = answer.json()["cursor"], pages + 1
        found += [one["id"] for one in answer.json()["stopped"]]
    assert pages > 2
    assert found[:29] == [f"{at}{'😀' * 250}" for at in range(1, 30)]


def test_a_query_returns_the_most_similar_that_fit(narrow: httpx.Client) -> None:
    narrow.put("/v1/indexes/all", json={"against": "everything"})
    documents = [document(f"{at}{'😀' * 250}") for at in range(30)]
    narrow.post("/v1/indexes/all/documents", json={"documents": documents})
    answer = narrow.post("/v1/indexes/all/query", json={"text": FOX, "k": 30})
    assert len(answer.content) <= 20_000
    assert answer.json()["truncated"] is True
    assert 10 < len(answer.json()["similar"]) < 30
    assert narrow.post("/v1/indexes/all/query", json={"text": FOX, "k": 2}).json()["truncated"] is False


def test_a_text_and_an_explanation_that_are_too_large_are_refused(narrow: httpx.Client) -> None:
    long_text = "word " * 5000
    enter(narrow, document("long", long_text))
    problem(narrow.get(f"{DOCUMENTS}/long"), 413, "The answer is larger than 20,000 bytes; read the store itself")
    sides = {"left": {"text": long_text}, "right": {"text": long_text}}
    problem(narrow.post("/v1/explain", json=sides), 413, "larger than 20,000 bytes; send shorter texts")


def test_an_explanation_of_hostile_texts_is_bounded(client: httpx.Client) -> None:
    left, right = (" ".join(f"a a a a a {end}{at}" for at in range(1500)) for end in "yz")
    answer = client.post("/v1/explain", json={"left": {"text": left}, "right": {"text": right}})
    assert answer.status_code == 200
    assert len(answer.content) < 100_000
    assert "of 1,501 passages, the 100 longest are listed" in answer.json()["notes"]


@pytest.mark.parametrize(
    ("path", "body", "sentence"),
    [
        ("/v1/pairs", {"index": "q" * 10_000, "documents": []}, "index is longer than 255 characters"),
        ("/v1/indexes/x", {"recipe": "q" * 10_000}, "recipe is longer than 255 characters"),
        ("/v1/indexes/x", {"choices": {"features": "q" * 9_000}}, "are not known; write them like words:4"),
        ("/v1/indexes/x", {"choices": {"q" * 10_000: 1}}, ""),
        ("/v1/indexes/main/documents", {"documents": [document("q" * 1025)]}, "longer than 1,024 characters"),
    ],
)
def test_a_refusal_does_not_repeat_a_long_value(
    client: httpx.Client, path: str, body: dict[str, Any], sentence: str
) -> None:
    answer = client.request("PUT" if path.endswith("/x") else "POST", path, json=body)
    problem(answer, 422, sentence)
    assert len(answer.content) < 3_000


@pytest.mark.parametrize(("k", "status"), [(3, 200), (3.0, 200), (110.0, 200), (3.5, 422), (True, 422), ("3", 422)])
def test_a_number_without_fraction_is_whole(client: httpx.Client, k: Any, status: int) -> None:
    assert client.post(f"{MAIN}/query", json={"text": FOX, "k": k}).status_code == status


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("POST", MAIN, "DELETE, GET, PUT"),
        ("POST", f"{DOCUMENTS}/a", "DELETE, GET, PUT"),
        ("PATCH", f"{DOCUMENTS}/a/release", "DELETE, GET, POST, PUT"),
        ("DELETE", "/healthz", "GET"),
        ("PUT", "/v1/pairs", "POST"),
    ],
)
def test_a_refused_method_gets_all_that_are_allowed(client: httpx.Client, method: str, path: str, allowed: str) -> None:
    answer = client.request(method, path, json={})
    problem(answer, 405)
    assert answer.headers["allow"] == allowed
