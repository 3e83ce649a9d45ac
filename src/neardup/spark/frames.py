"""A run on a data frame, and the data frames that it found."""

from __future__ import annotations

import atexit
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.classifier import recipe_and_classifier
from neardup.documents import Corpus
from neardup.documents.records import Wanted
from neardup.errors import RecipeError
from neardup.index.index import DiskIndex
from neardup.pipeline.result import Result
from neardup.recipe import AnyRecipe
from neardup.recipe.named import recipe_against
from neardup.search.engines import PAIRS_PER_DOCUMENT
from neardup.spark.cluster import is_here
from neardup.spark.command import fingerprint_of, index_identity
from neardup.spark.documents import FrameDocuments, column_of, columns_beside, documents_of, with_reference
from neardup.spark.engine import Known, find
from neardup.spark.failures import told_by_spark
from neardup.spark.features import REFERENCE
from neardup.spark.search import check_recipe
from neardup.spark.stages import Stages

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from neardup.classifier.classifier import Given
    from neardup.documents import TextColumn
    from neardup.recipe.named import Choices

Integers = npt.NDArray[np.int64]


def dedup(frame: DataFrame, recipe: AnyRecipe | None = None, **options: Any) -> DataFrame:
    """Return the documents of a data frame that stay, with all columns.

    The options and errors are those of ``run``, whose result also has the pairs and who went for whom. What was
    written on the way is there until Python ends, as the data frame is made from it.
    """
    return _lasting(run(frame, recipe, **options)).kept


def pairs(frame: DataFrame, recipe: AnyRecipe | None = None, **options: Any) -> DataFrame:
    """Return all pairs of documents that match: left, right (ids, the earlier document first), similarity.

    Options, errors and what was written are those of ``dedup``.
    """
    return _lasting(run(frame, recipe, **options)).pairs


def _lasting(result: SparkResult) -> SparkResult:
    atexit.register(result.close)
    return result


def run(
    frame: DataFrame,
    recipe: AnyRecipe | None = None,
    *,
    classifier: Given | None = None,
    force_domain: bool = False,
    text_column: TextColumn = None,
    id_column: str | None = None,
    time_column: str | None = None,
    title_column: str | None = None,
    order: str | Sequence[str] | None = None,
    against: DataFrame | DiskIndex | None = None,
    checkpoint_dir: str | None = None,
    key: str | None = None,
    pairs_per_document: float | None = PAIRS_PER_DOCUMENT,
    **choices: Unpack[Choices],
) -> SparkResult:
    """Find the near-duplicates of the documents of a data frame, and decide which of them stay.

    The answer is that of ``neardup.dedup`` on the same documents in the order of ``order``, whatever the partitions.

    Parameters
    ----------
    frame : DataFrame
        One row a document, the same rows each time it is read.
    recipe : Recipe, str or path, optional
        A recipe, its name, or a TOML file. If none is chosen, that of an index in ``against``, else the default one.
    classifier : Classifier or path, optional
        In place of a recipe: what ``neardup train`` learned, or its file.
    force_domain : bool
        Go on where too many of the pairs that the classifier judges are unlike those it was trained on.
    text_column, id_column, time_column, title_column : str, optional
        Columns; detected automatically.
    order : str or list of str, optional
        The columns that say which of two documents is earlier; by default the ids.
    against : DataFrame or DiskIndex, optional
        A reference, with columns of the same names, or ``nd.open_index(path)``, which the workers read by its path: its
        documents all stay, are not compared with each other and are no part of what is kept. What matches one of them
        goes.
    checkpoint_dir : str, optional
        A folder or URI that all workers can write to, new or empty, where what is found on the way is written. By
        default a temporary folder, which does where the workers run on this machine.
    key : str, optional
        What the rows of the data frame are known by, as a version of their table: with the same key, recipe and code a
        run goes on from what is complete in ``checkpoint_dir``. Without one nothing says that rows are the same, and a
        folder that holds anything is refused.
    pairs_per_document : float, optional
        As in ``neardup.dedup``: where more pairs match, only those of dropped documents with kept ones are told. None
        for all.
    **choices
        Fields of ``Recipe`` that take the place of the recipe's own.

    Raises
    ------
    NeardupError
        If an option does not fit, or Spark has no search for the recipe.
    """
    columns: dict[str, Any] = {"title_column": title_column, "time_column": time_column}
    index = against if isinstance(against, DiskIndex) else None
    asked = recipe_against(None if index is None else index.recipe, recipe, choices)
    wanted, learned = recipe_and_classifier(asked, choices, classifier, force_domain=force_domain, **columns)
    check_recipe(wanted, learned)
    if index is not None:
        index.check_recipe(wanted)
    more = {} if learned is None else columns_beside(learned, frame.columns)
    given: dict[str, Any] = {"text_column": text_column, "id_column": id_column, "time_column": time_column}
    documents = documents_of(frame, wanted, **given, order=order, more=more)
    if checkpoint_dir is None and not is_here(master := frame.sparkSession.sparkContext.master):
        raise RecipeError(
            f"the workers of {master} may be other machines, which need a folder that all can write to: give "
            "checkpoint_dir=FOLDER"
        )
    if key is not None and checkpoint_dir is None:
        raise RecipeError(f"key {key!r} is what a run goes on by: name the folder of its stages with checkpoint_dir")
    names = [",".join(documents.texts), documents.id, order, documents.keep, more, against is not None]
    mark = fingerprint_of(wanted, [key, names, index_identity(index)])
    stages = Stages(frame.sparkSession, checkpoint_dir, mark, resume=key is not None)
    # A data frame's documents are no files; what is rejected of them is counted all the same.
    corpus = Corpus([], Wanted(documents.texts[0], documents.id, documents.keep), 0)
    with told_by_spark():
        read = with_reference(documents, against, corpus, stages)
        found = find(corpus, read, wanted, stages=stages, classifier=learned, pairs_per_document=pairs_per_document)
    return SparkResult(documents, *found, stages)


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
        self, source: FrameDocuments, result: Result, known: Known, documents: DataFrame, stages: Stages
    ) -> None:
        self._source, self._result, self._documents, self._stages = source, result, documents, stages
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
        all_of_input = self._documents.where(f"row < {REFERENCE}")
        good = self._frame({"row": pa.array(self._known.rows[found.stays])})
        aside = all_of_input.join(self._frame({"row": pa.array(self._known.rows)}), "row", "left_anti")
        aside = aside.where("id is not null").select("id").distinct()
        others = _without(frame, own, gone.union(aside)).where(own.isNotNull())
        tie = self._documents.columns[-1]
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
        spark: SparkSession = self._documents.sparkSession
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
