"""Comparing recipes: counts, figures and intervals beside plain sets and loops; what is written down; refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import draw, opened
from hypothesis import given
from hypothesis import strategies as st
from page_markup import Markup, check_loads_nothing
from sentences import says

from neardup.documents import corpus_of
from neardup.errors import NeardupError, RecipeError
from neardup.evaluation.comparison import Comparison, compare
from neardup.evaluation.comparison_page import lead_sentences
from neardup.evaluation.scores import Figure, f1_lead, percentile_interval, resample, score_rows, tally_pairs
from neardup.evaluation.systems import parse_thresholds
from neardup.keep.pairs import PairArrays
from neardup.labels.labels import Labels, cluster_labels, read_labels
from neardup.pipeline.pipeline import run
from neardup.recipe import Recipe

DOCUMENTS = 9
NAMES = [str(i) for i in range(DOCUMENTS)]
CUTS = [0.5, 0.7, 0.75]

similarity = st.sampled_from([0.4, 0.5, 0.6, 0.7, 0.74, 0.75, 0.9, 1.0])
all_pairs = [(i, j) for i in range(DOCUMENTS) for j in range(i + 1, DOCUMENTS)]
found = st.dictionaries(st.sampled_from(all_pairs), similarity)
truths = st.dictionaries(st.sampled_from(all_pairs), st.booleans(), min_size=2)
Pair = tuple[int, int]


def labels_of(truth: dict[Pair, bool], complete: bool) -> Labels | None:
    try:
        return read_labels([(i, j, d) for (i, j), d in truth.items()], NAMES, complete=complete)
    except RecipeError:
        return None


def parts_of(pairs: dict[Pair, float]) -> list[PairArrays]:
    """The pairs in order, in two parts."""
    rows = sorted(pairs.items())
    halves = rows[: len(rows) // 2], rows[len(rows) // 2 :]
    return [
        PairArrays(
            np.array([i for (i, _), _ in half], np.int64),
            np.array([j for (_, j), _ in half], np.int64),
            np.array([s for _, s in half], np.float64),
        )
        for half in halves
    ]


@given(found, truths, st.booleans())
def test_counts_are_those_of_plain_sets(pairs: dict[Pair, float], truth: dict[Pair, bool], complete: bool) -> None:
    labels = labels_of(truth, complete)
    if labels is None:
        return
    counted = tally_pairs(parts_of(pairs), labels, CUTS)
    duplicates = {pair for pair, duplicate in truth.items() if duplicate}
    others = set(all_pairs) - duplicates if complete else set(truth) - duplicates
    correct, wrong = counted.totals(counted.correct), counted.totals(counted.wrong)
    draws = resample([counted], labels, count=20)
    for at, (cut, score) in enumerate(zip(CUTS, score_rows(correct, wrong, len(duplicates), draws), strict=True)):
        returned = {pair for pair, value in pairs.items() if value >= cut}
        good, bad = returned & duplicates, returned & others
        assert (correct[at], wrong[at]) == (len(good), len(bad))
        assert counted.unlabelled[at] == len(returned - duplicates - others)
        assert score.recall.value == len(good) / len(duplicates)
        assert score.precision.value == (len(good) / len(good | bad) if good | bad else None)
        assert score.f1.value == pytest.approx(2 * len(good) / (len(good | bad) + len(duplicates)))


def plain_draws(tallies: list[tuple[dict[Pair, float], list[float]]], labels: Labels, seed: int, count: int) -> Any:
    """The same draws by loops: groups by what they hold, each kind as often as the multinomial says."""
    groups: dict[int, list[int]] = {}
    rows = sum(len(cuts) for _, cuts in tallies)

    def cells(group: int) -> list[int]:
        return groups.setdefault(group, [0] * (2 * rows + 1))

    for group, duplicates in enumerate(labels.duplicates_by_group().tolist()):
        if duplicates:
            cells(group)[-1] = duplicates
    row = 0
    for pairs, cuts in tallies:
        for (i, j), value in pairs.items():
            verdict = int(labels.pair_labels(np.array([i]), np.array([j]))[0])
            group = int(labels.pair_groups(np.array([i]), np.array([j]))[0])
            for at, cut in enumerate(cuts):
                if value >= cut and verdict >= 0:
                    cells(group)[row + at + (0 if verdict else rows)] += 1
        row += len(cuts)
    active = {group: tuple(held) for group, held in groups.items() if any(held)}
    kinds = sorted(set(active.values()))
    members = [list(active.values()).count(kind) for kind in kinds]
    shares = np.append(np.array(members) / labels.groups, max(1 - len(active) / labels.groups, 0.0))
    drawn = np.random.default_rng(seed).multinomial(labels.groups, shares, size=count)
    sums = [
        [sum(int(n) * kind[c] for n, kind in zip(draw, kinds, strict=False)) for c in range(2 * rows + 1)]
        for draw in drawn
    ]
    return np.array(sums, np.float64)


@given(found, found, truths, st.booleans(), st.integers(0, 3))
def test_draws_are_those_of_loops_over_groups(
    one: dict[Pair, float], other: dict[Pair, float], truth: dict[Pair, bool], complete: bool, seed: int
) -> None:
    labels = labels_of(truth, complete)
    if labels is None:
        return
    tallies = [tally_pairs(parts_of(one), labels, CUTS), tally_pairs(parts_of(other), labels, [0.7])]
    draws = resample(tallies, labels, count=15, seed=seed)
    expected = plain_draws([(one, CUTS), (other, [0.7])], labels, seed, 15)
    assert np.array_equal(np.hstack(draws[:3]), expected)
    again = resample(tallies, labels, count=15, seed=seed)
    assert all(np.array_equal(part, other) for part, other in zip(draws, again, strict=True))


def test_percentiles_of_draws() -> None:
    assert percentile_interval(np.arange(1001.0)) == pytest.approx((25, 975))
    assert percentile_interval(np.array([np.nan, 2.0])) == (2.0, 2.0)
    assert percentile_interval(np.full(3, np.nan)) == (None, None)


def test_one_large_cluster_does_not_make_figures_sure() -> None:
    names = [str(i) for i in range(120)]
    clusters = ["large"] * 20 + [f"c{i // 2}" for i in range(100)]
    labels = cluster_labels(clusters, names, "column 'c'")
    within = {(i, j): 1.0 for i in range(20) for j in range(i + 1, 20)}
    counted = tally_pairs(parts_of(within), labels, [0.5])
    draws = resample([counted], labels)
    score = score_rows(counted.totals(counted.correct), counted.totals(counted.wrong), labels.duplicates, draws)[0]
    assert score.recall.value == pytest.approx(190 / 240)
    assert score.recall.low == 0.0
    assert score.precision == Figure(1.0, 1.0, 1.0)


@pytest.mark.parametrize("groups", [1, 40])
def test_the_groups_in_which_two_differ(groups: int) -> None:
    names = [str(i) for i in range(2 * groups + 20)]
    labels = cluster_labels([f"c{i // 2}" if i < 2 * groups else None for i in range(len(names))], names, "column 'c'")
    every = tally_pairs(parts_of({(2 * i, 2 * i + 1): 1.0 for i in range(groups)}), labels, [0.5])
    none = tally_pairs(parts_of({}), labels, [0.5])
    assert f1_lead(resample([every, none], labels), 0, 1) == (1.0, 1.0, groups)
    assert f1_lead(resample([every, every], labels), 0, 1) == (0.0, 0.0, 0)
    assert f1_lead(resample([none, every], labels), 0, 1) == (-1.0, -1.0, groups)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (".5:.95:.05", [0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95]),
        ("0.1:0.4:0.1", [0.1, 0.2, 0.3, 0.4]),
        (".7, .5,0.70", [0.5, 0.7]),
        ([0.9, 1], [0.9, 1.0]),
    ],
)
def test_thresholds(asked: Any, expected: list[float]) -> None:
    assert parse_thresholds(asked) == expected


FAMILIES = 12
WORDS = [f"word{i:03d}" for i in range(600)]


def texts() -> dict[str, list[str]]:
    """Families of three: a text, the text with one word changed, the text with every fourth word changed."""
    random = np.random.default_rng(5)
    ids, family, text = [], [], []
    for number in range(FAMILIES):
        base = [WORDS[i] for i in random.integers(0, len(WORDS), 40)]
        for version, step in enumerate((0, 40, 4)):
            words = [f"x{number}" if step and at % step == 1 else word for at, word in enumerate(base)]
            ids.append(f"{number}-{version}")
            family.append(f"f{number}")
            text.append(" ".join(words))
    return {"id": ids, "family": family, "text": text}


RECIPES: list[Recipe | str] = [
    Recipe(name="pairs", features="words:2", threshold=0.6),
    Recipe(name="edited", features="words:1", threshold=0.5, second_step="edit >= 0.9"),
    Recipe(name="simhash", features="words:1", signature="simhash", measure="hamming", threshold=3),
    "checksum",
    Recipe(name="pairs", features="words:2", measure="overlap", threshold=0.6),
]


@pytest.fixture(scope="module")
def compared() -> Comparison:
    return compare(corpus_of(texts(), order_column="family"), recipes=RECIPES, thresholds=".3:.9:.1")


def test_each_threshold_is_what_a_run_with_it_finds(compared: Comparison) -> None:
    data = texts()
    family = dict(zip(data["id"], data["family"], strict=True))
    assert [scored.name for scored in compared.recipes] == ["pairs", "edited", "simhash", "checksum", "pairs (2)"]
    assert (compared.documents, compared.duplicates, compared.groups) == (36, 36, 12)
    for scored in compared.recipes:
        for row in scored.rows:
            result = run(corpus_of(data), scored.recipe.changed(threshold=row.threshold), pairs_per_document=None)
            returned = {(pair.left, pair.right) for pair in result.pairs}
            correct = {(left, right) for left, right in returned if family[left] == family[right]}
            assert (row.returned, row.correct) == (len(returned), len(correct))
            assert (row.missed, row.unlabelled) == (36 - len(correct), 0)
            assert row.recall.value == len(correct) / 36
            assert row.own == (row.threshold == scored.recipe.threshold)


def test_the_best_threshold_and_the_lead(compared: Comparison) -> None:
    for scored in compared.recipes:
        assert scored.rows[-1].threshold <= scored.rows[0].threshold or scored.scale != "distance"
        highest = max(row.f1.value or 0.0 for row in scored.rows)
        assert scored.best is [row for row in scored.rows if row.f1.value == highest][-1]
        assert scored.wall_s > 0
        for row in scored.rows:
            for figure in (row.precision, row.recall, row.f1):
                assert figure.value is None or (figure.low or 0.0) <= figure.value <= (figure.high or 0.0)
    best = next(scored for scored in compared.recipes if scored.name == compared.best)
    assert [lead.over for lead in compared.leads] == [s.name for s in compared.recipes if s.name != compared.best]
    for lead in compared.leads:
        other = next(scored for scored in compared.recipes if scored.name == lead.over)
        assert lead.difference.value == pytest.approx((best.best.f1.value or 0) - (other.best.f1.value or 0))
        assert not lead.beyond_chance or (lead.difference.low or 0) > 0
    assert next(lead for lead in compared.leads if lead.over == "checksum").beyond_chance


def test_refusals() -> None:
    for corpus, options, words in (
        (corpus_of(texts()), {}, "there are no labels; give labels, or a column"),
        (corpus_of(texts()), {"labels": [("0-0", "9-9", 1)]}, "not in the corpus"),
        (corpus_of(texts(), order_column="family"), {"labels": [("0-0", "0-1", 1)]}, "from one place"),
        (corpus_of(texts(), order_column="id"), {}, "no two documents of a cluster"),
        (corpus_of(texts(), order_column="family"), {"recipes": ["unheard"]}, "neither a file nor one of"),
    ):
        with pytest.raises(NeardupError, match=words):
            compare(corpus, **options)


HOSTILE = "<img src=x onerror=alert(1)></script><script>alert(2)</script>"


@pytest.fixture(scope="module")
def hostile_page() -> str:
    recipes: list[Recipe | str] = [*RECIPES, Recipe(name=HOSTILE, description='"><b>', features="words:3")]
    labels = [("0-0", "0-1", 1), ("1-0", "1-2", 1), ("2-0", "3-0", 0)]
    return compare(corpus_of(texts()), labels, recipes=recipes, thresholds=[0.5, 0.9]).to_html()


def test_a_page_asks_the_network_for_nothing(hostile_page: str) -> None:
    check_loads_nothing(Markup(hostile_page))


def test_a_page_shows_names_as_they_are(hostile_page: str) -> None:
    page = Markup(hostile_page)
    assert len(page.scripts) == 3
    assert page.text.count(HOSTILE) >= 3
    charts = page.charts
    assert set(charts) == {"recall", "threshold", "distance"}
    assert {a.get("id") for t, a in page.elements if a.get("class") == "chart"} == set(charts)
    assert HOSTILE in json.dumps(charts, ensure_ascii=False).replace('\\"', '"')
    buttons = [a["data-highlight"] for t, a in page.elements if "data-highlight" in a]
    assert buttons == ["pairs", "edited", "simhash", "checksum", "pairs (2)", HOSTILE]
    for words in ("Before you trust the figures", "Few labels", "unlabelled", "How to read this", "one answer"):
        assert words in page.text


@pytest.mark.parametrize("width", [1280, 360])
def test_the_page_of_a_replay_fits_and_escapes_its_texts(hostile_page: str, width: int, tmp_path: Path) -> None:
    path = tmp_path / "compare.html"
    path.write_text(hostile_page, "utf-8")
    with opened(path, width=width) as page:
        draw(page)
        assert page.locator(".chart svg.marks").count() == 3
        assert page.title() == "Recipes compared - neardup"
        # By the keyboard: what a chart that is still drawn moves away from the mouse is not clicked.
        page.locator("[data-highlight]").last.press("Enter")
        page.wait_for_function("name => neardup.views.recall?.signal('highlight') === name", arg=HOSTILE)
        assert page.locator("tbody th[scope=row]").filter(has_text=HOSTILE).count() > 1
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_page_of_all_recipes_shows_where_it_goes_on(tmp_path: Path) -> None:
    labels = [(f"{at}-0", f"{at}-{version}", 1) for at in range(FAMILIES) for version in (1, 2)]
    labels += [(f"{at}-0", f"{at + 1}-0", 0) for at in range(FAMILIES - 1)]
    path = tmp_path / "compare.html"
    compare(corpus_of(texts()), labels).write(path)
    with opened(path, width=1280) as page:
        draw(page)
        assert page.evaluate("(box => box.scrollWidth <= box.clientWidth)(document.querySelector('#best .scroll'))")
        long = page.locator("#all .tall")
        assert long.evaluate("box => box.scrollHeight > box.clientHeight")
        assert "24px" in long.evaluate("box => getComputedStyle(box).backgroundSize")
        # A chip has the colour and the shape of its points, and no other chip has both.
        chips = page.locator(".legend span").evaluate_all(
            "all => all.map(one => [one.className, one.style.background])"
        )
        assert len({tuple(chip) for chip in chips}) == len(chips) == 12
        # Lines of equal F1 are named beside the curves, and no point is cut off at an axis.
        assert page.evaluate(
            """() => {
              const right = document.querySelector("#recall .background").getBoundingClientRect().right;
              const names = [...document.querySelectorAll("#recall .mark-text.role-mark text")];
              return names.length > 0 && names.every((name) => name.getBoundingClientRect().left > right);
            }"""
        )
        assert page.evaluate(
            """() => {
              const left = document.querySelector("#threshold .background").getBoundingClientRect().left;
              const points = [...document.querySelectorAll("#threshold .mark-symbol path")];
              return points.every((point) => point.getBoundingClientRect().left >= left);
            }"""
        )


def pairs_of_copies(count: int) -> Comparison:
    """One recipe finds all labelled pairs; the other looks for signatures that these texts do not hold."""
    texts = [f"text{at} one two three four five six" for at in range(count) for _ in range(2)]
    labels = [(2 * at, 2 * at + 1, 1) for at in range(count)] + [(0, 2 * at, 0) for at in range(1, count)]
    return compare(corpus_of(texts), labels, recipes=["default", "spotsigs"])


def test_too_few_groups_are_not_called_a_tie_and_a_recipe_without_features_is_named() -> None:
    few, many = pairs_of_copies(3), pairs_of_copies(8)
    assert [lead.beyond_chance for lead in (*few.leads, *many.leads)] == [False, True]
    too_few = "Too few groups for a test, which needs 6: default differs from spotsigs in 3"
    assert lead_sentences(few.to_dict()) == [too_few]
    assert too_few in Markup(few.to_html()).text
    assert lead_sentences(many.to_dict()) == ["default is better than spotsigs, beyond chance"]
    (warning,) = [one for one in many.warnings if "no features" in one]
    assert says(warning, "spotsigs", "16 of the 16", "recipes")


def test_many_recipes_take_one_sentence_of_each_kind() -> None:
    def lead(over: str, groups: int, *, sure: bool = False) -> dict[str, Any]:
        return {"over": over, "groups": groups, "beyond_chance": sure}

    leads = [
        lead("b", 9, sure=True),
        lead("c", 2),
        lead("d", 8),
        lead("e", 4),
        lead("f", 8),
        lead("g", 4),
        lead("h", 7),
    ]
    assert lead_sentences({"best": "a", "groups": 9, "leads": leads}) == [
        "a is better than b, beyond chance",
        "These labels cannot tell a from d, f or h",
        "Too few groups for a test, which needs 6: a differs from e and g in 4; from c in 2",
    ]


@pytest.mark.parametrize(
    ("thresholds", "own", "labels", "words"),
    [
        (".3:.9:.1", 0.4, [(0, 1, 1), (0, 5, 0)], ("loose (0.3)", "loosest", "widen", "thresholds")),
        (".1:.9:.1", 0.4, [(0, 1, 1), (0, 5, 0)], ()),
        (".1,.2", 0.6, [(4, 5, 1), (2, 3, 0)], ("loose (0.6)", "strictest", "widen", "thresholds")),
    ],
)
def test_a_best_threshold_at_the_edge_is_said(
    thresholds: str, own: float, labels: list[tuple[int, int, int]], words: tuple[str, ...]
) -> None:
    texts = ["a one two three a", "b one two three b", "one two three four five", "one two three four seven six"]
    recipe = Recipe(name="loose", features="words:2", threshold=own)
    found = compare(corpus_of([*texts, "nine ten", "nine ten"]), labels, recipes=[recipe], thresholds=thresholds)
    edges = [warning for warning in found.warnings if "tried" in warning]
    assert len(edges) == bool(words)
    assert not words or says(edges[0], *words)


def test_edges_of_several_recipes_are_one_sentence_and_distances_say_how_to_go_further() -> None:
    texts = [" ".join(f"w{at}" for at in range(begin, begin + 12)) for begin in (0, 5, 100, 200)]
    recipes = [Recipe(name=name, features="words:1", threshold=0.5) for name in ("one", "two")]
    bits = Recipe(name="bits", features="words:1", signature="simhash", measure="hamming", threshold=40)
    found = compare(corpus_of(texts), [(0, 1, 1), (0, 2, 0)], recipes=[*recipes, bits], thresholds=[0.4, 0.5])
    of_similarities, of_distances = (warning for warning in found.warnings if "tried" in warning)
    assert says(of_similarities, "loosest", "one (0.4), two (0.4)", "widen", "thresholds")
    assert says(of_distances, "loosest", "bits (40)", "changed(threshold=...)", "recipes")


def fingerprints(compared: Comparison) -> dict[str, tuple[str, str]]:
    """Of each recipe as it is, and with its best threshold, as runs with these have them."""
    return {
        one.name: (one.recipe.fingerprint, one.recipe.changed(threshold=one.best.threshold).fingerprint)
        for one in compared.recipes
    }


def test_fingerprints_are_those_of_the_recipe_and_of_its_best_threshold(compared: Comparison) -> None:
    expected = fingerprints(compared)
    assert any(own != best for own, best in expected.values())
    whole = compared.to_dict()["recipes"]
    assert {one["name"]: (one["fingerprint"], one["best"]["fingerprint"]) for one in whole} == expected
    page, paper = Markup(compared.to_html()).text, compared.to_latex()
    for scored in compared.recipes:
        own, best = expected[scored.name]
        assert page.count(own) == page.count(best) == 1
        named = f"{scored.recipe.threshold:g}: {own}" if scored.scale != "fixed" else f"Fingerprint: {own}"
        assert named in page
        assert f"% {scored.name}: fingerprint {own}" in paper
        if own != best:
            assert (
                f"at the best one here, {'≤ ' * (scored.scale == 'distance')}{scored.best.threshold:g}: {best}" in page
            )
            assert f"% {scored.name}: fingerprint {own}, at {scored.best.threshold:g} {best}" in paper


def test_a_table_for_a_paper_has_the_best_threshold_and_the_recipes_own(compared: Comparison) -> None:
    lines = compared.to_latex().splitlines()
    assert "recipe & threshold" in lines[2]
    cells = [tuple(line.split(" & ")[:2]) for line in lines if line.endswith(r"\\")][1:]
    expected = []
    for scored in compared.recipes:
        bound = r"$\le$ " if scored.scale == "distance" else ""
        own = f"{bound}{scored.recipe.threshold:g} (own)"
        expected += [(scored.name, f"{bound}{scored.best.threshold:g}")] * (not scored.best.own)
        expected += [(scored.name, "--" if scored.scale == "fixed" else own)]
    assert cells == expected
    assert ("checksum", "--") in cells
    assert any("le" in threshold for _, threshold in cells)


def test_levels_are_said_to_count() -> None:
    texts = ["one two three", "one two three", "four five", "four six"]
    for positive, above in ((1.0, "at or above 1 "), (2.0, "at or above 2 ")):
        labels = read_labels([(0, 1, 3), (2, 3, 1), (0, 2, 0)], ["0", "1", "2", "3"], positive=positive)
        assert says(next(one for one in labels.warnings if "levels" in one), above, "duplicates", "positive")
    plain = compare(corpus_of(texts), [(0, 1, 1), (2, 3, 0)], recipes=["checksum"])
    assert not [one for one in plain.warnings if "levels" in one]


def test_a_notebook_shows_figures_apart_and_does_not_widen_its_page(compared: Comparison, tmp_path: Path) -> None:
    cell = compared._repr_html_()
    assert cell is not None
    path = tmp_path / "cell.html"
    path.write_text(f"<!DOCTYPE html><meta charset=utf-8><title>t</title>{cell}", "utf-8")
    with opened(path, width=400) as page:
        figures = page.locator("td").filter(has_text=" to ").all_inner_texts()
        assert figures
        assert all(len(figure.split("\n")) == 2 for figure in figures)
        assert page.locator("tr").filter(has_text="checksum").locator("td").first.inner_text() == "one answer\nits own"
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
