"""Texts of which one outlet writes the vowels and another does not, through the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import neardup, write_lines

#: The same sentences with and without points and tatweel; of the last, one word is another.
PAIRS = {
    "Arabic": (
        "قَالَ وَزِيرُ الخَارِجِيَّةِ إِنَّ الاجْتِمَاعَ سَيُعْقَدُ يَوْمَ الأَحَـــدِ القَادِمِ فِي مَدِينَةِ جُدَّةَ",
        "قال وزير الخارجية إن الاجتماع سيعقد يوم الأحد القادم في مدينة جدة",
        "قال وزير الداخلية إن الاجتماع سيعقد يوم الأحد القادم في مدينة جدة",
    ),
    "Hebrew": (
        "בְּרֵאשִׁית בָּרָא אֱלֹהִים אֵת הַשָּׁמַיִם וְאֵת הָאָרֶץ וְהָאָרֶץ הָיְתָה תֹהוּ וָבֹהוּ",
        "בראשית ברא אלהים את השמים ואת הארץ והארץ היתה תהו ובהו",
        "בראשית ברא אדני את השמים ואת הארץ והארץ היתה תהו ובהו",
    ),
}


@pytest.mark.parametrize("script", PAIRS)
def test_vowel_points_do_not_make_texts_different(tmp_path: Path, script: str) -> None:
    pointed, plain, _ = PAIRS[script]
    corpus = write_lines(tmp_path / "c.jsonl", [{"id": "p", "text": pointed}, {"id": "q", "text": plain}])
    neardup("pairs", corpus, "-o", tmp_path / "pairs.csv")
    assert (tmp_path / "pairs.csv").read_text().splitlines()[1:] == ['"p","q",1']
    for recipe in ("default", "ddd"):
        neardup("dedup", corpus, "--recipe", recipe, "-o", tmp_path / f"{recipe}.jsonl")
        kept = [json.loads(line)["id"] for line in (tmp_path / f"{recipe}.jsonl").read_text().splitlines()]
        assert kept == ["p"], recipe


@pytest.mark.parametrize("script", PAIRS)
def test_differences_are_marked_in_the_original_text(tmp_path: Path, script: str) -> None:
    pointed, _, other = PAIRS[script]
    corpus = write_lines(tmp_path / "c.jsonl", [{"id": "p", "text": pointed}, {"id": "q", "text": other}])
    out = " ".join(neardup("explain", corpus, "p", "q", "--features", "words:2").stdout.split())
    assert f"«{pointed.split()[2]}»" in out
    assert f"«{other.split()[2]}»" in out
    passages = json.loads(neardup("explain", corpus, "p", "q", "--features", "words:2", "--json").stdout)["passages"]
    for passage in passages:
        begin, end = passage["left"]
        (first, last), *_ = passage["right"]
        # Both begin and end with the same words, points and all.
        assert len(pointed[:begin].split()) == len(other[:first].split())
        assert len(pointed[:end].split()) == len(other[:last].split())
        assert pointed[end : end + 1] in (" ", "")
    assert len(passages) == 2
