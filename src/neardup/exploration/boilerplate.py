"""Passages that many texts of a corpus share: shared runs of words, found in two passes, and grown to passages.

The first pass counts runs in a table of bytes, as the join does. Two runs may share a slot, so a count may be too high
but never too low. The second pass keeps the places of the few runs that may be frequent enough, and counts exactly.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, log2
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.documents import Corpus
from neardup.features.extraction import Extractor
from neardup.features.reading import Progress, pieces
from neardup.kernels import Bools, Integers, Words
from neardup.kernels.counts import count_features
from neardup.kernels.grams import LISTED
from neardup.recipe import Recipe
from neardup.runtime import map_in_order
from neardup.text.normalize import tokens

#: Counts of the table are exact up to this value (``kernels.counts``).
_LARGEST_COUNT = 127
#: The table has one or two slots per word: at least 2**16, at most 2**28, and at most an eighth of the memory budget.
_FEWEST_BITS, _MOST_BITS, _MEMORY_SHARE = 16, 28, 8
_BYTES_PER_WORD = 5
#: The most places to keep, of 24 bytes each. With more, the minimum count is raised.
MAX_OCCURRENCES = 1 << 25


class SharedRuns(NamedTuple):
    """The runs of words that many texts share, with their places."""

    run: int
    #: Each run occurs in at least this many counted texts: the requested number, or more if there were too many places.
    least: int
    #: int64[r]: the number of counted texts with each run.
    often: Integers
    #: int64[k] each: places in order of documents and words: the run, the document, and the first word.
    runs: Integers
    texts: Integers
    places: Integers
    words: int

    @property
    def covered(self) -> int:
        """The number of words of the distinct texts that the runs cover."""
        ahead = np.full(len(self.places), self.run)
        same = self.texts[1:] == self.texts[:-1]
        ahead[:-1][same] = np.minimum(np.diff(self.places)[same], self.run)
        return int(ahead.sum())


def shared_runs(
    corpus: Corpus,
    distinct: Bools,
    counting: Bools,
    *,
    run: int,
    least: int,
    content: str = "",
    text_bytes: int = 0,
    threads: int = 1,
    memory: int | None = None,
    report: Progress | None = None,
    most_places: int = MAX_OCCURRENCES,
) -> SharedRuns:
    """Find the runs of ``run`` words that occur in at least ``least`` texts, in two passes.

    ``distinct`` (bool[n]) selects one document of each text to search, ``counting`` (bool[n]) those of them that count.
    The table takes at most an eighth of ``memory``. If there are more than ``most_places`` places, ``least`` is doubled
    until they are few enough, up to 127.
    """
    recipe = Recipe(content=content, features=f"words:{run}", normalize="words")
    shift = np.uint64(64 - _table_bits(text_bytes, memory))
    table = _count_runs(corpus, recipe, counting, shift, threads, report)
    finder = _PlaceFinder(recipe, table, shift, distinct, min(least, _LARGEST_COUNT), most_places)
    for part in map_in_order(finder, _numbered(pieces(corpus, "boilerplate", report, content=recipe.content)), threads):
        finder.keep(part)
    return _count_exactly(finder.parts, run, max(least, finder.cut if finder.raised else 0), counting)


def _table_bits(text_bytes: int, memory: int | None) -> int:
    ideal = ceil(log2(2 * text_bytes / _BYTES_PER_WORD + 2))
    room = _MOST_BITS if memory is None else int(log2(max(memory // _MEMORY_SHARE, 2)))
    return max(_FEWEST_BITS, min(ideal, room, _MOST_BITS))


def _count_runs(
    corpus: Corpus, recipe: Recipe, counting: Bools, shift: np.uint64, threads: int, report: Progress | None
) -> npt.NDArray[np.uint8]:
    """Return for each slot the number of texts with the runs whose hashes begin with its number."""
    table = np.zeros(1 << (64 - int(shift)), np.uint8)
    first = 0
    for block in map_in_order(
        Extractor(recipe), pieces(corpus, "boilerplate", report, content=recipe.content), threads
    ):
        count = len(block.sizes)
        starts = (np.cumsum(block.sizes) - block.sizes).astype(np.uint64)
        addresses = np.uint64(block.features.ctypes.data) + np.uint64(8) * starts
        members = np.flatnonzero(counting[first : first + count] & (block.sizes > 0))
        count_features(addresses, block.sizes, members, shift, table)
        first += count
    return table


def _numbered(batches: Iterable[pa.LargeStringArray]) -> Iterator[tuple[int, pa.LargeStringArray]]:
    """Yield batches of texts with the position of the first of each."""
    first = 0
    for texts in batches:
        yield first, texts
        first += len(texts)


class _RunPlaces(NamedTuple):
    """The places of one batch: hashes of runs, documents and words; and the number of words of its distinct texts."""

    hashes: Words
    texts: Integers
    places: Integers
    words: int


class _PlaceFinder:
    """Finds the places of runs that may be frequent enough in batches of texts, and keeps at most so many."""

    def __init__(
        self, recipe: Recipe, table: npt.NDArray[np.uint8], shift: np.uint64, distinct: Bools, cut: int, most: int
    ) -> None:
        self.cut, self.raised = cut, False
        self.parts = [_RunPlaces(np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0, np.int64), 0)]
        self._run, self._most_places = recipe.parsed_features.numbers[0], most
        self._table, self._shift, self._distinct = table, shift, distinct
        self._runs = Extractor(recipe, None, LISTED)
        self._single = Extractor(recipe.changed(features="words:1"), None, LISTED)

    def __call__(self, numbered: tuple[int, pa.LargeStringArray]) -> _RunPlaces:
        first, texts = numbered
        block = self._runs(texts)
        hashes = np.maximum(block.features, np.uint64(1))
        words = np.where(block.sizes > 0, block.sizes + self._run - 1, 0)
        # A text shorter than a run has one hash, too: that of all its words.
        single = np.flatnonzero(block.sizes == 1)
        words[single] = self._single(texts.take(pa.array(single))).sizes
        is_searched = self._distinct[first : first + len(texts)]
        is_long_enough = np.repeat(is_searched & (words >= self._run), block.sizes)
        found = np.flatnonzero(is_long_enough & self._may_be_frequent(hashes))
        ends = np.cumsum(block.sizes)
        owners = np.searchsorted(ends, found, side="right")
        places = found - (ends - block.sizes)[owners]
        return _RunPlaces(hashes[found], owners + first, places, int(words[is_searched].sum()))

    def _may_be_frequent(self, hashes: Words) -> Bools:
        slots = (hashes >> self._shift).astype(np.int64)
        return np.asarray(self._table.take(slots) >= self.cut)

    def keep(self, part: _RunPlaces) -> None:
        # A batch that was in progress when the count was raised has too many places.
        self.parts.append(self._select_frequent(part) if self.raised else part)
        while sum(len(part.hashes) for part in self.parts) > self._most_places and self.cut < _LARGEST_COUNT:
            self.cut, self.raised = min(2 * self.cut, _LARGEST_COUNT), True
            self.parts = [self._select_frequent(part) for part in self.parts]

    def _select_frequent(self, part: _RunPlaces) -> _RunPlaces:
        chosen = self._may_be_frequent(part.hashes)
        return _RunPlaces(part.hashes[chosen], part.texts[chosen], part.places[chosen], part.words)


def _count_exactly(parts: Sequence[_RunPlaces], run: int, least: int, counting: Bools) -> SharedRuns:
    hashes, texts, places = (np.concatenate([part[field] for part in parts]) for field in range(3))
    _, runs = np.unique(hashes, return_inverse=True)
    runs = runs.reshape(-1).astype(np.int64)
    order = np.argsort(runs, kind="stable")
    by_run, of_text = runs[order], texts[order]
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = (by_run[1:] != by_run[:-1]) | (of_text[1:] != of_text[:-1])
    count = np.bincount(by_run[fresh & counting[of_text]], minlength=int(runs.max(initial=-1)) + 1)
    enough = count >= least
    is_frequent = enough[runs]
    number = np.cumsum(enough) - 1
    words = sum(part.words for part in parts)
    return SharedRuns(
        run, least, count[enough], number[runs[is_frequent]], texts[is_frequent], places[is_frequent], words
    )


RUN = 8
#: A run is shared if it occurs in this many texts, and in one of this many.
_FEWEST_TEXTS, _TEXTS_PER_RUN = 5, 1000
#: A passage continues while at least this share of the texts with its first run continue it.
_CONTINUING_SHARE = 0.75
#: A grown passage is new if more than this share of its runs is in no earlier passage.
_NEW_SHARE = 0.5
#: A run that occurs in this many times as many texts belongs to another passage.
_FREQUENCY_STEP = 1.5
MAX_EXTENDED_PASSAGES = 5_000
_CLOSING_CHARACTERS = re.compile(r"[^\w\s([{<«“‘]{1,3}")


@dataclass(frozen=True, slots=True)
class Passage:
    """A run of words that occurs in many documents."""

    #: As in the first document of ``ids``.
    text: str
    #: The length in words; in characters for scripts without spaces.
    words: int
    #: The documents of the corpus that contain all its words in order, and their distinct texts.
    documents: int
    texts: int
    #: The number of these texts that a run keeps: documents that differ except for the passage. None without findings.
    unlike: int | None
    share: float
    #: The first documents that contain it, without equal texts, and without near-duplicates if there are findings.
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Boilerplate:
    """The passages that many documents share; those that fill most of the corpus come first."""

    #: Ordered by ``words`` times ``unlike``, or times ``texts`` if ``unlike`` is None.
    passages: tuple[Passage, ...]
    found: int
    #: Each run of ``run`` words of a passage occurs in at least this many texts (kept texts, if there are findings): 5,
    #: or one in a thousand if that is more.
    least: int
    run: int
    #: The number of documents with at least one such run.
    documents: int
    #: The share of the words of all distinct texts that such runs cover.
    share_of_words: float
    #: Whether all passages were found; otherwise only those that seemed to fill most.
    complete: bool = True


class ExtendedPassage(NamedTuple):
    """A passage grown from a shared run."""

    words: int
    often: int
    #: int64[k]: all distinct texts with the passage, ascending.
    texts: Integers
    #: int64[k]: the first word of its first occurrence in each text.
    places: Integers


class _Growth(NamedTuple):
    """A chain of runs that grew from one run."""

    chain: Integers
    #: int64[m]: the places of the run that the chain grew from.
    at: Integers
    #: The offset from there to the begin of the chain.
    before: int
    #: Whether a run that occurs in many more texts ends the chain on that side.
    left: bool
    right: bool

    def own_runs(self, shared: int) -> Integers:
        """Return the runs without the ``shared`` ones on a side that a more frequent run ends."""
        return self.chain[shared if self.left else 0 : len(self.chain) - (shared if self.right else 0)]


def fewest_texts(texts: int) -> int:
    """Return the least number of texts that makes a run shared: five, or one in a thousand if that is more."""
    return max(_FEWEST_TEXTS, -(-texts // _TEXTS_PER_RUN))


class PassageGrower:
    """Grows passages from shared runs."""

    def __init__(self, found: SharedRuns, counting: Bools) -> None:
        self._found, self._counting = found, counting
        runs, texts, places = found.runs, found.texts, found.places
        # Whether the next place is the next word of the same text.
        self._is_continued = np.zeros(len(runs), np.bool_)
        self._is_continued[:-1] = (texts[1:] == texts[:-1]) & (places[1:] == places[:-1] + 1)
        self._order = np.argsort(runs, kind="stable")
        self._offsets = np.concatenate([[0], np.cumsum(np.bincount(runs, minlength=len(found.often)))]).astype(np.int64)
        # For each run the one that always follows it, and the one that always precedes it.
        self._fixed_neighbours = {step: self._neighbours(step) for step in (1, -1)}

    def passages(self, most: int = MAX_EXTENDED_PASSAGES) -> tuple[list[ExtendedPassage], bool]:
        """Return the passages, those that fill most first, and whether the list is complete.

        They are grown from at most ``most`` runs, the most promising first.
        """
        used = np.zeros(len(self._found.often), np.bool_)
        grown: list[ExtendedPassage] = []
        taken = 0
        for seed in self._seeds().tolist():
            if used[seed]:
                continue
            if taken == most:
                break
            taken += 1
            grew = self._grow(seed)
            chain = grew.own_runs(self._found.run - 1)
            fresh = len(chain) - int(used[chain].sum())
            used[grew.chain] = True
            if len(chain) and fresh > _NEW_SHARE * len(chain):
                at = grew.at + grew.before if len(chain) == len(grew.chain) else self._chain_places(chain)
                texts, first = np.unique(self._found.texts[at], return_index=True)
                words, often = len(chain) + self._found.run - 1, int(self._counting[texts].sum())
                grown.append(ExtendedPassage(words, often, texts, self._found.places[at[first]]))
        grown.sort(key=lambda one: (-one.often * one.words, int(one.texts[0]), int(one.places[0])))
        return grown, bool(used.all())

    def _seeds(self) -> Integers:
        """Return all runs; those in long sequences of runs that many texts share come first."""
        found = self._found
        often = found.often[found.runs]
        begins = np.ones(len(often), np.bool_)
        fewer, more = np.minimum(often[1:], often[:-1]), np.maximum(often[1:], often[:-1])
        begins[1:] = ~self._is_continued[:-1] | (_FREQUENCY_STEP * fewer <= more)
        stretch = np.cumsum(begins) - 1
        length = np.bincount(stretch) if len(stretch) else stretch
        fills = (length[stretch] + found.run - 1) * often
        best = np.zeros(len(found.often), np.int64)
        np.maximum.at(best, found.runs, fills)
        return np.lexsort((self._order[self._offsets[:-1]], -best))

    def _grow(self, seed: int) -> _Growth:
        at = self._order[self._offsets[seed] : self._offsets[seed + 1]]
        needed = max(_CONTINUING_SHARE * int(self._found.often[seed]), 1)
        chain = {seed}
        sides: list[list[int]] = []
        ended: list[bool] = []
        for step in (1, -1):
            side: list[int] = []
            last, count, more = seed, int(self._found.often[seed]), False
            while not more:
                last, going = int(self._fixed_neighbours[step][last]), at
                if last < 0:
                    last, going = self._most_common_step(at, step * len(side), step)
                    count = self._count_texts(going)
                # A repeated passage would grow without end.
                if last in chain or count < needed:
                    break
                more = bool(self._found.often[last] >= _FREQUENCY_STEP * count)
                if not more:
                    at = going
                    chain.add(last)
                    side.append(last)
            sides.append(side)
            ended.append(more)
        return _Growth(np.array([*sides[1][::-1], seed, *sides[0]], np.int64), at, -len(sides[1]), ended[1], ended[0])

    def _chain_places(self, chain: Integers) -> Integers:
        """Return the places where the runs of a chain follow one another: those of its first run."""
        runs = chain.tolist()
        at = self._order[self._offsets[runs[0]] : self._offsets[runs[0] + 1]]
        for step, (before, after) in enumerate(pairwise(runs)):
            if self._fixed_neighbours[1][before] != after:
                at = at[self._is_continued[at + step]]
                at = at[self._found.runs[at + step + 1] == after]
        return at

    def _neighbours(self, step: int) -> Integers:
        """Return for each run its neighbour if that is the same everywhere, otherwise -1."""
        runs, count = self._found.runs, len(self._found.often)
        first = np.flatnonzero(self._is_continued)
        at, other = (first, first + 1) if step > 0 else (first + 1, first)
        least, most = np.full(count, count), np.full(count, -1)
        np.minimum.at(least, runs[at], runs[other])
        np.maximum.at(most, runs[at], runs[other])
        always = (least == most) & (np.bincount(runs[at], minlength=count) == np.diff(self._offsets))
        return np.where(always, most, -1)

    def _most_common_step(self, at: Integers, ahead: int, step: int) -> tuple[int, Integers]:
        """Return the run that continues most texts, and the places that it continues."""
        # Index -1, before the first place, is the last place, which nothing follows.
        going = at[self._is_continued[at + ahead + min(step, 0)]]
        after = self._found.runs[going + ahead + step]
        counted = after[self._counting[self._found.texts[going]]]
        if not len(counted):
            return -1, going[:0]
        runs, often = np.unique(counted, return_counts=True)
        run = int(runs[often.argmax()])
        return run, going[after == run]

    def _count_texts(self, at: Integers) -> int:
        texts = self._found.texts[at]
        texts = texts[self._counting[texts]]
        return int(np.count_nonzero(texts[1:] != texts[:-1])) + int(len(texts) > 0)


def written(text: str, place: int, words: int) -> str:
    """Return words of a text as written, with closing punctuation; ``place`` is the first word."""
    found = tokens(text)[place : place + words]
    closing = _CLOSING_CHARACTERS.match(text, found[-1].end)
    return text[found[0].start : closing.end() if closing else found[-1].end]
