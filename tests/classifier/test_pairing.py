"""The kernels that compare two rows: tables of distances against their bits, sums of dicts against merged rows."""

from __future__ import annotations

import naive_vector as naive
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neardup.classifier.feature_rows import FeatureRows
from neardup.kernels.pairs import edit_distances

NONE = np.empty(0, np.int64)
#: Tokens as the library has them: all 64 bits count.
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
    """Two sequences, of which the second may be the first with some edits."""
    one = draw(SEQUENCES)
    other = list(one) if draw(st.booleans()) else draw(SEQUENCES)
    for place, token in draw(st.lists(st.tuples(st.integers(0, 200), st.integers(0, 38)), max_size=8)):
        at = place % (len(other) + 1)
        other[at : at + place % 3] = [token] * (token % 3)
    return one, other


def rows_of(*sequences: list[int]) -> FeatureRows:
    tokens = [HASHES[np.array(some, np.int64)] for some in sequences]
    return FeatureRows.from_sizes(np.array([len(some) for some in sequences], np.int64), np.concatenate(tokens))


@given(edited())
@example(([], []))
@example(([1] * 64, [1] * 65))
@example((list(range(39)) * 5, list(range(39))[::-1] * 5))
def test_distances_and_common_subsequences_are_those_of_the_tables(pair: tuple[list[int], list[int]]) -> None:
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
def test_weighted_rows_are_compared_as_dicts(documents: list[dict[int, int]]) -> None:
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


@pytest.mark.parametrize("size", [1000, 5000])
def test_long_sequences_take_many_blocks(size: int) -> None:
    rng = np.random.default_rng(size)
    tokens = rng.integers(1, 1 << 62, size).astype(np.uint64)
    changed = tokens.copy()
    places = rng.permutation(size)[: size // 10]
    changed[places] += np.uint64(1)
    rows = FeatureRows.from_sizes(np.array([size, size, size - 1]), np.concatenate([tokens, changed, tokens[1:]]))
    distances, lengths = np.empty(2, np.int64), np.empty(2, np.int64)
    edit_distances(rows.offsets, rows.features, np.array([0, 0]), np.array([1, 2]), distances, lengths)
    assert distances.tolist() == [size // 10, 1]
    assert lengths.tolist() == [size - size // 10, size - 1]
