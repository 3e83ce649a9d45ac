"""The page of the service: a frame without data, and the parts that its script loads with the caller's token."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from itertools import islice
from typing import Annotated, Any

from fastapi import Response
from pydantic import BaseModel, Field

from neardup.pages.diff import ShownDocument
from neardup.pages.diff_view import beginning, changed, describe_change, side_by_side
from neardup.pages.html import Chart, Html, closing, facts, join_html, opening, render, section, tiles
from neardup.pages.page import page
from neardup.service.bodies import MAX_ID_LENGTH
from neardup.service.indexes import MAIN, Indexes, NamedIndex
from neardup.service.metrics import Metrics
from neardup.stream.document import Document, Verdict
from neardup.times import utc
from neardup.version import __version__

#: The content security policy of all answers but pages.
POLICY = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
#: Vega places ticks between whole numbers where counts are small, and would round their labels.
_WHOLE_LABELS = "datum.value % 1 ? '' : datum.label"
#: The most similar texts shown, stopped documents per page, and results of a search.
_MAX_SIMILAR, _STOPPED_PER_PAGE, _MAX_RESULTS = 10, 25, 25
#: The numbers of pages of stopped documents that can be shown.
_PAGE_COUNTS = [str(number) for number in range(1, 41)]
#: The number of latest documents that a search covers.
_SEARCHED_DOCUMENTS = 50_000
#: The log level of Vega that shows only errors.
_LOG_ERRORS = 1
#: The most words of a search.
_MAX_WORDS = 8
_KINDS = ("originals", "duplicates")


class PageQuestion(BaseModel):
    """A request of the page: its text and the index."""

    index: str = MAIN
    asked: str = ""


class PageRelease(BaseModel):
    """A release by a person at the page."""

    id: str
    by: Annotated[str, Field(min_length=1, max_length=MAX_ID_LENGTH)]
    index: str = MAIN


def calls_page(openapi: Mapping[str, Any]) -> str:
    """Return a page of all calls, from the description of the service."""
    calls = {
        f"{method.upper()} {path}": call["description"].partition("\n\n")[0].replace("\n", " ")
        for path, methods in openapi["paths"].items()
        for method, call in methods.items()
    }
    body = [
        opening("Calls of the service", f"neardup {__version__}"),
        section("calls", "Calls", facts(calls)),
        closing("Programs read the same from /openapi.json."),
    ]
    return page("Calls - neardup", join_html(body), styles=["service.css"])


@cache
def frame(tokens: bool) -> str:
    """Return the page without data; with ``tokens``, it has a field for the caller's token."""
    charts = _charts()
    return page(
        "neardup",
        render("service.html", tokens=tokens, charts=charts, version=__version__),
        charts,
        scripts=["service.js"],
        styles=["report.css", "service.css"],
        connects=True,
    )


def _charts() -> list[Chart]:
    """Return the charts without data, which the script of the page fills in."""
    import altair as alt

    from neardup.pages.charts import COLOURS, color_scale, finish_chart, time_axis, tooltips

    minutes = alt.Chart(alt.NamedData("minutes"))
    x = alt.X("begin:T", title="time (UTC)", scale=alt.Scale(type="utc"), axis=time_axis())
    is_first, quantiles = f"datum.kind == '{_KINDS[0]}'", ("half of them", "99 of 100")
    arrived = (
        minutes.transform_fold(list(_KINDS), as_=["kind", "count"])
        .transform_calculate(
            low=f"{is_first} ? 0 : datum.originals", high=f"datum.count + ({is_first} ? 0 : datum.originals)"
        )
        .mark_rect(strokeWidth=0.7)
        .encode(
            x=x,
            x2="end:T",
            y=alt.Y("low:Q", title="documents per minute", axis=alt.Axis(format=",d", labelExpr=_WHOLE_LABELS)),
            y2="high:Q",
            color=alt.Color("kind:N", **color_scale(_KINDS)),
            stroke=alt.Stroke("kind:N", **color_scale(_KINDS)),
            tooltip=tooltips(**{kind: (",", kind) for kind in _KINDS}),
        )
    )
    share = minutes.mark_circle(size=45, color=COLOURS[1]).encode(
        x=x,
        y=alt.Y("share:Q", title="share stopped", axis=alt.Axis(format="%"), scale=alt.Scale(domain=[0, 1])),
        tooltip=tooltips(share=(".1%", "share stopped"), duplicates=(",", "duplicates")),
    )
    latency = (
        minutes.transform_calculate(**{quantiles[0]: "datum.p50", quantiles[1]: "datum.p99"})
        .transform_fold(list(quantiles), as_=["kind", "ms"])
        .transform_filter("isValid(datum.ms)")
        .mark_line(point=True, strokeWidth=1.5)
        .encode(
            x=x,
            y=alt.Y("ms:Q", title="answered within, ms", axis=alt.Axis(format=",d")),
            color=alt.Color("kind:N", **color_scale(quantiles)),
            tooltip=tooltips(kind=("", "of the requests"), ms=(",", "within, ms")),
        )
    )
    rows = [
        (
            arrived,
            "arrived",
            "What arrived, by minute",
            "the last day, since the service was started",
            "Originals and duplicates that arrived in each minute of the last day.",
        ),
        (
            share,
            "share",
            "Share stopped, by minute",
            "duplicates among all that arrived",
            "The share of duplicates among what arrived in each minute of the last day.",
        ),
        (
            latency,
            "latency",
            "Time to an answer, by minute",
            "of requests that entered documents; times are rounded up to 1, 2, 5, 10, 20, 50 ms and so on",
            "In how many milliseconds half, and 99 of 100, of the requests of each minute were answered.",
        ),
    ]
    # Vega draws the charts once without data, and would log warnings about axes without an extent.
    quiet = {"usermeta": {"embedOptions": {"logLevel": _LOG_ERRORS}}}
    return [
        Chart(key, title, note, description, finish_chart(chart, height=220) | quiet)
        for chart, key, title, note, description in rows
    ]


class PageAnswers:
    """Answers with the parts of the page, as HTML in which all texts of documents are escaped."""

    def __init__(self, indexes: Indexes, metrics: Metrics) -> None:
        self._indexes, self._metrics = indexes, metrics

    def similar(self, question: PageQuestion) -> Response:
        """Return the documents that a text repeats, side by side with marked differences."""
        named = self._indexes.get(question.index)
        (verdict,) = named.index.check([Document("pasted", question.asked)])
        matching = named.index.query(question.asked)
        rows = matching or named.index.query(question.asked, 1)
        pasted = ShownDocument("the text above", "", question.asked)
        cases = [
            side_by_side(shown, pasted, words=300, head=f"{row.id}: similarity {row.similarity:.4f}")
            for row in rows[:_MAX_SIMILAR]
            if (shown := _shown(named, row.id)) is not None
        ]
        message = _KIND_MESSAGES[verdict.kind]
        if verdict.flag == "undecidable":
            message = "Too little text to compare."
        elif not matching and rows:
            message += " The nearest is shown."
        elif len(rows) > _MAX_SIMILAR:
            message += f" {len(rows):,} documents match; the {_MAX_SIMILAR} most similar are shown."
        return _json_part(render("service_parts.html", kind="similar", message=message, cases=cases))

    def stopped(self, question: PageQuestion) -> Response:
        """Return the documents stopped since midnight (UTC), the newest first; the text is the number of pages."""
        named = self._indexes.get(question.index)
        midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0).timestamp()
        pages = int(question.asked) if question.asked in _PAGE_COUNTS else 1
        limit = _STOPPED_PER_PAGE * pages
        rows = named.reader.latest_stopped(midnight, limit + 1)
        message = "Nothing was stopped today." if not rows else ""
        if len(rows) > limit:
            message = f"The newest {limit:,} are listed; the search below finds others."
        has_more = len(rows) > limit and str(pages + 1) in _PAGE_COUNTS
        verdicts = [row.verdict for row in islice(rows, limit)]
        return _json_part(self._list(named, verdicts, message, has_more=has_more))

    def found(self, question: PageQuestion) -> Response:
        """Return the documents that have the id, or contain all words, of the text."""
        named, asked = self._indexes.get(question.index), question.asked.strip()
        names = [asked] if named.reader.find(asked, text=False) is not None else []
        if asked:
            names += [
                name
                for name in named.reader.ids_with_words(asked.split()[:_MAX_WORDS], _MAX_RESULTS, _SEARCHED_DOCUMENTS)
                if name not in names
            ]
        verdicts = [verdict for name in names[:_MAX_RESULTS] if (verdict := named.reader.verdict_of(name)) is not None]
        message = (
            ""
            if verdicts
            else f"None of the latest {_SEARCHED_DOCUMENTS:,} documents has this id or all of these words."
        )
        return _json_part(self._list(named, verdicts, message))

    def flow(self, question: PageQuestion) -> Response:
        """Return the counts of an index, and the minutes for the charts."""
        summary = self._indexes.get(question.index).as_dict()
        share = summary["duplicates"] / summary["documents"] if summary["documents"] else 0.0
        head = tiles(
            [
                (f"{summary['documents']:,}", "documents arrived", f"window {summary['window']}"),
                (f"{summary['duplicates']:,}", "stopped", f"{share:.1%}"),
                (f"{summary['held']:,}", "in the window", "new ones are compared with these"),
                (f"{summary['late']:,}", "late", "older than the window: compared by their exact text only"),
            ]
        )
        if flags := {name: f"{summary[name]:,}: {text}" for name, text in _FLAG_MESSAGES.items() if summary[name]}:
            head = join_html([head, facts(flags)])
        recipe = f"{summary['recipe']}: {summary['in_words']}, against {summary['against']}"
        return _json_part(
            head,
            recipe=recipe,
            indexes=[named.name for named in self._indexes],
            minutes=[
                {
                    "begin": 1000 * minute.begin,
                    "end": 1000 * (minute.begin + 60),
                    "originals": minute.originals,
                    "duplicates": minute.duplicates,
                    "share": minute.duplicates / (minute.originals + minute.duplicates),
                    "p50": minute.quantile_ms(0.5),
                    "p99": minute.quantile_ms(0.99),
                }
                for minute in self._metrics.minutes
                if minute.originals + minute.duplicates
            ],
        )

    def _list(self, named: NamedIndex, verdicts: list[Verdict], message: str, *, has_more: bool = False) -> Html:
        items = []
        for verdict in sorted(verdicts, key=lambda verdict: -verdict.time):
            document = _shown(named, verdict.id)
            original = None if verdict.of is None else _shown(named, verdict.of)
            items.append(
                {
                    "verdict": verdict,
                    "time": utc(round(verdict.time * 1e6)).isoformat(" ", "seconds").removesuffix("+00:00"),
                    "document": document,
                    "change": None if document is None or original is None else describe_change(original, document),
                }
            )
        return render(
            "service_parts.html",
            kind="listed",
            message=message,
            items=items,
            has_more=has_more,
            beginning=beginning,
            changed=changed,
        )


#: What the flags of verdicts mean.
_FLAG_MESSAGES = {
    "late": "older than the window, so compared by their exact text only",
    "ahead": "further ahead than the window is long",
    "future": "later than the clock of this machine",
    "undecidable": "too little text to compare",
}
_KIND_MESSAGES = {
    "original": "New: it repeats no document of the window.",
    "near": "A near-duplicate.",
    "exact": "An exact copy.",
}


def _shown(named: NamedIndex, name: str) -> ShownDocument | None:
    """Return a document for the page, None if its text is no longer kept."""
    text = named.text_of(name)
    return None if text is None else ShownDocument(name, "", text)


def _json_part(html: Html, **fields: Any) -> Response:
    return Response(json.dumps({"html": str(html), **fields}), media_type="application/json")
