"""An index on disk: held equal to files and to all pairs compared plainly, whatever it went through."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import naive
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from references import ENGINES, MEASURES, NEWS, OTHER, WORDS, check, corpus, of_both
from sentences import says

import neardup as nd
from neardup.features.extraction import extract_features
from neardup.index import segment
from neardup.index.index import DiskIndex
from neardup.index.manifest import MANIFEST
from neardup.index.segment import MatchRule, Segment
from neardup.index.writer import open_writer
from neardup.kernels.bounds import required_overlap
from neardup.recipe import Recipe

#: Each example makes an index, and files of it.
COSTLY = settings(max_examples=settings().max_examples // 2)
#: The recipes that an index can be kept by.
KEPT = ("sets", "repeats", "lsh", "hamming", "edit", "sets twice", "checksum")


@pytest.fixture
def place() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder, "index")


def naive_candidates(made: Segment, texts: list[str], recipe: Recipe) -> set[tuple[int, int]]:
    """Pairs of texts and documents that share a feature of both prefixes and that no bound of size and bits rules out.

    The bound by places stops at some pairs that never match, so this is what a segment may say, and never less.
    """
    held = [set(extract_features(texts, recipe).features.tolist()) for texts in singly(made)]
    asking = [set(extract_features(one, recipe).features.tolist()) for one in map(column, texts)]
    counts, by = made.counts, MatchRule.from_recipe(recipe).rule
    shift = 64 - (len(counts).bit_length() - 1)

    def prefix(features: set[int], size: int) -> set[int]:
        needs = [(required_overlap(by, m, size), m) for m in range(1, size + 1)]
        least = min((need for need, m in needs if need <= m), default=1)
        ordered = sorted((int(counts[f >> shift]), f >> 8) for f in features if counts[f >> shift])
        return {feature for _, feature in ordered[: max(len(ordered) - least + 1, 0)]}

    def bits(features: set[int]) -> set[int]:
        return {feature % 64 + 64 * (feature // 64 % 8) for feature in features}

    found = set()
    for q, own in enumerate(asking):
        for r, other in enumerate(held):
            meets = own and other and prefix(own, len(own)) & prefix(other, len(other))
            most = (len(own) + len(other) - len(bits(own) ^ bits(other))) // 2
            if meets and most >= required_overlap(by, len(own), len(other)):
                found.add((q, r))
    return found


def column(text: str) -> pa.Array:
    return pa.array([text], pa.large_string())


def singly(made: Segment) -> Iterator[pa.Array]:
    for texts in made.texts(np.arange(len(made))):
        yield from (texts.slice(at, 1) for at in range(len(texts)))


@COSTLY
@given(WORDS, WORDS, st.sampled_from(MEASURES))
def test_candidates_equal_plain_prefixes(new: list[str], old: list[str], rule: tuple[str, float]) -> None:
    recipe = Recipe(features="words:1", measure=rule[0], threshold=rule[1])
    with tempfile.TemporaryDirectory() as folder:
        index = nd.build_index(old, Path(folder, "index"), recipe=recipe)
        if not old:
            return
        (part,) = index.manifest.segments
        made = Segment(index.path, part, MatchRule.from_recipe(recipe), np.empty(0, np.int64))
        places, documents = made.candidates(extract_features(pa.array(new, pa.large_string()), recipe))
        found = set(zip(places.tolist(), documents.tolist(), strict=True))
        assert len(found) == len(places)
        assert found <= naive_candidates(made, new, recipe)
        sets = [naive.grams(text, "words", "words", 1, False) for text in new + old]
        pairs = naive.all_pairs(sets, rule[0], Fraction(str(rule[1])))
        assert {(left, right - len(new)) for left, right in pairs if left < len(new) <= right} <= found


@COSTLY
@given(
    WORDS,
    st.lists(WORDS, min_size=1, max_size=3),
    st.sampled_from(MEASURES),
    st.integers(1, 3),
    st.integers(1, 30),
    st.booleans(),
)
def test_an_index_equals_all_pairs(
    new: list[str],
    deliveries: list[list[str]],
    rule: tuple[str, float],
    threads: int,
    largest: int,
    compacts: bool,
) -> None:
    measure, threshold = rule
    choices: dict[str, Any] = {"features": "words:1", "measure": measure, "threshold": threshold}
    old = [text for delivery in deliveries for text in delivery]
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(segment, "MAX_FEATURES", largest)
        index = nd.build_index(deliveries[0], Path(folder, "index"), threads=threads, **choices)
        for delivery in deliveries[1:]:
            index = index.add(delivery, threads=threads)
        if compacts:
            patch.setattr(segment, "MAX_FEATURES", 2 * largest)
            index = index.compact(threads=threads)
        sets = [naive.grams(text, "words", "words", 1, False) for text in new + old]
        pairs = naive.all_pairs(sets, measure, Fraction(str(threshold)))
        result = nd.dedup(new, against=index, threads=threads, pairs_per_document=None)
        check(result, len(new), pairs, list(range(len(new))))
        assert len(index) == len(old)
        index.check()


@pytest.mark.parametrize("engine", KEPT)
def test_every_recipe_answers_as_files_do(engine: str, place: Path) -> None:
    new, old, choices = corpus(120), corpus(250, 1)[:170] + corpus(60, 2), ENGINES[engine]
    index = nd.build_index(old, place, **choices)
    result = nd.dedup(new, against=index, pairs_per_document=None)
    check(result, len(new), of_both(new, old, **choices), list(range(len(new))))
    files = nd.dedup(new, against=old, pairs_per_document=None, **choices)
    assert result.pairs.to_arrow().equals(files.pairs.to_arrow())
    assert result.duplicates().equals(files.duplicates())
    assert result.summary["reference"] == files.summary["reference"]
    asked = {name: value for name, value in choices.items() if name not in ("search", "recall")}
    for text in [*filter(str.strip, new[:40]), *old[:10]]:
        with contextlib.suppress(nd.InputError):
            expected = list(nd.query(old, text, **asked))
            assert index.query(text) == expected
            assert list(nd.query(index, text)) == expected


@pytest.mark.parametrize("engine", sorted(set(ENGINES) - set(KEPT)))
def test_other_recipes_are_refused(engine: str, place: Path) -> None:
    choices = {name: value for name, value in ENGINES[engine].items() if name != "encoder"}
    with pytest.raises(nd.RecipeError) as caught:
        nd.build_index([NEWS], place, **choices)
    assert says(caught.value, "index on disk", "files")
    assert not place.exists()


@COSTLY
@given(WORDS, WORDS, st.sets(st.integers(0, 13)), st.booleans())
def test_removed_documents_match_nothing(new: list[str], old: list[str], gone: set[int], compacts: bool) -> None:
    ids = pa.array([f"d{n}" for n in range(len(old))], pa.large_string())
    table = pa.table({"id": ids, "text": pa.array(old, pa.large_string())})
    stays = pa.array([n for n in range(len(old)) if n not in gone], pa.int64())
    with tempfile.TemporaryDirectory() as folder:
        index = nd.build_index(table, Path(folder, "index"), features="words:1", threshold=0.5)
        index = index.remove(f"d{n}" for n in gone)
        index = index.compact() if compacts else index
        files = nd.dedup(new, against=table.take(stays), features="words:1", threshold=0.5, pairs_per_document=None)
        result = nd.dedup(new, against=index, pairs_per_document=None)
        assert result.pairs.to_arrow().equals(files.pairs.to_arrow())
        assert result.duplicates().equals(files.duplicates())
        assert result.summary["reference"] == files.summary["reference"]
        assert len(index) == len(stays)
        # What was removed may come again.
        assert len(index.add(table.take(pa.array(sorted(gone & set(range(len(old)))), pa.int64())))) == len(old)


@pytest.mark.parametrize(("measure", "threshold"), [("jaccard", 0.5), ("cosine", 0.5), ("euclidean", 3)])
def test_neighbours_and_the_nearest_are_those_of_files(measure: str, threshold: float, place: Path) -> None:
    old = corpus(80)
    choices: dict[str, Any] = {"features": "words:1", "measure": measure}
    index = nd.build_index(old, place, **choices, threshold=threshold)
    asked: list[dict[str, Any]] = [{}, {"of": [3, 70, 3]}, {"first": 5}]
    for some in asked:
        for k in (1, 2, 7):
            expected = list(nd.neighbors(old, k, **choices, **some))
            assert list(nd.neighbors(index, k, **some)) == expected
    for text in old[:12]:
        matches = len(index.query(text))
        for k in (1, matches, matches + 1):
            if text and k:
                nearest = list(nd.query(old, text, k=k, **choices))
                assert index.query(text, k) == list(nd.query(index, text, k=k)) == nearest


def test_the_nearest_that_match_are_found_without_the_others(place: Path) -> None:
    index = nd.build_index([*corpus(40), NEWS, NEWS], place, threshold=0.5)
    assert sum(len(batch.texts) for batch in index.candidate_corpus(NEWS, 2).scan()) == 2
    assert sum(len(batch.texts) for batch in index.neighbor_corpus(1, of=[len(index) - 1]).scan()) == 2
    assert index.candidate_corpus(NEWS, 2).omitted_count == len(index) - 2
    # Nothing else shares a feature.
    assert index.candidate_corpus(NEWS, 3).omitted_count == len(index) - 2


def files_of(path: Path) -> dict[str, str]:
    return {name: file.digest for name, file in DiskIndex(path).manifest.files.items()}


def test_the_same_bytes_whatever_the_threads_and_files(tmp_path: Path) -> None:
    # More than a dictionary is made from, and fewer in each part.
    texts = [text for text in corpus(1500) if text]
    assert len(texts) > 1200
    rows = [json.dumps({"id": n, "text": text}) + "\n" for n, text in enumerate(texts)]
    (tmp_path / "all.jsonl").write_text("".join(rows))
    (tmp_path / "some.jsonl").write_text("".join(rows[:700]))
    (tmp_path / "rest.jsonl").write_text("".join(rows[700:]))
    parts = [tmp_path / "some.jsonl", tmp_path / "rest.jsonl"]
    one = nd.build_index(nd.open_files(tmp_path / "all.jsonl"), tmp_path / "one", threads=1, features="words:2")
    nd.build_index(nd.open_files(parts), tmp_path / "two", threads=3, features="words:2")
    assert files_of(tmp_path / "one") == files_of(tmp_path / "two")
    three = nd.build_index(nd.open_files(parts[:1]), tmp_path / "three", features="words:2")
    three = three.add(nd.open_files(parts[1])).compact()
    assert list(one.manifest.files) != list(three.manifest.files)
    assert sorted(files_of(tmp_path / "one").values()) == sorted(files_of(tmp_path / "three").values())


@COSTLY
@given(st.lists(st.text(max_size=20), max_size=20), st.sampled_from([10, 1100]))
def test_texts_come_back_as_they_went_in(texts: list[str], more: int) -> None:
    texts = [*texts, *corpus(more), "", "long " * 3000, *texts]
    wanted = np.random.default_rng(1).permutation(len(texts))[:40]
    with tempfile.TemporaryDirectory() as folder:
        index = nd.build_index(texts, Path(folder, "index"), features="words:1")
        assert index.documents()["text"].to_pylist() == texts
        some = np.unique(wanted)
        assert index.documents(some)["text"].to_pylist() == [texts[at] for at in some]


def test_a_text_that_has_changed_is_refused_where_it_is_read(place: Path) -> None:
    nd.build_index([NEWS, OTHER], place, features="words:2")
    file = next(place.glob("*/texts.zstd"))
    whole, read = file.read_bytes(), list[list[str]]()
    for at in range(len(whole)):
        for flipped in (1, 255):
            file.write_bytes(whole[:at] + bytes([whole[at] ^ flipped]) + whole[at + 1 :])
            with contextlib.suppress(nd.StoreError):
                read.append(nd.open_index(place).documents()["text"].to_pylist())
    # A few bits say only how much room a text takes.
    assert len(read) < 10
    assert all(texts == [NEWS, OTHER] for texts in read)
    with pytest.raises(nd.StoreError) as caught:
        nd.open_index(place).query(OTHER)
    assert says(caught.value, "texts.zstd", "build the index again")


def test_readers_keep_what_they_opened(place: Path) -> None:
    table = {"id": ["a", "b"], "text": [NEWS, OTHER]}
    before = nd.build_index(table, place, threshold=0.5)
    after = before.remove(["a"]).add({"id": ["c"], "text": [NEWS + " today"]}).compact()
    assert [one.id for one in before.query(NEWS)] == ["a"]
    assert [one.id for one in after.query(NEWS)] == ["c"]
    assert [one.id for one in nd.open_index(place).query(OTHER)] == ["b"]
    assert nd.dedup([OTHER], against=before).kept == []


def test_one_writer_at_a_time(place: Path) -> None:
    index = nd.build_index([NEWS], place)
    with open_writer(place):
        with pytest.raises(nd.StoreError) as caught:
            index.add([OTHER])
        assert says(caught.value, "another process writes", "wait")
        assert len(nd.open_index(place)) == 1
    assert len(index.add([OTHER])) == 2


def test_nothing_of_a_failed_writer_is_left(place: Path) -> None:
    nd.build_index({"id": ["a"], "text": [NEWS]}, place)
    before = sorted(place.rglob("*"))
    for refused in ({"id": ["b", "a"], "text": [OTHER, NEWS]}, {"id": ["x", "x"], "text": [OTHER, OTHER]}):
        with pytest.raises(nd.InputError) as caught:
            nd.open_index(place).add(refused)
        assert "'a'" in str(caught.value) or "'x'" in str(caught.value)
    for other in ([OTHER], {"id": [1], "text": [OTHER]}):
        with pytest.raises(nd.InputError) as caught:
            nd.open_index(place).add(other)
        assert says(caught.value, "strings as ids", "id_column")
    # The lock stays, empty.
    assert sorted(place.rglob("*")) == sorted([*before, place / "lock"])


KILLED = """
import os, sys
import neardup as nd
folder, what = sys.argv[1:]
index = nd.open_index(folder)
nd.dedup(["x y z"], against=index, threads=1)
nd.build_index(["x y z"], folder + "-warm", threads=1)
step, ended = 0, 9
while ended == 9:
    child = os.fork()
    if not child:
        left = step
        def counted(function):
            def call(*words, **more):
                global left
                left -= 1
                if left < 0:
                    os._exit(9)
                return function(*words, **more)
            return call
        for name in ("replace", "fsync", "unlink", "mkdir", "rmdir", "open"):
            setattr(os, name, counted(getattr(os, name)))
        try:
          {
            "add": lambda: index.add({"id": ["new"], "text": ["one two three four five six"]}, threads=1),
            "remove": lambda: index.remove(["a"]),
            "compact": lambda: index.compact(threads=1),
          }[what]()
        except nd.InputError:
          os._exit(3)
        os._exit(0)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    found = nd.open_index(folder)
    found.check()
    print(ended, *found.documents()["id"].to_pylist())
    step += 1
"""


@pytest.mark.parametrize(
    ("what", "after"), [("add", ["a", "b", "c", "new"]), ("remove", ["b", "c"]), ("compact", ["a", "b", "c"])]
)
def test_killed_at_any_step_it_is_as_before_or_as_after(what: str, after: list[str], place: Path) -> None:
    index = nd.build_index({"id": ["a", "b"], "text": [NEWS, OTHER]}, place, threshold=0.5)
    index.add({"id": ["c"], "text": [NEWS + " today"]})
    done = subprocess.run([sys.executable, "-c", KILLED, str(place), what], stdout=subprocess.PIPE, text=True)
    lines = [line.split() for line in done.stdout.splitlines()]
    states = [there for _, *there in lines]
    # As before, then as after, and never back; who comes after that finds the document there, and is refused.
    changed = states.index(after)
    assert states == [["a", "b", "c"]] * changed + [after] * (len(states) - changed)
    assert len(states) > 10
    assert lines[-1][0] != "9"
    assert [one.id for one in nd.open_index(place).query(OTHER)] == ["b"]
    nd.open_index(place).remove(["zzz"])
    there = {path.relative_to(place).parts[0] for path in place.rglob("*")}
    named = {name.partition("/")[0] for name in nd.open_index(place).manifest.files}
    assert there == {"lock", MANIFEST} | named


def test_every_flipped_byte_is_found(place: Path) -> None:
    texts = [NEWS, OTHER, *corpus(1100)]
    index = nd.build_index({"id": [str(at) for at in range(len(texts))], "text": texts}, place).remove(["1"])
    files = [place / MANIFEST, *(place / name for name in index.manifest.files)]
    assert len(files) == 12
    rng = np.random.default_rng(1)
    for file in files:
        whole = file.read_bytes()
        for at in {0, len(whole) - 1, *rng.integers(len(whole), size=8).tolist()}:
            file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
            with pytest.raises(nd.StoreError) as caught:
                nd.open_index(place).check()
            assert says(caught.value, file.name if file.name != MANIFEST else str(place), "build the index again")
        file.write_bytes(whole[:-2])
        with pytest.raises(nd.StoreError):
            nd.open_index(place).check()
        file.unlink()
        with pytest.raises((nd.StoreError, nd.InputError)):
            nd.open_index(place)
        file.write_bytes(whole)
    nd.open_index(place).check()


def test_what_made_an_index_is_remembered(place: Path) -> None:
    index = nd.build_index([NEWS], place, threshold=0.5, features="words:3")
    assert index.recipe.features == "words:3"
    with pytest.raises(nd.RecipeError) as caught:
        nd.dedup([NEWS], against=index, threshold=0.6, features="words:3")
    assert says(caught.value, "0.5", "0.6", "leave the recipe out")
    assert nd.dedup([NEWS], against=index, threshold=0.5, features="words:3", keep="longest").kept == []
    assert nd.dedup([NEWS], against=index, keep="longest").summary["recipe"]["keep"] == "longest"
    said = json.loads((place / MANIFEST).read_text())
    for form, way in ((99, "newer"), (1, "again")):
        (place / MANIFEST).write_text(json.dumps(said | {"format": form, "neardup": "9.9"}))
        with pytest.raises(nd.StoreError) as other:
            nd.open_index(place)
        assert says(other.value, f"format {form}", "9.9", way)


def test_other_tables_than_those_of_the_index_are_refused(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nd.build_index([NEWS], place)
    monkeypatch.setattr("neardup.text.normalize.tables_digest", lambda name: "others")
    with pytest.raises(nd.StoreError) as caught:
        nd.open_index(place)
    assert says(caught.value, "Unicode tables differ", "build the index again")


def test_empty_sides(place: Path) -> None:
    index = nd.build_index([], place, features="words:1", threshold=0.5)
    assert (len(index), index.query("a b c")) == (0, [])
    assert nd.dedup(["a b c"], against=index).kept == [0]
    index = index.add(["", "a b c"])
    assert nd.dedup([], against=index).kept == []
    assert nd.dedup(["", "a b c", "a b c d"], against=index).kept == [0]
    for nothing in ("", " \n"):
        with pytest.raises(nd.InputError):
            index.query(nothing)
    with pytest.raises(nd.InputError) as caught:
        index.query("\ud800")
    assert says(caught.value, "Unicode")


def test_what_is_no_index_is_refused(tmp_path: Path) -> None:
    with pytest.raises(nd.InputError) as caught:
        nd.open_index(tmp_path)
    assert says(caught.value, "not an index", "neardup index build")
    with pytest.raises(nd.OutputError) as refused:
        nd.build_index([NEWS], tmp_path)
    assert says(refused.value, "exists")
    index = nd.build_index([NEWS], tmp_path / "index")
    if os.geteuid():
        (tmp_path / "index").chmod(0o555)
        with pytest.raises(nd.OutputError):
            index.add([OTHER])
        (tmp_path / "index").chmod(0o755)


def test_the_folder_of_an_index_is_a_reference_and_no_input(place: Path) -> None:
    nd.build_index([NEWS], place, features="words:3", threshold=0.5)
    new = place.with_name("new.txt")
    new.write_text(NEWS)
    assert nd.dedup_files(new, against=place).kept == nd.dedup([NEWS], against=str(place)).kept == []
    assert len(nd.query(place, NEWS)) == 1
    for read in (nd.dedup_files, nd.open_files):
        with pytest.raises(nd.InputError) as caught:
            read([new, place])
        assert says(caught.value, str(place), "is an index", "nd.open_index")
    with nd.open_files(place.parent) as beside:
        assert [found.name for source in beside.sources for found in source.files] == [str(new)]


#: What takes arguments of any type.
UNTYPED: Any = nd


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda index: index.query(None), ("the text", "NoneType", "str")),
        (lambda index: UNTYPED.query(index, b"a rose"), ("the text", "bytes", "decode")),
        (lambda index: index.query(NEWS, k="2"), ("k '2'", "no whole number")),
        (lambda index: UNTYPED.neighbors(index, 1.5), ("k 1.5", "no whole number")),
        (lambda index: UNTYPED.neighbors(index, 1, first=True), ("first True", "no whole number")),
        (lambda index: index.remove("17"), ("ids '17'", "a list")),
        (lambda index: UNTYPED.dedup([NEWS], against=index, threads="two"), ("threads 'two'", "no whole number")),
        (lambda index: UNTYPED.check_contamination([NEWS], [NEWS], ngrams="13"), ("ngrams '13'", "no whole number")),
    ],
)
def test_values_of_another_type_are_refused_in_one_sentence(ask: Any, said: tuple[str, ...], place: Path) -> None:
    index = nd.build_index([NEWS], place, features="words:3", threshold=0.5)
    with pytest.raises(nd.NeardupError) as caught:
        ask(index)
    assert says(caught.value, *said)


#: By them an index of one format is told from that of another: see ``manifest.FORMAT``.
LAYOUT = {
    "bitmaps": "ee586879",
    "counts": "760f7710",
    "ends": "4bf3e4d5",
    "entries": "0868d4d7",
    "heads": "e9a52375",
    "sizes": "67e086f4",
}


def test_bytes_of_the_format(place: Path) -> None:
    index = nd.build_index([NEWS, OTHER, NEWS + " today"], place, features="words:2", threshold=0.6)
    made = {name.partition("/")[2]: file.digest for name, file in index.manifest.files.items()}
    assert {name: made[name][:8] for name in LAYOUT} == LAYOUT, "other bytes need another FORMAT"


def test_a_margin_finds_what_files_would(place: Path) -> None:
    # Of each pair 16 words of 20 are shared: below the threshold, and most have no common key at it.
    texts = [[f"w{pair}x{word}" for word in range(18)] for pair in range(40)]
    news, old = ([" ".join([*text[:16], *(f"{side}{word}" for word in text[16:])]) for text in texts] for side in "ab")
    index = nd.build_index(old, place, features="words:1", threshold=0.95)
    assert len(nd.dedup(news, against=index).kept) == 40
    assert nd.dedup(news, against=index, margin=0.3).at(0.8).kept == []
