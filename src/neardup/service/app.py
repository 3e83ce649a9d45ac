"""The service as an application: its calls and their answers."""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from types import TracebackType
from typing import Annotated, Any, Literal, Self
from urllib.parse import parse_qsl

import numpy as np
import pyarrow as pa
from fastapi import Depends, FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, Response
from pydantic import ValidationError
from starlette.convertors import Convertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from neardup.classifier.vector import NO_TIME, Records
from neardup.documents import corpus_of
from neardup.errors import ClosedStore, InputError, NeardupError, RecipeError, StoreError, UnknownDocument, option
from neardup.pipeline.explanation import explain as explain_texts
from neardup.pipeline.pipeline import run
from neardup.service import bodies
from neardup.service.guard import Guard, Limits, Tokens
from neardup.service.indexes import Indexes, IndexOptions, NamedIndex, most_indexes
from neardup.service.metrics import Metrics
from neardup.service.page import POLICY, PageAnswers, PageRelease, calls_page, frame
from neardup.service.refusals import Problem, request_error_message, unknown_parameter_message
from neardup.service.server import HEADERS, LOOPBACK, LOOPBACK_NAMES, HostGuard, Server, is_loopback, listening_sockets
from neardup.service.worker import JudgedResult, Worker, check_documents, enter_documents
from neardup.stream.document import Document, Verdict
from neardup.stream.window_step import Record
from neardup.times import TIME_FORMS, microseconds_of
from neardup.version import __version__

_log = logging.getLogger("neardup.service")
#: Seconds that running requests have to finish when the service stops.
_GRACE_S = 20

_STATUS_DESCRIPTIONS = {
    400: "The request cannot be understood",
    401: "A token is missing or unknown",
    403: "The token may only read",
    404: "There is no such index or document",
    408: "The body did not arrive in time",
    409: "It exists already, with other content; or there are as many indexes as there may be",
    413: "The body, the batch or the answer is too large",
    415: "The body is not JSON in UTF-8",
    422: "A value is refused",
    429: "Too many requests are waiting; try again after Retry-After seconds",
    503: "The store cannot be written",
}
#: The details of the errors that the framework raises, by status.
_FRAMEWORK_MESSAGES = {
    400: "The body cannot be read; send JSON in UTF-8",
    404: "There is no such call; /docs lists them",
    405: "This call has no such method; /docs lists them",
}
_DOCUMENTS_PATH = re.compile(r"/v1/indexes/([^/]+)/documents")
_BOOLEANS = {"true": True, "false": False}


def _problem_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    content = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemAnswer"}}}
    codes = sorted({400, 401, 408, 413, 415, 429, 503, *statuses})
    return {status: {"description": _STATUS_DESCRIPTIONS[status], "content": content} for status in codes}


#: Bytes of an answer around its entries.
_FRAME_BYTES = 100
_encode_json = json.JSONEncoder(separators=(",", ":")).encode


def _json_response(content: Any, status: int = 200) -> Response:
    return Response(_encode_json(content), status, media_type="application/json")


def _verdict(verdict: Verdict, *, evidence: bool) -> dict[str, Any]:
    fields = verdict.as_dict()
    # The status says whether it was known.
    del fields["id"], fields["known"]
    if not evidence:
        for name in ("counts", "score", "evidence", "measures"):
            del fields[name]
    return fields


def _document(name: str, body: bodies.DocumentText) -> Document:
    # 0 as well, because a program that has no date sends it.
    return Document(name, body.text, body.timestamp or None, title=body.title)


async def _check_may_write(request: Request) -> None:
    if request.scope["rights"] != "write":
        raise Problem(403, "This token may only read; use one that may write")


async def _check_query(request: Request) -> None:
    if not request.scope["query_string"]:
        return
    paths = request.app.openapi()["paths"]
    # Probes and pages accept any parameter, since callers add one to bypass caches.
    call = paths.get(request.scope["route"].path_format, {}).get(request.method.lower())
    if call is not None and request.url.path.startswith("/v1/"):
        accepted = [parameter["name"] for parameter in call.get("parameters", ()) if parameter["in"] == "query"]
        if message := unknown_parameter_message(request.query_params, accepted):
            raise Problem(422, message)


_NeedsWrite = Depends(_check_may_write)
_Evidence = Annotated[bool, Query(description="Whether verdicts include the numbers that decided.")]


class _AnyConvertor(Convertor[str]):
    """The rest of a path with slashes and line breaks, which a ``path`` of Starlette may not have."""

    regex = "(?s:.+)"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("any", _AnyConvertor())


class Calls:
    """The calls of a service on its indexes."""

    def __init__(self, indexes: Indexes, writer: Worker, checker: Worker, metrics: Metrics, limits: Limits) -> None:
        self._indexes, self._metrics, self._limits = indexes, metrics, limits
        self._writer, self._checker = writer, checker

    def _check_batch(self, documents: Sequence[bodies.DocumentBody]) -> None:
        if len(documents) > self._limits.max_batch:
            raise Problem(
                413, f"The batch has {len(documents):,} documents; send up to {self._limits.max_batch:,} at a time"
            )

    async def enter(
        self,
        request: Request,
        name: str,
        body: bodies.DocumentsBody,
        mode: Annotated[
            Literal["enter", "check"], Query(description="check: return the verdicts without entering anything.")
        ] = "enter",
        evidence: _Evidence = False,
    ) -> Response:
        """Judge documents in their order and enter them, or only check them.

        A verdict is on the disk before it is answered. A repeated id with the same text gets the stored verdict; with
        another text it is refused, and the stored verdict is returned. Each document has its own status; the status of
        a single document is also that of the answer.
        """
        self._check_batch(body.documents)
        if mode == "enter":
            await _check_may_write(request)
        named = self._indexes.get(name)
        parsed: list[Document | str] = []
        for item in body.documents:
            try:
                parsed.append(_document(item.id, item))
            except InputError as error:
                parsed.append(str(error))
        documents = [document for document in parsed if isinstance(document, Document)]
        worker = self._writer if mode == "enter" else self._checker
        results = await worker.judge(named, documents) if documents else []
        if mode == "enter":
            self._metrics.count_verdicts(name, (result.verdict for result in results if result.status == 201))
        remaining = iter(results)
        items: list[dict[str, Any]] = [
            {"id": document.id, "status": 422, "verdict": None, "detail": entry}
            if isinstance(entry, str)
            else _item(next(remaining), evidence=evidence)
            for document, entry in zip(body.documents, parsed, strict=True)
        ]
        if len(items) == 1 and items[0]["status"] >= 400:
            (fields,) = items
            raise Problem(fields.pop("status"), fields.pop("detail"), **fields)
        return _json_response({"documents": items}, 201 if len(items) == 1 and items[0]["status"] == 201 else 200)

    def document(self, name: str, id: str, evidence: _Evidence = False) -> Response:
        """Return a document and its verdict."""
        named = self._indexes.get(name)
        verdict = named.verdict_of(id)
        answer = {"id": id, "verdict": _verdict(verdict, evidence=evidence), "held": id in named.index}
        way_out = f"read the store itself, or start the service with {option('--max-answer', 'max_answer')}"
        return self._whole_answer(answer | {"text": named.text_of(id)}, way_out)

    async def replace(
        self,
        name: str,
        id: str,
        body: bodies.DocumentText,
        versions: Annotated[
            Literal["replace", "keep", "refuse"],
            Query(
                description="If the id belongs to another text: replace forgets the old document; keep judges the new "
                "one as a version, with ~2, ~3... at the end of its id; refuse answers 409."
            ),
        ] = "replace",
        evidence: _Evidence = False,
    ) -> Response:
        """Enter a document under this id, in place of one with another text unless ``versions`` says otherwise."""
        named, document = self._indexes.get(name), _document(id, body)

        def put_document() -> JudgedResult:
            (result,) = enter_documents(named, [document])
            if result.status != 409 or versions == "refuse":
                return result
            if versions == "replace":
                return JudgedResult(named.index.replace(document), 201)
            verdict = named.index.add(document)
            return JudgedResult(verdict, 200 if verdict.known else 201)

        result: JudgedResult = await self._writer.run(put_document)
        self._metrics.count_verdicts(name, [result.verdict] if result.status == 201 else [])
        item = _item(result, evidence=evidence)
        if result.status == 409:
            raise Problem(item.pop("status"), item.pop("detail"), **item)
        return _json_response(item, result.status)

    async def forget(self, name: str, id: str) -> Response:
        """Remove a document, its text and its verdict. Its id is free again."""
        named = self._indexes.get(name)
        named.verdict_of(id)
        await self._writer.run(lambda: named.index.forget(id))
        return Response(status_code=204)

    async def release(
        self, name: str, id: str, body: bodies.ReleaseBody | None = None, evidence: _Evidence = False
    ) -> Response:
        """Release a stopped document: it is an original from now on, and its copies are stopped."""
        named, body = self._indexes.get(name), body or bodies.ReleaseBody()
        named.verdict_of(id)
        try:
            named.reader.stopped_document(id)
        except InputError as error:
            raise Problem(409, str(error), id=id) from None
        document = id if body.text is None else Document(id, body.text, title=body.title)
        by = body.by
        verdict = await self._writer.run(lambda: named.index.release(document, by))
        return _json_response(_item(JudgedResult(verdict, 200), evidence=evidence) | {"detail": ""})

    async def query(self, name: str, body: bodies.QueryBody) -> Response:
        """Return the documents in the window that a text matches, the most similar first; nothing is entered."""
        named, document = self._indexes.get(name), _document("query", body)
        # One query at a time, because many threads at the lock of the index would delay the writer.
        rows = await self._checker.run(lambda: named.index.query(document, body.k))
        similar = self._fitting(row._asdict() for row in rows)
        return _json_response({"similar": similar, "truncated": len(similar) < len(rows)})

    def _fitting(self, entries: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the first entries of an answer, as many as its limit of bytes allows, and at least one."""
        found, size = list[dict[str, Any]](), _FRAME_BYTES
        for entry in entries:
            size += len(_encode_json(entry)) + 1
            if found and size > self._limits.max_answer:
                break
            found.append(entry)
        return found

    def _whole_answer(self, content: Any, way_out: str) -> Response:
        """Return an answer that makes sense only as a whole; ``Problem`` if it is larger than the limit."""
        # Piece by piece, because an answer that is too large may not fit into memory.
        parts, size = list[str](), 0
        for part in json.JSONEncoder(separators=(",", ":")).iterencode(content):
            parts.append(part)
            size += len(part)
            if size > self._limits.max_answer:
                raise Problem(413, f"The answer is larger than {self._limits.max_answer:,} bytes; {way_out}")
        return Response("".join(parts), media_type="application/json")

    def _record(self, named: NamedIndex, side: bodies.Side) -> Record:
        if (side.text is None) == (side.id is None):
            raise Problem(422, "A side is a text or the id of a document: give one of the two")
        if side.id is None:
            document = Document("side", side.text or "", side.timestamp, title=side.title)
            moment = NO_TIME if document.microseconds is None else document.microseconds
            return Record(document.text, document.title, moment)
        named.verdict_of(side.id)
        record = named.record_of(side.id)
        if record is None:
            raise Problem(404, "The text of this document is no longer kept; give the text itself", id=side.id)
        return record

    def explain(self, body: bodies.ExplainBody) -> Response:
        """Explain why two texts match or not: what they share, and what would change the verdict."""
        index = (named := self._indexes.get(body.index)).index
        left, right = (self._record(named, side) for side in (body.left, body.right))
        records = Records(
            [left.text, right.text], [left.title or None, right.title or None], np.array([left.time, right.time])
        )
        explanation = explain_texts(
            left.text, right.text, index.recipe, index.sample, classifier=index.classifier, records=records
        )
        return self._whole_answer(explanation.as_dict(), "send shorter texts")

    def pairs(self, body: bodies.PairsBody) -> Response:
        """Return the pairs of documents that match; nothing is entered.

        413 if the answer would be too large: with n equal documents it has n (n - 1) / 2 pairs.
        """
        self._check_batch(body.documents)
        index = self._indexes.get(body.index).index
        documents = [_document(item.id, item) for item in body.documents]
        if len({document.id for document in documents}) < len(documents):
            raise Problem(422, "Two documents have the same id; give each its own id")
        if not documents:
            return _json_response({"pairs": []})
        columns = {name: [getattr(document, name) for document in documents] for name in ("id", "text", "title")}
        times = pa.array([document.microseconds for document in documents], pa.timestamp("us", "UTC"))
        corpus = corpus_of(columns | {"time": times}, text_column="text", id_column="id")
        classifier = index.classifier and replace(index.classifier, title_column="title", time_column="time")
        recipe = index.recipe.changed(keep="first")
        result = run(corpus, recipe, classifier=classifier, pairs_per_document=None, threads=1)
        # The ids repeat in each pair, so the answer may be a thousand times larger than the request.
        encoded, size = list[str](), _FRAME_BYTES
        for pair in result.pairs:
            encoded.append(_encode_json({"left": pair.left, "right": pair.right, "similarity": pair.similarity}))
            size += len(encoded[-1]) + 1
            if size > self._limits.max_answer:
                raise Problem(
                    413,
                    f"The answer, with {len(result.pairs):,} pairs, is larger than {self._limits.max_answer:,} bytes; "
                    "send fewer documents, or shorter ids",
                )
        return Response(f'{{"pairs":[{",".join(encoded)}]}}', media_type="application/json")

    def stopped(
        self,
        name: str,
        since: Annotated[
            str | None, Query(description=f"Only documents judged at or after this time: {TIME_FORMS}.")
        ] = None,
        cursor: Annotated[
            str | None, Query(description="The cursor of the previous answer.", pattern=r"^\d{1,18}$")
        ] = None,
        limit: Annotated[int, Query(ge=1, le=1000, description="The most documents to return.")] = 100,
        evidence: _Evidence = False,
    ) -> Response:
        """Return the stopped documents with their verdicts, in the order of their arrival."""
        start = float("-inf")
        if since is not None:
            moment = microseconds_of(since)
            if moment is None:
                raise Problem(422, f"since {since[:60]!r} is not a time; give {TIME_FORMS}")
            start = moment / 1e6
        reader = self._indexes.get(name).reader
        rows = list(islice(reader.stopped_documents(start, after=-1 if cursor is None else int(cursor)), limit))
        items = self._fitting({"id": row.id, **_verdict(row.verdict, evidence=evidence)} for row in rows)
        # A page ends where the answer would be too large; the next one continues there.
        is_last = len(items) == len(rows) < limit
        return _json_response({"stopped": items, "cursor": None if is_last else str(rows[len(items) - 1].serial)})

    def indexes(self) -> list[dict[str, Any]]:
        """Return all indexes."""
        found = []
        for named in self._indexes:
            # Another request may delete it at the same time.
            with suppress(ClosedStore):
                found.append(named.as_dict())
        return found

    def index(self, name: str) -> Response:
        """Return the options and the counts of an index."""
        return _json_response(self._indexes.get(name).as_dict())

    async def make_index(self, name: str, body: bodies.IndexBody) -> Response:
        """Make an index; documents of different indexes are never compared."""
        if body.recipe is not None and body.classifier is not None:
            raise Problem(422, "A recipe and a classifier both decide what matches; give one of the two")
        options = IndexOptions(**dict(body))
        named, is_new = await self._writer.run(lambda: self._indexes.get_or_make(name, options))
        return _json_response(named.as_dict(), 201 if is_new else 200)

    async def delete_index(self, name: str) -> Response:
        """Remove an index and all its documents."""
        await self._writer.run(lambda: self._indexes.delete(name))
        return Response(status_code=204)

    def info(self) -> Response:
        """Return the version, the indexes and the limits."""
        limits = {name: getattr(self._limits, name) for name in Limits.__slots__}
        return _json_response({"name": "neardup", "version": __version__, "indexes": self.indexes(), "limits": limits})

    async def healthy(self) -> Response:
        """Confirm that the service answers."""
        return _json_response({"ok": True})

    async def ready(self) -> Response:
        """Return whether documents can be entered."""
        if self._writer.failure:
            # The disk may have room again.
            store = next(iter(self._indexes)).store
            with suppress(StoreError):
                await self._writer.run(lambda: store.set_state("probe", str(round(time.time()))))
        if self._writer.failure or not self._writer.accepts_work:
            raise Problem(503, self._writer.failure or "The service is stopping")
        return _json_response({"ready": True})

    def metrics(self) -> Response:
        """Return the metrics in the text format of Prometheus."""
        return Response(self._metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


def _item(result: JudgedResult, *, evidence: bool) -> dict[str, Any]:
    verdict = _verdict(result.verdict, evidence=evidence)
    item = {"id": result.verdict.id, "status": result.status, "verdict": verdict}
    if result.status == 409:
        way_out = "take another id, or replace that document with PUT (Client.replace in Python)"
        return item | {"detail": f"This id belongs to another text; {way_out}"}
    return item


def _create_app(
    indexes: Indexes, writer: Worker, checker: Worker, *, tokens: Tokens, limits: Limits, hosts: Collection[str]
) -> ASGIApp:
    api = _bare_api()
    metrics = Metrics(indexes, lambda: guard.waiting_count)
    calls = Calls(indexes, writer, checker, metrics, limits)
    _add_calls(api, calls)
    _add_pages(api, PageAnswers(indexes, metrics), calls, partial(frame, bool(tokens)))
    for kind in (Problem, NeardupError, RequestValidationError, HTTPException, Exception):
        api.add_exception_handler(kind, _answer_error)
    guard = Guard(_FastPath(api, calls), tokens=tokens, max_body=limits.max_body, max_waiting=limits.max_waiting)
    return HostGuard(_TimedApp(guard, metrics), hosts=hosts, headers={"content-security-policy": POLICY, **HEADERS})


def _bare_api() -> FastAPI:
    api = FastAPI(
        title="neardup",
        version=__version__,
        summary="Decides for each document whether it repeats an earlier one.",
        license_info={"name": "Apache-2.0"},
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
        redirect_slashes=False,
        dependencies=[Depends(_check_query)],
    )
    generate = api.openapi

    def openapi() -> dict[str, Any]:
        schema = generate()
        if "ProblemAnswer" not in (schemas := schema["components"]["schemas"]):
            schemas["ProblemAnswer"] = bodies.ProblemAnswer.model_json_schema()
        return schema

    api.openapi = openapi  # type: ignore[method-assign]
    return api


def _add_calls(api: FastAPI, calls: Calls) -> None:
    index, document = "/v1/indexes/{name}", "/v1/indexes/{name}/documents/{id:any}"

    def add(
        method: str, path: str, call: Any, model: Any, *statuses: int, creates: bool = False, **options: Any
    ) -> None:
        created: dict[int | str, dict[str, Any]] = (
            {201: {"model": model, "description": "It is new"}} if creates else {}
        )
        responses = created | _problem_responses(*statuses)
        api.add_api_route(
            path,
            call,
            methods=[method],
            response_model=model,
            responses=responses,
            operation_id=call.__name__,
            **options,
        )

    writes: dict[str, Any] = {"dependencies": [_NeedsWrite]}
    deletes = writes | {"status_code": 204}
    add("POST", f"{index}/documents", calls.enter, bodies.DocumentsAnswer, 403, 404, 409, 422, creates=True)
    # The longer path first, because an id may contain slashes.
    add("POST", f"{document}/release", calls.release, bodies.ItemAnswer, 403, 404, 409, 422, **writes)
    add("GET", document, calls.document, bodies.DocumentAnswer, 404, 422)
    add("PUT", document, calls.replace, bodies.ItemAnswer, 403, 404, 409, 422, creates=True, **writes)
    add("DELETE", document, calls.forget, None, 403, 404, 422, **deletes)
    add("GET", f"{index}/stopped", calls.stopped, bodies.StoppedAnswer, 404, 422)
    add("POST", f"{index}/query", calls.query, bodies.QueryAnswer, 404, 422)
    add("GET", index, calls.index, bodies.IndexAnswer, 404, 422)
    add("PUT", index, calls.make_index, bodies.IndexAnswer, 403, 409, 422, creates=True, **writes)
    add("DELETE", index, calls.delete_index, None, 403, 404, 409, 422, **deletes)
    add("POST", "/v1/explain", calls.explain, None, 404, 422)
    add("POST", "/v1/pairs", calls.pairs, bodies.PairsAnswer, 404, 422)
    add("GET", "/info", calls.info, bodies.InfoAnswer)
    add("GET", "/readyz", calls.ready, None)
    add("GET", "/metrics", calls.metrics, None, response_class=Response)
    add("GET", "/healthz", calls.healthy, None)


def _add_pages(api: FastAPI, page: PageAnswers, calls: Calls, frame: Callable[[], str]) -> None:
    pages: Mapping[str, Any] = {"/": frame, "/docs": lambda: calls_page(api.openapi())}
    for path, render in pages.items():
        api.add_api_route(path, _page_endpoint(render), include_in_schema=False, methods=["GET"])
    for answer in (page.similar, page.stopped, page.found, page.flow):
        api.add_api_route(f"/page/{answer.__name__}", answer, include_in_schema=False, methods=["POST"])

    async def release(body: PageRelease) -> Response:
        return await calls.release(body.index, body.id, bodies.ReleaseBody(by=body.by))

    # Browsers remove "." and ".." from every path, so the page sends ids in the body.
    api.add_api_route("/page/release", release, include_in_schema=False, methods=["POST"], dependencies=[_NeedsWrite])


def _page_endpoint(render: Callable[[], str]) -> Any:
    def answer() -> HTMLResponse:
        # The page has its own policy, except for frames.
        return HTMLResponse(render(), headers={"content-security-policy": "frame-ancestors 'none'"})

    return answer


def _problem_of(request: Request, error: Exception) -> Problem:
    if isinstance(error, Problem):
        return error
    if isinstance(error, ClosedStore):
        return Problem(404, "This index was deleted before the request was answered; PUT /v1/indexes/{name} makes one")
    if isinstance(error, NeardupError):
        return Problem(
            503 if isinstance(error, StoreError) else 404 if isinstance(error, UnknownDocument) else 422, str(error)
        )
    if isinstance(error, RequestValidationError):
        return Problem(422, request_error_message(error.errors()[0], request.scope["endpoint"]))
    if isinstance(error, HTTPException):
        return Problem(error.status_code, _FRAMEWORK_MESSAGES.get(error.status_code, str(error.detail)))
    _log.error("%s %s", request.method, request.scope.get("path"), exc_info=error)
    return Problem(500, "The service failed; its log has the details")


async def _answer_error(request: Request, error: Exception) -> Response:
    answer = _problem_of(request, error).response()
    answer.headers.update(getattr(error, "headers", None) or {})
    if answer.status_code == 405:
        # The router names the methods of the first call at this path only.
        routes = [route for route in request.app.routes if route.matches(request.scope)[0] != Match.NONE]
        answer.headers["allow"] = ", ".join(sorted({method for route in routes for method in route.methods or ()}))
    return answer


class _FastPath:
    """An application that answers a valid request to enter or check documents without FastAPI.

    Its routes and dependencies take several times as long as a verdict. Any other request goes on to FastAPI, which
    explains what is wrong with it.
    """

    def __init__(self, api: FastAPI, calls: Calls) -> None:
        self._api, self._calls = api, calls
        self._route = next(route for route in api.routes if getattr(route, "endpoint", None) == calls.enter)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = _DOCUMENTS_PATH.fullmatch(scope["path"]) if scope["method"] == "POST" else None
        query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)) if path else {}
        mode, evidence = query.pop("mode", "enter"), _BOOLEANS.get(query.pop("evidence", "false"))
        if path is None or query or mode not in ("enter", "check") or evidence is None:
            await self._api(scope, receive, send)
            return
        try:
            body = bodies.DocumentsBody.model_validate_json(scope["body"])
        except ValidationError:
            await self._api(scope, receive, send)
            return
        scope["route"], request = self._route, Request(scope)
        try:
            answer = await self._calls.enter(request, path[1], body, mode, evidence)
        except Exception as error:
            answer = await _answer_error(request, error)
        await answer(scope, receive, send)


class _TimedApp:
    """An application with metrics of its answers: status and time."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begin, status = time.perf_counter(), 500

        async def record_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, record_status)
        finally:
            route = scope.get("route")
            path = getattr(route, "path", "other").replace(":any", "")
            # A caller may invent methods, which must not add metrics.
            call = f"{scope['method']} {path}" if route is not None else "other"
            self._metrics.count_request(call, status, time.perf_counter() - begin)


class Service:
    """A service on this machine, which runs within a ``with`` block.

    On leaving, it accepts no more requests, answers those that it accepted, and closes its stores in order.

    ``store`` and ``options`` are those of the index ``main``; port 0 means any free port; ``hosts`` are further names
    that it answers to, such as that of a proxy in front of it; without ``tokens``, everybody who can reach it may call;
    ``classifiers`` is a folder of classifiers for further indexes. Raises ``RecipeError`` if other machines could reach
    it without a token, or it has no name, and ``NeardupError`` if a store cannot be used, or the port is taken.
    """

    def __init__(
        self,
        store: str,
        options: IndexOptions = IndexOptions(),  # noqa: B008 - it is immutable
        *,
        host: str = LOOPBACK,
        port: int = 0,
        hosts: Sequence[str] = (),
        tokens: Tokens = Tokens(),  # noqa: B008
        limits: Limits = Limits(),  # noqa: B008
        classifiers: str | None = None,
    ) -> None:
        if not is_loopback(host) and not tokens:
            raise RecipeError(
                f"{option('--host')} {host} lets other machines in, and anybody there could write: give "
                f"{option('--token-file FILE', 'tokens')}, or stay on {LOOPBACK}"
            )
        is_wildcard = host in ("0.0.0.0", "::")  # noqa: S104 - refused without names
        if is_wildcard and not hosts:
            raise RecipeError(
                f"{option('--host')} {host} is no name that callers use; give theirs with "
                f"{option('--allow-host NAME', 'hosts')}"
            )
        host_names = [f"[{host}]" if ":" in host else host] if not is_wildcard else []
        names = {name.lower() for name in (*LOOPBACK_NAMES, *host_names, *hosts)}
        self._stack = ExitStack()
        with ExitStack() as stack:
            # First: if the port is not available, no store is created.
            sockets = listening_sockets(host, port)
            for one in sockets:
                stack.callback(one.close)
            limits = replace(limits, max_indexes=min(limits.max_indexes, most_indexes()))
            self.indexes = Indexes(store, options, classifiers=classifiers, max_indexes=limits.max_indexes)
            stack.callback(self.indexes.close)
            writer, checker = Worker(enter_documents), Worker(check_documents)
            stack.callback(writer.close)
            stack.callback(checker.close)
            app = _create_app(self.indexes, writer, checker, tokens=tokens, limits=limits, hosts=names)
            self._server = Server(app, host=host, sockets=sockets, grace=_GRACE_S)
            self._stack = stack.pop_all()

    @property
    def address(self) -> str:
        """Its URL."""
        return self._server.address

    @property
    def running(self) -> bool:
        """Whether it answers requests."""
        return self._server.running

    def __enter__(self) -> Self:
        try:
            self._stack.enter_context(self._server)
            self.indexes.record_address(self.address)
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stack.close()
