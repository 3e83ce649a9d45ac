"""What a run on Spark found: frames of pairs and verdicts by row, and a summary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from neardup.classifier.classifier import Classifier
from neardup.features.extraction import Extractor
from neardup.recipe import Recipe
from neardup.search.engines import most_pairs
from neardup.search.findings import classifier_details, recipe_details
from neardup.spark import features, sets
from neardup.spark import sets as company
from neardup.spark import sets as keepvalues
from neardup.spark.documents import column_of
from neardup.spark.features import Shared, statistics_of
from neardup.spark.keepers import Graph, KeptFirst, verdicts_of
from neardup.spark.search import Search, Settings, check_recipe
from neardup.spark.second_step import second_step
from neardup.version import __version__

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from neardup.spark.documents import Documents
    from neardup.spark.stages import Stages

_REPEATED_ID = "repeated id"


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """What was found among documents.

    Attributes
    ----------
    features : DataFrame
        What is known of each document: ``features.COLUMNS`` and the columns that were carried.
    repeated : DataFrame
        row: documents that were rejected because an earlier one has their id.
    company : DataFrame
        row, node, first, place, text_bytes (and id): documents that match or equal another one.
    edges : DataFrame
        left, right, similarity: the pairs of nodes that match; where they are too many, those that are told.
    verdicts : DataFrame
        row, keeper, similarity, family of the documents in company: a keeper is its own, with similarity 1. All others
        stay, and have no family.
    summary : dict
        Counts, ready for JSON.
    """

    features: DataFrame
    repeated: DataFrame
    company: DataFrame
    edges: DataFrame
    verdicts: DataFrame
    summary: dict[str, Any]

    def dropped(self) -> DataFrame:
        """Return row, keeper, similarity, family of the documents that go."""
        return self.verdicts.where("keeper <> row")

    def pairs(self) -> DataFrame:
        """Return all pairs that match: left, right (rows, the earlier document first), similarity.

        A group of m equal documents has m (m - 1) / 2 pairs, which are made only when they are asked for.
        """
        from pyspark.sql import functions as F

        sides = [
            self.company.select(*(F.col(name).alias(f"{name}_{side}") for name in ("row", "node", "first")))
            for side in ("l", "r")
        ]
        equal = sides[0].join(sides[1], (F.col("node_l") == F.col("node_r")) & (F.col("first_l") < F.col("first_r")))
        equal = equal.select("row_l", "row_r", F.lit(1.0).alias("similarity"))
        across = self.edges.join(sides[0], F.col("left") == F.col("node_l")).join(
            sides[1], F.col("right") == F.col("node_r")
        )
        earlier = F.col("first_l") < F.col("first_r")
        ends = F.when(earlier, F.col("row_l")).otherwise(F.col("row_r"))
        others = F.when(earlier, F.col("row_r")).otherwise(F.col("row_l"))
        across = across.select(ends.alias("row_l"), others.alias("row_r"), "similarity")
        return equal.union(across).toDF("left", "right", "similarity")


#: A pair is listed a few times, and some that are listed do not match: beyond so many times the pairs that may all be
#: told, they are surely more.
_LISTED = 8


def find(
    documents: DataFrame,
    recipe: Recipe,
    *,
    stages: Stages,
    order: Sequence[str] = (),
    classifier: Classifier | None = None,
    settings: Settings | None = None,
) -> Found:
    """Find the near-duplicates among documents.

    Parameters
    ----------
    documents : DataFrame
        row: bigint, different for each document and the same whenever it is read; text; where there are ids, id (null
        sets a document aside, as a null text does); where ``recipe.keep`` goes by a column, keep; title and time where
        a classifier compares them; and the columns of ``order``.
    recipe : Recipe
        What to do.
    stages : Stages
        Where what is found on the way is written.
    order : sequence of str
        The columns that say which document is earlier, among equals the smaller id; empty where rows do.
    classifier : Classifier, optional
        Where ``recipe`` is that of a classifier: that classifier.
    settings : Settings, optional
        How the work is cut.

    Raises
    ------
    NeardupError
        If Spark has no search for the recipe, or it does not fit the documents.
    """
    check_recipe(recipe, classifier)
    return _Run(documents, recipe, stages, list(order), classifier, settings or Settings()).found()


class Counted(NamedTuple):
    """How many documents of one kind there are, with how many features and bytes of text."""

    documents: int
    features: int
    text_bytes: int


_NONE = Counted(0, 0, 0)


class _Run:
    """One run, step by step."""

    def __init__(
        self,
        documents: DataFrame,
        recipe: Recipe,
        stages: Stages,
        order: list[str],
        classifier: Classifier | None,
        settings: Settings,
    ) -> None:
        self.documents, self.recipe, self.stages, self.order = documents, recipe, stages, order
        self.classifier, self.settings = classifier, settings
        self.search: dict[str, Any] = {}
        self.repeats = 0
        self.what = ""
        #: Whether all pairs were looked for.
        self.complete = True

    def found(self) -> Found:
        """Go through all steps."""
        known = self.features()
        repeated = self.repeated(known)
        counted = self.counted(known, repeated)
        missing = 0
        if company.by_value(self.recipe.keep):
            self.what, missing = keepvalues.comparable(known, self.recipe.keep)
        able, empty = counted.get(1, _NONE), counted.get(0, _NONE)
        most = self.most_pairs(able.documents + empty.documents + self.repeats)
        copies, edges, copied = self.pairs(known, repeated, able, most)
        if self.recipe.second_step:
            copies, edges, copied = self.second_step(known, copies, edges, able.text_bytes)
        graph = self.graph(known, copies, edges, copied)
        told = most is None or (self.complete and graph.pairs <= most)
        verdicts = verdicts_of(self.stages, graph, self.settings, all_pairs=told)
        aside = {reason: counted[code].documents for code, reason in features.SET_ASIDE.items() if code in counted}
        documents = able.documents + empty.documents
        summary = {
            "documents": documents,
            "kept": documents - verdicts.counts["dropped"],
            **verdicts.counts,
            "all_pairs": told,
            "text_bytes": able.text_bytes + empty.text_bytes,
            "rejected": aside | ({_REPEATED_ID: self.repeats} if self.repeats else {}),
            "undecidable": empty.documents,
            "without_keep_value": missing,
            "search": self.search,
            "stages": self.stages.report,
            "version": __version__,
        } | recipe_details(self.recipe)
        if self.classifier is not None:
            summary |= classifier_details(self.classifier, self.search)
        return Found(known, repeated, graph.company, verdicts.edges, verdicts.frame, summary)

    def most_pairs(self, documents: int) -> int | None:
        """Return how many pairs are all told, as ``pipeline.run`` has it; None for any number."""
        per_document = self.settings.pairs_per_document
        if per_document is None or self.recipe.second_step or self.recipe.search == "lsh":
            return None
        return most_pairs(per_document, documents)

    def features(self) -> DataFrame:
        """Return the features of all documents."""
        recipe = self.recipe
        if not recipe.needs_statistics:
            Extractor(recipe)
        wanted = ["id", *(["keep"] if company.by_value(recipe.keep) else [])]
        wanted += ["text", "title", "time"] if recipe.second_step else []
        carried = list(dict.fromkeys([name for name in wanted if name in self.documents.columns] + self.order))

        def make() -> DataFrame:
            statistics = None
            if recipe.needs_statistics:
                counted = statistics_of(self.stages, self.documents, recipe)
                Extractor(recipe, counted)
                statistics = Shared(self.documents.sparkSession, counted)
            return features.features_of(self.documents, recipe, statistics, carried)

        return self.stages.run("features", make)

    def repeated(self, known: DataFrame) -> DataFrame:
        """Return the rows of documents whose id an earlier one has."""
        if "id" not in known.columns:
            return known.where("false").select("row")
        found = self.stages.run("repeated", lambda: sets.repeated(known, self.order))
        self.repeats = found.count()
        return found

    def counted(self, known: DataFrame, repeated: DataFrame) -> dict[int, Counted]:
        """Return how many documents there are by their sizes: 1 for any features, 0 for none, -1 and less rejected."""
        from pyspark.sql import functions as F

        state = sets.without(known.select("row", "size", "text_bytes"), repeated, self.repeats)
        state = state.withColumn("state", F.least("size", F.lit(1)))
        sums = F.count("*"), F.sum("size"), F.sum("text_bytes")
        return {
            row[0]: Counted(*(int(value or 0) for value in row[1:]))
            for row in state.groupBy("state").agg(*sums).collect()
        }

    def pairs(
        self, known: DataFrame, repeated: DataFrame, able: Counted, most: int | None
    ) -> tuple[DataFrame, DataFrame, int]:
        """Return the sets that equal another one, the pairs of distinct sets that match, and how many copies."""
        every = sets.without(known.where("size > 0"), repeated, self.repeats)
        marks = self.stages.run("equal", lambda: sets.several(every))
        equal = marks.count()
        copies = self.stages.run("copies", lambda: sets.copies(every, marks, equal))
        copied = copies.count()
        distinct = sets.without(every, copies, copied).select("row", "features")
        search = Search(self.recipe, self.stages, self.settings, distinct, able.documents, able.features)
        listed = search.listed("", distinct)
        if most is not None and listed.pairs > _LISTED * most:
            self.complete = False
            ranked = self.ranked(known, distinct, copies, able.documents)
            at_a_time = min(most, self.settings.driver_pairs)
            edges = KeptFirst(search, self.stages, distinct, ranked, at_a_time).pairs(listed, able.documents - copied)
        else:
            edges = search.verified(listed)
        search.forget()
        self.search = {"distinct_sets": able.documents - copied} | search.statistics
        return copies, edges, copied

    def ranked(self, known: DataFrame, distinct: DataFrame, copies: DataFrame, count: int) -> DataFrame:
        """Return the order in which distinct sets are preferred, each as the first of its copies: row, place."""
        from pyspark.sql import functions as F

        if self.recipe.keep == "first" and not self.order:
            return distinct.selectExpr("row", "row as place")
        nodes = copies.selectExpr("row", "rep as node").union(distinct.selectExpr("row", "row as node"))
        placed = company.company(nodes, count, known, self.order, self.recipe.keep, self.what)
        return self.stages.run(
            "ranked", lambda: placed.groupBy("node").agg(F.min("place").alias("place")).withColumnRenamed("node", "row")
        )

    def second_step(
        self, known: DataFrame, copies: DataFrame, edges: DataFrame, size: int
    ) -> tuple[DataFrame, DataFrame, int]:
        """Return the texts that are equal, the pairs of distinct ones that pass, and how many are equal."""
        own = None
        if self.classifier is not None:
            own = Shared(known.sparkSession, self.classifier)
        parts = self.settings.parts(size, self.stages.workers)
        equal, passed, told = second_step(self.stages, self.recipe, own, known, copies, edges, self.order, parts)
        self.search |= told
        return equal, passed, equal.count()

    def graph(self, known: DataFrame, copies: DataFrame, edges: DataFrame, copied: int) -> Graph:
        """Return the documents in company and their pairs."""
        pairs = int(self.search["pairs"])
        joined = company.members(copies, edges)
        order, keep = self.order, self.recipe.keep
        together = self.stages.run(
            "company", lambda: company.company(joined, 2 * (copied + pairs), known, order, keep, self.what)
        )
        return Graph(together, edges.select("left", "right", "similarity"), together.count(), pairs)


#: Names that no column of a data frame is likely to have.
_ID, _OTHER, _TIE, _PLACE = "neardup id", "neardup other id", "neardup tie", "neardup place"


def _without(frame: DataFrame, own: Any, ids: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    gone = ids.select(F.col("id").alias(_ID))
    return frame.join(gone, own == gone[_ID], "left_anti")


class SparkResult:
    """What a run on a data frame found. Its frames read the run's stages, so they are good until ``close``.

    Attributes
    ----------
    recipe : Recipe
        What was done.
    summary : dict
        Counts, stages, recipe and version, ready for JSON.
    """

    def __init__(self, documents: Documents, found: Found, recipe: Recipe, stages: Stages) -> None:
        self._documents, self._found, self._stages = documents, found, stages
        self.recipe, self.summary = recipe, found.summary

    @cached_property
    def _names(self) -> DataFrame:
        return self._found.company.select("row", "id")

    @cached_property
    def kept(self) -> DataFrame:
        """The documents that stay, with all columns; those that were rejected are not among them."""
        from pyspark.sql import Window
        from pyspark.sql import functions as F

        known, found = self._documents, self._found
        own = column_of(known.source, known.id)
        gone = found.dropped().join(self._names, "row").select("id")
        if not found.summary["rejected"]:
            return _without(known.source, own, gone).where(own.isNotNull())
        # Ids of which some rows are documents and others are not: each row is known by its id and a hash of its text.
        features, tie = found.features, found.features.columns[-1]
        aside = (
            features.where("size < 0 and id is not null")
            .select("id")
            .union(features.join(found.repeated, "row", "left_semi").select("id"))
        )
        aside = aside.distinct()
        others = _without(known.source, own, gone.union(aside)).where(own.isNotNull())
        good = features.where("size >= 0").join(found.repeated, "row", "left_anti").join(gone, "id", "left_anti")
        good = good.join(aside, "id", "left_semi").select(F.col("id").alias(_ID), F.col(tie).alias(_TIE))
        place = F.row_number().over(Window.partitionBy(own).orderBy(*known.by)).alias(_PLACE)
        asked = known.source.join(good, (own == good[_ID]) & (known.by[-1] == good[_TIE]), "left_semi")
        firsts = asked.select("*", place).where(F.col(_PLACE) == 1).drop(_PLACE)
        return others.union(firsts)

    @cached_property
    def duplicates(self) -> DataFrame:
        """The documents that go: dropped, keeper (ids), similarity, family."""
        named = self._named(self._found.dropped(), "row", "dropped")
        return self._named(named, "keeper", _ID).selectExpr("dropped", f"`{_ID}` as keeper", "similarity", "family")

    @cached_property
    def pairs(self) -> DataFrame:
        """All pairs at or above the threshold: left, right (ids, the earlier document first), similarity."""
        named = self._named(self._named(self._found.pairs(), "left", _ID), "right", _OTHER)
        return named.selectExpr(f"`{_ID}` as left", f"`{_OTHER}` as right", "similarity")

    def _named(self, frame: DataFrame, row: str, name: str) -> DataFrame:
        from pyspark.sql import functions as F

        ids = self._names.select(F.col("row").alias(_PLACE), F.col("id").alias(name))
        return frame.join(ids, frame[row] == ids[_PLACE]).drop(_PLACE)

    def close(self) -> None:
        """Remove the run's stages where they were temporary; no frame of this result can be read after."""
        self._stages.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<neardup result on Spark: {self.summary['kept']:,} kept, {self.summary['dropped']:,} dropped>"
