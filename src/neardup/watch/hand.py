"""The files in hand: the verdicts on their items, and what is to become of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from neardup.watch.names import SIDECAR, SIDECAR_LINES, origin_of, shown
from neardup.watch.outlets import Outlet, Spool

if TYPE_CHECKING:
    from neardup.content.items import Item
    from neardup.flow.document import Verdict
    from neardup.watch.taking import Taken

ORIGINALS, DUPLICATES, QUARANTINE, DONE = "originals", "duplicates", "quarantine", "done"


class Before(NamedTuple):
    """A verdict whose document is not yet in its place."""

    serial: int
    verdict: Verdict


class Hand:
    """A file from the moment it was read until it is in its place.

    Parameters
    ----------
    taken : Taken
        The file.
    before : sequence of Before
        Verdicts that an earlier run gave to its first items, in order.
    outlets : dict of str to Outlet
        Where files go, by duty.

    Attributes
    ----------
    verdicts : list of Before
        On all its items so far.
    names : dict of str to str
        The names chosen, by duty; empty until then.
    resumed : bool
        Whether an earlier attempt may have done a part.
    verdict : Verdict or None
        On a file that is one item.
    record : dict or None
        Beside such a file, or one that is set aside.
    """

    def __init__(self, taken: Taken, before: Sequence[Before], outlets: dict[str, Outlet]) -> None:
        self.taken = taken
        self.path = taken.found.path
        self.stamp = taken.found.stamp
        self.origin = origin_of(self.path, self.stamp)
        self.name = shown(self.path)
        self.verdicts: list[Before] = list(before)
        self.names: dict[str, str] = {}
        self.resumed = bool(before)
        self.verdict: Verdict | None = None
        self.record: dict[str, Any] | None = None
        self.given = 0
        self._outlets = outlets
        self.spools: dict[str, Spool] = {}
        self.details: Spool | None = None

    @property
    def is_complete(self) -> bool:
        """Whether all of its items have verdicts."""
        return self.given == self.taken.count

    def before(self, number: int) -> Verdict | None:
        """Return the verdict that an earlier run gave to an item, from 0 on."""
        return self.verdicts[number].verdict if number < len(self.verdicts) else None

    def next_item(self) -> Item | None:
        """Give the next item; None after the last."""
        return next(self.taken.items, None)

    def name_of(self, item: Item, number: int) -> str:
        """Return the id of an item, counted from 1, before it is known whether the id is free."""
        if item.key:
            return item.key
        return self.name if self.taken.count == 1 else f"{self.name}#{number}"

    @property
    def serials(self) -> list[int]:
        """The numbers of its documents."""
        return [before.serial for before in self.verdicts]

    def judged(self, item: Item, verdict: Verdict, serial: int, record: dict[str, Any] | None) -> None:
        """Take the verdict on the next item, and its serial, where it is a new one."""
        if self.given == len(self.verdicts):
            self.verdicts.append(Before(serial, verdict))
        self.given += 1
        if self.taken.is_single:
            self.verdict, self.record = verdict, record
            return
        duty = DUPLICATES if verdict.is_duplicate else ORIGINALS
        self._spool(duty).add(self._line(item, verdict))
        if record is not None:
            if self.details is None:
                self.details = Spool(self._outlets[DUPLICATES])
            self.details.add(_json({"item": self.given, **record}))

    def finish(self) -> None:
        """Set aside what was broken in a file of several items, when all the others have verdicts."""
        if self.taken.is_single or self.taken.is_unreadable:
            return
        for broken in self.taken.broken:
            record = {"where": broken.where, "reason": broken.reason, "raw": broken.raw.decode("utf-8", "replace")}
            self._spool(QUARANTINE).add(_json(record))

    def _spool(self, duty: str) -> Spool:
        if duty not in self.spools:
            self.spools[duty] = Spool(self._outlets[duty])
        return self.spools[duty]

    def _line(self, item: Item, verdict: Verdict) -> bytes:
        """Return an item as a line of JSON: as it is where it is JSON, else its fields and what they were read from."""
        if self.taken.kind.startswith("json"):
            # No string of JSON holds a bare line feed, so that one between its fields is as good as a space.
            return item.raw.replace(b"\r", b" ").replace(b"\n", b" ").strip() + b"\n"
        record: dict[str, Any] = {"id": verdict.id, "title": item.title, "text": item.text}
        timestamp = None if item.timestamp is None else item.timestamp.isoformat().replace("+00:00", "Z")
        record |= {"timestamp": timestamp, "link": item.link, "raw": item.raw.decode("utf-8", "replace")}
        return _json({name: value for name, value in record.items() if value not in ("", None)})

    def flush(self) -> None:
        """Write what was taken so far of a file of several items.

        Raises
        ------
        OSError
            If it cannot be written; it can be tried again.
        """
        for spool in self._all_spools():
            spool.flush()

    def drop(self) -> None:
        """Let go of work in progress."""
        for spool in self._all_spools():
            spool.drop()

    def _all_spools(self) -> list[Spool]:
        return [*self.spools.values(), *([self.details] if self.details else [])]

    def wanted(self) -> dict[str, str]:
        """Return the names that this file asks for, by duty."""
        if self.taken.is_unreadable:
            return {QUARANTINE: self.path}
        if self.verdict is not None:
            return {DUPLICATES if self.verdict.is_duplicate else ORIGINALS: self.path}
        lines = self.path if self.path.endswith((".jsonl", ".ndjson")) else f"{self.path}.jsonl"
        return dict.fromkeys(self.spools, lines) | {DONE: self.path}

    @property
    def sidecar_ending(self) -> str:
        """What the name of its sidecar ends in."""
        return SIDECAR_LINES if self.details else SIDECAR


def _json(record: dict[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
