"""What ends a pause early: a file event, or the wish that the watcher stop."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from neardup.watch.names import is_passed_over

if TYPE_CHECKING:
    from watchfiles import Change

#: How long events are gathered before they wake, in milliseconds.
_GATHER = 200


class Waking:
    """Native file events as a hint that a look is worth while, and the wish to stop.

    The truth is always a look at the folder: an event may be lost, or never come, as on network folders.

    Parameters
    ----------
    root : str
        The inbox.
    """

    def __init__(self, root: str) -> None:
        self._root = os.path.realpath(root)
        # Its put may be called from a signal handler at any moment, which locks of a threading.Event do not bear.
        self._calls: SimpleQueue[str] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._end = threading.Event()
        self.stopping = False

    def stop(self) -> None:
        """Ask for an end; safe in a signal handler."""
        self.stopping = True
        self._calls.put("stop")

    def pause(self, seconds: float) -> bool:
        """Wait, at most so long; return whether a file event came."""
        if self.stopping:
            return False
        try:
            woken = self._calls.get(timeout=max(seconds, 0.0)) == "file"
        except Empty:
            return False
        while not self._calls.empty():
            woken |= self._calls.get() == "file"
        return woken

    def listen(self, failed: Callable[[str], None]) -> bool:
        """Start to take native events, unless that is done already.

        Parameters
        ----------
        failed : callable
            Told in one sentence why there are none; may be called from another thread.

        Returns
        -------
        bool
            Whether a listener was started.
        """
        if self._thread is not None and self._thread.is_alive():
            return False
        try:
            import watchfiles  # noqa: F401
        except ImportError:
            failed("the library watchfiles is not installed; pip install 'neardup[watch]' brings it")
            return False
        self._end.clear()
        self._thread = threading.Thread(target=self._listen, args=(failed,), name="neardup-events", daemon=True)
        self._thread.start()
        return True

    def _listen(self, failed: Callable[[str], None]) -> None:
        from watchfiles import watch

        try:
            for _ in watch(
                self._root,
                watch_filter=self._wakes,
                debounce=_GATHER,
                rust_timeout=1000,
                stop_event=self._end,
                raise_interrupt=False,
                ignore_permission_denied=True,
            ):
                self._calls.put("file")
        except Exception as error:  # the library has its own errors for a system that gives no events
            failed(" ".join(str(error).split()) or type(error).__name__)

    def _wakes(self, change: Change, path: str) -> bool:
        """Return whether an event may mean a file to take: not what goes away, such as what is placed."""
        if change.name == "deleted":
            return False
        return not any(is_passed_over(part) for part in os.path.relpath(path, self._root).split(os.sep))

    def close(self) -> None:
        """End the listener."""
        self._end.set()
        if self._thread is not None:
            self._thread.join(timeout=5)
            self._thread = None
