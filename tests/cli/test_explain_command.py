"""``neardup explain`` and ``neardup recipe``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from calling import FOX, RULES, in_terminal, neardup, refused, write_lines

from neardup.measures import SET_MEASURES
from neardup.recipe import Recipe, names, parse


def test_side_by_side(corpus: Path) -> None:
    out = neardup("explain", corpus, "fox", "fox-edited", *RULES).stdout
    for text in (
        "fox  (17 features)",
        "«today»",
        "near-duplicates: jaccard 0.9444 >= 0.8",
        "They no longer match at a threshold of 0.9445 or higher.",
        "words:3",
    ):
        assert text in " ".join(out.split()) or text in out


def test_json(corpus: Path) -> None:
    why = json.loads(neardup("explain", corpus, "fox", "rose", "--json", *RULES).stdout)
    assert (why["left"], why["right"], why["match"], why["shared"]) == ("fox", "rose", False, 0)
    assert set(why["measures"]) == set(SET_MEASURES)


def test_rows_are_the_names_where_there_are_no_ids(tmp_path: Path) -> None:
    corpus = write_lines(tmp_path / "c.jsonl", [{"text": FOX}, {"text": "another"}, {"text": FOX}])
    assert json.loads(neardup("explain", corpus, "0", "2", "--json").stdout)["similarity"] == 1.0
    assert "no document has the row number '3'" in refused("explain", corpus, "0", "3")


def test_whole_numbers_as_ids(tmp_path: Path) -> None:
    corpus = write_lines(tmp_path / "c.jsonl", [{"id": 7, "text": FOX}, {"id": 700, "text": FOX}])
    assert json.loads(neardup("explain", corpus, "700", "7", "--json").stdout)["match"]


def test_several_inputs(corpus: Path, tmp_path: Path) -> None:
    other = write_lines(tmp_path / "other.jsonl", [{"id": "x", "text": FOX}])
    assert json.loads(neardup("explain", corpus, other, "fox", "x", "--json").stdout)["match"]


def test_unknown_ids_name_close_ones(corpus: Path) -> None:
    message = refused("explain", corpus, "fox", "fox-agian")
    assert message.startswith("no document has the id 'fox-agian'; close ones are 'fox-again'")
    assert refused("explain", corpus, "zzzzz", "fox").endswith("ids look like 'fox', 'rose', 'fox-again'")


def test_too_few_arguments_are_wrong_use(corpus: Path) -> None:
    result = neardup("explain", corpus, "fox", code=2)
    assert "give at least one input, then two ids" in " ".join(result.stderr.split()).replace("│ ", "")


def test_document_text_does_nothing_to_the_terminal(tmp_path: Path) -> None:
    text = "[bold red]not markup[/] [/nope] \x1b[31mnot red\x1b[0m :smile: http://example.org"
    corpus = write_lines(tmp_path / "c.jsonl", [{"id": "[b]\x1b", "text": text}, {"id": "2", "text": "plain"}])
    out = neardup("explain", corpus, "[b]\x1b", "2").stdout
    shown = " ".join(out.split())
    assert "\x1b" not in out
    assert "[b]␛" in shown
    for part in ("[bold red]not", "␛[31mnot", ":smile:"):
        assert part in shown
    assert "\x1b" not in refused("explain", corpus, "\x1b[2J", "2")


def words(*arguments: str | Path) -> str:
    """What the command shows, on one line."""
    return " ".join(neardup("explain", *arguments).stdout.split())


def test_what_depends_on_the_collection_is_gathered_first(corpus: Path) -> None:
    own = ("--features", "terms:3", "--measure", "overlap", "--threshold", "0.5")
    shown = words(corpus, "fox", "fox-edited", *own)
    assert "overlap 1.0000 >= 0.5; 3 features shared, of 3 and 3" in shown
    assert "terms:3 (words, without stop words of en)" in shown
    rules = ("--features", "words:1", "--weights", "idf", "--measure", "cosine", "--clip", "df:1:2")
    shown = words(corpus, "fox", "fox-edited", *rules)
    assert "no near-duplicates: cosine 0.0000 < 0.85; 0 features shared, of 0 and 1" in shown
    assert "The left document has no feature to compare" in shown
    assert "words:1 (words), clip df:1:2, weights idf; fingerprint" in shown


def test_the_collection_may_come_from_stdin(corpus: Path) -> None:
    own = ("--features", "terms:3", "--measure", "overlap", "--json")
    why = json.loads(neardup("explain", "-", "fox", "fox-again", *own, stdin=corpus.read_text()).stdout)
    assert (why["match"], why["sizes"]) == (True, [3, 3])


def test_signatures_are_told_in_their_own_terms(corpus: Path) -> None:
    own = ("--signature", "simhash", "--measure", "hamming", "--threshold", "3", "--features", "words:2")
    shown = words(corpus, "fox", "fox-again", *own)
    assert "near-duplicates: hamming 0 <= 3; 0 of 64 bits differ; the features' jaccard is 1.0000" in shown
    assert "needed" not in shown
    why = json.loads(neardup("explain", corpus, "fox", "rose", "--json", *own).stdout)
    assert why["value"] == 64 - why["counts"]["o"] > 3
    assert "imatch digests are equal" in words(corpus, "fox", "fox-again", "--signature", "imatch:5")


def test_checksums_show_what_differs(corpus: Path) -> None:
    shown = words(corpus, "fox", "fox-edited", "--features", "checksum:md5", "--normalize", "words")
    assert "(1 feature)" in shown
    assert "md5 digests differ: " in shown
    assert "«today»" in shown
    assert "Only those with an equal normal form match." in shown


def test_both_steps_are_shown(corpus: Path) -> None:
    shown = words(corpus, "fox", "fox-edited", *RULES, "--then", "edit >= 0.99")
    assert "no near-duplicates: jaccard 0.9444 >= 0.8; 17 features shared, of 17 and 18; then edit 0.94" in shown
    assert "They pass the second step at a threshold of 0.94" in shown
    assert "They no longer pass the first step at a threshold of 0.9445 or higher." in shown


def test_semantic_needs_python(corpus: Path) -> None:
    assert "needs an encoder" in refused("explain", corpus, "fox", "rose", "--measure", "semantic")


def test_colours_in_a_terminal(corpus: Path) -> None:
    shown = in_terminal("explain", corpus, "fox", "fox-edited", *RULES, stream="stdout")
    assert "\x1b[32m" in shown
    assert "\x1b[1;31m" in shown
    assert "«today»" not in shown


def test_recipes_are_listed_shown_and_checked(tmp_path: Path) -> None:
    listed = neardup("recipe", "list").stdout
    assert all(name in listed for name in names())
    assert [row["name"] for row in json.loads(neardup("recipe", "list", "--json").stdout)] == names()
    shown = neardup("recipe", "show", "default").stdout
    assert isinstance(parse(shown, "shown"), Recipe)
    own = tmp_path / "own.toml"
    own.write_text(shown.replace('"default"', '"own"'))
    assert "own is a good recipe; fingerprint " in neardup("recipe", "check", own).stdout


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("treshold = 0.8\n", "unknown key 'treshold'; a recipe's keys are name, "),
        ("threshold = 1.2\n", "threshold 1.2 is outside (0, 1]"),
        ("threshold = \n", "is not TOML"),
        ('measure = "jacard"\n', "measure 'jacard' is not known; choose one of jaccard"),
    ],
)
def test_recipe_files_that_are_refused(content: str, message: str, tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text(content)
    assert message in refused("recipe", "check", own)
    assert "own.toml" in refused("dedup", tmp_path, "--dry-run", "--recipe", own)
