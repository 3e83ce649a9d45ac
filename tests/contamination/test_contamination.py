"""Which items of a test set occur in training texts: a plain search finds the same, and the command reports it."""

from __future__ import annotations

import csv
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from commands import neardup, refused
from hypothesis import given
from hypothesis import strategies as st
from naive_text import naive_tokens

import neardup as nd

SPEECH = (
    "Four score and seven years ago our fathers brought forth on this continent a new nation, conceived in liberty, "
    "and dedicated to the proposition that all men are created equal."
)
RECIPE = "Whisk the eggs with the sugar until pale, fold in the flour and the butter, and bake for twenty minutes."
REMARK = "The minutes of the meeting were read and approved without any changes by those who had been there in person."

words = st.lists(st.sampled_from(["a", "b", "c", "D", "d,", "é", "-"]), max_size=14)
texts = st.lists(words.map(" ".join), min_size=1, max_size=4)


def naive_grams(text: str, n: int) -> list[tuple[str, ...]]:
    """The n-grams of a text, or one gram of all its words."""
    found = naive_tokens(text, "words")
    if len(found) < n:
        return [tuple(found)] if found else []
    return [tuple(found[at : at + n]) for at in range(len(found) - n + 1)]


def naive_containment(item: str, text: str, n: int) -> Fraction:
    """The share of an item's distinct grams that occur anywhere in a text."""
    grams, found = set(naive_grams(item, n)), naive_tokens(text, "words")
    runs = {tuple(found[at : at + size]) for size in {len(gram) for gram in grams} for at in range(len(found))}
    return Fraction(len(grams & runs), len(grams))


@given(texts, texts, st.integers(1, 4), st.sampled_from(["0.25", "0.5", "0.7", "1"]), st.integers(1, 3))
def test_a_plain_search_finds_the_same_items(
    train: list[str], test: list[str], n: int, at_least: str, min_words: int
) -> None:
    searched = [at for at, item in enumerate(test) if len(naive_tokens(item, "words")) >= min_words]
    if not searched:
        with pytest.raises(nd.InputError, match="lower it"):
            nd.check_contamination(train, test, ngrams=n, at_least=float(at_least), min_words=min_words)
        return
    found = nd.check_contamination(train, test, ngrams=n, at_least=float(at_least), min_words=min_words)
    rows = found.table().to_pylist()
    expected = {at: [naive_containment(test[at], text, n) for text in train] for at in searched}
    assert [at for at, row in enumerate(rows) if row["words"] is not None] == searched
    assert {at: Fraction(rows[at]["containment"]).limit_denominator(100) for at in searched} == {
        at: max(shares) for at, shares in expected.items()
    }
    # Of equal shares, the first training text is named.
    best = {at: shares.index(max(shares)) for at, shares in expected.items() if max(shares) >= Fraction(at_least)}
    assert {at: int(row["document"]) for at, row in enumerate(rows) if row["contaminated"]} == best
    hits = [(at, d) for at, shares in expected.items() for d, share in enumerate(shares) if share >= Fraction(at_least)]
    assert found.contaminated.tolist() == sorted({at for at, _ in hits})
    assert sorted({(int(row["item"]), int(row["document"])) for row in found.spans.to_pylist()}) == sorted(hits)
    for row in found.spans.to_pylist():
        in_training = naive_tokens(train[int(row["document"])][row["document_start"] : row["document_end"]], "words")
        in_item = naive_tokens(test[int(row["item"])][row["item_start"] : row["item_end"]], "words")
        assert in_training == in_item
        assert len(in_item) == row["words"]


def test_case_punctuation_and_line_wraps_do_not_count() -> None:
    wrapped = SPEECH.upper().replace(",", " --").replace(" ", "\n > ", 7)
    found = nd.check_contamination(
        [RECIPE + wrapped + REMARK], [SPEECH, RECIPE + " Serve it warm with cream and fruit."]
    )
    assert found.summary["contaminated"] == 1 + 1
    assert found.findings[0].containment == 1
    (span,) = found.findings[0].spans
    assert (RECIPE + wrapped)[span.start : span.end].endswith("EQUAL")
    assert found.findings[0].excerpt == (RECIPE + wrapped + REMARK)[len(RECIPE) - 100 : span.end + 100]


@pytest.fixture
def corpora(tmp_path: Path) -> tuple[Path, Path]:
    train: list[dict[str, Any]] = [
        {"id": "speech", "text": f"{RECIPE}\n{SPEECH}"},
        {"id": "remark", "text": REMARK},
        {"id": "none", "text": None},
    ]
    test: list[dict[str, Any]] = [
        {"id": 7, "question": SPEECH, "answer": "Abraham Lincoln"},
        {"id": 8, "question": "Who was the first to walk on the moon, and in what year?", "answer": REMARK},
        {"id": 9, "question": "Which of the following statements about <b>rivers</b> is not true?", "answer": None},
    ]
    places = tmp_path / "train.jsonl", tmp_path / "test.jsonl"
    for place, rows in zip(places, (train, test), strict=True):
        place.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return places


def test_columns_are_searched_separately_and_together(corpora: tuple[Path, Path], tmp_path: Path) -> None:
    train, test = corpora
    spans, items = tmp_path / "spans.parquet", tmp_path / "items.csv"
    found = json.loads(
        neardup(
            *("contamination", train, "--test", test, "--test-column", "question,answer"),
            *("-o", spans, "--items", items, "--json"),
        ).stdout
    )
    assert (found["items"], found["contaminated"], found["documents"]) == (3, 2, 2)
    shares = {name: (one["contaminated"], one["searched"], one["too_short"]) for name, one in found["columns"].items()}
    assert shares == {"question": (1, 3, 0), "answer": (1, 1, 2), "all": (1, 3, 0)}
    assert found["rejected"]["train"] == {"no text": 1}
    rows = pq.read_table(spans).to_pylist()
    assert {(row["item"], row["column"], row["document"]) for row in rows} == {
        *{("7", name, "speech") for name in ("question", "all")},
        ("8", "answer", "remark"),
    }
    with items.open(newline="") as file:
        table = {(row["item"], row["column"]): row["contaminated"] for row in csv.DictReader(file)}
    assert (table["7", "question"], table["9", "question"], table["9", "answer"]) == ("true", "false", "")


@pytest.mark.parametrize(("allowed", "code"), [("50%", 1), ("0.7", 0)])
def test_the_exit_code_is_1_above_the_allowed_share(allowed: str, code: int, corpora: tuple[Path, Path]) -> None:
    command = ("contamination", corpora[0], "--test", corpora[1], "--test-column", "question,answer")
    assert (allowed in neardup(*command, "--fail-over", allowed, code=code).stderr) == bool(code)


def test_clean_training_texts_contain_no_item(corpora: tuple[Path, Path], tmp_path: Path) -> None:
    train, test = corpora
    clean = tmp_path / "clean.jsonl"
    neardup("contamination", train, "--test", test, "--test-column", "question", "--clean", clean)
    assert clean.read_bytes() == train.read_bytes().splitlines(keepends=True)[1]
    neardup("contamination", clean, "--test", test, "--test-column", "question", "--fail-over", "0")


def test_the_share_is_that_of_the_items_long_enough_to_judge(corpora: tuple[Path, Path]) -> None:
    command = ("contamination", corpora[0], "--test", corpora[1], "--test-column")
    assert ": 1 contaminated (100.00% of the 1 searched)\n" in neardup(*command, "answer").stderr
    assert ": 1 contaminated (33.33%)\n" in neardup(*command, "question").stderr


def test_threads_and_files_change_nothing(corpora: tuple[Path, Path], tmp_path: Path) -> None:
    train, test = corpora
    parts = [tmp_path / "part0.jsonl", tmp_path / "part1.jsonl"]
    for part, line in zip(parts, train.read_bytes().splitlines(keepends=True), strict=False):
        part.write_bytes(line)
    written = set()
    for inputs, threads in (([train], "1"), (parts, "2")):
        spans = tmp_path / f"{threads}.csv"
        options = ("--test", test, "--test-column", "question,answer", "--threads", threads, "-o", spans)
        neardup("contamination", *inputs, *options)
        written.add(spans.read_bytes())
    assert len(written) == 1


def test_the_page_shows_both_texts_and_escapes_them(corpora: tuple[Path, Path], tmp_path: Path) -> None:
    train, test = corpora
    hostile = tmp_path / "hostile.jsonl"
    text = "Which of the following statements about <b>rivers</b> is not true? <script>alert(1)</script>"
    hostile.write_text(train.read_text("utf-8") + json.dumps({"id": "<i>x</i>", "text": text}) + "\n", "utf-8")
    page = tmp_path / "page.html"
    neardup("contamination", hostile, "--test", test, "--test-column", "question,answer", "--report", page)
    written = page.read_text("utf-8")
    assert "<script>alert" not in written
    assert "<i>x</i>" not in written
    assert "&lt;b&gt;rivers&lt;/b&gt;" in written
    assert "continent" in written
    # All columns together contain the speech in part, the question contains it whole.
    assert "7 · question · 100%" in written
    head = written[written.index("<header") : written.index("</header>")]
    assert head.index(str(test)) < head.index(str(hostile))


@pytest.mark.parametrize(("around", "note"), [("", ""), (RECIPE * 40, ", in part")])
def test_a_long_item_is_shown_beside_its_training_text(around: str, note: str, tmp_path: Path) -> None:
    item = " ".join(f"word{n} of the item" for n in range(1100))
    page, train, test = (tmp_path / file for file in ("page.html", "train.jsonl", "test.jsonl"))
    train.write_text(json.dumps({"id": "book", "text": f"{around} {item} {around}".strip()}) + "\n")
    test.write_text(json.dumps({"id": "long", "text": item}) + "\n")
    neardup("contamination", train, "--test", test, "--report", page)
    written = page.read_text("utf-8")
    assert "4,388 of 4,388 n-grams (100%)" in written
    assert f"training text book{note}</" in written
    assert written.count("4,400 words") == (1 if note else 2)
    assert note or 'class="row differs"' not in written


@pytest.mark.parametrize(
    ("options", "value", "way"),
    [
        (("--test-column", "question,topic"), "topic", "answer"),
        (("--test-column", "question,id"), "id", "another"),
        (("--at-least", "half"), "half", "50%"),
        (("--min-words", "99"), "99", "--min-words"),
    ],
)
def test_wrong_options_are_refused_in_a_sentence(
    options: tuple[str, ...], value: str, way: str, corpora: tuple[Path, Path], tmp_path: Path
) -> None:
    train, test = corpora
    column = () if "--test-column" in options else ("--test-column", "question")
    message = refused("contamination", train, "--test", test, "-o", tmp_path / "spans.csv", *column, *options)
    assert value in message
    assert way in message
    assert not (tmp_path / "spans.csv").exists()


def test_a_test_set_that_cannot_be_used_is_reported_or_refused(corpora: tuple[Path, Path]) -> None:
    train, test = corpora
    command: tuple[str | Path, ...] = ("contamination", train, "--test", test)
    message = refused(*command)
    assert "--test-column" in message
    assert "--text-column" not in message
    command = (*command, "--test-column", "question")
    whole = test.read_bytes()
    test.write_bytes(whole[:-20])
    assert str(test) in neardup(*command, code=3).stderr
    test.write_bytes(whole + whole)
    assert "3 documents repeat an id" in refused(*command)
    test.write_bytes(b'{"id": 1, "question": "cut')
    assert "cut short" in refused(*command)


def test_ignored_text_does_not_count(tmp_path: Path) -> None:
    instruction = " ".join(f"step{number}" for number in range(41))
    ends = ("the formula is x plus y over z squared", "what is the sum of a and b and c here")
    train, test = [f"{instruction} {ends[0]}"], [f"{instruction} {ends[1]}", f"{instruction} {ends[0]}"]
    assert nd.check_contamination(train, test).summary["contaminated"] == 2
    found = nd.check_contamination(train, test, ignore=f"Answer. {instruction.upper()}")
    assert [(row["containment"], row["contaminated"]) for row in found.table().to_pylist()] == [
        (0.0, False),
        (1.0, True),
    ]
    # A short item that lies in it whole, and a long one.
    short = " ".join(instruction.split()[3:12])
    mixed = nd.check_contamination([*train, short], [short, instruction, *test], ignore=instruction)
    assert mixed.summary["too_short"] == 2
    assert mixed.summary["contaminated"] == 1
    with pytest.raises(nd.InputError, match="every item of the test set lies in the text of ignore"):
        nd.check_contamination(train, [short, instruction], ignore=instruction)
    for name, content in (("ignore.txt", instruction), ("train.txt", train[0]), ("test.txt", test[0])):
        (tmp_path / name).write_text(content)
    run = ("contamination", tmp_path / "train.txt", "--test", tmp_path / "test.txt", "--json")
    for ignore, contaminated in (((), 1), (("--ignore", tmp_path / "ignore.txt"), 0)):
        assert json.loads(neardup(*run, *ignore).stdout)["contaminated"] == contaminated
