"""``neardup dedup`` and ``neardup pairs``: what they write, print and refuse."""

from __future__ import annotations

import csv
import gzip
import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from classifiers import DATED, make_classifier
from commands import DOCUMENTS, FOX, ROSE, RULES, in_terminal, names_in, neardup, read_lines, refused, write_lines
from paths import ROOT
from sentences import says

import neardup as nd
from neardup.cli.screen import EXIT_CODES, format_amount, printable, printable_line
from neardup.documents import write_table
from neardup.errors import OutputError, RecipeError, TornInput
from neardup.files import parse_size
from neardup.pages.numbers import format_size


def test_the_documented_exit_codes_are_those_of_the_help() -> None:
    page = (ROOT / "docs" / "input.md").read_text("utf-8").replace("`", "")
    assert f"| 130 | {EXIT_CODES[130]} |" in page


@pytest.mark.parametrize("command", [["dedup", "--dry-run"], ["pairs", "--print"], ["similar", "--print", "--k", "1"]])
def test_a_torn_file_is_read_as_far_as_it_goes_and_the_exit_code_says_so(tmp_path: Path, command: list[str]) -> None:
    lines = "".join(json.dumps({"id": n, "text": f"{ROSE} {n}"}) + "\n" for n in range(40))
    cut = tmp_path / "cut.jsonl"
    cut.write_text(lines[:-30])
    stderr = neardup(*command, cut, *RULES, code=3).stderr
    assert "cut.jsonl is torn (last line is cut short): 39 rows were read of it; get the whole file" in stderr
    stderr = neardup(*command, cut, "--allow-torn", *RULES).stderr
    assert "39 rows were read" in stderr
    assert "--allow-torn" not in stderr
    assert "line 40" in refused(*command, cut, "--strict", *RULES)


def test_python_warns_of_a_torn_file_and_the_summary_names_it(tmp_path: Path) -> None:
    cut = tmp_path / "cut.jsonl"
    cut.write_text(json.dumps({"text": FOX}) + '\n{"text": "A ros')
    with pytest.warns(TornInput, match=r"cut\.jsonl is torn .*: 1 row was read of it; .*allow_torn=True"):
        found = nd.dedup_files(cut)
    assert found.summary["torn"] == [{"file": str(cut), "rows_read": 1, "reason": "last line is cut short"}]
    assert nd.dedup_files(cut, allow_torn=True).summary["torn"] == found.summary["torn"]
    with pytest.raises(nd.BrokenRecord):
        nd.dedup_files(cut, strict=True)


def test_ids_with_tabs_stay_one_field(tmp_path: Path) -> None:
    rows = [{"id": "a\tb", "text": FOX}, {"id": "c\nd", "text": FOX}]
    result = neardup("pairs", write_lines(tmp_path / "c.jsonl", rows), "--print")
    assert result.stdout.splitlines()[1] == "a\\tb\tc\\nd\t1.0"


def test_a_run_that_compiles_nothing_does_not_say_that_it_does(
    corpus: Path, warm: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As on a machine on which the kernels that a tiny input does not need were never compiled.
    monkeypatch.setattr("neardup.kernels.compilation.kernels_are_compiled", lambda *modules: False)
    assert "compiling" not in neardup("dedup", corpus, "--dry-run").stderr


def test_exceeding_the_memory_limit_is_reported(corpus: Path, warm: None) -> None:
    stderr = neardup("dedup", corpus, "--dry-run", "--memory", "10MB").stderr
    assert re.search(r"peak memory [\d.]+ [MG]B, more than --memory 10\.0 MB; the program alone takes", stderr)
    assert "more than --memory" not in neardup("dedup", corpus, "--dry-run", "--memory", "64GB").stderr


def test_progress_is_shown_in_a_terminal_only(corpus: Path, warm: None) -> None:
    output = in_terminal("dedup", corpus, "--dry-run", stream="stderr")
    assert "1/2 read" in output
    assert "2/2 join" in output
    size = format_size(corpus.stat().st_size)
    assert f"{size} of {size}" in output
    assert "\x1b[?25h" in output
    assert "\x1b" not in neardup("dedup", corpus, "--dry-run").stderr


def test_the_progress_of_a_stage_is_formatted() -> None:
    assert format_amount(1_200_000_000, 3_500_000_000, 44e6, in_bytes=True) == "1.2 GB of 3.5 GB, 44.0 MB/s"
    assert format_amount(0, None, None, in_bytes=True) == "0 bytes"
    assert format_amount(1500, 20_000, 999.6, in_bytes=False) == "1,500 of 20,000, 1,000/s"


@pytest.mark.parametrize(
    ("text", "size"),
    [
        *(("2GB", 2_000_000_000), ("512MB", 512_000_000), ("1.5GiB", 1_610_612_736), ("10k", 10_000), ("3 B", 3)),
        *((text, None) for text in ("", "GB", "-1GB", "2 apples", "0", "1iB", "0.1", "nan", "1e9")),
    ],
)
def test_sizes_are_parsed(text: str, size: int | None) -> None:
    if size is not None:
        assert parse_size(text) == size
        return
    with pytest.raises(RecipeError, match=f"^{re.escape(repr(text))} is not a size; write it like 512MB"):
        parse_size(text)


def test_control_characters_are_made_visible() -> None:
    assert printable("a\x1b[31mb\x07\r\nc\td\x7f\x9b\u202e") == "a␛[31mb␇\nc\td␡<U+009B><U+202E>"
    assert printable_line("a\nb\tc") == "a\\nb\\tc"


NEW: list[dict[str, Any]] = [
    {"id": 1, "text": FOX + " today"},
    {"id": 2, "text": ROSE},
    {"id": 3, "text": ROSE.upper()},
]


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Path, Path]:
    new, old = tmp_path / "new.jsonl", tmp_path / "old.jsonl"
    write_lines(new, NEW)
    write_lines(old, [{"id": 1, "text": FOX}, {"id": 9, "text": "something else"}])
    return new, old


def test_only_new_documents_are_written(sides: tuple[Path, Path], tmp_path: Path) -> None:
    new, old = sides
    kept, dropped, summary, page = [tmp_path / name for name in ("kept.jsonl", "d.csv", "s.json", "r.html")]
    outputs = "-o", kept, "--duplicates", dropped, "--summary", summary, "--report", page
    result = neardup("dedup", new, "--against", old, *outputs, *RULES)
    assert read_lines(kept) == [NEW[1]]
    rows = list(csv.DictReader(dropped.read_text().splitlines()))
    assert [(row["dropped"], row["keeper"], row["keeper_from"]) for row in rows] == [
        ("1", "1", "reference"),
        ("3", "2", "input"),
    ]
    found = json.loads(summary.read_text())
    assert (found["documents"], found["kept"], found["reference"]["documents"]) == (3, 1, 2)
    assert found["reference"] == {"documents": 2, "keepers": 1, "dropped": 1, "rejected": {}}
    assert "3 documents: 1 kept, 2 dropped" in result.stderr
    assert "1 (reference)" in page.read_text()


def test_pairs_name_the_side_of_the_right_document(sides: tuple[Path, Path]) -> None:
    new, old = sides
    lines = neardup("pairs", new, "--against", old, "--print", *RULES).stdout.splitlines()
    assert lines[0].split("\t") == ["left", "right", "similarity", "right_from"]
    assert [[line.split("\t")[i] for i in (0, 1, 3)] for line in lines[1:]] == [
        ["1", "1", "reference"],
        ["2", "3", "input"],
    ]


def test_within_limits_what_is_compared_and_prefer_what_is_kept(tmp_path: Path) -> None:
    rows = [("a", FOX, "en", "blog"), ("b", FOX, "de", "blog"), ("c", FOX, "en", "wire"), ("d", FOX, "en", "mail")]
    documents = [dict(zip(("id", "text", "language", "source"), row, strict=True)) for row in rows]
    path, out = write_lines(tmp_path / "a.jsonl", documents), tmp_path / "o.jsonl"
    result = neardup("dedup", path, "--within", "language", "--prefer", "source=wire,blog", "-o", out)
    assert [row["id"] for row in read_lines(out)] == ["b", "c"]
    assert "source=wire,blog" in result.stderr


#: The same text under other letters, and another one; a number is written as it was read.
FOXES: list[dict[str, Any]] = [
    {"id": "a", "text": FOX, "n": 1.50},
    {"id": "b", "text": "another text"},
    {"id": "c", "text": FOX + " today", "n": None},
    {"id": "d", "text": FOX.upper(), "n": "x"},
]
SIMILARITY = 1 - 1 / 18
VERDICTS: list[dict[str, Any]] = [
    {"kept": True, "keeper": None, "similarity": None, "family": 1, "family_size": 3},
    {"kept": True, "keeper": None, "similarity": None, "family": None, "family_size": 1},
    {"kept": False, "keeper": "a", "similarity": SIMILARITY, "family": 1, "family_size": 3},
    {"kept": False, "keeper": "a", "similarity": 1.0, "family": 1, "family_size": 3},
]
COLUMNS = [{f"neardup_{name}": value for name, value in row.items()} for row in VERDICTS]


def test_annotate_appends_fields_to_json_lines(tmp_path: Path) -> None:
    path, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    lines = [json.dumps(row).encode() for row in FOXES]
    path.write_bytes(lines[0] + b" \r\n" + lines[1] + b"\nbroken\n" + lines[2] + b"\n" + lines[3])
    neardup("dedup", path, "--annotate", "-o", out, *RULES)
    written = out.read_bytes().splitlines()
    assert [line.startswith(original[:-1]) for line, original in zip(written, lines, strict=True)] == [True] * 4
    assert read_lines(out) == [row | verdict for row, verdict in zip(FOXES, COLUMNS, strict=True)]
    neardup("dedup", path, "--annotate", "--annotate-prefix", "x.", "-o", out, "--force", *RULES)
    assert [row["x.kept"] for row in read_lines(out)] == [True, True, False, False]


@pytest.mark.parametrize("name", ["out.parquet", "out.csv"])
def test_annotate_adds_columns_to_tables(tmp_path: Path, name: str) -> None:
    table = pa.table({"id": [row["id"] for row in FOXES], "text": [row["text"] for row in FOXES]})
    result = nd.dedup(table, features="words:3", threshold=0.8)
    assert result.annotations("").to_pylist() == VERDICTS
    result.write_annotated(str(tmp_path / name))
    with nd.open_files(tmp_path / name) as corpus:
        assert sum(len(batch.texts) for batch in corpus.scan()) == 4
        taken = corpus.take([0, 1, 2, 3])
    assert taken["id"].to_pylist() == ["a", "b", "c", "d"]
    assert [str(value).lower() for value in taken["neardup_kept"].to_pylist()] == ["true", "true", "false", "false"]
    if not name.endswith(".csv"):
        assert [{key: row[key] for key in COLUMNS[0]} for row in taken.to_pylist()] == COLUMNS
    with pytest.raises(OutputError) as caught:
        nd.dedup(taken, features="words:3", threshold=0.8).write_annotated(str(tmp_path / "twice.jsonl"))
    assert says(caught.value, "neardup_kept", "prefix=")
    assert "twice.jsonl" not in names_in(tmp_path)


def test_annotations_name_the_side_of_the_keeper() -> None:
    columns = nd.dedup([FOX, ROSE, ROSE], against=[FOX]).annotations().to_pydict()
    assert columns["neardup_keeper_from"] == ["reference", None, "input"]
    assert columns["neardup_keeper"] == [0, None, 1]
    assert nd.dedup([]).annotations().num_rows == 0


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    (folder / "deep").mkdir(parents=True)
    write_lines(folder / "1.jsonl", FOXES[:2])
    (folder / "2.jsonl.gz").write_bytes(gzip.compress(json.dumps(FOXES[2]).encode() + b"\n"))
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
    assert (
        json.loads(gzip.decompress((tmp_path / "all" / "2.jsonl.gz").read_bytes()))["neardup_similarity"] == SIMILARITY
    )


def test_outputs_of_the_same_name_are_refused(shards: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    write_lines(tmp_path / "other" / "1.jsonl", FOXES[2:])
    before = names_in(tmp_path)
    out = f"{tmp_path / 'out'}/"
    message = refused("dedup", shards / "1.jsonl", tmp_path / "other" / "1.jsonl", "-o", out)
    assert says(message, "1.jsonl", "read the folders one by one")
    assert says(refused("dedup", shards, "-o", f"{shards}/"), "is an input", "another file")
    assert says(refused("dedup", "-", "-o", out), "standard input", "kept.jsonl")
    assert names_in(tmp_path) == before


NO_PAIRS: dict[str, list[dict[str, Any]]] = {
    "distinct": [{"id": str(i), "text": " ".join(f"w{i}x{j}" for j in range(20))} for i in range(5)],
    "blank": [{"id": str(i), "text": ""} for i in range(4)],
    "empty": [],
}


@pytest.mark.parametrize(("kind", "suffix"), [("distinct", ".parquet"), ("blank", ".csv"), ("empty", ".arrow")])
def test_a_second_step_without_pairs_keeps_every_document(suffix: str, kind: str, tmp_path: Path) -> None:
    source, output = tmp_path / f"in{suffix}", tmp_path / "out.jsonl"
    schema = pa.schema([("id", pa.string()), ("text", pa.string())])
    write_table(pa.Table.from_pylist(NO_PAIRS[kind], schema), str(source))
    neardup("dedup", source, "--second-step", "edit >= 0.9", "-o", output)
    assert [row["id"] for row in read_lines(output)] == [row["id"] for row in NO_PAIRS[kind]]


@pytest.mark.parametrize(
    ("name", "content", "number"),
    [("in.jsonl", "{broken\n[1]\n", "all 2 are"), ("in.csv", "id,text\n1\n", "its only one is")],
)
def test_an_input_whose_every_record_is_rejected_is_torn(name: str, content: str, number: str, tmp_path: Path) -> None:
    source, good = tmp_path / name, write_lines(tmp_path / "good.jsonl", DOCUMENTS)
    source.write_text(content)
    for command in (("dedup", source, "--dry-run"), ("dedup", good, "--against", source, "--dry-run")):
        stderr = neardup(*command, code=3).stderr
        assert f"{name} has no usable record ({number} rejected, the first in line " in stderr
        neardup(*command, "--allow-torn")


def test_a_classifier_without_candidates_keeps_every_document(tmp_path: Path) -> None:
    source, classifier = write_lines(tmp_path / "in.jsonl", NO_PAIRS["distinct"]), tmp_path / "any.neardup"
    make_classifier().save(classifier)
    output, sheet = tmp_path / "out.jsonl", tmp_path / "sheet.csv"
    neardup("dedup", source, "--classifier", classifier, "-o", output, "--report", tmp_path / "report.html")
    assert len(read_lines(output)) == 5
    assert "no pair" in neardup("audit", source, "--classifier", classifier, "--sample-to", sheet, code=2).stderr
    assert not sheet.exists()


def test_titles_may_be_missing_from_all_candidates(tmp_path: Path) -> None:
    text = "oslo port: 200 ships came in, up 30 from last week"
    rows = [
        {"id": 1, "text": "nothing of the kind was seen anywhere near here", "title": "Other", "time": "2024-03-01"},
        {"id": 2, "text": text},
        {"id": 3, "text": text.replace("200", "300")},
    ]
    source = write_lines(tmp_path / "in.jsonl", rows)
    with nd.dedup_files(source, classifier=make_classifier(DATED)) as result:
        assert result.summary["search"]["candidates"] == 1


def test_an_output_without_documents_has_the_columns_of_the_input(tmp_path: Path) -> None:
    source = write_lines(tmp_path / "in.jsonl", [{"id": 1, "text": FOX, "tags": ["a"], "more": {"a": 1}, "no": None}])
    reference = write_lines(tmp_path / "old.jsonl", [{"id": 1, "text": FOX}])
    output = tmp_path / "out.parquet"
    neardup("dedup", source, "--against", reference, "-o", output)
    assert pq.read_table(output).column_names == ["id", "text", "tags", "more", "no"]
    neardup("dedup", output, "--dry-run")


def test_an_empty_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").touch()
    (tmp_path / "b.csv").touch()
    sound = write_lines(tmp_path / "c.jsonl", DOCUMENTS)
    first, *_ = neardup("dedup", tmp_path / "a.jsonl", tmp_path / "b.csv", sound, "--dry-run").stderr.splitlines()
    assert says(first, "a.jsonl is empty", "1 more")
    assert "empty" not in neardup("dedup", sound, "--dry-run").stderr
