"""Whether labellers agree: Cohen's kappa of every two of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import Any, NamedTuple

from neardup.evaluation.scores import Z
from neardup.labels.store import DIFFERENT, SAME


class Agreement(NamedTuple):
    """How far two labellers agree on the pairs of which both said same or different."""

    labellers: tuple[str, str]
    #: Pairs that both call same; only the first; only the second; none.
    table: tuple[int, int, int, int]
    #: Further pairs that both judged, and one at least was unsure of.
    unsure: int = 0

    @property
    def pairs(self) -> int:
        """The number of pairs that count."""
        return sum(self.table)

    @property
    def observed(self) -> float:
        """The share of them on which the two agree."""
        return (self.table[0] + self.table[3]) / self.pairs if self.pairs else math.nan

    @property
    def expected(self) -> float:
        """The share on which they would by chance, each with her own share of duplicates."""
        if not self.pairs:
            return math.nan
        both, first, second, none = self.table
        return ((both + first) * (both + second) + (none + first) * (none + second)) / self.pairs**2

    @property
    def kappa(self) -> float | None:
        """Cohen's kappa, (observed - expected) / (1 - expected); None where both always give one same answer.

        Source: Cohen 1960, A coefficient of agreement for nominal scales.
        """
        if not self.pairs or self.expected == 1:
            return None
        return (self.observed - self.expected) / (1 - self.expected)

    @property
    def interval(self) -> tuple[float, float] | None:
        """About 95%, by the standard error of Fleiss, Cohen & Everitt 1969; None where kappa is none."""
        kappa = self.kappa
        if kappa is None:
            return None
        n, chance = self.pairs, self.expected
        both, first, second, none = (count / n for count in self.table)
        ones, others = (both + first, second + none), (both + second, first + none)
        on = sum(
            share * (1 - (one + other) * (1 - kappa)) ** 2
            for share, one, other in zip((both, none), ones, others, strict=True)
        )
        off = (1 - kappa) ** 2 * (first * (others[0] + ones[1]) ** 2 + second * (others[1] + ones[0]) ** 2)
        # Rounding may leave a little less than nothing.
        spread = max(on + off - (kappa - chance * (1 - kappa)) ** 2, 0.0)
        half = Z * math.sqrt(spread / n) / (1 - chance)
        return max(kappa - half, -1.0), min(kappa + half, 1.0)

    def as_dict(self) -> dict[str, Any]:
        """Return the figures, ready for JSON."""
        interval = self.interval
        return {
            "labellers": list(self.labellers),
            "pairs": self.pairs,
            "both_same": self.table[0],
            "first_only": self.table[1],
            "second_only": self.table[2],
            "both_different": self.table[3],
            "unsure": self.unsure,
            "observed": self.observed if self.pairs else None,
            "kappa": self.kappa,
            "interval": None if interval is None else list(interval),
        }


def agreements(answers: Mapping[Any, Mapping[str, str]]) -> list[Agreement]:
    """Return how far every two labellers agree, by name."""
    labellers = sorted({name for given in answers.values() for name in given})
    return [_agreement((one, other), answers.values()) for one, other in combinations(labellers, 2)]


def _agreement(labellers: tuple[str, str], answers: Iterable[Mapping[str, str]]) -> Agreement:
    one, other = labellers
    table, unsure = [0, 0, 0, 0], 0
    for given in answers:
        if one not in given or other not in given:
            continue
        if {given[one], given[other]} <= {SAME, DIFFERENT}:
            table[2 * (given[one] == DIFFERENT) + (given[other] == DIFFERENT)] += 1
        else:
            unsure += 1
    return Agreement(labellers, (table[0], table[1], table[2], table[3]), unsure)
