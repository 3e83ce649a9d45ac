"""Explanations of pairs: what two documents share, their measures, and what would reverse the verdict."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

from neardup.errors import RecipeError
from neardup.pipeline.counterfactual import (
    Counterfactual,
    MatchCriterion,
    find_counterfactual,
    format_measure,
    match_criterion,
    measure_value,
    reason_line,
    threshold_sentence,
)
from neardup.pipeline.passages import (
    SEARCHED_GRAMS,
    Passage,
    Segment,
    Span,
    changed_spans,
    common_passages,
    covered_units,
    text_segments,
)
from neardup.pipeline.resolved_features import Counts, Gram, pair_counts, resolved_grams, set_overlap, text_grams
from neardup.recipe import Recipe
from neardup.recipe.measures import SET_MEASURES, measure
from neardup.recipe.second_step import SecondStep
from neardup.text.contents import content_of

if TYPE_CHECKING:
    from neardup.classifier.classifier import Classifier
    from neardup.classifier.vector import Records
    from neardup.features.extraction import Encoder
    from neardup.features.statistics import Statistics
    from neardup.pages.html import Html
    from neardup.pipeline.learned_explanation import ClassifierResult


def _text_counts(measure: str, left: str, right: str, encoder: Encoder | None) -> tuple[int, int, int]:
    """Return o, a and b of ``edit`` or ``semantic`` on two texts; a negative cosine counts as 0."""
    if measure == "edit":
        from rapidfuzz.distance import Levenshtein

        longer = max(len(left), len(right))
        return longer - Levenshtein.distance(left, right), longer, longer
    if encoder is None:
        raise RecipeError(
            "measure 'semantic' needs an encoder, an object with encode(texts): pass one in Python, "
            "explain(..., encoder=...)"
        )
    from neardup.features.extraction import COSINE_UNIT, embed

    rows = embed([left, right], encoder)
    cosine = min(max(float(rows[0] @ rows[1]), 0.0), 1.0)
    return round(cosine * COSINE_UNIT), COSINE_UNIT, COSINE_UNIT


class SecondStepResult(NamedTuple):
    """A second step on a pair: the step, and the pair's o, a and b."""

    step: SecondStep
    counts: tuple[int, int, int]

    @property
    def value(self) -> float:
        """The measure of the pair."""
        return measure_value(self.step.measure, *self.counts)

    @property
    def criterion(self) -> MatchCriterion:
        """What the pair must reach."""
        return MatchCriterion(self.step.measure, self.step.exact_threshold)

    @property
    def passed(self) -> bool:
        """Whether the pair is at or above the step's threshold; exact."""
        return self.criterion.is_met(*self.counts)

    @property
    def reason(self) -> str:
        """The numbers of the step, such as: then edit 0.9512 >= 0.9."""
        name, _, threshold = str(self.step).partition(" >= ")
        return f"then {name} {format_measure(self.value)} {'>=' if self.passed else '<'} {threshold}"

    @property
    def flip(self) -> float | None:
        """The nearest threshold of the step that gives the other verdict; None if there is none."""
        return self.criterion.nearest_flip(*self.counts)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The same as a sentence."""
        return (threshold_sentence(self.criterion, self.counts, self.flip, "pass the second step"),)

    def as_dict(self) -> dict[str, Any]:
        """Return all fields for JSON."""
        return {
            "measure": self.step.measure,
            "features": self.step.features,
            "threshold": self.step.threshold,
            "value": self.value,
            "passed": self.passed,
            "counts": list(self.counts),
            "flip": self.flip,
        }


def _second_step_result(left: str, right: str, step: SecondStep, encoder: Encoder | None) -> SecondStepResult:
    if not step.features:
        return SecondStepResult(step, _text_counts(step.measure, left, right, encoder))
    if left == right:
        return SecondStepResult(step, (1, 1, 1))
    recipe = Recipe(features=step.features, ignore=step.ignore)
    grams = [resolved_grams(text, recipe, None).gram_counts(recipe) for text in (left, right)]
    return SecondStepResult(step, set_overlap(*grams))


class SpanTotals(NamedTuple):
    """How many passages, stretches and changes two texts have, of which an explanation lists at most 100 each.

    ``all_searched``: whether passages were looked for in the whole of both texts; ``all_compared``: whether changes
    were.
    """

    passages: int
    all_searched: bool
    all_compared: bool
    left_segments: int
    right_segments: int
    left_changes: int
    right_changes: int


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """Why two documents match or not.

    Attributes
    ----------
    left, right : str
        The texts; for a recipe with ``content`` the main content, to which all offsets refer.
    recipe : Recipe
        The recipe that decides.
    counts : Counts
        o, a and b as the recipe's measure takes them: of feature sets, of weighted vectors, or of signatures.
    features : (int, int, int)
        o, a and b of the feature sets, also where these are weighted or reduced to signatures.
    left_grams, right_grams : mapping of gram to int
        The features as tuples of token texts, each with how often it counts: once in a set, as often as it
        occurs in a multiset. With a signature, the features it is made from.
    left_segments, right_segments : tuple of Segment
        The whole of each text, cut where the cover by shared grams begins and ends; of more than 100 stretches only the
        longest, the longest first.
    left_changes, right_changes : tuple of Span
        Words outside the shared grams that differ. The other words outside are equal in both texts, but too few in
        a row to form a gram, or in no gram that counts. Of more than 100 changes only the longest, the longest first.
    passages : tuple of Passage
        Maximal runs of words that both texts contain, from left to right; of more than 100 only the longest, the
        longest first. At most 100 places in the right text are listed, and at least one for each passage.
    totals : SpanTotals
        How many passages, stretches and changes there are.
    digests : tuple of str
        For ``checksum`` and ``imatch``, the compared digests as hex digits (of I-Match the first 16); empty for a
        document without one.
    second : SecondStepResult, ClassifierResult or None
        The result of the second step, whether or not the pair passes the first.
    groups : tuple of str
        With ``drop_by``: the verdicts on the groups of the two documents, as clauses.
    """

    left: str
    right: str
    recipe: Recipe
    counts: Counts
    features: tuple[int, int, int]
    left_grams: Mapping[Gram, int]
    right_grams: Mapping[Gram, int]
    left_segments: tuple[Segment, ...]
    right_segments: tuple[Segment, ...]
    left_changes: tuple[Span, ...]
    right_changes: tuple[Span, ...]
    passages: tuple[Passage, ...]
    totals: SpanTotals
    digests: tuple[str, str]
    second: SecondStepResult | ClassifierResult | None
    groups: tuple[str, ...] = ()

    @property
    def sizes(self) -> tuple[int, int]:
        """The number of features of each document, |A| and |B|."""
        return self.features[1:]

    @property
    def shared(self) -> int:
        """The number of shared features, |A and B|."""
        return self.features[0]

    @property
    def ignored(self) -> tuple[int, int]:
        """How many grams of each document are ignored because the recipe's ``ignore`` text contains them."""
        if not self.recipe.ignore:
            return 0, 0
        complete = self.recipe.changed(ignore="")
        left, right = (
            len(set(text_grams(text, complete).grams)) - len(set(text_grams(text, self.recipe).grams))
            for text in (self.left, self.right)
        )
        return left, right

    @property
    def needed(self) -> int | None:
        """The least o that suffices for these a and b, even if it exceeds them; None if one is 0."""
        return match_criterion(self.recipe, self.counts.unit).least_overlap(self.counts.a, self.counts.b)

    @property
    def learned(self) -> ClassifierResult | None:
        """The result of the classifier, even for pairs that are no candidates; None if the recipe has none."""
        return None if isinstance(self.second, SecondStepResult) else self.second

    @property
    def passed(self) -> bool:
        """Whether the pair passes the first step: threshold and floor on Jaccard; exact."""
        o, a, b, unit = self.counts
        return match_criterion(self.recipe, unit).is_met(o, a, b)

    @property
    def match(self) -> bool:
        """Whether the pair passes every step."""
        return self.passed and (self.second is None or self.second.passed)

    @property
    def measures(self) -> dict[str, float]:
        """Every set measure of the features, distances as distances; 0 for similarities where a document is empty."""
        return {name: measure_value(name, *self.features) for name in SET_MEASURES}

    @property
    def similarity(self) -> float:
        """The similarity shown for pairs: the measure of the last step on a scale from 0 to 1, also for distances."""
        if self.second:
            return self.second.value
        o, a, b, unit = self.counts
        return float(measure(self.recipe.measure).similarity(o / unit, a / unit, b / unit)) if a and b else 0.0

    @property
    def value(self) -> float:
        """The measure of the first step in its own scale: a distance as a distance."""
        return measure_value(self.recipe.measure, *self.counts)

    @property
    def flip(self) -> Counterfactual:
        """What would reverse the verdict of the first step."""
        o, a, b, unit = self.counts
        return find_counterfactual(self.recipe, o, a, b, unit=unit, features=self.features)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What would reverse the verdict of each step, as sentences."""
        return self.flip.sentences + (self.second.sentences if self.second else ())

    @property
    def reason(self) -> str:
        """The verdict's numbers on one line."""
        first = reason_line(self.recipe, self.counts, self.features, self.digests)
        return first + (f"; {self.second.reason}" if self.second else "")

    @property
    def notes(self) -> tuple[str, ...]:
        """What is not listed of the passages, stretches and changes, as sentences; empty if all of it is."""
        totals = self.totals
        left, right = "of the left text", "of the right text"
        listed = [
            ("passages", self.passages, totals.passages),
            (f"stretches {left}", self.left_segments, totals.left_segments),
            (f"stretches {right}", self.right_segments, totals.right_segments),
            (f"changes {left}", self.left_changes, totals.left_changes),
            (f"changes {right}", self.right_changes, totals.right_changes),
        ]
        notes = [
            f"of {total:,} {noun}, the {len(spans):,} longest are listed"
            for noun, spans, total in listed
            if len(spans) < total
        ]
        places, shown = sum(one.places for one in self.passages), sum(len(one.right) for one in self.passages)
        if shown < places:
            notes.append(f"of {places:,} places of these passages {right}, {shown:,} are listed")
        if not totals.all_searched:
            notes.append(f"passages are looked for among the first {SEARCHED_GRAMS:,} features of each text")
        if not totals.all_compared:
            words = "characters" if self.recipe.parsed_features.traits.by_character else "words"
            searched = f"the first {SEARCHED_GRAMS:,} {words} outside the shared features"
            notes.append(f"changes are looked for among {searched} of each text")
        return tuple(notes)

    def as_dict(self) -> dict[str, Any]:
        """Return numbers, passages, segments and changes for JSON; of the texts only extracted contents.

        ``notes`` says what is not listed.
        """
        optional: dict[str, Any] = {"groups": list(self.groups)} if self.groups else {}
        optional |= {"ignored": list(self.ignored)} if self.recipe.ignore else {}
        if self.recipe.content:
            optional |= {"content": self.recipe.content, "contents": [self.left, self.right]}
        chosen = ("measure", "threshold", "jaccard_floor", "features", "normalize", "clip", "weights", "signature")
        numbers = ("match", "reason", "similarity", "value", "shared", "needed", "measures")
        return {
            **{name: getattr(self, name) for name in numbers},
            **{name: getattr(self.recipe, name) for name in chosen},
            "sizes": list(self.sizes),
            "counts": self.counts._asdict(),
            "digests": list(self.digests) if any(self.digests) else None,
            "second_step": self.second.as_dict() if self.second else None,
            "flip": self.flip._asdict() | {"sentences": list(self.sentences)},
            "passages": [
                {
                    "left": list(passage.left),
                    "right": [list(span) for span in passage.right],
                    "tokens": passage.tokens,
                    "text": passage.text,
                    "places": passage.places,
                }
                for passage in self.passages
            ],
            "segments": {
                "left": [segment._asdict() for segment in self.left_segments],
                "right": [segment._asdict() for segment in self.right_segments],
            },
            "changes": {
                "left": [list(span) for span in self.left_changes],
                "right": [list(span) for span in self.right_changes],
            },
            "notes": list(self.notes),
            "fingerprint": self.recipe.fingerprint,
            **optional,
        }

    def _repr_html_(self) -> str | None:
        # Without jinja2, a notebook falls back to `repr`.
        if find_spec("jinja2") is None:
            return None
        from neardup.pages.html import join_html, table, to_html

        words = join_html((to_html(line) for line in (str(self), *self.groups, *self.sentences, *self.notes)), "<br>")
        sides = [_with_changes(self.left, self.left_changes), _with_changes(self.right, self.right_changes)]
        return f'<div class="neardup"><p>{words}</p>{table([], [sides], text_columns=2)}</div>'

    def __str__(self) -> str:
        return f"{'near-duplicates' if self.match else 'no near-duplicates'}: {self.reason}"


def _with_changes(text: str, changes: Sequence[Span]) -> Html:
    """Return a text as HTML, with the listed words that differ marked."""
    from neardup.pages.html import Html, escape, join_html

    parts, done = list[object](), 0
    for change in sorted(changes):
        parts += [escape(text[done : change.start]), Html(f"<mark>{escape(text[change.start : change.end])}</mark>")]
        done = change.end
    return join_html([*parts, escape(text[done:])])


def explain(
    left: str,
    right: str,
    recipe: Recipe,
    statistics: Statistics | None = None,
    encoder: Encoder | None = None,
    classifier: Classifier | None = None,
    records: Records | None = None,
) -> Explanation:
    """Explain why two texts, or HTML pages if the recipe has ``content``, match or not.

    Parameters
    ----------
    statistics : Statistics, optional
        Those of the collection that the texts come from, for recipes with ``needs_statistics``.
    classifier : Classifier, optional
        The classifier whose recipe it is.
    records : Records, optional
        Titles and times of the two documents, for classifiers that compare them; unknown by default.

    Raises
    ------
    RecipeError
        If the recipe needs statistics, an encoder or a classifier and there is none.

    Examples
    --------
    >>> why = explain("A rose is a rose.", "A rose is a tulip.", Recipe(features="words:2", threshold=0.5))
    >>> print(why)
    near-duplicates: jaccard 0.7500 >= 0.5; 3 features shared, of 3 and 4
    >>> [passage.text for passage in why.passages]
    ['A rose is a', 'a rose']
    """
    left, right = content_of(left, recipe.content), content_of(right, recipe.content)
    # The contents are extracted; nothing below may extract them again.
    bare = recipe.changed(content="")
    sides = resolved_grams(left, bare, statistics), resolved_grams(right, bare, statistics)
    grams = sides[0].gram_counts(bare), sides[1].gram_counts(bare)
    features = set_overlap(*grams)
    vectors = pair_counts(left, right, bare, statistics)
    if recipe.measure == "semantic":
        counts = Counts(*_text_counts("semantic", left, right, encoder))
    else:
        counts = vectors.counts if vectors else Counts(*features)
    second: SecondStepResult | ClassifierResult | None = None
    step = recipe.parsed_second_step
    if step is not None and step.measure == "learned":
        second = _classifier_result(left, right, recipe, counts, encoder, classifier, records)
    elif step is not None:
        second = _second_step_result(left, right, step, encoder)
    covered = covered_units(sides[0], grams[1]), covered_units(sides[1], grams[0])
    segments = [text_segments(*side) for side in zip(sides, covered, strict=True)]
    changes, passages = changed_spans(sides, covered), common_passages(*sides)
    return Explanation(
        left,
        right,
        recipe,
        counts,
        features,
        *grams,
        segments[0].listed,
        segments[1].listed,
        changes[0].listed,
        changes[1].listed,
        passages.listed,
        SpanTotals(
            passages.total,
            passages.is_complete,
            changes[0].is_complete,
            *(side.total for side in segments),
            *(side.total for side in changes),
        ),
        _digests(recipe, grams, vectors.words if vectors else ([], [])),
        second,
    )


def _classifier_result(
    left: str,
    right: str,
    recipe: Recipe,
    counts: Counts,
    encoder: Encoder | None,
    classifier: Classifier | None,
    records: Records | None,
) -> ClassifierResult:
    from neardup.classifier.vector import Records
    from neardup.pipeline.learned_explanation import ClassifierResult
    from neardup.search.second_step import check_classifier

    checked = check_classifier(classifier, recipe, encoder)
    o, a, b, unit = counts
    is_candidate = match_criterion(recipe, unit).is_met(o, a, b)
    titles, times = (records.titles, records.times) if records else (None, None)
    return ClassifierResult.of(checked, Records([left, right], titles, times), is_candidate, encoder)


def _digests(
    recipe: Recipe, grams: tuple[Mapping[Gram, int], ...], words: tuple[list[int], list[int]]
) -> tuple[str, str]:
    """Return the digests of documents that have one feature each, as hex digits."""
    if recipe.signature.startswith("imatch"):
        # A feature is the first eight bytes of the digest, read as little-endian.
        left, right = ("".join(word.to_bytes(8, "little").hex() for word in side) for side in words)
    elif recipe.parsed_features.kind == "checksum":
        algorithm = recipe.parsed_features.flags[0]
        left, right = ("".join(_digest(str(text), algorithm) for (text,) in side) for side in grams)
    else:
        left = right = ""
    return left, right


def _digest(text: str, algorithm: str) -> str:
    return hashlib.new(algorithm, text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()
