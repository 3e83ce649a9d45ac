"""What neighbours and queries have in common: the documents read as vectors, and the rows of an answer."""

from __future__ import annotations

from collections.abc import Callable
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
