"""A decision as a file: a zip of a manifest, the model as skops writes it, and arrays; nothing in it is ever run."""

from __future__ import annotations

import hashlib
import io
import json
import os
import unicodedata
import zipfile
import zlib
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt

from neardup import __version__
from neardup.decision.decision import Decision
from neardup.decision.machine import machine_of
from neardup.decision.skopsfile import dump_model, load_model, versions
from neardup.errors import InputError, NeardupError, OutputError, RecipeError, option
from neardup.features.statistics import Statistics
from neardup.recipe.dependencies import difference
from neardup.recipe.recipe import parse as parse_recipe
from neardup.vector.vector import Vector
from neardup.wholefile import read, write

#: Raised whenever an older neardup could not read the file rightly.
FORMAT = 1
_KIND = "neardup decision"
_EPOCH = (1980, 1, 1, 0, 0, 0)
_LARGEST_ENTRY = 1 << 31
#: The length of a sum in hex digits.
_SEAL = 64


def save(decision: Decision, path: str | PathLike[str], *, force: bool = False) -> None:
    """Write a decision: the same one gives the same bytes."""
    name = os.fspath(path)
    if not force and os.path.lexists(name):
        raise OutputError(f"{name} exists; choose another name, or replace it with {option('--force', 'force=True')}")
    write(name, packed(decision))


def load_decision(path: str | PathLike[str]) -> Decision:
    """Return the decision that a file holds.

    Raises
    ------
    InputError
        If it is no such file, torn, changed, of another format, or made by what gives other features than this
        neardup with this Python.
    """
    return unpacked(read(path, "give what neardup train wrote"), os.fspath(path))


def packed(decision: Decision) -> bytes:
    """Return a decision as the bytes of its file."""
    entries: dict[str, bytes] = {"model.skops": dump_model(decision.estimator)}
    entries["scores.npy"], entries["labels.npy"] = _array(decision.scores), _array(decision.labels)
    known: list[dict[str, Any]] = []
    for number, (features, one) in enumerate(sorted(decision.statistics.items())):
        known.append(
            {"features": features, "documents": one.documents, "distinct": one.distinct, "heaviest": one.heaviest}
        )
        entries[f"statistics-{number}-features.npy"] = _array(one.features)
        entries[f"statistics-{number}-df.npy"] = _array(one.df)
    manifest = {
        "kind": _KIND,
        "format": FORMAT,
        "fingerprint": decision.fingerprint,
        "net": decision.net.to_toml(),
        "depends_on": decision.dependencies,
        "vector": str(decision.vector),
        "cut": repr(decision.cut),
        "columns": {"title": decision.title_column, "time": decision.time_column},
        "sigmoid": [repr(decision.machine.a), repr(decision.machine.b)],
        "statistics": known,
        "training": dict(decision.training),
        "versions": {"neardup": __version__, "unicode": unicodedata.unidata_version} | versions(),
        "entries": {entry: hashlib.sha256(content).hexdigest() for entry, content in sorted(entries.items())},
    }
    said = json.dumps(manifest, ensure_ascii=False, indent=1, sort_keys=True, default=float).encode()
    return _sealed(_zipped({"manifest.json": said} | dict(sorted(entries.items()))))


def unpacked(data: bytes, name: str) -> Decision:
    """Return the decision that bytes hold; ``name`` is what messages call them."""
    manifest, entries = _read(data, name)
    try:
        net = parse_recipe(manifest["net"], "its net")
        statistics = {
            one["features"]: Statistics(
                int(one["documents"]),
                int(one["distinct"]),
                int(one["heaviest"]),
                _loaded(entries[f"statistics-{number}-features.npy"], np.uint64),
                _loaded(entries[f"statistics-{number}-df.npy"], np.int64),
            )
            for number, one in enumerate(manifest["statistics"])
        }
        estimator = load_model(entries["model.skops"], name)
        decision = Decision(
            net=net,
            vector=Vector.parse(manifest["vector"]),
            statistics=statistics,
            machine=machine_of(estimator, *map(float, manifest["sigmoid"])),
            scores=_loaded(entries["scores.npy"], np.float64),
            labels=_loaded(entries["labels.npy"], np.bool_),
            cut=float(manifest["cut"]),
            title_column=str(manifest["columns"]["title"]),
            time_column=str(manifest["columns"]["time"]),
            training=manifest["training"],
            estimator=estimator,
        )
        depends_on = dict(manifest.get("depends_on", {}))
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, RecipeError) as error:
        raise InputError(f"{name} holds no decision that can be read ({error}); train it again") from None
    if clause := difference(depends_on, decision.dependencies):
        raise InputError(f"{name} was trained {clause}; train it again")
    if decision.fingerprint != manifest["fingerprint"]:
        raise InputError(f"{name} does not give the decision that was saved; train it again")
    return decision


def _read(data: bytes, name: str) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return manifest and entries, checked against their sums."""
    torn = f"{name} is torn or was changed; train it again"
    if len(data) < _SEAL or hashlib.sha256(data[:-_SEAL]).hexdigest().encode() != data[-_SEAL:]:
        raise InputError(f"{name} is no decision, or one that is torn or was changed; give what neardup train wrote")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            manifest = json.loads(_entry(archive, "manifest.json"))
            if not isinstance(manifest, dict) or manifest.get("kind") != _KIND:
                raise InputError(f"{name} is no decision; give what neardup train wrote")
            if manifest.get("format") != FORMAT:
                raise InputError(
                    f"{name} has format {manifest.get('format')!r} and only {FORMAT} is known; "
                    "read it with what wrote it"
                )
            entries = {entry: _entry(archive, entry) for entry in manifest["entries"]}
            if {*entries, "manifest.json"} != set(archive.namelist()):
                raise InputError(torn)
            if any(hashlib.sha256(content).hexdigest() != manifest["entries"][e] for e, content in entries.items()):
                raise InputError(torn)
            return manifest, entries
    except NeardupError:
        raise
    except (
        zipfile.BadZipFile,
        zlib.error,
        KeyError,
        ValueError,
        TypeError,
        AttributeError,
        OSError,
        EOFError,
        RuntimeError,
    ):
        raise InputError(torn) from None


def _entry(archive: zipfile.ZipFile, entry: str) -> bytes:
    if archive.getinfo(entry).file_size > _LARGEST_ENTRY:
        raise ValueError(entry)
    return archive.read(entry)


def _zipped(entries: dict[str, bytes]) -> bytes:
    """Return a zip without times, with room for the seal in its comment."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.comment = b"0" * _SEAL
        for entry, content in entries.items():
            archive.writestr(zipfile.ZipInfo(entry, _EPOCH), content, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def _sealed(data: bytes) -> bytes:
    """Return the zip with the sum of all before its comment there: no byte of it can change unseen."""
    return data[:-_SEAL] + hashlib.sha256(data[:-_SEAL]).hexdigest().encode()


def _array(values: npt.NDArray[Any]) -> bytes:
    out = io.BytesIO()
    np.save(out, values.astype(values.dtype.newbyteorder("<")), allow_pickle=False)
    return out.getvalue()


def _loaded(data: bytes, kind: Any) -> npt.NDArray[Any]:
    values = np.load(io.BytesIO(data), allow_pickle=False)
    if values.ndim != 1 or values.dtype.newbyteorder("=") != np.dtype(kind):
        raise ValueError(f"an array of {values.dtype} where one of {np.dtype(kind)} should be")
    return np.ascontiguousarray(values, kind)
