"""Which documents of a few match each other, whatever a flow compared them with."""

from __future__ import annotations

from collections.abc import Mapping

from neardup.decision.decision import Decision
from neardup.features.statistics import Statistics
from neardup.flow.document import Document
from neardup.flow.index import Index
from neardup.recipe import Recipe


def matching(
    documents: Mapping[int, Document],
    recipe: Recipe,
    decision: Decision | None = None,
    statistics: Statistics | None = None,
) -> set[tuple[int, int]]:
    """Return which of some documents match each other, the smaller key first.

    Parameters
    ----------
    documents : mapping of int to Document
        Each under a key.
    recipe : Recipe
        What a match is.
    decision : Decision, optional
        In place of the recipe.
    statistics : Statistics, optional
        Of the collection, for recipes that need them.
    """
    found = set()
    chosen = None if decision else recipe
    with Index(chosen, decision=decision, window=None, against="everything", sample=statistics) as index:
        held = {
            str(key): Document(str(key), one.text, one.timestamp, title=one.title) for key, one in documents.items()
        }
        index.add_many(held.values())
        for name, document in held.items():
            for other in index.query(document):
                if other.id != name:
                    low, high = sorted((int(name), int(other.id)))
                    found.add((low, high))
    return found
