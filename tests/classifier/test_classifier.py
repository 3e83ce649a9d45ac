"""A classifier: its machine and working points equal plain sums and searches; its fingerprint, recipe and rule."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import naive_learning as naive
import numpy as np
import numpy.typing as npt
import pytest
from classifiers import SETS, WEIGHED, make_classifier
from hypothesis import given, settings
from hypothesis import strategies as st
from sentences import says

from neardup.classifier.classifier import CANDIDATE_RULE, Classifier, Machine, classifier_recipe, parse_candidate_rule
from neardup.errors import RecipeError

#: Scores with many ties.
PAIRS = st.lists(st.tuples(st.integers(-4, 4).map(lambda v: v / 2), st.booleans()), max_size=25)


def with_scores(pairs: list[tuple[float, bool]], **changes: Any) -> Classifier:
    scores, labels = np.array([score for score, _ in pairs]), np.array([label for _, label in pairs], np.bool_)
    return replace(make_classifier(), scores=scores.astype(np.float64), labels=labels, **changes)


def plain_precision(pairs: list[tuple[float, bool]], cut: float) -> float:
    passing = [label for score, label in pairs if score >= cut]
    return sum(passing) / len(passing) if passing else 1.0


@given(PAIRS, st.sampled_from([0.05, 0.25, 0.5, 2 / 3, 0.75, 0.9, 1.0]), st.sampled_from([-1.0, 0.0, 0.5, 3.0]))
def test_working_points_equal_a_plain_search(pairs: list[tuple[float, bool]], precision: float, cut: float) -> None:
    duplicates = sum(label for _, label in pairs)
    found = sum(label for score, label in pairs if score >= cut)
    recall = found / duplicates if duplicates else 1.0
    point = with_scores(pairs, cut=cut).working_point
    assert point == pytest.approx((cut, plain_precision(pairs, cut), recall))
    sufficient = [score for score, _ in pairs if plain_precision(pairs, score) >= precision]
    if not sufficient:
        best = max((plain_precision(pairs, score) for score, _ in pairs), default=0.0)
        with pytest.raises(RecipeError) as caught:
            with_scores(pairs).at_precision(precision)
        assert says(caught.value, "no cut", "training pairs", f"{best:.3f}")
        return
    precise = with_scores(pairs).at_precision(precision)
    assert precise.cut == min(sufficient)
    assert precise.working_point.precision >= precision


def test_the_fingerprint_depends_on_everything_that_decides() -> None:
    classifier = make_classifier(WEIGHED)
    counts = classifier.statistics["words:1"]
    machine = classifier.machine
    changed = [
        replace(classifier, cut=0.1),
        classifier.without_cut(),
        replace(classifier, candidate_rule=parse_candidate_rule("jaccard(words:1) >= 0.3")),
        replace(classifier, candidate_rule=parse_candidate_rule("jaccard(words:1) >= 0.2", content="html")),
        replace(classifier, vector=make_classifier(SETS).vector),
        replace(classifier, statistics={"words:1": replace(counts, documents=counts.documents + 1)}),
        replace(classifier, statistics={"words:1": replace(counts, df=counts.df + 1)}),
        replace(classifier, statistics={"words:2": counts}),
        replace(classifier, statistics={}),
        replace(classifier, machine=machine._replace(a=machine.a * 2)),
        replace(classifier, machine=machine._replace(fill=machine.fill + 1e-12)),
        replace(classifier, machine=machine._replace(intercept=machine.intercept + 1e-12)),
        replace(classifier, machine=machine._replace(gamma=1.0)),
        make_classifier(WEIGHED, "rbf"),
    ]
    fingerprints = {other.fingerprint for other in [classifier, *changed]}
    assert len(fingerprints) == len(changed) + 1
    assert all(re.fullmatch("[0-9a-f]{16}", fingerprint) for fingerprint in fingerprints)
    equivalent = replace(classifier, training={"pairs": 3}, title_column="t", scores=classifier.scores[:1])
    assert equivalent.fingerprint == classifier.fingerprint


def test_the_recipe_is_the_candidate_rule_with_the_classifier_as_second_step() -> None:
    classifier = make_classifier()
    recipe, step = classifier.recipe, classifier.recipe.parsed_second_step
    assert (recipe.name, recipe.second_step) == ("learned", f"learned({classifier.fingerprint})")
    assert recipe.changed(second_step="", name="candidate_rule") == classifier.candidate_rule
    assert step is not None
    assert (step.measure, step.features, str(step)) == ("learned", classifier.fingerprint, recipe.second_step)
    assert classifier.fingerprint in repr(classifier)


def test_candidate_rules_are_measures_of_feature_sets() -> None:
    assert parse_candidate_rule() == parse_candidate_rule(CANDIDATE_RULE)
    rule = parse_candidate_rule("containment(qgrams:4) >= 0.25", content="tags")
    assert (rule.measure, rule.features, rule.threshold, rule.content) == ("containment", "qgrams:4", 0.25, "tags")
    for text, message in [
        ("edit >= 0.5", "edit is not a measure of feature sets"),
        ("jaccard >= 0.1", "jaccard takes features in brackets"),
        ("words:3", "is not known"),
        ("jaccard(words:3) >= 0", r"outside \(0, 1\]"),
        ("jaccard(terms:8) >= 0.1", "terms:8 are no features"),
        ("learned(0123456789abcdef)", "is not a measure of feature sets"),
    ]:
        with pytest.raises(RecipeError, match=message) as error:
            parse_candidate_rule(text)
        assert str(error.value).startswith((f"candidate rule {text!r}: ", f"candidate rule {text!r} is not known; "))
        assert str(error.value).endswith(f"; write it like {CANDIDATE_RULE}")


def test_only_the_keep_order_of_a_classifier_can_be_chosen() -> None:
    classifier = make_classifier()
    assert classifier_recipe(classifier, {}) == classifier.recipe
    assert classifier_recipe(classifier, {"keep": "longest", "content": "", "threshold": None}).keep == "longest"
    for name, value, words in [
        ("recipe", "jaccard", ("recipe='jaccard'", "classifier", "its own recipe")),
        ("threshold", 0.8, ("threshold=0.8", "a cut", "classifier.at_precision")),
        ("content", "html", ("content='html'", "texts as they are", "leave it out")),
        ("second_step", "edit >= 0.9", ("second_step='edit >= 0.9'", "its own recipe", "leave one")),
    ]:
        with pytest.raises(RecipeError) as caught:
            classifier_recipe(classifier, {name: value})
        assert says(caught.value, *words)
    pages = make_classifier(content="tags")
    assert classifier_recipe(pages, {"content": "tags"}).content == "tags"
    with pytest.raises(RecipeError) as caught:
        classifier_recipe(pages, {"content": ""})
    assert says(caught.value, "trained on content 'tags'", "leave it out")


KERNELS = st.sampled_from(["linear", "rbf"])


def random_machine(seed: int, columns: int, kernel: str) -> tuple[Machine, npt.NDArray[np.float64]]:
    """A machine with random arrays, and vectors with some unknown values."""
    rng = np.random.default_rng(seed)
    count = 1 if kernel == "linear" else 5
    scales = rng.choice([0.1, 1.0, 30.0], columns)
    x = rng.random((30, columns)) * scales
    x[rng.random(x.shape) < 0.15] = np.nan
    machine = Machine(
        fill=rng.random(columns) * scales,
        center=rng.random(columns) * scales,
        scale=scales * rng.uniform(0.2, 1, columns),
        gamma=0.0 if kernel == "linear" else float(rng.choice([0.01, 0.3, 2.0])),
        support=rng.normal(0, 1, (count, columns)),
        dual=rng.normal(0, 1, count),
        intercept=float(rng.normal()),
        a=-1.5,
        b=0.25,
    )
    return machine, x


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.integers(1, 5), KERNELS, st.integers(1, 9))
def test_g_and_contributions_equal_plain_sums(seed: int, columns: int, kernel: str, size: int) -> None:
    machine, x = random_machine(seed, columns, kernel)
    rows, g = x[:8].tolist(), machine.score(x)
    assert g[:8].tolist() == pytest.approx([naive.g(machine, row) for row in rows], rel=1e-12, abs=1e-12)
    contributions = [[naive.g(machine, row) - naive.g(machine, row, j) for j in range(columns)] for row in rows]
    assert machine.contributions(x[:8]) == pytest.approx(np.array(contributions), rel=1e-9, abs=1e-11)
    # Batches and layouts change no bit.
    parts = [machine.score(x[at : at + size]) for at in range(0, len(x), size)]
    assert np.concatenate(parts).tobytes() == machine.score(np.asfortranarray(x)).tobytes() == g.tobytes()


def test_the_probability_is_a_sigmoid_without_overflow() -> None:
    g = np.array([-1e300, -3.0, 0.0, 0.5, 3.0, 1e300])
    probability = random_machine(1, 3, "linear")[0].probability(g)
    assert probability[1:-1].tolist() == pytest.approx([1 / (1 + math.exp(-1.5 * v + 0.25)) for v in g[1:-1]])
    assert 0 <= probability[0] < 1e-300
    assert probability[-1] == 1
