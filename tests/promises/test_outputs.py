"""Every output of every command is what it was: digests of all of them, recorded on the sample and on real corpora."""

from __future__ import annotations

import importlib.util
import json
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from promised_calls import call
from promised_cases import CASES, RECIPES, Case, command_line
from promised_corpora import rows_of
from promised_digests import Output, output_of
from promised_inboxes import files_in, inbox_of, items_in, sidecars_in, verdicts_of
from promised_records import VERSIONS, Records

import neardup as nd

OUTPUTS = "OUTPUTS"
#: What was trained on the labels of the sample, and its fingerprint where the outputs were recorded.
_MODEL, _FINGERPRINT = "learned.neardup", b"62fc52d85db5926e"
#: Outputs that are no text and no table: that they are there, and what is done with them, is what is promised.
_OPAQUE = (".neardup", ".db")


def _needs(package: str) -> None:
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.corpus}-{case.name}")
def test_outputs_are_as_recorded(
    case: Case,
    records: Records,
    corpus_folder: Callable[[str], Path],
    prepared: Callable[[str, str], Path],
    tmp_path: Path,
) -> None:
    if case.corpus == "html":
        _needs("trafilatura")
    if case.digits:
        _needs("sklearn")
    folder = corpus_folder(case.corpus)
    for name in case.needs:
        prepared(case.corpus, name)
    stdin = (folder / case.stdin).read_bytes() if case.stdin else b""
    done = call(*case.arguments(str(tmp_path)), stdin=stdin, folder=folder)
    assert done.code == 0, done.err
    assert {path.name for path in tmp_path.iterdir()} == set(case.files.values())
    found = {name: (tmp_path / name).read_bytes() for name in case.files.values() if not name.endswith(_OPAQUE)}
    if case.prints:
        found[case.prints] = done.out
    if _MODEL in case.needs:
        # What a training prepared is named by a fingerprint, and its last digits belong to the processor.
        own = nd.load_classifier(folder / _MODEL).fingerprint.encode()
        found = {name: content.replace(own, _FINGERPRINT) for name, content in found.items()}
    outputs = {name: output_of(name, content, digits=case.digits) for name, content in found.items()}
    records.check(case.corpus, case.name, case.arguments(OUTPUTS), outputs)


@pytest.mark.parametrize("case", [case for case in CASES if case.same_as], ids=lambda case: case.name)
def test_all_ways_to_run_have_the_same_record(case: Case, records: Records) -> None:
    if records.recording:
        pytest.skip("the records are being prepared")
    plain, other = records.entry(case.corpus, case.same_as)["outputs"], records.entry(case.corpus, case.name)["outputs"]
    for name in ("duplicates.csv", "summary.json", *(["kept.jsonl"] if "kept.jsonl" in other else [])):
        assert other[name]["sha256"] == plain[name]["sha256"], name


def test_every_record_belongs_to_a_test(records: Records) -> None:
    named = {(case.corpus, case.name) for case in CASES} | {("newswire", name) for name in _EXTRA_RECORDS}
    if not records.recording:
        known = {(corpus, name) for corpus in {*records.recorded} - {VERSIONS} for name in records.recorded[corpus]}
        assert known - named == set()
    records.forget_others(named)


@pytest.mark.parametrize("kind", ["wire", "texts", "pages"])
def test_watched_folders_are_judged_as_recorded(kind: str, records: Records, tmp_path: Path) -> None:
    if kind == "pages":
        _needs("trafilatura")
    inbox, store = inbox_of(kind, tmp_path / "inbox"), tmp_path / "news.db"
    places: dict[str, Any] = {name: name for name in ("originals", "duplicates", "quarantine", "done")}
    quick = {"until_empty": True, "patience": 0, "settle": 0, "window": "24h" if kind == "wire" else "endless"}
    command = command_line("watch", "inbox", store="news.db", **places, **quick)
    done = call(*command, folder=tmp_path)
    assert done.code == 0, done.err
    stopped = json.loads(done.err.splitlines()[-1])
    folders = [tmp_path / name for name in places if (tmp_path / name).is_dir()]
    lists = {
        "verdicts": verdicts_of(store, timed=kind == "wire"),
        "files": files_in(inbox, *folders),
        "evidence": sidecars_in(tmp_path / "duplicates"),
        "originals": items_in(tmp_path / "originals"),
    }
    outputs = {name: Output(lines, {"rows": len(lines)}) for name, lines in lists.items()}
    outputs["stopped.json"] = output_of("stopped.json", json.dumps(stopped | {"time": None}).encode())
    records.check("newswire", f"watch {kind}", command, outputs)


def test_recipes_have_the_recorded_fingerprints(records: Records) -> None:
    done = call(*command_line("recipe list", json=True))
    named = [recipe["name"] for recipe in json.loads(done.out)]
    assert sorted(named) == sorted(RECIPES)
    if not records.recording and records.recorded[VERSIONS]["unicode"] != unicodedata.unidata_version:
        pytest.skip("the Unicode version of Python is part of a fingerprint, and this one is another than was recorded")
    found = {name: nd.load_recipe(name).fingerprint for name in sorted(named)}
    output = Output([f"{name}: {mark}" for name, mark in found.items()], found)
    records.check("newswire", "fingerprints", [], {"fingerprints": output})


def test_sketches_are_as_recorded(records: Records) -> None:
    lines = []
    for row in rows_of("newswire")[:40]:
        words = row["text"].split()
        sketch = nd.MinHash(64, seed=3)
        sketch.update(words)
        again = nd.MinHash.from_bytes(sketch.to_bytes())
        assert again == sketch
        lines.append(json.dumps([row["id"], sketch.hashvalues.tolist(), int(nd.SimHash.of(words))]))
    records.check("newswire", "sketches", [], {"sketches": Output(lines, {"rows": len(lines)})})


def test_transformers_give_the_recorded_matrices(records: Records) -> None:
    _needs("sklearn")
    from neardup.transformers import FeatureTransformer, SimHashTransformer, SketchTransformer

    texts = [row["text"] for row in rows_of("newswire")[:60]]
    weighted = FeatureTransformer("words:2", weights="tfidf", n_columns=1 << 16).fit_transform(texts)
    plain = FeatureTransformer("words:5").fit_transform(texts)
    found = {
        "sets": [_sparse(row) for row in plain],
        "weights": [_sparse(row) for row in weighted],
        "sketches": [row.tolist() for row in SketchTransformer(features="words:2").fit_transform(texts)],
        "fingerprints": [row.tolist() for row in SimHashTransformer("words:2").fit_transform(texts)],
    }
    outputs = {name: Output([json.dumps(row) for row in rows], {"rows": len(rows)}) for name, rows in found.items()}
    records.check("newswire", "transformers", [], outputs)


def _sparse(row: Any) -> list[Any]:
    return [row.indices.tolist(), [float(f"{value:.9g}") for value in row.data.tolist()]]


#: What is recorded besides the cases.
_EXTRA_RECORDS = ("watch wire", "watch texts", "watch pages", "fingerprints", "sketches", "transformers")
