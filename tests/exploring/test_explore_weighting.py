"""What idf weights do, document frequencies by a sample's features alone, and what the blog's own loop counts."""

from __future__ import annotations

import gzip
import json
import re
from collections import defaultdict
from fractions import Fraction
from itertools import combinations, islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from saying import says

from neardup.documents import corpus_of
from neardup.errors import RecipeError
from neardup.exploration.histogram import check_comparable, texts_array, vectors_of, view_of
from neardup.exploration.sample import SamplePairs, frequencies_of
from neardup.exploration.weights import weighted_recipe, weighting_of
from neardup.features.reading import gather
from neardup.recipe import Recipe, load_recipe

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
WORDS = st.sampled_from(["the", "of", "and", "moon", "sun", "star", "sky", "sea", "ship", "harbour"])
TEXTS = st.lists(st.lists(WORDS, max_size=12).map(" ".join), min_size=1, max_size=12)


def blog_tokens(text: str) -> list[str]:
    return re.compile(r"\s+").split(text.strip()) if text.strip() else []


def blog_multiset(tokens: list[str], n: int) -> set[tuple[str, int]]:
    """The blog's features: shingles of so many tokens, the i-th repeat an element of its own."""
    seen: dict[str, int] = defaultdict(int)
    found = set()
    for at in range(len(tokens) + 1 - n):
        shingle = " ".join(tokens[at : at + n])
        found.add((shingle, seen[shingle]))
        seen[shingle] += 1
    return found


def blog_counts(texts: list[str], n: int) -> tuple[int, list[int], list[int]]:
    """Pairs that share nothing, pairs of each hundredth, and pairs on the edges, as the blog's loop finds them."""
    sets = [blog_multiset(blog_tokens(text), n) for text in texts]
    zero, counts, edges = 0, [0] * 100, [0] * 101
    for one, other in combinations(sets, 2):
        shared = len(one & other)
        if not shared:
            zero += 1
            continue
        jaccard = Fraction(shared, len(one) + len(other) - shared)
        place = -(-(100 * jaccard) // 1)
        counts[int(place) - 1] += 1
        edges[int(place)] += jaccard == Fraction(int(place), 100)
    return zero, counts, edges


def agrees_with_the_blog(texts: list[str], n: int) -> None:
    recipe = load_recipe("jaccard").changed(features=f"words:{n}:multiset")
    found, _ = view_of(vectors_of(texts_array(texts), recipe), recipe)
    assert (found.zero, list(found.counts), list(found.edges)) == blog_counts(texts, n)


@settings(max_examples=40)
@given(st.lists(st.lists(WORDS, min_size=4, max_size=14).map(" ".join), min_size=2, max_size=9), st.integers(1, 4))
def test_the_histogram_is_the_blogs(texts: list[str], n: int) -> None:
    agrees_with_the_blog(texts, n)


@pytest.mark.shared
@pytest.mark.skipif(not DATA.is_dir(), reason="the corpora are not in ../shared/data beside the project")
def test_the_histogram_of_job_ads_is_the_blogs() -> None:
    with gzip.open(DATA / "adzuna" / "adzuna.jsonl.gz", "rt", encoding="utf-8") as file:
        texts = [json.loads(line)["text"] for line in islice(file, 120)]
    for n in (1, 2, 4, 7):
        agrees_with_the_blog(texts, n)


RECIPES = [
    Recipe(features="words:1", weights="idf", measure="weighted_jaccard"),
    Recipe(features="words:2", weights="tfidf", measure="cosine"),
    Recipe(features="words:1", clip="df:2:0.9"),
    Recipe(features="terms:3", stop_words="en", weights="tfidf", measure="cosine"),
    Recipe(features="words:3", signature="sketch:25", measure="overlap", normalize="strip"),
]


@settings(max_examples=25)
@given(TEXTS, st.sampled_from(RECIPES), st.data())
def test_frequencies_of_a_sample_give_the_features_of_the_whole(texts: list[str], recipe: Recipe, data: Any) -> None:
    chosen = data.draw(st.lists(st.sampled_from(texts), max_size=4))
    with corpus_of(texts) as corpus:
        found = frequencies_of(corpus, recipe, texts_array(chosen), threads=2)
        whole = gather(corpus, recipe)
    assert found.unit(recipe) == whole.unit(recipe)
    try:
        expected = vectors_of(texts_array(chosen), recipe, whole)
    except RecipeError:
        # Clipping left nothing of the whole corpus: there is nothing to compare either way.
        return
    if recipe.clip and not any(texts_array(chosen).to_pylist()):
        return
    try:
        vectors = vectors_of(texts_array(chosen), recipe, found)
    except RecipeError:
        assert not len(expected.features)
        return
    for one, other in zip(vectors, expected, strict=True):
        assert one.tolist() == other.tolist()


def naive_weighted(texts: list[str], one: int, other: int) -> float:
    """Weighted Jaccard of words, each counted as often as it occurs, by idf over the texts."""
    bags = [re.findall(r"\w+", text) for text in texts]
    weigh = {word: np.log(1 + len(texts) / sum(word in bag for bag in bags)) for bag in bags for word in bag}
    f, g = ({word: bags[at].count(word) * weigh[word] for word in bags[at]} for at in (one, other))
    least = sum(min(f[word], g[word]) for word in f.keys() & g.keys())
    return float(least / (sum(f.values()) + sum(g.values()) - least))


def test_weights_move_what_everybody_says_down() -> None:
    """Half of the texts end with the same words; two of them share more than that."""
    phrase = "please send your letter to the address below"
    texts = [f"{' '.join(f'w{n}x{k}' for k in range(12))} {phrase if n % 2 else ''}" for n in range(40)]
    texts[1] = texts[3].replace("w3x0", "other")
    plain = Recipe(features="words:1")
    vectors = vectors_of(texts_array(texts), plain)
    view, close = view_of(vectors, plain, least=4)
    with corpus_of(texts) as corpus:
        found = weighting_of(corpus, texts_array(texts), view, close, view.pairs)
    bands = {band.low: band for band in found.moved}
    assert bands[0.2].pairs == 20 * 19 // 2 - 1
    assert bands[0.2].plain == pytest.approx(8 / 32)
    assert bands[0.2].weighted == pytest.approx(naive_weighted(texts, 5, 7), abs=1e-3)
    assert bands[0.9].weighted == pytest.approx(naive_weighted(texts, 1, 3), abs=1e-3)
    assert bands[0.2].weighted < 0.1 < 0.8 < bands[0.9].weighted
    assert found.plain_overlap is None
    assert "too few alike pairs" in found.sentence


def test_weights_are_said_to_help_where_boilerplate_is_in_between() -> None:
    """Thirty pairs of near-copies, and twelve texts of one company, more than half of which says the same."""
    phrase = " ".join(f"company{k}" for k in range(12))
    texts = [" ".join(f"w{n}x{k}" for k in range(8 if n < 12 else 25)) for n in range(150)]
    texts = [f"{text} {phrase}" if n < 12 else text for n, text in enumerate(texts)]
    texts += [f"{text} more" for text in texts[-30:]]
    plain = Recipe(features="words:2")
    view, close = view_of(vectors_of(texts_array(texts), plain), plain, least=4)
    with corpus_of(texts) as corpus:
        found = weighting_of(corpus, texts_array(texts), view, close, view.pairs)
        again = weighting_of(corpus, texts_array(texts), view, close, view.pairs, threads=3)
    assert found.plain_overlap is not None
    assert found.weighted_overlap is not None
    assert found.weighted_overlap < found.plain_overlap
    assert says(found.sentence, "idf weights part", "better", "100 alike pairs", "words:2")
    assert re.search(r"pairs of 0\.3 to 0\.5 move from 0\.\d+ to 0\.\d+", found.sentence)
    assert again.sentence == found.sentence
    assert found.as_dict()["moved"][0]["pairs"] > 0


def test_repeats_are_weighed_where_they_count() -> None:
    recipe = weighted_recipe(Recipe(features="words:3:multiset"))
    assert (recipe.features, recipe.weights, recipe.measure) == ("words:3", "tfidf", "weighted_jaccard")
    assert weighted_recipe(Recipe(features="qgrams:5")).weights == "idf"


def test_no_pair_is_no_trouble() -> None:
    texts = ["one two", "three four"]
    plain = Recipe(features="words:1")
    view, close = view_of(vectors_of(texts_array(texts), plain), plain, least=4)
    assert isinstance(close, SamplePairs)
    with corpus_of(texts) as corpus:
        found = weighting_of(corpus, texts_array(texts), view, close, view.pairs)
    assert found.moved == ()
    assert says(found.sentence, "too few alike pairs", "idf weights")


def test_what_has_no_features_is_refused() -> None:
    with pytest.raises(RecipeError, match="compares embeddings"):
        check_comparable(Recipe(name="mine", measure="semantic"), "")
    with pytest.raises(RecipeError) as caught:
        check_comparable(Recipe(content="html"), "tags")
    assert says(caught.value, "content 'html'", "sample", "content 'tags'")
    check_comparable(Recipe(content="html"), "html")
    check_comparable(Recipe(content="html"), "")
