"""The report of a store, from its verdicts and the files in the output folders."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from neardup.classifier.domain import DomainCounts
from neardup.errors import OutputError, RecipeError
from neardup.keep.keepers import Integers
from neardup.pages.diff import ShownDocument
from neardup.pages.html import Html, join_html, section, table, text
from neardup.pages.numbers import format_count
from neardup.pages.report import ReportLimits, document_lead
from neardup.pages.verdicts import COPY, ELSEWHERE, NEAR, ORIGINAL, Verdicts, format_time
from neardup.stream.index import read_stored_recipe
from neardup.stream.store import Release, StoredDocument, StoreReader
from neardup.text.html import content_of
from neardup.watch.placement import PlacedItems
from neardup.watch.settings import FOLDERS, QUARANTINED

if TYPE_CHECKING:
    from neardup.classifier.classifier import Classifier
    from neardup.pages.report import Report
    from neardup.recipe import Recipe

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
        self.flow = _flow_of(self._rows, len(older))

    def row(self, place: int) -> StoredDocument:
        """Return the row of an item, without its text."""
        return self._rows[place]

    def texts(self, places: Sequence[int]) -> dict[int, ShownDocument]:
        """Return the texts of items in the window, and of others that are still in the output folders."""
        found = {}
        for place in places:
            text = self._text(self._rows[place])
            if text is not None:
                found[place] = self._shown(place, text)
        return found

    def _text(self, row: StoredDocument) -> str | None:
        stored = self._reader.find(row.id, text=True)
        if stored is not None and stored.text is not None:
            return content_of(stored.text, self._content)
        found = self._placed_items.find(row.id, row.origin, is_duplicate=row.verdict.is_duplicate)
        return None if found is None else content_of(found[0].text, self._content)

    def _shown(self, place: int, text: str) -> ShownDocument:
        head, feed, _ = text[: _MAX_TITLE_LENGTH + 1].partition("\n")
        return ShownDocument(self._rows[place].id, head.strip() if feed else "", text)

    def releases(self) -> list[Release]:
        """Return the releases of reported items, the latest first."""
        reported = {row.serial for row in self._rows[self.flow.earlier_count :]}
        found = self._reader.releases(min(reported, default=0))
        return [release for release in reversed(found) if release.serial in reported]

    def titles(self, places: Sequence[int]) -> dict[int, str]:
        """Return the titles of items in the window, for classifiers that compare titles."""
        found = {}
        for place in places:
            stored = self._reader.find(self._rows[place].id, text=True)
            if stored is not None and stored.title:
                found[place] = stored.title
        return found

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


def _flow_of(rows: Sequence[StoredDocument], before: int) -> Verdicts:
    place = {row.id: at for at, row in enumerate(rows)}
    of = np.full(len(rows), ORIGINAL, np.int64)
    elsewhere: dict[int, str] = {}
    for at, row in enumerate(rows):
        name = row.verdict.of
        if name is None:
            continue
        keeper_row = place.get(name, ELSEWHERE) if at >= before else ELSEWHERE
        of[at] = keeper_row if keeper_row < at else ELSEWHERE
        if of[at] == ELSEWHERE:
            elsewhere[at] = name
    return Verdicts(
        ids=pa.array([row.id for row in rows], pa.large_string()),
        times=np.array([round(row.verdict.time * 1e6) for row in rows], np.int64),
        keeper_rows=of,
        similarity=np.array([row.verdict.similarity or 0.0 for row in rows], np.float64),
        exact=np.array([row.verdict.kind == "exact" for row in rows], np.bool_),
        equal=np.array([row.verdict.has_equal_features for row in rows], np.bool_),
        earlier_count=before,
        elsewhere=elsewhere,
    )


def format_flags(counts: Mapping[str, int]) -> str:
    """Return how many verdicts have each flag, in words; empty where none has one."""
    names = {name: name for name in ("late", "ahead", "future")} | {"undecidable": "with too little text to compare"}
    return ", ".join(f"{counts[name]:,} {words}" for name, words in names.items() if counts.get(name))


#: The most bytes that are read from the folders of originals and duplicates.
_MAX_READ_BYTES = 64_000_000
#: Text near the top of a report; only a file with it is replaced without --force.
_REPORT_MARK = b"- neardup</title>"
_HEAD_BYTES = 1 << 12


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreReport:
    """A report of the content of a store."""

    store: str  #: the store; a watcher may be using it
    output: str  #: the page
    items: int = 100_000  #: the number of latest items reported; raising it takes time and memory in proportion
    limits: ReportLimits = field(default_factory=ReportLimits)  #: how many entries are listed
    command: str = ""  #: the command line
    classifier: Classifier | None = None  #: the classifier that judged, where one did

    def write(self, *, force: bool = False) -> Verdicts:
        """Write the page, complete or not at all, and return the reported verdicts.

        Raises ``NeardupError`` if the store cannot be read, or the page cannot be written.
        """
        from neardup.documents.output import OutputFile
        from neardup.pages.report_page import Section, report_page
        from neardup.stream.store import StoreReader

        with StoreReader(self.store) as reader:
            folders = json.loads(reader.state(FOLDERS) or "{}")
            self._check_output(folders, force=force)
            recipe = self._recipe(reader)
            originals, duplicates, content = (folders.get(name, "") for name in ("originals", "duplicates", "content"))
            stored_flow = StoredFlow(
                reader, PlacedItems(originals, duplicates, content, _MAX_READ_BYTES), recipe.content, self.items
            )
            report = self._report(reader, stored_flow, recipe, folders.get("inbox", self.store))
            releases = stored_flow.releases()
        sections = [Section(_release_section(releases))] if releases else []
        data = report_page(replace(report, released=len(releases)), sections).encode()
        with OutputFile(self.output) as file:
            file.write(data + b"\n")
        return stored_flow.flow

    def _check_output(self, folders: Mapping[str, str], *, force: bool) -> None:
        """Refuse a page that cannot be written, or lies in a folder of the watcher."""
        from neardup.documents.output import check_place
        from neardup.pages.page import check_drawing

        if not self.output.endswith(".html"):
            raise OutputError(f"{self.output} does not end in .html, but a report is a page: name it so")
        places = [place for name, place in folders.items() if name != "content"]
        # A nightly report replaces the previous one.
        check_place(self.output, [*places, self.store], force or _is_report(self.output))
        check_drawing(self.output)

    def _recipe(self, reader: StoreReader) -> Recipe:
        """Return the recipe of the store's verdicts."""
        if self.classifier is None:
            return read_stored_recipe(reader)
        if self.classifier.recipe.fingerprint != reader.meta("fingerprint"):
            raise RecipeError(
                f"the verdicts of {self.store} are not of that classifier; name the one they were given by"
            )
        return self.classifier.recipe

    def _report(self, reader: StoreReader, stored_flow: StoredFlow, recipe: Recipe, inbox: str) -> Report:
        from neardup.pages.report import ReportContext, ReportSources, build_report
        from neardup.search.margin import criterion_of, has_threshold
        from neardup.stream.replay_report import evidence_in_words

        flow, counts = stored_flow.flow, reader.counts
        reported = len(flow) - flow.earlier_count

        def evidence(place: int) -> str:
            return evidence_in_words(stored_flow.row(place).verdict, recipe)

        def matching(texts: Mapping[int, ShownDocument]) -> set[tuple[int, int]] | None:
            return _matching(stored_flow, texts, recipe, self.classifier)

        facts = {
            "written": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
            "in the window": format_count(reader.held_count, "document"),
            "store": self.store,
            "arrived since the store began": f"{counts['arrived']:,}: {format_count(counts['originals'], 'original')} "
            f"and {format_count(counts['duplicates'], 'duplicate')}",
            "flags since then": format_flags(counts),
            "classifier since then": domain_counts(reader).description,
        }
        notes = []
        if reported < counts["arrived"]:
            notes.append(
                f"This page is about the latest {reported:,} items; {counts['arrived']:,} arrived since the store "
                "began. More of them with --items."
            )
        notes.append(
            "The texts shown are those of items in the window, and of items that are still in their output folders; "
            "other items are listed without their texts."
        )
        reasons: dict[str, int] = json.loads(reader.state(QUARANTINED) or "{}")
        context = ReportContext(
            title="What was stopped, and why",
            command=self.command,
            inputs=[inbox],
            recipe=recipe,
            criterion=criterion_of(recipe, self.classifier),
            has_sweep=has_threshold(recipe) and (self.classifier is None or isfinite(self.classifier.cut)),
            window=reader.settings["window"],
            everything=reader.settings["against"] == "everything",
            missing_text="The text is no longer available: the item has left the window, and its file was moved.",
            rejected=sorted(reasons.items(), key=lambda counted: -counted[1]),
            facts={name: value for name, value in facts.items() if value},
            notes=notes,
        )
        sources = ReportSources(
            documents=stored_flow.texts, leads=stored_flow.words, evidence=evidence, matching_pairs=matching
        )
        return build_report(flow, context, sources, self.limits)


def _release_section(releases: Sequence[Release]) -> Html:
    """Return the section of releases: items, by whom, when, and their former verdicts."""
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


def domain_counts(reader: StoreReader) -> DomainCounts:
    """Return the counts of pairs that a classifier judged for a store."""
    return DomainCounts(*json.loads(reader.state("clock") or "{}").get("asked", ()))


def _is_report(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return _REPORT_MARK in file.read(_HEAD_BYTES)
    except OSError:
        return False


def _matching(
    stored_flow: StoredFlow, texts: Mapping[int, ShownDocument], recipe: Recipe, classifier: Classifier | None
) -> set[tuple[int, int]] | None:
    """Return which items match each other; None if that depends on missing data."""
    from neardup.stream.document import Document
    from neardup.stream.index import matching_pairs
    from neardup.times import utc

    titles = stored_flow.titles(list(texts)) if classifier is not None and classifier.vector.needs_titles else {}
    documents = {
        place: Document(
            str(place),
            shown.text,
            utc(round(stored_flow.row(place).verdict.time * 1e6)),
            title=titles.get(place, shown.title),
        )
        for place, shown in texts.items()
    }
    return matching_pairs(documents, recipe, classifier)
