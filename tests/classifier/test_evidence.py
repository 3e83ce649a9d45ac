"""The evidence of a classifier: score, probability and contributions, in arrays, tables and text."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from classifiers import FACTS, SETS, make_classifier, texts
from hypothesis import given
from hypothesis import strategies as st

import neardup as nd
from neardup.classifier.evidence import Evidence, EvidenceTable

TABLE = texts(80, seed=21).table
ROWS = st.lists(
    st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0, float("nan")]), min_size=3, max_size=3), min_size=1, max_size=5
)


@given(ROWS, st.sampled_from(["linear", "rbf"]), st.data())
def test_arrays_texts_and_single_pairs_have_the_same_evidence(
    rows: list[list[float]], kernel: str, data: st.DataObject
) -> None:
    classifier, x = make_classifier(SETS, kernel), np.array(rows)
    edges = np.array(data.draw(st.lists(st.integers(-1, len(rows) - 1), max_size=6)), np.int64)
    evidence = EvidenceTable(classifier, x, edges)
    columns = evidence.columns(measures=True)
    assert len(evidence) == len(edges)
    assert [len(column) for column in columns.values()] == [len(edges)] * 3
    for i, edge in enumerate(edges.tolist()):
        one = evidence.evidence(i)
        g, text, measures = (columns[name][i].as_py() for name in ("score", "evidence", "measures"))
        assert str(one) == text
        assert one.score == g
        assert evidence.probability[i] == one.probability
        if edge < 0:
            assert (one, text, measures) == (Evidence(None, 1.0), "equal texts", None)
            continue
        assert g == classifier.score(x[edge : edge + 1])[0]
        assert one.probability == classifier.probability(np.array([g]))[0]
        amounts = classifier.contributions(x[edge : edge + 1])[0].tolist()
        contributions = dict(zip(classifier.vector.names, amounts, strict=True))
        assert {c.measure: c.amount for c in one.contributions} == contributions
        assert [abs(c.amount) for c in one.contributions] == sorted(map(abs, amounts), reverse=True)
        values = dict(zip(classifier.vector.names, rows[edge], strict=True))
        assert {c.measure: c.value for c in one.contributions} == {
            name: None if np.isnan(value) else value for name, value in values.items()
        }
        assert measures == {c.measure: {"value": c.value, "contribution": c.amount} for c in one.contributions}
        assert json.loads(json.dumps(one.as_dict(), allow_nan=False))["start"] == one.start


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_tables_of_a_result_have_the_evidence(kernel: str) -> None:
    classifier = make_classifier(FACTS, kernel)
    result = nd.dedup(TABLE, classifier=classifier)
    names = ["left", "right", "similarity", "score", "evidence"]
    pairs = result.pairs.to_arrow()
    assert pairs.column_names == names == result.pairs.schema().names
    assert result.pairs.schema(full=True).names == [*names, "measures"]
    assert pa.concat_tables(result.pairs.chunks(full=True)).schema == result.pairs.schema(full=True)
    assert len(pairs) == len(result.pairs) > 10
    by_pair = {frozenset((row["left"], row["right"])): row for row in pairs.to_pylist()}
    equal = [row for row in pairs.to_pylist() if row["score"] is None]
    assert equal
    assert all((row["similarity"], row["evidence"]) == (1.0, "equal texts") for row in equal)
    for row in pairs.to_pylist():
        if row["score"] is not None:
            assert row["score"] >= 0
            assert row["similarity"] == pytest.approx(classifier.probability(np.array([row["score"]]))[0], abs=1e-9)
    drops = result.duplicates().to_pylist()
    assert len(drops) == len(result.dropped)
    for row, drop in zip(drops, result.dropped, strict=True):
        assert (row["dropped"], row["keeper"], row["similarity"], row["family"]) == tuple(drop)
        pair = by_pair[frozenset((row["dropped"], row["keeper"]))]
        assert all(row[name] == pair[name] for name in ("score", "evidence", "similarity"))


def test_the_summary_describes_the_classifier(tmp_path: Path) -> None:
    classifier = make_classifier(FACTS).at_precision(0.8)
    result = nd.dedup(TABLE, classifier=classifier)
    every = nd.dedup(TABLE, classifier=classifier.without_cut())
    found = result.summary["classifier"]
    known = [row["score"] for row in every.pairs.to_arrow().to_pylist() if row["score"] is not None]
    point = classifier.working_point
    assert found["fingerprint"] == classifier.fingerprint
    assert found["candidate_rule"] == classifier.candidate_rule.in_words() == "words:1 (words), jaccard >= 0.2"
    assert found["vector"] == FACTS
    assert (found["cut"], found["training_precision"], found["training_recall"]) == point
    assert found["passed"] <= sum(g >= classifier.cut for g in known)
    assert found["candidates"] == every.summary["classifier"]["candidates"] == every.summary["classifier"]["passed"]
    assert every.summary["classifier"]["cut"] is None
    assert result.summary["recipe"]["second_step"] == f"learned({classifier.fingerprint})"
    assert json.loads(json.dumps(every.summary, allow_nan=False))
    assert f"classifier {classifier.fingerprint}" in repr(result)
    path = tmp_path / "d.neardup"
    classifier.save(path)
    assert nd.dedup(TABLE, classifier=path).pairs.to_arrow().equals(result.pairs.to_arrow())
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text("".join(json.dumps(row) + "\n" for row in TABLE.to_pylist()), "utf-8")
    with nd.dedup_files(corpus, classifier=str(path), keep="longest") as read:
        assert read.pairs.to_arrow().equals(result.pairs.to_arrow())
        assert read.recipe.keep == "longest"
