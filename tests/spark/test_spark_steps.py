"""Steps of the workers, each against the engine in memory."""

from __future__ import annotations

import datetime
import decimal
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sentences import says
from test_spark_search import corpus
from workers import local_value

import neardup
from neardup.errors import InputError
from neardup.keep.order import keep_order
from neardup.recipe import Recipe
from neardup.search.second_step import judge_by_measure
from neardup.spark import documents, features
from neardup.spark import second_step as second
from neardup.text import contents


@pytest.mark.parametrize("then", ["edit >= 0.6", "jaccard(qgrams:2) >= 0.5"])
@pytest.mark.parametrize("content", ["", "tags"])
def test_a_second_step_judges_texts_as_in_memory(then: str, content: str) -> None:
    recipe = Recipe(features="words:1", second_step=then, content=content)
    texts = [f"<b>{text}</b> é語 \x00" if content else f"{text} é" for text in corpus(random.Random(4), 30, 9)]
    left, right = np.triu_indices(30, 1)
    documents = pa.table({"row": pa.array(range(30)), "text": texts}).take(
        pa.array(np.random.default_rng(1).permutation(30))
    )
    pairs = pa.table({"pair": np.arange(len(left)), "left": left, "right": right})
    found = second.judge_texts(recipe, local_value(None), documents, pairs).sort_by("pair").to_pylist()
    from neardup.text.contents import content_of

    step: Any = recipe.parsed_second_step
    plain = [content_of(text, content) for text in texts]
    passed, counts = judge_by_measure(step, plain, left, right, 1, None, lambda done, total: None)
    assert found[0] == {"pair": -1, "o": None, "a": 0, "b": 0, "vector": b""}
    assert [row["pair"] for row in found[1:]] == np.flatnonzero(passed).tolist()
    assert [[row[name] for name in "oab"] for row in found[1:]] == counts.tolist()


def test_missing_and_broken_texts_are_rejected() -> None:
    ids = pa.array([1, None, 3, 4], pa.int64())
    texts = pa.array([b"one two", b"x", None, b"\xff"], pa.binary())
    batch = pa.record_batch({"row": pa.array(range(4), pa.int64()), "text": texts, "id": ids})
    keys = np.array([1, 2], np.uint64)
    (found,) = features.digest_batches(Recipe(features="words:1"), None, ["id"], keys, 0, iter([batch]))
    assert found.column("size").to_pylist() == [2, -3, -1, -2]
    assert found.column("id").to_pylist() == [1, None, 3, 4]


def test_why_a_page_failed_is_reported_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    extract = contents.extract_contents

    def failing(texts: pa.LargeStringArray, name: str) -> tuple[pa.LargeStringArray, dict[int, str]]:
        found, _ = extract(texts, name)
        return found, {at: "it took more than 20 s" for at, text in enumerate(texts.to_pylist()) if "slow" in text}

    monkeypatch.setattr(contents, "extract_contents", failing)
    texts = ["<p>one two</p>", "<p>slow one</p>", "<p>three four</p>"]
    batch = pa.record_batch({"row": pa.array(range(3), pa.int64()), "text": pa.array(texts)})
    keys = np.array([1, 2], np.uint64)
    recipe = Recipe(features="words:1", content="html")
    (found,) = features.digest_batches(recipe, None, [], keys, 0, iter([batch]))
    assert found.column("failed").to_pylist() == [None, "it took more than 20 s", None]


def test_a_set_too_large_for_a_row_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features, "_MAX_FEATURES", 3)
    batch = pa.record_batch({"row": pa.array([5], pa.int64()), "text": ["a b c d"]})
    with pytest.raises(InputError) as caught:
        list(
            map(
                features.encode_sets, features.set_batches(Recipe(features="words:1"), None, np.isfinite, iter([batch]))
            )
        )
    assert says(caught.value, "row 5 ", "4 features")


@pytest.mark.parametrize(
    "values",
    [
        pa.array([3, None, -1, 2**62 + 1, 2**62], pa.int64()),
        pa.array([0.1, float("nan"), None, -0.0, 1e-300, 0.30000000000000004, 0.3]),
        pa.array([0.1, 16777216.0, None], pa.float32()),
        pa.array([decimal.Decimal("1.10"), decimal.Decimal("-7.25"), None]),
        pa.array([datetime.date(2020, 1, 2), None, datetime.date(1960, 1, 1)]),
        pa.array([datetime.datetime(2020, 1, 2), None, datetime.datetime(1960, 1, 1)], pa.timestamp("ns", "UTC")),
        pa.array([True, False, None]),
        pa.array(["10", "9", "", None, "x"]),
    ],
    ids=lambda values: str(values.type),
)
def test_order_values_survive_as_strings(values: pa.Array) -> None:
    column = {"id": range(len(values)), "text": ["a b c"] * len(values), "by": values}
    memory = neardup.dedup(pa.table(column), keep="by", features="words:1")
    kind = documents._compared_type({values.type}, "by")
    known = documents._order_texts(values).cast(kind)
    order, missing = keep_order("by", np.zeros(len(values), np.int64), [known])
    assert [int(order[0])] == memory.kept
    assert order.tolist() == keep_order("by", np.zeros(len(values), np.int64), [values])[0].tolist()
    assert missing == memory.summary["without_keep_value"]
