"""Vectors: parsing and formatting of their measures, and the columns of titles and times that they need."""

from __future__ import annotations

from datetime import date

import numpy as np
import pyarrow as pa
import pytest
from sentences import says

from neardup.classifier.vector import (
    NO_TIME,
    TITLE_NAMES,
    Vector,
    VectorComponent,
    read_records,
)
from neardup.errors import RecipeError


@pytest.mark.parametrize(
    ("written", "component", "canonical"),
    [
        (" cosine( terms:64:tfidf ) ", VectorComponent("cosine", "terms:64", "tfidf"), "cosine(terms:64:tfidf)"),
        ("jaccard(qgrams:3:multiset)", VectorComponent("jaccard", "qgrams:3:multiset"), "jaccard(qgrams:3:multiset)"),
        ("numbers", VectorComponent("numbers"), "numbers"),
        ("jaccard(numbers)", VectorComponent("numbers"), "numbers"),
        ("containment(names)", VectorComponent("containment", "names"), "containment(names)"),
        ("swapped(prefixes)", VectorComponent("swapped", "prefixes:4"), "swapped(prefixes:4)"),
    ],
)
def test_a_component_is_parsed_and_formatted(written: str, component: VectorComponent, canonical: str) -> None:
    assert VectorComponent.parse(written) == component
    assert str(component) == canonical
    assert VectorComponent.parse(canonical) == component


@pytest.mark.parametrize("written", ["default,short", "cheap, default, cheap, edit"])
def test_combined_vectors_have_each_measure_once(written: str) -> None:
    together = [name for part in written.split(",") for name in Vector.parse(part).names]
    assert Vector.parse(written).names == tuple(dict.fromkeys(together))


def test_the_vectors_of_the_paper_have_its_five_measures() -> None:
    for name in ("terms-svm", "terms-svm-sentence"):
        parts = Vector.parse(name).components
        assert {part.name for part in parts} == {"jaccard", "cosine", "euclidean", "extended_jaccard", "dice"}
        assert all(part.features.startswith("terms") for part in parts)
        assert all(("sentence" in part.features) == name.endswith("sentence") for part in parts)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("", ("vector is empty", "name measures", "default,")),
        ("jaccard(words:4),", ("a comma has no measure",)),
        ("likeness", ("vector: 'likeness'", "not known", "default, cheap")),
        ("hamming(words:2)", ("'hamming(words:2)'", "not known")),
        ("jaccard", ("jaccard takes features", "brackets", "jaccard(words:4)")),
        ("numbers(words:2)", ("numbers takes no features", "without brackets")),
        ("jaccard(wards:2)", ("jaccard(wards:2)", "features 'wards:2'", "not known")),
        ("jaccard(words:0)", ("n is 0", "1..100")),
        ("jaccard(words:2:idf)", ("measure 'jaccard'", "does not fit", "weights 'idf'")),
        ("weighted_jaccard(words:2)", ("weighted_jaccard", "give weights")),
        ("weighted_jaccard(numbers)", ("weighted_jaccard takes weights", "numbers", "take jaccard")),
        ("apart(words:1:idf)", ("apart counts features", "no weights", "leave 'idf' out")),
        ("cosine(words:1:multiset:idf)", ("count repeats",)),
        ("jaccard(checksum)", ("features 'checksum:sha1'", "one feature per text", "words or qgrams")),
        ("jaccard(numbers:4)", ("numbers take no number", "leave '4' out")),
        ("jaccard(prefixes:0)", ("prefixes: 0 letters", "1..100")),
    ],
)
def test_unusable_vectors_are_refused(written: str, message: tuple[str, ...]) -> None:
    with pytest.raises(RecipeError) as refused:
        Vector.parse(written)
    assert says(refused.value, *message)


TITLED = Vector.parse("jaccard(words:1), title")
TIMED = Vector.parse("jaccard(words:1), hours_apart")


def test_only_compared_columns_are_read() -> None:
    table = pa.table({"text": ["a", "b"], "title": ["A", None], "time": ["x", "y"]})
    for vector, titles in ((Vector.parse("jaccard(words:1)"), None), (TITLED, ["A", None])):
        found = read_records(table, ["a", "b"], vector)
        assert (list(found.texts), found.titles, found.times) == (["a", "b"], titles, None)


def test_columns_are_found_by_usual_names_or_chosen() -> None:
    for name in TITLE_NAMES:
        found = read_records(pa.table({"text": ["a"], name.upper(): ["T"]}), ["a"], TITLED)
        assert found.titles == ["T"]
    both = pa.table({"subject": ["S"], "title": ["T"], "Name": [""], "number": [7]})
    assert read_records(both, ["a"], TITLED).titles == ["T"]
    assert read_records(both, ["a"], TITLED, title_column="subject").titles == ["S"]
    assert read_records(both, ["a"], TITLED, title_column="Name").titles == [None]
    assert read_records(both, ["a"], TITLED, title_column="number").titles == ["7"]


@pytest.mark.parametrize(
    ("vector", "named", "said"),
    [
        (TITLED, "", ("measure title needs a column", "none", "columns title, headline")),
        (TITLED, "Title", ("measure title needs a column", "no column 'Title'", "one of text")),
        (TIMED, "", ("measure hours_apart needs a column", "none", "columns timestamp, datetime")),
        (TIMED, "when", ("no column 'when'", "one of text", "time_column")),
    ],
)
def test_a_missing_column_is_named(vector: Vector, named: str, said: tuple[str, ...]) -> None:
    with pytest.raises(RecipeError) as error:
        read_records(pa.table({"text": ["a"]}), ["a"], vector, title_column=named, time_column=named)
    assert says(error.value, *said)


def test_times_are_read_from_all_arrow_types() -> None:
    day = pa.array([date(2024, 3, 1), None]).cast(pa.timestamp("us"))
    for kind in (pa.timestamp("s"), pa.timestamp("us", "UTC"), pa.timestamp("ms", "Europe/Berlin"), pa.date32()):
        times = read_records(pa.table({"time": day.cast(kind)}), ["a", "b"], TIMED).times
        assert times is not None
        assert times.dtype == np.int64
        assert times.tolist() == [1_709_251_200_000_000, NO_TIME]
