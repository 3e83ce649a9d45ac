"""The server of the page: access, checks of requests, answers in the store, undo, goals, its end."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from labelling_room import PAIRS, Browser, Room
from sentences import says

from neardup.errors import NeardupError, OutputError
from neardup.labelling.app import MAX_BODY, POLICY
from neardup.labelling.server import LabelServer, serve
from neardup.labels.store import majority_labels
from neardup.service.server import HEADERS


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    with Room(tmp_path / "labels.db") as made:
        yield made


@pytest.fixture
def service(room: Room) -> Iterator[LabelServer]:
    with LabelServer(room.session) as made:
        yield made


@pytest.fixture
def browser(service: LabelServer) -> Browser:
    made = Browser(service.port)
    made.enter(service.first_link)
    return made


def ask(browser: Browser, path: str, **sent: Any) -> Any:
    reply = browser.post(path, {"labeller": "anna"} | sent)
    assert reply.status == 200, reply.body
    return reply.json


def answer(browser: Browser, given: str, **sent: Any) -> Any:
    pair = ask(browser, "/api/state", **sent)["pair"]["ids"]
    return ask(browser, "/api/answer", pair=pair, answer=given, seconds=2.5, **sent)


def test_a_link_opens_the_page_once(service: LabelServer) -> None:
    browser, thief = Browser(service.port), Browser(service.port)
    reply = browser.enter(service.first_link)
    assert reply.status == 200
    assert reply.headers["set-cookie"].partition("; ")[2] == "HttpOnly; Path=/; SameSite=strict"
    assert "token" not in reply.body.decode()
    again = thief.enter(service.first_link)
    assert (again.status, "set-cookie" in again.headers) == (403, False)
    assert b"<p>A link to this page works only once;" in again.body
    # A browser with a cookie may follow a used link.
    for path in ("/", service.first_link.removeprefix(browser.home)):
        assert (browser.get(path).status, "set-cookie" in browser.get(path).headers) == (200, False)


def test_requests_without_a_cookie_are_refused(service: LabelServer) -> None:
    stranger, liar = Browser(service.port), Browser(service.port)
    liar.cookie = 'neardup-00000000=nonsense; broken="; ;=='
    for path in ("/", "/page.js", "/page.css", "/?token=", "/?token=nonsense", "/?token=%ff", "/api/state"):
        assert stranger.get(path).status == liar.get(path).status == 403
    assert liar.post("/api/state", {}).status == 403


def test_every_reply_has_the_security_headers(service: LabelServer, browser: Browser) -> None:
    replies = [browser.get(path) for path in ("/", "/page.js", "/page.css", "/nothing")]
    replies.append(Browser(service.port).get("/"))
    assert [reply.status for reply in replies] == [200, 200, 200, 404, 403]
    expected = {"content-security-policy": POLICY} | HEADERS
    assert all(expected.items() <= reply.headers.items() and "server" not in reply.headers for reply in replies)
    assert "unsafe" not in POLICY
    assert replies[1].headers["content-type"].startswith("text/javascript")


def test_other_names_of_this_machine_are_refused(browser: Browser) -> None:
    for host in ("evil.example", f"evil.example:{browser.port}", "127.0.0.1.evil.example", "[::1]"):
        assert browser.get("/", Host=host).status == browser.post("/api/undo", {}, Host=host).status == 400


def test_a_tunnel_may_end_at_another_port(browser: Browser) -> None:
    reply = browser.post("/api/state", {"labeller": "anna"}, Host="localhost:9", Origin="http://localhost:9")
    assert reply.status == 200


def test_other_pages_cannot_answer(browser: Browser, room: Room) -> None:
    sent = {"labeller": "anna", "pair": ask(browser, "/api/state")["pair"]["ids"], "answer": "same"}
    here = f"127.0.0.1:{browser.port}"
    origins = ["http://evil.example", "http://127.0.0.1:9", f"https://{here}", "http://[::1", f"http://{here}/"]
    for origin in (*origins, f"//{here}", f"http://me@{here}", "", "null"):
        assert browser.post("/api/answer", sent, Origin=origin).status == 403
    for site in ("same-site", "cross-site"):
        assert browser.post("/api/answer", sent, Sec_Fetch_Site=site).status == 403
    for kind in ("text/plain", ""):
        assert browser.post("/api/answer", sent, Content_Type=kind).status == 415
    assert room.store.labels == {}


def test_request_bodies_are_checked(browser: Browser, room: Room) -> None:
    pair = ask(browser, "/api/state")["pair"]["ids"]
    right = {"labeller": "anna", "pair": pair, "answer": "same"}
    seconds = ["1" + "0" * 400, "7" * 5_000, "1e400", "NaN", "-Infinity", "-1", "true", '"7"', "[1]"]
    wrong: list[tuple[Any, str]] = [
        (b"", "Field required"),
        *((text, "") for text in (b"\xff", b"[" * 30_000, b'{"a":' * 9_000 + b"}" * 9_000)),
        (b"{", "JSON"),
        ([], "valid dictionary"),
        ({}, "labeller"),
        *((right | {"labeller": name}, "is not a valid name") for name in (" ", "x" * 61, "a\u202eb", "a\ud800b")),
        *((right | {"labeller": name}, "labeller") for name in (7, None)),
        *((right | {"pair": ids}, "pair") for ids in (None, ["a1"], ["a1", 7])),
        *((right | {"answer": given}, "answer") for given in (None, "maybe", "\ud800")),
        *(((json.dumps(right)[:-1] + f', "seconds": {one}}}').encode(), "") for one in seconds),
    ]
    for sent, message in wrong:
        reply = browser.post("/api/answer", sent)
        assert reply.status in (400, 422), sent
        assert message in reply.json["error"]
        assert "Traceback" not in reply.json["error"]
    # Too large, and in chunks of unknown number.
    for body in (b" " * (MAX_BODY + 1), iter([json.dumps(right).encode()])):
        assert browser.post("/api/answer", body).status == 413
    assert browser.get("/api/answer").status == 405
    assert room.store.labels == {}


def test_an_answer_is_stored_before_the_next_pair_is_shown(browser: Browser, room: Room) -> None:
    first = ask(browser, "/api/state")
    # Similarity and reason stay secret before the judgement.
    assert not any(words in json.dumps(first) for words in ("jaccard", "0.5", "random"))
    assert first["pair"]["ids"] == ["a1", "a2"]
    assert first["progress"] == {
        "mine": {"same": 0, "different": 0, "unsure": 0},
        "skipped": 0,
        "given": 0,
        "goal": None,
        "left": len(PAIRS),
    }
    state = answer(browser, "same")
    assert majority_labels(room.store.path) == [("a1", "a2", 1)]
    assert state["pair"]["ids"] == ["b1", "b2"]
    assert state["before"] == {
        "answer": "same",
        "says": [{"words": "similarity 0.50 by jaccard(words:3)", "same": None}],
        "reason": "drawn at random",
    }
    (judgement,) = room.store.judgements()
    assert (judgement.reason, judgement.similarity, judgement.seconds) == ("sample", 0.5, 2.5)
    # Nobody looks at a pair for more than a day.
    ask(browser, "/api/answer", pair=["b1", "b2"], answer="same", seconds=86_401)
    assert room.store.judgements()[1].seconds is None
    assert judgement.checksums == (room.index.reader.text_checksum(0), room.index.reader.text_checksum(1))


def test_an_answer_to_another_pair_is_not_stored(browser: Browser, room: Room) -> None:
    for pair in (["b1", "b2"], ["\ud800", "a1"], ["a1\x00", "a2"], ["a" * 30_000, "a2"]):
        state = ask(browser, "/api/answer", pair=pair, answer="same")
        assert (state["before"], state["pair"]["ids"]) == ({"behind": True}, ["a1", "a2"])
    assert room.store.labels == {}
    assert "behind" not in ask(browser, "/api/answer", pair=["a1", "a2"], answer="same")["before"]
    # The same key again, from a second window.
    state = ask(browser, "/api/answer", pair=["a1", "a2"], answer="different")
    assert (state["before"], state["pair"]["ids"]) == ({"behind": True}, ["b1", "b2"])
    assert room.store.labels == {("a1", "a2"): {"anna": "same"}}


def test_undo_shows_the_same_pair_again(browser: Browser, room: Room) -> None:
    assert ask(browser, "/api/undo")["before"] == {"nothing": True}
    answer(browser, "same")
    answer(browser, "skip")
    back = ask(browser, "/api/undo")
    assert (back["before"], back["pair"]["ids"]) == ({"undone": "skip"}, ["b1", "b2"])
    back = ask(browser, "/api/undo")
    assert (back["before"], back["pair"]["ids"]) == ({"undone": "same"}, ["a1", "a2"])
    assert back["progress"]["given"] == 0
    assert room.store.labels == {}


def test_a_new_labeller_is_asked_for_a_name_and_skipped_pairs_come_last(browser: Browser) -> None:
    state = browser.post("/api/state", {}).json
    assert (state["labeller"], type(state["suggested"])) == (None, str)
    asked = [answer(browser, "skip")["pair"]["ids"]]
    asked += [answer(browser, "different")["pair"]["ids"] for _ in range(len(PAIRS) - 1)]
    assert asked == [[*sorted(pair)] for pair in (*PAIRS[1:], PAIRS[0])]
    last = answer(browser, "unsure")
    assert last["pair"] is None
    assert last["progress"]["left"] == 0


def test_two_labellers_have_their_own_answers_and_their_agreement(browser: Browser, room: Room) -> None:
    answer(browser, "same", labeller="eve")
    for mine, theirs in (("same", "same"), ("different", "same"), ("unsure", "same")):
        answer(browser, mine)
        state = answer(browser, theirs, labeller="bob")
    assert state["labeller"] == "bob"
    facts = ["with anna κ 0.00 (2 shared)", "with eve 100% (1 shared)"]
    assert [fact["name"] + " " + fact["value"] for fact in state["facts"]] == facts
    assert says(state["facts"][1]["meaning"], "You and eve both judged 1 pair; you agree on 100%.")
    assert room.store.labels["b1", "b2"] == {"anna": "different", "bob": "same"}
    assert ask(browser, "/api/undo")["before"] == {"undone": "unsure"}
    assert len(room.store.labels["c1", "c2"]) == 1


def test_a_new_session_starts_with_the_open_pair_if_it_has_it(tmp_path: Path) -> None:
    path = tmp_path / "labels.db"
    with Room(path) as room:
        for answer in ("same", "skip"):
            room.session.answer("anna", tuple(room.session.state("anna")["pair"]["ids"]), answer)
    with Room(path, pairs=PAIRS[::-1]) as room:
        assert room.session.state("bob")["pair"]["ids"] == ["b1", "c1"]
        assert room.session.state("anna")["pair"]["ids"] == ["c1", "c2"]
    with Room(path, pairs=PAIRS[3:]) as room:
        assert room.session.state("anna")["pair"]["ids"] == ["a1", "b1"]


def test_a_goal_ends_the_questions_and_the_last_labeller_ends_the_session(tmp_path: Path) -> None:
    with Room(tmp_path / "labels.db", goal=2, labeller="anna") as room, LabelServer(room.session) as service:
        browser = Browser(service.port)
        browser.enter(service.first_link)
        assert browser.post("/api/state", {}).json["labeller"] == "anna"
        ask(browser, "/api/state", labeller="bob")
        answer(browser, "same")
        assert answer(browser, "different")["pair"] is None
        assert ask(browser, "/api/answer", pair=["c1", "c2"], answer="same")["before"] == {"behind": True}
        assert ask(browser, "/api/undo")["pair"]["ids"] == ["b1", "b2"]
        assert answer(browser, "same")["pair"] is None
        assert ask(browser, "/api/finish") == {"ended": False}
        assert ask(browser, "/api/finish", labeller="bob") == {"ended": True}
        assert room.session.label_count == 2


def test_serving_ends_with_the_session(room: Room) -> None:
    links: list[str] = []
    first = threading.Event()

    def announce(link: str) -> None:
        links.append(link)
        first.set()

    options = {"open_browser": False, "announce_first_link": announce, "announce_link": announce}
    thread = threading.Thread(target=serve, args=(room.session,), kwargs=options)
    thread.start()
    assert first.wait(300)
    port = int(links[0].split(":")[2].split("/")[0])
    for _ in range(3):
        # Each used link brings another one.
        assert Browser(port).enter(links[-1]).status == 200
    assert len(set(links)) == 4
    room.session.state("anna")
    room.session.finish("anna")
    thread.join(300)
    assert not thread.is_alive()


def test_a_port_in_use_is_refused(service: LabelServer, room: Room) -> None:
    other = LabelServer(room.session, port=service.port)
    with pytest.raises(OutputError, match=f"port {service.port} is in use"), other:
        pass


@pytest.mark.parametrize("name", ["fastapi", "uvicorn"])
def test_missing_packages_are_named(room: Room, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(NeardupError, match=rf"{name}.*'neardup\[label\]'"):
        LabelServer(room.session)
