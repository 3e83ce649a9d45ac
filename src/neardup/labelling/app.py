"""The page of labels: who may see it, which is this machine by a link that works once, and what it answers."""

from __future__ import annotations

import getpass
import secrets
import threading
from collections.abc import Awaitable, Callable, Sequence
from importlib.resources import files
from typing import Annotated, Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from neardup.errors import NeardupError
from neardup.labelling.session import Session
from neardup.service.server import HEADERS, LOOPBACK_NAMES, Confined

#: The largest request that is read.
LARGEST_BODY = 64 << 10
#: The page may load its own three files and talk to its own server; nothing else. What becomes markup goes through its
#: one policy: the two texts, as the server escaped them.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types pair"
)
_FILES = {
    "/": (("labelling/page/index.html",), "text/html"),
    "/page.css": (("pages/marks.css", "labelling/page/page.css"), "text/css"),
    "/page.js": (("labelling/page/page.js",), "text/javascript"),
}
#: What a browser shows that may not see the page; its style would be refused, too.
_NO_PAGE = (
    '<!DOCTYPE html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    '<meta name="color-scheme" content="light dark"><title>neardup label</title><h1>neardup</h1><p>{}</p></html>'
)

Handler = Callable[[Request], Awaitable[Response]]


class Keys:
    """Tokens that open the page once each, and the cookies that they are exchanged for."""

    def __init__(self, used: Callable[[], None] = lambda: None) -> None:
        self._lock = threading.Lock()
        self._used = used
        self._tokens: list[str] = []
        self._cookies: list[str] = []
        #: Cookies are shared by all ports of a machine, so each server has a name of its own.
        self.cookie = f"neardup-{secrets.token_hex(4)}"
        self.first = self.mint()

    def mint(self) -> str:
        """Return a new token."""
        with self._lock:
            self._tokens.append(secrets.token_urlsafe(24))
            return self._tokens[-1]

    def exchange(self, token: str) -> str | None:
        """Return a cookie's value for a token, which is worth nothing afterwards; None if it is worth nothing now."""
        with self._lock:
            found = _match(token, self._tokens)
            if found is None:
                return None
            self._tokens.remove(found)
            self._cookies.append(secrets.token_urlsafe(32))
            cookie = self._cookies[-1]
        self._used()
        return cookie

    def knows(self, cookie: str) -> bool:
        """Return whether the cookie came from here."""
        with self._lock:
            return _match(cookie, self._cookies) is not None


def _match(given: str, secret: list[str]) -> str | None:
    written = given.encode("utf-8", "replace")
    return next((one for one in secret if secrets.compare_digest(one.encode(), written)), None)


class _From(BaseModel):
    """What every labeller's request says."""

    labeller: str


class _Entry(BaseModel):
    """Asks what to show; without a labeller, whether a name is to be asked for."""

    labeller: str | None = None


class _Judged(_From):
    """An answer to a pair."""

    pair: tuple[str, str]
    answer: str
    seconds: Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0)] | None = None


def app_of(session: Session, keys: Keys) -> FastAPI:
    """Return the application that shows a session."""
    # No descriptions of itself: nobody but the page talks to it.
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    for path, (names, kind) in _FILES.items():
        app.add_route(path, _file(names, kind), methods=["GET"])
    _add_actions(app, session)
    _add_errors(app)

    @app.middleware("http")
    async def authenticate(request: Request, answer: Handler) -> Response:
        refused, cookie = _refusal(request), None
        if refused is None and not keys.knows(request.cookies.get(keys.cookie, "")):
            token = request.query_params.get("token", "") if request.url.path == "/" else ""
            cookie = keys.exchange(token) if token else None
            if cookie is None:
                refused = 403, "This page is opened by a link that works once; take a new one from the terminal."
        if refused is None:
            response = await answer(request)
        elif request.url.path == "/":
            response = HTMLResponse(_NO_PAGE.format(refused[1]), refused[0])
        else:
            response = PlainTextResponse(refused[1], refused[0])
        if cookie is not None:
            response.set_cookie(keys.cookie, cookie, httponly=True, samesite="strict")
        return response

    app.add_middleware(Confined, hosts=LOOPBACK_NAMES, headers={"content-security-policy": POLICY, **HEADERS})
    return app


def _refusal(request: Request) -> tuple[int, str] | None:
    """Return a status and a sentence for a request that the page itself did not make, or that is too large."""
    headers = request.headers
    # A link with a token may stand anywhere; all else is asked for by the page.
    if request.url.path != "/" and headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return 403, "This page takes requests from itself only."
    if request.method == "POST":
        # The cookie alone does not say so: a page from another port of this machine is the same site.
        if headers.get("origin") != f"http://{headers.get('host')}":
            return 403, "This page takes answers from itself only."
        if headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return 415, "This page takes JSON only."
        length = headers.get("content-length", "")
        if not length.isdecimal() or len(length) > len(str(LARGEST_BODY)) or int(length) > LARGEST_BODY:
            return 413, f"This page takes requests of up to {LARGEST_BODY >> 10} KB that say their length."
    return None


def _file(names: Sequence[str], kind: str) -> Handler:
    content = b"".join(files("neardup").joinpath(name).read_bytes() for name in names)

    async def give(request: Request) -> Response:
        return Response(content, media_type=kind)

    return give


def _add_actions(app: FastAPI, session: Session) -> None:
    """Add what the page asks for."""

    @app.post("/api/state")
    def state(sent: _Entry) -> JSONResponse:
        name = sent.labeller or session.labeller
        if name is None:
            return JSONResponse({"labeller": None, "suggested": _user(), "heading": session.heading})
        return JSONResponse(session.state(name))

    @app.post("/api/answer")
    def answer(sent: _Judged) -> JSONResponse:
        return JSONResponse(session.answer(sent.labeller, sent.pair, sent.answer, sent.seconds))

    @app.post("/api/undo")
    def undo(sent: _From) -> JSONResponse:
        return JSONResponse(session.undo(sent.labeller))

    @app.post("/api/finish")
    def finish(sent: _From) -> JSONResponse:
        session.finish(sent.labeller)
        return JSONResponse({"ended": session.finished.is_set()})


def _add_errors(app: FastAPI) -> None:
    """Answer what goes wrong with a status and a sentence."""

    @app.exception_handler(NeardupError)
    def refuse(request: Request, error: NeardupError) -> JSONResponse:
        return _error(400, str(error))

    @app.exception_handler(RequestValidationError)
    def misread(request: Request, error: RequestValidationError) -> JSONResponse:
        first: dict[str, Any] = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"][1:] if isinstance(part, str)) or "request"
        return _error(422, f"The {where} cannot be used: {first['msg']}.")

    @app.exception_handler(HTTPException)
    def fail(request: Request, error: HTTPException) -> JSONResponse:
        return _error(error.status_code, f"{error.detail}.")


def _error(status: int, sentence: str) -> JSONResponse:
    return JSONResponse({"error": sentence}, status)


def _user() -> str:
    """Return what the system calls the user."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return ""
