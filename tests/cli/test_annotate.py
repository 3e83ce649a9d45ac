"""All documents with what became of each, and one output for each input."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import FOX, ROSE, RULES, names_in, neardup, read_lines, refused, write_lines
from sentences import says

import neardup as nd
from neardup.errors import OutputError

ROWS: list[dict[str, Any]] = [
    {"id": "a", "text": FOX, "n": 1.50},
    {"id": "b", "text": "another text"},
    {"id": "c", "text": FOX + " today", "n": None},
    {"id": "d", "text": FOX.upper(), "n": "x"},
]
SIMILAR = 1 - 1 / 18
SAID: list[dict[str, Any]] = [
    {"kept": True, "keeper": None, "similarity": None, "family": 1, "family_size": 3},
    {"kept": True, "keeper": None, "similarity": None, "family": None, "family_size": 1},
    {"kept": False, "keeper": "a", "similarity": SIMILAR, "family": 1, "family_size": 3},
    {"kept": False, "keeper": "a", "similarity": 1.0, "family": 1, "family_size": 3},
]


def named(prefix: str = "neardup_") -> list[dict[str, Any]]:
    return [{prefix + name: value for name, value in row.items()} for row in SAID]


def test_annotate_appends_fields_to_json_lines(tmp_path: Path) -> None:
    path, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    lines = [json.dumps(row).encode() for row in ROWS]
    path.write_bytes(lines[0] + b" \r\n" + lines[1] + b"\nbroken\n" + lines[2] + b"\n" + lines[3])
    neardup("dedup", path, "--annotate", "-o", out, *RULES)
    written = out.read_bytes().splitlines()
    assert [line.startswith(before[:-1]) for line, before in zip(written, lines, strict=True)] == [True] * 4
    assert read_lines(out) == [row | said for row, said in zip(ROWS, named(), strict=True)]
    neardup("dedup", path, "--annotate", "--annotate-prefix", "x.", "-o", out, "--force", *RULES)
    assert [row["x.kept"] for row in read_lines(out)] == [True, True, False, False]


@pytest.mark.parametrize("name", ["out.parquet", "out.csv", "out.arrow", "out.jsonl"])
def test_annotate_adds_columns_to_tables(tmp_path: Path, name: str) -> None:
    table = pa.table({"id": [row["id"] for row in ROWS], "text": [row["text"] for row in ROWS]})
    result = nd.dedup(table, features="words:3", threshold=0.8)
    assert result.annotations("").to_pylist() == SAID
    result.write_annotated(str(tmp_path / name))
    with nd.open_files(tmp_path / name) as corpus:
        assert sum(len(batch.texts) for batch in corpus.scan()) == 4
        taken = corpus.take([0, 1, 2, 3])
    assert taken["id"].to_pylist() == ["a", "b", "c", "d"]
    assert [str(value).lower() for value in taken["neardup_kept"].to_pylist()] == ["true", "true", "false", "false"]
    if not name.endswith(".csv"):
        assert [{key: row[key] for key in named()[0]} for row in taken.to_pylist()] == named()
    with pytest.raises(OutputError) as caught:
        nd.dedup(taken, features="words:3", threshold=0.8).write_annotated(str(tmp_path / "again.jsonl"))
    assert says(caught.value, "neardup_kept", "prefix=")
    assert "again.jsonl" not in names_in(tmp_path)


def test_annotations_name_the_side() -> None:
    said = nd.dedup([FOX, ROSE, ROSE], against=[FOX]).annotations().to_pydict()
    assert said["neardup_keeper_from"] == ["reference", None, "input"]
    assert said["neardup_keeper"] == [0, None, 1]
    assert nd.dedup([]).annotations().num_rows == 0


def test_a_prefix_without_columns_is_refused(tmp_path: Path) -> None:
    write_lines(tmp_path / "a.jsonl", ROWS)
    message = refused("dedup", tmp_path / "a.jsonl", "-o", tmp_path / "o.jsonl", "--annotate-prefix", "x")
    assert says(message, "--annotate-prefix", "--annotate")


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    (folder / "deep").mkdir(parents=True)
    write_lines(folder / "1.jsonl", ROWS[:2])
    (folder / "2.jsonl.gz").write_bytes(gzip.compress(json.dumps(ROWS[2]).encode() + b"\n"))
    pq.write_table(pa.table({"id": ["d", "e"], "text": [FOX.upper(), "yet another"]}), folder / "deep" / "3.parquet")
    return folder


def test_each_input_has_its_output(shards: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    neardup("dedup", shards, "-o", f"{out}/", *RULES)
    assert (out / "1.jsonl").read_bytes() == (shards / "1.jsonl").read_bytes()
    assert gzip.decompress((out / "2.jsonl.gz").read_bytes()) == b""
    assert pq.read_table(out / "deep" / "3.parquet").to_pylist() == [{"id": "e", "text": "yet another"}]
    neardup("dedup", shards, "--annotate", "-o", f"{tmp_path / 'all'}/", *RULES)
    assert pq.read_table(tmp_path / "all" / "deep" / "3.parquet")["neardup_keeper"].to_pylist() == ["a", None]
    assert json.loads(gzip.decompress((tmp_path / "all" / "2.jsonl.gz").read_bytes()))["neardup_similarity"] == SIMILAR


def test_outputs_of_the_same_name_are_refused(shards: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    write_lines(tmp_path / "other" / "1.jsonl", ROWS[2:])
    before = names_in(tmp_path)
    message = refused("dedup", shards / "1.jsonl", tmp_path / "other" / "1.jsonl", "-o", f"{tmp_path / 'out'}/")
    assert says(message, "1.jsonl", "read the folders one by one")
    message = refused("dedup", shards, "-o", f"{shards}/")
    assert says(message, "is an input", "another file")
    message = refused("dedup", "-", "-o", f"{tmp_path / 'out'}/")
    assert says(message, "standard input", "kept.jsonl")
    assert names_in(tmp_path) == before
