"""A run on Spark: the workers read, make features and compare; the driver has a row for each document, and decides."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Self, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.classifier.classifier import Classifier
from neardup.documents import Corpus
from neardup.documents.records import Names, repeated_ids
from neardup.features.extraction import Extractor
from neardup.keep.order import goes_by_time, keep_order
from neardup.pipeline.result import Result
from neardup.recipe import KEEP_ORDERS, Recipe
from neardup.runtime import Clock, Stage
from neardup.search.engines import most_pairs
from neardup.search.findings import Documents, classifier_details, recipe_details
from neardup.search.lsh import bands_of
from neardup.search.matches import Matches, members_of, sorted_pairs
from neardup.search.second_step import equal_texts, second_step
from neardup.spark.documents import Read, column_of
from neardup.spark.features import SET_ASIDE, Shared, features_of, statistics_of
from neardup.spark.keepers import KeptFirst, with_kept
from neardup.spark.search import REFERENCE, Search, Settings, check_recipe
from neardup.spark.second_step import judged_by_workers
from neardup.version import __version__

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from neardup.spark.documents import FrameDocuments
    from neardup.spark.stages import Stages

Integers = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_REPEATED_ID = "repeated id"
#: What the driver knows of each document.
_KNOWN = ("row", "size", "text_bytes", "text_mark0", "text_mark1", "mark0", "mark1")


class Known(NamedTuple):
    """The documents, in their order.

    Attributes
    ----------
    rows, sizes, text_bytes : int64[n]
        Their rows in frames; how many features each has, and bytes of text.
    marks, text_marks : uint64[n, 2]
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
    text_marks: npt.NDArray[np.uint64]
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
            self.text_marks[chosen],
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
    settings: Settings | None = None,
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
    settings : Settings, optional
        How the work is cut.
    details : dict, optional
        What else the summary says.

    Returns
    -------
    Result, Known, DataFrame
        What was found, as by ``pipeline.run``; the rows of its documents; and the features of all, as
        ``features.COLUMNS``, with the columns that were carried.

    Raises
    ------
    NeardupError
        If Spark has no search for the recipe, or it does not fit the documents.
    """
    check_recipe(recipe, classifier)
    settings = settings or Settings()
    features = _features(read, recipe, stages)
    every = _known(features, read, recipe)
    known = every if read.raw is not None else _accepted(every, corpus)
    names = _names(known, corpus, read)
    values = [] if known.keep is None else [known.keep]
    order, missing = keep_order(recipe.keep, known.text_bytes[: known.own], values, corpus.order_column)
    order = np.concatenate([np.arange(known.own, len(known.rows)), order])
    most = None
    if settings.pairs_per_document is not None and not (recipe.second_step or recipe.search == "lsh" or read.reference):
        most = most_pairs(settings.pairs_per_document, known.own)
    found = _matches(known, every.rows, order, features, recipe, stages, settings, most)
    if recipe.second_step:
        parts = settings.parts(int(known.text_bytes.sum()), stages.workers)
        found = second_step(
            found,
            recipe,
            equal_texts(known.text_marks, known.text_bytes, found.representative < 0),
            None,
            judge=judged_by_workers(stages, recipe, classifier, features, known.rows, parts),
            reference=names.reference,
        )
    present = np.arange(len(known.rows)) < known.own
    documents = Documents(names, order, known.text_marks, known.text_bytes, present)
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
    return result, known, features


def _features(read: Read, recipe: Recipe, stages: Stages) -> DataFrame:
    """Return the features of all documents."""
    if not recipe.needs_statistics:
        Extractor(recipe)
    wanted = ["id", "keep", *(["text", "title", "time"] if recipe.second_step else [])]
    carried = [name for name in [*wanted, *read.order] if name in read.documents.columns]

    def make() -> DataFrame:
        statistics = None
        if recipe.needs_statistics:
            counted = statistics_of(stages, read.documents, recipe)
            Extractor(recipe, counted)
            statistics = Shared(read.documents.sparkSession, counted)
        return features_of(read.documents, recipe, statistics, carried)

    return stages.run("features", make)


def _known(features: DataFrame, read: Read, recipe: Recipe) -> Known:
    """Return what the driver has to know of all documents, those that are rejected among them."""
    by_value = recipe.keep not in KEEP_ORDERS or goes_by_time(recipe.keep)
    more = [name for name in ("id", "keep") if name in features.columns and (name == "id" or by_value)]
    chosen = features
    if read.order:
        chosen = features.orderBy(features["row"] >= REFERENCE, *read.order, "row")
    table = chosen.select(*_KNOWN, *more).toArrow().combine_chunks()
    if not read.order:
        table = table.take(pa.array(np.argsort(table["row"].to_numpy())))
    columns = {name: table[name].to_numpy() for name in _KNOWN}
    marks, text_marks = (
        np.column_stack([columns[f"{what}{i}"] for i in range(2)]).view(np.uint64) for what in ("mark", "text_mark")
    )
    values = [table[name].combine_chunks() if name in more else None for name in ("id", "keep")]
    sizes = columns["size"].astype(np.int64)
    own = int((columns["row"] < REFERENCE).sum())
    if values[1] is not None:
        values[1] = values[1].slice(0, own)
    return Known(columns["row"], sizes, columns["text_bytes"], marks, text_marks, own, *values)


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


def _names(known: Known, corpus: Corpus, read: Read) -> Names:
    """Return what the documents are called.

    Raises
    ------
    InputError
        If two documents of files have one id.
    """
    own = known.own
    if read.raw is None:
        ids = comparable_ids(known.ids)
        reference = ids.slice(own) if read.reference else None
        return Names(np.arange(len(known.rows)), ids.slice(0, own), reference)
    raw = read.raw(known.rows)
    sides = [None if known.ids is None else part for part in _sides(known, read)]
    names = Names(raw, sides[0] if corpus.id_column else None)
    if corpus.reference is not None:
        called = sides[1] if corpus.reference.id_column else pa.array(raw[own:] - corpus.raw_rows)
        names = Names(raw, names.ids, called)
    corpus.refuse_repeated(names)
    return names


def _sides(known: Known, read: Read) -> list[pa.Array]:
    if known.ids is None:
        return [pa.nulls(0), pa.nulls(0)]
    parts = known.ids.slice(0, known.own), known.ids.slice(known.own)
    kinds = [pa.int64() if numbers else pa.large_string() for numbers in read.numbers]
    return [part.cast(kind) for part, kind in zip(parts, kinds, strict=False)]


def _matches(
    known: Known,
    every: Integers,
    order: Integers,
    features: DataFrame,
    recipe: Recipe,
    stages: Stages,
    settings: Settings,
    most: int | None,
) -> Matches:
    """Return the pairs of distinct sets that match; every: the rows of all documents, rejected ones among them."""
    # Digests decide which sets are equal: no step meets the features of two sets again.
    representative = equal_texts(known.marks, known.sizes, known.sizes == 0)
    members = members_of(representative)
    others = np.setdiff1d(every, known.rows[members])
    able = features.where("size > 0").select("row", "features")
    search = Search(recipe, stages, settings, able, others, known.sizes[members], most)
    if recipe.search == "lsh":
        plan = bands_of(recipe)
        search.statistics |= {"bands": plan.bands, "rows": plan.rows}
        search.statistics |= {"jaccard_at_threshold": plan.jaccard, "recall_at_threshold": plan.recall}
    listed = search.candidates()
    if listed.too_many:
        first = order[representative[order] >= 0]
        _, begins = np.unique(representative[first], return_index=True)
        nodes = representative[first[np.sort(begins)]]
        edges = KeptFirst(search, features.sparkSession, known.rows[nodes]).pairs()
    else:
        edges = search.verified(listed)
    table = edges.toArrow()
    by_row = np.argsort(known.rows)
    left, right = (by_row[np.searchsorted(known.rows, table[side].to_numpy(), sorter=by_row)] for side in EDGE_ENDS)
    counts = np.column_stack([table["o"].to_numpy(), known.sizes[left], known.sizes[right]])
    left, right, counts = sorted_pairs(left, right, counts)
    complete = not listed.too_many and (most is None or len(left) <= most)
    if not complete:
        told = with_kept(representative, order, left, right)
        left, right, counts = left[told], right[told], counts[told]
    search.statistics["pairs"] = len(left)
    return Matches(representative, left, right, counts, complete=complete, statistics=search.statistics)


EDGE_ENDS = ("left", "right")
#: Names that no column of a data frame is likely to have.
_ID, _TIE, _PLACE = "neardup id", "neardup tie", "neardup place"


class SparkResult:
    """What a run on a data frame found. Its frames read the run's stages, so they are good until ``close``.

    Attributes
    ----------
    recipe : Recipe
        What was done.
    summary : dict
        Counts, stages, recipe and version, ready for JSON.
    """

    def __init__(
        self, source: FrameDocuments, result: Result, known: Known, features: DataFrame, stages: Stages
    ) -> None:
        self._source, self._result, self._features, self._stages = source, result, features, stages
        self._known = known
        self.recipe, self.summary = result.recipe, result.summary

    @cached_property
    def kept(self) -> DataFrame:
        """The documents that stay, with all columns; those that were rejected are not among them."""
        from pyspark.sql import Window
        from pyspark.sql import functions as F

        source, found = self._source, self._result.findings
        own, frame = column_of(source.source, source.id), source.source
        gone = self._frame({"id": self._known.ids.filter(pa.array(found.goes))})
        if not self.summary["rejected"]:
            return _without(frame, own, gone).where(own.isNotNull())
        # Ids of which some rows are documents and others are not: each row is known by its id and a hash of its text.
        all_of_input = self._features.where(f"row < {REFERENCE}")
        good = self._frame({"row": pa.array(self._known.rows[found.stays])})
        aside = all_of_input.join(self._frame({"row": pa.array(self._known.rows)}), "row", "left_anti")
        aside = aside.where("id is not null").select("id").distinct()
        others = _without(frame, own, gone.union(aside)).where(own.isNotNull())
        tie = self._features.columns[-1]
        good = all_of_input.join(good, "row", "left_semi").join(aside, "id", "left_semi")
        good = good.select(F.col("id").alias(_ID), F.col(tie).alias(_TIE))
        place = F.row_number().over(Window.partitionBy(own).orderBy(*source.by)).alias(_PLACE)
        asked = frame.join(good, (own == good[_ID]) & (source.by[-1] == good[_TIE]), "left_semi")
        firsts = asked.select("*", place).where(F.col(_PLACE) == 1).drop(_PLACE)
        return others.union(firsts)

    @cached_property
    def duplicates(self) -> DataFrame:
        """The documents that go: dropped, keeper (ids), similarity, family; against a reference also keeper_from."""
        found = self._result.findings
        at = np.flatnonzero(found.goes)
        keeper = found.kept.keeper[at]
        columns = {
            "dropped": self._ids(at),
            "keeper": self._ids(keeper),
            "similarity": pa.array(found.kept.similarity[at]),
            "family": pa.array(found.families.family[at]),
        }
        if found.documents.names.reference_names is not None:
            columns["keeper_from"] = found.documents.names.side_of(keeper)
        return self._frame(columns)

    @cached_property
    def pairs(self) -> DataFrame:
        """All pairs at or above the threshold: left, right (ids, the earlier document first), similarity.

        Against a reference, right_from says which side right is of. A group of m equal documents has m (m - 1) / 2
        pairs, which the workers make.
        """
        from pyspark.sql import functions as F

        found, names = self._result.pairs, self._result.findings.documents.names
        several = np.bincount(found.representative[found.representative >= 0], minlength=len(names)) > 1
        several[found.left] = several[found.right] = True
        at = np.flatnonzero((found.representative >= 0) & several[found.representative])
        columns = {"id": self._ids(at), "node": found.representative[at], "first": at}
        matched = self._frame(columns | {"side": names.side_of(at)})
        edges = {"one": found.left, "other": found.right, "similarity": found.similarity}
        own = np.flatnonzero(np.bincount(found.representative[at], minlength=len(names)) > 1)
        equal = {"one": own, "other": own, "similarity": np.ones(len(own))}
        both = self._frame({name: np.concatenate([edges[name], equal[name]]) for name in edges})
        sides = [matched.select(*(F.col(n).alias(f"{n}_{s}") for n in matched.columns)) for s in ("l", "r")]
        met = both.join(sides[0], F.col("one") == F.col("node_l")).join(sides[1], F.col("other") == F.col("node_r"))
        # Of equals each pair comes twice, and each document with itself.
        met = met.where("(one <> other or first_l < first_r) and (side_l = 'input' or side_r = 'input')")
        earlier = "first_l < first_r"
        chosen = [f"if({earlier}, id_l, id_r) as left", f"if({earlier}, id_r, id_l) as right", "similarity"]
        if names.reference_names is not None:
            chosen.append(f"if({earlier}, side_r, side_l) as right_from")
        return met.selectExpr(*chosen)

    def _ids(self, positions: Integers) -> pa.Array:
        """Return ids as the data frame has them."""
        return self._known.ids.take(pa.array(positions))

    def _frame(self, columns: dict[str, Any]) -> DataFrame:
        spark: SparkSession = self._features.sparkSession
        table = pa.table(columns)
        schema = ", ".join(f"{name} {_kind_of(table[name].type)}" for name in table.column_names)
        return spark.createDataFrame(table, schema)

    def close(self) -> None:
        """Remove the run's stages where they were temporary; no frame of this result can be read after."""
        self._stages.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<neardup result on Spark: {self.summary['kept']:,} kept, {self.summary['dropped']:,} dropped>"


def _kind_of(kind: pa.DataType) -> str:
    from pyspark.sql.pandas.types import from_arrow_type

    return str(from_arrow_type(kind).simpleString())


def _without(frame: DataFrame, own: Any, ids: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    gone = ids.select(F.col("id").alias(_ID))
    return frame.join(gone, own == gone[_ID], "left_anti")
