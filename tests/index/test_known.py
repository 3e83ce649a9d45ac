"""Documents that an index has already: delivered again they change nothing, and outputs are those of the first time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from commands import neardup, refused, write_lines
from hypothesis import given
from hypothesis import strategies as st
from sentences import says

import neardup as nd
from neardup.errors import InputError
from neardup.index import segment
from neardup.index.index import DiskIndex
from neardup.index.manifest import MANIFEST
from neardup.index.writer import open_writer

WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu"]
RULES = ("--features", "words:1", "--threshold", "0.6")
CHOICES: dict[str, Any] = {"features": "words:1", "threshold": 0.6}


def rows_of(*numbers: int) -> list[dict[str, Any]]:
    """Documents of which neighbours in number share most words."""
    return [
        {"id": f"d{n}", "text": " ".join(WORDS[(n + step) % 12] + str((n + step) // 12) for step in range(6))}
        for n in numbers
    ]


def content(index: Path) -> bytes:
    return (index / MANIFEST).read_bytes()


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    index = tmp_path / "archive"
    neardup("index", "build", write_lines(tmp_path / "old.jsonl", rows_of(0, 20, 40)), *RULES, "-o", index)
    return index


def test_the_same_delivery_again_gives_the_same_files(archive: Path, tmp_path: Path) -> None:
    shard = write_lines(tmp_path / "shard.jsonl", rows_of(1, 60, 61, 80, 41, 62))
    outputs = []
    for attempt in "ab":
        kept, dropped = tmp_path / f"{attempt}.jsonl", tmp_path / f"{attempt}.csv"
        options = ("--against", archive, "--add", "-o", kept, "--duplicates", dropped, "--json")
        summary = json.loads(neardup("dedup", shard, *options).stdout)
        outputs.append((kept.read_bytes(), dropped.read_bytes(), content(archive), summary["kept"], summary["pairs"]))
        assert summary["reference"]["documents"] == 3
        assert summary["reference"]["known"] == (0 if attempt == "a" else summary["kept"])
    assert outputs[0] == outputs[1]
    assert 0 < outputs[0][3] < 6
    message = refused("dedup", shard, "--against", archive, "--add", "--strict-ids", "-o", tmp_path / "c.jsonl")
    assert says(message, "already has a document with the id 'd60'", "--strict-ids")


def test_a_delivery_again_after_others_gives_the_same_kept_documents(archive: Path, tmp_path: Path) -> None:
    first = write_lines(tmp_path / "first.jsonl", rows_of(1, 60, 80))
    second = write_lines(tmp_path / "second.jsonl", rows_of(61, 100, 81))
    kept = [tmp_path / f"{number}.jsonl" for number in range(4)]
    for path, output in zip((first, second, first, second), kept, strict=True):
        neardup("dedup", path, "--against", archive, "--add", "-o", output)
    assert kept[0].read_bytes() == kept[2].read_bytes() != b""
    assert kept[1].read_bytes() == kept[3].read_bytes() != b""


def test_without_adding_a_known_document_matches_itself(archive: Path) -> None:
    found = nd.dedup(rows_of(0, 60), against=nd.open_index(archive))
    assert [(drop.id, drop.keeper) for drop in found.dropped] == [("d0", "d0")]


@pytest.mark.parametrize("by", ["command", "python"])
def test_known_documents_are_skipped_and_counted(archive: Path, tmp_path: Path, by: str) -> None:
    path = write_lines(tmp_path / "new.jsonl", rows_of(20, 60, 0, 60))
    if by == "command":
        result = neardup("index", "add", archive, path, "--json")
        info = json.loads(result.stdout)
        assert (info["documents"], info["known"]) == (4, 3)
        before = content(archive)
        assert "4 documents, skipped" in neardup("index", "add", archive, path).stderr
    else:
        found = nd.open_index(archive).add(nd.open_files(path))
        assert (len(found), found.known_count) == (4, 3)
        before = content(archive)
        assert found.add(nd.open_files(path)).known_count == 4
    assert content(archive) == before
    assert nd.open_index(archive).documents()["id"].to_pylist() == ["d0", "d20", "d40", "d60"]
    neardup("index", "check", archive)
    with pytest.raises(InputError, match="already has a document with the id"):
        nd.open_index(archive).add(rows_of(60), strict_ids=True)


def test_python_and_the_command_refuse_a_document_that_comes_twice_if_asked(tmp_path: Path) -> None:
    rows = [{"id": "a", "text": "one two three four five six"}] * 2
    assert len(nd.build_index(rows, tmp_path / "once")) == 1
    with pytest.raises(InputError, match="'a'"):
        nd.build_index(rows, tmp_path / "never", strict_ids=True)
    assert not (tmp_path / "never").exists()


def test_another_text_under_a_known_id_is_refused(archive: Path, tmp_path: Path) -> None:
    before = content(archive)
    path = write_lines(tmp_path / "new.jsonl", [*rows_of(60), {"id": "d20", "text": "another text"}])
    for command in (("index", "add", archive, path), ("dedup", path, "--against", archive, "--add", "-o", "k.jsonl")):
        message = refused(*command)
        assert says(message, "already has another text under the id 'd20'", "give the new one another id", "remove")
    assert content(archive) == before
    assert sorted(entry.name for entry in archive.iterdir()) == ["lock", MANIFEST, "segment-000001"]


def test_an_index_is_built_of_a_corpus_with_repeats(tmp_path: Path) -> None:
    rows = rows_of(0, 20, 0, 40, 20)
    found = nd.build_index(rows, tmp_path / "a", **CHOICES)
    assert (len(found), found.known_count) == (3, 2)
    once = nd.build_index(rows_of(0, 20, 40), tmp_path / "b", **CHOICES)
    assert found.documents().equals(once.documents())
    rows.append({"id": "d0", "text": "another text"})
    with pytest.raises(InputError, match="repeat an id of column 'id', such as 'd0'"):
        nd.build_index(rows, tmp_path / "c", **CHOICES)
    assert not (tmp_path / "c").exists()


def test_a_removed_document_is_not_known(archive: Path) -> None:
    index = nd.open_index(archive).remove(["d20"])
    found = index.add([{"id": "d20", "text": "another text"}, *rows_of(0)])
    assert (len(found), found.known_count) == (3, 1)


@given(seed=st.randoms(use_true_random=False))
def test_deliveries_in_any_order_leave_each_document_once(tmp_path_factory: pytest.TempPathFactory, seed: Any) -> None:
    folder = tmp_path_factory.mktemp("index") / "x"
    nd.build_index(rows_of(0), folder, **CHOICES)
    wanted = {"d0"}
    for _ in range(4):
        numbers = [seed.randrange(30) for _ in range(seed.randrange(6))]
        wanted |= {f"d{number}" for number in numbers}
        if numbers:
            nd.open_index(folder).add(rows_of(*numbers))
    assert sorted(nd.open_index(folder).documents()["id"].to_pylist()) == sorted(wanted)
    DiskIndex(folder).check()
    with open_writer(folder) as writer:
        assert writer.manifest.documents == len(wanted)


def test_an_index_opens_while_a_writer_replaces_its_segments(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nd.open_index(archive).add(rows_of(60))
    open_file, calls = segment._open_file, 0

    def compacted_first(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 3:
            nd.open_index(archive).compact()
        return open_file(*arguments)

    monkeypatch.setattr(segment, "_open_file", compacted_first)
    assert len(nd.open_index(archive)) == 4
    assert calls > 3


def test_a_query_without_features_matches_nothing(tmp_path: Path) -> None:
    for name, options in (("sets", CHOICES), ("bits", {"recipe": "simhash"})):
        index = nd.build_index(rows_of(0, 1), tmp_path / name, **options)
        assert index.query("* * *") == index.query("") == []
    assert nd.build_index(rows_of(0, 1), tmp_path / "nearest", **CHOICES).query("...", 2) == []
