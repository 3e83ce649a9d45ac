"""What neighbours and queries have in common: the documents read as vectors, and the rows of an answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.clock import Clock
from neardup.documents import Corpus
from neardup.errors import RecipeError
from neardup.features.store import Vectors
from neardup.pipeline import Collected, collect
from neardup.recipe import Recipe
from neardup.recipe.choosing import refuse

Integers = npt.NDArray[np.int64]
Report = Callable[[str, int, int | None], None]


class Table:
    """Rows that Arrow, pandas and others take."""

    def to_arrow(self) -> pa.Table:
        """Return the rows as a table."""
        raise NotImplementedError

    def to_pandas(self) -> Any:
        """Return the rows as a pandas data frame."""
        return self.to_arrow().to_pandas()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)


def refuse_unasked(choices: Mapping[str, Any], *, nearest: bool) -> None:
    """Refuse fields of a recipe that somebody chose and that an answer does not go by.

    Parameters
    ----------
    choices : mapping
        Fields and their values; None for what was not chosen.
    nearest : bool
        Whether the most similar documents are asked for, whatever their similarity.

    Raises
    ------
    RecipeError
        Naming the first one.
    """
    refuse(
        choices,
        ("search", "recall", "num_perm", "keep"),
        "is for all pairs of a corpus, and here documents are compared with given ones; leave it out",
    )
    if nearest:
        # A threshold may stand there, for a measure is seldom named without one; the rest would seem to narrow.
        refuse(
            choices,
            ("jaccard_floor", "then"),
            "has no say, for the most similar documents are found whatever their similarity; leave it out",
        )


def silent(stage: str, done: int, total: int | None) -> None:
    """Tell nobody."""


def read_vectors(
    corpus: Corpus, recipe: Recipe, threads: int, memory: int | None, report: Report, clock: Clock
) -> tuple[Collected, Vectors]:
    """Return what is known of the documents, and their features."""
    if recipe.measure == "semantic":
        raise RecipeError(
            "measure 'semantic' compares embeddings, and neighbours are found by features; choose another measure"
        )
    read = collect(corpus, recipe.changed(keep="first"), threads=threads, memory=memory, report=report, clock=clock)
    with read.store as store:
        return read, store.vectors()


def unit_of(read: Collected, recipe: Recipe) -> int:
    """Return how much of o, a and b makes 1."""
    return read.statistics.unit(recipe) if read.statistics is not None and recipe.is_weighted else 1


def check_size(k: int, documents: int, most: int) -> None:
    """Refuse a k that a collection of so many documents cannot give."""
    if k <= most:
        return
    size = f"{documents:,} document{'' if documents == 1 else 's'}"
    way = f"ask for at most {most:,}" if most > 0 else "give more documents"
    raise RecipeError(f"k {k:,} is more than a collection of {size} can give; {way}")
