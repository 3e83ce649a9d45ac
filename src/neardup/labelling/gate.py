"""Who may talk to the page: this machine only, with a token that is good for once, then with a cookie."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

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
