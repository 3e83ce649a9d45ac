"""What a similarity vector needs of the collection: document frequencies."""

from __future__ import annotations

from collections.abc import Callable

from neardup.documents import Corpus
from neardup.features.gathering import gather
from neardup.features.statistics import Statistics
from neardup.vector.vector import Vector

Report = Callable[[str, int, int | None], None]


def statistics_for(
    vector: Vector, corpus: Corpus, *, content: str = "", threads: int | None = None, report: Report | None = None
) -> dict[str, Statistics]:
    """Return the document frequencies that a vector's measures go by, each by the ``counted`` of its parts.

    Parameters
    ----------
    vector : Vector
        Its terms and idf weights need them; others need none, and the corpus is not read.
    corpus : Corpus
        It is read once for each kind of feature that is counted.
    content : str
        What of a text is compared: that of the recipe whose pairs are to be measured.
    threads : int, optional
        They change the time, never the answer.
    report : callable, optional
        Told ("count", bytes done, bytes in all or None).
    """
    found: dict[str, Statistics] = {}
    for part in vector.parts:
        if part.counted and part.counted not in found:
            found[part.counted] = gather(corpus, part.recipe.changed(content=content), threads=threads, report=report)
    return found
