"""Whether labellers agree: Cohen's kappa of every two of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import Any, NamedTuple

from neardup.evaluation.intervals import Z
from neardup.labels.store import DIFFERENT, SAME


class Agreement(NamedTuple):
    """How far two labellers agree on the pairs that both labelled as same or different."""

    labellers: tuple[str, str]
    #: Pairs labelled as same by both; by the first only; by the second only; by neither.
    table: tuple[int, int, int, int]
    #: Further pairs that both judged and at least one was unsure of.
    unsure: int = 0

    @property
    def pairs(self) -> int:
        """The number of pairs in the table."""
        return sum(self.table)

    @property
    def observed(self) -> float:
        """The share of pairs on which the two agree."""
        return (self.table[0] + self.table[3]) / self.pairs if self.pairs else math.nan

    @property
    def expected(self) -> float:
        """The share on which they would agree by chance, given how often each says same."""
        if not self.pairs:
            return math.nan
        both, first, second, none = self.table
        return ((both + first) * (both + second) + (none + first) * (none + second)) / self.pairs**2

    @property
    def kappa(self) -> float | None:
        """Cohen's kappa, (observed - expected) / (1 - expected); None if both give the same answer to every pair.

        Source: Cohen 1960, A coefficient of agreement for nominal scales.
        """
        if not self.pairs or self.expected == 1:
            return None
        return (self.observed - self.expected) / (1 - self.expected)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95% interval of kappa, by the standard error of Fleiss, Cohen & Everitt 1969; None without kappa."""
        kappa = self.kappa
        if kappa is None:
            return None
        n, chance = self.pairs, self.expected
        both, first, second, none = (count / n for count in self.table)
        first_shares, second_shares = (both + first, second + none), (both + second, first + none)
        diagonal = sum(
            share * (1 - (row + column) * (1 - kappa)) ** 2
            for share, row, column in zip((both, none), first_shares, second_shares, strict=True)
        )
        off_diagonal = (1 - kappa) ** 2 * (
            first * (second_shares[0] + first_shares[1]) ** 2 + second * (second_shares[1] + first_shares[0]) ** 2
        )
        # Rounding may leave a variance just below 0.
        variance = max(diagonal + off_diagonal - (kappa - chance * (1 - kappa)) ** 2, 0.0)
        half = Z * math.sqrt(variance / n) / (1 - chance)
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


def pairwise_agreements(answers: Mapping[Any, Mapping[str, str]]) -> list[Agreement]:
    """Return the agreement of every two labellers, in the order of their names.

    ``answers`` maps each pair to the answer of each of its labellers.
    """
    labellers = sorted({name for pair_answers in answers.values() for name in pair_answers})
    return [_agreement(names, answers.values()) for names in combinations(labellers, 2)]


def _agreement(labellers: tuple[str, str], answers: Iterable[Mapping[str, str]]) -> Agreement:
    first, second = labellers
    table, unsure = [0, 0, 0, 0], 0
    for pair_answers in answers:
        if first not in pair_answers or second not in pair_answers:
            continue
        if {pair_answers[first], pair_answers[second]} <= {SAME, DIFFERENT}:
            table[2 * (pair_answers[first] == DIFFERENT) + (pair_answers[second] == DIFFERENT)] += 1
        else:
            unsure += 1
    return Agreement(labellers, (table[0], table[1], table[2], table[3]), unsure)
