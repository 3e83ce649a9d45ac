"""Known boilerplate, held equal to all pairs of plain sets without its grams."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import naive
import naive_features
import pytest
from hypothesis import given
from hypothesis import strategies as st
from references import WORDS
from sentences import says

import neardup as nd
from neardup.errors import RecipeError
from neardup.recipe import Recipe

NOTICE = (
    "All rights reserved. This copy is for your own use only, see our terms of service for what else it is good for."
)
NEWS = [f"{text} {NOTICE}" for text in ("Wheat rose today in Chicago.", "Gold fell after the fixing in London.")]
KINDS = ["words:1", "words:2", "words:2:multiset", "qgrams:3", "skips:2:1", "sentence_words:2", "clauses"]


def plain_set(text: str, ignored: str, features: str) -> frozenset[Any]:
    """The features of a text without all grams that the ignored text has."""
    known = {gram for segment in naive_features.grams(ignored, features, "words") for gram in segment}
    segments = naive_features.grams(text, features, "words")
    found = [gram for segment in segments for gram in segment if gram not in known]
    return frozenset(naive_features.numbered_repeats(found) if "multiset" in features else found)


@given(WORDS, st.lists(st.sampled_from(["a", "b", "c", "d"]), min_size=1, max_size=6), st.sampled_from(KINDS))
def test_grams_of_ignored_text_are_not_compared(texts: list[str], words: list[str], features: str) -> None:
    ignored = " ".join(words)
    expected = naive.all_pairs([plain_set(text, ignored, features) for text in texts], "jaccard", Fraction(1, 2))
    chosen: dict[str, Any] = {"features": features, "normalize": "words", "threshold": 0.5, "ignore": ignored}
    result = nd.dedup(texts, **chosen, pairs_per_document=None)
    assert {(pair.left, pair.right): pair.similarity for pair in result.pairs} == pytest.approx(expected)
    for left, right in list(expected)[:2]:
        assert result.explain(left, right).similarity == pytest.approx(expected[left, right])
    window = nd.Index(window="endless", against="everything", **chosen)
    found = window.add_many([nd.Document(str(place), text, "2020-01-01") for place, text in enumerate(texts)])
    assert [verdict.kind != "original" for verdict in found] == [
        any(pair[1] == place for pair in expected) for place in range(len(texts))
    ]


def test_every_interface_ignores_the_text(tmp_path: Path) -> None:
    copies = [*NEWS, NEWS[0].upper()]
    assert nd.dedup(copies, threshold=0.5).kept == [0]
    ways: list[dict[str, Any]] = [
        {},
        {"memory": 300_000_000},
        {"search": "lsh"},
        {"second_step": "jaccard(words:2) >= 0.5"},
    ]
    for options in ways:
        assert nd.dedup(copies, threshold=0.5, ignore=NOTICE, **options).kept == [0, 1]
    strict = nd.dedup(
        [NEWS[0], f"{NEWS[0]} More."], threshold=0.1, ignore=NOTICE, second_step="jaccard(words:1) >= 0.9"
    )
    assert strict.kept == [0, 1]
    why = strict.explain(0, 1)
    assert not why.match
    # Of the notice's 23 words grams of five are as many less four; those across its edges count.
    assert why.ignored == (19, 19)
    assert why.as_dict()["ignored"] == [19, 19]
    index = nd.build_index(copies, tmp_path / "index", threshold=0.5, ignore=NOTICE)
    assert [one.id for one in index.query(NEWS[1])] == [1]
    assert nd.dedup([NEWS[1]], against=nd.open_index(index.path)).kept == []
    with pytest.raises(RecipeError) as caught:
        nd.dedup(NEWS, against=index, threshold=0.5, ignore=NOTICE.replace("own", "odd"))
    assert says(caught.value, "known text", "another index")


def test_ignored_text_is_part_of_the_recipe() -> None:
    recipe = Recipe(ignore=NOTICE)
    assert recipe.fingerprint != Recipe().fingerprint != Recipe(ignore=NOTICE + "!").fingerprint
    assert recipe.in_words() != Recipe(ignore=NOTICE.replace("own", "odd")).in_words()
    refusals: list[dict[str, Any]] = [{"features": "checksum"}, {"features": "qgrams:3:positional"}]
    for refused in [*refusals, {"measure": "semantic"}]:
        with pytest.raises(RecipeError, match="ignore"):
            Recipe(ignore=NOTICE, **refused)
    with pytest.raises(RecipeError, match="1,000,000"):
        Recipe(ignore="a " * 600_000)
