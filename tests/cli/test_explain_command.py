"""``neardup explain`` and ``neardup recipe``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import FOX, RULES, neardup, refused, write_lines
from sentences import says

from neardup.recipe import Recipe, names, parse


def words(*arguments: str | Path) -> str:
    """What the command shows, on one line."""
    return " ".join(neardup("explain", *arguments).stdout.split())


_SIMHASH = ("--set", "signature=simhash", "--measure", "hamming", "--threshold", "3", "--features", "words:2")
_IDF = ("--features", "words:1", "--set", "weights=idf", "--measure", "cosine", "--set", "clip=df:1:2")


@pytest.mark.parametrize(
    ("other", "options", "parts"),
    [
        ("fox-edited", RULES, ("fox (17 features)", "«today»", "near-duplicates: jaccard 0.9444 >= 0.8", "of 0.9445")),
        ("fox-edited", RULES, ("words that differ are within «»", "the longest of 19 words")),
        ("fox-edited", ("--recipe", "ddd"), ("characters that differ are within «»", " characters")),
        ("fox-edited", (*RULES, "--second-step", "edit >= 0.99"), ("17 features shared, of 17", "edit 0.9405 <")),
        ("fox-edited", (*RULES, "--second-step", "edit >= 0.99"), ("no near-duplicates", "pass the second step")),
        ("fox-edited", ("--features", "terms:3", "--measure", "overlap"), ("of 3 and 3", "stop words of en")),
        ("fox-edited", _IDF, ("no near-duplicates: cosine 0.0000 < 0.85", "left document has no feature")),
        ("fox-edited", _IDF, ("words:1 (words), clip df:1:2, weights idf",)),
        ("fox-again", _SIMHASH, ("verdict near-duplicates: hamming 0 <= 3", "0 of 64 bits", "jaccard is 1.0000")),
        ("fox-again", ("--set", "signature=imatch:5"), ("imatch digests are equal",)),
        ("fox-edited", ("--features", "checksum:md5"), ("(1 feature)", "md5 digests differ: ", "«today»")),
    ],
)
def test_two_texts_and_the_reasons_of_the_verdict_are_shown(
    other: str, options: tuple[str, ...], parts: tuple[str, ...], corpus: Path
) -> None:
    assert says(words(corpus, "fox", other, *options), *parts)


def test_documents_without_ids_are_named_by_row(tmp_path: Path) -> None:
    corpus = write_lines(tmp_path / "c.jsonl", [{"text": FOX}, {"text": "another"}, {"text": FOX}])
    assert json.loads(neardup("explain", corpus, "0", "2", "--json").stdout)["similarity"] == 1.0
    assert says(refused("explain", corpus, "0", "3"), "no document", "row number", "'3'")


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
    assert "own is a valid recipe; fingerprint " in neardup("recipe", "show", own).stderr
