"""The page of the service: a frame without data, and the parts that its script asks for with the caller's token."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from itertools import islice
from typing import Any

from fastapi import Response
from pydantic import BaseModel

from neardup.pages.charts import COLOURS, color_scale, finish_chart, time_axis, tooltips
from neardup.pages.diff import ShownDocument
from neardup.pages.diff_view import beginning, describe_change, side_by_side
from neardup.pages.html import Chart, Html, closing, facts, join_html, opening, render, section, tiles
from neardup.pages.page import page
from neardup.service.indexes import MAIN, Indexes, NamedIndex
from neardup.service.metrics import Metrics
from neardup.stream.document import Document, Verdict
from neardup.times import utc
from neardup.version import __version__

#: What answers other than pages allow a browser.
POLICY = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
#: Texts shown beside the one that is asked about, stops that are listed, and documents that a search finds.
_SIMILAR, _STOPS, _FOUND = 10, 25, 25
#: How many times as many stops may be asked for.
_PAGES = [str(number) for number in range(1, 41)]
#: So many of the latest documents are looked through.
_AMONG = 50_000
#: What Vega calls the level of its log that has errors alone.
_ERRORS = 1
#: Words that a search goes by.
_WORDS = 8
_KINDS = ("originals", "duplicates")


class PageQuestion(BaseModel):
    """What the page asks, and of which index."""

    index: str = MAIN
    asked: str = ""


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
    return page("Calls - neardup", join_html(body), {}, styles=["service.css"])


@cache
def frame(tokens: bool) -> str:
    """Return the page without data; tokens: whether it has to ask for one."""
    charts = _charts()
    return page(
        "neardup",
        render("service.html", tokens=tokens, charts=charts, version=__version__),
        charts,
        scripts=["service.js"],
        styles=["report.css", "service.css"],
        asks=True,
    )


def _charts() -> list[Chart]:
    """Return the charts; the script of the page fills in the minutes."""
    import altair as alt

    minutes = alt.Chart(alt.NamedData("minutes"))
    x = alt.X("begin:T", title="time (UTC)", scale=alt.Scale(type="utc"), axis=time_axis())
    first, within = f"datum.kind == '{_KINDS[0]}'", ("half of them", "99 of 100")
    arrived = (
        minutes.transform_fold(list(_KINDS), as_=["kind", "count"])
        .transform_calculate(
            low=f"{first} ? 0 : datum.originals", high=f"datum.count + ({first} ? 0 : datum.originals)"
        )
        .mark_rect(strokeWidth=0.7)
        .encode(
            x=x,
            x2="end:T",
            y=alt.Y("low:Q", title="documents per minute", axis=alt.Axis(format=",d", tickMinStep=1)),
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
        minutes.transform_calculate(**{within[0]: "datum.p50", within[1]: "datum.p99"})
        .transform_fold(list(within), as_=["kind", "ms"])
        .transform_filter("isValid(datum.ms)")
        .mark_line(point=True, strokeWidth=1.5)
        .encode(
            x=x,
            y=alt.Y("ms:Q", title="answered within, ms", axis=alt.Axis(format=",d")),
            color=alt.Color("kind:N", **color_scale(within)),
            tooltip=tooltips(kind=("", "of the requests"), ms=(",", "within, ms")),
        )
    )
    shown = [
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
    # Vega draws them once before the script has minutes for them, and would warn of axes without an extent.
    quiet = {"usermeta": {"embedOptions": {"logLevel": _ERRORS}}}
    return [
        Chart(key=key, title=title, note=note, told=told, specification=finish_chart(drawn, height=220) | quiet)
        for drawn, key, title, note, told in shown
    ]


class PageAnswers:
    """What the page asks for: pieces of HTML, in which all texts of documents are escaped.

    Parameters
    ----------
    indexes, metrics
        Of the service.
    """

    def __init__(self, indexes: Indexes, metrics: Metrics) -> None:
        self._indexes, self._metrics = indexes, metrics

    @property
    def parts(self) -> dict[str, Callable[[PageQuestion], Response]]:
        """The questions, by name."""
        return {"similar": self.similar, "stopped": self.stopped, "found": self.found, "flow": self.flow}

    def similar(self, question: PageQuestion) -> Response:
        """Answer which documents a text repeats, each beside it with what differs marked."""
        named = self._indexes.get(question.index)
        (verdict,) = named.index.check([Document("pasted", question.asked)])
        matching = named.index.query(question.asked)
        found = matching or named.index.query(question.asked, 1)
        pasted = ShownDocument("the text above", "", question.asked)
        cases = [
            side_by_side(shown, pasted, words=300, head=f"{one.id}: similarity {one.similarity:.4f}")
            for one in found[:_SIMILAR]
            if (shown := _shown(named, one.id)) is not None
        ]
        said = _KINDS_SAID[verdict.kind]
        if verdict.flag == "undecidable":
            said = "Too little text to compare."
        elif not matching and found:
            said += " The nearest is shown."
        elif len(found) > _SIMILAR:
            said += f" {len(found):,} documents match; the {_SIMILAR} most similar are shown."
        return _piece(render("service_parts.html", kind="similar", said=said, cases=cases))

    def stopped(self, question: PageQuestion) -> Response:
        """Answer what was stopped since midnight (UTC), the newest first; it is asked for a number of pages."""
        named = self._indexes.get(question.index)
        midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0).timestamp()
        pages = int(question.asked) if question.asked in _PAGES else 1
        most = _STOPS * pages
        rows = named.reader.latest_stopped(midnight, most + 1)
        said = "Nothing was stopped today." if not rows else ""
        if len(rows) > most:
            said = f"The newest {most:,} are listed; the search below finds others."
        more = len(rows) > most and str(pages + 1) in _PAGES
        return _piece(self._listed(named, [row.verdict for row in islice(rows, most)], said, more=more))

    def found(self, question: PageQuestion) -> Response:
        """Answer which documents have all of some words, or that id."""
        named, asked = self._indexes.get(question.index), question.asked.strip()
        names = [asked] if named.reader.find(asked, text=False) is not None else []
        if asked:
            names += [
                name
                for name in named.reader.ids_with_words(asked.split()[:_WORDS], _FOUND, _AMONG)
                if name not in names
            ]
        verdicts = [verdict for name in names[:_FOUND] if (verdict := named.reader.verdict_of(name)) is not None]
        said = "" if verdicts else f"None of the latest {_AMONG:,} documents has this id or all of these words."
        return _piece(self._listed(named, verdicts, said))

    def flow(self, question: PageQuestion) -> Response:
        """Answer the counts of an index, and the minutes for the charts."""
        known = self._indexes.get(question.index).as_dict()
        stopped = known["duplicates"] / known["documents"] if known["documents"] else 0.0
        head = tiles(
            [
                (f"{known['documents']:,}", "documents arrived", f"window {known['window']}"),
                (f"{known['duplicates']:,}", "of them stopped", f"{stopped:.1%}"),
                (f"{known['held']:,}", "held", "new ones are compared with these"),
            ]
        )
        recipe = f"{known['recipe']}: {known['in_words']}, against {known['against']}"
        return _piece(
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

    def _listed(self, named: NamedIndex, verdicts: list[Verdict], said: str, *, more: bool = False) -> Html:
        items = []
        for verdict in verdicts:
            own = _shown(named, verdict.id)
            other = None if verdict.of is None else _shown(named, verdict.of)
            items.append(
                {
                    "verdict": verdict,
                    "time": utc(round(verdict.time * 1e6)).isoformat(" ", "seconds").removesuffix("+00:00"),
                    "own": own,
                    "change": None if own is None or other is None else describe_change(other, own),
                }
            )
        return render("service_parts.html", kind="listed", said=said, items=items, more=more, beginning=beginning)


_KINDS_SAID = {
    "original": "New: no document that is held repeats it.",
    "near": "A near-duplicate.",
    "exact": "An exact copy.",
}


def _shown(named: NamedIndex, name: str) -> ShownDocument | None:
    """Return a document for the page, None where its text is not kept any more."""
    text = named.text_of(name)
    return None if text is None else ShownDocument(name, "", text)


def _piece(html: Html, **more: Any) -> Response:
    return Response(json.dumps({"html": str(html), **more}), media_type="application/json")
