"""The second step on Spark: texts of the pairs that passed, brought together and looked at by the second measure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.classifier.classifier import Classifier
from neardup.classifier.values import NO_TIME, Records
from neardup.documents.records import value_texts
from neardup.recipe import Recipe
from neardup.recipe.measures import similarities
from neardup.search.second_step import decide, reached
from neardup.spark import sets
from neardup.spark import verify as items
from neardup.spark import verify as verifying
from neardup.spark.features import BLOBS, PAIRS, TEXT, Outbox, Shared, labels, place_of
from neardup.spark.sets import members
from neardup.spark.verify import Integers, Items
from neardup.text.html import content_of
from neardup.times import times_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from neardup.spark.stages import Stages

_SCHEMA = "row bigint, label int, item binary"


def second_step(
    stages: Stages,
    recipe: Recipe,
    classifier: Shared[Classifier] | None,
    features: DataFrame,
    copies: DataFrame,
    edges: DataFrame,
    order: Sequence[str],
    partitions: int,
) -> tuple[DataFrame, DataFrame, dict[str, int]]:
    """Return the texts that are equal, the pairs of distinct texts that pass, and how many were looked at and pass.

    Documents with equal features need not have equal texts: they are pairs to look at like others, and only texts that
    are equal byte for byte still stand for each other.

    Parameters
    ----------
    stages, recipe
        As in ``finding.find``; the recipe's ``second_step``.
    classifier : Shared, optional
        Where the second step is learned.
    features : DataFrame
        ``features.COLUMNS``, text, and title and time where a classifier asks for them.
    copies, edges : DataFrame
        Equal sets, and the pairs of distinct sets that passed.
    order : sequence of str
        As in ``finding.find``: of equal texts the first one's title and time are looked at.
    partitions : int
        The number of parts in which texts meet.
    """
    from pyspark.sql import functions as F

    joined = members(copies, edges)
    known = features.select("row", *TEXT, *order)
    marks = sets.with_documents(known, joined, joined.count())
    texts = marks.groupBy("node", *TEXT).agg(F.min_by("row", F.struct(*order, "row")).alias("rep"))
    texts = stages.run("texts", lambda: texts)
    equal = marks.join(texts, ["node", *TEXT]).where("row <> rep").select("row", "rep")
    equal = stages.run("text-copies", lambda: equal)
    sides = [texts.select(F.col("rep").alias(f"rep_{s}"), F.col("node").alias(f"node_{s}")) for s in ("l", "r")]
    inside = sides[0].join(sides[1], (F.col("node_l") == F.col("node_r")) & (F.col("rep_l") < F.col("rep_r")))
    across = edges.join(sides[0], F.col("left") == F.col("node_l")).join(sides[1], F.col("right") == F.col("node_r"))
    ends = [F.least("rep_l", "rep_r").alias("left"), F.greatest("rep_l", "rep_r").alias("right")]
    asked = stages.run("text-pairs", lambda: inside.select(*ends).union(across.select(*ends)))
    listed = stages.run("text-candidates", lambda: asked.mapInArrow(partial(pair_batches, labels(partitions)), BLOBS))
    routes = stages.run("text-routes", lambda: listed.mapInArrow(verifying.route_batches, verifying.ROUTES).distinct())
    columns = [name for name in ("text", "title", "time") if name in features.columns]
    own = sets.with_documents(features.select("row", *columns), routes, routes.count())
    held = own.mapInArrow(partial(record_batches, recipe.content), _SCHEMA).mapInArrow(items.text_batches, BLOBS)
    check = partial(check_texts, recipe, classifier)
    found = stages.run("text-edges", lambda: verifying.verified(listed, held, check, partitions))
    matching, looked_at = verifying.counted(found)
    return equal, found.where("left >= 0"), {"first_step_pairs": looked_at, "pairs": matching}


def pair_batches(homes: npt.NDArray[np.int32], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield pairs of rows as blobs for the homes of their first documents; in a worker."""
    outbox = Outbox(homes, PAIRS)
    for batch in batches:
        left, right = (batch.column(name).to_numpy() for name in ("left", "right"))
        yield from outbox.add(place_of(np.ascontiguousarray(left), len(homes)), [left, right])
    yield from outbox.flush()


def record_batches(content: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield what the second step looks at of documents, as JSON; in a worker."""
    for batch in batches:
        names = batch.schema.names
        records: list[dict[str, Any]] = [
            {"text": content_of(_text(text), content)} for text in batch.column("text").to_pylist()
        ]
        if "title" in names:
            for record, title in zip(records, value_texts(batch.column("title")), strict=True):
                if title:
                    record["title"] = title
        if "time" in names:
            times, readable = times_of(batch.column("time"))
            for record, time in zip(records, np.where(readable, times, NO_TIME).tolist(), strict=True):
                record["time"] = time
        told = pa.array([json.dumps(record).encode() for record in records], pa.binary())
        columns = [batch.column("row"), batch.column("label"), told]
        yield pa.RecordBatch.from_arrays(columns, ["row", "label", "item"])


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else bytes(value).decode()


def check_texts(
    recipe: Recipe, classifier: Shared[Classifier] | None, held: Items, left: Integers, right: Integers
) -> verifying.Checked:
    """Look at pairs of texts by the second measure."""
    step = recipe.parsed_second_step
    if step is None:
        raise ValueError("the recipe has no second step")
    documents, places = np.unique(np.concatenate([left, right]), return_inverse=True)
    records = _records([json.loads(held.data[held.heads[d] : held.heads[d + 1]].tobytes()) for d in documents])
    one, other = places[: len(left)], places[len(left) :]
    if classifier is not None:
        decided = decide(
            classifier.value, records, one, other, threads=1, encoder=None, progress=lambda done, total: None
        )
        passed, counts = decided.passed, decided.counts
    else:
        passed, counts = reached(step, records.texts, one, other, 1, None, lambda done, total: None)
    return verifying.Checked(passed, counts, similarities(step.measure, counts))


def _records(found: Sequence[dict[str, Any]]) -> Records:
    texts = [record["text"] for record in found]
    titles = [record.get("title") for record in found]
    times = np.array([record.get("time", NO_TIME) for record in found], np.int64)
    return Records(texts, titles, times)
