"""The second step on Spark: texts of the pairs that passed, brought together and judged by the workers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.classifier.classifier import Classifier
from neardup.classifier.values import NO_TIME, Records
from neardup.documents.records import value_texts
from neardup.recipe import Recipe
from neardup.search.second_step import Decided, Judge, decide, reached
from neardup.spark.documents import Read
from neardup.spark.features import Shared
from neardup.spark.search import Asked, brought_together
from neardup.text.html import content_of
from neardup.times import times_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from neardup.spark.stages import Stages

Integers = npt.NDArray[np.int64]

#: A pair that passed, by its number, or -1 and in o how many of a home were unlike those of training, null for unknown.
_JUDGED = "pair bigint, o bigint, a bigint, b bigint, vector binary"


def judged_by_workers(
    stages: Stages, recipe: Recipe, classifier: Classifier | None, documents: Read, rows: Integers, parts: int
) -> Judge:
    """Return what judges pairs of documents by the recipe's second measure.

    Parameters
    ----------
    stages : Stages
        Where what the workers say is written.
    recipe : Recipe
        Its ``second_step`` and ``content``.
    classifier : Classifier, optional
        Where the second step is learned.
    documents : Read
        With title and time where the classifier asks for them.
    rows : int64[n]
        The row of each document.
    parts : int
        In how many parts pairs are judged.
    """
    spark = documents.source.sparkSession
    columns: list[str] = [name for name in ("row", "text", "title", "time") if name in documents.columns]
    schema = ", ".join(["place int", *(f"{name} {documents.columns[name]}" for name in columns)])

    def send(asked: Shared[Asked]) -> DataFrame:
        return documents.map(partial(sent_documents, asked, columns), columns, schema)

    def judge(left: Integers, right: Integers) -> Decided:
        pairs = pa.table({"left": rows[left], "right": rows[right]})
        check = partial(check_texts, recipe, Shared(spark, classifier))
        judged = stages.run("judged", lambda: brought_together(spark, [pairs], parts, send, check, _JUDGED)).toArrow()
        judged = judged.sort_by("pair")
        pair, *counts = (judged[name].to_numpy() for name in ("pair", "a", "b"))
        some = pair >= 0
        passed = np.zeros(len(left), np.bool_)
        passed[pair[some]] = True
        unlike = judged["o"].filter(pa.array(~some))
        o = judged["o"].filter(pa.array(some)).to_numpy()
        blobs = judged["vector"].filter(pa.array(some)).to_pylist()
        width = 0 if classifier is None else len(classifier.vector)
        vectors = np.frombuffer(b"".join(blobs)).reshape(len(blobs), width)
        outside = None if unlike.null_count == len(unlike) else sum(unlike.to_pylist())
        return Decided(passed, vectors, np.column_stack([o, *(column[some] for column in counts)]), outside)

    return judge


def sent_documents(
    asked: Shared[Asked], columns: list[str], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield some columns of documents for the homes that need them; in a worker."""
    for batch in batches:
        which, places = asked.value.sent(batch.column("row").to_numpy())
        chosen = [batch.column(name).take(pa.array(which)) for name in columns]
        yield pa.RecordBatch.from_arrays([pa.array(places), *chosen], ["place", *columns])


def check_texts(
    recipe: Recipe, classifier: Shared[Classifier | None], documents: pa.Table, pairs: pa.Table
) -> pa.Table:
    """Judge the pairs of a home; in a worker."""
    step, known = recipe.parsed_second_step, classifier.value
    if step is None:
        raise ValueError("the recipe has no second step")
    documents, pairs = documents.sort_by("row"), pairs.sort_by("pair")
    rows = documents["row"].to_numpy()
    left, right = (np.searchsorted(rows, pairs[side].to_numpy()) for side in ("left", "right"))
    records = _records(documents, recipe.content)
    outside = None
    if known is not None:
        passed, vectors, counts, outside = decide(
            known, records, left, right, threads=1, encoder=None, progress=_silent
        )
    else:
        passed, counts = reached(step, records.texts, left, right, 1, None, _silent)
        vectors = np.empty((len(counts), 0))
    blobs = [row.tobytes() for row in vectors]
    found: dict[str, Any] = {"pair": [*pairs["pair"].to_numpy()[passed], -1]}
    found |= {name: [*counts[:, i], 0] for i, name in enumerate("oab")}
    found["o"][-1] = outside
    return pa.table(found | {"vector": pa.array([*blobs, b""], pa.binary())})


def _records(documents: pa.Table, content: str) -> Records:
    """Return what the second step looks at of documents."""
    values = documents["text"].to_pylist()
    texts = [content_of(value if isinstance(value, str) else value.decode(), content) for value in values]
    titles: list[str | None] = [None] * len(texts)
    if "title" in documents.column_names:
        titles = [title or None for title in value_texts(documents["title"].combine_chunks())]
    times = np.full(len(texts), NO_TIME, np.int64)
    if "time" in documents.column_names:
        found, readable = times_of(documents["time"].combine_chunks())
        times = np.where(readable, found, NO_TIME)
    return Records(texts, titles, times)


def _silent(done: int, total: int) -> None:
    return None
