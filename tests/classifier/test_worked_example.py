"""The worked example of ICGICT 2014, 3.2.1: two sentences about the Supreme Court, and their four heaviest terms."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import neardup as nd
from neardup.classifier.values import Measurer, Records
from neardup.classifier.vector import Vector, statistics_for
from neardup.documents import corpus_of
from neardup.features.extraction import extract, gram_hashes
from neardup.features.reading import gather
from neardup.features.statistics import Statistics
from neardup.recipe import Recipe

A = (
    "People rally on the sidewalk as legal arguments over the Patient Protection and Affordable Care Act take place at "
    "the Supreme Court."
)
B = A.replace("sidewalk", "pavement")
#: The terms by falling tf-idf: the paper's orders for both documents, and behind them what the paper leaves out.
ORDER = ["supreme", "affordable", "protection", "patient", "pavement", "legal", "sidewalk", "arguments"]
REST = ["rally", "care", "court", "people", "act", "take", "place"]
#: Other documents hold each term so often that all together hold the first twice, the second three times and so on.
OTHERS = [
    term for df, term in enumerate([*ORDER, *REST], 2) for _ in range(df - (A.lower() + B.lower()).count(f" {term}"))
]
COLLECTION = [A, B, *OTHERS]
OTHER = "Oil prices rose sharply in London."


def statistics_of(recipe: Recipe) -> Statistics:
    corpus = corpus_of(COLLECTION, text_column=None, id_column=None, order_column=None)
    return gather(corpus, recipe, threads=1)


def terms_of(text: str, features: str, stop_words: str = "") -> set[str | int]:
    """The terms of a text as words, where they are of the example."""
    recipe = Recipe(features=features, stop_words=stop_words)
    block = extract(pa.array([text], pa.large_string()), recipe, statistics_of(recipe))
    plain = Recipe(features="words:1")
    words = {int(gram_hashes(word, plain)[0]): word for word in f"{A} {B} {OTHER}".lower().rstrip(".").split()}
    return {words.get(feature, feature) for feature in block.features.tolist()}


@pytest.mark.parametrize("level", ["", ":sentence"])
def test_both_documents_have_the_same_four_terms_in_the_same_order(level: str) -> None:
    for flags in (level, f"{level}:positional"):
        recipe = Recipe(features=f"terms:4{flags}")
        block = extract(pa.array([A, B], pa.large_string()), recipe, statistics_of(recipe))
        assert block.sizes.tolist() == [4, 4]
        assert block.features[:4].tolist() == block.features[4:].tolist()
        assert block.marks[0].tolist() == block.marks[1].tolist()


def test_a_fifth_term_tells_them_apart() -> None:
    assert terms_of(A, "terms:5") ^ terms_of(B, "terms:5") == {"legal", "pavement"}


def test_the_two_are_identical_from_the_viewpoint_of_features() -> None:
    vector = Vector.parse("jaccard(terms:4), cosine(terms:4), euclidean(terms:4), dice(terms:4), jaccard(words:3)")
    corpus = corpus_of(COLLECTION, text_column=None, id_column=None, order_column=None)
    measurer = Measurer(vector, statistics_for(vector, corpus, threads=1))
    row = measurer.measure(measurer.prepare(Records([A, B])), np.array([0]), np.array([1]))[0]
    assert row[:4].tolist() == [1.0] * 4
    assert row[4] < 0.8
    found = nd.dedup(COLLECTION, features="terms:4", threshold=1.0)
    assert (0, 1) in {(pair.left, pair.right) for pair in found.pairs}
