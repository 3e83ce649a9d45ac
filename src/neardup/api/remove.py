"""Removing near-duplicates, from data in memory or from files."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any, Unpack

from neardup.api.given import Choices, Given, recipe_and_decision
from neardup.documents import corpus_of, open_corpus
from neardup.ordering import order_column
from neardup.pipeline import run
from neardup.reading import Report
from neardup.recipe import AnyRecipe
from neardup.result import Result
from neardup.search.engines import PAIRS_PER_DOCUMENT
from neardup.vector.encoder import Encoder


def dedup(
    data: Any,
    *,
    recipe: AnyRecipe = "default",
    decision: Given | None = None,
    text_column: str | None = None,
    id_column: str | None = None,
    time_column: str | None = None,
    title_column: str | None = None,
    threads: int | None = None,
    memory: int | None = None,
    pairs_per_document: float | None = PAIRS_PER_DOCUMENT,
    around: float | None = None,
    encoder: Encoder | None = None,
    progress: Report | None = None,
    **choices: Unpack[Choices],
) -> Result:
    """Find the near-duplicates of texts and decide which documents stay.

    Parameters
    ----------
    data : list of str, table or array
        Texts, or anything that gives Arrow data (``__arrow_c_stream__``): pandas, Polars, PyArrow, Hugging
        Face. For files see ``dedup_files``.
    recipe : Recipe, str or path
        A recipe, its name, or a TOML file.
    decision : Decision or path, optional
        In place of a recipe: what ``neardup train`` learned, or its file. It brings its own recipe; of ``choices``
        only ``keep`` may be given.
    text_column, id_column, time_column, title_column : str, optional
        Columns; found by themselves where that is obvious. Titles are for decisions that compare them.
    threads : int, optional
        Threads to use, all processors by default. It changes the time, never the answer.
    memory : int, optional
        A budget in bytes; feature sets, prefixes and index beyond it go to a temporary file.
    pairs_per_document : float or None
        More pairs than this times the documents (and than a million) are not all looked for: see ``pipeline.run``.
    around : float, optional
        How far beyond the threshold to look as well, such as 0.2: for ``Result.report``, whose readers want to see what
        lies just below it, and for ``Result.at``. It changes nothing else. Raising it takes longer; None looks nowhere.
    encoder : object with ``encode(texts)``, optional
        What makes embeddings for the measure ``semantic``; neardup brings none and downloads nothing.
    progress : callable, optional
        Told (stage, done, total or None) from time to time.
    **choices
        Fields of ``Recipe`` that take the place of the recipe's own, such as ``threshold=0.7`` or
        ``features="qgrams:4"``.

    Returns
    -------
    Result

    Raises
    ------
    NeardupError
        If the data cannot be read or an option does not fit.
    """
    columns = {"title_column": title_column, "time_column": time_column}
    wanted, learned = recipe_and_decision(recipe, choices, decision, **columns)
    corpus = corpus_of(
        data, text_column=text_column, id_column=id_column, order_column=order_column(wanted, time_column)
    )
    return run(
        corpus,
        wanted,
        threads=threads,
        memory=memory,
        pairs_per_document=pairs_per_document,
        around=around,
        encoder=encoder,
        decision=learned,
        progress=progress,
    )


def dedup_files(
    inputs: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    recipe: AnyRecipe = "default",
    decision: Given | None = None,
    text_column: str | None = None,
    id_column: str | None = None,
    time_column: str | None = None,
    title_column: str | None = None,
    strict: bool = False,
    quarantine: str | None = None,
    threads: int | None = None,
    memory: int | None = None,
    pairs_per_document: float | None = PAIRS_PER_DOCUMENT,
    around: float | None = None,
    encoder: Encoder | None = None,
    progress: Report | None = None,
    **choices: Unpack[Choices],
) -> Result:
    """Find the near-duplicates of the documents in files, folders, globs or URIs.

    The other parameters, the result and the errors are those of ``dedup``. The files must stay as they are while the
    result is used.

    Parameters
    ----------
    inputs : path or list of paths
        What to read: Parquet, JSON lines, CSV, Arrow, plain or compressed, or folders of texts.
    strict : bool
        Stop at the first broken record instead of setting it aside.
    quarantine : str, optional
        A file for the records that are set aside.
    """
    columns = {"title_column": title_column, "time_column": time_column}
    wanted, learned = recipe_and_decision(recipe, choices, decision, **columns)
    corpus = open_corpus(
        [inputs] if isinstance(inputs, str | PathLike) else inputs,
        text_column=text_column,
        id_column=id_column,
        order_column=order_column(wanted, time_column),
        strict=strict,
        quarantine=quarantine,
    )
    return run(
        corpus,
        wanted,
        threads=threads,
        memory=memory,
        pairs_per_document=pairs_per_document,
        around=around,
        encoder=encoder,
        decision=learned,
        progress=progress,
    )
