"""The file of a decision: the same bytes from every process, and nothing read from one that is not whole."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from saying import says
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from trained import DATED, FACTS, SETS, WEIGHED, fitted, trained

import neardup as nd
from neardup.classifier.classifier import Decision, dump_model, packed, unpacked
from neardup.errors import InputError, NeardupError, OutputError
from neardup.features.statistics import Statistics

Manifest = dict[str, Any]
Entries = dict[str, bytes]


def same(one: Decision, other: Decision) -> bool:
    """Whether two decisions are the same in all that is kept."""
    machines = all(
        np.array_equal(np.asarray(a), np.asarray(b)) for a, b in zip(one.machine, other.machine, strict=True)
    )
    plain = ("net", "vector", "cut", "title_column", "time_column", "training", "fingerprint")
    scores = np.array_equal(one.scores, other.scores) and np.array_equal(one.labels, other.labels)
    keys = one.statistics.keys() | other.statistics.keys()
    known = all(alike(one.statistics[key], other.statistics[key]) for key in keys)
    return machines and known and scores and all(getattr(one, name) == getattr(other, name) for name in plain)


def alike(one: Statistics, other: Statistics) -> bool:
    numbers = ("documents", "distinct", "heaviest")
    arrays = np.array_equal(one.features, other.features) and np.array_equal(one.df, other.df)
    return arrays and all(getattr(one, name) == getattr(other, name) for name in numbers)


def remade(data: bytes, change: Callable[[Manifest, Entries], object], *, sums: bool = True) -> bytes:
    """A file with something else in it, sealed again; with ``sums`` those of its entries fit, too."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(entries.pop("manifest.json"))
    change(manifest, entries)
    if sums:
        manifest["entries"] = {name: hashlib.sha256(content).hexdigest() for name, content in entries.items()}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.comment = b"0" * 64
        archive.writestr("manifest.json", json.dumps(manifest))
        for name, content in entries.items():
            archive.writestr(name, content)
    body = out.getvalue()[:-64]
    return body + hashlib.sha256(body).hexdigest().encode()


def refused(data: bytes) -> str:
    """What is said of a file that is not read."""
    with pytest.raises(InputError) as error:
        unpacked(data, "d.neardup")
    said = str(error.value)
    assert said.count("\n") == 0
    assert "d.neardup" in said or "the model" in said, said
    return said


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("vector", [SETS, FACTS, WEIGHED, DATED, "terms-svm"])
def test_a_file_gives_back_the_decision_and_the_same_bytes(vector: str, kernel: str, tmp_path: Path) -> None:
    decision = replace(trained(vector, kernel), title_column="Head", time_column="When", cut=0.1 + 0.2)
    path = tmp_path / "d.neardup"
    decision.save(path)
    again = nd.load_decision(path)
    assert same(decision, again)
    assert packed(again) == path.read_bytes() == packed(decision)
    x = np.random.default_rng(1).random((50, len(decision.vector)))
    assert again.g(x).tobytes() == decision.g(x).tobytes()
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("net", ["jaccard(words:3) >= 0.1", "containment(qgrams:4) >= 0.25"])
@pytest.mark.parametrize("cut", [0.0, -2.5e-17, float("-inf")])
def test_nets_and_cuts_come_back(net: str, cut: float) -> None:
    decision = replace(trained(net=net), cut=cut)
    again = unpacked(packed(decision), "d")
    assert same(decision, again)
    assert packed(again) == packed(decision)


def test_two_processes_write_the_same_bytes(tmp_path: Path) -> None:
    code = (
        "import sys; sys.path.insert(0, 'tests')\n"
        "from trained import trained, WEIGHED\n"
        "from neardup.classifier.classifier import packed\n"
        "import hashlib; print(hashlib.sha256(packed(trained(WEIGHED, 'rbf'))).hexdigest())"
    )
    root = Path(__file__).parent.parent.parent
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=root,
            env={"PYTHONHASHSEED": seed, "OMP_NUM_THREADS": threads},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed, threads in (("1", "1"), ("2", "2"))
    }
    assert found == {hashlib.sha256(packed(trained(WEIGHED, "rbf"))).hexdigest()}


def test_a_file_is_replaced_only_by_force(tmp_path: Path) -> None:
    path = tmp_path / "d.neardup"
    trained().save(path)
    with pytest.raises(OutputError) as caught:
        trained(FACTS).save(path)
    assert says(caught.value, "d.neardup exists", "another name", "force=True")
    assert same(nd.load_decision(path), trained())
    trained(FACTS).save(path, force=True)
    assert same(nd.load_decision(path), trained(FACTS))
    with pytest.raises(OutputError, match="cannot be written"):
        trained().save(tmp_path / "nowhere" / "d.neardup")


PACKED = packed(trained(WEIGHED, "rbf"))


@settings(max_examples=150)
@given(st.integers(0, len(PACKED) - 1), st.integers(1, 255))
def test_no_byte_can_change(offset: int, by: int) -> None:
    changed = bytearray(PACKED)
    changed[offset] ^= by
    assert "torn or was changed" in refused(bytes(changed))


@settings(max_examples=60)
@given(st.integers(0, len(PACKED) - 1), st.binary(max_size=9))
def test_no_torn_file_is_read(length: int, more: bytes) -> None:
    assert "torn or was changed" in refused(PACKED[:length])
    assert "torn or was changed" in refused(PACKED[:length] + more + PACKED[length + len(more) :][:-1])
    if more:
        assert "torn or was changed" in refused(PACKED + more)


@pytest.mark.parametrize("data", [b"", b"PK", b"id1,id2,label\na,b,1\n", b"\x00" * 500, PACKED[64:], PACKED * 2])
def test_other_files_are_no_decisions(data: bytes) -> None:
    assert says(refused(data), "d.neardup", "no decision", "torn or was changed", "what neardup train wrote")


def test_a_zip_of_something_else_is_no_decision() -> None:
    data = remade(PACKED, lambda manifest, entries: manifest.update(kind="holiday photographs"))
    said = refused(data)
    assert says(said, "d.neardup", "no decision", "what neardup train wrote")
    assert "torn" not in said
    assert "torn" in refused(remade(PACKED, lambda manifest, entries: manifest.update(entries=7), sums=False))


@pytest.mark.parametrize("number", [0, 2, "1", None])
def test_another_format_is_not_guessed_at(number: Any) -> None:
    data = remade(PACKED, lambda manifest, entries: manifest.update(format=number))
    assert says(refused(data), "d.neardup", f"format {number!r}", "only 1", "what wrote it")


CHANGES: dict[str, Callable[[Manifest, Entries], object]] = {
    "other vector": lambda m, e: m.update(vector="dice(words:1), cosine(words:1:tfidf), names"),
    "longer vector": lambda m, e: m.update(vector=m["vector"] + ", names"),
    "unknown vector": lambda m, e: m.update(vector="dice(words:1), horoscope"),
    "no vector": lambda m, e: m.pop("vector"),
    "other cut": lambda m, e: m.update(cut="0.125"),
    "no number": lambda m, e: m.update(cut="much"),
    "other sigmoid": lambda m, e: m.update(sigmoid=["-2.0", "0.1"]),
    "half a sigmoid": lambda m, e: m.update(sigmoid=["-2.0"]),
    "other net": lambda m, e: m.update(net=m["net"].replace("0.2", "0.4")),
    "no net": lambda m, e: m.update(net="features = 7"),
    "other fingerprint": lambda m, e: m.update(fingerprint="0" * 16),
    "other counts": lambda m, e: m["statistics"][0].update(documents=61),
    "no counts": lambda m, e: m.update(statistics=[]),
    "too many counts": lambda m, e: m.update(statistics=m["statistics"] * 2),
    "other columns": lambda m, e: m.update(columns=None),
    "no training": lambda m, e: m.pop("training"),
    "entry gone": lambda m, e: e.pop("labels.npy"),
    "pickled array": lambda m, e: e.update({"scores.npy": saved(np.array([{}], object), pickled=True)}),
    "array of other numbers": lambda m, e: e.update({"scores.npy": saved(np.zeros(3, np.float32))}),
    "array of two dimensions": lambda m, e: e.update({"scores.npy": saved(np.zeros((3, 3)))}),
    "no array": lambda m, e: e.update({"scores.npy": b"0.5"}),
    "no model": lambda m, e: e.update({"model.skops": b"PK"}),
    "a model cut off": lambda m, e: e.update({"model.skops": e["model.skops"][:-200]}),
}


def saved(values: Any, *, pickled: bool = False) -> bytes:
    out = io.BytesIO()
    np.save(out, values, allow_pickle=pickled)
    return out.getvalue()


@pytest.mark.parametrize("change", CHANGES)
def test_what_does_not_go_together_is_refused(change: str) -> None:
    said = refused(remade(PACKED, CHANGES[change]))
    assert said.endswith("train it again") or "train again" in said, said


def test_entries_are_those_of_the_manifest() -> None:
    def more(manifest: Manifest, entries: Entries) -> None:
        entries["extra.npy"] = saved(np.zeros(1))

    def other(manifest: Manifest, entries: Entries) -> None:
        entries["scores.npy"] = saved(np.zeros(len(trained(WEIGHED, "rbf").scores)))

    assert "torn or was changed" in refused(remade(PACKED, more, sums=False))
    assert "torn or was changed" in refused(remade(PACKED, other, sums=False))


class Stranger(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A step that is no part of scikit-learn."""

    def fit(self, x: Any, y: Any = None) -> Stranger:
        return self

    def transform(self, x: Any) -> Any:
        return x


def with_model(estimator: Any) -> bytes:
    return packed(replace(trained(WEIGHED, "rbf"), estimator=estimator))


def test_a_model_with_code_of_its_own_is_not_loaded() -> None:
    known = trained(WEIGHED, "rbf").estimator
    said = refused(with_model(Pipeline([*known.steps, ("more", Stranger())])))
    assert says(said, "d.neardup holds test_file.Stranger", "do not use it")
    said = refused(with_model(Pipeline([("run", FunctionTransformer(subprocess.run)), *known.steps])))
    assert says(said, "d.neardup holds subprocess.run", "do not use it")


def test_another_model_is_no_decision() -> None:
    x, y = np.random.default_rng(1).random((20, 3)), np.arange(20) % 2 == 0
    assert "is no SVM of neardup" in refused(with_model(LogisticRegression().fit(x, y)))
    other = remade(PACKED, lambda m, e: e.update({"model.skops": dump_model(fitted(x, y, "rbf"))}))
    assert says(refused(other), "does not give", "decision that was saved")
    wider = fitted(np.column_stack([x, x]), y, "rbf")
    assert refused(remade(PACKED, lambda m, e: e.update({"model.skops": dump_model(wider)})))


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("chain", "3", "neardup that makes other features"),
        ("Unicode tables", "words 0123", "Unicode tables differ"),
        ("stop words", "0123", "other stop words"),
    ],
)
def test_what_goes_by_other_tables_or_words_is_refused(name: str, value: str, words: str) -> None:
    said = refused(remade(PACKED, lambda manifest, entries: manifest["depends_on"].update({name: value})))
    assert words in said
    assert value in said
    assert said.endswith("train it again")


def test_a_file_of_an_older_neardup_is_refused() -> None:
    said = refused(remade(PACKED, lambda manifest, entries: manifest.pop("depends_on")))
    assert "older neardup" in said
    assert said.endswith("train it again")


def test_without_skops_it_is_said_what_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for library in ("skops", "sklearn"):
        monkeypatch.setitem(sys.modules, library, None)
        with pytest.raises(NeardupError) as caught:
            unpacked(PACKED, "d.neardup")
        assert says(caught.value, library, "not installed", "pip install 'neardup[learn]'")
        monkeypatch.undo()


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        nd.load_decision(tmp_path / "none.neardup")
    assert says(caught.value, "none.neardup", "cannot be read", "No such file")
    with pytest.raises(InputError, match="cannot be read"):
        nd.load_decision(tmp_path)
