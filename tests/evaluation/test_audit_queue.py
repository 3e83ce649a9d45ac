"""The drawn pairs on the page of labels."""

from __future__ import annotations

from pathlib import Path

import pytest
from saying import says
from test_audit import DATA, duplicates

from neardup.documents import corpus_of
from neardup.evaluation.audit import Sample, draw_sample
from neardup.evaluation.population import votes_of, votes_of_store
from neardup.labelling.index import LabelIndex
from neardup.labelling.session import SampleQueue, Session
from neardup.labels.store import LabelStore
from neardup.recipe import Recipe


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
        found = drawing.audit(drawing.judged(votes_of_store(store.labels, drawing.places)))
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
        votes = list(votes_of_store(store.labels, drawing.places))
    assert sorted(votes_of(path, drawing.places)) == sorted(votes)
    assert drawing.judged(votes).answers[:4] == ["unsure", "same", "different", ""]
