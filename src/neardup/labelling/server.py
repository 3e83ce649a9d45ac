"""The page of labels, served to this machine until the session is finished or somebody ends it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from neardup.labelling.session import Session
from neardup.service.server import Server, check_packages, stop_signals

#: What the page is made with.
PACKAGES = ("fastapi", "uvicorn")
#: How long a signal may wait.
_LOOK_S = 0.2


class Service(Server):
    """The page of a session, served to this machine from entering the block to leaving it.

    Its links are told to ``again``: one for another browser whenever one was used.
    """

    def __init__(self, session: Session, *, port: int = 0, again: Callable[[str], None] = lambda link: None) -> None:
        check_packages("label", *PACKAGES)
        from neardup.labelling.app import Keys, app_of

        self._keys = Keys(lambda: again(self.link(self._keys.mint())))
        super().__init__(app_of(session, self._keys), port=port)

    def link(self, token: str) -> str:
        """Return the link that a token opens."""
        return f"{self.address}/?token={token}"

    @property
    def first_link(self) -> str:
        """The link for the first browser."""
        return self.link(self._keys.first)


def serve(
    session: Session,
    *,
    port: int = 0,
    open_browser: bool = True,
    tell: Callable[[str], None] = lambda link: None,
    again: Callable[[str], None] = lambda link: None,
) -> None:
    """Serve a session until it is finished, or Ctrl-C or SIGTERM asks for an end.

    ``tell`` gets the link for the first browser, ``again`` one for another browser whenever one was used.
    """
    with stop_signals("every label is on the disk") as asked, Service(session, port=port, again=again) as service:
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
