"""The window: generations of sub-indexes, the newest of which takes what arrives.

A generation keeps one order of features. It begins with none, is made anew a few times while it is small, and is
followed by another once as many documents have entered as the window holds: so orders follow the news, and few of
them are alive at a time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup._kernels.flowing import FINGERPRINTS, Items
from neardup._kernels.posting import DIGEST, LEAVES, SERIAL, TIME
from neardup.features.store import Block
from neardup.measures import SET_MEASURES, similarities
from neardup.recipe import Recipe
from neardup.window.generation import Found, Generation, items_of
from neardup.window.keys import kind_of
from neardup.window.times import Moment
from neardup.window.vocabulary import Vocabulary, empty_vocabulary, vocabulary_of

Words = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

#: A first generation is made anew when it has so many documents, with tables of so many slots.
_STAGES = {0: 1 << 16, 256: 1 << 18, 1024: 1 << 19, 4096: 1 << 20, 16384: 1 << 22}
_LAST_STAGE = max(_STAGES)
#: A generation lasts for so many documents at least, and at most: their numbers have 26 bits.
_FEWEST, _MOST = 4 * _LAST_STAGE, 1 << 24
#: Orders are made from so many documents.
_SAMPLE = 8192
#: More than any difference of times.
ENDLESS = 1 << 61


class Arrivals(NamedTuple):
    """Documents in order of arrival, all within one hour of the flow's clock.

    Attributes
    ----------
    block : Block
        Their features, and the digests of their texts.
    times, leaves, least, serials : int64[n]
        When each happened; the time by which it leaves; the least such time of its partners; its number.
    enters : int8[n]
        0: it never enters the window; 1: if it matches nothing; 2: always.
    """

    block: Block
    times: Integers
    leaves: Integers
    least: Integers
    serials: Integers
    enters: npt.NDArray[np.int8]


class Best(NamedTuple):
    """The best match of each document: its number or -1, o, a and b, their similarity, and its text's digest."""

    serials: Integers
    counts: Integers
    similarity: Floats
    digests: Words


class Window:
    """Documents of some time, and whom a new one matches among them.

    Parameters
    ----------
    recipe : Recipe
        What matches. Second steps are not looked at.
    length : int or None
        The most that the times of partners may differ; None for endless.

    Raises
    ------
    RecipeError
        If the recipe gives documents no keys.
    """

    def __init__(self, recipe: Recipe, length: int | None) -> None:
        self._measure = recipe.measure
        self._kind, self._rule, self._keys = kind_of(recipe)
        self._length = ENDLESS if length is None else length
        self._generations = [self._generation(empty_vocabulary(), _STAGES[0])]
        self._stages = sorted(_STAGES)[1:]
        self._lasts = _FEWEST

    @property
    def held(self) -> int:
        """How many documents are held, removed ones included until their hour ends."""
        return sum(g.held for g in self._generations)

    @property
    def bytes(self) -> int:
        """What it takes of memory."""
        return sum(g.bytes for g in self._generations)

    @property
    def hours(self) -> int:
        """How many sub-indexes there are."""
        return len({hour.key for g in self._generations for hour in g.hours})

    def begin_hour(self, key: int) -> None:
        """Begin a sub-index; what arrives goes there until the next one begins."""
        newest = self._generations[-1]
        if not self._stages and newest.entered >= self._lasts:
            self._lasts = min(max(_FEWEST, self.held), _MOST)
            vocabulary = self._vocabulary(newest)
            slots = max(_STAGES[_LAST_STAGE], 1 << (4 * self._lasts).bit_length())
            self._generations.append(self._generation(vocabulary, slots, newest.couples))
        self._generations[-1].begin_hour(key)

    def drop_hours(self, least: int) -> Integers:
        """Drop all sub-indexes whose key is below least; return the numbers of the documents that were there."""
        newest = self._generations[-1]
        gone = [g.drop_hours(least, whole=g is not newest) for g in self._generations]
        self._generations = [g for g in self._generations if g is newest or g.hours]
        return np.concatenate([np.empty(0, np.int64), *gone])

    def take(self, arrivals: Arrivals, *, asks: bool = True) -> Best:
        """Find the best match of each document among those before it, and enter those that may.

        Parameters
        ----------
        asks : bool
            False to enter documents without looking for matches.
        """
        count = len(arrivals.serials)
        best, scores = np.full((count, 6), -1, np.int64), np.full(count, -1.0)
        heads = _heads(arrivals.block.sizes)
        begin = 0
        while begin < count:
            end = count
            if self._stages:
                self._renew()
                if self._stages:
                    end = min(end, begin + self._stages[0] - self._generations[-1].entered)
            self._flow(arrivals, heads, begin, end, asks, best, scores)
            begin = end
        return Best(best[:, 0], best[:, 1:4], scores, best[:, 4:].view(np.uint64))

    def matches(self, arrivals: Arrivals) -> tuple[Found, Floats]:
        """Return all that one document matches, with similarities, the most similar first, then the first to arrive."""
        found = [g.matches(self._items(arrivals, g), self._length) for g in self._generations if g.held]
        return self._sorted(found)

    def matches_each(self, arrivals: Arrivals) -> tuple[Integers, Found, Floats]:
        """Return all that documents match among what is held, themselves too where they are.

        Returns
        -------
        places : int64[k]
            Which of the documents, ascending.
        found, similarity : Found, float64[k]
            What each matches, the most similar first, then the first to arrive.
        """
        # A document without features matches nothing.
        asking = np.flatnonzero(arrivals.block.sizes).tolist()
        asked = [g for g in self._generations if g.held and asking]
        found = [each for g in asked for each in g.matches_each(self._items(arrivals, g), asking, self._length)]
        serials, counts, digests = _together(found)
        scores = self._similarities(counts)
        place = np.repeat(np.array(asking * len(asked), np.int64), [len(each.serials) for each in found])
        order = np.lexsort((serials, -scores, place))
        return place[order], Found(serials[order], counts[order], digests[order]), scores[order]

    def nearest(self, block: Block, moment: Moment) -> tuple[Found, Floats]:
        """Return all partners in time that have anything in common with a document, the most similar first."""
        if not len(block.features):
            return self._sorted([])
        if self._kind == FINGERPRINTS:
            found = []
            for g in self._generations:
                serials, values = g.values(moment, self._length)
                differing = np.bitwise_count(values ^ block.features[0]).astype(np.int64)
                counts = np.full((len(serials), 3), 64)
                counts[:, 0] -= differing
                found.append(Found(serials, counts, np.zeros((len(serials), 2), np.int64)))
            return self._sorted(found)
        one = np.zeros(1, np.int64)
        arrivals = Arrivals(block, one, one, one, one, np.zeros(1, np.int8))
        return self._sorted(
            [g.overlaps(self._items(arrivals, g), moment, self._length) for g in self._generations if g.held]
        )

    def remove(self, serial: int) -> None:
        """Take a document out."""
        for g in self._generations:
            g.remove(serial)

    def take_back(self, first: int, key: int | None) -> None:
        """Take out all documents with that number or a higher one, and the sub-indexes that began with them.

        Parameters
        ----------
        key : int or None
            That of the last sub-index before them; None where there was none.
        """
        self._generations[-1].reopen(key)
        while len(self._generations) > 1 and not self._generations[-1].hours:
            self._generations.pop()
            self._generations[-1].reopen(key)
        for g in self._generations:
            g.remove_from(first)

    def _flow(
        self, arrivals: Arrivals, heads: Integers, begin: int, end: int, asks: bool, best: Integers, scores: Floats
    ) -> None:
        part = slice(begin, end)
        block = arrivals.block
        some = Arrivals(
            block._replace(
                features=block.features[heads[begin] : heads[end]],
                sizes=block.sizes[part],
                text_marks=block.text_marks[part],
            ),
            arrivals.times[part],
            arrivals.leaves[part],
            arrivals.least[part],
            arrivals.serials[part],
            arrivals.enters[part],
        )
        newest = self._generations[-1]
        nobody = np.zeros(end - begin, np.int8)
        for g in self._generations:
            if g is newest:
                g.flow(self._items(some, g), asks, some.enters, best[part], scores[part], self._length)
            elif asks and g.held:
                g.flow(self._items(some, g), True, nobody, best[part], scores[part], self._length)

    def _items(self, arrivals: Arrivals, generation: Generation) -> Items:
        block = arrivals.block
        heads = _heads(block.sizes)
        return items_of(
            block.features,
            heads,
            generation.vocabulary.arranged(block.features, heads),
            self._keys(block.features, block.sizes),
            (
                arrivals.times,
                arrivals.leaves,
                arrivals.least,
                arrivals.serials,
                block.text_marks.view(np.int64),
            ),
        )

    def _generation(self, vocabulary: Vocabulary, slots: int, couples: int = 0) -> Generation:
        return Generation(vocabulary, self._rule, self._kind, slots, couples)

    def _vocabulary(self, generation: Generation) -> Vocabulary:
        return empty_vocabulary() if self._kind == FINGERPRINTS else vocabulary_of(generation.sample(_SAMPLE))

    def _renew(self) -> None:
        """Make the only generation anew with an order from its documents, once it has enough for the next stage."""
        young = self._generations[-1]
        stage = 0
        while self._stages and young.entered >= self._stages[0]:
            stage = self._stages.pop(0)
        if not stage:
            return
        fresh = self._generation(self._vocabulary(young), _STAGES[stage], young.couples)
        hours = list(young.hours)
        ends = [hour.document for hour in hours[1:]] + [young.entered]
        for hour, end in zip(hours, ends, strict=True):
            fresh.begin_hour(hour.key)
            features, heads, records = young.read(hour.document, end)
            sizes = np.diff(heads)
            keys = self._keys(features, sizes)
            times, leaves = records[:, TIME], records[:, LEAVES]
            columns = (times, leaves, leaves, records[:, SERIAL], records[:, DIGEST:])
            items = items_of(features, heads, fresh.vocabulary.arranged(features, heads), keys, columns)
            always = np.full(len(sizes), 2, np.int8)
            fresh.flow(items, False, always, np.empty((0, 6), np.int64), np.empty(0), self._length)
        self._generations[-1] = fresh

    def _sorted(self, found: list[Found]) -> tuple[Found, Floats]:
        serials, counts, digests = _together(found)
        scores = self._similarities(counts)
        order = np.lexsort((serials, -scores))
        return Found(serials[order], counts[order], digests[order]), scores[order]

    def _similarities(self, counts: Integers) -> Floats:
        return similarities(self._measure if self._measure in SET_MEASURES else "hamming", counts)


def _together(found: list[Found]) -> Found:
    empty = Found(np.empty(0, np.int64), np.empty((0, 3), np.int64), np.empty((0, 2), np.int64))
    return Found(*(np.concatenate(columns) for columns in zip(empty, *found, strict=True)))


def _heads(sizes: Integers) -> Integers:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
