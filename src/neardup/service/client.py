"""A service from Python, with the words of ``Index``."""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import date, datetime
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

#: Documents and characters of a request; a character takes up to six bytes in JSON.
_AT_ONCE, _CHARACTERS = 500, 1_500_000
#: So often a request that was turned away is sent again.
_TRIES = 6


class Client:
    """A service that ``neardup serve`` runs, asked as an ``Index`` is.

    Other than there, a document that was added before gives its stored verdict again where its text is the same: so
    what failed on the way may simply be sent once more. Requests that the service turns away because too much waits
    are sent again after the time that it names.

    Parameters
    ----------
    address : str
        Where it is.
    index : str
        Which of its indexes is meant.
    token : str, optional
        One of those that it knows, where it asks for one.
    timeout : float
        Seconds to wait for an answer.

    Raises
    ------
    NeardupError
        If ``httpx`` is not installed, or the address is none.

    Examples
    --------
    With ``neardup serve --store news.db`` running::

        with nd.Client("http://127.0.0.1:8321") as client:
            verdict = client.add(nd.Document("a", "Oil prices rose in early trading on Monday."))
            if verdict.is_duplicate:
                print("we have this already:", verdict.of)
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
                raise httpx.InvalidURL("it names no machine")
        except (httpx.InvalidURL, UnicodeEncodeError) as error:
            raise InputError(f"{address!r} is no address ({error}); give one like http://127.0.0.1:8321") from None
        self._index = f"/v1/indexes/{quote(index, safe='')}"
        self.address, self.index = address, index

    def add(self, document: Document) -> Verdict:
        """Judge a document and enter it; its verdict is on the service's disk when it is returned.

        Raises
        ------
        InputError
            If its id belongs to another text already, or the service refuses it.
        StoreError
            If the service cannot store it; it may be sent again.
        NeardupError
            If the service does not answer.
        """
        return self.add_many([document])[0]

    def add_many(self, documents: Iterable[Document]) -> list[Verdict]:
        """Judge documents in their order, as ``add`` does one by one, in requests of some hundred."""
        return self._sent(documents, "enter")

    def check(self, documents: Iterable[Document]) -> list[Verdict]:
        """Return the verdict that each document would have if it were the next one to be added; none is entered."""
        return self._sent(documents, "check")

    def _sent(self, documents: Iterable[Document], mode: str) -> list[Verdict]:
        verdicts: list[Verdict] = []
        batch: list[dict[str, Any]] = []
        characters = 0
        for document in documents:
            batch.append({"id": document.id} | _body(document))
            characters += len(document.text)
            if len(batch) >= _AT_ONCE or characters >= _CHARACTERS:
                verdicts += self._batch(batch, mode)
                batch, characters = [], 0
        return verdicts + (self._batch(batch, mode) if batch else [])

    def _batch(self, batch: list[dict[str, Any]], mode: str) -> list[Verdict]:
        found = self._ask("POST", "/documents", {"documents": batch}, mode=mode, evidence="true")["documents"]
        for item in found:
            if item["status"] >= 400:
                raise InputError(f"{item['id']!r}: {item['detail']}")
        return [_verdict(item["id"], item["verdict"]) for item in found]

    def query(self, document: Document | str, k: int | None = None) -> list[Similar]:
        """Return the held documents that a text matches now, the most similar first; nothing is entered.

        Parameters
        ----------
        document : Document or str
            The text.
        k : int, optional
            Return the k nearest instead, whatever their similarity.
        """
        asked = Document("query", document) if isinstance(document, str) else document
        found = self._ask("POST", "/query", _body(asked) | ({} if k is None else {"k": k}))
        return [Similar(one["id"], one["similarity"]) for one in found["similar"]]

    def explain(self, left: str, right: str) -> dict[str, Any]:
        """Return why two texts match or not, as ``neardup explain --json`` says it."""
        body = {"left": {"text": left}, "right": {"text": right}, "index": self.index}
        return self._request("POST", "/v1/explain", body)

    def release(self, document: Document | str, by: str = "") -> Verdict:
        """Take back that a document was stopped: it is an original from now on, and its copies are stopped.

        Parameters
        ----------
        document : Document or str
            Its id, or with its text, where the service keeps that no more.
        by : str
            Who takes it back.
        """
        name = document if isinstance(document, str) else document.id
        given = {} if isinstance(document, str) else {"text": document.text, "title": document.title}
        found = self._ask("POST", f"{_path(name)}/release", {"by": by} | given, evidence="true")
        return _verdict(name, found["verdict"])

    def replace(self, document: Document) -> Verdict:
        """Enter a document in the place of the one with its id, unless its text is the same."""
        found = self._ask("PUT", _path(document.id), _body(document), evidence="true")
        return _verdict(document.id, found["verdict"])

    def forget(self, name: str) -> None:
        """Forget a document whole; its id is free again."""
        self._ask("DELETE", _path(name))

    def verdict_of(self, name: str) -> Verdict | None:
        """Return the verdict on a document, None if there is none."""
        found = self._find(name)
        return None if found is None else _verdict(name, found["verdict"])

    def text_of(self, name: str) -> str | None:
        """Return the text of a document, None where there is none, or it is not kept any more."""
        found = self._find(name)
        return None if found is None else found["text"]

    def _find(self, name: str) -> dict[str, Any] | None:
        try:
            return self._ask("GET", _path(name), evidence="true")
        except UnknownDocument:
            return None

    def __contains__(self, name: object) -> bool:
        found = self._find(name) if isinstance(name, str) else None
        return found is not None and bool(found["held"])

    def __len__(self) -> int:
        return int(self._ask("GET", "")["held"])

    def close(self) -> None:
        """Let go of the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Client of {self.address}, index {self.index!r}>"

    def _ask(self, method: str, path: str, body: Any = None, **query: str) -> dict[str, Any]:
        return self._request(method, self._index + path, body, **query)

    def _request(self, method: str, path: str, body: Any = None, **query: str) -> dict[str, Any]:
        """Send a request, again where it is turned away, and return what is answered."""
        import httpx

        for turn in range(_TRIES):
            try:
                reply = self._http.request(method, path, json=body, params=query)
            except httpx.HTTPError as error:
                raise NeardupError(
                    f"{self.address} does not answer ({type(error).__name__}: {error}); is neardup serve running there?"
                ) from None
            if reply.status_code != 429 or turn == _TRIES - 1:
                break
            time.sleep(_wait_s(reply))
        if reply.is_success:
            return reply.json() if reply.content else {}
        raise _error(reply)


def _wait_s(reply: httpx.Response) -> float:
    """Return the seconds after which a request may be sent again."""
    said = reply.headers.get("retry-after", "1")
    return min(float(said), 30.0) if said.isdecimal() else 1.0


def _error(reply: httpx.Response) -> NeardupError:
    """Return a refusal of the service as an error of ours."""
    try:
        said = reply.json()["detail"]
    except (ValueError, KeyError, TypeError):
        said = f"the answer was {reply.status_code} without a sentence; is this the address of neardup serve?"
    kind = {404: UnknownDocument, 503: StoreError, 429: NeardupError}.get(reply.status_code, InputError)
    return kind(str(said))


def _path(name: str) -> str:
    # A name of dots alone would be taken for folders, and left out.
    return f"/documents/{quote(name, safe='').replace('.', '%2E')}"


def _body(document: Document) -> dict[str, Any]:
    moment = document.timestamp
    # Where a number or text may be said in several ways, the service reads it as this side has.
    if isinstance(moment, (date, datetime)) and document.microseconds is not None:
        moment = utc(document.microseconds).isoformat()
    return {"text": document.text, "timestamp": moment, "title": document.title}


def _verdict(name: str, found: dict[str, Any]) -> Verdict:
    counts, measures = found["counts"], found["measures"]
    return Verdict(
        name,
        found["kind"],
        found["of"],
        found["similarity"],
        found["time"],
        found["flag"],
        None if counts is None else (counts[0], counts[1], counts[2]),
        found["score"],
        tuple(Contribution(one["measure"], one["value"], one["contribution"]) for one in measures),
    )
