"""What an index takes and gives: batches of documents, verdicts, and a sample's frequencies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from neardup.errors import InputError, RecipeError
from neardup.features.gathering import gather_texts
from neardup.features.statistics import Statistics
from neardup.flow.document import Document, Verdict
from neardup.flow.parts import Judged
from neardup.recipe import Recipe

_SECOND = 1_000_000
#: Documents and characters that are judged and stored at once.
_AT_ONCE = 1024
_CHARACTERS = 1 << 23


def verdict_of(name: str, found: Judged, of: str | None) -> Verdict:
    """Return the verdict on a document from what was found, and the id of its best match."""
    flag = found.moment.flag if found.has_features else "undecidable"
    time = found.moment.real / _SECOND
    if found.of < 0:
        return Verdict(name, "original", None, None, time, flag, None)
    return Verdict(name, "exact" if found.same_text else "near", of, found.similarity, time, flag, found.counts)


def statistics_for(recipe: Recipe, sample: Sequence[str] | Statistics | None) -> Statistics | None:
    """Return the frequencies that a recipe takes from a collection, None where it takes none.

    Raises
    ------
    RecipeError
        If it needs a sample and there is none.
    """
    if not recipe.needs_statistics:
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
