"""Passages that many texts of a corpus share: shared runs of words, found in two passes, and what they grow into.

The first pass counts in a table of bytes, as the join does: two runs may share a slot, so a count is never too low. The
second one keeps the places of those that may occur often enough, which are few, and counts them exactly.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
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

#: Up to here the counts of the table stand for themselves (``kernels.counts``).
_LARGEST_COUNT = 127
#: The table has a slot or two for each word, but not more than 2**28, nor than this part of a budget.
_FEWEST_BITS, _MOST_BITS, _MEMORY_SHARE = 16, 28, 8
_BYTES_PER_WORD = 5
#: Places that are held, of 24 bytes each; beyond, what is held must occur more often.
MOST_PLACES = 1 << 25


class SharedRuns(NamedTuple):
    """The runs of words that many texts share."""

    run: int
    #: So many texts that count share each of them; more than was asked for, where they were too many.
    least: int
    #: int64[r]: how many texts that count have each run.
    often: Integers
    #: int64[k]: where they stand, in order: which run, in which document, from which word on.
    runs: Integers
    texts: Integers
    places: Integers
    #: Of all distinct texts.
    words: int

    @property
    def covered(self) -> int:
        """How many words of the distinct texts they cover."""
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
    most_places: int = MOST_PLACES,
) -> SharedRuns:
    """Find the runs of ``run`` words that at least ``least`` texts have.

    The corpus is read twice. One document of each text is searched (``distinct``), and some of these count
    (``counting``; bool[n] both). Raising ``run`` finds longer runs alone, raising ``least`` fewer. The table takes at
    most an eighth of ``memory``. Where more than ``most_places`` have to be held, ``least`` is doubled until they are
    few enough, to 127 at most.
    """
    recipe = Recipe(content=content, features=f"words:{run}", normalize="words")
    shift = np.uint64(64 - _table_bits(text_bytes, memory))
    table = _count_runs(corpus, recipe, counting, shift, threads, report)
    finder = _Finder(recipe, table, shift, distinct, min(least, _LARGEST_COUNT))
    held = _PlaceStore(finder, most_places)
    for part in map_in_order(finder, _numbered(pieces(corpus, "boilerplate", report)), threads):
        held.add(part)
    return _count_exactly(held, run, max(least, finder.cut if held.raised else 0), counting)


def _table_bits(text_bytes: int, memory: int | None) -> int:
    wanted = ceil(log2(2 * text_bytes / _BYTES_PER_WORD + 2))
    room = _MOST_BITS if memory is None else int(log2(max(memory // _MEMORY_SHARE, 2)))
    return max(_FEWEST_BITS, min(wanted, room, _MOST_BITS))


def _count_runs(
    corpus: Corpus, recipe: Recipe, counting: Bools, shift: np.uint64, threads: int, report: Progress | None
) -> npt.NDArray[np.uint8]:
    """Return the table of counts: of runs whose hashes begin with a slot's number, in how many texts they are."""
    table = np.zeros(1 << (64 - int(shift)), np.uint8)
    first = 0
    for block in map_in_order(Extractor(recipe), pieces(corpus, "boilerplate", report), threads):
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
    """Places of one batch: hashes of runs, documents, words; and how many words the distinct texts have."""

    hashes: Words
    texts: Integers
    places: Integers
    words: int


class _Finder:
    """Finds in batches of texts the runs that may occur often enough."""

    def __init__(
        self, recipe: Recipe, table: npt.NDArray[np.uint8], shift: np.uint64, distinct: Bools, cut: int
    ) -> None:
        self.cut = cut
        self._run = recipe.parsed_features.numbers[0]
        self._table, self._shift, self._distinct = table, shift, distinct
        self._runs = Extractor(recipe, None, LISTED)
        self._single = Extractor(recipe.changed(features="words:1"), None, LISTED)

    def __call__(self, numbered: tuple[int, pa.LargeStringArray]) -> _RunPlaces:
        first, texts = numbered
        block = self._runs(texts)
        hashes = np.maximum(block.features, np.uint64(1))
        words = np.where(block.sizes > 0, block.sizes + self._run - 1, 0)
        # A text of fewer words than a run has one hash, too: that of all of them.
        single = np.flatnonzero(block.sizes == 1)
        words[single] = self._single(texts.take(pa.array(single))).sizes
        wanted = self._distinct[first : first + len(texts)]
        able = np.repeat(wanted & (words >= self._run), block.sizes)
        found = np.flatnonzero(able & self.may_be_frequent(hashes))
        ends = np.cumsum(block.sizes)
        owners = np.searchsorted(ends, found, side="right")
        places = found - (ends - block.sizes)[owners]
        return _RunPlaces(hashes[found], owners + first, places, int(words[wanted].sum()))

    def may_be_frequent(self, hashes: Words) -> Bools:
        """Return which runs may occur often enough."""
        slots = (hashes >> self._shift).astype(np.int64)
        return np.asarray(self._table.take(slots) >= self.cut)


class _PlaceStore:
    """The places that were found, and no more than fit."""

    def __init__(self, finder: _Finder, most: int) -> None:
        self._finder, self._most_places = finder, most
        self.raised = False
        self.parts = [_RunPlaces(np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0, np.int64), 0)]
        self._size = 0

    def add(self, part: _RunPlaces) -> None:
        # A part that was under way when the count was raised holds too many.
        self.parts.append(self._select_frequent(part) if self.raised else part)
        self._size += len(self.parts[-1].hashes)
        while self._size > self._most_places and self._finder.cut < _LARGEST_COUNT:
            self._finder.cut = min(2 * self._finder.cut, _LARGEST_COUNT)
            self.raised = True
            self.parts = [self._select_frequent(part) for part in self.parts]
            self._size = sum(len(part.hashes) for part in self.parts)

    def _select_frequent(self, part: _RunPlaces) -> _RunPlaces:
        stays = self._finder.may_be_frequent(part.hashes)
        return _RunPlaces(part.hashes[stays], part.texts[stays], part.places[stays], part.words)


def _count_exactly(held: _PlaceStore, run: int, least: int, counting: Bools) -> SharedRuns:
    hashes, texts, places = (np.concatenate([part[field] for part in held.parts]) for field in range(3))
    _, runs = np.unique(hashes, return_inverse=True)
    runs = runs.reshape(-1).astype(np.int64)
    order = np.argsort(runs, kind="stable")
    by_run, of_text = runs[order], texts[order]
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = (by_run[1:] != by_run[:-1]) | (of_text[1:] != of_text[:-1])
    count = np.bincount(by_run[fresh & counting[of_text]], minlength=int(runs.max(initial=-1)) + 1)
    enough = count >= least
    stays = enough[runs]
    number = np.cumsum(enough) - 1
    words = sum(part.words for part in held.parts)
    return SharedRuns(run, least, count[enough], number[runs[stays]], texts[stays], places[stays], words)


#: Words of a run.
RUN = 8
#: A run counts as shared from this many texts on, or from one in this many.
_FEWEST_TEXTS, _TEXTS_PER_RUN = 5, 1000
#: A passage continues while at least this part of the texts with its first run continue it.
_CONTINUING_SHARE = 0.75
#: What grew is a new passage if more than this part of its runs is in no earlier passage.
_NEW_SHARE = 0.5
#: A run in this many times as many texts belongs to another passage.
_FREQUENCY_STEP = 1.5
#: Runs that passages are grown from.
MOST_GROWN = 5_000
#: Closing characters right after the last word.
_CLOSING_CHARACTERS = re.compile(r"[^\w\s([{<«“‘]{1,3}")


@dataclass(frozen=True, slots=True)
class Passage:
    """A run of words that occurs in many documents."""

    #: As the first document of ``ids`` writes it.
    text: str
    #: How long it is; characters, in scripts written without spaces.
    words: int
    #: How many documents of the corpus hold all of it, in this order.
    documents: int
    #: How many distinct texts those are.
    texts: int
    #: How many of these stay when near-duplicates go: they are different documents but for the passage. None where no
    #: result says so.
    unlike: int | None
    #: ``documents`` of all documents.
    share: float
    #: The first documents that hold it, no two with equal texts, or near-duplicates where these are known.
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Boilerplate:
    """The passages that many documents share, those that fill most of the corpus first."""

    #: By ``words`` times ``unlike``; times ``texts`` where that is not known.
    passages: tuple[Passage, ...]
    #: How many there are, those that are not listed too.
    found: int
    #: So many texts at least (that stay, where that is known) hold each run of ``run`` words of a passage: 5, or one in
    #: a thousand.
    least: int
    run: int
    #: How many documents hold at least one such run.
    documents: int
    #: The part of the words of all distinct texts that such runs cover.
    share_of_words: float
    #: Whether all passages were found; if not, those that seemed to fill most.
    complete: bool = True


class GrownPassage(NamedTuple):
    """A passage as it was found."""

    words: int
    #: In how many texts that count it occurs.
    often: int
    #: int64[k]: all distinct texts that hold it, ascending.
    texts: Integers
    #: int64[k]: from which word on, the first time in each.
    places: Integers


class _Growth(NamedTuple):
    """What grew from a run."""

    #: int64[k]: the runs.
    chain: Integers
    #: int64[m]: where the first run of all stands in it.
    at: Integers
    #: Where the chain begins, from there.
    before: int
    #: Whether what is in many more texts ends it on that side.
    left: bool
    right: bool

    def own_runs(self, shared: int) -> Integers:
        """Return the runs without those whose first, or last, words are such a run's: so many on each side."""
        return self.chain[shared if self.left else 0 : len(self.chain) - (shared if self.right else 0)]


def fewest_texts(texts: int) -> int:
    """Return in how many of these texts a run must be to count as shared: five, or one in a thousand."""
    return max(_FEWEST_TEXTS, -(-texts // _TEXTS_PER_RUN))


class PassageGrower:
    """Grows passages from shared runs."""

    def __init__(self, found: SharedRuns, counting: Bools) -> None:
        self._found, self._counting = found, counting
        runs, texts, places = found.runs, found.texts, found.places
        # Whether the next place is that of the next word.
        self._is_continued = np.zeros(len(runs), np.bool_)
        self._is_continued[:-1] = (texts[1:] == texts[:-1]) & (places[1:] == places[:-1] + 1)
        self._order = np.argsort(runs, kind="stable")
        self._offsets = np.concatenate([[0], np.cumsum(np.bincount(runs, minlength=len(found.often)))]).astype(np.int64)
        # The run that always stands behind each one, and the one before.
        self._fixed_neighbours = {step: self._neighbours(step) for step in (1, -1)}

    def passages(self, most: int = MOST_GROWN) -> tuple[list[GrownPassage], bool]:
        """Return the passages, those that fill most first, and whether these are all.

        They are grown from at most ``most`` runs, the most promising first.
        """
        used = np.zeros(len(self._found.often), np.bool_)
        grown: list[GrownPassage] = []
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
                grown.append(GrownPassage(words, often, texts, self._found.places[at[first]]))
        grown.sort(key=lambda one: (-one.often * one.words, int(one.texts[0]), int(one.places[0])))
        return grown, bool(used.all())

    def _seeds(self) -> Integers:
        """Return the runs, those first that stand in long stretches of runs that many texts share."""
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
        """Return what grows from a run."""
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
                # What repeats itself would go on for as long as it does.
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
        """Return where runs stand one behind the other: the places of the first."""
        runs = chain.tolist()
        at = self._order[self._offsets[runs[0]] : self._offsets[runs[0] + 1]]
        for step, (before, after) in enumerate(pairwise(runs)):
            if self._fixed_neighbours[1][before] != after:
                at = at[self._is_continued[at + step]]
                at = at[self._found.runs[at + step + 1] == after]
        return at

    def _neighbours(self, step: int) -> Integers:
        """Return for each run the one that stands next to it wherever it stands, -1 where there is none."""
        runs, count = self._found.runs, len(self._found.often)
        first = np.flatnonzero(self._is_continued)
        at, other = (first, first + 1) if step > 0 else (first + 1, first)
        least, most = np.full(count, count), np.full(count, -1)
        np.minimum.at(least, runs[at], runs[other])
        np.maximum.at(most, runs[at], runs[other])
        always = (least == most) & (np.bincount(runs[at], minlength=count) == np.diff(self._offsets))
        return np.where(always, most, -1)

    def _most_common_step(self, at: Integers, ahead: int, step: int) -> tuple[int, Integers]:
        """Return the run that most texts go on with, and the places of those that do."""
        # Before the first place of all there is the last one, which nothing follows.
        going = at[self._is_continued[at + ahead + min(step, 0)]]
        after = self._found.runs[going + ahead + step]
        counted = after[self._counting[self._found.texts[going]]]
        if not len(counted):
            return -1, going[:0]
        runs, often = np.unique(counted, return_counts=True)
        run = int(runs[often.argmax()])
        return run, going[after == run]

    def _count_texts(self, at: Integers) -> int:
        """Return in how many texts that count these places are."""
        texts = self._found.texts[at]
        texts = texts[self._counting[texts]]
        return int(np.count_nonzero(texts[1:] != texts[:-1])) + int(len(texts) > 0)


def written(text: str, place: int, words: int) -> str:
    """Return words of a text from a place on, as they are written there, with what closes the last one."""
    found = tokens(text)[place : place + words]
    closing = _CLOSING_CHARACTERS.match(text, found[-1].end)
    return text[found[0].start : closing.end() if closing else found[-1].end]
