"""The domain of a classifier: candidates outside are counted, and too many of them stop a run."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from classifiers import SETS, make_classifier, texts
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sentences import says

import neardup as nd
from neardup.classifier.classifier import Classifier, pack_classifier, unpack_classifier
from neardup.classifier.domain import Domain, DomainCounts, main_script
from neardup.errors import ForeignDocuments, InputError, ManyCandidates, RecipeError
from neardup.search import second_step
from neardup.stream.index import matching_pairs

STORIES = texts(60, seed=7)
TEXTS = [row["text"] for row in STORIES.rows]


def domain(**changes: Any) -> Domain:
    """The domain that a training of ``make_classifier(SETS)`` would have."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, (100, len(make_classifier(SETS).vector)))
    return Domain.from_training(x, TEXTS, x[:, 0], np.arange(100) % 2 == 0)._replace(**changes)


@given(arrays(np.float64, (12, 3), elements=st.floats(0, 5) | st.just(float("nan"))))
def test_training_pairs_are_never_outside(x: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> None:
    trained_domain = Domain.from_training(x, ["some words"] * 12, np.ones(12), np.ones(12, np.bool_))
    assert not trained_domain.outside_pairs(x).any()
    assert not trained_domain.outside_texts(["some words"]).any()
    highest = np.nanmax(x, axis=0, initial=0)
    far = np.where(np.isnan(x).all(axis=0), 0, highest * 2 + 1)[np.newaxis]
    assert trained_domain.outside_pairs(far).all() == (~np.isnan(x).all(axis=0)).any()


def test_other_lengths_and_scripts_are_outside() -> None:
    text, arabic = TEXTS[0], "نص عربي طويل بما يكفي ليقرأ في هذا"
    assert domain().outside_texts([text, text * 50, text[:3], arabic]).tolist() == [False, True, True, True]
    assert (main_script("ab ж"), main_script("12 ab"), main_script("2026!")) == ("LATIN", "LATIN", "")


@pytest.mark.parametrize(("candidates", "outside", "passed"), [(100, 60, 10), (100, 0, 95)])
def test_too_large_a_share_outside_or_passed_is_a_mismatch(candidates: int, outside: int, passed: int) -> None:
    usual = domain(pass_share=0.5)
    assert usual.mismatch(DomainCounts(candidates, outside, passed))
    assert not usual.mismatch(DomainCounts(candidates, outside // 3, passed // 3))
    # Shares of a handful are meaningless.
    assert not usual.mismatch(DomainCounts(10, 10, 10))


def test_a_run_outside_the_domain_stops_unless_it_is_forced() -> None:
    with pytest.raises(RecipeError) as refused:
        nd.dedup(STORIES.table, classifier=foreign())
    assert says(refused.value, foreign().fingerprint, "does not fit", "100%", "25%", "force_domain=True")
    forced = nd.dedup(STORIES.table, classifier=foreign(), force_domain=True)
    plain = nd.dedup(STORIES.table, classifier=make_classifier(SETS))
    found = forced.summary["classifier"]
    assert found["outside"] == found["candidates"] > 0
    assert plain.summary["classifier"]["outside"] is None
    assert forced.pairs.to_arrow().equals(plain.pairs.to_arrow())
    with pytest.raises(RecipeError, match="force_domain"):
        nd.dedup(STORIES.table, force_domain=True)


def foreign() -> Classifier:
    """A classifier with the domain of far longer texts."""
    return replace(make_classifier(SETS), domain=domain(length_range=np.array([1e6, 1e6, 2e6, 2e6])))


def test_a_query_says_what_lies_outside_and_stops_where_most_of_many_do() -> None:
    text = TEXTS[0]
    few = nd.query([f"{text} {number}" for number in range(5)], text, classifier=foreign())
    assert few.counts is not None
    assert few.counts.outside == few.counts.candidates == 5
    many = [f"{text} {number}" for number in range(30)]
    with pytest.raises(RecipeError, match=r"100% of 30 candidates.*force_domain"):
        nd.query(many, text, classifier=foreign())
    forced = nd.query(many, text, classifier=foreign(), force_domain=True)
    assert forced.to_arrow().equals(nd.query(many, text, classifier=make_classifier(SETS)).to_arrow())
    assert nd.query(many, text, classifier=make_classifier(SETS)).counts is None


def test_an_explanation_names_the_reasons_for_lying_outside() -> None:
    pair = pa.table({"id": ["a", "b"], "text": [TEXTS[0], TEXTS[0] + " more"]})

    def explained(classifier: Classifier) -> tuple[str, ...]:
        found = nd.dedup(pair, classifier=classifier).explain("a", "b").learned
        assert found is not None
        assert found.as_dict()["outside"] == list(found.outside)
        return found.outside

    assert explained(replace(make_classifier(SETS), domain=domain())) == ()
    assert says(explained(foreign())[0], "characters", "500,000 to 4,000,000")
    assert says(explained(replace(make_classifier(SETS), domain=domain(scripts=("ARABIC",))))[0], "LATIN", "ARABIC")
    measures = domain().measure_ranges.copy()
    measures[2] = 0.1, 0.1, 0.2, 0.2
    (only,) = explained(replace(make_classifier(SETS), domain=domain(measure_ranges=measures)))
    assert says(only, "length_ratio", "0.1 to 0.2")


@given(st.lists(st.integers(1, 12), min_size=1, max_size=8))
@settings(max_examples=3)
def test_a_flow_has_the_same_counts_in_any_batches(sizes: list[int]) -> None:
    flow = [nd.Document(row["id"], row["text"], float(number)) for number, row in enumerate(STORIES.rows[:30])]
    index, one = (
        nd.Index(classifier=foreign(), window=None, against="everything", force_domain=True) for _ in range(2)
    )
    rest = iter(flow)
    for size in itertools.cycle(sizes):
        if not (batch := list(itertools.islice(rest, size))):
            break
        index.add_many(batch)
    # Queries are not counted.
    index.query("some other words")
    one.add_many(flow)
    counts = index.statistics.domain_counts
    assert counts == one.statistics.domain_counts
    assert counts.outside == counts.candidates > counts.passed > 0


def test_a_flow_outside_the_domain_warns_once_after_each_start(tmp_path: Path) -> None:
    flow = [nd.Document(row["id"], row["text"], float(number)) for number, row in enumerate(STORIES.rows)]
    store = tmp_path / "flow.db"
    settings: dict[str, Any] = {"window": None, "against": "everything", "path": store}
    with nd.Index(classifier=foreign(), **settings) as index:
        with pytest.warns(ForeignDocuments, match="does not fit.*100%.*force_domain"):
            verdicts = [index.add(one) for one in flow[:50]]
        counts = index.statistics.domain_counts
    plain = nd.Index(classifier=make_classifier(SETS), window=None, against="everything")
    assert [v.of for v in verdicts] == [v.of for v in plain.add_many(flow[:50])]
    with nd.Index(classifier=foreign(), **settings) as again:
        assert again.statistics.domain_counts == counts
        with pytest.warns(ForeignDocuments):
            again.add_many(flow[50:])
    with pytest.raises(RecipeError, match="force_domain"):
        nd.Index(force_domain=True)


def test_pairs_of_chosen_documents_bring_no_warning() -> None:
    family = {key: nd.Document(str(key), f"{TEXTS[0]} {key}", float(key)) for key in range(30)}
    assert matching_pairs(family, make_classifier(SETS).recipe, foreign())


def test_a_rejected_batch_is_not_counted() -> None:
    index = nd.Index(classifier=foreign(), window=None, force_domain=True, versions="refuse")
    index.add(nd.Document("a", TEXTS[0], 0.0))
    with pytest.raises(InputError):
        index.add_many([nd.Document("b", TEXTS[0] + " more", 1.0), nd.Document("a", TEXTS[1], 2.0)])
    assert index.statistics.domain_counts.candidates == 0


def test_a_comparison_warns_of_a_classifier_outside_its_domain() -> None:
    labels = [("d0", "d1", 1), ("d2", "d3", 0)]
    found = nd.compare(STORIES.table, labels, recipes=["default"], classifiers=[foreign()], thresholds=[0.5])
    (warning,) = (sentence for sentence in found.warnings if "does not fit" in sentence)
    assert says(warning, foreign().fingerprint, "100%")
    recipe, classifier = found.to_dict()["recipes"]
    assert "domain_counts" not in recipe
    counts = DomainCounts(**classifier["domain_counts"])
    assert counts.outside == counts.candidates > counts.passed > 0


def test_a_classifier_file_keeps_the_domain() -> None:
    classifier = replace(make_classifier(SETS), domain=domain())
    again = unpack_classifier(pack_classifier(classifier), "d")
    assert again.domain is not None
    assert again.domain.as_dict() == domain().as_dict()
    assert pack_classifier(again) == pack_classifier(classifier)


def test_many_candidates_bring_a_warning_before_they_are_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(second_step, "MANY_CANDIDATES", 10)
    with pytest.warns(ManyCandidates, match="candidates to judge.*minutes.*candidate_rule"):
        nd.dedup(STORIES.table, classifier=make_classifier(SETS))
