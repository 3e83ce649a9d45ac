"""Small corpora, stores and sessions for the tests of labelling, and requests to a served page."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any, NamedTuple

from neardup.documents import corpus_of
from neardup.labelling.label_index import LabelIndex
from neardup.labelling.queue import FixedQueue, Question
from neardup.labelling.session import Session
from neardup.labels.store import LabelStore
from neardup.pages.documents import DocumentReader

#: Ids and texts; those of one letter are alike.
TEXTS = {
    "a1": "The harbour board voted on Tuesday to widen the eastern channel at a cost of $40 million.",
    "a2": "The harbour board voted on Monday to widen the eastern channel at a cost of $40 million.",
    "b1": "A late frost has damaged two thirds of the cherry crop in the northern valleys, growers said.",
    "b2": "A late frost has damaged two thirds of the cherry crop in the northern valleys, a grower said on Friday.",
    "c1": "The central bank left its main rate at 2.5 pct, as expected.",
    "c2": "The central bank left its main rate at 3.5 pct, as expected.",
}
PAIRS = (("a1", "a2"), ("b1", "b2"), ("c1", "c2"), ("a1", "b1"), ("b1", "c1"))


def reader_of(texts: dict[str, str] | None = None, titles: dict[str, str] | None = None) -> DocumentReader:
    """A reader of documents in memory."""
    texts = TEXTS if texts is None else texts
    columns = {"id": list(texts), "text": list(texts.values())}
    if titles is not None:
        columns["title"] = [titles.get(name, "") for name in texts]
    return DocumentReader.from_corpus(corpus_of(columns))


class Room:
    """A store, its documents and a session with ``PAIRS``, or other pairs of other texts."""

    def __init__(
        self,
        path: Path,
        texts: dict[str, str] | None = None,
        pairs: Sequence[tuple[str, str]] = PAIRS,
        *,
        titles: dict[str, str] | None = None,
        **options: Any,
    ) -> None:
        self.store = LabelStore(path)
        self.index = LabelIndex(self.store, reader_of(texts, titles))
        position = self.index.reader.position
        questions = [Question(position(one), position(other), "sample", 0.5) for one, other in pairs]
        self.queue = FixedQueue(self.index, questions, measure="jaccard(words:3)")
        self.session = Session(self.index, self.queue, **options)

    def __enter__(self) -> Room:
        return self

    def __exit__(self, *exception: object) -> None:
        self.store.close()


class Reply(NamedTuple):
    """A reply of the server."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Browser:
    """Sends requests as a browser would, with any headers."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.home = f"http://127.0.0.1:{self.port}"
        self.cookie = ""

    def enter(self, link: str) -> Reply:
        """Open a link, and keep the cookie."""
        reply = self.get(link.removeprefix(self.home))
        for name, morsel in SimpleCookie(reply.headers.get("set-cookie", "")).items():
            self.cookie = f"{name}={morsel.value}"
        return reply

    def get(self, path: str, **headers: str) -> Reply:
        """Request a page."""
        return self._request(path, None, {"Cookie": self.cookie}, headers)

    def post(self, path: str, sent: Any, **headers: str) -> Reply:
        """Request an action; empty headers are left out."""
        usual = {"Cookie": self.cookie, "Origin": self.home, "Content-Type": "application/json"}
        body = sent if isinstance(sent, bytes | Iterator) else json.dumps(sent).encode()
        return self._request(path, body, usual, headers)

    def _request(
        self, path: str, body: bytes | Iterator[bytes] | None, usual: dict[str, str], headers: dict[str, str]
    ) -> Reply:
        merged = usual | {name.replace("_", "-"): value for name, value in headers.items()}
        sent_headers = {name: value for name, value in merged.items() if value}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        with closing(connection):
            connection.request("GET" if body is None else "POST", path, body, sent_headers)
            reply = connection.getresponse()
            return Reply(reply.status, {name.lower(): value for name, value in reply.getheaders()}, reply.read())
