"""In how many documents of a corpus the features of a sample occur: what idf weights go by."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup._kernels.allpairs import count_known
from neardup._kernels.listing import enter_places
from neardup._kernels.sets import COUNTED
from neardup.documents import Corpus
from neardup.features.extraction import Extractor
from neardup.features.gathering import gather, heaviest_of
from neardup.features.statistics import Statistics
from neardup.parallel import in_order
from neardup.reading import Report, pieces
from neardup.recipe import Recipe
from neardup.search.nearest import empty_table

Words = npt.NDArray[np.uint64]


class _Counted(NamedTuple):
    """Of some documents: how many they are, the largest sum of squared counts, and their distinct features."""

    documents: int
    heaviest: int
    features: Words


def frequencies_of(
    corpus: Corpus,
    recipe: Recipe,
    texts: pa.LargeStringArray,
    *,
    threads: int = 1,
    report: Report | None = None,
) -> Statistics:
    """Return the document frequencies in a corpus of the features that some texts have, for these texts alone.

    For them it says what ``features.gathering.gather`` says, in memory for the features of these texts instead of those
    of the corpus.

    Parameters
    ----------
    corpus : Corpus
        It is read once; where content is part of the recipe, that of each document is found.
    recipe : Recipe
        One with ``needs_statistics``.
    texts : pyarrow.LargeStringArray
        What is compared of some documents of the corpus: for a recipe with ``content``, their contents.
    threads : int
        They change the time, never the answer.
    report : callable, optional
        Told ("count", bytes done, bytes in all or None).
    """
    if recipe.signature.startswith("sketch"):
        # Its prime is the one closest to the number of all features.
        return gather(corpus, recipe, threads=threads, report=report)
    weighs = bool(recipe.weights) or recipe.parsed_features.kind == "terms"
    plain, form = recipe.without_statistics(), COUNTED if weighs else None
    wanted = np.unique(Extractor(plain.changed(content=""), None, form)(texts).features)
    table, df = empty_table(len(wanted)), np.zeros(len(wanted), np.int64)
    enter_places(wanted, table)
    documents = heaviest = 0
    for part in in_order(partial(_counted, Extractor(plain, None, form)), pieces(corpus, "count", report), threads):
        count_known(part.features, table, df)
        documents += part.documents
        heaviest = max(heaviest, part.heaviest)
    several = df > 1
    return Statistics(documents, len(wanted), heaviest, wanted[several], df[several])


def _counted(extractor: Extractor, texts: pa.LargeStringArray) -> _Counted:
    block = extractor(texts)
    return _Counted(len(texts), heaviest_of(block), block.features)
