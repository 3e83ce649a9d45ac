"""A run on Spark: the workers read, make features and compare; the driver has a row for each document, and decides."""

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
from neardup.classifier.domain import DomainCounts
from neardup.documents import Corpus
from neardup.documents.records import Names, repeated_ids
from neardup.features.extraction import Extractor
from neardup.keep.order import goes_by_time, keep_order
from neardup.pipeline.result import Result
from neardup.recipe import KEEP_ORDERS, Recipe
from neardup.runtime import Clock, Stage
from neardup.search.engines import PAIRS_PER_DOCUMENT, most_pairs
from neardup.search.findings import Documents, classifier_details, recipe_details
from neardup.search.lsh import bands_of
from neardup.search.matches import Matches, members_of, sorted_pairs
from neardup.search.second_step import equal_texts, second_step
from neardup.spark.documents import Files, Read
from neardup.spark.features import (
    COLUMNS,
    FREQUENCIES,
    NO_ROW,
    REFERENCE,
    SET_ASIDE,
    Shared,
    count_bits,
    frequency_batches,
    known_batches,
    statistics_of,
)
from neardup.spark.keepers import KeptFirst, with_kept
from neardup.spark.search import FeatureSource, Search, check_recipe, parts_of
from neardup.spark.second_step import judged_by_workers
from neardup.version import __version__

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from neardup.spark.stages import Stages

Integers = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_REPEATED_ID = "repeated id"
#: Bytes of text whose features are counted in one table, where these are more than workers.
_TABLE_BYTES = 1 << 30
#: What the driver knows of each document.
_KNOWN = ("row", "size", "text_bytes", "text_mark0", "text_mark1", "mark0", "mark1")


class Known(NamedTuple):
    """The documents, in their order.

    Attributes
    ----------
    rows, sizes, text_bytes : int64[n]
        Their rows in frames; how many features each has, and bytes of text.
    marks, text_digests : uint64[n, 2]
        Digests of their features, and what equal texts have in common.
    own : int
        How many are of the input: those of a reference follow.
    ids, keep : pyarrow.Array or None
        Their ids, and what the keep order of those of the input goes by.
    """

    rows: Integers
    sizes: Integers
    text_bytes: Integers
    marks: npt.NDArray[np.uint64]
    text_digests: npt.NDArray[np.uint64]
    own: int
    ids: Any
    keep: Any

    def among(self, chosen: Bools) -> Known:
        """Return some of them."""
        own = chosen[: self.own]
        return Known(
            self.rows[chosen],
            self.sizes[chosen],
            self.text_bytes[chosen],
            self.marks[chosen],
            self.text_digests[chosen],
            int(own.sum()),
            None if self.ids is None else self.ids.filter(pa.array(chosen)),
            None if self.keep is None else self.keep.filter(pa.array(own)),
        )


def find(
    corpus: Corpus,
    read: Read,
    recipe: Recipe,
    *,
    stages: Stages,
    classifier: Classifier | None = None,
    pairs_per_document: float | None = PAIRS_PER_DOCUMENT,
    details: dict[str, Any] | None = None,
) -> tuple[Result, Known, DataFrame]:
    """Find the near-duplicates among documents.

    Parameters
    ----------
    corpus : Corpus
        What was read; of a data frame one without inputs.
    read : Read
        Its documents.
    recipe : Recipe
        What to do.
    stages : Stages
        Where what is found on the way is written.
    classifier : Classifier, optional
        Where ``recipe`` is that of a classifier: that classifier.
    pairs_per_document : float, optional
        As in ``neardup.dedup``; None for all pairs.
    details : dict, optional
        What else the summary says.

    Returns
    -------
    Result, Known, DataFrame
        What was found, as by ``pipeline.run``; the rows of its documents; and what is known of all, as
        ``features.COLUMNS``, with the columns that were carried.

    Raises
    ------
    NeardupError
        If Spark has no search for the recipe, it does not fit the documents, or these cannot be read.
    """
    check_recipe(recipe, classifier)
    if read.parts:
        read = read.written(stages)
    told, source = _features(read, recipe, stages)
    every, reports = _known(told, read, recipe, stages)
    files = None if read.told is None else read.told(reports)
    known = every if files is not None else _accepted(every, corpus)
    names = _names(known, corpus, files)
    values = [] if known.keep is None else [known.keep if files is None else known.keep.cast(files.kind)]
    order, missing = keep_order(recipe.keep, known.text_bytes[: known.own], values, corpus.order_column)
    order = np.concatenate([np.arange(known.own, len(known.rows)), order])
    most = None
    if pairs_per_document is not None and not (recipe.second_step or recipe.search == "lsh" or read.reference):
        most = most_pairs(pairs_per_document, known.own)
    found = _matches(known, every.rows, order, source, recipe, stages, most)
    if recipe.second_step:
        parts = parts_of(int(known.text_bytes.sum()), stages.workers)
        found = second_step(
            found,
            recipe,
            equal_texts(known.text_digests, known.text_bytes, found.representative < 0),
            None,
            judge=judged_by_workers(stages, recipe, classifier, read, known.rows, parts),
            reference=names.reference,
        )
    if classifier is not None:
        classifier.check_domain(DomainCounts.of(found.statistics))
    present = np.arange(len(known.rows)) < known.own
    documents = Documents(names, order, known.text_digests, known.text_bytes, present)
    summary = {
        "undecidable": int((present & (found.representative < 0)).sum()),
        "without_keep_value": missing,
        "search": found.statistics,
        "version": __version__,
    } | recipe_details(recipe)
    if classifier is not None:
        summary |= classifier_details(classifier, found.statistics)
    clock = Clock()
    clock.stages = cast("list[Stage]", stages.report)
    result = Result(corpus, recipe, documents, found, summary | (details or {}), clock, classifier=classifier)
    return result, known, told


def _features(read: Read, recipe: Recipe, stages: Stages) -> tuple[DataFrame, FeatureSource]:
    """Return what is known of all documents, and their features."""
    statistics = None
    if recipe.needs_statistics:
        counted = partial(frequency_batches, recipe)
        looked_at = [name for name in ("row", "text", "id") if name in read.columns]
        frequencies = statistics_of(stages, lambda: read.map(counted, looked_at, FREQUENCIES))
        Extractor(recipe, frequencies)
        statistics = Shared(read.source.sparkSession, frequencies)
    else:
        Extractor(recipe)
    carried = [name for name in ["id", "keep", "fault", *read.order] if name in read.columns]
    schema = ", ".join([COLUMNS, *(f"{name} {read.columns[name]}" for name in carried)])
    bits = 0 if recipe.search == "lsh" else count_bits(recipe, read.text_bytes)
    worker = partial(known_batches, recipe, statistics, carried, np.frombuffer(os.urandom(16), np.uint64), bits)
    columns = list(dict.fromkeys(["row", "text", *carried]))
    most = max(int(read.source.sparkSession.sparkContext.defaultParallelism), -(-read.text_bytes // _TABLE_BYTES))
    told = stages.run("features", lambda: read.map(worker, columns, schema, most))
    slices = told.where("slice is not null").select("slice", "data")
    return told.where("slice is null"), FeatureSource(read, recipe, statistics, slices)


def _known(features: DataFrame, read: Read, recipe: Recipe, stages: Stages) -> tuple[Known, list[dict[str, Any]]]:
    """Return what the driver has to know of all documents, rejected ones among them, and what tasks on files say."""
    by_value = recipe.keep not in KEEP_ORDERS or goes_by_time(recipe.keep)
    more = [name for name in ("id", "keep", "fault") if name in features.columns and (name != "keep" or by_value)]
    columns = [*_KNOWN, *more]
    if read.order:
        ordered = features.orderBy(features["row"] >= REFERENCE, *read.order, "row")
        table = ordered.select(*columns).toArrow().combine_chunks()
    else:
        table = stages.table("features", columns)
        table = table.take(pa.array(np.argsort(table["row"].to_numpy())))
    reports = []
    if "fault" in more:
        reports = [json.loads(report) for report in table["fault"].drop_null().to_pylist()]
    table = table.filter(pc.not_equal(table["row"], NO_ROW)).combine_chunks()
    known = {name: table[name].to_numpy() for name in _KNOWN}
    marks, text_digests = (
        np.column_stack([known[f"{what}{i}"] for i in range(2)]).view(np.uint64) for what in ("mark", "text_mark")
    )
    values = [table[name].combine_chunks() if name in more else None for name in ("id", "keep")]
    sizes = known["size"].astype(np.int64)
    own = int((known["row"] < REFERENCE).sum())
    if values[1] is not None:
        values[1] = values[1].slice(0, own)
    return Known(known["row"], sizes, known["text_bytes"], marks, text_digests, own, *values), reports


def _accepted(known: Known, corpus: Corpus) -> Known:
    """Return the documents of a data frame without those that are rejected, which the corpora count then."""
    good = known.sizes >= 0
    for side, begin, end in ((corpus, 0, known.own), (corpus.reference, known.own, len(good))):
        if side is None:
            continue
        counts = side.rejected.counts
        for code, reason in SET_ASIDE.items():
            if number := int((known.sizes[begin:end] == code).sum()):
                counts[reason] += number
        places = begin + np.flatnonzero(good[begin:end])
        again = places[repeated_ids(comparable_ids(known.ids.take(pa.array(places))))]
        good[again] = False
        if len(again):
            counts[_REPEATED_ID] += len(again)
    return known.among(good)


def comparable_ids(ids: pa.Array) -> pa.Array:
    """Return ids as a corpus has them: int64 or large_string."""
    return ids.cast(pa.int64() if pa.types.is_integer(ids.type) else pa.large_string())


def _names(known: Known, corpus: Corpus, files: Files | None) -> Names:
    """Return what the documents are called.

    Raises
    ------
    InputError
        If two documents of files have one id.
    """
    own = known.own
    if files is None:
        ids = comparable_ids(known.ids)
        reference = ids.slice(own) if corpus.reference is not None else None
        return Names(np.arange(len(known.rows)), ids.slice(0, own), reference)

    def called(side: Corpus, begin: int, end: int, numbers: bool) -> pa.Array | None:
        ids = known.ids.slice(begin, end - begin) if side.id_column else None
        return None if ids is None else ids.cast(pa.int64() if numbers else pa.large_string())

    raw = files.raw(known.rows)
    names = Names(raw, called(corpus, 0, own, files.numbers[0]))
    if corpus.reference is not None:
        others = called(corpus.reference, own, len(raw), files.numbers[1])
        names = Names(raw, names.ids, pa.array(raw[own:] - corpus.raw_rows) if others is None else others)
    corpus.refuse_repeated(names)
    return names


def _matches(
    known: Known,
    every: Integers,
    order: Integers,
    source: FeatureSource,
    recipe: Recipe,
    stages: Stages,
    most: int | None,
) -> Matches:
    """Return the pairs of distinct sets that match; every: the rows of all documents, rejected ones among them."""
    # Digests decide which sets are equal: no step meets the features of two sets again.
    representative = equal_texts(known.marks, known.sizes, known.sizes == 0)
    members = members_of(representative)
    others = np.sort(every[~np.isin(every, known.rows[members], assume_unique=True, kind="sort")])
    search = Search(recipe, stages, source, others, known.sizes[members], most)
    if recipe.search == "lsh":
        plan = bands_of(recipe)
        search.statistics |= {"bands": plan.bands, "rows": plan.rows}
        search.statistics |= {"jaccard_at_threshold": plan.jaccard, "recall_at_threshold": plan.recall}
    listed = search.candidates()
    if listed.too_many:
        first = order[representative[order] >= 0]
        _, begins = np.unique(representative[first], return_index=True)
        nodes = representative[first[np.sort(begins)]]
        edges = KeptFirst(search, known.rows[nodes]).pairs()
    else:
        edges = search.verified(listed)
    table = edges.toArrow()
    by_row = np.argsort(known.rows)
    sides = table["left"].to_numpy(), table["right"].to_numpy()
    left, right = (by_row[np.searchsorted(known.rows, side, sorter=by_row)] for side in sides)
    counts = np.column_stack([table["o"].to_numpy(), known.sizes[left], known.sizes[right]])
    left, right, counts = sorted_pairs(left, right, counts)
    complete = not listed.too_many and (most is None or len(left) <= most)
    if not complete:
        told = with_kept(representative, order, left, right)
        left, right, counts = left[told], right[told], counts[told]
    search.statistics["pairs"] = len(left)
    return Matches(representative, left, right, counts, complete=complete, statistics=search.statistics)
