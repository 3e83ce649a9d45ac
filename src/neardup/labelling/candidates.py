"""The pairs that may be asked: those of the wide net, without copies, evenly over similarity where they are many."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from neardup._kernels.grouping import components
from neardup.documents import Corpus
from neardup.errors import InputError
from neardup.material import Material
from neardup.pipeline import run
from neardup.reading import Report
from neardup.recipe import Recipe
from neardup.text.normalize import normalize

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

#: As many pairs are enough to choose from; of more, as many are drawn from each stretch of similarity.
MOST_PAIRS = 20_000
#: The stretches that similarity is cut into, from the net's threshold to 1.
STRATA = 10
#: Documents that pairs at least so similar connect are a cluster: copies of one text, or of one form.
_CLUSTER = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """Pairs to choose from, in the order of the documents.

    Attributes
    ----------
    left, right : int64[k]
        Positions of the documents, left < right.
    similarity : float64[k]
        By the net's measure.
    stratum : int64[k]
        The stretch of similarity that each pair is in, 0 to STRATA - 1.
    cluster : int64[k, 2]
        The clusters of its documents.
    rank : int64[k]
        A random order, by the seed.
    measure : str
        The net's measure, for people.
    found : int
        How many pairs the net has, of which these are some or all.
    complete : bool
        Whether the net's pairs were all found.
    """

    left: Integers
    right: Integers
    similarity: Floats
    stratum: Integers
    cluster: Integers
    rank: Integers
    measure: str
    found: int
    complete: bool

    def __len__(self) -> int:
        return len(self.left)


def pool_of(
    corpus: Corpus,
    net: Recipe,
    *,
    seed: int = 0,
    most: int = MOST_PAIRS,
    title_column: str = "",
    time_column: str = "",
    threads: int | None = None,
    memory: int | None = None,
    progress: Report | None = None,
) -> tuple[Pool, Material]:
    """Return the pairs to choose from, and the documents.

    Documents that are equal in all that the net compares count once, by the first of them.

    Parameters
    ----------
    corpus : Corpus
        It stays open.
    net : Recipe
        Its pairs are the candidates.
    seed : int
        Of what is drawn at random.
    most : int
        Where the net has more pairs, so many are taken. Raising it makes the beginning slower.
    title_column, time_column
        See ``Material``.
    threads, memory, progress
        See ``pipeline.run``.

    Raises
    ------
    InputError
        If the net has no pairs, or the corpus no documents.
    """
    result = run(corpus, net, threads=threads, memory=memory, progress=progress)
    if not result.summary["documents"]:
        raise InputError("the input holds no documents, so there is nothing to ask; name the files to label")
    left, right, similarity = result.pairs.left, result.pairs.right, result.pairs.similarity
    material = Material(
        corpus,
        result.pairs.names,
        content=net.content,
        title_column=title_column,
        time_column=time_column,
        threads=result.summary["threads"],
    )
    measure = f"{net.measure}({net.features})"
    random = np.random.default_rng(seed)
    group = np.arange(len(material.names))
    close = similarity >= _CLUSTER
    components(left[close], right[close], group)
    stratum = strata_of(similarity, float(net.threshold))
    chosen = np.sort(_drawn(stratum, most, random))
    material.load(np.concatenate([left[chosen], right[chosen]]))
    chosen = chosen[_differ(material, left[chosen], right[chosen])]
    if not len(chosen):
        raise InputError(
            f"there is no pair with {measure} >= {net.threshold:g} but copies, so there is nothing to ask; lower the "
            "number in --net"
        )
    left, right = left[chosen], right[chosen]
    pool = Pool(
        left,
        right,
        similarity[chosen],
        stratum[chosen],
        np.column_stack([group[left], group[right]]),
        random.permutation(len(chosen)),
        measure,
        len(similarity),
        bool(result.summary["all_pairs"]),
    )
    return pool, material


def strata_of(similarity: Floats, least: float) -> Integers:
    """Return which of the equal stretches from ``least`` to 1 each similarity is in."""
    share = (similarity - least) / (1 - least) if least < 1 else np.ones_like(similarity)
    return np.clip((share * STRATA).astype(np.int64), 0, STRATA - 1)


def _drawn(stratum: Integers, most: int, random: np.random.Generator) -> Integers:
    """Return at most so many pairs, of each stratum as many as possible before others get more."""
    counts = np.bincount(stratum, minlength=STRATA)
    quota, left = np.zeros(STRATA, np.int64), most
    # The smallest strata are taken whole, and what they leave goes to the others.
    for place, at in enumerate(np.argsort(counts, kind="stable")):
        quota[at] = min(counts[at], left // (STRATA - place))
        left -= int(quota[at])
    parts = [random.permutation(np.flatnonzero(stratum == at))[: quota[at]] for at in range(STRATA)]
    return np.concatenate(parts)


def _differ(material: Material, left: Integers, right: Integers) -> npt.NDArray[np.bool_]:
    """Return which pairs are not the same words in the same order."""
    places = np.unique(np.concatenate([left, right]))
    words: dict[str, int] = {}
    same = np.array([words.setdefault(normalize(material.shown(at).text), at) for at in places.tolist()], np.int64)
    differs: npt.NDArray[np.bool_] = same[np.searchsorted(places, left)] != same[np.searchsorted(places, right)]
    return differs
