"""A scikit-learn model as bytes: what skops writes, without the addresses and times in it."""

from __future__ import annotations

import io
import json
import warnings
import zipfile
from importlib import metadata
from typing import Any

from neardup.errors import InputError, NeardupError

_EPOCH = (1980, 1, 1, 0, 0, 0)
#: Besides what skops trusts by itself.
_TRUSTED = ["numpy.dtype"]


def versions() -> dict[str, str]:
    """Return the versions of the libraries that a model depends on."""
    return {library: metadata.version(library) for library in ("numpy", "scikit-learn", "skops")}


def dump_model(estimator: Any) -> bytes:
    """Return a model as skops writes it; the same model gives the same bytes.

    skops names objects by their addresses in memory and dates the parts, so both are made anew.
    """
    written = skops_io().dumps(estimator)
    with zipfile.ZipFile(io.BytesIO(written)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    schema = json.loads(files.pop("schema.json"))
    named: dict[str, str] = {}
    _rename(schema, named, {})
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for before, after in named.items():
            archive.writestr(zipfile.ZipInfo(after, _EPOCH), files[before])
        archive.writestr(zipfile.ZipInfo("schema.json", _EPOCH), json.dumps(schema, indent=1))
    return out.getvalue()


def load_model(data: bytes, name: str) -> Any:
    """Return the model that bytes hold.

    Raises
    ------
    InputError
        If they hold anything but numbers and models of scikit-learn, or cannot be read.
    NeardupError
        If skops is not installed.
    """
    skops = skops_io()
    try:
        unknown = sorted(set(skops.get_untrusted_types(data=data)) - set(_TRUSTED))
        if unknown:
            raise InputError(f"{name} holds {unknown[0]}, which is no part of a decision; do not use it")
        with warnings.catch_warnings():
            # Another version's model is read field by field, and g is checked against the fingerprint afterwards.
            warnings.simplefilter("ignore")
            return skops.loads(data, trusted=_TRUSTED)
    except NeardupError:
        raise
    except Exception as error:
        raise InputError(f"the model in {name} cannot be read ({error}); train it again") from None


def _rename(node: Any, files: dict[str, str], numbers: dict[int, int]) -> None:
    """Give the nodes of a schema numbers as they come; files and objects may be shared, plain values never are."""
    if isinstance(node, list):
        for one in node:
            _rename(one, files, numbers)
    elif isinstance(node, dict):
        if isinstance(node.get("file"), str):
            node["file"] = files.setdefault(node["file"], f"{len(files)}.npy")
        if isinstance(node.get("__id__"), int):
            own = -len(numbers) - 1 if node.get("is_json") else node["__id__"]
            node["__id__"] = numbers.setdefault(own, len(numbers))
        for one in node.values():
            _rename(one, files, numbers)


def skops_io() -> Any:
    """Return the library that writes and reads models.

    Raises
    ------
    NeardupError
        If it is not installed.
    """
    try:
        import sklearn  # noqa: F401  skops imports it, and says less clearly that it is missing
        import skops.io
    except ImportError as error:
        raise NeardupError(
            f"a learned decision is kept as a scikit-learn model, and {error.name} is not installed; "
            "pip install 'neardup[learn]' brings it"
        ) from None
    return skops.io
