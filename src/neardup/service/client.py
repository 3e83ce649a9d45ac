"""A client of the service, with the methods of ``Index``."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

from neardup.classifier.evidence import Contribution
from neardup.errors import InputError, NeardupError, StoreError, UnknownDocument
from neardup.search.matches import Similar
from neardup.service.server import check_packages
from neardup.stream.document import Document, Verdict
from neardup.times import utc

if TYPE_CHECKING:
    import httpx

#: The most documents and characters of a request; a character takes up to six bytes in JSON.
_MAX_DOCUMENTS, _MAX_CHARACTERS = 500, 1_500_000
#: The most attempts to send a request that the service refuses because it is busy.
_MAX_ATTEMPTS = 6


class Client:
    """A client of ``neardup serve`` with the methods of ``Index``.

    If a document with the same id and text is added again, it returns the stored verdict, whose ``known`` is true, so a
    failed request may simply be repeated. It repeats requests that a busy service refuses, after the time that the
    service names.

    Parameters
    ----------
    address : str
        The address of the service.
    index : str
        The name of an index of the service.
    token : str, optional
        A token of the service; needed if the service was started with tokens.
    timeout : float
        Seconds to wait for an answer.

    Raises
    ------
    NeardupError
        If ``httpx`` is not installed, or the address is invalid.

    Examples
    --------
    With ``neardup serve --store news.db`` running:

        with nd.Client("http://127.0.0.1:8321") as client:
            verdict = client.add(nd.Document("a", "Oil prices rose in early trading on Monday."))
            if verdict.is_duplicate:
                print("we have this already:", verdict.of)
            elif not verdict.known:
                print("save it")
    """

    def __init__(
        self,
        address: str = "http://127.0.0.1:8321",
        *,
        index: str = "main",
        token: str | None = None,
        timeout: float = 60,
    ) -> None:
        check_packages("client", "httpx")
        import httpx

        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        try:
            self._http = httpx.Client(base_url=address, headers=headers, timeout=timeout)
            if self._http.base_url.scheme not in ("http", "https") or not self._http.base_url.host:
                raise httpx.InvalidURL("it has no host")
        except (httpx.InvalidURL, UnicodeEncodeError) as error:
            raise InputError(f"{address!r} is not an address ({error}); give one like http://127.0.0.1:8321") from None
        self._index = f"/v1/indexes/{quote(index, safe='')}"
        self.address, self.index = address, index

    def add(self, document: Document) -> Verdict:
        """Judge a document and enter it; its verdict is on the service's disk when it is returned.

        Raises
        ------
        InputError
            If its id already belongs to another text, or the service refuses it.
        StoreError
            If the service cannot store it; adding it again is safe.
        NeardupError
            If the service does not answer.
        """
        return self.add_many([document])[0]

    def add_many(self, documents: Iterable[Document]) -> list[Verdict]:
        """Judge documents in their order, like repeated calls of ``add`` but with up to 500 per request."""
        return self._judge(documents, "enter")

    def check(self, documents: Iterable[Document]) -> list[Verdict]:
        """Return the verdict that each document would get as the next one; nothing is entered."""
        return self._judge(documents, "check")

    def _judge(self, documents: Iterable[Document], mode: str) -> list[Verdict]:
        verdicts: list[Verdict] = []
        batch: list[dict[str, Any]] = []
        characters = 0
        for document in documents:
            batch.append({"id": document.id} | _body(document))
            characters += len(document.text)
            if len(batch) >= _MAX_DOCUMENTS or characters >= _MAX_CHARACTERS:
                verdicts += self._judge_batch(batch, mode)
                batch, characters = [], 0
        return verdicts + (self._judge_batch(batch, mode) if batch else [])

    def _judge_batch(self, batch: list[dict[str, Any]], mode: str) -> list[Verdict]:
        answer = self._request_index("POST", "/documents", {"documents": batch}, mode=mode, evidence="true")
        items = answer["documents"]
        for item in items:
            if item["status"] >= 400:
                raise InputError(f"{item['id']!r}: {item['detail']}")
        # Of documents that are only checked, none is known: each is judged as the next one.
        return [
            _verdict(item["id"], item["verdict"], known=mode == "enter" and item["status"] == 200) for item in items
        ]

    def query(self, document: Document | str, k: int | None = None) -> list[Similar]:
        """Return the documents in the window that a text matches, the most similar first; nothing is entered.

        With ``k``, the k nearest are returned instead, whatever their similarity.
        """
        query = Document("query", document) if isinstance(document, str) else document
        answer = self._request_index("POST", "/query", _body(query) | ({} if k is None else {"k": k}))
        return [Similar(row["id"], row["similarity"]) for row in answer["similar"]]

    def explain(self, left: str, right: str) -> dict[str, Any]:
        """Return why two texts match or not, in the form of ``neardup explain --json``."""
        body = {"left": {"text": left}, "right": {"text": right}, "index": self.index}
        return self._request("POST", "/v1/explain", body)

    def release(self, document: Document | str, by: str = "") -> Verdict:
        """Release a stopped document: it is an original from now on, and its copies are stopped.

        ``document`` is its id, or the whole document if the service no longer keeps its text; ``by`` is the person who
        releases it.
        """
        name = document if isinstance(document, str) else document.id
        content = {} if isinstance(document, str) else {"text": document.text, "title": document.title}
        answer = self._request_index("POST", f"{_path(name)}/release", {"by": by} | content, evidence="true")
        return _verdict(name, answer["verdict"])

    def replace(self, document: Document) -> Verdict:
        """Replace the document with the same id, unless the text is the same."""
        answer = self._request_index("PUT", _path(document.id), _body(document), evidence="true")
        return _verdict(document.id, answer["verdict"])

    def forget(self, name: str) -> None:
        """Remove a document and its verdict; its id is free again."""
        self._request_index("DELETE", _path(name))

    def verdict_of(self, name: str) -> Verdict | None:
        """Return the verdict on a document, None if the id is unknown."""
        answer = self._find(name)
        return None if answer is None else _verdict(name, answer["verdict"])

    def text_of(self, name: str) -> str | None:
        """Return the text of a document, None if the id is unknown or the text is no longer kept."""
        answer = self._find(name)
        return None if answer is None else answer["text"]

    def _find(self, name: str) -> dict[str, Any] | None:
        try:
            return self._request_index("GET", _path(name), evidence="true")
        except UnknownDocument:
            # Raises an error if it is the index, or the service, that is not there.
            self._request_index("GET", "")
            return None

    def __contains__(self, name: object) -> bool:
        answer = self._find(name) if isinstance(name, str) else None
        return answer is not None and bool(answer["held"])

    def __len__(self) -> int:
        return int(self._request_index("GET", "")["held"])

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Client of {self.address}, index {self.index!r}>"

    def _request_index(self, method: str, path: str, body: Any = None, **query: str) -> dict[str, Any]:
        return self._request(method, self._index + path, body, **query)

    def _request(self, method: str, path: str, body: Any = None, **query: str) -> dict[str, Any]:
        """Send a request, again while the service is busy, and return the answer."""
        import httpx

        for attempt in range(_MAX_ATTEMPTS):
            try:
                reply = self._http.request(method, path, json=body, params=query)
            except httpx.HTTPError as error:
                raise NeardupError(
                    f"{self.address} does not answer ({type(error).__name__}: {error}); is neardup serve running there?"
                ) from None
            if reply.status_code != 429 or attempt == _MAX_ATTEMPTS - 1:
                break
            time.sleep(_wait_s(reply))
        if reply.is_success:
            # A web site may answer any address with a page.
            with suppress(ValueError):
                return reply.json() if reply.content else {}
        raise _error(reply)


def _wait_s(reply: httpx.Response) -> float:
    seconds = reply.headers.get("retry-after", "1")
    return min(float(seconds), 30.0) if seconds.isdecimal() else 1.0


def _error(reply: httpx.Response) -> NeardupError:
    try:
        detail = reply.json()["detail"]
    except (ValueError, KeyError, TypeError):
        detail = f"the answer was {reply.status_code} without a sentence; is this the address of neardup serve?"
    kind = {404: UnknownDocument, 503: StoreError, 429: NeardupError}.get(reply.status_code, InputError)
    return kind(str(detail))


def _path(name: str) -> str:
    # Clients and proxies remove path segments that consist of dots.
    return f"/documents/{quote(name, safe='').replace('.', '%2E')}"


def _body(document: Document) -> dict[str, Any]:
    # As this side has read it; JSON has no dates and no numbers of NumPy.
    moment = None if document.microseconds is None else utc(document.microseconds).isoformat()
    return {"text": document.text, "timestamp": moment, "title": document.title}


def _verdict(name: str, fields: dict[str, Any], *, known: bool = False) -> Verdict:
    counts, measures = fields["counts"], fields["measures"]
    return Verdict(
        name,
        fields["kind"],
        fields["of"],
        fields["similarity"],
        fields["time"],
        fields["flag"],
        None if counts is None else (counts[0], counts[1], counts[2]),
        fields["score"],
        tuple(Contribution(row["measure"], row["value"], row["contribution"]) for row in measures),
        fields.get("version_of"),
        known,
    )
