"""Makes the report of a run or of a flow from its verdicts, the pairs that are known, and the documents."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from neardup.errors import option
from neardup.kernels import Bools, Floats, Integers
from neardup.pages.diff import ShownDocument
from neardup.pages.html import clip
from neardup.pages.report import (
    BATCH,
    BITS,
    FLOW,
    KEPT,
    NEAR,
    Example,
    Extent,
    Family,
    Member,
    Report,
    Row,
    Wording,
    bin_similarities,
)
from neardup.pages.sweep import (
    SweepResult,
    format_similarity,
    rule_in_words,
    similarity_at,
    similarity_name,
    sweep_thresholds,
    threshold_name,
)
from neardup.pages.verdicts import ELSEWHERE, ORIGINAL, REASONS, KnownPairs, Verdicts, duplicate_lags, format_time
from neardup.recipe import Recipe
from neardup.search.margin import Criterion
from neardup.version import __version__

#: Texts of documents by their places; those that are not there any more are missing.
Texts = Callable[[list[int]], Mapping[int, ShownDocument]]
#: How the texts of documents begin, in a line, for the search, by their places; those that are not there are missing.
Words = Callable[[Integers], Mapping[int, str]]
#: Why a removed document matches its keeper, in a line, by its place; empty where that is not known.
Evidence = Callable[[int], str]
#: Which of some documents with the same keeper match each other, as pairs of places; None where that is not known.
Matching = Callable[[Mapping[int, ShownDocument]], set[tuple[int, int]] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSources:
    """Where a report has from what it says of single documents; ``texts`` is asked first, for all that is shown."""

    texts: Texts
    words: Words
    evidence: Evidence
    matching: Matching


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportContext:
    """What a report says besides its verdicts."""

    #: The heading, and what was typed.
    title: str
    command: str
    inputs: Sequence[str]
    recipe: Recipe
    #: What decides last, and from where on.
    scale: Criterion
    #: Whether another threshold would change anything, and what is known says so.
    movable: bool
    #: How far back a flow looks; empty for a run.
    window: str = ""
    #: Whether items are compared with duplicates as well, and not with originals alone.
    everything: bool = False
    #: What is said in the place of a text that is not there any more.
    left: str = ""
    #: What was rejected, by reason.
    quarantined: Sequence[tuple[str, int]] = ()
    #: As ``Clock.stages`` has them.
    stages: Sequence[Mapping[str, Any]] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    #: What is sampled or cut besides what the report itself cuts.
    notes: Sequence[str] = ()


#: Members that are listed of a family: removed ones, and kept ones.
DROPPED_LISTED, KEPT_LISTED = 8, 4
#: Among so many of the nearest pairs it is looked for some that are no examples of one family.
_LOOKED_AT = 2000
#: Characters of a title, or of how a text begins, in a list.
_NAME = 90


def document_lead(document: ShownDocument) -> str:
    """Return a document's title, or how its text begins, for a line of a list."""
    return clip(document.title or document.text, _NAME)


class _ListedFamily(NamedTuple):
    """A family that is shown: its number, and the places of the members that are listed, kept ones first."""

    number: int
    stay: list[int]
    go: list[int]


def _families(verdicts: Verdicts, extent: Extent) -> list[_ListedFamily]:
    """Return the largest families, and a random spread of the others, the largest first."""
    reported = np.bincount(verdicts.family[verdicts.before :], minlength=len(verdicts.sizes) + 1)[1:]
    alive = np.flatnonzero(reported)
    ranked = alive[np.argsort(-reported[alive], kind="stable")]
    rest = ranked[extent.families :]
    drawn = np.random.default_rng(extent.seed).choice(rest, min(len(rest), extent.families // 2), replace=False)
    shown = [*ranked[: extent.families].tolist(), *sorted(drawn.tolist(), key=lambda at: (-reported[at], at))]
    return [_listed(verdicts, at + 1) for at in shown]


def _listed(verdicts: Verdicts, number: int) -> _ListedFamily:
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
    return _ListedFamily(number, ranked[:KEPT_LISTED], doubtful.tolist())


class _ExamplePair(NamedTuple):
    """A pair that is shown: places, similarity, whether it matches, and its place among the known ones or -1."""

    left: int
    right: int
    similarity: float
    matches: bool
    edge: int


class _RankedPairs(NamedTuple):
    """Pairs to choose from, the nearest to the threshold first."""

    left: Integers
    right: Integers
    similarity: Floats
    matches: bool
    edge: Integers

    def picked(self, at: int) -> _ExamplePair:
        edge = int(self.edge[at])
        return _ExamplePair(int(self.left[at]), int(self.right[at]), float(self.similarity[at]), self.matches, edge)


class _Examples(NamedTuple):
    """The pairs that a report shows."""

    above: list[_ExamplePair]
    below: list[_ExamplePair]

    @property
    def every(self) -> list[_ExamplePair]:
        return [*self.above, *self.below]


def _candidates(verdicts: Verdicts, known: KnownPairs, everything: bool) -> tuple[_RankedPairs, _RankedPairs]:
    """Return the pairs that match, and those that do not."""
    if known.matching is not None:
        return _rank_known_pairs(known, known.matching, matches=True), _rank_known_pairs(
            known, ~known.matching, matches=False
        )
    near = verdicts.duplicates[~verdicts.exact[verdicts.duplicates] & (verdicts.of[verdicts.duplicates] >= 0)]
    near = near[np.argsort(verdicts.similarity[near], kind="stable")]
    matching = _RankedPairs(verdicts.of[near], near, verdicts.similarity[near], True, np.full(len(near), -1))
    # Originals and what they nearly match of the items that they were compared with.
    stays = verdicts.of == ORIGINAL
    return matching, _rank_known_pairs(known, stays[known.right] & (everything | stays[known.left]), matches=False)


def _rank_known_pairs(known: KnownPairs, chosen: Bools, *, matches: bool) -> _RankedPairs:
    at = np.flatnonzero(chosen)
    at = at[np.argsort(known.similarity[at] if matches else -known.similarity[at], kind="stable")]
    return _RankedPairs(known.left[at], known.right[at], known.similarity[at], matches, at)


def _examples(verdicts: Verdicts, known: KnownPairs, extent: Extent, everything: bool) -> _Examples:
    """Choose the pairs to read: the nearest on each side, not two of one family while there are others."""
    # A document without a family is a group of its own.
    group = np.where(verdicts.family > 0, -verdicts.family, np.arange(len(verdicts)))
    # Sides are apart from themselves only: the nearest pair of each is shown, whatever the other one shows.
    above, below = (
        [*map(pairs.picked, _apart(pairs, extent.cases, group))] for pairs in _candidates(verdicts, known, everything)
    )
    return _Examples(above, below)


def _apart(pairs: _RankedPairs, count: int, group: Integers) -> list[int]:
    """Return the first of the pairs that have no family in common with others; where there are too few, any."""
    chosen: set[int] = set()
    taken: set[int] = set()
    for strict in (True, False):
        for at in range(min(len(pairs.left), _LOOKED_AT)):
            if len(chosen) >= count:
                break
            marks = {int(group[pairs.left[at]]), int(group[pairs.right[at]])}
            if at not in chosen and not (strict and marks & taken):
                chosen.add(at)
                taken |= marks
    return sorted(chosen)


def listed_rows(verdicts: Verdicts, extent: Extent) -> Integers:
    """Return the dropped documents that are listed: the latest ones of a flow, else a random part, in order."""
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
    verdicts: Verdicts, about: ReportContext, sources: ReportSources, extent: Extent, known: KnownPairs | None = None
) -> Report:
    """Return the report of a run or of a flow."""
    scale, recipe = about.scale, about.recipe
    known = known or KnownPairs.nothing(scale.threshold, _UNKNOWN)
    chosen, examples = _families(verdicts, extent), _examples(verdicts, known, extent, about.everything)
    members = np.array([place for one in chosen for place in (*one.stay, *one.go)], np.int64)
    moved, is_flow = None, verdicts.times is not None
    words = FLOW if is_flow else BATCH
    reported = len(verdicts) - verdicts.before if verdicts.present is None else int(verdicts.present.sum())
    if about.movable and reported:
        bands = recipe.search == "lsh" and not scale.second
        moved = sweep_thresholds(verdicts, scale, known, watched=members, everything=about.everything, whole=not bands)
    places = {*members.tolist(), *(place for one in examples.every for place in one[:2])}
    places |= {int(verdicts.of[place]) for place in list(places) if verdicts.of[place] >= 0}
    view = _ReportDocuments(verdicts, scale, known, sources, sources.texts(sorted(places)), chosen)
    if moved is not None:
        view.watch(moved, members)
    rows, removed = listed_rows(verdicts, extent), verdicts.duplicates
    begins, alive = sources.words(rows), np.unique(verdicts.family[removed])
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
        rule=rule_in_words(recipe),
        fingerprint=recipe.fingerprint,
        versions={"neardup": __version__, **about.versions, "Python": platform.python_version()},
        reasons=_reasons(verdicts),
        quarantined=about.quarantined,
        similarity=bin_similarities(verdicts.similarity[removed]),
        similarity_of=similarity_name(scale, recipe),
        threshold=similarity_at(scale, scale.threshold),
        families=[view.family(listed) for listed in chosen],
        families_total=int((alive > 0).sum()),
        largest_family=int(verdicts.sizes[alive[alive > 0] - 1].max(initial=0)),
        above=[view.example(pair) for pair in examples.above],
        below=[view.example(pair) for pair in examples.below],
        unknown=known.note,
        sweep=moved.sweep if moved else None,
        pair_similarity=bin_similarities(similar) if known.known else (),
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
        notes=[
            *_empty_input_notes(about, words, reported),
            *about.notes,
            *_notes(verdicts, about, extent, len(chosen)),
        ],
        wording=words,
        lags=duplicate_lags(verdicts),
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
        f"other bytes, but nothing that is compared differs from {before}",
        f"differs in what is compared, and matches {keeper}",
    )
    return [
        (name, int((why == at).sum()), meaning)
        for at, (name, meaning) in enumerate(zip(REASONS[1:], meanings, strict=True), 1)
    ]


def _empty_input_notes(about: ReportContext, words: Wording, reported: int) -> list[str]:
    """Return that nothing came, where that is so."""
    if reported or about.quarantined:
        return []
    return ["The input had no document." if words is BATCH else "No item arrived."]


def _notes(verdicts: Verdicts, about: ReportContext, extent: Extent, shown: int) -> list[str]:
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
            f"The list of dropped documents holds a random {some}; {every}."
            if words is BATCH
            else f"The list of duplicates holds the latest {some}."
        )
    if words is FLOW and not about.everything:
        found.append(
            "A flow does not compare duplicates with each other. Those that are listed with one original were compared "
            "for this page."
        )
    return found


class _ReportDocuments:
    """Shows families and pairs, with their texts where those are still there."""

    def __init__(
        self,
        verdicts: Verdicts,
        scale: Criterion,
        known: KnownPairs,
        sources: ReportSources,
        texts: Mapping[int, ShownDocument],
        chosen: Sequence[_ListedFamily],
    ) -> None:
        self._verdicts, self._scale, self._known, self._sources, self._texts = verdicts, scale, known, sources, texts
        # Of all families at once, for each question may cost an index.
        asked = [place for one in chosen for place in one.go if len(one.go) > 1]
        self._matching = sources.matching({place: texts[place] for place in asked if place in texts})
        self._goes: dict[int, str] = {}

    def watch(self, moved: SweepResult, members: Integers) -> None:
        """Say from now on what other thresholds would do to these documents."""
        self._goes = dict(zip(members.tolist(), map(_states, moved.gone.T), strict=True))

    def family(self, listed: _ListedFamily) -> Family:
        """Return a family with its listed members."""
        verdicts, apart = self._verdicts, self._apart(listed.go)
        members = [self._member(place, (apart or {}).get(place, [])) for place in (*listed.stay, *listed.go)]
        places, connected, at = verdicts.members(listed.number), verdicts.connected, listed.number - 1
        repeated, count = places[verdicts.of[places] != ORIGINAL], len(places)
        equal = verdicts.equal[repeated] if verdicts.why is None else verdicts.why[repeated] < REASONS.index(NEAR)
        family = Family(
            number=listed.number,
            documents=count,
            kept=count - len(repeated),
            members=members,
            # A text that has left is called by one that repeats it.
            lead=next(filter(None, (document_lead(member.document) for member in members)), ""),
            equal=bool(equal.all()),
            smallest=float(verdicts.similarity[repeated].min() if connected is None else connected.smallest[at]),
            apart=None if apart is None else sum(map(len, apart.values())) // 2,
        )
        if connected is None or apart is None:
            return family
        pairs, others = int(connected.pairs[at]), 0
        if verdicts.present is not None:
            others = count - int(verdicts.present[places].sum())
        every = (count * (count - 1) - others * (others - 1)) // 2
        return replace(family, pairs=pairs, mean=float(connected.mean[at]), complete=pairs == every)

    def _shown(self, place: int) -> ShownDocument:
        shown = self._texts.get(place) or ShownDocument(self._verdicts.id(place), "", "", gone=True)
        times = self._verdicts.times
        return shown if times is None else shown._replace(time=format_time(int(times[place])))

    def _member(self, place: int, apart: Sequence[int]) -> Member:
        verdicts, goes = self._verdicts, self._goes.get(place, "")
        other = int(verdicts.of[place])
        if other == ORIGINAL:
            return Member(document=self._shown(place), why=KEPT, goes=goes)
        return Member(
            document=self._shown(place),
            why=verdicts.reason(place),
            keeper=ShownDocument(verdicts.keeper(place), "", "", gone=True)
            if other == ELSEWHERE
            else self._shown(other),
            similarity=float(verdicts.similarity[place]),
            to_keeper=verdicts.to_keeper(place),
            evidence=self._sources.evidence(place),
            apart=[verdicts.id(one) for one in apart],
            goes=goes,
        )

    def _apart(self, members: Sequence[int]) -> dict[int, list[int]] | None:
        """Return for each dropped document those with the same keeper that do not match it; None if unknown."""
        if self._matching is None:
            return None
        of, known = self._verdicts.of, [place for place in members if place in self._texts]
        apart: dict[int, list[int]] = {place: [] for place in members}
        for one, other in combinations(known, 2):
            if of[one] == of[other] and (min(one, other), max(one, other)) not in self._matching:
                apart[one].append(other)
                apart[other].append(one)
        return apart

    def example(self, pair: _ExamplePair) -> Example:
        """Return two documents to read side by side."""
        scale, known = self._scale, self._known
        what = threshold_name(scale)
        value = format_similarity(what, pair.similarity, distance=scale.distance)
        numbers = known.numbers(pair.edge) if known.numbers is not None and pair.edge >= 0 and what != BITS else ""
        alike = f"{value} apart" if what == BITS else f"{what} {value}"
        head = f"{alike}: {'a match' if pair.matches else 'no match'}"
        said = "; ".join(filter(None, (head, numbers)))
        return Example(self._shown(pair.left), self._shown(pair.right), pair.similarity, pair.matches, said)


def _states(column: Bools) -> str:
    return "".join("01"[state] for state in column.astype(int).tolist())
