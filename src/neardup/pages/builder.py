"""Makes the report of a run or of a flow from its verdicts, the pairs that are known, and the documents."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.errors import option
from neardup.keep.keepers import Bools, Families, Floats, Graph, Integers, graph, standing
from neardup.pages.diff import Shown
from neardup.pages.html import clipped
from neardup.pages.report import (
    BATCH,
    COPY,
    EQUAL_FEATURES,
    FLOW,
    KEPT,
    NEAR,
    Arrivals,
    Example,
    Extent,
    Family,
    Member,
    Report,
    Row,
    Sweep,
    binned,
)
from neardup.recipe import Recipe
from neardup.recipe.measures import SET_MEASURES
from neardup.search.margin import Scale
from neardup.version import __version__

#: In the place of a keeper: the document is kept, or its keeper is not among those that are reported.
ORIGINAL, ELSEWHERE = -1, -2
#: In the place of a time that is not known.
NO_TIME = -(1 << 62)
#: Reasons by their numbers in ``Verdicts.why``.
_REASONS = (KEPT, COPY, EQUAL_FEATURES, NEAR)


@dataclass(frozen=True, eq=False, kw_only=True)
class Verdicts:
    """What became of documents, in the order of the input or of arrival; a number in this order is a document's place.

    Attributes
    ----------
    ids : pyarrow.Array
        What they are called.
    of : int64[n]
        The place of each one's keeper; ORIGINAL for a kept one, or ELSEWHERE. In a flow always an earlier place.
    similarity : float64[n]
        To the keeper; of kept ones any number.
    exact, equal : bool[n]
        Whether the text is the keeper's byte for byte, and whether its features are, as those of equal texts are.
    times : int64[n] or None
        Of a flow: microseconds since 1970, or NO_TIME.
    before : int
        So many of the first documents came before those that are reported, and are here because others repeat them.
    sources : pyarrow.Array or None
        Where each came from, as strings; None where that is not known.
    elsewhere : mapping of int to str
        The ids of keepers that are ELSEWHERE.
    present : bool[n] or None
        Which documents count; None for all.
    connected : Families or None
        The families; None where documents are connected by what they repeat, and by nothing else.
    why : int64[n] or None
        Why each was removed: 0 for a kept one, 1 for a copy of any document before it, 2 for equal features, 3 for
        near; None where the keeper says that.
    """

    ids: pa.Array
    of: Integers
    similarity: Floats
    exact: Bools
    equal: Bools
    times: Integers | None = None
    before: int = 0
    sources: pa.Array | None = None
    elsewhere: Mapping[int, str] = field(default_factory=dict)
    present: Bools | None = None
    connected: Families | None = None
    why: Integers | None = None

    def __len__(self) -> int:
        return len(self.of)

    def id(self, place: int) -> str:
        """Return what a document is called."""
        return str(self.ids[place].as_py())

    def keeper(self, place: int) -> str:
        """Return the id of a document's keeper; empty for a kept one."""
        other = int(self.of[place])
        if other == ORIGINAL:
            return ""
        return self.elsewhere.get(place, "") if other == ELSEWHERE else self.id(other)

    def to_keeper(self, place: int) -> str:
        """Return how a document is like its keeper."""
        if self.of[place] == ORIGINAL:
            return KEPT
        return COPY if self.exact[place] else EQUAL_FEATURES if self.equal[place] else NEAR

    def reason(self, place: int) -> str:
        """Return why a document was removed, or that it is kept."""
        return self.to_keeper(place) if self.why is None else _REASONS[int(self.why[place])]

    @cached_property
    def duplicates(self) -> Integers:
        """The places of the reported documents that are not kept."""
        found = np.flatnonzero(self.of != ORIGINAL)
        return found[found >= self.before]

    @cached_property
    def root(self) -> Integers:
        """Of each document the first one that it goes back to, itself for a kept one."""
        root = np.where(self.of >= 0, self.of, np.arange(len(self)))
        while not np.array_equal(further := root[root], root):
            root = further
        return root

    @cached_property
    def family(self) -> Integers:
        """The number of each document's family, from 1; 0 for none."""
        if self.connected is not None:
            return self.connected.family
        roots, at, sizes = np.unique(self.root, return_inverse=True, return_counts=True)
        number = np.zeros(len(roots), np.int64)
        number[sizes > 1] = np.arange(1, int((sizes > 1).sum()) + 1)
        return number[at]

    @cached_property
    def sizes(self) -> Integers:
        """How many documents each family has, by its number less 1."""
        return np.bincount(self.family)[1:]

    def members(self, number: int) -> Integers:
        """Return the places of a family's documents."""
        order, ends = self._by_family
        return order[ends[number - 1] : ends[number]]

    @cached_property
    def _by_family(self) -> tuple[Integers, Integers]:
        return np.argsort(self.family, kind="stable"), np.cumsum(np.bincount(self.family))


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class KnownPairs:
    """The pairs that are known, from a relaxed threshold on.

    Attributes
    ----------
    left, right : int64[k]
        Places of documents, in a flow the earlier one on the left; for equals their representative's.
    similarity : float64[k]
        Of each pair.
    loosest : Fraction
        The threshold from which on all pairs are there.
    known : bool
        Whether they were looked for at all.
    note : str
        What is not known, and why.
    matching : bool[k] or None
        Which of them match by the run itself; None for a flow, whose verdicts say that.
    reaching : callable or None
        Which of them, exactly, reach a threshold; None to go by the similarities.
    representative, order : int64[n] or None
        Of a run: of each document the first one with the same features, -1 for none; and the documents in keep order.
    numbers : callable or None
        What is behind the similarity of a pair, in words, by its place here.
    """

    left: Integers
    right: Integers
    similarity: Floats
    loosest: Fraction
    known: bool = True
    note: str = ""
    matching: Bools | None = None
    reaching: Callable[[Fraction], Bools] | None = None
    representative: Integers | None = None
    order: Integers | None = None
    numbers: Callable[[int], str] | None = None

    @classmethod
    def nothing(cls, own: Fraction, note: str) -> Self:
        """Return what is known where no pairs were looked for; ``own`` is the threshold."""
        none = np.zeros(0, np.int64)
        return cls(left=none, right=none, similarity=np.zeros(0), loosest=own, known=False, note=note)


#: Texts of documents by their places; those that are not there any more are missing.
Texts = Callable[[list[int]], Mapping[int, Shown]]
#: How the texts of documents begin, in a line, for the search, by their places; those that are not there are missing.
Words = Callable[[Integers], Mapping[int, str]]
#: Why a removed document matches its keeper, in a line, by its place; empty where that is not known.
Evidence = Callable[[int], str]
#: Which of some documents with the same keeper match each other, as pairs of places; None where that is not known.
Matching = Callable[[Mapping[int, Shown]], set[tuple[int, int]] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where a report has from what it says of single documents; ``texts`` is asked first, for all that is shown.

    Attributes
    ----------
    texts, words, evidence, matching : callable
        See `Texts`, `Words`, `Evidence` and `Matching`.
    """

    texts: Texts
    words: Words
    evidence: Evidence
    matching: Matching


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What a report says besides its verdicts.

    Attributes
    ----------
    title, command : str
        The heading, and what was typed.
    inputs : sequence of str
        Where documents came from.
    recipe : Recipe
        What a match is.
    scale : Scale
        What decides last, and from where on.
    movable : bool
        Whether another threshold would change anything, and what is known says so.
    window : str
        How far back a flow looks; empty for a run.
    everything : bool
        Whether items are compared with duplicates as well, and not with originals alone.
    left : str
        What is said in the place of a text that is not there any more.
    quarantined : sequence of (str, int)
        What was rejected, by reason.
    stages : sequence of dict
        As ``Clock.stages`` has them.
    facts, versions : mapping of str to str
        More to say.
    notes : sequence of str
        What is sampled or cut besides what the report itself cuts.
    """

    title: str
    command: str
    inputs: Sequence[str]
    recipe: Recipe
    scale: Scale
    movable: bool
    window: str = ""
    everything: bool = False
    left: str = ""
    quarantined: Sequence[tuple[str, int]] = ()
    stages: Sequence[Mapping[str, Any]] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()


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


def steps_of(scale: Scale, loosest: Fraction) -> list[Fraction]:
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


def similarity_at(scale: Scale, threshold: Fraction) -> float:
    """Return how similar a pair exactly at a threshold is."""
    if scale.measure == "hamming":
        return float(1 - threshold / 64)
    return 1 / (1 + float(threshold)) if scale.distance else float(threshold)


class Swept(NamedTuple):
    """A sweep, and what it says of documents and pairs.

    Attributes
    ----------
    sweep : Sweep
        The counts.
    gone : bool[t, w]
        Which of the watched documents would be removed at each threshold.
    bars : float64[t]
        The similarity that a pair has to reach at each threshold.
    matches : bool[t, p]
        Which of the watched pairs would match at each threshold.
    """

    sweep: Sweep
    gone: Bools
    bars: Floats
    matches: Bools


class _Removal:
    """Says who would be removed if only some of the pairs matched."""

    def __init__(self, count: int, pairs: KnownPairs, everything: bool, before: int = 0) -> None:
        self._pairs, self._everything, self._before = pairs, everything, before
        own = np.arange(count)
        self.node = own if pairs.representative is None else pairs.representative
        able = self.node >= 0
        #: How many documents have the features of each representative.
        self.copies = np.bincount(self.node[able], minlength=count).astype(np.int64)
        if not everything:
            numbers = np.arange(len(pairs.left), dtype=np.float64)
            self._ranked = standing(self.node, own if pairs.order is None else pairs.order)
            self._graph = graph(count, pairs.left, pairs.right, numbers)

    def by(self, chosen: Bools, watched: Integers) -> tuple[int, Bools]:
        """Return how many would be, and which of the watched ones; ``chosen`` says which pairs match."""
        if self._everything:
            gone = np.zeros(len(self.node), np.bool_)
            gone[self._pairs.right[chosen]] = True
            return int(gone[self._before :].sum()), gone[watched]
        known = self._graph
        some = chosen[known.similarity.astype(np.int64)]
        heads = np.concatenate([[0], np.cumsum(some)]).astype(np.int64)[known.heads]
        stays = self._ranked.staying(Graph(heads, known.neighbours[some], known.similarity[some]))
        node = self.node[watched]
        gone = (node >= 0) & ~(stays[node] & (self._ranked.top[node] == watched))
        return int(self.copies.sum() - stays.sum()), gone

    def pairs(self, chosen: Bools) -> int:
        """Return how many pairs of documents match, equal ones among them."""
        equal = int((self.copies * (self.copies - 1) // 2).sum())
        left, right = self._pairs.left[chosen], self._pairs.right[chosen]
        return equal + int((self.copies[left] * self.copies[right])[right >= self._before].sum())


def swept(
    verdicts: Verdicts,
    scale: Scale,
    known: KnownPairs,
    *,
    watched: Integers,
    edges: Integers,
    everything: bool = False,
    whole: bool = True,
) -> Swept:
    """Return what other thresholds would have done, each as a run at that threshold.

    Where no pairs but those of the verdicts are known, or where they do not say what the verdicts say (as of items that
    came too late), stricter thresholds are counted by the recorded similarities.

    Parameters
    ----------
    verdicts : Verdicts
        What became of documents.
    scale : Scale
        What decides.
    known : KnownPairs
        The pairs that are known.
    watched : int64[w]
        Documents whose own fate is of interest.
    edges : int64[p]
        Pairs of which it is, too, by their places among the known ones.
    everything : bool
        Whether duplicates remove others as well.
    whole : bool
        Whether pairs are known at all thresholds; not with bands that are made for one.
    """
    count, own_gone = len(verdicts), verdicts.of != ORIGINAL
    documents = count if verdicts.present is None else int(verdicts.present.sum())
    removal, note = _Removal(count, known, everything), known.note
    if known.matching is None:
        own = known.similarity >= similarity_at(scale, scale.threshold)
        if not known.known or not np.array_equal(removal.by(own, np.arange(count))[1], own_gone):
            stopped = np.flatnonzero(own_gone)
            known = KnownPairs(
                left=stopped, right=stopped, similarity=verdicts.similarity[stopped], loosest=scale.threshold
            )
            removal, whole = _Removal(count, known, True, verdicts.before), whole and everything
            documents = count - verdicts.before
            note, own, edges = f"{_STRICTER_ONLY} {_COUNTED[everything]}", np.ones(len(stopped), np.bool_), edges[:0]
    else:
        # A decision goes by g, of which the probability is rounded: at its cut the run itself says what passes.
        own = known.matching
    steps = steps_of(scale, known.loosest)
    bars = np.array([similarity_at(scale, step) for step in steps], np.float64)
    place = steps.index(scale.threshold)
    dropped, pairs = [], []
    gone, matches = np.zeros((len(steps), len(watched)), np.bool_), np.zeros((len(steps), len(edges)), np.bool_)
    for at, threshold in enumerate(steps):
        reach = known.similarity >= bars[at] if known.reaching is None else known.reaching(threshold)
        chosen = own if at == place else reach
        number, gone[at] = removal.by(chosen, watched)
        dropped.append(number)
        pairs.append(removal.pairs(chosen))
        matches[at] = chosen[edges]
    gone[place] = own_gone[watched]
    sweep = Sweep(
        thresholds=[float(step) for step in steps],
        kept=[documents - number for number in dropped],
        dropped=dropped,
        pairs=pairs,
        own=place,
        what=name_of(scale),
        distance=scale.distance,
        similarities=bars.tolist(),
        exact=whole,
        note=note,
    )
    return Swept(sweep, gone, bars, matches)


def name_of(scale: Scale) -> str:
    """Return what thresholds are of."""
    return "probability" if scale.measure == "learned" else scale.measure


def similarity_of(scale: Scale, recipe: Recipe) -> str:
    """Return what the similarities of a report are of."""
    if scale.measure == "learned":
        return "probability"
    shown = {"euclidean": "1 / (1 + distance)", "hamming": "1 - distance / 64"}.get(scale.measure, scale.measure)
    if scale.measure in ("edit", "semantic"):
        return f"{shown} similarity"
    step = recipe.second_step
    features = step.features if step is not None else recipe.signature or recipe.features
    weights = f" weighted by {recipe.weights}" if recipe.weights and step is None and not recipe.signature else ""
    return f"{shown} of {features}{weights}"


def value_of(what: str, similarity: float, *, distance: bool) -> str:
    """Return a similarity as people compare it with the threshold of that measure: a distance as a distance."""
    if what == "hamming":
        return f"{round(64 * (1 - similarity))} bits"
    if distance:
        return f"distance {1 / similarity - 1:.4g}" if similarity else "no distance"
    return f"{similarity:.4f}"


def shared_in_words(o: int, a: int, b: int) -> str:
    """Return how many features two sets of sizes a and b share; that is o of them."""
    inside = "one is wholly contained in the other: " if o == min(a, b) < max(a, b) else ""
    return f"{inside}{o:,} features shared, of {a:,} and {b:,}"


def counts_in_words(counts: tuple[int, int, int] | None, recipe: Recipe) -> str:
    """Return the whole numbers behind a similarity; empty where they say nothing to people.

    Parameters
    ----------
    counts : (int, int, int) or None
        o, a and b, as a verdict has them.
    recipe : Recipe
        By which it was made.
    """
    if counts is None or recipe.then or recipe.is_weighted:
        return ""
    o, a, b = counts
    if recipe.measure == "hamming":
        return f"{64 - o} of 64 bits differ"
    if recipe.measure in SET_MEASURES and not recipe.signature and recipe.parsed_features.kind != "checksum":
        return shared_in_words(o, a, b)
    return ""


#: Members that are listed of a family: removed ones, and kept ones.
DROPPED_LISTED, KEPT_LISTED = 8, 4
#: Pairs elsewhere are drawn from bands so wide, so many from each.
_BANDS, _OF_EACH = 20, 2
#: Among so many of the nearest pairs it is looked for some that are no examples of one family.
_LOOKED_AT = 2000
#: Characters of a title, or of how a text begins, in a list.
_NAME = 90


def named(document: Shown) -> str:
    """Return a document's title, or how its text begins, for a line of a list."""
    return clipped(document.title or document.text, _NAME)


class _Listed(NamedTuple):
    """A family that is shown: its number, and the places of the members that are listed, kept ones first."""

    number: int
    stay: list[int]
    go: list[int]


def _families(verdicts: Verdicts, extent: Extent) -> list[_Listed]:
    """Return the largest families, and a random spread of the others, the largest first."""
    reported = np.bincount(verdicts.family[verdicts.before :], minlength=len(verdicts.sizes) + 1)[1:]
    alive = np.flatnonzero(reported)
    ranked = alive[np.argsort(-reported[alive], kind="stable")]
    rest = ranked[extent.families :]
    drawn = np.random.default_rng(extent.seed).choice(rest, min(len(rest), extent.families // 2), replace=False)
    shown = [*ranked[: extent.families].tolist(), *sorted(drawn.tolist(), key=lambda at: (-reported[at], at))]
    return [_listed(verdicts, at + 1) for at in shown]


def _listed(verdicts: Verdicts, number: int) -> _Listed:
    members = verdicts.members(number)
    stays = verdicts.of[members] == ORIGINAL
    if not stays.any():
        # What all of them go back to was repeated from elsewhere.
        stays[0] = True
    staying, going = members[stays].tolist(), members[~stays]
    # The least similar ones are those that one doubts.
    doubtful = going[np.argsort(verdicts.similarity[going], kind="stable")][:DROPPED_LISTED]
    if verdicts.times is not None:
        doubtful = np.sort(doubtful)
    keepers = {place: at for at, place in enumerate(dict.fromkeys(verdicts.of[doubtful].tolist()))}
    ranked = sorted(staying, key=lambda place: keepers.get(place, len(keepers)))
    return _Listed(number, ranked[:KEPT_LISTED], doubtful.tolist())


class _Picked(NamedTuple):
    """A pair that is shown: places, similarity, whether it matches, and its place among the known ones or -1."""

    left: int
    right: int
    similarity: float
    matches: bool
    edge: int


class _Pairs(NamedTuple):
    """Pairs to choose from, the nearest to the threshold first."""

    left: Integers
    right: Integers
    similarity: Floats
    matches: bool
    edge: Integers

    def picked(self, at: int) -> _Picked:
        edge = int(self.edge[at])
        return _Picked(int(self.left[at]), int(self.right[at]), float(self.similarity[at]), self.matches, edge)


class _Examples(NamedTuple):
    """The pairs that a report shows."""

    above: list[_Picked]
    below: list[_Picked]
    elsewhere: list[_Picked]

    @property
    def every(self) -> list[_Picked]:
        return [*self.above, *self.below, *self.elsewhere]


def _candidates(verdicts: Verdicts, known: KnownPairs, everything: bool) -> tuple[_Pairs, _Pairs]:
    """Return the pairs that match, and those that do not."""
    if known.matching is not None:
        return _of_known(known, known.matching, matches=True), _of_known(known, ~known.matching, matches=False)
    near = verdicts.duplicates[~verdicts.exact[verdicts.duplicates] & (verdicts.of[verdicts.duplicates] >= 0)]
    near = near[np.argsort(verdicts.similarity[near], kind="stable")]
    matching = _Pairs(verdicts.of[near], near, verdicts.similarity[near], True, np.full(len(near), -1))
    # Originals and what they nearly match of the items that they were compared with.
    stays = verdicts.of == ORIGINAL
    return matching, _of_known(known, stays[known.right] & (everything | stays[known.left]), matches=False)


def _of_known(known: KnownPairs, chosen: Bools, *, matches: bool) -> _Pairs:
    at = np.flatnonzero(chosen)
    at = at[np.argsort(known.similarity[at] if matches else -known.similarity[at], kind="stable")]
    return _Pairs(known.left[at], known.right[at], known.similarity[at], matches, at)


def _examples(verdicts: Verdicts, known: KnownPairs, extent: Extent, everything: bool) -> _Examples:
    """Choose the pairs to read: the nearest on each side, not two of one family while there are others."""
    # A document without a family is a group of its own.
    group = np.where(verdicts.family > 0, -verdicts.family, np.arange(len(verdicts)))
    sides = _candidates(verdicts, known, everything)
    # Sides are apart from themselves only: the nearest pair of each is shown, whatever the other one shows.
    taken: tuple[set[int], set[int]] = set(), set()
    near = [
        _apart(pairs, np.arange(len(pairs.left)), extent.cases, group, seen)
        for pairs, seen in zip(sides, taken, strict=True)
    ]
    rng, seen = np.random.default_rng(extent.seed), set.union(*taken)
    elsewhere: list[_Picked] = []
    bands = [np.ceil(pairs.similarity * _BANDS) for pairs in sides]
    rest = [np.setdiff1d(np.arange(len(pairs.left)), chosen) for pairs, chosen in zip(sides, near, strict=True)]
    for band in np.unique(np.concatenate([one[at] for one, at in zip(bands, rest, strict=True)])).tolist():
        room = _OF_EACH
        for pairs, one, at in zip(sides, bands, rest, strict=True):
            inside = rng.permutation(at[one[at] == band])
            chosen = _apart(pairs, inside, room, group, seen)
            elsewhere += map(pairs.picked, chosen)
            room -= len(chosen)
    above, below = ([*map(pairs.picked, chosen)] for pairs, chosen in zip(sides, near, strict=True))
    return _Examples(above, below, sorted(elsewhere, key=lambda one: (one.similarity, one.right, one.left)))


def _apart(pairs: _Pairs, places: Integers, count: int, group: Integers, taken: set[int]) -> list[int]:
    """Return the first of the pairs that have no family in common with others; where there are too few, any."""
    chosen: dict[int, int] = {}
    for strict in (True, False):
        for rank, at in enumerate(places[:_LOOKED_AT].tolist()):
            if len(chosen) >= count:
                break
            marks = {int(group[pairs.left[at]]), int(group[pairs.right[at]])}
            if at not in chosen and not (strict and marks & taken):
                chosen[at] = rank
                taken |= marks
    return sorted(chosen, key=chosen.__getitem__)


def listed_rows(verdicts: Verdicts, extent: Extent) -> Integers:
    """Return the removed documents that are listed: the latest ones of a flow, else a random part, in order."""
    places = verdicts.duplicates
    if verdicts.times is not None:
        return places[len(places) - min(len(places), extent.rows) :][::-1]
    if len(places) <= extent.rows:
        return places
    return np.sort(np.random.default_rng(extent.seed).choice(places, extent.rows, replace=False))


_UNKNOWN = (
    "Nothing is known of pairs below the threshold: a flow looks for a match, and does not find out what came nearest "
    "to an item without one. neardup replay of the same items looks for them."
)


def build_report(
    verdicts: Verdicts, about: About, sources: Sources, extent: Extent, known: KnownPairs | None = None
) -> Report:
    """Return the report of a run or of a flow.

    Parameters
    ----------
    verdicts : Verdicts
        What became of documents.
    about : About
        What else there is to say.
    sources : Sources
        Texts, and why two match.
    extent : Extent
        How much is listed.
    known : KnownPairs, optional
        The pairs that come near the threshold, where they are known.
    """
    scale, recipe = about.scale, about.recipe
    known = known or KnownPairs.nothing(scale.threshold, _UNKNOWN)
    chosen, examples = _families(verdicts, extent), _examples(verdicts, known, extent, about.everything)
    members = np.array([place for one in chosen for place in (*one.stay, *one.go)], np.int64)
    pairs, moved = [one for one in examples.every if one.edge >= 0], None
    if about.movable:
        edges = np.array([one.edge for one in pairs], np.int64)
        bands = recipe.search == "lsh" and not scale.second
        moved = swept(
            verdicts,
            scale,
            known,
            watched=members,
            edges=edges,
            everything=about.everything,
            whole=not bands,
        )
    places = {*members.tolist(), *(place for one in examples.every for place in one[:2])}
    places |= {int(verdicts.of[place]) for place in list(places) if verdicts.of[place] >= 0}
    view = _View(verdicts, scale, known, sources, sources.texts(sorted(places)), chosen)
    if moved is not None:
        view.watch(moved, members, [one.edge for one in pairs])
    rows, removed = listed_rows(verdicts, extent), verdicts.duplicates
    begins, alive = sources.words(rows), np.unique(verdicts.family[removed])
    is_flow = verdicts.times is not None
    reported = len(verdicts) - verdicts.before if verdicts.present is None else int(verdicts.present.sum())
    similar = known.similarity[known.similarity < 1] if is_flow else known.similarity
    against = "everything in it" if about.everything else "the originals in it"
    window = {"window": f"{about.window}; items are compared with {against}"} if about.window else {}
    keep = "" if is_flow else f", keep {recipe.keep}"
    return Report(
        title=about.title,
        documents=reported,
        kept=reported - len(removed),
        command=about.command,
        inputs=about.inputs,
        recipe=recipe.to_toml(),
        in_words=recipe.in_words() + keep,
        fingerprint=recipe.fingerprint,
        versions={"neardup": __version__, **about.versions, "Python": platform.python_version()},
        reasons=_reasons(verdicts),
        quarantined=about.quarantined,
        similarity=binned(verdicts.similarity[removed]),
        similarity_of=similarity_of(scale, recipe),
        threshold=similarity_at(scale, scale.threshold),
        families=[view.family(listed) for listed in chosen],
        families_total=int((alive > 0).sum()),
        largest_family=int(verdicts.sizes[alive[alive > 0] - 1].max(initial=0)),
        above=[view.example(pair) for pair in examples.above],
        below=[view.example(pair) for pair in examples.below],
        elsewhere=[view.example(pair) for pair in examples.elsewhere],
        unknown=known.note,
        sweep=moved.sweep if moved else None,
        pair_similarity=binned(similar) if known.known else (),
        stages=about.stages,
        rows=[
            Row(
                verdicts.id(place),
                verdicts.keeper(place),
                float(verdicts.similarity[place]),
                int(verdicts.family[place]),
                verdicts.reason(place),
                begins.get(place, ""),
            )
            for place in rows.tolist()
        ],
        rows_total=len(removed),
        facts=window | dict(about.facts),
        notes=[*about.notes, *_notes(verdicts, about, extent, len(chosen))],
        wording=FLOW if is_flow else BATCH,
        arrivals=arrivals_of(verdicts),
        left=about.left,
    )


def _reasons(verdicts: Verdicts) -> list[tuple[str, int, str]]:
    places = verdicts.duplicates
    exact, equal = verdicts.exact[places], verdicts.equal[places] & ~verdicts.exact[places]
    why = np.where(exact, 1, np.where(equal, 2, 3)) if verdicts.why is None else verdicts.why[places]
    keeper = "a keeper" if verdicts.times is None else "an item that the window held"
    before = "a document before it" if verdicts.times is None else "the item it repeats"
    meanings = (
        f"the text equals that of {before}, byte for byte",
        f"other bytes, but the same features as {before}",
        f"features of its own, which match those of {keeper}",
    )
    return [
        (name, int((why == at).sum()), meaning)
        for at, (name, meaning) in enumerate(zip(_REASONS[1:], meanings, strict=True), 1)
    ]


def _notes(verdicts: Verdicts, about: About, extent: Extent, shown: int) -> list[str]:
    """Return what a reader of the page must know: what is sampled or cut."""
    found, words = [], FLOW if verdicts.times is not None else BATCH
    families = int((np.unique(verdicts.family[verdicts.duplicates]) > 0).sum())
    if shown < families:
        found.append(
            f"{shown:,} of {families:,} families are shown: the {extent.families:,} largest and a random "
            f"{shown - extent.families:,} of the others ({option('--report-families', 'families')})."
        )
    if verdicts.sizes.max(initial=0) > DROPPED_LISTED + 1:
        found.append(
            f"Up to {KEPT_LISTED} {words.kept} and {DROPPED_LISTED} {words.gone} {words.documents} of a family are "
            f"listed, those least similar to their {words.keeper}."
            if words is BATCH
            else f"At most {DROPPED_LISTED} duplicates of a family are listed, those least like what they repeat."
        )
    removed = len(verdicts.duplicates)
    if removed > extent.rows:
        some = f"{extent.rows:,} of {removed:,} ({option('--report-rows', 'rows')})"
        every = option("--duplicates FILE writes all of them", "result.dropped has all of them")
        found.append(
            f"The list of removed documents holds a random {some}; {every}."
            if words is BATCH
            else f"The list of duplicates holds the latest {some}."
        )
    if words is FLOW and not about.everything:
        found.append(
            "A flow does not compare duplicates with each other. Those that are listed with one original were compared "
            "for this page."
        )
    return found


class _View:
    """Shows families and pairs, with their texts where those are still there."""

    def __init__(
        self,
        verdicts: Verdicts,
        scale: Scale,
        known: KnownPairs,
        sources: Sources,
        texts: Mapping[int, Shown],
        chosen: Sequence[_Listed],
    ) -> None:
        self._verdicts, self._scale, self._known, self._sources, self._texts = verdicts, scale, known, sources, texts
        # Of all families at once, for each question may cost an index.
        asked = [place for one in chosen for place in one.go if len(one.go) > 1]
        self._matching = sources.matching({place: texts[place] for place in asked if place in texts})
        self._moved: Swept | None = None
        self._goes: dict[int, str] = {}
        self._matches: dict[int, str] = {}

    def watch(self, moved: Swept, members: Integers, edges: Sequence[int]) -> None:
        """Say from now on what other thresholds would do to these documents and pairs."""
        self._moved = moved
        self._goes = dict(zip(members.tolist(), map(_states, moved.gone.T), strict=True))
        self._matches = dict(zip(edges, map(_states, moved.matches.T), strict=False))

    def family(self, listed: _Listed) -> Family:
        """Return a family with its listed members."""
        verdicts, apart = self._verdicts, self._apart(listed.go)
        members = [self._member(place, (apart or {}).get(place, [])) for place in (*listed.stay, *listed.go)]
        places, connected, at = verdicts.members(listed.number), verdicts.connected, listed.number - 1
        repeated, count = places[verdicts.of[places] != ORIGINAL], len(places)
        equal = verdicts.equal[repeated] if verdicts.why is None else verdicts.why[repeated] < _REASONS.index(NEAR)
        family = Family(
            number=listed.number,
            documents=count,
            kept=count - len(repeated),
            members=members,
            # A text that has left is called by one that repeats it.
            lead=next(filter(None, (named(member.document) for member in members)), ""),
            equal=bool(equal.all()),
            smallest=float(verdicts.similarity[repeated].min() if connected is None else connected.smallest[at]),
            apart=None if apart is None else sum(map(len, apart.values())) // 2,
        )
        if connected is None or apart is None:
            return family
        pairs = int(connected.pairs[at])
        return replace(family, pairs=pairs, mean=float(connected.mean[at]), complete=pairs == count * (count - 1) // 2)

    def _shown(self, place: int) -> Shown:
        shown = self._texts.get(place) or Shown(self._verdicts.id(place), "", "", gone=True)
        times = self._verdicts.times
        return shown if times is None else shown._replace(time=time_text(int(times[place])))

    def _member(self, place: int, apart: Sequence[int]) -> Member:
        verdicts, goes = self._verdicts, self._goes.get(place, "")
        other = int(verdicts.of[place])
        if other == ORIGINAL:
            return Member(document=self._shown(place), why=KEPT, goes=goes)
        return Member(
            document=self._shown(place),
            why=verdicts.reason(place),
            keeper=Shown(verdicts.keeper(place), "", "", gone=True) if other == ELSEWHERE else self._shown(other),
            similarity=float(verdicts.similarity[place]),
            to_keeper=verdicts.to_keeper(place),
            evidence=self._sources.evidence(place),
            apart=[verdicts.id(one) for one in apart],
            goes=goes,
        )

    def _apart(self, members: Sequence[int]) -> dict[int, list[int]] | None:
        """Return for each removed document those with the same keeper that do not match it; None if unknown."""
        if self._matching is None:
            return None
        of, known = self._verdicts.of, [place for place in members if place in self._texts]
        apart: dict[int, list[int]] = {place: [] for place in members}
        for one, other in combinations(known, 2):
            if of[one] == of[other] and (min(one, other), max(one, other)) not in self._matching:
                apart[one].append(other)
                apart[other].append(one)
        return apart

    def example(self, pair: _Picked) -> Example:
        """Return two documents to read side by side."""
        scale, known, moved = self._scale, self._known, self._moved
        value = value_of(scale.measure, pair.similarity, distance=scale.distance)
        numbers = known.numbers(pair.edge) if known.numbers is not None and pair.edge >= 0 else ""
        head = f"{name_of(scale)} {value}: {'a match' if pair.matches else 'no match'}"
        states = self._matches.get(pair.edge, "")
        if moved is not None and not states:
            reached = moved.bars <= pair.similarity
            reached[moved.sweep.own] = pair.matches
            states = _states(reached)
        said = "; ".join(filter(None, (head, numbers)))
        return Example(self._shown(pair.left), self._shown(pair.right), pair.similarity, pair.matches, said, states)


def _states(column: Bools) -> str:
    return "".join("01"[state] for state in column.astype(int).tolist())


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = 1_000_000
_MINUTE, _HOUR = 60 * _SECOND, 3600 * _SECOND
_DAY = 24 * _HOUR
#: Steps of time; the first one that gives no more bars than this is taken.
_STEPS = {
    "minute": _MINUTE,
    "ten minutes": 10 * _MINUTE,
    "hour": _HOUR,
    "six hours": 6 * _HOUR,
    "day": _DAY,
    "week": 7 * _DAY,
    "30 days": 30 * _DAY,
    "year": 365 * _DAY,
}
_BARS = 300
#: Ends of the stretches of time by which a duplicate comes after what it repeats.
_LAGS = {
    "at once": _SECOND,
    "1 s to 1 min": _MINUTE,
    "1 to 10 min": 10 * _MINUTE,
    "10 min to 1 h": _HOUR,
    "1 to 3 h": 3 * _HOUR,
    "3 to 6 h": 6 * _HOUR,
    "6 to 12 h": 12 * _HOUR,
    "12 to 24 h": _DAY,
    "1 to 2 days": 2 * _DAY,
    "2 to 7 days": 7 * _DAY,
    "7 to 30 days": 30 * _DAY,
}
_LATER = "more than 30 days"


def time_text(moment: int) -> str:
    """Return a time in microseconds as people read it, to the second; empty where no calendar has it."""
    try:
        return (_EPOCH + timedelta(microseconds=moment)).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError):
        return ""


def arrivals_of(verdicts: Verdicts) -> Arrivals | None:
    """Return when and where the items of a flow came from; None if nothing arrived, or for a run."""
    if verdicts.times is None or len(verdicts) == verdicts.before:
        return None
    times, stopped = verdicts.times[verdicts.before :], verdicts.of[verdicts.before :] != ORIGINAL
    first, last = int(times.min()), int(times.max())
    name, step = next(
        ((name, step) for name, step in _STEPS.items() if last // step - first // step < _BARS), ("year", 365 * _DAY)
    )
    bins, place = np.unique(times // step, return_inverse=True)
    counts = [np.bincount(place[one], minlength=len(bins)).tolist() for one in (~stopped, stopped)]
    begins, ends = ([_moment((number + more) * step) for number in bins.tolist()] for more in (0, 1))
    return Arrivals(name, list(zip(begins, ends, *counts, strict=True)), _lags(verdicts), _sources(verdicts, stopped))


def _moment(microseconds: int) -> str:
    try:
        return (_EPOCH + timedelta(microseconds=microseconds)).isoformat(timespec="minutes").replace("+00:00", "Z")
    except OverflowError:
        return "9999-12-31T23:59Z"


def _lags(verdicts: Verdicts) -> list[tuple[str, int]]:
    times, places = verdicts.times, verdicts.duplicates[verdicts.of[verdicts.duplicates] >= 0]
    if times is None:
        return []
    places = places[times[verdicts.of[places]] != NO_TIME]
    # One may repeat an item that is of a later time than itself, if it arrived late.
    lag = np.abs(times[places] - times[verdicts.of[places]])
    counts = np.bincount(np.searchsorted(list(_LAGS.values()), lag), minlength=len(_LAGS) + 1)
    last = int(np.flatnonzero(counts).max(initial=-1))
    return list(zip([*_LAGS, _LATER], counts[: last + 1].tolist(), strict=False))


def _sources(verdicts: Verdicts, stopped: Bools) -> list[tuple[str, int, int]]:
    if verdicts.sources is None:
        return []
    encoded = verdicts.sources.slice(verdicts.before).dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    names, codes = encoded.dictionary.to_pylist(), pc.fill_null(encoded.indices, 0).to_numpy()
    every, duplicates = (np.bincount(codes[one], minlength=len(names)) for one in (slice(None), stopped))
    order = np.lexsort((np.arange(len(names)), -every)).tolist()
    return [(names[at], int(every[at]), int(duplicates[at])) for at in order] if len(names) > 1 else []
