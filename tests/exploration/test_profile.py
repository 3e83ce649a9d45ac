"""The sample and the profile of a corpus: counts against plain ones, scripts, templates and families."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from commands import write_lines
from hypothesis import given
from hypothesis import strategies as st

from neardup.documents import corpus_of, open_corpus
from neardup.documents.corpus import Corpus
from neardup.exploration import messages
from neardup.exploration.profile import (
    QUANTILES,
    CorpusProfile,
    ScriptCount,
    Scripts,
    beginning,
    family_core,
    length_bins,
    length_quantiles,
    main_script,
    profile_corpus,
)
from neardup.exploration.sample import draw_sample, row_hashes
from neardup.pages.documents import DocumentReader
from neardup.pipeline.pipeline import run
from neardup.recipe import Recipe
from neardup.text.normalize import tokens


def profile(corpus: Corpus) -> CorpusProfile:
    sample, survey = draw_sample(corpus, sample=2000)
    findings = run(corpus, Recipe(features="words:4", threshold=0.5), threads=1).findings
    return profile_corpus(survey, sample, corpus, DocumentReader(corpus, survey.names), findings=findings)


ABOUT = "Bright Harbour is a family of care homes in the north west and has looked after people for thirty years."
PLACES = ("Leeds", "York", "Hull", "Bath", "Ely", "Wells", "Ripon", "Truro")


def corpus_texts() -> list[str]:
    """Eight adverts that differ in the place, twenty of the same company, nine copies of one, and odd ones."""
    drawn = random.Random(5)

    def words(count: int) -> str:
        return " ".join(f"w{drawn.randrange(900)}" for _ in range(count))

    frame = words(50)
    texts = [f"Nurse in {place} {frame} {place}." for place in PLACES]
    texts += [f"{words(60)} {ABOUT} {words(10)}" for _ in range(20)]
    texts += [texts[8]] * 9
    return [*texts, "", "word", "   ", "版权所有未经书面授权不得转载", "🎉"]


def test_everything_is_counted_and_families_are_those_of_the_run() -> None:
    texts = corpus_texts()
    found = profile(corpus_of(texts))
    sizes, counts = [len(text.encode()) for text in texts], [len(tokens(text)) for text in texts]
    assert (found.documents, found.bytes) == (len(texts), sum(sizes))
    assert (found.words.documents, found.words.total) == (len(texts), sum(counts))
    assert (found.words.empty, found.words.one) == (2, 2)
    assert found.words.mean == pytest.approx(np.mean(counts))
    assert (found.copies.copies, found.copies.groups, found.copies.bytes) == (9, 1, 9 * sizes[8])
    (group,) = found.copies.largest
    assert (group.documents, group.bytes, group.ids) == (10, sizes[8], ("8", "28", "29", "30", "31"))
    assert group.begins == beginning(texts[8])
    assert [(one.number, one.documents, one.complete) for one in found.families] == [(2, 10, True), (1, 8, True)]
    assert found.families[0].ids == group.ids
    assert found.families[1].begins.startswith("Nurse in Leeds")
    assert (found.families_found, found.families_examined, found.templates_found) == (2, 2, 1)
    (template,) = found.templates
    assert (template.family, template.documents, template.compared, template.left_out) == (1, 8, 8, 0)
    assert [slot.distinct for slot in template.slots] == [8, 8]
    assert template.ids == ("0", "1", "2", "3", "4")
    scripts = [(one.name, one.documents, one.ids) for one in found.scripts.scripts]
    assert scripts == [("Latin", 38, ("0", "1", "2")), ("none", 3, ("37", "39", "41")), ("Han", 1, ("40",))]
    json.dumps(asdict(found))
    five = tuple(ScriptCount(name, 10, 0.2, ()) for name in ("Latin", "Arabic", "Thai", "Han", "Greek"))
    said = messages.describe_profile(replace(found, scripts=Scripts(50, five)))
    assert said["scripts"] == ["Latin 20%, Arabic 20%, Thai 20%, others 40%"]
    assert said["exact copies"] == ["9 copies of 1 text"]


def naive_quantile(lengths: Sequence[int], part: int) -> int:
    return next(one for one in sorted(lengths) if sum(other <= one for other in lengths) * 100 >= part * len(lengths))


@given(st.lists(st.integers(0, 10**6) | st.integers(0, 12), min_size=1, max_size=40))
def test_bins_and_quantiles(lengths: list[int]) -> None:
    values = np.array(lengths, np.int64)
    edges, counts = length_bins(values)
    assert sum(counts) == sum(one > 0 for one in lengths)
    if counts:
        assert len(edges) == len(counts) + 1
        assert counts[0] > 0 < counts[-1]
        assert all(one < other for one, other in pairwise(edges))
        for (low, high), count in zip(pairwise(edges), counts, strict=True):
            assert count == sum(low <= one < high for one in lengths)
    found = length_quantiles(values)
    assert found == tuple((part / 100, naive_quantile(lengths, part)) for part in QUANTILES)


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("ＦＵＬＬ ｗｉｄｔｈ ﬁne", "Latin"),
        ("شبكة BBC العربية للأخبار والتقارير", "Arabic"),
        ("中文新闻报道今日头条 CCTV", "Han"),
        ("東京タワーに行く", "Kana"),
        ("ﾊﾝｶｸ ｶﾅ", "Kana"),
        ("हिन्दी", "Devanagari"),
        ("𞤀𞤣𞤤𞤢𞤥", "other"),
        ("Latin script и кириллица", "mixed"),
        ("🎉🎉 123 !? \u0000\u202e", "none"),
    ],
)
def test_the_main_script_is_that_of_two_thirds_of_the_letters(text: str, script: str) -> None:
    assert main_script(text) == script


def test_the_core_of_a_family_is_what_matches_its_centre() -> None:
    # 0 and 5 have equal features, 5 and 7 equal texts; 2 matches 0, 3 and 4, which match nothing else; 6 matches 4.
    representative = np.array([0, 1, 2, 3, 4, 0, 6, 0])
    texts = np.array([0, 1, 2, 3, 4, 5, 6, 5])
    left, right = np.array([0, 2, 2, 4]), np.array([2, 3, 4, 6])
    family = np.array([0, 2, 3, 4, 5, 6, 7])
    assert family_core(family, representative, left, right, texts).tolist() == [2, 0, 3, 4, 5]
    alone = np.array([0, 5, 7])
    none = np.zeros(0, np.int64)
    assert family_core(alone, representative, none, none, texts).tolist() == [0, 5]


TEXTS = [f"document {n} says {'moon ' * (n % 7)}日本 \u0627\u0644 😀" for n in range(500)]


def test_the_smallest_hashes_are_drawn_also_beside_broken_records(tmp_path: Path) -> None:
    """A document is drawn by its row, so that a record that is mended later does not change the sample."""
    with corpus_of(TEXTS) as corpus:
        found, _ = draw_sample(corpus, sample=40, seed=7)
    keys = row_hashes(np.arange(500), 7)
    assert len(set(keys.tolist())) == 500
    assert found.positions.tolist() == sorted(np.argsort(keys)[:40].tolist())
    assert found.texts == [TEXTS[place] for place in found.positions]
    broken = [{"id": n, "text": text} if n % 50 else {"id": n} for n, text in enumerate(TEXTS)]
    with open_corpus([write_lines(tmp_path / "broken.jsonl", broken)]) as corpus:
        found, survey = draw_sample(corpus, sample=100)
    rows = survey.names.rows
    drawn = rows[found.positions].tolist()
    assert drawn == sorted(rows[np.argsort(row_hashes(rows, 0))[:100]].tolist())
    assert found.texts == [TEXTS[row] for row in drawn]


def test_the_survey_has_sizes_digests_and_sources(tmp_path: Path) -> None:
    rows = [{"id": n, "text": text} for n, text in enumerate(TEXTS[:30] + TEXTS[:5])]
    names = [str(write_lines(tmp_path / f"{name}.jsonl", part)) for name, part in (("a", rows[:10]), ("b", rows[10:]))]
    folder = tmp_path / "notes"
    (folder / "deep").mkdir(parents=True)
    for name, text in (("a.txt", "one"), ("b.txt", ""), ("deep/c.txt", "three")):
        (folder / name).write_text(text)
    with open_corpus([*names, str(folder)]) as corpus:
        found, survey = draw_sample(corpus, sample=2000, threads=2)
    texts = [row["text"] for row in rows] + ["one", "", "three"]
    assert survey.text_bytes.tolist() == [len(str(text).encode()) for text in texts]
    assert found.bytes == survey.text_bytes.sum()
    marks = [tuple(mark) for mark in survey.text_digests.tolist()]
    assert (marks[:5], len(set(marks))) == (marks[30:35], 33)
    assert [survey.sources[code] for code in survey.source.tolist()] == (
        [names[0]] * 10 + [names[1]] * 25 + [str(folder)] * 2 + [str(folder / "deep")]
    )
