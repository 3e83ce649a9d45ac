"""An index on disk: it answers as files do, and as a comparison of all pairs, whatever happened to it."""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from fractions import Fraction
from math import sqrt
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
from two_sides import SIDES, WAYS, listed, named, plain_pairs

import neardup as nd
from neardup.index import index as index_module
from neardup.index import segment
from neardup.index.index import DiskIndex
from neardup.index.manifest import MANIFEST
from neardup.index.writer import open_writer

#: Each example makes an index, and files of it.
COSTLY = settings(max_examples=settings().max_examples // 2)
#: The recipes that an index can be kept by.
KEPT = ("sets", "repeats", "lsh", "hamming", "edit", "sets twice", "checksum")


@pytest.fixture
def place() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder, "index")


def texts_of(*texts: str) -> list[pa.LargeStringArray]:
    return [pa.array([text], pa.large_string()) for text in texts]


def test_only_documents_that_share_a_rare_feature_are_candidates(place: Path) -> None:
    rng = random.Random(1)
    footer = " ".join(f"legal{n}" for n in range(60))
    texts = [" ".join(f"w{rng.randrange(10**9)}" for _ in range(80)) + " " + footer for _ in range(200)]
    index = nd.build_index(texts, place, features="words:1", threshold=0.7)
    assert index.candidates(texts_of("something else " + footer)).tolist() == []
    changed = [text.replace("w1", "v1") for text in texts[:3]]
    assert index.candidates(texts_of(texts[90], *changed), threads=2).tolist() == [0, 1, 2, 90]


@COSTLY
@given(
    new=WORDS,
    deliveries=st.lists(WORDS, min_size=1, max_size=3),
    rule=st.sampled_from(MEASURES),
    threads=st.integers(1, 3),
    largest=st.integers(1, 30),
    compacts=st.booleans(),
)
def test_an_index_finds_all_pairs(
    new: list[str], deliveries: list[list[str]], rule: tuple[str, float], threads: int, largest: int, compacts: bool
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
        assert index.documents()["text"].to_pylist() == old
        index.check()


@pytest.mark.parametrize("engine", KEPT)
def test_every_recipe_answers_as_files_do(engine: str, place: Path) -> None:
    new, old, choices = corpus(60), corpus(100, 1)[:70] + corpus(30, 2), ENGINES[engine]
    index = nd.build_index(old, place, **choices)
    result = nd.dedup(new, against=index, pairs_per_document=None)
    check(result, len(new), of_both(new, old, **choices), list(range(len(new))))
    files = nd.dedup(new, against=old, pairs_per_document=None, **choices)
    assert result.pairs.to_arrow().equals(files.pairs.to_arrow())
    assert result.duplicates().equals(files.duplicates())
    assert result.summary["reference"] == files.summary["reference"]
    query_choices = {name: value for name, value in choices.items() if name not in ("search", "recall")}
    for text in [*filter(str.strip, new[:8]), *old[:4]]:
        with contextlib.suppress(nd.InputError):
            expected = list(nd.query(old, text, **query_choices))
            assert index.query(text) == expected
            assert list(nd.query(index, text)) == expected


def test_other_recipes_are_refused(place: Path) -> None:
    for engine in sorted(set(ENGINES) - set(KEPT)):
        choices = {name: value for name, value in ENGINES[engine].items() if name != "encoder"}
        with pytest.raises(nd.RecipeError) as caught:
            nd.build_index([NEWS], place, **choices)
        assert says(caught.value, "index on disk", "files")
    assert not place.exists()


@COSTLY
@given(WORDS, WORDS, st.sets(st.integers(0, 13)), st.booleans())
def test_removed_documents_match_nothing(new: list[str], old: list[str], removed: set[int], compacts: bool) -> None:
    ids = pa.array([f"d{n}" for n in range(len(old))], pa.large_string())
    table = pa.table({"id": ids, "text": pa.array(old, pa.large_string())})
    remaining = pa.array([n for n in range(len(old)) if n not in removed], pa.int64())
    with tempfile.TemporaryDirectory() as folder:
        index = nd.build_index(table, Path(folder, "index"), features="words:1", threshold=0.5)
        index = index.remove(f"d{n}" for n in removed)
        index = index.compact() if compacts else index
        files = nd.dedup(new, against=table.take(remaining), features="words:1", threshold=0.5, pairs_per_document=None)
        result = nd.dedup(new, against=index, pairs_per_document=None)
        assert result.pairs.to_arrow().equals(files.pairs.to_arrow())
        assert result.duplicates().equals(files.duplicates())
        assert result.summary["reference"] == files.summary["reference"]
        assert len(index) == len(remaining)
        # Removed documents may be added again.
        assert len(index.add(table.take(pa.array(sorted(removed & set(range(len(old)))), pa.int64())))) == len(old)


@pytest.mark.parametrize(("measure", "threshold"), [("jaccard", 0.5), ("cosine", 0.5), ("euclidean", 3)])
def test_neighbours_and_the_nearest_are_those_of_files(measure: str, threshold: float, place: Path) -> None:
    old = corpus(50)
    choices: dict[str, Any] = {"features": "words:1", "measure": measure}
    index = nd.build_index(old, place, **choices, threshold=threshold)
    queries: list[dict[str, Any]] = [{}, {"of": [3, 50, 3]}, {"first": 5}]
    for query in queries:
        for k in (1, 7):
            assert list(nd.neighbors(index, k, **query)) == list(nd.neighbors(old, k, **choices, **query))
    for text in filter(None, old[:4]):
        matches = len(index.query(text))
        for k in {1, matches, matches + 1} - {0}:
            nearest = list(nd.query(old, text, k=k, **choices))
            assert index.query(text, k) == list(nd.query(index, text, k=k)) == nearest


def test_only_documents_that_may_be_nearest_are_read(place: Path) -> None:
    index = nd.build_index([*corpus(40), NEWS, NEWS], place, threshold=0.5)
    assert sum(len(batch.texts) for batch in index.candidate_corpus(NEWS, 2).scan()) == 2
    assert sum(len(batch.texts) for batch in index.neighbor_corpus(1, of=[len(index) - 1]).scan()) == 2
    assert index.candidate_corpus(NEWS, 2).omitted_count == len(index) - 2
    # Nothing else shares a feature.
    assert index.candidate_corpus(NEWS, 3).omitted_count == len(index) - 2


def files_of(path: Path) -> dict[str, str]:
    return {name: file.digest for name, file in DiskIndex(path).manifest.files.items()}


def test_threads_and_files_do_not_change_the_bytes(tmp_path: Path) -> None:
    # More texts than a dictionary is trained on, and fewer in each part.
    rows = [json.dumps({"id": n, "text": text}) + "\n" for n, text in enumerate(filter(None, corpus(1500)))]
    assert len(rows) > 1200
    paths = [tmp_path / name for name in ("all.jsonl", "first.jsonl", "second.jsonl")]
    for path, part in zip(paths, (rows, rows[:700], rows[700:]), strict=True):
        path.write_text("".join(part))
    one = nd.build_index(nd.open_files(paths[0]), tmp_path / "one", threads=1, features="words:2")
    nd.build_index(nd.open_files(paths[1:]), tmp_path / "two", threads=3, features="words:2")
    assert files_of(tmp_path / "one") == files_of(tmp_path / "two")
    three = nd.build_index(nd.open_files(paths[1]), tmp_path / "three", features="words:2")
    three = three.add(nd.open_files(paths[2])).compact()
    assert list(one.manifest.files) != list(three.manifest.files)
    assert sorted(files_of(tmp_path / "one").values()) == sorted(files_of(tmp_path / "three").values())


@COSTLY
@given(st.lists(st.text(max_size=20), max_size=20), st.sampled_from([10, 1100]))
def test_texts_are_returned_as_they_were_added(texts: list[str], more: int) -> None:
    texts = [*texts, *corpus(more), "", "long " * 3000, *texts]
    places = np.unique(np.random.default_rng(1).permutation(len(texts))[:40])
    with tempfile.TemporaryDirectory() as folder:
        index = nd.build_index(texts, Path(folder, "index"), features="words:1")
        assert index.documents()["text"].to_pylist() == texts
        assert index.documents(places)["text"].to_pylist() == [texts[at] for at in places]


def test_a_text_that_has_changed_is_refused_where_it_is_read(place: Path) -> None:
    nd.build_index([NEWS, OTHER], place, features="words:2")
    file = next(place.glob("*/texts.zstd"))
    whole, read = file.read_bytes(), list[list[str]]()
    for at in range(len(whole)):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with contextlib.suppress(nd.StoreError):
            read.append(nd.open_index(place).documents()["text"].to_pylist())
    # A few bits say only how much room a text takes.
    assert len(read) < 5
    assert all(texts == [NEWS, OTHER] for texts in read)
    with pytest.raises(nd.StoreError) as caught:
        nd.open_index(place).query(OTHER)
    assert says(caught.value, "texts.zstd", "build the index again")


def test_readers_keep_what_they_opened(place: Path) -> None:
    table = {"id": ["a", "b"], "text": [NEWS, OTHER]}
    before = nd.build_index(table, place, threshold=0.5)
    removed = before.remove(["a"])
    assert "a" not in [match.id for match in removed.query(NEWS, 1)]
    after = removed.add({"id": ["c"], "text": [NEWS + " today"]}).compact()
    assert [match.id for match in before.query(NEWS)] == ["a"]
    assert [match.id for match in after.query(NEWS)] == ["c"]
    assert [match.id for match in nd.open_index(place).query(OTHER)] == ["b"]
    assert nd.dedup([OTHER], against=before).kept == []


def test_one_writer_at_a_time(place: Path) -> None:
    index = nd.build_index([NEWS], place)
    with open_writer(place):
        with pytest.raises(nd.StoreError) as caught:
            index.add([OTHER])
        assert says(caught.value, "another process writes", "wait")
        assert len(nd.open_index(place)) == 1
    assert len(index.add([OTHER])) == 2


def test_a_failed_writer_leaves_nothing(place: Path) -> None:
    nd.build_index({"id": ["a"], "text": [NEWS]}, place)
    before = sorted(place.rglob("*"))
    for refused in ({"id": ["b", "a"], "text": [NEWS, OTHER]}, {"id": ["x", "x"], "text": [OTHER, NEWS]}):
        with pytest.raises(nd.InputError) as caught:
            nd.open_index(place).add(refused)
        assert "'a'" in str(caught.value) or "'x'" in str(caught.value)
    for other in ([OTHER], {"id": [1], "text": [OTHER]}):
        with pytest.raises(nd.InputError) as caught:
            nd.open_index(place).add(other)
        assert says(caught.value, "strings as ids", "id_column")
    # The lock stays, empty.
    assert sorted(place.rglob("*")) == sorted([*before, place / "lock"])


#: Runs each change in a child process that ends at its first, second, ... call of the system, until one is complete.
KILLED = """
import os, sys
import neardup as nd
nd.dedup(["x y z"], against=nd.build_index(["x y z"], sys.argv[1] + "/warm", threads=1), threads=1)
changes = {
    "add": lambda index: index.add({"id": ["new"], "text": ["one two three four five six"]}, threads=1),
    "remove": lambda index: index.remove(["a"]),
    "compact": lambda index: index.compact(threads=1),
}
for what, change in changes.items():
    index, step, ended = nd.open_index(f"{sys.argv[1]}/{what}"), 0, 9
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
                change(index)
            except nd.InputError:
                os._exit(3)
            os._exit(0)
        ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        found = nd.open_index(f"{sys.argv[1]}/{what}")
        found.check()
        print(what, ended, *found.documents()["id"].to_pylist())
        step += 1
"""


def test_a_writer_killed_at_any_step_leaves_the_old_or_the_new_index(tmp_path: Path) -> None:
    after = {"add": ["a", "b", "c", "new"], "remove": ["b", "c"], "compact": ["a", "b", "c"]}
    for what in after:
        index = nd.build_index({"id": ["a", "b"], "text": [NEWS, OTHER]}, tmp_path / what, threshold=0.5)
        index.add({"id": ["c"], "text": [NEWS + " today"]})
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE, text=True, check=True)
    lines = [line.split() for line in done.stdout.splitlines()]
    for what, new_state in after.items():
        states, ended = zip(*((ids, code) for change, code, *ids in lines if change == what), strict=True)
        # The old state, then the new one; a further writer finds the document present, and is refused.
        changed = states.index(new_state)
        assert list(states) == [["a", "b", "c"]] * changed + [new_state] * (len(states) - changed)
        assert (len(states) > 10, ended[-1] == "9") == (True, False)
        place = tmp_path / what
        assert [match.id for match in nd.open_index(place).query(OTHER)] == ["b"]
        nd.open_index(place).remove(["zzz"])
        found = {path.relative_to(place).parts[0] for path in place.rglob("*")}
        named = {name.partition("/")[0] for name in nd.open_index(place).manifest.files}
        assert found == {"lock", MANIFEST} | named


def test_every_flipped_byte_is_found(place: Path) -> None:
    texts = [NEWS, OTHER, *corpus(1100)]
    index = nd.build_index({"id": [str(at) for at in range(len(texts))], "text": texts}, place).remove(["1"])
    files = [place / MANIFEST, *(place / name for name in index.manifest.files)]
    assert len(files) == 14
    rng = np.random.default_rng(1)
    for file in files:
        whole = file.read_bytes()
        for at in {0, len(whole) - 1, *rng.integers(len(whole), size=4).tolist()}:
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


def test_another_recipe_format_or_unicode_is_refused(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = nd.build_index([NEWS], place, threshold=0.5, features="words:3")
    assert index.recipe.features == "words:3"
    with pytest.raises(nd.RecipeError) as caught:
        nd.dedup([NEWS], against=index, threshold=0.6, features="words:3")
    assert says(caught.value, "0.5", "0.6", "leave the recipe out")
    assert nd.dedup([NEWS], against=index, threshold=0.5, features="words:3", keep="longest").kept == []
    assert nd.dedup([NEWS], against=index, keep="longest").summary["recipe"]["keep"] == "longest"
    manifest = json.loads((place / MANIFEST).read_text())
    for form, way in ((99, "newer"), (1, "again")):
        (place / MANIFEST).write_text(json.dumps(manifest | {"format": form, "neardup": "9.9"}))
        with pytest.raises(nd.StoreError) as other:
            nd.open_index(place)
        assert says(other.value, f"format {form}", "9.9", way)
    (place / MANIFEST).write_text(json.dumps(manifest | {"sequence": 99}))
    with pytest.raises(nd.StoreError, match="damaged"):
        nd.open_index(place)
    (place / MANIFEST).write_text(json.dumps(manifest))
    monkeypatch.setattr("neardup.text.normalize.tables_digest", lambda name: "others")
    with pytest.raises(nd.StoreError) as other:
        nd.open_index(place)
    assert says(other.value, "Unicode tables differ", "build the index again")


def test_an_empty_index_or_input_matches_nothing(place: Path) -> None:
    index = nd.build_index([], place, features="words:1", threshold=0.5)
    assert (len(index), index.query("a b c")) == (0, [])
    assert nd.dedup(["a b c"], against=index).kept == [0]
    index = index.add(["", "a b c"])
    assert nd.dedup([], against=index).kept == []
    assert nd.dedup(["", "a b c", "a b c d"], against=index).kept == [0]
    for text in ("", " \n"):
        assert index.query(text) == []
    with pytest.raises(nd.InputError) as caught:
        index.query("\ud800")
    assert says(caught.value, "Unicode")


def test_a_folder_without_an_index_is_refused(tmp_path: Path) -> None:
    with pytest.raises(nd.InputError) as caught:
        nd.open_index(tmp_path)
    assert says(caught.value, "not an index", "neardup index build")
    with pytest.raises(nd.OutputError, match="exists"):
        nd.build_index([NEWS], tmp_path)
    if os.geteuid():
        index = nd.build_index([NEWS], tmp_path / "index")
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
        (lambda index: index.query(NEWS, k="2"), ("k '2'", "no whole number")),
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


#: The digests of the array files of ``manifest.FORMAT``.
LAYOUT = {"bitmaps": "ee586879", "counts": "760f7710", "ends": "4bf3e4d5", "entries": "0868d4d7", "heads": "e9a52375"}
LAYOUT |= {"sizes": "67e086f4"}


def test_the_bytes_of_the_format_never_change(place: Path) -> None:
    index = nd.build_index([NEWS, OTHER, NEWS + " today"], place, features="words:2", threshold=0.6)
    digests = {name.partition("/")[2]: file.digest for name, file in index.manifest.files.items()}
    assert {name: digests[name][:8] for name in LAYOUT} == LAYOUT, "other bytes need another FORMAT"


def test_a_margin_finds_documents_below_the_threshold(place: Path) -> None:
    # Each pair shares 16 words of 20: below the threshold, and most pairs have no common key at it.
    texts = [[f"w{pair}x{word}" for word in range(18)] for pair in range(40)]
    news, old = ([" ".join([*text[:16], *(f"{side}{word}" for word in text[16:])]) for text in texts] for side in "ab")
    index = nd.build_index(old, place, features="words:1", threshold=0.95)
    assert len(nd.dedup(news, against=index).kept) == 40
    assert nd.dedup(news, against=index, margin=0.3).at(0.8).kept == []


def test_equal_cosines_are_ties_everywhere(place: Path) -> None:
    """3 / sqrt(3 * 9) and 1 / sqrt(3 * 1) are one number: the first document comes first, whoever is asked."""
    choices: dict[str, Any] = {"features": "words:1", "measure": "cosine", "threshold": 0.5}
    text, texts = "one two three", ["one two three a b c d e f", "one", "one two g h"]
    expected = [(0, sqrt(1 / 3)), (1, sqrt(1 / 3)), (2, sqrt(1 / 3))]
    index = nd.build_index(texts, place, **choices)
    answers: list[Any] = [
        nd.query(texts, text, **choices),
        index.query(text),
        index.query(text, 3),
        nd.query(index, text),
    ]
    assert [[tuple(row) for row in answer] for answer in answers] == [expected] * 4
    assert [row[2:] for row in nd.neighbors([*texts, text], 2, of=[3], **choices)] == expected[:2]
    flow = nd.Index(window="endless", **choices)
    flow.add_many(nd.Document(str(row), text) for row, text in enumerate(texts))
    assert [(int(row.id), row.similarity) for row in flow.query(text)] == expected[:2]
    assert nd.dedup([*texts, text], **choices).dropped[-1][1:3] == expected[0]


@pytest.mark.parametrize("engine", ["memory", "bounded memory", "lsh", "hamming"])
@pytest.mark.parametrize("largest", [100, 1000, 1 << 25])
def test_a_reference_in_an_index_has_the_pairs_of_its_documents(engine: str, largest: int, place: Path) -> None:
    way = WAYS[engine]
    expected = plain_pairs(way, SIDES)
    kept = {name: value for name, value in way.options.items() if name != "memory"}
    old = pa.table(named("o", SIDES.old))
    gone = pa.table({"id": [f"x{number}" for number in range(30)], "text": SIDES.new[:30]})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segment, "MAX_FEATURES", largest)
        index = nd.build_index(old[:200], place, **kept)
        index = index.add(old[200:]).add(gone).remove(gone["id"].to_pylist())
        # What is known already is skipped.
        index = index.add(old[150:250])
        for again in (index, index.compact()):
            found = nd.dedup(named("n", SIDES.new), against=again, **way.options)
            assert sorted(listed(found)) == sorted(expected)


@pytest.mark.parametrize("engine", ["memory", "hamming", "second step"])
def test_a_query_lists_a_document_once(engine: str, place: Path) -> None:
    way = WAYS[engine]
    index = nd.build_index(named("o", SIDES.old[:200]), place, **way.options)
    index = index.add({"id": [f"o{number}" for number in range(200, 340)], "text": SIDES.old[200:]})
    for text in SIDES.new[:20]:
        own = way.features(text)
        right = sorted(f"o{at}" for at, other in enumerate(SIDES.old) if way.matches(own, way.features(other)))
        assert sorted(similar.id for similar in index.query(text)) == right
        assert sorted(similar.id for similar in nd.query(named("o", SIDES.old), text, **way.options)) == right


@pytest.mark.parametrize(
    ("name", "value"), [("_NEAREST_FIRST_BATCH", 1), ("_NEAREST_MAX_BATCH", 70), ("_NEAREST_MAX_QUERIES", 0)]
)
@pytest.mark.parametrize("engine", ["memory", "hamming"])
def test_neighbors_in_an_index_are_listed_once(
    engine: str, name: str, value: int, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options, texts = WAYS[engine].options, pa.table(named("n", SIDES.new))
    plain = nd.neighbors(texts, 59, **options)
    index = nd.build_index(texts[:25], place, **options).add(texts[25:])
    monkeypatch.setattr(index_module, name, value)
    assert list(nd.neighbors(index, 59, first=60)) == list(plain)
