"""What the shards of a stream say, put together: the verdicts, in order of arrival."""

from __future__ import annotations

import uuid
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.decision.decision import Decision
from neardup.decision.evidence import Learned
from neardup.flow.parts import Partners, joined
from neardup.spark.streaming.sharding import WINDOWS, Answer
from neardup.spark.streaming.tables import VERDICTS, packed, partners_of, unpacked
from neardup.spark.streaming.work import Chest, Held, head_of, put_head

Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]
#: The kind of a row that is no document.
SET_ASIDE = "set-aside"


class _Rows(NamedTuple):
    """The documents of a micro-batch, as all shards know them.

    Attributes
    ----------
    ids, origins, flags : list of str
        Of each one.
    reals, parts, oldest : int64[n]
        Microseconds since 1970; sub-indexes, and the least ones that are still in the window.
    confirms, some : bool[n]
        As in a ``Moment``; whether it has features.
    """

    ids: list[str]
    origins: list[str]
    flags: list[str]
    reals: Integers
    parts: Integers
    oldest: Integers
    confirms: Booleans
    some: Booleans


#: By stream: the name of its last micro-batch here, and the numbers of duplicates by sub-index.
_LIVE: OrderedDict[str, tuple[str, dict[int, Integers]]] = OrderedDict()


def settle(work: Held, chest: Chest, answers: Sequence[Answer]) -> bytes:
    """Return the verdicts on a micro-batch as a blob, from what all shards say of it.

    Where documents are compared with originals only, shards hold duplicates as well; which ones are duplicates is known
    here, and remembered for as long as the window lasts.

    Parameters
    ----------
    work : Held
        What is done.
    chest : Chest
        What this step remembers.
    answers : sequence of Answer
        One of each shard, in any order.
    """
    given = work.value
    rows, aside = _rows_of(unpacked([each.documents for each in answers if each.documents]))
    head = head_of(chest, given) or {"mark": given.mark, "stream": uuid.uuid4().hex, "token": "", "next": 0}
    head = {"ahead": None, "parts": []} | head
    first = int(head["next"])
    told = [partners_of(unpacked([each.pairs])) for each in answers if each.pairs]
    places = np.concatenate([np.empty(0, np.int64), *(place for place, _ in told)])
    partners = joined([each for _, each in told])
    if given.everything:
        chosen = _best(places, partners)
    else:
        dropped = _dropped(chest, head)
        late = np.array([flag == "late" for flag in rows.flags], np.bool_)
        standing = _standing(places, partners.serials, first, rows.some & ~late, dropped)
        kept = np.flatnonzero(standing)
        chosen = kept[_best(places[kept], partners.among(kept))]
        repeats = np.zeros(len(rows.ids), np.bool_)
        repeats[places[chosen]] = True
        _remember(chest, head, rows, repeats & rows.some & ~late, first, dropped)
    head["next"] = first + len(rows.ids)
    put_head(chest, head)
    names: dict[int, str] = {}
    for table in (unpacked([each.names]) for each in answers if each.names):
        names |= dict(zip(table["serial"].to_pylist(), table["id"].to_pylist(), strict=True))
    return packed(_verdicts(rows, places[chosen], partners.among(chosen), names, first, aside, given.decision))


def _rows_of(table: pa.Table) -> tuple[_Rows, pa.Table]:
    is_broken = table["aside"].is_valid()
    rows, aside = table.filter(pa.compute.invert(is_broken)), table.filter(is_broken)
    texts = (rows[name].to_pylist() for name in ("id", "origin", "flag"))
    numbers = (rows[name].to_numpy().astype(np.int64) for name in ("real", "part", "oldest"))
    bits = (rows[name].to_numpy().astype(np.bool_) for name in ("confirms", "some"))
    return _Rows(*texts, *numbers, *bits), aside


def _best(places: Integers, partners: Partners) -> Integers:
    """Return where the best partner of each document is: the most similar, then the first to arrive."""
    order = np.lexsort((partners.serials, -partners.similarity, places))
    begins = np.flatnonzero(np.diff(places[order], prepend=-1))
    found: Integers = order[begins]
    return found


def _standing(places: Integers, serials: Integers, first: int, may: Booleans, dropped: dict[int, Integers]) -> Booleans:
    """Return which pairs are with an original that the window holds.

    Parameters
    ----------
    places, serials : int64[k]
        Pairs: the document's place in the micro-batch, and the number of what it matches.
    first : int
        The number of the first document of the micro-batch.
    may : bool[n]
        Which documents are held if they are originals.
    dropped : dict of int to int64 array
        The numbers of duplicates that shards hold, from before.
    """
    before = serials < first
    standing = np.zeros(len(places), np.bool_)
    known = np.concatenate([np.empty(0, np.int64), *dropped.values()])
    standing[before] = ~np.isin(serials[before], known)
    matched = np.zeros(len(may), np.bool_)
    matched[places[standing]] = True
    held = may & ~matched
    inside = np.flatnonzero(~before)
    inside = inside[np.argsort(places[inside], kind="stable")]
    asking, begins = np.unique(places[inside], return_index=True)
    ends = np.searchsorted(places[inside], asking, side="right").tolist()
    # One after the other, for whether one is an original depends on those before it; others of this micro-batch are not
    # looked at.
    for place, begin, end in zip(asking.tolist(), begins.tolist(), ends, strict=True):
        if held[serials[inside[begin:end]] - first].any():
            held[place] = False
    standing[inside] = held[serials[inside] - first]
    return standing


def _dropped(chest: Chest, head: dict[str, Any]) -> dict[int, Integers]:
    """Return the numbers of duplicates that shards hold, by sub-index."""
    token, known = _LIVE.pop(head["stream"], ("", {}))
    if token and token == head["token"]:
        return known
    return {part: np.frombuffer(chest.get(part) or b"", np.int64) for part in head["parts"]}


def _remember(
    chest: Chest, head: dict[str, Any], rows: _Rows, repeats: Booleans, first: int, dropped: dict[int, Integers]
) -> None:
    """Note the duplicates of a micro-batch, and forget those that have left the window."""
    if not len(rows.ids):
        return
    serials = first + np.flatnonzero(repeats)
    fresh = {int(part): [serials[rows.parts[repeats] == part]] for part in np.unique(rows.parts[repeats])}
    # A duplicate that was ahead and is confirmed leaves later than it would have.
    for place in np.flatnonzero(rows.confirms | np.array([flag == "ahead" for flag in rows.flags], np.bool_)).tolist():
        if rows.confirms[place]:
            ahead = head["ahead"]
            if ahead is not None and any(ahead in each for each in (serials, *dropped.values())):
                fresh.setdefault(int(rows.parts[place]), []).append(np.array([ahead]))
            head["ahead"] = None
        else:
            head["ahead"] = first + place
    for part, more in fresh.items():
        dropped[part] = np.concatenate([dropped.get(part, np.empty(0, np.int64)), *more])
        chest.put(part, dropped[part].tobytes())
    for part in [part for part in dropped if part < rows.oldest[-1]]:
        chest.drop(part)
        del dropped[part]
    head["parts"], head["token"] = list(dropped), uuid.uuid4().hex
    _LIVE[head["stream"]] = head["token"], dropped
    while len(_LIVE) > WINDOWS:
        _LIVE.popitem(last=False)


def _verdicts(
    rows: _Rows,
    places: Integers,
    best: Partners,
    names: dict[int, str],
    first: int,
    aside: pa.Table,
    decision: Decision | None,
) -> pa.Table:
    """Return the verdicts as a table."""
    count, more = len(rows.ids), len(aside)
    kinds = np.full(count, "original", object)
    kinds[places] = np.where(best.same, "exact", "near")
    flags = [flag if some else "undecidable" for flag, some in zip(rows.flags, rows.some.tolist(), strict=True)]
    learned = np.flatnonzero(~np.isnan(best.g))
    evidence: npt.NDArray[Any] = np.full(len(places), "", object)
    if decision is not None and len(learned):
        said = Learned(decision, best.vectors[learned], np.arange(len(learned))).columns()["evidence"]
        evidence[learned] = said.to_pylist()
    g = [None if value != value else value for value in best.g.tolist()]
    o, a, b = best.counts.T
    columns = {
        "id": rows.ids + aside["id"].to_pylist(),
        "kind": [*kinds.tolist(), *[SET_ASIDE] * more],
        "of": _spread([names[serial] for serial in best.serials.tolist()], places, count + more),
        "similarity": _spread(best.similarity.tolist(), places, count + more),
        "time": pa.array([*rows.reals.tolist(), *[None] * more], pa.int64()).cast(pa.timestamp("us", "UTC")),
        "flag": flags + aside["aside"].to_pylist(),
        "o": _spread(o.tolist(), places, count + more),
        "a": _spread(a.tolist(), places, count + more),
        "b": _spread(b.tolist(), places, count + more),
        "g": _spread(g, places, count + more),
        "evidence": _spread(evidence.tolist(), places, count + more, ""),
        "serial": [*range(first, first + count), *[None] * more],
        "origin": rows.origins + aside["origin"].to_pylist(),
    }
    return pa.table(columns, VERDICTS)


def _spread(values: Sequence[Any], places: Integers, count: int, filling: Any = None) -> list[Any]:
    """Return values at their places among so many, something else elsewhere."""
    whole = [filling] * count
    for place, value in zip(places.tolist(), values, strict=True):
        whole[place] = value
    return whole
