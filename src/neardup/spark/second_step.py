"""The second step on Spark: workers judge the pairs that passed the first step, by texts, titles and times."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup.classifier.classifier import Classifier
from neardup.classifier.vector import read_records
from neardup.features.reading import compared_texts, ignore_progress
from neardup.recipe import Recipe
from neardup.search.second_step import PairJudge, StepVerdicts, judge_by_classifier, judge_by_measure
from neardup.spark.documents import DocumentSource
from neardup.spark.features import Broadcast
from neardup.spark.search import PairPlacement, compare_pairs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from neardup.spark.stages import Stages

Integers = npt.NDArray[np.int64]

#: The pairs that passed, by their numbers. The row with pair -1 has in o the number of a part's pairs that are unlike
#: those of training, null if that is unknown.
_JUDGED_COLUMNS = "pair bigint, o bigint, a bigint, b bigint, vector binary"


def judge_on_workers(
    stages: Stages,
    recipe: Recipe,
    classifier: Classifier | None,
    documents: DocumentSource,
    rows: Integers,
    parts: int,
) -> PairJudge:
    """Return a function that judges pairs of documents by the recipe's second measure, in the stage "judged".

    ``rows`` has the row of each document. ``documents`` have title and time if the classifier needs them.
    """
    spark = documents.frame.sparkSession
    columns: list[str] = [name for name in ("row", "text", "title", "time") if name in documents.columns]
    schema = ", ".join(["part int", *(f"{name} {documents.columns[name]}" for name in columns)])

    def route(placement: Broadcast[PairPlacement]) -> DataFrame:
        return documents.map(partial(route_documents, placement, columns), columns, schema)

    def judge(left: Integers, right: Integers) -> StepVerdicts:
        pairs = pa.table({"left": rows[left], "right": rows[right]})
        worker = partial(judge_texts, recipe, Broadcast(spark, classifier))

        def compared() -> DataFrame:
            return compare_pairs(spark, [pairs], parts, route, worker, _JUDGED_COLUMNS)

        judged = stages.run("judged", compared).toArrow().sort_by("pair")
        is_pair = pa.array(judged["pair"].to_numpy() >= 0)
        unlike, judged = judged.filter(pc.invert(is_pair))["o"], judged.filter(is_pair)
        passed = np.zeros(len(left), np.bool_)
        passed[judged["pair"].to_numpy()] = True
        blobs = judged["vector"].to_pylist()
        vectors = np.frombuffer(b"".join(blobs)).reshape(
            len(blobs), 0 if classifier is None else len(classifier.vector)
        )
        counts = np.column_stack([judged[name].to_numpy() for name in "oab"])
        outside = None if unlike.null_count == len(unlike) else sum(unlike.to_pylist())
        return StepVerdicts(passed, vectors, counts, outside)

    return judge


def route_documents(
    placement: Broadcast[PairPlacement], columns: list[str], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield some columns of documents for the parts that need them; runs in a worker."""
    for batch in batches:
        positions, parts = placement.value.destinations(batch.column("row").to_numpy())
        chosen = [batch.column(name).take(pa.array(positions)) for name in columns]
        yield pa.RecordBatch.from_arrays([pa.array(parts), *chosen], ["part", *columns])


def judge_texts(
    recipe: Recipe, classifier: Broadcast[Classifier | None], documents: pa.Table, pairs: pa.Table
) -> pa.Table:
    """Judge the pairs of a part; runs in a worker."""
    step, learned = recipe.parsed_second_step, classifier.value
    if step is None:
        raise ValueError("the recipe has no second step")
    documents, pairs = documents.sort_by("row"), pairs.sort_by("pair")
    rows = documents["row"].to_numpy()
    left, right = (np.searchsorted(rows, pairs[side].to_numpy()) for side in ("left", "right"))
    values = [text if isinstance(text, str) else text.decode() for text in documents["text"].to_pylist()]
    texts = compared_texts(values, recipe, 1)
    outside = None
    progress = partial(ignore_progress, "judged")
    if learned is not None:
        records = read_records(documents, texts, learned.vector, title_column="title", time_column="time")
        passed, vectors, counts, outside = judge_by_classifier(
            learned, records, left, right, threads=1, encoder=None, progress=progress
        )
    else:
        passed, counts = judge_by_measure(step, texts, left, right, 1, None, progress)
        vectors = np.empty((len(counts), 0))
    judged: dict[str, Any] = {"pair": [*pairs["pair"].to_numpy()[passed], -1]}
    judged |= {name: [*counts[:, i], 0] for i, name in enumerate("oab")}
    judged["o"][-1] = outside
    return pa.table(judged | {"vector": pa.array([*(row.tobytes() for row in vectors), b""], pa.binary())})
