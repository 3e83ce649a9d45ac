"""The results at other thresholds, from pairs that are known already; and similarities in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from neardup.keep.keepers import Graph, build_graph, document_pair_counts, rank_documents
from neardup.kernels import Bools, Integers
from neardup.pages.numbers import format_count
from neardup.pages.verdicts import ORIGINAL, KnownPairs, Verdicts
from neardup.recipe import Recipe
from neardup.recipe.measures import SET_MEASURES, similarity_at
from neardup.search.margin import Criterion

#: The name of the threshold for SimHashes.
BITS = "bits that differ"
#: The step between thresholds of a similarity; for a distance, except bits, as a share of the threshold.
_STEP, _SHARE = Fraction(1, 100), Fraction(1, 20)
_STRICTER_ONLY = "Only stricter thresholds are shown, because a flow records no similarity for an item without a match."
_COUNTED = {
    True: "Items are compared with everything in the window, so a stricter threshold stops exactly those whose "
    "similarity reaches it.",
    False: "Counted are the duplicates whose recorded similarity reaches the threshold. Items that a stricter one lets "
    "pass would enter the window and could stop others, so a flow with that threshold may differ a little; "
    "neardup replay tells exactly.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """The results that a run would have at other thresholds."""

    #: From loose to strict, the run's own among them: ascending for a similarity, descending for a distance.
    thresholds: Sequence[float]
    kept: Sequence[int]
    dropped: Sequence[int]
    pairs: Sequence[int]
    own_index: int
    threshold_name: str
    is_distance: bool = False
    #: The similarity of a pair exactly at each threshold, as histograms count it; the thresholds themselves unless they
    #: are distances.
    similarities: Sequence[float] = ()
    #: Whether separate runs would find the same; otherwise the pairs of this run are an estimate, as with LSH.
    is_exact: bool = True
    #: Why the sweep begins where it does, and what is unknown.
    note: str = ""


def sweep_steps(criterion: Criterion, relaxed_threshold: Fraction) -> list[Fraction]:
    """Return the thresholds of a sweep from loose to strict, including the criterion's own."""
    own = criterion.threshold
    if criterion.measure == "hamming":
        return [Fraction(bits) for bits in range(int(relaxed_threshold), -1, -1)]
    if criterion.distance:
        step = own * _SHARE
        steps = {step * place for place in range(1, int(relaxed_threshold / step) + 1)}
        return sorted(steps | {own, relaxed_threshold}, reverse=True)
    first = int(relaxed_threshold / _STEP) + 1
    steps = {_STEP * place for place in range(first, int(1 / _STEP) + 1)}
    return sorted(steps | {own} | ({relaxed_threshold} if relaxed_threshold > 0 else set()))


class SweepResult(NamedTuple):
    """A sweep, and which watched documents each threshold would drop: bool[t, w]."""

    sweep: Sweep
    dropped: Bools


class _DropCounter:
    """Counts the documents that would be dropped if only some of the pairs matched."""

    def __init__(self, count: int, pairs: KnownPairs, everything: bool, before: int = 0) -> None:
        self._pairs, self._everything, self._before = pairs, everything, before
        rows = np.arange(count)
        self.node = rows if pairs.representative is None else pairs.representative
        comparable = self.node >= 0
        self._input_count = count - pairs.reference_count
        #: The number of input documents with the features of each representative.
        self.copies = np.bincount(
            self.node[: self._input_count][comparable[: self._input_count]], minlength=count
        ).astype(np.int64)
        if not everything:
            numbers = np.arange(len(pairs.left), dtype=np.float64)
            self._ranked = rank_documents(
                self.node, rows if pairs.keep_order is None else pairs.keep_order, pairs.reference_count
            )
            self._graph = build_graph(count, pairs.left, pairs.right, numbers)

    def drops(self, chosen: Bools, watched: Integers) -> tuple[int, Bools]:
        """Return the number of dropped documents, and which watched ones are among them, if ``chosen`` pairs match."""
        if self._everything:
            dropped_mask = np.zeros(len(self.node), np.bool_)
            dropped_mask[self._pairs.right[chosen]] = True
            return int(dropped_mask[self._before :].sum()), dropped_mask[watched]
        graph = self._graph
        edges = chosen[graph.similarity.astype(np.int64)]
        heads = np.concatenate([[0], np.cumsum(edges)]).astype(np.int64)[graph.heads]
        kept = self._ranked.kept_nodes(Graph(heads, graph.neighbours[edges], graph.similarity[edges]))
        node = self.node[watched]
        dropped_mask = (
            (node >= 0) & (watched < self._input_count) & ~(kept[node] & (self._ranked.firsts[node] == watched))
        )
        of_input = (self._ranked.firsts >= 0) & (self._ranked.firsts < self._input_count)
        return int(self.copies.sum() - (kept & of_input).sum()), dropped_mask

    def pair_count(self, chosen: Bools) -> int:
        left, right = self._pairs.left[chosen], self._pairs.right[chosen]
        pairs, equal = document_pair_counts(self.node, left, right, self._pairs.reference_count)
        return int(equal.sum()) + int(pairs[right >= self._before].sum())


def sweep_thresholds(
    verdicts: Verdicts,
    criterion: Criterion,
    known: KnownPairs,
    *,
    watched: Integers,
    everything: bool = False,
    is_exact: bool = True,
) -> SweepResult:
    """Return the results at other thresholds, each as a run at that threshold would have them.

    If only the pairs of the verdicts are known, or the pairs do not lead to the verdicts (as with items that came too
    late), the recorded similarities decide, and only stricter thresholds are counted.

    ``watched`` (int64[w]) are the documents to follow. With ``everything``, duplicates drop others as well.
    ``is_exact`` is false for LSH, whose bands are made for one threshold.
    """
    count, is_dropped = len(verdicts), verdicts.keeper_rows != ORIGINAL
    documents = count if verdicts.present is None else int(verdicts.present.sum())
    counter, note = _DropCounter(count, known, everything), known.note
    if known.matching is None:
        own_matches = known.similarity >= similarity_at(criterion.measure, criterion.threshold)
        if not known.searched or not np.array_equal(counter.drops(own_matches, np.arange(count))[1], is_dropped):
            stopped = np.flatnonzero(is_dropped)
            known = KnownPairs(
                left=stopped,
                right=stopped,
                similarity=verdicts.similarity[stopped],
                relaxed_threshold=criterion.threshold,
            )
            counter, is_exact = _DropCounter(count, known, True, verdicts.earlier_count), is_exact and everything
            documents = count - verdicts.earlier_count
            note, own_matches = f"{_STRICTER_ONLY} {_COUNTED[everything]}", np.ones(len(stopped), np.bool_)
    else:
        # The probability of a classifier is rounded, so at its cut the matches of the run itself count.
        own_matches = known.matching
    steps = sweep_steps(criterion, known.relaxed_threshold)
    bars = np.array([similarity_at(criterion.measure, step) for step in steps], np.float64)
    place = steps.index(criterion.threshold)
    dropped, pairs = [], []
    dropped_mask = np.zeros((len(steps), len(watched)), np.bool_)
    for at, threshold in enumerate(steps):
        reach = known.similarity >= bars[at] if known.matches_at is None else known.matches_at(threshold)
        chosen = own_matches if at == place else reach
        number, dropped_mask[at] = counter.drops(chosen, watched)
        dropped.append(number)
        pairs.append(counter.pair_count(chosen))
    dropped_mask[place] = is_dropped[watched]
    sweep = Sweep(
        thresholds=[float(step) for step in steps],
        kept=[documents - number for number in dropped],
        dropped=dropped,
        pairs=pairs,
        own_index=place,
        threshold_name=threshold_name(criterion),
        is_distance=criterion.distance,
        similarities=bars.tolist(),
        is_exact=is_exact,
        note=note,
    )
    return SweepResult(sweep, dropped_mask)


def threshold_name(criterion: Criterion) -> str:
    """Return the name of what thresholds apply to: a measure, probability, or BITS."""
    return {"learned": "probability", "hamming": BITS}.get(criterion.measure, criterion.measure)


def similarity_name(criterion: Criterion, recipe: Recipe) -> str:
    """Return the name of the similarities of a report, such as jaccard of words:5."""
    if criterion.measure in ("learned", "hamming"):
        return threshold_name(criterion)
    shown = {"euclidean": "1 / (1 + distance)"}.get(criterion.measure, criterion.measure)
    if criterion.measure in ("edit", "semantic"):
        return f"{shown} similarity"
    step = recipe.parsed_second_step
    features = step.features if step is not None else recipe.signature or recipe.features
    weights = f" weighted by {recipe.weights}" if recipe.weights and step is None and not recipe.signature else ""
    return f"{shown} of {features}{weights}"


#: What two matching documents share a part of, by measure.
_SHARE_PHRASES = {
    "jaccard": "the {} that occur in either of them",
    "overlap": "the {} of the longer one",
    "containment": "the {} of the shorter one",
}


def rule_in_words(recipe: Recipe) -> str:
    """Return a sentence on what matches; empty for recipes that no simple sentence describes."""
    features, phrase, step = recipe.parsed_features, _SHARE_PHRASES.get(recipe.measure), recipe.parsed_second_step
    unit = {"words": "word", "qgrams": "character"}.get(features.kind)
    if recipe.measure == "hamming" and step is None:
        return f"Two documents match if at most {recipe.threshold:g} of the 64 bits of their SimHashes differ."
    if unit is None or phrase is None or features.multiset or recipe.signature or recipe.is_weighted:
        return ""
    runs = f"{unit}s" if features.n == 1 else f"runs of {features.n} {unit}s"
    share = f"they share at least {100 * recipe.threshold:g}% of {phrase.format(runs)}"
    if step is None:
        return f"Two documents match if {share}."
    return f"Two documents match if {share}, and the classifier agrees." if step.measure == "learned" else ""


def format_threshold(threshold: float, what: str) -> str:
    """Return a threshold for people, with its unit where it is of whole numbers: 0.85, 3 bits."""
    return format_count(round(threshold), "bit") if what == BITS else f"{threshold:g}"


def format_similarity(what: str, similarity: float, *, distance: bool) -> str:
    """Return a similarity in the unit of the threshold: as a number, a distance, or bits."""
    if what == BITS:
        return format_count(round(64 * (1 - similarity)), "bit")
    if distance:
        return f"distance {1 / similarity - 1:.4g}" if similarity else "no distance"
    return f"{similarity:.4f}"


def shared_in_words(o: int, a: int, b: int) -> str:
    """Return in words that two sets of sizes a and b share o features."""
    contained = "one is wholly contained in the other: " if o == min(a, b) < max(a, b) else ""
    return f"{contained}{o:,} features shared, of {a:,} and {b:,}"


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
