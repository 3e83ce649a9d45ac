"""Runs all steps in memory: read, count, features, pairs, second step, keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.documents import Batch, Corpus
from neardup.documents.records import Names
from neardup.errors import RecipeError, check_count, option
from neardup.features.extraction import Encoder, Extractor, embed
from neardup.features.reading import (
    DocumentColumns,
    Progress,
    compared_texts,
    gather_statistics,
    ignore_progress,
    pieces,
)
from neardup.features.recomputed import BoundedStore, RecomputedFeatures
from neardup.features.statistics import Statistics
from neardup.features.store import FeatureStore
from neardup.files import parse_size
from neardup.keep.groups import GroupRule, group_rule, parse_share
from neardup.keep.order import Preference, keep_order
from neardup.kernels import Bools, Integers, Words
from neardup.pipeline.result import Result, Run
from neardup.recipe import Recipe
from neardup.runtime import Clock, Memory, default_threads, free_memory, map_in_order, trim_memory
from neardup.search.engines import PAIRS_PER_DOCUMENT, PairSearch, memory_needs, pair_limit
from neardup.search.findings import Documents
from neardup.search.lsh import bands_of
from neardup.search.margin import Margin, find_margin, relaxed_recipe, relaxed_second_step, split_at_threshold
from neardup.search.matches import distinct_documents
from neardup.search.second_step import (
    apply_second_step,
    check_classifier,
    judge_in_groups,
    text_representatives,
)

if TYPE_CHECKING:
    from neardup.classifier.classifier import Classifier
    from neardup.classifier.vector import Records

#: A smaller budget is a number whose unit was forgotten.
_MIN_MEMORY = 1_000_000
#: 2**64 / the golden ratio: groups times it are far apart.
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True, eq=False)
class CorpusFeatures:
    """A corpus after reading: names, features and keep order of its documents.

    Attributes
    ----------
    store : FeatureStore
        The features; the caller closes the store.
    present : bool[n]
        False for reference documents, which are neither kept nor dropped.
    keep_order : int64[n]
        Positions of the documents in keep order.
    without_keep_value : int
        Number of documents without a value to order by.
    groups : int64[n] or None
        With ``within``: the group of each document; 0 for documents without a value.
    drop_by : GroupRule or None
        The groups that are dropped or kept whole.
    """

    names: Names
    store: FeatureStore
    statistics: Statistics | None
    present: Bools
    keep_order: Integers
    without_keep_value: int
    groups: Integers | None = None
    drop_by: GroupRule | None = None

    @property
    def text_digests(self) -> Words:
        """Digests that are equal for equal texts of one group: uint64[n, 2]."""
        digests = self.store.text_digests
        return digests if self.groups is None else digests ^ (self.groups.astype(np.uint64) * _GOLDEN)[:, None]

    @property
    def documents(self) -> Documents:
        """The documents as a result has them."""
        return Documents(
            self.names, self.keep_order, self.text_digests, self.store.text_bytes, self.present, self.drop_by
        )


def _workers_memory(recipe: Recipe, threads: int) -> int:
    """Return the bytes that the processes that extract the contents of pages take; 0 if none are needed."""
    if not recipe.content:
        return 0
    from neardup.text.contents import workers_memory

    return workers_memory(threads)


def collect_features(
    corpus: Corpus,
    recipe: Recipe,
    *,
    threads: int | None = None,
    memory: int | str | None = None,
    report: Progress | None = None,
    clock: Clock | None = None,
    recompute: bool = False,
    single_use: bool = False,
    within: str | None = None,
    prefer: Preference | None = None,
    drop_by: str | None = None,
    drop_share: Fraction = Fraction(1),
) -> CorpusFeatures:
    """Read a corpus and make its features.

    The corpus is read once, or twice for recipes with ``needs_statistics``, and its reference with it; ``within``,
    ``prefer`` and ``drop_by`` cause one more pass each. Of the recipe, the steps up to ``signature`` count, and
    ``keep``. The clock records the stages "count" and "read and features". The other parameters are those of ``run``.

    Parameters
    ----------
    recompute : bool
        Whether to recompute features that do not fit into memory: the store is then a ``BoundedStore``, which reads
        the corpus again during the search.
    single_use : bool
        Whether there is only one search for pairs.
    """
    threads, memory = thread_count(threads), memory_budget(memory)
    clock = clock or Clock()
    statistics = None
    if recipe.needs_statistics:
        with clock.stage("count"):
            statistics = gather_statistics(corpus, recipe, threads=threads, memory=memory, progress=report)
    digests = bool(recipe.second_step) or recipe.measure == "semantic"
    extractor, columns = Extractor(recipe, statistics, digests=digests), DocumentColumns()
    store = FeatureStore(Memory(memory, _workers_memory(recipe, threads)), memory_needs(recipe))
    store.check_document_count(corpus.declared_rows)
    if recompute:
        max_bytes = (free_memory() if memory is None else store.memory.free_bytes) / 2
        counts = recipe.search != "lsh"
        recomputed = RecomputedFeatures(corpus, extractor, threads, report, single_use=single_use, with_counts=counts)
        store = BoundedStore(store.memory, memory_needs(recipe), max_bytes, recomputed)
    bytes_read = row_count = 0
    allocated = pa.total_allocated_bytes()

    def observe(batch: Batch) -> None:
        nonlocal bytes_read, row_count
        columns.add(batch)
        bytes_read += batch.bytes_read
        row_count += len(batch.rows)
        store.reader_bytes = max(store.reader_bytes, pa.total_allocated_bytes() - allocated)
        if batch.ids is not None and not pa.types.is_integer(batch.ids.type):
            store.id_bytes += batch.ids.nbytes
        if bytes_read > 0:
            store.expected_documents = row_count * corpus.total_bytes / bytes_read

    with clock.stage("read and features"):
        make = partial(extractor, allocate=store.allocate)
        texts = pieces(corpus, "read", None if recipe.content else report, observe, content=recipe.content)
        for block in map_in_order(make, texts, threads):
            store.add(block)
            if recipe.content and report is not None:
                # Bytes are read long before their pages are extracted.
                report("pages", len(store), max(round(store.expected_documents), len(store)))
        if isinstance(store, BoundedStore):
            store.finish_count()
    trim_memory()
    names = columns.names(None if corpus.reference is None else corpus.raw_rows)
    corpus.check_unique_ids(names)
    corpus.name_failed_pages()
    input_count = names.input_count
    order, missing = keep_order(recipe.keep, store.text_bytes[:input_count], columns.order, corpus.order_column)
    if prefer is not None:
        order = prefer.sort(order, corpus.values(prefer.column, input_only=True))
    if input_count < len(names):
        # Reference documents come first, whatever the order of the input.
        order = np.concatenate([np.arange(input_count, len(names)), order])
    present = np.ones(len(names), np.bool_)
    present[input_count:] = False
    groups = None
    if within is not None:
        codes = pc.dictionary_encode(corpus.values(within)).indices
        groups = np.asarray(pc.fill_null(pc.add(codes, 1), 0), np.int64)
    rule = None if drop_by is None else group_rule(corpus.values(drop_by), drop_by, drop_share, input_count)
    return CorpusFeatures(names, store, statistics, present, order, missing, groups, rule)


def run(
    corpus: Corpus,
    recipe: Recipe,
    *,
    threads: int | None = None,
    memory: int | str | None = None,
    pairs_per_document: float | str | None = PAIRS_PER_DOCUMENT,
    margin: float | None = None,
    within: str | None = None,
    prefer: Preference | None = None,
    drop_by: str | None = None,
    drop_share: float | str | Fraction = 1,
    encoder: Encoder | None = None,
    classifier: Classifier | None = None,
    progress: Progress | None = None,
) -> Result:
    """Find the near-duplicates of a corpus, which must stay open as long as the result is used.

    The other parameters are those of ``neardup.dedup``.

    Parameters
    ----------
    pairs_per_document : float or None
        As in ``dedup``; applies to the exact join of feature sets only. None finds all pairs, whatever they cost: a
        thousand slightly different copies make half a million.
    margin : float, optional
        As in ``dedup``; for a recipe with a second step, below the threshold of that step.
    classifier : Classifier, optional
        The classifier whose recipe ``recipe`` is.

    Raises
    ------
    NeardupError
        If the input cannot be read or an option does not fit.
    """
    threads, memory = thread_count(threads), memory_budget(memory)
    report = progress or ignore_progress
    clock = Clock()
    _check_before_reading(corpus, recipe, encoder, classifier)
    relaxed = None if margin is None else relaxed_recipe(recipe, margin)
    recompute = recipe.measure not in ("hamming", "semantic") and not recipe.is_weighted
    if prefer is not None:
        corpus.require_column(prefer.column, option("--prefer", "prefer"))
    share = parse_share(drop_share)
    for side in (corpus, corpus.reference):
        for name, column in ((option("--within"), within), (option("--drop-by"), drop_by)):
            if column is not None and side is not None:
                side.require_column(column, name)
    features = collect_features(
        corpus,
        recipe,
        threads=threads,
        memory=memory,
        report=report,
        clock=clock,
        recompute=recompute,
        single_use=relaxed is None or bool(recipe.second_step),
        within=within,
        prefer=prefer,
        drop_by=drop_by,
        drop_share=share,
    )
    max_pairs = None
    if pairs_per_document == "all":
        pairs_per_document = None
    if pairs_per_document is not None and within is None and drop_by is None and not recipe.second_step:
        max_pairs = pair_limit(float(pairs_per_document), features.names.input_count)
    margin_pairs: Margin | None = None
    with features.store as store:
        with clock.stage("join"):
            find = _finder(corpus, recipe, features, encoder, threads)
            matches = find(recipe, max_pairs, partial(report, "join"))
        spilled, room = store.memory.spilled_bytes, store.spare_bytes
        if relaxed is not None and not recipe.second_step:
            max_margin_pairs = (
                pair_limit(PAIRS_PER_DOCUMENT, features.names.input_count) if max_pairs is None else max_pairs
            )
            search = partial(find, max_pairs=max_margin_pairs, progress=partial(report, "margin"), all_or_none=True)
            with clock.stage("margin"):
                margin_pairs = find_margin(recipe, relaxed, matches, search)
    step = recipe.parsed_second_step
    if step is not None:
        widened_step, widened_classifier = relaxed_second_step(step, relaxed, classifier)
        with clock.stage("verify"):
            judge = partial(
                judge_in_groups,
                step=widened_step,
                records_of=lambda documents: load_records(
                    corpus, recipe, features.names.rows[documents], threads, classifier
                ),
                classifier=widened_classifier,
                text_bytes=store.text_bytes,
                room=room,
                threads=threads,
                encoder=encoder,
                progress=partial(report, "verify"),
            )
            texts = text_representatives(features.text_digests, store.text_bytes, matches.representative < 0)
            matches = apply_second_step(matches, texts, judge, features.names.reference_count)
        if relaxed is not None:
            matches, margin_pairs = split_at_threshold(matches, recipe, relaxed, classifier)
    with clock.stage("keep"):
        details = {
            "without_keep_value": features.without_keep_value,
            "search": matches.statistics | {"spilled_bytes": spilled},
            "threads": threads,
        }
        if within is not None:
            details["within"] = within
        if prefer is not None:
            details["prefer"] = f"{prefer.column}={','.join(prefer.values)}"
        finished = Run(
            corpus=corpus,
            recipe=recipe,
            documents=features.documents,
            matches=matches,
            details=details,
            clock=clock,
            statistics=features.statistics,
            encoder=encoder,
            classifier=classifier,
            margin=margin_pairs,
            memory=memory,
        )
        return Result(finished)


def _check_before_reading(
    corpus: Corpus, recipe: Recipe, encoder: Encoder | None, classifier: Classifier | None
) -> None:
    """Check, before reading, all that would otherwise fail only after the corpus has been read."""
    if recipe.search == "lsh":
        bands_of(recipe)
    step = recipe.parsed_second_step
    if classifier is not None or (step is not None and step.measure == "learned"):
        for side in (corpus, corpus.reference):
            if side is not None:
                check_classifier(classifier, recipe, encoder).check_columns(side.columns)
    if encoder is None and (recipe.measure == "semantic" or (step is not None and step.measure == "semantic")):
        user = "measure 'semantic'" if step is None or recipe.measure == "semantic" else f"second_step {str(step)!r}"
        raise RecipeError(
            f"{user} needs an encoder, an object with encode(texts): pass one in Python, nd.dedup(..., encoder=...)"
        )


def thread_count(threads: int | None) -> int:
    """Return the number of threads to use: for None, one per processor.

    Raises ``RecipeError`` if it is not a whole number of at least 1.
    """
    if threads is None:
        return default_threads()
    check_count("threads", threads, "give a number, or leave it out for all processors")
    return threads


def memory_budget(memory: int | str | None) -> int | None:
    """Return a budget in bytes, given as a number or like ``2GB``; raise ``RecipeError`` if it is too small."""
    if memory is None:
        return None
    memory = parse_size(memory)
    if memory < _MIN_MEMORY:
        sensible = option("--memory 500MB", "memory='500MB'")
        raise RecipeError(
            f"{option('--memory')} {memory} is a budget in bytes, and the program alone takes 250 MB; give "
            f"{sensible} or more"
        )
    return memory


def _finder(
    corpus: Corpus, recipe: Recipe, features: CorpusFeatures, encoder: Encoder | None, threads: int
) -> PairSearch:
    finder = PairSearch(
        store=features.store,
        statistics=features.statistics,
        keep_order=features.keep_order,
        threads=threads,
        reference_count=features.names.reference_count,
        groups=features.groups,
    )
    if recipe.measure != "semantic" or encoder is None:
        return finder
    sizes = features.store.text_bytes
    representative = text_representatives(features.store.text_digests, sizes, sizes == 0)
    embeddings = embed(
        load_texts(corpus, recipe, features.names.rows[distinct_documents(representative)], threads), encoder
    )
    return replace(finder, embeddings=embeddings, representative=representative)


def load_texts(corpus: Corpus, recipe: Recipe, rows: Integers, threads: int) -> Sequence[str]:
    """Return the compared texts of raw rows: the text column, or the main content of pages."""
    return compared_texts(corpus.take(rows)[corpus.text_column].to_pylist(), recipe, threads)


def load_records(
    corpus: Corpus,
    recipe: Recipe,
    rows: Integers,
    threads: int,
    classifier: Classifier | None = None,
) -> Records:
    """Return what a second step compares of raw rows: texts, and titles and times if a classifier needs them."""
    from neardup.classifier.vector import Records

    if classifier is None or not classifier.needs_columns:
        return Records(load_texts(corpus, recipe, rows, threads))
    return classifier.records(corpus.take(rows), load_texts(corpus, recipe, rows, threads))
