"""One recipe, one answer: on Spark what a run in memory says, and in its streams what an index says."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from promised_corpora import require_corpus, rows_of
from promised_engines import BOTH_SIDES, Answer, check_equal, in_memory, question_of, table_of, two_sides

import neardup as nd

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Of each corpus that is there, so many documents make the one that Spark is asked about.
MIXED = {"newswire": 199, "adzuna": 60, "msrp": 60, "r8": 60, "saudinews": 40, "peps": 6}
#: Those that Spark is asked, one for each way through it: a run takes seconds. Signatures that are sets
#: are compared like other sets.
ON_SPARK = ("default", "imatch", "lsh", "keep longest", "second step")


@cache
def mixture() -> pa.Table:
    """Some of every corpus that is there, with ids in the order of the rows."""
    texts: list[str] = []
    for corpus, count in MIXED.items():
        try:
            require_corpus(corpus)
        except pytest.skip.Exception:
            continue
        texts += [row["text"] for row in rows_of(corpus)[:count]]
    return pa.table({"id": [f"{i:05}" for i in range(len(texts))], "text": texts})


def on_spark(session: SparkSession, table: pa.Table, *, recipe: Any = "default", **options: Any) -> Answer:
    """The answer of ``neardup.spark.run`` on a data frame of the documents."""
    import neardup.spark

    frame = session.createDataFrame(table.select(["id", "text"])).coalesce(1)
    with neardup.spark.run(frame, recipe, id_column="id", text_column="text", **options) as result:
        dropped, pairs = result.duplicates.toArrow().to_pylist(), result.pairs.toArrow().to_pylist()
        kept = {row["id"] for row in result.kept.select("id").collect()}
    return Answer(
        kept,
        {row["dropped"]: (row["keeper"], row["similarity"]) for row in dropped},
        {(row["left"], row["right"]): row["similarity"] for row in pairs},
    )


@pytest.mark.parametrize("name", ON_SPARK)
def test_spark_keeps_what_a_run_keeps(name: str, spark: SparkSession) -> None:
    question = question_of(name)
    check_equal(on_spark(spark, mixture(), **question.choices), in_memory(mixture(), **question.choices))


def test_spark_gives_a_frame_of_kept_documents(spark: SparkSession) -> None:
    import neardup.spark

    kept = neardup.spark.dedup(spark.createDataFrame(mixture()).coalesce(1), "checksum", id_column="id")
    assert kept.columns == ["id", "text"]
    assert {row["id"] for row in kept.collect()} == in_memory(mixture(), recipe="checksum").kept


def test_spark_gives_a_frame_of_pairs(spark: SparkSession) -> None:
    import neardup.spark

    pairs = neardup.spark.pairs(spark.createDataFrame(mixture()).coalesce(1), "manber", id_column="id").collect()
    found = {(row["left"], row["right"]): row["similarity"] for row in pairs}
    assert found == in_memory(mixture(), recipe="manber").pairs


def test_an_index_on_spark_drops_what_a_plain_comparison_drops(spark: SparkSession, tmp_path: Path) -> None:
    new, old, expected = two_sides("newswire", 199)
    found = on_spark(spark, new, recipe=None, against=nd.build_index(old, tmp_path / "old", **BOTH_SIDES))
    assert (found.kept, found.dropped) == (expected.kept, expected.dropped)
    assert expected.dropped


def test_a_stream_on_spark_gives_the_verdicts_of_an_index(spark: SparkSession, tmp_path: Path) -> None:
    import neardup.spark

    rows = rows_of("newswire")[:90]
    (tmp_path / "in").mkdir()
    for number, part in enumerate((rows[:50], rows[50:])):
        lines = "".join(json.dumps({key: row[key] for key in ("id", "text", "timestamp")}) + "\n" for row in part)
        path = tmp_path / "in" / f"{number}.json"
        path.write_text(lines, "utf-8")
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    reader = spark.readStream.schema("id string, text string, timestamp string").option("maxFilesPerTrigger", 1)
    verdicts = neardup.spark.stream(reader.json(str(tmp_path / "in")), "ddd", window="24h")
    write = verdicts.writeStream.format("memory").queryName("promised").trigger(availableNow=True)
    query = write.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    query.awaitTermination()
    found = spark.sql("SELECT id, kind, of, similarity FROM promised ORDER BY serial").collect()
    with nd.Index("ddd", window="24h") as index:
        expected = index.add_many(nd.Document(row["id"], row["text"], row["timestamp"]) for row in rows)
    assert [tuple(row) for row in found] == [(v.id, v.kind, v.of, v.similarity) for v in expected]


def test_a_classifier_on_spark_keeps_what_a_run_keeps(model: Path, spark: SparkSession) -> None:
    table = table_of("newswire", 199)
    check_equal(on_spark(spark, table, classifier=model), in_memory(table, classifier=model))
