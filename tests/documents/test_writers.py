"""Outputs: every format from every other, byte for byte where that is possible, and nothing half-written."""

from __future__ import annotations

import datetime
import json
import math
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from input_files import FORMATS, ROWS, compress, full_mask, texts_of, write_input

import neardup as nd
from neardup.documents import check_output, open_corpus, open_writer, write_table
from neardup.documents import columnar as columnar_module
from neardup.documents import output as writers_module
from neardup.documents import streams as streams_module
from neardup.documents.output import placed_together
from neardup.errors import NeardupError, OutputError

TABLE = pa.table({"a": [1, 2, None], "score": [0.5, 1.0, 0.25], "text": ["x", 'y "q", z\n', None]})
TAGS = pa.list_(pa.struct({"a": pa.int64(), "b": pa.string()}))
MAIN_FORMATS = [".jsonl", ".csv", ".parquet", ".arrow"]


def copy_rows(folder: Path, source: Path, output: str, keep: list[int]) -> Path:
    with open_corpus([source]) as corpus:
        list(corpus.scan())
        mask = np.zeros(corpus.raw_rows, dtype=bool)
        mask[keep] = True
        counts: list[int] = []
        assert corpus.copy(mask, str(folder / output), progress=counts.append) == len(keep) == sum(counts)
    return folder / output


@pytest.mark.parametrize(
    ("source", "target", "codec"),
    [
        *((source, target, "") for source in MAIN_FORMATS for target in MAIN_FORMATS),
        *((".jsonl", target, "") for target in FORMATS if target not in MAIN_FORMATS),
        (".parquet", ".jsonl", ".gz"),
        (".csv", ".parquet", ".gz"),
        (".jsonl", ".csv", ".zst"),
    ],
)
def test_every_format_is_written_from_every_other(tmp_path: Path, source: str, target: str, codec: str) -> None:
    output = copy_rows(tmp_path, write_input(tmp_path, f"a{source}"), f"o{target}{codec}", [1, 2, 40])
    with open_corpus([output]) as corpus:
        assert texts_of(corpus) == [ROWS[i]["text"] for i in (1, 2, 40)]
        rows = corpus.take([0, 1, 2]).to_pylist()
    assert [{**row, "id": int(row["id"])} for row in rows] == [ROWS[i] for i in (1, 2, 40)]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([f"a{source}", output.name])


def test_json_lines_are_copied_byte_for_byte(tmp_path: Path) -> None:
    lines = [
        b'{"text":  "caf\\u00e9", "n": 1.50, "n": 2, "huge": 123456789012345678901234567890}\r\n',
        b"nonsense\n",
        b"\n",
        b' {"x": NaN, "text": "b", "lone": "\\ud800", "z": 1e999}  \n',
        b'{"text": "no line end"}',
    ]
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + b"".join(lines))
    output = copy_rows(tmp_path, path, "o.jsonl", [0, 2, 3])
    assert output.read_bytes() == lines[0] + lines[3] + lines[4] + b"\n"
    (tmp_path / "a.jsonl.gz").write_bytes(compress(path.read_bytes(), ".gz"))
    assert copy_rows(tmp_path, tmp_path / "a.jsonl.gz", "p.jsonl", [0, 2, 3]).read_bytes() == output.read_bytes()
    assert copy_rows(tmp_path, path, "o2.jsonl.gz", [3]).read_bytes()[4:8] == bytes(4)


def test_delimited_text_is_copied_byte_for_byte(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b'"id";text;n\r\n007;"x ""y""\r\nz";1.50\r\n8;5" disk;NA\r\n9;;')
    output = copy_rows(tmp_path, path, "o.csv", [0, 1, 2])
    assert output.read_bytes() == path.read_bytes() + b"\r\n"
    output = copy_rows(tmp_path, path, "o.tsv", [0, 1])
    with open_corpus([output]) as corpus:
        list(corpus.scan())
        assert corpus.take([0, 1]).to_pylist() == [
            {"id": "007", "text": 'x "y"\r\nz', "n": "1.50"},
            {"id": "8", "text": '5" disk', "n": "NA"},
        ]


def test_parquet_keeps_schema_metadata_and_codec(tmp_path: Path) -> None:
    table = pa.table(
        {
            "id": pa.array([1, 2], pa.int16()),
            "when": pa.array([datetime.date(2020, 1, 1), None]),
            "tags": pa.array([["a"], None], pa.list_(pa.string())),
            "text": ["a", "b"],
        }
    ).replace_schema_metadata({"write_input": "by hand"})
    pq.write_table(table, tmp_path / "a.parquet", compression="gzip")
    output = copy_rows(tmp_path, tmp_path / "a.parquet", "o.parquet", [1])
    assert pq.read_table(output).equals(pq.read_table(tmp_path / "a.parquet").slice(1), check_metadata=True)
    column = pq.ParquetFile(output).metadata.row_group(0).column(3)
    assert column.compression == "GZIP"
    assert not column.has_dictionary_page
    lines = copy_rows(tmp_path, tmp_path / "a.parquet", "o.jsonl", [0]).read_text()
    assert json.loads(lines) == {"id": 1, "when": "2020-01-01", "tags": ["a"], "text": "a"}
    rows = copy_rows(tmp_path, tmp_path / "a.parquet", "o.csv", [0]).read_text()
    assert rows.splitlines()[1] == '1,2020-01-01,"[""a""]","a"'


@pytest.mark.parametrize(("source", "target"), [(".jsonl", ".parquet"), (".csv", ".arrow"), (".arrow", ".csv.gz")])
def test_the_same_rows_give_the_same_bytes(
    tmp_path: Path, source: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writers_module, "GROUP_ROWS", 32)
    rows = [{"id": n, "n": n / 4, "text": f"text {n} " * (n % 50)} for n in range(100)]
    one = write_input(tmp_path, f"one{source}", rows)
    many = tmp_path / "many"
    many.mkdir()
    for part in range(5):
        path = write_input(many, f"{part}{source}", rows[part * 20 : part * 20 + 20])
        if source in (".jsonl", ".csv"):
            path.write_bytes(path.read_bytes().removesuffix(b"\n"))
    outputs: set[bytes] = set()
    for number, (given, block, threads) in enumerate([(one, 1 << 24, 1), (one, 700, 3), (many, 1 << 24, 3)]):
        monkeypatch.setattr(streams_module, "BLOCK", block)
        monkeypatch.setattr(columnar_module, "TARGET_BYTES", block)
        with open_corpus([given]) as corpus:
            list(corpus.scan())
            corpus.copy(np.arange(100) % 3 != 0, str(tmp_path / f"{number}{target}"), threads=threads)
        outputs.add((tmp_path / f"{number}{target}").read_bytes())
    assert len(outputs) == 1


@pytest.mark.parametrize(
    ("counts", "group", "codec"),
    [([40] * 20, 40, "none"), ([700] * 4, 2000, "zstd"), ([], 40, "zstd"), ([3, 0, 1], 40, "gzip")],
)
def test_several_threads_encode_parquet_to_the_bytes_of_one(
    tmp_path: Path, counts: list[int], group: int, codec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writers_module, "GROUP_ROWS", group)
    rng = np.random.default_rng(len(counts))

    def rows(count: int) -> pa.Table:
        columns = {
            "id": pa.array(rng.integers(-9, 1 << 60, count), pa.int64()),
            "text": pa.array(["word " * int(size) for size in rng.integers(0, 90, count)], pa.large_string()),
            "tags": pa.array([[{"a": 1, "b": None}] * int(size) for size in rng.integers(0, 3, count)], TAGS),
            "kind": pa.array(["x", None, "z"] * count, pa.string()).slice(0, count).dictionary_encode(),
            "flag": pa.array([True, None] * count, pa.bool_()).slice(0, count),
            "time": pa.array(rng.integers(0, 99, count), pa.timestamp("ms", "UTC")),
            "raw": pa.array([b"\0\xff"] * count, pa.binary()),
            "nothing": pa.nulls(count),
        }
        more = {f"n{place}": pa.array(rng.random(count)) for place in range(16)}
        return pa.table(columns | more).replace_schema_metadata({"write_input": "by hand"})

    tables = [rows(count) for count in counts]
    whole = pa.concat_tables([rows(0), *tables])
    written = set()
    # With a budget that leaves nothing, and with room for one group and for three.
    for threads, spare in ((0, math.inf), (1, math.inf), (7, math.inf), (7, -1.0), (7, 400e6), (7, 900e6)):
        monkeypatch.setattr(writers_module, "spare_memory", lambda spare=spare: spare)
        output = tmp_path / f"{threads}-{spare}.parquet"
        with writers_module.Writer(str(output), rows(0).schema, "text", codec, threads) as writer:
            for table in tables if threads else [whole]:
                writer.write(table)
        written.add(output.read_bytes())
    assert len(written) == 1
    assert pq.read_table(output).to_pylist() == whole.to_pylist()


def test_groups_are_cut_by_bytes_of_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writers_module, "GROUP_BYTES", 1000)
    write_input(tmp_path, "a.jsonl", [{"text": "x" * 400} for _ in range(10)])
    output = copy_rows(tmp_path, tmp_path / "a.jsonl", "o.parquet", list(range(10)))
    metadata = pq.ParquetFile(output).metadata
    assert [metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)] == [3, 3, 3, 1]


def test_schemas_of_blocks_and_files_are_unified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams_module, "BLOCK", 60)
    (tmp_path / "in").mkdir()
    rows: list[dict[str, Any]] = [
        {"text": "a", "n": 1, "day": "2020-01-01", "deep": {"a": 1}},
        {"text": "b", "n": 1.5, "day": None, "deep": {"b": ["2020-01-01"]}},
        {"text": "c", "day": "someday", "extra": True},
    ]
    write_input(tmp_path / "in", "a.jsonl", rows[:2])
    write_input(tmp_path / "in", "b.jsonl", rows[2:])
    output = copy_rows(tmp_path, tmp_path / "in", "o.parquet", [0, 1, 2])
    assert pq.read_table(output).to_pylist() == [
        {"text": "a", "n": 1.0, "day": "2020-01-01", "deep": {"a": 1, "b": None}, "extra": None},
        {"text": "b", "n": 1.5, "day": None, "deep": {"a": None, "b": ["2020-01-01"]}, "extra": None},
        {"text": "c", "n": None, "day": "someday", "deep": None, "extra": True},
    ]


def test_odd_json_fits_a_table_and_types_that_do_not_are_refused_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"text": "a", "n": 1, "n": 2}\n{"text": "b", "lone": "\\ud800", "n": 1e999}\n')
    output = copy_rows(tmp_path, path, "o.parquet", [0, 1])
    assert pq.read_table(output).column("n").to_pylist() == ["2", "1e999"]
    rows: list[dict[str, Any]] = [{"text": "a", "n": 1}, {"text": "b", "n": "one"}]
    for name, wrong, message in (
        ("b.jsonl", rows, r"^.* each input in its own format instead.*$"),
        ("c.jsonl", [{"text": "a", "empty": {}}], "cannot hold these columns"),
    ):
        with pytest.raises(NeardupError, match=message):
            copy_rows(tmp_path, write_input(tmp_path, name, wrong), "p.parquet", list(range(len(wrong))))
    assert not (tmp_path / "p.parquet").exists()


@pytest.mark.parametrize("target", MAIN_FORMATS)
@pytest.mark.parametrize(
    "field", [r'"\udfaa": 1', r'"a": {"\udfaa": 1}', r'"a": [{"\udfaa": 1}]', r'"a": {"\udfaa": 1, "\ud800": "x"}']
)
def test_a_name_with_a_lone_surrogate_goes_through_every_format(tmp_path: Path, field: str, target: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a"}\n{"text": "b", ' + field + "}\n")
    output = copy_rows(tmp_path, path, f"o{target}", [0, 1])
    with open_corpus([output]) as corpus:
        assert texts_of(corpus) == ["a", "b"]


def test_columns_of_two_types_go_into_a_folder_if_not_into_one_table(tmp_path: Path) -> None:
    paths = [tmp_path / "a.jsonl", tmp_path / "b.parquet"]
    paths[0].write_text('{"id": "1", "text": "a"}\n')
    pq.write_table(pa.table({"id": [2], "text": ["b"]}), paths[1])
    with open_corpus(paths) as corpus:
        list(corpus.scan())
        with pytest.raises(NeardupError, match=r"^.* string vs int64.* each input in its own format .*FOLDER/.*$"):
            corpus.copy(np.ones(2, dtype=bool), str(tmp_path / "o.jsonl"))
        corpus.copy(np.ones(2, dtype=bool), f"{tmp_path}/o/")
    assert [(tmp_path / "o" / path.name).exists() for path in paths] == [True, True]


def test_kept_text_files_are_copied_to_a_folder(tmp_path: Path) -> None:
    texts = tmp_path / "texts"
    (texts / "sub").mkdir(parents=True)
    for name in ("a.txt", "sub/b.md", "c"):
        (texts / name).write_bytes(b"\xef\xbb\xbf" + name.encode())
    output = copy_rows(tmp_path, texts, "kept", [0, 2])
    assert (output / "a.txt").read_bytes() == b"\xef\xbb\xbfa.txt"
    assert (output / "sub" / "b.md").read_bytes() == b"\xef\xbb\xbfsub/b.md"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept", "texts"]
    with pytest.raises(OutputError, match="is a folder that exists"):
        copy_rows(tmp_path, texts, "kept", [0])
    write_input(tmp_path, "a.jsonl")
    with open_corpus([texts, tmp_path / "a.jsonl"]) as corpus:
        list(corpus.scan())
        with pytest.raises(OutputError, match="folder is written only from text files"):
            corpus.copy(full_mask(corpus), str(tmp_path / "mixed"))


def test_not_a_number_is_null_in_json(tmp_path: Path) -> None:
    write_table(pa.table({"x": [float("nan"), 1.0], "y": [[float("inf")], None]}), str(tmp_path / "o.jsonl"))
    lines = (tmp_path / "o.jsonl").read_text().splitlines()
    assert lines == ['{"x": null, "y": [null]}', '{"x": 1.0, "y": null}']


def test_times_that_python_cannot_hold_are_written_as_text(tmp_path: Path) -> None:
    year_10000, second = 253402300800, pa.timestamp("s")
    columns = {
        "exact": pa.array([1_000, None], pa.timestamp("ns", "UTC")),
        "fine": pa.array([1_001, 2_000], pa.timestamp("ns", "Europe/Berlin")),
        "far": pa.array([year_10000, 0], second),
        "coded": pa.array([year_10000, 0], second).dictionary_encode(),
        "unknown_zone": pa.array([1, None], pa.timestamp("us", "No/Where")),
        "day": pa.array([10_000_000, 0], pa.date32()),
        "time": pa.array([1_001, 1_000], pa.time64("ns")),
        "long": pa.array([10**15, 1], pa.duration("s")),
        "list": pa.array([[year_10000], [0]], pa.list_(second)),
        "struct": pa.array([{"a": year_10000}, None], pa.struct([("a", second)])),
        "map": pa.array([[("k", year_10000)], []], pa.map_(pa.string(), second)),
    }
    write_table(pa.table(columns), str(tmp_path / "o.jsonl"))
    assert [json.loads(line) for line in (tmp_path / "o.jsonl").read_text().splitlines()] == [
        {
            "exact": "1970-01-01T00:00:00.000001+00:00",
            "fine": "1970-01-01 00:00:00.000001001Z",
            "far": "10000-01-01 00:00:00",
            "coded": "10000-01-01 00:00:00",
            "unknown_zone": "1970-01-01 00:00:00.000001Z",
            "day": "29349-01-26",
            "time": "00:00:00.000001001",
            "long": "1000000000000000",
            "list": ["10000-01-01 00:00:00"],
            "struct": {"a": "10000-01-01 00:00:00"},
            "map": [["k", "10000-01-01 00:00:00"]],
        },
        {
            "exact": None,
            "fine": "1970-01-01T01:00:00.000002+01:00",
            "far": "1970-01-01T00:00:00",
            "coded": "1970-01-01T00:00:00",
            "unknown_zone": None,
            "day": "1970-01-01",
            "time": "00:00:00.000001",
            "long": "0:00:01",
            "list": ["1970-01-01T00:00:00"],
            "struct": None,
            "map": [],
        },
    ]
    write_table(pa.table({name: columns[name] for name in ("list", "struct")}), str(tmp_path / "o.csv"))
    lists = '"[""10000-01-01 00:00:00""]"', '"{""a"": ""10000-01-01 00:00:00""}"'
    assert (tmp_path / "o.csv").read_text().splitlines()[1] == ",".join(lists)


def test_fields_are_added_to_lines_with_carriage_returns_inside(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"text":\r"a"}\r\n{"text": "b"}')
    with open_corpus([tmp_path / "a.jsonl"]) as corpus:
        list(corpus.scan())
        corpus.copy(full_mask(corpus), str(tmp_path / "o.jsonl"), added=pa.table({"n": [1, 2]}))
    assert (tmp_path / "o.jsonl").read_bytes() == b'{"text":\r"a", "n": 1}\n{"text": "b", "n": 2}\n'


def test_standard_output_gets_json_lines(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    write_table(pa.table({"a": [1]}), "-")
    assert capfdbinary.readouterr().out == b'{"a": 1}\n'


def test_a_discarded_writer_leaves_nothing(tmp_path: Path) -> None:
    with suppress(KeyboardInterrupt), open_writer(str(tmp_path / "o.parquet"), TABLE.schema) as writer:
        writer.write(TABLE)
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("link.jsonl", "link.jsonl is an input"),
        ("o.docx", "o.docx has no suffix that names a format"),
        ("o", "o has no suffix"),
        ("folder.jsonl", "folder.jsonl is a folder that exists"),
        ("sealed/new.jsonl", "may not be written by this user"),
    ],
)
def test_outputs_that_cannot_be_written_are_refused(
    tmp_path: Path, output: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("folder.jsonl", "sealed"):
        (tmp_path / folder).mkdir()
    (tmp_path / "link.jsonl").symlink_to(write_input(tmp_path, "a.jsonl"))
    monkeypatch.setattr(os, "access", lambda path, _: not str(path).endswith("sealed"))
    check_output("a.jsonl.gz", ["a.jsonl"])
    with pytest.raises(OutputError, match=message):
        check_output(output, ["a.jsonl"])


@pytest.mark.parametrize(("suffix", "threads"), [(".parquet", 1), (".parquet", 3), (".jsonl.zst", 1)])
def test_a_full_disk_is_one_sentence(
    tmp_path: Path, suffix: str, threads: int, full_disk: Callable[[int], None]
) -> None:
    noise = np.random.default_rng(0).bytes(400_000).hex()
    rows = [{"id": n, "text": noise[n * 400 : n * 400 + 400]} for n in range(2000)]
    path = write_input(tmp_path, "a.jsonl", rows)
    with open_corpus([path]) as corpus:
        list(corpus.scan())
        full_disk(200_000)
        with pytest.raises(OutputError, match="the disk is full or a limit is reached; free some space"):
            corpus.copy(full_mask(corpus), str(tmp_path / f"o{suffix}"), threads=threads)
    assert [file.name for file in tmp_path.iterdir()] == ["a.jsonl"]


def test_outputs_are_placed_together_or_not_at_all(tmp_path: Path) -> None:
    table, names = pa.table({"id": [1, 2], "text": ["a", "b"]}), list[str]()
    first, second = tmp_path / "first.jsonl", tmp_path / "second.parquet"
    first.write_text("old")

    def write(*paths: Path) -> None:
        with placed_together(names):
            for path in paths:
                write_table(table, str(path), force=True)

    with pytest.raises(OutputError, match="missing"):
        write(first, second, tmp_path / "missing" / "third.csv")
    assert [entry.name for entry in tmp_path.iterdir()] == ["first.jsonl"]
    assert first.read_text() == "old"
    assert names == []
    with placed_together(names):
        write_table(table, str(first), force=True)
        write_table(table, str(second))
        assert first.read_text() == "old"
    assert names == [str(first), str(second)]
    assert pq.read_table(second).equals(table)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["first.jsonl", "second.parquet"]


def test_every_file_of_a_folder_is_flushed_before_the_folder_gets_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts, done, events = tmp_path / "texts", tmp_path / "out", list[str]()
    (texts / "deep").mkdir(parents=True)
    for name in ("a.txt", "b.txt", "deep/c.txt"):
        (texts / name).write_text(f"the text of {name}")
    fsync, replace = os.fsync, os.replace

    def recorded_fsync(handle: int) -> None:
        fsync(handle)
        events.append(os.path.basename(os.readlink(f"/proc/self/fd/{handle}")).partition("-")[0])

    def recorded_replace(source: str, target: str) -> None:
        events.append("rename")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", recorded_fsync)
    monkeypatch.setattr(os, "replace", recorded_replace)
    with nd.dedup_files(str(texts)) as result:
        result.write(f"{done}/")
    before = events[: events.index("rename")]
    assert {"a.txt", "b.txt", "c.txt", "deep", ".out.partial"} <= set(before)
    assert before.index("c.txt") < before.index("deep") < before.index(".out.partial")
    assert sorted(path.name for path in done.rglob("*.txt")) == ["a.txt", "b.txt", "c.txt"]


def test_many_texts_are_flushed_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts, flushed = tmp_path / "texts", list[str]()
    texts.mkdir()
    for number in range(300):
        (texts / f"{number}.txt").write_text(f"a text of its own, number {number}")
    fsync = os.fsync

    def recorded_fsync(handle: int) -> None:
        fsync(handle)
        flushed.append(os.readlink(f"/proc/self/fd/{handle}"))

    monkeypatch.setattr(os, "fsync", recorded_fsync)
    with nd.dedup_files(str(texts), features="words:2") as result:
        result.write(f"{tmp_path / 'done'}/")
        kept = len(result.kept)
    assert len(list((tmp_path / "done").iterdir())) == kept > 200
    assert not [name for name in flushed if name.endswith(".txt")]
