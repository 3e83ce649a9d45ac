"""The retrieval phase: all near-duplicates of one new document by a classifier, beside a run over it and all others."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sentences import says
from trained_classifiers import DATED, FACTS, SETS, WEIGHED, texts, trained

import neardup as nd
from neardup.errors import RecipeError

KNOWN = texts(70, seed=41)
TABLE = KNOWN.table
NEW = [*texts(70, seed=42).rows, *KNOWN.rows[::9]]
#: In a run, equal texts stand for each other, with the title and the time of the first.
DISTINCT = pa.Table.from_pylist(list({row["text"]: row for row in KNOWN.rows}.values()), TABLE.schema)
OTHERS = [row for row in NEW if row["text"] not in {known["text"] for known in KNOWN.rows}]


@given(
    st.tuples(st.just(TABLE), st.sampled_from(NEW), st.sampled_from([SETS, FACTS, WEIGHED]))
    | st.tuples(st.just(DISTINCT), st.sampled_from(OTHERS), st.just(DATED)),
    st.sampled_from(["linear", "rbf"]),
    st.sampled_from([0.0, -1.5, float("-inf")]),
    st.integers(1, 2),
)
def test_a_query_finds_what_a_run_finds(
    asked: tuple[pa.Table, dict[str, Any], str], kernel: str, cut: float, threads: int
) -> None:
    table, row, vector = asked
    classifier = replace(trained(vector, kernel), cut=cut)
    about = {"title": row["title"], "time": row["time"]} if vector == DATED else {}
    answer = nd.query(table, row["text"], classifier=classifier, threads=threads, **about)
    more = pa.concat_tables([table, pa.Table.from_pylist([row | {"id": "new"}], TABLE.schema)])
    result = nd.dedup(more, classifier=classifier)
    expected = [r for r in result.pairs.to_arrow().to_pylist() if r["right"] == "new"]
    order = {name: at for at, name in enumerate(table["id"].to_pylist())}
    expected.sort(key=lambda r: (-r["similarity"], order[r["left"]]))
    assert answer.to_arrow().to_pylist() == [
        {"document": r["left"], **{name: r[name] for name in ("similarity", "score", "evidence")}} for r in expected
    ]
    assert [tuple(one) for one in answer] == [(r["left"], r["similarity"]) for r in expected]
    assert answer.documents == len(table)
    assert answer.candidates >= len(answer)
    assert answer.to_arrow(full=True).column_names == ["document", "similarity", "score", "evidence", "measures"]


def test_titles_and_times_of_a_query_are_measured() -> None:
    classifier = trained(DATED).without_cut()
    row = next(row for row in KNOWN.rows if row["title"] and row["time"])
    text = row["text"] + " again"

    def found(**about: Any) -> float:
        answer = nd.query(TABLE, text, classifier=classifier, **about)
        (mine,) = (r for r in answer.to_arrow(full=True).to_pylist() if r["document"] == row["id"])
        return float(mine["score"])

    moment = datetime.fromisoformat(row["time"])
    assert found(title=row["title"], time=row["time"]) == found(title=row["title"], time=moment)
    assert found(title=row["title"], time=row["time"]) == found(title=row["title"], time=moment.timestamp())
    assert len({found(), found(title=row["title"]), found(time=row["time"]), found(title="other words")}) == 4
    assert found(time=datetime(1999, 1, 1, tzinfo=UTC)) != found(time=row["time"])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"classifier": trained(SETS), "k": 3}, ("k 3", "the nearest", "a classifier")),
        ({"classifier": trained(SETS), "threshold": 0.4}, ("threshold=0.4", "a classifier")),
        ({"classifier": trained(SETS), "title": "A"}, ("title 'A'", "classifier", "compares titles", "leave it out")),
        ({"classifier": trained(SETS), "time": 3}, ("time 3", "classifier", "compares times", "leave it out")),
        ({"title": "A"}, ("title 'A'", "classifier", "compares titles", "leave it out")),
        ({"classifier": trained(DATED), "time": "soon"}, ("time 'soon'", "1 and 9999", "ISO 8601")),
        ({"classifier": trained(DATED), "title_column": "x"}, ("no column 'x'", "id, text, title")),
        ({"second_step": trained(SETS).recipe.second_step}, ("needs the classifier", "fingerprint", "there is none")),
    ],
)
def test_options_that_do_not_fit_are_refused(given: dict[str, Any], said: tuple[str, ...]) -> None:
    with pytest.raises(RecipeError) as error:
        nd.query(TABLE, str(KNOWN.rows[0]["text"]), **given)
    assert says(error.value, *said)
