"""The documents most similar to each one of a corpus, and those that a new text matches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup.clock import Clock, Stage
from neardup.documents import Corpus
from neardup.errors import InputError, RecipeError, UnknownDocument
from neardup.extraction import extract
from neardup.features import Vectors
from neardup.matches import Matches
from neardup.measures import exact_fraction, similarities
from neardup.nearest import Matching, Nearest, closest, matching, nearest
from neardup.pairs import Names
from neardup.pipeline import Collected, checked_threads, collect
from neardup.recipe import Recipe
from neardup.unknown import remember, unknown_id
from neardup.verify import Encoder, second_step

Integers = npt.NDArray[np.int64]
Report = Callable[[str, int, int | None], None]


class Neighbor(NamedTuple):
    """A document, and the one that is the rank-th most similar to it."""

    document: Any
    rank: int
    neighbor: Any
    similarity: float


class Similar(NamedTuple):
    """A document, and how similar it is to the text that was asked about."""

    document: Any
    similarity: float


class Table:
    """Rows that Arrow, pandas and others take."""

    def to_arrow(self) -> pa.Table:
        """Return the rows as a table."""
        raise NotImplementedError

    def to_pandas(self) -> Any:
        """Return the rows as a pandas data frame."""
        return self.to_arrow().to_pandas()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)


class Neighbors(Table):
    """The most similar others of documents: rows of document, rank (from 1), neighbor and similarity.

    Attributes
    ----------
    documents : int
        How many documents were compared with.
    asked : int
        For how many neighbours were wanted. One that shares a feature with fewer than k others has fewer rows, one
        without features none.
    stages : list of Stage
        What each stage cost.
    """

    def __init__(self, names: Names, found: Nearest, documents: int, asked: int, stages: list[Stage]) -> None:
        self._names, self._found = names, found
        self.documents, self.asked, self.stages = documents, asked, stages
        query = found.query
        first = np.ones(len(query), np.bool_)
        first[1:] = query[1:] != query[:-1]
        starts = np.flatnonzero(first)
        rows = np.arange(len(query))
        self._rank = rows - np.repeat(starts, np.diff(np.append(starts, len(query)))) + 1

    def __len__(self) -> int:
        return len(self._rank)

    def __iter__(self) -> Iterator[Neighbor]:
        columns = (column.to_pylist() for column in self.to_arrow().columns)
        return map(Neighbor, *columns)

    def to_arrow(self) -> pa.Table:
        """Return a table of document, rank, neighbor and similarity, document by document, the most similar first."""
        return pa.table(
            {
                "document": self._names.of(self._found.query),
                "rank": pa.array(self._rank),
                "neighbor": self._names.of(self._found.document),
                "similarity": pa.array(self._found.similarity),
            }
        )

    def __repr__(self) -> str:
        return f"<{len(self):,} neighbours of {int((self._rank == 1).sum()):,} documents among {self.documents:,}>"


class Answer(Table):
    """The documents that a text matches, or is nearest to: rows of document and similarity, the most similar first.

    Attributes
    ----------
    documents : int
        How many documents the text was compared with.
    stages : list of Stage
        What each stage cost.
    """

    def __init__(self, names: Names, found: Matching, documents: int, stages: list[Stage]) -> None:
        self._names, self._found = names, found
        self.documents, self.stages = documents, stages

    def __len__(self) -> int:
        return len(self._found.document)

    def __iter__(self) -> Iterator[Similar]:
        return map(Similar, *(column.to_pylist() for column in self.to_arrow().columns))

    def to_arrow(self) -> pa.Table:
        """Return a table of document and similarity."""
        return pa.table(
            {"document": self._names.of(self._found.document), "similarity": pa.array(self._found.similarity)}
        )

    def __repr__(self) -> str:
        return f"<{len(self):,} similar documents among {self.documents:,}>"


def neighbors(
    corpus: Corpus,
    recipe: Recipe,
    k: int = 3,
    *,
    of: Sequence[Any] | None = None,
    first: int | None = None,
    threads: int | None = None,
    memory: int | None = None,
    progress: Report | None = None,
) -> Neighbors:
    """Find the k documents most similar to each document, exactly, by a recipe's measure.

    Parameters
    ----------
    corpus : Corpus
        The documents.
    recipe : Recipe
        Its steps up to ``measure``; neither a threshold nor a second step holds neighbours back.
    k : int
        How many to find. Only documents that share a feature are neighbours (with ``hamming`` all are); of equally
        similar ones the first. Raising it takes longer.
    of : sequence of id, optional
        The documents whose neighbours are wanted; all by default. Ids are compared as text, row numbers where there are
        none.
    first : int, optional
        In place of ``of``: the first so many documents.
    threads, memory, progress
        As in ``pipeline.run``; the budget is for the reading.

    Raises
    ------
    NeardupError
        If the corpus cannot be read, an id is unknown, or there are no k others.
    """
    if of is not None and first is not None:
        raise RecipeError("documents are given both by id and as the first ones; give one of the two")
    if first is not None and first < 1:
        raise RecipeError(f"first {first} is below 1; ask for one document at least")
    if k < 1:
        raise RecipeError(f"k {k} is below 1; ask for one neighbour at least")
    threads, clock, report = checked_threads(threads), Clock(), progress or _silent
    read, vectors = _read(corpus, recipe, threads, memory, report, clock)
    present = np.flatnonzero(read.present)
    _check_size(k, len(present), len(present) - 1)
    queries = present[:first] if of is None else _positions(read.names, present, list(map(str, of)))
    with clock.stage("neighbors"):
        found = nearest(
            vectors,
            recipe.measure,
            queries,
            k,
            unit=_unit(read, recipe),
            excluded=~read.present,
            threads=threads,
            progress=lambda done, total: report("neighbors", done, total),
        )
    return Neighbors(read.names, found, len(present), len(queries), list(clock.stages))


def query(
    corpus: Corpus,
    recipe: Recipe,
    text: str,
    *,
    k: int | None = None,
    what: str = "the text",
    threads: int | None = None,
    memory: int | None = None,
    encoder: Encoder | None = None,
    progress: Report | None = None,
) -> Answer:
    """Find all near-duplicates of a new text in a corpus, the most similar first; of equally similar ones the first.

    Parameters
    ----------
    corpus : Corpus
        The documents; the text is none of them. What a recipe takes from a collection, as idf, it takes from these.
    recipe : Recipe
        What makes a match, the second step included: then the similarity is that of its measure.
    text : str
        The text.
    k : int, optional
        Find the k nearest instead, by the first measure, whatever their similarity.
    what : str
        What messages call the text.
    threads, memory, encoder, progress
        As in ``pipeline.run``.

    Raises
    ------
    InputError
        If the text is empty or has no features, so that nothing can match it.
    NeardupError
        If the corpus cannot be read, or there are no k documents.
    """
    if k is not None and k < 1:
        raise RecipeError(f"k {k} is below 1; ask for one document at least")
    threads, clock, report = checked_threads(threads), Clock(), progress or _silent
    read, vectors = _read(corpus, recipe, threads, memory, report, clock)
    documents = int(read.present.sum())
    if k is not None:
        _check_size(k, documents, documents)
    with clock.stage("query"):
        found = _found(recipe, text, k, what, read, vectors)
        if recipe.then and k is None and len(found.document):
            found = _second_step(corpus, recipe, text, found, read.names, threads, encoder)
    return Answer(read.names, found, documents, list(clock.stages))


def _silent(stage: str, done: int, total: int | None) -> None:
    return None


def _read(
    corpus: Corpus, recipe: Recipe, threads: int, memory: int | None, report: Report, clock: Clock
) -> tuple[Collected, Vectors]:
    """Return what is known of the documents, and their features."""
    if recipe.measure == "semantic":
        raise RecipeError(
            "measure 'semantic' compares embeddings, and neighbours are found by features; choose another measure"
        )
    read = collect(corpus, recipe.changed(keep="first"), threads=threads, memory=memory, report=report, clock=clock)
    with read.store as store:
        return read, store.vectors()


def _unit(read: Collected, recipe: Recipe) -> int:
    return read.statistics.unit(recipe) if read.statistics is not None and recipe.is_weighted else 1


def _check_size(k: int, documents: int, most: int) -> None:
    """Refuse a k that a collection of so many documents cannot give."""
    if k <= most:
        return
    size = f"{documents:,} document{'' if documents == 1 else 's'}"
    way = f"ask for at most {most:,}" if most > 0 else "give more documents"
    raise RecipeError(f"k {k:,} is more than a collection of {size} can give; {way}")


def _positions(names: Names, present: Integers, wanted: list[str]) -> Integers:
    """Return the positions of ids, compared as text, each once.

    Raises
    ------
    UnknownDocument
        If there is no such document.
    """
    ids = pc.cast(names.of(present), pa.large_string())
    places = pc.index_in(pa.array(wanted, pa.large_string()), value_set=ids).to_pylist()
    missing = [name for name, place in zip(wanted, places, strict=True) if place is None]
    if missing:
        alike: list[str] = []
        remember(alike, ids.to_pylist(), missing)
        raise UnknownDocument(unknown_id(missing[0], alike, len(ids), by_row=names.ids is None))
    return present[np.array(list(dict.fromkeys(places)), np.int64)]


def _found(recipe: Recipe, text: str, k: int | None, what: str, read: Collected, vectors: Vectors) -> Matching:
    """Return the documents that a text matches by the first measure, or the k nearest."""
    if not text.strip():
        raise InputError(f"{what} is empty, so nothing can match it; give one with words")
    block = extract(pa.array([text], pa.large_string()), recipe, read.statistics)
    if not len(block.features):
        raise InputError(
            f"{what} has no features by {recipe.signature or recipe.features}, so nothing can match it; give a longer "
            "one, or choose another recipe"
        )
    new = vectors, block.features, block.weights
    unit, excluded = _unit(read, recipe), ~read.present
    if k is not None:
        return closest(*new, recipe.measure, k, unit=unit, excluded=excluded)
    floor = exact_fraction(recipe.jaccard_floor, "jaccard_floor", zero=True)
    return matching(*new, recipe.measure, recipe.exact_threshold, jaccard_floor=floor, unit=unit, excluded=excluded)


def _second_step(
    corpus: Corpus,
    recipe: Recipe,
    text: str,
    found: Matching,
    names: Names,
    threads: int,
    encoder: Encoder | None,
) -> Matching:
    """Return those of the documents found that pass the second measure, by their similarity in it."""
    documents = np.sort(found.document)
    texts = [text, *corpus.take(names.rows[documents])[corpus.text_column].to_pylist()]
    others = np.arange(1, len(texts))
    matches = Matches(
        np.arange(len(texts)), np.zeros(len(others), np.int64), others, np.ones((len(others), 3), np.int64)
    )
    # The new text is document 0, and none counts as equal to another: marks differ, and lengths are above 0.
    marks, lengths = np.arange(len(texts), dtype=np.uint64), np.ones(len(texts), np.int64)
    passed = second_step(
        matches, recipe, marks, lengths, lambda places: [texts[i] for i in places], threads=threads, encoder=encoder
    )
    step = recipe.second_step
    if step is None or passed.second is None:
        return found
    similarity = similarities(step.measure, passed.second)
    order = np.lexsort((passed.right, -similarity))
    return Matching(documents[passed.right[order] - 1], passed.second[order], similarity[order])
