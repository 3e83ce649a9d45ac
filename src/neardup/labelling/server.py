"""Who may talk to the page: this machine only, with a token that is good for once, then with a cookie."""

from __future__ import annotations

import contextlib
import getpass
import json
import logging
import math
import os
import secrets
import signal
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from http.cookies import CookieError, SimpleCookie
from importlib.resources import files
from importlib.util import find_spec
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import parse_qs

from neardup.errors import InputError, NeardupError, OutputError
from neardup.labelling.session import Session

if TYPE_CHECKING:
    from fastapi import FastAPI, Request, Response

#: Names under which a browser may ask; any other was made to lead here (DNS rebinding).
_HOSTS = ("127.0.0.1", "localhost")
#: The largest request that is read.
LARGEST_BODY = 64 << 10
_DIGITS = len(str(LARGEST_BODY))
#: The page may load its own three files and talk to its own server; nothing else, and no text may become markup.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
_HEADERS = {
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
}

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class Keys:
    """Tokens that open the page once each, and the cookies that they are exchanged for.

    Parameters
    ----------
    used : callable
        Called when a token was used.
    """

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
        given = token.encode("utf-8", "replace")
        with self._lock:
            found = next((known for known in self._tokens if secrets.compare_digest(known.encode(), given)), None)
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
            given = cookie.encode("utf-8", "replace")
            return any(secrets.compare_digest(known.encode(), given) for known in self._cookies)


class Gate:
    """Lets requests pass that come from a browser of this machine which was given a token.

    Parameters
    ----------
    app : ASGI application
        Who answers them.
    keys : Keys
        Tokens and cookies.
    """

    def __init__(self, app: App, keys: Keys) -> None:
        self._app, self._keys = app, keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        cookie = ""
        wrong = _wrong(scope, headers)
        if not wrong and not self._keys.knows(_cookie(headers, self._keys.cookie)):
            token = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[-1]
            cookie = (self._keys.exchange(token) if scope["path"] == "/" and token else None) or ""
            if not cookie:
                wrong = (403, "This page is opened by a link that is good for once; take a new one from the terminal.")

        async def tell(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                added = _HEADERS | ({"set-cookie": self._set(cookie)} if cookie else {})
                message["headers"] = [
                    *message.get("headers", ()),
                    *((k.encode(), v.encode()) for k, v in added.items()),
                ]
            await send(message)

        if wrong:
            await _refuse(*wrong, tell)
        else:
            await self._app(scope, receive, tell)

    def _set(self, cookie: str) -> str:
        return f"{self._keys.cookie}={cookie}; Path=/; HttpOnly; SameSite=Strict"


def _wrong(scope: Scope, headers: MutableMapping[str, str]) -> tuple[int, str] | None:
    """Return a status and a sentence for a request that is not from this machine's browser, or too large."""
    host = headers.get("host", "")
    if host.rpartition(":")[0] not in _HOSTS and host not in _HOSTS:
        return 421, "This page answers to 127.0.0.1 and localhost only."
    if scope["method"] not in ("GET", "HEAD", "POST"):
        return 405, "This page takes GET and POST only."
    # A link with a token may stand anywhere; all else is asked for by the page.
    if scope["path"] != "/" and headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return 403, "This page takes requests from itself only."
    if scope["method"] == "POST":
        # The cookie alone does not say so: a page from another port of this machine is the same site.
        if headers.get("origin", "") != f"http://{host}":
            return 403, "This page takes answers from itself only."
        if headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return 415, "This page takes JSON only."
        length = headers.get("content-length", "")
        if not length.isdecimal() or len(length) > _DIGITS or int(length) > LARGEST_BODY:
            return 413, f"This page takes requests of up to {LARGEST_BODY >> 10} KB that say their length."
    return None


def _cookie(headers: MutableMapping[str, str], name: str) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return ""
    return "" if found is None else found.value


async def _refuse(status: int, sentence: str, send: Send) -> None:
    body = sentence.encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


_PAGE = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
}

#: Asked by the page: takes what it sent, and gives what it shows.
Action = Callable[[dict[str, Any]], dict[str, Any]]


def app_of(session: Session, keys: Keys, *, link: Callable[[str], str] = str) -> FastAPI:
    """Return the application that shows a session.

    Parameters
    ----------
    session : Session
        Asks and takes answers.
    keys : Keys
        Who may see it.
    link : callable
        Makes a link of a token, for another browser.

    Raises
    ------
    NeardupError
        If FastAPI is not installed.
    """
    check_packages()
    from fastapi import FastAPI

    # No descriptions of itself: nobody but the page talks to it.
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    for path, (name, kind) in _PAGE.items():
        app.add_route(path, _file(name, kind), methods=["GET"])
    actions: dict[str, Action] = {
        "/api/state": lambda sent: _state(session, sent),
        "/api/news": lambda sent: session.news(_text(sent, "labeller")),
        "/api/answer": lambda sent: session.answer(
            _text(sent, "labeller"), _pair(sent), _text(sent, "answer"), _number(sent, "seconds")
        ),
        "/api/undo": lambda sent: session.undo(_text(sent, "labeller")),
        "/api/invite": lambda sent: {"link": link(keys.mint())},
        "/api/finish": lambda sent: _finished(session, sent),
    }
    for path, action in actions.items():
        app.add_route(path, _endpoint(action), methods=["POST"])
    app.add_middleware(Gate, keys=keys)
    return app


def check_packages(*others: str) -> None:
    """Refuse to serve the page where a package is not installed that it needs, or one of others that it is to have.

    Raises
    ------
    NeardupError
        Saying how to get them.
    """
    for name in ("fastapi", "uvicorn", *others):
        if find_spec(name) is None:
            raise NeardupError(f"the page needs {name}, which is not installed; pip install 'neardup[label]' brings it")


def _file(name: str, kind: str) -> Callable[[Request], Any]:
    content = files("neardup.labelling").joinpath("page", name).read_bytes()

    async def give(request: Request) -> Response:
        from fastapi import Response

        return Response(content, media_type=kind)

    return give


def _endpoint(action: Action) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        from fastapi import Response
        from fastapi.concurrency import run_in_threadpool

        status, content = await run_in_threadpool(_done, action, await request.body())
        return Response(content, status_code=status, media_type="application/json")

    return answer


def _done(action: Action, body: bytes) -> tuple[int, bytes]:
    """Return the status and the answer of an action to what was sent."""
    status = 200
    try:
        shown = action(_sent(body))
    except NeardupError as error:
        status, shown = 400, {"error": str(error)}
    return status, json.dumps(shown, ensure_ascii=True).encode()


def _sent(body: bytes) -> dict[str, Any]:
    """Return what was sent; all numbers as floats, which take any number of digits."""
    try:
        sent = json.loads(body, parse_int=float, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise InputError("a request is JSON") from None
    if not isinstance(sent, dict):
        raise InputError("a request is a JSON object")
    return sent


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


def _state(session: Session, sent: dict[str, Any]) -> dict[str, Any]:
    name = sent.get("labeller") or session.labeller
    if name is None:
        return {"labeller": None, "suggested": _user(), "heading": session.heading}
    return session.state(_text({"labeller": name}, "labeller"))


def _user() -> str:
    """Return what the system calls the user."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return ""


def _finished(session: Session, sent: dict[str, Any]) -> dict[str, Any]:
    session.finish(_text(sent, "labeller"))
    return {"ended": session.finished.is_set()}


def _text(sent: dict[str, Any], name: str) -> str:
    if not isinstance(sent.get(name), str):
        raise InputError(f"a request names its {name}")
    return str(sent[name])


def _number(sent: dict[str, Any], name: str) -> float | None:
    value = sent.get(name)
    return value if isinstance(value, float) and math.isfinite(value) else None


def _pair(sent: dict[str, Any]) -> tuple[str, str]:
    pair = sent.get("pair")
    if not (isinstance(pair, list) and len(pair) == 2 and all(isinstance(name, str) for name in pair)):
        raise InputError("a request names the two ids of its pair")
    return pair[0], pair[1]


_HOST = "127.0.0.1"
#: How long a start may take, and a request that is under way at the end.
_START_S, _END_S = 30.0, 3
#: How long a signal may wait.
_LOOK_S = 0.2


class Service:
    """A server of this machine in a thread of its own, from entering the block to leaving it.

    Parameters
    ----------
    session : Session
        What it shows.
    port : int
        Where; 0 for any that is free.
    again : callable
        Told a link for another browser whenever one was used.

    Raises
    ------
    OutputError
        On entering, if the port is taken.
    NeardupError
        If a package is missing.
    """

    def __init__(self, session: Session, *, port: int = 0, again: Callable[[str], None] = lambda link: None) -> None:
        check_packages()
        import uvicorn

        self._keys, self.port = Keys(lambda: again(self.link(self._keys.mint()))), port
        config = uvicorn.Config(
            app_of(session, self._keys, link=self.link),
            host=_HOST,
            port=port,
            log_config=None,
            log_level="error",
            access_log=False,
            server_header=False,
            lifespan="off",
            ws="none",
            timeout_graceful_shutdown=_END_S,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, name="page", daemon=True)

    def _run(self) -> None:
        # Where uvicorn cannot begin, it ends the program.
        with contextlib.suppress(SystemExit):
            self._server.run()

    def link(self, token: str) -> str:
        """Return the link that a token opens."""
        return f"http://{_HOST}:{self.port}/?token={token}"

    @property
    def first_link(self) -> str:
        """The link for the first browser."""
        return self.link(self._keys.first)

    def __enter__(self) -> Self:
        # A port that is taken is written to the log; it is said in a sentence below.
        log = logging.getLogger("uvicorn.error")
        log.disabled = True
        try:
            self._thread.start()
            until = time.monotonic() + _START_S
            while self._thread.is_alive() and not self._server.started and time.monotonic() < until:
                time.sleep(0.01)
        finally:
            log.disabled = False
        if not self._server.started:
            self.__exit__(None, None, None)
            raise OutputError(f"port {self.port} is in use or not yours; name another with --port, or 0 for any")
        self.port = int(self._server.servers[0].sockets[0].getsockname()[1])
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.should_exit = True
        self._thread.join(_END_S + 2)


def serve(
    session: Session,
    *,
    port: int = 0,
    open_browser: bool = True,
    tell: Callable[[str], None] = lambda link: None,
    again: Callable[[str], None] = lambda link: None,
) -> None:
    """Serve a session until it is finished, or Ctrl-C or SIGTERM asks for an end.

    Parameters
    ----------
    session : Session
        What is shown.
    port : int
        Where; 0 for any that is free.
    open_browser : bool
        Whether the user's browser is opened, where there is a screen.
    tell : callable
        Told the link, which opens the page in one browser.
    again : callable
        Told a link for another browser whenever one was used.
    """
    with _signals() as asked, Service(session, port=port, again=again) as service:
        tell(service.first_link)
        if open_browser and _has_screen():
            import webbrowser

            webbrowser.open(service.first_link)
        while not asked and not session.finished.wait(_LOOK_S):
            pass


def _has_screen() -> bool:
    """Return whether a browser would have a window; in a terminal it would take the terminal away."""
    if sys.platform in ("win32", "darwin"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


@contextlib.contextmanager
def _signals() -> Iterator[list[int]]:
    """Give a list that SIGINT and SIGTERM add themselves to; a second one ends the program."""
    asked: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        # Nothing with a lock: what was interrupted may hold it.
        if asked:
            raise KeyboardInterrupt("every label is on the disk")
        asked.append(number)

    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
