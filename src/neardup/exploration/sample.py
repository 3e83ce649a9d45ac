"""One pass over a corpus: a random sample of its documents, and what is known of all of them."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.documents import Batch, Corpus
from neardup.documents.records import Names
from neardup.errors import RecipeError
from neardup.features.extraction import Extractor, text_digests
from neardup.features.reading import Progress, Remembered, gather, heaviest_of, pieces
from neardup.features.statistics import Statistics
from neardup.features.store import Vectors
from neardup.kernels.bounds import OVERLAP
from neardup.kernels.grams import COUNTED
from neardup.kernels.postings import (
    COUNTS,
    Postings,
    count_known,
    count_pairs,
    enter_places,
    fill_postings,
    number_features,
)
from neardup.pipeline.pipeline import texts_of
from neardup.recipe import Recipe
from neardup.recipe.measures import similarities
from neardup.runtime import in_order
from neardup.search.nearest import code_of, empty_table, kind_of, rows_of, values_of
from neardup.text.bulk import text_buffers
from neardup.text.html import contents, method_of

Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Bools = npt.NDArray[np.bool_]

#: How many documents are drawn, and the highest seed.
SAMPLE = 2000
_HIGHEST_SEED = (1 << 32) - 1


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Survey:
    """What one pass says of all documents of a corpus, by position.

    Attributes
    ----------
    names : Names
        What they are called.
    text_bytes : int64[n]
        The length of each text (of a recipe with ``content``, of each content) in bytes of UTF-8.
    text_marks : uint64[n, 2]
        Equal for texts that are equal byte for byte.
    present : bool[n]
        False for documents set aside after they were read, as with repeated ids.
    source : int64[n]
        The file of each, as a place in ``sources``; of text files, their folder.
    sources : tuple of str
        What the files are called.
    """

    names: Names
    text_bytes: Integers
    text_marks: Words
    present: Bools
    source: Integers
    sources: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Sample:
    """A random sample of the documents of a corpus.

    Attributes
    ----------
    positions : int64[k]
        Which documents, ascending.
    texts : list of str
        What is compared of each.
    names : Names
        Of all documents of the corpus.
    documents : int
        How many documents the corpus has, without those set aside.
    bytes : int
        Of the texts of these.
    seed : int
        Another one draws other documents.
    """

    positions: Integers
    texts: list[str]
    names: Names
    documents: int
    bytes: int
    seed: int

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def pairs(self) -> int:
        """How many pairs the sample has."""
        return len(self) * (len(self) - 1) // 2

    @property
    def corpus_pairs(self) -> int:
        """How many pairs the corpus has."""
        return self.documents * (self.documents - 1) // 2

    def as_dict(self) -> dict[str, Any]:
        """Return what it says of itself, ready for JSON; no texts."""
        return {
            "documents": len(self),
            "pairs": self.pairs,
            "seed": self.seed,
            "of_documents": self.documents,
            "of_pairs": self.corpus_pairs,
            "bytes": self.bytes,
        }


class _Piece(NamedTuple):
    """What is known of some texts: themselves (or their contents), their lengths in bytes, and their digests."""

    texts: pa.LargeStringArray
    sizes: Integers
    marks: Words


def draw_sample(
    corpus: Corpus,
    *,
    sample: int = SAMPLE,
    seed: int = 0,
    content: str = "",
    threads: int = 1,
    report: Progress | None = None,
) -> tuple[Sample, Survey]:
    """Read a corpus once, and draw documents.

    A document is drawn if the hash of its row and of the seed is among the smallest, so that threads, the size of
    batches and the split into files do not matter, and a larger sample holds the smaller one.

    Parameters
    ----------
    corpus : Corpus
        It is read once; documents with repeated ids are set aside.
    sample : int
        How many documents to draw, at least 2; all where there are no more. Time and memory of what follows grow with
        its square.
    seed : int
        Another one draws others; 0 to 2**32 - 1.
    content : str
        What of the texts is compared, as in ``Recipe``.
    threads : int
        They change the time, never the answer.
    report : callable, optional
        Told ("sample", bytes done, bytes in all or None).

    Raises
    ------
    RecipeError
        If a value is out of range.
    NeardupError
        If the corpus cannot be read.
    """
    if sample < 2:
        raise RecipeError(f"sample {sample} is below 2; draw two documents at least, for there to be a pair")
    if not 0 <= seed <= _HIGHEST_SEED:
        raise RecipeError(f"seed {seed} is outside 0..{_HIGHEST_SEED}")
    wanted = Recipe(content=content)
    draw, seen, rows = _Draw(sample, seed), Remembered(), deque[Integers]()
    sizes, marks = [np.zeros(0, np.int64)], [np.zeros((0, 2), np.uint64)]

    def see(batch: Batch) -> None:
        seen.see(batch)
        if len(batch.rows):
            rows.append(batch.rows)

    for piece in in_order(partial(_looked_at, content), pieces(corpus, "sample", report, see), threads):
        head = rows.popleft()
        draw.enter(head[: len(piece.sizes)], piece.texts)
        if len(head) > len(piece.sizes):
            rows.appendleft(head[len(piece.sizes) :])
        sizes.append(piece.sizes)
        marks.append(piece.marks)
    names = seen.names()
    corpus.refuse_repeated(names)
    present = np.ones(len(names), np.bool_)
    codes, sources = corpus.sources_of(names.rows)
    survey = Survey(
        names=names,
        text_bytes=np.concatenate(sizes),
        text_marks=np.concatenate(marks),
        present=present,
        source=codes,
        sources=sources,
    )
    positions = draw.drawn(names.rows, present)
    return (
        Sample(
            positions=positions,
            texts=draw.texts(corpus, wanted, names.rows[positions], threads),
            names=names,
            documents=int(present.sum()),
            bytes=int(survey.text_bytes[present].sum()),
            seed=seed,
        ),
        survey,
    )


def _looked_at(content: str, texts: pa.LargeStringArray) -> _Piece:
    if content:
        texts = contents(texts, method_of(content))
    data, offsets = text_buffers(texts)
    return _Piece(texts, np.diff(offsets), text_digests(data, offsets))


class _Draw:
    """Holds the texts of the rows with the smallest hashes so far."""

    def __init__(self, count: int, seed: int) -> None:
        self._count, self._seed = count, seed
        self._keys = np.zeros(0, np.uint64)
        self._rows = np.zeros(0, np.int64)
        self._texts: list[str] = []

    def enter(self, rows: Integers, texts: pa.LargeStringArray) -> None:
        """Look at documents: their rows and texts."""
        keys = hashes_of(rows, self._seed)
        full = len(self._keys) == self._count
        small = np.flatnonzero(keys < self._keys[-1]) if full else np.arange(len(keys))
        if not len(small):
            return
        small = small[np.argsort(keys[small])][: self._count]
        keys = np.concatenate([self._keys, keys[small]])
        order = np.argsort(keys)[: self._count]
        found = self._texts + texts.take(pa.array(small)).to_pylist()
        self._keys, self._rows = keys[order], np.concatenate([self._rows, rows[small]])[order]
        self._texts = [found[place] for place in order.tolist()]

    def drawn(self, rows: Integers, present: Bools) -> Integers:
        """Return the positions that are drawn of those present, ascending."""
        able = np.flatnonzero(present)
        keys = hashes_of(rows[able], self._seed)
        if len(able) > self._count:
            able = able[np.argpartition(keys, self._count - 1)[: self._count]]
        return np.sort(able)

    def texts(self, corpus: Corpus, recipe: Recipe, rows: Integers, threads: int) -> list[str]:
        """Return what is compared of drawn rows; those that took the place of repeated ids are read again."""
        held = dict(zip(self._rows.tolist(), self._texts, strict=True))
        missing = np.array([row for row in rows.tolist() if row not in held], np.int64)
        if len(missing):
            held |= zip(missing.tolist(), texts_of(corpus, recipe, missing, threads), strict=True)
        return [held[row] for row in rows.tolist()]


def hashes_of(rows: Integers, seed: int) -> Words:
    """Return a hash of each row, different for different rows: splitmix64 (Steele, Lea & Flood 2014) of both."""
    words = rows.astype(np.uint64) + np.uint64((seed + 1) * 0x9E3779B97F4A7C15 % (1 << 64))
    for _ in range(2):
        words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        words ^= words >> np.uint64(31)
    return words


#: Documents in a piece of work for a thread, and the pairs that one writes down before they are collected, at least.
_AT_A_TIME = 64
_ROOM = 1 << 16
#: No pair is so close: 101 hundredths.
NONE_CLOSE = 101


class SamplePairs(NamedTuple):
    """Pairs of documents.

    Attributes
    ----------
    left, right : int64[k]
        Their positions, left before right, sorted.
    similarity : float64[k]
        Of each.
    """

    left: Integers
    right: Integers
    similarity: npt.NDArray[np.float64]


class AllPairs(NamedTuple):
    """How similar all pairs of some documents are.

    Attributes
    ----------
    zero : int
        Pairs that have nothing in common.
    counts : int64[100]
        Pairs with i/100 < s <= (i + 1)/100.
    edges : int64[101]
        Pairs of similarity i/100 exactly.
    close : SamplePairs
        Those at or above the bound that was asked for, by their places among the documents.
    """

    zero: int
    counts: Integers
    edges: Integers
    close: SamplePairs


def all_pairs(vectors: Vectors, measure: str, *, unit: int = 1, least: int = NONE_CLOSE, threads: int = 1) -> AllPairs:
    """Compare all pairs of documents, exactly.

    Parameters
    ----------
    vectors : Vectors
        The documents; for ``hamming`` one 64-bit value each, or none. One without features has nothing in common with
        any.
    measure : str
        A measure of sets, of weights where there are weights, or ``hamming``. Distances count as what is shown in their
        place (``neardup.recipe.measures``).
    unit : int
        How much of o, a and b makes 1 (``measures.similarities``).
    least : int
        Pairs of so many hundredths or more are written down; 101 for none. Lowering it takes memory: 24 bytes a pair.
    threads : int
        Changes the time, never the answer.

    Raises
    ------
    RecipeError
        If the measure does not fit.
    NeardupError
        If the weights of a document are too large.
    """
    formula, rows, totals = _prepared(vectors, measure)
    count = len(totals)
    local = threading.local()

    def search(begin: int) -> tuple[Integers, Integers, list[Integers]]:
        if not hasattr(local, "scratch"):
            local.scratch = np.zeros(count, np.int64), np.empty((max(count, _ROOM if least <= 100 else 0), 3), np.int64)
        counts, edges, found = np.zeros(101, np.int64), np.zeros(101, np.int64), []
        common, out = local.scratch
        end = min(begin + _AT_A_TIME, count)
        while begin < end:
            begin, written = count_pairs(begin, end, (*formula, unit, least), rows, totals, common, counts, edges, out)
            found.append(out[:written].copy())
        return counts, edges, found

    counts, edges, close = np.zeros(101, np.int64), np.zeros(101, np.int64), [np.zeros((0, 3), np.int64)]
    for part in in_order(search, range(0, count, _AT_A_TIME), threads):
        counts += part[0]
        edges += part[1]
        close += part[2]
    return AllPairs(int(counts[100]), counts[:100], edges, _written(np.concatenate(close), totals, measure, unit))


def _prepared(vectors: Vectors, measure: str) -> tuple[tuple[int, int], tuple[Postings, Words], Integers]:
    """Return code and kind of a measure, the rows to compare, and their totals."""
    everyone = np.ones(len(vectors.heads) - 1, np.bool_)
    if measure == "hamming" or not len(vectors.features):
        documents, found = values_of(vectors, everyone)
        values, totals = np.zeros(len(everyone), np.uint64), np.zeros(len(everyone), np.int64)
        values[documents], totals[documents] = found, 64
        none = _postings(np.zeros(len(everyone) + 1, np.int64), vectors.features[:0], vectors.weights[:0])
        return (OVERLAP, COUNTS), (none, values), totals
    kind = kind_of(measure, weighted=len(vectors.weights) > 0)
    totals = rows_of(vectors, measure, everyone).totals
    return (code_of(measure), kind), (_postings(*vectors), vectors.features[:0]), totals


def _postings(heads: Integers, features: Words, weights: Integers) -> Postings:
    places, lengths = np.empty(len(features), np.int64), np.zeros(len(features), np.int64)
    distinct = number_features(features, empty_table(len(features)), places, lengths)
    room, weighed = len(features), len(weights)
    postings = Postings(
        np.empty(len(heads), np.int64),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.empty(weighed, np.int64),
        np.empty(room, np.int32),
        np.empty(weighed, np.int64),
    )
    fill_postings(heads, places, lengths[:distinct], weights, postings)
    return postings


def _written(rows: Integers, totals: Integers, measure: str, unit: int) -> SamplePairs:
    later, earlier, common = rows.T
    order = np.lexsort((later, earlier))
    left, right = earlier[order], later[order]
    counts = np.column_stack([common[order], totals[left], totals[right]])
    return SamplePairs(left, right, similarities(measure, counts, unit))


class _Counted(NamedTuple):
    """Of some documents: how many they are, the largest sum of squared counts, and their distinct features."""

    documents: int
    heaviest: int
    features: Words


def frequencies_of(
    corpus: Corpus,
    recipe: Recipe,
    texts: pa.LargeStringArray,
    *,
    threads: int = 1,
    report: Progress | None = None,
) -> Statistics:
    """Return the document frequencies in a corpus of the features that some texts have, for these texts alone.

    For them it says what ``features.gathering.gather`` says, in memory for the features of these texts instead of those
    of the corpus.

    Parameters
    ----------
    corpus : Corpus
        It is read once; where content is part of the recipe, that of each document is found.
    recipe : Recipe
        One with ``needs_statistics``.
    texts : pyarrow.LargeStringArray
        What is compared of some documents of the corpus: for a recipe with ``content``, their contents.
    threads : int
        They change the time, never the answer.
    report : callable, optional
        Told ("count", bytes done, bytes in all or None).
    """
    if recipe.signature.startswith("sketch"):
        # Its prime is the one closest to the number of all features.
        return gather(corpus, recipe, threads=threads, report=report)
    weighs = bool(recipe.weights) or recipe.parsed_features.kind == "terms"
    plain, form = recipe.without_statistics(), COUNTED if weighs else None
    wanted = np.unique(Extractor(plain.changed(content=""), None, form)(texts).features)
    table, df = empty_table(len(wanted)), np.zeros(len(wanted), np.int64)
    enter_places(wanted, table)
    documents = heaviest = 0
    for part in in_order(partial(_counted, Extractor(plain, None, form)), pieces(corpus, "count", report), threads):
        count_known(part.features, table, df)
        documents += part.documents
        heaviest = max(heaviest, part.heaviest)
    several = df > 1
    return Statistics(documents, len(wanted), heaviest, wanted[several], df[several])


def _counted(extractor: Extractor, texts: pa.LargeStringArray) -> _Counted:
    block = extractor(texts)
    return _Counted(len(texts), heaviest_of(block), block.features)
