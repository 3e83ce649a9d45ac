"""What a judged sample says of the whole result: figures at each threshold, and what more labels would buy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from neardup.auditing.limits import Cell, limits, number, precision, recall, summed
from neardup.auditing.strata import Stratum, allocate
from neardup.evaluation.scoring import Figure

#: Samples so many times as large are looked at.
_LARGER = (2, 4)


class Point(NamedTuple):
    """What a threshold returns.

    Attributes
    ----------
    score : float
        Pairs at or above it are returned.
    own : bool
        Whether it is the working point.
    returned : int
        How many pairs of distinct texts.
    precision, recall : Figure
        Among those pairs, and of the duplicates above the net; with 95 % intervals.
    """

    score: float
    own: bool
    returned: int
    precision: Figure
    recall: Figure


class More(NamedTuple):
    """What a larger sample would probably say of the working point.

    Attributes
    ----------
    sample : int
        How many pairs.
    precision, recall : Figure
        If it finds the same shares.
    """

    sample: int
    precision: Figure
    recall: Figure


def points(strata: Sequence[Stratum], cells: Sequence[Cell], own: float, moves: tuple[bool, bool]) -> list[Point]:
    """Return the figures of the working point and of thresholds where strata begin, the strictest first.

    Parameters
    ----------
    strata, cells : sequence of Stratum, sequence of Cell
        And what is known of each.
    own : float
        The working point's score.
    moves : (bool, bool)
        Whether stricter and looser thresholds can be told from the strata.
    """
    mine = [stratum for stratum in strata if stratum.returned]
    stricter = sorted({stratum.low for stratum in mine}, reverse=True)[:-1] if moves[0] else []
    looser = sorted({stratum.low for stratum in strata if not stratum.returned}, reverse=True) if moves[1] else []
    found = [_point(strata, cells, score, within=[s.returned and s.low >= score for s in strata]) for score in stricter]
    found.append(_point(strata, cells, own, within=[s.returned for s in strata])._replace(own=True))
    found += [_point(strata, cells, score, within=[s.returned or s.low >= score for s in strata]) for score in looser]
    return found


def _point(strata: Sequence[Stratum], cells: Sequence[Cell], score: float, *, within: Sequence[bool]) -> Point:
    inside = summed([cell for cell, is_in in zip(cells, within, strict=True) if is_in])
    outside = summed([cell for cell, is_in in zip(cells, within, strict=True) if not is_in])
    returned = sum(stratum.pairs for stratum, is_in in zip(strata, within, strict=True) if is_in)
    return Point(score, False, returned, precision(inside, returned), recall(inside, outside))


def duplicates(cells: Sequence[Cell]) -> Figure:
    """Return how many duplicates there are above the net."""
    return number(summed(cells))


def more(strata: Sequence[Stratum], cells: Sequence[Cell], drawn: int) -> list[More]:
    """Return what larger samples would say if they find the same shares; and this one, where labels are missing."""
    whole = sum(stratum.pairs for stratum in strata)
    judged = sum(cell.judged for cell in cells)
    sizes = [drawn] if judged < drawn else []
    sizes += [min(drawn * times, whole) for times in _LARGER if drawn * times // 2 < whole]
    if any(cell.pairs and not cell.judged for cell in cells):
        return []
    found = []
    for size in dict.fromkeys(sizes):
        likely = []
        for cell, count in zip(cells, allocate(strata, size), strict=True):
            share = cell.same / cell.judged if cell.judged else 0.0
            likely.append(Cell(cell.pairs, count, round(share * count)))
        point = next(point for point in points(strata, likely, 0.0, (False, False)) if point.own)
        found.append(More(size, point.precision, point.recall))
    return found


def if_known(strata: Sequence[Stratum], cells: Sequence[Cell]) -> list[tuple[Figure, Figure]]:
    """Return for each stratum the precision and recall that were known if all of it were judged, with the same share.

    The stratum whose interval is then the narrowest is where labels are worth most. Nothing where a stratum has no
    labels at all: those come first.
    """
    if any(cell.pairs and not cell.judged for cell in cells):
        return []
    found = []
    for at, cell in enumerate(cells):
        whole = Cell(cell.pairs, cell.pairs, round(cell.pairs * cell.same / cell.judged)) if cell.pairs else cell
        likely = [*cells[:at], whole, *cells[at + 1 :]]
        point = next(point for point in points(strata, likely, 0.0, (False, False)) if point.own)
        found.append((point.precision, point.recall))
    return found


def widest(strata: Sequence[Stratum], cells: Sequence[Cell]) -> int | None:
    """Return the judged stratum that leaves most unknown of the number of duplicates; None where nothing is unknown."""
    ends = [limits(cell) if cell.judged else (0.0, 0.0) for cell in cells]
    widths = [high - low for low, high in ends]
    at = max(range(len(strata)), key=widths.__getitem__, default=None)
    return at if at is not None and widths[at] > 0 else None
