"""Audits: the sample, figures that equal the truth where all pairs are judged, the labelling session, and the page."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import browser
import numpy as np
import pytest
from classifiers import make_classifier
from commands import write_lines
from page_markup import Markup, check_loads_nothing
from sentences import says

import neardup as nd
from neardup.classifier.classifier import Classifier
from neardup.documents import corpus_of, open_corpus
from neardup.errors import OutputError, RecipeError
from neardup.evaluation.audit import Audit, Sample, draw_sample, select_examples
from neardup.evaluation.intervals import Figure
from neardup.evaluation.population import Vote, read_votes, store_votes
from neardup.labelling.label_index import LabelIndex
from neardup.labelling.session import SampleQueue, Session
from neardup.labels.store import LabelStore
from neardup.pipeline.pipeline import run
from neardup.recipe import Recipe

FAMILIES = 14
WORDS = [f"word{i:03d}" for i in range(300)]
Pair = tuple[str, str]


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
POSITION = {name: at for at, name in enumerate(DATA["id"])}
#: The first id with each text.
FIRST = {name: DATA["id"][DATA["text"].index(text)] for name, text in zip(*DATA.values(), strict=True)}
SETS = Recipe(features="words:2", threshold=0.6)


def is_duplicate(one: str, other: str) -> bool:
    """The truth: two documents of a family, unless half of the words of one are changed."""
    return one.split("-")[0] == other.split("-")[0] and "5" not in (one[-1], other[-1])


def distinct_pairs(recipe: Recipe, classifier: Classifier | None = None) -> dict[Pair, float]:
    """The similarities of a run's pairs of distinct texts, by the first ids with these texts."""
    result = run(corpus_of(DATA), recipe, classifier=classifier, pairs_per_document=None)
    found = {}
    for left, right, similarity in result.pairs:
        one, other = sorted((FIRST[left], FIRST[right]), key=POSITION.__getitem__)
        if one != other:
            found[one, other] = similarity
    return found


def votes(pairs: Iterable[Pair], truth: Callable[[str, str], bool] = is_duplicate) -> list[Vote]:
    return [(POSITION[one], POSITION[other], "same" if truth(one, other) else "different") for one, other in pairs]


def draw(
    sample: int = 10_000,
    recipe: Recipe | None = SETS,
    classifier: Classifier | None = None,
    candidate_rule: str | None = None,
) -> Sample:
    """A sample, by default of all candidates."""
    return draw_sample(
        corpus_of(DATA), recipe=recipe, classifier=classifier, candidate_rule=candidate_rule, sample=sample
    )


def ids(sample: Sample) -> list[Pair]:
    return [(DATA["id"][i], DATA["id"][j]) for i, j in zip(sample.left, sample.right, strict=True)]


WIDE = "jaccard(words:1) >= 0.2"
#: A recipe, the candidate rule, and what the default or the given rule differs in.
RECIPES: dict[str, tuple[Recipe, str | None, dict[str, Any]]] = {
    "sets": (SETS, None, {"threshold": 0.3}),
    "a looser candidate rule": (SETS, "0.15", {"threshold": 0.15}),
    "another candidate rule": (SETS, WIDE, {"features": "words:1", "threshold": 0.2}),
    "weights": (
        Recipe(features="words:1", weights="idf", measure="cosine", threshold=0.7),
        None,
        {"weights": "idf", "threshold": 0.3},
    ),
    "two steps": (
        Recipe(features="words:1", threshold=0.5, second_step="edit >= 0.9"),
        None,
        {"threshold": 0.3},
    ),
    "fingerprints": (
        Recipe(features="words:1", signature="simhash", measure="hamming", threshold=6),
        None,
        {"signature": "simhash", "threshold": 12},
    ),
    "lsh": (
        Recipe(features="words:2", threshold=0.6, search="lsh", recall=0.5, num_perm=8),
        None,
        {"threshold": 0.3},
    ),
    "one answer": (
        Recipe(features="checksum", normalize="words", threshold=1.0),
        WIDE,
        {"features": "words:1", "threshold": 0.2},
    ),
    "distances": (Recipe(features="words:1", measure="euclidean", threshold=3.0), "6", {"threshold": 6.0}),
}


def check_truth(audit: Audit, candidates: set[Pair], returned: set[Pair]) -> None:
    true = {pair for pair in candidates if is_duplicate(*pair)}
    assert audit.candidates == len(candidates)
    assert (audit.same, audit.different, audit.missing) == (len(true), len(candidates) - len(true), 0)
    assert audit.working_point.returned == len(returned)
    assert audit.precision == pytest.approx(Figure(*[len(true & returned) / len(returned)] * 3))
    assert audit.recall == pytest.approx(Figure(*[len(true & returned) / len(true)] * 3))
    assert audit.duplicates == pytest.approx(Figure(*[len(true)] * 3))
    assert (audit.documents, audit.copies, audit.copy_pairs) == (6 * FAMILIES, FAMILIES, FAMILIES)
    assert sum(stratum.pairs for stratum in audit.strata) == len(candidates)
    assert sum(stratum.drawn for stratum in audit.strata) == len(candidates)
    assert sum(stratum.pairs for stratum in audit.strata if stratum.returned) == len(returned)


@pytest.mark.parametrize("name", RECIPES)
def test_figures_equal_the_truth_where_all_candidates_are_judged(name: str) -> None:
    recipe, candidate_rule, changes = RECIPES[name]
    loose = Recipe(**{"features": recipe.features, "measure": recipe.measure} | changes)
    returned = distinct_pairs(recipe)
    candidates = distinct_pairs(loose) | returned
    sample = draw(recipe=recipe, candidate_rule=candidate_rule)
    assert set(ids(sample)) == candidates.keys()
    audit = sample.audit(sample.resolve_votes(votes(candidates)))
    check_truth(audit, set(candidates), set(returned))
    if name not in ("lsh", "another candidate rule"):
        for point in audit.points:
            pairs = returned
            if point.is_working_point or name != "one answer":
                pairs = distinct_pairs(recipe.changed(threshold=round(audit.returned_scale.threshold(point.score), 9)))
            true = sum(is_duplicate(*pair) for pair in pairs)
            assert point.returned == len(pairs)
            assert point.precision.value == pytest.approx(true / len(pairs))
            assert point.recall.value == pytest.approx(true / audit.same)


@pytest.mark.parametrize(("cut", "steep"), [(0.0, 1.0), (0.5, 60.0)])
def test_a_classifier_is_audited_among_the_candidates_of_its_rule(cut: float, steep: float) -> None:
    classifier = make_classifier(cut=cut, steep=steep, candidate_rule="jaccard(words:1) >= 0.2")
    returned = distinct_pairs(classifier.recipe, classifier)
    accepting = classifier.without_cut()
    candidates = distinct_pairs(accepting.recipe, accepting)
    sample = draw(recipe=None, classifier=classifier)
    assert set(ids(sample)) == candidates.keys()
    audit = sample.audit(sample.resolve_votes(votes(candidates)))
    check_truth(audit, set(candidates), set(returned))
    assert audit.returned_scale.name == "probability"
    for point in audit.points:
        if not point.is_working_point:
            assert point.returned == sum(probability >= point.score for probability in candidates.values())


@pytest.mark.parametrize("candidate_rule", [None, WIDE])
def test_an_audit_needs_no_keep_order(candidate_rule: str | None) -> None:
    # The documents have no times.
    newest = draw(recipe=SETS.changed(keep="newest"), candidate_rule=candidate_rule)
    first = draw(candidate_rule=candidate_rule)
    assert ids(newest) == ids(first)
    assert np.array_equal(newest.population.returned, first.population.returned)


def test_returned_pairs_below_another_candidate_rule_are_candidates() -> None:
    recipe = SETS.changed(threshold=0.1)
    sample = draw(recipe=recipe, candidate_rule="jaccard(words:2) >= 0.9")
    assert set(ids(sample)) == distinct_pairs(recipe).keys()
    assert sample.population.returned.all()


def test_a_larger_sample_contains_a_smaller_one_in_any_order_of_documents() -> None:
    def drawn(data: dict[str, list[str]], sample: int, seed: int = 0, threshold: float = 0.6) -> list[frozenset[str]]:
        recipe = SETS.changed(threshold=threshold)
        found = draw_sample(corpus_of(data), recipe=recipe, candidate_rule="0.1", sample=sample, seed=seed)
        sides = zip(found.left.tolist(), found.right.tolist(), strict=True)
        return [frozenset(map(found.reader.id, pair)) for pair in sides]

    pairs = drawn(DATA, 40)
    # The first of equal texts stands for both, so copies stay behind their originals.
    order = np.random.default_rng(2).permutation(len(POSITION)).tolist()
    order.sort(key=lambda at: DATA["id"][at][-1] == "1")
    moved = {name: [column[at] for at in order] for name, column in DATA.items()}
    assert drawn(moved, 40) == pairs
    assert set(pairs) < set(drawn(DATA, 60))
    assert set(drawn(DATA, 40, seed=1)) != set(pairs)
    assert len(set(pairs) & set(drawn(DATA, 40, threshold=0.7))) > 20


def test_a_label_of_a_copy_is_a_label_of_its_text() -> None:
    sample = draw()
    row = ids(sample).index(("0-0", "0-3"))
    copied = sample.resolve_votes([(POSITION["0-1"], POSITION["0-3"], "same"), (POSITION["0-0"], 1, "different")])
    assert (copied.answers[row], copied.outside) == ("same", 0)
    assert copied.counts() == {"same": 1, "": len(sample.pairs) - 1}
    tie = sample.resolve_votes([(0, POSITION["0-3"], "same"), (POSITION["0-3"], POSITION["0-1"], "different")])
    assert tie.answers[row] == "unsure"
    outside = sample.resolve_votes([(0, POSITION["9-0"], "different")])
    assert (outside.outside, set(outside.answers)) == (1, {""})


def test_notes_state_missing_unsure_and_unused_labels() -> None:
    sample = draw(60)
    nothing = sample.audit(sample.resolve_votes([]))
    assert nothing.precision == nothing.recall == nothing.duplicates == Figure(None, None, None)
    assert says(nothing.notes()[0], "None of the drawn", "judged yet")
    given = votes(ids(sample))
    some = [(one, other, "unsure" if at < 3 else answer) for at, (one, other, answer) in enumerate(given[:-2])]
    audit = sample.audit(sample.resolve_votes([*some, (0, POSITION["9-0"], "different")]))
    assert (audit.missing, audit.unsure, audit.outside, audit.drawn) == (2, 3, 1, 60)
    notes = " ".join(audit.notes())
    assert says(notes, "2 of the 60", "not judged yet.", "3 of the 60", "unsure and left out.")
    assert says(notes, "1 judged pair was", "not drawn")
    assert says(notes, "among the candidates", "words:2 (words), jaccard >= 0.3", "14 documents", "byte for byte")
    first = next(at for at, stratum in enumerate(sample.strata) if stratum.returned)
    rest = [vote for vote, stratum in zip(given, sample.pair_strata, strict=True) if stratum != first]
    partial = sample.audit(sample.resolve_votes(rest))
    assert partial.precision.value is None
    assert any(note.startswith("No pair is judged at") for note in partial.notes())


def test_a_session_asks_the_drawn_pairs_in_order_and_shows_the_figures(tmp_path: Path) -> None:
    sample, path = draw(25), tmp_path / "audit.db"
    with LabelStore(path) as store:
        index = LabelIndex(store, sample.reader)
        queue = SampleQueue(sample, index)
        session = Session(index, queue)
        asked: list[Pair] = []
        state = session.state("ann")
        assert (queue.open_pairs, state["facts"]) == (25, [])
        while state["pair"] is not None:
            asked.append(tuple(state["pair"]["ids"]))
            state = session.answer("ann", asked[-1], "same" if is_duplicate(*asked[-1]) else "different")
        assert [set(pair) for pair in asked] == [set(pair) for pair in ids(sample)]
        audit = sample.audit(sample.resolve_votes(store_votes(store.labels, sample.positions)))
        assert (queue.open_pairs, audit.missing, audit.same + audit.different) == (0, 0, 25)
        facts = {fact["name"]: fact for fact in state["facts"]}
        assert facts["precision"]["value"] == f"{audit.precision.value:.2f}"
        assert says(facts["recall"]["meaning"], "duplicates among the candidates", "returned")
        # A second labeller, who is sure of one pair and contradicts the other.
        for answer in ("unsure", "different" if is_duplicate(*asked[1]) else "same"):
            session.answer("bob", tuple(session.state("bob")["pair"]["ids"]), answer)
        found = list(store_votes(store.labels, sample.positions))
    assert sorted(read_votes(path, sample.positions)) == sorted(found)
    answers = sample.resolve_votes(found).answers
    assert answers[:2] == ["same" if is_duplicate(*asked[0]) else "different", "unsure"]
    assert "" not in answers


@pytest.fixture(scope="module")
def sample() -> Sample:
    return draw(90, candidate_rule="0.15")


def labelled(sample: Sample, max_examples: int) -> Audit:
    """An audit whose labels are wrong in a third of the families, and unsure for every seventh pair."""
    found = votes(ids(sample), lambda one, other: is_duplicate(one, other) != (int(one.split("-")[0]) % 3 == 0))
    labels = sample.resolve_votes(
        (left, right, "unsure" if at % 7 == 6 else answer) for at, (left, right, answer) in enumerate(found)
    )
    return replace(sample.audit(labels), examples=select_examples(sample, labels, max_examples))


def test_examples_are_the_misjudged_pairs_that_represent_the_most(sample: Sample) -> None:
    audit, every, nothing = (labelled(sample, count) for count in (5, 10_000, 0))
    assert audit.examples is not None
    assert every.examples is not None
    assert nothing.examples is not None
    rows = {pair: at for at, pair in enumerate(ids(sample))}
    returned, score = sample.population.returned[sample.pairs], sample.population.score[sample.pairs]
    for kind, answer in (("wrong", "different"), ("missed", "same"), ("unsure", "unsure")):
        pairs = every.examples.pairs[kind]
        assert audit.examples.totals[kind] == len(pairs) > 0
        assert (audit.examples.pairs[kind], nothing.examples.pairs[kind]) == (pairs[:5], [])
        # Of equal weights, the scores furthest on the wrong side come first.
        ranks = [(-pair.weight, -pair.score if pair.returned else pair.score) for pair in pairs]
        assert ranks == sorted(ranks)
        for pair in pairs:
            at = rows[pair.left.id, pair.right.id]
            stratum = audit.strata[sample.pair_strata[at]]
            assert pair.weight == pytest.approx(0 if kind == "unsure" else stratum.pairs / stratum.judged)
            assert (pair.answer, pair.returned, pair.score) == (answer, returned[at], score[at])
            assert kind == "unsure" or pair.returned == (kind == "wrong")
            assert pair.left.text == DATA["text"][POSITION[pair.left.id]]
    with pytest.raises(RecipeError, match="-1 pairs of each kind are below 0"):
        labelled(sample, -1)


def test_a_page_shows_figures_notes_and_examples_that_a_search_finds(sample: Sample, tmp_path: Path) -> None:
    audit, path = labelled(sample, 20), tmp_path / "page.html"
    audit.write(path, command="neardup audit <in>")
    text = path.read_text("utf-8")
    page = Markup(text)
    check_loads_nothing(page)
    headings = "Returned, but judged different", "Judged the same, but not returned", "Unsure"
    for words in ("neardup audit <in>", *headings, "represents about", "documents in memory", *audit.notes()):
        assert words in page.text
    # One form of a share: in a tile, in the table of thresholds, and in what was audited.
    assert text.count(f"{audit.precision.value:.1%}") >= 3
    assert f"{audit.precision.value:.3f}" not in text
    assert "stratum" not in text
    with browser.opened(path, dark=True) as view:
        view.fill("#pairs-search", view.locator("#pairs details summary bdi").first.inner_text())
        view.locator("#pairs output:not(:empty)").wait_for()
        assert 0 < view.locator("#pairs > details:visible").count() < view.locator("#pairs > details").count()


EVIL = '<script>window.harm=1</script><img src=x onerror="window.harm=2">"\'></style></script><!-- \x1b[31m\u202e'


def test_a_page_names_its_files_and_shows_hostile_documents_as_text(tmp_path: Path) -> None:
    texts = [f"{EVIL} a rose is a rose", f"{EVIL} a rose is a tulip", "الورد ورد وهو ورد", "الورد ورد وهو زنبق"]
    corpus = write_lines(
        tmp_path / "in.jsonl", [{"id": i, "text": t} for i, t in zip([EVIL, *"bcd"], texts, strict=True)]
    )
    labels = [(EVIL, "b", 0), ("c", "d", "?")]
    with open_corpus([str(corpus)]) as opened:
        audit = nd.audit(opened, labels, features="words:1", threshold=0.4, candidate_rule=0.2)
        assert audit.examples is not None
        audit.write(tmp_path / "page.html")
    audit.write(tmp_path / "all.json")
    assert json.loads((tmp_path / "all.json").read_text())["drawn"] == 2
    for name, message in (("page.html", "exists: choose another name"), ("page.txt", "has no format of an audit")):
        with pytest.raises(OutputError, match=message):
            audit.write(tmp_path / name)
    content = (tmp_path / "page.html").read_text("utf-8")
    page = Markup(content)
    check_loads_nothing(page)
    assert str(corpus) in page.text.partition("Before you trust")[0]
    assert "<script>window.harm=1</script>" in page.text
    assert 'class="cell left" dir="rtl"' in content
