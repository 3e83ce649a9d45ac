"""What other thresholds would have done, from pairs that are known already, and similarities in words."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from neardup.keep.keepers import Bools, Graph, Integers, build_graph, document_pair_counts, rank_documents
from neardup.pages.numbers import format_count
from neardup.pages.report import BITS, Sweep
from neardup.pages.verdicts import ORIGINAL, KnownPairs, Verdicts
from neardup.recipe import Recipe
from neardup.recipe.measures import SET_MEASURES
from neardup.search.margin import Criterion

#: Thresholds of a similarity are so far apart; those of a distance that is no number of bits are such a share of it.
_STEP, _SHARE = Fraction(1, 100), Fraction(1, 20)
_STRICTER_ONLY = (
    "It moves to stricter thresholds only: a flow does not find out how near an item came that matched nothing."
)
_COUNTED = {
    True: "Items are compared with all that the window holds, so a stricter threshold stops exactly those whose "
    "similarity reaches it.",
    False: "It counts the duplicates whose recorded similarity reaches the threshold. Items that a stricter one lets "
    "pass would themselves enter the window and could stop others, so a flow with that threshold differs a little: "
    "replay it to know.",
}


def sweep_steps(scale: Criterion, loosest: Fraction) -> list[Fraction]:
    """Return the thresholds of a sweep, from the loosest to the strictest, the own one among them."""
    own = scale.threshold
    if scale.measure == "hamming":
        return [Fraction(bits) for bits in range(int(loosest), -1, -1)]
    if scale.distance:
        step = own * _SHARE
        steps = {step * place for place in range(1, int(loosest / step) + 1)}
        return sorted(steps | {own, loosest}, reverse=True)
    first = int(loosest / _STEP) + 1
    steps = {_STEP * place for place in range(first, int(1 / _STEP) + 1)}
    return sorted(steps | {own} | ({loosest} if loosest > 0 else set()))


def similarity_at(scale: Criterion, threshold: Fraction) -> float:
    """Return how similar a pair exactly at a threshold is."""
    if scale.measure == "hamming":
        return float(1 - threshold / 64)
    return 1 / (1 + float(threshold)) if scale.distance else float(threshold)


class SweepResult(NamedTuple):
    """A sweep, and what it says of documents."""

    sweep: Sweep
    #: bool[t, w]: which of the watched documents would be dropped at each threshold.
    dropped: Bools


class _Removal:
    """Says which would be dropped if only some of the pairs matched."""

    def __init__(self, count: int, pairs: KnownPairs, everything: bool, before: int = 0) -> None:
        self._pairs, self._everything, self._before = pairs, everything, before
        own = np.arange(count)
        self.node = own if pairs.representative is None else pairs.representative
        able = self.node >= 0
        #: How many documents have the features of each representative.
        self._own = count - pairs.reference_count
        self.copies = np.bincount(self.node[: self._own][able[: self._own]], minlength=count).astype(np.int64)
        if not everything:
            numbers = np.arange(len(pairs.left), dtype=np.float64)
            self._ranked = rank_documents(self.node, own if pairs.order is None else pairs.order, pairs.reference_count)
            self._graph = build_graph(count, pairs.left, pairs.right, numbers)

    def by(self, chosen: Bools, watched: Integers) -> tuple[int, Bools]:
        """Return how many would be, and which of the watched ones; ``chosen`` says which pairs match."""
        if self._everything:
            gone = np.zeros(len(self.node), np.bool_)
            gone[self._pairs.right[chosen]] = True
            return int(gone[self._before :].sum()), gone[watched]
        known = self._graph
        some = chosen[known.similarity.astype(np.int64)]
        heads = np.concatenate([[0], np.cumsum(some)]).astype(np.int64)[known.heads]
        stays = self._ranked.kept_nodes(Graph(heads, known.neighbours[some], known.similarity[some]))
        node = self.node[watched]
        gone = (node >= 0) & (watched < self._own) & ~(stays[node] & (self._ranked.firsts[node] == watched))
        of_input = (self._ranked.firsts >= 0) & (self._ranked.firsts < self._own)
        return int(self.copies.sum() - (stays & of_input).sum()), gone

    def pairs(self, chosen: Bools) -> int:
        """Return how many pairs of documents match, equal ones among them."""
        left, right = self._pairs.left[chosen], self._pairs.right[chosen]
        pairs, equal = document_pair_counts(self.node, left, right, self._pairs.reference_count)
        return int(equal.sum()) + int(pairs[right >= self._before].sum())


def sweep_thresholds(
    verdicts: Verdicts,
    scale: Criterion,
    known: KnownPairs,
    *,
    watched: Integers,
    everything: bool = False,
    whole: bool = True,
) -> SweepResult:
    """Return what other thresholds would have done, each as a run at that threshold.

    Where no pairs but those of the verdicts are known, or where they do not say what the verdicts say (as of items that
    came too late), stricter thresholds are counted by the recorded similarities.

    ``watched`` (int64[w]) are documents whose own fate is of interest. With ``everything``, duplicates remove others as
    well; pairs are not known at all thresholds (``whole``) with bands that are made for one.
    """
    count, own_gone = len(verdicts), verdicts.of != ORIGINAL
    documents = count if verdicts.present is None else int(verdicts.present.sum())
    removal, note = _Removal(count, known, everything), known.note
    if known.matching is None:
        own = known.similarity >= similarity_at(scale, scale.threshold)
        if not known.searched or not np.array_equal(removal.by(own, np.arange(count))[1], own_gone):
            stopped = np.flatnonzero(own_gone)
            known = KnownPairs(
                left=stopped, right=stopped, similarity=verdicts.similarity[stopped], loosest=scale.threshold
            )
            removal, whole = _Removal(count, known, True, verdicts.before), whole and everything
            documents = count - verdicts.before
            note, own = f"{_STRICTER_ONLY} {_COUNTED[everything]}", np.ones(len(stopped), np.bool_)
    else:
        # A classifier goes by g, of which the probability is rounded: at its cut the run itself says what passes.
        own = known.matching
    steps = sweep_steps(scale, known.loosest)
    bars = np.array([similarity_at(scale, step) for step in steps], np.float64)
    place = steps.index(scale.threshold)
    dropped, pairs = [], []
    gone = np.zeros((len(steps), len(watched)), np.bool_)
    for at, threshold in enumerate(steps):
        reach = known.similarity >= bars[at] if known.matches_at is None else known.matches_at(threshold)
        chosen = own if at == place else reach
        number, gone[at] = removal.by(chosen, watched)
        dropped.append(number)
        pairs.append(removal.pairs(chosen))
    gone[place] = own_gone[watched]
    sweep = Sweep(
        thresholds=[float(step) for step in steps],
        kept=[documents - number for number in dropped],
        dropped=dropped,
        pairs=pairs,
        own=place,
        what=threshold_name(scale),
        distance=scale.distance,
        similarities=bars.tolist(),
        exact=whole,
        note=note,
    )
    return SweepResult(sweep, gone)


def threshold_name(scale: Criterion) -> str:
    """Return what thresholds are of."""
    return {"learned": "probability", "hamming": BITS}.get(scale.measure, scale.measure)


def similarity_name(scale: Criterion, recipe: Recipe) -> str:
    """Return what the similarities of a report are of."""
    if scale.measure in ("learned", "hamming"):
        return threshold_name(scale)
    shown = {"euclidean": "1 / (1 + distance)"}.get(scale.measure, scale.measure)
    if scale.measure in ("edit", "semantic"):
        return f"{shown} similarity"
    step = recipe.parsed_second_step
    features = step.features if step is not None else recipe.signature or recipe.features
    weights = f" weighted by {recipe.weights}" if recipe.weights and step is None and not recipe.signature else ""
    return f"{shown} of {features}{weights}"


#: Of what two documents must share a part, by measure.
_OF = {
    "jaccard": "the {} that either of them has",
    "overlap": "the {} of the longer one",
    "containment": "the {} of the shorter one",
}


def rule_in_words(recipe: Recipe) -> str:
    """Return what a match is in plain words; empty for recipes of which they do not say it."""
    wanted, of, step = recipe.parsed_features, _OF.get(recipe.measure), recipe.parsed_second_step
    unit = {"words": "word", "qgrams": "character"}.get(wanted.kind)
    if recipe.measure == "hamming" and step is None:
        return f"Two documents match if at most {recipe.threshold:g} of the 64 bits of their SimHashes differ."
    if unit is None or of is None or wanted.multiset or recipe.signature or recipe.is_weighted:
        return ""
    runs = f"{unit}s" if wanted.n == 1 else f"runs of {wanted.n} {unit}s"
    share = f"they share at least {100 * recipe.threshold:g}% of {of.format(runs)}"
    if step is None:
        return f"Two documents match if {share}."
    return f"Two documents match if {share}, and a classifier says so." if step.measure == "learned" else ""


def format_threshold(threshold: float, what: str) -> str:
    """Return a threshold for people, with its unit where it is of whole numbers: 0.85, 3 bits."""
    return format_count(round(threshold), "bit") if what == BITS else f"{threshold:g}"


def format_similarity(what: str, similarity: float, *, distance: bool) -> str:
    """Return a similarity as people compare it with the threshold of that measure: a distance as a distance."""
    if what == BITS:
        return format_count(round(64 * (1 - similarity)), "bit")
    if distance:
        return f"distance {1 / similarity - 1:.4g}" if similarity else "no distance"
    return f"{similarity:.4f}"


def shared_in_words(o: int, a: int, b: int) -> str:
    """Return how many features two sets of sizes a and b share; that is o of them."""
    inside = "one is wholly contained in the other: " if o == min(a, b) < max(a, b) else ""
    return f"{inside}{o:,} features shared, of {a:,} and {b:,}"


def counts_in_words(counts: tuple[int, int, int] | None, recipe: Recipe) -> str:
    """Return the whole numbers behind a similarity; empty where they say nothing to people."""
    if counts is None or recipe.second_step or recipe.is_weighted:
        return ""
    o, a, b = counts
    if recipe.measure == "hamming":
        return f"{64 - o} of 64 bits differ"
    if recipe.measure in SET_MEASURES and not recipe.signature and recipe.parsed_features.kind != "checksum":
        return shared_in_words(o, a, b)
    return ""
