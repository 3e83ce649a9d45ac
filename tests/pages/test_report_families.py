"""What a report shows of families, members and pairs, against the definitions; its page, the same for the same run."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import browser
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from trained_classifiers import SETS, texts, trained
from ways import TEXTS, WAYS

import neardup as nd
from neardup.documents import corpus_of
from neardup.pages.batch_report import run_report
from neardup.pages.report import COPY, EQUAL_FEATURES, KEPT, NEAR, Report
from neardup.pages.report_charts import build_charts
from neardup.pages.report_page import report_page
from neardup.pages.sweep import rule_in_words
from neardup.pipeline.pipeline import run
from neardup.pipeline.result import Result
from neardup.recipe import Recipe


def made(documents: Any, recipe: Recipe, options: dict[str, Any] | None = None, **wanted: Any) -> tuple[Result, Report]:
    result = run(corpus_of(documents), recipe, threads=1, **(options or {}))
    return result, run_report(result._found, result.summary, **wanted)


def plain_reasons(documents: list[str], recipe: Recipe, result: Result) -> dict[int, str]:
    """Why each dropped document went, by going through the documents in keep order."""
    pairs = {(pair.left, pair.right): pair.similarity for pair in result.pairs}
    order = {
        "first": lambda place: place,
        "longest": lambda place: (-len(documents[place].encode()), place),
        "shortest": lambda place: (len(documents[place].encode()), place),
    }[recipe.keep]
    ranked = sorted(range(len(documents)), key=order)
    said = {}
    for drop in result.dropped:
        before = ranked[: ranked.index(drop.id)]
        representative = result._joined.representative
        if any(documents[one] == documents[drop.id] for one in before):
            said[drop.id] = COPY
        elif any(representative[one] == representative[drop.id] for one in before):
            said[drop.id] = EQUAL_FEATURES
        else:
            said[drop.id] = NEAR
    assert all(pairs[tuple(sorted((drop.id, drop.keeper)))] == drop.similarity for drop in result.dropped)
    return said


@pytest.mark.parametrize("way", ["jaccard", "multiset", "cosine", "edit", "then", "hamming"])
@given(TEXTS)
@settings(max_examples=5)
def test_what_is_said_of_families_is_what_the_pairs_say(way: str, documents: list[str]) -> None:
    recipe, around = WAYS[way]
    result, report = made(documents, recipe, {"margin": around})
    why = plain_reasons(documents, recipe, result)
    assert {name: number for name, number, _ in report.reasons} == {
        name: list(why.values()).count(name) for name in (COPY, EQUAL_FEATURES, NEAR)
    }
    assert sum(report.similarity) == len(result.dropped) == report.dropped == report.rows_total
    assert [(row.id, row.keeper, row.similarity, row.family, row.reason) for row in report.rows] == [
        (str(drop.id), str(drop.keeper), drop.similarity, drop.family, why[drop.id]) for drop in result.dropped
    ]
    by_size = sorted(result.families, key=lambda family: (-len(family.members), family.number))
    assert [family.number for family in report.families] == [family.number for family in by_size]
    matching = {frozenset((pair.left, pair.right)) for pair in result.pairs}
    drops = {drop.id: drop for drop in result.dropped}
    for shown, family in zip(report.families, by_size, strict=True):
        assert (shown.documents, shown.pairs, shown.complete) == (len(family.members), family.pairs, family.complete)
        assert (shown.smallest, shown.mean) == (family.smallest, family.mean)
        listed = [int(member.document.id) for member in shown.members]
        assert set(listed) <= set(family.members)
        assert shown.hidden == len(family.members) - len(listed)
        gone = [member for member in shown.members if member.reason != KEPT]
        assert all(member.reason == why.get(int(member.document.id), KEPT) for member in shown.members)
        assert [member.similarity for member in gone] == sorted(drops[int(one.document.id)].similarity for one in gone)
        assert all(
            member.keeper is not None and member.keeper.id == str(drops[int(member.document.id)].keeper)
            for member in gone
        )
        apart = {
            frozenset((one.document.id, other.document.id))
            for one, other in combinations(gone, 2)
            if one.keeper == other.keeper and frozenset((int(one.document.id), int(other.document.id))) not in matching
        }
        assert {frozenset((one.document.id, other)) for one in gone for other in one.unmatched_ids} == apart
        assert shown.unmatched_pairs == len(apart)
        own = report.sweep.own_index if report.sweep else 0
        assert all(member.dropped_at[own] == str(int(member.reason != KEPT)) for member in shown.members)


@pytest.mark.parametrize("way", ["jaccard", "containment", "weighted", "euclidean", "then"])
@given(TEXTS, st.integers(0, 3))
@example(["fox", "fox fox fox", "fox dog owl ran", "fox dog owl sat"], 1)
@settings(max_examples=5)
def test_cases_are_the_nearest_pairs_on_both_sides(way: str, documents: list[str], count: int) -> None:
    recipe, around = WAYS[way]
    result, report = made(documents, recipe, {"margin": around}, cases=count)
    matching = {(str(pair.left), str(pair.right)): pair.similarity for pair in result.pairs}
    every = result._found.margin
    assert every is not None
    assert every.matches is not None
    scale = result._found.criterion
    known = zip(every.matches.left, every.matches.right, scale.similarities(every.matches), strict=True)
    below = {(str(one), str(other)): value for one, other, value in known if (str(one), str(other)) not in matching}
    sides = ((report.matching_examples, True, matching), (report.unmatched_examples, False, below))
    for cases, matches, pairs in sides:
        assert all(case.matches == matches for case in cases)
        assert all(pairs[case.left.id, case.right.id] == case.similarity for case in cases)
        assert len({(case.left.id, case.right.id) for case in cases}) == len(cases)
    assert len(report.unmatched_examples) == min(count, len(below))
    if report.unmatched_examples:
        assert report.unmatched_examples[0].similarity == max(below.values())
    unequal = [value for value in matching.values() if value < 1]
    if report.matching_examples and unequal:
        assert report.matching_examples[0].similarity == min(unequal)


def test_a_classifier_says_what_pushed_and_knows_every_probability() -> None:
    classifier = trained(SETS)
    report = made(texts(40, 2).table, classifier.recipe, {"classifier": classifier, "margin": 0.2})[1]
    assert report.sweep is not None
    assert report.sweep.threshold_name == "probability"
    assert report.sweep.thresholds[0] == 0.01
    members = [member for family in report.families for member in family.members if member.reason == NEAR]
    assert all("pushed by" in member.evidence for member in members)
    assert "candidates of its rule" in report.facts["classifier"]
    assert report.unmatched_examples
    assert all(not case.matches for case in report.unmatched_examples)
    plain = made(texts(40, 2).table, classifier.recipe, {"classifier": classifier})[1]
    assert plain.unmatched_examples == []
    assert "not looked for" in plain.missing_pairs_note
    assert [case.similarity for case in plain.matching_examples] == [
        case.similarity for case in report.matching_examples
    ]


def test_recipes_without_a_threshold_that_matters_have_no_sweep() -> None:
    documents = ["a b c", "a b c", "A b c", "x"]
    _, report = made(documents, Recipe(features="checksum:sha1", threshold=1.0), {"margin": 0.2})
    assert report.sweep is None
    assert "one value" in report.missing_pairs_note
    assert report.dropped == 2
    lsh = made(documents, Recipe(features="words:1", search="lsh", threshold=0.8), {"margin": 0.2})[1]
    assert lsh.sweep is not None
    assert lsh.sweep.own_index == 0
    assert not lsh.sweep.is_exact
    assert "LSH" in lsh.missing_pairs_note


def test_where_pairs_are_unknown_the_report_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from neardup.search import engines

    monkeypatch.setattr(engines, "_ALWAYS_ALLOWED_PAIRS", 3)
    documents = [f"fox dog owl ran number {i} of them" for i in range(9)]
    recipe = Recipe(features="words:1", threshold=0.5)
    result, report = made(documents, recipe, {"pairs_per_document": 0.3, "margin": 0.2})
    assert not result.summary["all_pairs"]
    assert report.sweep is None
    assert report.pair_similarity == ()
    assert report.families[0].unmatched_pairs is None
    assert report.families[0].pairs is None
    assert any("pairs_per_document" in note for note in report.notes)


def test_an_empty_corpus_and_one_without_duplicates_have_reports() -> None:
    for documents in ([], [""], ["", ""], ["a rose"], ["a rose", "a tulip in a garden"]):
        result, report = made(documents, Recipe(), {"margin": 0.2})
        assert report.documents == report.kept == len(documents)
        assert not report.families
        assert not report.rows
        assert sum(report.similarity) == 0
        assert result.plot_similarity().to_dict()["layer"]


pytest.importorskip("vl_convert", reason="the packages that draw charts are not installed")

BASE = "the harbour board voted on tuesday to widen the eastern channel at a cost of forty million crowns this year"
TABLE = pa.table(
    {
        "id": ["a", "b", "c", "d"],
        "text": [BASE, BASE + ".", BASE.replace("tuesday", "wednesday"), "one"],
        "title": ["Harbour", "Harbour again", "Harbour on wednesday", "one word"],
    }
)


@pytest.mark.parametrize(
    ("recipe", "said"),
    [
        (Recipe(), "at least 85% of the runs of 5 words that either of them has."),
        (
            Recipe(features="words:1", threshold=0.2, second_step="learned(d2268620b306f7f8)"),
            ", and a classifier says so.",
        ),
        (
            Recipe(signature="simhash", measure="hamming", threshold=3),
            "at most 3 of the 64 bits of their SimHashes differ.",
        ),
    ],
)
def test_a_match_in_plain_words(recipe: Recipe, said: str) -> None:
    assert rule_in_words(recipe).startswith("Two documents match if ")
    assert rule_in_words(recipe).endswith(said)


def test_pages_of_simhash_count_bits() -> None:
    documents = [BASE, BASE.upper(), *(f"{BASE} {more}" for more in ("again", "today it said", "with more to come"))]
    recipe = Recipe(features="words:1", signature="simhash", measure="hamming", threshold=6)
    result, report = made(documents, recipe, {"margin": 6})
    assert report.sweep is not None
    apart = [round(64 * (1 - pair.similarity)) for pair in result.pairs if pair.similarity < 1]
    (similar,), (pairs, moved) = build_charts(report)
    found = {row["bits"]: row["count"] for row in pairs.specification["layer"][0]["data"]["values"]}
    # Of documents with one SimHash the first stands for all.
    assert {bits for bits in found if bits <= 6} == set(apart) == {5}
    assert max(found) > 6
    assert similar.specification["layer"][0]["encoding"]["x"]["title"] == "bits that differ"
    # The line stands between the last bar that matches and the first that does not.
    assert pairs.specification["layer"][1]["transform"][0]["calculate"] == "64 * (1 - cut) + 0.5"
    assert "12 bits" in moved.figures_table
    page = report_page(report)
    for words in (
        "thresholds from 12 bits to 0 bits",
        "bits that differ ≤ 6",
        "5 bits apart: a match",
        "8 bits apart: no match",
    ):
        assert words in page.replace("\\u2264", "≤")


def result_of(**options: Any) -> Result:
    return nd.dedup(TABLE, features="words:2", threshold=0.75, margin=0.4, **options)


def shown(result: Result) -> str:
    report: Report = run_report(result._found, result.summary)
    assert len(report.stages) == 4
    return report_page(replace(report, stages=(), facts={}))


def test_the_same_run_has_the_same_page_with_any_threads(tmp_path: Path) -> None:
    pages = [shown(result_of(threads=threads)) for threads in (1, 2)]
    assert pages[0] == pages[1]
    lines = tmp_path / "in.jsonl"
    lines.write_text("".join(json.dumps(row) + "\n" for row in TABLE.to_pylist()))
    with nd.dedup_files(str(lines), features="words:2", threshold=0.75, margin=0.4) as result:
        told = shown(result).replace(str(lines), "")
    assert re.sub("<header.*?</header>", "", told) == re.sub("<header.*?</header>", "", pages[0])


def test_a_page_without_anything_to_tell_opens_and_says_so(tmp_path: Path) -> None:
    nd.dedup([]).report(tmp_path / "none.html")
    assert "The input had no document." in (tmp_path / "none.html").read_text("utf-8")
    nd.dedup(["a rose", "a tulip"], margin=0.2).report(tmp_path / "few.html")
    for name in ("none.html", "few.html"):
        with browser.opened(tmp_path / name) as view:
            assert "How this was made" in view.inner_text("main")
            assert "Nothing to show: no dropped documents" in view.inner_text("main")
            assert "The families below" not in view.inner_text("main")
