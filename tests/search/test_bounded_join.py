"""Features that are not kept but made again: the same answers, whatever fits into memory."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sentences import says

import neardup as nd
from neardup import runtime
from neardup.errors import InputError, NeardupError, RecipeError
from neardup.features.recomputed import PartFile
from neardup.search import bounded_join
from neardup.search.matches import partition_pairs

SMALL = 1_000_000


def corpus(count: int, seed: int = 1) -> list[str]:
    """Texts in families of near copies and alone, some equal, some empty."""
    rng = random.Random(seed)
    words = [f"word{n}" for n in range(400)] + ["Ωμέγα", "слово", "단어", "كلمة"]
    texts: list[str] = []
    while len(texts) < count:
        own = rng.choices(words, k=rng.randint(1, 60))
        texts.append(" ".join(own))
        for _ in range(rng.choice([0, 0, 0, 1, 3])):
            copy = [word if rng.random() > 0.05 else rng.choice(words) for word in own]
            texts.append(" ".join(copy))
    return [*texts[:count], "", texts[0], texts[1].upper()]


def outcome(result: nd.Result) -> tuple[Any, ...]:
    """All that a run says, but for how it was found."""
    pairs = [tuple(pair) for pair in result.pairs]
    return result.kept, list(result.dropped), pairs, result.summary["undecidable"]


@pytest.fixture(params=["held", "candidates", "parts", "counted in parts", "few slots", "file"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Which of the ways features go, however small the corpus of a test is."""
    if request.param == "counted in parts":
        monkeypatch.setattr("neardup.features.recomputed._MIN_BITS", 8)
        monkeypatch.setattr("neardup.features.recomputed._FEATURES_PER_WRITE", 3000)
    if request.param == "few slots":
        # Features of one document share a slot, and slots say much less than features.
        monkeypatch.setattr("neardup.features.recomputed._MIN_BITS", 7)
        monkeypatch.setattr("neardup.features.recomputed._SLOTS_PER_FEATURE", 0)
        monkeypatch.setattr("neardup.features.recomputed._FEATURES_PER_WRITE", 3000)
    if request.param != "held":
        monkeypatch.setattr(bounded_join, "_MIN_STORED", 0)
        monkeypatch.setattr(bounded_join, "_MAX_PARTS", 16)
    if request.param == "parts":
        monkeypatch.setattr(bounded_join, "_KEYS_AT_A_TIME", 50)
        # Parities are looked at for a few candidates at a time.
        monkeypatch.setattr(bounded_join, "_PARITY_PAIR_BYTES", 200_000)
        monkeypatch.setattr(bounded_join, "_MIN_PARTS", 8)
    if request.param == "file":
        monkeypatch.setattr(bounded_join, "_MAX_CANDIDATES", 0)
    return str(request.param)


@pytest.mark.parametrize(
    "choices",
    [
        {"features": "words:1", "threshold": 0.5},
        {"features": "words:2", "threshold": 0.3},
        {"features": "qgrams:4", "measure": "overlap", "threshold": 0.8},
        {"features": "words:1:multiset", "measure": "containment", "threshold": 0.9},
        {"features": "words:1", "measure": "containment", "threshold": 0.7, "jaccard_floor": 0.2},
        {"features": "words:1", "measure": "euclidean", "threshold": 4},
        {"features": "words:1", "signature": "sketch:25", "measure": "overlap", "threshold": 0.5},
        {"features": "words:1", "clip": "df:2:0.5", "threshold": 0.6},
    ],
    ids=lambda choices: " ".join(map(str, choices.values())),
)
@pytest.mark.parametrize("threads", [1, 3])
def test_recomputed_features_give_the_same_answers(choices: dict[str, Any], threads: int, way: str) -> None:
    # Each number of threads has a corpus of its own.
    texts = corpus(300, seed=threads)
    plain = nd.dedup(texts, **choices)
    assert len(plain.pairs) > 20
    again = nd.dedup(texts, memory=SMALL, threads=threads, **choices)
    assert outcome(again) == outcome(plain)
    assert again.summary["search"]["passes_over_the_input"] > 1
    assert "passes_over_the_input" not in plain.summary["search"]


def test_a_margin_is_the_same(way: str) -> None:
    texts = corpus(200)
    plain, again = (
        nd.dedup(texts, features="words:1", threshold=0.5, margin=0.2, memory=memory) for memory in (None, SMALL)
    )
    assert outcome(again) == outcome(plain)
    assert again.at(0.4).kept == plain.at(0.4).kept


ENGINES: dict[str, dict[str, Any]] = {
    "sets": {"threshold": 0.5},
    "lsh": {"search": "lsh", "threshold": 0.5},
    "simhash": {"signature": "simhash", "measure": "hamming", "threshold": 12},
    "cosine": {"measure": "cosine", "weights": "tfidf", "threshold": 0.7},
    "clipped": {"clip": "df:2:0.5", "threshold": 0.6},
    "edit": {"threshold": 0.3, "second_step": "edit >= 0.7"},
    "lsh, then sets": {"search": "lsh", "threshold": 0.3, "second_step": "jaccard(qgrams:3) >= 0.6"},
}


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_writes_the_same_bytes_whatever_the_budget(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_join, "_MIN_STORED", 0)
    monkeypatch.setattr(bounded_join, "_KEYS_AT_A_TIME", 50)
    monkeypatch.setattr(bounded_join, "_MIN_PARTS", 4)
    path, out = tmp_path / "a.jsonl", tmp_path / "out.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in corpus(300)))
    written = set()
    for memory in (None, SMALL, 400_000_000):
        for threads in (1, 3):
            result = nd.dedup_files(
                path, recipe=nd.Recipe(features="words:1", **ENGINES[engine]), memory=memory, threads=threads
            )
            result.write(str(out), force=True)
            pairs = result.pairs.to_arrow().to_pylist()
            written.add((out.read_bytes(), json.dumps(pairs), json.dumps(result.summary["search"].get("candidates"))))
            assert len(pairs) > 20
    assert len({(kept, found) for kept, found, _ in written}) == 1


@pytest.mark.parametrize("engine", ["lsh", "simhash", "cosine", "clipped"])
def test_a_budget_below_what_an_engine_must_hold_is_refused(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neardup.runtime.PROGRAM_BYTES", 1000)
    recipe = nd.Recipe(features="words:2", **ENGINES[engine])
    with pytest.raises(RecipeError) as caught:
        nd.dedup(corpus(5000), recipe=recipe, memory=SMALL)
    assert says(caught.value, "memory 1,000,000 ", "which ", "give 100MB or more")


def test_too_many_pairs_are_those_of_the_kept_ones(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neardup.search.engines._ALWAYS_ALLOWED_PAIRS", 10)
    texts = corpus(300)
    plain = nd.dedup(texts, features="words:1", threshold=0.5, pairs_per_document=0)
    again = nd.dedup(texts, features="words:1", threshold=0.5, pairs_per_document=0, memory=SMALL)
    assert outcome(again) == outcome(plain)
    assert len(plain.pairs) > 10


@pytest.mark.parametrize(
    ("limit", "memory"), [("_MAX_ENTRIES", None), ("_MAX_CHAINED_ENTRIES", None), ("_MAX_CHAINED_ENTRIES", SMALL)]
)
def test_more_entries_than_numbers_can_name_are_refused(
    limit: str, memory: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("neardup.search.engines._ALWAYS_ALLOWED_PAIRS", 10)
    monkeypatch.setattr(f"neardup.search.join.{limit}", 300)
    with pytest.raises(NeardupError) as caught:
        nd.dedup(corpus(300), features="words:1", threshold=0.5, pairs_per_document=0, memory=memory)
    assert says(caught.value, "index entries", "at most 300", "split the corpus")


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz"])
def test_files_are_read_again(tmp_path: Path, suffix: str, way: str) -> None:
    texts = corpus(200)
    lines = [json.dumps({"id": f"d{n}", "text": text}) for n, text in enumerate(texts)]
    lines[7] = "{broken"
    path = tmp_path / f"a{suffix}"
    data = ("\n".join(lines) + "\n").encode()
    path.write_bytes(gzip.compress(data) if suffix.endswith(".gz") else data)
    plain = nd.dedup_files(path, features="words:1", threshold=0.5)
    again = nd.dedup_files(path, features="words:1", threshold=0.5, memory=SMALL)
    assert outcome(again) == outcome(plain)
    assert again.summary["rejected"] == plain.summary["rejected"]
    assert sum(again.summary["rejected"].values()) == 1


def test_lines_that_are_read_once_are_compressed_and_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = corpus(300)
    data = "".join(json.dumps({"text": text}) + "\n" for text in texts).encode()
    monkeypatch.setattr("neardup.documents.inputs._HEAD", 1000)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    again = nd.dedup_files("-", features="words:1", threshold=0.5, memory=SMALL)
    assert outcome(again) == outcome(nd.dedup(texts, features="words:1", threshold=0.5))
    assert again.summary["search"]["passes_over_the_input"] > 1
    assert 0 < again.summary["spooled_bytes"] < len(data) / 2


def test_a_named_pipe_is_compressed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = corpus(300)
    data = "".join(json.dumps({"text": text}) + "\n" for text in texts).encode()
    monkeypatch.setattr("neardup.documents.inputs._HEAD", 1000)
    pipe = tmp_path / "docs.jsonl"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(data,))
    writer.start()
    found = nd.dedup_files(pipe, features="words:1", threshold=0.5)
    writer.join()
    assert outcome(found) == outcome(nd.dedup(texts, features="words:1", threshold=0.5))
    assert 0 < found.summary["spooled_bytes"] < len(data) / 2


@pytest.mark.parametrize("change", ["shorter", "other"])
def test_a_file_that_changes_meanwhile_is_refused(tmp_path: Path, change: str) -> None:
    path = tmp_path / "a.jsonl"
    lines = [json.dumps({"text": text}) for text in corpus(200)]
    path.write_text("\n".join(lines) + "\n")

    def progress(stage: str, done: int, total: int | None) -> None:
        if stage == "join" or (stage == "read" and done == total):
            kept = lines[:100] if change == "shorter" else [json.dumps({"text": "now it is another"})] * len(lines)
            path.write_text("\n".join(kept) + "\n")

    with pytest.raises(InputError) as caught:
        nd.dedup_files(path, features="words:1", threshold=0.5, memory=SMALL, progress=progress)
    assert says(caught.value, "changed", "memory")


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)).filter(lambda pair: pair[0] != pair[1]), min_size=1),
    st.lists(st.integers(1, 20), min_size=31, max_size=31),
    st.integers(1, 200),
)
def test_groups_of_candidates_fit_and_are_whole_families_where_these_do(
    given_pairs: list[tuple[int, int]], given_sizes: list[int], room: int
) -> None:
    pairs, sizes = np.array(given_pairs, np.int32), np.array(given_sizes)
    groups = partition_pairs(pairs, sizes, room)
    room = max(room, 2 * sum(given_sizes[item] for item in {*pairs.ravel().tolist()}) // 100)
    assert set(groups.tolist()) == set(range(int(groups.max()) + 1))
    families = {item: {item} for item in range(31)}
    for left, right in given_pairs:
        both = families[left] | families[right]
        families |= dict.fromkeys(both, both)
    for group in set(groups.tolist()):
        here = pairs[groups == group]
        assert sizes[np.unique(here)].sum() <= room or len(np.unique(here)) == 2
    for left, _ in given_pairs:
        if sizes[list(families[left])].sum() <= room:
            assert len({int(g) for g, pair in zip(groups, given_pairs, strict=True) if pair[0] in families[left]}) == 1


def test_a_budget_below_what_the_documents_need_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neardup.search.engines._DOCUMENT_BYTES", 10_000_000)
    with pytest.raises(RecipeError) as caught:
        nd.dedup(corpus(200), features="words:1", memory=SMALL)
    assert says(caught.value, "memory 1,000,000", "each document", "give 2,300MB")


@pytest.mark.parametrize("suffix", [".parquet", ".jsonl"])
def test_a_budget_is_refused_before_the_work(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neardup.search.engines._DOCUMENT_BYTES", 100_000)
    path, seen = tmp_path / f"a{suffix}", []
    table = pa.table({"text": corpus(20_000)})
    if suffix == ".parquet":
        pq.write_table(table, path)
    else:
        path.write_text("".join(json.dumps({"text": text}) + "\n" for text in table["text"].to_pylist()))
    with pytest.raises(RecipeError) as caught:
        nd.dedup_files(path, memory=10**9, progress=lambda stage, done, total: seen.append(stage))
    assert says(caught.value, "memory 1,000,000,000", "each document", "give 2,300MB")
    assert bool(seen) == (suffix == ".jsonl")


def test_blocks_of_keys_and_parts_of_the_index_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = corpus(400, seed=7)
    plain = nd.dedup(texts, features="words:1", threshold=0.4)
    for keys, parts in ((1, 1), (1, 256), (10**6, 2), (300, 64)):
        monkeypatch.setattr(bounded_join, "_KEYS_AT_A_TIME", keys)
        monkeypatch.setattr(bounded_join, "_MIN_PARTS", parts)
        for room in (0, 3000):
            monkeypatch.setattr(bounded_join, "_MIN_STORED", room)
            again = nd.dedup(texts, features="words:1", threshold=0.4, memory=SMALL, threads=2)
            assert outcome(again) == outcome(plain)
            assert again.summary["search"].get("index_parts", 1) >= parts
            assert again.summary["search"]["passes_over_the_input"] == 2


@pytest.mark.usefixtures("no_bytecode")
def test_a_full_disk_is_said(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in corpus(300)))
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(path), str(tmp_path / "out.jsonl")], capture_output=True, text=True, check=True
    )
    assert "bytes of features beyond the memory budget do not fit into" in done.stdout
    assert "set TMPDIR" in done.stdout
    assert [file.name for file in tmp_path.iterdir()] == ["a.jsonl"]


def test_few_open_files_are_enough(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in corpus(300)))
    few = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))\n"
    done = subprocess.run([sys.executable, "-c", few + FEW, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(len(nd.dedup_files(path, features="words:1", threshold=0.5).kept)), "2"]


FEW = """
import sys
import neardup as nd
from neardup.features import recomputed as features
from neardup.search import bounded_join
features._MIN_BITS, bounded_join._MIN_STORED = 4, 50_000
found = nd.dedup_files(sys.argv[1], features="words:1", threshold=0.5, memory=1_000_000)
print(len(found.kept), found.summary["search"]["passes_over_the_input"])
"""
FULL = """
import resource, signal, sys
import neardup as nd
from neardup.errors import OutputError
from neardup.search import bounded_join
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
bounded_join._MIN_STORED, bounded_join._KEYS_AT_A_TIME = 0, 50

def fill(stage, done, total):
    if stage == "read again":
        resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512))

try:
    nd.dedup_files(sys.argv[1], features="words:1", threshold=0.5, memory=1_000_000, progress=fill)
    print("no error")
except OutputError as error:
    print(error)
"""


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
    plain = nd.dedup(texts, features="words:1", threshold=0.5)
    monkeypatch.setattr("neardup.pipeline.pipeline.free_memory", lambda: 20_000.0)
    again = nd.dedup(texts, features="words:1", threshold=0.5)
    assert outcome(again) == outcome(plain)
    assert again.summary["search"]["passes_over_the_input"] > 1


@pytest.mark.parametrize("at_once", [1, 40, 1 << 18])
def test_counts_of_each_size_are_read_as_they_were_written(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neardup.features.recomputed._READ_SIZE", at_once)
    monkeypatch.setattr("neardup.features.recomputed._TRUNCATION_STEP", at_once)
    rng = np.random.default_rng(1)
    blocks = [np.zeros(0, np.uint32), np.array([255, 0, 3], np.uint32), np.array([256, 1], np.uint32)]
    blocks += [np.array([70_000, 0], np.uint32), np.zeros(5, np.uint32)]
    items = [rng.integers(0, 1 << 62, int(lengths.sum()), dtype=np.uint64) for lengths in blocks]
    with PartFile(np.uint64, runtime.Memory()) as part:
        for lengths, of_them in zip(blocks, items, strict=True):
            part.add(lengths, of_them)
        begin = 0
        for (first, lengths, of_them), *known in zip(part, blocks, items, strict=True):
            assert first == begin
            assert lengths.dtype == np.uint32
            np.testing.assert_array_equal(lengths, known[0])
            np.testing.assert_array_equal(of_them, known[1])
            begin += len(lengths)
        found = part.read_all()
        for (first, lengths, of_them), *known in zip(part.blocks_from_last(), blocks[::-1], items[::-1], strict=True):
            begin -= len(lengths)
            assert first == begin
            np.testing.assert_array_equal(lengths, known[0])
            np.testing.assert_array_equal(of_them, known[1])
    np.testing.assert_array_equal(found[0], np.concatenate(blocks))
    np.testing.assert_array_equal(found[1], np.concatenate(items))
