"""Columns that the names of folders state, such as ``lang=en/date=2024-01-01/``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import neardup as nd

TEXT = "the harbour board voted to widen the northern gate after years of talks"


def _write_lines(table: pa.Table, path: Path) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))


WRITERS: dict[str, Callable[[pa.Table, Path], Any]] = {
    "jsonl": _write_lines,
    "parquet": pq.write_table,
    "csv": arrow_csv.write_csv,
    "arrow": pyarrow.feather.write_feather,
}


def _folder(tmp_path: Path, suffix: str, **columns: list[str]) -> str:
    for place in ("lang=en/date=2024-01-01T10%3A00", "lang=de/date=__HIVE_DEFAULT_PARTITION__"):
        folder = tmp_path / "in" / place
        folder.mkdir(parents=True)
        keys = [f"{place[5:7]}{number}" for number in range(2)]
        table = pa.table({"key": keys, "text": [TEXT, f"{place} " * 9], **columns})
        WRITERS[suffix](table, folder / f"part.{suffix}")
    return str(tmp_path / "in")


def _rows(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text().splitlines()]
    if path.suffix == ".csv":
        table = arrow_csv.read_csv(path, convert_options=arrow_csv.ConvertOptions(strings_can_be_null=True))
    else:
        table = (pq.read_table if path.suffix == ".parquet" else pyarrow.feather.read_table)(path)
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


@pytest.mark.parametrize("suffix", WRITERS)
@pytest.mark.parametrize("output", WRITERS)
def test_folders_become_columns_of_each_output(tmp_path: Path, suffix: str, output: str) -> None:
    result = nd.dedup_files(_folder(tmp_path, suffix), within="lang")
    assert len(result.kept) == 4
    result.write(str(tmp_path / f"kept.{output}"))
    rows = _rows(tmp_path / f"kept.{output}")
    assert [row["lang"] for row in rows] == ["de", "de", "en", "en"]
    assert [str(row["date"])[:4] for row in rows] == ["None", "None", "2024", "2024"]
    if output != "csv":
        assert rows[3]["date"] == "2024-01-01T10:00"
    assert len(nd.dedup_files(str(tmp_path / "in")).kept) == 3


def test_a_column_of_the_file_wins_and_a_note_says_so(tmp_path: Path) -> None:
    folder = _folder(tmp_path, "jsonl", lang=["fr", "it"])
    assert any("'lang'" in note and "name of its folder" in note for note in nd.open_files(folder).notes)
    nd.dedup_files(folder).write(str(tmp_path / "kept.jsonl"))
    assert [row["lang"] for row in _rows(tmp_path / "kept.jsonl")] == ["fr", "it", "it"]


def test_lines_stay_as_they_are_and_get_the_values_at_their_ends(tmp_path: Path) -> None:
    folder = tmp_path / "lang=en"
    folder.mkdir()
    (folder / "a.jsonl").write_text('{"text":"one",  "n":1.50}\n{"text":"two", "of":"lang"}')
    nd.dedup_files(str(folder)).write(str(tmp_path / "kept.jsonl"))
    assert (tmp_path / "kept.jsonl").read_text() == (
        '{"text":"one",  "n":1.50, "lang": "en"}\n{"text":"two", "of":"lang", "lang": "en"}\n'
    )


def test_a_file_without_the_folder_has_nulls(tmp_path: Path) -> None:
    _folder(tmp_path, "parquet")
    pq.write_table(pa.table({"key": ["x"], "text": ["quite another story"]}), tmp_path / "in" / "z.parquet")
    nd.dedup_files(str(tmp_path / "in")).write(str(tmp_path / "kept.parquet"))
    assert [row["lang"] for row in _rows(tmp_path / "kept.parquet")] == ["de", "de", "en", None]


@pytest.mark.parametrize("suffix", WRITERS)
def test_the_name_of_a_folder_is_not_a_text(tmp_path: Path, suffix: str) -> None:
    with pytest.raises(nd.InputError, match=r"'lang' is the name of a folder, not a text: .*text_column.* key \("):
        nd.dedup_files(_folder(tmp_path, suffix), text_column="lang")
    folder = tmp_path / "content=a"
    folder.mkdir()
    WRITERS[suffix](pa.table({"abstract": [TEXT, "b"]}), folder / f"part.{suffix}")
    with nd.open_files(str(folder)) as corpus:
        assert corpus.text_column == "abstract"


@pytest.mark.parametrize("suffix", WRITERS)
def test_the_name_of_a_folder_as_id_is_refused_if_it_has_several_rows(tmp_path: Path, suffix: str) -> None:
    folder = tmp_path / "id=7"
    folder.mkdir()
    WRITERS[suffix](pa.table({"text": [TEXT, "b"]}), folder / f"part.{suffix}")
    with pytest.raises(nd.InputError, match=r"column 'id', the name of a folder, which all rows below it have"):
        nd.dedup_files(str(folder))
    assert len(nd.dedup_files(str(folder), ids="rows").kept) == 2
