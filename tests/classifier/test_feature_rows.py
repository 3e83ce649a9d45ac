"""Numbers, names and places of facts against a plain reading of the same texts."""

from __future__ import annotations

from itertools import pairwise

import naive_vector as naive
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neardup.classifier.feature_rows import FeatureRows, extract_facts, extract_prefixes
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
    heads = rows.offsets.tolist()
    features = [rows.features[begin:end].tolist() for begin, end in pairwise(heads)]
    assert features == [sorted(set(some)) for some in features]
    return list(map(set, features))


def alike(found: list[set[int]], expected: list[set[object]]) -> None:
    """Whether hashes stand for things one to one, over all texts."""
    assert [len(some) for some in found] == [len(some) for some in expected]
    for i in range(len(found)):
        for j in range(i):
            assert len(found[i] & found[j]) == len(expected[i] & expected[j])


@given(st.lists(TEXTS, max_size=6))
@example(['Mr. Smith went. The U.S. Army, "The end', "said Mr. SMITH of NEW", "A LOUD LINE 5\nthen Quiet 5.0 May"])
@example(["", "...5 .5 a.5 3..5", "1,000,5 1.000,50 0,500 1,00", "5."])
def test_facts_are_those_of_a_plain_reading(texts: list[str]) -> None:
    found = extract_facts(pa.array(texts, pa.large_string()))
    expected = [naive.find(text) for text in texts]
    alike(sets(found.numbers), [set(one.numbers) for one in expected])
    alike(sets(found.names), [set(one.names) for one in expected])
    alike(sets(found.places), [set(one.places) for one in expected])
    alike(sets(found.facts), [set(one.facts) for one in expected])


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
def test_numbers_are_the_same_however_they_are_written(spellings: list[str]) -> None:
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
def test_names_are_words_that_need_no_upper_case(text: str, names: set[str]) -> None:
    found = naive.find(text).names
    assert {name for name in found if name.isascii() or name in names} >= names
    assert sets(extract_facts(pa.array([text], pa.large_string())).names)[0].__len__() == len(found)


def test_a_fact_is_known_by_its_place() -> None:
    texts = ["to arrange 1.5 billion dlrs", "to arrange 2.5 billion dlrs", "sold 1.5 pct of it"]
    found = extract_facts(pa.array(texts, pa.large_string()))
    places, facts = sets(found.places), sets(found.facts)
    assert places[0] == places[1]
    assert facts[0] != facts[1]
    assert not places[0] & places[2]


@given(st.lists(TEXTS, max_size=5), st.integers(1, 6))
def test_prefixes_are_first_letters(texts: list[str], letters: int) -> None:
    found = sets(extract_prefixes(pa.array(texts, pa.large_string()), letters))
    alike(found, [set(naive.prefixes(normalize(text).split(), letters)) for text in texts])


def test_long_texts_have_room() -> None:
    texts = ["1 " * 50_000, "a Bb " * 30_000, "", "9", "x " * 10]
    found = extract_facts(pa.array(texts, pa.large_string()))
    assert found.numbers.sums.tolist() == [1, 0, 0, 1, 0]
    many = extract_facts(pa.array([" ".join(map(str, range(100_000)))], pa.large_string()))
    assert many.numbers.sums.tolist() == [100_000]
