"""What a collection says of its features, counted in the workers: the statistics of ``neardup.features``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from neardup._kernels.sets import COUNTED
from neardup.documents.values import as_bytes, lengths_of
from neardup.errors import RecipeError
from neardup.features.extraction import Extractor
from neardup.features.gathering import heaviest_of
from neardup.features.statistics import Statistics
from neardup.recipe import Recipe
from neardup.spark.features import checked_texts
from neardup.spark.packing import (
    BLOBS,
    ENTRIES,
    TOLD,
    Outbox,
    blob_batch,
    blobs_of,
    exchange,
    joined,
    labels,
    pack,
    pieces,
    place_of,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from neardup.spark.stages import Stages

#: A feature and its df.
_COUNTED = ("<u8", "<i8")
_PIECE = 1 << 21
#: Features that more than one document holds, at most: the driver and each worker hold sixteen bytes for each.
_MOST_FEATURES = 1 << 27


def statistics_of(stages: Stages, documents: DataFrame, recipe: Recipe) -> Statistics:
    """Return the document frequencies of a recipe's features in documents, before clipping and signatures.

    Raises
    ------
    RecipeError
        If the documents share too many features for every worker to know them.
    """
    columns = [name for name in ("row", "text", "id") if name in documents.columns]
    place = labels(stages.workers)
    parts = documents.select(*columns).mapInArrow(partial(count_batches, recipe, place), BLOBS)
    merged = stages.run(
        "collection", lambda: exchange(parts, stages.workers).mapInArrow(partial(merge_batches, place), BLOBS)
    )
    blobs = merged.select("label", "kind", "data").toArrow().to_batches()
    return statistics_from(blobs)


def statistics_from(batches: Iterable[pa.RecordBatch]) -> Statistics:
    """Return the statistics of a collection from the blobs that ``merge_batches`` gave."""
    told, blobs = [], []
    for _, kind, data in blobs_of(batches):
        if kind == TOLD:
            told.append(json.loads(data.to_pybytes()))
        else:
            blobs.append(data)
    shared = sum(part.get("shared", 0) for part in told)
    if shared > _MOST_FEATURES:
        raise RecipeError(
            f"the recipe goes by the document frequencies of {shared:,} features that documents share, and workers "
            f"hold {_MOST_FEATURES:,} at most; clip more coarse features, or run it on this machine"
        )
    features, df = joined(blobs, _COUNTED)
    order = np.argsort(features)
    return Statistics(
        documents=sum(part.get("documents", 0) for part in told),
        distinct=sum(part.get("distinct", 0) for part in told),
        heaviest=max((part.get("heaviest", 0) for part in told), default=0),
        features=features[order],
        df=df[order],
    )


def count_batches(recipe: Recipe, place: np.ndarray, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the features of a partition's documents with their df, for those who add them up; in a worker."""
    weighs = bool(recipe.weights) or recipe.parsed_features.kind == "terms"
    extractor = Extractor(recipe.without_statistics(), None, COUNTED if weighs else None)
    outbox, documents, heaviest = Outbox(place, ENTRIES), 0, 0
    for batch in batches:
        ends = np.cumsum(lengths_of(as_bytes(batch.column("text"))))
        begin = 0
        while begin < batch.num_rows:
            before = int(ends[begin - 1]) if begin else 0
            end = max(int(np.searchsorted(ends, before + _PIECE, side="right")), begin + 1)
            texts, faults = checked_texts(batch.slice(begin, end - begin))
            block = extractor(texts.filter(pa.array(faults == 0)) if faults.any() else texts)
            features, df = np.unique(block.features, return_counts=True)
            documents += len(block.sizes)
            heaviest = max(heaviest, heaviest_of(block))
            yield from outbox.add(place_of(features, len(place)), [features, df.astype(np.int64)])
            begin = end
    yield from outbox.flush()
    told = {"documents": documents, "heaviest": heaviest}
    yield blob_batch([(int(place[0]), TOLD, json.dumps(told).encode())])


def merge_batches(place: np.ndarray, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the features of a partition that several documents hold, with their df; in a worker."""
    blobs = []
    for label, kind, data in blobs_of(batches):
        if kind == ENTRIES:
            blobs.append(data)
        else:
            yield blob_batch([(label, kind, data.to_pybytes())])
    features, df = joined(blobs, _COUNTED)
    distinct, where = np.unique(features, return_inverse=True)
    total = np.bincount(where, weights=df, minlength=len(distinct)).astype(np.int64)
    several = total > 1
    for piece in pieces([distinct[several], total[several]]):
        yield blob_batch([(int(place[0]), ENTRIES, pack(*piece))])
    told = {"distinct": len(distinct), "shared": int(several.sum())}
    yield blob_batch([(int(place[0]), TOLD, json.dumps(told).encode())])
