"""A classifier as the second step: the vectors of candidate pairs, and which of them pass."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import inf, isfinite
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.documents.records import Names
from neardup.errors import ManyCandidates, RecipeError, option
from neardup.features.embeddings import Encoder, cosine_counts, embed
from neardup.features.extraction import extract_features
from neardup.features.store import row_heads
from neardup.keep.pairs import Pairs
from neardup.kernels.counts import group_equal_sets
from neardup.kernels.pairs import count_overlaps
from neardup.recipe import Recipe
from neardup.recipe.measures import reaches_threshold
from neardup.recipe.second_step import SecondStep
from neardup.search.matches import Matches, partition_pairs

if TYPE_CHECKING:
    from neardup.classifier.classifier import Classifier
    from neardup.classifier.records import Records

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
#: Probabilities become whole numbers of this.
PROBABILITY_UNIT = 10**9
_PAIRS_AT_A_TIME = 1 << 14
#: From so many candidates on a run says how long they will take.
MANY_CANDIDATES = 500_000
#: Bytes that a text takes while it is looked at, for each of its bytes and besides.
_FOR_A_BYTE, _FOR_A_TEXT = 8, 400


class StepVerdicts(NamedTuple):
    """What a second step says of n candidate pairs.

    Attributes
    ----------
    passed : bool[n]
        Whether each is a near-duplicate.
    vectors : float64[k, r]
        The similarities of those that are that a classifier went by; r is 0 where none did.
    counts : int64[k, 3]
        o, a and b of the second measure for them.
    outside : int or None
        How many of the n are unlike the pairs that it was trained on; None where that is not known.
    """

    passed: npt.NDArray[np.bool_]
    vectors: Floats
    counts: Integers
    outside: int | None


#: Judges pairs of documents by their positions.
PairJudge = Callable[[Integers, Integers], StepVerdicts]


def check_classifier(classifier: Classifier | None, recipe: Recipe, encoder: Encoder | None) -> Classifier:
    """Return the classifier that a recipe names.

    Raises
    ------
    RecipeError
        If there is none, it is another one, or it needs an encoder that is not there.
    """
    step = recipe.parsed_second_step
    if step is None or step.measure != "learned":
        raise RecipeError("a classifier brings its own recipe; give classifier.recipe, or leave one of them out")
    if classifier is None or classifier.fingerprint != step.features:
        has = "there is none" if classifier is None else f"this is {classifier.fingerprint}"
        raise RecipeError(
            f"second_step {str(step)!r} needs the classifier of that fingerprint, and {has}; give it with "
            f"{option('--classifier FILE', 'classifier=')}"
        )
    if classifier.vector.needs_encoder and encoder is None:
        raise RecipeError(
            "the classifier goes by 'semantic' too and needs an encoder, an object with encode(texts): hand one over "
            "in Python, nd.dedup(..., encoder=...)"
        )
    return classifier


def judge_by_classifier(
    classifier: Classifier,
    records: Records,
    left: Integers,
    right: Integers,
    *,
    threads: int,
    encoder: Encoder | None,
    progress: Callable[[int, int], None],
) -> StepVerdicts:
    """Return what ``check_classifier`` let pass says of pairs of records, by their places."""
    from neardup.classifier.measurer import Measurer

    measurer = Measurer(classifier.vector, classifier.statistics, encoder=encoder, threads=threads)
    prepared = measurer.prepare(records)
    passed = np.zeros(len(left), np.bool_)
    vectors = [np.empty((0, len(classifier.vector)))]
    scores = [np.empty(0)]
    home, outside = classifier.domain, 0
    foreign = np.zeros(len(records), np.bool_) if home is None else home.outside_texts(records.texts)
    for begin in range(0, len(left), _PAIRS_AT_A_TIME):
        part = slice(begin, begin + _PAIRS_AT_A_TIME)
        x = measurer.measure(prepared, left[part], right[part])
        g = classifier.score(x)
        passed[part] = classifier.passes(g)
        vectors.append(x[passed[part]])
        scores.append(g[passed[part]])
        if home is not None:
            outside += int((home.outside_pairs(x) | foreign[left[part]] | foreign[right[part]]).sum())
        progress(min(begin + _PAIRS_AT_A_TIME, len(left)), len(left))
    counts = probability_counts(classifier, np.concatenate(scores))
    return StepVerdicts(passed, np.concatenate(vectors), counts, None if home is None else outside)


def _announced(progress: Callable[[int, int], None], classifier: Classifier) -> Callable[[int, int], None]:
    """Return a progress that warns, once some of very many candidates were judged, how long all of them will take."""
    began, warned = monotonic(), False

    def told(done: int, total: int) -> None:
        nonlocal warned
        if total > MANY_CANDIDATES and not warned:
            warned = True
            minutes = max(round((monotonic() - began) * total / max(done, 1) / 60), 1)
            way_out = option("neardup train --candidate-rule", "nd.train(..., candidate_rule=...)")
            message = (
                f"the classifier has {total:,} candidates to judge, which takes about {minutes:,} minutes; a candidate "
                f"rule with a higher number than {classifier.candidate_rule.threshold:g}, given to {way_out}, leaves "
                "fewer"
            )
            warnings.warn(message, ManyCandidates, stacklevel=2)
        progress(done, total)

    return told


def probability_counts(classifier: Classifier, g: Floats) -> Integers:
    """Return o, a and b of pairs with such a g: the probability in units of 10**-9, and what makes 1.

    Equal texts alone have 1: however sure a classifier is, it stays a unit below.
    """
    o = np.minimum(np.rint(classifier.probability(g) * PROBABILITY_UNIT), PROBABILITY_UNIT - 1).astype(np.int64)
    return np.column_stack([o, np.full((len(o), 2), PROBABILITY_UNIT, np.int64)])


Words = npt.NDArray[np.uint64]


def apply_second_step(
    matches: Matches,
    recipe: Recipe,
    texts: Integers,
    records_of: Callable[[Integers], Records] | None,
    *,
    judge: PairJudge | None = None,
    threads: int = 1,
    encoder: Encoder | None = None,
    classifier: Classifier | None = None,
    reference: int = 0,
    text_bytes: Integers | None = None,
    room: float = inf,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Matches:
    """Return the matches that pass a recipe's second measure.

    Documents with equal features need not have equal texts: they are pairs to look at like others, and only texts
    that are equal byte for byte still stand for each other.

    Parameters
    ----------
    matches : Matches
        All pairs that passed the first measure.
    recipe : Recipe
        Its ``apply_second_step``.
    texts : int64[n]
        From ``text_representatives``, of documents whose texts have digests.
    records_of : callable
        Gives the texts of documents, ascending, and what else a classifier asks for.
    judge : callable, optional
        In place of ``records_of``: looks at all pairs elsewhere.
    encoder : Encoder, optional
        For ``semantic``.
    classifier : Classifier, optional
        For ``learned``.
    reference : int
        How many of the documents, the last ones, are of a reference: pairs among them are not looked at.
    text_bytes : int64[n], optional
        The length of each document's text, where ``room`` is bounded.
    room : float
        Bytes that texts may take at once. Lowering it reads them in more parts and changes no answer.
    """
    step = recipe.parsed_second_step
    if step is None:
        return matches
    left, right, counts = _pairs_of_texts(matches, texts, reference)
    if records_of is not None:
        judge = partial(
            _judged_in_groups,
            step=step,
            records_of=records_of,
            known=check_classifier(classifier, recipe, encoder) if step.measure == "learned" else None,
            text_bytes=text_bytes,
            room=room,
            threads=threads,
            encoder=encoder,
            progress=progress,
        )
    if judge is None:
        raise ValueError("a second step needs records_of or judge")
    passed, vectors, second, outside = judge(left, right)
    statistics = matches.statistics | {"first_step_pairs": len(left), "pairs": int(passed.sum())}
    return replace(
        matches,
        representative=texts,
        left=left[passed],
        right=right[passed],
        counts=counts[passed],
        second=second,
        vectors=vectors if step.measure == "learned" else None,
        statistics=statistics if outside is None else statistics | {"outside": outside},
    )


def _judged_in_groups(
    left: Integers,
    right: Integers,
    *,
    step: SecondStep,
    records_of: Callable[[Integers], Records],
    known: Classifier | None,
    text_bytes: Integers | None,
    room: float,
    threads: int,
    encoder: Encoder | None,
    progress: Callable[[int, int], None],
) -> StepVerdicts:
    """Return what is decided about pairs of documents whose texts are read in groups that fit."""
    groups = np.zeros(len(left), np.int64)
    if text_bytes is not None and isfinite(room):
        sizes = _FOR_A_BYTE * text_bytes + _FOR_A_TEXT
        groups = partition_pairs(np.column_stack([left, right]), sizes, room)
    if known is not None:
        progress = _announced(progress, known)
    passed, unlike = np.zeros(len(left), np.bool_), list[int]()
    found = list[tuple[Integers, Integers, Floats]]()
    for group in range(int(groups.max(initial=0)) + 1):
        here = np.flatnonzero(groups == group)
        documents = np.unique(np.concatenate([left[here], right[here]]))
        places = np.searchsorted(documents, left[here]), np.searchsorted(documents, right[here])
        records = records_of(documents)
        told = partial(_in_all, progress, int((groups < group).sum()), len(left))
        if known is not None:
            decided = judge_by_classifier(known, records, *places, threads=threads, encoder=encoder, progress=told)
            reach, vectors, second, outside = decided
            unlike += [] if outside is None else [outside]
        else:
            reach, second = judge_by_measure(step, records.texts, *places, threads, encoder, told)
            vectors = np.empty((len(second), 0))
        passed[here] = reach
        found.append((here[reach], second, vectors))
    order = np.argsort(np.concatenate([part[0] for part in found]))
    second = np.concatenate([part[1] for part in found])[order]
    vectors = np.concatenate([part[2] for part in found])[order]
    return StepVerdicts(passed, vectors, second, sum(unlike) if unlike else None)


def _in_all(progress: Callable[[int, int], None], before: int, total: int, done: int, of: int) -> None:
    progress(before + done, total)


def judge_by_measure(
    step: SecondStep,
    texts: Sequence[str],
    left: Integers,
    right: Integers,
    threads: int,
    encoder: Encoder | None,
    progress: Callable[[int, int], None],
) -> tuple[npt.NDArray[np.bool_], Integers]:
    """Return which pairs reach a step's threshold, and o, a and b of those."""
    measured = _measured(step, texts, threads, encoder)
    second = np.empty((len(left), 3), np.int64)
    for begin in range(0, len(left), _PAIRS_AT_A_TIME):
        part = slice(begin, begin + _PAIRS_AT_A_TIME)
        second[part] = measured(left[part], right[part])
        progress(min(begin + _PAIRS_AT_A_TIME, len(left)), len(left))
    passed = reaches_threshold(step.measure, second, step.exact_threshold)
    return passed, second[passed]


def text_representatives(text_digests: Words, text_bytes: Integers, alone: npt.NDArray[np.bool_]) -> Integers:
    """Return for each document the first with the same text, -1 for those that must match nothing: int64[n].

    Parameters
    ----------
    text_digests, text_bytes : uint64[n, 2], int64[n]
        As in a ``Block``: where anything depends on the answer, the marks are digests.
    alone : bool[n]
        Documents that must match nothing.
    """
    found = np.empty(len(text_bytes), np.int64)
    none = np.empty(0, np.uint64)
    group_equal_sets(text_digests, text_bytes, alone, none, none, found)
    return found


def _pairs_of_texts(matches: Matches, representative: Integers, reference: int) -> tuple[Integers, Integers, Integers]:
    """Return all pairs of distinct texts that passed, with o, a and b; (1, 1, 1) where the features are equal."""
    own = np.where(representative == np.arange(len(representative)), matches.representative, -1)
    names = Names(np.arange(len(own)), None, pa.nulls(reference))
    pairs = Pairs(names, own, matches.left, matches.right, np.ones(len(matches.left)))
    parts = list(pairs.edges())
    if not parts:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty((0, 3), np.int64)
    edge = np.concatenate([part.edge for part in parts])
    counts = np.ones((len(edge), 3), np.int64)
    counts[edge >= 0] = matches.counts[edge[edge >= 0]]
    return np.concatenate([part.left for part in parts]), np.concatenate([part.right for part in parts]), counts


def _measured(
    step: SecondStep, texts: Sequence[str], threads: int, encoder: Encoder | None
) -> Callable[[Integers, Integers], Integers]:
    """Return what gives o, a and b of pairs of texts, by their places."""
    if step.measure == "edit":
        return lambda left, right: edit_counts(
            [texts[i] for i in left], [texts[i] for i in right], step.threshold, threads
        )
    if step.measure == "semantic":
        if encoder is None:
            raise RecipeError(
                f"second_step {str(step)!r} needs an encoder, an object with encode(texts): hand one over in Python, "
                "nd.dedup(..., encoder=...)"
            )
        embeddings = embed(texts, encoder)
        return lambda left, right: cosine_counts(embeddings, left, right)
    return _set_counts(texts, Recipe(features=step.features, ignore=step.ignore))


def edit_counts(left: Sequence[str], right: Sequence[str], least: float, threads: int = 1) -> Integers:
    """Return o, a and b of pairs of texts: length of the longer one less the Levenshtein distance, and that length.

    Parameters
    ----------
    left, right : sequence of str
        The texts of each pair.
    least : float
        o may be 0 for a pair whose 1 - distance / length is below it: raising it makes the work shorter.
    threads : int
        They change the time, never the answer.
    """
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cpdist

    longer = np.array([max(len(one), len(other)) for one, other in zip(left, right, strict=True)], np.int64)
    similar = cpdist(
        left,
        right,
        scorer=Levenshtein.normalized_similarity,
        score_cutoff=max(least - 1e-6, 0.0),
        dtype=np.float64,
        workers=threads,
    )
    kept = np.rint(np.asarray(similar, np.float64) * longer).astype(np.int64)
    return np.column_stack([kept, longer, longer])


def _set_counts(texts: Sequence[str], recipe: Recipe) -> Callable[[Integers, Integers], Integers]:
    block = extract_features(pa.array(texts, pa.large_string()), recipe)
    heads = row_heads(block.sizes)
    owner = np.repeat(np.arange(len(block.sizes)), block.sizes)
    features = block.features[np.lexsort((block.features, owner))]

    def counts(left: Integers, right: Integers) -> Integers:
        shared = np.empty(len(left), np.int64)
        count_overlaps(heads, features, left, right, shared)
        return np.column_stack([shared, np.maximum(block.sizes[left], 1), np.maximum(block.sizes[right], 1)])

    return counts
