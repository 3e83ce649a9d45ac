"""Reports of flows: families, pairs and lists from verdicts, beside what a plain look at the verdicts says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.pages.builder import ReportContext, ReportSources, build_report
from neardup.pages.diff import ShownDocument
from neardup.pages.report import COPY, FLOW, KEPT, NEAR, Report, ReportLimits
from neardup.pages.report_charts import build_charts
from neardup.pages.report_page import report_page
from neardup.pages.verdicts import ELSEWHERE, ORIGINAL, KnownPairs, Verdicts
from neardup.recipe import Recipe
from neardup.search.margin import criterion_of

RECIPE = Recipe(features="words:1", threshold=0.5)
HOUR = 3_600_000_000

#: For each item how far back what it repeats is (0: nothing), and how similar in twentieths.
verdicts = st.lists(st.tuples(st.integers(0, 6), st.integers(10, 20)), max_size=40)


def flow_of(drawn: list[tuple[int, int]], *, before: int = 0) -> Verdicts:
    of = [at - back if 0 < back <= at else ORIGINAL for at, (back, _) in enumerate(drawn)]
    near = np.array([share / 20 if of[at] >= 0 else 0.0 for at, (_, share) in enumerate(drawn)])
    return Verdicts(
        ids=pa.array([f"id-{at}" for at in range(len(drawn))], pa.large_string()),
        times=np.arange(len(drawn)) * HOUR,
        keeper_rows=np.array(of, np.int64),
        similarity=near,
        exact=near == 1.0,
        equal=near == 1.0,
        earlier_count=before,
    )


def text(place: int) -> str:
    return f"text of item {place} " + " ".join(f"word{place}-{at}" for at in range(8))


def sources(gone: set[int] | None = None, apart: bool = False) -> ReportSources:
    left = gone or set()

    def texts(places: list[int]) -> dict[int, ShownDocument]:
        return {at: ShownDocument(f"id-{at}", f"Title {at}", text(at)) for at in places if at not in left}

    def all_but(texts: Mapping[int, ShownDocument]) -> set[tuple[int, int]]:
        return set() if apart else {(one, other) for one in texts for other in texts if one < other}

    return ReportSources(
        documents=texts,
        leads=lambda places: {at: text(at) for at in places.tolist() if at not in left},
        evidence=lambda place: f"evidence of {place}",
        matching_pairs=all_but,
    )


ABOUT = ReportContext(
    title="A flow",
    command="neardup replay <x>",
    inputs=["in.jsonl"],
    recipe=RECIPE,
    criterion=criterion_of(RECIPE),
    has_sweep=True,
    window="24h",
    missing_text="It has left.",
)


def report_of(
    flow: Verdicts, limits: ReportLimits | None = None, around: KnownPairs | None = None, **more: Any
) -> Report:
    return build_report(flow, ABOUT, sources(**more), limits or ReportLimits(), around)


def root_of(flow: Verdicts, place: int) -> int:
    """Where an item goes back to, step by step."""
    while flow.keeper_rows[place] >= 0:
        place = int(flow.keeper_rows[place])
    return place


@settings(max_examples=30)
@given(verdicts, st.integers(0, 5))
def test_what_a_plain_look_says(drawn: list[tuple[int, int]], before: int) -> None:
    flow = flow_of(drawn, before=min(before, len(drawn)))
    report = report_of(flow, ReportLimits(families=1000, rows=1000))
    reported = range(flow.earlier_count, len(drawn))
    gone = [at for at in reported if flow.keeper_rows[at] != ORIGINAL]
    assert (report.documents, report.kept) == (len(reported), len(reported) - len(gone))
    assert sum(report.similarity) == len(gone)
    assert [report.similarity[min(share * 5, 99)] for share in range(10, 21)] == [
        sum(drawn[at][1] == share for at in gone) for share in range(10, 21)
    ]
    groups = Counter(root_of(flow, at) for at in range(len(drawn)))
    alive = {root_of(flow, at) for at in gone}
    assert report.families_total == len(report.families) == len(alive)
    assert report.largest_family == max((groups[root] for root in alive), default=0)
    for family in report.families:
        root = int(family.members[0].document.id.removeprefix("id-"))
        assert root in alive
        assert family.documents == groups[root]
        assert len(family.members) == min(groups[root], 9)
        assert [member.reason for member in family.members].count(KEPT) == family.kept == 1
        others = [at for at in range(len(drawn)) if root_of(flow, at) == root and at != root]
        assert family.smallest == min(flow.similarity[others])
        assert family.unmatched_pairs == 0
        for member in family.members[1:]:
            at = int(member.document.id.removeprefix("id-"))
            assert member.keeper is not None
            assert member.keeper.id == f"id-{flow.keeper_rows[at]}"
            assert member.similarity == flow.similarity[at]
            assert member.reason == (COPY if flow.exact[at] else NEAR)
            assert f"evidence of {at}" in member.evidence
            share = float(flow.similarity[at])
            assert member.dropped_at == "".join("01"[share >= round(0.5 + step / 100, 2)] for step in range(51))
    assert [row.id for row in report.rows] == [f"id-{at}" for at in reversed(gone)]
    assert report.rows_total == len(gone)
    names = {family.number: {member.document.id for member in family.members} for family in report.families}
    assert all(row.id in names[row.family] or len(names[row.family]) == 9 for row in report.rows)
    near = sorted(flow.similarity[at] for at in gone if flow.keeper_rows[at] >= 0 and not flow.exact[at])
    assert [case.similarity for case in report.matching_examples][:1] == near[:1]
    assert len(report.matching_examples) == min(len(near), 10)
    assert not report.unmatched_examples
    assert report.wording is FLOW


def test_texts_that_have_left() -> None:
    flow = flow_of([(0, 10), (1, 12), (2, 13)])
    report = report_of(flow, gone={0, 2})
    (family,) = report.families
    assert family.lead == "Title 1"
    assert [member.document.is_missing for member in family.members] == [True, False, True]
    page = report_page(report)
    # Of three members and of the two pairs.
    assert page.count("It has left.") == 5
    assert "text of item 1" in page


def test_what_repeats_an_item_from_elsewhere() -> None:
    flow = replace(flow_of([(0, 10), (1, 12)]), keeper_rows=np.array([ELSEWHERE, 0]), elsewhere={0: "old"})
    flow = replace(flow, similarity=np.array([0.7, 0.6]))
    report = report_of(flow)
    assert (report.documents, report.kept) == (2, 0)
    (family,) = report.families
    assert (family.kept, family.members[0].similarity) == (0, 0.7)
    assert family.members[0].keeper is not None
    assert family.members[0].keeper.id == "old"
    assert [row.keeper for row in report.rows] == ["id-0", "old"]


def test_pairs_below_the_threshold_where_they_are_known() -> None:
    flow = flow_of([(0, 10), (1, 12), (0, 10), (0, 10), (0, 10)])
    pairs = {(0, 1): 0.6, (0, 2): 0.45, (1, 3): 0.49, (2, 4): 0.48, (0, 4): 0.44}
    around = KnownPairs(
        left=np.array([left for left, _ in pairs]),
        right=np.array([right for _, right in pairs]),
        similarity=np.array(list(pairs.values())),
        relaxed_threshold=criterion_of(RECIPE).threshold * 4 / 5,
    )
    report = report_of(flow, ReportLimits(cases=2), around)
    # 3 was never compared with 1, which was stopped.
    assert [(case.left.id, case.right.id) for case in report.unmatched_examples] == [("id-2", "id-4"), ("id-0", "id-2")]
    assert report.missing_pairs_note == ""
    assert report.sweep is not None
    assert report.sweep.is_exact
    assert report.sweep.thresholds[0] == 0.4
    assert sum(report.pair_similarity) == 5
    same = replace(around, similarity=np.array([1.0, 0.45, 0.49, 0.48, 0.44]))
    assert sum(report_of(replace(flow, exact=flow.similarity > 0), ReportLimits(), same).pair_similarity) == 4


def test_how_long_after_its_original_a_duplicate_came() -> None:
    report = report_of(flow_of([(0, 10), (1, 12), (0, 10), (3, 12), (2, 20)]))
    assert [lag for lag in report.lags if lag[1]] == [("10 min to 1 h", 1), ("1 to 3 h", 2)]
    (_, chart), _ = build_charts(report)
    assert chart.key == "lag"
    assert '<td class="text" dir="auto">100%</td>' in chart.figures_table or "<td>100%</td>" in chart.figures_table
    assert not report_of(flow_of([(0, 10)])).lags
