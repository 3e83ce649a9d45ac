"""The join in bounded memory: results are those with all features in memory, however few of them fit."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import resource
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from compared import edited_texts, numbered_words
from hypothesis import given
from hypothesis import strategies as st
from sentences import says

import neardup as nd
from neardup import runtime
from neardup.errors import InputError, NeardupError, OutputError, RecipeError
from neardup.features import reading, recomputed
from neardup.features.recomputed import PartFile
from neardup.search import bounded_join
from neardup.search.matches import partition_pairs

SMALL = 1_000_000
WORDS = [*numbered_words(400), "Ωμέγα", "слово"]
RECIPE: dict[str, Any] = {"features": "words:1", "threshold": 0.5}


def corpus(count: int, seed: int = 1) -> list[str]:
    """Texts in families of near copies and alone, some equal, some empty."""
    texts = edited_texts(random.Random(seed), count, WORDS, sizes=range(1, 60), edits=(0, 1, 1, 2, 3))
    return [*texts, "", texts[0], texts[1].upper()]


def write_corpus(path: Path, count: int) -> list[str]:
    texts = corpus(count)
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return texts


def outcome(result: nd.Result) -> tuple[Any, ...]:
    """What a run finds, apart from how it found it."""
    return result.kept, list(result.dropped), list(map(tuple, result.pairs)), result.summary["undecidable"]


#: The paths that features take, however small the corpus of a test is: constants of the two modules.
PATHS: dict[str, dict[str, int]] = {
    "stored": {},
    "candidates": {"_MIN_STORED": 0},
    # Parities are compared for a few candidates at a time.
    "parts": {"_MIN_STORED": 0, "_KEYS_AT_A_TIME": 50, "_PARITY_PAIR_BYTES": 200_000, "_MIN_PARTS": 8},
    "counted in parts": {"_MIN_STORED": 0, "_MIN_BITS": 8, "_FEATURES_PER_WRITE": 3000},
    # Features of one document share a slot, and slots say much less than features.
    "few slots": {"_MIN_STORED": 0, "_MIN_BITS": 7, "_FEATURES_PER_WRITE": 3000, "_SLOTS_PER_FEATURE": 0},
    "one part": {"_MIN_STORED": 0, "_KEYS_AT_A_TIME": 1, "_MIN_PARTS": 1},
    "many parts": {"_MIN_STORED": 3000, "_KEYS_AT_A_TIME": 300, "_MIN_PARTS": 64},
    "file": {"_MIN_STORED": 0, "_MAX_CANDIDATES": 0},
}


@pytest.fixture
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(bounded_join, "_MAX_PARTS", 16)
    for name, value in PATHS[request.param].items():
        monkeypatch.setattr(bounded_join if hasattr(bounded_join, name) else recomputed, name, value)
    return str(request.param)


@pytest.mark.parametrize(
    ("path", "choices"),
    [
        ("parts", {"features": "qgrams:4", "measure": "overlap", "threshold": 0.8}),
        ("few slots", {"features": "words:1:multiset", "measure": "containment", "threshold": 0.9}),
        ("parts", {"features": "words:1", "measure": "containment", "threshold": 0.7, "jaccard_floor": 0.2}),
        ("counted in parts", {"features": "words:1", "measure": "euclidean", "threshold": 4}),
        ("few slots", {"features": "words:1", "signature": "sketch:25", "measure": "overlap", "threshold": 0.5}),
        ("counted in parts", {"features": "words:1", "clip": "df:2:0.5", "threshold": 0.6}),
    ],
    ids=lambda value: " ".join(map(str, value.values())) if isinstance(value, dict) else value,
    indirect=["path"],
)
@pytest.mark.usefixtures("path")
def test_recomputed_features_give_the_same_results(choices: dict[str, Any]) -> None:
    texts = corpus(100)
    plain = nd.dedup(texts, **choices)
    assert len(plain.pairs) > 10
    again = nd.dedup(texts, memory=SMALL, threads=2, **choices)
    assert outcome(again) == outcome(plain)
    assert again.summary["search"]["passes_over_the_input"] > 1
    assert "passes_over_the_input" not in plain.summary["search"]


@pytest.mark.parametrize("path", PATHS, indirect=True)
def test_margins_limits_and_files_give_the_same_results(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("neardup.search.engines._ALWAYS_ALLOWED_PAIRS", 10)
    lines = [json.dumps({"id": f"d{n}", "text": text}) for n, text in enumerate(corpus(80))]
    lines[7] = "{broken"
    is_compressed = path in ("parts", "few slots")
    file = tmp_path / ("a.jsonl.gz" if is_compressed else "a.jsonl")
    data = ("\n".join(lines) + "\n").encode()
    file.write_bytes(gzip.compress(data) if is_compressed else data)
    plain, again = (
        nd.dedup_files(file, margin=0.2, pairs_per_document=None, memory=memory, **RECIPE) for memory in (None, SMALL)
    )
    assert outcome(again) == outcome(plain)
    assert again.at(0.4).kept == plain.at(0.4).kept
    assert again.summary["rejected"] == plain.summary["rejected"]
    # The pairs of kept documents decide, where all would be too many.
    few, again = (nd.dedup_files(file, pairs_per_document=0, memory=memory, **RECIPE) for memory in (None, SMALL))
    assert outcome(again) == outcome(few)
    assert 10 < len(few.pairs) < len(plain.pairs)


ENGINES: dict[str, dict[str, Any]] = {
    "lsh": {"search": "lsh", "threshold": 0.5},
    "simhash": {"signature": "simhash", "measure": "hamming", "threshold": 12},
    "cosine": {"measure": "cosine", "weights": "tfidf", "threshold": 0.7},
    "clipped": {"clip": "df:2:0.5", "threshold": 0.6},
    "edit": {"threshold": 0.3, "second_step": "edit >= 0.7"},
    "lsh, then sets": {"search": "lsh", "threshold": 0.3, "second_step": "jaccard(qgrams:3) >= 0.6"},
}


@pytest.mark.parametrize("engine", ["lsh", "simhash", "cosine", "edit", "lsh, then sets"])
def test_every_engine_writes_the_same_bytes_whatever_the_budget(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("_MIN_STORED", 0), ("_KEYS_AT_A_TIME", 50), ("_MIN_PARTS", 4)):
        monkeypatch.setattr(bounded_join, name, value)
    monkeypatch.setattr(reading, "_PIECE", 1500)
    path, out = tmp_path / "a.jsonl", tmp_path / "out.jsonl"
    write_corpus(path, 120)
    recipe, written = nd.Recipe(features="words:1", **ENGINES[engine]), set()
    for memory, threads in ((None, 1), (SMALL, 3)):
        result = nd.dedup_files(path, recipe=recipe, memory=memory, threads=threads)
        result.write(str(out), force=True)
        written.add((out.read_bytes(), json.dumps(result.pairs.to_arrow().to_pylist())))
        assert len(result.pairs) > 15
    assert len(written) == 1


@pytest.mark.parametrize("engine", ["lsh", "simhash", "cosine", "clipped"])
def test_a_budget_below_what_an_engine_must_hold_is_refused(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neardup.runtime.PROGRAM_BYTES", 1000)
    recipe = nd.Recipe(features="words:2", **ENGINES[engine])
    with pytest.raises(RecipeError) as caught:
        nd.dedup(corpus(5000), recipe=recipe, memory=SMALL)
    assert says(caught.value, "memory 1,000,000 ", "which ", "give 100MB or more")


@pytest.mark.parametrize(
    ("limit", "memory"), [("_MAX_ENTRIES", None), ("_MAX_CHAINED_ENTRIES", None), ("_MAX_CHAINED_ENTRIES", SMALL)]
)
def test_more_index_entries_than_the_limit_are_refused(
    limit: str, memory: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("neardup.search.engines._ALWAYS_ALLOWED_PAIRS", 10)
    monkeypatch.setattr(f"neardup.search.join.{limit}", 300)
    with pytest.raises(NeardupError) as caught:
        nd.dedup(corpus(300), pairs_per_document=0, memory=memory, **RECIPE)
    assert says(caught.value, "index entries", "at most 300", "split the corpus")


def test_an_input_that_can_be_read_once_is_spooled(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = corpus(300)
    data = "".join(json.dumps({"text": text}) + "\n" for text in texts).encode()
    monkeypatch.setattr("neardup.documents.inputs._HEAD", 1000)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    found = nd.dedup_files("-", memory=SMALL, **RECIPE)
    assert found.summary["search"]["passes_over_the_input"] > 1
    assert outcome(found) == outcome(nd.dedup(texts, **RECIPE))
    assert 0 < found.summary["spooled_bytes"] < len(data) / 2


@pytest.mark.parametrize("lines", [100, 200])
def test_a_file_that_changes_meanwhile_is_refused(lines: int, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    write_corpus(path, 200)

    def progress(stage: str, done: int, total: int | None) -> None:
        if stage == "join" or (stage == "read" and done == total):
            path.write_text(json.dumps({"text": "another text"}) + "\n" + "{}\n" * lines)

    with pytest.raises(InputError) as caught:
        nd.dedup_files(path, memory=SMALL, progress=progress, **RECIPE)
    assert says(caught.value, "changed", "memory")


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)).filter(lambda pair: pair[0] != pair[1]), min_size=1),
    st.lists(st.integers(1, 20), min_size=31, max_size=31),
    st.integers(1, 200),
)
def test_groups_of_pairs_fit_and_keep_families_together(
    given_pairs: list[tuple[int, int]], given_sizes: list[int], room: int
) -> None:
    pairs, sizes = np.array(given_pairs, np.int32), np.array(given_sizes)
    groups = partition_pairs(pairs, sizes, room)
    room = max(room, 2 * sum(given_sizes[item] for item in {*pairs.ravel().tolist()}) // 100)
    assert set(groups.tolist()) == set(range(int(groups.max()) + 1))
    families = {item: {item} for item in range(31)}
    for left, right in given_pairs:
        union = families[left] | families[right]
        families |= dict.fromkeys(union, union)
    for group in set(groups.tolist()):
        members = np.unique(pairs[groups == group])
        assert sizes[members].sum() <= room or len(members) == 2
    for left, _ in given_pairs:
        if sizes[list(families[left])].sum() <= room:
            assert len({int(g) for g, pair in zip(groups, given_pairs, strict=True) if pair[0] in families[left]}) == 1


@pytest.mark.parametrize("suffix", [".parquet", ".jsonl"])
def test_a_budget_below_the_needs_of_the_documents_is_refused_early(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("neardup.search.engines._DOCUMENT_BYTES", 1_000_000)
    path, stages = tmp_path / f"a{suffix}", list[str]()
    texts = write_corpus(path, 2000)
    if suffix == ".parquet":
        pq.write_table(pa.table({"text": texts}), path)
    with pytest.raises(RecipeError) as caught:
        nd.dedup_files(path, memory=10**9, progress=lambda stage, done, total: stages.append(stage))
    assert says(caught.value, "memory 1,000,000,000", "each document", "give 2,300MB")
    assert bool(stages) == (suffix == ".jsonl")


def test_a_full_disk_is_reported_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full_disk: Callable[[int], None]
) -> None:
    monkeypatch.setattr(bounded_join, "_MIN_STORED", 0)
    monkeypatch.setattr(bounded_join, "_KEYS_AT_A_TIME", 50)
    path = tmp_path / "a.jsonl"
    write_corpus(path, 300)

    def progress(stage: str, done: int, total: int | None) -> None:
        if stage == "read again":
            full_disk(512)

    with pytest.raises(OutputError) as caught:
        nd.dedup_files(path, memory=SMALL, progress=progress, **RECIPE)
    assert says(caught.value, "bytes of features beyond the memory budget do not fit into", "set TMPDIR")
    assert [file.name for file in tmp_path.iterdir()] == ["a.jsonl"]


@pytest.fixture
def open_files_limit() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.usefixtures("open_files_limit")
def test_few_open_files_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = corpus(300)
    plain = nd.dedup(texts, **RECIPE)
    monkeypatch.setattr(recomputed, "_MIN_BITS", 4)
    monkeypatch.setattr(bounded_join, "_MIN_STORED", 50_000)
    most = max(map(int, os.listdir("/dev/fd")))
    resource.setrlimit(resource.RLIMIT_NOFILE, (most + 128, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    again = nd.dedup(texts, memory=SMALL, **RECIPE)
    assert outcome(again) == outcome(plain)
    assert again.summary["search"]["passes_over_the_input"] == 2


@pytest.mark.usefixtures("open_files_limit")
def test_too_few_open_files_for_the_groups_of_candidates_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_join, "_MIN_STORED", 0)
    monkeypatch.setattr(bounded_join, "partition_pairs", lambda pairs, sizes, room: np.arange(len(pairs)))

    def progress(stage: str, done: int, total: int | None) -> None:
        if stage == "join" and done == total:
            few = max(map(int, os.listdir("/dev/fd"))) + 4
            resource.setrlimit(resource.RLIMIT_NOFILE, (few, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))

    with pytest.raises(OutputError) as caught:
        nd.dedup(corpus(200), memory=SMALL, progress=progress, **RECIPE)
    assert says(caught.value, "no scratch file can be opened", "Too many open files", "ulimit -n", "memory")


def test_free_memory_is_what_a_control_group_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    everything = runtime.free_memory()
    assert everything > 0
    files = [tmp_path / name for name in ("limit", "used", "stat")]
    for file, content in zip(files, ("3000", "2500", "cache 900\ntotal_inactive_file 800\n"), strict=True):
        file.write_text(content)
    monkeypatch.setattr(runtime, "_CGROUPS", [[str(file) for file in files]])
    assert runtime.free_memory() == 1300
    files[0].write_text("max")
    assert runtime.free_memory() > 1300


def test_without_a_budget_half_of_the_free_memory_is_for_features(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = corpus(300)
    plain = nd.dedup(texts, **RECIPE)
    monkeypatch.setattr("neardup.pipeline.pipeline.free_memory", lambda: 20_000.0)
    again = nd.dedup(texts, **RECIPE)
    assert outcome(again) == outcome(plain)
    assert again.summary["search"]["passes_over_the_input"] > 1


@pytest.mark.parametrize("read_size", [1, 40, 1 << 18])
def test_a_part_file_returns_the_items_that_were_added(read_size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recomputed, "_READ_SIZE", read_size)
    monkeypatch.setattr(recomputed, "_TRUNCATION_STEP", read_size)
    # Lengths below 256 take a byte each.
    blocks = [np.array(lengths, np.uint32) for lengths in ([], [255, 0, 3], [256, 1], [70_000, 0], [0] * 5)]
    items = [np.arange(lengths.sum(), dtype=np.uint64) + n for n, lengths in enumerate(blocks)]
    firsts = [0, 0, 3, 5, 7]
    with PartFile(np.uint64, runtime.Memory()) as part:
        for lengths, of_block in zip(blocks, items, strict=True):
            part.add(lengths, of_block)
        forwards, whole, backwards = list(part), part.read_all(), list(part.blocks_from_last())
    for found in (forwards, backwards[::-1]):
        assert [first for first, _, _ in found] == firsts
        for (_, lengths, of_block), *added in zip(found, blocks, items, strict=True):
            assert lengths.dtype == np.uint32
            np.testing.assert_array_equal(lengths, added[0])
            np.testing.assert_array_equal(of_block, added[1])
    np.testing.assert_array_equal(whole[0], np.concatenate(blocks))
    np.testing.assert_array_equal(whole[1], np.concatenate(items))
