"""Audits again, slow and plain: limits and estimates in exact fractions, strata and samples by loops."""

from __future__ import annotations

import hashlib
from fractions import Fraction
from math import comb, sqrt
from statistics import NormalDist

TAIL = Fraction(1, 40)
Z = NormalDist().inv_cdf(0.975)
MASK = (1 << 64) - 1


def chance(pairs: int, duplicates: int, judged: int, same: int) -> Fraction:
    """Of drawing exactly so many duplicates: hypergeometric."""
    return Fraction(comb(duplicates, same) * comb(pairs - duplicates, judged - same), comb(pairs, judged))


def exact_limits(pairs: int, judged: int, same: int) -> tuple[int, int]:
    """The fewest and most duplicates that the sample does not speak against."""
    possible = []
    for duplicates in range(same, pairs - judged + same + 1):
        at_most = sum(chance(pairs, duplicates, judged, x) for x in range(same + 1))
        at_least = sum(chance(pairs, duplicates, judged, x) for x in range(same, judged + 1))
        if at_most > TAIL and at_least > TAIL:
            possible.append(duplicates)
    return possible[0], possible[-1]


def wilson_limits(pairs: int, judged: int, same: int) -> tuple[float, float]:
    """Where the score (share - p) / sqrt(p (1 - p) / n) is -z and z, found by halving."""
    share, size = same / judged, judged * (pairs - 1) / (pairs - judged)

    def score(p: float) -> float:
        return (share - p) / sqrt(p * (1 - p) / size)

    ends = []
    for wanted in (Z, -Z):
        low, high = 1e-15, 1 - 1e-15
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (middle, high) if score(middle) > wanted else (low, middle)
        ends.append(low)
    return (0.0 if same == 0 else pairs * ends[0]), (float(pairs) if same == judged else pairs * ends[1])


def limits(pairs: int, judged: int, same: int) -> tuple[float, float]:
    """The wider of both."""
    if judged == pairs:
        return same, same
    if judged == 0:
        return 0, pairs
    ends = exact_limits(pairs, judged, same), wilson_limits(pairs, judged, same)
    return min(low for low, _ in ends), max(high for _, high in ends)


Cells = list[tuple[int, int, int]]


def estimate(cells: Cells) -> Fraction:
    """How many duplicates: the share of each stratum times its size."""
    return sum((Fraction(pairs * same, judged) for pairs, judged, same in cells if pairs), Fraction(0))


def distances(cells: Cells) -> tuple[float, float]:
    """How far below and above the estimate the limits of a sum lie: squares add up."""
    below = above = 0.0
    for cell in cells:
        value = estimate([cell])
        low, high = limits(*cell)
        below, above = below + (float(value) - low) ** 2, above + (high - float(value)) ** 2
    return sqrt(below), sqrt(above)


def number(cells: Cells) -> tuple[Fraction, float, float]:
    """The number of duplicates with its limits."""
    below, above = distances(cells)
    least = sum(same for _, _, same in cells)
    most = sum(pairs - judged + same for pairs, judged, same in cells)
    value = estimate(cells)
    return value, max(float(value) - below, least), min(float(value) + above, most)


def recall(returned: Cells, others: Cells) -> tuple[Fraction, float, float] | None:
    """Found / (found + missed), and the shares r at which the limits of (1 - r) found - r missed are 0, by halving."""
    found, missed = estimate(returned), estimate(others)
    if found + missed == 0:
        return None
    (found_below, found_above), (missed_below, missed_above) = distances(returned), distances(others)

    def lower(r: float) -> float:
        spread = sqrt(((1 - r) * found_below) ** 2 + (r * missed_above) ** 2)
        return (1 - r) * float(found) - r * float(missed) - spread

    def upper(r: float) -> float:
        spread = sqrt(((1 - r) * found_above) ** 2 + (r * missed_below) ** 2)
        return (1 - r) * float(found) - r * float(missed) + spread

    value = found / (found + missed)
    low, high = _halved(lower, 0.0, float(value)), _halved(upper, float(value), 1.0)
    _, _, most_missed = number(others)
    least_found, least_missed = (sum(same for _, _, same in cells) for cells in (returned, others))
    most_found, most_missed = (sum(n - j + same for n, j, same in cells) for cells in (returned, others))
    low = max(low, least_found / (least_found + most_missed) if least_found + most_missed else 1.0)
    high = min(high, most_found / (most_found + least_missed) if most_found + least_missed else 1.0)
    return value, low, high


def _halved(of: object, low: float, high: float) -> float:
    """Where a falling function comes to 0, or the end that it does not come to."""
    assert callable(of)
    if of(high) >= 0:
        return high
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if of(middle) >= 0 else (low, middle)
    return low


def allocate(strata: list[tuple[bool, int, float]], sample: int, floor: int) -> list[int]:
    """Pair by pair to the stratum with the best claim; strata are (returned, pairs, weight)."""
    sizes = {side: sum(pairs for returned, pairs, _ in strata if returned == side) for side in (True, False)}
    first = min((sample + 1) // 2, sizes[True])
    second = min(sample - first, sizes[False])
    share = {True: min(sample - second, sizes[True]), False: second}
    drawn = [0] * len(strata)
    for side in (True, False):
        for _ in range(share[side]):
            open_ones = [at for at, (returned, pairs, _) in enumerate(strata) if returned == side and drawn[at] < pairs]
            low = [at for at in open_ones if drawn[at] < floor]
            if low:
                at = min(low, key=lambda at: (drawn[at], at))
            else:
                at = max(open_ones, key=lambda at: (strata[at][2] / sqrt(drawn[at] * (drawn[at] + 1)), -at))
            drawn[at] += 1
    return drawn


def pair_hash(one: str, other: str, seed: int, purpose: int) -> int:
    """splitmix64 of the smaller hash of the two ids, added to the larger one, again."""
    hashes = sorted(
        int.from_bytes(hashlib.blake2b(f"{seed} {name}".encode(), digest_size=8).digest(), "little")
        for name in (one, other)
    )
    return _mixed((_mixed((hashes[0] + (2 * purpose + 1) * 0x9E3779B97F4A7C15) & MASK) + hashes[1]) & MASK)


def _mixed(word: int) -> int:
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB & MASK
    return word ^ (word >> 31)
