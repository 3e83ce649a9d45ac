"""What fits what in a recipe: which features, weights, signatures, measures and searches go together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neardup.errors import RecipeError, option
from neardup.measures import MEASURES, measure, threshold_of
from neardup.recipe.kinds import SIGNATURE_KINDS

if TYPE_CHECKING:
    from neardup.recipe import Recipe

#: The kinds whose stop words are left out of the tokens.
_WITHOUT_STOP_WORDS = ("words", "skips", "sentence_words", "terms")


def check_fit(recipe: Recipe) -> None:
    """Refuse a recipe whose choices do not go together.

    Raises
    ------
    RecipeError
        In one sentence: the value, the rule, the way out.
    """
    _check_normalizer(recipe)
    _check_words(recipe)
    _check_weights(recipe)
    _check_measure(recipe)
    _check_search(recipe)


def _check_normalizer(recipe: Recipe) -> None:
    features = recipe.parsed_features
    if recipe.normalize == "compact" and not features.traits.by_character and features.kind != "checksum":
        raise RecipeError(
            f"normalize 'compact' leaves no tokens for features {recipe.features!r}; choose qgrams or normalize 'words'"
        )
    if recipe.normalize == "raw" and features.kind != "checksum":
        raise RecipeError(
            f"normalize 'raw' is for checksums, not for features {recipe.features!r}; choose 'whitespace'"
        )


def _check_words(recipe: Recipe) -> None:
    kind = recipe.parsed_features.kind
    if recipe.antecedents and kind != "spots":
        raise RecipeError(f"antecedents are for spots, not for features {recipe.features!r}; leave them out")
    if recipe.clip and kind == "checksum":
        raise RecipeError(f"clip {recipe.clip!r} means nothing to features {recipe.features!r}; leave it out")
    if recipe.stop_words == "none" and kind == "spots" and not recipe.antecedents:
        raise RecipeError("stop_words 'none' leave spots without antecedents; name languages, or give antecedents")
    if recipe.stop_words == "none":
        return
    if recipe.stop_words and kind not in (*_WITHOUT_STOP_WORDS, "spots"):
        raise RecipeError(
            f"stop_words {recipe.stop_words!r} mean nothing to features {recipe.features!r}; leave them out, or take "
            f"one of {', '.join(_WITHOUT_STOP_WORDS)}, spots"
        )
    if recipe.stop_words and recipe.normalize != "words":
        raise RecipeError(
            f"stop_words {recipe.stop_words!r} are case-folded words, which normalize {recipe.normalize!r} does not "
            "give; choose normalize 'words'"
        )


def _check_weights(recipe: Recipe) -> None:
    features = recipe.parsed_features
    if not recipe.weights:
        return
    if features.multiset:
        raise RecipeError(
            f"weights {recipe.weights!r} count repeats, and so does features {recipe.features!r}: leave one out"
        )
    if features.kind == "checksum" or features.positional:
        raise RecipeError(f"weights {recipe.weights!r} mean nothing to features {recipe.features!r}; leave them out")
    if recipe.signature and not recipe.signature.startswith("simhash"):
        raise RecipeError(
            f"weights {recipe.weights!r} mean nothing to a {recipe.signature}; leave them out, or take simhash"
        )


def _check_measure(recipe: Recipe) -> None:
    known = measure(recipe.measure)
    signature = recipe.parsed_signature
    if signature is not None:
        fits = [SIGNATURE_KINDS[signature.kind].measure]
        what = f"signature {recipe.signature!r}"
        if recipe.parsed_features.kind == "checksum":
            raise RecipeError(f"{what} needs several features, and a checksum is one; leave the signature out")
    elif recipe.is_weighted:
        fits = [name for name, m in MEASURES.items() if "weights" in m.takes]
        what = f"weights {recipe.weights!r}"
    else:
        fits = [name for name, m in MEASURES.items() if "sets" in m.takes]
        what = f"features {recipe.features!r} without weights"
    if recipe.measure == "semantic" and not recipe.signature:
        for field in ("weights", "clip", "jaccard_floor"):
            if value := getattr(recipe, field):
                raise RecipeError(
                    f"{field} {value!r} is for features, and measure 'semantic' compares texts; leave it out"
                )
        return
    if known.name not in fits:
        ways = {
            "edit": "; for edit distance take a second step: then 'edit >= 0.9'",
            "weighted_jaccard": "; for weighted_jaccard give weights, such as 'idf'",
            "hamming": "; for hamming give signature 'simhash'",
            "learned": f"; for a learned decision give {option('--decision FILE', 'decision=')}",
        }
        raise RecipeError(
            f"measure {recipe.measure!r} does not fit {what}; choose {'one of ' if len(fits) > 1 else ''}"
            f"{', '.join(fits)}{ways.get(recipe.measure, '')}"
        )
    if recipe.jaccard_floor and (signature is not None or recipe.is_weighted or known.distance):
        raise RecipeError(f"jaccard_floor {recipe.jaccard_floor} is for feature sets, not for {what}; leave it out")


def _check_search(recipe: Recipe) -> None:
    if recipe.search != "lsh":
        return
    known = measure(recipe.measure)
    what = recipe.measure if recipe.measure == "semantic" else recipe.features
    if (
        recipe.signature
        or recipe.is_weighted
        or recipe.parsed_features.kind == "checksum"
        or recipe.measure == "semantic"
    ):
        raise RecipeError(
            "search 'lsh' makes its own sketches of feature sets, not of "
            f"{recipe.signature or recipe.weights or what}; choose search 'exact'"
        )
    if not max(known.least_jaccard(threshold_of(known.name, recipe.threshold)), recipe.jaccard_floor):
        raise RecipeError(
            f"search 'lsh' needs a least Jaccard, which {known.name} does not bound; give jaccard_floor, or choose "
            "search 'exact'"
        )
