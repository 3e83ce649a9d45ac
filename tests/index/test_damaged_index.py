"""An index with changed files answers as before, or refuses; whoever wrote them, nothing crashes."""

from __future__ import annotations

import json
import os
import shutil
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from damage import answers, data_files, repair, seal
from references import corpus
from sentences import says

import neardup as nd
from neardup.index.manifest import MANIFEST
from neardup.kernels.blocks import BLOCK_BYTES, block_sums

EXAMPLES = 500 if os.environ.get("NEARDUP_LONG") == "1" else 50
SETS: dict[str, Any] = {"features": "words:2", "threshold": 0.6}
FINGERPRINTS: dict[str, Any] = {"signature": "simhash", "measure": "hamming", "threshold": 6}


def make(place: Path, choices: dict[str, Any], count: int = 300) -> list[str]:
    """Build an index of two segments, one with removed documents; return texts to ask it for."""
    texts = [text for text in corpus(count) if text.strip()]
    half = len(texts) // 2
    ids = [str(number) for number in range(len(texts))]
    index = nd.build_index({"id": ids[:half], "text": texts[:half]}, place, threads=1, **choices)
    index.add({"id": ids[half:], "text": texts[half:]}, threads=1).remove([str(half + 1)])
    return [text for text in texts[:4] + texts[half : half + 4] if len(text.split()) > 3]


def flip(path: Path, at: int, bit: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1 << bit
    path.write_bytes(data)


@pytest.mark.parametrize("choices", [SETS, FINGERPRINTS], ids=["sets", "fingerprints"])
@pytest.mark.parametrize("repaired", [False, True], ids=["by chance", "on purpose"])
def test_a_changed_bit_changes_no_answer_and_crashes_nothing(
    choices: dict[str, Any], repaired: bool, tmp_path: Path
) -> None:
    place, copy, spoiled = tmp_path / "index", tmp_path / "copy", tmp_path / "spoiled"
    texts = make(place, choices)
    expected = answers(place, texts, copy)
    assert not [error for error in expected.values() if isinstance(error, Exception)]
    rng = np.random.default_rng(4)
    files = data_files(place)
    refused = 0
    # As often in each file, since the longest would get nearly all.
    for number in range(EXAMPLES):
        file = files[number % len(files)]
        shutil.rmtree(spoiled, ignore_errors=True)
        shutil.copytree(place, spoiled)
        changed = spoiled / file.relative_to(place)
        flip(changed, int(rng.integers(changed.stat().st_size)), int(rng.integers(8)))
        if repaired and changed.name not in (MANIFEST, "sums"):
            repair(spoiled)
        for what, answer in answers(spoiled, texts, copy).items():
            if isinstance(answer, Exception):
                refused += 1
                assert "\n" not in str(answer)
                # Ids that were made equal are refused as those of any input.
                assert repaired or says(answer, str(copy if what == "add" else spoiled))
            elif not repaired:
                assert answer == expected[what], (changed, what)
    assert refused > EXAMPLES


def test_a_byte_that_no_query_reads_does_no_harm_and_one_that_it_reads_is_found(tmp_path: Path) -> None:
    """Blocks are compared when they are read: most of a large index is not."""
    place = tmp_path / "index"
    texts = make(place, SETS, 3000)
    longest = max(place.rglob("entries"), key=lambda path: path.stat().st_size)
    assert longest.stat().st_size > 4 * BLOCK_BYTES
    answered, refused = 0, list[nd.StoreError]()
    expected = nd.open_index(place).query(texts[0])
    for block in range(longest.stat().st_size // BLOCK_BYTES):
        flip(longest, block * BLOCK_BYTES, 3)
        try:
            assert nd.open_index(place).query(texts[0]) == expected
            answered += 1
        except nd.StoreError as error:
            refused.append(error)
        with pytest.raises(nd.StoreError):
            nd.open_index(place).check()
        flip(longest, block * BLOCK_BYTES, 3)
    assert answered > 0
    assert all(says(error, "entries is damaged") for error in refused)


def test_any_changed_bit_changes_the_sum_of_its_block() -> None:
    data = np.random.default_rng(1).integers(0, 256, 3 * BLOCK_BYTES // 2 + 3).astype(np.uint8)
    sums = block_sums(data)
    assert len(sums) == 2
    for at in range(0, len(data), 97):
        for bit in (0, 7):
            data[at] ^= 1 << bit
            # Two changes, at the top of words that follow each other, do not cancel out.
            if at + 32 < len(data):
                data[at + 32] ^= 1 << bit
            changed = block_sums(data)
            assert changed[at // BLOCK_BYTES] != sums[at // BLOCK_BYTES]
            data[at] ^= 1 << bit
            if at + 32 < len(data):
                data[at + 32] ^= 1 << bit
    assert np.array_equal(block_sums(data), sums)
    assert not len(block_sums(data[:0]))


#: What a manifest says, with a digest that fits.
LIES: list[dict[str, Any]] = [
    {"segments": None},
    {"segments": {}, "ids": "string"},
    {"segments": [1]},
    {"segments": [{}]},
    {"rows": -1},
    {"rows": 1 << 70},
    {"rows": 1.5},
    {"sequence": True},
    {"ids": "rows"},
    {"ids": 7},
    {"ids": []},
    {"recipe": []},
    {"recipe": {"features": 5}},
    {"recipe": {"features": "words:2", "threshold": 10**400}},
    {"recipe": {"seed": 1 << 70}},
    {"recipe": {"nothing": 1}},
    {"dependencies": {"choices": 1}},
    {"more": 1},
    {"format": "4"},
    {"format": None},
    {"format": 10**30},
]
#: What it says of a segment, or of a file of it.
LIES_OF_A_SEGMENT: list[dict[str, Any]] = [
    {"documents": 10**15},
    {"documents": 0, "removed": 0},
    {"documents": -1},
    {"removed": 10**9},
    {"removed": 1},
    {"name": "segment-000009"},
    {"name": "../index/segment-000001"},
    {"name": ["segment-000001"]},
    {"features": "many"},
    {"text_bytes": None},
    {"files": {}},
    {"files": []},
    {"files": {"../../secret": [1, "00"]}},
    {"files": {"/etc/passwd": [1, "00"]}},
    {"files": {"segment-000001/..": [1, "00"]}},
    {"files": {"segment-000001/sizes": 7}},
    {"files": {"segment-000001/sizes": [10**18, "00"]}},
]


@pytest.mark.parametrize("lie", [*LIES, *({"segments": [one]} for one in LIES_OF_A_SEGMENT)], ids=json.dumps)
def test_a_manifest_that_lies_is_refused_in_one_sentence(lie: dict[str, Any], tmp_path: Path) -> None:
    place = tmp_path / "index"
    make(place, SETS, 20)
    content = json.loads((place / MANIFEST).read_text())
    content.pop("digest")
    if isinstance(lie.get("segments"), list) and lie["segments"][0] in LIES_OF_A_SEGMENT:
        lie = {"segments": [content["segments"][0] | lie["segments"][0], *content["segments"][1:]]}
    seal(place, content | lie)
    with pytest.raises(nd.NeardupError) as caught:
        nd.open_index(place)
    assert says(caught.value, str(place))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, '{"format":4,"a":' + "9" * 5000 + "}", "[]", "null", "", "\xff", '{"format": NaN}', '"\\ud800"'],
    ids=range(8),
)
def test_a_manifest_that_is_none_is_refused_in_one_sentence(text: str, tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_bytes(text.encode("latin-1"))
    with pytest.raises(nd.StoreError, match="damaged"):
        nd.open_index(tmp_path)


@pytest.mark.parametrize("how", ["missing", "cut", "longer", "folder", "pipe", "link to nothing", "empty"])
def test_files_of_another_kind_or_size_are_refused_even_if_digests_fit(how: str, tmp_path: Path) -> None:
    place = tmp_path / "index"
    texts = make(place, SETS, 40)
    for file in [path for path in data_files(place) if path.name != MANIFEST]:
        spoiled = tmp_path / "spoiled"
        shutil.rmtree(spoiled, ignore_errors=True)
        shutil.copytree(place, spoiled)
        changed = spoiled / file.relative_to(place)
        data = changed.read_bytes()
        changed.unlink()
        if how == "folder":
            changed.mkdir()
        elif how == "pipe":
            os.mkfifo(changed)
        elif how == "link to nothing":
            changed.symlink_to("nothing")
        elif how != "missing":
            changed.write_bytes({"cut": data[:-1], "longer": data + data, "empty": b""}[how])
        for repaired in (False, True):
            if repaired and how in ("cut", "longer", "empty"):
                repair(spoiled)
            for answer in answers(spoiled, texts, tmp_path / "copy").values():
                if not repaired:
                    assert isinstance(answer, nd.StoreError), (changed, answer)
                    assert says(answer, "damaged" if how in ("cut", "longer", "pipe", "empty") else "cannot be read")


def test_a_text_takes_no_more_memory_than_its_frame_can_hold(tmp_path: Path) -> None:
    place = tmp_path / "index"
    texts = make(place, SETS, 20)
    for file in place.rglob("ends"):
        ends = np.fromfile(file, np.uint64)
        (ends + np.arange(len(ends), dtype=np.uint64) * np.uint64(1 << 40)).tofile(file)
    repair(place)
    tracemalloc.start()
    found = answers(place, texts, tmp_path / "copy")
    assert tracemalloc.get_traced_memory()[1] < 100_000_000
    tracemalloc.stop()
    assert isinstance(found["documents"], nd.StoreError)
