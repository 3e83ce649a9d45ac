"""One peer's sketches, for sketches.py, which runs this in the peer's own environment; needs pyarrow besides the peer.

sketch_peers.py PEER FOLDER

FOLDER holds corpus.parquet (texts as they are, and normalised), pairs.parquet (two normalised texts a row),
features.bin and heads.bin (the corpus's word 5-grams as 64-bit hashes, and where each text's begin). Prints JSON:
processor seconds for features and for sketches of the texts, for sketches of the hashes, and the estimates of the
pairs.
"""

from __future__ import annotations

import importlib.metadata
import json
import re
import sys
import time
from array import array
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

SLOTS = 128
SEED = 42
WORD = re.compile(r"\w+")
Sketches = Sequence[Sequence[int]]


def grams(text: str) -> list[str]:
    """Return the word 5-grams of a text, as fast as plain Python makes them."""
    words = WORD.findall(text.lower())
    if len(words) < 5:
        return [" ".join(words)] if words else []
    return list(map(" ".join, zip(words, words[1:], words[2:], words[3:], words[4:], strict=False)))


def taken(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the processor seconds of some work, and what it gave."""
    begin = time.process_time()
    done = work()
    return round(time.process_time() - begin, 4), done


def words_of(file: Path) -> array[int]:
    """Return the 64-bit words of a file."""
    words = array("Q")
    words.frombytes(file.read_bytes())
    return words


def agreement(first: Sketches, second: Sketches) -> list[float]:
    """Return the share of equal slots of each two sketches."""
    return [sum(map(int.__eq__, map(int, a), map(int, b))) / SLOTS for a, b in zip(first, second, strict=True)]


class Peer:
    """What is asked of a peer; one that makes its own features gives seconds of 0 for them."""

    package = ""
    own_features = False

    def __init__(self) -> None:
        self.module = import_module(self.package)

    def sketch(self, documents: list[Any]) -> Any:
        """Return the sketch of each document: its 5-grams, or its text where features are the peer's own."""
        raise NotImplementedError

    def of_hashes(self, features: array[int], heads: array[int]) -> object:
        """Sketch documents of hashed features; None where the peer takes none."""


class Rensa(Peer):
    """R-MinHash, the full sketch."""

    package = "rensa"

    def sketch(self, documents: list[Any]) -> Any:
        """Return the sketches, in bulk."""
        return self.module.RMinHash.digest_matrix_from_token_sets(documents, SLOTS, SEED).to_rows()

    def of_hashes(self, features: array[int], heads: array[int]) -> object:
        """Sketch hashes, in one array."""
        return self.module.RMinHash.digest_matrix_from_flat_token_hashes(features, heads, SLOTS, SEED)


class RensaRho(Rensa):
    """The way of rensa's own claim of speed."""

    def sketch(self, documents: list[Any]) -> Any:
        """Return the sketches, in bulk."""
        return self.module.RMinHash.digest_matrix_from_token_sets_rho(documents, SLOTS, SEED, probes=4).to_rows()

    def of_hashes(self, features: array[int], heads: array[int]) -> object:
        """Sketch hashes, in one array."""
        return self.module.RMinHash.digest_matrix_from_flat_token_hashes_rho(features, heads, SLOTS, SEED, probes=4)


class FastSketch(Peer):
    """FastSketchLSH: Fast Similarity Sketching in C++."""

    package = "FastSketchLSH"

    def __init__(self) -> None:
        super().__init__()
        self._sketcher = self.module.FastSimilaritySketch(size=SLOTS, seed=SEED)

    def sketch(self, documents: list[Any]) -> Any:
        """Return the sketches, in bulk."""
        return self._sketcher.batch(documents, num_threads=1)

    def of_hashes(self, features: array[int], heads: array[int]) -> object:
        """Sketch hashes, in one array."""
        import numpy as np

        return self._sketcher.batch_csr(np.asarray(features), np.asarray(heads), True, 1)


class Datasketch(Peer):
    """MinHash in bulk, with xxhash."""

    package = "datasketch"

    def sketch(self, documents: list[Any]) -> Any:
        """Return the sketches, in bulk."""
        encoded = ([gram.encode() for gram in document] for document in documents)
        made = self.module.MinHash.generator(
            encoded, num_perm=SLOTS, seed=SEED, hashfunc=import_module("xxhash").xxh32_intdigest
        )
        return [sketch.hashvalues for sketch in made]


class Daft(Peer):
    """The expression minhash on text normalised before, which is not counted."""

    package = "daft"
    own_features = True

    def sketch(self, documents: list[Any]) -> Any:
        """Return the sketches, in bulk."""
        daft, minhash = self.module, import_module("daft.functions").minhash
        how = {"num_hashes": SLOTS, "ngram_size": 5, "seed": SEED, "hash_function": "xxhash3_64"}
        frame = daft.from_pydict({"text": documents}).select(minhash(daft.col("text"), **how).alias("h")).collect()
        column = frame.to_arrow()["h"].combine_chunks()
        return column.values.to_numpy(zero_copy_only=False).reshape(-1, SLOTS)


PEERS: dict[str, type[Peer]] = {
    "rensa": Rensa,
    "rensa-rho": RensaRho,
    "fastsketch": FastSketch,
    "datasketch": Datasketch,
    "daft": Daft,
}


def main() -> None:
    kind, folder = PEERS[sys.argv[1]], Path(sys.argv[2])
    peer = kind()
    corpus = pq.read_table(folder / "corpus.parquet")
    pairs = pq.read_table(folder / "pairs.parquet")
    documents: list[Any] = corpus["normalised" if kind.own_features else "text"].to_pylist()
    both: list[list[Any]] = [pairs[name].to_pylist() for name in ("left", "right")]
    peer.sketch([grams("so that all is loaded")] if not kind.own_features else ["so that all is loaded"])
    features_s = 0.0
    if not kind.own_features:
        features_s, documents = taken(lambda: [grams(text) for text in documents])
        both = [[grams(text) for text in side] for side in both]
    sketch_s, _ = taken(lambda: peer.sketch(documents))
    hashes = words_of(folder / "features.bin"), words_of(folder / "heads.bin")
    hashed_s, done = min((taken(lambda: peer.of_hashes(*hashes)) for _ in range(3)), key=lambda pair: pair[0])
    said = {
        "version": importlib.metadata.version(kind.package),
        "features_s": features_s,
        "sketch_s": sketch_s,
        "hashed_s": None if done is None else hashed_s,
        "estimates": agreement(*map(peer.sketch, both)),
    }
    print(json.dumps(said))


if __name__ == "__main__":
    main()
