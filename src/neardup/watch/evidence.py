"""Sidecar records: of a duplicate, with verdict and evidence; of a rejected file, with the reason."""

from __future__ import annotations

from datetime import UTC, datetime
from math import isfinite
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neardup.classifier.classifier import Classifier
    from neardup.recipe import Recipe
    from neardup.stream.document import Verdict

#: The most passages in a record, and the most characters of each.
_MAX_PASSAGES, _MAX_PASSAGE_LENGTH = 5, 600
#: Characters of each text that are searched for passages, so that a hostile item costs no more than any other.
_SEARCHED_CHARACTERS = 20_000


def verdict_record(
    verdict: Verdict,
    recipe: Recipe,
    file: str,
    text: str | None = None,
    original_text: str | None = None,
    classifier: Classifier | None = None,
) -> dict[str, Any]:
    """Return the sidecar record of a duplicate.

    ``text`` and ``original_text`` are the texts of the duplicate and of the document it repeats; None if unavailable.
    """
    record: dict[str, Any] = {
        "id": verdict.id,
        "file": file,
        "kind": verdict.kind,
        "of": verdict.of,
        "similarity": verdict.similarity,
        **(_classifier_fields(verdict, classifier) if classifier else _recipe_fields(verdict, recipe)),
        "time": datetime.fromtimestamp(verdict.time, UTC).isoformat().replace("+00:00", "Z"),
        "flag": verdict.flag,
        "recipe": recipe.name,
        "fingerprint": recipe.fingerprint,
    }
    if text is None or original_text is None:
        record["passages"], record["passages_note"] = [], "the text of the original is no longer in the window"
        return record
    record["passages"] = passages(text, original_text, recipe)
    if max(len(text), len(original_text)) > _SEARCHED_CHARACTERS:
        record["passages_note"] = f"looked for in the first {_SEARCHED_CHARACTERS:,} characters of each text"
    return record


def _classifier_fields(verdict: Verdict, classifier: Classifier) -> dict[str, Any]:
    # JSON has no number for an infinite cut, which accepts every pair.
    cut = classifier.cut if isfinite(classifier.cut) else None
    fields = {"measure": "learned", "classifier": classifier.fingerprint, "cut": cut, "score": verdict.score}
    if verdict.score is None:
        return fields | {"reason": "equal texts, which no classifier judges", "measures": []}
    bar = "" if cut is None else f" >= {cut:g}"
    reason = f"score {verdict.score:.4f}{bar}, probability {verdict.similarity:.4f}; {verdict.evidence}"
    return fields | {"reason": reason, "measures": [one.as_dict() for one in verdict.measures]}


def _recipe_fields(verdict: Verdict, recipe: Recipe) -> dict[str, Any]:
    """Return the measure and the counts behind a similarity, under the names of ``neardup explain``."""
    fields = {"measure": recipe.measure, "threshold": recipe.threshold}
    if verdict.counts is None:
        return fields
    o, a, b = verdict.counts
    kind = recipe.parsed_features.kind
    if recipe.second_step or recipe.weights or recipe.signature or kind == "checksum" or recipe.measure == "semantic":
        return fields | {"counts": {"o": o, "a": a, "b": b}}
    from neardup.pipeline.counterfactual import reason_line
    from neardup.pipeline.resolved_features import Counts

    reason = reason_line(recipe, Counts(o, a, b), (o, a, b), ("", ""))
    return fields | {"reason": reason, "shared": o, "sizes": [a, b]}


def passages(text: str, original_text: str, recipe: Recipe) -> list[dict[str, Any]]:
    """Return the longest passages that two texts share, the longest first.

    A passage has at least four consecutive words, whatever the features of the recipe. If there is none, passages of
    the recipe's own features are returned.
    """
    from neardup.pipeline.passages import common_passages
    from neardup.pipeline.resolved_features import text_grams
    from neardup.recipe import Recipe

    text, original_text = text[:_SEARCHED_CHARACTERS], original_text[:_SEARCHED_CHARACTERS]
    if text == original_text:
        words = len(text_grams(text, Recipe(features="words:1")).units)
        return [{"tokens": words, "text": _shortened(text)}] if text else []
    for compared in (Recipe(features="words:4"), recipe):
        sides = text_grams(text, compared), text_grams(original_text, compared)
        found = common_passages(*sides, limit=_MAX_PASSAGES).listed
        if found:
            break
    longest = sorted(found, key=lambda passage: -passage.tokens)
    return [{"tokens": passage.tokens, "text": _shortened(passage.text)} for passage in longest]


def _shortened(text: str) -> str:
    return text if len(text) <= _MAX_PASSAGE_LENGTH else text[: _MAX_PASSAGE_LENGTH - 3] + "..."


def rejection_record(file: str, reason: str, **fields: Any) -> dict[str, Any]:
    """Return the sidecar record of a rejected file."""
    now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return {"file": file, "reason": reason, **fields, "time": now}
