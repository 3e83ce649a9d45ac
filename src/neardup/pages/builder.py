"""Builds the report of a run or a flow from its verdicts, the known pairs and the documents."""

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
    Family,
    Member,
    Report,
    ReportLimits,
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportContext:
    """What a report says besides its verdicts; the fields of ``Report`` have the same names."""

    #: The heading, and the command line.
    title: str
    command: str
    inputs: Sequence[str]
    recipe: Recipe
    #: The last measure to decide, and its threshold.
    criterion: Criterion
    #: Whether the known pairs tell what other thresholds would do.
    has_sweep: bool
    #: The window of a flow; empty for a run.
    window: str = ""
    #: Whether items are compared with duplicates as well, not only with originals.
    everything: bool = False
    missing_text: str = ""
    rejected: Sequence[tuple[str, int]] = ()
    stages: Sequence[Mapping[str, Any]] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    #: Notes besides those on what the report itself cuts.
    notes: Sequence[str] = ()


#: The most dropped and kept members to list of a family.
DROPPED_LISTED, KEPT_LISTED = 8, 4
#: Examples of different families are looked for among this many pairs, the nearest to the threshold.
_PAIRS_SCANNED = 2000
#: Characters of a title, or of the beginning of a text, in a list.
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


class _ExamplePair(NamedTuple):
    """A shown pair: rows, similarity, whether it matches, and its index among the known pairs or -1."""

    left: int
    right: int
    similarity: float
    matches: bool
    edge: int


class _RankedPairs(NamedTuple):
    """Pairs to choose from, the nearest to the threshold first; ``edge`` has their indices among the known pairs."""

    left: Integers
    right: Integers
    similarity: Floats
    matches: bool
    edge: Integers

    def example(self, at: int) -> _ExamplePair:
        edge = int(self.edge[at])
        return _ExamplePair(int(self.left[at]), int(self.right[at]), float(self.similarity[at]), self.matches, edge)


class _Examples(NamedTuple):
    """The pairs of a report."""

    matching: list[_ExamplePair]
    unmatched: list[_ExamplePair]

    @property
    def all_pairs(self) -> list[_ExamplePair]:
        return [*self.matching, *self.unmatched]


def _rank_pairs(verdicts: Verdicts, known: KnownPairs, everything: bool) -> tuple[_RankedPairs, _RankedPairs]:
    """Return the matching and the other pairs, ranked."""
    if known.matching is not None:
        return _rank_known_pairs(known, known.matching, matches=True), _rank_known_pairs(
            known, ~known.matching, matches=False
        )
    near = verdicts.duplicates[~verdicts.exact[verdicts.duplicates] & (verdicts.keeper_rows[verdicts.duplicates] >= 0)]
    near = near[np.argsort(verdicts.similarity[near], kind="stable")]
    matching = _RankedPairs(verdicts.keeper_rows[near], near, verdicts.similarity[near], True, np.full(len(near), -1))
    # Of pairs that do not match, those of an item and an original that it was compared with.
    is_kept = verdicts.keeper_rows == ORIGINAL
    return matching, _rank_known_pairs(known, is_kept[known.right] & (everything | is_kept[known.left]), matches=False)


def _rank_known_pairs(known: KnownPairs, chosen: Bools, *, matches: bool) -> _RankedPairs:
    at = np.flatnonzero(chosen)
    at = at[np.argsort(known.similarity[at] if matches else -known.similarity[at], kind="stable")]
    return _RankedPairs(known.left[at], known.right[at], known.similarity[at], matches, at)


def _choose_examples(verdicts: Verdicts, known: KnownPairs, limits: ReportLimits, everything: bool) -> _Examples:
    """Choose the pairs to read: the nearest on each side, and two of one family only if there are no others."""
    # A document without a family is a group of its own.
    group = np.where(verdicts.family > 0, -verdicts.family, np.arange(len(verdicts)))
    # Each side is chosen by itself, so the nearest pair of each is shown.
    above, below = (
        [*map(pairs.example, _select_unrelated(pairs, limits.cases, group))]
        for pairs in _rank_pairs(verdicts, known, everything)
    )
    return _Examples(above, below)


def _select_unrelated(pairs: _RankedPairs, count: int, group: Integers) -> list[int]:
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
    verdicts: Verdicts,
    context: ReportContext,
    sources: ReportSources,
    limits: ReportLimits,
    known: KnownPairs | None = None,
) -> Report:
    """Return the report of a run or a flow."""
    criterion, recipe = context.criterion, context.recipe
    known = known or KnownPairs.empty(criterion.threshold, _UNSEARCHED_NOTE)
    chosen, examples = _choose_families(verdicts, limits), _choose_examples(verdicts, known, limits, context.everything)
    members = np.array([place for one in chosen for place in (*one.kept_rows, *one.dropped_rows)], np.int64)
    sweep_result, is_flow = None, verdicts.times is not None
    words = FLOW if is_flow else BATCH
    reported = len(verdicts) - verdicts.earlier_count if verdicts.present is None else int(verdicts.present.sum())
    if context.has_sweep and reported:
        bands = recipe.search == "lsh" and not criterion.second
        sweep_result = sweep_thresholds(
            verdicts, criterion, known, watched=members, everything=context.everything, is_exact=not bands
        )
    places = {*members.tolist(), *(place for one in examples.all_pairs for place in one[:2])}
    places |= {int(verdicts.keeper_rows[place]) for place in list(places) if verdicts.keeper_rows[place] >= 0}
    view = _ReportDocuments(verdicts, criterion, known, sources, sources.documents(sorted(places)), chosen)
    if sweep_result is not None:
        view.add_sweep(sweep_result, members)
    rows, removed = listed_rows(verdicts, limits), verdicts.duplicates
    begins, alive = sources.leads(rows), np.unique(verdicts.family[removed])
    similar = known.similarity[known.similarity < 1] if is_flow else known.similarity
    against = "everything in it" if context.everything else "the originals in it"
    window = {"window": f"{context.window}; items are compared with {against}"} if context.window else {}
    keep = "" if is_flow else f", keep {recipe.keep}"
    return Report(
        title=context.title,
        documents=reported,
        kept=reported - len(removed),
        command=context.command,
        inputs=context.inputs,
        recipe=recipe.to_toml(),
        in_words=recipe.in_words() + keep,
        rule=rule_in_words(recipe),
        fingerprint=recipe.fingerprint,
        versions={"neardup": __version__, **context.versions, "Python": platform.python_version()},
        reasons=_reasons(verdicts),
        rejected=context.rejected,
        similarity=bin_similarities(verdicts.similarity[removed]),
        similarity_name=similarity_name(criterion, recipe),
        threshold=similarity_at(criterion, criterion.threshold),
        families=[view.family(listed) for listed in chosen],
        families_total=int((alive > 0).sum()),
        largest_family=int(verdicts.family_sizes[alive[alive > 0] - 1].max(initial=0)),
        matching_examples=[view.example(pair) for pair in examples.matching],
        unmatched_examples=[view.example(pair) for pair in examples.unmatched],
        missing_pairs_note=known.note,
        sweep=sweep_result.sweep if sweep_result else None,
        pair_similarity=bin_similarities(similar) if known.searched else (),
        stages=context.stages,
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
        facts=window | dict(context.facts),
        notes=[
            *_empty_input_notes(context, words, reported),
            *context.notes,
            *_notes(verdicts, context, limits, len(chosen)),
        ],
        wording=words,
        lags=duplicate_lags(verdicts),
        missing_text=context.missing_text,
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


def _empty_input_notes(context: ReportContext, words: Wording, reported: int) -> list[str]:
    """Return a note if there was no input."""
    if reported or context.rejected:
        return []
    return ["The input had no document." if words is BATCH else "No item arrived."]


def _notes(verdicts: Verdicts, context: ReportContext, limits: ReportLimits, shown: int) -> list[str]:
    """Return notes on what is sampled or cut."""
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
    if words is FLOW and not context.everything:
        found.append(
            "A flow does not compare duplicates with each other. Those listed with the same original were compared for "
            "this page."
        )
    return found


class _ReportDocuments:
    """Builds the entries of families and pairs, with texts if they are still available."""

    def __init__(
        self,
        verdicts: Verdicts,
        criterion: Criterion,
        known: KnownPairs,
        sources: ReportSources,
        texts: Mapping[int, ShownDocument],
        chosen: Sequence[_ListedFamily],
    ) -> None:
        self._verdicts, self._criterion, self._known, self._sources, self._texts = (
            verdicts,
            criterion,
            known,
            sources,
            texts,
        )
        # All families at once, because each call may build an index.
        rows = [row for one in chosen for row in one.dropped_rows if len(one.dropped_rows) > 1]
        self._matching = sources.matching_pairs({row: texts[row] for row in rows if row in texts})
        self._dropped_at: dict[int, str] = {}

    def add_sweep(self, sweep_result: SweepResult, members: Integers) -> None:
        """Add what other thresholds would do to these documents."""
        self._dropped_at = dict(zip(members.tolist(), map(_drop_string, sweep_result.dropped.T), strict=True))

    def family(self, listed: _ListedFamily) -> Family:
        """Return a family with its listed members."""
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

    def example(self, pair: _ExamplePair) -> Example:
        """Return two documents to read side by side."""
        criterion, known = self._criterion, self._known
        what = threshold_name(criterion)
        value = format_similarity(what, pair.similarity, distance=criterion.distance)
        numbers = (
            known.describe_counts(pair.edge)
            if known.describe_counts is not None and pair.edge >= 0 and what != BITS
            else ""
        )
        alike = f"{value} apart" if what == BITS else f"{what} {value}"
        head = f"{alike}: {'a match' if pair.matches else 'no match'}"
        description = "; ".join(filter(None, (head, numbers)))
        return Example(self._shown(pair.left), self._shown(pair.right), pair.similarity, pair.matches, description)


def _drop_string(column: Bools) -> str:
    return "".join("01"[state] for state in column.astype(int).tolist())
