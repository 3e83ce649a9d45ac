"""The classifier file: the same bytes from every process; truncated, changed and foreign files are refused."""

from __future__ import annotations

import hashlib
import io
import json
import os
import select
import subprocess
import sys
import threading
import tracemalloc
import zipfile
from collections.abc import Callable
from dataclasses import astuple, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from classifiers import FACTS, SETS, WEIGHED, make_classifier
from hypothesis import given, settings
from hypothesis import strategies as st
from sentences import says

import neardup as nd
from neardup.classifier.classifier import pack_classifier, unpack_classifier
from neardup.errors import InputError, OutputError

Manifest = dict[str, Any]
Entries = dict[str, bytes]


def rewritten(data: bytes, change: Callable[[Manifest, Entries], object], method: int = zipfile.ZIP_STORED) -> bytes:
    """A file with changed content and a right digest."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(entries.pop("manifest.json"))
    change(manifest, entries)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        archive.comment = b"0" * 64
        for name, content in ({"manifest.json": json.dumps(manifest)} | entries).items():
            archive.writestr(name, content)
    body = out.getvalue()[:-64]
    return body + hashlib.sha256(body).hexdigest().encode()


def refused(data: bytes) -> str:
    """The message for a refused file."""
    with pytest.raises(InputError) as error:
        unpack_classifier(data, "d.neardup")
    message = str(error.value)
    assert message.count("\n") == 0
    assert "d.neardup" in message, message
    return message


@pytest.mark.parametrize(
    ("vector", "kernel", "cut"),
    [(SETS, "linear", 0.1 + 0.2), (WEIGHED, "rbf", -2.5e-17), ("terms-svm", "linear", float("-inf"))],
)
def test_a_file_gives_back_the_classifier_and_the_same_bytes(
    vector: str, kernel: str, cut: float, tmp_path: Path
) -> None:
    classifier = make_classifier(vector, kernel, candidate_rule="containment(qgrams:4) >= 0.25", cut=cut)
    classifier = replace(classifier, title_column="Head", time_column="When")
    path = tmp_path / "d.neardup"
    classifier.save(path)
    loaded = nd.load_classifier(path)
    for name in ("candidate_rule", "vector", "cut", "title_column", "time_column", "training", "fingerprint"):
        assert getattr(loaded, name) == getattr(classifier, name)
    for name in ("scores", "labels"):
        assert np.array_equal(getattr(loaded, name), getattr(classifier, name))
    machines = zip(loaded.machine, classifier.machine, strict=True)
    assert all(np.array_equal(np.asarray(a), np.asarray(b)) for a, b in machines)
    assert loaded.statistics.keys() == classifier.statistics.keys()
    for features, counts in classifier.statistics.items():
        pairs = zip(astuple(loaded.statistics[features]), astuple(counts), strict=True)
        assert all(np.array_equal(np.asarray(a), np.asarray(b)) for a, b in pairs)
    assert pack_classifier(loaded) == path.read_bytes() == pack_classifier(classifier)
    x = np.random.default_rng(1).random((50, len(classifier.vector)))
    assert loaded.score(x).tobytes() == classifier.score(x).tobytes()
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_is_replaced_only_by_force(tmp_path: Path) -> None:
    path = tmp_path / "d.neardup"
    make_classifier().save(path)
    with pytest.raises(OutputError) as caught:
        make_classifier(FACTS).save(path)
    assert says(caught.value, "d.neardup exists", "another name", "force=True")
    assert path.read_bytes() == pack_classifier(make_classifier())
    make_classifier(FACTS).save(path, force=True)
    assert path.read_bytes() == pack_classifier(make_classifier(FACTS))
    with pytest.raises(OutputError, match="cannot be written"):
        make_classifier().save(tmp_path / "nowhere" / "d.neardup")


@cache
def file_content() -> bytes:
    return pack_classifier(make_classifier(WEIGHED, "rbf"))


@given(st.floats(0, 1, exclude_max=True), st.integers(1, 255))
def test_a_changed_byte_is_detected(part: float, by: int) -> None:
    changed = bytearray(file_content())
    changed[int(part * len(changed))] ^= by
    assert "truncated or changed" in refused(bytes(changed))


@settings(max_examples=30)
@given(st.floats(0, 1, exclude_max=True), st.binary(max_size=9))
def test_a_truncated_or_extended_file_is_refused(part: float, more: bytes) -> None:
    length = int(part * len(file_content()))
    assert "truncated or changed" in refused(file_content()[:length])
    assert "truncated or changed" in refused(file_content()[:length] + more + file_content()[length + len(more) :][:-1])
    if more:
        assert "truncated or changed" in refused(file_content() + more)


def test_other_files_and_formats_are_refused() -> None:
    for data in (b"", b"PK", b"id1,id2,label\na,b,1\n", b"\x00" * 500, file_content()[64:], file_content() * 2):
        assert says(refused(data), "not a classifier file", "truncated or changed", "that neardup train wrote")
    changed = rewritten(file_content(), lambda manifest, entries: manifest.update(kind="holiday photographs"))
    packed = rewritten(
        file_content(), lambda manifest, entries: entries.update(scores=b"0" * 10_000), zipfile.ZIP_DEFLATED
    )
    for data in (changed, packed):
        message = refused(data)
        assert says(message, "not a classifier file", "that neardup train wrote")
        assert "truncated" not in message
    later = rewritten(file_content(), lambda manifest, entries: manifest.update(format=9))
    assert says(refused(later), "format 9", "reads 4", "train it again")


CHANGES: dict[str, Callable[[Manifest, Entries], object]] = {
    "other vector": lambda m, e: m.update(vector="dice(words:1), cosine(words:1:tfidf), names"),
    "other cut": lambda m, e: m.update(cut="0.125"),
    "no number": lambda m, e: m.update(cut="much"),
    "other rule": lambda m, e: m.update(candidate_rule=m["candidate_rule"].replace("0.2", "0.4")),
    "other fingerprint": lambda m, e: m.update(fingerprint="0" * 16),
    "other counts": lambda m, e: m["statistics"][0].update(documents=61),
    "no counts": lambda m, e: m.update(statistics=[]),
    "too many counts": lambda m, e: m.update(statistics=m["statistics"] * 2),
    "other columns": lambda m, e: m.update(columns=None),
    "entry gone": lambda m, e: e.pop("labels.npy"),
    "pickled array": lambda m, e: e.update({"scores.npy": saved(np.array([{}], object), pickled=True)}),
    "array of other numbers": lambda m, e: e.update({"scores.npy": saved(np.zeros(3, np.float32))}),
    "array of two dimensions": lambda m, e: e.update({"scores.npy": saved(np.zeros((3, 3)))}),
    "no array": lambda m, e: e.update({"scores.npy": b"0.5"}),
    "array cut off": lambda m, e: e.update({"support.npy": e["support.npy"][:-8]}),
    "array too large for any memory": lambda m, e: e.update({"dual.npy": huge()}),
    "array with a nan": lambda m, e: e.update({"scores.npy": saved(np.full(3, np.nan))}),
    "a row too many": lambda m, e: e.update({"support.npy": saved(np.zeros((2, 3)))}),
    "counts too few": lambda m, e: e.update({"df-0.npy": saved(np.zeros(1, np.int64))}),
    "other kernel": lambda m, e: m["machine"].update(kernel="linear"),
    "infinite intercept": lambda m, e: m["machine"].update(intercept=float("inf")),
    "negative length": lambda m, e: e.update({"dual.npy": huge((-1,))}),
    "broken header": lambda m, e: e.update({"dual.npy": e["dual.npy"].replace(b"'", b'"', 1)}),
    "open header": lambda m, e: e.update({"dual.npy": e["dual.npy"].replace(b"}", b"(", 1)}),
    "scale of zero": lambda m, e: e.update({"scale.npy": saved(np.zeros(3))}),
    "negative gamma": lambda m, e: m["machine"].update(gamma=-1.0),
    "falling probability": lambda m, e: m["calibration"].update(a=1.0),
    "cut of no number": lambda m, e: m.update(cut="nan"),
    "a number too long": lambda m, e: m.update(cut="9" * 5000),
    "counts of no collection": lambda m, e: m["statistics"][0].update(documents=10**30),
    "infinite counts": lambda m, e: m["statistics"][0].update(distinct=float("inf")),
    "frequencies below 1": lambda m, e: e.update({"df-0.npy": saved(np.full(len(saved_df(e)), -1))}),
    "features out of order": lambda m, e: e.update({"features-0.npy": saved(np.zeros(len(saved_df(e)), np.uint64))}),
    "a vector without end": lambda m, e: m.update(vector=", ".join(["names"] * 100_000)),
    "a rule without end": lambda m, e: m.update(candidate_rule="a." * 100_000 + "a = 1"),
    "list for a manifest": lambda m, e: e.update({"manifest.json": b"[]"}),
    "nested deeply": lambda m, e: e.update({"manifest.json": b"[" * 100_000}),
}


def saved_df(entries: Entries) -> Any:
    return np.load(io.BytesIO(entries["df-0.npy"]))


def huge(shape: tuple[int, ...] = (1 << 57,)) -> bytes:
    """An array of a few bytes that says it has an exabyte."""
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return out.getvalue()


def saved(values: Any, *, pickled: bool = False) -> bytes:
    out = io.BytesIO()
    np.save(out, values, allow_pickle=pickled)
    return out.getvalue()


@pytest.mark.parametrize("change", CHANGES)
def test_inconsistent_content_is_refused(change: str) -> None:
    message = refused(rewritten(file_content(), CHANGES[change]))
    assert message.endswith("train it again") or "train again" in message, message


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("chain", "3", "neardup that makes other features"),
        ("Unicode tables", "words 0123", "Unicode tables differ"),
        ("stop words", "0123", "other stop words"),
    ],
)
def test_files_of_other_versions_are_refused(name: str, value: str, words: str) -> None:
    message = refused(rewritten(file_content(), lambda manifest, entries: manifest["depends_on"].update({name: value})))
    assert words in message
    assert value in message
    assert message.endswith("train it again")
    message = refused(rewritten(file_content(), lambda manifest, entries: manifest.pop("depends_on")))
    assert "older neardup" in message
    assert message.endswith("train it again")


def test_another_process_without_scikit_learn_applies_a_classifier_and_saves_the_same_bytes(tmp_path: Path) -> None:
    make_classifier(FACTS).save(tmp_path / "d.neardup")
    code = (
        "import sys; import neardup as nd; sys.modules['sklearn'] = None\n"
        "texts = {'id': ['a', 'b', 'c'], 'text': ['oslo port: 120 ships', 'oslo port: 120 ships came', 'owl']}\n"
        "classifier = nd.load_classifier('d.neardup')\n"
        "nd.dedup(texts, classifier=classifier).explain('a', 'b')\n"
        "nd.Index(classifier='d.neardup', window=None).add(nd.Document('d', 'oslo port: 130 ships'))\n"
        "classifier.save('again.neardup')\n"
        "print([name for name in sys.modules if name.startswith(('sklearn.', 'skops'))])"
    )
    environment = os.environ | {"PYTHONHASHSEED": "7"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
    assert (tmp_path / "again.neardup").read_bytes() == (tmp_path / "d.neardup").read_bytes()


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        nd.load_classifier(tmp_path / "none.neardup")
    assert says(caught.value, "none.neardup", "cannot be read", "No such file")
    with pytest.raises(InputError, match="cannot be read"):
        nd.load_classifier(tmp_path)


def test_entries_that_overlap_are_refused_before_they_are_read() -> None:
    """2,000 entries of one megabyte that is in the file once."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.comment = b"0" * 64
        archive.writestr("manifest.json", b" " * (1 << 20))
        entry = archive.infolist()[0]
        archive.filelist += [entry] * 2_000
    body = out.getvalue()[:-64]
    data = body + hashlib.sha256(body).hexdigest().encode()
    assert len(data) < 1_400_000
    tracemalloc.start()
    assert says(refused(data), "not a classifier file")
    assert tracemalloc.get_traced_memory()[1] < 20_000_000
    tracemalloc.stop()


def test_a_device_or_a_pipe_without_a_writer_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in ("/dev/zero", tmp_path / "pipe", tmp_path):
        with pytest.raises(InputError) as caught:
            nd.load_classifier(name)
        assert says(caught.value, str(name), "cannot be read", "neardup train")


def test_a_pipe_that_somebody_writes_to_is_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    data = pack_classifier(make_classifier())
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_bytes(data))
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    writer.start()
    while not select.select([reader], [], [], 300)[0]:
        pass
    assert nd.load_classifier(tmp_path / "pipe").fingerprint == make_classifier().fingerprint
    os.close(reader)
    writer.join(300)
