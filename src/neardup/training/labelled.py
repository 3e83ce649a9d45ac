"""Labelled pairs with what is measured of them: documents, whether the candidate rule lets them through, and x."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from neardup.classifier.columns import records_of_table
from neardup.classifier.values import Measurer
from neardup.classifier.vector import Vector, statistics_for
from neardup.documents import Corpus
from neardup.errors import InputError, RecipeError
from neardup.features.embeddings import Encoder
from neardup.features.extraction import Extractor
from neardup.features.reading import Progress, compared_texts
from neardup.features.statistics import Statistics
from neardup.kernels import Bools, Floats, Integers
from neardup.kernels.pairs import count_overlaps
from neardup.labels.labels import read_labels
from neardup.pages.documents import Material
from neardup.recipe import Recipe
from neardup.recipe.measures import reaching, similarities

_PAIRS_AT_A_TIME = 1 << 14


class LabelOptions(NamedTuple):
    """How labels and their documents are read; see ``labels.labels.read_labels``."""

    label_column: str | None = None
    positive: float = 1.0
    only: str | None = None
    ignore_unknown: bool = False
    #: Columns of the corpus; empty to find them by their names.
    title_column: str = ""
    time_column: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class LabelledPairs:
    """n labelled pairs of m documents."""

    names: list[str]
    #: int64[n]: the documents of each pair, by their places in ``names``.
    left: Integers
    right: Integers
    #: bool[n]: whether it is one.
    duplicate: Bools
    #: int64[n]: pairs of documents that labelled duplicates hold together have the same one.
    family: Integers
    #: float64[n, r]: the similarity vector; NaN for what is not known.
    x: Floats
    #: bool[n]: whether the texts are equal, so that nothing is to be decided.
    equal: Bools
    #: float64[n]: by the candidate rule's measure; 0 without a shared feature.
    similarity: Floats
    #: bool[n]: whether the candidate rule lets the pair through.
    inside: Bools
    #: What is compared of each of the m documents.
    texts: Sequence[str]
    #: Of the collection, as the vector needs them.
    statistics: dict[str, Statistics]
    documents: int
    #: What to keep in mind when reading figures that rest on these labels.
    warnings: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.duplicate)

    @property
    def decided(self) -> Bools:
        """Which pairs a machine decides on: different texts that the candidate rule lets through."""
        return self.inside & ~self.equal

    def ids(self, pair: int) -> tuple[str, str]:
        """Return the ids of a pair."""
        return self.names[self.left[pair]], self.names[self.right[pair]]


def labelled_pairs(
    corpus: Corpus,
    source: Any,
    vector: Vector,
    rule: Recipe,
    reading: LabelOptions,
    *,
    threads: int,
    encoder: Encoder | None = None,
    report: Progress,
) -> LabelledPairs:
    """Read the labels of a corpus and measure the pairs.

    The corpus is read once, and once more for each kind of feature that the vector counts. The features and the measure
    of ``rule`` say which pairs are inside, its content what of the texts is compared.
    """
    known = Material.of(corpus, report=report).names
    if not len(known):
        raise InputError("the input holds no documents; give the ones that the labels are about")
    names = [str(name) for name in known.all_names().to_pylist()]
    labels = read_labels(
        source,
        names,
        label_column=reading.label_column,
        positive=reading.positive,
        only=reading.only,
        ignore_unknown=reading.ignore_unknown,
    )
    if labels.keys is None or labels.duplicate is None:
        raise RecipeError(
            "the labels are clusters, and a classifier is trained on pairs; give rows like id1,id2,label, with pairs "
            "that are no duplicates among them"
        )
    left, right = np.divmod(labels.keys, len(names))
    documents = np.unique(np.concatenate([left, right]))
    statistics = statistics_for(vector, corpus, content=rule.content, threads=threads, report=report)
    table = corpus.take(known.rows[documents])
    texts = compared_texts(table[corpus.text_column].to_pylist(), rule, threads)
    columns = {"title_column": reading.title_column, "time_column": reading.time_column}
    records = records_of_table(table, texts, vector, **columns)
    measurer = Measurer(vector, statistics, encoder=encoder, threads=threads)
    prepared = measurer.prepare(records)
    places = np.searchsorted(documents, left), np.searchsorted(documents, right)
    parts = [np.empty((0, len(vector)))]
    for begin in range(0, len(left), _PAIRS_AT_A_TIME):
        part = slice(begin, begin + _PAIRS_AT_A_TIME)
        parts.append(measurer.measure(prepared, places[0][part], places[1][part]))
        report("measure", min(begin + _PAIRS_AT_A_TIME, len(left)), len(left))
    similarity, inside = _by_rule(rule, texts, *places)
    return LabelledPairs(
        names=[names[document] for document in documents.tolist()],
        left=places[0],
        right=places[1],
        duplicate=labels.duplicate,
        family=labels.group_of_pairs(left, right),
        x=np.concatenate(parts),
        equal=np.array([texts[i] == texts[j] for i, j in zip(*(p.tolist() for p in places), strict=True)], np.bool_),
        similarity=similarity,
        inside=inside,
        texts=texts,
        statistics=statistics,
        documents=len(names),
        warnings=labels.warnings,
    )


def _by_rule(rule: Recipe, texts: Sequence[str], left: Integers, right: Integers) -> tuple[Floats, Bools]:
    """Return how alike pairs of texts are by a candidate rule's measure, and which of them it lets through.

    A text without features has no partner.
    """
    block = Extractor(rule.changed(content=""))(pa.array(texts, pa.large_string()))
    heads = np.concatenate([[0], np.cumsum(block.sizes)]).astype(np.int64)
    owner = np.repeat(np.arange(len(block.sizes)), block.sizes)
    features = block.features[np.lexsort((block.features, owner))]
    shared = np.empty(len(left), np.int64)
    count_overlaps(heads, features, left, right, shared)
    sizes = np.maximum(block.sizes, 1)
    counts = np.column_stack([shared, sizes[left], sizes[right]])
    reached = reaching(rule.measure, counts, rule.exact_threshold)
    return similarities(rule.measure, counts), np.asarray(reached & (shared > 0), np.bool_)
