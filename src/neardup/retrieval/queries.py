"""The documents that a new text matches."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from neardup.clock import Clock, Stage
from neardup.content.step import content_of
from neardup.decision.decision import Decision
from neardup.decision.evidence import Learned
from neardup.documents import Corpus
from neardup.errors import InputError, RecipeError
from neardup.features.extraction import extract
from neardup.features.store import Vectors
from neardup.measures import exact_fraction, similarities
from neardup.pairs import Names
from neardup.pipeline import Collected, checked_threads, texts_of
from neardup.recipe import Recipe
from neardup.retrieval.asking import Report, Table, check_size, read_vectors, silent, unit_of
from neardup.retrieval.deciding import Asked, check_asked, decided
from neardup.search.matches import Matches
from neardup.search.one_to_all import Matching, closest, matching
from neardup.search.verify import second_step
from neardup.vector.encoder import Encoder
from neardup.vector.records import Records


class Similar(NamedTuple):
    """A document, and how similar it is to the text that was asked about."""

    document: Any
    similarity: float


class Answer(Table):
    """The documents that a text matches, or is nearest to: rows of document and similarity, the most similar first.

    Attributes
    ----------
    documents : int
        How many documents the text was compared with.
    candidates : int
        How many passed the first of two steps.
    stages : list of Stage
        What each stage cost.
    learned : Learned or None
        What a decision went by, for each row; None where none decided.
    """

    def __init__(
        self,
        names: Names,
        found: Matching,
        documents: int,
        stages: list[Stage],
        candidates: int,
        learned: Learned | None = None,
    ) -> None:
        self._names, self._found = names, found
        self.documents, self.candidates, self.stages, self.learned = documents, candidates, stages, learned

    def __len__(self) -> int:
        return len(self._found.document)

    def __iter__(self) -> Iterator[Similar]:
        return map(Similar, *(column.to_pylist() for column in self.to_arrow().columns[:2]))

    def to_arrow(self, *, full: bool = False) -> pa.Table:
        """Return a table of document and similarity.

        Where a learned decision decided, g and the measures that pushed it follow (``Learned.columns``).

        Parameters
        ----------
        full : bool
            Whether that says everything of each measure.
        """
        more = self.learned.columns(measures=full) if self.learned is not None else {}
        columns = {"document": self._names.of(self._found.document), "similarity": pa.array(self._found.similarity)}
        return pa.table(columns | more)

    def __repr__(self) -> str:
        return f"<{len(self):,} similar documents among {self.documents:,}>"


def answer_of(
    corpus: Corpus,
    recipe: Recipe,
    text: str,
    *,
    k: int | None = None,
    decision: Decision | None = None,
    title: str | None = None,
    time: Any = None,
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
        The text; a page where the recipe has a ``content``.
    k : int, optional
        Find the k nearest instead, by the first measure, whatever their similarity; not with a decision.
    decision : Decision, optional
        For the recipe of a learned decision: it.
    title, time : optional
        Those of the text, for decisions that compare them; not known by default. A time is as the column of times
        holds it.
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
    asked = Asked(text, title, time)
    _check_before_reading(recipe, asked, k, what, encoder, decision)
    if decision is not None:
        decision.check_columns(corpus.columns)
    threads, clock, report = checked_threads(threads), Clock(), progress or silent
    read, vectors = read_vectors(corpus, recipe, threads, memory, report, clock)
    documents = int(read.present.sum())
    if k is not None:
        check_size(k, documents, documents)
    with clock.stage("query"):
        found, learned = _found(recipe, text, k, what, read, vectors), None
        candidates = len(found.document)
        if decision is not None:
            say = partial(report, "verify")
            found, learned = decided(corpus, decision, asked, found, read.names, threads, encoder, say)
        elif recipe.then and k is None and candidates:
            found = _second_step(corpus, recipe, text, found, read.names, threads, encoder)
    return Answer(read.names, found, documents, list(clock.stages), candidates, learned)


def _check_before_reading(
    recipe: Recipe, asked: Asked, k: int | None, what: str, encoder: Encoder | None, decision: Decision | None
) -> None:
    """Refuse what could only fail after the corpus has been read."""
    text = asked.text
    if not text:
        raise InputError(f"{what} is empty, so nothing can match it; give one with words")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{what} is no valid Unicode at character {error.start}; decode it with errors='replace'"
        ) from None
    check_asked(recipe, asked, k, encoder, decision)
    step = recipe.second_step
    if step is not None and step.measure == "semantic" and k is None and encoder is None:
        raise RecipeError(
            f"then {str(step)!r} needs an encoder, an object with encode(texts): hand one over in Python, "
            "nd.query(..., encoder=...)"
        )


def _found(recipe: Recipe, text: str, k: int | None, what: str, read: Collected, vectors: Vectors) -> Matching:
    """Return the documents that a text matches by the first measure, or the k nearest."""
    block = extract(pa.array([text], pa.large_string()), recipe, read.statistics)
    if not len(block.features):
        whose = f"content {recipe.content} of {what}" if recipe.content else what
        raise InputError(
            f"{whose} has no features by {recipe.signature or recipe.features}, so nothing can match it; give a longer "
            "one, or choose another recipe"
        )
    new = vectors, block.features, block.weights
    unit, excluded = unit_of(read, recipe), ~read.present
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
    texts = [content_of(text, recipe.content), *texts_of(corpus, recipe, names.rows[documents], threads)]
    others = np.arange(1, len(texts))
    matches = Matches(
        np.arange(len(texts)), np.zeros(len(others), np.int64), others, np.ones((len(others), 3), np.int64)
    )
    # The new text is document 0, and none counts as equal to another.
    passed = second_step(
        matches,
        recipe,
        np.arange(len(texts)),
        lambda places: Records([texts[i] for i in places]),
        threads=threads,
        encoder=encoder,
    )
    step = recipe.second_step
    if step is None or passed.second is None:
        return found
    similarity = similarities(step.measure, passed.second)
    order = np.lexsort((passed.right, -similarity))
    return Matching(documents[passed.right[order] - 1], passed.second[order], similarity[order])
