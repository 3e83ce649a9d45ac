"""The page of labels, served to this machine until the session is finished or somebody ends it."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from types import FrameType, TracebackType
from typing import Self

from neardup.errors import NeardupError, OutputError
from neardup.labelling.session import Session

_HOST = "127.0.0.1"
#: How long a start may take, and a request that is under way at the end.
_START_S, _END_S = 30.0, 3
#: How long a signal may wait.
_LOOK_S = 0.2


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

        from neardup.labelling.app import Keys, app_of

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
