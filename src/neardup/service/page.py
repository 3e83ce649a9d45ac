"""The page of the service: a frame without data, and the parts that its script loads with the caller's token."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from itertools import islice
from typing import Any

from neardup.pages.diff import ShownDocument
from neardup.pages.diff_view import beginning, changed, describe_change, side_by_side
from neardup.pages.html import Html, closing, facts, join_html, opening, render, section, tiles
from neardup.pages.page import page
from neardup.service.bodies import EvidenceQuery, PageQuestion, PageRelease, ReleaseBody
from neardup.service.calls import Calls, Reply
from neardup.service.indexes import Indexes, NamedIndex
from neardup.stream.document import Document, Verdict
from neardup.times import utc
from neardup.version import __version__

#: The content security policy of all answers but pages.
POLICY = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
#: The most similar texts shown, stopped documents per page, and results of a search.
_MAX_SIMILAR, _STOPPED_PER_PAGE, _MAX_RESULTS = 10, 25, 25
#: The numbers of pages of stopped documents that can be shown.
_PAGE_COUNTS = [str(number) for number in range(1, 41)]
#: The number of latest documents that a search covers.
_SEARCHED_DOCUMENTS = 50_000
#: The most words of a search.
_MAX_WORDS = 8


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
    body = render("service.html", tokens=tokens, version=__version__)
    return page("neardup", body, scripts=["service.js"], styles=["report.css", "service.css"], connects=True)


class PageAnswers:
    """Answers with the parts of the page, as HTML in which all texts of documents are escaped."""

    def __init__(self, indexes: Indexes, calls: Calls) -> None:
        self._indexes, self._calls = indexes, calls

    def similar(self, body: PageQuestion) -> Reply:
        """Return the documents that a text repeats, side by side with marked differences."""
        named = self._indexes.get(body.index)
        (verdict,) = named.index.check([Document("pasted", body.asked)])
        matching = named.index.query(body.asked)
        rows = matching or named.index.query(body.asked, 1)
        pasted = ShownDocument("the text above", "", body.asked)
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
        return _part(render("service_parts.html", kind="similar", message=message, cases=cases))

    def stopped(self, body: PageQuestion) -> Reply:
        """Return the documents stopped since midnight (UTC), the newest first; the text is the number of pages."""
        named = self._indexes.get(body.index)
        midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0).timestamp()
        pages = int(body.asked) if body.asked in _PAGE_COUNTS else 1
        limit = _STOPPED_PER_PAGE * pages
        rows = named.reader.latest_stopped(midnight, limit + 1)
        message = "Nothing was stopped today." if not rows else ""
        if len(rows) > limit:
            message = f"The newest {limit:,} are listed; the search below finds others."
        has_more = len(rows) > limit and str(pages + 1) in _PAGE_COUNTS
        verdicts = [row.verdict for row in islice(rows, limit)]
        return _part(self._list(named, verdicts, message, has_more=has_more))

    def found(self, body: PageQuestion) -> Reply:
        """Return the documents that have the id, or contain all words, of the text."""
        named, asked = self._indexes.get(body.index), body.asked.strip()
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
        return _part(self._list(named, verdicts, message))

    def flow(self, body: PageQuestion) -> Reply:
        """Return the counts of an index."""
        summary = self._indexes.get(body.index).as_dict()
        share = summary["duplicates"] / summary["documents"] if summary["documents"] else 0.0
        head = tiles(
            [
                (f"{summary['documents']:,}", "documents arrived", f"window {summary['window']}"),
                (f"{summary['duplicates']:,}", "stopped", f"{share:.1%}"),
                (f"{summary['held']:,}", "in the window", "new ones are compared with these"),
                (f"{summary['late']:,}", "late", "older than the window"),
            ]
        )
        if flags := {name: f"{summary[name]:,}: {text}" for name, text in _FLAG_MESSAGES.items() if summary[name]}:
            head = join_html([head, facts(flags)])
        recipe = f"{summary['recipe']}: {summary['in_words']}, against {summary['against']}"
        return _part(head, recipe=recipe, indexes=[named.name for named in self._indexes])

    async def release(self, body: PageRelease) -> Reply:
        """Release a document; browsers remove "." and ".." from every path, so its id is in the body."""
        return await self._calls.release(body.index, body.id, ReleaseBody(by=body.by), EvidenceQuery())

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


def _part(html: Html, **fields: Any) -> Reply:
    return Reply({"html": str(html), **fields}, way_out="ask for fewer documents")
