"""What the report of a run shows of families, members and pairs, against the definitions; and its page."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from classifiers import SETS, make_classifier, texts
from hypothesis import example, given, settings
from hypothesis import strategies as st
from threshold_recipes import MARGINS, TEXTS, dedup

import neardup as nd
from neardup.pages.report import Report
from neardup.pages.report_page import build_charts, report_page
from neardup.pages.sweep import rule_in_words
from neardup.pages.verdicts import COPY, EQUAL_FEATURES, KEPT, NEAR
from neardup.pipeline.result import Result
from neardup.pipeline.run_report import run_report
from neardup.recipe import Recipe


def report_of(
    documents: Any, recipe: Recipe, report: dict[str, Any] | None = None, **options: Any
) -> tuple[Result, Report]:
    result = dedup(documents, recipe, **options)
    return result, run_report(result.findings, result.summary, **(report or {}))


def plain_reasons(documents: list[str], recipe: Recipe, result: Result) -> dict[int, str]:
    """Return why each document is dropped, by a loop over the documents in keep order."""
    sizes = [len(text.encode()) for text in documents]
    factor = {"first": 0, "longest": -1, "shortest": 1}[recipe.keep]
    ranked = sorted(range(len(documents)), key=lambda row: (factor * sizes[row], row))
    representative = result.findings.matches.representative
    reasons = {}
    for drop in result.dropped:
        before = ranked[: ranked.index(drop.id)]
        if any(documents[one] == documents[drop.id] for one in before):
            reasons[drop.id] = COPY
        elif any(representative[one] == representative[drop.id] for one in before):
            reasons[drop.id] = EQUAL_FEATURES
        else:
            reasons[drop.id] = NEAR
    return reasons


#: The second and the third match the first, but not each other; the last two are a family of their own.
UNLIKE = ["a b c d e f", "c d e f", "a b c d", "u v w x y z", "u v w x y"]


@pytest.mark.parametrize("name", ["jaccard", "cosine", "edit", "two steps", "hamming"])
@given(TEXTS)
@example(UNLIKE)
@settings(max_examples=5)
def test_families_and_rows_follow_from_the_pairs(name: str, documents: list[str]) -> None:
    recipe, margin = MARGINS[name]
    result, report = report_of(documents, recipe, margin=margin)
    reasons, drops = plain_reasons(documents, recipe, result), {drop.id: drop for drop in result.dropped}
    assert {name: number for name, number, _ in report.reasons} == {
        name: list(reasons.values()).count(name) for name in (COPY, EQUAL_FEATURES, NEAR)
    }
    assert sum(report.similarity) == len(drops) == report.dropped == report.rows_total
    assert [(row.id, row.keeper, row.similarity, row.family, row.reason) for row in report.rows] == [
        (str(drop.id), str(drop.keeper), drop.similarity, drop.family, reasons[drop.id]) for drop in result.dropped
    ]
    by_size = sorted(result.families, key=lambda family: (-len(family.members), family.number))
    assert [family.number for family in report.families] == [family.number for family in by_size]
    matching = {frozenset((str(pair.left), str(pair.right))) for pair in result.pairs}
    for shown, family in zip(report.families, by_size, strict=True):
        assert (shown.documents, shown.pairs, shown.complete) == (len(family.members), family.pairs, family.complete)
        assert (shown.smallest, shown.mean) == (family.smallest, family.mean)
        listed = {int(member.document.id): member for member in shown.members}
        assert set(listed) <= set(family.members)
        assert shown.hidden == len(family.members) - len(listed)
        assert all(member.reason == reasons.get(row, KEPT) for row, member in listed.items())
        dropped = {row: member for row, member in listed.items() if member.reason != KEPT}
        assert [member.similarity for member in dropped.values()] == sorted(drops[row].similarity for row in dropped)
        assert [member.keeper and member.keeper.id for member in dropped.values()] == [
            str(drops[row].keeper) for row in dropped
        ]
        unmatched = {
            frozenset((one.document.id, other.document.id))
            for one, other in combinations(dropped.values(), 2)
            if one.keeper == other.keeper and frozenset((one.document.id, other.document.id)) not in matching
        }
        found = {frozenset((one.document.id, other)) for one in dropped.values() for other in one.unmatched_ids}
        assert found == unmatched
        assert shown.unmatched_pairs == len(unmatched)
        own = report.sweep.own_index if report.sweep else 0
        assert all(member.dropped_at[own] == str(int(member.reason != KEPT)) for member in shown.members)


@pytest.mark.parametrize("name", ["containment", "euclidean", "two steps"])
@given(TEXTS, st.integers(0, 3))
@example(["fox", "fox fox fox", "fox dog owl ran", "fox dog owl sat"], 1)
@settings(max_examples=5)
def test_examples_are_the_nearest_pairs_on_both_sides(name: str, documents: list[str], count: int) -> None:
    recipe, margin = MARGINS[name]
    result, report = report_of(documents, recipe, {"cases": count}, margin=margin)
    found, criterion = result.findings.margin, result.findings.criterion
    assert found is not None
    assert found.matches is not None
    matching = {(str(pair.left), str(pair.right)): pair.similarity for pair in result.pairs}
    known = zip(found.matches.left, found.matches.right, criterion.similarities(found.matches), strict=True)
    below = {(str(one), str(other)): value for one, other, value in known if (str(one), str(other)) not in matching}
    for examples, matches, pairs in (
        (report.matching_examples, True, matching),
        (report.unmatched_examples, False, below),
    ):
        assert all(one.matches == matches for one in examples)
        assert all(pairs[one.left.id, one.right.id] == one.similarity for one in examples)
        assert len({(one.left.id, one.right.id) for one in examples}) == len(examples)
    assert len(report.unmatched_examples) == min(count, len(below))
    assert [one.similarity for one in report.unmatched_examples][:1] == sorted(below.values())[-1:][:count]
    unequal = [value for value in matching.values() if value < 1]
    if report.matching_examples and unequal:
        assert report.matching_examples[0].similarity == min(unequal)


def test_examples_of_different_families_come_first() -> None:
    _, report = report_of(UNLIKE, Recipe(features="words:2", threshold=0.5), {"cases": 2})
    assert [(one.left.id, one.right.id) for one in report.matching_examples] == [("0", "1"), ("3", "4")]


def test_a_classifier_gives_evidence_and_a_sweep_over_probabilities() -> None:
    classifier = make_classifier(SETS)
    table = texts(40, 2).table
    report, plain = (
        report_of(table, classifier.recipe, classifier=classifier, margin=margin)[1] for margin in (0.2, None)
    )
    assert report.sweep is not None
    assert (report.sweep.threshold_name, report.sweep.thresholds[0]) == ("probability", 0.01)
    members = [member for family in report.families for member in family.members if member.reason == NEAR]
    assert all("mainly because of" in member.evidence for member in members)
    assert "candidates of its rule" in report.facts["classifier"]
    assert (len(report.unmatched_examples) > 0, plain.unmatched_examples) == (True, [])
    assert "were not searched" in plain.missing_pairs_note
    assert [one.similarity for one in plain.matching_examples] == [one.similarity for one in report.matching_examples]


def test_a_report_says_why_it_has_no_sweep_or_no_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    documents = ["a b c", "a b c", "A b c", "x"]
    report = report_of(documents, Recipe(features="checksum:sha1", threshold=1.0), margin=0.2)[1]
    assert (report.sweep, report.dropped) == (None, 2)
    assert "one value" in report.missing_pairs_note
    report = report_of(documents, Recipe(features="words:1", search="lsh", threshold=0.8), margin=0.2)[1]
    assert report.sweep is not None
    assert (report.sweep.own_index, report.sweep.is_exact) == (0, False)
    assert "LSH" in report.missing_pairs_note
    from neardup.search import engines

    monkeypatch.setattr(engines, "_ALWAYS_ALLOWED_PAIRS", 3)
    documents = [f"fox dog owl ran number {i} of them" for i in range(9)]
    recipe = Recipe(features="words:1", threshold=0.5)
    result, report = report_of(documents, recipe, pairs_per_document=0.3, margin=0.2)
    assert not result.summary["all_pairs"]
    assert (report.sweep, report.pair_similarity) == (None, ())
    assert (report.families[0].unmatched_pairs, report.families[0].pairs) == (None, None)
    assert any("pairs_per_document" in note for note in report.notes)


@pytest.mark.parametrize("documents", [[], ["", "a tulip in a garden"]])
def test_a_run_without_duplicates_has_an_empty_report(documents: list[str]) -> None:
    result, report = report_of(documents, Recipe(), margin=0.2)
    assert report.documents == report.kept == len(documents)
    assert not any((report.families, report.rows, sum(report.similarity)))
    assert ("The input had no document." in report.notes) == (not documents)
    assert "Nothing to show" in result.plot_similarity().to_dict()["layer"][0]["mark"]["text"]


def test_a_sentence_says_what_matches() -> None:
    for recipe, end in (
        (Recipe(), "at least 85% of the runs of 5 words that occur in either of them."),
        (Recipe(features="words:1", second_step="learned(d2268620b306f7f8)"), ", and the classifier agrees."),
        (Recipe(signature="simhash", measure="hamming", threshold=3), "3 of the 64 bits of their SimHashes differ."),
    ):
        assert rule_in_words(recipe).startswith("Two documents match if ")
        assert rule_in_words(recipe).endswith(end)
    assert rule_in_words(Recipe(features="words:1", weights="idf", measure="weighted_jaccard")) == ""


pytest.importorskip("vl_convert", reason="the packages that draw charts are not installed")

BASE = "the harbour board voted on tuesday to widen the eastern channel at a cost of forty million crowns this year"


def test_a_report_of_simhashes_counts_bits() -> None:
    documents = [BASE, BASE.upper(), *(f"{BASE} {more}" for more in ("again", "today it said", "with more to come"))]
    recipe = Recipe(features="words:1", signature="simhash", measure="hamming", threshold=6)
    _, report = report_of(documents, recipe, margin=6)
    _, (pairs, sweep) = build_charts(report)
    counts = {row["bits"]: row["count"] for row in pairs.specification["layer"][0]["data"]["values"]}
    # Of documents with one SimHash the first stands for all.
    assert {number for number in counts if number <= 6} == {5}
    # The line stands between the last bar that matches and the first that does not.
    assert pairs.specification["layer"][1]["transform"][0]["calculate"] == "64 * (1 - cut) + 0.5"
    assert "12 bits" in sweep.figures_table
    # A family that is not listed has no link.
    assert "#family-" not in report_page(replace(report, families=()))
    page = report_page(report).replace("\\u2264", "≤")
    for words in ("from 12 bits to 0 bits", "bits that differ ≤ 6", "5 bits apart: a match", "8 bits apart: no match"):
        assert words in page


def test_a_page_depends_neither_on_threads_nor_on_the_input_format(tmp_path: Path) -> None:
    def page_of(result: Result) -> str:
        report = run_report(result.findings, result.summary)
        assert len(report.stages) == 4
        page = report_page(replace(report, stages=(), facts={}))
        return re.sub("<header.*?</header>", "", page)

    texts = [BASE, BASE + ".", BASE.replace("tuesday", "wednesday"), "one"]
    table = pa.table({"id": list("abcd"), "text": texts, "title": [f"Harbour {at}" for at in range(4)]})
    path = tmp_path / "in.jsonl"
    options: dict[str, Any] = {"features": "words:2", "threshold": 0.75, "margin": 0.4}
    path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    pages = {page_of(nd.dedup(table, threads=threads, **options)) for threads in (1, 2)}
    with nd.dedup_files(str(path), **options) as result:
        assert pages == {page_of(result)}
