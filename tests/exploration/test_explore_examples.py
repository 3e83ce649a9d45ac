"""Pairs to read at each cutoff: real ones from the right band, spread, and the same every time."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from neardup.documents import corpus_of, open_corpus
from neardup.exploration.examples import choose_examples, choose_suspects, longest_shared, sample_families
from neardup.exploration.sample import draw_sample
from neardup.exploration.views import CUTOFFS
from neardup.keep.pairs import PairArrays
from neardup.pages.documents import DocumentReader
from neardup.text.normalize import tokens

Row = tuple[int, int, float]


def words_of(text: str) -> list[str]:
    return [token.text for token in tokens(text)]


def naive_longest(left: str, right: str) -> list[str]:
    """Return the longest run of words of the left text that the right one has, the first of equals."""
    own, other = words_of(left), words_of(right)
    runs = [own[at:end] for at in range(len(own)) for end in range(at + 1, len(own) + 1)]
    padded = f" {' '.join(other)} "
    return max((run for run in runs if f" {' '.join(run)} " in padded), key=len, default=[])


@pytest.mark.parametrize(
    ("left", "right", "shared"),
    [
        ("今日天气晴朗，适合出行。", "明日天气晴朗！", "日天气晴朗"),
        ("قال الوزير: «سنفتح الميناء» غدا", "أكد الوزير سنفتح الميناء", "الوزير: «سنفتح الميناء"),
        ("🎉🎊 yes", "no 🎉🎊", "🎉🎊"),
        ("ＦＵＬＬ width", "full WIDTH", "ＦＵＬＬ width"),
        ("one", "two", ""),
        ("", "", ""),
    ],
)
def test_a_shared_run_is_written_as_in_the_left_text(left: str, right: str, shared: str) -> None:
    assert longest_shared(left, right).written == shared


def sample_pairs(rows: Sequence[Row]) -> PairArrays:
    left, right, similarity = zip(*sorted(rows), strict=True)
    return PairArrays(np.array(left, np.int64), np.array(right, np.int64), np.array(similarity, np.float64))


def test_each_cutoff_has_examples_from_its_band() -> None:
    drawn = random.Random(2)
    texts = [" ".join(f"w{drawn.randrange(50)}" for _ in range(drawn.choice([5, 20, 80]))) for _ in range(60)]
    drawn = random.Random(4)
    ends = {tuple(sorted(drawn.sample(range(60), 2))) for _ in range(400)}
    rows = [(left, right, 0.04 + 0.96 * drawn.random() ** 2) for left, right in sorted(ends)]
    corpus, pairs = corpus_of(texts), sample_pairs(rows)
    _, survey = draw_sample(corpus, sample=2000)
    found = choose_examples(pairs, survey, DocumentReader(corpus, survey.names), family=sample_families(pairs, 60))
    assert [one.cutoff for one in found] == list(CUTOFFS)
    for one in found:
        assert one.low < one.cutoff < one.high <= 1
        inside = {(str(a), str(b)): s for a, b, s in rows if one.low <= s < one.high}
        assert (one.found, one.origin) == (len(inside), "sample")
        assert len(one.pairs) == min(3, len(inside))
        said = {(pair.left.id, pair.right.id): pair.similarity for pair in one.pairs}
        assert said.items() <= inside.items()
        assert sorted(said.values(), reverse=True) == list(said.values())
        assert len({end for both in said for end in both}) == 2 * len(said)
        for pair in one.pairs:
            words = naive_longest(pair.left.text, pair.right.text)
            assert (pair.words, words_of(pair.passage)) == (len(words), words)
            assert (pair.left_source, pair.right_source) == ("", "")
    json.dumps([one.as_dict() for one in found])


def test_examples_are_spread_over_families_lengths_and_sources(tmp_path: Path) -> None:
    drawn = random.Random(1)
    texts = [" ".join(f"x{at}y{drawn.randrange(9999)}" for _ in range(6 if at % 2 else 200)) for at in range(40)]
    for name, part in (("a", texts[:20]), ("b", texts[20:])):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in part))
    # Nearly all pairs are of one family of long texts of one file.
    crowd = [(a, b, 0.5) for a in range(0, 20, 2) for b in range(a + 2, 20, 2)]
    others = [(1, 3, 0.5), (21, 23, 0.5), (5, 25, 0.5)]
    family = np.zeros(40, np.int64)
    family[0:20:2] = 1
    with open_corpus([tmp_path / "a.jsonl", tmp_path / "b.jsonl"]) as corpus:
        _, survey = draw_sample(corpus, sample=2000)
        reader = DocumentReader(corpus, survey.names)
        bands = choose_examples(sample_pairs(crowd + others), survey, reader, family=family, count=4)
    found = next(band for band in bands if band.cutoff == 0.5)
    said = {(int(pair.left.id), int(pair.right.id)) for pair in found.pairs}
    assert {(a, b) for a, b, _ in others} <= said
    assert len(said) == 4
    sources = {(pair.left.id, pair.right.id): (pair.left_source, pair.right_source) for pair in found.pairs}
    assert sources["5", "25"] == (str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl"))


def test_pairs_with_other_facts_are_suspects_and_edits_are_not() -> None:
    form = "The board of {} voted on Monday to spend {} million crowns on the channel, a spokesman of {} said"
    texts = [form.format(*facts) for facts in (("Leeds", 40, "Leeds"), ("York", 75, "York"), ("Leeds", 40, "Leeds"))]
    texts[2] += " when the meeting was over"
    with corpus_of(texts) as corpus:
        _, survey = draw_sample(corpus, sample=10)
        pairs = sample_pairs([(0, 1, 0.7), (0, 2, 0.9)])
        reader = DocumentReader(corpus, survey.names)
        found = choose_suspects(pairs, survey, reader, family=np.zeros(3, np.int64))
        assert [(pair.left.id, pair.right.id) for pair in found] == [("0", "1")]
        every = sample_pairs([(0, 1, 0.7), (1, 2, 0.6)])
        assert len(choose_suspects(every, survey, reader, family=np.ones(3, np.int64))) == 1
