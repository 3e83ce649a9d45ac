"""Numbers survive: none is rounded, in any input and any output."""

from __future__ import annotations

import csv
import datetime
import importlib
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup as nd
from neardup.documents import corpus_of, join_order, open_corpus
from neardup.documents.json_numbers import is_exact
from neardup.errors import InputError, OutputError

BIG = 2**53 + 1
#: Values of a JSON column as they are written, and the type of the column with its values in tables.
COLUMNS: dict[str, tuple[list[str], str, list[Any]]] = {
    "unsigned": ([str(2**63), str(2**63 + 1), "1"], "uint64", [2**63, 2**63 + 1, 1]),
    "beyond": ([str(2**64), "1", "null"], "large_string", [str(2**64), "1", None]),
    "unsigned beside negative": ([str(2**63), "-1"], "large_string", [str(2**63), "-1"]),
    "fraction beside large": (["1.5", str(BIG)], "large_string", ["1.5", str(BIG)]),
    "decimals": (["12345678901234567890.25", "2.50"], "large_string", ["12345678901234567890.25", "2.50"]),
    "out of range": (["1e400", "1"], "large_string", ["1e400", "1"]),
    "too small": (["1e-400", "1"], "large_string", ["1e-400", "1"]),
    "doubles": (["0.10000000000000001", "0.9442829489707947", "1e23"], "double", [0.1, 0.9442829489707947, 1e23]),
    "integers": ([str(BIG), "-1"], "int64", [BIG, -1]),
    "in objects": (
        [f'{{"a": [{2**63}]}}', '{"a": [1]}'],
        "struct<a: list<element: uint64>>",
        [{"a": [2**63]}, {"a": [1]}],
    ),
    "in lists": ([f"[{BIG}, 0.5]", "[1]"], "list<element: large_string>", [[str(BIG), "0.5"], ["1"]]),
}


def write_lines(path: Path, values: list[str], first: int = 0) -> Path:
    path.write_text("".join(f'{{"text": "text {first + n}", "n": {value}}}\n' for n, value in enumerate(values)))
    return path


@pytest.mark.parametrize("case", COLUMNS)
def test_numbers_of_json_are_kept_in_every_output(case: str, tmp_path: Path) -> None:
    written, kind, values = COLUMNS[case]
    path = write_lines(tmp_path / "a.jsonl", written)
    result = nd.dedup_files(path)
    result.write(tmp_path / "k.jsonl")
    assert (tmp_path / "k.jsonl").read_bytes() == path.read_bytes()
    result.write(tmp_path / "k.parquet")
    column = pq.read_table(tmp_path / "k.parquet")["n"]
    assert (str(column.type), column.to_pylist()) == (kind, values)
    result.write(tmp_path / "k.csv")
    cells = [row["n"] for row in csv.DictReader((tmp_path / "k.csv").read_text().splitlines())]
    for cell, value in zip(cells, values, strict=True):
        nested = isinstance(value, list | dict)
        assert (json.loads(cell) if nested else type(value)(cell) if cell else None) == value


def test_numbers_that_two_inputs_would_round_are_refused(tmp_path: Path) -> None:
    paths = [write_lines(tmp_path / "a.jsonl", [str(BIG)]), write_lines(tmp_path / "b.jsonl", ["1.5"], 1)]
    result = nd.dedup_files(paths)
    with pytest.raises(InputError, match=rf"holds {BIG}, which would be rounded .*; write JSON lines instead"):
        result.write(tmp_path / "k.parquet")
    assert not (tmp_path / "k.parquet").exists()
    result.write(tmp_path / "k.jsonl")


def test_a_column_that_changes_after_a_block_is_not_rounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neardup.documents.streams.BLOCK", 100)
    path = write_lines(tmp_path / "a.jsonl", [str(BIG)] * 9 + ["0.5"] * 9)
    nd.dedup_files(path).write(tmp_path / "k.parquet")
    assert pq.read_table(tmp_path / "k.parquet")["n"].to_pylist() == [str(BIG)] * 9 + ["0.5"] * 9


@given(
    st.decimals(allow_nan=False, allow_infinity=False)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.integers()
)
def test_exact_numbers_are_those_that_a_double_writes_again(value: Any) -> None:
    written = str(value) if not isinstance(value, float) else repr(value)
    if is_exact(written):
        digits = len(Decimal(written).as_tuple().digits)
        assert Decimal(f"{float(written):.{digits - 1}e}") == Decimal(written)
    else:
        digits = len(Decimal(written).as_tuple().digits)
        assert digits > 15 or float(written) in (0, float("inf"), -float("inf")) or abs(float(written)) < 1e-290
    if isinstance(value, float):
        assert is_exact(written)
        assert is_exact(f"{value:.16e}")


MEMORY: dict[str, tuple[list[Any], pa.DataType, list[Any]]] = {
    "unsigned": ([2**63, 1], pa.uint64(), [2**63, 1]),
    "beyond": ([2**64, None], pa.large_string(), [str(2**64), None]),
    "negative": ([2**63, -1], pa.large_string(), [str(2**63), "-1"]),
    "fractions": ([1.5, BIG], pa.large_string(), ["1.5", str(BIG)]),
    "decimals beside doubles": ([Decimal("1.50"), 2.5], pa.large_string(), ["1.50", "2.5"]),
    "decimals": ([Decimal("1.50"), 2], pa.decimal128(3, 2), [Decimal("1.50"), Decimal("2.00")]),
}


@pytest.mark.parametrize("case", MEMORY)
@pytest.mark.parametrize("form", ["dicts", "columns", "pandas"])
def test_python_numbers_are_kept(case: str, form: str) -> None:
    given_values, kind, values = MEMORY[case]
    columns = {"text": ["a", "b"], "n": given_values}
    data: Any = columns
    if form == "dicts":
        data = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if form == "pandas":
        pandas = importlib.import_module("pandas")
        data = pandas.DataFrame({"text": columns["text"], "n": pandas.Series(given_values, dtype=object)})
    with corpus_of(data) as corpus:
        list(corpus.scan())
        column = corpus.take([0, 1])["n"]
        assert (column.type, column.to_pylist()) == (kind, values)


@pytest.mark.parametrize("values", [[True, 1.5], [True, 2], [1, "a"], [{"a": 1.5}, {"a": BIG}]])
def test_values_without_a_common_type_are_refused_in_one_sentence(values: list[Any]) -> None:
    with pytest.raises(InputError, match=r"^column 'n' holds values of .* that have no common type: make them all str"):
        corpus_of({"text": ["a", "b"], "n": values})


RARE = {
    "uint64": pa.array([2**64 - 1, None], pa.uint64()),
    "decimal": pa.array([Decimal("1.50"), None]),
    "large decimal": pa.array([Decimal("1e50"), None]),
    "half": pa.array(np.array([1.5, 2.5], np.float16)),
    "nanoseconds": pa.array([1, None], pa.timestamp("ns", "America/New_York")),
    "durations": pa.array([1001, None], pa.duration("ns")),
    "time of day": pa.array([1, None], pa.time64("ns")),
    "UUID": pa.array([b"\0" * 15 + b"\1", None], pa.uuid()),
    "nested": pa.array(
        [{"u": 2**64 - 1, "l": [BIG]}, None], pa.struct([("u", pa.uint64()), ("l", pa.list_(pa.int64()))])
    ),
    "map": pa.array([[("a", BIG)], None], pa.map_(pa.string(), pa.int64())),
}


@pytest.mark.parametrize("kind", RARE)
def test_every_type_goes_through_every_format(kind: str, tmp_path: Path) -> None:
    table = pa.table({"text": ["a", "b"], "n": RARE[kind]})
    result = nd.dedup(table)
    for name in ("k.parquet", "k.arrow", "k.csv", "k.jsonl"):
        result.write(tmp_path / name)
    assert pq.read_table(tmp_path / "k.parquet")["n"].to_pylist() == table["n"].to_pylist()
    digits = {"decimal": "1.5", "large decimal": "1" + "0" * 50, "half": "1.5", "nested": str(BIG), "map": str(BIG)}
    wanted = {"uint64": str(2**64 - 1), "nanoseconds": "000000001", "durations": "1001", "time of day": "000000001"}
    for name in ("k.csv", "k.jsonl"):
        assert (digits | wanted | {"UUID": "-000000000001"})[kind] in (tmp_path / name).read_text().splitlines()[
            name == "k.csv"
        ]


ORDERS = {
    "integers beside fractions": ["1.5", str(BIG - 1), str(BIG)],
    "fractions first": [f"{BIG - 1}.0", "1.5", str(BIG)],
    "unsigned": ["1.5", str(2**64 - 2), str(2**64 - 1)],
    "texts": ['"1.5"', f'"{2**64 - 2}"', f'"{2**64 - 1}"'],
}


@pytest.mark.parametrize("case", ORDERS)
def test_the_keep_order_does_not_round(case: str, tmp_path: Path) -> None:
    values = ORDERS[case]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f'{{"text": "a b c d e f", "v": {value}}}\n' for value in values))
    assert nd.dedup_files(path, keep="v").kept == [2]


def test_order_values_of_several_inputs_keep_their_digits() -> None:
    assert join_order([pa.array([2**64 - 1], pa.uint64()), pa.array([-1])]).to_pylist() == [2**64 - 1, -1]
    assert join_order([pa.array([BIG]), pa.array([0.5])]).to_pylist() == [str(BIG), "0.5"]
    assert join_order([pa.array([1]), pa.array([0.5])]).to_pylist() == [1.0, 0.5]


def test_annotations_refuse_a_name_that_a_later_line_has(tmp_path: Path) -> None:
    lines = [{"text": f"text {n}"} for n in range(300)]
    for name in ("neardup_kept", "neardup_\\u006bept"):
        text = "".join(json.dumps(line) + "\n" for line in lines) + f'{{"text": "last", "{name}": 1}}\n'
        (tmp_path / "a.jsonl").write_text(text)
        result = nd.dedup_files(tmp_path / "a.jsonl")
        for output in ("o.jsonl", "o.parquet", "o.csv"):
            with pytest.raises(OutputError, match="already has a column 'neardup_kept'"):
                result.write_annotated(tmp_path / output)
        result.write_annotated(tmp_path / "o.jsonl", prefix="x_", force=True)
        (tmp_path / "o.jsonl").unlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl"]


def test_polars_types_are_read_or_refused_in_one_sentence(tmp_path: Path) -> None:
    pl: Any = importlib.import_module("polars")
    texts = ["a b", "c d"]
    columns = {
        "text": texts,
        "category": pl.Series(["x", None], dtype=pl.Categorical),
        "enum": pl.Series(["x", None], dtype=pl.Enum(["x"])),
        "large": pl.Series([2**100, None], dtype=pl.Int128),
        "larger": pl.Series([2**127, None], dtype=pl.UInt128),
        "lists": pl.Series([["x"], None], dtype=pl.List(pl.Categorical)),
        "day": [datetime.date(2024, 1, 1), None],
    }
    result = nd.dedup(pl.DataFrame(columns))
    for name in ("k.parquet", "k.arrow", "k.csv", "k.jsonl"):
        result.write(tmp_path / name)
    row = pq.read_table(tmp_path / "k.parquet").to_pylist()[0]
    assert (row["category"], row["large"], row["larger"], row["lists"]) == ("x", Decimal(2**100), str(2**127), ["x"])
    ids = pl.DataFrame({"text": texts, "id": pl.Series([2**100, 2**100 + 1], dtype=pl.Int128)})
    assert nd.dedup(ids).kept == [str(2**100), str(2**100 + 1)]
    assert nd.dedup(pl.DataFrame({"text": pl.Series(texts, dtype=pl.Categorical)})).kept == [0, 1]
    with pytest.raises(InputError, match="column 'o' holds Python objects"):
        nd.dedup(pl.DataFrame({"text": texts, "o": pl.Series([object(), object()], dtype=pl.Object)}))


def test_pandas_names_that_are_repeated_or_of_several_levels() -> None:
    pd: Any = importlib.import_module("pandas")
    with pytest.raises(InputError, match="the data frame has several columns named 'text': give each its own name"):
        nd.dedup(pd.DataFrame([["a", "b"]], columns=["text", "text"]))
    levels = pd.MultiIndex.from_tuples([("doc", "text"), ("doc", "id"), ("n", "")])
    frame = pd.DataFrame([["a", "x", 1], ["b", "y", 2]], columns=levels)
    result = nd.dedup(frame, text_column="doc.text", id_column="doc.id")
    assert result.kept == ["x", "y"]
    assert result.table().column_names == ["doc.text", "doc.id", "n"]


def test_ids_of_numbers_stay_what_they_are_in_all_tables(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f'{{"id": {2**63 + n}, "text": "one two three four five six"}}\n' for n in range(3)))
    result = nd.dedup_files(path)
    assert result.duplicates()["keeper"].to_pylist() == [str(2**63)] * 2
    result.report(tmp_path / "r.html")
    assert f"{2**63 + 1}" in (tmp_path / "r.html").read_text()
    with open_corpus([path], ids="rows") as corpus:
        assert next(corpus.scan()).ids is None
