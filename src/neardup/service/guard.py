"""Access to the service, and its limits."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from neardup.errors import InputError, quoted
from neardup.files import open_file
from neardup.service.metrics import Metrics
from neardup.service.refusals import Answer, Problem
from neardup.service.server import has_own_host

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

#: Seconds within which the body of a request must arrive.
_BODY_TIMEOUT_S = 30.0
#: The most bytes of all bodies together, and the number of largest bodies that always fit.
_MAX_TOTAL_BODIES, _MIN_LARGE_BODIES = 256 << 20, 4
#: The fewest characters of a token.
_MIN_TOKEN_LENGTH = 16
#: Query parameters in which callers send a token by mistake.
_SECRET_PARAMETERS = {"token", "access_token", "api_key", "key"}
_PUBLIC_PATHS = {"/", "/healthz", "/readyz", "/docs", "/openapi.json"}
#: The beginnings of the paths of calls that are counted as waiting.
_COUNTED_PATHS = ("/v1/", "/page/")


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits on requests."""

    max_body: int = 10_000_000  #: the most bytes of a request
    max_batch: int = 1000  #: the most documents of a request
    max_waiting: int = 200  #: the most requests at a time
    max_answer: int = 64_000_000  #: the most bytes of an answer
    max_indexes: int = 100  #: the most indexes


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of the callers: those that may read, and those that may also write. Without any, everybody may."""

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()

    @classmethod
    def of_file(cls, name: str) -> Tokens:
        """Read tokens from a file of lines like ``read TOKEN`` and ``write TOKEN``, empty lines and # comments.

        Raises ``InputError`` if the file cannot be read, or a line has another form.
        """
        try:
            with open_file(name) as file:
                text = file.read().decode()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise InputError(
                f"token file {name} cannot be read ({reason}); name a file of lines like: write TOKEN"
            ) from None
        found: dict[str, list[str]] = {"read": [], "write": []}
        for number, line in enumerate(text.splitlines(), 1):
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            if len(words) != 2 or words[0] not in found:
                raise InputError(f"token file {name}: line {number} is not like: read TOKEN, or write TOKEN")
            if len(words[1]) < _MIN_TOKEN_LENGTH or not words[1].isascii():
                raise InputError(
                    f"token file {name}: the token in line {number} is shorter than {_MIN_TOKEN_LENGTH} characters, "
                    "or not ASCII; make one with: openssl rand -hex 24"
                )
            found[words[0]].append(words[1])
        if not any(found.values()):
            raise InputError(f"token file {name} holds no token; write a line into it like: write TOKEN")
        return cls(tuple(found["read"]), tuple(found["write"]))

    def __bool__(self) -> bool:
        return bool(self.read or self.write)

    def rights(self, token: str) -> str:
        """Return the right of a token: ``write`` (which includes read), ``read``, or an empty text for none."""
        encoded = token.encode("utf-8", "replace")
        # Compare with all tokens, so that the time reveals nothing.
        found = [
            right
            for right, tokens in (("read", self.read), ("write", self.write))
            for known_token in tokens
            if secrets.compare_digest(known_token.encode(), encoded)
        ]
        return found[-1] if found else ""


class Guard:
    """An application that checks the caller, the origin and the size of a request, and measures the answer.

    ``respond`` answers a request that passed; its scope has ``rights``, which is ``write`` or ``read``, and the whole
    ``body``. It puts the name of the call into the scope as ``call``. ``hosts`` are the names that the service answers
    to, and ``headers`` those of every answer, all in lower case.
    """

    def __init__(
        self,
        respond: Callable[[Scope], Awaitable[Answer]],
        *,
        tokens: Tokens,
        limits: Limits,
        metrics: Metrics,
        hosts: Collection[str],
        headers: Mapping[str, str],
    ) -> None:
        self._respond, self._tokens, self._limits, self._metrics = respond, tokens, limits, metrics
        self._hosts, self._headers = frozenset(hosts), headers
        #: The headers of answers without further ones, by their media type.
        self._encoded = cache(lambda kind: _encode({"content-type": kind, **headers}))
        self._body_bytes, self._max_total_bytes = 0, max(_MAX_TOTAL_BODIES, _MIN_LARGE_BODIES * limits.max_body)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        begin, body, is_counted = time.perf_counter(), bytearray(), False
        try:
            self._check(scope)
            if scope["method"] not in ("GET", "HEAD"):
                await self._read_body(body, receive)
            scope["body"] = bytes(body)
            is_counted = scope["path"].startswith(_COUNTED_PATHS)
            if is_counted and (count := self._metrics.waiting) >= self._limits.max_waiting:
                is_counted = False
                raise Problem(429, f"{count:,} requests are waiting already; ask again in a moment")
            self._metrics.waiting += is_counted
            answer = await self._respond(scope)
        except Problem as problem:
            answer = problem.answer()
        finally:
            self._body_bytes -= len(body)
            self._metrics.waiting -= is_counted
        kind = answer.kind
        headers = (
            _encode({"content-type": kind, **self._headers, **answer.headers})
            if answer.headers
            else self._encoded(kind)
        )
        if answer.status != 204:
            headers = [*headers, (b"content-length", b"%d" % len(answer.body))]
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await send({"type": "http.response.body", "body": answer.body})
        self._metrics.count_request(scope.get("call", "other"), answer.status, time.perf_counter() - begin)

    def _check(self, scope: Scope) -> None:
        """Check the host, the origin and the rights of a request."""
        path, method = scope["path"], scope["method"]
        if not has_own_host(scope, self._hosts):
            raise Problem(400, "This address does not belong to the service; ask it by a name of its own")
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        query = scope["query_string"]
        if query and not _SECRET_PARAMETERS.isdisjoint(
            name.lower() for name, _ in parse_qsl(query.decode("latin-1"), keep_blank_values=True)
        ):
            raise Problem(
                400, "A token in an address ends up in logs; send it as a header: Authorization: Bearer TOKEN"
            )
        if method not in ("GET", "HEAD"):
            own = [f"{scheme}://{headers.get('host')}" for scheme in ("http", "https")]
            is_foreign = headers.get("sec-fetch-site", "none") not in ("same-origin", "none")
            if is_foreign or headers.get("origin") not in (None, *own):
                raise Problem(403, "A page of another site asked for this; only the service's own page may")
            self._check_kind(headers)
        kind, _, token = headers.get("authorization", "").partition(" ")
        rights = "write"
        if self._tokens:
            rights = self._tokens.rights(token.strip()) if kind.lower() == "bearer" else ""
            if not rights and path not in _PUBLIC_PATHS:
                fault = "has no token" if not kind else "has a token that is not known here"
                raise Problem(401, f"The request {fault}; send a header like Authorization: Bearer TOKEN")
        scope["rights"] = rights

    def _check_kind(self, headers: dict[str, str]) -> None:
        kind, _, options = headers.get("content-type", "").lower().partition(";")
        has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
        charset = options.partition("charset=")[2].strip(' "')
        if (has_body or kind) and (kind.strip() != "application/json" or charset not in ("", "utf-8", "utf8")):
            raise Problem(
                415,
                f"Content-Type {quoted(headers.get('content-type', ''))} is not known; send application/json in UTF-8",
            )
        if headers.get("content-encoding", "identity") != "identity":
            raise Problem(
                415, f"Content-Encoding {quoted(headers['content-encoding'])} is not known; send the body as it is"
            )
        length = headers.get("content-length", "")
        if length.isdecimal() and (len(length) > 18 or int(length) > self._limits.max_body):
            raise self._too_large()

    def _too_large(self) -> Problem:
        return Problem(413, f"The body is larger than {self._limits.max_body:,} bytes; send fewer documents at a time")

    async def _read_body(self, body: bytearray, receive: Receive) -> None:
        try:
            async with asyncio.timeout(_BODY_TIMEOUT_S):
                has_more = True
                while has_more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Problem(400, "The caller hung up before the body was there")
                    chunk, has_more = message.get("body", b""), message.get("more_body", False)
                    body += chunk
                    self._body_bytes += len(chunk)
                    if len(body) > self._limits.max_body:
                        raise self._too_large()
                    if self._body_bytes > self._max_total_bytes:
                        raise Problem(429, "The bodies of all requests together are too large; ask again in a moment")
        except TimeoutError:
            raise Problem(408, f"The body did not come within {_BODY_TIMEOUT_S:g} s; send the request again") from None


def _encode(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in headers.items()]
