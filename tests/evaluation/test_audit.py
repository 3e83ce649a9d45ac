"""Audits of whole results: the sample, figures beside the truth where all is judged, and the page that asks them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sentences import says
from simple_classifiers import make_classifier

from neardup.classifier.classifier import Classifier
from neardup.documents import corpus_of
from neardup.evaluation.audit import Audit, Sample, draw_sample
from neardup.evaluation.population import Vote, read_votes, store_votes
from neardup.evaluation.scores import Figure
from neardup.labelling.index import LabelIndex
from neardup.labelling.session import SampleQueue, Session
from neardup.labels.store import LabelStore
from neardup.pipeline.pipeline import run
from neardup.recipe import Recipe

FAMILIES = 14
WORDS = [f"word{i:03d}" for i in range(300)]


def texts() -> dict[str, list[str]]:
    """Families of six: a text, a copy, the same in capitals, and with every 12th, 5th, and 2nd word changed."""
    random = np.random.default_rng(5)
    ids, text = [], []
    for number in range(FAMILIES):
        base = [WORDS[i] for i in random.integers(0, len(WORDS), 36)]
        for version, step in enumerate((0, 0, 0, 12, 5, 2)):
            words = [f"x{number}v{version}" if step and at % step == 1 else word for at, word in enumerate(base)]
            ids.append(f"{number}-{version}")
            text.append(" ".join(words).upper() if version == 2 else " ".join(words))
    return {"id": ids, "text": text}


DATA = texts()
PLACE = {name: at for at, name in enumerate(DATA["id"])}
#: The id where each text comes first.
FIRST = {name: DATA["id"][DATA["text"].index(text)] for name, text in zip(*DATA.values(), strict=True)}


def duplicates(one: str, other: str) -> bool:
    """What a person would say: two of a family, unless half of the words or every fifth one differ from both sides."""
    return one.split("-")[0] == other.split("-")[0] and "5" not in (one[-1], other[-1])


Pair = tuple[str, str]


def distinct(recipe: Recipe, classifier: Classifier | None = None) -> dict[Pair, float]:
    """The pairs of a run as pairs of ids where their texts come first, without equal texts."""
    result = run(corpus_of(DATA), recipe, classifier=classifier, pairs_per_document=None)
    found = {}
    for left, right, similarity in result.pairs:
        one, other = sorted((FIRST[left], FIRST[right]), key=PLACE.__getitem__)
        if one != other:
            found[one, other] = similarity
    return found


def votes(pairs: dict[Pair, Any], says: Callable[[str, str], bool] = duplicates) -> list[Vote]:
    return [(PLACE[one], PLACE[other], "same" if says(one, other) else "different") for one, other in pairs]


def whole(
    recipe: Recipe | None = None, classifier: Classifier | None = None, candidate_rule: str | None = None
) -> Sample:
    """A sample of everything."""
    return draw_sample(
        corpus_of(DATA), recipe=recipe, classifier=classifier, candidate_rule=candidate_rule, sample=10_000
    )


def ids(drawing: Sample) -> list[Pair]:
    return [(DATA["id"][i], DATA["id"][j]) for i, j in zip(drawing.left, drawing.right, strict=True)]


WIDE = "jaccard(words:1) >= 0.2"
RECIPES = {
    "sets": (Recipe(features="words:2", threshold=0.6), None, Recipe(features="words:2", threshold=0.3)),
    "a looser candidate rule": (
        Recipe(features="words:2", threshold=0.6),
        "0.15",
        Recipe(features="words:2", threshold=0.15),
    ),
    "another candidate rule": (
        Recipe(features="words:2", threshold=0.6),
        WIDE,
        Recipe(features="words:1", threshold=0.2),
    ),
    "weights": (
        Recipe(features="words:1", weights="idf", measure="cosine", threshold=0.7),
        None,
        Recipe(features="words:1", weights="idf", measure="cosine", threshold=0.3),
    ),
    "two steps": (
        Recipe(features="words:1", threshold=0.5, second_step="edit >= 0.9"),
        None,
        Recipe(features="words:1", threshold=0.3),
    ),
    "fingerprints": (
        Recipe(features="words:1", signature="simhash", measure="hamming", threshold=6),
        None,
        Recipe(features="words:1", signature="simhash", measure="hamming", threshold=12),
    ),
    "lsh": (
        Recipe(features="words:2", threshold=0.6, search="lsh", recall=0.5, num_perm=8),
        None,
        Recipe(features="words:2", threshold=0.3),
    ),
    "one answer": (
        Recipe(features="checksum", normalize="words", threshold=1.0),
        WIDE,
        Recipe(features="words:1", threshold=0.2),
    ),
    "distances": (
        Recipe(features="words:1", measure="euclidean", threshold=3.0),
        "6",
        Recipe(features="words:1", measure="euclidean", threshold=6.0),
    ),
}


def check_against_truth(found: Audit, candidates: set[Pair], returned: set[Pair]) -> None:
    true = {pair for pair in candidates if duplicates(*pair)}
    assert found.candidates == len(candidates)
    assert (found.same, found.different, found.missing) == (len(true), len(candidates) - len(true), 0)
    assert found.own.returned == len(returned)
    assert found.precision == pytest.approx(Figure(*[len(true & returned) / len(returned)] * 3))
    assert found.recall == pytest.approx(Figure(*[len(true & returned) / len(true)] * 3))
    assert found.duplicates == pytest.approx(Figure(*[len(true)] * 3))
    assert (found.documents, found.copies, found.copy_pairs) == (6 * FAMILIES, FAMILIES, FAMILIES)
    assert sum(band.pairs for band in found.strata) == sum(band.drawn for band in found.strata) == len(candidates)
    assert sum(band.pairs for band in found.strata if band.returned) == len(returned)


@pytest.mark.parametrize("name", RECIPES)
def test_where_all_is_judged_the_figures_are_the_truth(name: str) -> None:
    recipe, candidate_rule, loose = RECIPES[name]
    returned = distinct(recipe)
    candidates = distinct(loose) | returned
    drawing = whole(recipe, candidate_rule=candidate_rule)
    assert set(ids(drawing)) == candidates.keys()
    found = drawing.audit(drawing.resolve_votes(votes(candidates)))
    check_against_truth(found, set(candidates), set(returned))
    if name not in ("lsh", "another candidate rule"):
        for point in found.points:
            at = found.scale.shown(point.score)
            close = distinct(recipe.changed(threshold=round(at, 9))) if point.own or name != "one answer" else returned
            assert point.returned == len(close)
            true = sum(duplicates(*pair) for pair in close)
            assert point.precision.value == pytest.approx(true / len(close))
            assert point.recall.value == pytest.approx(true / found.same)


@pytest.mark.parametrize(("cut", "steep"), [(0.0, 1.0), (0.5, 60.0)])
def test_a_classifier_is_judged_among_the_candidates_of_its_rule(cut: float, steep: float) -> None:
    classifier = make_classifier(cut=cut, steep=steep, candidate_rule="jaccard(words:1) >= 0.2")
    returned = distinct(classifier.recipe, classifier)
    every = classifier.everything()
    candidates = distinct(every.recipe, every)
    drawing = whole(classifier=classifier)
    assert set(ids(drawing)) == candidates.keys()
    found = drawing.audit(drawing.resolve_votes(votes(candidates)))
    check_against_truth(found, set(candidates), set(returned))
    assert found.scale.name == "probability"
    for point in found.points:
        if not point.own:
            close = {pair for pair, probability in candidates.items() if probability >= point.score}
            assert point.returned == len(close)


def test_pairs_that_a_recipe_returns_below_another_rule_count() -> None:
    recipe, candidate_rule = Recipe(features="words:2", threshold=0.1), "jaccard(words:2) >= 0.9"
    found = whole(recipe, candidate_rule=candidate_rule)
    assert set(ids(found)) == distinct(recipe).keys()
    assert found.population.returned.all()


def test_a_sample_is_part_of_a_larger_one_and_does_not_depend_on_the_order_of_documents() -> None:
    recipe = Recipe(features="words:2", threshold=0.6)

    def drawn(data: dict[str, list[str]], sample: int, seed: int = 0, threshold: float = 0.6) -> list[frozenset[str]]:
        found = draw_sample(
            corpus_of(data), recipe=recipe.changed(threshold=threshold), candidate_rule="0.1", sample=sample, seed=seed
        )
        sides = zip(found.left.tolist(), found.right.tolist(), strict=True)
        return [frozenset(map(found.material.id, pair)) for pair in sides]

    one = drawn(DATA, 40)
    # Of equal texts the first stands for both, so copies are put where they were.
    order = [at for at in np.random.default_rng(2).permutation(len(PLACE)).tolist() if DATA["id"][at][-1] != "1"]
    order += [at for at in range(len(PLACE)) if at not in order]
    moved = {name: [column[at] for at in order] for name, column in DATA.items()}
    assert drawn(moved, 40) == one
    assert set(one) < set(drawn(DATA, 60))
    assert set(drawn(DATA, 40, seed=1)) != set(one)
    kept = set(one) & set(drawn(DATA, 40, threshold=0.7))
    assert len(kept) > 20


def test_labels_of_copies_are_labels_of_their_texts() -> None:
    drawing = whole(Recipe(features="words:2", threshold=0.6))
    place = {pair: at for at, pair in enumerate(ids(drawing))}
    copied = drawing.resolve_votes([(PLACE["0-1"], PLACE["0-3"], "same"), (PLACE["0-0"], PLACE["0-1"], "different")])
    assert copied.answers[place["0-0", "0-3"]] == "same"
    assert copied.outside == 0
    assert copied.counts() == {"same": 1, "": len(place) - 1}
    both = drawing.resolve_votes([(PLACE["0-0"], PLACE["0-3"], "same"), (PLACE["0-3"], PLACE["0-1"], "different")])
    assert both.answers[place["0-0", "0-3"]] == "unsure"
    far = drawing.resolve_votes([(PLACE["0-0"], PLACE["9-0"], "different")])
    assert (far.outside, set(far.answers)) == (1, {""})


def test_what_is_said_of_labels_that_are_missing_or_unsure() -> None:
    drawing = draw_sample(corpus_of(DATA), recipe=Recipe(features="words:2", threshold=0.6), sample=60)
    nothing = drawing.audit(drawing.resolve_votes([]))
    assert nothing.precision == nothing.recall == nothing.duplicates == Figure(None, None, None)
    assert says(nothing.notes()[0], "None of the drawn", "judged yet")
    given = votes(dict.fromkeys(ids(drawing)))
    some = [(one, other, "unsure" if at < 3 else answer) for at, (one, other, answer) in enumerate(given[:-2])]
    found = drawing.audit(drawing.resolve_votes([*some, (PLACE["0-0"], PLACE["9-0"], "different")]))
    assert (found.missing, found.unsure, found.outside, found.drawn) == (2, 3, 1, 60)
    notes = " ".join(found.notes())
    assert says(notes, "2 of the 60", "not judged yet.")
    assert says(notes, "3 of the 60", "unsure and left out.")
    assert says(notes, "1 judged pair", "not drawn")
    assert says(notes, "14 documents", "byte for byte")
    assert says(notes, "among the candidates", "words:2 (words), jaccard >= 0.3")
    first = next(at for at, band in enumerate(drawing.strata) if band.returned)
    inside = [at for at, pair in enumerate(drawing.pairs) if drawing._place[pair] != first]
    partly = drawing.audit(drawing.resolve_votes([given[at] for at in inside]))
    assert partly.precision.value is None
    assert any(note.startswith("Nothing is judged at") for note in partly.notes())


@pytest.fixture
def drawing() -> Sample:
    return draw_sample(corpus_of(DATA), recipe=Recipe(features="words:2", threshold=0.6), sample=25)


def test_a_session_asks_the_sample_in_its_order_and_tells_what_it_says(drawing: Sample, tmp_path: Path) -> None:
    with LabelStore(tmp_path / "audit.db") as store:
        known = LabelIndex(store, drawing.material)
        chooser = SampleQueue(drawing, known)
        session = Session(known, chooser, labeller="ann")
        asked = []
        assert chooser.open_pairs == 25
        state = session.state("ann")
        assert state["facts"] == []
        while state["pair"] is not None:
            one, other = state["pair"]["ids"]
            asked.append({one, other})
            state = session.answer("ann", (one, other), "same" if duplicates(one, other) else "different")
        sides = zip(drawing.left.tolist(), drawing.right.tolist(), strict=True)
        assert asked == [{DATA["id"][left], DATA["id"][right]} for left, right in sides]
        assert chooser.open_pairs == 0
        assert session.state("bob")["pair"] is not None
        found = drawing.audit(drawing.resolve_votes(store_votes(store.labels, drawing.places)))
        assert (found.missing, found.same + found.different) == (0, 25)
        facts = {fact["name"]: fact for fact in session.state("ann")["facts"]}
        assert facts["precision"]["value"] == f"{found.precision.value:.2f}"
        assert says(facts["recall"]["meaning"], "duplicates among the candidates", "returned")


def test_a_store_is_read_like_a_table_of_labels(drawing: Sample, tmp_path: Path) -> None:
    path = tmp_path / "audit.db"
    with LabelStore(path) as store:
        known = LabelIndex(store, drawing.material)
        session = Session(known, SampleQueue(drawing, known))
        for name, answers in (("ann", ("same", "unsure", "different")), ("bob", ("different", "same", "different"))):
            for answer in answers:
                pair = session.state(name)["pair"]["ids"]
                session.answer(name, (pair[0], pair[1]), answer)
        votes = list(store_votes(store.labels, drawing.places))
    assert sorted(read_votes(path, drawing.places)) == sorted(votes)
    assert drawing.resolve_votes(votes).answers[:4] == ["unsure", "same", "different", ""]
