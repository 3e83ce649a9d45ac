"""The whole of an exploration: what it composes, that nothing but the corpus decides it, and odd corpora."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from saying import says

import neardup as nd
from neardup.documents import open_corpus
from neardup.errors import InputError, NeardupError, OutputError, RecipeError
from neardup.exploration.exploration import Exploration
from neardup.exploration.views import BINS

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


def written(found: Exploration) -> str:
    """All of an exploration as JSON, without what clocks say."""
    return json.dumps(found.as_dict() | {"stages": [], "inputs": []}, sort_keys=True, ensure_ascii=False)


def test_everything_is_there_and_ready_for_json() -> None:
    found = nd.explore(made(), sample=100, seed=3, lengths=(1, 2, 3), qgrams=(5,), recipes=("spotsigs", "simhash"))
    names = [view.name for view in found.views]
    assert names == [
        "words:1",
        "words:2",
        "words:3",
        "qgrams:5",
        "spotsigs",
        "simhash",
        f"{found.advice.features}, idf",
    ]
    assert [view.n for view in found.views][:6] == [1, 2, 3, 5, None, None]
    for view in found.views:
        assert sum(view.counts) + view.zero == view.pairs == 100 * 99 // 2
        assert view.at_least(0) == view.pairs
        assert view.at_least(BINS) == view.equal
        assert dict(view.above)[0.5] == view.at_least(50)
    assert found.curve is not None
    assert found.curve.at(found.advice.threshold) is not None
    assert found.curve.recipe == found.advice.recipe
    assert len(found.examples) == 7
    assert found.version == nd.__version__
    assert {"sample", "compare", "weights", "join", "profile", "examples"} <= {one["name"] for one in found.stages}
    told = json.loads(json.dumps(found.as_dict()))
    assert told["advice"]["command"][0] == "dedup"
    assert told["profile"]["documents"] == 190
    assert says(repr(found), "<neardup exploration", "100 of 190 documents", "advised ")


def test_the_curve_is_what_dedup_finds() -> None:
    texts = made(1)
    found = nd.explore(texts, lengths=(1, 2, 3))
    assert found.curve is not None
    run = nd.dedup(texts, features=found.advice.features, threshold=found.advice.threshold)
    point = found.curve.at(found.advice.threshold)
    assert point is not None
    assert (point.dropped, point.pairs) == (run.summary["dropped"], len(run.pairs))
    assert found.profile.families_found == run.summary["families"]


def test_too_many_pairs_for_the_curve_are_said_and_change_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = made(16)
    assert nd.explore(texts, lengths=(3,)).curve.complete  # type: ignore[union-attr]
    monkeypatch.setattr("neardup.exploration.curve.PAIRS_PER_DOCUMENT", 0)
    monkeypatch.setattr("neardup.search.engines._ALWAYS_ALLOWED_PAIRS", 100)
    found = nd.explore(texts, lengths=(3,))
    assert found.curve is not None
    assert not found.curve.complete
    assert not found.advice.whole
    assert any(says(note, "100 pairs", "raise lowest") for note in found.notes)
    (point,) = found.curve.points
    run = nd.dedup(texts, features="words:3", threshold=found.advice.threshold)
    assert (point.threshold, point.dropped) == (found.advice.threshold, run.summary["dropped"])
    assert {one.origin for one in found.examples} == {"sample"}


def test_the_view_by_idf_weights_is_what_the_join_finds() -> None:
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
    assert set(found.pairs.left.tolist()) | set(found.pairs.right.tolist()) <= set(found.sample.positions.tolist())
    assert (found.pairs.left < found.pairs.right).all()
    run = nd.dedup(texts, features="words:2", threshold=0.04, pairs_per_document=None)
    drawn = set(found.sample.positions.tolist())
    expected = [tuple(pair) for pair in run.pairs if pair.left in drawn and pair.right in drawn]
    assert [*zip(*(column.tolist() for column in found.pairs), strict=True)] == expected


def test_threads_and_files_change_nothing(tmp_path: Path) -> None:
    texts = made(3)
    rows = [json.dumps({"id": n, "text": text}) + "\n" for n, text in enumerate(texts)]
    parts = []
    for number, (begin, end) in enumerate(((0, 1), (1, 90), (90, len(rows)))):
        (tmp_path / f"{number}.jsonl").write_text("".join(rows[begin:end]))
        parts.append(str(tmp_path / f"{number}.jsonl"))
    (tmp_path / "all.jsonl").write_text("".join(rows))
    options: dict[str, Any] = {"sample": 80, "lengths": (1, 3), "recipes": ("terms",), "seed": 4}
    told = []
    for names_of, threads in (([str(tmp_path / "all.jsonl")], 1), ([str(tmp_path / "all.jsonl")], 3), (parts, 2)):
        with open_corpus(names_of) as corpus:
            found = nd.explore(corpus, threads=threads, **options)
        # Which files were read, and which one a document comes from, is all that differs.
        plain = {"profile": found.as_dict()["profile"] | {"sources": [], "sources_found": 0}, "examples": []}
        read = {"inputs": [], "advice": found.as_dict()["advice"] | {"command": []}}
        told.append(json.dumps(found.as_dict() | plain | read | {"stages": []}, sort_keys=True))
    assert told[0] == told[1] == told[2]


def test_pages_are_compared_by_their_content() -> None:
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
@given(st.lists(ODD, min_size=2, max_size=9), st.booleans())
def test_any_texts_can_be_explored(texts: list[str], repeated: bool) -> None:
    clean = [text.encode("utf-8", "replace").decode() for text in texts]
    found = nd.explore(clean * 3 if repeated else clean, lengths=(1, 4), examples=1)
    assert found.views[0].pairs == found.sample.pairs
    json.dumps(found.as_dict()).encode()
    assert 0 < found.advice.threshold <= 1


@pytest.mark.parametrize(
    "texts",
    [
        ["one", "two"],
        ["", ""],
        ["", "", "word", "word"],
        ["all of us are equal and say the same words"] * 40,
        ["\x00", "\x00"],
    ],
)
def test_odd_corpora_are_explored(texts: list[str]) -> None:
    found = nd.explore(texts)
    assert found.views[0].pairs == len(texts) * (len(texts) - 1) // 2
    assert found.advice.reason
    assert 0 < found.advice.threshold <= 1
    assert (found.advice.given, found.advice.command, found.suspects) == (False, (), ())


@pytest.mark.parametrize("texts", [[], ["alone"]])
def test_without_a_pair_there_is_nothing_to_explore(texts: list[str]) -> None:
    message = f"the input has {'1' if texts else 'no'} document, and explore compares pairs: give two documents or more"
    with pytest.raises(InputError, match=message):
        nd.explore({"text": texts}, text_column="text")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lengths": ()}, "there is nothing to compare by"),
        ({"sample": 1}, "sample 1 is below 2"),
        ({"seed": -1}, "seed -1 is outside"),
        ({"lengths": (0,)}, "features 'words:0'"),
        ({"lengths": (200,)}, "features 'words:200'"),
        ({"lowest": 0}, r"lowest 0 is outside \(0, 1\]"),
        ({"lowest": 1.5}, r"lowest 1.5 is outside \(0, 1\]"),
        ({"examples": -1}, "examples -1 is below 0"),
        ({"threads": 0}, "threads 0 is below 1"),
        ({"recipes": ("nonsense",)}, "nonsense"),
        ({"recipes": (nd.Recipe(name="mine", measure="semantic"),)}, "recipe 'mine' compares embeddings"),
    ],
)
def test_values_out_of_range_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        nd.explore(["one", "two"], **options)


def test_a_second_step_is_left_out_and_said_to_be() -> None:
    recipe = nd.Recipe(name="mine", features="words:2", threshold=0.5, second_step="edit >= 0.9")
    found = nd.explore(made(10, 30), lengths=(), recipes=(recipe,))
    (note,) = (note for note in found.notes if "'mine'" in note)
    assert says(note, "without", "second step", "edit >= 0.9")
    assert found.curve is None


def test_too_many_close_pairs_are_not_all_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neardup.exploration.exploration._MOST_HELD", 200)
    found = nd.explore(made(11), lengths=(1,), curve=False)
    assert len(found.pairs.left) <= 200
    least = next(at for at in range(4, 101) if found.views[0].at_least(at) <= 200)
    assert found.pairs.similarity.min() >= least / 100
    assert any(f"below {least / 100:g} are not shown" in note for note in found.notes)


def test_it_is_written_as_json_or_a_page(tmp_path: Path) -> None:
    found = nd.explore(made(12, 30), lengths=(1,))
    place = tmp_path / "explored.json"
    found.write(place)
    assert json.loads(place.read_text("utf-8"))["sample"]["documents"] == found.sample.documents
    with pytest.raises(OutputError, match="exists"):
        found.write(place)
    found.write(place, force=True)


def test_a_corpus_of_open_files_names_them_in_the_command(tmp_path: Path) -> None:
    file = tmp_path / "news items.jsonl"
    file.write_text("".join(json.dumps({"id": n, "text": text}) + "\n" for n, text in enumerate(made(13, 120))))
    with nd.open_files(file) as corpus:
        found = nd.explore(corpus, lengths=(1,))
    assert found.inputs == (str(file),)
    assert found.advice.command[:2] == ("dedup", str(file))
    with pytest.raises(NeardupError, match="comes too late"), nd.open_files(file) as corpus:
        nd.explore(corpus, text_column="text")
