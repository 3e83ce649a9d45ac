"""A run on a data frame, and its result as data frames."""

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
from neardup.documents.records import ReadOptions
from neardup.errors import InputError, RecipeError
from neardup.index.index import DiskIndex
from neardup.pipeline.result import Result
from neardup.recipe import AnyRecipe
from neardup.recipe.named import pick_recipe
from neardup.search.engines import PAIRS_PER_DOCUMENT
from neardup.spark.cluster import is_local
from neardup.spark.documents import (
    FrameDocuments,
    check_frame,
    classifier_columns,
    frame_column,
    frame_documents,
    frame_source,
)
from neardup.spark.engine import fingerprint_of, index_identity
from neardup.spark.failures import spark_errors
from neardup.spark.features import FIRST_REFERENCE_ROW
from neardup.spark.pipeline import DocumentTable, find_duplicates
from neardup.spark.search import check_recipe
from neardup.spark.stages import Stages

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from neardup.classifier.classifier import ClassifierLike
    from neardup.documents import TextColumn
    from neardup.recipe.named import Choices

Integers = npt.NDArray[np.int64]


def dedup(frame: DataFrame, recipe: AnyRecipe | None = None, **options: Any) -> DataFrame:
    """Return the documents of a data frame that are kept, with all columns.

    Options and errors are those of ``run``, whose result also has the pairs and the keeper of each dropped document.
    The returned frame reads the run's stages, so temporary ones stay until Python ends.
    """
    return _run_until_exit(frame, recipe, options).kept


def pairs(frame: DataFrame, recipe: AnyRecipe | None = None, **options: Any) -> DataFrame:
    """Return all pairs of documents that match: left, right (ids, the earlier document first), similarity.

    Options, errors and the lifetime of stages are those of ``dedup``.
    """
    return _run_until_exit(frame, recipe, options).pairs


def _run_until_exit(frame: DataFrame, recipe: AnyRecipe | None, options: dict[str, Any]) -> SparkResult:
    result = run(frame, recipe, **options)
    atexit.register(result.close)
    return result


def run(
    frame: DataFrame,
    recipe: AnyRecipe | None = None,
    *,
    classifier: ClassifierLike | None = None,
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
    """Find the near-duplicates of the documents of a data frame, and decide which are kept.

    The answer is that of ``neardup.dedup`` on the same documents in the order of ``order``, whatever the partitions.

    Parameters
    ----------
    frame : DataFrame
        One row a document; it must give the same rows each time it is read.
    recipe : Recipe, str or path, optional
        A recipe, its name, or a TOML file. By default that of an index in ``against``, else the default one.
    classifier : Classifier or path, optional
        In place of a recipe: what ``neardup train`` learned, or its file.
    force_domain : bool
        Go on even if too many of the pairs that the classifier judges are unlike those it was trained on.
    text_column, id_column, time_column, title_column : str, optional
        Columns; detected automatically.
    order : str or list of str, optional
        The columns that say which of two documents is earlier; by default the ids.
    against : DataFrame or DiskIndex, optional
        A reference: a data frame with columns of the same names, or ``nd.open_index(path)``, which the workers read by
        its path. Its documents are all kept, are not compared with each other and are not part of the result. Documents
        that match one of them are dropped.
    checkpoint_dir : str, optional
        A folder or URI for the stages of the run, new or empty, that all workers can write to. By default a temporary
        folder, if the workers run on this machine.
    key : str, optional
        Identifies the rows of the data frame, such as a version of their table: with the same key, recipe and code a
        run goes on from the complete stages in ``checkpoint_dir``. Without a key nothing says that rows are the same,
        and a folder that holds anything is refused.
    pairs_per_document : float, optional
        As in ``neardup.dedup``: if more pairs match, only those of dropped documents with kept ones are found. None
        for all.
    **choices
        Fields of ``Recipe`` that replace those of the recipe.

    Raises
    ------
    NeardupError
        If an option does not fit, or Spark has no search for the recipe.
    """
    columns: dict[str, Any] = {"title_column": title_column, "time_column": time_column}
    index = against if isinstance(against, DiskIndex) else None
    chosen = pick_recipe(None if index is None else index.recipe, recipe, choices)
    resolved, learned = recipe_and_classifier(chosen, choices, classifier, force_domain=force_domain, **columns)
    check_recipe(resolved, learned)
    if index is not None:
        index.check_recipe(resolved)
    check_frame(frame)
    if against is not None and index is None:
        check_frame(against)
    if frame.isStreaming:
        raise InputError("the data frame is a stream: give it to neardup.spark.stream, or read it with spark.read")
    more_columns = {} if learned is None else classifier_columns(learned, frame.columns)
    names: dict[str, Any] = {"text_column": text_column, "id_column": id_column, "time_column": time_column}
    documents = frame_documents(frame, resolved, **names, order=order, more_columns=more_columns)
    if checkpoint_dir is None and not is_local(master := frame.sparkSession.sparkContext.master):
        raise RecipeError(
            f"the workers of {master} may be other machines, which need a folder that all can write to: give "
            "checkpoint_dir=FOLDER"
        )
    if key is not None and checkpoint_dir is None:
        raise RecipeError(f"key {key!r} identifies stages to go on from: name their folder with checkpoint_dir")
    identity = [
        ",".join(documents.text_columns),
        documents.id_column,
        order,
        documents.keep_column,
        more_columns,
        against is not None,
    ]
    fingerprint = fingerprint_of(resolved, [key, identity, index_identity(index)])
    stages = Stages(frame.sparkSession, checkpoint_dir, fingerprint, resume=key is not None)
    # A data frame has no files; the corpus counts what is rejected.
    corpus = Corpus([], ReadOptions(documents.text_columns[0], documents.id_column, documents.keep_column), 0)
    options: dict[str, Any] = {"classifier": learned, "pairs_per_document": pairs_per_document}
    try:
        with spark_errors():
            source = frame_source(documents, against, corpus, stages)
            found = find_duplicates(corpus, source, resolved, stages=stages, **options)
    except BaseException:
        stages.close()
        raise
    return SparkResult(documents, *found, stages)


#: Names that no column of a data frame is likely to have.
_ID, _TIE, _PLACE = "neardup id", "neardup tie", "neardup place"


class SparkResult:
    """The result of a run on a data frame. Its frames read the run's stages, so they are good until ``close``.

    Attributes
    ----------
    recipe : Recipe
        The recipe of the run.
    summary : dict
        Counts, stages, recipe and version, ready for JSON.
    """

    def __init__(
        self, source: FrameDocuments, result: Result, table: DocumentTable, digests: DataFrame, stages: Stages
    ) -> None:
        self._source, self._result, self._digests, self._stages = source, result, digests, stages
        self._table = table
        self.recipe, self.summary = result.recipe, result.summary

    @cached_property
    def kept(self) -> DataFrame:
        """The documents that are kept, with all columns; rejected ones are not among them."""
        from pyspark.sql import Window
        from pyspark.sql import functions as F

        source, found = self._source, self._result.findings
        ids, frame = frame_column(source.source, source.id_column), source.source
        dropped = self._frame({"id": self._table.ids.filter(pa.array(found.dropped_mask))})
        if not self.summary["rejected"]:
            return _without(frame, ids, dropped).where(ids.isNotNull())
        # Some rows of an id may be rejected and others not: such rows are found by their ids and a hash of their texts.
        of_input = self._digests.where(f"row < {FIRST_REFERENCE_ROW}")
        rejected = of_input.join(self._frame({"row": pa.array(self._table.rows)}), "row", "left_anti")
        unclear = rejected.where("id is not null").select("id").distinct()
        clear = _without(frame, ids, dropped.union(unclear)).where(ids.isNotNull())
        tie = self._digests.columns[-1]
        kept = self._frame({"row": pa.array(self._table.rows[found.kept_mask])})
        kept = of_input.join(kept, "row", "left_semi").join(unclear, "id", "left_semi")
        kept = kept.select(F.col("id").alias(_ID), F.col(tie).alias(_TIE))
        rows = frame.join(kept, (ids == kept[_ID]) & (source.sort_keys[-1] == kept[_TIE]), "left_semi")
        place = F.row_number().over(Window.partitionBy(ids).orderBy(*source.sort_keys)).alias(_PLACE)
        return clear.union(rows.select("*", place).where(F.col(_PLACE) == 1).drop(_PLACE))

    @cached_property
    def duplicates(self) -> DataFrame:
        """The dropped documents: dropped, keeper (ids), similarity, family; against a reference also keeper_from."""
        found = self._result.findings
        positions = np.flatnonzero(found.dropped_mask)
        keeper = found.keepers.keeper[positions]
        columns = {
            "dropped": self._ids(positions),
            "keeper": self._ids(keeper),
            "similarity": pa.array(found.keepers.similarity[positions]),
            "family": pa.array(found.families.family[positions]),
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
        copies = np.bincount(found.representative[found.representative >= 0], minlength=len(names))
        in_pairs = copies > 1
        in_pairs[found.left] = in_pairs[found.right] = True
        positions = np.flatnonzero((found.representative >= 0) & in_pairs[found.representative])
        columns = {"id": self._ids(positions), "node": found.representative[positions], "place": positions}
        documents = self._frame(columns | {"side": names.side_of(positions)})
        equals = np.flatnonzero(copies > 1)
        nodes = {
            "left_node": np.concatenate([found.left, equals]),
            "right_node": np.concatenate([found.right, equals]),
            "similarity": np.concatenate([found.similarity, np.ones(len(equals))]),
        }
        lefts, rights = (documents.select(*(F.col(n).alias(f"{n}_{s}") for n in documents.columns)) for s in "lr")
        joined = self._frame(nodes).join(lefts, F.col("left_node") == F.col("node_l"))
        joined = joined.join(rights, F.col("right_node") == F.col("node_r"))
        # Among equals each pair comes twice, and each document with itself.
        joined = joined.where("(left_node <> right_node or place_l < place_r) and 'input' in (side_l, side_r)")
        is_earlier = "place_l < place_r"
        chosen = [f"if({is_earlier}, id_l, id_r) as left", f"if({is_earlier}, id_r, id_l) as right", "similarity"]
        if names.reference_names is not None:
            chosen.append(f"if({is_earlier}, side_r, side_l) as right_from")
        return joined.selectExpr(*chosen)

    def _ids(self, positions: Integers) -> pa.Array:
        return self._table.ids.take(pa.array(positions))

    def _frame(self, columns: dict[str, Any]) -> DataFrame:
        spark: SparkSession = self._digests.sparkSession
        return spark.createDataFrame(pa.table(columns))

    def close(self) -> None:
        """Remove the run's temporary stages; after that, no frame of this result can be read."""
        self._stages.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<neardup result on Spark: {self.summary['kept']:,} kept, {self.summary['dropped']:,} dropped>"


def _without(frame: DataFrame, ids: Any, excluded: DataFrame) -> DataFrame:
    """Return the rows of a frame whose ids, a column of it, are not in another frame."""
    from pyspark.sql import functions as F

    excluded = excluded.select(F.col("id").alias(_ID))
    return frame.join(excluded, ids == excluded[_ID], "left_anti")
