"""The report of a run over a corpus, and what a notebook shows of it."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import fields
from importlib import metadata
from itertools import combinations
from typing import Any, TypedDict, Unpack

import numpy as np

from neardup.classifier.evidence import EvidenceTable
from neardup.documents import Corpus
from neardup.errors import RecipeError, option
from neardup.kernels import Integers
from neardup.pages.builder import ReportContext, ReportSources, build_report, document_lead, listed_rows
from neardup.pages.diff import ShownDocument
from neardup.pages.documents import DocumentReader
from neardup.pages.html import table, to_html
from neardup.pages.page import check_drawing
from neardup.pages.report import COPY, EQUAL_FEATURES, NEAR, Extent, Report, bin_similarities
from neardup.pages.sweep import shared_in_words, similarity_name
from neardup.pages.verdicts import ORIGINAL, KnownPairs, Verdicts
from neardup.recipe.measures import SET_MEASURES
from neardup.recipe.recipe import CHAIN_VERSION
from neardup.search.findings import APART, EQUAL, Findings
from neardup.search.margin import Criterion, has_threshold
from neardup.search.matches import Matches


class ReportSettings(TypedDict, total=False):
    """What a report is called, and how much of a run it shows."""

    #: The heading, and the command that made it; by default the usual one, and none.
    title: str
    command: str
    #: As in ``Extent``.
    families: int
    cases: int
    rows: int
    seed: int
    #: Columns of titles and times; by default they are found by their names.
    title_column: str
    time_column: str


def run_report(found: Findings, summary: Mapping[str, Any], **asked: Unpack[ReportSettings]) -> Report:
    """Return the report of a run.

    The corpus is read once more, for the documents that are shown.
    """
    known: Mapping[str, Any] = asked
    for name in known:
        if name not in ReportSettings.__annotations__:
            raise RecipeError(
                f"{name!r} is no option of a report; its options are {', '.join(ReportSettings.__annotations__)}"
            )
    extent = Extent(**{field.name: known[field.name] for field in fields(Extent) if field.name in known})
    verdicts, recipe = run_verdicts(found), found.recipe
    material = DocumentReader(
        found.corpus,
        found.documents.names,
        content=recipe.content,
        threads=summary["threads"],
        title_column=asked.get("title_column", ""),
        time_column=asked.get("time_column", ""),
    )
    documents = _RunDocuments(found, material, listed_rows(verdicts, extent))
    context = ReportContext(
        title=asked.get("title") or "What was dropped, and why",
        command=asked.get("command", ""),
        inputs=_inputs(found.corpus),
        recipe=recipe,
        scale=found.criterion,
        movable=found.matches.complete and has_threshold(recipe),
        quarantined=sorted(summary["rejected"].items(), key=lambda item: (-item[1], item[0])),
        stages=list(summary["stages"]),
        facts=_facts(summary),
        versions=_versions(found),
        notes=[] if found.matches.complete else [_pair_limit_note()],
    )
    sources = ReportSources(
        texts=documents.texts, words=documents.words, evidence=documents.evidence, matching=documents.matching
    )
    return build_report(verdicts, context, sources, extent, known_pairs(found))


def _inputs(corpus: Corpus) -> list[str]:
    """Return what was read, and what it stood against."""
    if corpus.reference is None:
        return corpus.inputs
    known = ", ".join(corpus.reference.inputs or [source.file.name for source in corpus.reference.sources])
    return [f"{', '.join(corpus.inputs) or 'the documents'} against {known or 'a reference'}"]


def run_verdicts(found: Findings) -> Verdicts:
    """Return what became of the documents of a run."""
    goes, keeper = found.dropped_mask, found.keepers.keeper
    marks, same = found.documents.text_digests, found.matches.representative
    return Verdicts(
        ids=found.documents.names.labels(),
        of=np.where(goes, keeper, ORIGINAL),
        similarity=found.keepers.similarity,
        exact=(marks == marks[keeper]).all(axis=1),
        equal=same == same[keeper],
        present=found.documents.present,
        connected=found.families,
        why=_reason_numbers(found),
    )


def _reason_numbers(found: Findings) -> Integers:
    """Return the reason of each document by its number."""
    return np.where(found.text_copies, 1, np.where(found.feature_copies, 2, np.where(found.dropped_mask, 3, 0)))


def known_pairs(found: Findings) -> KnownPairs:
    """Return the pairs that a run knows: those that match, and those beyond the threshold if it looked for them."""
    around, scale, own = found.margin, found.criterion, found.matches
    wide = None if around is None else around.matches
    every, loosest = (own, scale.threshold) if around is None or wide is None else (wide, around.relaxed_threshold)
    count = len(every.representative)
    matching = np.isin(every.left * count + every.right, own.left * count + own.right)
    return KnownPairs(
        left=every.left,
        right=every.right,
        similarity=scale.similarities(every),
        loosest=loosest,
        searched=every.complete,
        note="" if wide is not None else _missing_pairs_note(found),
        matching=matching,
        matches_at=lambda threshold: scale.reaching(every, threshold),
        representative=every.representative,
        order=found.documents.order,
        reference_count=found.documents.names.reference_count,
        numbers=lambda edge: _numbers_of(scale, every, edge),
    )


def _numbers_of(scale: Criterion, matches: Matches, edge: int) -> str:
    """Return what is behind the similarity of a known pair, in numbers; empty where that says nothing more."""
    counts, unit = scale.counts(matches)
    o, a, b = counts[edge].tolist()
    if scale.measure == "hamming":
        return f"{64 - o} of 64 bits differ"
    if scale.measure == "edit":
        return f"{a - o:,} of {a:,} characters edited"
    return shared_in_words(o, a, b) if scale.measure in SET_MEASURES and unit == 1 else ""


class _RunDocuments:
    """The documents of a run, and why dropped ones match their keepers."""

    def __init__(self, found: Findings, material: DocumentReader, rows: Integers) -> None:
        self._found, self._material, self._rows = found, material, rows
        self._edges: dict[int, int] = {}
        self._learned: dict[int, str] = {}

    def texts(self, places: list[int]) -> Mapping[int, ShownDocument]:
        found = self._found
        # The list of removed documents is made from the same reading.
        self._material.load(np.unique(np.concatenate([np.array(places, np.int64), self._rows])))
        gone = np.array([place for place in places if found.dropped_mask[place]], np.int64)
        edges = found.edges(gone, found.keepers.keeper[gone])
        self._edges = dict(zip(gone.tolist(), edges.tolist(), strict=True))
        if found.classifier is not None and found.matches.vectors is not None:
            learned = EvidenceTable(found.classifier, found.matches.vectors, edges)
            self._learned = {place: str(learned.evidence(at)) for at, place in enumerate(self._edges) if edges[at] >= 0}
        return {place: self._material.shown(place) for place in places}

    def words(self, places: Integers) -> Mapping[int, str]:
        return {place: document_lead(self._material.shown(place)) for place in places.tolist()}

    def evidence(self, place: int) -> str:
        edge = self._edges[place]
        if edge == EQUAL:
            return "equal in all that is compared"
        if place in self._learned:
            return f"pushed by {self._learned[place]}"
        return _numbers_of(self._found.criterion, self._found.matches, edge)

    def matching(self, texts: Mapping[int, ShownDocument]) -> set[tuple[int, int]] | None:
        found = self._found
        if not found.matches.complete:
            return None
        together: dict[int, list[int]] = {}
        for place in sorted(texts):
            together.setdefault(int(found.keepers.keeper[place]), []).append(place)
        pairs = [pair for members in together.values() for pair in combinations(members, 2)]
        if not pairs:
            return set()
        edges = found.edges(*np.array(pairs, np.int64).T)
        return {pair for pair, edge in zip(pairs, edges.tolist(), strict=True) if edge != APART}


def similarity_plot(found: Findings) -> Any:
    """Return the similarities of dropped documents to their keepers as an Altair chart, which loads nothing."""
    from neardup.pages.report_charts import similarity_chart

    check_drawing("a chart")
    title = similarity_name(found.criterion, found.recipe)
    similarities = bin_similarities(found.keepers.similarity[found.dropped_mask])
    return similarity_chart(similarities, title, y="dropped documents")


def _missing_pairs_note(found: Findings) -> str:
    """Return why pairs beyond the threshold are not known."""
    if found.margin is not None and found.margin.note:
        return found.margin.note
    if not found.matches.complete:
        return _pair_limit_note()
    looked = option("--report-margin 0.2", "margin=0.2")
    return f"Pairs beyond the threshold were not looked for; {looked} looks for them."


def _pair_limit_note() -> str:
    return (
        f"More pairs match than {option('--pairs-per-document')} allows to find: only those of dropped documents with "
        "kept ones are known, so other thresholds, and which members of a family do not match each other, are not."
    )


def _versions(found: Findings) -> dict[str, str]:
    versions = {"steps from text to features": f"version {CHAIN_VERSION}", "Unicode": unicodedata.unidata_version}
    if found.recipe.content == "html":
        versions["trafilatura"] = metadata.version("trafilatura")
    return versions


def _facts(summary: Mapping[str, Any]) -> dict[str, str]:
    facts = {
        "text": f"{summary['bytes_saved']:,} of {summary['text_bytes']:,} bytes saved",
        "pairs": f"{summary['pairs']:,}" + ("" if summary["all_pairs"] else ", only those with kept documents"),
        "threads": f"{summary['threads']}",
    }
    if "reference" in summary:
        known = summary["reference"]
        facts["reference"] = f"{known['documents']:,} documents, all kept; {known['dropped']:,} dropped for one of them"
    if summary["undecidable"]:
        facts["undecidable"] = f"{summary['undecidable']:,} with too little text to compare; kept"
    if summary["without_keep_value"]:
        facts["keep order"] = f"{summary['without_keep_value']:,} without a value to sort by, put last"
    if "classifier" in summary:
        known = summary["classifier"]
        cut = "no cut" if known["cut"] is None else f"score >= {known['cut']:.4g}"
        outside = ""
        if known["outside"] is not None and known["candidates"]:
            share = known["outside"] / known["candidates"]
            outside = f", {share:.0%} of them outside its training domain"
        facts["classifier"] = (
            f"{known['fingerprint']}, {cut}; {known['passed']:,} of {known['candidates']:,} candidates of its rule "
            f"pass ({known['candidate_rule']}){outside}; it compares {known['vector']}"
        )
    search = summary["search"]
    if "bands" in search:
        facts["search"] = (
            f"LSH, {search['bands']} bands of {search['rows']} rows: finds {search['recall_at_threshold']:.2%} of the "
            f"pairs at Jaccard {search['jaccard_at_threshold']:.4g}"
        )
    return facts


def notebook_html(found: Findings, summary: Mapping[str, Any]) -> str:
    """Return a result as HTML for a notebook's cell, its texts escaped."""
    why = _reason_numbers(found)
    head = f"{summary['documents']:,} documents: {summary['kept']:,} kept, {summary['dropped']:,} dropped"
    rows: list[list[object]] = [
        [name, f"{int((why == at).sum()):,}"] for at, name in enumerate((COPY, EQUAL_FEATURES, NEAR), 1)
    ]
    rows += [[f"rejected: {name}", f"{number:,}"] for name, number in sorted(summary["rejected"].items())]
    rows += [["families", f"{summary['families']:,}, the largest of {summary['largest_family']:,}"]]
    rows += [["pairs", f"{summary['pairs']:,}" + ("" if summary["all_pairs"] else ", only those with kept documents")]]
    rows += [["by", f"{found.recipe.in_words()}, keep {found.recipe.keep}"]]
    return f'<div class="neardup"><p><strong>{to_html(head)}</strong></p>{table([], rows, left=2)}</div>'
