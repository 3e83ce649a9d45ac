"""What happens to the files of an index: bytes that change, by themselves or with sums and digests that fit again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import neardup as nd
from neardup.index.manifest import MANIFEST, digest_of
from neardup.kernels.blocks import block_sums

#: The order of the sums of a segment.
SETS = ("sizes", "bitmaps", "counts", "heads", "entries")
FINGERPRINTS = ("sizes", "values")
TEXTS = ("frames", "ends", "texts.zstd", "dictionary", "ids", "id_ends")


def data_files(place: Path) -> list[Path]:
    """Return the files that hold data, in a fixed order, without empty ones."""
    return sorted(path for path in place.rglob("*") if path.is_file() and path.stat().st_size and path.name != "lock")


def repair(place: Path) -> None:
    """Write the sums, sizes and digests that fit the files, as somebody does who means to deceive."""
    content = json.loads((place / MANIFEST).read_text("utf-8"))
    content.pop("digest")
    for part in content["segments"]:
        folder = place / part["name"]
        names = SETS if (folder / "heads").exists() else FINGERPRINTS
        sums = [
            block_sums(np.fromfile(folder / name, np.uint8)) for name in (*names, *TEXTS) if (folder / name).exists()
        ]
        (folder / "sums").write_bytes(np.concatenate(sums).tobytes())
        for name in part["files"]:
            data = (place / name).read_bytes()
            part["files"][name] = [len(data), digest_of(data)]
    seal(place, content)


def seal(place: Path, content: dict[str, Any]) -> None:
    """Write a manifest with its digest."""
    body = json.dumps(content, ensure_ascii=False, indent=1).encode() + b"\n"
    content = content | {"digest": digest_of(body)}
    (place / MANIFEST).write_bytes(json.dumps(content, ensure_ascii=False, indent=1).encode() + b"\n")


def answers(place: Path, texts: list[str], copy: Path) -> dict[str, Any]:
    """Ask an index everything; a refusal is an answer, and any other error is raised."""

    def added() -> Any:
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(place, copy)
        index = nd.open_index(copy).add({"id": ["new"], "text": [texts[0] + " and more"]}, threads=1).remove(["3"])
        index = index.compact(threads=1)
        index.check()
        return index.documents().to_pydict()

    ask: dict[str, Callable[[], Any]] = {
        "against": lambda: nd.dedup(texts, against=place, threads=1).pairs.to_arrow().to_pydict(),
        "query": lambda: [list(nd.open_index(place).query(text)) for text in texts[:3]],
        "nearest": lambda: list(nd.query(place, texts[1], k=3)),
        "neighbors": lambda: list(nd.neighbors(place, 2, first=3)),
        "documents": lambda: nd.open_index(place).documents().to_pydict(),
        "add": added,
        "check": lambda: nd.open_index(place).check(),
    }
    found: dict[str, Any] = {}
    for what, call in ask.items():
        if what == "add" and not all(path.is_file() or path.is_dir() for path in place.rglob("*")):
            continue  # no copy can be made of it
        try:
            found[what] = call()
        except nd.NeardupError as error:
            found[what] = error
    return found
