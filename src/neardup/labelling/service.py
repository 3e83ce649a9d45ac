"""The page's server: what it may ask of a session, as a FastAPI application."""

from __future__ import annotations

import getpass
import json
import math
from collections.abc import Callable
from importlib.resources import files
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from neardup.errors import InputError, NeardupError
from neardup.labelling.gate import Gate, Keys
from neardup.labelling.session import Session

if TYPE_CHECKING:
    from fastapi import FastAPI, Request, Response

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
