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
from neardup.documents.column_paths import column_words
from neardup.errors import RecipeError, option
from neardup.keep.pairs import APART, EQUAL
from neardup.kernels import Integers
from neardup.pages.diff import ShownDocument
from neardup.pages.documents import DocumentReader
from neardup.pages.html import table, to_html
from neardup.pages.page import check_drawing
from neardup.pages.report import (
    Report,
    ReportLimits,
    ReportSources,
    bin_similarities,
    build_report,
    document_lead,
    listed_rows,
)
from neardup.pages.sweep import shared_in_words, similarity_name
from neardup.pages.verdicts import COPY, EQUAL_FEATURES, NEAR, ORIGINAL, KnownPairs, Verdicts
from neardup.recipe.measures import SET_MEASURES
from neardup.recipe.recipe import CHAIN_VERSION, CONTENT_LIBRARIES
from neardup.search.findings import Findings
from neardup.search.margin import Criterion, has_threshold
from neardup.search.matches import Matches


class ReportSettings(TypedDict, total=False):
    """Options of a report."""

    #: The heading, and the command line that made the run.
    title: str
    command: str
    #: The fields of ``ReportLimits``.
    families: int
    cases: int
    rows: int
    seed: int
    #: Columns of titles and times; detected by their usual names.
    title_column: str
    time_column: str


def run_report(found: Findings, summary: Mapping[str, Any], **options: Unpack[ReportSettings]) -> Report:
    """Return the report of a run; the corpus is read once more, for the shown documents."""
    settings: Mapping[str, Any] = options
    for name in settings:
        if name not in ReportSettings.__annotations__:
            raise RecipeError(
                f"{name!r} is no option of a report; its options are {', '.join(ReportSettings.__annotations__)}"
            )
    limits = ReportLimits(
        **{field.name: settings[field.name] for field in fields(ReportLimits) if field.name in settings}
    )
    verdicts, recipe = run_verdicts(found), found.recipe
    reader = DocumentReader(
        found.corpus,
        found.documents.names,
        content=recipe.content,
        threads=summary["threads"],
        title_column=options.get("title_column", ""),
        time_column=options.get("time_column", ""),
    )
    documents = _RunDocuments(found, reader, listed_rows(verdicts, limits))
    frame = Report(
        title=options.get("title") or "What was dropped, and why",
        command=options.get("command", ""),
        inputs=_inputs(found.corpus),
        rejected=sorted(summary["rejected"].items(), key=lambda item: (-item[1], item[0])),
        stages=list(summary["stages"]),
        facts=_facts(summary),
        versions=_versions(found),
        notes=[
            *([] if found.matches.complete else [_pair_limit_note()]),
            *([f"Skipped, because they are no documents: {found.corpus.skipped}."] if found.corpus.skipped else []),
        ],
    )
    sources = ReportSources(
        documents=documents.documents,
        leads=documents.leads,
        evidence=documents.evidence,
        matching_pairs=documents.matching_pairs,
    )
    return build_report(
        frame,
        verdicts,
        sources,
        limits,
        recipe=recipe,
        criterion=found.criterion,
        has_sweep=found.matches.complete and has_threshold(recipe) and found.groups is None,
        known=known_pairs(found),
    )


def _inputs(corpus: Corpus) -> list[str]:
    """Return the inputs, and the reference they were compared with."""
    if corpus.reference is None:
        return corpus.inputs
    reference = ", ".join(corpus.reference.inputs or [source.file.name for source in corpus.reference.sources])
    return [f"{', '.join(corpus.inputs) or 'the documents'} against {reference or 'a reference'}"]


def run_verdicts(found: Findings) -> Verdicts:
    """Return the verdicts of a run."""
    keeper, digests, representative = found.keepers.keeper, found.documents.text_digests, found.matches.representative
    return Verdicts(
        ids=found.documents.names.labels(),
        keeper_rows=np.where(found.dropped_mask, keeper, ORIGINAL),
        similarity=found.keepers.similarity,
        exact=(digests == digests[keeper]).all(axis=1),
        equal=representative == representative[keeper],
        present=found.documents.present,
        families=found.families,
        reasons=_reason_numbers(found),
    )


def _reason_numbers(found: Findings) -> Integers:
    """Return the reason of each document as an index in ``verdicts.REASONS``."""
    return np.where(found.text_copies, 1, np.where(found.feature_copies, 2, np.where(found.dropped_mask, 3, 0)))


def known_pairs(found: Findings) -> KnownPairs:
    """Return the pairs that a run found: those that match, and those of its margin if it searched one."""
    margin, criterion, matches = found.margin, found.criterion, found.matches
    known, relaxed_threshold = matches, criterion.threshold
    if margin is not None and margin.matches is not None:
        known, relaxed_threshold = margin.matches, margin.relaxed_threshold
    count = len(known.representative)
    matching = np.isin(known.left * count + known.right, matches.left * count + matches.right)
    return KnownPairs(
        left=known.left,
        right=known.right,
        similarity=criterion.similarities(known),
        relaxed_threshold=relaxed_threshold,
        searched=known.complete,
        note="" if known is not matches else _missing_pairs_note(found),
        matching=matching,
        matches_at=lambda threshold: criterion.reached_by(known, threshold),
        representative=known.representative,
        keep_order=found.documents.order,
        reference_count=found.documents.names.reference_count,
        describe_counts=lambda edge: _describe_counts(criterion, known, edge),
    )


def _describe_counts(criterion: Criterion, matches: Matches, edge: int) -> str:
    """Return the whole numbers behind the similarity of a known pair in words; empty if they say nothing more."""
    counts, unit = criterion.counts(matches)
    o, a, b = counts[edge].tolist()
    if criterion.measure == "hamming":
        return f"{64 - o} of 64 bits differ"
    if criterion.measure == "edit":
        return f"{a - o:,} of {a:,} characters edited"
    return shared_in_words(o, a, b) if criterion.measure in SET_MEASURES and unit == 1 else ""


class _RunDocuments:
    """The documents of a run, and why dropped ones match their keepers: the functions of ``ReportSources``."""

    def __init__(self, found: Findings, reader: DocumentReader, listed: Integers) -> None:
        self._found, self._reader, self._listed = found, reader, listed
        self._edges: dict[int, int] = {}
        self._classifier_evidence: dict[int, str] = {}

    def documents(self, rows: list[int]) -> Mapping[int, ShownDocument]:
        found = self._found
        # One reading serves the list of dropped documents as well.
        self._reader.load(np.unique(np.concatenate([np.array(rows, np.int64), self._listed])))
        dropped = np.array([row for row in rows if found.dropped_mask[row]], np.int64)
        edges = found.pairs.edge_of(dropped, found.keepers.keeper[dropped])
        self._edges = dict(zip(dropped.tolist(), edges.tolist(), strict=True))
        if found.classifier is not None and found.matches.vectors is not None:
            table = EvidenceTable(found.classifier, found.matches.vectors, edges)
            self._classifier_evidence = {
                row: str(table.evidence(at)) for at, row in enumerate(self._edges) if edges[at] >= 0
            }
        return {row: self._reader.document(row) for row in rows}

    def leads(self, rows: Integers) -> Mapping[int, str]:
        return {row: document_lead(self._reader.document(row)) for row in rows.tolist()}

    def evidence(self, row: int) -> str:
        edge, verdicts = self._edges[row], self._found.groups
        if verdicts is not None:
            # The group decides, whether or not the document itself matches.
            return verdicts.describe(int(verdicts.rule.groups[row]))
        if edge == EQUAL:
            return "the same features"
        if row in self._classifier_evidence:
            return f"mainly because of {self._classifier_evidence[row]}"
        return _describe_counts(self._found.criterion, self._found.matches, edge)

    def matching_pairs(self, documents: Mapping[int, ShownDocument]) -> set[tuple[int, int]] | None:
        found = self._found
        if not found.matches.complete:
            return None
        by_keeper: dict[int, list[int]] = {}
        for row in sorted(documents):
            by_keeper.setdefault(int(found.keepers.keeper[row]), []).append(row)
        pairs = [pair for members in by_keeper.values() for pair in combinations(members, 2)]
        if not pairs:
            return set()
        edges = found.pairs.edge_of(*np.array(pairs, np.int64).T)
        return {pair for pair, edge in zip(pairs, edges.tolist(), strict=True) if edge != APART}


def similarity_plot(found: Findings) -> Any:
    """Return an Altair chart of the similarities of dropped documents to their keepers; it loads nothing."""
    check_drawing("a chart")
    from neardup.pages.report_page import similarity_chart

    title = similarity_name(found.criterion, found.recipe)
    similarities = bin_similarities(found.keepers.similarity[found.dropped_mask])
    return similarity_chart(similarities, title, y="dropped documents")


def _missing_pairs_note(found: Findings) -> str:
    """Return why pairs beyond the threshold are unknown."""
    if found.margin is not None and found.margin.note:
        return found.margin.note
    if not found.matches.complete:
        return _pair_limit_note()
    return f"Pairs beyond the threshold were not searched; {option('--report-margin 0.2', 'margin=0.2')} finds them."


def _pair_limit_note() -> str:
    return (
        f"More pairs match than {option('--pairs-per-document')} allows: only those of a dropped and a kept document "
        "are known. Other thresholds are unknown, and so are the members of a family that do not match each other."
    )


def _versions(found: Findings) -> dict[str, str]:
    versions = {"steps from text to features": f"version {CHAIN_VERSION}", "Unicode": unicodedata.unidata_version}
    if library := CONTENT_LIBRARIES.get(found.recipe.content):
        versions[library] = metadata.version(library)
    return versions


def _facts(summary: Mapping[str, Any]) -> dict[str, str]:
    facts = {
        "columns": column_words(summary["columns"]),
        "text": f"{summary['bytes_saved']:,} of {summary['text_bytes']:,} bytes saved",
        "pairs": f"{summary['pairs']:,}" + ("" if summary["all_pairs"] else ", only those with kept documents"),
        "threads": f"{summary['threads']}",
    }
    if "reference" in summary:
        reference = summary["reference"]
        facts["reference"] = (
            f"{reference['documents']:,} documents, all kept; {reference['dropped']:,} others dropped for them"
        )
    if "drop_by" in summary:
        groups = summary["drop_by"]
        named = "; ".join(
            f"{one['group']} for {one['of']} ({one['matched']:,} of {one['documents']:,} match)"
            for one in groups["largest_dropped"]
        )
        facts["groups"] = (
            f"{groups['dropped']:,} of {groups['groups']:,} values of {groups['column']} dropped whole: at least "
            f"{groups['share']:.4g} of their documents match one other group" + (f". {named}" if named else "")
        )
    if summary["undecidable"]:
        facts["little text"] = f"{summary['undecidable']:,} with too little text to compare; kept"
    if summary["without_keep_value"]:
        facts["keep order"] = f"{summary['without_keep_value']:,} without a value to sort by; they come last"
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
    """Return a result as HTML for a notebook cell."""
    reasons = _reason_numbers(found)
    head = f"{summary['documents']:,} documents: {summary['kept']:,} kept, {summary['dropped']:,} dropped"
    rows: list[list[object]] = [
        [name, f"{int((reasons == at).sum()):,}"] for at, name in enumerate((COPY, EQUAL_FEATURES, NEAR), 1)
    ]
    rows += [[f"rejected: {name}", f"{number:,}"] for name, number in sorted(summary["rejected"].items())]
    rows += [[f"skipped: {name}", f"{number:,}"] for name, number in sorted(summary.get("skipped", {}).items())]
    rows += [["families", f"{summary['families']:,}, the largest of {summary['largest_family']:,}"]]
    rows += [["pairs", f"{summary['pairs']:,}" + ("" if summary["all_pairs"] else ", only those with kept documents")]]
    rows += [["columns", column_words(summary["columns"])]]
    rows += [["recipe", f"{found.recipe.in_words()}, keep {found.recipe.keep}"]]
    return f'<div class="neardup"><p><strong>{to_html(head)}</strong></p>{table([], rows, text_columns=2)}</div>'
