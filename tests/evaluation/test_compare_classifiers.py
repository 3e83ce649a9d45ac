"""Classifiers beside recipes, and accuracy: rows beside runs, figures beside loops; what is shown of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from simple_classifiers import make_classifier
from test_compare import Pair, found, labels_of, parts_of, truths

from neardup.documents import corpus_of
from neardup.evaluation.comparison import Comparison, compare
from neardup.evaluation.scores import accuracy_figures, tally_pairs
from neardup.pipeline.pipeline import run
from neardup.recipe import Recipe

WORDS = [f"word{i:03d}" for i in range(600)]
FAMILIES = 10


def texts() -> dict[str, list[str]]:
    """Families of four: a text, a copy, one with every tenth word changed, one with every third word changed."""
    random = np.random.default_rng(5)
    ids, text = [], []
    for number in range(FAMILIES):
        base = [WORDS[i] for i in random.integers(0, len(WORDS), 40)]
        for version, step in enumerate((0, 0, 10, 3)):
            words = [f"x{number}" if step and at % step == 1 else word for at, word in enumerate(base)]
            ids.append(f"{number}-{version}")
            text.append(" ".join(words))
    return {"id": ids, "text": text}


def labels() -> list[tuple[str, str, int]]:
    """Closer versions are duplicates, others of a family and neighbouring families are none."""
    found = []
    for number in range(FAMILIES):
        found += [(f"{number}-0", f"{number}-{version}", int(version < 3)) for version in (1, 2, 3)]
        found.append((f"{number}-0", f"{(number + 1) % FAMILIES}-0", 0))
    return found


def compared(*classifiers: Any, **options: Any) -> Comparison:
    asked: dict[str, Any] = {"recipes": [Recipe(name="pairs", features="words:2", threshold=0.6)], "labels": labels()}
    return compare(corpus_of(texts()), classifiers=classifiers, **asked | {"thresholds": ".3:.9:.2"} | options)


def returned(cut: float, steep: float, least: float) -> set[tuple[str, str]]:
    """The pairs that a run of all candidates finds with g >= cut and a probability of at least so much."""
    every = make_classifier(cut=cut, steep=steep).everything()
    result = run(corpus_of(texts()), every.recipe, classifier=every, pairs_per_document=None)
    assert result.vectors is not None
    names = result.pairs.names
    g = every.score(result.vectors)
    inside = (g >= cut) & (every.probability(g) >= least)
    found = {
        (names.name_at(i), names.name_at(j))
        for i, j in zip(result.pairs.left[inside], result.pairs.right[inside], strict=True)
    }
    # Equal texts are one to a run: what one matches, the other does; and they match each other.
    twin = {f"{number}-{version}": f"{number}-{1 - version}" for number in range(FAMILIES) for version in (0, 1)}
    found |= {(twin[one], other) for one, other in found if one in twin}
    found |= {(one, twin[other]) for one, other in found if other in twin}
    found |= {(f"{number}-0", f"{number}-1") for number in range(FAMILIES)}
    return {(min(pair), max(pair)) for pair in found}


@pytest.mark.parametrize(("cut", "steep"), [(0.0, 1.0), (0.7, 1.0), (1.35, 40.0)])
def test_rows_of_a_classifier_are_what_runs_find(cut: float, steep: float) -> None:
    """With a steep sigmoid all probabilities are 0 or 1, and only g tells the working point."""
    classifier = make_classifier(cut=cut, steep=steep)
    scored = compared(classifier).recipes[1]
    truth = {(min(one, other), max(one, other)): bool(label) for one, other, label in labels()}
    assert (scored.name, scored.scale) == ("learned", "probability")
    assert sum(row.own for row in scored.rows) == 1
    assert {0.3, 0.5, 0.7, 0.9} <= {row.threshold for row in scored.rows}
    for row in scored.rows:
        found = returned(cut if row.own else -np.inf, steep, 0.0 if row.own else row.threshold)
        correct = {pair for pair in found if truth.get(pair)}
        assert (row.returned, row.correct) == (len(found & truth.keys()), len(correct))
        right = len(correct) + sum(not label and pair not in found for pair, label in truth.items())
        assert row.accuracy.value == pytest.approx(right / len(truth))
    assert scored.rows[-1].correct < 2 * FAMILIES or steep > 1


@given(found, truths)
def test_accuracy_is_that_of_loops(found: dict[Pair, float], truth: dict[Pair, bool]) -> None:
    known = labels_of(truth, complete=False)
    if known is None:
        return
    cuts = [0.5, 0.7]
    figures = accuracy_figures([tally_pairs(parts_of(found), known, cuts)], known, count=30, seed=1)
    groups: dict[int, list[int]] = {}
    for (i, j), duplicate in truth.items():
        group = int(known.pair_groups(np.array([i]), np.array([j]))[0])
        held = groups.setdefault(group, [0, 0, 0])
        for at, cut in enumerate(cuts):
            held[at] += (found.get((i, j), 0.0) >= cut) == duplicate
        held[2] += 1
    kinds = sorted({tuple(held) for held in groups.values()})
    members = [sum(tuple(held) == kind for held in groups.values()) for kind in kinds]
    shares = np.append(np.array(members) / known.groups, 0.0)
    draws = np.random.default_rng(1).multinomial(known.groups, shares, size=30)
    for at in range(2):
        right = sum(held[at] for held in groups.values())
        assert figures[at].value == right / len(truth)
        drawn = [sum(int(n) * kind[at] for n, kind in zip(draw, kinds, strict=False)) for draw in draws]
        whole = [sum(int(n) * kind[2] for n, kind in zip(draw, kinds, strict=False)) for draw in draws]
        ends = np.percentile([part / all_ for part, all_ in zip(drawn, whole, strict=True)], [2.5, 97.5])
        assert figures[at][1:] == pytest.approx(tuple(ends))
