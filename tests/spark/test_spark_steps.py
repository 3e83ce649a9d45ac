"""Steps in the workers, each against what it stands for in memory."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import workers
from hypothesis import given, settings
from hypothesis import strategies as st
from saying import says
from test_spark_search import corpus

from neardup.errors import InputError
from neardup.features.reading import gather_texts
from neardup.keep.order import keep_order
from neardup.recipe import Recipe
from neardup.recipe.measures import similarities
from neardup.search.second_step import reached
from neardup.spark import features
from neardup.spark import features as collection
from neardup.spark import features as packing
from neardup.spark import second_step as second
from neardup.spark import sets as keepvalues
from neardup.spark import verify as items
from neardup.spark import verify as verifying

VALUES = [
    "7",
    "10",
    "",
    "-3",
    "1e3",
    "nan",
    "0x1",
    "2020-01-03",
    "2020-01-02T10:00:00+02:00",
    "1577930000",
    "2020",
    "soon",
]


@settings(max_examples=60)
@given(st.lists(st.none() | st.sampled_from(VALUES), min_size=1, max_size=20), st.sampled_from(["newest", "score"]))
def test_texts_are_kept_by_as_in_memory(values: list[str | None], keep: str) -> None:
    batches = pa.table({"keep": pa.array(values, pa.string())}).to_batches(4)
    rows = [row for batch in keepvalues.count_batches(iter(batches)) for row in batch.to_pylist()]
    told = {name: sum(row[name] for row in rows) for name in rows[0]}
    told |= {name: all(row[name] for row in rows) for name in ("ints", "floats")}
    what, usable = ("time", None) if keep == "newest" else keepvalues.held_by(told)
    found = pa.concat_arrays(
        [batch.column("keep") for batch in keepvalues.convert_batches(what, iter(batches))]
    ).to_pylist()
    held = [place for place, value in enumerate(found) if value is not None]
    assert usable in (None, len(held))
    sequence = sorted(held, key=lambda place: found[place], reverse=True)
    if held:
        texts = pa.array(values, pa.large_string())
        order, missing = keep_order(keep, np.zeros(len(values), np.int64), [texts])
        assert missing == len(values) - len(held)
        assert order[: len(held)].tolist() == sequence


@pytest.mark.parametrize("recipe", [Recipe(features="words:1", clip="df:2:9"), Recipe(features="terms:4")], ids=str)
def test_statistics_are_those_of_memory(recipe: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collection, "_PIECE", 300)
    texts = corpus(random.Random(2), 90, 30)
    expected = gather_texts([pa.array(texts, pa.large_string())], recipe)
    place = packing.labels(3)
    table = pa.table(
        {"row": pa.array(range(len(texts) + 1), pa.int64()), "text": pa.array([*texts, None], pa.string())}
    )
    counted = workers.mapped(workers.cut(table, 4, 7), partial(collection.collect_batches, recipe, place))
    merged = workers.mapped(workers.exchanged(counted, 3), partial(collection.merge_batches, place))
    found = collection.statistics_from([batch for part in merged for batch in part])
    assert (found.documents, found.distinct, found.heaviest) == (
        expected.documents,
        expected.distinct,
        expected.heaviest,
    )
    assert found.features.tolist() == expected.features.tolist()
    assert found.df.tolist() == expected.df.tolist()


@pytest.mark.parametrize("then", ["edit >= 0.6", "jaccard(qgrams:2) >= 0.5"])
@pytest.mark.parametrize("content", ["", "tags"])
def test_a_second_step_looks_at_texts_as_in_memory(then: str, content: str) -> None:
    recipe = Recipe(features="words:1", second_step=then, content=content)
    texts = [f"<b>{text}</b> é語 \x00" if content else f"{text} é" for text in corpus(random.Random(4), 30, 9)]
    batch = pa.table({"row": range(30), "label": pa.array([0] * 30, pa.int32()), "text": texts}).to_batches()
    blobs = list(items.text_batches(second.record_batches(content, iter(batch))))
    held = items.together([items.unpacked(data) for _, _, data in packing.blobs_of(blobs)])
    left, right = np.triu_indices(30, 1)
    found = second.check_texts(recipe, None, held, left, right)
    from neardup.text.html import content_of

    step: Any = recipe.parsed_second_step
    plain = [content_of(text, content) for text in texts]
    passed, counts = reached(step, plain, left, right, 1, None, lambda done, total: None)
    assert found.passed.tolist() == passed.tolist()
    assert found.counts.tolist() == counts.tolist()
    assert found.similarity.tolist() == similarities(step.measure, counts).tolist()


def test_texts_that_are_none_are_rejected() -> None:
    ids = pa.array([1, None, 3, 4], pa.int64())
    texts = pa.array([b"one two", b"x", None, b"\xff"], pa.binary())
    batch = pa.record_batch({"row": pa.array(range(4), pa.int64()), "text": texts, "id": ids})
    (found,) = features.extract_batches(Recipe(features="words:1"), None, ["id"], iter([batch]))
    assert found.column("size").to_pylist() == [2, -3, -1, -2]
    assert found.column("id").to_pylist() == [1, None, 3, 4]


def test_a_text_that_no_row_can_hold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features, "_MOST_FEATURES", 3)
    batch = pa.record_batch({"row": pa.array([5], pa.int64()), "text": ["a b c d"]})
    with pytest.raises(InputError) as caught:
        list(features.extract_batches(Recipe(features="words:1"), None, [], iter([batch])))
    assert says(caught.value, "row 5 ", "4 features")


def test_sketches_never_rule_out_a_match() -> None:
    rng = random.Random(8)
    texts = [text or "x" for text in corpus(rng, 60, 14)]
    recipe = Recipe(features="words:1", measure="cosine", threshold=0.6)
    table = pa.table({"row": pa.array(range(60), pa.int64()), "text": texts})
    (known,) = workers.mapped([table.to_batches()], partial(features.extract_batches, recipe, None, []))
    whole = pa.Table.from_batches(known)
    whole = whole.append_column("label", pa.array([0] * 60, pa.int32())).select(["row", "label", "features"])
    sketches = _items(items.sketch_batches(64, iter(whole.to_batches(9))))
    sets = _items(items.feature_batches(iter(whole.to_batches(9))))
    left, right = np.triu_indices(60, 1)
    passed = verifying.check_sets(recipe, sets, left, right).passed
    possible = verifying.may_match(recipe, sketches, left, right)
    assert not (passed & ~possible).any()
    assert possible.sum() < len(left) / 2


def _items(batches: Any) -> items.Items:
    return items.together([items.unpacked(data) for _, _, data in packing.blobs_of(list(batches))])
