"""New documents against old ones, by a peer: run by ``against.py``, by the Python of the peer's own environment.

    against_peers.py PEER (base|new) OLD.jsonl NEW.jsonl FOLDER

``base`` keeps what is known of the old documents in FOLDER; ``new`` writes the ids of the new ones that are like an old
one to FOLDER/dropped.json. Word 5-grams, Jaccard 0.7, 128 hashes in 16 bands, where the peer has them.
"""

from __future__ import annotations

import json
import os
import pickle
import re
import struct
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any
from zlib import crc32

THRESHOLD, HASHES, BANDS = 0.7, 128, 16
WORDS = re.compile(r"\w+")


def records_of(path: Path) -> list[dict[str, Any]]:
    """Return the documents of a file."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def grams(text: str) -> set[str]:
    """Return the word 5-grams of a text."""
    words = WORDS.findall(text.lower())
    return {" ".join(words[at : at + 5]) for at in range(max(len(words) - 4, 1))}


def rensa(stage: str, old: Path, new: Path, folder: Path) -> list[Any]:
    """Keep rensa's index and sketches, which its classes let be stored; candidates are verified by their sketches."""
    from rensa import RMinHash, RMinHashLSH

    def sketches(records: Sequence[dict[str, Any]]) -> list[Any]:
        return list(RMinHash.from_token_sets((grams(one["text"]) for one in records), num_perm=HASHES, seed=42))

    kept = folder / "rensa"
    if stage == "base":
        known = sketches(records_of(old))
        index = RMinHashLSH(threshold=THRESHOLD, num_perm=HASHES, num_bands=BANDS)
        index.insert_many(known)
        kept.write_bytes(pickle.dumps((index, known)))
        return []
    index, known = pickle.loads(kept.read_bytes())  # noqa: S301
    records = records_of(new)
    asked = sketches(records)
    found = zip(records, asked, index.query_all(asked), strict=True)
    return [one["id"] for one, own, near in found if any(own.jaccard(known[at]) >= THRESHOLD for at in near)]


class Hashed:
    """Embeds texts without a model, which semhash would fetch from a network: signed hashes of words and word pairs."""

    def encode(self, sentences: Sequence[str], **_: Any) -> Any:
        """Return float32[n, 512]."""
        import numpy as np

        found = np.zeros((len(sentences), 512), np.float32)
        for row, text in enumerate(sentences):
            words = WORDS.findall(text.lower())
            pairs = [f"{one} {other}" for one, other in pairwise(words)]
            places = np.array([crc32(part.encode()) for part in [*words, *pairs]], np.int64)
            np.add.at(found[row], places % 512, 1.0 - 2.0 * (places >> 16 & 1))
        return found


def semhash(stage: str, old: Path, new: Path, folder: Path) -> list[Any]:
    """Embed both sides in one process: semhash keeps no base."""
    from semhash import SemHash

    if stage == "base":
        return []
    base = SemHash.from_records(records_of(old), columns=["text"], model=Hashed())
    return [one.record["id"] for one in base.deduplicate(records_of(new), threshold=0.9).filtered]


class Split:
    """Cuts words at spaces: spaCy's tokenizer, the default, takes ten times as long."""

    def word_tokenize(self, text: str) -> list[str]:
        """Return the words of a text."""
        return text.split()


def datatrove(stage: str, old: Path, new: Path, folder: Path) -> list[Any]:
    """Keep datatrove's MinHash index."""
    from datatrove.executor.local import LocalPipelineExecutor
    from datatrove.pipeline.dedup import minhash
    from datatrove.pipeline.readers import JsonlReader
    from datatrove.utils.hashing import HashConfig

    config = minhash.MinhashConfig(
        n_grams=5,
        num_buckets=BANDS,
        hashes_per_bucket=HASHES // BANDS,
        hash_config=HashConfig(precision=64, hash_fc="sha1"),
    )
    index, work = str(folder / "index"), folder / stage

    def run(steps: list[Any], tasks: int) -> None:
        LocalPipelineExecutor(steps, tasks=tasks, workers=1, logging_dir=str(work / "logs"), skip_completed=False).run()

    source = old if stage == "base" else new
    signer = minhash.MinhashDedupSignature(str(work / "signatures"), config=config)
    signer.word_tokenizer = Split()
    run([JsonlReader(str(source.parent), glob_pattern=source.name, compression=None), signer], 1)
    signatures = str(work / "signatures")
    if stage == "base":
        run([minhash.MinhashBuildIndex(signatures, index, "old", config=config)], BANDS)
        return []
    found, removed = str(work / "found"), work / "removed"
    run([minhash.MinhashDedupBuckets(signatures, found, index_folder=index, config=config)], BANDS)
    run([minhash.MinhashDedupCluster(found, str(removed), config=config)], 1)
    records = records_of(new)

    def rows() -> Iterator[int]:
        for path in removed.glob("*.remove"):
            yield from (row for (row,) in struct.iter_unpack("<I", path.read_bytes()))

    return [records[row]["id"] for row in rows()]


PEERS = {"rensa": rensa, "semhash": semhash, "datatrove": datatrove}

if __name__ == "__main__":
    name, part, *paths = sys.argv[1:]
    # It looks for a cache of a hub at its first import.
    os.environ["HF_HUB_OFFLINE"] = "1"
    ids = PEERS[name](part, *map(Path, paths))
    if part == "new":
        Path(paths[2], "dropped.json").write_text(json.dumps(ids), "utf-8")
