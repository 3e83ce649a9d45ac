"""Comparisons of recipes and classifiers: counts, figures and intervals equal plain loops; warnings, pages, tables."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import draw, opened
from classifiers import make_classifier
from hypothesis import given
from hypothesis import strategies as st
from page_markup import Markup, check_loads_nothing
from sentences import says

from neardup.documents import corpus_of
from neardup.errors import NeardupError, RecipeError
from neardup.evaluation.comparison import Comparison, compare
from neardup.evaluation.comparison_page import lead_sentences
from neardup.evaluation.scores import accuracy_figures, f1_lead, resample, score_rows, tally_pairs
from neardup.evaluation.systems import parse_thresholds
from neardup.keep.pairs import PairArrays
from neardup.labels.labels import Labels, cluster_labels, read_labels
from neardup.pipeline.pipeline import run
from neardup.recipe import Recipe, names

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
def test_counts_and_figures_equal_plain_sets(pairs: dict[Pair, float], truth: dict[Pair, bool], complete: bool) -> None:
    labels = labels_of(truth, complete)
    if labels is None:
        return
    tally = tally_pairs(parts_of(pairs), labels, CUTS)
    duplicates = {pair for pair, duplicate in truth.items() if duplicate}
    others = set(all_pairs) - duplicates if complete else set(truth) - duplicates
    correct, wrong = tally.totals(tally.correct), tally.totals(tally.wrong)
    draws = resample([tally], labels, count=20)
    accuracies = accuracy_figures([tally], labels, count=20)
    for at, (cut, score) in enumerate(zip(CUTS, score_rows(correct, wrong, len(duplicates), draws), strict=True)):
        returned = {pair for pair, value in pairs.items() if value >= cut}
        good, bad = returned & duplicates, returned & others
        assert (correct[at], wrong[at]) == (len(good), len(bad))
        assert tally.unlabelled[at] == len(returned - duplicates - others)
        assert score.recall.value == len(good) / len(duplicates)
        assert score.precision.value == (len(good) / len(good | bad) if good | bad else None)
        assert score.f1.value == pytest.approx(2 * len(good) / (len(good | bad) + len(duplicates)))
        if not complete:
            assert accuracies[at].value == (len(good) + len(others - bad)) / len(truth)


def plain_draws(cells: dict[int, list[int]], labels: Labels, seed: int, count: int) -> Any:
    """The sums of the cells of drawn groups, by loops: each kind of group as often as the multinomial says."""
    active = {group: tuple(counts) for group, counts in cells.items() if any(counts)}
    kinds = sorted(set(active.values()))
    members = [list(active.values()).count(kind) for kind in kinds]
    shares = np.append(np.array(members) / labels.groups, max(1 - len(active) / labels.groups, 0.0))
    drawn = np.random.default_rng(seed).multinomial(labels.groups, shares, size=count)
    sums = [
        [sum(int(n) * kind[c] for n, kind in zip(draw, kinds, strict=False)) for c in range(len(kinds[0]))]
        for draw in drawn
    ]
    return np.array(sums, np.float64)


def group_of(labels: Labels, pair: Pair) -> int:
    return int(labels.pair_groups(np.array([pair[0]]), np.array([pair[1]]))[0])


@given(found, found, truths, st.booleans(), st.integers(0, 3))
def test_draws_equal_loops_over_groups(
    one: dict[Pair, float], other: dict[Pair, float], truth: dict[Pair, bool], complete: bool, seed: int
) -> None:
    labels = labels_of(truth, complete)
    if labels is None:
        return
    systems = [(one, CUTS), (other, [0.7])]
    rows = len(CUTS) + 1
    cells = {group: [0] * (2 * rows) + [n] for group, n in enumerate(labels.duplicates_by_group().tolist()) if n}
    row = 0
    for pairs, cuts in systems:
        for (i, j), value in pairs.items():
            verdict = int(labels.pair_labels(np.array([i]), np.array([j]))[0])
            counts = cells.setdefault(group_of(labels, (i, j)), [0] * (2 * rows + 1))
            for at, cut in enumerate(cuts):
                counts[row + at + (0 if verdict else rows)] += value >= cut and verdict >= 0
        row += len(cuts)
    draws = resample(
        [tally_pairs(parts_of(pairs), labels, cuts) for pairs, cuts in systems], labels, count=15, seed=seed
    )
    assert np.array_equal(np.hstack(draws[:3]), plain_draws(cells, labels, seed, 15))


@given(found, truths)
def test_intervals_of_accuracy_equal_loops_over_groups(pairs: dict[Pair, float], truth: dict[Pair, bool]) -> None:
    labels = labels_of(truth, complete=False)
    if labels is None:
        return
    cells: dict[int, list[int]] = {}
    for pair, duplicate in truth.items():
        counts = cells.setdefault(group_of(labels, pair), [0, 0])
        counts[0] += (pairs.get(pair, 0.0) >= 0.7) == duplicate
        counts[1] += 1
    (figure,) = accuracy_figures([tally_pairs(parts_of(pairs), labels, [0.7])], labels, count=30, seed=1)
    right, whole = plain_draws(cells, labels, 1, 30).T
    assert figure[1:] == pytest.approx(tuple(np.percentile(right / whole, [2.5, 97.5])))


@pytest.mark.parametrize("groups", [1, 40])
def test_a_lead_counts_the_groups_in_which_two_systems_differ(groups: int) -> None:
    names = [str(i) for i in range(2 * groups + 20)]
    labels = cluster_labels([f"c{i // 2}" if i < 2 * groups else None for i in range(len(names))], names, "column 'c'")
    every, none = (
        tally_pairs(parts_of({(2 * i, 2 * i + 1): 1.0 for i in range(found)}), labels, [0.5]) for found in (groups, 0)
    )
    for one, other, lead, differing in (
        (every, none, 1.0, groups),
        (every, every, 0.0, 0),
        (none, every, -1.0, groups),
    ):
        assert f1_lead(resample([one, other], labels), 0, 1) == (lead, lead, differing)


def test_thresholds_are_parsed() -> None:
    for thresholds, expected in (
        ("0.1:0.4:0.1", [0.1, 0.2, 0.3, 0.4]),
        (".7, .5,0.70", [0.5, 0.7]),
        ([0.9, 1], [0.9, 1.0]),
    ):
        assert parse_thresholds(thresholds) == expected


FAMILIES = 12
WORDS = [f"word{i:03d}" for i in range(600)]


def texts(steps: tuple[int, ...] = (0, 40, 4)) -> dict[str, list[str]]:
    """Families of a text and versions with every n-th word changed, by default one word and every fourth word."""
    random = np.random.default_rng(5)
    ids, family, text = [], [], []
    for number in range(FAMILIES):
        base = [WORDS[i] for i in random.integers(0, len(WORDS), 40)]
        for version, step in enumerate(steps):
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


def test_figures_of_each_threshold_equal_those_of_a_run_with_it(compared: Comparison) -> None:
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


def test_the_best_threshold_has_the_highest_f1_and_leads_have_the_difference(compared: Comparison) -> None:
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


def test_unusable_labels_and_recipes_are_refused() -> None:
    for corpus, options, words in (
        (corpus_of(texts()), {}, "there are no labels; give labels, or a column"),
        (corpus_of(texts(), order_column="family"), {"labels": [("0-0", "0-1", 1)]}, "both given"),
        (corpus_of(texts(), order_column="id"), {}, "no two documents of a cluster"),
        (corpus_of(texts(), order_column="family"), {"recipes": ["unheard"]}, "neither a file nor one of"),
    ):
        with pytest.raises(NeardupError, match=words):
            compare(corpus, **options)


NAME, DESCRIPTION = "<img src=x>", '"></script><script>alert(2)</script>'


def test_a_page_of_all_recipes_shows_names_as_text_fits_and_scrolls(tmp_path: Path) -> None:
    recipes: list[Recipe | str] = [*names(), Recipe(name=NAME, description=DESCRIPTION, features="words:3")]
    labels = [(f"{at}-0", f"{at}-{version}", 1) for at in range(FAMILIES) for version in (1, 2)]
    labels += [(f"{at}-0", f"{at + 1}-0", 0) for at in range(FAMILIES - 1)]
    path = tmp_path / "compare.html"
    compare(corpus_of(texts()), labels, recipes=recipes, thresholds=[0.3, 0.5, 0.9]).write(path)
    markup = Markup(path.read_text("utf-8"))
    check_loads_nothing(markup)
    assert markup.text.count(NAME) >= 3
    assert DESCRIPTION in markup.text
    assert set(markup.charts) == {"recall", "threshold", "distance"}
    for words in ("Before you trust the figures", "unlabelled", "How to read this", "one answer"):
        assert words in markup.text
    with opened(path, width=1280) as page:
        draw(page)
        assert page.title() == "Recipes compared - neardup"
        assert page.evaluate("(box => box.scrollWidth <= box.clientWidth)(document.querySelector('#best .scroll'))")
        long = page.locator("#all .tall")
        assert long.evaluate("box => box.scrollHeight > box.clientHeight")
        shadow = "box => Number(getComputedStyle(box, '::after').opacity)"
        assert long.evaluate(shadow) > 0.9
        long.evaluate("box => { box.scrollTop = box.scrollHeight; }")
        page.wait_for_function(f"box => ({shadow})(box) < 0.1", arg=long.element_handle())
        # A chip has the colour and the shape of its points, and no other chip has both.
        styles = "all => all.map(one => one.className + one.style.background)"
        chips = page.locator(".legend span").evaluate_all(styles)
        assert len(set(chips)) == len(chips) == len(recipes)
        # Lines of equal F1 are named beside the curves, and no point is cut off at an axis.
        assert page.evaluate(
            """() => {
              const box = (path) => document.querySelector(path).getBoundingClientRect();
              const lefts = (path) => [...document.querySelectorAll(path)].map(one => one.getBoundingClientRect().left);
              const names = lefts("#recall .mark-text.role-mark text"), points = lefts("#threshold .mark-symbol path");
              const right = box("#recall .background").right, left = box("#threshold .background").left;
              return names.length && names.every(at => at > right) && points.every(at => at >= left);
            }"""
        )
        page.set_viewport_size({"width": 360, "height": 900})
        buttons = page.locator("[data-highlight]")
        assert buttons.last.inner_text() == NAME
        # By the keyboard: what a chart that is still drawn moves away from the mouse is not clicked.
        buttons.last.press("Enter")
        page.wait_for_function("name => neardup.views.recall?.signal('highlight') === name", arg=NAME)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def pairs_of_copies(count: int) -> Comparison:
    """One recipe finds all labelled pairs; the other looks for signatures that these texts do not hold."""
    texts = [f"text{at} one two three four five six" for at in range(count) for _ in range(2)]
    labels = [(2 * at, 2 * at + 1, 1) for at in range(count)] + [(0, 2 * at, 0) for at in range(1, count)]
    return compare(corpus_of(texts), labels, recipes=["default", "spotsigs"])


def test_too_few_groups_are_no_tie_and_a_recipe_without_features_brings_a_warning() -> None:
    few, many = pairs_of_copies(3), pairs_of_copies(8)
    assert [lead.beyond_chance for lead in (*few.leads, *many.leads)] == [False, True]
    assert "differs from spotsigs in 3" in Markup(few.to_html()).text
    (warning,) = [one for one in many.warnings if "no features" in one]
    assert says(warning, "spotsigs", "16 of the 16", "recipes")


def test_leads_are_stated_in_one_sentence_of_each_kind() -> None:
    leads = [
        {"over": name, "groups": groups, "beyond_chance": name == "b"}
        for name, groups in (("b", 9), ("c", 2), ("d", 8), ("e", 4), ("f", 8), ("g", 4), ("h", 7))
    ]
    assert lead_sentences({"best": "a", "groups": 9, "leads": leads}) == [
        "a is better than b, beyond chance",
        "These labels cannot tell a from d, f or h",
        "Too few groups for a test, which needs 6: a differs from e and g in 4; from c in 2",
    ]


@pytest.mark.parametrize(
    ("thresholds", "own", "labels", "edge"),
    [
        (".3:.9:.1", 0.4, [(0, 1, 1), (0, 5, 0)], "loosest one (0.3), two (0.3)"),
        (".1:.9:.1", 0.4, [(0, 1, 1), (0, 5, 0)], ""),
        (".1,.2", 0.6, [(4, 5, 1), (2, 3, 0)], "strictest one (0.6), two (0.6)"),
        (".5,.55", 0.6, [(4, 5, 1), (0, 2, 0)], ""),
    ],
)
def test_a_best_threshold_at_an_edge_brings_one_warning_for_all_recipes(
    thresholds: str, own: float, labels: list[tuple[int, int, int]], edge: str
) -> None:
    texts = ["a one two three a", "b one two three b", "one two three four five", "one two three four seven six"]
    recipes = [Recipe(name=name, features="words:2", threshold=own) for name in ("one", "two")]
    recipes.append(Recipe(name="bits", features="words:2", signature="simhash", measure="hamming", threshold=60))
    found = compare(corpus_of([*texts, "nine ten", "nine ten"]), labels, recipes=recipes, thresholds=thresholds)
    edges, bits = ([one for one in found.warnings if words in one] for words in ("widen", "changed(threshold=...)"))
    assert len(edges) == bool(edge)
    kind, _, names = edge.partition(" ")
    assert not edge or says(edges[0], kind, names, "widen", "thresholds")
    assert [says(one, "loosest", "bits (60)", "recipes") for one in bits] == [True] * (own == 0.4)


def test_outputs_state_fingerprints_and_the_best_and_the_own_threshold(compared: Comparison) -> None:
    entries = compared.to_dict()["recipes"]
    page, paper = Markup(compared.to_html()).text, compared.to_latex()
    cells = [tuple(line.split(" & ")[:2]) for line in paper.splitlines() if line.endswith(r"\\")][1:]
    expected = []
    for scored, entry in zip(compared.recipes, entries, strict=True):
        own = scored.recipe.fingerprint
        best = scored.recipe.changed(threshold=scored.best.threshold).fingerprint
        assert (entry["fingerprint"], entry["best"]["fingerprint"]) == (own, best)
        assert page.count(own) == page.count(best) == 1
        assert (f"{scored.recipe.threshold:g}: {own}" if scored.scale != "fixed" else f"Fingerprint: {own}") in page
        at = f", at {scored.best.threshold:g} {best}" * (own != best)
        assert f"% {scored.name}: fingerprint {own}{at}\n" in paper + "\n"
        if own != best:
            bound = "≤ " * (scored.scale == "distance")
            assert f"at the best one here, {bound}{scored.best.threshold:g}: {best}" in page
        bound = r"$\le$ " if scored.scale == "distance" else ""
        expected += [(scored.name, f"{bound}{scored.best.threshold:g}")] * (own != best)
        expected += [(scored.name, "--" if scored.scale == "fixed" else f"{bound}{scored.recipe.threshold:g} (own)")]
    assert any(entry["fingerprint"] != entry["best"]["fingerprint"] for entry in entries)
    assert cells == expected


def test_a_notebook_cell_breaks_figures_and_fits_its_page(compared: Comparison) -> None:
    cell = compared._repr_html_()
    assert cell is not None
    assert cell.startswith('<div class="neardup" style="overflow-x:auto">')
    assert f"as has {'pairs (2)' if compared.best == 'pairs' else 'pairs'}" in cell
    assert ">one answer<br><small>its own</small><" in cell
    # Nothing but a line break parts a figure of the table from its interval.
    before = re.findall(r"(.{4})<small>-?\d\.\d+ to ", cell)
    assert set(before) == {"<br>"}
    assert len(before) > 10


def classifier_labels() -> list[tuple[str, str, int]]:
    """Close versions are duplicates; distant versions and neighbouring families are different."""
    labels = []
    for number in range(FAMILIES):
        labels += [(f"{number}-0", f"{number}-{version}", int(version < 3)) for version in (1, 2, 3)]
        labels.append((f"{number}-0", f"{(number + 1) % FAMILIES}-0", 0))
    return labels


def pairs_at(cut: float, steep: float, least: float) -> set[tuple[str, str]]:
    """The pairs that a run of all candidates finds with g >= cut and a probability of at least ``least``."""
    accepting = make_classifier(cut=cut, steep=steep).without_cut()
    result = run(corpus_of(texts(VERSIONS)), accepting.recipe, classifier=accepting, pairs_per_document=None)
    assert result.vectors is not None
    names, g = result.pairs.names, accepting.score(result.vectors)
    passed = (g >= cut) & (accepting.probability(g) >= least)
    sides = zip(result.pairs.left[passed], result.pairs.right[passed], strict=True)
    found = {(names.name_at(i), names.name_at(j)) for i, j in sides}
    # A run compares equal texts once: each copy matches what the other matches, and the other.
    copy = {f"{number}-{version}": f"{number}-{1 - version}" for number in range(FAMILIES) for version in (0, 1)}
    found |= {(copy[one], other) for one, other in found if one in copy}
    found |= {(one, copy[other]) for one, other in found if other in copy}
    return {(min(pair), max(pair)) for pair in found | set(copy.items())}


VERSIONS = (0, 0, 10, 3)


@pytest.mark.parametrize(("cut", "steep"), [(0.0, 1.0), (0.7, 1.0), (1.35, 40.0)])
def test_figures_of_a_classifier_equal_those_of_runs(cut: float, steep: float) -> None:
    """With a steep sigmoid all probabilities are 0 or 1, and only g shows the working point."""
    recipe = Recipe(name="pairs", features="words:2", threshold=0.6)
    classifiers = [make_classifier(cut=cut, steep=steep)]
    labels, corpus = classifier_labels(), corpus_of(texts(VERSIONS))
    scored = compare(corpus, labels, recipes=[recipe], classifiers=classifiers, thresholds=".3:.9:.2").recipes[1]
    truth = {(min(one, other), max(one, other)): bool(label) for one, other, label in labels}
    assert (scored.name, scored.scale) == ("learned", "probability")
    assert sum(row.own for row in scored.rows) == 1
    assert {0.3, 0.5, 0.7, 0.9} <= {row.threshold for row in scored.rows}
    for row in scored.rows:
        pairs = pairs_at(cut if row.own else -np.inf, steep, 0.0 if row.own else row.threshold)
        correct = {pair for pair in pairs if truth.get(pair)}
        assert (row.returned, row.correct) == (len(pairs & truth.keys()), len(correct))
        right = len(correct) + sum(not label and pair not in pairs for pair, label in truth.items())
        assert row.accuracy.value == pytest.approx(right / len(truth))
    assert scored.rows[-1].correct < 2 * FAMILIES or steep > 1
