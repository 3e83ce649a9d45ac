"""How similar the pairs of a sample are: a view of them for each recipe, as counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from neardup.exploring.valley import Valley
from neardup.recipe import Recipe

#: Bin i holds the pairs with i/100 < s <= (i + 1)/100, in exact fractions; those that share nothing are apart.
BINS = 100
#: Where pairs are counted, and read.
CUTOFFS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)


def per_million(pairs: int, of: int) -> float:
    """Return how many pairs in a million that is; 0 of none."""
    return 1e6 * pairs / of if of else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The similarities of all pairs of a sample by one recipe.

    Attributes
    ----------
    name : str
        For people: the features, or the name of the recipe.
    recipe : Recipe
        What was compared; its threshold does not matter.
    n : int or None
        The length of its n-grams or q-grams; None for a named recipe.
    weighted : bool
        Whether features have weights.
    documents, empty : int
        Documents of the sample, and those of them without a feature.
    pairs : int
        All pairs of them.
    zero, equal : int
        Pairs that share nothing, and those of similarity 1.
    counts : tuple of int
        ``BINS`` of them: pairs with i/100 < s <= (i + 1)/100.
    edges : tuple of int
        ``BINS + 1`` of them: pairs of similarity i/100 exactly.
    valley : Valley or None
        Between unrelated and related pairs, where there is one.
    seconds : float
        What it took; no part of what is written down.
    typical : int
        The number of features of a document, in the median.
    """

    name: str
    recipe: Recipe
    n: int | None
    weighted: bool
    documents: int
    empty: int
    pairs: int
    zero: int
    counts: tuple[int, ...]
    edges: tuple[int, ...]
    valley: Valley | None
    seconds: float
    typical: int = 0

    @property
    def features(self) -> str:
        """What is compared, as recipes write it: words:4:multiset."""
        return self.recipe.features

    @property
    def measure(self) -> str:
        """The measure, as recipes write it."""
        return self.recipe.measure

    @property
    def multiset(self) -> bool:
        """Whether repeats count."""
        return self.recipe.parsed_features.multiset

    @property
    def equal(self) -> int:
        """Pairs of similarity 1."""
        return self.edges[BINS]

    @property
    def above(self) -> tuple[tuple[float, int], ...]:
        """Each of ``CUTOFFS`` with the number of pairs at or above it."""
        return tuple((cutoff, self.at_least(round(cutoff * BINS))) for cutoff in CUTOFFS)

    def at_least(self, hundredths: int) -> int:
        """Return how many pairs have a similarity of so many hundredths or more."""
        if hundredths <= 0:
            return self.pairs
        return sum(self.counts[hundredths:]) + self.edges[hundredths]

    def as_dict(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        return {
            "name": self.name,
            "features": self.features,
            "normalize": self.recipe.normalize,
            "measure": self.measure,
            "weights": self.recipe.weights,
            "n": self.n,
            "multiset": self.multiset,
            "documents": self.documents,
            "empty": self.empty,
            "typical": self.typical,
            "pairs": self.pairs,
            "zero": self.zero,
            "equal": self.equal,
            "counts": list(self.counts),
            "edges": list(self.edges),
            "above": [
                {"cutoff": cutoff, "pairs": pairs, "per_million": round(per_million(pairs, self.pairs), 3)}
                for cutoff, pairs in self.above
            ],
            "valley": None if self.valley is None else self.valley.as_dict(),
        }
