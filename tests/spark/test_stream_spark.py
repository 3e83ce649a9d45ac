"""Streams that Spark runs, from files to files, against one index; and what is refused before one starts."""

from __future__ import annotations

import importlib.metadata
import json
import os
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from sentences import says

import neardup as nd
import neardup.spark
from neardup.errors import InputError, NeardupError, RecipeError
from neardup.recipe import Recipe
from neardup.spark.failures import spark_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DAY = 86400
NOON = 541339200.0
STORY = "the harbour of velmora was closed on monday night after a silver astrolabe was stolen from its museum"
ARABIC = "قال وزير الطاقة يوم الاثنين إن أسعار النفط سترتفع في الربع الأخير من العام الجاري بسبب الطلب"
SNOW = "雪が降り続き 電車は 止まり 学校は 休みに なり 人々は 家で 過ごした と 伝えられた 月曜日"
#: Id, text, seconds after noon; both halves in order of time within a micro-batch, but for the wrong dates.
FIRST = [
    ("شبكة-1", ARABIC, 0.0),
    ("東京 🛰", SNOW, 60.0),
    ("3", STORY, 61.5),
    ("4", STORY + " police said", 62.000001),
    ("5", "", 90.0),
    ("6", ARABIC, 3600.0),
    ("7", SNOW, 40 * DAY),
    ("8", STORY, 1.5 * 10**9),
]
SECOND = [
    ("9", STORY, -10 * DAY),
    ("10", STORY + " and more", 7200.0),
    ("11", "* * *", 7300.0),
    ("12", SNOW + " と", 40 * DAY + 60.0),
    ("13", SNOW, 40 * DAY + 120.0),
]
WORDS = Recipe(features="words:1", threshold=0.3, second_step="edit >= 0.6")


def write_file(folder: Path, name: str, rows: list[Any]) -> None:
    """Write a file that appears as a whole."""
    folder.mkdir(exist_ok=True)
    draft = folder / f".{name}"
    lines = [json.dumps({"key": key, "body": text, "when": when}, ensure_ascii=False) for key, text, when in rows]
    draft.write_text("\n".join(lines) + "\n", "utf-8")
    draft.rename(folder / name)


def source(spark: SparkSession, folder: Path) -> DataFrame:
    folder.mkdir(exist_ok=True)
    return spark.readStream.schema("key string, body string, when double").json(str(folder))


def run_stream(verdicts: DataFrame, folder: Path) -> list[dict[str, Any]]:
    """Run a stream until it has read all files, and return its rows in order of arrival."""
    writer = verdicts.writeStream.format("parquet").option("path", str(folder / "verdicts"))
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    with spark_errors():
        query.awaitTermination()
    found = verdicts.sparkSession.read.parquet(str(folder / "verdicts"))
    return [row.asDict() for row in found.orderBy("serial").collect()]


def expected_row(verdict: nd.Verdict, serial: int, by: str = "") -> dict[str, Any]:
    if verdict.flag == "late" and verdict.kind == "exact":
        # A stream keeps no digests beyond the window.
        verdict = verdict._replace(kind="original", of=None, similarity=None, counts=None)
    o, a, b = verdict.counts or (None, None, None)
    found = verdict.as_dict() | {"o": o, "a": a, "b": b, "serial": serial, "by": by}
    return {name: value for name, value in found.items() if name not in ("counts", "measures", "version_of", "known")}


def with_seconds(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with its time in seconds: times of a data frame are in this machine's zone."""
    return row | {"time": row["time"].astimezone(UTC).timestamp()}


@pytest.mark.parametrize(
    ("recipe", "against"),
    [("default", "originals"), (WORDS, "everything")] if os.environ.get("NEARDUP_LONG") else [(WORDS, "everything")],
)
def test_a_stopped_stream_goes_on_with_the_verdicts_of_an_index(
    spark: SparkSession, tmp_path: Path, recipe: Any, against: str
) -> None:
    def judged() -> DataFrame:
        frame = source(spark, tmp_path / "inbox")
        columns: dict[str, Any] = {"text_column": "body", "id_column": "key", "time_column": "when", "order": "place"}
        frame = frame.withColumn("place", frame["key"].try_cast("int"))
        return neardup.spark.stream(frame, recipe, against=against, **columns)

    index = nd.Index(recipe, against=against, now=lambda: NOON + 100 * DAY)
    expected: list[dict[str, Any]] = []
    for name, rows in (("a.json", FIRST), ("b.json", SECOND)):
        ordered = sorted(rows, key=lambda row: (not row[0].isdigit(), int(row[0]) if row[0].isdigit() else 0, row[0]))
        timed = [(key, text, NOON + when) for key, text, when in ordered]
        write_file(tmp_path / "inbox", name, timed)
        documents = [nd.Document(*row) for row in timed]
        serial = len(expected)
        expected += [expected_row(verdict, serial + i) for i, verdict in enumerate(index.add_many(documents))]
        assert [with_seconds(row) for row in run_stream(judged(), tmp_path)] == expected
    assert {row["flag"] for row in expected} == {"", "late", "ahead", "future", "undecidable"}
    assert {row["kind"] for row in expected} == {"original", "near", "exact"}
    if against == "originals":
        write_file(tmp_path / "inbox", "c.json", [("14", STORY, NOON)])
        frame = source(spark, tmp_path / "inbox")
        columns: dict[str, Any] = {"text_column": "body", "id_column": "key", "time_column": "when"}
        other = neardup.spark.stream(frame, recipe, window="7d", **columns)
        with pytest.raises(RecipeError) as caught:
            run_stream(other, tmp_path)
        assert says(caught.value, "window 24h", "168h")


def test_each_group_has_its_own_window_and_rejects_rows_that_are_no_documents(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows: list[Any] = [(f"{i}{group}", STORY, NOON + i) for i in range(2) for group in "ab"]
    rows += [("0a", STORY, NOON + 2), (None, STORY, NOON), ("2a", None, NOON), ("2b", STORY, None)]
    write_file(tmp_path / "inbox", "a.json", rows)
    frame = source(spark, tmp_path / "inbox").selectExpr(
        "key as id", "body as text", "timestamp_micros(cast(when * 1000000 as bigint)) as time", "right(key, 1) as side"
    )
    # Spark's own watermark drops nothing.
    found = run_stream(neardup.spark.stream(frame.withWatermark("time", "1 second"), by="side"), tmp_path)
    rejected = {(row["by"], row["id"], row["flag"]) for row in found if row["kind"] == "rejected"}
    assert rejected == {("", None, "no id"), ("a", "2a", "no text"), ("b", "2b", "no readable time")}
    judged = sorted((row["by"], row["serial"], row["id"], row["of"]) for row in found if row["serial"] is not None)
    # An id may occur twice.
    assert judged == [
        ("a", 0, "0a", None),
        ("a", 1, "1a", "0a"),
        ("a", 2, "0a", "0a"),
        ("b", 0, "0b", None),
        ("b", 1, "1b", "0b"),
    ]


def test_unsuitable_streams_are_refused_before_they_start(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = source(spark, tmp_path / "inbox").withColumnRenamed("body", "text").withColumnRenamed("key", "id")
    timed = frame.withColumnRenamed("when", "time")
    refused: list[tuple[type[NeardupError], tuple[str, ...], Any, dict[str, Any]]] = [
        (InputError, ("no stream", "readStream"), spark.createDataFrame([("a", "b")], "id string, text string"), {}),
        (InputError, ("no column", "time_column=''"), frame, {}),
        (InputError, ("no column 'day'", "time_column"), frame, {"time_column": "day"}),
        (InputError, ("array", "no time", "time_column"), timed.selectExpr("id", "text", "array(time) as time"), {}),
        (InputError, ("no column", "id_column"), timed.drop("id"), {}),
        (InputError, ("must be text",), timed.selectExpr("id", "time as text", "time"), {"text_column": "text"}),
        (InputError, ("no column 'rank'", "order"), timed, {"order": ["rank"]}),
        (RecipeError, ("'tfidf'", "no keys", "simhash"), timed, {"recipe": "terms", "sample": ["a"]}),
        (RecipeError, ("'imatch'", "sample="), timed, {"recipe": "imatch"}),
        (RecipeError, ("against", "'all'", "originals or everything"), timed, {"against": "all"}),
        (InputError, ("no column 'day'", "by"), timed, {"by": "day"}),
        (RecipeError, ("window", "'soon'", "is not a length"), timed, {"window": "soon"}),
        (RecipeError, ("title_column", "'text'", "compare titles"), timed, {"title_column": "text"}),
    ]
    for kind, parts, given, options in refused:
        with pytest.raises(kind) as caught:
            neardup.spark.stream(given, **options)
        assert says(caught.value, *parts)
    monkeypatch.setattr(importlib.metadata, "version", lambda name: {"protobuf": "6.31.1", "pandas": "2.2"}[name])
    with pytest.raises(RecipeError) as failed:
        neardup.spark.stream(timed)
    assert says(failed.value, "protobuf 6.33 or newer", "6.31.1", "pip install")
