"""The report of a run or a flow as data: what was read, kept and dropped, and why; and how it follows from verdicts.

The page is a function of it (``report_page``).
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from neardup.errors import RecipeError, option
from neardup.kernels import Bools, Floats, Integers
from neardup.pages.diff import ShownDocument
from neardup.pages.html import clip
from neardup.pages.sweep import (
    BITS,
    Sweep,
    format_similarity,
    rule_in_words,
    similarity_name,
    sweep_thresholds,
    threshold_name,
)
from neardup.pages.verdicts import (
    ELSEWHERE,
    KEPT,
    NEAR,
    ORIGINAL,
    REASONS,
    KnownPairs,
    Verdicts,
    duplicate_lags,
    format_time,
)
from neardup.recipe import Recipe
from neardup.recipe.measures import similarity_at
from neardup.search.margin import Criterion
from neardup.version import __version__


class Wording(NamedTuple):
    """The words and sentences that differ between the report of a run and that of a flow."""

    documents: str = "documents"
    document: str = "document"
    kept: str = "kept"
    dropped: str = "dropped"
    #: What happens to a kept and to a dropped document at another threshold: it is "kept at 0.8".
    kept_verb: str = "kept"
    dropped_verb: str = "dropped"
    keeper: str = "keeper"
    run: str = "run"
    empty: str = "The input had no document."
    kept_means: str = "matches no other kept document"
    dropped_label: str = "dropped"
    #: The headings of the tables of reasons and of dropped documents.
    sections: tuple[str, str] = ("What was kept, and what was dropped", "Dropped documents")
    similarity_title: str = "Similarity of dropped documents to their keepers"
    sweep_title: str = "Dropped documents by threshold"
    sweep_caption: str = "each point is what a run at that threshold drops; the line is the slider's threshold"
    pairs: str = "pairs of documents with different features"
    families: str = (
        "Documents connected by matching pairs, the largest family first. Each dropped one is shown by how it differs "
        "from its keeper: words only in the keeper are struck out, words only in the document are underlined."
    )


BATCH = Wording()
FLOW = Wording(
    documents="items",
    document="item",
    kept="passed",
    dropped="duplicates",
    kept_verb="passes",
    dropped_verb="is stopped",
    keeper="original",
    run="flow",
    empty="No item arrived.",
    kept_means="matches nothing in the window",
    dropped_label="stopped",
    sections=("What passed, and what was stopped", "Duplicates"),
    similarity_title="Similarity of duplicates to their originals",
    sweep_title="Duplicates by threshold",
    sweep_caption="each point is the number of duplicates at that threshold; the line is the slider's threshold",
    pairs="pairs of items with a similarity below 1",
    families=(
        "Items that go back to one original, the largest family first. Each duplicate is shown by how it differs from "
        "the item it repeats: words only in that item are struck out, words only in the duplicate are underlined."
    ),
)


#: The number of bins of similarities: bin i holds i / BINS <= similarity < (i + 1) / BINS, the last one also 1.
BINS = 100


def bin_similarities(similarity: Floats) -> list[int]:
    """Return the number of similarities in each of the ``BINS`` bins."""
    # A similarity that rounding has put just below a bin belongs to it.
    bins = np.floor(np.round(similarity * BINS, 7)).astype(np.int64)
    found: list[int] = np.bincount(np.clip(bins, 0, BINS - 1), minlength=BINS).tolist()
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A document of a family, as it is listed."""

    document: ShownDocument
    #: KEPT, COPY, EQUAL_FEATURES or NEAR.
    reason: str
    keeper: ShownDocument | None = None
    similarity: float = 0.0
    #: COPY, EQUAL_FEATURES or NEAR: how it matches its keeper, which need not be the document that it copies.
    keeper_reason: str = ""
    #: Why the two match, in one line; may be empty.
    evidence: str = ""
    #: The ids of listed members with the same keeper that do not match this one.
    unmatched_ids: Sequence[str] = ()
    #: For each threshold of the sweep "1" if it drops the document, otherwise "0"; empty without a sweep.
    dropped_at: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A family, with some of its members listed."""

    number: int
    documents: int
    kept: int
    #: The listed members, kept ones first.
    members: Sequence[Member]
    #: The title or the beginning of the text of its first member; empty if that member has neither.
    lead: str = ""
    equal: bool = False
    #: The number of its matching pairs, with their smallest and mean similarity; None if unknown.
    pairs: int | None = None
    smallest: float | None = None
    mean: float | None = None
    #: Whether every member matches every other; None if unknown.
    complete: bool | None = None
    #: The number of pairs of listed members that match the same keeper but not each other; None if unknown.
    unmatched_pairs: int | None = None

    @property
    def hidden(self) -> int:
        """The number of members that are not listed."""
        return self.documents - len(self.members)


class Example(NamedTuple):
    """A pair to read, near the threshold."""

    left: ShownDocument
    right: ShownDocument
    similarity: float
    matches: bool
    head: str = ""


class Row(NamedTuple):
    """A dropped document in the list to search: ``family`` is 0 for none, ``lead`` a title or beginning."""

    id: str
    keeper: str
    similarity: float
    family: int
    reason: str
    lead: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The content of a report. Fields that are unknown or do not apply have their defaults."""

    #: The heading, such as "What was dropped, and why".
    title: str
    documents: int = 0
    kept: int = 0
    #: The command line, quoted for a shell; empty from Python.
    command: str = ""
    inputs: Sequence[str] = ()
    #: The recipe as TOML, in one line, and as a sentence on what matches (empty if no simple one is right), and its
    #: fingerprint.
    recipe: str = ""
    in_words: str = ""
    rule: str = ""
    fingerprint: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    #: Why documents were dropped: name, number, and meaning of the name.
    reasons: Sequence[tuple[str, int, str]] = ()
    released: int = 0
    #: Rejected records by reason; ``documents`` does not count them.
    rejected: Sequence[tuple[str, int]] = ()
    #: The similarities of dropped documents to their keepers, in BINS bins, and their name.
    similarity: Sequence[int] = ()
    similarity_name: str = "similarity"
    #: Those of the pairs that the sweep knows; empty without a sweep.
    pair_similarity: Sequence[int] = ()
    #: The least similarity of a match; None if a classifier has no such number.
    threshold: float | None = None
    families: Sequence[Family] = ()
    #: The number of all families, and of the documents of the largest.
    families_total: int = 0
    largest_family: int = 0
    #: Pairs just at or above the threshold, and just below it, the nearest first.
    matching_examples: Sequence[Example] = ()
    unmatched_examples: Sequence[Example] = ()
    #: Which pairs are unknown, such as those below the threshold, and why.
    missing_pairs_note: str = ""
    sweep: Sweep | None = None
    stages: Sequence[Mapping[str, Any]] = ()
    #: The dropped documents to search: all, or some of them.
    rows: Sequence[Row] = ()
    rows_total: int = 0
    facts: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    wording: Wording = BATCH
    #: How many duplicates of a flow came how long after their originals.
    lags: Sequence[tuple[str, int]] = ()
    missing_text: str = ""

    @property
    def dropped(self) -> int:
        """The number of documents that are not kept."""
        return self.documents - self.kept


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportLimits:
    """Limits on what a report lists."""

    #: Shows this many of the largest families, and half as many others at random. Raising it makes the page larger.
    families: int = 50
    cases: int = 10
    #: Lists this many dropped documents to search: the latest ones of a flow, a random part of a run's.
    rows: int = 2000
    seed: int = 1

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if value < 0:
                raise RecipeError(f"{one.name} {value} of a report is below 0; give 0 or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSources:
    """Functions that return single documents by their rows; ``documents`` is called first, for all that are shown."""

    #: Returns documents; those that are no longer available are missing.
    documents: Callable[[list[int]], Mapping[int, ShownDocument]]
    #: Returns the title or the beginning of texts, in one line; those that are not available are missing.
    leads: Callable[[Integers], Mapping[int, str]]
    #: Returns why a dropped document matches its keeper, in one line; empty if unknown.
    evidence: Callable[[int], str]
    #: Returns which documents with the same keeper match each other, as pairs of rows; None if unknown.
    matching_pairs: Callable[[Mapping[int, ShownDocument]], set[tuple[int, int]] | None]


#: The most dropped and kept members to list of a family.
DROPPED_LISTED, KEPT_LISTED = 8, 4
#: Examples of different families are looked for among this many pairs, the nearest to the threshold.
_PAIRS_SCANNED = 2000
_LEAD_LENGTH = 90


def document_lead(document: ShownDocument) -> str:
    """Return a document's title, or the beginning of its text, for a line of a list."""
    return clip(document.title or document.text, _LEAD_LENGTH)


class _ListedFamily(NamedTuple):
    """A shown family: its number, and the rows of its listed members."""

    number: int
    kept_rows: list[int]
    dropped_rows: list[int]


def _choose_families(verdicts: Verdicts, limits: ReportLimits) -> list[_ListedFamily]:
    """Return the largest families and some others at random, the largest first."""
    reported = np.bincount(verdicts.family[verdicts.earlier_count :], minlength=len(verdicts.family_sizes) + 1)[1:]
    alive = np.flatnonzero(reported)
    ranked = alive[np.argsort(-reported[alive], kind="stable")]
    rest = ranked[limits.families :]
    drawn = np.random.default_rng(limits.seed).choice(rest, min(len(rest), limits.families // 2), replace=False)
    shown = [*ranked[: limits.families].tolist(), *sorted(drawn.tolist(), key=lambda at: (-reported[at], at))]
    return [_listed_family(verdicts, at + 1) for at in shown]


def _listed_family(verdicts: Verdicts, number: int) -> _ListedFamily:
    members = verdicts.members(number)
    is_kept = verdicts.keeper_rows[members] == ORIGINAL
    if not is_kept.any():
        # The original of all of them is not in the report.
        is_kept[0] = True
    kept, dropped = members[is_kept].tolist(), members[~is_kept]
    # The least similar ones are the most doubtful.
    doubtful = dropped[np.argsort(verdicts.similarity[dropped], kind="stable")][:DROPPED_LISTED]
    if verdicts.times is not None:
        doubtful = np.sort(doubtful)
    keepers = {place: at for at, place in enumerate(dict.fromkeys(verdicts.keeper_rows[doubtful].tolist()))}
    ranked = sorted(kept, key=lambda place: keepers.get(place, len(keepers)))
    return _ListedFamily(number, ranked[:KEPT_LISTED], doubtful.tolist())


class _Pairs(NamedTuple):
    """Pairs to read, the nearest to the threshold first; ``edge`` has their indices among the known pairs, or -1."""

    left: Integers
    right: Integers
    similarity: Floats
    edge: Integers

    def take(self, at: Sequence[int] | Integers) -> _Pairs:
        return _Pairs(self.left[at], self.right[at], self.similarity[at], self.edge[at])


def _choose_examples(
    verdicts: Verdicts, known: KnownPairs, limits: ReportLimits, everything: bool
) -> tuple[_Pairs, _Pairs]:
    """Choose matching and other pairs: the nearest of each, and two of one family only if there are no others."""
    pairs = _Pairs(known.left, known.right, known.similarity, np.arange(len(known.left)))
    if known.matching is not None:
        matching, others = pairs.take(np.flatnonzero(known.matching)), np.flatnonzero(~known.matching)
    else:
        dropped = verdicts.duplicates
        near = dropped[~verdicts.exact[dropped] & (verdicts.keeper_rows[dropped] >= 0)]
        matching = _Pairs(verdicts.keeper_rows[near], near, verdicts.similarity[near], np.full(len(near), -1))
        # Of pairs that do not match, those of an item and an original that it was compared with.
        is_kept = verdicts.keeper_rows == ORIGINAL
        others = np.flatnonzero(is_kept[known.right] & (everything | is_kept[known.left]))
    matching = matching.take(np.argsort(matching.similarity, kind="stable"))
    others = others[np.argsort(-known.similarity[others], kind="stable")]
    # A document without a family is a group of its own.
    group = np.where(verdicts.family > 0, -verdicts.family, np.arange(len(verdicts)))
    above, below = (
        ranked.take(_select_unrelated(ranked, limits.cases, group)) for ranked in (matching, pairs.take(others))
    )
    return above, below


def _select_unrelated(pairs: _Pairs, count: int, group: Integers) -> list[int]:
    """Return the first pairs that share no family with each other; if these are too few, the first others as well."""
    chosen: set[int] = set()
    taken: set[int] = set()
    for strict in (True, False):
        for at in range(min(len(pairs.left), _PAIRS_SCANNED)):
            if len(chosen) >= count:
                break
            groups = {int(group[pairs.left[at]]), int(group[pairs.right[at]])}
            if at not in chosen and not (strict and groups & taken):
                chosen.add(at)
                taken |= groups
    return sorted(chosen)


def listed_rows(verdicts: Verdicts, limits: ReportLimits) -> Integers:
    """Return the rows of the dropped documents to list: the latest ones of a flow, else a random part, in order."""
    places = verdicts.duplicates
    if verdicts.times is not None:
        return places[len(places) - min(len(places), limits.rows) :][::-1]
    if len(places) <= limits.rows:
        return places
    return np.sort(np.random.default_rng(limits.seed).choice(places, limits.rows, replace=False))


_UNSEARCHED_NOTE = (
    "Pairs below the threshold are unknown: a flow looks for a match, and records nothing for an item without one. "
    "neardup replay of the same items finds them."
)


def build_report(
    frame: Report,
    verdicts: Verdicts,
    sources: ReportSources,
    limits: ReportLimits,
    *,
    recipe: Recipe,
    criterion: Criterion,
    has_sweep: bool,
    known: KnownPairs | None = None,
    window: str = "",
    everything: bool = False,
) -> Report:
    """Return the report of a run or a flow: ``frame`` with all that follows from its verdicts.

    ``criterion`` is the last measure to decide; ``has_sweep`` says whether the known pairs tell what other thresholds
    would do. ``window`` is that of a flow; ``everything`` says whether its items are compared with duplicates as well.
    """
    known = known or KnownPairs.empty(criterion.threshold, _UNSEARCHED_NOTE)
    chosen = _choose_families(verdicts, limits)
    matching, unmatched = _choose_examples(verdicts, known, limits, everything)
    members = np.array([place for one in chosen for place in (*one.kept_rows, *one.dropped_rows)], np.int64)
    sweep_result, is_flow = None, verdicts.times is not None
    words = FLOW if is_flow else BATCH
    reported = len(verdicts) - verdicts.earlier_count if verdicts.present is None else int(verdicts.present.sum())
    if has_sweep and reported:
        bands = recipe.search == "lsh" and not criterion.second
        sweep_result = sweep_thresholds(
            verdicts, criterion, known, watched=members, everything=everything, is_exact=not bands
        )
    places = np.unique(np.concatenate([members, *matching[:2], *unmatched[:2]]))
    keepers = verdicts.keeper_rows[places]
    places = np.unique(np.concatenate([places, keepers[keepers >= 0]]))
    texts = sources.documents(places.tolist())
    states = [] if sweep_result is None else map(_drop_string, sweep_result.dropped.T)
    # Without a sweep no document has a state.
    dropped_at = dict(zip(members.tolist(), states, strict=False))
    # All families at once, because each call may build an index.
    listed = [row for one in chosen for row in one.dropped_rows if len(one.dropped_rows) > 1]
    matches = sources.matching_pairs({row: texts[row] for row in listed if row in texts})
    view = _ReportDocuments(verdicts, criterion, known, sources, texts, matches, dropped_at)
    rows, removed = listed_rows(verdicts, limits), verdicts.duplicates
    begins, alive = sources.leads(rows), np.unique(verdicts.family[removed])
    similar = known.similarity[known.similarity < 1] if is_flow else known.similarity
    against = "everything in it" if everything else "the originals in it"
    window_fact = {"window": f"{window}; items are compared with {against}"} if window else {}
    keep = "" if is_flow else f", keep {recipe.keep}"
    empty = [] if reported or frame.rejected else [words.empty]
    return replace(
        frame,
        documents=reported,
        kept=reported - len(removed),
        recipe=recipe.to_toml(),
        in_words=recipe.in_words() + keep,
        rule=rule_in_words(recipe),
        fingerprint=recipe.fingerprint,
        versions={"neardup": __version__, **frame.versions, "Python": platform.python_version()},
        reasons=_reasons(verdicts),
        similarity=bin_similarities(verdicts.similarity[removed]),
        similarity_name=similarity_name(criterion, recipe),
        threshold=similarity_at(criterion.measure, criterion.threshold),
        families=[view.family(one) for one in chosen],
        families_total=int((alive > 0).sum()),
        largest_family=int(verdicts.family_sizes[alive[alive > 0] - 1].max(initial=0)),
        matching_examples=view.examples(matching, matches=True),
        unmatched_examples=view.examples(unmatched, matches=False),
        missing_pairs_note=known.note,
        sweep=sweep_result.sweep if sweep_result else None,
        pair_similarity=bin_similarities(similar) if known.searched else (),
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
        facts=window_fact | dict(frame.facts),
        notes=[*empty, *frame.notes, *_notes(verdicts, everything, limits, len(chosen))],
        wording=words,
        lags=duplicate_lags(verdicts),
    )


def _reasons(verdicts: Verdicts) -> list[tuple[str, int, str]]:
    places = verdicts.duplicates
    exact, equal = verdicts.exact[places], verdicts.equal[places] & ~verdicts.exact[places]
    why = np.where(exact, 1, np.where(equal, 2, 3)) if verdicts.reasons is None else verdicts.reasons[places]
    keeper = "its keeper" if verdicts.times is None else "an item in the window"
    before = "an earlier document" if verdicts.times is None else "the item it repeats"
    meanings = (
        f"the same text as {before}, byte for byte",
        f"other bytes, but the same features as {before}",
        f"other features, but similar enough to {keeper}",
    )
    return [
        (name, int((why == at).sum()), meaning)
        for at, (name, meaning) in enumerate(zip(REASONS[1:], meanings, strict=True), 1)
    ]


def _notes(verdicts: Verdicts, everything: bool, limits: ReportLimits, shown: int) -> list[str]:
    found, words = [], FLOW if verdicts.times is not None else BATCH
    families = int((np.unique(verdicts.family[verdicts.duplicates]) > 0).sum())
    if shown < families:
        found.append(
            f"{shown:,} of {families:,} families are shown: the {limits.families:,} largest and a random "
            f"{shown - limits.families:,} of the others ({option('--report-families', 'families')})."
        )
    if verdicts.family_sizes.max(initial=0) > DROPPED_LISTED + 1:
        found.append(
            f"Up to {KEPT_LISTED} {words.kept} and {DROPPED_LISTED} {words.dropped} {words.documents} of a family are "
            f"listed, those least similar to their {words.keeper}."
            if words is BATCH
            else f"Up to {DROPPED_LISTED} duplicates of a family are listed, those least similar to their originals."
        )
    removed = len(verdicts.duplicates)
    if removed > limits.rows:
        listed = f"{limits.rows:,} of {removed:,} ({option('--report-rows', 'rows')})"
        way_out = option("--duplicates FILE writes all of them", "result.dropped has all of them")
        found.append(
            f"The list of dropped documents holds a random {listed}; {way_out}."
            if words is BATCH
            else f"The list of duplicates holds the latest {listed}."
        )
    if words is FLOW and not everything:
        found.append(
            "A flow does not compare duplicates with each other. Those listed with the same original were compared for "
            "this page."
        )
    return found


@dataclass(frozen=True, slots=True)
class _ReportDocuments:
    """Builds the entries of families and pairs, with texts if they are still available."""

    _verdicts: Verdicts
    _criterion: Criterion
    _known: KnownPairs
    _sources: ReportSources
    _texts: Mapping[int, ShownDocument]
    #: Which listed documents with the same keeper match each other; None if unknown.
    _matching: set[tuple[int, int]] | None
    _dropped_at: Mapping[int, str]

    def family(self, listed: _ListedFamily) -> Family:
        verdicts, unmatched = self._verdicts, self._unmatched(listed.dropped_rows)
        members = [
            self._member(place, (unmatched or {}).get(place, [])) for place in (*listed.kept_rows, *listed.dropped_rows)
        ]
        places, connected, at = verdicts.members(listed.number), verdicts.families, listed.number - 1
        repeated, count = places[verdicts.keeper_rows[places] != ORIGINAL], len(places)
        equal = (
            verdicts.equal[repeated] if verdicts.reasons is None else verdicts.reasons[repeated] < REASONS.index(NEAR)
        )
        family = Family(
            number=listed.number,
            documents=count,
            kept=count - len(repeated),
            members=members,
            # If the text of the original is not available, that of a duplicate names the family.
            lead=next(filter(None, (document_lead(member.document) for member in members)), ""),
            equal=bool(equal.all()),
            smallest=float(verdicts.similarity[repeated].min() if connected is None else connected.smallest[at]),
            unmatched_pairs=None if unmatched is None else sum(map(len, unmatched.values())) // 2,
        )
        if connected is None or unmatched is None:
            return family
        pairs, others = int(connected.pairs[at]), 0
        if verdicts.present is not None:
            others = count - int(verdicts.present[places].sum())
        all_pairs = (count * (count - 1) - others * (others - 1)) // 2
        return replace(family, pairs=pairs, mean=float(connected.mean[at]), complete=pairs == all_pairs)

    def _shown(self, place: int) -> ShownDocument:
        shown = self._texts.get(place) or ShownDocument(self._verdicts.id(place), "", "", is_missing=True)
        times = self._verdicts.times
        return shown if times is None else shown._replace(time=format_time(int(times[place])))

    def _member(self, place: int, unmatched: Sequence[int]) -> Member:
        verdicts, dropped_at = self._verdicts, self._dropped_at.get(place, "")
        other = int(verdicts.keeper_rows[place])
        if other == ORIGINAL:
            return Member(document=self._shown(place), reason=KEPT, dropped_at=dropped_at)
        return Member(
            document=self._shown(place),
            reason=verdicts.reason(place),
            keeper=ShownDocument(verdicts.keeper(place), "", "", is_missing=True)
            if other == ELSEWHERE
            else self._shown(other),
            similarity=float(verdicts.similarity[place]),
            keeper_reason=verdicts.keeper_reason(place),
            evidence=self._sources.evidence(place),
            unmatched_ids=[verdicts.id(one) for one in unmatched],
            dropped_at=dropped_at,
        )

    def _unmatched(self, members: Sequence[int]) -> dict[int, list[int]] | None:
        """Return for each dropped document the rows with the same keeper that do not match it; None if unknown."""
        if self._matching is None:
            return None
        of, known = self._verdicts.keeper_rows, [place for place in members if place in self._texts]
        unmatched: dict[int, list[int]] = {place: [] for place in members}
        for one, other in combinations(known, 2):
            if of[one] == of[other] and (min(one, other), max(one, other)) not in self._matching:
                unmatched[one].append(other)
                unmatched[other].append(one)
        return unmatched

    def examples(self, pairs: _Pairs, *, matches: bool) -> list[Example]:
        describe, what = self._known.describe_counts, threshold_name(self._criterion)
        found = []
        for left, right, similarity, edge in zip(*(column.tolist() for column in pairs), strict=True):
            value = format_similarity(what, similarity, distance=self._criterion.distance)
            alike = f"{value} apart" if what == BITS else f"{what} {value}"
            head = f"{alike}: {'a match' if matches else 'no match'}"
            counts = describe(edge) if describe is not None and edge >= 0 and what != BITS else ""
            description = f"{head}; {counts}" if counts else head
            found.append(Example(self._shown(left), self._shown(right), similarity, matches, description))
        return found


def _drop_string(column: Bools) -> str:
    return "".join("01"[state] for state in column.astype(int).tolist())
