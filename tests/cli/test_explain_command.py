"""``neardup explain`` and ``neardup recipe``."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from commands import FOX, RULES, neardup, refused, write_lines
from sentences import says

from neardup.recipe import Recipe, names, parse


def test_explain_shows_two_texts_and_the_verdict(corpus: Path) -> None:
    out = neardup("explain", corpus, "fox", "fox-edited", *RULES).stdout
    for text in (
        "fox  (17 features)",
        "«today»",
        "near-duplicates: jaccard 0.9444 >= 0.8",
        "threshold of 0.9445",
        "words:3",
    ):
        assert text in " ".join(out.split()) or text in out


def test_documents_without_ids_are_named_by_row(tmp_path: Path) -> None:
    corpus = write_lines(tmp_path / "c.jsonl", [{"text": FOX}, {"text": "another"}, {"text": FOX}])
    assert json.loads(neardup("explain", corpus, "0", "2", "--json").stdout)["similarity"] == 1.0
    assert says(refused("explain", corpus, "0", "3"), "no document", "row number", "'3'")


def test_unknown_ids_name_close_ones(corpus: Path) -> None:
    message = refused("explain", corpus, "fox", "fox-agian")
    assert says(message, "no document", "'fox-agian'", "close", "'fox-again'")
    message = refused("explain", corpus, "zzzzz", "fox")
    assert says(message, "no document", "'zzzzz'", "'fox', 'rose', 'fox-again'")
    assert "close" not in message


def test_document_text_cannot_control_the_terminal(tmp_path: Path) -> None:
    text = "[bold red]not markup[/] [/nope] \x1b[31mnot red\x1b[0m :smile: http://example.org"
    corpus = write_lines(tmp_path / "c.jsonl", [{"id": "[b]\x1b", "text": text}, {"id": "2", "text": "plain"}])
    out = neardup("explain", corpus, "[b]\x1b", "2").stdout
    output = " ".join(out.split())
    assert "\x1b" not in out
    assert "[b]␛" in output
    for part in ("[bold red]not", "␛[31mnot", ":smile:"):
        assert part in output
    assert "\x1b" not in refused("explain", corpus, "\x1b[2J", "2")


def words(*arguments: str | Path) -> str:
    """What the command shows, on one line."""
    return " ".join(neardup("explain", *arguments).stdout.split())


def test_statistics_of_the_corpus_are_gathered_first(corpus: Path) -> None:
    own = ("--features", "terms:3", "--measure", "overlap", "--threshold", "0.5")
    output = words(corpus, "fox", "fox-edited", *own)
    assert says(output, "overlap 1.0000 >= 0.5", "3 features", "of 3 and 3", "terms:3 (words", "stop words of en")
    assert "no near-duplicates" not in output
    rules = ("--features", "words:1", "--set", "weights=idf", "--measure", "cosine", "--set", "clip=df:1:2")
    output = words(corpus, "fox", "fox-edited", *rules)
    assert says(output, "no near-duplicates", "cosine 0.0000 < 0.85", "0 features", "of 0 and 1")
    assert "left document has no feature" in output
    assert "words:1 (words), clip df:1:2, weights idf" in output


def test_signatures_are_explained_in_their_own_terms(corpus: Path) -> None:
    own = ("--set", "signature=simhash", "--measure", "hamming", "--threshold", "3", "--features", "words:2")
    output = words(corpus, "fox", "fox-again", *own)
    assert says(output, "near-duplicates: hamming 0 <= 3", "0 of 64 bits", "jaccard is 1.0000")
    assert "no near-duplicates" not in output
    assert "needed" not in output
    why = json.loads(neardup("explain", corpus, "fox", "rose", "--json", *own).stdout)
    assert why["value"] == 64 - why["counts"]["o"] > 3
    assert "imatch digests are equal" in words(corpus, "fox", "fox-again", "--set", "signature=imatch:5")


def test_checksums_show_what_differs(corpus: Path) -> None:
    output = words(corpus, "fox", "fox-edited", "--features", "checksum:md5", "--set", "normalize=words")
    assert "(1 feature)" in output
    assert "md5 digests differ: " in output
    assert "«today»" in output
    assert "equal normal form" in output


def test_differences_between_qgrams_are_called_characters(corpus: Path) -> None:
    output = words(corpus, "fox", "fox-edited", "--recipe", "ddd")
    assert "characters that differ are within «»" in output
    assert re.search(r"the longest of \d+ characters", output)
    output = words(corpus, "fox", "fox-edited", *RULES)
    assert "words that differ are within «»" in output
    assert re.search(r"the longest of \d+ words", output)


def test_both_steps_are_shown(corpus: Path) -> None:
    output = words(corpus, "fox", "fox-edited", *RULES, "--second-step", "edit >= 0.99")
    assert says(output, "no near-duplicates", "jaccard 0.9444 >= 0.8", "17 features", "of 17 and 18", "then edit 0.94")
    for step, threshold in (("pass the second step", "0.94"), ("no longer pass the first step", "0.9445")):
        assert any(step in sentence and threshold in sentence for sentence in output.split(". ")), step


def test_semantic_measures_need_python(corpus: Path) -> None:
    assert says(refused("explain", corpus, "fox", "rose", "--measure", "semantic"), "semantic", "needs an encoder")


def test_colours_in_a_terminal(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm", "NO_COLOR": ""}.items():
        monkeypatch.setenv(name, value)
    output = neardup("explain", corpus, "fox", "fox-edited", *RULES, color=True).stdout
    assert "\x1b[32m" in output
    assert "\x1b[1;31m" in output
    assert "«today»" not in output


def test_recipes_are_listed_shown_and_checked(tmp_path: Path) -> None:
    listed = neardup("recipe", "list").stdout
    assert all(name in listed for name in names())
    assert [row["name"] for row in json.loads(neardup("recipe", "list", "--json").stdout)] == names()
    output = neardup("recipe", "show", "default").stdout
    assert isinstance(parse(output, "shown"), Recipe)
    own = tmp_path / "own.toml"
    own.write_text(output.replace('"default"', '"own"'))
    assert "own is a valid recipe; fingerprint " in neardup("recipe", "check", own).stdout
