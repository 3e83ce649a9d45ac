"""The web application of the labelling page: its access control and its requests."""

from __future__ import annotations

import getpass
import secrets
import threading
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from importlib.resources import files
from typing import Annotated, Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from neardup.errors import NeardupError
from neardup.labelling.session import Session
from neardup.service.server import HEADERS, LOOPBACK_NAMES, has_own_host

#: The largest request body in bytes.
MAX_BODY = 64 << 10
#: The page may load its own three files and talk to its own server, nothing else. Only its one policy creates markup:
#: that of the two texts, which the server has escaped.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types pair"
)
_FILES = {
    "/": (("labelling/page/index.html",), "text/html"),
    "/page.css": (("pages/marks.css", "labelling/page/page.css"), "text/css"),
    "/page.js": (("labelling/page/page.js",), "text/javascript"),
}
#: The page for a browser without access; it has no style, since the policy would refuse it.
_NO_PAGE = (
    '<!DOCTYPE html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    '<meta name="color-scheme" content="light dark"><title>neardup label</title><h1>neardup</h1><p>{}</p></html>'
)

Handler = Callable[[Request], Awaitable[Response]]


class PageAccess:
    """Tokens that open the page once each, and the cookies that the server gives for them."""

    def __init__(self, on_token_used: Callable[[], None] = lambda: None) -> None:
        self._lock = threading.Lock()
        self._on_token_used = on_token_used
        self._tokens: list[str] = []
        self._cookies: list[str] = []
        #: All ports of a machine share cookies, so each server uses its own name.
        self.cookie_name = f"neardup-{secrets.token_hex(4)}"
        self.first_token = self.new_token()

    def new_token(self) -> str:
        """Return a new token."""
        with self._lock:
            self._tokens.append(secrets.token_urlsafe(24))
            return self._tokens[-1]

    def exchange(self, token: str) -> str | None:
        """Return the value of a cookie for a token, and invalidate the token; None if it is not valid."""
        with self._lock:
            match = _match(token, self._tokens)
            if match is None:
                return None
            self._tokens.remove(match)
            self._cookies.append(secrets.token_urlsafe(32))
            cookie = self._cookies[-1]
        self._on_token_used()
        return cookie

    def is_valid(self, cookie: str) -> bool:
        """Return whether the cookie comes from this server."""
        with self._lock:
            return _match(cookie, self._cookies) is not None


def _match(value: str, valid: list[str]) -> str | None:
    encoded = value.encode("utf-8", "replace")
    return next((entry for entry in valid if secrets.compare_digest(entry.encode(), encoded)), None)


class _HostGuard:
    """An application that answers only to its own host names, and adds headers to every answer.

    Names and headers are in lower case, names without a port; a header that an answer already has stays.
    """

    def __init__(self, app: ASGIApp, *, hosts: Collection[str], headers: Mapping[str, str]) -> None:
        self._app, self._hosts = app, frozenset(hosts)
        self._headers = [(name.encode(), value.encode()) for name, value in headers.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                present = {name for name, _ in message["headers"]}
                added = [header for header in self._headers if header[0] not in present]
                message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        if has_own_host(scope, self._hosts):
            await self._app(scope, receive, send_with_headers)
            return
        refusal = PlainTextResponse("This address does not belong to the service; ask it by a name of its own.\n", 400)
        await refusal(scope, receive, send_with_headers)


class _LabellerBody(BaseModel):
    labeller: str


class _StateBody(BaseModel):
    """The body of a request for the state; without a labeller, the page may have to ask for the name."""

    labeller: str | None = None


class _AnswerBody(_LabellerBody):
    pair: tuple[str, str]
    answer: str
    seconds: Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0)] | None = None


def create_app(session: Session, access: PageAccess) -> FastAPI:
    """Return the application that shows a session."""
    # No OpenAPI pages: only the page uses these paths.
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    for path, (names, kind) in _FILES.items():
        app.add_route(path, _static_file(names, kind), methods=["GET"])
    _add_actions(app, session)
    _add_errors(app)

    @app.middleware("http")
    async def authenticate(request: Request, handle: Handler) -> Response:
        refusal, cookie = _refusal(request), None
        if refusal is None and not access.is_valid(request.cookies.get(access.cookie_name, "")):
            token = request.query_params.get("token", "") if request.url.path == "/" else ""
            cookie = access.exchange(token) if token else None
            if cookie is None:
                refusal = 403, "A link to this page works only once; take a new one from the terminal."
        if refusal is None:
            response = await handle(request)
        elif request.url.path == "/":
            response = HTMLResponse(_NO_PAGE.format(refusal[1]), refusal[0])
        else:
            response = PlainTextResponse(refusal[1], refusal[0])
        if cookie is not None:
            response.set_cookie(access.cookie_name, cookie, httponly=True, samesite="strict")
        return response

    app.add_middleware(_HostGuard, hosts=LOOPBACK_NAMES, headers={"content-security-policy": POLICY, **HEADERS})
    return app


def _refusal(request: Request) -> tuple[int, str] | None:
    """Return a status and a sentence for a request that is too large or does not come from the page; else None."""
    headers = request.headers
    # A link with a token may be anywhere; all other requests come from the page.
    if request.url.path != "/" and headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return 403, "This page accepts requests from itself only."
    if request.method == "POST":
        # The cookie is not enough: a page from another port of this machine is the same site.
        if headers.get("origin") != f"http://{headers.get('host')}":
            return 403, "This page accepts answers from itself only."
        if headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return 415, "This page accepts JSON only."
        length = headers.get("content-length", "")
        if not length.isdecimal() or len(length) > len(str(MAX_BODY)) or int(length) > MAX_BODY:
            return 413, f"This page accepts requests of up to {MAX_BODY >> 10} KB with a Content-Length."
    return None


def _static_file(names: Sequence[str], kind: str) -> Handler:
    content = b"".join(files("neardup").joinpath(name).read_bytes() for name in names)

    async def send_file(request: Request) -> Response:
        return Response(content, media_type=kind)

    return send_file


def _add_actions(app: FastAPI, session: Session) -> None:
    @app.post("/api/state")
    def state(body: _StateBody) -> JSONResponse:
        name = body.labeller or session.labeller
        if name is None:
            return JSONResponse({"labeller": None, "suggested": _user(), "heading": session.heading})
        return JSONResponse(session.state(name))

    @app.post("/api/answer")
    def answer(body: _AnswerBody) -> JSONResponse:
        return JSONResponse(session.answer(body.labeller, body.pair, body.answer, body.seconds))

    @app.post("/api/undo")
    def undo(body: _LabellerBody) -> JSONResponse:
        return JSONResponse(session.undo(body.labeller))

    @app.post("/api/finish")
    def finish(body: _LabellerBody) -> JSONResponse:
        session.finish(body.labeller)
        return JSONResponse({"ended": session.finished.is_set()})


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(NeardupError)
    def neardup_error(request: Request, error: NeardupError) -> JSONResponse:
        return _error(400, str(error))

    @app.exception_handler(RequestValidationError)
    def validation_error(request: Request, error: RequestValidationError) -> JSONResponse:
        first: dict[str, Any] = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"][1:] if isinstance(part, str)) or "request"
        return _error(422, f"The {name} cannot be used: {first['msg']}.")

    @app.exception_handler(HTTPException)
    def http_error(request: Request, error: HTTPException) -> JSONResponse:
        return _error(error.status_code, f"{error.detail}.")


def _error(status: int, sentence: str) -> JSONResponse:
    return JSONResponse({"error": sentence}, status)


def _user() -> str:
    """Return the user's name on this system; empty if it has none, or only that of its administrator."""
    try:
        name = getpass.getuser()
    except (OSError, KeyError, ImportError):
        return ""
    return "" if name in ("root", "admin", "Administrator") else name
