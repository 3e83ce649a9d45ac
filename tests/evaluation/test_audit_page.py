"""The page of an audit: figures and the pairs that were wrong, in text and in a real browser."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import browser
import pytest
from page_markup import Markup, check_loads_nothing
from sentences import says
from test_audit import DATA, duplicates, votes

import neardup as nd
from neardup.documents import corpus_of, open_corpus
from neardup.errors import OutputError, RecipeError
from neardup.evaluation.audit import Audit, Sample, draw_sample, examples_of
from neardup.recipe import Recipe

EVIL = '<script>window.harm=1</script><img src=x onerror="window.harm=2">"\'></style></script><!-- \x1b[31m\u202e'


def drawing(sample: int = 60, **changes: Any) -> Sample:
    recipe = Recipe(features="words:2", threshold=0.6).changed(**changes)
    return draw_sample(corpus_of(DATA), recipe=recipe, candidate_rule="0.15", sample=sample)


def label_sample(of: Sample, skip: int = 0) -> Any:
    """Every drawn pair by the rule of the data; every seventh as unsure, and some wrong ones among them."""
    pairs = dict.fromkeys((DATA["id"][left], DATA["id"][right]) for left, right in zip(of.left, of.right, strict=True))
    said = votes(pairs, lambda one, other: duplicates(one, other) != (int(one.split("-")[0]) % 3 == 0))
    return of.resolve_votes(
        (left, right, "unsure" if at % 7 == 6 else answer) for at, (left, right, answer) in enumerate(said[skip:])
    )


def found_in(of: Sample, most: int = 20) -> Audit:
    from dataclasses import replace

    known = label_sample(of)
    return replace(of.audit(known), examples=examples_of(of, known, most))


def test_examples_are_the_wrong_pairs_that_stand_for_most() -> None:
    of = drawing()
    known = label_sample(of)
    examples = examples_of(of, known, 5)
    returned, score = of.population.returned[of.pairs], of.population.score[of.pairs]
    kinds = {
        "wrong": [at for at, said in enumerate(known.answers) if said == "different" and returned[at]],
        "missed": [at for at, said in enumerate(known.answers) if said == "same" and not returned[at]],
        "unsure": [at for at, said in enumerate(known.answers) if said == "unsure"],
    }
    assert examples.total == {kind: len(members) for kind, members in kinds.items()}
    assert all(examples.total.values())
    found = of.audit(known)
    stratum = of.pair_strata
    for kind, members in kinds.items():
        weights = {}
        for at in members:
            band = found.strata[stratum[at]]
            weights[DATA["id"][of.left[at]], DATA["id"][of.right[at]]] = (
                0.0 if kind == "unsure" else band.pairs / band.judged,
                float(score[at]),
            )
        shown = examples.shown[kind]
        assert len(shown) == min(5, len(members))
        for one in shown:
            assert weights[one.left.id, one.right.id] == pytest.approx((one.stands_for, one.score))
            assert one.left.text == DATA["text"][DATA["id"].index(one.left.id)]
        least = min(one.stands_for for one in shown)
        assert sum(weight > least + 1e-9 for weight, _ in weights.values()) <= len(shown)
    assert [examples_of(of, known, 0).shown[kind] for kind in kinds] == [[], [], []]
    with pytest.raises(RecipeError) as caught:
        examples_of(of, known, -1)
    assert says(caught.value, "-1 pairs", "below 0")


def test_the_page_and_what_it_says() -> None:
    found = found_in(drawing(90), 3)
    page = Markup(found.to_html(command="neardup audit <in>"))
    check_loads_nothing(page)
    for words in (
        "How good is this result?",
        "neardup audit <in>",
        "Returned, but judged different",
        "Judged the same, but not returned",
        "Nobody is sure",
        "3 of ",
        "stands for about",
        *found.notes(),
    ):
        assert words in page.text


def test_the_page_names_its_corpus_and_writes_shares_in_one_form(tmp_path: Path) -> None:
    texts = tmp_path / "texts.jsonl"
    rows = [dict(zip(DATA, row, strict=True)) for row in zip(*DATA.values(), strict=True)]
    texts.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    with open_corpus([str(texts)]) as corpus:
        of = draw_sample(corpus, recipe=Recipe(features="words:2", threshold=0.6), candidate_rule="0.15", sample=60)
        found = of.audit(label_sample(of))
    page = found.to_html()
    assert str(texts) in page[page.index("<header") : page.index("</header>")]
    share = f"{found.precision.value:.1%}"
    # In a tile, in the table of thresholds, and in what was audited.
    assert page.count(share) >= 3
    assert f"{found.precision.value:.3f}" not in page
    assert "stratum" not in page
    assert "documents in memory" in found_in(drawing()).to_html()


def test_from_python_with_documents_that_would_do_harm(tmp_path: Path) -> None:
    texts = {
        "id": [EVIL, "b", "c", "d"],
        "text": [f"{EVIL} a rose is a rose", f"{EVIL} a rose is a tulip", "الورد ورد وهو ورد", "الورد ورد وهو زنبق"],
    }
    labels = [(EVIL, "b", 0), ("c", "d", "?")]
    found = nd.audit(texts, labels, features="words:1", threshold=0.4, candidate_rule=0.2)
    assert found.examples is not None
    found.write(tmp_path / "page.html")
    found.write(tmp_path / "all.json")
    assert json.loads((tmp_path / "all.json").read_text())["drawn"] == 2
    with pytest.raises(OutputError, match=r"exists: choose another name"):
        found.write(tmp_path / "page.html")
    with pytest.raises(OutputError, match=r"says no format of an audit"):
        found.write(tmp_path / "page.txt")
    with browser.opened(tmp_path / "page.html", width=360) as view:
        for details in view.locator("main details").all():
            details.evaluate("one => one.open = true")
        assert view.evaluate("window.harm") is None
        assert view.locator("img").count() == 0
        assert "<script>window.harm=1</script>" in view.inner_text("#pairs")
        assert view.locator('#pairs [dir="rtl"]').count() > 0
        assert view.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_search_in_a_browser(tmp_path: Path) -> None:
    found_in(drawing(90)).write(tmp_path / "page.html")
    with browser.opened(tmp_path / "page.html", dark=True) as view:
        name = view.locator("#pairs details summary bdi").first.inner_text()
        view.fill("#pairs-search", name)
        view.locator("#pairs output:not(:empty)").wait_for()
        shown = view.locator("#pairs > details:visible").count()
        assert 0 < shown < view.locator("#pairs > details").count()
