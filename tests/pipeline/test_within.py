"""Groups that are compared inside alone, and sources in order of trust."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import naive
import pyarrow as pa
import pytest
from references import ENGINES, SMALL, Pairs, corpus
from sentences import says

import neardup as nd
from neardup.errors import InputError, RecipeError

LANGUAGES = ["en", "de", None, "fr", ""]


def grouped(count: int, seed: int = 1) -> pa.Table:
    """Near copies in several languages, some in none."""
    texts, rng = corpus(count, seed), random.Random(seed)
    return pa.table({"text": texts, "language": [rng.choice(LANGUAGES) for _ in texts]})


def found_by(result: nd.Result) -> Pairs:
    return {(pair.left, pair.right): pair.similarity for pair in result.pairs}


def dropped_by(result: nd.Result) -> dict[int, tuple[int, float]]:
    return {drop.id: (drop.keeper, drop.similarity) for drop in result.dropped}


def inside(pairs: Pairs, groups: list[str | None]) -> Pairs:
    """The pairs of one group; null and empty are one."""
    return {key: value for key, value in pairs.items() if (groups[key[0]] or "") == (groups[key[1]] or "")}


@pytest.mark.parametrize("engine", ENGINES)
def test_only_pairs_within_a_group_are_found(engine: str) -> None:
    table, choices = grouped(200), ENGINES[engine]
    count, groups = len(table), table["language"].to_pylist()
    pairs = found_by(nd.dedup(table, pairs_per_document=None, **choices))
    expected = inside(pairs, groups)
    assert 10 < len(expected) < len(pairs)
    result = nd.dedup(table, within="language", pairs_per_document=0, **choices)
    assert found_by(result) == pytest.approx(expected)
    assert found_by(result).keys() == expected.keys()
    assert dropped_by(result) == naive.keepers(count, found_by(result), range(count))
    assert [family.members for family in result.families] == naive.families(count, expected)
    if engine == "sets":
        texts = table["text"].to_pylist()
        copies = {(texts[at], groups[at] or "") for at in range(count) if texts[at]}
        assert result.summary["exact_copies"] == sum(map(bool, texts)) - len(copies)
        assert result.summary["within"] == "language"


def test_groups_apply_to_a_reference_and_with_little_memory() -> None:
    table = grouped(250)
    new, old, groups = table.slice(0, 100), table.slice(100), table["language"].to_pylist()
    expected = {
        pair: value
        for pair, value in inside(found_by(nd.dedup(table, **ENGINES["sets"])), groups).items()
        if pair[0] < 100
    }
    for memory in (None, SMALL):
        found = nd.dedup(new, against=old, within="language", memory=memory, **ENGINES["sets"])
        pairs = found.pairs.to_arrow().to_pylist()
        listed = [(row["left"], row["right"] + 100 * (row["right_from"] == "reference")) for row in pairs]
        assert listed == sorted(expected)
        dropped = naive.keepers(len(table), expected, [*range(100, len(table)), *range(100)])
        assert [drop.id for drop in found.dropped] == sorted(dropped)
    with pytest.raises(InputError) as caught:
        nd.dedup(new, against=old.drop_columns(["language"]), within="language")
    assert says(caught.value, "language")


def test_a_margin_searches_within_groups() -> None:
    table = grouped(150)
    result = nd.dedup(table, within="language", features="words:1", threshold=0.6, margin=0.2)
    for threshold in (0.4, 0.7):
        again = nd.dedup(table, within="language", features="words:1", threshold=threshold)
        assert found_by(result.at(threshold)) == found_by(again)
        assert dropped_by(result.at(threshold)) == dropped_by(again)


@pytest.mark.parametrize("keep", ["first", "longest"])
def test_preference_precedes_the_keep_order(keep: str) -> None:
    texts, rng = corpus(150), random.Random(2)
    sources = [rng.choice(["wire", "blog", "mail", None]) for _ in texts]
    table = pa.table({"text": texts, "source": sources})
    trust = {"blog": 0, "wire": 1}
    result = nd.dedup(table, prefer="source=blog,wire", keep=keep, **ENGINES["sets"])
    order = sorted(
        range(len(texts)), key=lambda d: (trust.get(sources[d] or "", 2), -len(texts[d]) if keep == "longest" else 0)
    )
    assert dropped_by(result) == naive.keepers(len(texts), found_by(result), order)
    again = nd.dedup(table, prefer=("source", ["blog", "wire"]), keep=keep, **ENGINES["sets"])
    assert dropped_by(again) == dropped_by(result)
    against = nd.dedup(table, against=["other"], prefer="source=blog,wire", keep=keep, **ENGINES["sets"])
    assert against.kept == result.kept


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"within": "lang"}, "'lang'"),
        ({"prefer": "source=a"}, "'source'"),
        ({"prefer": "language=xx"}, "xx"),
        ({"prefer": "language"}, "language"),
        ({"prefer": "language=en,en"}, "en,en"),
        ({"prefer": ("language", [])}, "language"),
        ({"within": "tags"}, "tags"),
    ],
)
def test_options_without_effect_are_refused(options: dict[str, Any], part: str) -> None:
    table = grouped(20)
    table = table.append_column("tags", pa.array([["a"]] * len(table)))
    with pytest.raises((InputError, RecipeError)) as caught:
        nd.dedup(table, **options)
    assert part in str(caught.value)


def test_columns_of_files_form_groups(tmp_path: Path) -> None:
    table, path = grouped(60), tmp_path / "a.jsonl"
    table = table.append_column("n", pa.array([at % 3 for at in range(len(table))]))
    rows = [json.dumps(row) + "\n" for row in table.to_pylist()]
    path.write_text("".join([*rows[:5], "broken\n", *rows[5:]]))
    plain = nd.dedup(table, within="n", prefer="language=de", **ENGINES["sets"])
    places = [*range(5), *range(6, len(table) + 1)]
    with nd.dedup_files(path, within="n", prefer="language=de", **ENGINES["sets"]) as read:
        assert read.kept == [places[row] for row in plain.kept]
