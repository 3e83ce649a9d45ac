"""Labelled pairs with their documents, their similarity vectors, and whether they are candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from neardup.classifier.feature_rows import FeatureRows
from neardup.classifier.measurer import Measurer
from neardup.classifier.vector import Vector, read_records, vector_statistics
from neardup.documents import Corpus
from neardup.errors import InputError, RecipeError
from neardup.features.extraction import Encoder, Extractor
from neardup.features.reading import Progress, compared_texts
from neardup.features.statistics import Statistics
from neardup.kernels import Bools, Floats, Integers
from neardup.labels.labels import read_labels
from neardup.pages.documents import DocumentReader
from neardup.recipe import Recipe
from neardup.recipe.measures import reaches_threshold, similarities

_BLOCK_PAIRS = 1 << 14


class LabelOptions(NamedTuple):
    """How to read labels and their documents; see ``labels.labels.read_labels``."""

    label_column: str | None = None
    positive: float = 1.0
    only: str | None = None
    ignore_unknown: bool = False
    #: Columns of the corpus; empty for the usual names.
    title_column: str = ""
    time_column: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class LabelledPairs:
    """n labelled pairs of m documents."""

    document_ids: list[str]
    #: int64[n]: the documents of each pair, as positions in ``document_ids``.
    left: Integers
    right: Integers
    is_duplicate: Bools  #: bool[n]: the labels
    family: Integers  #: int64[n]: equal for pairs of documents that labelled duplicates connect
    x: Floats  #: float64[n, r]: the similarity vectors, NaN for an unknown measure
    has_equal_texts: Bools  #: bool[n]: whether both texts are equal, so that a machine has nothing to decide
    similarity: Floats  #: float64[n]: the candidate rule's measure; 0 without a shared feature
    is_candidate: Bools  #: bool[n]: whether the candidate rule finds the pair
    texts: Sequence[str]  #: the compared text of each document
    statistics: dict[str, Statistics]  #: document frequencies that the vector needs, of the whole collection
    documents: int  #: the number of documents in the collection
    warnings: tuple[str, ...]  #: caveats for figures based on these labels

    def __len__(self) -> int:
        return len(self.is_duplicate)

    @property
    def is_decided(self) -> Bools:
        """Which pairs a machine decides: candidates with different texts, bool[n]."""
        return self.is_candidate & ~self.has_equal_texts

    def ids(self, pair: int) -> tuple[str, str]:
        """Return the document ids of a pair."""
        return self.document_ids[self.left[pair]], self.document_ids[self.right[pair]]


def labelled_pairs(
    corpus: Corpus,
    source: Any,
    vector: Vector,
    rule: Recipe,
    options: LabelOptions,
    *,
    threads: int,
    encoder: Encoder | None = None,
    progress: Progress,
) -> LabelledPairs:
    """Return the labelled pairs of a corpus, measured.

    Reads the corpus once, and once more for each kind of feature whose document frequencies the vector needs. The
    candidate rule decides which pairs are candidates, and its ``content`` which part of the texts is compared.
    """
    corpus_names = DocumentReader.from_corpus(corpus, report=progress).names
    if not len(corpus_names):
        raise InputError("the input has no documents; give the documents that the labels name")
    names = [str(name) for name in corpus_names.all_names().to_pylist()]
    labels = read_labels(
        source,
        names,
        label_column=options.label_column,
        positive=options.positive,
        only=options.only,
        ignore_unknown=options.ignore_unknown,
    )
    if labels.keys is None or labels.duplicate is None:
        raise RecipeError(
            "the labels are clusters, and a classifier is trained on pairs; give rows like id1,id2,label, including "
            "pairs that are no duplicates"
        )
    left, right = np.divmod(labels.keys, len(names))
    family = labels.pair_groups(left, right)
    documents = np.unique(np.concatenate([left, right]))
    statistics = vector_statistics(vector, corpus, content=rule.content, threads=threads, progress=progress)
    table = corpus.take(corpus_names.rows[documents])
    texts = compared_texts(table[corpus.text_column].to_pylist(), rule, threads)
    columns = {"title_column": options.title_column, "time_column": options.time_column}
    measurer = Measurer(vector, statistics, encoder=encoder, threads=threads)
    prepared = measurer.prepare(read_records(table, texts, vector, **columns))
    left, right = np.searchsorted(documents, left), np.searchsorted(documents, right)
    blocks = [np.empty((0, len(vector)))]
    for begin in range(0, len(left), _BLOCK_PAIRS):
        part = slice(begin, begin + _BLOCK_PAIRS)
        blocks.append(measurer.measure(prepared, left[part], right[part]))
        progress("measure", min(begin + _BLOCK_PAIRS, len(left)), len(left))
    similarity, is_candidate = _apply_rule(rule, texts, left, right)
    equal = [texts[i] == texts[j] for i, j in zip(left.tolist(), right.tolist(), strict=True)]
    return LabelledPairs(
        document_ids=[names[document] for document in documents.tolist()],
        left=left,
        right=right,
        is_duplicate=labels.duplicate,
        family=family,
        x=np.concatenate(blocks),
        has_equal_texts=np.array(equal, np.bool_),
        similarity=similarity,
        is_candidate=is_candidate,
        texts=texts,
        statistics=statistics,
        documents=len(names),
        warnings=labels.warnings,
    )


def _apply_rule(rule: Recipe, texts: Sequence[str], left: Integers, right: Integers) -> tuple[Floats, Bools]:
    """Return each pair's similarity by a candidate rule, and whether the rule finds it; empty texts have no partner."""
    block = Extractor(rule.changed(content=""))(pa.array(texts, pa.large_string()))
    counts = FeatureRows.from_sizes(block.sizes, block.features).sort().pair_counts(left, right)
    counts[:, 1:] = np.maximum(counts[:, 1:], 1)
    is_reached = reaches_threshold(rule.measure, counts, rule.exact_threshold)
    return similarities(rule.measure, counts), np.asarray(is_reached & (counts[:, 0] > 0), np.bool_)
