"""Draws the pairs of documents that a reader judges, and shows them: two texts and their differences.

    judging.py draw CORPUS   writes judgements/CORPUS.csv with ids and strata and no label, unless it is there
    judging.py show CORPUS   prints each pair of it to be read and judged

The label is 1 where one of the two may go without the loss of an original (the same item re-sent, corrected,
edited, extended), 0 where the form is the same and the facts are others, and ? where the reader cannot tell.
"""

from __future__ import annotations

import argparse
import csv
import difflib
import gzip
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import neardup as nd

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
JUDGEMENTS = Path(__file__).resolve().parent / "judgements"
SEED = 20260611
#: Lower ends of the strata: Jaccard of sets of word 5-grams.
STRATA = [0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
#: A range of Jaccard that is read whole: where the threshold of a default may lie.
CENSUS = {"reuters": (0.75, 0.9), "adzuna": None}
CENSUS_NAME = "read whole"
#: The stratum of pairs with a Jaccard below 0.3 of which one text holds at least half of the other's 5-grams.
CONTAINED = "contained"
#: Pairs to draw of each stratum, and of those in it that have a short text: they behave otherwise.
DRAWN = {"reuters": 9, "adzuna": 5}
DRAWN_SHORT = {"reuters": 8, "adzuna": 0}
SHORT = "short"
#: A text of fewer words is short.
SHORT_WORDS = 20

Pair = tuple[str, str]


def documents(corpus: str) -> dict[str, dict[str, Any]]:
    """Return the documents of a corpus by id, in its order."""
    with gzip.open(SHARED / corpus / f"{corpus}.jsonl.gz", "rt", encoding="utf-8") as file:
        return {row["id"]: row for row in map(json.loads, file)}


def strata(corpus: str, edges: Sequence[float] = STRATA) -> dict[str, list[Pair]]:
    """Return the pairs of each stratum, sorted; a stratum is named by its lower end."""
    texts = documents(corpus)
    names, bodies = list(texts), [row["text"] for row in texts.values()]
    found: dict[str, list[Pair]] = {name: [] for name in [*map(str, edges), CONTAINED]}
    jaccard = nd.dedup(bodies, features="words:5", threshold=edges[0]).pairs
    for left, right, similarity in jaccard:
        low = max(low for low in edges if low <= similarity)
        found[str(low)].append((names[left], names[right]))
    known = {(left, right) for left, right, _ in jaccard}
    for left, right, _ in nd.dedup(bodies, features="words:5", measure="containment", threshold=0.5).pairs:
        if (left, right) not in known:
            found[CONTAINED].append((names[left], names[right]))
    return {stratum: sorted(pairs) for stratum, pairs in found.items()}


def is_short(texts: dict[str, dict[str, Any]], pair: Pair) -> bool:
    """Return whether one of two texts is short."""
    return min(len(texts[name]["text"].split()) for name in pair) < SHORT_WORDS


def read_judgements(corpus: str) -> list[dict[str, str]]:
    """Return the rows of a corpus's judgements: id1, id2, stratum, label, why."""
    with open(JUDGEMENTS / f"{corpus}.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def draw(corpus: str) -> None:
    """Write the pairs to judge; an existing file stays."""
    path = JUDGEMENTS / f"{corpus}.csv"
    if path.exists():
        raise SystemExit(f"{path.name} is there; its judgements would be lost")
    rng = random.Random(SEED)  # noqa: S311
    texts, drawn = documents(corpus), {}
    for stratum, pairs in strata(corpus).items():
        drawn[stratum] = rng.sample(pairs, min(DRAWN[corpus], len(pairs)))
    for stratum, pairs in strata(corpus).items():
        if stratum != CONTAINED and float(stratum) >= 0.5:
            rest = [pair for pair in pairs if pair not in drawn[stratum] and is_short(texts, pair)]
            drawn[f"{stratum} {SHORT}"] = rng.sample(rest, min(DRAWN_SHORT[corpus], len(rest)))
    if (census := CENSUS[corpus]) is not None:
        known = {pair for pairs in drawn.values() for pair in pairs}
        band = strata(corpus, [census[0], census[1]])[str(census[0])]
        drawn[CENSUS_NAME] = [pair for pair in band if pair not in known]
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["id1", "id2", "stratum", "label", "why"])
        for stratum, pairs in drawn.items():
            writer.writerows([left, right, stratum, "", ""] for left, right in sorted(pairs))


def show(corpus: str) -> None:
    """Print every pair with its differences."""
    texts = documents(corpus)
    for number, row in enumerate(read_judgements(corpus), 1):
        left, right = texts[row["id1"]], texts[row["id2"]]
        print(f"\n===== {number}. {row['id1']} / {row['id2']}, stratum {row['stratum']}, {row['label'] or '-'}")
        for document in (left, right):
            about = [str(document[key]) for key in ("timestamp", "title", "company", "location") if document.get(key)]
            print("     " + " | ".join(about))
        print("\n".join(differences(left["text"].split(), right["text"].split())))


def differences(left: list[str], right: list[str]) -> list[str]:
    """Return the words of two texts in lines: both have them, the left has them, the right has them."""
    lines = []
    for kind, i, j, k, m in difflib.SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if kind == "equal":
            lines.append("  = " + " ".join(left[i:j]))
        else:
            lines += ["  < " + " ".join(left[i:j])] * (j > i) + ["  > " + " ".join(right[k:m])] * (m > k)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["draw", "show"])
    parser.add_argument("corpus", choices=list(DRAWN))
    options = parser.parse_args()
    (draw if options.what == "draw" else show)(options.corpus)


if __name__ == "__main__":
    main()
