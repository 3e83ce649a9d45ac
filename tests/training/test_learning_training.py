"""Training from texts and labels: what comes out, that it is the same again, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from labelled_texts import Row, labelled, write_labels
from saying import says
from trained import Texts

import neardup as nd
from neardup.classifier.classifier import rule_of
from neardup.classifier.vector import Vector
from neardup.documents import corpus_of
from neardup.errors import NeardupError
from neardup.training import fit as searching
from neardup.training.fit import Point
from neardup.training.labelled import LabelOptions, labelled_pairs
from neardup.training.training import Training, train

VECTOR = "jaccard(words:1), containment(words:2), numbers, cosine(words:1:tfidf)"
RULE = "jaccard(words:1) >= 0.2"


@pytest.fixture(autouse=True)
def small_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small grid: what it is for is tested elsewhere."""
    grid = {"linear": [Point("linear", 0.25)], "rbf": [Point("rbf", 1.0, 0.25)]}
    monkeypatch.setattr(searching, "_COARSE", grid)


@pytest.fixture(scope="module")
def made() -> tuple[Texts, list[Row]]:
    return labelled(mistakes=9)


def trained(made: tuple[Texts, list[Row]], **options: Any) -> Training:
    known, rows = made
    chosen = {"vector": VECTOR, "candidate_rule": RULE} | options
    return train(corpus_of(known.table), chosen.pop("rows", rows), **chosen)


def test_what_comes_out(made: tuple[Texts, list[Row]]) -> None:
    training = trained(made)
    rows = made[1]
    assert training.summary["pairs"] == len(rows)
    assert training.summary["duplicates"] == sum(label for *_, label in rows)
    decided = training.summary["trained_on"]
    assert len(training.classifier.scores) == len(training.classifier.labels) == decided
    undecided = training.summary["equal_texts"] + len(training.outside) + training.summary["others_outside_the_rule"]
    assert decided + undecided == len(rows)
    figures = training.figures
    assert figures.correct + figures.missed == training.summary["duplicates"]
    assert figures.wrong + figures.rejected == training.summary["others"]
    assert len(training.wrong) + len(training.outside) == figures.wrong + figures.missed
    assert (figures.f1.value or 0) > 0.7
    assert training.summary["folds"]["by"] == "groups"
    assert {weight.measure for weight in training.weights} == set(training.classifier.vector.names)
    assert [weight.contribution for weight in training.weights] == sorted(
        (w.contribution for w in training.weights), reverse=True
    )
    assert {w.measure: w.direction for w in training.weights}["numbers"] == "for"
    assert json.loads(json.dumps(training.summary))["fingerprint"] == training.classifier.fingerprint
    assert repr(training).endswith(f"F1 {figures.f1.value:.3f}>")


def test_what_is_judged_wrongly_is_said(made: tuple[Texts, list[Row]]) -> None:
    labels = {row[:2]: bool(row[2]) for row in made[1]}
    training = trained(made)
    assert training.wrong
    for one in training.wrong:
        assert labels[one.id1, one.id2] == one.duplicate
        if one.score is None or one.probability is None:
            continue
        assert (one.score >= 0) != one.duplicate
        strengths = [abs(push) for push in one.contributions.values()]
        assert strengths == sorted(strengths, reverse=True)
        assert list(one.contributions) == list(one.measures)
    sure = [max(o.probability, 1 - o.probability) for o in training.wrong if o.probability is not None]
    assert sure == sorted(sure, reverse=True)


def test_weights_of_a_linear_machine(made: tuple[Texts, list[Row]]) -> None:
    training = trained(made, kernels=("linear",))
    assert training.summary["machine"]["kernel"] == "linear"
    for weight in training.weights:
        place = training.classifier.vector.names.index(weight.measure)
        assert weight.coefficient == training.classifier.machine.support[0, place]
        if weight.contribution > 1e-9:
            assert weight.direction == ("for" if (weight.coefficient or 0) > 0 else "against")
    rbf = trained(made, kernels=("rbf",))
    assert all(weight.coefficient is None for weight in rbf.weights)
    assert rbf.summary["machine"]["gamma"] > 0


def test_the_same_labels_give_the_same_bytes(made: tuple[Texts, list[Row]], tmp_path: Path) -> None:
    known, rows = made
    one, other = tmp_path / "one.neardup", tmp_path / "other.neardup"
    trained(made, threads=1).classifier.save(one)
    turned = [(right, left, label) for left, right, label in reversed(rows)]
    train(corpus_of(known.table), turned, vector=VECTOR, candidate_rule=RULE, threads=3).classifier.save(other)
    assert one.read_bytes() == other.read_bytes()


def test_what_is_saved_decides(made: tuple[Texts, list[Row]], tmp_path: Path) -> None:
    known, rows = made
    training = nd.train(known.table, rows, vector=VECTOR, candidate_rule=RULE)
    training.classifier.save(tmp_path / "d.neardup")
    again = nd.load_classifier(tmp_path / "d.neardup")
    assert again.fingerprint == training.classifier.fingerprint
    assert again.training["figures"]["f1"]["value"] == training.figures.f1.value
    assert "wrong" not in again.training
    result = nd.dedup(known.table, classifier=again)
    assert result.dropped
    assert result.recipe.second_step == f"learned({again.fingerprint})"


def test_working_points(made: tuple[Texts, list[Row]]) -> None:
    training = trained(made)
    for point, asked in zip(training.working_points, (0.9, 0.95, 0.99), strict=True):
        assert point.asked == asked
        if point.cut is not None:
            assert point.cut == training.classifier.at_precision(asked).cut
    recalls = [point.recall.value or 0.0 for point in training.working_points]
    assert recalls == sorted(recalls, reverse=True)


def test_calibration_is_counted(made: tuple[Texts, list[Row]]) -> None:
    bins = trained(made).summary["calibration"]
    assert sum(one["pairs"] for one in bins) == trained(made).summary["trained_on"]
    for one in bins:
        assert one["from"] <= one["probability"] <= one["to"]
        assert 0 <= one["duplicates"] <= 1


def test_duplicates_outside_the_rule_count_as_missed(made: tuple[Texts, list[Row]]) -> None:
    training = trained(made, candidate_rule="jaccard(words:1) >= 0.5")
    assert training.outside
    assert training.figures.missed >= len(training.outside)
    warning = training.warnings[-1]
    assert says(
        warning, f"{len(training.outside)} of ", "outside the candidate rule", "jaccard(words:1) >= 0.5", "as missed"
    )
    assert [list(ids) for ids in training.outside] == training.summary["outside"]


def test_equal_texts_are_not_learned_from(made: tuple[Texts, list[Row]]) -> None:
    known, rows = made
    text = {row["id"]: row["text"] for row in known.rows}
    equal = [row for row in rows if text[row[0]] == text[row[1]]]
    assert equal
    training = trained(made)
    assert training.summary["equal_texts"] == len(equal)
    contrary = [(*row[:2], 0) if row == equal[0] else row for row in rows]
    wrong = trained(made, rows=contrary).wrong[0]
    assert (wrong.id1, wrong.id2, wrong.score, wrong.probability) == (*equal[0][:2], None, None)


@pytest.mark.parametrize("candidate_rule", [RULE, "containment(words:2) >= 0.5"])
def test_training_sees_what_a_run_sees(made: tuple[Texts, list[Row]], candidate_rule: str) -> None:
    known, rows = made
    vector = Vector.parse(VECTOR)
    pairs = labelled_pairs(
        corpus_of(known.table),
        rows,
        vector,
        rule_of(candidate_rule),
        LabelOptions(),
        threads=1,
        report=lambda stage, done, total: None,
    )
    classifier = trained(made, candidate_rule=candidate_rule).classifier.everything()
    result = nd.dedup(known.table, classifier=classifier)
    found = {(left, right) for left, right, _ in result.pairs}
    left, right = (np.array([int(pairs.ids(row)[side][1:]) for row in range(len(pairs))]) for side in (0, 1))
    assert [pairs.ids(row) in found for row in range(len(pairs))] == pairs.inside.tolist()
    rest = pairs.decided
    went_by = result.learned(left[rest], right[rest])
    assert went_by is not None
    assert np.array_equal(went_by.vectors, pairs.x[rest])
    assert np.array_equal(went_by.score, classifier.score(pairs.x[rest]))


def test_contents_are_compared_as_in_a_run(made: tuple[Texts, list[Row]]) -> None:
    known, rows = made
    pages = {"id": [row["id"] for row in known.rows], "text": [f"<p>{row['text']}</p><hr>" for row in known.rows]}
    training = train(corpus_of(pages), rows, vector=VECTOR, candidate_rule=RULE, content="tags")
    plain = trained(made)
    assert training.classifier.candidate_rule.content == "tags"
    assert np.array_equal(training.classifier.scores, plain.classifier.scores)
    assert training.summary["figures"] == plain.summary["figures"]


def test_titles_and_times(made: tuple[Texts, list[Row]]) -> None:
    training = trained(made, vector="jaccard(words:1), title, hours_apart", time_column="time")
    assert training.classifier.time_column == "time"
    unknown = [warning for warning in training.warnings if "is not known of" in warning]
    assert len(unknown) == 2
    assert unknown[0].startswith("title is not known of ")


def test_labels_from_files_and_stores(made: tuple[Texts, list[Row]], tmp_path: Path) -> None:
    from neardup.labels.store import Judgement, LabelStore

    known, rows = made
    path = tmp_path / "l.csv"
    lines = [f"{i},{j},{label},{'a' if at % 3 else 'b'}" for at, (i, j, label) in enumerate(rows)]
    path.write_text("id1,id2,level,part\n" + "\n".join(lines) + "\n")
    some = train(corpus_of(known.table), path, vector=VECTOR, candidate_rule=RULE, only="part=a")
    assert some.summary["pairs"] == len([i for i in range(len(rows)) if i % 3])
    place = tmp_path / "labels.db"
    with LabelStore(place) as store:
        said = ("different", "same")
        store.record([Judgement((min(i, j), max(i, j)), "anna", said[label]) for i, j, label in rows])
    stored = train(corpus_of(known.table), place, vector=VECTOR, candidate_rule=RULE)
    assert stored.classifier.fingerprint == trained(made).classifier.fingerprint


def test_a_large_group_is_told(made: tuple[Texts, list[Row]]) -> None:
    known, rows = made
    # One document beside all others holds them together.
    hub = next(row["id"] for row in known.rows if row["text"].split()[1] == "port:")
    beside = [(hub, row["id"], 0) for row in known.rows if row["id"] != hub]
    said = {frozenset(row[:2]) for row in rows}
    training = trained(made, rows=[*rows, *(row for row in beside if frozenset(row[:2]) not in said)])
    assert training.summary["folds"]["by"] in ("documents", "pairs")
    assert any("One group of connected pairs holds" in warning for warning in training.warnings)


def test_measures_that_tell_nothing(made: tuple[Texts, list[Row]]) -> None:
    rows = made[1]
    rng = np.random.default_rng(0)
    mixed = [(*row[:2], int(label)) for row, label in zip(rows, rng.random(len(rows)) < 0.5, strict=True)]
    training = trained(made, rows=mixed, vector="length_ratio")
    assert (training.gain.difference.value or 0) < 0.1
    assert training.classifier.machine.a < 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"rows": "few"},
            ("labelled duplicates: 3,", "others: ", "too few", "5 of each"),
        ),
        (
            {"candidate_rule": "jaccard(words:1) >= 0.99"},
            ("candidate rule jaccard(words:1) >= 0.99", "does not let through", "widen the"),
        ),
        ({"rows": [("d0", "d1", 0)]}, ("no label", "at or above 1", "no duplicates")),
        (
            {"rows": {"id": ["d0", "d1", "d2"], "cluster": [1, 1, 2]}},
            ("labels are clusters", "classifier is trained"),
        ),
        ({"vector": "semantic"}, ("semantic needs an encoder", "nd.train(..., encoder=...)")),
        ({"candidate_rule": "edit >= 0.5"}, ("edit", "no measure", "feature sets")),
        ({"kernels": ("poly",)}, ("kernels ['poly']", "linear, rbf")),
        ({"kernels": ()}, ("choose from linear, rbf",)),
        ({"folds": 1}, ("folds 1 ", "2 to 20")),
        ({"folds": 21}, ("folds 21 ", "2 to 20")),
        ({"seed": -1}, ("seed -1", "below 0")),
        ({"threads": 0}, ("threads 0", "below 1")),
        ({"vector": "title", "title_column": "headline"}, ("no column 'headline'",)),
        ({"only": "label=7"}, ("no row with '7'", "column 'label'")),
    ],
)
def test_refusals(made: tuple[Texts, list[Row]], options: dict[str, Any], words: tuple[str, ...]) -> None:
    if options.get("rows") == "few":
        different = {id(row["text"]): row for row in made[0].rows}
        text = {row["id"]: row["text"] for row in different.values()}
        same = [row for row in made[1] if row[2] and text[row[0]] != text[row[1]]][:3]
        options = {"rows": same + [row for row in made[1] if not row[2]]}
    with pytest.raises(NeardupError) as refused:
        trained(made, **options)
    assert says(refused.value, *words)


def test_an_empty_corpus() -> None:
    with pytest.raises(NeardupError, match="the input holds no documents"):
        train(corpus_of({"id": [], "text": []}), [("a", "b", 1)])


def test_the_command_and_the_function_agree(made: tuple[Texts, list[Row]], tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    known, rows = made
    pq.write_table(known.table, tmp_path / "t.parquet")
    write_labels(tmp_path / "l.csv", rows)
    with nd.open_files(tmp_path / "t.parquet") as corpus:
        found = nd.train(corpus, tmp_path / "l.csv", vector=VECTOR, candidate_rule=RULE)
    assert found.classifier.fingerprint == trained(made).classifier.fingerprint


def test_candidates_begin_where_labels_do(made: tuple[Texts, list[Row]]) -> None:
    known, rows = made
    free = train(corpus_of(known.table), rows, vector=VECTOR, kernels=["linear"])
    given = train(
        corpus_of(known.table), rows, vector=VECTOR, kernels=["linear"], candidate_rule="jaccard(words:3) >= 0.1"
    )
    assert free.figures == given.figures
    least = free.classifier.candidate_rule.threshold
    domain = free.classifier.domain
    assert domain is not None
    assert max(0.1, domain.similarity[0] - 0.01) <= least <= max(0.1, domain.similarity[0])
    assert given.classifier.candidate_rule.threshold == 0.1
