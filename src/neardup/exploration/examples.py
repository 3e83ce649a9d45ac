"""Pairs to read at each cutoff, with the longest run of words that both texts share."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from neardup.classifier.measurer import Measurer
from neardup.classifier.vector import Vector
from neardup.exploration.sample import Survey, row_hashes
from neardup.exploration.views import CUTOFFS
from neardup.keep.keepers import find_families
from neardup.keep.pairs import PairArrays, Pairs
from neardup.kernels import Bools, Integers
from neardup.pages.diff import ShownDocument
from neardup.pages.documents import DocumentReader
from neardup.text.alignment import SuffixAutomaton
from neardup.text.normalize import normalize, tokens

LONGEST = 50_000


class SharedRun(NamedTuple):
    """A run of words that two texts share."""

    #: As the normalizer ``words`` makes them.
    words: tuple[str, ...]
    written: str


def longest_shared(left: str, right: str) -> SharedRun:
    """Return the longest run of words that two texts share, the first of several; an empty one if they share no word.

    Only the first 50,000 characters of each text are compared.
    """
    left_tokens = tokens(left[:LONGEST])
    words = [token.text for token in left_tokens]
    place, length = SuffixAutomaton(normalize(right[:LONGEST]).split()).longest_common_run(words)
    if not length:
        return SharedRun((), "")
    return SharedRun(
        tuple(words[place : place + length]), left[left_tokens[place].start : left_tokens[place + length - 1].end]
    )


#: The margin around a cutoff as a share of it, and the smallest margin.
_MARGIN_SHARE, _SMALLEST_MARGIN = 0.1, 0.01
#: The most pairs of a band to consider: those with the smallest hashes.
_MOST_CONSIDERED = 5_000
#: Candidates per shown example: those with different shared passages are preferred. Two passages are the same if they
#: share more than this part of their words.
_CANDIDATES_PER_EXAMPLE, _SAME_PASSAGE_SHARE = 4, 0.5
#: Without a run, pairs of at least this similarity make families.
_FAMILY_SIMILARITY = 0.5


@dataclass(frozen=True, slots=True)
class ExamplePair:
    """Two documents to read side by side."""

    #: The documents; left comes first in the input.
    left: ShownDocument
    right: ShownDocument
    #: By the advised features and measure.
    similarity: float
    #: Their files; empty if the input is one file.
    left_source: str
    right_source: str
    #: The longest run of words that both share, as written in the left text, and its length; empty if they share none.
    passage: str
    words: int

    def as_dict(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        return asdict(self) | {"left": self.left.as_dict(), "right": self.right.as_dict()}


@dataclass(frozen=True, slots=True)
class Examples:
    """Real pairs of about the similarity of a cutoff."""

    cutoff: float
    #: The pairs come from low <= similarity < high.
    low: float
    high: float
    found: int
    #: "sample", or "corpus" if the sample has no pairs in the band.
    origin: str
    #: The most similar first; spread over families, sources, lengths and shared passages, with no document twice.
    pairs: tuple[ExamplePair, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        return asdict(self) | {"pairs": [pair.as_dict() for pair in self.pairs]}


class _Band(NamedTuple):
    cutoff: float
    low: float
    high: float
    origin: str
    pairs: PairArrays


def choose_examples(
    pairs: PairArrays,
    survey: Survey,
    reader: DocumentReader,
    *,
    family: Integers,
    corpus_pairs: Pairs | None = None,
    count: int = 3,
    seed: int = 0,
) -> tuple[Examples, ...]:
    """Choose pairs to read at each cutoff: those within a tenth of it (at least 0.01).

    If the sample has none there, pairs of the whole corpus are taken; if that has none either, the band is widened to
    the middle between the cutoffs. ``pairs`` are those of the sample from below the lowest cutoff on, ``corpus_pairs``
    those of the corpus by the same features and measure. ``family`` (int64[n]) is that of each document, 0 for none.
    """
    bands = [_find_band(*place, pairs, corpus_pairs) for place in _cutoff_bands()]
    candidates = [_spread_pairs(band.pairs, survey, family, _CANDIDATES_PER_EXAMPLE * count, seed) for band in bands]
    documents_to_read = [one[at] for band, at in zip(bands, candidates, strict=True) for one in band.pairs[:2]]
    reader.load(np.concatenate(documents_to_read))
    found = []
    for band, places in zip(bands, candidates, strict=True):
        chosen = _select_unlike(band.pairs, places, count, reader)
        shown = [_example_pair(band.pairs, place, shared, survey, reader) for place, shared in chosen]
        shown.sort(key=lambda pair: -pair.similarity)
        found.append(Examples(band.cutoff, band.low, band.high, len(band.pairs.left), band.origin, tuple(shown)))
    return tuple(found)


#: The measures that tell texts of one form about different things apart; the most pairs to measure, and to show.
_SUSPECT_FEATURES, _MOST_MEASURED, _MOST_SUSPECTS = Vector.parse("facts, swapped(names), swapped(numbers)"), 200, 3


def choose_suspects(
    pairs: PairArrays, survey: Survey, reader: DocumentReader, *, family: Integers
) -> tuple[ExamplePair, ...]:
    """Choose matching pairs that may be different documents, the most suspicious first; no two of one family.

    Of the 200 least similar ``pairs``, these are those in which names or numbers of one text replace those of the
    other; those whose facts differ most come first. ``family`` (int64[n]) has the family of each document, 0 for none.
    """
    unequal = np.flatnonzero((survey.text_digests[pairs.left] != survey.text_digests[pairs.right]).any(axis=1))
    order = unequal[np.argsort(pairs.similarity[unequal], kind="stable")][:_MOST_MEASURED]
    if not len(order):
        return ()
    left, right = pairs.left[order], pairs.right[order]
    documents, places = np.unique(np.concatenate([left, right]), return_inverse=True)
    measurer = Measurer(_SUSPECT_FEATURES, {})
    prepared = measurer.prepare(reader.records(documents, _SUSPECT_FEATURES))
    facts, *swapped = measurer.measure(prepared, places[: len(order)], places[len(order) :]).T
    chosen: dict[int, int] = {}
    for at in np.lexsort((-sum(swapped), facts)).tolist():
        if swapped[0][at] + swapped[1][at] > 0 and len(chosen) < _MOST_SUSPECTS:
            chosen.setdefault(int(family[left[at]]) or -at - 1, int(order[at]))
    texts = {place: [reader.document(int(ends[place])).text for ends in pairs[:2]] for place in chosen.values()}
    return tuple(
        _example_pair(pairs, place, longest_shared(*texts[place]), survey, reader) for place in chosen.values()
    )


def _select_unlike(
    pairs: PairArrays, places: Integers, count: int, reader: DocumentReader
) -> list[tuple[int, SharedRun]]:
    """Return the indices of ``count`` pairs; pairs whose shared passage an earlier one has come last."""
    used: list[set[str]] = []
    chosen, similar_passages = [], []
    for place in places.tolist():
        texts = [reader.document(int(ends[place])).text for ends in pairs[:2]]
        shared = longest_shared(*texts)
        words = set(shared.words)
        if any(len(words & previous) > _SAME_PASSAGE_SHARE * len(words | previous) for previous in used):
            similar_passages.append((place, shared))
        else:
            used.append(words)
            chosen.append((place, shared))
        if len(chosen) == count:
            break
    return [*chosen, *similar_passages][:count]


def _cutoff_bands() -> list[tuple[float, tuple[float, float], tuple[float, float]]]:
    middles = [(one + other) / 2 for one, other in pairwise(CUTOFFS)]
    # The first band is symmetric, the last one ends below 1.
    first = 2 * CUTOFFS[0] - middles[0]
    found = []
    for cutoff, low, high in zip(CUTOFFS, [first, *middles], [*middles, 1.0], strict=True):
        margin = max(_MARGIN_SHARE * cutoff, _SMALLEST_MARGIN)
        narrow = round(cutoff - margin, 9), round(min(cutoff + margin, 1.0), 9)
        found.append((cutoff, narrow, (round(max(low, 0.0), 9), round(high, 9))))
    return found


def _find_band(
    cutoff: float, narrow: tuple[float, float], wide: tuple[float, float], pairs: PairArrays, corpus_pairs: Pairs | None
) -> _Band:
    for low, high in (narrow, wide):
        found = _pairs_within(pairs, low, high)
        if len(found.left):
            return _Band(cutoff, low, high, "sample", found)
        if corpus_pairs is not None:
            # One pair of representatives stands for all documents equal to them.
            every = PairArrays(corpus_pairs.left, corpus_pairs.right, corpus_pairs.similarity)
            found = _pairs_within(every, low, high)
            if len(found.left):
                return _Band(cutoff, low, high, "corpus", found)
    return _Band(cutoff, *narrow, "sample", _pairs_within(pairs, *narrow))


def _pairs_within(pairs: PairArrays, low: float, high: float) -> PairArrays:
    return select_pairs(pairs, (pairs.similarity >= low) & (pairs.similarity < high))


def select_pairs(pairs: PairArrays, chosen: Bools) -> PairArrays:
    """Return the pairs that a mask selects."""
    return PairArrays(pairs.left[chosen], pairs.right[chosen], pairs.similarity[chosen])


def sample_families(pairs: PairArrays, documents: int) -> Integers:
    """Return the family of each document by the pairs of a sample of at least 0.5: int64[n], 0 for none."""
    close = pairs.similarity >= _FAMILY_SIMILARITY
    return find_families(np.arange(documents), pairs.left[close], pairs.right[close], pairs.similarity[close]).family


def _spread_pairs(pairs: PairArrays, survey: Survey, family: Integers, count: int, seed: int) -> Integers:
    """Return the indices of ``count`` pairs that are spread over families, sources and lengths.

    Each step takes the pair with the fewest documents of families already taken; of several, that with the least taken
    sources and lengths, and the smallest hash.
    """
    rows = survey.names.rows
    keys = row_hashes(rows[pairs.left], seed) ^ row_hashes(rows[pairs.right], seed + 1)
    order = np.argsort(keys, kind="stable")[:_MOST_CONSIDERED]
    ends = np.stack([pairs.left[order], pairs.right[order]], axis=1)
    of_family = family[ends].tolist()
    of_source = [tuple(sorted(both)) for both in survey.source[ends].tolist()]
    doublings = np.log2(np.maximum(survey.text_bytes[ends], 1)).astype(np.int64)
    of_length = [tuple(sorted(both)) for both in doublings.tolist()]
    used: Counter[Any] = Counter()
    chosen: list[int] = []
    documents = ends.tolist()
    waiting = list(range(len(order)))

    def use_counts(at: int) -> tuple[int, int, int]:
        kin = sum(used["family", one] for one in of_family[at] if one)
        return kin, used["source", of_source[at]], used["length", of_length[at]]

    while waiting and len(chosen) < count:
        best = min(waiting, key=use_counts)
        chosen.append(best)
        used.update(("family", one) for one in of_family[best])
        used.update([("source", of_source[best]), ("length", of_length[best])])
        waiting = [at for at in waiting if not set(documents[at]) & set(documents[best])]
    return order[np.array(chosen, np.int64)]


def _example_pair(
    pairs: PairArrays, place: int, shared: SharedRun, survey: Survey, reader: DocumentReader
) -> ExamplePair:
    ends = int(pairs.left[place]), int(pairs.right[place])
    one, other = (survey.sources[survey.source[end]] if len(survey.sources) > 1 else "" for end in ends)
    left, right = map(reader.document, ends)
    return ExamplePair(left, right, float(pairs.similarity[place]), one, other, shared.written, len(shared.words))
