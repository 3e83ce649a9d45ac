"""What does not go together is refused in one sentence: the value, the rule, the way out."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from sentences import says

import neardup as nd
from neardup.errors import RecipeError
from neardup.recipe import WEIGHTS, Recipe
from neardup.recipe.kinds import FEATURE_KINDS, NORMALIZER_NAMES, SIGNATURE_KINDS
from neardup.recipe.measures import MEASURES

#: Choices, the value that is refused, and the way out.
REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"normalize": "compact"}, "normalize 'compact'", "choose qgrams or normalize 'words'"),
    ({"normalize": "raw"}, "normalize 'raw'", "choose 'whitespace'"),
    ({"antecedents": "the a"}, "'words:5'", "leave them out"),
    ({"clip": "df:2:0.5", "features": "checksum"}, "clip 'df:2:0.5'", "leave it out"),
    ({"features": "spots", "stop_words": "none"}, "stop_words 'none'", "name languages"),
    ({"features": "qgrams:4", "stop_words": "en"}, "stop_words 'en'", "leave them out"),
    ({"stop_words": "en", "normalize": "whitespace"}, "stop_words 'en'", "choose normalize 'words'"),
    ({"weights": "tf", "features": "words:2:multiset", "measure": "cosine"}, "weights 'tf'", "leave one out"),
    ({"weights": "idf", "features": "checksum", "measure": "cosine"}, "weights 'idf'", "leave them out"),
    ({"weights": "tf", "signature": "minhash", "measure": "overlap"}, "weights 'tf'", "leave them out"),
    (
        {"signature": "simhash", "features": "checksum", "measure": "hamming", "threshold": 3},
        "signature 'simhash'",
        "leave the signature out",
    ),
    ({"signature": "simhash"}, "measure 'jaccard'", "choose hamming"),
    ({"signature": "sketch", "measure": "semantic"}, "measure 'semantic'", "choose overlap"),
    (
        {"weights": "idf"},
        "measure 'jaccard'",
        "choose one of dice, cosine, euclidean, extended_jaccard, weighted_jaccard",
    ),
    ({"measure": "weighted_jaccard"}, "measure 'weighted_jaccard'", "for weighted_jaccard give weights, such as 'idf'"),
    ({"measure": "hamming"}, "measure 'hamming'", "for hamming give signature='simhash', threshold=3"),
    ({"measure": "edit"}, "measure 'edit'", "for edit distance give second_step 'edit >= 0.9'"),
    ({"jaccard_floor": 0.2, "signature": "minhash", "measure": "overlap"}, "jaccard_floor 0.2", "leave it out"),
    ({"jaccard_floor": 0.2, "measure": "euclidean"}, "jaccard_floor 0.2", "leave it out"),
    ({"jaccard_floor": 0.2, "measure": "semantic"}, "jaccard_floor 0.2", "leave it out"),
    ({"weights": "tf", "measure": "semantic"}, "weights 'tf'", "leave it out"),
    ({"search": "lsh", "signature": "minhash", "measure": "overlap"}, "search 'lsh'", "choose search 'exact'"),
    ({"search": "lsh", "measure": "semantic"}, "search 'lsh'", "choose search 'exact'"),
    ({"search": "lsh", "measure": "containment"}, "search 'lsh'", "give jaccard_floor"),
    ({"measure": "semantic", "threshold": 1.5}, "threshold 1.5", ""),
    ({"signature": "simhash", "measure": "hamming"}, "threshold 0.85", "0 to 63"),
]


@pytest.mark.parametrize(("choices", "value", "way"), REFUSED, ids=[" ".join(map(str, r[0].values())) for r in REFUSED])
def test_choices_that_do_not_fit_are_refused_in_one_sentence(choices: dict[str, Any], value: str, way: str) -> None:
    with pytest.raises(RecipeError) as refused:
        Recipe(**choices)
    message = str(refused.value)
    assert value in message
    assert way in message[message.index(value) + len(value) :]
    assert "\n" not in message


@pytest.mark.parametrize(
    "choices",
    [
        {"features": "spots", "stop_words": "none", "antecedents": "the a"},
        {"features": "spots", "antecedents": "le la"},
        {"features": "terms", "stop_words": "none", "normalize": "whitespace"},
        {"features": "words:3", "stop_words": "none", "normalize": "whitespace"},
        {"features": "skips", "stop_words": "en,de"},
        {"features": "terms:9:sentence", "weights": "tf", "measure": "euclidean", "threshold": 12.5},
        {"clip": "df:2:0.5", "signature": "sketch", "measure": "overlap"},
        {"search": "lsh", "measure": "containment", "jaccard_floor": 0.4},
        {"search": "lsh", "measure": "extended_jaccard", "features": "terms:9"},
        {"measure": "semantic", "second_step": "edit >= 0.5"},
        {"signature": "imatch", "second_step": "semantic >= 0.9"},
    ],
    ids=lambda choices: " ".join(map(str, choices.values())),
)
def test_choices_that_fit_are_accepted(choices: dict[str, Any]) -> None:
    recipe = Recipe(**choices)
    assert {name: getattr(recipe, name) for name in choices} == choices | {
        name: getattr(recipe, name) for name in ("features", "signature") if name in choices
    }


def recipe_or_refusal(**choices: Any) -> Recipe | str:
    try:
        return Recipe(**choices)
    except RecipeError as error:
        return str(error)


def test_every_combination_is_refused_or_runs() -> None:
    texts = ["The fox ran and the dog sat. The owl said so, again.", "the fox ran and the dog sat", "", "owl"]
    accepted, run = 0, set[tuple[str, str, str]]()
    for features, normalizer, weights, signature, measure in product(
        FEATURE_KINDS, ["", *NORMALIZER_NAMES], WEIGHTS, ["", *SIGNATURE_KINDS], MEASURES
    ):
        choices = {"weights": weights, "signature": signature, "measure": measure}
        recipe = recipe_or_refusal(features=features, normalize=normalizer, threshold=1, **choices)
        if isinstance(recipe, str):
            assert "\n" not in recipe
            continue
        accepted += 1
        # Each measure runs with one kind of features, and each other combination with its first measure.
        if measure == "semantic" or normalizer or (features != "words" and (features, weights, signature) in run):
            continue
        run.add((features, weights, signature))
        pairs = [(p.left, p.right) for p in nd.dedup([*texts, *texts], recipe=recipe, threads=1).pairs]
        decided = {pair for pair in pairs if pair[1] - pair[0] == 4}
        assert decided <= {(i, i + 4) for i in range(4)}
        assert (2, 6) not in decided
        if signature != "imatch" and features not in ("spots", "terms"):
            assert decided == {(0, 4), (1, 5), (3, 7)}, recipe.in_words()
    assert accepted > 300


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        (
            {"search": "lsh", "threshold": 0.1, "num_perm": 16},
            ("num_perm 16 is too", "recall 0.99", "Jaccard of 0.1,", "takes 44; raise num_perm"),
        ),
        ({"measure": "semantic"}, ("measure 'semantic'", "needs an encoder", "encode(texts)")),
        ({"second_step": "semantic >= 0.9"}, ("second_step 'semantic >= 0.9'", "needs an encoder", "encode(texts)")),
        ({"stop_words": "xx"}, ("'xx'",)),
    ],
)
def test_impossible_choices_are_refused_before_reading(choices: dict[str, Any], words: tuple[str, ...]) -> None:
    seen: list[str] = []
    with pytest.raises(RecipeError) as refused:
        nd.dedup(["a b c", "b c d"], progress=lambda stage, done, total: seen.append(stage), **choices)
    assert says(refused.value, *words)
    assert not seen
