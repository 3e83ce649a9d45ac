"""The functions that ``import neardup`` offers."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any

from neardup.documents import corpus_of, open_corpus
from neardup.ordering import by_column, by_time
from neardup.pipeline import Report, run
from neardup.recipe import Recipe
from neardup.recipe import load as load_recipe
from neardup.result import Result

__all__ = ["dedup", "load_recipe"]


def dedup(
    data: Any = None,
    *,
    inputs: str | PathLike[str] | Sequence[str | PathLike[str]] | None = None,
    recipe: Recipe | str = "default",
    text_column: str | None = None,
    id_column: str | None = None,
    time_column: str | None = None,
    strict: bool = False,
    quarantine: str | None = None,
    threads: int | None = None,
    memory: int | None = None,
    progress: Report | None = None,
    **overrides: Any,
) -> Result:
    """Find the near-duplicates of texts and decide which documents stay.

    Parameters
    ----------
    data : list of str, table or array
        Texts, or anything that gives Arrow data (``__arrow_c_stream__``): pandas, Polars, PyArrow, Hugging Face.
    inputs : path or list of paths
        Files, folders, globs or URIs to read instead of ``data``.
    recipe : Recipe or str
        A recipe, its name, or a TOML file.
    text_column, id_column, time_column : str, optional
        Columns; found by themselves where that is obvious.
    strict : bool
        Stop at the first broken record instead of setting it aside.
    quarantine : str, optional
        A file for the records that are set aside.
    threads : int, optional
        Threads to use, all processors by default. It changes the time, never the answer.
    memory : int, optional
        A budget in bytes.
    progress : callable, optional
        Told (stage, done, total or None) from time to time.
    **overrides
        Fields of ``Recipe`` that differ: ``threshold=0.7``, ``features="words:4"``, ``keep="longest"``.

    Returns
    -------
    Result

    Raises
    ------
    NeardupError
        If the input cannot be read or an option does not fit.
    """
    chosen = load_recipe(recipe) if isinstance(recipe, str) else recipe
    chosen = chosen.changed(**overrides)
    options: dict[str, Any] = {"text_column": text_column, "id_column": id_column, "strict": strict}
    options["quarantine"] = quarantine
    options["order_column"] = time_column if by_time(chosen.keep) else by_column(chosen.keep)
    if (data is None) == (inputs is None):
        raise TypeError("give either data or inputs")
    if inputs is not None:
        corpus = open_corpus([inputs] if isinstance(inputs, str | PathLike) else inputs, **options)
    else:
        corpus = corpus_of(data, **options)
    return run(corpus, chosen, threads=threads, memory=memory, progress=progress)
