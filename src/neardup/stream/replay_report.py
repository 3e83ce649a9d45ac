"""The report of a replay: duplicates and why, pairs near the threshold, and the cost of the check by hour."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from fractions import Fraction
from math import ceil, floor, isfinite, log10
from typing import Any, TypedDict

import altair as alt
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.documents import Corpus
from neardup.documents.column_paths import column_words
from neardup.documents.output import OutputFile
from neardup.documents.records import Names
from neardup.features.reading import Progress
from neardup.features.statistics import Statistics
from neardup.kernels import Integers
from neardup.pages.charts import COLOURS, dashed_rules, decade_ticks, finish_chart, log_axis, time_axis, tooltips
from neardup.pages.diff import ShownDocument
from neardup.pages.documents import DocumentReader
from neardup.pages.html import Chart, Html, facts, figures, section, table
from neardup.pages.page import check_drawing
from neardup.pages.report import Report, ReportLimits, ReportSources, build_report, document_lead
from neardup.pages.report_page import Section, report_page
from neardup.pages.sweep import counts_in_words
from neardup.pages.verdicts import ELSEWHERE, NO_TIME, ORIGINAL, KnownPairs, Verdicts
from neardup.recipe import Recipe
from neardup.runtime import Clock
from neardup.search.margin import criterion_of, has_threshold, relaxed_recipe
from neardup.search.window import WindowLength
from neardup.stream.document import Document, Verdict
from neardup.stream.index import matching_pairs
from neardup.stream.replay import HOUR, Hour, Item, ReplaySettings, ReplayTotals, Timeline, read_items
from neardup.times import utc

#: The largest number of pairs to keep: so many per item, plus a constant.
_PAIRS_PER_ITEM, _EXTRA_PAIRS = 20, 1_000_000


def find_relaxed_pairs(
    items: Iterable[Item],
    settings: ReplaySettings,
    margin: float,
    total: int,
    *,
    statistics: Statistics | None = None,
    report: Progress,
) -> KnownPairs:
    """Return the pairs of items within one window that reach a relaxed threshold.

    ``margin``: how far the threshold is relaxed; 0 for not at all. Raising it finds more pairs, slower. Raises
    ``RecipeError`` if the relaxed threshold is outside the range of the measure.
    """
    recipe, classifier = settings.recipe, settings.classifier
    threshold = criterion_of(recipe, classifier).threshold
    if not margin:
        return KnownPairs.empty(
            threshold, "Pairs below the threshold were not searched; --report-margin 0.2 searches for them."
        )
    relaxed = relaxed_recipe(recipe, margin)
    if isinstance(relaxed, str):
        return KnownPairs.empty(threshold, relaxed)
    permissive = None if classifier is None else classifier.without_cut()
    relaxed_settings = replace(settings, recipe=relaxed, classifier=permissive, against="everything", store=None)
    length, max_pairs = WindowLength.parse(settings.window, settings.window_by), _PAIRS_PER_ITEM * total + _EXTRA_PAIRS
    times, left, right, similarity = array("q"), array("q"), array("q"), array("d")
    with relaxed_settings.index(statistics) as index:
        for place, item in enumerate(items):
            if place % 256 == 0:
                report("margin", place, total)
            document = Document(str(place), item.text, utc(item.time), title=item.title)
            # A query has the time of the clock, which the item may advance; in windows of documents it is the next.
            if length.unit in ("documents", "endless"):
                found = index.query(document)
                index.add(document)
            else:
                index.add(document)
                found = index.query(document)
            times.append(item.time)
            for neighbor in found:
                other = int(neighbor.id)
                if other < place and _share_window(length, item.time, times[other], place - other):
                    left.append(other)
                    right.append(place)
                    similarity.append(neighbor.similarity)
            if len(left) > max_pairs:
                message = f"More than {max_pairs:,} pairs reach the relaxed threshold, so none is shown; lower it."
                return KnownPairs.empty(threshold, message)
    return KnownPairs(
        left=np.array(left, np.int64),
        right=np.array(right, np.int64),
        similarity=np.array(similarity, np.float64),
        relaxed_threshold=Fraction(0) if permissive is not None else criterion_of(relaxed).threshold,
    )


def _share_window(length: WindowLength, time: int, other: int, apart: int) -> bool:
    """Return whether one window can contain two items with these times, so many items apart."""
    if length.value is None:
        return True
    if length.unit == "documents":
        return apart <= length.value
    scale = HOUR if length.unit == "hour" else 1
    return abs(time // scale - other // scale) <= length.value


def evidence_in_words(verdict: Verdict | None, recipe: Recipe) -> str:
    """Return why a document is a duplicate: the classifier's measures, or the counts behind its similarity."""
    if verdict is not None and verdict.score is not None:
        return verdict.evidence
    return counts_in_words(None if verdict is None else verdict.counts, recipe)


def flow_verdicts(
    ids: pa.Array, times: Integers, duplicates: Mapping[int, Verdict], earlier_count: int = 0
) -> Verdicts:
    """Return the table of the verdicts of a flow, in order of arrival.

    ``ids``, ``times`` (microseconds since 1970): of all documents; ``duplicates``: the verdicts on the duplicates, by
    row. A keeper that is no earlier row of the table is elsewhere, and so is each keeper of the ``earlier_count`` first
    documents, which are older than the report.
    """
    places, verdicts = np.array(list(duplicates), np.int64), list(duplicates.values())
    names = pa.array([verdict.of for verdict in verdicts], pa.large_string())
    rows = pc.index_in(names, value_set=ids).fill_null(len(ids)).to_numpy(zero_copy_only=False).astype(np.int64)
    rows[(rows >= places) | (places < earlier_count)] = ELSEWHERE
    of, similarity = np.full(len(ids), ORIGINAL, np.int64), np.zeros(len(ids))
    exact, equal = np.zeros(len(ids), np.bool_), np.zeros(len(ids), np.bool_)
    of[places] = rows
    similarity[places] = [verdict.similarity or 0.0 for verdict in verdicts]
    exact[places] = [verdict.kind == "exact" for verdict in verdicts]
    equal[places] = [verdict.has_equal_features for verdict in verdicts]
    return Verdicts(
        ids=ids,
        times=times,
        keeper_rows=of,
        similarity=similarity,
        exact=exact,
        equal=equal,
        earlier_count=earlier_count,
        elsewhere={at: verdict.of or "" for at, verdict in duplicates.items() if of[at] == ELSEWHERE},
    )


#: Bytes of texts to read for the list of duplicates.
_MAX_TEXT_BYTES = 64_000_000
_EARLIER_DOCUMENTS = "The store held documents from before the corpus, so pairs just below the threshold are unknown."


class ReplayReportSettings(TypedDict):
    """Options of the report of a replay."""

    output: str  #: the page
    margin: float  #: how far below the threshold to search; 0 for not at all
    limits: ReportLimits  #: how many entries are listed
    command: str  #: the command line


class ReplayReport:
    """Collects the duplicates while a replay runs, and writes its report."""

    def __init__(
        self,
        page: ReplayReportSettings,
        settings: ReplaySettings,
        corpus: Corpus,
        timeline: Timeline,
        statistics: Statistics | None,
    ) -> None:
        self._page, self._settings, self._statistics = page, settings, statistics
        self._corpus, self._timeline = corpus, timeline
        self._reader = DocumentReader(corpus, Names(timeline.rows, timeline.ids), content=settings.recipe.content)
        #: The verdicts on duplicates, by number in order of arrival.
        self._duplicates: dict[int, Verdict] = {}
        self._arrived = 0
        #: The number of documents of a store before the first arrived one, in the order of the report.
        self._earlier_count = 0
        self._relaxed_pairs: KnownPairs | None = None

    def add(self, verdicts: Sequence[Verdict]) -> None:
        """Add the verdicts on the next documents."""
        self._duplicates |= {at: one for at, one in enumerate(verdicts, self._arrived) if one.is_duplicate}
        self._arrived += len(verdicts)

    def search_margin(self, report: Progress) -> None:
        """Replay once more with a relaxed threshold, to find pairs just below it."""
        self._relaxed_pairs = find_relaxed_pairs(
            read_items(self._corpus, self._timeline),
            self._settings,
            self._page["margin"],
            self._arrived,
            statistics=self._statistics,
            report=report,
        )

    def write(
        self, facts: Mapping[str, Any], hours: Sequence[Hour], totals: ReplayTotals, downstream: float, clock: Clock
    ) -> None:
        """Write the page, complete or not at all; ``facts`` is the text of its settings."""
        data = replay_page(facts, hours, totals.as_dict(downstream), self._build_report(totals, clock)).encode()
        with OutputFile(self._page["output"]) as file:
            file.write(data + b"\n")

    def _build_report(self, totals: ReplayTotals, clock: Clock) -> Report:
        settings, flow, relaxed_pairs = self._settings, self._flow(), self._relaxed_pairs
        self._earlier_count = flow.earlier_count
        if relaxed_pairs is not None and flow.earlier_count:
            relaxed_pairs = KnownPairs.empty(relaxed_pairs.relaxed_threshold, _EARLIER_DOCUMENTS)
        flags = ", ".join(f"{count:,} {flag}" for flag, count in sorted(totals.flags.items()))
        fact_texts = {"flags": flags, "classifier": totals.domain_counts.description}
        frame = Report(
            title="What a flow would have stopped, and why",
            command=self._page["command"],
            inputs=self._corpus.inputs,
            missing_text="This item was in the store before the corpus; its text is not available.",
            rejected=sorted(self._corpus.rejected.counts.items(), key=lambda item: (-item[1], item[0])),
            stages=clock.stages,
            facts={name: text for name, text in fact_texts.items() if text},
        )
        sources = ReportSources(
            documents=self._documents, leads=self._leads, evidence=self._evidence, matching_pairs=self._matching_pairs
        )
        return build_report(
            frame,
            flow,
            sources,
            self._page["limits"],
            recipe=settings.recipe,
            criterion=criterion_of(settings.recipe, settings.classifier),
            has_sweep=has_threshold(settings.recipe)
            and (settings.classifier is None or isfinite(settings.classifier.cut)),
            known=relaxed_pairs,
            window=settings.window,
            everything=settings.against == "everything",
        )

    def _flow(self) -> Verdicts:
        timeline, verdicts = self._timeline, list(self._duplicates.values())
        names = self._reader.names.of_input(timeline.order).cast(pa.large_string())
        arrived = names.combine_chunks() if isinstance(names, pa.ChunkedArray) else names
        keeper_ids = pa.array([verdict.of for verdict in verdicts], pa.large_string())
        # Of documents that were already in a store, only the ids are known.
        older = pc.unique(keeper_ids.filter(pc.invert(pc.is_in(keeper_ids, value_set=arrived))))
        times = np.concatenate([np.full(len(older), NO_TIME, np.int64), timeline.times[timeline.order]])
        duplicates = {len(older) + at: verdict for at, verdict in self._duplicates.items()}
        return flow_verdicts(pa.concat_arrays([older, arrived]), times, duplicates, len(older))

    def _positions(self, places: Sequence[int] | Integers) -> Integers:
        return self._timeline.order[np.array(places, np.int64) - self._earlier_count]

    def _documents(self, places: Sequence[int]) -> dict[int, ShownDocument]:
        in_corpus = [place for place in places if place >= self._earlier_count]
        positions = self._positions(in_corpus)
        self._reader.load(positions)
        return dict(zip(in_corpus, map(self._reader.document, positions.tolist()), strict=True))

    def _leads(self, places: Integers) -> dict[int, str]:
        sizes = self._timeline.sizes[self._positions(places)]
        # The latest first, as they are listed.
        listed = places[::-1][np.cumsum(sizes[::-1]) <= _MAX_TEXT_BYTES].tolist()
        return {place: document_lead(shown) for place, shown in self._documents(listed).items()}

    def _evidence(self, place: int) -> str:
        return evidence_in_words(self._duplicates.get(place - self._earlier_count), self._settings.recipe)

    def _matching_pairs(self, texts: Mapping[int, ShownDocument]) -> set[tuple[int, int]] | None:
        titles, documents = self._timeline.titles, {}
        for place, shown in texts.items():
            at = int(self._positions([place])[0])
            title = "" if titles is None else str(titles[at].as_py() or "")
            documents[place] = Document(str(place), shown.text, utc(int(self._timeline.times[at])), title=title)
        return matching_pairs(documents, self._settings.recipe, self._settings.classifier, self._statistics)


#: The largest number of hours that are drawn and listed.
_MAX_HOURS = 600
_COLOUR = COLOURS[0]
#: Column titles of the tables for the charts.
_COLUMNS = {
    "items": "items",
    "held": "in the window",
    "bytes": "window MB",
    "cpu_us_median": "median µs",
    "cpu_us_p99": "99th percentile, µs",
}
Rows = Sequence[Mapping[str, Any]]


def replay_page(settings: Mapping[str, Any], hours: Sequence[Hour], totals: Mapping[str, Any], report: Report) -> str:
    """Return the page of a replay.

    ``settings`` are those of ``ReplaySettings.as_dict``, the ``inputs``, and the ``batch`` size; ``totals`` those of
    ``ReplayTotals.as_dict``. Raises ``OutputError`` if the packages for charts are not installed.
    """
    check_drawing("a page")
    full = settings["hours_full"]
    begins_full = None if full is None or not hours else _add_hours(hours[0].start, full)
    if begins_full is not None and begins_full > hours[-1].start:
        begins_full = None
    # A page with a year of hours would load too slowly.
    step = max(-(-len(hours) // _MAX_HOURS), 1)
    ordinal = {2: "second", 3: "third"}.get(step, f"{step}th")
    remark = f"; every {ordinal} hour that had items, --json has all" if step > 1 else ""
    rows = [hour.as_dict() for hour in hours[::-1][::step][::-1]]
    check = section("check", "What the check costs, and saves", Html(f"<p>{_verdict(totals)}</p>"))
    sections = [Section(check)]
    if rows:
        charts = [_time_chart(rows, remark), _memory_chart(rows, begins_full, remark)]
        curves = section("curves", "Time and memory of the check", figures(charts), _meanings(settings["batch"]))
        sections.append(Section(curves, charts))
    return report_page(replace(report, facts={"replayed": _basis(settings)} | dict(report.facts)), sections)


def _time_chart(hours: Rows, remark: str) -> Chart:
    # A logarithmic axis needs values above 0.
    names = ("cpu_us_median", "cpu_us_p99")
    rows = [_chart_row(hour) | {name: max(round(hour[name], 1), 0.1) for name in names} for hour in hours]
    low = 10.0 ** floor(log10(min(row["cpu_us_median"] for row in rows)))
    high = max(10.0 ** ceil(log10(max(row["cpu_us_p99"] for row in rows))), 10 * low)
    axis, scale = log_axis(decade_ticks(low, high), format=",~g"), alt.Scale(type="log", domain=[low, high])
    y = alt.Y("cpu_us_median:Q", scale=scale, title="µs per item", axis=axis)
    median = alt.Chart(alt.Data(values=rows)).encode(x=_hours(), y=y)
    line = median.mark_rule(color=_COLOUR, opacity=0.35).encode(y2="cpu_us_p99:Q")
    points = median.mark_point(color=_COLOUR, filled=True, size=22, opacity=1).encode(tooltip=_hour_tooltips())
    return Chart(
        "hour",
        "Time by hour",
        f"point: median; line: up to the 99th percentile{remark}",
        f"Points of the median time per item, in microseconds on a logarithmic axis, for {len(hours)} hours.",
        finish_chart(alt.layer(line, points)),
        _hours_table(hours, ("items", "cpu_us_median", "cpu_us_p99")),
    )


def _memory_chart(hours: Rows, full: str | None, remark: str) -> Chart:
    """Return the chart of the window's memory by hour, with a line at the hour when the window is first full."""
    rows = [_chart_row(hour) | {"mb": hour["bytes"] / 1e6} for hour in hours]
    y = alt.Y("mb:Q", title="MB", axis=alt.Axis(format=",.2~f"))
    chart = alt.Chart(alt.Data(values=rows)).encode(x=_hours(), y=y)
    # Both in one layer, so that the page holds their rows only once.
    line_and_points = alt.layer(
        chart.mark_line(color=_COLOUR, strokeWidth=1.2, interpolate="step-after"),
        chart.mark_point(color=_COLOUR, filled=True, size=18, opacity=1).encode(tooltip=_hour_tooltips()),
    )
    layers = [line_and_points]
    if full is not None:
        layers.append(dashed_rules([{"hour": full}]).encode(x=_hours()))
    return Chart(
        "memory",
        "Memory of the window by hour",
        ("dashed: the window is full; from then on memory" if full else "memory")
        + f" follows the arrivals, not the size of the corpus{remark}",
        f"A line of the window's memory in MB, for {len(hours)} hours; at the end {hours[-1]['bytes'] / 1e6:,.1f} MB.",
        finish_chart(alt.layer(*layers)),
        _hours_table(hours, ("held", "bytes")),
    )


def _hours() -> alt.X:
    return alt.X("hour:T", scale=alt.Scale(type="utc"), title="hour of the flow (UTC)", axis=time_axis())


def _hour_tooltips() -> list[alt.Tooltip]:
    counts = {name: (",", name) for name in ("originals", "duplicates", "held")}
    return tooltips(hour=("", "hour"), **counts, cpu_us_median=(",.0f", "median µs"))


def _chart_row(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in ("items", "bytes")}


def _add_hours(hour: str, hours: float) -> str:
    try:
        moment = datetime.fromisoformat(hour) + timedelta(hours=hours)
    except OverflowError:
        return hour
    return moment.isoformat(timespec="minutes").replace("+00:00", "Z")


def _basis(settings: Mapping[str, Any]) -> str:
    against = "originals only" if settings["against"] == "originals" else "everything in the window"
    store = ", each verdict on disk before the next" if settings["store"] and settings["batch"] == 1 else ""
    store = store or (", verdicts on disk" if settings["store"] else "")
    columns = f" ({column_words(settings['columns'])})" if "columns" in settings else ""
    return (
        f"{', '.join(settings['inputs'])}{columns}; "
        f"recipe {settings['recipe']} ({settings['fingerprint']}); window "
        f"{settings['window']} by {settings['window_by']}, compared with {against}{store}."
    )


def _verdict(totals: Mapping[str, Any]) -> str:
    if not totals["items"]:
        return "No document arrived."
    kept = (
        f"<strong>{totals['items']:,} items, {totals['duplicates']:,} duplicates ({totals['share']:.1%})</strong>, "
        f"{totals['exact']:,} of them byte for byte; from {totals['first']} to {totals['last']}."
    )
    spent, saved = totals["wall_us_mean"] / 1e6, totals["share"] * totals["downstream_s"]
    return (
        f"{kept} A check takes {_seconds(spent)} per item, and saves {totals['share']:.1%} of "
        f"{totals['downstream_s']:g} s downstream, {_seconds(saved)} per item: "
        f"{totals['saved_by_spent']:,.0f} times as much."
    )


def _seconds(value: float) -> str:
    return f"{value * 1e6:,.0f} µs" if value < 1e-3 else f"{value * 1e3:,.1f} ms" if value < 1 else f"{value:,.2f} s"


def _hours_table(hours: Rows, names: Sequence[str]) -> Html:
    head = ["hour (UTC)", *(_COLUMNS[name] for name in names)]
    return table(head, [[hour["hour"], *(_cell(hour, name) for name in names)] for hour in hours], tall=True)


def _cell(hour: Mapping[str, Any], name: str) -> str:
    return f"{hour[name] / 1e6:,.1f}" if name == "bytes" else f"{hour[name]:,.0f}"


def _meanings(batch: int) -> Html:
    each = (
        "each item was judged and timed by itself"
        if batch == 1
        else f"at most {batch:,} items of one hour were judged at once, and each counts as their mean"
    )
    meanings = {
        "time per item": f"Processor time of the judging thread in microseconds: features, search and entry into the "
        f"window, but not reading. Here {each}. The time of a check above is wall time, including writing to disk.",
        "in the window": "Documents in the window at the end of the hour.",
        "window MB": "Memory of the window without the texts.",
        "hours": "Hours without items have no row.",
    }
    return facts(meanings)
