"""The chain on Spark: the same steps as in memory, each a frame made from the one before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from neardup import __version__
from neardup.decision.decision import Decision
from neardup.details import decision_details, recipe_details
from neardup.documents import REPEATED_ID
from neardup.features.extraction import Extractor
from neardup.recipe import Recipe
from neardup.search.engines import most_pairs
from neardup.spark import company, features, keepvalues, sets
from neardup.spark.collection import statistics_of
from neardup.spark.found import Found
from neardup.spark.keepers import Graph
from neardup.spark.keptfirst import KeptFirst
from neardup.spark.searching import Search
from neardup.spark.second import second_step
from neardup.spark.settings import Settings, check_recipe
from neardup.spark.sharing import Shared
from neardup.spark.verdicts import verdicts_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from neardup.spark.stages import Stages

__all__ = ["Settings", "check_recipe", "find"]

#: A pair is listed a few times, and some that are listed do not match: beyond so many times the pairs that may all be
#: told, they are surely more.
_LISTED = 8


def find(
    documents: DataFrame,
    recipe: Recipe,
    *,
    stages: Stages,
    order: Sequence[str] = (),
    decision: Decision | None = None,
    settings: Settings | None = None,
) -> Found:
    """Find the near-duplicates among documents.

    Parameters
    ----------
    documents : DataFrame
        row: bigint, different for each document and the same whenever it is read; text; where there are ids, id (null
        sets a document aside, as a null text does); where ``recipe.keep`` goes by a column, keep; title and time where
        a decision compares them; and the columns of ``order``.
    recipe : Recipe
        What to do.
    stages : Stages
        Where what is found on the way is written.
    order : sequence of str
        The columns that say which document is earlier, among equals the smaller id; empty where rows do.
    decision : Decision, optional
        Where ``recipe`` is that of a learned decision: that decision.
    settings : Settings, optional
        How the work is cut.

    Raises
    ------
    NeardupError
        If Spark has no search for the recipe, or it does not fit the documents.
    """
    check_recipe(recipe, decision)
    return _Run(documents, recipe, stages, list(order), decision, settings or Settings()).found()


class Counted(NamedTuple):
    """How many documents of one kind there are, with how many features, bytes of text, and (of empty ones) texts."""

    documents: int
    features: int
    text_bytes: int
    texts: int


_NONE = Counted(0, 0, 0, 0)


class _Run:
    """One run, step by step."""

    def __init__(
        self,
        documents: DataFrame,
        recipe: Recipe,
        stages: Stages,
        order: list[str],
        decision: Decision | None,
        settings: Settings,
    ) -> None:
        self.documents, self.recipe, self.stages, self.order = documents, recipe, stages, order
        self.decision, self.settings = decision, settings
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
        if self.recipe.then:
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
            "exact_copies": verdicts.counts["exact_copies"] + empty.documents - empty.texts,
            "all_pairs": told,
            "text_bytes": able.text_bytes + empty.text_bytes,
            "set_aside": aside | ({REPEATED_ID: self.repeats} if self.repeats else {}),
            "undecidable": empty.documents,
            "without_keep_value": missing,
            "search": self.search,
            "stages": self.stages.report,
            "version": __version__,
        } | recipe_details(self.recipe)
        if self.decision is not None:
            summary |= decision_details(self.decision, self.search)
        return Found(known, repeated, graph.company, verdicts.edges, verdicts.frame, summary)

    def most_pairs(self, documents: int) -> int | None:
        """Return how many pairs are all told, as ``pipeline.run`` has it; None for any number."""
        per_document = self.settings.pairs_per_document
        if per_document is None or self.recipe.then or self.recipe.search == "lsh":
            return None
        return most_pairs(per_document, documents)

    def features(self) -> DataFrame:
        """Return the features of all documents."""
        recipe = self.recipe
        if not recipe.needs_statistics:
            Extractor(recipe)
        wanted = ["id", *(["keep"] if company.by_value(recipe.keep) else [])]
        wanted += ["text", "title", "time"] if recipe.then else []
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
        """Return how many documents there are by their sizes: 1 for any features, 0 for none, -1 and less set aside."""
        from pyspark.sql import functions as F

        state = sets.without(known.select("row", "size", *features.TEXT), repeated, self.repeats)
        state = state.withColumn("state", F.least("size", F.lit(1)))
        sums = (
            F.count("*"),
            F.sum("size"),
            F.sum("text_bytes"),
            F.count_distinct(F.when(F.col("size") == 0, F.struct(*features.TEXT))),
        )
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
        if self.decision is not None:
            own = Shared(known.sparkSession, replace(self.decision, estimator=None))
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
