"""A flow without a recipe of its own judges short texts: memories, headlines, posts and adverts."""

from __future__ import annotations

import pytest

import neardup as nd

NEAR = [
    ("The user prefers dark mode in the editor", "User prefers dark mode in the editor."),
    ("Ann's birthday is on 4 March; she likes tulips", "Ann's birthday is on 4 March. She likes tulips!"),
    ("Harbour board votes to widen eastern channel", "Harbour Board Votes to Widen the Eastern Channel"),
    ("BREAKING: Ferry to the islands sails again after storm", "Ferry to the islands sails again after storm"),
    ("Lost: grey cat near the mill, answers to Tom", "LOST grey cat near the mill - answers to Tom \N{CAT}"),
    (
        "For sale: oak table, six chairs, very good condition, 240",
        "For sale: oak table, six chairs, very good condition, 220",
    ),
    ("So happy with the new bike lane on Mill Street!!", "so happy with the new bike lane on mill street"),
    ("Driver wanted, full time, Kirkwall, apply by Friday", "Driver wanted (full-time), Kirkwall. Apply by Friday."),
]
OTHER = [
    ("The user prefers dark mode in the editor", "The user prefers light mode in the terminal"),
    ("Ann's birthday is on 4 March; she likes tulips", "Ben's birthday is on 9 April; he likes coffee"),
    ("Harbour board votes to widen eastern channel", "School board votes to close western school"),
    ("Ferry to the islands sails again after storm", "Ferry to the mainland cancelled after storm"),
    ("Lost: grey cat near the mill, answers to Tom", "Found: black dog near the church, answers to Rex"),
    (
        "For sale: oak table, six chairs, very good condition, 240",
        "For sale: pine bed, two drawers, very good condition, 240",
    ),
    ("Driver wanted, full time, Kirkwall, apply by Friday", "Nurse wanted, part time, Kirkwall, apply by Monday"),
]


@pytest.mark.parametrize(
    ("first", "second", "kind"), [*((*p, "near") for p in NEAR), *((*p, "original") for p in OTHER)]
)
def test_short_texts_are_judged_by_the_recipe_of_a_flow(first: str, second: str, kind: str) -> None:
    index = nd.Index()
    assert index.recipe.name == "ddd"
    found = index.add_many([nd.Document("a", first), nd.Document("b", second)])[1]
    assert found.kind == kind or (kind == "near" and found.has_equal_features)


def test_one_changed_word_in_37_is_a_duplicate() -> None:
    words = [
        f"{start}{end}"
        for start in ("har", "bo", "ves", "lan", "tor", "mis")
        for end in ("bour", "ard", "sel", "tern", "rent", "ty")
    ]
    text = " ".join([*words, "closed"])
    assert len(text.split()) == 37
    index = nd.Index()
    index.add(nd.Document("a", text))
    assert index.add(nd.Document("b", text.replace("boren", "open").replace("borrent", "water"))).kind == "near"


def test_features_without_a_recipe_change_the_default_recipe() -> None:
    assert nd.Index(features="words:3").recipe.measure == "jaccard"
    assert nd.Index(threshold=0.9).recipe.threshold == 0.9
    assert nd.Index("ddd").recipe.threshold == 0.7


def test_a_text_that_is_too_short_for_a_verdict_is_flagged() -> None:
    index = nd.Index()
    verdicts = index.add_many([nd.Document("a", "!!"), nd.Document("b", "?!")])
    assert [(verdict.kind, verdict.flag) for verdict in verdicts] == [("original", "undecidable")] * 2
