"""A classifier: its machine, its working points beside a plain search, what its fingerprint depends on, its rule."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sentences import says
from trained_classifiers import SETS, WEIGHED, fitted, trained

from neardup.classifier.classifier import CANDIDATE_RULE, Classifier, Machine, classifier_recipe, parse_candidate_rule
from neardup.errors import RecipeError
from neardup.training.fit import extract_machine

#: Scores with many ties.
PAIRS = st.lists(st.tuples(st.integers(-4, 4).map(lambda v: v / 2), st.booleans()), max_size=25)


def judged(pairs: list[tuple[float, bool]], **others: Any) -> Classifier:
    return replace(
        trained(),
        scores=np.array([score for score, _ in pairs], np.float64),
        labels=np.array([label for _, label in pairs], np.bool_),
        **others,
    )


def plain_precision(pairs: list[tuple[float, bool]], cut: float) -> float:
    passing = [label for score, label in pairs if score >= cut]
    return sum(passing) / len(passing) if passing else 1.0


@given(PAIRS, st.sampled_from([0.05, 0.25, 0.5, 2 / 3, 0.75, 0.9, 1.0]))
def test_a_precision_is_reached_at_the_lowest_cut(pairs: list[tuple[float, bool]], wanted: float) -> None:
    reaching = [score for score, _ in pairs if plain_precision(pairs, score) >= wanted]
    if not reaching:
        best = max((plain_precision(pairs, score) for score, _ in pairs), default=0.0)
        with pytest.raises(RecipeError) as caught:
            judged(pairs).at_precision(wanted)
        assert says(caught.value, "no cut", "training pairs", f"{best:.3f}")
        return
    found = judged(pairs).at_precision(wanted)
    assert found.cut == min(reaching)
    assert found.working_point.precision >= wanted
    assert found.recipe != judged(pairs).recipe or found.cut == 0.0


@given(PAIRS, st.sampled_from([-1.0, 0.0, 0.5, 3.0]))
def test_working_points_are_counted(pairs: list[tuple[float, bool]], cut: float) -> None:
    cut_at, precision, recall = judged(pairs, cut=cut).working_point
    right = sum(label for _, label in pairs)
    found = sum(label for score, label in pairs if score >= cut)
    assert cut_at == cut
    assert precision == pytest.approx(plain_precision(pairs, cut))
    assert recall == pytest.approx(found / right if right else 1.0)


def test_the_fingerprint_says_all_that_the_answer_depends_on() -> None:
    classifier = trained(WEIGHED)
    known = classifier.statistics["words:1"]
    machine = classifier.machine
    others = [
        replace(classifier, cut=0.1),
        classifier.without_cut(),
        replace(classifier, candidate_rule=parse_candidate_rule("jaccard(words:1) >= 0.3")),
        replace(classifier, candidate_rule=parse_candidate_rule("jaccard(words:1) >= 0.2", content="html")),
        replace(classifier, vector=trained(SETS).vector),
        replace(classifier, statistics={"words:1": replace(known, documents=known.documents + 1)}),
        replace(classifier, statistics={"words:1": replace(known, df=known.df + 1)}),
        replace(classifier, statistics={"words:2": known}),
        replace(classifier, statistics={}),
        replace(classifier, machine=machine._replace(a=machine.a * 2)),
        replace(classifier, machine=machine._replace(fill=machine.fill + 1e-12)),
        replace(classifier, machine=machine._replace(intercept=machine.intercept + 1e-12)),
        replace(classifier, machine=machine._replace(gamma=1.0)),
        trained(WEIGHED, "rbf"),
    ]
    found = {one.fingerprint for one in [classifier, *others]}
    assert len(found) == len(others) + 1
    alike = replace(classifier, training={"pairs": 3}, title_column="t", scores=classifier.scores[:1])
    assert alike.fingerprint == classifier.fingerprint
    assert all(len(one) == 16 and int(one, 16) >= 0 for one in found)


def test_the_recipe_is_the_candidate_rule_with_the_classifier_behind_it() -> None:
    classifier = trained()
    assert classifier.recipe.second_step == f"learned({classifier.fingerprint})"
    assert classifier.recipe.name == "learned"
    assert classifier.recipe.changed(second_step="", name="candidate_rule") == classifier.candidate_rule
    step = classifier.recipe.parsed_second_step
    assert step is not None
    assert (step.measure, step.features, str(step)) == (
        "learned",
        classifier.fingerprint,
        classifier.recipe.second_step,
    )
    assert classifier.fingerprint in repr(classifier)


def test_candidate_rules_are_measures_of_feature_sets() -> None:
    assert parse_candidate_rule() == parse_candidate_rule(CANDIDATE_RULE)
    candidate_rule = parse_candidate_rule("containment(qgrams:4) >= 0.25", content="tags")
    assert (candidate_rule.measure, candidate_rule.features, candidate_rule.threshold, candidate_rule.content) == (
        "containment",
        "qgrams:4",
        0.25,
        "tags",
    )
    for text, said in [
        ("edit >= 0.5", "edit is no measure of feature sets"),
        ("jaccard >= 0.1", "jaccard takes features in brackets"),
        ("words:3", "is not known"),
        ("jaccard(words:3) >= 0", r"outside \(0, 1\]"),
        ("jaccard(terms:8) >= 0.1", "terms:8 are no features"),
        ("learned(0123456789abcdef)", "is no measure of feature sets"),
    ]:
        with pytest.raises(RecipeError, match=said) as error:
            parse_candidate_rule(text)
        assert str(error.value).startswith((f"candidate rule {text!r}: ", f"candidate rule {text!r} is not known; "))
        assert str(error.value).endswith(f"; write it like {CANDIDATE_RULE}")


def test_beside_a_classifier_only_the_keep_order_is_chosen() -> None:
    classifier = trained()
    assert classifier_recipe(classifier, {}) == classifier.recipe
    assert classifier_recipe(classifier, {"keep": "longest", "content": "", "threshold": None}).keep == "longest"
    for name, value, said in [
        ("recipe", "jaccard", ("recipe='jaccard'", "classifier", "its own recipe")),
        ("threshold", 0.8, ("threshold=0.8", "a cut", "classifier.at_precision")),
        ("content", "html", ("content='html'", "texts as they are", "leave it out")),
        ("second_step", "edit >= 0.9", ("second_step='edit >= 0.9'", "its own recipe", "leave one")),
    ]:
        with pytest.raises(RecipeError) as caught:
            classifier_recipe(classifier, {name: value})
        assert says(caught.value, *said)
    pages = trained(content="tags")
    assert classifier_recipe(pages, {"content": "tags"}).content == "tags"
    with pytest.raises(RecipeError) as caught:
        classifier_recipe(pages, {"content": ""})
    assert says(caught.value, "trained on content 'tags'", "leave it out")


Floats = npt.NDArray[np.float64]
KERNELS = st.sampled_from(["linear", "rbf"])


def drawn(seed: int, rows: int, columns: int, missing: float = 0.0) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Vectors of which some values are not known, and labels of both kinds."""
    rng = np.random.default_rng(seed)
    x = rng.random((rows, columns)) * rng.choice([0.1, 1.0, 30.0], columns)
    y = x[:, 0] + rng.normal(0, 0.1, rows) > np.median(x[:, 0])
    y[:2] = True, False
    x[rng.random(x.shape) < missing] = np.nan
    x[:, rng.integers(columns)] *= rng.choice([1.0, 0.0])
    return x, y


def plain_g(machine: Machine, row: list[float], skipped: int = -1) -> float:
    """g of one pair, in the words of its definition."""
    z = []
    for j, value in enumerate(row):
        value = float(machine.fill[j]) if math.isnan(value) else value
        z.append(0.0 if j == skipped else (value - machine.center[j]) / machine.scale[j])
    g = machine.intercept
    for alpha, u in zip(machine.dual, machine.support, strict=True):
        if machine.gamma:
            g += alpha * math.exp(-machine.gamma * sum((a - b) ** 2 for a, b in zip(z, u, strict=True)))
        else:
            g += alpha * sum(a * b for a, b in zip(z, u, strict=True))
    return float(g)


@settings(max_examples=30)
@given(
    st.integers(0, 10_000),
    st.integers(4, 60),
    st.integers(1, 7),
    KERNELS,
    st.sampled_from([0.0, 0.2]),
    st.sampled_from([0.05, 1.0, 50.0]),
    st.sampled_from([None, 0.01, 2.0]),
)
def test_g_is_the_decision_function_of_scikit_learn(
    seed: int, rows: int, columns: int, kernel: str, missing: float, cost: float, gamma: Any
) -> None:
    x, y = drawn(seed, rows, columns, missing)
    estimator = fitted(x, y, kernel, cost, gamma)
    machine = extract_machine(estimator, -1.0, 0.0)
    asked = np.concatenate([x, drawn(seed + 1, 20, columns, 0.3)[0], np.full((1, columns), np.nan)])
    expected = estimator.decision_function(asked)
    assert machine.score(asked) == pytest.approx(expected, rel=1e-9, abs=1e-9 * (1 + np.abs(expected).max()))


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.integers(1, 5), KERNELS)
def test_g_and_contributions_are_the_plain_sums(seed: int, columns: int, kernel: str) -> None:
    x, y = drawn(seed, 30, columns, 0.1)
    machine = extract_machine(fitted(x, y, kernel), -1.0, 0.0)
    rows = x[:8].tolist()
    expected = [plain_g(machine, row) for row in rows]
    assert machine.score(x[:8]).tolist() == pytest.approx(expected, rel=1e-12, abs=1e-12)
    contributions = [[plain_g(machine, row) - plain_g(machine, row, j) for j in range(columns)] for row in rows]
    assert machine.contributions(x[:8]) == pytest.approx(np.array(contributions), rel=1e-9, abs=1e-11)
    if kernel == "linear":
        start = machine.score(machine.center[np.newaxis])[0]
        assert machine.contributions(x).sum(axis=1) + start == pytest.approx(machine.score(x), rel=1e-9, abs=1e-9)


@settings(max_examples=30)
@given(st.integers(0, 10_000), KERNELS, st.integers(1, 9))
def test_no_batch_changes_a_bit(seed: int, kernel: str, size: int) -> None:
    x, y = drawn(seed, 40, 4, 0.1)
    machine = extract_machine(fitted(x, y, kernel), -1.0, 0.0)
    parts = [machine.score(x[at : at + size]) for at in range(0, len(x), size)]
    assert np.concatenate(parts).tobytes() == machine.score(x).tobytes()
    assert machine.score(np.asfortranarray(x)).tobytes() == machine.score(x).tobytes()


def test_probability_is_a_sigmoid_that_never_overflows() -> None:
    machine = extract_machine(fitted(*drawn(1, 20, 3)), -1.5, 0.25)
    g = np.array([-1e300, -3.0, 0.0, 0.5, 3.0, 1e300])
    found = machine.probability(g)
    assert found[1:-1].tolist() == pytest.approx([1 / (1 + math.exp(-1.5 * v + 0.25)) for v in g[1:-1]])
    assert (np.diff(found) >= 0).all()
    assert 0 <= found[0] < 1e-300
    assert found[-1] == 1
