"""Runs of words that many texts of a corpus share, with every place where they stand, in two passes over it.

The first pass counts in a table of bytes, as the join does: two runs may share a slot, so a count is never too low. The
second one keeps the places of those that may occur often enough, which are few, and counts them exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import ceil, log2
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup._kernels.counting import count_features
from neardup._kernels.sets import LISTED
from neardup.documents import Corpus
from neardup.features.extraction import Extractor
from neardup.parallel import in_order
from neardup.reading import Report, pieces
from neardup.recipe import Recipe

Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Bools = npt.NDArray[np.bool_]

#: Up to here the counts of the table stand for themselves (``_kernels.counting``).
_EXACT = 127
#: The table has a slot or two for each word, but not more than 2**28, nor than this part of a budget.
_SMALLEST, _LARGEST, _PART = 16, 28, 8
_BYTES_A_WORD = 5
#: Places that are held, of 24 bytes each; beyond, what is held must occur more often.
MOST_PLACES = 1 << 25


class SharedRuns(NamedTuple):
    """The runs of words that many texts share.

    Attributes
    ----------
    run : int
        How many words a run has.
    least : int
        So many texts that count share each of them; more than was asked for, where they were too many.
    often : int64[r]
        How many texts that count have each run.
    runs, texts, places : int64[k]
        Where they stand, in order: which run, in which document, from which word on.
    words : int
        Of all distinct texts.
    """

    run: int
    least: int
    often: Integers
    runs: Integers
    texts: Integers
    places: Integers
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
    report: Report | None = None,
    most_places: int = MOST_PLACES,
) -> SharedRuns:
    """Find the runs of so many words that at least so many texts have.

    Parameters
    ----------
    corpus : Corpus
        It is read twice.
    distinct : bool[n]
        Which documents are looked at: one of each text.
    counting : bool[n]
        Which of them count.
    run : int
        Words of a run, as the normalizer ``words`` makes them. Raising it finds longer runs alone.
    least : int
        Raising it finds fewer runs.
    content : str
        As in ``Recipe``.
    text_bytes : int
        Of all texts, for the size of the table; it changes the time alone.
    threads : int
        They change the time, never the answer.
    memory : int, optional
        A budget in bytes; the table takes at most an eighth of it.
    report : callable, optional
        Told ("boilerplate", bytes done, bytes in all or None), twice.
    most_places : int
        Where more places have to be held, ``least`` is raised: doubled until they are few enough, to 127 at most.
    """
    recipe = Recipe(content=content, features=f"words:{run}", normalize="words")
    shift = np.uint64(64 - _bits(text_bytes, memory))
    table = _counted(corpus, recipe, counting, shift, threads, report)
    finder = _Finder(recipe, table, shift, distinct, min(least, _EXACT))
    held = _Held(finder, most_places)
    for part in in_order(finder, _numbered(pieces(corpus, "boilerplate", report)), threads):
        held.add(part)
    return _exact(held, run, max(least, finder.cut if held.raised else 0), counting)


def _bits(text_bytes: int, memory: int | None) -> int:
    wanted = ceil(log2(2 * text_bytes / _BYTES_A_WORD + 2))
    room = _LARGEST if memory is None else int(log2(max(memory // _PART, 2)))
    return max(_SMALLEST, min(wanted, room, _LARGEST))


def _counted(
    corpus: Corpus, recipe: Recipe, counting: Bools, shift: np.uint64, threads: int, report: Report | None
) -> npt.NDArray[np.uint8]:
    """Return the table of counts: of runs whose hashes begin with a slot's number, in how many texts they are."""
    table = np.zeros(1 << (64 - int(shift)), np.uint8)
    first = 0
    for block in in_order(Extractor(recipe), pieces(corpus, "boilerplate", report), threads):
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


class _Part(NamedTuple):
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

    def __call__(self, numbered: tuple[int, pa.LargeStringArray]) -> _Part:
        first, texts = numbered
        block = self._runs(texts)
        hashes = np.maximum(block.features, np.uint64(1))
        words = np.where(block.sizes > 0, block.sizes + self._run - 1, 0)
        # A text of fewer words than a run has one hash, too: that of all of them.
        single = np.flatnonzero(block.sizes == 1)
        words[single] = self._single(texts.take(pa.array(single))).sizes
        wanted = self._distinct[first : first + len(texts)]
        able = np.repeat(wanted & (words >= self._run), block.sizes)
        found = np.flatnonzero(able & self.may(hashes))
        ends = np.cumsum(block.sizes)
        owners = np.searchsorted(ends, found, side="right")
        places = found - (ends - block.sizes)[owners]
        return _Part(hashes[found], owners + first, places, int(words[wanted].sum()))

    def may(self, hashes: Words) -> Bools:
        """Return which runs may occur often enough."""
        slots = (hashes >> self._shift).astype(np.int64)
        return np.asarray(self._table.take(slots) >= self.cut)


class _Held:
    """The places that were found, and no more than fit."""

    def __init__(self, finder: _Finder, most: int) -> None:
        self._finder, self._most = finder, most
        self.raised = False
        self.parts = [_Part(np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0, np.int64), 0)]
        self._size = 0

    def add(self, part: _Part) -> None:
        # A part that was under way when the count was raised holds too many.
        self.parts.append(self._fewer(part) if self.raised else part)
        self._size += len(self.parts[-1].hashes)
        while self._size > self._most and self._finder.cut < _EXACT:
            self._finder.cut = min(2 * self._finder.cut, _EXACT)
            self.raised = True
            self.parts = [self._fewer(part) for part in self.parts]
            self._size = sum(len(part.hashes) for part in self.parts)

    def _fewer(self, part: _Part) -> _Part:
        stays = self._finder.may(part.hashes)
        return _Part(part.hashes[stays], part.texts[stays], part.places[stays], part.words)


def _exact(held: _Held, run: int, least: int, counting: Bools) -> SharedRuns:
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
