"""The second step: candidate pairs are judged on their texts by a measure or a classifier."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import isfinite
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from neardup.documents.records import Names
from neardup.errors import ManyCandidates, RecipeError, option
from neardup.features.extraction import Encoder, cosine_counts, embed, extract_features
from neardup.features.store import row_heads
from neardup.keep.pairs import Pairs
from neardup.kernels import Bools, Floats, Integers, Words
from neardup.kernels.counts import group_equal_sets
from neardup.kernels.pairs import count_overlaps
from neardup.recipe import Recipe
from neardup.recipe.measures import reaches_threshold
from neardup.recipe.second_step import SecondStep
from neardup.search.matches import Matches, partition_pairs

if TYPE_CHECKING:
    from neardup.classifier.classifier import Classifier
    from neardup.classifier.vector import Records

#: The value of o, a and b that stands for probability 1.
PROBABILITY_UNIT = 10**9
_PAIRS_AT_A_TIME = 1 << 14
#: With more candidates than this, a warning states how long they will take.
MANY_CANDIDATES = 500_000
#: Bytes of memory per text being judged: for each of its bytes, and a constant.
_BYTES_PER_TEXT_BYTE, _BYTES_PER_TEXT = 8, 400


class StepVerdicts(NamedTuple):
    """The verdicts of a second step on n candidate pairs, of which k pass.

    vectors: float64[k, r], those of the passing pairs for a classifier, r = 0 without one; counts: int64[k, 3], o, a
    and b of the passing pairs for the second measure; outside: how many of the n pairs are unlike the training pairs of
    the classifier, None if its domain is unknown.
    """

    passed: Bools
    vectors: Floats
    counts: Integers
    outside: int | None


#: Judges pairs of documents by their positions.
PairJudge = Callable[[Integers, Integers], StepVerdicts]


def check_classifier(classifier: Classifier | None, recipe: Recipe, encoder: Encoder | None) -> Classifier:
    """Return the classifier that a recipe names; raise ``RecipeError`` if it or an encoder that it needs is missing."""
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
    """Return the verdicts of a checked classifier on pairs of records, given by place."""
    from neardup.classifier.measurer import Measurer

    measurer = Measurer(classifier.vector, classifier.statistics, encoder=encoder, threads=threads)
    prepared = measurer.prepare(records)
    passed = np.zeros(len(left), np.bool_)
    vectors = [np.empty((0, len(classifier.vector)))]
    scores = [np.empty(0)]
    domain, outside = classifier.domain, 0
    foreign = np.zeros(len(records), np.bool_) if domain is None else domain.outside_texts(records.texts)
    for begin in range(0, len(left), _PAIRS_AT_A_TIME):
        part = slice(begin, begin + _PAIRS_AT_A_TIME)
        batch = measurer.measure(prepared, left[part], right[part])
        batch_scores = classifier.score(batch)
        passed[part] = classifier.passes(batch_scores)
        vectors.append(batch[passed[part]])
        scores.append(batch_scores[passed[part]])
        if domain is not None:
            outside += int((domain.outside_pairs(batch) | foreign[left[part]] | foreign[right[part]]).sum())
        progress(min(begin + _PAIRS_AT_A_TIME, len(left)), len(left))
    counts = probability_counts(classifier, np.concatenate(scores))
    return StepVerdicts(passed, np.concatenate(vectors), counts, None if domain is None else outside)


def _warn_if_many(progress: Callable[[int, int], None], classifier: Classifier) -> Callable[[int, int], None]:
    """Return a progress callback that, for very many candidates, warns once how long all of them will take."""
    began, warned = monotonic(), False

    def report(done: int, total: int) -> None:
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

    return report


def probability_counts(classifier: Classifier, scores: Floats) -> Integers:
    """Return o, a and b of pairs with these scores: o is the probability in units of 10**-9, a and b stand for 1.

    Only equal texts have probability 1: that of any other pair is at most one unit below.
    """
    o = np.minimum(np.rint(classifier.probability(scores) * PROBABILITY_UNIT), PROBABILITY_UNIT - 1).astype(np.int64)
    return np.column_stack([o, np.full((len(o), 2), PROBABILITY_UNIT, np.int64)])


def apply_second_step(matches: Matches, texts: Integers, judge: PairJudge, reference_count: int = 0) -> Matches:
    """Return the matches that pass the second step.

    Documents with equal features need not have equal texts, so they are judged as pairs, too; only documents with equal
    texts keep one representative.

    Parameters
    ----------
    matches : Matches
        All pairs that pass the first step.
    texts : int64[n]
        The result of ``text_representatives``.
    judge : callable
        Judges all pairs.
    reference_count : int
        How many of the documents, the last ones, are of a reference; pairs among them are not judged.
    """
    left, right, counts = _pairs_of_texts(matches, texts, reference_count)
    passed, vectors, second, outside = judge(left, right)
    statistics = matches.statistics | {"first_step_pairs": len(left), "pairs": int(passed.sum())}
    return replace(
        matches,
        representative=texts,
        left=left[passed],
        right=right[passed],
        counts=counts[passed],
        second=second,
        vectors=vectors if vectors.shape[1] else None,
        statistics=statistics if outside is None else statistics | {"outside": outside},
    )


def judge_in_groups(
    left: Integers,
    right: Integers,
    *,
    step: SecondStep,
    records_of: Callable[[Integers], Records],
    classifier: Classifier | None,
    text_bytes: Integers,
    room: float,
    threads: int,
    encoder: Encoder | None,
    progress: Callable[[int, int], None],
) -> StepVerdicts:
    """Return the verdicts on pairs of documents, whose texts are read in groups that fit into memory.

    records_of: returns the records of documents, given ascending: their texts, and the other fields of a classifier;
    text_bytes: int64[n], the length of each text; room: the most bytes of texts in memory. Lowering it reads them in
    more groups, and does not change the result.
    """
    groups = np.zeros(len(left), np.int64)
    if isfinite(room):
        sizes = _BYTES_PER_TEXT_BYTE * text_bytes + _BYTES_PER_TEXT
        groups = partition_pairs(np.column_stack([left, right]), sizes, room)
    if classifier is not None:
        progress = _warn_if_many(progress, classifier)
    passed, outside_counts = np.zeros(len(left), np.bool_), list[int]()
    found = list[tuple[Integers, Integers, Floats]]()
    for group in range(int(groups.max(initial=0)) + 1):
        rows = np.flatnonzero(groups == group)
        documents = np.unique(np.concatenate([left[rows], right[rows]]))
        places = np.searchsorted(documents, left[rows]), np.searchsorted(documents, right[rows])
        records = records_of(documents)
        group_progress = partial(_report_total, progress, int((groups < group).sum()), len(left))
        if classifier is not None:
            verdicts = judge_by_classifier(
                classifier, records, *places, threads=threads, encoder=encoder, progress=group_progress
            )
            reach, vectors, second, outside = verdicts
            outside_counts += [] if outside is None else [outside]
        else:
            reach, second = judge_by_measure(step, records.texts, *places, threads, encoder, group_progress)
            vectors = np.empty((len(second), 0))
        passed[rows] = reach
        found.append((rows[reach], second, vectors))
    order = np.argsort(np.concatenate([part[0] for part in found]))
    second = np.concatenate([part[1] for part in found])[order]
    vectors = np.concatenate([part[2] for part in found])[order]
    return StepVerdicts(passed, vectors, second, sum(outside_counts) if outside_counts else None)


def _report_total(progress: Callable[[int, int], None], before: int, total: int, done: int, group_total: int) -> None:
    progress(before + done, total)


def judge_by_measure(
    step: SecondStep,
    texts: Sequence[str],
    left: Integers,
    right: Integers,
    threads: int = 1,
    encoder: Encoder | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[Bools, Integers]:
    """Return the pairs that reach a step's threshold, bool[n], and their o, a and b."""
    pair_counts = _pair_counter(step, texts, threads, encoder)
    second = np.empty((len(left), 3), np.int64)
    for begin in range(0, len(left), _PAIRS_AT_A_TIME):
        part = slice(begin, begin + _PAIRS_AT_A_TIME)
        second[part] = pair_counts(left[part], right[part])
        progress(min(begin + _PAIRS_AT_A_TIME, len(left)), len(left))
    passed = reaches_threshold(step.measure, second, step.exact_threshold)
    return passed, second[passed]


def text_representatives(text_digests: Words, text_bytes: Integers, unmatched: Bools) -> Integers:
    """Return int64[n], for each document the first one with the same text, given digests and lengths as in a ``Block``.

    It is -1 for those that are ``unmatched`` (bool[n]): they must match nothing.
    """
    found = np.empty(len(text_bytes), np.int64)
    none = np.empty(0, np.uint64)
    group_equal_sets(text_digests, text_bytes, unmatched, none, none, found)
    return found


def _pairs_of_texts(
    matches: Matches, representative: Integers, reference_count: int
) -> tuple[Integers, Integers, Integers]:
    """Return the candidate pairs of distinct texts with o, a and b; (1, 1, 1) for equal features."""
    sets = np.where(representative == np.arange(len(representative)), matches.representative, -1)
    names = Names(np.arange(len(sets)), None, pa.nulls(reference_count))
    pairs = Pairs(names, sets, matches.left, matches.right, np.ones(len(matches.left)))
    parts = list(pairs.edges())
    if not parts:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty((0, 3), np.int64)
    edge = np.concatenate([part.edge for part in parts])
    counts = np.ones((len(edge), 3), np.int64)
    counts[edge >= 0] = matches.counts[edge[edge >= 0]]
    return np.concatenate([part.left for part in parts]), np.concatenate([part.right for part in parts]), counts


def _pair_counter(
    step: SecondStep, texts: Sequence[str], threads: int, encoder: Encoder | None
) -> Callable[[Integers, Integers], Integers]:
    """Return a function from places of pairs of texts to their o, a and b."""
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


def edit_counts(left: Sequence[str], right: Sequence[str], cutoff: float, threads: int = 1) -> Integers:
    """Return o, a and b of pairs of texts: a = b is the longer length, o is a less the Levenshtein distance.

    o may be 0 for pairs with 1 - distance / length below ``cutoff``; raising it saves time.
    """
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cpdist

    longer = np.array([max(len(first), len(second)) for first, second in zip(left, right, strict=True)], np.int64)
    similar = cpdist(
        left,
        right,
        scorer=Levenshtein.normalized_similarity,
        score_cutoff=max(cutoff - 1e-6, 0.0),
        dtype=np.float64,
        workers=threads,
    )
    o = np.rint(np.asarray(similar, np.float64) * longer).astype(np.int64)
    return np.column_stack([o, longer, longer])


def _set_counts(texts: Sequence[str], recipe: Recipe) -> Callable[[Integers, Integers], Integers]:
    block = extract_features(pa.array(texts, pa.large_string()), recipe)
    heads = row_heads(block.sizes)
    owner = np.repeat(np.arange(len(block.sizes)), block.sizes)
    features = block.features[np.lexsort((block.features, owner))]

    def counts(left: Integers, right: Integers) -> Integers:
        shared = np.empty(len(left), np.int64)
        count_overlaps(heads, features, np.empty(0, np.int64), False, left, right, shared)
        return np.column_stack([shared, np.maximum(block.sizes[left], 1), np.maximum(block.sizes[right], 1)])

    return counts
