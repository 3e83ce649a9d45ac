"""What a watcher says: events as JSON lines, and troubles, each once and then ever more rarely."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

#: Told of an event and its fields.
Listener = Callable[[str, dict[str, Any]], None]

_FIRST_REMINDER, _LAST_REMINDER = 30.0, 3600.0


class Log:
    """Tells events: as JSON lines on stderr, or to whoever shows them.

    A line has ``time`` (ISO 8601, UTC), ``event`` and the fields of the event. It is ASCII, so that nothing in a
    document can do anything to a terminal.

    Parameters
    ----------
    listener : callable, optional
        Takes the events in place of stderr.
    clock : callable
        Seconds that never jump.
    """

    def __init__(self, listener: Listener | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._listener = listener
        self._clock = clock
        self._troubles: dict[str, _Trouble] = {}

    def say(self, event: str, **fields: Any) -> None:
        """Tell an event."""
        if self._listener is not None:
            self._listener(event, fields)
            return
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        try:
            sys.stderr.write(json.dumps({"time": now, "event": event, **fields}) + "\n")
            sys.stderr.flush()
        except OSError:
            # A log that nobody reads any more, or a full disk under it, is no reason to stop.
            return

    def trouble(self, about: str, message: str, **fields: Any) -> None:
        """Tell of a trouble: at once, and while it lasts again after 30 s, a minute, two, at last every hour.

        Parameters
        ----------
        about : str
            What has the trouble; the same until it is well again.
        message : str
            One sentence.
        **fields : object
            More that the line is to say.
        """
        now, known = self._clock(), self._troubles.get(about)
        if known is None:
            self._troubles[about] = _Trouble(now, _FIRST_REMINDER, now + _FIRST_REMINDER)
            self.say("trouble", message=message, **fields)
        elif now >= known.again:
            known.delay = min(known.delay * 2, _LAST_REMINDER)
            known.again = now + known.delay
            self.say("trouble", message=message, for_s=round(now - known.since, 1), **fields)

    def well(self, about: str, message: str) -> bool:
        """Tell that a trouble is over, if there was one; return whether there was."""
        known = self._troubles.pop(about, None)
        if known is not None:
            self.say("well", message=message, after_s=round(self._clock() - known.since, 1))
        return known is not None

    def forget(self, about: str) -> None:
        """Drop a trouble whose object is gone, without a word."""
        self._troubles.pop(about, None)


class _Trouble:
    """Since when, how long the silence is, and when it ends."""

    __slots__ = ("again", "delay", "since")

    def __init__(self, since: float, delay: float, again: float) -> None:
        self.since = since
        self.delay = delay
        self.again = again


def reason(error: OSError) -> str:
    """Return what the system says of an error, without the path: no space left on device."""
    text = error.strerror or str(error) or type(error).__name__
    return text[:1].lower() + text[1:]
