"""All candidates of a rule, and which of them are drawn: those whose ids have the smallest hashes.

Whose hash is small is chance, so the smallest of a stratum are a simple random sample of it. They do not depend on the
order of the input or on what else was drawn: a larger sample holds the smaller one, and where a working point moves,
much of what was judged can be used again.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any, NamedTuple, Protocol

import numpy as np

from neardup.classifier.classifier import CANDIDATE_RULE, Classifier, parse_candidate_rule
from neardup.documents.records import Names
from neardup.errors import RecipeError, option
from neardup.evaluation.estimates import ThresholdDirections, label_deviation
from neardup.keep.pairs import PairArrays, Pairs
from neardup.kernels import Bools, Floats, Integers, Words
from neardup.labels.store import DIFFERENT, SAME, UNSURE, load_labels
from neardup.labels.table import LabelTable, is_sqlite_file
from neardup.pipeline.result import Result
from neardup.recipe import Recipe
from neardup.recipe.measures import measure, parse_threshold, similarity_at, threshold_at

_DRAW_SALT, _ORDER_SALT = 0, 1


def draw_pairs(
    names: Names, left: Integers, right: Integers, place: Integers, counts: Sequence[int], seed: int
) -> Integers:
    """Return which pairs are drawn, in an order that tells nothing of their strata.

    ``place`` (int64[n]) is the stratum of each pair, and ``counts`` says how many to draw from each stratum.
    """
    documents, index = np.unique(np.concatenate([left, right]), return_inverse=True)
    hashes = _id_hashes([str(name) for name in names.of_input(documents).to_pylist()], seed)
    one, other = hashes[index[: len(left)]], hashes[index[len(left) :]]
    low, high = np.minimum(one, other), np.maximum(one, other)
    drawn = [np.zeros(0, np.int64)]
    by_stratum = np.argsort(place, kind="stable")
    begins = np.searchsorted(place[by_stratum], np.arange(len(counts) + 1))
    for stratum, count in enumerate(counts):
        members = by_stratum[begins[stratum] : begins[stratum + 1]]
        keys = _pair_hashes(low[members], high[members], _DRAW_SALT)
        if 0 < count < len(members):
            small = keys <= np.partition(keys, count - 1)[count - 1]
            members, keys = members[small], keys[small]
        drawn.append(members[np.lexsort((high[members], low[members], keys))[:count]])
    chosen = np.concatenate(drawn)
    keys = _pair_hashes(low[chosen], high[chosen], _ORDER_SALT)
    order: Integers = chosen[np.lexsort((high[chosen], low[chosen], keys))]
    return order


def _id_hashes(names: Sequence[str], seed: int) -> Words:
    digests = b"".join(
        hashlib.blake2b(f"{seed} {name}".encode("utf-8", "surrogatepass"), digest_size=8).digest() for name in names
    )
    return np.frombuffer(digests, "<u8").astype(np.uint64)


def _pair_hashes(low: Words, high: Words, purpose: int) -> Words:
    """Return a hash of each pair: splitmix64 of one, added to the other, again."""
    gamma = np.uint64((2 * purpose + 1) * 0x9E3779B97F4A7C15 % (1 << 64))
    return splitmix(splitmix(low + gamma) + high)


def splitmix(words: Words) -> Words:
    """Return the last step of splitmix64 (Steele, Lea & Flood 2014), which mixes the bits of each word."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


#: The usual candidate rules of recipes: a similarity, a Hamming distance.
_USUAL_SIMILARITY, _USUAL_DISTANCE = 0.3, 12.0
#: Where strata may begin.
_SIMILARITIES = tuple(k / 20 for k in range(21))
_PROBABILITIES = (0.0, 0.001, 0.01, 0.02, 0.05, *(k / 10 for k in range(1, 10)), 0.95, 0.98, 0.99, 0.999, 1.0)
#: By how much a similarity differs from the threshold where a pair is taken to be as good as decided.
_LOGISTIC_SCALE = 0.05


class Scale(NamedTuple):
    """What scores are, and where strata may begin."""

    #: Of the score, for people.
    name: str
    #: Ascending.
    edges: tuple[float, ...]
    #: The measure whose similarities they are; empty for probabilities.
    measure: str = ""

    @property
    def distance(self) -> bool:
        """Whether thresholds are distances."""
        return bool(self.measure) and measure(self.measure).distance

    def shown(self, score: float) -> float:
        """Return a score as thresholds are written."""
        return threshold_at(self.measure, score) if self.measure else score


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Population:
    """The candidates, pairs of distinct texts, and which of them are returned; equal texts count once."""

    names: Names
    #: int64[d]: for each document the first one with the same text; -1 for those that match nothing.
    texts: Integers
    documents: int
    #: int64[n]: the pairs, by the positions of the documents where the texts come first.
    left: Integers
    right: Integers
    #: float64[n]: of each pair, on the scale of the returned or of the other ones.
    score: Floats
    #: bool[n]: whether the working point returns it.
    returned: Bools
    #: float64[n]: how doubtful it is whether it is a duplicate.
    deviations: Floats
    #: Of returned pairs, and of others.
    scale: Scale
    other_scale: Scale
    #: The working point as a score of the scale.
    own: float
    #: Which other thresholds can be told from scores.
    directions: ThresholdDirections
    point: str
    candidate_rule: str

    @property
    def copies(self) -> tuple[int, int]:
        """How many documents repeat an earlier text, and how many pairs of equal texts there are."""
        counts = np.bincount(self.texts[self.texts >= 0])
        return int(np.maximum(counts - 1, 0).sum()), int((counts * (counts - 1) // 2).sum())


class Runner(Protocol):
    """``pipeline.run`` on one corpus."""

    def __call__(self, recipe: Recipe, *, classifier: Classifier | None = None) -> Result:
        """Return the result, with all pairs."""


def classifier_population(classifier: Classifier, run: Runner) -> Population:
    """Return the candidates of a classifier, with their probabilities."""
    every = classifier.everything()
    result = run(every.recipe.changed(keep="first"), classifier=every)
    pairs = distinct_pairs(result)
    vectors = result.vectors
    g = np.zeros(0) if vectors is None else classifier.score(vectors)
    probability = classifier.probability(g)
    own = float(classifier.probability(np.array([classifier.cut]))[0])
    scale = _make_scale("probability", _PROBABILITIES, own)
    return Population(
        names=result.pairs.names,
        texts=result.texts,
        documents=result.summary["documents"],
        left=pairs.left,
        right=pairs.right,
        score=probability,
        returned=classifier.passes(g),
        deviations=label_deviation(probability),
        scale=scale,
        other_scale=scale,
        own=own,
        directions=ThresholdDirections(stricter=True, looser=True),
        point=f"classifier {classifier.fingerprint}, score >= {classifier.cut:g}",
        candidate_rule=classifier.candidate_rule.in_words(),
    )


def recipe_population(recipe: Recipe, candidate_rule: str | None, run: Runner) -> Population:
    """Return the candidates of a rule, with the similarities that a recipe goes by.

    Parameters
    ----------
    recipe : Recipe
        The working point.
    candidate_rule : str, optional
        A looser threshold of the same recipe, or ``MEASURE(FEATURES) >= NUMBER``: then pairs that the recipe returns
        count although they lie below it. None takes 0.3, 12 bits, or the usual rule of classifiers for
        recipes that have one answer only.
    run : callable
        Runs a recipe over the corpus.

    Raises
    ------
    RecipeError
        If it is no candidate rule, or not looser than the recipe.
    """
    recipe = recipe.changed(keep="first")
    threshold = _candidate_threshold(recipe, candidate_rule)
    return (
        _rule_population(recipe, candidate_rule or CANDIDATE_RULE, run)
        if threshold is None
        else _threshold_population(recipe, threshold, run)
    )


def _threshold_population(recipe: Recipe, threshold: float, run: Runner) -> Population:
    """Return the pairs above a looser threshold of the same recipe."""
    loose = recipe.changed(name="candidate_rule", threshold=threshold, second_step="", search="exact")
    every = run(loose)
    plain = not recipe.second_step and recipe.search == "exact"
    mine = every.at(recipe.threshold) if plain else run(recipe)
    pairs, found = distinct_pairs(every), distinct_pairs(mine)
    documents = len(every.texts)
    returned = np.isin(_keys(pairs, documents), _keys(found, documents), assume_unique=True)
    own = similarity_at(recipe.measure, recipe.exact_threshold)
    scale = _recipe_scale(recipe, own, similarity_at(loose.measure, threshold))
    return Population(
        names=every.pairs.names,
        texts=every.texts,
        documents=every.summary["documents"],
        left=pairs.left,
        right=pairs.right,
        score=pairs.similarity,
        returned=returned,
        deviations=_deviations_around(pairs.similarity, own),
        scale=scale,
        other_scale=scale,
        own=own,
        directions=ThresholdDirections(stricter=True, looser=plain),
        point=recipe.in_words(),
        candidate_rule=loose.in_words(),
    )


def _rule_population(recipe: Recipe, candidate_rule: str, run: Runner) -> Population:
    """Return the pairs above another measure's threshold, and those that the recipe returns."""
    wide = parse_candidate_rule(candidate_rule, content=recipe.content)
    every, mine = run(wide), run(recipe)
    pairs, found = distinct_pairs(every), distinct_pairs(mine)
    documents = len(every.texts)
    others = ~np.isin(_keys(pairs, documents), _keys(found, documents), assume_unique=True)
    own = similarity_at(recipe.measure, recipe.exact_threshold)
    wide_score = pairs.similarity[others]
    return Population(
        names=every.pairs.names,
        texts=np.where(every.texts < 0, mine.texts, every.texts),
        documents=every.summary["documents"],
        left=np.concatenate([found.left, pairs.left[others]]),
        right=np.concatenate([found.right, pairs.right[others]]),
        score=np.concatenate([found.similarity, wide_score]),
        returned=np.arange(len(found.left) + len(wide_score)) < len(found.left),
        # Nothing is known of these but that the higher the score, the likelier is a duplicate.
        deviations=np.concatenate([_deviations_around(found.similarity, own), label_deviation(wide_score / 2)]),
        scale=_recipe_scale(recipe, own, own),
        other_scale=_make_scale(rule_measure(wide), _SIMILARITIES, wide.threshold),
        own=own,
        directions=ThresholdDirections(stricter=not recipe.second_step, looser=False),
        point=recipe.in_words(),
        candidate_rule=wide.in_words(),
    )


def distinct_pairs(result: Result) -> PairArrays:
    """Return the pairs of a result whose texts differ, each text by the document where it comes first."""
    known, texts = result.pairs, result.texts
    first = np.where(texts == np.arange(len(texts)), known.representative, -1)
    parts = list(Pairs(known.names, first, known.left, known.right, known.similarity).arrays())
    if not parts:
        return PairArrays(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    return PairArrays(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def rule_measure(recipe: Recipe) -> str:
    """Return what a recipe's similarities are of, such as jaccard(words:3)."""
    of = "" if recipe.measure == "semantic" else f"({recipe.signature or recipe.features})"
    return f"{recipe.measure}{of}"


def _keys(pairs: PairArrays, documents: int) -> Integers:
    return pairs.left * documents + pairs.right


def _deviations_around(score: Floats, own: float) -> Floats:
    return label_deviation(1 / (1 + np.exp((own - score) / _LOGISTIC_SCALE)))


def _candidate_threshold(recipe: Recipe, candidate_rule: str | None) -> float | None:
    """Return the threshold that a candidate rule names; None where it is another measure's."""
    known = measure(recipe.measure)
    single = recipe.features.startswith("checksum") or recipe.signature.startswith("imatch")
    if candidate_rule is None:
        if single or recipe.measure == "euclidean":
            return None
        usual = _USUAL_DISTANCE if known.distance else _USUAL_SIMILARITY
        own = float(recipe.exact_threshold)
        if own < usual if known.distance else own > usual:
            return usual
        raise RecipeError(
            f"the recipe's threshold {own:g} is as loose as the usual candidate rule of {usual:g}, which leaves "
            f"nothing below it to look at; give a looser one with {option('--candidate-rule')}"
        )
    try:
        threshold = float(candidate_rule)
    except ValueError:
        return None
    if single:
        raise RecipeError(
            f"candidate rule {candidate_rule} is a threshold, but this recipe has one answer only; write one "
            f"like {CANDIDATE_RULE}"
        )
    own = float(recipe.exact_threshold)
    if threshold <= own if known.distance else threshold >= own:
        side, way = ("above", "higher") if known.distance else ("below", "lower")
        raise RecipeError(
            f"candidate rule {candidate_rule} is not {side} the recipe's threshold {own:g}, so it finds nothing "
            f"more; give a {way} number"
        )
    try:
        return float(parse_threshold(recipe.measure, threshold))
    except RecipeError as error:
        raise RecipeError(f"candidate rule {candidate_rule}: {error}") from None


def _recipe_scale(recipe: Recipe, *scores: float) -> Scale:
    if recipe.measure == "hamming":
        bits = tuple(similarity_at("hamming", distance) for distance in range(64, -1, -1))
        return _make_scale("bits that differ", bits, *scores, measure="hamming")
    return _make_scale(rule_measure(recipe), _SIMILARITIES, *scores, measure=recipe.measure)


def _make_scale(name: str, edges: tuple[float, ...], *more: float, measure: str = "") -> Scale:
    return Scale(name, tuple(sorted({*edges, *more})), measure)


#: The columns of a sample's file.
ID_COLUMNS = ("id1", "id2")
LABEL_COLUMN = "label"

#: Positions of two documents, and what somebody said of them.
Vote = tuple[int, int, str]


class SampleLabels(NamedTuple):
    """What is known of drawn pairs."""

    #: ``same``, ``different`` or ``unsure`` for each; empty where nobody said anything.
    answers: list[str]
    #: Pairs that were judged and not drawn: they say nothing of the whole, for nobody knows how they were chosen.
    outside: int

    def counts(self, members: Integers | None = None) -> Counter[str]:
        """Return how many have each answer, of some or of all."""
        return Counter(self.answers if members is None else [self.answers[at] for at in members.tolist()])


def resolve_votes(left: Integers, right: Integers, texts: Integers, votes: Iterable[Vote]) -> SampleLabels:
    """Return what votes say of pairs: what most of the sure ones say; ``unsure`` where as many say the other.

    A vote is about the texts: it counts for documents with the same ones, too.

    The pairs are those that were drawn, by the positions of the documents where their texts come first; ``texts``
    (int64[d]) is for each document the first one with the same text, -1 where that is not known.
    """
    given: dict[tuple[int, int], Counter[str]] = {}
    for one, other, answer in votes:
        first, second = (int(texts[at]) if texts[at] >= 0 else at for at in (one, other))
        if first != second:
            given.setdefault((min(first, second), max(first, second)), Counter())[answer] += 1
    drawn = [(min(pair), max(pair)) for pair in zip(left.tolist(), right.tolist(), strict=True)]
    return SampleLabels([_majority_answer(given.get(pair)) for pair in drawn], len(given.keys() - set(drawn)))


def _majority_answer(votes: Counter[str] | None) -> str:
    if votes is None:
        return ""
    if votes[SAME] == votes[DIFFERENT]:
        return UNSURE
    return SAME if votes[SAME] > votes[DIFFERENT] else DIFFERENT


def store_votes(labels: Mapping[tuple[str, str], Mapping[str, str]], place: Mapping[str, int]) -> Iterator[Vote]:
    """Yield the labels of a store whose documents the corpus holds."""
    for (one, other), answers in labels.items():
        if one in place and other in place:
            for answer in answers.values():
                yield place[one], place[other], answer


def read_votes(
    source: Any,
    place: Mapping[str, int],
    *,
    label_column: str | None = None,
    positive: float = 1.0,
    ignore_unknown: bool = False,
) -> list[Vote]:
    """Return the labels of a file, table or store, by where each document is; cells without a label say nothing.

    The other parameters and errors are those of ``labels.read_labels``.
    """
    if isinstance(source, str | PathLike) and is_sqlite_file(fspath(source)):
        return list(store_votes(load_labels(source), place))
    pairs = LabelTable.read(source).pair_rows(label_column)
    rows, left, right = pairs.table.positions(pairs.ids, place, ignore_unknown=ignore_unknown)
    return [
        (one, other, pairs.row_label(row, positive).answer)
        for row, one, other in zip(rows.tolist(), left.tolist(), right.tolist(), strict=True)
    ]
