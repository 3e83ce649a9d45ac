"""Passages that many documents share: what companies say of themselves in every advert, legal lines, by-lines.

A passage grows from a run of eight words that many texts share, word by word in both directions, as long as most of the
texts that have the run go on in the same way: what differs from document to document ends it. So does what many more
texts have: a company's words about itself, before the legal line of a site, are two passages. Counts are exact.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.exploring.shared_runs import SharedRuns
from neardup.text.normalize import tokens

Integers = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

#: Words of a run.
RUN = 8
#: A run counts as shared from this many texts on, and from one in so many.
_FEWEST, _ONE_IN = 5, 1000
#: A passage goes on while at least so many of the texts that have its first run go on with it.
_LOYAL = 0.75
#: What grew is a passage of its own if more than so many of its runs are in no passage before it.
_FRESH = 0.5
#: What is in so many times as many texts belongs to another passage.
_STEP = 1.5
#: Runs that passages are grown from.
MOST_GROWN = 5_000
#: What stands right behind the last word and belongs to it.
_CLOSING = re.compile(r"[^\w\s([{<«“‘]{1,3}")


@dataclass(frozen=True, slots=True)
class Passage:
    """A run of words that stands in many documents.

    Attributes
    ----------
    text : str
        As it stands in the first document of ``ids``.
    words : int
        How long it is; characters, in scripts written without spaces.
    documents : int
        How many documents of the corpus hold all of it, in this order.
    texts : int
        How many distinct texts those are.
    unlike : int or None
        How many of these stay when near-duplicates go: they are different documents but for the passage. None where
        no result says so.
    share : float
        ``documents`` of all documents.
    ids : tuple of str
        The first documents that hold it, no two with equal texts, or near-duplicates where these are known.
    """

    text: str
    words: int
    documents: int
    texts: int
    unlike: int | None
    share: float
    ids: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Boilerplate:
    """The passages that many documents share, those that fill most of the corpus first.

    Attributes
    ----------
    passages : tuple of Passage
        By ``words`` times ``unlike``; times ``texts`` where that is not known.
    found : int
        How many there are, those that are not listed too.
    least : int
        So many texts at least (that stay, where that is known) hold each run of ``run`` words of a passage: 5, or one
        in a thousand.
    run : int
        8 words.
    documents : int
        How many documents hold at least one such run.
    share_of_words : float
        The part of the words of all distinct texts that such runs cover.
    complete : bool
        Whether all passages were found; if not, those that seemed to fill most.
    """

    passages: tuple[Passage, ...]
    found: int
    least: int
    run: int
    documents: int
    share_of_words: float
    complete: bool = True

    def as_dict(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        return asdict(self)


class Grown(NamedTuple):
    """A passage as it was found.

    Attributes
    ----------
    words : int
        How long it is.
    often : int
        In how many texts that count it stands.
    texts : int64[k]
        All distinct texts that hold it, ascending.
    places : int64[k]
        From which word on, the first time in each.
    """

    words: int
    often: int
    texts: Integers
    places: Integers


class _Grew(NamedTuple):
    """What grew from a run.

    Attributes
    ----------
    chain : int64[k]
        The runs.
    at : int64[m]
        Where the first run of all stands in it.
    before : int
        Where the chain begins, from there.
    left, right : bool
        Whether what is in many more texts ends it on that side.
    """

    chain: Integers
    at: Integers
    before: int
    left: bool
    right: bool

    def own(self, shared: int) -> Integers:
        """Return the runs without those whose first, or last, words are such a run's: so many on each side."""
        return self.chain[shared if self.left else 0 : len(self.chain) - (shared if self.right else 0)]


def least_texts(texts: int) -> int:
    """Return in how many texts a run must be to count as shared, of so many: five, or one in a thousand."""
    return max(_FEWEST, -(-texts // _ONE_IN))


class Growing:
    """Grows passages from shared runs.

    Parameters
    ----------
    found : SharedRuns
        The runs.
    counting : bool[n]
        Which documents count.
    """

    def __init__(self, found: SharedRuns, counting: Bools) -> None:
        self._found, self._counting = found, counting
        runs, texts, places = found.runs, found.texts, found.places
        # Whether the next place is that of the next word.
        self._goes_on = np.zeros(len(runs), np.bool_)
        self._goes_on[:-1] = (texts[1:] == texts[:-1]) & (places[1:] == places[:-1] + 1)
        self._order = np.argsort(runs, kind="stable")
        self._heads = np.concatenate([[0], np.cumsum(np.bincount(runs, minlength=len(found.often)))]).astype(np.int64)
        # The run that always stands behind each one, and the one before.
        self._always = {step: self._neighbours(step) for step in (1, -1)}

    def passages(self, most: int = MOST_GROWN) -> tuple[list[Grown], bool]:
        """Return the passages, those that fill most first, and whether these are all.

        Parameters
        ----------
        most : int
            From so many runs they are grown, those first that promise most. Raising it finds more and takes longer.
        """
        used = np.zeros(len(self._found.often), np.bool_)
        grown: list[Grown] = []
        taken = 0
        for seed in self._seeds().tolist():
            if used[seed]:
                continue
            if taken == most:
                break
            taken += 1
            grew = self._grow(seed)
            chain = grew.own(self._found.run - 1)
            fresh = len(chain) - int(used[chain].sum())
            used[grew.chain] = True
            if len(chain) and fresh > _FRESH * len(chain):
                at = grew.at + grew.before if len(chain) == len(grew.chain) else self._standing(chain)
                texts, first = np.unique(self._found.texts[at], return_index=True)
                words, often = len(chain) + self._found.run - 1, int(self._counting[texts].sum())
                grown.append(Grown(words, often, texts, self._found.places[at[first]]))
        grown.sort(key=lambda one: (-one.often * one.words, int(one.texts[0]), int(one.places[0])))
        return grown, bool(used.all())

    def _seeds(self) -> Integers:
        """Return the runs, those first that stand in long stretches of runs that many texts share."""
        found = self._found
        often = found.often[found.runs]
        begins = np.ones(len(often), np.bool_)
        fewer, more = np.minimum(often[1:], often[:-1]), np.maximum(often[1:], often[:-1])
        begins[1:] = ~self._goes_on[:-1] | (_STEP * fewer <= more)
        stretch = np.cumsum(begins) - 1
        length = np.bincount(stretch) if len(stretch) else stretch
        fills = (length[stretch] + found.run - 1) * often
        best = np.zeros(len(found.often), np.int64)
        np.maximum.at(best, found.runs, fills)
        return np.lexsort((self._order[self._heads[:-1]], -best))

    def _grow(self, seed: int) -> _Grew:
        """Return what grows from a run."""
        at = self._order[self._heads[seed] : self._heads[seed + 1]]
        needed = max(_LOYAL * int(self._found.often[seed]), 1)
        chain = {seed}
        sides: list[list[int]] = []
        ended: list[bool] = []
        for step in (1, -1):
            side: list[int] = []
            last, count, more = seed, int(self._found.often[seed]), False
            while not more:
                last, going = int(self._always[step][last]), at
                if last < 0:
                    last, going = self._step(at, step * len(side), step)
                    count = self._counted(going)
                # What repeats itself would go on for as long as it does.
                if last in chain or count < needed:
                    break
                more = bool(self._found.often[last] >= _STEP * count)
                if not more:
                    at = going
                    chain.add(last)
                    side.append(last)
            sides.append(side)
            ended.append(more)
        return _Grew(np.array([*sides[1][::-1], seed, *sides[0]], np.int64), at, -len(sides[1]), ended[1], ended[0])

    def _standing(self, chain: Integers) -> Integers:
        """Return where runs stand one behind the other: the places of the first."""
        runs = chain.tolist()
        at = self._order[self._heads[runs[0]] : self._heads[runs[0] + 1]]
        for step, (before, after) in enumerate(pairwise(runs)):
            if self._always[1][before] != after:
                at = at[self._goes_on[at + step]]
                at = at[self._found.runs[at + step + 1] == after]
        return at

    def _neighbours(self, step: int) -> Integers:
        """Return for each run the one that stands next to it wherever it stands, -1 where there is none."""
        runs, count = self._found.runs, len(self._found.often)
        first = np.flatnonzero(self._goes_on)
        at, other = (first, first + 1) if step > 0 else (first + 1, first)
        least, most = np.full(count, count), np.full(count, -1)
        np.minimum.at(least, runs[at], runs[other])
        np.maximum.at(most, runs[at], runs[other])
        always = (least == most) & (np.bincount(runs[at], minlength=count) == np.diff(self._heads))
        return np.where(always, most, -1)

    def _step(self, at: Integers, ahead: int, step: int) -> tuple[int, Integers]:
        """Return the run that most texts go on with, and the places of those that do."""
        # Before the first place of all there is the last one, which nothing follows.
        going = at[self._goes_on[at + ahead + min(step, 0)]]
        after = self._found.runs[going + ahead + step]
        counted = after[self._counting[self._found.texts[going]]]
        if not len(counted):
            return -1, going[:0]
        runs, often = np.unique(counted, return_counts=True)
        run = int(runs[often.argmax()])
        return run, going[after == run]

    def _counted(self, at: Integers) -> int:
        """Return in how many texts that count these places are."""
        texts = self._found.texts[at]
        texts = texts[self._counting[texts]]
        return int(np.count_nonzero(texts[1:] != texts[:-1])) + int(len(texts) > 0)


def written(text: str, place: int, words: int) -> str:
    """Return so many words of a text from one on, as they stand there, with what closes the last one."""
    found = tokens(text)[place : place + words]
    closing = _CLOSING.match(text, found[-1].end)
    return text[found[0].start : closing.end() if closing else found[-1].end]
