"""What an index takes and gives: batches of documents, verdicts, and a sample's frequencies."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from neardup.decision.choosing import Given, decision_of, recipe_beside
from neardup.decision.decision import Decision
from neardup.errors import InputError, RecipeError
from neardup.features.gathering import gather_texts
from neardup.features.statistics import Statistics
from neardup.flow.document import Document, Verdict
from neardup.flow.parts import Judged, Story
from neardup.flow.rows import Stored
from neardup.recipe import AnyRecipe, Recipe
from neardup.recipe.choosing import chosen
from neardup.vector.records import NO_TIME

_SECOND = 1_000_000
#: The last microseconds of the year 9999 would round to the first second of the next, which no datetime holds.
_LATEST = math.nextafter(253402300800.0, 0)
#: Documents and characters that are judged and stored at once.
_AT_ONCE = 1024
_CHARACTERS = 1 << 23


def verdict_of(name: str, found: Judged, of: str | None) -> Verdict:
    """Return the verdict on a document from what was found, and the id of its best match."""
    flag = found.moment.flag if found.has_features else "undecidable"
    time = min(found.moment.real / _SECOND, _LATEST)
    if found.of < 0:
        return Verdict(name, "original", None, None, time, flag, None)
    kind = "exact" if found.same_text else "near"
    return Verdict(name, kind, of, found.similarity, time, flag, found.counts, found.g, found.measures)


def chosen_recipe(
    recipe: AnyRecipe | None, decision: Given | None, choices: Mapping[str, Any]
) -> tuple[Recipe, Decision | None]:
    """Return the recipe of a flow, and the decision whose it is, read where it is a path.

    Raises
    ------
    NeardupError
        If both are given, or one of them is refused.
    """
    if decision is None:
        return chosen("default" if recipe is None else recipe, choices), None
    found = decision_of(decision)
    if found.vector.needs_encoder:
        raise RecipeError(
            "the decision goes by 'semantic' too, and a flow makes no embeddings; train one on a vector without it"
        )
    return recipe_beside(found, {"recipe": recipe, **choices}), found


def story_of(document: Document, real: int | None, clock: float | None = None) -> Story:
    """Return what a second step goes by.

    Parameters
    ----------
    document : Document
        It gives text and title.
    real : int or None
        Its time in microseconds since 1970.
    clock : float or None
        The flow's clock in seconds, where there is no such time.
    """
    seconds = clock if real is None else real / _SECOND
    return Story(document.text, document.title, NO_TIME if seconds is None else _microseconds(seconds))


def story_at(text: str, title: str, real: int) -> Story:
    """Return what a second step goes by, from its parts; real: microseconds since 1970."""
    return Story(text, title, _microseconds(real / _SECOND))


def rows_of(
    documents: Sequence[Document], judged: Sequence[Judged], verdicts: Sequence[Verdict], first: int, *, titles: bool
) -> list[Stored]:
    """Return what a store holds of documents, the numbers of which begin with first; titles: whether it holds these."""
    return [
        Stored(
            first + i,
            document.id,
            document.origin,
            found.moment.time,
            found.moment.leaves,
            found.held,
            document.text if found.held else None,
            verdict,
            document.title if found.held and titles else "",
        )
        for i, (document, found, verdict) in enumerate(zip(documents, judged, verdicts, strict=True))
    ]


def story_before(row: Stored) -> Story:
    """Return what a second step goes by of a document from before a restart."""
    return Story(row.text or "", row.title, _microseconds(row.verdict.time))


def _microseconds(seconds: float) -> int:
    # Through seconds also where whole microseconds are known, so that a restart, which reads seconds, changes nothing.
    return round(seconds * _SECOND)


def statistics_for(recipe: Recipe, sample: Sequence[str] | Statistics | None) -> Statistics | None:
    """Return the frequencies that a recipe takes from a collection, None where it takes none.

    Raises
    ------
    RecipeError
        If it needs a sample and there is none.
    """
    if not recipe.needs_statistics:
        if sample is not None:
            raise RecipeError(
                f"sample is for recipes that take frequencies from a collection, and recipe {recipe.name!r} takes "
                "none; leave it out"
            )
        return None
    if sample is None:
        raise RecipeError(
            f"recipe {recipe.name!r} takes frequencies from a collection, and a flow is none yet; give texts as sample"
        )
    if isinstance(sample, Statistics):
        return sample
    return gather_texts([pa.array(list(sample), pa.large_string())], recipe)


def batches_of(documents: Iterable[Document]) -> Iterator[list[Document]]:
    """Yield documents in batches of some thousand and some megabytes."""
    batch: list[Document] = []
    characters = 0
    for document in documents:
        if not isinstance(document, Document):
            raise InputError(f"{type(document).__name__} is no Document; make one: nd.Document(id, text, timestamp)")
        batch.append(document)
        characters += len(document.text)
        if len(batch) >= _AT_ONCE or characters >= _CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch
