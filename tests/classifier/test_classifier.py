"""A classifier: its working points beside a plain search, what its fingerprint depends on, and its candidate rule."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from saying import says
from trained import SETS, WEIGHED, trained

from neardup.classifier.classifier import CANDIDATE_RULE, Classifier, recipe_beside, rule_of
from neardup.errors import RecipeError

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
        classifier.everything(),
        replace(classifier, candidate_rule=rule_of("jaccard(words:1) >= 0.3")),
        replace(classifier, candidate_rule=rule_of("jaccard(words:1) >= 0.2", content="html")),
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
    assert rule_of() == rule_of(CANDIDATE_RULE)
    candidate_rule = rule_of("containment(qgrams:4) >= 0.25", content="tags")
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
            rule_of(text)
        assert str(error.value).startswith((f"candidate rule {text!r}: ", f"candidate rule {text!r} is not known; "))
        assert str(error.value).endswith(f"; write it like {CANDIDATE_RULE}")


def test_beside_a_classifier_only_the_keep_order_is_chosen() -> None:
    classifier = trained()
    assert recipe_beside(classifier, {}) == classifier.recipe
    assert recipe_beside(classifier, {"keep": "longest", "content": "", "threshold": None}).keep == "longest"
    for name, value, said in [
        ("recipe", "jaccard", ("recipe='jaccard'", "classifier", "its own recipe")),
        ("threshold", 0.8, ("threshold=0.8", "a cut", "classifier.at_precision")),
        ("content", "html", ("content='html'", "texts as they are", "leave it out")),
        ("second_step", "edit >= 0.9", ("second_step='edit >= 0.9'", "its own recipe", "leave one")),
    ]:
        with pytest.raises(RecipeError) as caught:
            recipe_beside(classifier, {name: value})
        assert says(caught.value, *said)
    pages = trained(content="tags")
    assert recipe_beside(pages, {"content": "tags"}).content == "tags"
    with pytest.raises(RecipeError) as caught:
        recipe_beside(pages, {"content": ""})
    assert says(caught.value, "trained on content 'tags'", "leave it out")
