"""Runs on files that the workers read, against the engine in memory."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sentences import says

from neardup.documents import open_corpus, open_writer
from neardup.documents import tasks as tasks_module
from neardup.errors import BrokenRecord, InputError, OutputError
from neardup.index.index import DiskIndex, build
from neardup.pipeline.pipeline import run
from neardup.recipe import Recipe
from neardup.recipe.named import load_recipe
from neardup.spark.engine import corpus_identity, fingerprint_of, run_in_session
from neardup.spark.stages import Stages

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STORY = "the harbour of velmora was closed on monday night after a silver astrolabe was stolen from its museum"
EDITED = STORY + " police said"
OTHER = "قال وزير الطاقة يوم الاثنين إن أسعار النفط سترتفع في الربع الأخير من العام الجاري بسبب الطلب"
THIRD = "雪が降り続き 電車は 止まり 学校は 休みに なり 人々は 家で 過ごした と 伝えられた 月曜日"


def inputs(folder: Path) -> list[str]:
    """Lines with broken ones, a table with a null, and CSV; near-copies across all."""
    folder.mkdir()
    records = [
        {"id": "1", "text": STORY, "when": "2025-01-03"},
        {"id": "2", "text": OTHER, "when": "2025-01-02"},
        {"id": "3", "text": "", "when": None},
        {"id": "4", "text": THIRD, "when": "2025-01-01"},
        {"id": "four", "text": EDITED + " 🛰 \x00", "when": "2025-01-04"},
        {"id": "5", "text": STORY, "when": "2025-01-05"},
    ]
    lines = [json.dumps(record, ensure_ascii=False).encode() for record in records]
    lines[2:2] = [b"not json", b'{"id": 9}', b'{"id": 8, "text": "\xff"}']
    (folder / "a.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    table = {
        "id": ["x", "3x", "y", "z"],
        "text": [OTHER + " و", STORY, None, THIRD],
        "when": ["", "2024-01-01", "", "b"],
    }
    pq.write_table(pa.table(table), folder / "b.parquet", row_group_size=2)
    (folder / "c.csv").write_text(f"id,text,when\n7,{THIRD},1999-01-01\n8,{EDITED},2001-01-01\n")
    return [str(folder / name) for name in ("a.jsonl", "b.parquet", "c.csv")]


def outputs(input_paths: list[str], recipe: Recipe, folder: Path, find: Any, **reading: Any) -> dict[str, Any]:
    """Return all outputs of a run."""
    folder.mkdir()
    with open_corpus(input_paths, quarantine=str(folder / "aside.jsonl"), **reading) as corpus:
        result = find(corpus, recipe)
        result.write(str(folder / "kept.jsonl"))
        for name, table in (("duplicates", result.duplicates()), ("pairs", result.pairs.to_arrow())):
            with open_writer(str(folder / f"{name}.jsonl"), table.schema) as writer:
                writer.write(table)
        summary = result.summary
    shared = {"documents", "kept", "dropped", "exact_copies", "equal_content", "families", "largest_family", "pairs"}
    shared |= {"text_bytes", "bytes_saved", "rejected", "undecidable", "without_keep_value", "recipe", "fingerprint"}
    found: dict[str, Any] = {name: summary[name] for name in shared} | {"skipped": summary.get("skipped", {})}
    return found | {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def text_files(folder: Path) -> str:
    """A folder of texts, one of which is broken."""
    (folder / "deep").mkdir(parents=True)
    for number, text in enumerate([STORY, OTHER, EDITED, STORY]):
        (folder / "deep" / f"{number}.txt").write_text(text)
    (folder / "bad.txt").write_bytes(b"\xff\xfe\xfd")
    return str(folder)


def test_outputs_are_those_of_memory_also_after_a_kill(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines in several tasks, row groups, CSV and texts; then as a run that was killed while it listed candidates."""
    monkeypatch.setattr(tasks_module, "BLOCK", 600)
    input_paths = [*inputs(tmp_path / "in"), text_files(tmp_path / "texts")]
    recipe = load_recipe("default").changed(features="words:2", threshold=0.6)
    expected = outputs(input_paths, recipe, tmp_path / "memory", run)
    assert expected["dropped"] >= 8
    folder = tmp_path / "stages"
    reports: list[list[dict[str, Any]]] = []

    def find(corpus: Any, recipe: Recipe) -> Any:
        assert len(tasks_module.tasks_of(corpus.sources)) >= 5
        with Stages(spark, str(folder), fingerprint_of(recipe, corpus_identity(corpus)), resume=True) as stages:
            found = run_in_session(spark, corpus, recipe, stages, records=True)
        reports.append(found.summary["stages"])
        return found

    assert outputs(input_paths, recipe, tmp_path / "one", find) == expected
    # What the kill leaves: one stage that is not complete, and those after it not there.
    (folder / "candidates" / "_SUCCESS").unlink()
    shutil.rmtree(folder / "pairs")
    assert outputs(input_paths, recipe, tmp_path / "two", find) == expected
    first, second = ({stage["name"]: stage for stage in report} for report in reports)
    assert not any("resumed" in stage for stage in first.values())
    resumed = {name for name, stage in second.items() if stage.get("resumed")}
    assert resumed == {"features"}
    assert all(stage["skew"] >= 1 and stage["bytes"] > 0 for stage in first.values() if "skew" in stage)
    with pytest.raises(OutputError) as caught:
        Stages(spark, str(folder), "another", resume=True)
    assert says(caught.value, str(folder), "recipe, input or version", "another)")
    with pytest.raises(OutputError) as caught:
        Stages(spark, str(folder), json.loads((folder / "neardup-stages.json").read_text())["fingerprint"])
    assert says(caught.value, str(folder), "this very run", "give a key")
    (folder / ".neardup-stages.json.crc").unlink()
    for broken in ("", "[1]", "{}", '{"fingerprint": 1}', '{"fingerprint": "a", "workers": "x"}', '{"fingerprint": "a'):
        (folder / "neardup-stages.json").write_text(broken)
        with pytest.raises(OutputError) as caught:
            Stages(spark, str(folder), "a", resume=True)
        assert says(caught.value, "neardup-stages.json", str(folder), "damaged")
    (folder / "neardup-stages.json").unlink()
    with pytest.raises(OutputError) as caught:
        Stages(spark, str(folder), "a", resume=True)
    assert says(caught.value, str(folder), "other files than stages")


@pytest.mark.parametrize("reference", ["files", "index"])
def test_files_against_a_reference_are_as_in_memory(spark: SparkSession, tmp_path: Path, reference: str) -> None:
    new, broken = inputs(tmp_path / "in"), tmp_path / "old.jsonl"
    old = [{"id": "a", "text": STORY}, {"id": "b", "text": STORY}, {"id": "c", "text": EDITED + " so"}]
    old += [{"id": "d", "text": "nothing like it"}]
    broken.write_text("nothing\n" + "\n".join(map(json.dumps, old)))
    recipe = load_recipe("default").changed(features="words:2", threshold=0.6, keep="newest")
    index: DiskIndex | None = None
    if reference == "index":
        with open_corpus([str(broken)]) as corpus:
            index = build(corpus, tmp_path / "index", recipe).remove(["a"])

    def opened() -> Any:
        # The input's ids are row numbers, the reference's are texts.
        corpus = open_corpus(new, id_column="", max_document=150, order_column="when")
        if index is None:
            corpus.set_reference(open_corpus([str(broken)]))
        return corpus

    with opened() as corpus:
        if index is not None:
            index.set_as_reference(corpus)
        local = run(corpus, recipe)
        expected = local.duplicates(), local.pairs.to_arrow(), local.annotations(), local.summary["reference"]
    with opened() as corpus, Stages(spark) as stages:
        found = run_in_session(spark, corpus, recipe, stages, index=index)
        assert (found.duplicates(), found.pairs.to_arrow(), found.annotations(), found.summary["reference"]) == expected
    assert set(expected[0]["keeper_from"].to_pylist()) == {"input", "reference"}
    assert (expected[3]["documents"], sum(expected[3]["rejected"].values())) == ((3, 0) if index else (4, 1))


def mail(key: str, text: str) -> str:
    return f"From a@b Mon Jan  1 00:00:00 2024\nMessage-ID: <{key}>\nSubject: s\n\n{text}\n\n"


def response(address: str, text: str) -> bytes:
    body = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>{text}</p>".encode()
    head = ["WARC/1.0", "WARC-Type: response", f"WARC-Target-URI: {address}", "WARC-Date: 2024-01-01T00:00:00Z"]
    head += ["Content-Type: application/http; msgtype=response", f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(head).encode() + body + b"\r\n\r\n"


def test_folders_mails_and_crawls_are_as_in_memory(spark: SparkSession, tmp_path: Path) -> None:
    """Columns that folders name, and ids that repeat: each later one gets a number, over all files."""
    for language, text in (("en", STORY), ("fr", EDITED)):
        (tmp_path / "hive" / f"lang={language}").mkdir(parents=True)
        (tmp_path / "hive" / f"lang={language}" / "a.jsonl").write_text(json.dumps({"id": language, "text": text}))
    (tmp_path / "a.mbox").write_text(mail("1@x", STORY) + mail("2@x", OTHER) + mail("1@x", STORY))
    (tmp_path / "b.mbox").write_text(mail("1@x", EDITED) + mail("2@x", THIRD))
    pages = [("http://a/1", STORY), ("http://b/1", OTHER), ("http://a/1", EDITED)]
    (tmp_path / "c.warc.gz").write_bytes(gzip.compress(b"".join(response(*page) for page in pages)))
    recipe = load_recipe("default").changed(features="words:2", threshold=0.6)

    def find(corpus: Any, recipe: Recipe) -> Any:
        with Stages(spark) as stages:
            return run_in_session(spark, corpus, recipe, stages)

    numbered = []
    for number, names in enumerate([["hive"], ["a.mbox", "b.mbox"], ["c.warc.gz"]]):
        input_paths = [str(tmp_path / name) for name in names]
        expected = outputs(input_paths, recipe, tmp_path / f"memory{number}", run)
        assert outputs(input_paths, recipe, tmp_path / f"spark{number}", find) == expected
        numbered.append(sum(expected["skipped"].values()))
    assert numbered == [0, 3, 1]


@pytest.mark.parametrize("keep", ["newest", "oldest"] if os.environ.get("NEARDUP_LONG") else ["newest"])
def test_times_of_several_types_order_documents_as_in_memory(spark: SparkSession, tmp_path: Path, keep: str) -> None:
    days = pa.array([date(2020, 1, 1), None, date(1960, 1, 1)])
    whens = {
        "moments": days.cast(pa.timestamp("ns")).cast(pa.timestamp("ns", "America/New_York")),
        "days": days,
        "numbers": pa.array([2020, 20200102, 1577930000000]),
        "broken": pa.array([b"2021", b"2022\xff", b"1999"]).view(pa.string()),
    }
    input_paths = [str(tmp_path / f"{name}.parquet") for name in whens]
    for path, (name, when) in zip(input_paths, whens.items(), strict=True):
        ids = [f"{name} {number}" for number in range(3)]
        pq.write_table(pa.table({"id": ids, "text": [STORY, OTHER, THIRD], "when": when}), path)
    lines = [{"id": str(at), "text": STORY, "when": when} for at, when in enumerate([2019, "2020-06", "soon", True])]
    input_paths.append(str(tmp_path / "lines.jsonl"))
    Path(input_paths[-1]).write_text("\n".join(map(json.dumps, lines)))
    recipe = load_recipe("default").changed(features="words:2", threshold=0.6, keep=keep)
    with open_corpus(input_paths, order_column="when") as corpus:
        local = run(corpus, recipe)
        expected = sorted(local.duplicates().to_pylist(), key=str), local.summary["without_keep_value"]
    assert expected[1] == 5
    with open_corpus(input_paths, order_column="when") as corpus, Stages(spark) as stages:
        found = run_in_session(spark, corpus, recipe, stages)
        assert (sorted(found.duplicates().to_pylist(), key=str), found.summary["without_keep_value"]) == expected


def test_strict_runs_and_changed_files_end_in_one_sentence(spark: SparkSession, tmp_path: Path) -> None:
    input_paths, recipe = inputs(tmp_path / "in"), load_recipe("default")
    with (
        open_corpus(input_paths, strict=True) as corpus,
        Stages(spark) as stages,
        pytest.raises(BrokenRecord) as broken,
    ):
        run_in_session(spark, corpus, recipe, stages)
    assert says(broken.value, "a.jsonl", "line 3", "JSON")
    with open_corpus(input_paths) as corpus, Stages(spark) as stages:
        Path(input_paths[0]).write_bytes(b'{"id": 1, "text": "x"}\n')
        with pytest.raises(InputError) as caught:
            run_in_session(spark, corpus, recipe, stages)
    assert says(caught.value, "a.jsonl", "changed")


def test_numbers_and_words_have_no_common_order(spark: SparkSession, tmp_path: Path) -> None:
    input_paths = [str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl")]
    columns: list[list[Any]] = [[1.5, None], ["2025-01-01"]]
    recipe = load_recipe("default").changed(keep="when")
    for name, values in zip(input_paths, columns, strict=True):
        lines = (json.dumps({"id": number, "text": STORY, "when": value}) for number, value in enumerate(values))
        Path(name).write_text("\n".join(lines))
    refused = pytest.raises(InputError)
    with open_corpus(input_paths, order_column="when") as corpus, Stages(spark) as stages, refused as caught:
        run_in_session(spark, corpus, recipe, stages)
    assert says(caught.value, "'when'", "number and text")
