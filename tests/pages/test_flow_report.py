"""Reports of flows against plain loops over their verdicts, and their threshold sweep against replays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.pages.diff import ShownDocument
from neardup.pages.report import FLOW, Report, ReportLimits, ReportSources, build_report
from neardup.pages.report_page import build_charts, report_page
from neardup.pages.sweep import SweepResult, sweep_thresholds
from neardup.pages.verdicts import COPY, ELSEWHERE, KEPT, NEAR, NO_TIME, ORIGINAL, KnownPairs, Verdicts
from neardup.recipe import Recipe
from neardup.search.margin import criterion_of
from neardup.stream.document import Document
from neardup.stream.index import Index, latest_time
from neardup.stream.replay import Item, ReplaySettings
from neardup.stream.replay_report import find_relaxed_pairs
from neardup.times import utc

RECIPE = Recipe(features="words:1", threshold=0.5)
HOUR = 3_600_000_000


def flow_of(drawn: list[tuple[int, int]], *, earlier: int = 0) -> Verdicts:
    """Return verdicts: for each item how far back its keeper is (0: none), and the similarity in twentieths."""
    keepers = [at - back if 0 < back <= at else ORIGINAL for at, (back, _) in enumerate(drawn)]
    similarity = np.array([share / 20 if keepers[at] >= 0 else 0.0 for at, (_, share) in enumerate(drawn)])
    return Verdicts(
        ids=pa.array([f"id-{at}" for at in range(len(drawn))], pa.large_string()),
        times=np.arange(len(drawn)) * HOUR,
        keeper_rows=np.array(keepers, np.int64),
        similarity=similarity,
        exact=similarity == 1.0,
        equal=similarity == 1.0,
        earlier_count=earlier,
    )


def report_of(
    flow: Verdicts,
    limits: ReportLimits | None = None,
    known: KnownPairs | None = None,
    missing: tuple[int, ...] = (),
    rejected: tuple[tuple[str, int], ...] = (),
) -> Report:
    def text(row: int) -> str:
        return f"text of item {row} " + " ".join(f"word{row}-{at}" for at in range(8))

    def matching_pairs(documents: Mapping[int, ShownDocument]) -> set[tuple[int, int]]:
        return {(one, other) for one in documents for other in documents if one < other}

    sources = ReportSources(
        documents=lambda rows: {
            row: ShownDocument(f"id-{row}", f"Title {row}", text(row)) for row in rows if row not in missing
        },
        leads=lambda rows: {row: text(row) for row in rows.tolist() if row not in missing},
        evidence=lambda row: f"evidence of {row}",
        matching_pairs=matching_pairs,
    )
    frame = Report(
        title="A flow",
        command="neardup replay <x>",
        inputs=["in.jsonl"],
        missing_text="It has left.",
        rejected=rejected,
    )
    rule: dict[str, Any] = {"recipe": RECIPE, "criterion": criterion_of(RECIPE), "has_sweep": True, "window": "24h"}
    return build_report(frame, flow, sources, limits or ReportLimits(), known=known, **rule)


def original_of(flow: Verdicts, row: int) -> int:
    while flow.keeper_rows[row] >= 0:
        row = int(flow.keeper_rows[row])
    return row


@settings(max_examples=25)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(10, 20)), max_size=40), st.integers(0, 5))
def test_a_report_counts_and_lists_what_a_plain_loop_finds(drawn: list[tuple[int, int]], earlier: int) -> None:
    flow = flow_of(drawn, earlier=min(earlier, len(drawn)))
    report = report_of(flow, ReportLimits(families=1000, rows=1000))
    reported = range(flow.earlier_count, len(drawn))
    dropped = [row for row in reported if flow.keeper_rows[row] != ORIGINAL]
    assert (report.documents, report.kept) == (len(reported), len(reported) - len(dropped))
    assert sum(report.similarity) == len(dropped)
    assert [report.similarity[min(share * 5, 99)] for share in range(10, 21)] == [
        sum(drawn[row][1] == share for row in dropped) for share in range(10, 21)
    ]
    sizes = Counter(original_of(flow, row) for row in range(len(drawn)))
    originals = {original_of(flow, row) for row in dropped}
    assert report.families_total == len(report.families) == len(originals)
    assert report.largest_family == max((sizes[row] for row in originals), default=0)
    for family in report.families:
        original = int(family.members[0].document.id.removeprefix("id-"))
        assert original in originals
        assert (family.documents, len(family.members)) == (sizes[original], min(sizes[original], 9))
        assert [member.reason for member in family.members].count(KEPT) == family.kept == 1
        others = [row for row in range(len(drawn)) if original_of(flow, row) == original and row != original]
        assert family.smallest == min(flow.similarity[others])
        assert family.unmatched_pairs == 0
        for member in family.members[1:]:
            row = int(member.document.id.removeprefix("id-"))
            assert member.keeper is not None
            assert member.keeper.id == f"id-{flow.keeper_rows[row]}"
            assert member.similarity == flow.similarity[row]
            assert member.reason == (COPY if flow.exact[row] else NEAR)
            assert member.evidence == f"evidence of {row}"
            share = float(flow.similarity[row])
            assert member.dropped_at == "".join("01"[share >= round(0.5 + step / 100, 2)] for step in range(51))
    assert [row.id for row in report.rows] == [f"id-{row}" for row in reversed(dropped)]
    assert report.rows_total == len(dropped)
    near = sorted(flow.similarity[row] for row in dropped if not flow.exact[row])
    assert [example.similarity for example in report.matching_examples][:1] == near[:1]
    assert len(report.matching_examples) == min(len(near), 10)
    assert not report.unmatched_examples
    assert report.wording is FLOW
    assert report.facts["window"] == "24h; items are compared with the originals in it"


@pytest.mark.parametrize("rejected", [(), (("no text", 1),)])
def test_an_input_of_rejected_records_is_not_called_empty(rejected: tuple[tuple[str, int], ...]) -> None:
    assert ("No item arrived." in report_of(flow_of([]), rejected=rejected).notes) == (not rejected)


def test_missing_texts_and_keepers_have_their_places_in_a_report() -> None:
    report = report_of(flow_of([(0, 10), (1, 12), (2, 13)]), missing=(0, 2))
    (family,) = report.families
    assert family.lead == "Title 1"
    assert [member.document.is_missing for member in family.members] == [True, False, True]
    page = report_page(report)
    # Three members and two pairs.
    assert page.count("It has left.") == 5
    assert "text of item 1" in page
    flow = replace(flow_of([(0, 10), (1, 12)]), keeper_rows=np.array([ELSEWHERE, 0]), elsewhere={0: "old"})
    report = report_of(replace(flow, similarity=np.array([0.7, 0.6])))
    (family,) = report.families
    assert (report.documents, report.kept, family.kept, family.members[0].similarity) == (2, 0, 0, 0.7)
    assert family.members[0].keeper is not None
    assert family.members[0].keeper.id == "old"
    assert [row.keeper for row in report.rows] == ["id-0", "old"]


def test_known_pairs_below_the_threshold_are_shown() -> None:
    flow = flow_of([(0, 10), (1, 12), (0, 10), (0, 10), (0, 10)])
    pairs = {(0, 1): 0.6, (0, 2): 0.45, (1, 3): 0.49, (2, 4): 0.48, (0, 4): 0.44}
    left, right = np.array(list(pairs)).T
    similarity = np.array(list(pairs.values()))
    known = KnownPairs(left=left, right=right, similarity=similarity, relaxed_threshold=Fraction(2, 5))
    report = report_of(flow, ReportLimits(cases=2), known)
    # 3 was never compared with 1, which was stopped.
    examples = [(one.left.id, one.right.id) for one in report.unmatched_examples]
    assert examples == [("id-2", "id-4"), ("id-0", "id-2")]
    assert report.sweep is not None
    assert (report.sweep.is_exact, report.sweep.thresholds[0], report.missing_pairs_note) == (True, 0.4, "")
    assert sum(report.pair_similarity) == 5
    with_copy = replace(known, similarity=np.array([1.0, *similarity[1:]]))
    assert sum(report_of(replace(flow, exact=flow.similarity > 0), known=with_copy).pair_similarity) == 4


def test_lags_between_duplicates_and_their_originals_are_counted() -> None:
    times = np.arange(7) * HOUR
    # The original of the last one came at an unknown time.
    times[5] = NO_TIME
    report = report_of(replace(flow_of([(0, 10), (1, 12), (0, 10), (3, 12), (2, 20), (0, 10), (1, 12)]), times=times))
    assert [lag for lag in report.lags if lag[1]] == [("10 min to 1 h", 1), ("1 to 3 h", 2)]
    (_, chart), _ = build_charts(report)
    assert "<td>100%</td>" in chart.figures_table
    assert not report_of(flow_of([(0, 10)])).lags


#: Hours between arrivals, and texts of few words, so that many are similar.
FLOWS = st.lists(
    st.tuples(st.integers(0, 9), st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=6, unique=True)),
    min_size=1,
    max_size=24,
)


class Replayed:
    """A flow, its verdicts by some settings, and sweeps over it."""

    def __init__(self, drawn: list[tuple[int, list[str]]], settings: ReplaySettings) -> None:
        self.settings, self.items, time = settings, list[Item](), 10**15
        for row, (hours, words) in enumerate(drawn):
            time += hours * HOUR
            self.items.append(Item(f"id-{row}", " ".join(words), time, 2 * len(words) - 1))
        self.verdicts = self.verdicts_of(settings.recipe)

    def verdicts_of(self, recipe: Recipe) -> list[Any]:
        own = self.settings
        options: dict[str, Any] = {"window": own.window, "window_by": own.window_by, "against": own.against}
        with Index(recipe, now=latest_time, **options) as index:
            return [index.add(Document(item.id, item.text, utc(item.time))) for item in self.items]

    def dropped_at(self, threshold: float) -> list[bool]:
        return [one.is_duplicate for one in self.verdicts_of(self.settings.recipe.changed(threshold=threshold))]

    def sweep(self, known: KnownPairs | float) -> SweepResult:
        """Return the sweep over known pairs, or over those of a margin."""
        if isinstance(known, float):
            known = find_relaxed_pairs(self.items, self.settings, known, len(self.items), report=lambda *_: None)
        rows = {item.id: row for row, item in enumerate(self.items)}
        exact = np.array([verdict.kind == "exact" for verdict in self.verdicts], np.bool_)
        flow = Verdicts(
            ids=None,
            times=np.array([item.time for item in self.items], np.int64),
            keeper_rows=np.array([ORIGINAL if v.of is None else rows[v.of] for v in self.verdicts], np.int64),
            similarity=np.array([verdict.similarity or 0.0 for verdict in self.verdicts]),
            exact=exact,
            equal=exact,
        )
        criterion, everything = criterion_of(self.settings.recipe), self.settings.against
        watched = np.arange(len(flow))
        return sweep_thresholds(flow, criterion, known, watched=watched, everything=everything == "everything")


SWEPT = RECIPE.changed(threshold=0.6)
WINDOWS = st.sampled_from(["6h", "12h", "endless", "4 documents"])
AGAINST = st.sampled_from(["originals", "everything"])


@settings(max_examples=20)
@given(FLOWS, WINDOWS, AGAINST)
def test_a_sweep_equals_a_replay_at_each_threshold(
    drawn: list[tuple[int, list[str]]], window: str, against: str
) -> None:
    replayed = Replayed(drawn, ReplaySettings(SWEPT, window, against=against))
    found = replayed.sweep(0.3)
    sweep = found.sweep
    assert (sweep.is_exact, sweep.thresholds[0], sweep.thresholds[sweep.own_index]) == (True, 0.3, 0.6)
    for at, threshold in list(enumerate(sweep.thresholds))[::17]:
        dropped = replayed.dropped_at(threshold)
        assert found.dropped[at].tolist() == dropped
        assert (sweep.dropped[at], sweep.kept[at]) == (sum(dropped), len(dropped) - sum(dropped))


@settings(max_examples=15)
@given(FLOWS, AGAINST)
def test_without_relaxed_pairs_only_stricter_thresholds_are_counted(
    drawn: list[tuple[int, list[str]]], against: str
) -> None:
    replayed = Replayed(drawn, ReplaySettings(SWEPT, "12h", against=against))
    sweep = replayed.sweep(KnownPairs.empty(criterion_of(SWEPT).threshold, "not searched")).sweep
    assert (sweep.own_index, sweep.thresholds[0], sweep.is_exact) == (0, 0.6, against == "everything")
    assert "Only stricter thresholds are shown" in sweep.note
    for threshold, dropped in zip(sweep.thresholds, sweep.dropped, strict=True):
        assert dropped == sum(v.is_duplicate and v.similarity >= threshold for v in replayed.verdicts)
    if against == "everything":
        assert sweep.dropped[sweep.thresholds.index(0.8)] == sum(replayed.dropped_at(0.8))
