"""Similarity vectors equal the same measures computed from strings; the worked example of ICGICT 2014, 3.2.1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import naive_features
import naive_vector as naive
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from naive_text import naive_tokens
from sentences import says

import neardup as nd
from neardup.classifier import measurer as measurer_module
from neardup.classifier.measurer import Measurer
from neardup.classifier.vector import (
    FEATURE_MEASURES,
    NO_TIME,
    VECTORS,
    Records,
    Vector,
    VectorComponent,
    vector_statistics,
)
from neardup.documents import corpus_of
from neardup.errors import RecipeError
from neardup.features.statistics import Statistics
from neardup.text.stop_words import stop_words

SETS = [name for name in FEATURE_MEASURES if name != "weighted_jaccard"]
WEIGHTED = ["cosine", "dice", "euclidean", "extended_jaccard", "weighted_jaccard", "overlap", "containment"]
EVERYTHING = ", ".join(
    [
        *(f"{name}({features})" for name in SETS for features in ("words:1", "qgrams:3", "numbers")),
        *(f"dice({features})" for features in ("words:2:multiset", "skips:2:1", "sentence_words:2", "terms:64")),
        *(f"dice({features})" for features in ("names", "prefixes:3")),
        *(f"{name}(words:1:{w})" for name in WEIGHTED for w in ("tf", "idf", "tfidf")),
        *(f"{name}(terms:64:idf)" for name in WEIGHTED),
        "length_ratio, word_edit, in_order, edit, facts, facts_changed, title, hours_apart, semantic",
    ]
)
WORDS = [
    *("the", "fox", "Fox", "ran", "Reagan", "said", "1,000", "1000", "2.5"),
    *("owl.", "\u6771\u4eac", "\u00e9lan", "in", "March", "15"),
]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join) | st.text(max_size=20)
DAY = 86_400_000_000


class Letters:
    """An encoder of counts of some letters."""

    def encode(self, texts: list[str]) -> Any:
        return [[text.count(letter) for letter in "aeiort"] for text in texts]


def counted(vector: Vector, texts: Sequence[str]) -> dict[str, Statistics]:
    corpus = corpus_of(list(texts), text_column=None, id_column=None, order_column=None)
    return vector_statistics(vector, corpus, threads=1)


def measurer_for(vector: Vector, texts: Sequence[str], threads: int = 1) -> Measurer:
    return Measurer(vector, counted(vector, texts), encoder=Letters(), threads=threads)


def every_pair(count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    left, right = np.divmod(np.arange(count * count), max(count, 1))
    return left, right


class PlainMeasures:
    """The documents of a collection, and every measure of two of them, from strings."""

    def __init__(self, records: Records, statistics: dict[str, Statistics]) -> None:
        self.records, self.statistics = records, statistics
        self.features = cache(self._features)
        self.frequencies = cache(self._frequencies)

    def _features(self, features: str, document: int) -> list[Any]:
        text, kind = self.records.texts[document], features.partition(":")[0]
        if kind in ("numbers", "names"):
            return list(getattr(naive.find(text), kind))
        tokens = naive_tokens(text, "words")
        if kind == "prefixes":
            return list(naive.prefixes(tokens, int(features.partition(":")[2])))
        if kind == "terms":
            # All terms of such short texts are among the heaviest.
            return list(naive_features.features(text, "words:1", "words", stop_words("en")))
        return list(naive_features.features(text, features, "compact" if kind == "qgrams" else "words"))

    def _frequencies(self, features: str) -> Any:
        return naive_features.frequencies(self._features(features, d) for d in range(len(self.records)))

    def value(self, part: VectorComponent, d: int, e: int) -> float:
        if part.row_name:
            features = part.features or part.name
            one, other = self.features(features, d), self.features(features, e)
            if not part.weights:
                return naive.of_sets(part.measure, set(one), set(other))
            statistics = self.statistics.get(part.df_features)
            bits = statistics.idf_bits(part.recipe) if statistics else 0
            df, count = self.frequencies(features), len(self.records)
            f, g = (naive_features.fixed_point_weights(side, part.weights, df, count, bits) for side in (one, other))
            return naive.of_weights(part.name, f, g, 4**bits if "idf" in part.weights else 1)
        return float(getattr(self, part.name)(d, e))

    def tokens(self, d: int, e: int) -> list[list[str]]:
        return [naive_tokens(self.records.texts[i], "words") for i in (d, e)]

    def length_ratio(self, d: int, e: int) -> float:
        shorter, longer = sorted(map(len, self.tokens(d, e)))
        return naive.ratio(shorter, longer, 1.0)

    def word_edit(self, d: int, e: int) -> float:
        return self.unchanged(*self.tokens(d, e))

    def in_order(self, d: int, e: int) -> float:
        one, other = self.tokens(d, e)
        return naive.ratio(naive.common(one, other), min(len(one), len(other)), float(one == other))

    def edit(self, d: int, e: int) -> float:
        return self.unchanged(self.records.texts[d], self.records.texts[e])

    @staticmethod
    def unchanged(one: Any, other: Any) -> float:
        longer = max(len(one), len(other))
        return naive.ratio(longer - naive.distance(one, other), longer, 1.0)

    def facts(self, d: int, e: int) -> float:
        one, other = (naive.find(self.records.texts[i]) for i in (d, e))
        places = len(one.places & other.places)
        return naive.ratio(min(len(one.facts & other.facts), places), places, 1.0)

    def facts_changed(self, d: int, e: int) -> float:
        one, other = (naive.find(self.records.texts[i]) for i in (d, e))
        changed = max(len(one.places & other.places) - len(one.facts & other.facts), 0)
        return changed / (changed + 4)

    def title(self, d: int, e: int) -> float:
        titles = self.records.titles or []
        one, other = (set(naive_tokens(titles[i] or "", "words")) for i in (d, e))
        return 2 * len(one & other) / (len(one) + len(other)) if one and other else math.nan

    def hours_apart(self, d: int, e: int) -> float:
        one, other = (int(np.asarray(self.records.times)[i]) for i in (d, e))
        return math.nan if NO_TIME in (one, other) else math.log1p(abs(one - other) / 3.6e9)

    def semantic(self, d: int, e: int) -> float:
        one, other = np.array(Letters().encode([self.records.texts[i] for i in (d, e)]), np.float64)
        lengths = float(np.linalg.norm(one) * np.linalg.norm(other))
        return max(float(one @ other) / lengths, 0.0) if lengths else 0.0


@settings(max_examples=12)
@given(st.lists(st.tuples(TEXTS, st.none() | TEXTS, st.just(NO_TIME) | st.integers(-DAY, 9 * DAY)), max_size=3))
# A place with several facts.
@example([("in 5 ran in 6 ran", None, NO_TIME), ("in 5 ran in 6 ran fox", "", 0)])
def test_every_measure_equals_its_formula(documents: list[tuple[str, str | None, int]]) -> None:
    texts = [text for text, _, _ in documents]
    times = np.array([time for _, _, time in documents], np.int64)
    records = Records(texts, [title for _, title, _ in documents], times)
    vector = Vector.parse(EVERYTHING)
    measurer = measurer_for(vector, texts)
    left, right = every_pair(len(texts))
    found = measurer.measure(measurer.prepare(records), left, right)
    plain = PlainMeasures(records, counted(vector, texts))
    for row, d, e in zip(found, left.tolist(), right.tolist(), strict=True):
        for value, part in zip(row.tolist(), vector.components, strict=True):
            expected = plain.value(part, d, e)
            assert value == pytest.approx(expected, abs=1e-8, nan_ok=True), (str(part), texts[d], texts[e])


@settings(max_examples=15)
@given(st.lists(TEXTS, min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_a_vector_depends_on_its_two_documents_alone(texts: list[str], random: Any) -> None:
    vector = Vector.parse("default, edit, word_edit, in_order, cosine(words:1:idf), jaccard(terms:64)")
    statistics = counted(vector, texts)
    measurer = Measurer(vector, statistics)
    left, right = every_pair(len(texts))
    found = measurer.measure(measurer.prepare(Records(texts)), left, right)
    assert np.array_equal(measurer.measure(measurer.prepare(Records(texts)), right, left), found)
    for pair in random.sample(range(len(left)), min(len(left), 5)):
        own = measurer.prepare(Records([texts[right[pair]], texts[left[pair]]]))
        alone = measurer.measure(own, np.array([1]), np.array([0]))
        assert np.array_equal(alone[0], found[pair])


def test_threads_and_pieces_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [" ".join(WORDS[(i * j) % len(WORDS)] for j in range(i % 9)) for i in range(40)]
    left, right = every_pair(len(texts))
    vector = Vector.parse(", ".join(VECTORS))
    usual = measurer_for(vector, texts)
    found = usual.measure(usual.prepare(Records(texts)), left, right)
    assert np.isfinite(found).all()
    monkeypatch.setattr(measurer_module, "_BLOCK_PAIRS", 7)
    monkeypatch.setattr(measurer_module, "_PIECE_CHARACTERS", 50)
    for threads in (1, 3):
        other = measurer_for(vector, texts, threads)
        assert np.array_equal(other.measure(other.prepare(Records(texts)), left, right), found)


def test_documents_without_titles_and_times_have_unknown_measures() -> None:
    measurer = Measurer(Vector.parse("title, hours_apart"), {})
    found = measurer.measure(measurer.prepare(Records(["fox", "dog"])), np.array([0]), np.array([1]))
    assert np.isnan(found).all()


def test_missing_frequencies_and_encoders_are_named() -> None:
    with pytest.raises(RecipeError) as caught:
        Measurer(Vector.parse("cosine(words:1:idf)"), {})
    assert says(caught.value, "cosine(words:1:idf)", "document frequencies of words:1")
    with pytest.raises(RecipeError, match="semantic needs an encoder"):
        Measurer(Vector.parse("semantic"), {})


def test_document_frequencies_are_those_of_the_content() -> None:
    texts = ["<p>fox <b>jumped</b></p>", "<p>fox slept</p>"]
    corpus = corpus_of(texts, text_column=None, id_column=None, order_column=None)
    vector = Vector.parse("cosine(words:1:idf)")
    assert vector_statistics(vector, corpus, content="tags", threads=1)["words:1"].distinct == 3
    assert vector_statistics(vector, corpus, threads=1)["words:1"].distinct == 5


def test_a_word_repeated_very_often_is_counted_completely() -> None:
    # Frequencies come from other texts, so nothing bounds the squares of new ones.
    repeats = 100_000
    vector = Vector.parse(", ".join(f"{name}(words:1:tfidf)" for name in WEIGHTED))
    measurer = measurer_for(vector, [f"word{i} is here with word{i + 1}" for i in range(60)])
    texts = ["spam " * repeats, "spam " * repeats + "egg", "spam egg", "", "spam " * repeats]
    prepared = measurer.prepare(Records(texts))
    found = measurer.measure(prepared, np.zeros(4, np.int64), np.array([4, 1, 2, 3]))
    expected = {
        # o, a and b in units of the idf that spam and egg have alike.
        "cosine": [1.0, repeats / math.hypot(repeats, 1), math.sqrt(0.5), 0.0],
        "dice": [1.0, 2 * repeats**2 / (2 * repeats**2 + 1), 2 * repeats / (repeats**2 + 2), 0.0],
        "extended_jaccard": [1.0, repeats**2 / (repeats**2 + 1), repeats / (repeats**2 + 2 - repeats), 0.0],
        "weighted_jaccard": [1.0, repeats / (repeats + 1), 1 / (repeats + 1), 0.0],
    }
    for name, values in expected.items():
        assert found[:, vector.names.index(f"{name}(words:1:tfidf)")].tolist() == pytest.approx(values, rel=1e-4), name
    distance = found[:, vector.names.index("euclidean(words:1:tfidf)")].tolist()
    far = 1 / (1 + math.log(61) * math.hypot(repeats - 1, 1))
    assert distance == pytest.approx([1.0, 1 / (1 + math.log(61)), far, 0.0], rel=1e-4)


A = (
    "People rally on the sidewalk as legal arguments over the Patient Protection and Affordable Care Act take place at "
    "the Supreme Court."
)
B = A.replace("sidewalk", "pavement")
#: The terms by descending tf-idf: the paper's order for both documents, then the terms that it omits.
ORDER = ["supreme", "affordable", "protection", "patient", "pavement", "legal", "sidewalk", "arguments"]
REST = ["rally", "care", "court", "people", "act", "take", "place"]
#: Other documents contain each term so often that the first has a total of two, the second of three, and so on.
OTHERS = [
    term for df, term in enumerate([*ORDER, *REST], 2) for _ in range(df - (A.lower() + B.lower()).count(f" {term}"))
]
COLLECTION = [A, B, *OTHERS]


def test_the_documents_of_the_example_have_the_same_four_terms_and_another_fifth() -> None:
    vector = Vector.parse(
        "jaccard(terms:4), cosine(terms:4), euclidean(terms:4), dice(terms:4), jaccard(terms:4:sentence:positional), "
        "jaccard(terms:5), jaccard(words:3)"
    )
    measurer = Measurer(vector, counted(vector, COLLECTION))
    row = measurer.measure(measurer.prepare(Records([A, B])), np.array([0]), np.array([1]))[0]
    assert row[:5].tolist() == [1.0] * 5
    assert row[5] == pytest.approx(4 / 6)
    assert row[6] < 0.8
    found = nd.dedup(COLLECTION, features="terms:4", threshold=1.0)
    assert (0, 1) in {(pair.left, pair.right) for pair in found.pairs}
