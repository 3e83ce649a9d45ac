"""What a file is: names of texts are never tables, a table without a name shows itself, and guesses are named."""

from __future__ import annotations

from pathlib import Path

import pytest
from input_files import texts_of
from sentences import says

from neardup.documents import open_corpus
from neardup.documents.inputs import TEXT_SUFFIXES
from neardup.documents.textfiles import spoken_words
from neardup.errors import InputError

LOOKS_LIKE_A_TABLE = b"id,text\n1,one\n2,two\n"


@pytest.mark.parametrize("suffix", sorted(TEXT_SUFFIXES))
@pytest.mark.parametrize("content", [LOOKS_LIKE_A_TABLE, b'{"text": "one"}\n', b"import os, sys\n"])
def test_a_file_with_the_name_of_a_text_is_one_text(tmp_path: Path, suffix: str, content: bytes) -> None:
    path = tmp_path / f"file{suffix}"
    path.write_bytes(content)
    for given in (path, tmp_path):
        with open_corpus([given]) as corpus:
            assert texts_of(corpus) == [content.decode()]


def test_scripts_and_styles_beside_pages_are_no_documents(tmp_path: Path) -> None:
    for name in ("a.js", "a.css"):
        (tmp_path / name).write_text(name)
    with open_corpus([tmp_path]) as corpus:
        assert texts_of(corpus) == ["a.css", "a.js"]
    (tmp_path / "page.html").write_text("<p>words")
    with open_corpus([tmp_path]) as corpus:
        assert texts_of(corpus) == ["<p>words"]
        assert says(corpus.notes[0], "read 1 text file", "left out 2 others")


NO_TABLES = {
    "source": b"import os, sys\nx = 1\ny = 2\n",
    "prose": b"First, we met.\nThen we, as ever, spoke.\nAnd left.\n",
    "subtitles": b"1\n00:00:01,000 --> 00:00:02,000\nHello, world\n",
    "mail": b"From: a@a.org, b@b.org\nSubject: x\n\nWords, more words\n",
    "markup": b"<rss><title>a, b</title></rss>\n",
    "json": b'{\n  "a": 1,\n  "b": 2\n}\n',
    "settings": b"{a: 1, b: 2}\n[section]\n",
    "equal names": b"a,a\n1,2\n",
    "no name": b",b\n1,2\n",
    "sentences": b"It was a long day, " + b"and " * 30 + b"so we left\na, b\n",
    "bytes": b"\0\1\2,\3\n",
    "empty": b"",
}


@pytest.mark.parametrize("name", NO_TABLES)
def test_what_shows_no_table_under_an_unknown_name_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "file.unknown"
    path.write_bytes(NO_TABLES[name])
    with pytest.raises(InputError) as caught:
        open_corpus([path])
    assert says(str(caught.value), "file.unknown", "no known format", ".csv", ".srt")


TABLES = {
    "csv": LOOKS_LIKE_A_TABLE,
    "tsv": LOOKS_LIKE_A_TABLE.replace(b",", b"\t"),
    "quoted": b'id,text\n1,"one"\n2,"two"\n',
    "a broken row": LOOKS_LIKE_A_TABLE + b"3,4,5\n",
    "json lines": b'{"id": 1, "text": "one"}\n{"id": 2, "text": "two"}\n',
    "broken json first": b'{"id": 0, "te\n{"id": 1, "text": "one"}\n{"id": 2, "text": "two"}\n',
    "mark": b"\xef\xbb\xbf" + LOOKS_LIKE_A_TABLE,
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_under_an_unknown_name_is_read_and_named(tmp_path: Path, name: str) -> None:
    path = tmp_path / "file.unknown"
    path.write_bytes(TABLES[name])
    with open_corpus([path]) as corpus:
        assert texts_of(corpus) == ["one", "two"]
        assert says(corpus.notes[0], "file.unknown is read as", "JSON lines" if "json" in name else "CSV")


def test_a_feed_is_one_text_with_a_pointer_to_watch(tmp_path: Path) -> None:
    path = tmp_path / "feed.rss"
    path.write_bytes(b"<rss><item><title>a, b</title></item></rss>")
    with open_corpus([path]) as corpus:
        assert len(texts_of(corpus)) == 1
        assert says(corpus.notes[0], "feed.rss", "one text", "neardup watch")


SUBRIP = """1
00:00:01,000 --> 00:00:02,500
<i>Hello,</i> world

2
00:00:03,000 --> 00:00:04,000
{\\an8}Two lines
of words

3
00:00:05,000 --> 00:00:06,000
1984

said after a blank line
"""
WEBVTT = """WEBVTT - a film
Kind: captions

NOTE
a remark of
two lines

STYLE
::cue { color: red }

intro
00:01.000 --> 00:02.500 align:start
<v Ann>Hello,</v> world

NOTE another remark

00:00:03.000 --> 00:00:04.000
Two <00:00:03.500><c.red>lines</c>
of words

00:00:05.000 --> 00:00:06.000
1984
said after a blank line
"""


def test_of_subtitles_the_words_are_compared(tmp_path: Path) -> None:
    words = "Hello, world\nTwo lines\nof words\n1984\nsaid after a blank line"
    for name, content in {"a.srt": SUBRIP, "a.vtt": WEBVTT, "b.srt": SUBRIP.replace("\n", "\r\n")}.items():
        (tmp_path / name).write_bytes(content.encode())
        with open_corpus([tmp_path / name]) as corpus:
            assert texts_of(corpus) == [words]
            assert says(corpus.notes[0], name, "only the words are compared")


@pytest.mark.parametrize("content", [b"", b"no times\n", b"WEBVTT\n", b"1\n\xff 00:00:01,000 --> 00:00:02,000\nx\n"])
def test_subtitles_without_times_stay_as_they_are(content: bytes) -> None:
    assert spoken_words(content) == content


def test_subtitles_take_linear_time() -> None:
    for piece in (
        "00:00:01,000 --> ",
        "00:00:01,000 --> 1\n\n\n",
        "<",
        "{\\",
        "1\n",
        "\n \t",
        "00:00:01,000 --> 2\n1\n",
    ):
        spoken_words(("00:00:01,000 --> 2\n" + piece * 100_000).encode())
