"""The public functions. Each takes texts, tables or open files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, Unpack, cast

from neardup.documents import Corpus, Ids, Quoting, TextColumn, as_corpus, cluster_column, corpus_of, open_corpus
from neardup.errors import RecipeError, with_suggestions
from neardup.keep.order import order_column, parse_preference

if TYPE_CHECKING:
    from neardup.classifier.classifier import ClassifierLike
    from neardup.evaluation.audit import Audit
    from neardup.exploration.exploration import Exploration
    from neardup.features.extraction import Encoder
    from neardup.features.reading import Progress
    from neardup.index.index import DiskIndex
    from neardup.pipeline.neighbors import Neighbors
    from neardup.pipeline.query import Answer
    from neardup.pipeline.result import Result
    from neardup.recipe import AnyRecipe
    from neardup.recipe.named import Choices


@with_suggestions
def open_files(
    inputs: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    text_column: TextColumn = None,
    id_column: str | None = None,
    clusters: str | None = None,
    strict: bool = False,
    quarantine: str | None = None,
    ids: Ids = "column",
    allow_torn: bool = False,
    quoting: Quoting = "standard",
) -> Corpus:
    """Open files, folders, globs or URIs for ``neighbors``, ``query``, ``compare`` and other functions.

    Parameters
    ----------
    inputs, text_column, id_column, strict, quarantine, ids, allow_torn, quoting
        As in ``dedup_files``.
    clusters : str, optional
        For ``compare``: the column whose equal values mean duplicates.

    Returns
    -------
    Corpus
        The open files. Close it, or use it in ``with``.
    """
    return open_corpus(
        inputs,
        text_column=text_column,
        id_column=id_column,
        order_column=cluster_column(clusters),
        strict=strict,
        quarantine=quarantine,
        ids=ids,
        allow_torn=allow_torn,
        quoting=quoting,
    )


def neighbors(
    data: Any,
    k: int = 3,
    *,
    recipe: AnyRecipe | None = None,
    of: Sequence[Any] | None = None,
    first: int | None = None,
    text_column: TextColumn = None,
    id_column: str | None = None,
    threads: int | None = None,
    memory: int | str | None = None,
    progress: Progress | None = None,
    **choices: Unpack[Choices],
) -> Neighbors:
    """Find the k documents most similar to each one, exactly, whatever the threshold.

    Parameters
    ----------
    data : list of str, table, array, Corpus or DiskIndex
        As in ``dedup``, or the result of ``open_files`` or ``open_index``.
    k : int
        How many neighbours of each document: documents that share a feature with it. Raising it takes longer.
    of : sequence of id, optional
        The documents to find neighbours of; all by default.
    first : int, optional
        Find neighbours of the first N documents; not together with ``of``.
    recipe, text_column, id_column, threads, memory, progress, **choices
        As in ``dedup``.

    Examples
    --------
    >>> import neardup as nd
    >>> found = nd.neighbors(["a rose is a rose", "a rose is a tulip", "a daisy"], 1, features="words:1", of=[0])
    >>> list(found)
    [Neighbor(document=0, rank=1, neighbor=1, similarity=0.75)]
    """
    from neardup.pipeline.neighbors import find_neighbors
    from neardup.pipeline.query import check_query_options
    from neardup.recipe.named import apply_choices

    index = _as_index(data)
    resolved = apply_choices(_choose_recipe(index, recipe, choices), choices)
    check_query_options(choices, nearest=True)
    if index is not None:
        index.check_recipe(resolved)
        data = index.neighbor_corpus(k, of, first)
    corpus = as_corpus(data, text_column, id_column)
    return find_neighbors(corpus, resolved, k, of=of, first=first, threads=threads, memory=memory, progress=progress)


def query(
    data: Any,
    text: str,
    *,
    recipe: AnyRecipe | None = None,
    classifier: ClassifierLike | None = None,
    k: int | None = None,
    force_domain: bool = False,
    title: str | None = None,
    time: Any = None,
    text_column: TextColumn = None,
    id_column: str | None = None,
    title_column: str | None = None,
    time_column: str | None = None,
    threads: int | None = None,
    memory: int | str | None = None,
    encoder: Encoder | None = None,
    progress: Progress | None = None,
    **choices: Unpack[Choices],
) -> Answer:
    """Find all near-duplicates of a new text among documents, the most similar first.

    Parameters
    ----------
    data : list of str, table, array, Corpus or DiskIndex
        As in ``dedup``, or the result of ``open_files`` or ``open_index``.
    text : str
        The new text, which is not one of the documents.
    k : int, optional
        Find the k nearest instead, whatever their similarity; not with a classifier.
    title, time : optional
        Title and time of the new text, for classifiers that compare them; unknown by default. A time may have any
        usual form.
    force_domain : bool
        Answer even if most of at least 20 candidates are unlike the pairs of the training.
    recipe, classifier, text_column, id_column, title_column, time_column, threads, memory, encoder, progress, **choices
        As in ``dedup``.
    """
    from neardup.classifier import recipe_and_classifier
    from neardup.pipeline.query import check_query_options, query_corpus

    index = _as_index(data)
    resolved, loaded_classifier = recipe_and_classifier(
        _choose_recipe(index, recipe, choices),
        choices,
        classifier,
        force_domain=force_domain,
        title_column=title_column,
        time_column=time_column,
    )
    if loaded_classifier is None:
        check_query_options(choices, nearest=k is not None)
    if index is not None:
        index.check_recipe(resolved)
        data = index.candidate_corpus(text, k)
    corpus = as_corpus(data, text_column, id_column)
    return query_corpus(
        corpus,
        resolved,
        text,
        k=k,
        classifier=loaded_classifier,
        title=title,
        time=time,
        threads=threads,
        memory=memory,
        encoder=encoder,
        progress=progress,
    )


def audit(
    data: Any,
    labels: Any = None,
    *,
    recipe: AnyRecipe = "default",
    classifier: ClassifierLike | None = None,
    candidate_rule: str | float | None = None,
    sample: int = 200,
    sample_seed: int = 0,
    label_column: str | None = None,
    positive: float = 1.0,
    ignore_unknown: bool = False,
    text_column: TextColumn = None,
    id_column: str | None = None,
    title_column: str | None = None,
    time_column: str | None = None,
    threads: int | None = None,
    memory: int | str | None = None,
    encoder: Encoder | None = None,
    progress: Progress | None = None,
    **choices: Unpack[Choices],
) -> Audit:
    """Estimate precision, recall and the number of duplicates of a result from a labelled random sample.

    Call it first without labels for the sample (``.sample``, a table), then with its labels for the figures: the same
    pairs are drawn again.

    Parameters
    ----------
    data : list of str, table, array or Corpus
        As in ``dedup``, or the result of ``open_files``.
    labels : path, table, or list of (id, id, label), optional
        Labels of drawn pairs: numbers, ``same``, ``different``, or ``?`` for unsure; or a store of labels.
    recipe, classifier, **choices
        What to audit, as in ``dedup``.
    candidate_rule : str or float, optional
        A lower threshold of the recipe, or ``MEASURE(FEATURES) >= NUMBER``: pairs below it are ignored. A classifier
        has its own.
    sample : int
        How many pairs to draw. Raising it narrows all intervals; a larger sample contains the smaller one.
    sample_seed : int
        Random seed of the sample.
    label_column, positive, ignore_unknown
        As in ``compare``.
    text_column, id_column, title_column, time_column, threads, memory, encoder, progress
        As in ``dedup``.

    Examples
    --------
    >>> import neardup as nd
    >>> texts = ["a rose is a rose", "a rose is a tulip", "a rose is a daisy", "a tulip is a daisy"]
    >>> labels = [(0, 1, 1), (0, 2, 0), (0, 3, 0), (1, 2, 0), (1, 3, 0), (2, 3, 0)]
    >>> found = nd.audit(texts, labels, features="words:1", threshold=0.7, candidate_rule=0.3)
    >>> found.working_point.returned, found.precision.value, found.recall.value
    (2, 0.5, 1.0)
    """
    from neardup.classifier import recipe_and_classifier
    from neardup.evaluation.audit import draw_sample, select_examples
    from neardup.evaluation.population import Vote, read_votes

    if labels is None and (label_column is not None or positive != 1.0 or ignore_unknown):
        raise RecipeError("label_column, positive and ignore_unknown are for labels; give labels, or leave them out")
    resolved, loaded_classifier = recipe_and_classifier(
        recipe, choices, classifier, title_column=title_column, time_column=time_column
    )
    drawn = draw_sample(
        as_corpus(data, text_column, id_column),
        classifier=loaded_classifier,
        recipe=resolved if loaded_classifier is None else None,
        candidate_rule=None if candidate_rule is None else str(candidate_rule),
        sample=sample,
        seed=sample_seed,
        threads=threads,
        memory=memory,
        encoder=encoder,
        progress=progress,
    )
    votes: list[Vote] = []
    if labels is not None:
        votes = read_votes(
            labels, drawn.positions, label_column=label_column, positive=positive, ignore_unknown=ignore_unknown
        )
    judgements = drawn.resolve_votes(votes)
    return replace(drawn.audit(judgements), sample=drawn.table(judgements), examples=select_examples(drawn, judgements))


@with_suggestions
def explore(
    data: Any,
    *,
    sample: int = 2000,
    seed: int = 0,
    lengths: Sequence[int] = tuple(range(1, 8)),
    qgrams: Sequence[int] = (),
    recipes: Sequence[AnyRecipe] = (),
    multiset: bool = False,
    lowest: float = 0.2,
    content: str = "",
    examples: int = 3,
    curve: bool = True,
    text_column: TextColumn = None,
    id_column: str | None = None,
    title_column: str | None = None,
    time_column: str | None = None,
    threads: int | None = None,
    memory: int | str | None = None,
    progress: Progress | None = None,
) -> Exploration:
    """Measure how similar texts are to each other, and suggest features and a threshold to begin with.

    All pairs of a random sample are compared for every n, and the whole corpus is joined once. ``.advice`` suggests n,
    measure and threshold with reasons, ``.views`` are the histograms, ``.examples`` are pairs to read, and ``.profile``
    describes the corpus. ``.write("explore.html")`` writes a page; a notebook shows a summary.

    Parameters
    ----------
    data : list of str, table, array or Corpus
        As in ``dedup``, or the result of ``open_files``, which must stay open.
    sample, seed, lengths, qgrams, recipes, multiset, lowest, content, examples, curve
        As the options of ``neardup explore``, which its ``--help-all`` describes.
    text_column, id_column, title_column, time_column, threads, memory, progress
        As in ``dedup``.

    Raises
    ------
    NeardupError
        If there are fewer than two documents, the data cannot be read, or an option does not fit.

    Examples
    --------
    >>> import neardup as nd
    >>> poem = "a rose is a rose is a rose and a daisy is a daisy is a daisy"
    >>> found = nd.explore([poem, poem + " again", "the tulip has another colour every spring"], lengths=[1, 2])
    >>> [(view.name, view.zero, view.at_least(50)) for view in found.views[:2]]
    [('words:1', 2, 1), ('words:2', 2, 1)]
    >>> found.advice.features, found.advice.threshold
    ('words:1', 0.5)
    """
    from neardup.exploration import exploration
    from neardup.exploration.options import ExplorationOptions

    options = ExplorationOptions(
        sample=sample,
        seed=seed,
        lengths=lengths,
        qgrams=qgrams,
        recipes=recipes,
        multiset=multiset,
        lowest=lowest,
        content=content,
        examples=examples,
        curve=curve,
        title_column=title_column,
        time_column=time_column,
    )
    corpus = as_corpus(data, text_column, id_column)
    return exploration.explore(corpus, options, threads=threads, memory=memory, progress=progress)


def _as_index(source: Any) -> DiskIndex | None:
    """Return an index, given itself or as its folder; None for other sources."""
    if hasattr(source, "set_as_reference"):
        return cast("DiskIndex", source)
    if isinstance(source, str | PathLike):
        from neardup.index.manifest import is_index

        return open_index(source) if is_index(source) else None
    return None


def _choose_recipe(index: DiskIndex | None, recipe: AnyRecipe | None, choices: Choices) -> AnyRecipe:
    """Return the given recipe; without one that of an index, or the default."""
    from neardup.recipe.named import pick_recipe

    return pick_recipe(None if index is None else index.recipe, recipe, choices)


@with_suggestions
def open_index(path: str | PathLike[str]) -> DiskIndex:
    """Open the present state of an index on disk, for ``dedup(..., against=)``, ``query`` and ``neighbors``.

    Parameters
    ----------
    path : path
        The folder that ``build_index`` or ``neardup index build`` made.

    Raises
    ------
    InputError
        If there is no index.
    StoreError
        If it is damaged, has a newer format, or has features that this installation computes differently.
    """
    from neardup.index.index import DiskIndex

    return DiskIndex(path)


def build_index(
    data: Any,
    path: str | PathLike[str],
    *,
    recipe: AnyRecipe = "default",
    text_column: TextColumn = None,
    id_column: str | None = None,
    strict_ids: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
    **choices: Unpack[Choices],
) -> DiskIndex:
    """Build an index on disk of documents that later ones are compared with.

    Parameters
    ----------
    data : list of str, table, array or Corpus
        As in ``dedup``, or the result of ``open_files``.
    path : path
        A new folder; it appears when the index is complete.
    recipe, text_column, id_column, threads, progress, **choices
        As in ``dedup``. The recipe must compare sets of features or SimHashes; the index keeps it.
    strict_ids : bool
        Refuse a document that comes twice, with the same id and the same text; by default it is entered once.

    Raises
    ------
    InputError
        If an id comes twice: with ``strict_ids`` always, otherwise if the texts differ.
    RecipeError
        If the recipe does not allow an index.
    OutputError
        If the path exists, or cannot be written.
    """
    from neardup.index.index import build
    from neardup.recipe.named import apply_choices

    return build(
        as_corpus(data, text_column, id_column),
        path,
        apply_choices(recipe, choices),
        strict_ids=strict_ids,
        threads=threads,
        progress=progress,
    )


def dedup(
    data: Any,
    *,
    against: Any = None,
    recipe: AnyRecipe | None = None,
    classifier: ClassifierLike | None = None,
    force_domain: bool = False,
    text_column: TextColumn = None,
    id_column: str | None = None,
    time_column: str | None = None,
    title_column: str | None = None,
    threads: int | None = None,
    memory: int | str | None = None,
    pairs_per_document: float | str | None = 20.0,
    margin: float | None = None,
    within: str | None = None,
    prefer: str | tuple[str, Sequence[str]] | None = None,
    drop_by: str | None = None,
    drop_share: float | str = 1.0,
    encoder: Encoder | None = None,
    progress: Progress | None = None,
    **choices: Unpack[Choices],
) -> Result:
    """Find the near-duplicates of texts and decide which documents to keep.

    Parameters
    ----------
    data : list of str, table or array
        Texts, or any Arrow data (``__arrow_c_stream__``): pandas, Polars, PyArrow, Hugging Face. For files see
        ``dedup_files``.
    against : the same, Corpus or DiskIndex, optional
        A reference: documents that are compared with those of ``data`` but not with each other, and are never dropped.
        A document of ``data`` that matches one of them is dropped. It may be files,
        ``against=nd.open_files("archive.parquet")``, or an index, ``against=nd.open_index("archive")``. Except for an
        index, the named columns of texts and ids must be in both.
    recipe : Recipe, str or path, optional
        A recipe, its name, or a TOML file; by default ``default``, or that of the index.
    classifier : Classifier or path, optional
        Instead of a recipe: a classifier from ``neardup train``, or its file. It has its own recipe; of ``choices``
        only ``keep`` is allowed.
    force_domain : bool
        Go on even if the documents are unlike those that the classifier was trained on, which stops a run otherwise.
    text_column, id_column, time_column, title_column : str, optional
        Columns, or paths such as ``messages[].content``; by default those with usual names. Titles are for classifiers
        that compare them. Several columns of texts, ``text_column=["title", "text"]``, are joined line by line, without
        empty ones.
    threads : int, optional
        Threads to use, all processors by default. It changes the time, never the result.
    memory : int or str, optional
        Memory limit in bytes, or a text like ``"2GB"``; by default, half of the free memory is for feature sets. What
        does not fit is computed again in further passes over the input, with the same result.
    pairs_per_document : float, "all" or None
        If there are more pairs than this times the documents (and than a million), only pairs of a dropped and a kept
        document are found. These decide what is kept, so the same documents are kept. None or ``"all"`` finds all
        pairs.
    margin : float, optional
        How far beyond the threshold to search as well, such as 0.2: for ``Result.at``, and for ``Result.report``, which
        shows what is just below the threshold. It changes nothing else. Raising it takes longer; None searches nowhere.
    within : str, optional
        A column: only documents with the same value in it are compared, such as those of one language; documents
        without a value form one group. All pairs are found then, whatever ``pairs_per_document`` is.
    prefer : str or (str, sequence of str), optional
        A column and its values in order of preference, ``"source=reuters,wire"`` or ``("source", ["reuters",
        "wire"])``. Of matching documents, the one with the earliest value is kept; documents with other values come
        last, and ``keep`` decides ties.
    drop_by : str, optional
        A column whose values are groups, such as repositories or threads, that are dropped whole or stay whole: a group
        is dropped if at least ``drop_share`` of its documents match kept documents of one other group. All pairs are
        found then. A document without a value is a group of its own.
    drop_share : float
        The share of a group's documents, above 0 and up to 1, by default all.
    encoder : Encoder, optional
        An object whose ``encode(texts)`` returns embeddings, for the measure ``semantic``; neardup includes none and
        downloads nothing.
    progress : callable, optional
        Called with (stage, done, total or None) from time to time.
    **choices
        Fields of ``Recipe`` that replace those of the recipe, such as ``threshold=0.7`` or ``features="qgrams:4"``.

    Returns
    -------
    Result
        Which documents are kept, and which are dropped and why.

    Raises
    ------
    NeardupError
        If the data cannot be read or an option does not fit.
    """
    if against is not None and against is data:
        raise RecipeError("the reference is the data itself, where every document would match itself; give other data")
    columns: dict[str, Any] = {"text_column": text_column, "id_column": id_column}
    return _find_duplicates(
        partial(corpus_of, data, **columns),
        partial(corpus_of, **columns),
        against,
        recipe,
        choices,
        classifier,
        force_domain=force_domain,
        title_column=title_column,
        time_column=time_column,
        threads=threads,
        memory=memory,
        pairs_per_document=pairs_per_document,
        margin=margin,
        within=within,
        prefer=prefer,
        drop_by=drop_by,
        drop_share=drop_share,
        encoder=encoder,
        progress=progress,
    )


def dedup_files(
    inputs: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    against: str | PathLike[str] | Sequence[str | PathLike[str]] | Corpus | DiskIndex | None = None,
    recipe: AnyRecipe | None = None,
    classifier: ClassifierLike | None = None,
    force_domain: bool = False,
    text_column: TextColumn = None,
    id_column: str | None = None,
    time_column: str | None = None,
    title_column: str | None = None,
    strict: bool = False,
    quarantine: str | None = None,
    ids: Ids = "column",
    allow_torn: bool = False,
    quoting: Quoting = "standard",
    threads: int | None = None,
    memory: int | str | None = None,
    pairs_per_document: float | str | None = 20.0,
    margin: float | None = None,
    within: str | None = None,
    prefer: str | tuple[str, Sequence[str]] | None = None,
    drop_by: str | None = None,
    drop_share: float | str = 1.0,
    encoder: Encoder | None = None,
    progress: Progress | None = None,
    **choices: Unpack[Choices],
) -> Result:
    """Find the near-duplicates of the documents in files, folders, globs or URIs.

    The other parameters, the result and the errors are those of ``dedup``. The files must not change while the result
    is used.

    Parameters
    ----------
    inputs : path or list of paths
        What to read: Parquet, JSON lines, CSV, Arrow, plain or compressed, or folders of texts.
    against : path, list of paths, Corpus or DiskIndex, optional
        A reference, read like the inputs, or an index, ``nd.open_index(path)`` or its folder: see ``dedup``. Its
        rejected records are counted in ``summary["reference"]`` and not written to the quarantine.
    strict : bool
        Stop at the first broken record instead of rejecting it.
    quarantine : str, optional
        A file for the rejected records.
    ids : "column", "rows" or "file+id"
        How to name documents: by the column of ids; by their row numbers, whatever the columns are; or by the name
        of their file and the column of ids, as ``shard-1.jsonl:17``, for shards that each count from 0. Ids that
        several documents share are refused.
    allow_torn : bool
        Do not warn (`neardup.errors.TornInput`) of a file that is cut short or damaged, or has no usable record. What
        could be read of it counts either way, and ``summary["torn"]`` names it with the number of rows read.
        ``strict`` refuses it.
    quoting : "standard" or "none"
        Whether quotes in CSV and TSV surround fields, or are characters like all others.
    """
    columns: dict[str, Any] = {"text_column": text_column, "id_column": id_column}
    reading: dict[str, Any] = {"strict": strict, "ids": ids, "allow_torn": allow_torn, "quoting": quoting}
    return _find_duplicates(
        partial(open_corpus, inputs, quarantine=quarantine, **columns, **reading),
        partial(open_files, **columns, **reading),
        against,
        recipe,
        choices,
        classifier,
        force_domain=force_domain,
        title_column=title_column,
        time_column=time_column,
        threads=threads,
        memory=memory,
        pairs_per_document=pairs_per_document,
        margin=margin,
        within=within,
        prefer=prefer,
        drop_by=drop_by,
        drop_share=drop_share,
        encoder=encoder,
        progress=progress,
    )


def _find_duplicates(
    open_data: Callable[..., Corpus],
    open_reference: Callable[[Any], Corpus],
    against: Any,
    recipe: AnyRecipe | None,
    choices: Choices,
    classifier: ClassifierLike | None,
    *,
    force_domain: bool,
    title_column: str | None,
    time_column: str | None,
    threads: int | None,
    margin: float | None,
    prefer: str | tuple[str, Sequence[str]] | None,
    progress: Progress | None,
    **options: Any,
) -> Result:
    """Resolve the recipe, open the data with its order column and the reference, and run the pipeline."""
    from neardup.classifier import recipe_and_classifier
    from neardup.pipeline.pipeline import run

    index = _as_index(against)
    resolved, loaded_classifier = recipe_and_classifier(
        _choose_recipe(index, recipe, choices),
        choices,
        classifier,
        force_domain=force_domain,
        title_column=title_column,
        time_column=time_column,
    )
    corpus = open_data(order_column=order_column(resolved, time_column))
    if index is not None:
        index.check_recipe(resolved)
        index.set_as_reference(corpus, all_documents=margin is not None, threads=threads, progress=progress)
    elif against is not None:
        corpus.set_reference(against if isinstance(against, Corpus) else open_reference(against))
    return run(
        corpus,
        resolved,
        classifier=loaded_classifier,
        threads=threads,
        margin=margin,
        prefer=parse_preference(prefer),
        progress=progress,
        **options,
    )
