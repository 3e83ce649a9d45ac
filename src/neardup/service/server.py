"""A web server in its own thread, and what its applications check of a request."""

from __future__ import annotations

import ipaddress
import threading
import time
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from neardup.errors import NeardupError, OutputError, option

if TYPE_CHECKING:
    import asyncio

    from starlette.types import ASGIApp, Scope

LOOPBACK = "127.0.0.1"
#: The host names that a browser of this machine may use; any other name points here by DNS rebinding.
LOOPBACK_NAMES = ("127.0.0.1", "localhost")
#: The headers of every answer, besides its content security policy.
HEADERS = {
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
}
#: How long a start may take, and the head of a request, in seconds.
_START_S, _HEAD_S = 30.0, 10.0
#: The most connections that wait to be accepted.
_BACKLOG = 4096


def check_packages(extra: str, *names: str) -> None:
    """Check that the packages of an extra, such as ``serve``, are installed.

    Raises ``NeardupError``, whose message says how to install them.
    """
    users = {"label": "the page needs", "mcp": "the tools need", "client": "the client needs"}
    for name in names:
        if find_spec(name) is None:
            user = users.get(extra, "the service needs")
            raise NeardupError(f"{user} {name}, which is not installed; pip install 'neardup[{extra}]' brings it")


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def host_name(header: str) -> str:
    """Return the name in a ``Host`` header, without its port."""
    name, colon, port = header.rpartition(":")
    return (name if colon and port.isdecimal() else header).lower()


def has_own_host(scope: Scope, hosts: Collection[str]) -> bool:
    """Return whether a request names one of the hosts, and no other."""
    named = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
    return len(named) == 1 and host_name(named[0]) in hosts


class _BufferedTransport:
    """A transport that joins all writes of one turn of the loop, such as the head and body of an answer.

    Separate writes would take two system calls, and wake the caller twice.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> None:
        if not self._parts:
            self._loop.call_soon(self._flush)
        self._parts.append(data)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._parts:
            parts, self._parts = self._parts, []
            self._transport.write(b"".join(parts))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


def _with_head_timeout(kind: type[Any]) -> type[Any]:
    """Return a protocol that drops a connection whose request head takes too long."""

    class HeadTimeoutProtocol(kind):  # type: ignore[misc]
        _deadline: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(_BufferedTransport(transport, self.loop))
            self._wait()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.cycle is None or self.cycle.response_complete:
                self._wait()
            else:
                self._stop()

        def connection_lost(self, error: Exception | None) -> None:
            self._stop()
            super().connection_lost(error)

        def _wait(self) -> None:
            if self._deadline is None:
                self._deadline = self.loop.call_later(_HEAD_S, self.transport.abort)

        def _stop(self) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None

    return HeadTimeoutProtocol


def listening_sockets(host: str, port: int) -> list[Any]:
    """Return sockets on which callers wait until a server accepts them. Port 0 is any that is free.

    Raises ``OutputError`` if the address or the port cannot be had.
    """
    import asyncio

    async def listening() -> list[Any]:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(asyncio.Protocol, host, port, start_serving=False)
        sockets = [socket.dup() for socket in server.sockets]
        server.close()
        for socket in sockets:
            socket.listen(_BACKLOG)
        return sockets

    try:
        # This thread may already run a loop, as in a notebook.
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, listening()).result()
    except (OSError, UnicodeError):
        at = "" if host == LOOPBACK else f" of {host}"
        raise OutputError(
            f"port {port}{at} is in use or not yours; name another with {option('--port')}, or 0 for any"
        ) from None


class Server:
    """A server in its own thread, from entering the block to leaving it.

    ``port``: 0 for any free one, and afterwards the port in use; ``sockets``: those of ``listening_sockets`` instead;
    ``grace``: seconds that running requests have to finish when it stops. Raises ``OutputError`` on entering if the
    address or the port cannot be had.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        host: str = LOOPBACK,
        port: int = 0,
        sockets: Sequence[Any] = (),
        grace: float = 3,
    ) -> None:
        import uvicorn

        self.host, self.port, self._sockets, self._grace = host, port, list(sockets), grace
        config = uvicorn.Config(
            app,
            log_config=None,
            log_level="error",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            lifespan="off",
            ws="none",
            backlog=_BACKLOG,
            timeout_graceful_shutdown=round(grace),
        )
        config.load()
        config.http_protocol_class = _with_head_timeout(config.http_protocol_class)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=lambda: self._server.run(self._sockets), name="server", daemon=True)

    @property
    def address(self) -> str:
        """Where it is, as a link."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    @property
    def running(self) -> bool:
        """Whether it answers."""
        return self._thread.is_alive()

    def __enter__(self) -> Self:
        self._sockets = self._sockets or listening_sockets(self.host, self.port)
        self.port = int(self._sockets[0].getsockname()[1])
        self._thread.start()
        deadline = time.monotonic() + _START_S
        while self._thread.is_alive() and not self._server.started and time.monotonic() < deadline:
            time.sleep(0.01)
        if not self._server.started:
            self.__exit__(None, None, None)
            raise OutputError(f"the server did not start at {self.address}; its log has the details")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.should_exit = True
        self._thread.join(self._grace + 2)
        for one in self._sockets:
            one.close()
