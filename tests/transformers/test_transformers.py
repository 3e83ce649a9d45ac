"""The steps for scikit-learn: their rows against what a run compares, and scikit-learn's own checks."""

from __future__ import annotations

import importlib
import math
import sys
from typing import Any

import naive
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.api import dedup
from neardup.errors import NeardupError, RecipeError
from neardup.features.extraction import extract_features
from neardup.features.sketches import MinHash, SimHash
from neardup.recipe import Recipe

NAMES = ["FeatureTransformer", "SketchTransformer", "SimHashTransformer"]
#: So many columns that no two of the few features here meet.
WIDE = 1 << 50
WORDS = st.sampled_from(["the", "rose", "Is", "red.", "a", "not", "blue;", "日本", "é", "of"])
TEXTS = st.lists(st.lists(WORDS, max_size=12).map(" ".join), min_size=1, max_size=8)
Row = dict[int, Any]


def make(name: str, *parameters: Any, **choices: Any) -> Any:
    """Make a transformer; importing scikit-learn takes two seconds, which no other test should wait for."""
    return getattr(importlib.import_module("neardup.transformers"), name)(*parameters, **choices)


def array(texts: list[str]) -> Any:
    return pa.array(texts, pa.large_string())


def rows_of(matrix: Any) -> list[Row]:
    return [
        dict(zip(row.indices.tolist(), row.data.tolist(), strict=True))
        for row in map(matrix.getrow, range(matrix.shape[0]))
    ]


SETS = ["jaccard", "extended_jaccard", "overlap", "containment", "dice", "cosine", "euclidean"]
WEIGHTS = ["weighted_jaccard", "extended_jaccard", "dice", "cosine", "euclidean"]
CHAINS: list[tuple[dict[str, Any], str]] = [
    *(({"features": kind}, name) for kind in ("words:1", "words:2:multiset", "qgrams:3:positional") for name in SETS),
    *(({"features": "words:1", "weights": w}, name) for w in ("tf", "idf", "tfidf") for name in WEIGHTS),
    *(({"features": kind}, "jaccard") for kind in ("skips:2:1:multiset", "clauses", "windows:6:4", "checksum:md5")),
    ({"features": "qgrams:2:positional:multiset"}, "jaccard"),
    ({"features": "words:1", "weights": "tfidf", "clip": "df:1:0.9"}, "cosine"),
    ({"features": "words:1", "clip": "df:2:1.0"}, "jaccard"),
    ({"features": "words:2", "stop_words": "en"}, "jaccard"),
    ({"features": "terms:3", "stop_words": "none"}, "jaccard"),
    ({"features": "terms:2:sentence", "weights": "idf"}, "cosine"),
    ({"features": "terms:2", "weights": "tf"}, "cosine"),
    ({"features": "spots:1:2", "antecedents": "the a of", "stop_words": "none"}, "jaccard"),
    ({"features": "sentence_words:2", "weights": "idf"}, "weighted_jaccard"),
]


@given(TEXTS, st.sampled_from(CHAINS))
def test_rows_have_the_similarities_that_a_run_finds(texts: list[str], chain: tuple[dict[str, Any], str]) -> None:
    choices, measure = chain
    transformer = make("FeatureTransformer", n_columns=WIDE, threads=1, **choices)
    try:
        rows = rows_of(transformer.fit_transform(texts))
    except RecipeError:
        with pytest.raises(RecipeError, match="leaves none"):
            dedup(texts, threads=1, measure=measure, **choices)
        return
    threshold = 1e6 if measure == "euclidean" else 1e-6
    found = dedup(texts, threads=1, measure=measure, threshold=threshold, **choices).pairs
    products = choices.get("weights") and measure != "weighted_jaccard"
    expected = {}
    for left in range(len(texts)):
        for right in range(left + 1, len(texts)):
            o, a, b = naive.vector_counts("cosine" if products else "weighted_jaccard", rows[left], rows[right])
            if o > 0:
                distance = math.sqrt(max(a + b - 2 * o, 0))
                value = 1 / (1 + distance) if measure == "euclidean" else naive.similarity(measure, o, a, b)
                expected[left, right] = pytest.approx(value, rel=1e-9, abs=1e-7)
    assert {(pair.left, pair.right): pair.similarity for pair in found} == expected


def test_values_are_ones_counts_and_weights() -> None:
    texts = ["a rose is a rose", "a tulip"]
    both, one = math.log(1 + 2 / 2), math.log(1 + 2 / 1)
    wanted = {"": [1, 1, 1], "tf": [1, 2, 2], "idf": [both, one, one], "tfidf": [one, 2 * both, 2 * one]}
    for weights, expected in wanted.items():
        fitted = make("FeatureTransformer", "words:1", weights=weights).fit(texts)
        assert sorted(fitted.transform(texts[:1]).data.tolist()) == pytest.approx(expected, abs=2**-15)
        assert fitted.transform(["unseen"]).data.tolist() == pytest.approx([one if "idf" in weights else 1], abs=2**-15)


@settings(max_examples=20)
@given(TEXTS, st.integers(1, 40), st.sampled_from(["words:1", "words:1:multiset", "windows:6:8"]))
def test_features_in_the_same_column_are_added_up(texts: list[str], n: int, kind: str) -> None:
    transformer = make("FeatureTransformer", kind, n_columns=n, threads=1)
    block = extract_features(
        array(texts), Recipe(features=kind.removesuffix(":multiset"), weights="tf", measure="cosine")
    )
    of_sets = not kind.endswith(":multiset")
    expected = np.zeros((len(texts), n))
    documents = np.repeat(np.arange(len(texts)), block.sizes).tolist()
    for document, feature, weight in zip(documents, block.features.tolist(), block.weights.tolist(), strict=True):
        folded = feature >> 32 << 32 | (feature >> 32) ^ (feature & 0xFFFFFFFF)
        expected[document, folded % n] += 1 if of_sets else weight
    found = transformer.fit_transform(texts)
    assert found.dtype == np.float64
    assert found.has_canonical_format
    assert found.toarray().tolist() == expected.tolist()


def digest(matrix: Any) -> tuple[bytes, ...]:
    if isinstance(matrix, np.ndarray):
        return (matrix.dtype.str.encode(), matrix.tobytes())
    return matrix.data.tobytes(), matrix.indices.tobytes(), matrix.indptr.tobytes()


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=10)
@given(texts=TEXTS, cut=st.integers(0, 8), threads=st.sampled_from([1, 2]), piece=st.integers(1, 60))
def test_bytes_do_not_depend_on_how_texts_are_divided(
    name: str, texts: list[str], cut: int, threads: int, piece: int
) -> None:
    plain = make(name, features="terms:4", threads=1).fit(texts)
    expected = plain.transform(texts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("neardup.transformers.steps._PIECE", piece)
        parted = make(name, features="terms:4", threads=threads).fit(texts)
        assert digest(parted.transform(texts)) == digest(expected)
        assert digest(parted.fit_transform(iter(texts))) == digest(expected)
    halves = [plain.transform(part) for part in (texts[:cut], texts[cut:])]
    for number, row in enumerate([*halves[0], *halves[1]]):
        assert digest(row) == digest(expected[number : number + 1] if row.ndim == 2 else expected[number])


@settings(max_examples=25)
@given(
    TEXTS, st.integers(1, 200), st.integers(0, 2**64 - 1), st.sampled_from(["words:2", "words:1:multiset", "terms:3"])
)
def test_sketches_are_those_of_the_features(texts: list[str], count: int, seed: int, kind: str) -> None:
    transformer = make("SketchTransformer", count, seed, kind, threads=1)
    found = transformer.fit_transform(texts)
    assert (found.dtype, found.shape) == (np.uint64, (len(texts), count))
    block = extract_features(array(texts), Recipe(features=kind), transformer.statistics_)
    ends = np.cumsum(block.sizes)
    for row, end, size in zip(found, ends.tolist(), block.sizes.tolist(), strict=True):
        sketch = MinHash(count, seed=seed)
        sketch.update(block.features[end - size : end].copy())
        assert np.array_equal(row, sketch.hashvalues)


@settings(max_examples=25)
@given(TEXTS, st.sampled_from(["", "tf", "idf", "tfidf"]))
def test_simhashes_are_those_of_the_features_and_of_a_run(texts: list[str], weights: str) -> None:
    choices: dict[str, Any] = {"features": "words:1", "weights": weights}
    transformer = make("SimHashTransformer", **choices, output="values", threads=1)
    values = transformer.fit_transform(texts)
    assert (values.dtype, values.shape) == (np.uint64, (len(texts), 1))
    bits = make("SimHashTransformer", **choices, threads=1).fit_transform(texts)
    assert (bits.dtype, bits.shape) == (np.uint8, (len(texts), 64))
    assert [sum(bit << j for j, bit in enumerate(row)) for row in bits.tolist()] == values[:, 0].tolist()

    block = extract_features(array(texts), Recipe(measure="cosine", **choices), transformer.statistics_)
    ends = np.cumsum(block.sizes)
    for i, (end, size) in enumerate(zip(ends.tolist(), block.sizes.tolist(), strict=True)):
        own = block.weights[end - size : end].tolist() or None
        assert SimHash.of(block.features[end - size : end].copy(), own).value == int(values[i, 0])

    run = dedup(texts, signature="simhash", measure="hamming", threshold=20, threads=1, **choices)
    able = np.flatnonzero(block.sizes).tolist()
    distances = {(i, j): int((bits[i] != bits[j]).sum()) for i in able for j in able if i < j}
    assert {(pair.left, pair.right): round(64 * (1 - pair.similarity)) for pair in run.pairs} == {
        pair: distance for pair, distance in distances.items() if distance <= 20
    }


@pytest.mark.parametrize(
    ("name", "choices", "texts", "message"),
    [
        ("FeatureTransformer", {}, [], "no text to learn from"),
        ("FeatureTransformer", {}, ["a", None], "text 1 is None"),
        ("FeatureTransformer", {}, [1, 2], "holds no texts"),
        ("FeatureTransformer", {}, ["\ud800"], "holds no texts"),
        ("FeatureTransformer", {}, pa.table({"a": ["x"], "b": ["y"]}), "2 columns"),
        ("FeatureTransformer", {"features": "words:1:multiset", "clip": "df:1:0.9"}, ["a"], "leave out :multiset"),
        ("FeatureTransformer", {"n_columns": 0}, ["a"], "n_columns"),
        ("SketchTransformer", {"num_perm": 4097}, ["a"], "num_perm"),
        ("SimHashTransformer", {"output": "words"}, ["a"], "bits, values"),
        ("SimHashTransformer", {"threads": 0}, ["a"], "threads"),
    ],
)
def test_wrong_texts_and_parameters_are_refused(name: str, choices: dict[str, Any], texts: Any, message: str) -> None:
    with pytest.raises(NeardupError, match=message):
        make(name, **choices).fit_transform(texts)


def test_transformers_work_in_pipelines_unions_and_grid_searches() -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import FeatureUnion, Pipeline

    rose, shares = "a rose is a rose is a rose", "shares fell in tokyo as the yen rose"
    texts, labels = [rose, rose + " is red", shares, shares + " again"], [0, 0, 1, 1]
    bits, minima = make("SimHashTransformer", "words:1"), make("SketchTransformer", 16)
    assert FeatureUnion([("bits", bits), ("minima", minima)]).fit_transform(texts).shape == (4, 80)
    steps = [("features", make("FeatureTransformer", "words:1", weights="tfidf")), ("model", LogisticRegression())]
    grid = {"features__features": ["words:1", "qgrams:3"], "features__n_columns": np.array([64])}
    search = GridSearchCV(Pipeline(steps), grid, cv=2).fit(texts, labels)
    assert search.predict(texts).tolist() == labels


def test_a_missing_scikit_learn_is_reported_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("sklearn", "sklearn.base"):
        monkeypatch.setitem(sys.modules, module, None)
    for module in ("neardup.transformers", "neardup.transformers.steps"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    with pytest.raises(RecipeError, match=r"^.* is not installed; pip install 'neardup\[sklearn\]' brings it$"):
        importlib.import_module("neardup.transformers")


def of_numbers(name: str, **choices: Any) -> Any:
    """Make a transformer that takes rows of numbers, so that scikit-learn's checks, which give numbers, can use it.

    What it says of the numbers themselves (how many in a row, none missing) is its own, not the transformer's.
    """
    from sklearn.utils.validation import check_is_fitted, validate_data

    parent = type(make(name))

    def written(numbers: Any) -> list[str]:
        return [" ".join(f"c{j}v{value}" for j, value in enumerate(row)) for row in numbers.tolist()]

    class OfNumbers(parent):  # type: ignore[misc, valid-type]
        def fit(self, X: Any, y: Any = None) -> Any:
            return parent.fit(self, written(validate_data(self, X)), y)

        def transform(self, X: Any) -> Any:
            check_is_fitted(self)
            return parent.transform(self, written(validate_data(self, X, reset=False)))

        def fit_transform(self, X: Any, y: Any = None) -> Any:
            return parent.fit_transform(self, written(validate_data(self, X)), y)

        def __sklearn_tags__(self) -> Any:
            tags = parent.__sklearn_tags__(self)
            tags.input_tags.one_d_array, tags.input_tags.two_d_array = False, True
            return tags

    # Where pickle looks for it.
    OfNumbers.__qualname__ = f"{name}OfNumbers"
    globals()[OfNumbers.__qualname__] = OfNumbers
    return OfNumbers(**choices)


@pytest.mark.parametrize(
    ("name", "choices"),
    [
        ("FeatureTransformer", {"features": "words:1", "weights": "tfidf", "n_columns": 64}),
        ("SketchTransformer", {"num_perm": 8, "features": "words:1"}),
        ("SimHashTransformer", {"features": "words:1", "weights": "idf", "output": "values"}),
    ],
)
def test_checks_of_scikit_learn_pass(name: str, choices: dict[str, Any]) -> None:
    from sklearn.exceptions import SkipTestWarning
    from sklearn.utils.estimator_checks import check_estimator

    check_estimator(of_numbers(name, **choices), on_skip=None)
    with pytest.warns(SkipTestWarning, match="requires input"):
        check_estimator(make(name))
    tags = make(name).__sklearn_tags__().input_tags
    assert (tags.string, tags.one_d_array, tags.two_d_array) == (True, True, False)
