"""A run on Spark against the engine in memory: the same keepers, similarities, pairs, families and counts."""

from __future__ import annotations

import random
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from classifiers import DATED, make_classifier
from sentences import says
from test_spark_search import corpus

import neardup
import neardup.spark
from neardup.classifier.domain import Domain
from neardup.documents.records import joined_column
from neardup.errors import InputError, OutputError, RecipeError, StoreError
from neardup.recipe import Recipe
from neardup.search import engines
from neardup.spark import search
from neardup.spark.documents import frame_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: What the two engines count alike.
COUNTS = (
    *("documents", "kept", "dropped", "exact_copies", "equal_content", "families", "largest_family", "pairs"),
    *("all_pairs", "text_bytes", "bytes_saved", "rejected", "undecidable", "without_keep_value", "fingerprint"),
)


def table_of(seed: int, count: int = 160) -> pa.Table:
    """Documents with ids in no order, and columns of all kinds to keep by."""
    rng = random.Random(seed)
    times = ["2020-01-03", "2020-01-02T10:00+02:00", "1577930000", "2019", "Thu, 02 Jan 2020 00:00 GMT", "soon", ""]
    return pa.table(
        {
            "id": pa.array(rng.sample(range(10**6), count)),
            "text": corpus(rng, count, 20),
            "score": pa.array([rng.choice([None, float("nan"), -0.0, 0.0, rng.random()]) for _ in range(count)]),
            "rank": [rng.choice(["7", "10", "", "-3"]) for _ in range(count)],
            "when": [rng.choice(times) for _ in range(count)],
            "tags": pa.array([[str(i)] for i in range(count)]),
        }
    )


def sorted_by(table: pa.Table, *names: str) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = table.sort_by([(name, "ascending") for name in names]).to_pydict()
    return found


def check_as_in_memory(
    spark: SparkSession,
    table: pa.Table,
    recipe: Recipe | str,
    *,
    partitions: int = 2,
    order: str | None = None,
    most: float | None = None,
    **choices: Any,
) -> dict[str, Any]:
    by = list(dict.fromkeys([order or "id", "id"]))
    in_order = table.sort_by([(name, "ascending") for name in by])
    local = neardup.dedup(in_order, recipe=recipe, pairs_per_document=most, **choices)
    frame = spark.createDataFrame(table).repartition(partitions)
    with neardup.spark.run(frame, recipe, order=order, pairs_per_document=most, **choices) as found:
        dropped, pairs = found.duplicates.toArrow(), found.pairs.toArrow()
        # Local tables of a classifier have further columns.
        expected = local.duplicates().select(dropped.column_names), local.pairs.to_arrow().select(pairs.column_names)
        assert sorted_by(dropped, "dropped") == sorted_by(expected[0], "dropped")
        assert sorted_by(pairs, "left", "right") == sorted_by(expected[1], "left", "right")
        assert repr(sorted_by(found.kept.toArrow(), "id")) == repr(sorted_by(local.table(), "id"))
        assert {name: found.summary[name] for name in COUNTS} == {name: local.summary[name] for name in COUNTS}
        assert found.summary.get("classifier") == local.summary.get("classifier")
        return found.summary


def test_too_many_pairs_are_reported_as_in_memory(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clipped containment with a floor, in the order of one column, kept by another one."""
    monkeypatch.setattr(engines, "_ALWAYS_ALLOWED_PAIRS", 3)
    monkeypatch.setattr(search, "_CANDIDATES_PER_PAIR", 10**6)
    recipe = Recipe(features="words:1", measure="containment", threshold=0.9, jaccard_floor=0.3, clip="df:2:0.5")
    recipe = recipe.changed(keep="score:lowest")
    summary = check_as_in_memory(spark, table_of(3), recipe, partitions=3, order="rank", most=0)
    assert summary["all_pairs"] is False


def test_the_search_for_kept_pairs_gives_the_answer_of_memory(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "_ALWAYS_ALLOWED_PAIRS", 3)
    monkeypatch.setattr(search, "_CANDIDATES_PER_PAIR", 1)
    recipe = Recipe(features="words:1", threshold=0.4, keep="shortest")
    summary = check_as_in_memory(spark, table_of(9, 60), recipe, most=0)
    assert any(stage["name"] == "kept-pairs" for stage in summary["stages"])


def test_a_classifier_decides_as_in_memory_and_refuses_another_domain(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The documents are gone through twice for all candidates.
    monkeypatch.setattr(search, "_PAIRS_PER_PASS", 250)
    table = table_of(6, 80)
    table = table.append_column("title", pa.array([text[:9] for text in table["text"].to_pylist()]))
    classifier = make_classifier(DATED)
    domain = Domain.from_training(
        np.zeros((1, len(classifier.vector))), ["x" * 10**6], np.ones(1), np.ones(1, np.bool_)
    )
    choices: dict[str, Any] = {"classifier": replace(classifier, domain=domain), "time_column": "when"}
    summary = check_as_in_memory(spark, table, "default", force_domain=True, **choices)
    assert summary["search"]["candidates"] > 250
    with pytest.raises(RecipeError) as local:
        neardup.dedup(table.sort_by("id"), **choices)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(RecipeError) as refused:
        neardup.spark.run(spark.createDataFrame(table), **choices)
    assert str(refused.value) == str(local.value)
    # Nor does it leave its stages behind.
    assert not list(tmp_path.iterdir())


def test_rows_that_are_no_documents_are_rejected(spark: SparkSession) -> None:
    schema = pa.schema([("id", pa.string()), ("text", pa.string()), ("more", pa.int64())])
    text = "one two three four five six seven eight nine ten"
    rows = [
        ("a", text, 1),
        ("b", None, 2),
        (None, text, 3),
        ("c", text + " eleven", 4),
        ("c", "another text of the same id", 5),
        ("d", text, 6),
        ("d", text, 6),
        ("e", "", 7),
        ("f", "", 8),
    ]
    frame = spark.createDataFrame(
        pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)
    )
    with neardup.spark.run(frame.repartition(4), threshold=0.8, order="more") as found:
        assert found.summary["rejected"] == {"no text": 1, "no id": 1, "repeated id": 2}
        assert (found.summary["documents"], found.summary["undecidable"], found.summary["exact_copies"]) == (5, 2, 1)
        kept = [tuple(row) for row in found.kept.orderBy("more").collect()]
        assert kept == [rows[0], rows[7], rows[8]]
        assert [tuple(row) for row in found.duplicates.orderBy("dropped").collect()] == [
            ("c", "a", pytest.approx(6 / 7), 1),
            ("d", "a", 1.0, 1),
        ]


def test_several_columns_make_one_text(spark: SparkSession) -> None:
    columns = [pa.array(["a rose", "", "a tulip", None, "x"]), pa.array(["is a rose", "y", None, None, ""])]
    frame = spark.createDataFrame(pa.table(columns, ["title", "text"])).coalesce(1)
    texts = frame.select(frame_text(frame, ["title", "text"]).alias("text")).toArrow()["text"]
    assert texts.to_pylist() == joined_column(columns).to_pylist()


def test_an_empty_frame_has_an_empty_result(spark: SparkSession) -> None:
    frame = spark.createDataFrame([], "id bigint, text string")
    with neardup.spark.run(frame) as found:
        assert found.kept.count() == found.pairs.count() == 0
        assert found.summary["documents"] == found.summary["pairs"] == 0


@pytest.mark.parametrize("kind", ["frame", "index"])
def test_a_reference_stays_and_is_not_compared_with_itself(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    table = table_of(11, 120).drop_columns(["tags"])
    new, old = table.slice(0, 70).sort_by("id"), table.slice(70).sort_by("id")
    recipe = Recipe(features="words:1", threshold=0.5)
    index = neardup.build_index(old, tmp_path / "index", recipe=recipe).remove(old["id"].to_pylist()[::5])
    local = neardup.dedup(new, against=old, recipe=recipe) if kind == "frame" else neardup.dedup(new, against=index)
    frame, chosen_recipe = spark.createDataFrame(new), recipe if kind == "frame" else None
    against = spark.createDataFrame(old) if kind == "frame" else index
    with neardup.spark.run(frame, chosen_recipe, against=against) as found:
        dropped, pairs = found.duplicates.toArrow(), found.pairs.toArrow()
        assert sorted_by(dropped, "dropped") == sorted_by(local.duplicates(), "dropped")
        by = "left", "right", "right_from"
        assert sorted_by(pairs, *by) == sorted_by(local.pairs.to_arrow(), *by)
        assert sorted(row["id"] for row in found.kept.select("id").collect()) == sorted(local.kept)
        assert found.summary["reference"] == local.summary["reference"]
    assert local.summary["reference"]["dropped"] > 0


def test_ids_of_a_reference_take_the_type_of_the_frame(spark: SparkSession) -> None:
    numbers = spark.createDataFrame([(1, "a b c d")], "id bigint, text string")
    texts = spark.createDataFrame([("x", "a b c d"), ("y", "e f g h")], "id string, text string")
    with neardup.spark.run(texts, against=numbers) as found:
        assert [tuple(row) for row in found.duplicates.select("dropped", "keeper").collect()] == [("x", "1")]
    with pytest.raises(InputError) as refused:
        neardup.spark.run(numbers, against=texts)
    assert says(refused.value, "'id'", "whole numbers", "the reference are texts", "id_column")


def test_an_index_that_does_not_fit_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    choices: dict[str, Any] = {"features": "words:1", "threshold": 0.5}
    frame = spark.createDataFrame([(1, "a b c")], "id bigint, text string")
    index = neardup.build_index({"id": ["a"], "text": ["nothing"]}, tmp_path / "index", **choices)
    with pytest.raises(RecipeError) as other:
        neardup.spark.run(frame, "default", against=index)
    assert says(other.value, index.path, "words:1", "words:5")
    with pytest.raises(InputError) as unlike:
        neardup.spark.run(frame, against=index)
    assert says(unlike.value, "'id'", "whole numbers", index.path, "id_column")
    shutil.rmtree(index.path)
    with pytest.raises(StoreError) as missing:
        neardup.spark.run(frame.selectExpr("cast(id as string) id", "text"), against=index)
    assert says(missing.value, "a worker", index.path, "all workers")


def test_a_frame_goes_on_from_its_stages_only_with_the_same_key(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.createDataFrame([(1, "a b c d"), (2, "a b c d e"), (3, "x y z")], "id bigint, text string")
    given: dict[str, Any] = {"checkpoint_dir": str(tmp_path / "stages"), "features": "words:1"}
    first = neardup.spark.run(frame, **given, key="v1", threshold=0.5)
    again = neardup.spark.run(frame, **given, key="v1", threshold=0.5)
    assert all(stage.get("resumed") for stage in again.summary["stages"])
    assert again.duplicates.collect() == first.duplicates.collect()
    for other in ({"threshold": 0.6, "key": "v1"}, {"threshold": 0.5, "key": "v2"}, {"threshold": 0.5}):
        with pytest.raises(OutputError) as caught:
            neardup.spark.run(frame, **given, **other)
        assert says(caught.value, str(tmp_path / "stages"), "another recipe")
    with pytest.raises(RecipeError) as refused:
        neardup.spark.run(frame, key="v1")
    assert says(refused.value, "key 'v1'", "checkpoint_dir")


@pytest.mark.parametrize(("recipe", "value"), [("simhash", "'hamming'"), ("terms", "'tfidf'")])
def test_recipes_that_spark_cannot_search_for_are_refused(recipe: str, value: str) -> None:
    with pytest.raises(RecipeError) as caught:
        neardup.spark.run(None, recipe)
    assert says(caught.value, value, "searched on Spark")


def test_missing_and_ambiguous_columns_are_refused(spark: SparkSession) -> None:
    frame = spark.createDataFrame([("x", "y", 1)], "name string, text string, id bigint")
    refused: list[tuple[Any, dict[str, Any], tuple[str, ...]]] = [
        (frame, {"order": "day"}, ("no column 'day'", "order")),
        (frame.drop("id"), {}, ("no column", "id_column", "name, text")),
        (frame.withColumnsRenamed({"name": "ID"}), {"id_column": "id"}, ("several columns 'id'", "toDF")),
    ]
    for given, options, parts in refused:
        with pytest.raises(InputError) as caught:
            neardup.spark.run(given, **options)
        assert says(caught.value, *parts)


def test_only_data_frames_of_a_session_here_are_compared(spark: SparkSession, tmp_path: Path) -> None:
    remote = type("DataFrame", (), {"__module__": "pyspark.sql.connect.dataframe"})()
    frame = spark.createDataFrame([(1, "a b c")], "id bigint, text string")
    refused: list[tuple[Any, dict[str, Any], tuple[str, ...]]] = [
        (remote, {}, ("Spark Connect", "builder.master", "neardup dedup")),
        (pa.table({"id": [1], "text": ["a b c"]}), {}, ("a pyarrow.lib.Table", "createDataFrame", "neardup.dedup")),
        (frame, {"against": str(tmp_path)}, ("a str", "createDataFrame")),
        (spark.readStream.schema("id bigint, text string").json(str(tmp_path)), {}, ("a stream", "spark.stream")),
    ]
    for given, options, parts in refused:
        with pytest.raises(InputError) as caught:
            neardup.spark.run(given, **options)
        assert says(caught.value, *parts)


def test_stages_are_where_paths_of_the_session_are(spark: SparkSession, tmp_path: Path) -> None:
    """The default filesystem of a cluster is not this machine's: a view of a folder stands for it."""
    hadoop: Any = spark.sparkContext
    hadoop = hadoop._jsc.hadoopConfiguration()
    before = hadoop.get("fs.defaultFS")
    frame = spark.createDataFrame([(1, "a b c d"), (2, "a b c d")], "id bigint, text string")
    hadoop.set("fs.viewfs.mounttable.here.link./stages", tmp_path.as_uri())
    hadoop.set("fs.defaultFS", "viewfs://here/")
    try:
        for folder in ("/stages/run", None):
            with neardup.spark.run(frame, checkpoint_dir=folder) as found:
                assert found.summary["dropped"] == 1
    finally:
        hadoop.set("fs.defaultFS", before)
    assert {path.name for path in (tmp_path / "run").iterdir()} >= {"documents", "features", "pairs"}
