"""The Python interface: what goes in, what a result answers."""

from __future__ import annotations

import random

import naive
import pandas as pd
import pyarrow as pa
import pytest
from references import corpus
from sentences import says

import neardup as nd

NEWS = "the harbour board voted on tuesday to widen the eastern channel at a cost of forty million"
LATER = NEWS.replace("tuesday", "wednesday")
OTHER = "a late frost has damaged two thirds of the cherry crop in the northern valleys growers say"


def test_a_result_has_kept_and_dropped_documents_pairs_and_families() -> None:
    result = nd.dedup([NEWS, OTHER, LATER, NEWS.upper() + "!"], threshold=0.4)
    assert result.kept == list(result) == [0, 1]
    assert [tuple(d) for d in result.dropped] == [(2, 0, pytest.approx(8 / 18), 1), (3, 0, 1.0, 1)]
    assert result.dropped[-1].id == 3
    assert [d.id for d in result.dropped[:1]] == [2]
    assert [(p.left, p.right) for p in result.pairs] == [(0, 2), (0, 3), (2, 3)]
    family = result.families[0]
    assert (family.members, family.pairs, family.complete) == ([0, 2, 3], 3, True)
    assert family.smallest == pytest.approx(8 / 18)
    assert result.explain(0, 2).shared == 8
    assert "2 kept, 2 dropped" in repr(result)


def test_borderline_pairs_are_the_least_similar() -> None:
    result = nd.dedup(list(dict.fromkeys(corpus(200))), threshold=0.4, features="words:2")
    least = sorted(pair.similarity for pair in result.pairs)[:5]
    assert [pair.similarity for pair in result.borderline(5)] == least


@pytest.mark.parametrize("keep", ["first", "longest", "shortest", "newest", "oldest", "score", "score:lowest"])
def test_keep_orders_are_those_of_naive(keep: str) -> None:
    texts = corpus(200)
    rng = random.Random(1)
    scores: list[int | None] = [rng.choice([None, *range(50)]) for _ in texts]
    times = [f"2024-01-{rng.randrange(1, 29):02d}T10:00:00+0{rng.randrange(5)}:00" for _ in texts]
    table = pa.table({"text": texts, "score": scores, "timestamp": times})
    result = nd.dedup(table, threshold=0.4, features="words:2", keep=keep)
    at = range(len(texts))
    moments = [pd.Timestamp(t).timestamp() for t in times]
    order = {
        "first": lambda: list(at),
        "longest": lambda: sorted(at, key=lambda d: -len(texts[d])),
        "shortest": lambda: sorted(at, key=lambda d: len(texts[d])),
        "newest": lambda: sorted(at, key=lambda d: -moments[d]),
        "oldest": lambda: sorted(at, key=lambda d: moments[d]),
        "score": lambda: sorted(at, key=lambda d: (scores[d] is None, -(scores[d] or 0))),
        "score:lowest": lambda: sorted(at, key=lambda d: (scores[d] is None, scores[d] or 0)),
    }[keep]()
    pairs = {(p.left, p.right): p.similarity for p in result.pairs}
    expected = naive.keepers(len(texts), pairs, order)
    assert {d.id: (d.keeper, d.similarity) for d in result.dropped} == expected
    if keep.startswith("score"):
        assert result.summary["without_keep_value"] == scores.count(None)


def test_a_keep_order_without_values_is_refused() -> None:
    table = pa.table({"text": [NEWS, LATER], "score": ["", ""]})
    with pytest.raises(nd.NeardupError, match="score"):
        nd.dedup(table, keep="points")
    with pytest.raises(nd.NeardupError, match="time"):
        nd.dedup(table, keep="newest")


def test_repeated_ids_are_refused_without_row_numbers() -> None:
    table = pa.table({"id": [1, 2, 1], "text": [NEWS, OTHER, LATER]})
    with pytest.raises(nd.InputError) as caught:
        nd.dedup(table)
    assert says(caught.value, "1 document", "'id'", "1 in row 0 and in row 2", "id_column=''")
    assert nd.dedup(table, id_column="").summary["documents"] == 3
