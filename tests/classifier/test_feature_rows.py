"""Rows of features: facts and prefixes equal a plain reading; edit distances and weighted sums equal plain tables."""

from __future__ import annotations

from itertools import pairwise

import naive_vector as naive
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from neardup.classifier.feature_rows import FeatureRows, extract_facts, extract_prefixes
from neardup.kernels.pairs import edit_distances
from neardup.text.normalize import normalize

PIECES = st.sampled_from(
    [
        *(" ", "\n", "\n    ", "\n\n", "\r\n", "\t", ". ", ".", ", ", ",", ": ", '"', "'", "\u201c"),
        *("-", "$", "()", "_"),
        *("Mr", "Smith", "SMITH", "said", "the", "The", "New York", "U.S", "I", "d'", "Iraq", "4th", "B52"),
        *("1", "15", "1,000", "1000", "2.50", ".5", "0", "007", "1.000.000", "10.12.03", "1.5", "1,5"),
        *("\u00bd", "\u00b3"),
        *("\u0663", "\uff11\uff12", "\u066b", "\u2167", "\u0301", "\u00ad", "\ufeff", "\u3002"),
        *("\u00e9", "\u00c9", "e\u0301", "\u00dcnal", "\u01c5ep", "\u00df", "\u0130zmir"),
        *("\u6771\u4eac", "\u306f", "\u043a", "\u041a\u0438\u0435\u0432", "\u0645\u0635\u0631"),
    ]
)
TEXTS = st.lists(PIECES, max_size=25).map("".join) | st.text(max_size=30)


def sets(rows: FeatureRows) -> list[set[int]]:
    features = [rows.features[begin:end].tolist() for begin, end in pairwise(rows.offsets.tolist())]
    assert features == [sorted(set(row)) for row in features]
    return list(map(set, features))


def check_sets(found: list[set[int]], expected: list[set[object]]) -> None:
    """Check that hashes correspond one to one to the expected values, over all texts."""
    assert list(map(len, found)) == list(map(len, expected))
    for i in range(len(found)):
        for j in range(i):
            assert len(found[i] & found[j]) == len(expected[i] & expected[j])


@settings(max_examples=50)
@given(st.lists(TEXTS, max_size=6))
@example(['Mr. Smith went. The U.S. Army, "The end', "said Mr. SMITH of NEW", "A LOUD LINE 5\nthen Quiet 5.0 May"])
@example(["", "...5 .5 a.5 3..5", "1,000,5 1.000,50 0,500 1,00", "5."])
def test_facts_equal_a_plain_reading(texts: list[str]) -> None:
    found = extract_facts(pa.array(texts, pa.large_string()))
    expected = [naive.find(text) for text in texts]
    for name in ("numbers", "names", "places", "facts"):
        check_sets(sets(getattr(found, name)), [set(getattr(facts, name)) for facts in expected])


def numbers(text: str) -> set[int]:
    return sets(extract_facts(pa.array([text], pa.large_string())).numbers)[0]


@pytest.mark.parametrize(
    "spellings",
    [
        ["1,000", "1000", "１,０００", "١٠٠٠", "1٬000", "01000", "1,000.00"],
        ["2.50", "2.5", "2,5", "٢٫٥", "02.500"],
        [".5", "0.5", "0,50", "$.50"],
        ["1,000,000", "1.000.000", "1000000"],
        ["1,234.5", "1.234,5", "1234.5"],
        ["0", "00", "0.0"],
        ["10.12.1987", "10,12,1987"],
    ],
)
def test_numbers_are_compared_by_value(spellings: list[str]) -> None:
    assert len({frozenset(numbers(f"rose {spelling} pct")) for spelling in spellings}) == 1


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("He met Mr. Smith of New York. The talks failed.", {"mr", "smith", "new", "york"}),
        ("The U.S. Army said. It", {"army"}),
        ("She said, \"The Plan of Action is 'Go'.\"", {"plan", "action", "go"}),
        ("OIL PRICES RISE IN TEXAS\nprices rose in Texas", {"texas"}),
        ("prices in West\nTexas rose\n\nShares fell\n  Bonds too", {"texas"} | {"west"}),
        ("vitamin C, plan B and I", set()),
        ("O'Brien saw McAdam and D\u00e9sir\u00e9e in \u00dc\u0308ber", {"brien", "mcadam", "d\u00e9sir\u00e9e"}),
        (
            "in \u041a\u0438\u0435\u0432\u0435, \u05d9\u05e8\u05d5\u05e9\u05dc\u05d9\u05dd and \u6771\u4eac",
            {"\u043a\u0438\u0435\u0432\u0435"},
        ),
        ("met Anna, met ANNA and met anna", {"anna"}),
    ],
)
def test_names_are_capitalized_words_inside_sentences(text: str, names: set[str]) -> None:
    found = naive.find(text).names
    assert {name for name in found if name.isascii() or name in names} >= names
    assert len(sets(extract_facts(pa.array([text], pa.large_string())).names)[0]) == len(found)


@given(st.lists(TEXTS, max_size=5), st.integers(1, 6))
def test_prefixes_are_the_first_letters(texts: list[str], letters: int) -> None:
    found = sets(extract_prefixes(pa.array(texts, pa.large_string()), letters))
    check_sets(found, [set(naive.prefixes(normalize(text).split(), letters)) for text in texts])


def test_long_texts_fit_the_buffers() -> None:
    texts = ["1 " * 50_000, "a Bb " * 30_000, "", "9", "x " * 10]
    found = extract_facts(pa.array(texts, pa.large_string()))
    assert found.numbers.sums.tolist() == [1, 0, 0, 1, 0]
    many = extract_facts(pa.array([" ".join(map(str, range(100_000)))], pa.large_string()))
    assert many.numbers.sums.tolist() == [100_000]


NONE = np.empty(0, np.int64)
#: Tokens are hashes of 64 bits.
HASHES = np.arange(1, 40, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)


def sequence(size: int, letters: int, seed: int) -> list[int]:
    return [int(token) for token in np.random.default_rng(seed).integers(0, letters, size)]


SEQUENCES = st.builds(
    sequence,
    st.integers(0, 200) | st.sampled_from([63, 64, 65, 127, 128, 129]),
    st.sampled_from([1, 2, 5, 39]),
    st.integers(0, 1 << 30),
)


@st.composite
def edited(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Two sequences; the second is the first with some edits, or another one."""
    one = draw(SEQUENCES)
    other = list(one) if draw(st.booleans()) else draw(SEQUENCES)
    for position, token in draw(st.lists(st.tuples(st.integers(0, 200), st.integers(0, 38)), max_size=8)):
        at = position % (len(other) + 1)
        other[at : at + position % 3] = [token] * (token % 3)
    return one, other


def rows_of(*sequences: list[int]) -> FeatureRows:
    tokens = [HASHES[np.array(sequence, np.int64)] for sequence in sequences]
    return FeatureRows.from_sizes(np.array(list(map(len, sequences)), np.int64), np.concatenate(tokens))


@given(edited())
@example(([], []))
@example(([1] * 64, [1] * 65))
@example((list(range(39)) * 5, list(range(39))[::-1] * 5))
def test_distances_and_common_subsequences_equal_plain_tables(pair: tuple[list[int], list[int]]) -> None:
    rows = rows_of(*pair)
    left, right = np.array([0, 1, 0]), np.array([1, 0, 0])
    distances, lengths = np.empty(3, np.int64), np.empty(3, np.int64)
    edit_distances(rows.offsets, rows.features, left, right, distances, lengths)
    distance, common = naive.distance(*pair), naive.common(*pair)
    assert distances.tolist() == [distance, distance, 0]
    assert lengths.tolist() == [common, common, len(pair[0])]
    alone = np.empty(3, np.int64)
    edit_distances(rows.offsets, rows.features, left, right, alone, NONE)
    assert np.array_equal(alone, distances)
    edit_distances(rows.offsets, rows.features, left, right, NONE, alone)
    assert np.array_equal(alone, lengths)


WEIGHTS = st.dictionaries(st.integers(1, 30), st.integers(1, 1 << 30), max_size=20)


@given(st.lists(WEIGHTS, min_size=2, max_size=6))
@example([dict.fromkeys(range(1, 9), 1 << 30), {1: 1 << 30, 2: 1 << 29}, {3: 7}])
def test_weighted_rows_are_compared_like_dicts(documents: list[dict[int, int]]) -> None:
    features = np.array([feature for document in documents for feature in document], np.uint64)
    weights = np.array([weight for document in documents for weight in document.values()], np.int64)
    rows = FeatureRows.from_sizes(np.array(list(map(len, documents)), np.int64), features, weights).sort()
    left, right = np.divmod(np.arange(len(documents) ** 2), len(documents))
    ways = {(False, False), (True, False), (True, True)}
    found = {way: rows.pair_counts(left, right, weighted=way[0], minima=way[1]).tolist() for way in ways}
    for i, (d, e) in enumerate(zip(left.tolist(), right.tolist(), strict=True)):
        f, g = documents[d], documents[e]
        both = f.keys() & g.keys()
        assert found[False, False][i] == [len(both), len(f), len(g)]
        if len(features):
            assert found[True, True][i] == [sum(min(f[x], g[x]) for x in both), sum(f.values()), sum(g.values())]
            squares = [sum(x * x for x in side.values()) for side in (f, g)]
            plain = sum(f[x] * g[x] for x in both), *squares
            assert rows.exact_products(d, e) == plain
            assert found[True, False][i][1:] == [square if square < 2**61 else -1 for square in squares]
            assert max(squares) >= 2**61 or found[True, False][i][0] == plain[0]


def test_long_sequences_are_compared_in_blocks() -> None:
    size, rng = 5000, np.random.default_rng(0)
    tokens = rng.integers(1, 1 << 62, size).astype(np.uint64)
    changed = tokens.copy()
    places = rng.permutation(size)[: size // 10]
    changed[places] += np.uint64(1)
    rows = FeatureRows.from_sizes(np.array([size, size, size - 1]), np.concatenate([tokens, changed, tokens[1:]]))
    distances, lengths = np.empty(2, np.int64), np.empty(2, np.int64)
    edit_distances(rows.offsets, rows.features, np.array([0, 0]), np.array([1, 2]), distances, lengths)
    assert distances.tolist() == [size // 10, 1]
    assert lengths.tolist() == [size - size // 10, size - 1]
