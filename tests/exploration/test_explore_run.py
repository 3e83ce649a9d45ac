"""The whole of an exploration: what it composes, that nothing but the corpus decides it, and odd corpora."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sentences import says

import neardup as nd
from neardup.documents import open_corpus
from neardup.errors import RecipeError

VOCABULARY = [
    f"{first}{last}" for first in ("ka", "lo", "mi", "nu", "ro") for last in ("ban", "dor", "fel", "gim", "tus")
]


def made(seed: int = 0, count: int = 120) -> list[str]:
    """Texts by chance, near-copies of some, copies of a few, and one template with other names."""
    dice = random.Random(seed)
    texts = [" ".join(dice.choices(VOCABULARY, k=dice.randrange(20, 60))) for _ in range(count)]
    for at in range(0, count // 3):
        words = texts[at].split()
        words[dice.randrange(len(words))] = "changed"
        texts.append(" ".join(words))
    texts += texts[:5]
    texts += [f"the office in {name} is closed on Monday and opens again on Tuesday at nine" for name in VOCABULARY]
    dice.shuffle(texts)
    return texts


def test_an_exploration_composes_what_dedup_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = made(1)
    found = nd.explore(texts, lengths=(1, 2, 3))
    assert found.curve is not None
    run = nd.dedup(texts, features=found.advice.features, threshold=found.advice.threshold)
    point = found.curve.at(found.advice.threshold)
    assert point is not None
    assert (point.dropped, point.pairs) == (run.summary["dropped"], len(run.pairs))
    assert found.profile.families_found == run.summary["families"]
    # With too many pairs for a curve, it says so.
    monkeypatch.setattr("neardup.exploration.curve.PAIRS_PER_DOCUMENT", 0)
    monkeypatch.setattr("neardup.search.engines._ALWAYS_ALLOWED_PAIRS", 100)
    found = nd.explore(texts, lengths=(3,))
    assert found.curve is not None
    assert (found.curve.complete, found.advice.whole) == (False, False)
    assert any(says(note, "100 pairs", "raise lowest") for note in found.notes)
    assert {one.origin for one in found.examples} == {"sample"}


def test_a_chart_of_an_unknown_view_is_refused() -> None:
    found = nd.explore(made(1), lengths=(1, 2), curve=False)
    assert len(found.plot_similarity(["words:2"]).to_dict()["datasets"]["steps"]) == 21
    with pytest.raises(RecipeError) as refused:
        found.plot_similarity(["words:2", "words:5"])
    assert says(refused.value, "view 'words:5' is unknown; choose from words:1, words:2")


def test_the_weighted_view_equals_the_join() -> None:
    texts = [f"{text} {text}x {text}y" for text in made(17, 60)]
    found = nd.explore(texts, lengths=(1,), curve=False)
    assert found.views[-1].name == "words:1, idf"
    weighted: dict[str, Any] = {"features": "words:1", "weights": "idf", "measure": "weighted_jaccard"}
    run = nd.dedup(texts, threshold=0.5, pairs_per_document=None, **weighted)
    assert found.views[-1].at_least(50) == len(run.pairs)
    # Advice goes by the plain views alone, and what takes no weights has no such view.
    assert [name for name, _ in found.advice.separations] == ["words:1"]
    assert len(nd.explore(texts, lengths=(), recipes=("simhash",), curve=False).views) == 1


def test_the_pairs_of_the_sample_are_by_positions_in_the_corpus() -> None:
    texts = made(2)
    found = nd.explore(texts, sample=60, lengths=(2,), curve=False)
    run = nd.dedup(texts, features="words:2", threshold=0.04, pairs_per_document=None)
    drawn = set(found.sample.positions.tolist())
    expected = [tuple(pair) for pair in run.pairs if pair.left in drawn and pair.right in drawn]
    assert [*zip(*(column.tolist() for column in found.pairs), strict=True)] == expected


def test_threads_memory_pieces_and_files_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = made(3)
    rows = [json.dumps({"id": n, "text": text}) + "\n" for n, text in enumerate(texts)]
    parts = []
    for number, (begin, end) in enumerate(((0, 1), (1, 90), (90, len(rows)))):
        (tmp_path / f"{number}.jsonl").write_text("".join(rows[begin:end]))
        parts.append(str(tmp_path / f"{number}.jsonl"))
    (tmp_path / "all.jsonl").write_text("".join(rows))
    options: dict[str, Any] = {"sample": 80, "lengths": (1, 3), "recipes": ("terms",), "seed": 4}
    told = []
    whole = [str(tmp_path / "all.jsonl")]
    for names_of, threads, memory in ((whole, 1, None), (whole, 3, 1 << 28), (parts, 2, 1 << 28)):
        if names_of is parts:
            monkeypatch.setattr("neardup.features.reading._PIECE", 1000)
        with open_corpus(names_of) as corpus:
            found = nd.explore(corpus, threads=threads, memory=memory, **options)
        # Which files were read, and which one a document comes from, is all that differs.
        read = {"inputs": [], "advice": found.as_dict()["advice"] | {"command": []}}
        told.append(json.dumps(found.as_dict() | read | {"examples": [], "stages": []}, sort_keys=True))
    assert told[0] == told[1] == told[2]


def test_web_pages_are_compared_by_their_content() -> None:
    texts = made(9, 40)
    plain = nd.explore(texts, lengths=(1, 2), content="tags")
    marked = nd.explore([f"<p class='{n}'>{text}</p>" for n, text in enumerate(texts)], lengths=(1, 2), content="tags")
    assert [view.counts for view in plain.views] == [view.counts for view in marked.views]
    assert marked.advice.recipe.content == "tags"
    assert marked.sample.bytes == plain.sample.bytes


ODD = st.text(
    st.one_of(st.characters(), st.sampled_from("\x00\u202e\ufeff אבג ثلج 日本語 ไทย 😀👩‍👩‍👧 e\u0301")), max_size=60
)


@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])
@example(["one", "two"], False)
@example(["", "", "word", "word"], False)
@example(["all of us are equal and say the same words"] * 20, True)
@given(st.lists(ODD, min_size=2, max_size=9), st.booleans())
def test_any_texts_can_be_explored(texts: list[str], repeated: bool) -> None:
    clean = [text.encode("utf-8", "replace").decode() for text in texts]
    found = nd.explore(clean * 3 if repeated else clean, lengths=(1, 4), examples=1)
    assert found.views[0].pairs == found.sample.pairs
    json.dumps(found.as_dict()).encode()
    assert 0 < found.advice.threshold <= 1
    assert found.advice.reason
    assert (found.advice.given, found.advice.command, found.suspects) == (False, (), ())
