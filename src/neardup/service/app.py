"""The service as an application: its calls at their addresses, their description, and their errors."""

from __future__ import annotations

import asyncio
import inspect
import logging
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property, partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, get_type_hints
from urllib.parse import parse_qsl, unquote_to_bytes

import msgspec

from neardup.errors import ClosedStore, NeardupError, RecipeError, StoreError, UnknownDocument, option
from neardup.service import bodies
from neardup.service.calls import Calls, Reply, check_may_write
from neardup.service.guard import Guard, Limits, Tokens
from neardup.service.indexes import Indexes, IndexOptions, most_indexes
from neardup.service.metrics import Metrics
from neardup.service.page import POLICY, PageAnswers, calls_page, frame
from neardup.service.refusals import Answer, Problem, read_body, read_query
from neardup.service.server import HEADERS, LOOPBACK, LOOPBACK_NAMES, Server, is_loopback, listening_sockets
from neardup.service.worker import Worker, check_documents, enter_documents
from neardup.version import __version__

if TYPE_CHECKING:
    from starlette.types import Scope

_log = logging.getLogger("neardup.service")
#: Seconds that running requests have to finish when the service stops.
_GRACE_S = 20
#: The threads for calls that read, and for those that may take long, which must not keep the others waiting.
_READERS, _SLOW_CALLS = 8, 2

_STATUS_DESCRIPTIONS = {
    200: "The answer",
    201: "It is new",
    204: "It is removed",
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
_JSON = "application/json"


class _Call:
    """A call: its address and its function, whose parameters ``body`` and ``query`` have the types of the request.

    ``answer`` is the type of its answer, and ``statuses`` are those besides 200 that only some calls have.
    """

    def __init__(
        self,
        method: str,
        path: str,
        function: Callable[..., Any],
        answer: Any = None,
        *,
        writes: bool = False,
        is_slow: bool = False,
        statuses: tuple[int, ...] = (),
    ) -> None:
        self.method, self.path, self.function, self.answer = method, path, function, answer
        self.name, self.writes, self.is_slow, self.statuses = f"{method} {path}", writes, is_slow, statuses
        hints = get_type_hints(function)
        self.body, self.query, self.takes_rights = hints.get("body"), hints.get("query"), "rights" in hints
        self.is_async = inspect.iscoroutinefunction(function)
        fields = () if self.body is None else msgspec.structs.fields(self.body)
        self.needs_body = any(field.required for field in fields)


class _Api:
    """All calls of a service, found by method and path, and run where they keep no other waiting."""

    def __init__(self, indexes: Indexes, calls: Calls, limits: Limits, *, has_tokens: bool) -> None:
        self._indexes, self._limits, self._has_tokens = indexes, limits, has_tokens
        self._readers, self._slow = ThreadPoolExecutor(_READERS, "reader"), ThreadPoolExecutor(_SLOW_CALLS, "slow")
        index, document, page = "/v1/indexes/{name}", "/v1/indexes/{name}/documents/{id}", PageAnswers(indexes, calls)
        self._calls = [
            _Call("POST", f"{index}/documents", calls.enter, bodies.DocumentsAnswer, statuses=(201, 403, 409)),
            # The longer path first, because an id may contain slashes.
            _Call("POST", f"{document}/release", calls.release, bodies.ItemAnswer, writes=True, statuses=(409,)),
            _Call("GET", document, calls.document, bodies.DocumentAnswer),
            _Call("PUT", document, calls.replace, bodies.ItemAnswer, writes=True, statuses=(201, 409)),
            _Call("DELETE", document, calls.forget, writes=True, statuses=(204,)),
            _Call("GET", f"{index}/stopped", calls.stopped, bodies.StoppedAnswer),
            _Call("POST", f"{index}/query", calls.query, bodies.QueryAnswer),
            _Call("GET", index, calls.index, bodies.IndexAnswer),
            _Call("PUT", index, calls.make_index, bodies.IndexAnswer, writes=True, statuses=(201, 409)),
            _Call("DELETE", index, calls.delete_index, writes=True, statuses=(204, 409)),
            _Call("POST", "/v1/explain", calls.explain, is_slow=True),
            _Call("POST", "/v1/pairs", calls.pairs, bodies.PairsAnswer, is_slow=True),
            _Call("GET", "/info", calls.info, bodies.InfoAnswer),
            _Call("GET", "/readyz", calls.ready),
            _Call("GET", "/metrics", calls.metrics),
            _Call("GET", "/healthz", calls.healthy),
        ]
        described = len(self._calls)
        self._calls += [
            _Call("GET", "/", self._page),
            _Call("GET", "/docs", self._docs),
            _Call("GET", "/openapi.json", self._openapi),
            _Call("POST", "/page/release", page.release, writes=True),
        ]
        for part in (page.similar, page.stopped, page.found, page.flow):
            self._calls.append(_Call("POST", f"/page/{part.__name__}", part, is_slow=True))
        self._described = self._calls[:described]
        self._routes: dict[re.Pattern[str], dict[str, _Call]] = {}
        for call in self._calls:
            pattern = call.path.replace("{name}", "(?P<name>[^/]+)").replace("{id}", "(?P<id>(?s:.+))")
            self._routes.setdefault(re.compile(pattern), {})[call.method] = call

    async def respond(self, scope: Scope) -> Answer:
        """Return the answer to a request that passed the guard."""
        try:
            reply = await self._reply(scope)
            answer = reply.content
            if not isinstance(answer, Answer):
                answer = Answer(b"" if reply.status == 204 else msgspec.json.encode(answer), reply.status)
            if len(answer.body) > self._limits.max_answer:
                raise Problem(413, f"The answer is larger than {self._limits.max_answer:,} bytes; {reply.way_out}")
            return answer
        except Exception as error:
            return self._problem(scope, error).answer()

    async def _reply(self, scope: Scope) -> Reply:
        call, parts = self._find(scope)
        scope["call"] = call.name
        if call.writes:
            check_may_write(scope["rights"])
        # Probes and pages accept any parameter, since callers add one to bypass caches.
        if call.path.startswith("/v1/"):
            text = scope["query_string"].decode("latin-1")
            query = read_query(dict(parse_qsl(text, keep_blank_values=True)) if text else {}, call.query or _NoQuery)
            if call.query is not None:
                parts["query"] = query
        if call.body is not None:
            is_given = call.needs_body or scope["body"]
            parts["body"] = read_body(scope["body"], call.body) if is_given else call.body()
        if call.takes_rights:
            parts["rights"] = scope["rights"]
        if call.is_async:
            reply: Reply = await call.function(**parts)
            return reply
        threads = self._slow if call.is_slow else self._readers
        return await asyncio.get_running_loop().run_in_executor(threads, partial(call.function, **parts))

    def _find(self, scope: Scope) -> tuple[_Call, dict[str, Any]]:
        try:
            path = unquote_to_bytes(scope["raw_path"]).decode()
        except UnicodeDecodeError:
            raise Problem(400, "The address is not UTF-8; encode each character of it as UTF-8, then with %") from None
        allowed: set[str] = set()
        for pattern, routes in self._routes.items():
            if found := pattern.fullmatch(path):
                if call := routes.get(scope["method"]):
                    return call, dict(found.groupdict())
                allowed |= routes.keys()
        if allowed:
            raise Problem(405, "This call has no such method; /docs lists them", allow=", ".join(sorted(allowed)))
        raise Problem(404, "There is no such call; /docs lists them")

    def _problem(self, scope: Scope, error: Exception) -> Problem:
        if isinstance(error, Problem):
            return error
        if isinstance(error, ClosedStore):
            return Problem(
                404, "This index was deleted before the request was answered; PUT /v1/indexes/{name} makes one"
            )
        # As it was sent: a decoded path could write lines of its own.
        asked = scope["method"], scope["raw_path"].decode("latin-1")
        if isinstance(error, StoreError):
            _log.warning("%s %s: %s", *asked, error)
        if isinstance(error, NeardupError):
            status = 503 if isinstance(error, StoreError) else 404 if isinstance(error, UnknownDocument) else 422
            return Problem(status, self._indexes.without_paths(str(error)))
        _log.error("%s %s", *asked, exc_info=error)
        if isinstance(error, OSError):
            return Problem(503, f"The service cannot use its files ({error.strerror}); its log has the details")
        return Problem(500, "The service failed; its log has the details")

    @cached_property
    def description(self) -> dict[str, Any]:
        """The description of all calls in the form of OpenAPI."""
        types = {kind for call in self._described for kind in (call.answer, call.body) if kind is not None}
        by_name = sorted({*types, bodies.ProblemAnswer}, key=lambda kind: kind.__name__)
        _, schemas = msgspec.json.schema_components(by_name, ref_template="#/components/schemas/{name}")
        paths: dict[str, dict[str, Any]] = {}
        for call in self._described:
            operation: dict[str, Any] = {
                "operationId": call.function.__name__,
                "description": inspect.cleandoc(call.function.__doc__ or ""),
                "parameters": _parameters(call),
                "responses": {},
            }
            if call.body is not None:
                operation["requestBody"] = {"content": _content(_JSON, call.body), "required": call.needs_body}
            for status in _statuses(call):
                response: dict[str, Any] = {"description": _STATUS_DESCRIPTIONS[status]}
                if status >= 400:
                    response["content"] = _content("application/problem+json", bodies.ProblemAnswer)
                elif status != 204 and call.path != "/metrics":
                    response["content"] = _content(_JSON, call.answer)
                operation["responses"][str(status)] = response
            paths.setdefault(call.path, {})[call.method.lower()] = operation
        summary = "Decides for each document whether it repeats an earlier one."
        info = {"title": "neardup", "summary": summary, "version": __version__, "license": {"name": "Apache-2.0"}}
        return {"openapi": "3.1.0", "info": info, "paths": paths, "components": {"schemas": schemas}}

    def _openapi(self) -> Reply:
        return Reply(self.description)

    def _docs(self) -> Reply:
        return _page_reply(calls_page(self.description))

    def _page(self) -> Reply:
        return _page_reply(frame(self._has_tokens))

    def close(self) -> None:
        """Start no more calls that wait for a thread."""
        for threads in (self._readers, self._slow):
            threads.shutdown(wait=False, cancel_futures=True)


class _NoQuery(msgspec.Struct, forbid_unknown_fields=True):
    """The query of calls that take none."""


def _page_reply(html: str) -> Reply:
    # The page has its own policy, except for frames.
    return Reply(
        Answer(html.encode(), 200, "text/html; charset=utf-8", {"content-security-policy": "frame-ancestors 'none'"})
    )


def _content(media: str, kind: Any) -> dict[str, Any]:
    return {media: {"schema": {} if kind is None else {"$ref": f"#/components/schemas/{kind.__name__}"}}}


def _statuses(call: _Call) -> list[int]:
    """Return the statuses that a call may answer with."""
    found = {400, 401, 408, 413, 415, 429, 503, *call.statuses}
    if 204 not in call.statuses:
        found.add(200)
    if call.writes:
        found.add(403)
    if call.path.startswith("/v1/"):
        found |= {404, 422}
    return sorted(found)


def _parameters(call: _Call) -> list[dict[str, Any]]:
    """Return the parameters of a call, in the path and in the query."""
    text = {"type": "string"}
    found: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": text} for name in re.findall(r"{(\w+)}", call.path)
    ]
    if call.query is not None:
        _, schemas = msgspec.json.schema_components([call.query])
        for name, schema in schemas[call.query.__name__]["properties"].items():
            description = schema.pop("description")
            found.append({"name": name, "in": "query", "required": False, "schema": schema, "description": description})
    return found


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
            metrics = Metrics(self.indexes)
            calls = Calls(self.indexes, writer, checker, metrics, limits)
            api = _Api(self.indexes, calls, limits, has_tokens=bool(tokens))
            stack.callback(api.close)
            headers = {"content-security-policy": POLICY, **HEADERS}
            guard = Guard(api.respond, tokens=tokens, limits=limits, metrics=metrics, hosts=names, headers=headers)
            self._server = Server(guard, host=host, sockets=sockets, grace=_GRACE_S)
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
