"""The chain on Spark: workers read, make features and compare; the driver holds a row per document, and decides."""

from __future__ import annotations

import json
import os
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup.classifier.classifier import Classifier
from neardup.documents import Corpus
from neardup.documents.records import Names, repeated_ids
from neardup.features.extraction import Extractor
from neardup.keep.order import is_by_time, keep_order
from neardup.pipeline.result import Result, Run
from neardup.recipe import KEEP_ORDERS, Recipe
from neardup.runtime import Clock, Stage
from neardup.search.engines import PAIRS_PER_DOCUMENT, pair_limit
from neardup.search.findings import Documents
from neardup.search.lsh import bands_of
from neardup.search.matches import Matches, distinct_documents, sorted_pairs
from neardup.search.second_step import apply_second_step, text_representatives
from neardup.spark.documents import DocumentSource, FileFacts
from neardup.spark.features import (
    DIGEST_COLUMNS,
    FIRST_REFERENCE_ROW,
    FREQUENCY_COLUMNS,
    NO_ROW,
    REJECTION_REASONS,
    Broadcast,
    count_table_bits,
    digest_batches,
    frequency_batches,
    gather_statistics,
)
from neardup.spark.search import FeatureSource, KeptPairSearch, PairSearch, check_recipe, is_reported, part_count
from neardup.spark.second_step import judge_on_workers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from neardup.spark.stages import Stages

Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

_REPEATED_ID = "repeated id"
#: Bytes of text whose features are counted in one table, where that makes fewer tables than one per worker.
_TABLE_BYTES = 1 << 30
#: The columns of each document that the driver needs.
_TABLE_COLUMNS = ("row", "size", "text_bytes", "text_digest0", "text_digest1", "digest0", "digest1")


class DocumentTable(NamedTuple):
    """The documents as the driver holds them, in their order.

    Attributes
    ----------
    rows, sizes, text_bytes : int64[n]
        Rows in frames, numbers of features, and lengths of the texts.
    digests, text_digests : uint64[n, 2]
        Digests of the feature sets and of the texts.
    input_count : int
        The number of documents of the input; those of a reference follow.
    ids, keep_values : pyarrow.Array or None
        The ids, and for documents of the input the values that the keep order compares.
    failed_pages : dict of int to str
        Why the extraction of pages failed, by their rows in frames.
    """

    rows: Integers
    sizes: Integers
    text_bytes: Integers
    digests: Words
    text_digests: Words
    input_count: int
    ids: Any
    keep_values: Any
    failed_pages: dict[int, str]

    def filter(self, mask: npt.NDArray[np.bool_]) -> DocumentTable:
        """Return the documents under a mask."""
        of_input = mask[: self.input_count]
        return DocumentTable(
            self.rows[mask],
            self.sizes[mask],
            self.text_bytes[mask],
            self.digests[mask],
            self.text_digests[mask],
            int(of_input.sum()),
            None if self.ids is None else self.ids.filter(pa.array(mask)),
            None if self.keep_values is None else self.keep_values.filter(pa.array(of_input)),
            self.failed_pages,
        )


def find_duplicates(
    corpus: Corpus,
    source: DocumentSource,
    recipe: Recipe,
    *,
    stages: Stages,
    classifier: Classifier | None = None,
    pairs_per_document: float | None = PAIRS_PER_DOCUMENT,
    details: dict[str, Any] | None = None,
) -> tuple[Result, DocumentTable, DataFrame]:
    """Find the near-duplicates among documents.

    Parameters
    ----------
    corpus : Corpus
        The corpus of the result; for a data frame one without inputs.
    source : DocumentSource
        Its documents.
    stages : Stages
        Gets a stage for each step.
    classifier, pairs_per_document
        As in ``pipeline.run``.
    details : dict, optional
        Further entries of the summary.

    Returns
    -------
    Result, DocumentTable, DataFrame
        The result as from ``pipeline.run``; its documents; and the digests of all documents, rejected ones too, as
        ``features.DIGEST_COLUMNS`` and the carried columns.

    Raises
    ------
    NeardupError
        If Spark has no search for the recipe, it does not fit the documents, or these cannot be read.
    """
    check_recipe(recipe, classifier)
    if source.parts:
        source = source.write(stages)
    digests, features = _digests(source, recipe, stages)
    table, reports = _document_table(digests, source, recipe, stages)
    all_rows = table.rows
    facts = None if source.merge_reports is None else source.merge_reports(reports)
    if facts is None:
        table = _without_rejected(table, corpus)
    names = _names(table, corpus, facts)
    _record_failed_pages(table, names, corpus)
    input_count = table.input_count
    keep_values = table.keep_values
    if keep_values is not None and facts is not None:
        keep_values = keep_values.cast(facts.order_type)
    order, without_value = keep_order(
        recipe.keep, table.text_bytes[:input_count], [] if keep_values is None else [keep_values], corpus.order_column
    )
    order = np.concatenate([np.arange(input_count, len(table.rows)), order])
    max_pairs = None
    if pairs_per_document is not None and not (recipe.second_step or recipe.search == "lsh" or source.has_reference):
        max_pairs = pair_limit(pairs_per_document, input_count)
    matches = _matches(table, all_rows, order, features, recipe, stages, max_pairs)
    if recipe.second_step:
        parts = part_count(int(table.text_bytes.sum()), stages.workers)
        texts = text_representatives(table.text_digests, table.text_bytes, matches.representative < 0)
        judge = judge_on_workers(stages, recipe, classifier, source, table.rows, parts)
        matches = apply_second_step(matches, texts, judge, names.reference_count)
    present = np.arange(len(table.rows)) < input_count
    documents = Documents(names, order, table.text_digests, table.text_bytes, present)
    summary = {"without_keep_value": without_value, "search": matches.statistics} | (details or {})
    clock = Clock()
    clock.stages = cast("list[Stage]", stages.report)
    finished = Run(
        corpus=corpus,
        recipe=recipe,
        documents=documents,
        matches=matches,
        details=summary,
        clock=clock,
        classifier=classifier,
    )
    return Result(finished), table, digests


def _digests(source: DocumentSource, recipe: Recipe, stages: Stages) -> tuple[DataFrame, FeatureSource]:
    """Return the digests of all documents, and a source of their features."""
    spark = source.frame.sparkSession
    statistics = None
    if recipe.needs_statistics:
        counter = partial(frequency_batches, recipe)
        counted = [name for name in ("row", "text", "id") if name in source.columns]
        frequencies = gather_statistics(stages, lambda: source.map(counter, counted, FREQUENCY_COLUMNS))
        Extractor(recipe, frequencies)
        statistics = Broadcast(spark, frequencies)
    else:
        Extractor(recipe)
    carried = [name for name in ["id", "keep", "fault", *source.order] if name in source.columns]
    schema = ", ".join([DIGEST_COLUMNS, *(f"{name} {source.columns[name]}" for name in carried)])
    table_bits = 0 if recipe.search == "lsh" else count_table_bits(recipe, source.text_bytes)
    keys = np.frombuffer(os.urandom(16), np.uint64)
    worker = partial(digest_batches, recipe, statistics, carried, keys, table_bits)
    columns = list(dict.fromkeys(["row", "text", *carried]))
    max_tasks = max(int(spark.sparkContext.defaultParallelism), -(-source.text_bytes // _TABLE_BYTES))
    frame = stages.run("features", lambda: source.map(worker, columns, schema, max_tasks))
    slices = frame.where("slice is not null").select("slice", "data")
    return frame.where("slice is null"), FeatureSource(source, recipe, statistics, slices)


def _document_table(
    digests: DataFrame, source: DocumentSource, recipe: Recipe, stages: Stages
) -> tuple[DocumentTable, list[dict[str, Any]]]:
    """Return all documents, rejected ones too, and the reports of tasks on files."""
    needs_values = recipe.keep not in KEEP_ORDERS or is_by_time(recipe.keep)
    carried = [name for name in ("id", "keep", "fault") if name in digests.columns and (name != "keep" or needs_values)]
    columns = [*_TABLE_COLUMNS, *carried, *(["failed"] if recipe.content else [])]
    if source.order:
        ordered = digests.orderBy(digests["row"] >= FIRST_REFERENCE_ROW, *source.order, "row")
        table = ordered.select(*columns).toArrow().combine_chunks()
    else:
        table = stages.table("features", columns)
        table = table.take(pa.array(np.argsort(table["row"].to_numpy())))
    reports = []
    if "fault" in carried:
        reports = [json.loads(report) for report in table["fault"].drop_null().to_pylist()]
    table = table.filter(pc.not_equal(table["row"], NO_ROW)).combine_chunks()
    arrays = {name: table[name].to_numpy() for name in _TABLE_COLUMNS}
    set_digests, text_digests = (
        np.column_stack([arrays[f"{name}{i}"] for i in range(2)]).view(np.uint64) for name in ("digest", "text_digest")
    )
    ids, keep_values = (table[name].combine_chunks() if name in carried else None for name in ("id", "keep"))
    input_count = int((arrays["row"] < FIRST_REFERENCE_ROW).sum())
    if keep_values is not None:
        keep_values = keep_values.slice(0, input_count)
    sizes = arrays["size"].astype(np.int64)
    rows, text_bytes = arrays["row"], arrays["text_bytes"]
    failed_pages: dict[int, str] = {}
    if recipe.content:
        failed = table.filter(pc.is_valid(table["failed"]))
        failed_pages = dict(zip(failed["row"].to_pylist(), failed["failed"].to_pylist(), strict=True))
    digest_columns = set_digests, text_digests
    return DocumentTable(rows, sizes, text_bytes, *digest_columns, input_count, ids, keep_values, failed_pages), reports


def _without_rejected(table: DocumentTable, corpus: Corpus) -> DocumentTable:
    """Return the documents of a data frame without rejected ones, which the corpora count."""
    good = table.sizes >= 0
    for side, begin, end in ((corpus, 0, table.input_count), (corpus.reference, table.input_count, len(good))):
        if side is None:
            continue
        counts = side.rejected.counts
        for code, reason in REJECTION_REASONS.items():
            if number := int((table.sizes[begin:end] == code).sum()):
                counts[reason] += number
        positions = begin + np.flatnonzero(good[begin:end])
        repeated = positions[repeated_ids(_plain_ids(table.ids.take(pa.array(positions))))]
        good[repeated] = False
        if len(repeated):
            counts[_REPEATED_ID] += len(repeated)
    return table.filter(good)


def _plain_ids(ids: pa.Array) -> pa.Array:
    """Return ids in the types of a corpus: int64 or large_string."""
    return ids.cast(pa.int64() if pa.types.is_integer(ids.type) else pa.large_string())


def _names(table: DocumentTable, corpus: Corpus, facts: FileFacts | None) -> Names:
    """Return the names of the documents.

    Raises
    ------
    InputError
        If two documents of files have the same id.
    """
    input_count = table.input_count
    if facts is None:
        ids = _plain_ids(table.ids)
        reference_ids = ids.slice(input_count) if corpus.reference is not None else None
        return Names(np.arange(len(table.rows)), ids.slice(0, input_count), reference_ids)

    raw_rows = facts.raw_rows(table.rows)

    def ids_of(side: Corpus, begin: int, end: int, integers: bool) -> pa.Array | None:
        if not side.id_column:
            return None
        ids = table.ids.slice(begin, end - begin).cast(pa.int64() if integers else pa.large_string())
        return side.number_ids(ids, raw_rows[begin:end] - (0 if side is corpus else corpus.raw_rows))

    names = Names(raw_rows, ids_of(corpus, 0, input_count, facts.has_integer_ids[0]))
    if corpus.reference is not None:
        reference_ids = ids_of(corpus.reference, input_count, len(raw_rows), facts.has_integer_ids[1])
        if reference_ids is None:
            reference_ids = pa.array(raw_rows[input_count:] - corpus.raw_rows)
        names = Names(raw_rows, names.ids, reference_ids)
    corpus.check_unique_ids(names)
    return names


def _record_failed_pages(table: DocumentTable, names: Names, corpus: Corpus) -> None:
    """Count and name the pages whose extraction failed, those of the input first."""
    for position in np.flatnonzero(np.isin(table.rows, list(table.failed_pages))).tolist():
        reason = table.failed_pages[int(table.rows[position])]
        if corpus.inputs:
            corpus.record_failed_page(int(names.rows[position]), reason)
        else:
            corpus.failed_pages.add(f"document {names.name_at(position)}", reason)


def _matches(
    table: DocumentTable,
    all_rows: Integers,
    order: Integers,
    features: FeatureSource,
    recipe: Recipe,
    stages: Stages,
    max_pairs: int | None,
) -> Matches:
    """Return the matching pairs of distinct sets; all_rows: of all documents, rejected ones too."""
    # Digests decide which sets are equal; the sets themselves never meet.
    representative = text_representatives(table.digests, table.sizes, table.sizes == 0)
    members = distinct_documents(representative)
    excluded = np.sort(all_rows[~np.isin(all_rows, table.rows[members], assume_unique=True, kind="sort")])
    search = PairSearch(recipe, stages, features, excluded, table.sizes[members], max_pairs)
    if recipe.search == "lsh":
        plan = bands_of(recipe)
        search.statistics |= {"bands": plan.bands, "rows": plan.rows}
        search.statistics |= {"jaccard_at_threshold": plan.jaccard, "recall_at_threshold": plan.recall}
    candidates = search.candidates()
    if candidates.truncated:
        in_order = order[representative[order] >= 0]
        _, begins = np.unique(representative[in_order], return_index=True)
        nodes = representative[in_order[np.sort(begins)]]
        edges = KeptPairSearch(search, table.rows[nodes]).edges()
    else:
        edges = search.verify(candidates)
    by_row = np.argsort(table.rows)
    sides = edges["left"].to_numpy(), edges["right"].to_numpy()
    left, right = (by_row[np.searchsorted(table.rows, side, sorter=by_row)] for side in sides)
    counts = np.column_stack([edges["o"].to_numpy(), table.sizes[left], table.sizes[right]])
    left, right, counts = sorted_pairs(left, right, counts)
    complete = not candidates.truncated and (max_pairs is None or len(left) <= max_pairs)
    if not complete:
        reported = is_reported(representative, order, left, right)
        left, right, counts = left[reported], right[reported], counts[reported]
    search.statistics["pairs"] = len(left)
    return Matches(representative, left, right, counts, complete=complete, statistics=search.statistics)
