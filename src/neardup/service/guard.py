"""Access to the service, its limits, and repeated answers."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from neardup.errors import InputError, quoted
from neardup.files import open_file
from neardup.service.refusals import Problem

#: Seconds within which the body of a request must arrive.
_BODY_TIMEOUT_S = 30.0
#: The most bytes of all bodies together, and the number of largest bodies that always fit.
_MAX_TOTAL_BODIES, _MIN_LARGE_BODIES = 256 << 20, 4
#: The most answers stored for an ``Idempotency-Key``, and their most bytes; the oldest are dropped first.
_MAX_ANSWERS, _MAX_ANSWER_BYTES = 10_000, 64 << 20
#: The fewest characters of a token, and the most of a key.
_MIN_TOKEN_LENGTH, _MAX_KEY_LENGTH = 16, 255
#: Query parameters in which callers send a token by mistake.
_SECRET_PARAMETERS = {"token", "access_token", "api_key", "key"}
_PUBLIC_PATHS = {"/", "/healthz", "/readyz", "/docs", "/openapi.json"}


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


@dataclass(slots=True)
class _StoredAnswer:
    digest: bytes  #: of the request
    answer: asyncio.Future[list[Message]]
    size: int = 0


class _AnswerCache:
    """The answers to the last requests with an ``Idempotency-Key``, in memory.

    After a restart the documents' own ids, which are on the disk, give the same answers.
    """

    def __init__(self) -> None:
        self._stored: OrderedDict[tuple[str, str], _StoredAnswer] = OrderedDict()
        self._bytes = 0

    async def answer(self, key: tuple[str, str], digest: bytes, run: Callable[[Send], Any], send: Send) -> None:
        """Answer a request by ``run``, or repeat the stored answer; ``key`` is the caller's token and the key.

        Raises ``Problem`` if another request came with that key.
        """
        stored = self._stored.get(key)
        if stored is None:
            await self._answer_first(key, digest, run, send)
            return
        if stored.digest != digest:
            raise Problem(422, f"Idempotency-Key {quoted(key[1])} came with another request before; take a new key")
        messages = await asyncio.shield(stored.answer)
        if not messages:
            raise Problem(503, f"The first request with Idempotency-Key {quoted(key[1])} was not answered; ask again")
        for message in messages:
            await send(message)

    async def _answer_first(self, key: tuple[str, str], digest: bytes, run: Callable[[Send], Any], send: Send) -> None:
        messages: list[Message] = []

        async def record(message: Message) -> None:
            messages.append(message)
            await send(message)

        stored = self._stored[key] = _StoredAnswer(digest, asyncio.get_running_loop().create_future())
        try:
            await run(record)
        finally:
            stored.answer.set_result(messages)
            status = messages[0]["status"] if messages else 500
            # Other answers may have displaced it meanwhile.
            is_stored = self._stored.get(key) is stored
            if is_stored and (status >= 500 or status == 429):
                del self._stored[key]
            elif is_stored:
                stored.size = sum(len(message.get("body", b"")) for message in messages) + 256
                self._bytes += stored.size
                while len(self._stored) > _MAX_ANSWERS or self._bytes > _MAX_ANSWER_BYTES:
                    self._bytes -= self._stored.popitem(last=False)[1].size


class Guard:
    """An application behind checks of the caller, the origin and the size of a request.

    The scope of the application has ``rights``, which is ``write`` or ``read``, and the whole ``body``.
    """

    def __init__(self, app: ASGIApp, *, tokens: Tokens, max_body: int, max_waiting: int) -> None:
        self._app, self._tokens, self._max_body, self._max_waiting = app, tokens, max_body, max_waiting
        self.waiting_count = 0
        self._body_bytes, self._max_total_bytes = 0, max(_MAX_TOTAL_BODIES, _MIN_LARGE_BODIES * max_body)
        self._answers = _AnswerCache()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        body = bytearray()
        try:
            token = self._check(scope, headers)
            if scope["method"] not in ("GET", "HEAD"):
                await self._read_body(body, receive)
            scope["body"] = bytes(body)
            await self._answer_or_refuse(scope, headers, token, receive, send)
        except Problem as problem:
            await problem.response()(scope, receive, send)
        finally:
            self._body_bytes -= len(body)

    def _check(self, scope: Scope, headers: dict[str, str]) -> str:
        """Check the origin and the rights of a request, and return its token."""
        path, method = scope["path"], scope["method"]
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
        return token

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
        if length.isdecimal() and (len(length) > 18 or int(length) > self._max_body):
            raise self._too_large()

    def _too_large(self) -> Problem:
        return Problem(413, f"The body is larger than {self._max_body:,} bytes; send fewer documents at a time")

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
                    if len(body) > self._max_body:
                        raise self._too_large()
                    if self._body_bytes > self._max_total_bytes:
                        raise Problem(429, "The bodies of all requests together are too large; ask again in a moment")
        except TimeoutError:
            raise Problem(408, f"The body did not come within {_BODY_TIMEOUT_S:g} s; send the request again") from None

    async def _answer_or_refuse(
        self, scope: Scope, headers: dict[str, str], token: str, receive: Receive, send: Send
    ) -> None:
        """Answer a request whose body has arrived, unless too many are waiting."""
        is_counted = scope["path"].startswith("/v1/")
        if is_counted and self.waiting_count >= self._max_waiting:
            raise Problem(429, f"{self.waiting_count:,} requests are waiting already; ask again in a moment")
        messages: list[Message] = [{"type": "http.request", "body": scope["body"], "more_body": False}]

        async def replay_body() -> Message:
            return messages.pop() if messages else await receive()

        self.waiting_count += is_counted
        try:
            key = headers.get("idempotency-key")
            if key is None or scope["method"] in ("GET", "HEAD"):
                await self._app(scope, replay_body, send)
                return
            if not 0 < len(key) <= _MAX_KEY_LENGTH:
                raise Problem(422, f"Idempotency-Key has {len(key)} characters; give it 1 to {_MAX_KEY_LENGTH}")
            request_parts = [scope["method"].encode(), scope["raw_path"], scope["query_string"], scope["body"]]
            digest = hashlib.blake2b(b"\0".join(request_parts), digest_size=16).digest()
            await self._answers.answer((token, key), digest, lambda send: self._app(scope, replay_body, send), send)
        finally:
            self.waiting_count -= is_counted
