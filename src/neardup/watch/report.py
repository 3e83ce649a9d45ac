"""The report of a store, from its verdicts and the files in the output folders."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from math import isfinite

import numpy as np
import pyarrow as pa

from neardup.classifier.classifier import Classifier
from neardup.classifier.domain import DomainCounts
from neardup.documents.output import OutputFile, check_place
from neardup.errors import OutputError, RecipeError
from neardup.kernels import Integers
from neardup.pages.diff import ShownDocument
from neardup.pages.html import Html, join_html, section, table, text
from neardup.pages.numbers import format_count
from neardup.pages.report import Report, ReportLimits, ReportSources, build_report, document_lead
from neardup.pages.report_page import Section, report_page
from neardup.pages.verdicts import COPY, NEAR, Verdicts, format_time
from neardup.recipe import Recipe
from neardup.search.margin import criterion_of, has_threshold
from neardup.stream.document import Arrival, Document
from neardup.stream.index import matching_pairs, read_stored_recipe
from neardup.stream.replay_report import evidence_in_words, flow_verdicts
from neardup.stream.store import Release, StoreReader
from neardup.text.contents import content_of
from neardup.times import utc
from neardup.watch.placed import PlacedItems
from neardup.watch.settings import FOLDERS, QUARANTINED

#: The most characters of a first line that counts as a title, and the characters of a text shown in lists.
_MAX_TITLE_LENGTH, _LEAD_LENGTH = 160, 400


class StoredFlow:
    """The items of a store in the form that a report takes."""

    def __init__(self, reader: StoreReader, placed_items: PlacedItems, content: str, max_items: int) -> None:
        self._reader, self._placed_items, self._content = reader, placed_items, content
        rows = reader.latest_documents(max_items)
        first = rows[0].serial if rows else 0
        row_ids = {row.id for row in rows}
        keeper_ids = dict.fromkeys(row.verdict.of for row in rows if row.verdict.of is not None)
        found = (reader.find(name, text=False) for name in keeper_ids if name not in row_ids)
        older = sorted((one for one in found if one is not None and one.serial < first), key=lambda one: one.serial)
        self._rows = [*older, *rows]
        #: The items, preceded by the earlier originals that they repeat.
        ids = pa.array([row.id for row in self._rows], pa.large_string())
        times = np.array([round(row.verdict.time * 1e6) for row in self._rows], np.int64)
        duplicates = {at: row.verdict for at, row in enumerate(self._rows) if row.verdict.is_duplicate}
        self.flow = flow_verdicts(ids, times, duplicates, len(older))

    def row(self, place: int) -> Arrival:
        """Return the row of an item, without its text."""
        return self._rows[place]

    def texts(self, places: Sequence[int]) -> dict[int, ShownDocument]:
        """Return the texts of items in the window, and of others that are still in the output folders."""
        found = {}
        for place in places:
            row = self._rows[place]
            if (text := self._text(row)) is not None:
                text = content_of(text, self._content)
                head, feed, _ = text[: _MAX_TITLE_LENGTH + 1].partition("\n")
                found[place] = ShownDocument(row.id, head.strip() if feed else "", text)
        return found

    def _text(self, row: Arrival) -> str | None:
        stored = self._reader.find(row.id, text=True)
        if stored is not None and stored.text is not None:
            return stored.text
        found = self._placed_items.find(row.id, row.origin, is_duplicate=row.verdict.is_duplicate)
        return None if found is None else found[0].text

    def releases(self) -> list[Release]:
        """Return the releases of reported items, the latest first."""
        reported = {row.serial for row in self._rows[self.flow.earlier_count :]}
        found = self._reader.releases(min(reported, default=0))
        return [release for release in reversed(found) if release.serial in reported]

    def matching_pairs(
        self, texts: Mapping[int, ShownDocument], recipe: Recipe, classifier: Classifier | None
    ) -> set[tuple[int, int]] | None:
        """Return which items match each other; None if that depends on missing data."""
        needs_titles = classifier is not None and classifier.vector.needs_titles
        documents = {}
        for place, shown in texts.items():
            row = self._rows[place]
            stored = self._reader.find(row.id, text=True) if needs_titles else None
            title = (stored and stored.title) or shown.title
            documents[place] = Document(str(place), shown.text, utc(round(row.verdict.time * 1e6)), title=title)
        return matching_pairs(documents, recipe, classifier)

    def words(self, places: Integers) -> dict[int, str]:
        """Return the beginnings of the texts of duplicates in the window, or else of the documents they repeat."""
        of = self.flow.keeper_rows
        serials = [self._rows[place].serial for place in places.tolist()]
        keeper_serials = [self._rows[of[place]].serial if of[place] >= 0 else -1 for place in places.tolist()]
        begin = self._reader.text_beginnings(sorted({*serials, *keeper_serials}), _LEAD_LENGTH)
        found = {}
        for place, serial, keeper_serial in zip(places.tolist(), serials, keeper_serials, strict=True):
            text = begin.get(serial) or begin.get(keeper_serial)
            if text:
                found[place] = document_lead(ShownDocument("", "", text))
        return found


#: The most bytes that are read from the folders of originals and duplicates.
_MAX_READ_BYTES = 64_000_000
#: Text near the top of a report; only a file with it is replaced without --force.
_REPORT_MARK = b"- neardup</title>"
_HEAD_BYTES = 1 << 12


def write_report(
    store: str,
    output: str,
    *,
    items: int = 100_000,
    limits: ReportLimits | None = None,
    command: str = "",
    classifier: Classifier | None = None,
    force: bool = False,
) -> Verdicts:
    """Write a report of a store, which a watcher may be using, complete or not at all; return the reported verdicts.

    ``items``: the number of latest items reported; raising it takes time and memory in proportion. ``limits``: how many
    entries are listed; ``command``: the command line; ``classifier``: the one that judged, where one did; ``force``:
    whether a file that is no report may be replaced. Raises ``NeardupError`` if the store cannot be read, or the page
    cannot be written.
    """
    with StoreReader(store) as reader:
        folders = json.loads(reader.state(FOLDERS) or "{}")
        if not output.endswith(".html"):
            raise OutputError(f"{output} does not end in .html, but a report is a page: name it so")
        # A nightly report replaces the previous one.
        places = [place for name, place in folders.items() if name != "content"]
        check_place(output, [*places, store], force or _is_report(output))
        if classifier is None:
            recipe = read_stored_recipe(reader)
        elif classifier.recipe.fingerprint == reader.meta("fingerprint"):
            recipe = classifier.recipe
        else:
            raise RecipeError(f"the verdicts of {store} are not of that classifier; name the one they were given by")
        originals, duplicates, content = (folders.get(name, "") for name in ("originals", "duplicates", "content"))
        placed_items = PlacedItems(originals, duplicates, content, _MAX_READ_BYTES)
        stored_flow = StoredFlow(reader, placed_items, recipe.content, items)
        flow = stored_flow.flow
        frame = Report(
            title="What was stopped, and why",
            command=command,
            inputs=[folders.get("inbox", store)],
            missing_text="The text is no longer available: the item has left the window, and its file was moved.",
            rejected=Counter(json.loads(reader.state(QUARANTINED) or "{}")).most_common(),
            facts=_facts(store, reader),
            notes=_notes(len(flow) - flow.earlier_count, reader.counts["arrived"]),
        )
        sources = ReportSources(
            documents=stored_flow.texts,
            leads=stored_flow.words,
            evidence=lambda place: evidence_in_words(stored_flow.row(place).verdict, recipe),
            matching_pairs=lambda texts: stored_flow.matching_pairs(texts, recipe, classifier),
        )
        report = build_report(
            frame,
            flow,
            sources,
            limits or ReportLimits(),
            recipe=recipe,
            criterion=criterion_of(recipe, classifier),
            has_sweep=has_threshold(recipe) and (classifier is None or isfinite(classifier.cut)),
            window=reader.settings["window"],
            everything=reader.settings["against"] == "everything",
        )
        releases = stored_flow.releases()
    sections = [Section(_release_section(releases))] if releases else []
    data = report_page(replace(report, released=len(releases)), sections).encode()
    with OutputFile(output) as file:
        file.write(data + b"\n")
    return flow


def _is_report(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return _REPORT_MARK in file.read(_HEAD_BYTES)
    except OSError:
        return False


def _facts(store: str, reader: StoreReader) -> dict[str, str]:
    counts = reader.counts
    flags = {name: name for name in ("late", "ahead", "future")} | {"undecidable": "with too little text to compare"}
    # The pairs that a classifier judged.
    domain_counts = DomainCounts(*json.loads(reader.state("clock") or "{}").get("asked", ()))
    facts = {
        "written": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "in the window": format_count(reader.held_count, "document"),
        "store": store,
        "arrived since the store began": f"{counts['arrived']:,}: {format_count(counts['originals'], 'original')} and "
        f"{format_count(counts['duplicates'], 'duplicate')}",
        "flags since then": ", ".join(f"{counts[flag]:,} {words}" for flag, words in flags.items() if counts.get(flag)),
        "classifier since then": domain_counts.description,
    }
    return {name: value for name, value in facts.items() if value}


def _notes(reported: int, arrived: int) -> list[str]:
    texts = (
        "The texts shown are those of items in the window, and of items that are still in their output folders; other "
        "items are listed without their texts."
    )
    if reported >= arrived:
        return [texts]
    extent = f"This page is about the latest {reported:,} items; {arrived:,} arrived since the store began."
    return [f"{extent} More of them with --items.", texts]


def _release_section(releases: Sequence[Release]) -> Html:
    rows = [
        [
            text(one.id),
            text(one.by or "not named"),
            format_time(round(one.at * 1e6)),
            join_html([COPY if one.kind == "exact" else f"{NEAR}, {one.similarity:.4f}", " of ", text(one.of)]),
        ]
        for one in releases
    ]
    intro = "Items that were stopped, and that somebody let pass afterwards. They count as passed."
    return section(
        "released", "Released", table(["item", "by", "at (UTC)", "had been"], rows, text_columns=4), intro=intro
    )
