"""Groups that are dropped or kept whole, against a plain computation."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import naive
import pytest
from commands import neardup, read_lines, refused, write_lines
from hypothesis import given
from hypothesis import strategies as st
from sentences import says

import neardup as nd
from neardup.errors import RecipeError

RECIPE: dict[str, Any] = {"features": "words:1", "threshold": 0.6}


def forked_corpus(rng: random.Random, count: int) -> list[dict[str, Any]]:
    """Documents of a few groups that have many documents in common, some edited; some have no group, some no text."""
    texts = [" ".join(f"w{rng.randrange(400)}" for _ in range(rng.choice([0, 4, 8]))) for _ in range(12)]
    rows = []
    for number in range(count):
        words = rng.choice(texts).split()
        if words and rng.random() < 0.3:
            words[rng.randrange(len(words))] = f"x{number}"
        rows.append({"id": f"d{number}", "text": " ".join(words), "repo": rng.choice(["a", "b", "c", "d", "e", None])})
    return rows


def wanted(rows: list[dict[str, Any]], inputs: int, order: list[int], share: str) -> Mapping[Any, tuple[Any, int]]:
    sets = [frozenset(row["text"].split()) for row in rows]
    pairs = naive.all_pairs(sets, "jaccard", Fraction("0.6"), Fraction(0))
    groups = [(at >= inputs, row["repo"], None if row["repo"] else at) for at, row in enumerate(rows)]
    return naive.group_keepers(groups, pairs, order, Fraction(share), inputs)


@given(
    seed=st.integers(0, 10**9),
    count=st.integers(1, 40),
    share=st.sampled_from(["1", "0.9", "2/3", "0.5", "0.01"]),
    against=st.booleans(),
    longest=st.booleans(),
    threads=st.integers(1, 2),
    budget=st.sampled_from([None, "1MB"]),
)
def test_groups_are_those_of_naive(
    seed: int, count: int, share: str, against: bool, longest: bool, threads: int, budget: str | None
) -> None:
    rng = random.Random(seed)
    rows = forked_corpus(rng, count)
    inputs = rng.randint(1, count) if against else count
    order = list(range(inputs))
    if longest:
        order.sort(key=lambda at: -len(rows[at]["text"]))
    expected = wanted(rows, inputs, [*range(inputs, count), *order], share)
    reference: dict[str, Any] = {"against": rows[inputs:]} if inputs < count else {}
    result = nd.dedup(
        rows[:inputs],
        **reference,
        drop_by="repo",
        drop_share=share,
        threads=threads,
        memory=budget,
        keep="longest" if longest else "first",
        text_column="text",
        **RECIPE,
    )
    dropped = {group[1:]: (other[1], matched) for group, (other, matched) in expected.items()}
    assert {drop.id for drop in result.dropped} == {
        row["id"] for at, row in enumerate(rows[:inputs]) if (row["repo"], None if row["repo"] else at) in dropped
    }
    assert result.summary["drop_by"]["dropped"] == len(dropped)
    places = {row["id"]: at for at, row in enumerate(rows)}
    for row in result.duplicates().to_pylist():
        at = places[row["dropped"]]
        assert row["group"] == rows[at]["repo"]
        assert row["keeper_group"] == dropped[row["group"], None if row["group"] else at][0]
        assert row["keeper_group"] == rows[places[row["keeper"]]]["repo"]
        shared, union = (
            len(operation(set(rows[at]["text"].split()), set(rows[places[row["keeper"]]]["text"].split())))
            for operation in (set.intersection, set.union)
        )
        if row["similarity"]:
            assert row["similarity"] == shared / union >= 0.6


def test_a_fork_is_dropped_whole_and_a_group_with_news_stays_whole(tmp_path: Path) -> None:
    texts = [f"one{n} two{n} three{n} four{n} five{n}" for n in range(9)]
    numbers = {"main": range(5), "fork": range(5), "part": (0, 1, 8), "copies": (7, 7)}
    rows = [
        {"id": f"{repo}-{place}", "text": texts[n], "repo": repo}
        for repo, listed in numbers.items()
        for place, n in enumerate(listed)
    ]
    path, kept, table = write_lines(tmp_path / "in.jsonl", rows), tmp_path / "kept.jsonl", tmp_path / "dropped.jsonl"
    command = (
        "dedup",
        path,
        "--drop-by",
        "repo",
        "--duplicates",
        table,
        "--report",
        tmp_path / "page.html",
        "-o",
        kept,
    )
    stderr = neardup(*command, "--features", "words:2").stderr
    assert "1 of 4 values of repo dropped whole: fork (5 of 5 match main)" in stderr
    assert [row["id"] for row in read_lines(kept)] == [row["id"] for row in rows if row["repo"] != "fork"]
    assert {(row["group"], row["keeper_group"]) for row in read_lines(table)} == {("fork", "main")}
    assert "fork for main (5 of 5 match)" in (tmp_path / "page.html").read_text()
    summary = json.loads(
        neardup(*command[:4], "--dry-run", "--json", "--drop-share", "0.6", "--features", "words:2").stdout
    )
    assert [one["group"] for one in summary["drop_by"]["largest_dropped"]] == ["fork", "part"]
    result = nd.dedup(rows, drop_by="repo", features="words:2")
    assert result.explain("fork-1", "main-1").groups == (
        "repo 'fork' is dropped whole for 'main': 5 of its 5 documents match there",
        "repo 'main' stays whole",
    )
    assert result.at(1.0).summary["drop_by"]["dropped"] == 1
    pair = ("explain", path, "fork-1", "main-1", "--features", "words:2")
    explained = json.loads(neardup(*pair, "--drop-by", "repo", "--json").stdout)
    assert explained["groups"] == list(result.explain("fork-1", "main-1").groups)
    shown = " ".join(neardup(*pair, "--drop-by", "repo", "--drop-share", "0.6").stdout.split())
    assert "groups repo 'fork' is dropped whole for 'main': 5 of its 5 documents match there" in shown
    assert says(refused(*pair, "--drop-share", "0.6"), "--drop-share", "--drop-by")
    assert says(refused(*pair, "--drop-by", "rope"), "'rope'", "--drop-by", "repo")


def test_options_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "in.jsonl", [{"id": 1, "text": "a b c", "repo": "x"}])
    run = ("dedup", path, "--dry-run")
    assert says(refused(*run, "--drop-by", "rope"), "'rope'", "--drop-by", "repo")
    assert says(refused(*run, "--drop-share", "0.5"), "--drop-share", "--drop-by")
    assert says(refused(*run, "--drop-by", "repo", "--drop-share", "0"), "'0'", "above 0")
    assert says(refused(*run, "--drop-by", "repo", "--pairs-per-document", "9"), "--drop-by finds all")
    assert says(refused(*run, "--drop-by", "repo", "--engine", "spark"), "--drop-by", "in memory")
    for share in (0, 1.5, float("nan"), "many", True):
        with pytest.raises(RecipeError, match="drop_share"):
            nd.dedup([{"text": "a", "repo": "x"}], drop_by="repo", drop_share=share, text_column="text")
