"""Pairs that a classifier finds equal a plain comparison of all pairs; cuts, columns, encoders, options."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import combinations
from typing import Any

import naive
import naive_features
import numpy as np
import pyarrow as pa
import pytest
from classifiers import DATED, FACTS, SETS, WEIGHED, make_classifier, texts
from hypothesis import given
from hypothesis import strategies as st
from sentences import says

import neardup as nd
from neardup.classifier.classifier import Classifier
from neardup.classifier.measurer import Measurer
from neardup.classifier.vector import Records
from neardup.documents import corpus_of
from neardup.errors import RecipeError
from neardup.pipeline.pipeline import run
from neardup.pipeline.result import Result
from neardup.recipe import Recipe
from neardup.search import second_step as learned

WORDS = ["fox", "dog", "Owl", "ran", "12", "1,000", "élan", "東京", "a"]
TEXTS = st.lists(
    st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
    | st.sampled_from(["Fox, dog!", "fox dog", "FOX DOG", "...", " ", "fox 12 dog 1000"]),
    max_size=9,
)


@cache
def words(text: str) -> frozenset[Any]:
    return frozenset(naive_features.features(text, "words:1", Recipe().normalize))


def plain_pairs(documents: Sequence[str], classifier: Classifier) -> dict[tuple[int, int], float]:
    """All pairs that pass the candidate rule and the cut, with probabilities; equal texts have 1."""
    measurer, found = Measurer(classifier.vector, {}), dict[tuple[int, int], float]()
    threshold = Fraction(str(classifier.candidate_rule.threshold))
    for i, j in combinations(range(len(documents)), 2):
        left, right = words(documents[i]), words(documents[j])
        counts = len(left & right), len(left), len(right)
        if not (left and right) or not naive.reaches("jaccard", *counts, threshold):
            continue
        pair = measurer.prepare(Records([documents[i], documents[j]]))
        g = classifier.machine.score(measurer.measure(pair, np.array([0]), np.array([1])))
        if documents[i] == documents[j]:
            found[i, j] = 1.0
        elif g[0] >= classifier.cut:
            found[i, j] = float(classifier.probability(g)[0])
    return found


def found_by(result: Result) -> dict[tuple[int, int], float]:
    listed = [(p.left, p.right, p.similarity) for p in result.pairs]
    assert listed == sorted(listed)
    assert len(listed) == len(result.pairs)
    return {(left, right): similarity for left, right, similarity in listed}


@given(
    TEXTS,
    st.sampled_from([SETS, FACTS]),
    st.sampled_from(["linear", "rbf"]),
    st.sampled_from([0.2, 0.5, 1.0]),
    st.sampled_from([0.0, -0.5, 0.8, float("-inf"), float("inf")]),
    st.integers(1, 3),
)
def test_pairs_equal_a_plain_comparison_of_all(
    documents: list[str], vector: str, kernel: str, candidate_rule: float, cut: float, threads: int
) -> None:
    classifier = replace(
        make_classifier(vector, kernel, candidate_rule=f"jaccard(words:1) >= {candidate_rule}"), cut=cut
    )
    result = nd.dedup(documents, classifier=classifier, threads=threads)
    expected = plain_pairs(documents, classifier)
    assert found_by(result).keys() == expected.keys()
    assert found_by(result) == pytest.approx(expected, abs=1e-9)
    dropped = naive.keepers(len(documents), found_by(result), range(len(documents)))
    assert {d.id: (d.keeper, d.similarity) for d in result.dropped} == dropped


CORPUS = [str(row["text"]) for row in texts(140, seed=11).rows]


def test_the_borderline_of_a_classifier_is_its_least_probable_pairs() -> None:
    result = nd.dedup(list(dict.fromkeys(CORPUS)), classifier=make_classifier(WEIGHED, "rbf"))
    least_probable = sorted((probability, *pair) for pair, probability in found_by(result).items())
    assert len({probability for probability, *_ in least_probable[:5]}) == 5
    assert [(pair.similarity, pair.left, pair.right) for pair in result.borderline(5)] == least_probable[:5]


@pytest.mark.parametrize("vector", [WEIGHED, DATED])
def test_threads_and_batches_change_no_result(vector: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = texts(90, seed=12).table

    def digest(threads: int) -> str:
        result = run(corpus_of(table), classifier.recipe, classifier=classifier, threads=threads)
        tables = [result.duplicates(), pa.concat_tables(result.pairs.chunks(full=True))]
        content = repr([table.to_pylist() for table in tables]) + repr(result.families)
        return hashlib.sha256(content.encode()).hexdigest()

    classifier = make_classifier(vector, "rbf")
    first = digest(1)
    assert digest(3) == first
    monkeypatch.setattr(learned, "_PAIRS_AT_A_TIME", 5)
    assert digest(2) == first


def test_titles_and_times_come_from_their_columns() -> None:
    classifier = make_classifier(DATED, "rbf").without_cut()
    known = texts(60, seed=5).table
    result = nd.dedup(known, classifier=classifier)
    renamed = known.rename_columns(["id", "text", "kopf", "when", "hour"])
    again = nd.dedup(renamed, classifier=classifier, title_column="kopf", time_column="when")
    assert again.pairs.to_arrow().equals(result.pairs.to_arrow())
    unknown = known.set_column(2, "title", pa.nulls(60, pa.string())).set_column(3, "time", pa.nulls(60, pa.string()))
    assert not nd.dedup(unknown, classifier=classifier).pairs.to_arrow().equals(result.pairs.to_arrow())
    with pytest.raises(RecipeError) as caught:
        nd.dedup(renamed, classifier=classifier)
    assert says(caught.value, "measure title needs a column", "none of the columns")
    with pytest.raises(RecipeError) as caught:
        nd.dedup(known, classifier=classifier, time_column="nope")
    assert says(caught.value, "no column 'nope'", "choose one of")


class Lengths:
    """An encoder of text lengths."""

    def encode(self, texts: list[str]) -> Any:
        return [[len(text), 1.0] for text in texts]


def test_a_missing_encoder_is_refused() -> None:
    vector = make_classifier("jaccard(words:1), length_ratio").vector
    semantic = type(vector).parse("jaccard(words:1), semantic")
    classifier = replace(make_classifier("jaccard(words:1), length_ratio"), vector=semantic)
    with pytest.raises(RecipeError) as caught:
        nd.dedup(CORPUS, classifier=classifier)
    assert says(caught.value, "'semantic'", "needs an encoder")
    assert len(nd.dedup(CORPUS, classifier=classifier, encoder=Lengths()).pairs)


def test_a_recipe_needs_its_own_classifier() -> None:
    classifier, other = make_classifier(SETS), make_classifier(FACTS)
    with pytest.raises(RecipeError) as caught:
        run(corpus_of(["a b"]), classifier.recipe)
    assert says(caught.value, classifier.fingerprint, "that fingerprint", "there is none", "give it with")
    with pytest.raises(RecipeError, match=f"this is {other.fingerprint}"):
        run(corpus_of(["a b"]), classifier.recipe, classifier=other)
    with pytest.raises(RecipeError, match="a classifier brings its own recipe"):
        run(corpus_of(["a b"]), Recipe(), classifier=classifier)
    with pytest.raises(RecipeError) as caught:
        nd.dedup(["a b"], threshold=0.5, classifier=classifier)
    assert says(caught.value, "threshold=0.5", "classifier", "has a cut")
    with pytest.raises(RecipeError) as caught:
        nd.dedup(["a b"], title_column="x")
    assert says(caught.value, "title_column 'x'", "classifiers", "compare titles")
