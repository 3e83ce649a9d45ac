"""The same recipes on Spark, inside any session: ``neardup.spark.dedup(frame)``.

PySpark is imported when it is used. What workers run are functions of these modules, sent to them by name: they have
the package, and import no more of it than they need.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Unpack

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from neardup.classifier.classifier import Given
    from neardup.documents import TextColumn
    from neardup.features.statistics import Statistics
    from neardup.recipe import AnyRecipe
    from neardup.recipe.named import Choices
    from neardup.spark.engine import SparkResult
    from neardup.spark.search import Settings

__all__ = ["dedup", "pairs", "run", "stream"]


def dedup(frame: DataFrame, recipe: AnyRecipe = "default", **options: Any) -> DataFrame:
    """Return the documents of a data frame that stay, with all columns.

    The options and errors are those of ``run``, whose result also has the pairs and who went for whom. What was
    written on the way is there until Python ends, as the data frame is made from it.
    """
    return _lasting(run(frame, recipe, **options)).kept


def pairs(frame: DataFrame, recipe: AnyRecipe = "default", **options: Any) -> DataFrame:
    """Return all pairs of documents that match: left, right (ids, the earlier document first), similarity.

    Options, errors and what was written are those of ``dedup``.
    """
    return _lasting(run(frame, recipe, **options)).pairs


def _lasting(result: SparkResult) -> SparkResult:
    import atexit

    atexit.register(result.close)
    return result


def run(
    frame: DataFrame,
    recipe: AnyRecipe = "default",
    *,
    classifier: Given | None = None,
    text_column: TextColumn = None,
    id_column: str | None = None,
    time_column: str | None = None,
    title_column: str | None = None,
    order: str | Sequence[str] | None = None,
    against: DataFrame | None = None,
    checkpoint_dir: str | None = None,
    key: str | None = None,
    settings: Settings | None = None,
    **choices: Unpack[Choices],
) -> SparkResult:
    """Find the near-duplicates of the documents of a data frame, and decide which of them stay.

    The answer is that of ``neardup.dedup`` on the same documents in the order of ``order``, whatever the partitions.

    Parameters
    ----------
    frame : DataFrame
        One row a document, the same rows each time it is read.
    recipe : Recipe, str or path
        A recipe, its name, or a TOML file.
    classifier : Classifier or path, optional
        In place of a recipe: what ``neardup train`` learned, or its file.
    text_column, id_column, time_column, title_column : str, optional
        Columns; detected automatically.
    order : str or list of str, optional
        The columns that say which of two documents is earlier; by default the ids.
    against : DataFrame, optional
        A reference, with columns of the same names: its documents all stay, are not compared with each other and are
        no part of what is kept. What matches one of them goes.
    checkpoint_dir : str, optional
        A folder or URI that all workers can write to, new or empty, where what is found on the way is written. By
        default a temporary folder, which does where the workers run on this machine.
    key : str, optional
        What the rows of the data frame are known by, as a version of their table: with the same key, recipe and code a
        run goes on from what is complete in ``checkpoint_dir``. Without one nothing says that rows are the same, and a
        folder that holds anything is refused.
    settings : Settings, optional
        How the work is cut (``neardup.spark.search.Settings``).
    **choices
        Fields of ``Recipe`` that take the place of the recipe's own.

    Raises
    ------
    NeardupError
        If an option does not fit, or Spark has no search for the recipe.
    """
    from neardup.classifier import recipe_and_classifier
    from neardup.documents import Corpus
    from neardup.documents.records import Wanted
    from neardup.errors import RecipeError
    from neardup.spark.cluster import is_here
    from neardup.spark.command import fingerprint_of
    from neardup.spark.documents import columns_beside, documents_of, with_reference
    from neardup.spark.engine import SparkResult, find
    from neardup.spark.failures import told_by_spark
    from neardup.spark.search import check_recipe
    from neardup.spark.stages import Stages

    columns: dict[str, Any] = {"title_column": title_column, "time_column": time_column}
    wanted, learned = recipe_and_classifier(recipe, choices, classifier, **columns)
    check_recipe(wanted, learned)
    more = {} if learned is None else columns_beside(learned, frame.columns)
    given: dict[str, Any] = {"text_column": text_column, "id_column": id_column, "time_column": time_column}
    documents = documents_of(frame, wanted, **given, order=order, more=more)
    read = with_reference(documents, against)
    if checkpoint_dir is None and not is_here(master := frame.sparkSession.sparkContext.master):
        raise RecipeError(
            f"the workers of {master} may be other machines, which need a folder that all can write to: give "
            "checkpoint_dir=FOLDER"
        )
    if key is not None and checkpoint_dir is None:
        raise RecipeError(f"key {key!r} is what a run goes on by: name the folder of its stages with checkpoint_dir")
    names = [",".join(documents.texts), documents.id, order, documents.keep, more, against is not None]
    mark = fingerprint_of(wanted, [key, names])
    stages = Stages(frame.sparkSession, checkpoint_dir, mark, resume=key is not None)
    # A data frame's documents are no files; what is rejected of them is counted all the same.
    corpus = Corpus([], Wanted(documents.texts[0], documents.id, documents.keep), 0)
    if against is not None:
        corpus.stand_against(Corpus([], Wanted(documents.texts[0], documents.id), 0))
    with told_by_spark():
        found = find(corpus, read, wanted, stages=stages, classifier=learned, settings=settings)
    return SparkResult(documents, *found, stages)


def stream(
    frame: DataFrame,
    recipe: AnyRecipe = "default",
    *,
    classifier: Given | None = None,
    window: str | int | timedelta | None = "24h",
    window_by: str = "time",
    against: str = "originals",
    text_column: TextColumn = None,
    id_column: str | None = None,
    time_column: str | None = None,
    title_column: str | None = None,
    order: str | Sequence[str] | None = None,
    sample: Sequence[str] | Statistics | None = None,
    by: str | None = None,
    **choices: Unpack[Choices],
) -> DataFrame:
    """Judge the documents of a stream as they arrive: a streaming data frame of verdicts, for any sink.

    The verdicts are those of ``neardup.Index`` on the same documents in the same order, however they are cut into
    micro-batches. The page docs/spark-stream.md says what a session needs.

    Parameters
    ----------
    frame : DataFrame
        A streaming data frame, one row a document.
    recipe, classifier, window, window_by, against, sample, **choices
        As in ``neardup.Index``.
    text_column, id_column, time_column, title_column : str, optional
        Columns; detected automatically. ``time_column=""``: documents are of the time of their
        micro-batch.
    order : str or list of str, optional
        The columns that say which of two documents of a micro-batch is earlier, by default their times; then the ids.
    by : str, optional
        A column: documents are compared with those of the same value alone, each value with a window and a clock of
        its own, in parallel. By default all are one group.

    Returns
    -------
    DataFrame
        id, kind (original, exact, near, or set-aside), of, similarity, time, flag, o, a, b, score, evidence, serial
        (its number in its group, in order of arrival), origin (empty), by (the group). A row without id, text or
        readable time has the kind set-aside, and the reason in flag.

    Raises
    ------
    NeardupError
        If an option does not fit, before anything starts.
    """
    from neardup.spark.streams import stream_of

    return stream_of(
        frame,
        recipe,
        classifier=classifier,
        window=window,
        window_by=window_by,
        against=against,
        text_column=text_column,
        id_column=id_column,
        time_column=time_column,
        title_column=title_column,
        order=order,
        sample=sample,
        by=by,
        choices=dict(choices),
    )
