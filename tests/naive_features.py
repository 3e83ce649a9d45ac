"""Naive twins of every kind of feature: strings cut character by character, tuples, dicts, fractions.

A gram is a tuple that equals another one if and only if both are the same feature. Hash functions and document
frequencies are arguments, so that nothing here depends on how the library computes them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from naive_text import naive_normalize, naive_tokens

Gram = tuple[object, ...]
Hash = Callable[[Gram], int]

TERMINATORS = ".!?" + "\u2026\u3002\uff01\uff1f\uff0e\uff61\u061f\u06d4\u0964\u0965\u1362\u0589\u104b"
PAUSES = (
    ',;:()[]{}"'
    "\u060c\u061b\u3001\uff0c\uff1b\uff1a\u2014\u2013\u201c\u201d\u00ab\u00bb\u300c\u300d\uff08\uff09" + TERMINATORS
)


class Spec(NamedTuple):
    """A parsed specification such as ``terms:4:sentence``."""

    kind: str
    numbers: tuple[int, ...]
    flags: frozenset[str]

    @classmethod
    def read(cls, text: str) -> Spec:
        kind, *rest = text.split(":")
        return cls(kind, tuple(int(r) for r in rest if r.isdigit()), frozenset(r for r in rest if not r.isdigit()))


def segments(text: str, unit: str) -> list[str]:
    """The sentences or clauses of a text, cut after each break and after a line feed that ends a blank line."""
    breaks = {"sentence": TERMINATORS, "clause": PAUSES}[unit]
    found, begin = [], 0
    for i, character in enumerate(text):
        following = text[i + 1 : i + 2]
        ends = character in breaks
        if character < "\x80" and following < "\x80" and following.isalnum():
            ends = False
        if character == "\n":
            lines = text[:i].split("\n")
            ends = len(lines) > 1 and set(lines[-1]) <= set(" \t\r")
        if ends:
            found.append(text[begin : i + 1])
            begin = i + 1
    return [*found, text[begin:]]


def units(text: str, normalizer: str, by_character: bool) -> list[str]:
    """The units of grams: tokens, or characters of the comparable text."""
    return list(naive_normalize(text, normalizer)) if by_character else naive_tokens(text, normalizer)


def ngrams(tokens: Sequence[str], n: int) -> list[Gram]:
    if len(tokens) < n:
        return [tuple(tokens)] if tokens else []
    return [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]


def skip_grams(tokens: Sequence[str], k: int, gap: int) -> list[Gram]:
    span = (k - 1) * (gap + 1) + 1
    if len(tokens) < span:
        return [("all", *tokens)] if tokens else []
    return [("some", *(tokens[i + j * (gap + 1)] for j in range(k))) for i in range(len(tokens) - span + 1)]


def spots(tokens: Sequence[str], d: int, c: int, stops: Collection[str], begins: Collection[str]) -> list[Gram]:
    grams: list[Gram] = []
    for i, token in enumerate(tokens):
        if token in begins:
            later = [t for t in tokens[i + 1 :] if t not in stops and t not in begins]
            if len(later) >= c * d:
                grams.append((token, *(later[d * j - 1] for j in range(1, c + 1))))
    return grams


def grams(
    text: str, spec: str, normalizer: str, stops: Collection[str] = (), begins: Collection[str] = ()
) -> list[list[Gram]]:
    """The grams of each segment in text order, with repeats, before any selection."""
    kind, numbers, flags = Spec.read(spec)
    if kind == "checksum":
        whole = naive_normalize(text, normalizer)
        return [[(whole,)] if whole else []]
    unit = {"clauses": "clause", "sentence_words": "sentence"}.get(kind, "sentence" if "sentence" in flags else "")
    found = []
    for piece in segments(text, unit) if unit else [text]:
        tokens = units(piece, normalizer, kind in ("qgrams", "windows"))
        if kind == "spots":
            found.append(spots(tokens, numbers[0], numbers[1], stops, begins))
            continue
        if kind in ("words", "skips", "sentence_words", "terms"):
            tokens = [token for token in tokens if token not in stops]
        if kind == "skips":
            found.append(skip_grams(tokens, numbers[0], numbers[1]))
        elif kind == "clauses":
            found.append([tuple(tokens)] if tokens else [])
        else:
            found.append(ngrams(tokens, 1 if kind == "terms" else numbers[0]))
    if "positional" in flags and kind == "qgrams":
        found = [[(*gram, i) for i, gram in enumerate(segment)] for segment in found]
    return found


def sampled_grams(found: Sequence[Gram], modulus: int, hashed: Hash) -> list[Gram]:
    """The grams whose hash is divisible by the modulus, or else the one with the smallest hash."""
    kept = [gram for gram in found if hashed(gram) % modulus == 0]
    return kept or sorted(found, key=hashed)[:1]


def heaviest_terms(segment: Sequence[Gram], k: int, idf: Callable[[Gram], float], hashed: Hash) -> list[Gram]:
    """The k heaviest distinct grams of a segment by tf * idf, smaller hashes first among equals."""
    tf = Counter(segment)
    return sorted(tf, key=lambda gram: (-tf[gram] * idf(gram), hashed(gram)))[:k]


def features(
    text: str,
    spec: str,
    normalizer: str,
    stops: Collection[str] = (),
    begins: Collection[str] = (),
    *,
    hashed: Hash = hash,
    idf: Callable[[Gram], float] = lambda gram: 1.0,
) -> list[Gram]:
    """The features of a text, with repeats (numbered for multisets); ``set`` of it is the feature set.

    ``hashed`` samples windows and orders equal terms; ``idf`` weighs terms, and terms of weight 0 are dropped.
    """
    kind, numbers, flags = Spec.read(spec)
    segments = grams(text, spec, normalizer, stops, begins)
    found = [gram for segment in segments for gram in segment]
    if kind == "terms":
        found = []
        for segment in segments:
            chosen = heaviest_terms([gram for gram in segment if idf(gram)], numbers[0], idf, hashed)
            found += [(*gram, rank) for rank, gram in enumerate(chosen)] if "positional" in flags else chosen
    if kind == "windows":
        found = sampled_grams(found, numbers[1], hashed)
    return numbered_repeats(found) if "multiset" in flags else found


def numbered_repeats(found: Iterable[Gram]) -> list[Gram]:
    """The i-th repeat of a gram as (gram, i)."""
    seen: Counter[Gram] = Counter()
    out: list[Gram] = []
    for gram in found:
        out.append((gram, seen[gram]))
        seen[gram] += 1
    return out


def frequencies(documents: Iterable[Iterable[Gram]]) -> Counter[Gram]:
    """In how many documents each feature occurs."""
    return Counter(gram for document in documents for gram in set(document))


def passes_clip(clip: str, df: int, documents: int) -> bool:
    """Whether a feature with this df survives clipping, in fractions."""
    by, *bounds = clip.split(":")
    low, high = map(Fraction, bounds)
    if by == "df":
        least, most = (
            bound * documents if "." in written else bound for bound, written in zip((low, high), bounds, strict=True)
        )
        return least <= df <= most
    # ln(N / df) / ln(N) >= p / q where (N / df)**q >= N**p; one document has ln(N) = 0, and then it counts as 0.
    share = Fraction(documents, df)
    if documents == 1:
        return low == 0
    q, p = low.denominator, low.numerator
    enough = bool(share**q >= documents**p)
    q, p = high.denominator, high.numerator
    return enough and bool(share**q <= documents**p)


def clipped(documents: Sequence[Sequence[Gram]], clip: str) -> list[list[Gram]]:
    """The documents without the features whose df is out of bounds."""
    df = frequencies(documents)
    return [[gram for gram in document if passes_clip(clip, df[gram], len(documents))] for document in documents]


def idf(df: int, documents: int) -> float:
    return math.log(1 + documents / df)


def weights(document: Sequence[Gram], kind: str, df: Mapping[Gram, int], documents: int) -> dict[Gram, float]:
    """The features of a document with the weights ``tf``, ``idf`` or ``tfidf``."""
    tf = Counter(document)
    return {
        gram: (count if kind in ("tf", "tfidf") else 1) * (idf(df[gram], documents) if "idf" in kind else 1)
        for gram, count in tf.items()
    }


def fixed_point_weights(
    document: Sequence[Gram], kind: str, df: Mapping[Gram, int], documents: int, bits: int
) -> dict[Gram, int]:
    """The weights as whole numbers: idf as a multiple of 2**-bits, rounded, at least one, times the count."""
    tf = Counter(document)
    out = {}
    for gram, count in tf.items():
        rounded = max(round(idf(df[gram], documents) * 2**bits), 1) if "idf" in kind else 1
        out[gram] = rounded * (count if kind in ("tf", "tfidf") else 1)
    return out
