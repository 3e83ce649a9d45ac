"""The server of the labelling page, which runs until the session is finished or a signal stops it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from neardup.labelling.session import Session
from neardup.runtime import stop_signals
from neardup.service.server import Server, check_packages

#: The packages that the page needs.
PACKAGES = ("fastapi", "uvicorn")
#: Seconds between two checks for a signal.
_POLL_S = 0.2


class LabelServer(Server):
    """The page of a session, served to this machine from entering the block to leaving it.

    Whenever a link is used, ``announce_link`` gets one for another browser.
    """

    def __init__(
        self, session: Session, *, port: int = 0, announce_link: Callable[[str], None] = lambda link: None
    ) -> None:
        check_packages("label", *PACKAGES)
        from neardup.labelling.app import PageAccess, create_app

        self._access = PageAccess(lambda: announce_link(self.link(self._access.new_token())))
        super().__init__(create_app(session, self._access), port=port)

    def link(self, token: str) -> str:
        """Return the link that a token opens."""
        return f"{self.address}/?token={token}"

    @property
    def first_link(self) -> str:
        """The link for the first browser."""
        return self.link(self._access.first_token)


def serve(
    session: Session,
    *,
    port: int = 0,
    open_browser: bool = True,
    announce_first_link: Callable[[str], None] = lambda link: None,
    announce_link: Callable[[str], None] = lambda link: None,
) -> None:
    """Serve a session until it is finished, or Ctrl-C or SIGTERM stops it.

    ``announce_first_link`` gets the link for the first browser. Whenever a link is used, ``announce_link`` gets one for
    another browser.
    """
    with (
        stop_signals("every label is on the disk") as stop_signal,
        LabelServer(session, port=port, announce_link=announce_link) as service,
    ):
        announce_first_link(service.first_link)
        if open_browser and _has_screen():
            import webbrowser

            webbrowser.open(service.first_link)
        while not stop_signal and not session.finished.wait(_POLL_S):
            pass


def _has_screen() -> bool:
    """Return whether a browser would open a window; without one it would take over the terminal."""
    if sys.platform in ("win32", "darwin"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
