"""A flow as a report sees it: what arrived, one after the other, and what each duplicate repeats."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import cached_property
from math import ceil, isfinite
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup.classifier.classifier import Decision
from neardup.errors import option
from neardup.keep.keepers import Graph, Standing, graph, standing
from neardup.pages.charts import COLOURS, count_axis, finished, time_axis
from neardup.pages.diff import Shown
from neardup.pages.diff_view import side_by_side
from neardup.pages.html import Chart, Html, escaped, table
from neardup.pages.report import (
    COPY,
    EQUAL_FEATURES,
    FLOW,
    KEPT,
    NEAR,
    Case,
    Extent,
    Family,
    Member,
    Named,
    Report,
    Row,
    Sweep,
    binned,
)
from neardup.pages.sections import (
    DROPPED_LISTED,
    beginning,
    changed,
    named,
    shared_in_words,
    similarity_at,
    steps_of,
    value_at,
)
from neardup.recipe import Recipe
from neardup.recipe.measures import SET_MEASURES
from neardup.search.margin import Scale, has_threshold, scale_of
from neardup.version import __version__

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

#: In the place of what an item repeats: nothing, or what is not among those that are reported.
ORIGINAL, ELSEWHERE = -1, -2
#: In the place of a time that is not known.
NO_TIME = -(1 << 62)


class Groups(NamedTuple):
    """Items that are connected by what they repeat.

    Attributes
    ----------
    root : int64[n]
        Of each item the first one it goes back to, itself for an original.
    roots : int64[f]
        Of those the ones that something repeats, in order of arrival.
    sizes : int64[f]
        How many items go back to each, itself among them.
    """

    root: Integers
    roots: Integers
    sizes: Integers


@dataclass(frozen=True, eq=False, kw_only=True)
class Flow:
    """What arrived, in order of arrival; a number in this order is an item's place.

    Attributes
    ----------
    ids : pyarrow.Array
        What they are called, as strings.
    times : int64[n]
        Microseconds since 1970, or NO_TIME.
    of : int64[n]
        The place of what each repeats, always an earlier one; ORIGINAL, or ELSEWHERE.
    similarity : float64[n]
        To that; 0 for originals.
    exact : bool[n]
        Whether both texts are equal byte for byte.
    equal : bool[n]
        Whether both have equal features, as equal texts do.
    before : int
        So many of the first items came before those that are reported, and are here because others repeat them.
    sources : pyarrow.Array or None
        Where each came from, as strings; None where that is not known.
    elsewhere : mapping of int to str
        The ids of what items repeat that is ELSEWHERE.
    """

    ids: pa.Array
    times: Integers
    of: Integers
    similarity: Floats
    exact: Bools
    equal: Bools
    before: int = 0
    sources: pa.Array | None = None
    elsewhere: Mapping[int, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.of)

    def id(self, place: int) -> str:
        """Return what an item is called."""
        return str(self.ids[place].as_py())

    def repeats(self, place: int) -> str:
        """Return the id of what an item repeats; empty for an original."""
        other = int(self.of[place])
        if other == ORIGINAL:
            return ""
        return self.elsewhere.get(place, "") if other == ELSEWHERE else self.id(other)

    @cached_property
    def duplicates(self) -> Integers:
        """The places of the reported items that repeat another one."""
        found = np.flatnonzero(self.of != ORIGINAL)
        return found[found >= self.before]

    @cached_property
    def groups(self) -> Groups:
        """The items by what they go back to."""
        root = np.where(self.of >= 0, self.of, np.arange(len(self.of)))
        while not np.array_equal(further := root[root], root):
            root = further
        roots, sizes = np.unique(root, return_counts=True)
        return Groups(root, roots[sizes > 1], sizes[sizes > 1])

    def members(self, root: int) -> Integers:
        """Return the places of the items that go back to one, itself first."""
        order, heads = self._by_root
        return order[heads[root] : heads[root + 1]]

    @cached_property
    def _by_root(self) -> tuple[Integers, Integers]:
        order = np.argsort(self.groups.root, kind="stable")
        counts = np.bincount(self.groups.root, minlength=len(self))
        return order, np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


#: Texts of items by their places; those that are not there any more are missing.
Texts = Callable[[list[int]], Mapping[int, Shown]]
#: How the texts of items begin, in a line, for the search, by their places; those that are not there are missing.
Words = Callable[[Integers], Mapping[int, str]]
#: Why a duplicate matches what it repeats, in a line, by its place; empty where that is not known.
Evidence = Callable[[int], str]
#: Which of some texts match each other, as pairs of places; None where that cannot be told.
Matching = Callable[[Mapping[int, Shown]], set[tuple[int, int]] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where the report of a flow has from what it says of single items.

    Attributes
    ----------
    texts, words, evidence, matching : callable
        See `Texts`, `Words`, `Evidence` and `Matching`.
    """

    texts: Texts
    words: Words
    evidence: Evidence
    matching: Matching


def counts_in_words(counts: tuple[int, int, int] | None, recipe: Recipe) -> str:
    """Return the whole numbers behind a similarity; empty where they say nothing to people.

    Parameters
    ----------
    counts : (int, int, int) or None
        o, a and b, as a verdict has them.
    recipe : Recipe
        By which it was made.
    """
    if counts is None or recipe.second_step or recipe.is_weighted:
        return ""
    o, a, b = counts
    if recipe.measure == "hamming":
        return f"{64 - o} of 64 bits differ"
    if recipe.measure in SET_MEASURES and not recipe.signature and recipe.parsed_features.kind != "checksum":
        return shared_in_words(o, a, b)
    return ""


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


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Around:
    """The pairs of items that the window held together, from a looser threshold on.

    Attributes
    ----------
    left, right : int64[k]
        Places in the flow, the earlier item on the left.
    similarity : float64[k]
        Of each pair.
    loosest : Fraction
        The threshold from which on all pairs are there.
    known : bool
        Whether they were looked for at all.
    note : str
        Why not.
    """

    left: Integers
    right: Integers
    similarity: Floats
    loosest: Fraction
    known: bool = True
    note: str = ""

    @classmethod
    def nothing(cls, own: Fraction, note: str) -> Self:
        """Return what is known where no pairs were looked for; ``own`` is the flow's threshold."""
        none = np.zeros(0, np.int64)
        return cls(left=none, right=none, similarity=np.zeros(0), loosest=own, known=False, note=note)


class Swept(NamedTuple):
    """A sweep, and what would become of an item or a pair at each of its thresholds, as texts of 0 and 1.

    Attributes
    ----------
    sweep : Sweep or None
        None where no threshold can be moved.
    bars : float64[t]
        The similarity that a pair has to reach at each threshold.
    gone : bool[t, n] or None
        Which items would be duplicates; None where only the recorded similarities say so.
    """

    sweep: Sweep | None
    bars: Floats
    gone: Bools | None

    def goes(self, flow: Flow, place: int) -> str:
        """Return at which thresholds an item is a duplicate."""
        if self.sweep is None:
            return ""
        if self.gone is not None:
            return "".join("01"[int(gone)] for gone in self.gone[:, place].tolist())
        return self.matching(float(flow.similarity[place]), matches=bool(flow.of[place] != ORIGINAL))

    def matching(self, similarity: float, *, matches: bool) -> str:
        """Return at which thresholds a pair matches; at its own the flow itself has said that."""
        if self.sweep is None:
            return ""
        states = ["01"[similarity >= bar] for bar in self.bars.tolist()]
        states[self.sweep.own] = "01"[matches]
        return "".join(states)


def swept(flow: Flow, scale: Scale, around: Around, *, everything: bool, whole: bool) -> Swept:
    """Return what other thresholds would have done.

    Parameters
    ----------
    flow : Flow
        What arrived.
    scale : Scale
        What decides.
    around : Around
        The pairs that are known.
    everything : bool
        Whether items are compared with duplicates as well.
    whole : bool
        Whether the recorded similarities say all of stricter thresholds.
    """
    if around.known:
        steps = steps_of(scale, around.loosest)
        bars = _bars(scale, steps)
        own = steps.index(scale.threshold)
        gone = _gone(len(flow), around, bars, everything=everything)
        # What cannot be done again in this way, such as items that came too late, is not made up.
        if np.array_equal(gone[own], flow.of != ORIGINAL):
            pairs = np.sort(around.similarity)
            known = len(pairs) - np.searchsorted(pairs, bars)
            dropped = gone.sum(axis=1)
            made = _sweep(scale, steps, len(flow), dropped, known, own)
            return Swept(made, bars, gone)
    steps = steps_of(scale, scale.threshold)
    bars = _bars(scale, steps)
    similarity = np.sort(flow.similarity[flow.duplicates])
    left = len(similarity) - np.searchsorted(similarity, bars)
    left[0] = len(similarity)
    made = _sweep(scale, steps, len(flow) - flow.before, left, left, 0)
    note = f"{_STRICTER_ONLY} {_COUNTED[everything]}"
    return Swept(replace(made, exact=whole, note=note), bars, None)


def _bars(scale: Scale, steps: Sequence[Fraction]) -> Floats:
    return np.array([similarity_at(scale, step) for step in steps], np.float64)


def _sweep(
    scale: Scale, steps: Sequence[Fraction], documents: int, dropped: Integers, pairs: Integers, own: int
) -> Sweep:
    return Sweep(
        thresholds=[float(step) for step in steps],
        kept=(documents - dropped).tolist(),
        dropped=dropped.tolist(),
        pairs=pairs.tolist(),
        own=own,
        what="probability" if scale.measure == "learned" else scale.measure,
        distance=scale.distance,
        similarities=[similarity_at(scale, step) for step in steps],
    )


def _gone(count: int, around: Around, bars: Floats, *, everything: bool) -> Bools:
    """Return for each threshold which items would be duplicates, by all pairs: bool[t, n]."""
    gone = np.zeros((len(bars), count), np.bool_)
    if everything:
        best = np.full(count, -1.0)
        np.maximum.at(best, around.right, around.similarity)
        gone[:] = best >= bars[:, None]
        return gone
    # An item goes if an original before it matches: who stays is decided in order of arrival, as in `keep`.
    places = np.arange(count)
    ranked, pairs = standing(places, places), graph(count, around.left, around.right, around.similarity)
    for at, bar in enumerate(bars.tolist()):
        gone[at] = ~_staying(ranked, pairs, bar)
    return gone


def _staying(ranked: Standing, pairs: Graph, bar: float) -> Bools:
    kept = pairs.similarity >= bar
    before = np.concatenate([[0], np.cumsum(kept)]).astype(np.int64)
    return ranked.staying(Graph(before[pairs.heads], pairs.neighbours[kept], pairs.similarity[kept]))


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: Pairs elsewhere: so many for each twentieth of similarity.
_OF_EACH, _BANDS = 2, 20
#: Among so many of the nearest pairs it is looked for some that are no cases of one family.
_LOOKED_AT = 2000


class Picked(NamedTuple):
    """A pair that is shown: the places of the earlier and the later item, their similarity, and whether they match."""

    left: int
    right: int
    similarity: float
    matches: bool


class Listed(NamedTuple):
    """A family that is shown: its number, the place of its first item, how many it has, and what is listed of them."""

    number: int
    root: int
    documents: int
    members: list[int]


@dataclass(frozen=True, slots=True)
class Chosen:
    """What of a flow is listed.

    Attributes
    ----------
    families : list of Listed
        The largest ones first, then some of the others.
    above, below : list of Picked
        Duplicates that only just are, beside what they repeat, and originals that only just are beside others: the
        nearest to the threshold first.
    elsewhere : list of Picked
        Pairs of other similarities, in rising order.
    """

    families: list[Listed]
    above: list[Picked]
    below: list[Picked]
    elsewhere: list[Picked]

    def places(self, flow: Flow) -> list[int]:
        """Return the items that must be read."""
        asked = {place for listed in self.families for place in (listed.root, *listed.members)}
        asked.update(int(flow.of[place]) for place in list(asked) if flow.of[place] >= 0)
        asked.update(place for one in (*self.above, *self.below, *self.elsewhere) for place in one[:2])
        return sorted(asked)


def chosen_of(flow: Flow, around: Around, extent: Extent, *, everything: bool) -> Chosen:
    """Choose what is listed.

    Parameters
    ----------
    flow : Flow
        What arrived.
    around : Around
        The pairs that are known besides.
    extent : Extent
        How much of it is listed.
    everything : bool
        Whether items are compared with duplicates as well.
    """
    groups = flow.groups
    # Families by what arrived in the time that is reported: what came before counts for none.
    new = np.bincount(groups.root[flow.duplicates], minlength=len(flow))[groups.roots]
    alive = np.flatnonzero(new)
    ranked = alive[np.argsort(-new[alive], kind="stable")]
    rest = ranked[extent.families :]
    drawn = np.random.default_rng(extent.seed).choice(rest, min(len(rest), extent.families // 2), replace=False)
    shown = [*ranked[: extent.families].tolist(), *sorted(drawn.tolist(), key=lambda at: (-new[at], at))]
    roots = groups.roots.tolist()
    listed = [Listed(at + 1, roots[at], int(groups.sizes[at]), _members(flow, roots[at])) for at in shown]
    near = flow.duplicates[~flow.exact[flow.duplicates] & (flow.of[flow.duplicates] >= 0)]
    matching = [
        Picked(int(flow.of[place]), place, float(flow.similarity[place]), True)
        for place in near[np.argsort(flow.similarity[near], kind="stable")].tolist()
    ]
    missing = _missing(flow, around, everything=everything)
    # Sides are apart from themselves only: the nearest pair of each is shown, whatever the other one shows.
    sides: tuple[set[int], set[int]] = set(), set()
    above = _apart(flow, matching, extent.cases, sides[0])
    below = _apart(flow, missing, extent.cases, sides[1])
    known = {*above, *below}
    return Chosen(
        listed,
        above,
        below,
        _spread(flow, [one for one in (*missing, *matching) if one not in known], set.union(*sides)),
    )


def _missing(flow: Flow, around: Around, *, everything: bool) -> list[Picked]:
    """Return originals and what they nearly match of the items that they were compared with, the nearest first."""
    stayed = flow.of == ORIGINAL
    at = np.flatnonzero(stayed[around.right] & (everything | stayed[around.left]))
    at = at[np.argsort(-around.similarity[at], kind="stable")]
    columns = around.left[at].tolist(), around.right[at].tolist(), around.similarity[at].tolist()
    return [Picked(left, right, similarity, False) for left, right, similarity in zip(*columns, strict=True)]


def _members(flow: Flow, root: int) -> list[int]:
    """Return the members to list: those least like what they repeat, in order of arrival."""
    members = flow.members(root)[1:]
    doubtful = members[np.argsort(flow.similarity[members], kind="stable")][:DROPPED_LISTED]
    found: list[int] = np.sort(doubtful).tolist()
    return found


def _apart(flow: Flow, pairs: Sequence[Picked], count: int, taken: set[int]) -> list[Picked]:
    """Return the first of the pairs that have no family in common with others; where there are too few, any."""
    root = flow.groups.root
    chosen: dict[Picked, int] = {}
    for strict in (True, False):
        for at, pair in enumerate(pairs[:_LOOKED_AT]):
            if len(chosen) == count:
                break
            marks = {int(root[pair.left]), int(root[pair.right])}
            if pair not in chosen and not (strict and marks & taken):
                chosen[pair] = at
                taken |= marks
    return sorted(chosen, key=chosen.__getitem__)


def _spread(flow: Flow, pairs: Sequence[Picked], taken: set[int]) -> list[Picked]:
    """Return some pairs of each band of similarities, in rising order."""
    bands: dict[int, list[Picked]] = {}
    for pair in pairs:
        bands.setdefault(ceil(pair.similarity * _BANDS), []).append(pair)
    chosen = [one for band in sorted(bands) for one in _apart(flow, bands[band], _OF_EACH, taken)]
    return sorted(chosen, key=lambda pair: (pair.similarity, pair.right, pair.left))


class Teller:
    """Tells of items: by name, with their texts where those are still there.

    Parameters
    ----------
    flow : Flow
        What arrived.
    shown : mapping of int to Shown
        The texts, by place.
    sources : Sources
        What matches what, and why.
    families : sequence of Listed
        The families that it is asked of.
    gone : str
        What is said in the place of a text that is not there any more.
    """

    def __init__(
        self, flow: Flow, shown: Mapping[int, Shown], sources: Sources, families: Sequence[Listed], gone: str
    ) -> None:
        self._flow, self._shown, self._sources = flow, shown, sources
        # Of all families at once, for each question costs an index.
        members = [place for listed in families for place in listed.members if len(listed.members) > 1]
        self._matching = sources.matching({place: shown[place] for place in members if place in shown})
        self._gone = Html(f'<p class="changes dim">{escaped(gone)}</p>')

    def named(self, place: int) -> Named:
        """Return what an item is called."""
        shown = self._shown.get(place)
        time = time_text(int(self._flow.times[place]))
        return Named(self._flow.id(place), "" if shown is None else shown.title, time)

    def why(self, place: int) -> str:
        """Return why an item is what it is."""
        if self._flow.of[place] == ORIGINAL:
            return KEPT
        if self._flow.exact[place]:
            return COPY
        return EQUAL_FEATURES if self._flow.equal[place] else NEAR

    def family(self, listed: Listed, goes: Callable[[int], str]) -> Family:
        """Return a family with its listed members."""
        apart = self._apart(listed.members)
        members = [self._member(place, goes) for place in (listed.root, *listed.members)]
        if apart is not None:
            members[1:] = [
                replace(member, apart=[self._flow.id(other) for other in apart[place]])
                for place, member in zip(listed.members, members[1:], strict=True)
            ]
        # A text that has left is called by one that repeats it.
        repeated = self._flow.members(listed.root)[1:]
        names = (named(self._shown[place]) for place in (listed.root, *listed.members) if place in self._shown)
        return Family(
            number=listed.number,
            lead=next(filter(None, names), ""),
            documents=listed.documents,
            kept=int(self._flow.of[listed.root] == ORIGINAL),
            members=members,
            equal=bool(self._flow.equal[repeated].all()),
            smallest=float(self._flow.similarity[repeated].min()),
            apart=None if apart is None else sum(map(len, apart.values())) // 2,
        )

    def _member(self, place: int, goes: Callable[[int], str]) -> Member:
        flow, shown = self._flow, self._shown
        document, text = self.named(place), shown.get(place)
        if flow.of[place] == ORIGINAL:
            look = self._gone if text is None else beginning(text)
            return Member(document=document, why=KEPT, look=look, goes=goes(place))
        other = None if flow.of[place] == ELSEWHERE else shown.get(int(flow.of[place]))
        look, passage = self._gone, 0
        if text is not None and other is not None:
            look, passage = changed(other, text)
        elif text is not None:
            look = Html(f"{beginning(text)}{self._gone}")
        parts = [self._sources.evidence(place), f"{passage:,} words in a row in common" if passage > 1 else ""]
        why = self.why(place)
        return Member(
            document=document,
            why=why,
            to_keeper=why,
            keeper=flow.repeats(place),
            similarity=float(flow.similarity[place]),
            look=look,
            evidence="; ".join(filter(None, parts)),
            goes=goes(place),
        )

    def _apart(self, members: Sequence[int]) -> dict[int, list[int]] | None:
        """Return for each listed duplicate those that repeat the same and do not match it; None if that is unknown."""
        if self._matching is None:
            return None
        of, known = self._flow.of, [place for place in members if place in self._shown]
        apart: dict[int, list[int]] = {place: [] for place in members}
        for one in known:
            for other in known:
                if one < other and of[one] == of[other] and (one, other) not in self._matching:
                    apart[one].append(other)
                    apart[other].append(one)
        return apart

    def case(self, pair: Picked, head: str, words: int, matching: str) -> Case:
        """Return two items side by side.

        Parameters
        ----------
        pair : Picked
            They.
        head : str
            How alike they are.
        words : int
            Words of each text.
        matching : str
            At which thresholds they match.
        """
        left, right = self._shown.get(pair.left), self._shown.get(pair.right)
        look = self._gone
        if left is not None and right is not None:
            look = side_by_side(left, right, words=words, head=head)
        return Case(
            left=self.named(pair.left),
            right=self.named(pair.right),
            similarity=pair.similarity,
            matches=pair.matches,
            look=Html(look),
            matching=matching,
        )


def time_text(moment: int) -> str:
    """Return a time in microseconds as people read it, to the second; empty where no calendar has it."""
    try:
        return (_EPOCH + timedelta(microseconds=moment)).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError):
        return ""


#: Words of each text of a pair near the threshold, and of others.
_WORDS, _WORDS_ELSEWHERE = 300, 160
_UNKNOWN = (
    "Of pairs below the threshold nothing is known: a flow looks for a match, and of an item without one it does not "
    "find out what came nearest. neardup replay of the same items looks for them."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What a report says of a flow besides what arrived.

    Attributes
    ----------
    title, command : str
        The heading, and what was typed.
    inputs : sequence of str
        Where items came from.
    recipe : Recipe
        What a match is.
    decision : Decision or None
        In place of the recipe.
    window : str
        How far back the flow looks.
    everything : bool
        Whether items are compared with duplicates as well, and not with originals alone.
    gone : str
        What is said in the place of a text that is not there any more.
    quarantined : sequence of (str, int)
        What was set aside, by reason.
    stages : sequence of dict
        As ``Clock.stages`` has them.
    facts : mapping of str to str
        More to say.
    notes : sequence of str
        What is sampled or cut besides what the report itself cuts.
    curves : sequence of Chart
        More charts.
    """

    title: str
    command: str
    inputs: Sequence[str]
    recipe: Recipe
    decision: Decision | None
    window: str
    everything: bool
    gone: str
    quarantined: Sequence[tuple[str, int]] = ()
    stages: Sequence[Mapping[str, Any]] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    curves: Sequence[Chart] = ()


def flow_report(
    flow: Flow,
    about: About,
    sources: Sources,
    extent: Extent,
    around: Around | None = None,
) -> Report:
    """Return the report of a flow.

    Parameters
    ----------
    flow : Flow
        What arrived.
    about : About
        What else there is to say.
    sources : Sources
        Texts, and why two match.
    extent : Extent
        How much is listed.
    around : Around, optional
        The pairs that come near the threshold, where they are known.
    """
    scale = scale_of(about.recipe, about.decision)
    known = around or Around.nothing(scale.threshold, _UNKNOWN)
    chosen = chosen_of(flow, known, extent, everything=about.everything)
    teller = Teller(flow, sources.texts(chosen.places(flow)), sources, chosen.families, about.gone)
    moved = Swept(None, np.zeros(0), None)
    if _threshold(about, scale) is not None and has_threshold(about.recipe):
        # Of bands that are made for one threshold nothing follows for another one.
        whole = about.everything and about.recipe.search != "lsh"
        moved = swept(flow, scale, known, everything=about.everything, whole=whole)
    duplicates = flow.duplicates
    groups, reported = flow.groups, len(flow) - flow.before
    number = {int(root): at + 1 for at, root in enumerate(groups.roots.tolist())}
    alive = np.unique(groups.root[duplicates])
    sizes = groups.sizes[np.isin(groups.roots, alive)]
    recipe = about.recipe

    def cases(pairs: Sequence[Picked], words: int) -> list[Case]:
        return [
            teller.case(pair, _head(scale, pair), words, moved.matching(pair.similarity, matches=pair.matches))
            for pair in pairs
        ]

    def goes(place: int) -> str:
        return moved.goes(flow, place)

    return Report(
        title=about.title,
        documents=reported,
        kept=reported - len(duplicates),
        command=about.command,
        inputs=about.inputs,
        recipe=recipe.to_toml(),
        in_words=recipe.in_words(),
        fingerprint=recipe.fingerprint,
        versions={"neardup": __version__, "Python": platform.python_version()},
        reasons=_reasons(flow),
        quarantined=about.quarantined,
        similarity=binned(flow.similarity[duplicates]),
        similarity_of=_similarity_of(recipe, scale),
        threshold=_threshold(about, scale),
        families=[teller.family(listed, goes) for listed in chosen.families],
        families_total=len(alive),
        largest_family=int(sizes.max(initial=0)),
        cases_above=cases(chosen.above, _WORDS),
        cases_elsewhere=cases(chosen.elsewhere, _WORDS_ELSEWHERE),
        cases_below=cases(chosen.below, _WORDS),
        cases_note=known.note,
        sweep=moved.sweep,
        # As elsewhere, of pairs that differ in what is compared.
        pair_similarity=binned(known.similarity[known.similarity < 1]) if known.known else (),
        stages=about.stages,
        rows=_rows(flow, teller, duplicates[len(duplicates) - min(len(duplicates), extent.rows) :], number, sources),
        rows_total=len(duplicates),
        facts={"window": _window(about)} | dict(about.facts),
        notes=[*about.notes, *_notes(flow, about, chosen, extent, len(alive))],
        curves=about.curves,
        wording=FLOW,
    )


def _head(scale: Scale, pair: Picked) -> str:
    name = "probability" if scale.measure == "learned" else scale.measure
    return f"{name} {value_at(scale, pair.similarity)}: {'a match' if pair.matches else 'no match'}"


def _reasons(flow: Flow) -> list[tuple[str, int, str]]:
    places = flow.duplicates
    exact = flow.exact[places]
    equal = ~exact & flow.equal[places]
    return [
        (COPY, int(exact.sum()), "The text equals, byte for byte, that of the item it repeats."),
        (EQUAL_FEATURES, int(equal.sum()), "The text is written otherwise, but equal in all that is compared."),
        (NEAR, int((~exact & ~equal).sum()), "Other features, which match those of an item that the window held."),
    ]


def _similarity_of(recipe: Recipe, scale: Scale) -> str:
    if scale.measure == "learned":
        return "probability that both are near-duplicates"
    if scale.second:
        return recipe.second_step.split(">=")[0].split("<=")[0].strip()
    return f"{scale.measure} of {recipe.signature or recipe.features}"


def _threshold(about: About, scale: Scale) -> float | None:
    if about.decision is not None and not isfinite(about.decision.cut):
        return None
    return float(similarity_at(scale, scale.threshold))


def _rows(
    flow: Flow,
    teller: Teller,
    places: Integers,
    number: Mapping[int, int],
    sources: Sources,
) -> list[Row]:
    """Return the list that is searched, the latest first."""
    begins = sources.words(places)
    root = flow.groups.root
    return [
        Row(
            flow.id(place),
            flow.repeats(place),
            float(flow.similarity[place]),
            number.get(int(root[place]), 0),
            teller.why(place),
            begins.get(place, ""),
        )
        for place in places[::-1].tolist()
    ]


def _window(about: About) -> str:
    against = "everything in it" if about.everything else "the originals in it"
    return f"{about.window}; items are compared with {against}"


def _notes(flow: Flow, about: About, chosen: Chosen, extent: Extent, families: int) -> list[str]:
    found = []
    shown = len(chosen.families)
    if shown < families:
        others = shown - extent.families
        found.append(
            f"{shown:,} of {families:,} families are shown: the {extent.families:,} largest and a random {others:,} of "
            f"the others ({option('--report-families', 'families')})."
        )
    longest = max((listed.documents - 1 for listed in chosen.families), default=0)
    if longest > DROPPED_LISTED:
        found.append(
            f"Of each family at most {DROPPED_LISTED} duplicates are listed, those least like what they repeat."
        )
    if len(flow.duplicates) > extent.rows:
        found.append(
            f"The list of duplicates holds the latest {extent.rows:,} of {len(flow.duplicates):,} "
            f"({option('--report-rows', 'rows')})."
        )
    if not about.everything:
        found.append(
            "A flow does not compare duplicates with each other. Those that are listed with one original were compared "
            "for this page."
        )
    return found


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
KINDS = ("originals", "duplicates")
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
#: Sources that are listed.
_SOURCES = 25


def by_time(flow: Flow) -> list[Chart]:
    """Return the chart of originals and duplicates by the time that they were judged by; none if nothing arrived."""
    times = flow.times[flow.before :]
    if not len(times):
        return []
    first, last = int(times.min()), int(times.max())
    name, step = next(
        ((name, step) for name, step in _STEPS.items() if last // step - first // step < _BARS), ("year", 365 * _DAY)
    )
    bins, place = np.unique(times // step, return_inverse=True)
    is_duplicate = flow.of[flow.before :] >= 0
    is_duplicate |= flow.of[flow.before :] < -1
    counts = [
        np.bincount(place[~is_duplicate], minlength=len(bins)),
        np.bincount(place[is_duplicate], minlength=len(bins)),
    ]
    rows = []
    for at, number in enumerate(bins.tolist()):
        begin, end = (_moment(edge * step) for edge in (number, number + 1))
        originals, duplicates = (int(one[at]) for one in counts)
        for kind, low, high in ((KINDS[0], 0, originals), (KINDS[1], originals, originals + duplicates)):
            row = {"begin": begin, "end": end, "kind": kind, "low": low, "high": high}
            rows.append(row | {"originals": originals, "duplicates": duplicates})
    listed = rows[::2]
    return [
        Chart(
            key="arrived",
            title=f"What arrived, by {name}",
            note="by the time that items were judged by (UTC); stretches in which nothing came have no bar",
            told=f"Originals and duplicates by {name}, from {listed[0]['begin']} to {listed[-1]['end']}: "
            f"{int(counts[0].sum()):,} originals and {int(counts[1].sum()):,} duplicates.",
            specification=_time_chart(rows, f"items per {name}", int((counts[0] + counts[1]).max())),
            behind=table(
                ["from (UTC)", *KINDS],
                [[row["begin"], row["originals"], row["duplicates"]] for row in listed],
                tall=True,
            ),
        )
    ]


def _moment(microseconds: int) -> str:
    try:
        return (_EPOCH + timedelta(microseconds=microseconds)).isoformat(timespec="minutes").replace("+00:00", "Z")
    except OverflowError:
        return "9999-12-31T23:59Z"


def _time_chart(rows: Sequence[Mapping[str, Any]], title: str, most: int) -> dict[str, Any]:
    import altair as alt

    scale = alt.Scale(domain=list(KINDS), range=list(COLOURS[:2]))
    legend = alt.Legend(title=None, orient="top")
    told = [alt.Tooltip("begin:N", title="from"), *(alt.Tooltip(f"{kind}:Q", format=",") for kind in KINDS)]
    # A line around it shows a bar where there are so many that it is narrower than a dot.
    chart = alt.Chart(alt.Data(values=list(rows))).mark_rect(strokeWidth=0.7)
    return finished(
        chart.encode(
            x=alt.X("begin:T", title="time (UTC)", scale=alt.Scale(type="utc"), axis=time_axis()),
            x2="end:T",
            y=alt.Y("low:Q", title=title, axis=count_axis(most)),
            y2="high:Q",
            color=alt.Color("kind:N", scale=scale, legend=legend),
            stroke=alt.Stroke("kind:N", scale=scale, legend=legend),
            tooltip=told,
        )
    )


def by_lag(flow: Flow) -> list[Chart]:
    """Return the chart of how long after what they repeat duplicates came; none where there are none."""
    places = flow.duplicates[flow.of[flow.duplicates] >= 0]
    places = places[flow.times[flow.of[places]] != NO_TIME]
    if not len(places):
        return []
    # One may repeat an item that is of a later time than itself, if it arrived late.
    lag = np.abs(flow.times[places] - flow.times[flow.of[places]])
    counts = np.bincount(np.searchsorted(list(_LAGS.values()), lag), minlength=len(_LAGS) + 1)
    last = int(np.flatnonzero(counts)[-1])
    names = [*_LAGS, _LATER][: last + 1]
    reached = np.cumsum(counts) / len(places)
    rows = [
        {"name": name, "count": int(counts[at]), "share": f"{counts[at] / len(places):.0%}", "reached": f"{part:.0%}"}
        for at, (name, part) in enumerate(zip(names, reached.tolist(), strict=False))
    ]
    half = names[int(np.searchsorted(reached, 0.5))]
    return [
        Chart(
            key="lag",
            title="How long after its original a duplicate came",
            note=f"the percentages are shares of {len(places):,} duplicates. Added up from the top, as in the figures, "
            "they say what a shorter window would have seen; a longer one finds what comes later still",
            told=f"Of {len(places):,} duplicates, half came no later than {half} after what they repeat.",
            specification=_lag_chart(rows),
            behind=table(
                ["after the original", "duplicates", "share", "share up to here"],
                [[row["name"], row["count"], row["share"], row["reached"]] for row in rows],
            ),
        )
    ]


def _lag_chart(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    import altair as alt

    bars = alt.Chart(alt.Data(values=list(rows))).encode(
        x=alt.X("count:Q", title="duplicates", axis=count_axis(max(row["count"] for row in rows))),
        y=alt.Y("name:N", title=None, sort=None),
        tooltip=[
            alt.Tooltip("name:N", title="after the original"),
            alt.Tooltip("count:Q", format=",", title="duplicates"),
            alt.Tooltip("share:N"),
            alt.Tooltip("reached:N", title="share up to here"),
        ],
    )
    said = bars.mark_text(align="left", dx=5).encode(text="share:N")
    return finished(alt.layer(bars.mark_bar(color=COLOURS[1]), said), height=24 * len(rows) + 50)


def by_source(flow: Flow) -> list[Chart]:
    """Return the chart of how much of each source repeats what was there; none where sources are not known, or one."""
    if flow.sources is None:
        return []
    sources = flow.sources.slice(flow.before)
    encoded = sources.dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    names, codes = encoded.dictionary.to_pylist(), pc.fill_null(encoded.indices, 0).to_numpy()
    if len(names) < 2:
        return []
    stopped = flow.of[flow.before :] != -1
    every = np.bincount(codes, minlength=len(names))
    duplicates = np.bincount(codes[stopped], minlength=len(names))
    order = np.lexsort((np.arange(len(names)), -every))
    rows: list[dict[str, Any]] = [
        {"name": names[at] or "(the inbox itself)", "items": int(every[at]), "duplicates": int(duplicates[at])}
        for at in order.tolist()
    ]
    cut = f"; the {_SOURCES} with most items of {len(rows):,}" if len(rows) > _SOURCES else ""
    most = max(rows, key=lambda row: row["duplicates"])
    return [
        Chart(
            key="sources",
            title="Who sends what was there already",
            note=f"by the folder that items came in, as they were taken{cut}",
            told=f"Most duplicates, {most['duplicates']:,} of {most['items']:,} items, came in {most['name']}.",
            specification=_source_chart(rows[:_SOURCES]),
            behind=table(
                ["folder", "items", "duplicates", "share"],
                [
                    [row["name"], row["items"], row["duplicates"], f"{row['duplicates'] / row['items']:.1%}"]
                    for row in rows[:_SOURCES]
                ],
                tall=True,
            ),
        )
    ]


def _source_chart(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    import altair as alt

    parts = []
    for row in rows:
        originals = row["items"] - row["duplicates"]
        for kind, count in zip(KINDS, (originals, row["duplicates"]), strict=True):
            parts.append(dict(row) | {"kind": kind, "count": count, "share": row["duplicates"] / row["items"]})
    chart = alt.Chart(alt.Data(values=parts)).mark_bar()
    return finished(
        chart.encode(
            x=alt.X("count:Q", title="items", axis=count_axis(max(row["items"] for row in rows))),
            y=alt.Y("name:N", title=None, sort=None, axis=alt.Axis(labelLimit=200)),
            color=alt.Color(
                "kind:N",
                scale=alt.Scale(domain=list(KINDS), range=list(COLOURS[:2])),
                legend=alt.Legend(title=None, orient="top"),
            ),
            order=alt.Order("kind:N", sort="descending"),
            tooltip=[
                alt.Tooltip("name:N", title="folder"),
                alt.Tooltip("items:Q", format=","),
                alt.Tooltip("duplicates:Q", format=","),
                alt.Tooltip("share:Q", format=".1%"),
            ],
        ),
        height=24 * len(rows) + 70,
    )
