"""The population of an audit: the candidates of a rule, how pairs are drawn from them, and the labels of drawn pairs.

The pairs of a stratum with the smallest hashes of their ids are drawn. Hashes are as good as random, so this is a
simple random sample. It does not depend on the order of the input or on other draws: a larger sample contains the
smaller one, and after a change of the threshold most labels can be used again.
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
from neardup.evaluation.strata import ThresholdDirections, label_deviations
from neardup.keep.pairs import PairArrays, Pairs
from neardup.kernels import Bools, Floats, Integers, Words
from neardup.labels.store import DIFFERENT, SAME, UNSURE, load_labels
from neardup.labels.table import LabelTable, is_sqlite_file
from neardup.pipeline.result import Result
from neardup.recipe import Recipe
from neardup.recipe.measures import measure, parse_threshold, similarity_at, threshold_at

_DRAW_SALT, _ORDER_SALT = 0, 1


def draw_pairs(
    names: Names, left: Integers, right: Integers, pair_strata: Integers, counts: Sequence[int], seed: int
) -> Integers:
    """Return the rows of the drawn pairs, in an order that reveals nothing of their strata.

    ``pair_strata`` (int64[n]) is the stratum of each pair; ``counts`` is the number to draw from each stratum.
    """
    documents, index = np.unique(np.concatenate([left, right]), return_inverse=True)
    hashes = _id_hashes([str(name) for name in names.of_input(documents).to_pylist()], seed)
    left_hash, right_hash = hashes[index[: len(left)]], hashes[index[len(left) :]]
    low, high = np.minimum(left_hash, right_hash), np.maximum(left_hash, right_hash)
    drawn = [np.zeros(0, np.int64)]
    by_stratum = np.argsort(pair_strata, kind="stable")
    begins = np.searchsorted(pair_strata[by_stratum], np.arange(len(counts) + 1))
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
    """Return a hash of each pair: splitmix64 of the sum of one hash's splitmix64 and the other hash."""
    gamma = np.uint64((2 * purpose + 1) * 0x9E3779B97F4A7C15 % (1 << 64))
    return splitmix(splitmix(low + gamma) + high)


def splitmix(words: Words) -> Words:
    """Return the last step of splitmix64 (Steele, Lea & Flood 2014), which mixes the bits of each word."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


#: The default candidate thresholds of recipes: a similarity, or a Hamming distance.
_DEFAULT_SIMILARITY, _DEFAULT_DISTANCE = 0.3, 12.0
#: The scores at which strata may begin.
_SIMILARITIES = tuple(k / 20 for k in range(21))
_PROBABILITIES = (0.0, 0.001, 0.01, 0.02, 0.05, *(k / 10 for k in range(1, 10)), 0.95, 0.98, 0.99, 0.999, 1.0)
#: The scale of the logistic function that guesses a pair's probability from the distance to the threshold.
_LOGISTIC_SCALE = 0.05


class Scale(NamedTuple):
    """The scale of scores: its name, and the scores at which strata may begin, ascending."""

    name: str
    edges: tuple[float, ...]
    #: The measure of similarity; empty for probabilities.
    measure: str = ""

    @property
    def is_distance(self) -> bool:
        """Whether thresholds are distances."""
        return bool(self.measure) and measure(self.measure).distance

    def threshold(self, score: float) -> float:
        """Return a score as the threshold that a recipe states."""
        return threshold_at(self.measure, score) if self.measure else score


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Population:
    """The candidates, which are pairs of distinct texts, and the pairs that are returned; equal texts count once."""

    names: Names
    #: int64[d]: the first document with the text of each document; -1 for documents that match nothing.
    texts: Integers
    documents: int
    #: int64[n]: the first documents with the texts of each pair.
    left: Integers
    right: Integers
    #: float64[n]: the score of each pair, on ``returned_scale`` or ``unreturned_scale``.
    score: Floats
    returned: Bools
    #: float64[n]: the guessed standard deviation of its label (see ``label_deviations``).
    deviations: Floats
    returned_scale: Scale
    unreturned_scale: Scale
    #: The working point as a score of ``returned_scale``.
    working_score: float
    directions: ThresholdDirections
    #: The working point and the candidate rule, as people read them.
    point: str
    candidate_rule: str

    @property
    def copy_counts(self) -> tuple[int, int]:
        """The number of documents that repeat an earlier text, and the number of pairs of equal texts."""
        counts = np.bincount(self.texts[self.texts >= 0])
        return int(np.maximum(counts - 1, 0).sum()), int((counts * (counts - 1) // 2).sum())


class Runner(Protocol):
    """``pipeline.run`` on one corpus."""

    def __call__(self, recipe: Recipe, *, classifier: Classifier | None = None) -> Result:
        """Return the result, with all pairs."""


def classifier_population(classifier: Classifier, run: Runner) -> Population:
    """Return the candidates of a classifier, with their probabilities."""
    accepting = classifier.without_cut()
    result = run(accepting.recipe, classifier=accepting)
    pairs = distinct_pairs(result)
    g = np.zeros(0) if result.vectors is None else classifier.score(result.vectors)
    probability = classifier.probability(g)
    working_score = float(classifier.probability(np.array([classifier.cut]))[0])
    scale = _make_scale("probability", _PROBABILITIES, working_score)
    return Population(
        names=result.pairs.names,
        texts=result.texts,
        documents=result.summary["documents"],
        left=pairs.left,
        right=pairs.right,
        score=probability,
        returned=classifier.passes(g),
        deviations=label_deviations(probability),
        returned_scale=scale,
        unreturned_scale=scale,
        working_score=working_score,
        directions=ThresholdDirections(stricter=True, looser=True),
        point=f"classifier {classifier.fingerprint}, score >= {classifier.cut:g}",
        candidate_rule=classifier.candidate_rule.in_words(),
    )


def recipe_population(recipe: Recipe, candidate_rule: str | None, run: Runner) -> Population:
    """Return the candidates of a rule, with the similarities by which a recipe decides.

    The rule is a looser threshold of the same recipe, or ``MEASURE(FEATURES) >= NUMBER``. Pairs that the recipe returns
    are candidates even below it. The default is a similarity of 0.3, a distance of 12 bits, or the default rule of
    classifiers for recipes without a choice of thresholds. Raises ``RecipeError`` if the rule cannot be parsed, or is
    not looser than the recipe.
    """
    recipe = recipe.changed(keep="first")
    threshold = _candidate_threshold(recipe, candidate_rule)
    if threshold is None:
        return _rule_population(recipe, candidate_rule or CANDIDATE_RULE, run)
    return _threshold_population(recipe, threshold, run)


def _threshold_population(recipe: Recipe, threshold: float, run: Runner) -> Population:
    """Return the pairs at a looser threshold of the same recipe."""
    loose_recipe = recipe.changed(name="candidate_rule", threshold=threshold, second_step="", search="exact")
    loose_result = run(loose_recipe)
    is_exact = not recipe.second_step and recipe.search == "exact"
    result = loose_result.at(recipe.threshold) if is_exact else run(recipe)
    candidates, returned = distinct_pairs(loose_result), distinct_pairs(result)
    documents = len(loose_result.texts)
    working_score = similarity_at(recipe.measure, recipe.exact_threshold)
    scale = _recipe_scale(recipe, working_score, similarity_at(loose_recipe.measure, threshold))
    return Population(
        names=loose_result.pairs.names,
        texts=loose_result.texts,
        documents=loose_result.summary["documents"],
        left=candidates.left,
        right=candidates.right,
        score=candidates.similarity,
        returned=np.isin(_keys(candidates, documents), _keys(returned, documents), assume_unique=True),
        deviations=_deviations_around(candidates.similarity, working_score),
        returned_scale=scale,
        unreturned_scale=scale,
        working_score=working_score,
        directions=ThresholdDirections(stricter=True, looser=is_exact),
        point=recipe.in_words(),
        candidate_rule=loose_recipe.in_words(),
    )


def _rule_population(recipe: Recipe, candidate_rule: str, run: Runner) -> Population:
    """Return the pairs that pass a rule with another measure, and those that the recipe returns."""
    rule = parse_candidate_rule(candidate_rule, content=recipe.content)
    rule_result, result = run(rule), run(recipe)
    candidates, returned = distinct_pairs(rule_result), distinct_pairs(result)
    documents = len(rule_result.texts)
    is_unreturned = ~np.isin(_keys(candidates, documents), _keys(returned, documents), assume_unique=True)
    working_score = similarity_at(recipe.measure, recipe.exact_threshold)
    rule_score = candidates.similarity[is_unreturned]
    # Of unreturned pairs it is only known that a higher score makes a duplicate more likely.
    deviations = _deviations_around(returned.similarity, working_score), label_deviations(rule_score / 2)
    return Population(
        names=rule_result.pairs.names,
        texts=np.where(rule_result.texts < 0, result.texts, rule_result.texts),
        documents=rule_result.summary["documents"],
        left=np.concatenate([returned.left, candidates.left[is_unreturned]]),
        right=np.concatenate([returned.right, candidates.right[is_unreturned]]),
        score=np.concatenate([returned.similarity, rule_score]),
        returned=np.arange(len(returned.left) + len(rule_score)) < len(returned.left),
        deviations=np.concatenate(deviations),
        returned_scale=_recipe_scale(recipe, working_score, working_score),
        unreturned_scale=_make_scale(rule_measure(rule), _SIMILARITIES, rule.threshold),
        working_score=working_score,
        directions=ThresholdDirections(stricter=not recipe.second_step, looser=False),
        point=recipe.in_words(),
        candidate_rule=rule.in_words(),
    )


def distinct_pairs(result: Result) -> PairArrays:
    """Return the pairs of distinct texts of a result, each text by its first document."""
    pairs, texts = result.pairs, result.texts
    first = np.where(texts == np.arange(len(texts)), pairs.representative, -1)
    parts = list(Pairs(pairs.names, first, pairs.left, pairs.right, pairs.similarity).arrays())
    if not parts:
        return PairArrays(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    return PairArrays(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def rule_measure(recipe: Recipe) -> str:
    """Return a recipe's measure with what it compares, such as jaccard(words:3)."""
    return (
        recipe.measure if recipe.measure == "semantic" else f"{recipe.measure}({recipe.signature or recipe.features})"
    )


def _keys(pairs: PairArrays, documents: int) -> Integers:
    return pairs.left * documents + pairs.right


def _deviations_around(score: Floats, threshold: float) -> Floats:
    return label_deviations(1 / (1 + np.exp((threshold - score) / _LOGISTIC_SCALE)))


def _candidate_threshold(recipe: Recipe, candidate_rule: str | None) -> float | None:
    """Return the threshold that a candidate rule states; None if it is a rule with another measure."""
    is_distance = measure(recipe.measure).distance
    is_single = recipe.features.startswith("checksum") or recipe.signature.startswith("imatch")
    own_threshold = float(recipe.exact_threshold)
    if candidate_rule is None:
        if is_single or recipe.measure == "euclidean":
            return None
        default = _DEFAULT_DISTANCE if is_distance else _DEFAULT_SIMILARITY
        if own_threshold < default if is_distance else own_threshold > default:
            return default
        raise RecipeError(
            f"the recipe's threshold {own_threshold:g} is as loose as the default candidate rule of {default:g}, so "
            f"there are no candidates beyond its pairs; give a looser rule with {option('--candidate-rule')}"
        )
    try:
        threshold = float(candidate_rule)
    except ValueError:
        return None
    if is_single:
        raise RecipeError(
            f"candidate rule {candidate_rule} is a threshold, but this recipe has no choice of thresholds; write a "
            f"rule like {CANDIDATE_RULE}"
        )
    if threshold <= own_threshold if is_distance else threshold >= own_threshold:
        side, way = ("above", "higher") if is_distance else ("below", "lower")
        raise RecipeError(
            f"candidate rule {candidate_rule} is not {side} the recipe's threshold {own_threshold:g}, so it finds no "
            f"further pairs; give a {way} number"
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


ID_COLUMNS = ("id1", "id2")
LABEL_COLUMN = "label"

#: The positions of two documents, and a labeller's answer.
Vote = tuple[int, int, str]


class SampleLabels(NamedTuple):
    """The labels of the drawn pairs."""

    #: ``same``, ``different`` or ``unsure`` for each pair; empty if nobody has judged it.
    answers: list[str]
    #: The number of judged pairs that were not drawn. It is unknown how they were chosen, so they are not used.
    outside: int

    def counts(self, rows: Integers | None = None) -> Counter[str]:
        """Return the number of pairs by answer, of all drawn pairs or of ``rows`` of them."""
        return Counter(self.answers if rows is None else [self.answers[row] for row in rows.tolist()])


def resolve_votes(left: Integers, right: Integers, texts: Integers, votes: Iterable[Vote]) -> SampleLabels:
    """Return the majority answer of the sure votes on each drawn pair, ``unsure`` for a tie.

    A vote judges texts, so it also counts for other documents with the same texts. ``left`` and ``right`` (int64[k])
    are the first documents with the texts of each drawn pair; ``texts`` (int64[d]) is the first document with the text
    of each document, -1 if unknown.
    """
    votes_by_pair: dict[tuple[int, int], Counter[str]] = {}
    for position1, position2, answer in votes:
        first, second = sorted(int(texts[at]) if texts[at] >= 0 else at for at in (position1, position2))
        if first != second:
            votes_by_pair.setdefault((first, second), Counter())[answer] += 1
    drawn = [(min(pair), max(pair)) for pair in zip(left.tolist(), right.tolist(), strict=True)]
    answers = [_majority_answer(votes_by_pair.get(pair)) for pair in drawn]
    return SampleLabels(answers, len(votes_by_pair.keys() - set(drawn)))


def _majority_answer(votes: Counter[str] | None) -> str:
    if votes is None:
        return ""
    if votes[SAME] == votes[DIFFERENT]:
        return UNSURE
    return SAME if votes[SAME] > votes[DIFFERENT] else DIFFERENT


def store_votes(labels: Mapping[tuple[str, str], Mapping[str, str]], positions: Mapping[str, int]) -> Iterator[Vote]:
    """Yield the labels of a store for pairs of documents of the corpus."""
    for (id1, id2), answers in labels.items():
        if id1 in positions and id2 in positions:
            for answer in answers.values():
                yield positions[id1], positions[id2], answer


def read_votes(
    source: Any,
    positions: Mapping[str, int],
    *,
    label_column: str | None = None,
    positive: float = 1.0,
    ignore_unknown: bool = False,
) -> list[Vote]:
    """Return the labels of a file, table or store, by the positions of the documents; empty cells give no label.

    The other parameters and errors are those of ``labels.read_labels``.
    """
    if isinstance(source, str | PathLike) and is_sqlite_file(fspath(source)):
        return list(store_votes(load_labels(source), positions))
    pairs = LabelTable.read(source).pair_rows(label_column)
    rows, left, right = pairs.table.positions(pairs.ids, positions, ignore_unknown=ignore_unknown)
    return [
        (position1, position2, pairs.row_label(row, positive).answer)
        for row, position1, position2 in zip(rows.tolist(), left.tolist(), right.tolist(), strict=True)
    ]
