"""The profile of a corpus: its counts against plain ones, scripts, templates and families."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.documents import corpus_of
from neardup.documents.corpus import Corpus
from neardup.exploration import messages
from neardup.exploration.profile import (
    QUANTILES,
    Copies,
    CorpusProfile,
    ScriptCount,
    Scripts,
    beginning,
    count_scripts,
    length_bins,
    length_quantiles,
    main_script,
    profile_corpus,
)
from neardup.exploration.sample import draw_sample
from neardup.pages.documents import DocumentReader
from neardup.pipeline.pipeline import run
from neardup.recipe import Recipe
from neardup.text.normalize import tokens


def profile(corpus: Corpus, *, threshold: float | None = 0.5, threads: int = 1, **options: Any) -> CorpusProfile:
    sample, survey = draw_sample(corpus, sample=2000, threads=threads)
    findings = None
    if threshold is not None:
        findings = run(corpus, Recipe(features="words:4", threshold=threshold), threads=threads).findings
    reader = DocumentReader(corpus, survey.names)
    return profile_corpus(survey, sample, corpus, reader, findings=findings, threads=threads, **options)


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


def test_everything_is_counted() -> None:
    texts = corpus_texts()
    found = profile(corpus_of(texts))
    sizes = [len(text.encode()) for text in texts]
    assert (found.documents, found.bytes) == (len(texts), sum(sizes))
    counts = [len(tokens(text)) for text in texts]
    assert (found.words.documents, found.words.total) == (len(texts), sum(counts))
    assert (found.words.empty, found.words.one) == (2, 2)
    assert found.words.mean == pytest.approx(np.mean(counts))
    assert (found.copies.copies, found.copies.groups, found.copies.bytes) == (9, 1, 9 * sizes[8])
    (group,) = found.copies.largest
    assert (group.documents, group.bytes, group.ids) == (10, sizes[8], ("8", "28", "29", "30", "31"))
    assert group.begins == beginning(texts[8])


def test_templates_and_families_are_those_of_the_run() -> None:
    found = profile(corpus_of(corpus_texts()))
    assert [(one.number, one.documents, one.complete) for one in found.families] == [(2, 10, True), (1, 8, True)]
    assert found.families[0].ids == ("8", "28", "29", "30", "31")
    assert found.families[1].begins.startswith("Nurse in Leeds")
    assert (found.families_found, found.families_examined, found.templates_found) == (2, 2, 1)
    (template,) = found.templates
    assert (template.family, template.documents, template.compared, template.left_out) == (1, 8, 8, 0)
    assert [slot.distinct for slot in template.slots] == [8, 8]
    assert template.ids == ("0", "1", "2", "3", "4")
    json.dumps(asdict(found))


def naive_quantile(lengths: Sequence[int], part: int) -> int:
    return next(one for one in sorted(lengths) if sum(other <= one for other in lengths) * 100 >= part * len(lengths))


@given(st.lists(st.integers(0, 10**6) | st.integers(0, 12), max_size=40))
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
    assert found == tuple((part / 100, naive_quantile(lengths, part)) for part in QUANTILES if lengths)


def test_the_summary_of_a_profile_adds_up() -> None:
    found = profile(corpus_of(corpus_texts()))
    scripts = tuple(ScriptCount(name, 10, 0.2, ()) for name in ("Latin", "Arabic", "Thai", "Han", "Greek"))
    said = messages.describe_profile(replace(found, scripts=Scripts(50, scripts)))
    assert said["scripts"] == ["Latin 20%, Arabic 20%, Thai 20%, others 40%"]
    assert said["exact copies"] == ["9 copies of 1 text"]
    none = messages.describe_profile(replace(found, scripts=Scripts(50, scripts[:1]), copies=Copies(0, 0, 0, ())))
    assert (none["scripts"], none["exact copies"]) == (["Latin 20%"], ["none"])


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("Straße", "Latin"),
        ("ＦＵＬＬ ｗｉｄｔｈ ﬁne", "Latin"),
        ("Война и мир, 1869", "Cyrillic"),
        ("شبكة BBC العربية للأخبار والتقارير", "Arabic"),
        ("中文新闻报道今日头条 CCTV", "Han"),
        ("東京タワーに行く", "Kana"),
        ("ﾊﾝｶｸ ｶﾅ", "Kana"),
        ("한국어", "Hangul"),
        ("हिन्दी", "Devanagari"),
        ("𞤀𞤣𞤤𞤢𞤥", "other"),
        ("Latin script и кириллица", "mixed"),
        ("🎉🎉 123 !? \u0000\u202e", "none"),
        ("", "none"),
    ],
)
def test_the_main_script_is_that_of_two_thirds_of_the_letters(text: str, script: str) -> None:
    assert main_script(text) == script


@given(st.lists(st.text(max_size=40), max_size=8))
def test_each_document_has_one_script(texts: list[str]) -> None:
    found = count_scripts(texts, [str(at) for at in range(len(texts))])
    assert sum(one.documents for one in found.scripts) == len(texts) == found.documents
    assert sum(one.share for one in found.scripts) == pytest.approx(1.0 if texts else 0.0)
    for one in found.scripts:
        members = [str(at) for at, text in enumerate(texts) if main_script(text) == one.name]
        assert (one.documents, list(one.ids)) == (len(members), members[:3])
