"""Labels: read from all formats, equal to plain sets, with warnings, and refused with a message."""

from __future__ import annotations

import gzip
import itertools
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sentences import says

from neardup.errors import InputError, NeardupError, RecipeError
from neardup.evaluation.population import read_votes
from neardup.labelling.label_index import read_answers
from neardup.labels.labels import DUPLICATE, NON_DUPLICATE, UNLABELLED, Labels, cluster_labels, read_labels
from neardup.labels.table import positions_by_id

NAMES = ["a", "b", "c", "d", "e"]
ROWS = [("a", "b", 1), ("c", "a", 0), ("d", "e", 2)]


def pair_labels(labels: Labels, names: list[str] = NAMES) -> dict[tuple[str, str], int]:
    """The label of every pair."""
    left, right = np.triu_indices(len(names), 1)
    verdicts = labels.pair_labels(left.astype(np.int64), right.astype(np.int64)).tolist()
    return {(names[i], names[j]): v for i, j, v in zip(left.tolist(), right.tolist(), verdicts, strict=True)}


def labelled_pairs(labels: Labels, names: list[str] = NAMES) -> dict[tuple[str, str], int]:
    """The labels of the labelled pairs."""
    return {pair: verdict for pair, verdict in pair_labels(labels, names).items() if verdict != UNLABELLED}


EXPECTED = {("a", "b"): DUPLICATE, ("a", "c"): NON_DUPLICATE, ("d", "e"): DUPLICATE}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("l.csv", "id1,id2,label\na,b,1\nc,a,0\nd,e,2\n"),
        ("l.csv", "\ufeffnote,Left,right,LEVEL\nx,a,b,1\ny,c,a,0\nz,d,e,2.0\n"),
        ("l.csv", "one;other;label\n\na;b;1\nc;a;0\nd;e;1\nb;a;1\n"),
        ("l.tsv", 'one\tother\tlabel\na\tb\t1\n"c"\ta\t0\nd\te\t1\n'),
        (
            "l.jsonl",
            '{"id1":"a","id2":"b","label":true}\n\n{"id1":"c","id2":"a","label":0}\n'
            '{"id1":"d","id2":"e","label":"1"}\n',
        ),
    ],
)
def test_pairs_are_read_from_files(tmp_path: Path, name: str, content: str) -> None:
    plain, packed = tmp_path / name, tmp_path / f"{name}.gz"
    plain.write_text(content, "utf-8")
    packed.write_bytes(gzip.compress(content.encode()))
    for path in (plain, packed):
        assert labelled_pairs(read_labels(path, NAMES)) == EXPECTED


def test_pairs_are_read_from_memory() -> None:
    lists = {"left": ["a", "c", "d"], "right": ["b", "a", "e"], "level": [3, 0.0, 1]}
    # Python has no times this late.
    timed = pa.table(lists).append_column("time", pa.array([2**40] * 3, pa.timestamp("s")))
    for source in (ROWS, pd.DataFrame(ROWS, columns=["id1", "id2", "label"]), lists, timed):
        assert labelled_pairs(read_labels(source, NAMES)) == EXPECTED


def test_levels_complete_lists_and_label_columns() -> None:
    (warning,) = [text for text in read_labels(ROWS, NAMES, positive=2).warnings if "levels" in text]
    assert says(warning, "at or above 2 ", "duplicates", "positive")
    assert not [text for text in read_labels(ROWS[:2], NAMES).warnings if "levels" in text]
    assert labelled_pairs(read_labels(ROWS, NAMES, positive=2))[("a", "b")] == NON_DUPLICATE
    complete = pair_labels(read_labels(ROWS, NAMES, complete=True))
    assert set(complete.values()) == {DUPLICATE, NON_DUPLICATE}
    assert [pair for pair, verdict in complete.items() if verdict == DUPLICATE] == [("a", "b"), ("d", "e")]
    assert labelled_pairs(read_labels([("a", "b"), ("e", "d")], NAMES, complete=True)) == complete
    table = {"id1": ["a", "b"], "id2": ["b", "c"], "label": [1, 1], "mine": [0, 1]}
    assert labelled_pairs(read_labels(table, NAMES, label_column="mine")) == {
        ("a", "b"): NON_DUPLICATE,
        ("b", "c"): DUPLICATE,
    }


def test_only_selects_rows(tmp_path: Path) -> None:
    path = tmp_path / "l.csv"
    path.write_text("id1,id2,label,split\na,b,1,train\nc,a,0,train\nd,e,maybe,val\nx,y,1,\n")
    expected = {("a", "b"): DUPLICATE, ("a", "c"): NON_DUPLICATE}
    assert labelled_pairs(read_labels(path, NAMES, only=" split = train ")) == expected
    table = {"left": ["a", "c", "d"], "right": ["b", "a", "e"], "label": [1, 0, 1], "kept": [True, True, False]}
    assert labelled_pairs(read_labels(table, NAMES, only="kept=1")) == expected
    with pytest.raises(InputError) as caught:
        read_labels(path, NAMES, only="split=val")
    assert says(caught.value, "line 4", "label 'maybe'", "no answer")


def test_clusters_are_read_from_a_file_and_a_column(tmp_path: Path) -> None:
    path = tmp_path / "clusters.csv"
    path.write_text("cluster,id\nx,a\ny,b\nx,c\ny,d\n")
    given = read_labels(path, NAMES)
    column = cluster_labels(["x", "y", "x", "y", None], NAMES, "column 'c'")
    assert pair_labels(given) == pair_labels(column)
    assert [pair for pair, verdict in pair_labels(given).items() if verdict == DUPLICATE] == [("a", "c"), ("b", "d")]
    assert (given.duplicates, given.different_pairs, given.groups, given.complete) == (2, 8, 3, True)
    assert says(column.warnings[0], "1 of 5 documents", "no cluster", "column 'c'")
    assert says(given.warnings[0], "1 of 5 documents", "no cluster", str(path))


pairs = st.lists(
    st.tuples(st.integers(0, 7), st.integers(0, 7), st.booleans()).filter(lambda row: row[0] != row[1]),
    unique_by=lambda row: (min(row[:2]), max(row[:2])),
)


@given(pairs, st.booleans())
def test_labels_and_groups_equal_plain_sets(rows: list[tuple[int, int, bool]], complete: bool) -> None:
    names = [str(i) for i in range(8)]
    truth = {(min(i, j), max(i, j)): duplicate for i, j, duplicate in rows}
    try:
        labels = read_labels([(i, j, d) for i, j, d in rows], names, complete=complete) if rows else None
    except RecipeError:
        assert not any(truth.values()) or (all(truth.values()) and not complete) or len(truth) == 28
        return
    if labels is None:
        return
    verdicts = {(int(i), int(j)): verdict for (i, j), verdict in pair_labels(labels, names).items()}
    rest = NON_DUPLICATE if complete else UNLABELLED
    assert verdicts == {
        pair: (DUPLICATE if truth[pair] else NON_DUPLICATE) if pair in truth else rest
        for pair in itertools.combinations(range(8), 2)
    }
    assert labels.duplicates == sum(truth.values())
    assert labels.different_pairs == (28 - labels.duplicates if complete else len(truth) - labels.duplicates)
    groups = [{i} for i in range(8)]
    for (i, j), duplicate in truth.items():
        if duplicate:
            one, other = (next(g for g in groups if k in g) for k in (i, j))
            if one is not other:
                groups = [g for g in groups if g is not one and g is not other] + [one | other]
    assert labels.group.tolist() == [min(next(g for g in groups if i in g)) for i in range(8)]
    large = {min(g) for g in groups if len(g) > 1}
    for i, j in itertools.combinations(range(8), 2):
        left, right = int(labels.group[i]), int(labels.group[j])
        expected = left if left in large or right not in large else right
        assert labels.pair_groups(np.array([i]), np.array([j])).tolist() == [expected]


def test_few_computed_and_unknown_labels_bring_warnings() -> None:
    names = [f"d{i}" for i in range(300)]
    many = [(names[2 * i], names[2 * i + 1], 1) for i in range(60)] + [(names[i], names[299], 0) for i in range(60)]
    assert read_labels(many, names).warnings == ()
    few = read_labels(many[:10] + many[60:], names).warnings
    assert says(few[0], "Few labels: 10 duplicates", "up to 26%")
    assert "in 10 groups" in few[1]
    assert says(read_labels(many[:70], names).warnings[0], "Few labels: 10 pairs", "no duplicates")
    computed = read_labels([(*row[:2], row[2] * 0.83) for row in many], names, positive=0.8).warnings
    assert says(computed[0], "Computed labels", "0.83")
    (warning,) = read_labels([*many, ("d0", "nobody", 1)], names, ignore_unknown=True).warnings
    assert says(warning, "1 of the 121", "left out", "not in the corpus", "ids")
    found = read_labels([("d1", "d1", 1), *many, ("d2", "d2", 0)], names)
    assert says(found.warnings[0], "2 of the 122 rows", "pair a document with itself, such as", "row 0", "not used")
    assert np.array_equal(found.keys, read_labels(many, names).keys)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rows", "options", "words"),
    [
        ([("a", "b", 1), ("x", "y", 0)], {}, ("2 ids", "'x'", "not in the corpus", "'a', 'b'")),
        ([("a", "b", 1), ("x", "c", 0)], {}, ("id 'x'", "not in the corpus")),
        ([("x", "y", 1)], {"ignore_unknown": True}, ("no label of a pair", "this corpus")),
        ([("a", "b", 1), ("a", "c", 1)], {}, ("duplicates only (2)", "complete=True")),
        ([("a", "b", 0)], {}, ("at or above 1,", "no duplicates", "positive")),
        ([("a", "b", None)], {}, ("no label of a pair",)),
        ([("a", None, 1)], {}, ("row 0", "no id", "column 'id2'")),
        ([("a", "b", 1), ("b", "a", 0)], {}, ("row 1", "'a' and 'b'", "two labels", "1 and 0")),
        ([("a", "b")], {}, ("columns id1, id2,", "label_column")),
        ([("a", "b", 1)], {"label_column": "mine"}, ("no column 'mine'", "label_column", "id1, id2, label")),
        ([("a", "b", 1), ("a", "b")], {}, ("rows", "two or three values")),
        ({"id": ["a"]}, {}, ("columns id,", "two ids")),
        ({"cluster": ["a"]}, {}, ("one column 'cluster'",)),
        ({"id": ["a", "b"], "cluster": [1, 2]}, {}, ("no two documents", "cluster")),
        ({"id": ["a", "a"], "cluster": [1, 2]}, {}, ("document 'a'", "two clusters", "'1' and '2'")),
        ({"id": list("abcde"), "cluster": [1] * 5}, {}, ("duplicates only (10)", "add documents")),
        (7, {}, ("int cannot be read",)),
    ],
)
def test_unusable_rows_are_refused(rows: Any, options: dict[str, Any], words: tuple[str, ...]) -> None:
    with pytest.raises(NeardupError) as refused:
        read_labels(rows, NAMES, **options)
    assert says(refused.value, *words)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("labels.db", None, ("labels.db", "No such file", "check the name")),
        ("l.csv", None, ("l.csv", "No such file")),
        ("l.xlsx", b"", ("l.xlsx", "cannot be read as labels")),
        ("l.csv", b"", ("no labels",)),
        ("l.csv", b"id1,id2,label\n", ("no labels",)),
        ("l.csv", b"id1,id2,id2\na,b,1\n", ("two columns 'id2'",)),
        ("l.csv", b"id1,id2,label\na,b,1\na,c\n", ("line 3", "2 cells", "header has 3")),
        ("l.csv", b"id1,id2,label\na,b,\xff\n", ("not UTF-8", "byte 18")),
        ("l.csv", b"id1,id2,label\n\na,b,maybe\n", ("line 3", "label 'maybe'", "no answer")),
        ("l.jsonl", b'{"id1": "a"}\n[1]\n', ("line 2", "no JSON object")),
        ("l.csv.gz", b"id1,id2,label\n", ("cannot be read",)),
    ],
)
def test_unusable_files_are_refused(tmp_path: Path, name: str, content: bytes | None, words: tuple[str, ...]) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError) as refused:
        read_labels(str(path), NAMES)
    assert says(refused.value, *words)


def test_a_label_means_the_same_to_every_reader(tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    path.write_text("id1,id2,label\na,b,Same\na,c,0\nb,c,?\nd,e,yes\na,d,\nb,d, \nb,a,1\n")
    labels = read_labels(path, NAMES)
    assert labelled_pairs(labels) == EXPECTED
    assert [warning.partition(" of ")[0] for warning in labels.warnings[:2]] == ["2", "1"]
    votes = read_votes(path, positions_by_id(NAMES))
    assert [NAMES[i] + NAMES[j] + answer[0] for i, j, answer in votes] == ["abs", "acd", "bcu", "des", "bas"]
    answers = read_answers(path, labeller="anna")
    assert [(*pair, answer) for pair, _, answer in answers.rows] == [
        *(("a", "b", "same"), ("a", "c", "different"), ("b", "c", "unsure"), ("d", "e", "same"), ("a", "b", "same")),
    ]
    assert answers.empty == 2


def test_labels_are_bounded_by_their_file(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.csv.gz"
    bomb.write_bytes(gzip.compress(b"id1,id2,label\n" + b"a" * 100_000_000))
    wide = tmp_path / "wide.csv"
    wide.write_text(",".join(f"c{number}" for number in range(300_000)) + "\n")
    long = tmp_path / "long.jsonl"
    long.write_text('{"id1": "a", "id2": "b", "label": ' + "9" * 5000 + "}")
    os.mkfifo(tmp_path / "pipe.csv")
    for path, words in (
        (bomb, "200 times"),
        (wide, "label"),
        (long, "line 1"),
        (tmp_path / "pipe.csv", "cannot be read"),
    ):
        with pytest.raises(InputError) as caught:
            read_labels(path, NAMES)
        assert says(caught.value, path.name, words)
        assert len(str(caught.value)) < 3000
