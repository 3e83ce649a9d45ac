"""Recall of planted test items in training texts beside the rules of other tools, and the speed.

    contamination.py [contamination] [--small]

The items are dissimilar paragraphs of Python proposals. Each is planted once into a training text, an item of Reuters'
newswire, in one of these ways:

    verbatim       unchanged
    re-wrapped     in lines of seven words, quoted with >
    re-punctuated  in capitals, with dashes between all words instead of punctuation
    excerpt        its first 60%
    paraphrased    one word in six replaced
    boilerplate    not planted; the item and a training text end with the same sentence of 21 words
    absent         not planted

The speed is that of a search of N500k for all of these items.

The published rules of two tools are reimplemented here; their programs do not run: lm-eval (any 13-gram of words in
lower case without punctuation) and datatrove's n-gram decontamination (any 12-gram).
"""

from __future__ import annotations

import argparse
import json
import random
import string
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from corpora import corpus, shared_records
from harness import NEARDUP, Row, measure_runs, print_progress, run_sections, section

import neardup as nd

WAYS = ["verbatim", "re-wrapped", "re-punctuated", "excerpt", "paraphrased", "boilerplate", "absent"]
#: Of which the first five put the item into a training text.
PLANTED = 5
NOTICE = "This text may be copied and passed on by anyone as long as this notice goes with each copy of it."
RULES = {"any 13-gram (lm-eval)": 13, "any 12-gram (datatrove)": 12}
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def paragraphs(count: int, rng: random.Random) -> list[str]:
    """Return paragraphs of 40 to 120 words, no two of which share a twentieth of their word 3-grams."""
    candidates = [
        " ".join(words)
        for record in shared_records("peps")
        for paragraph in record["text"].split("\n\n")
        if 40 <= len(words := paragraph.split()) <= 120
    ]
    kept = nd.dedup(candidates, features="words:3", threshold=0.05).kept
    return rng.sample([candidates[row] for row in kept], count)


def planted_text(text: str, way: str, rng: random.Random) -> str:
    words = text.split()
    if way == "re-wrapped":
        return "\n> ".join(" ".join(words[at : at + 7]) for at in range(0, len(words), 7))
    if way == "re-punctuated":
        return " - ".join(word.strip(string.punctuation) for word in text.upper().split())
    if way == "excerpt":
        return " ".join(words[: round(0.6 * len(words))])
    if way == "paraphrased":
        for at in range(rng.randrange(6), len(words), 6):
            words[at] = rng.choice(["however", "indeed", "rather", "often", "perhaps"])
    return " ".join(words)


def planted_corpus(items_per_way: int) -> tuple[list[str], list[str], list[str]]:
    """Return the training texts, the items, and the way in which each item is planted."""
    rng = random.Random(16)  # noqa: S311
    train = [record["text"] for record in shared_records("reuters")]
    ways = [way for way in WAYS for _ in range(items_per_way)]
    items = paragraphs(len(ways), rng)
    places = rng.sample(range(len(train)), len(ways) + 1)
    for at, (item, way) in enumerate(zip(items, ways, strict=True)):
        if WAYS.index(way) < PLANTED:
            train[places[at]] += "\n" + planted_text(item, way, rng)
        elif way == "boilerplate":
            items[at] += " " + NOTICE
    train[places[-1]] += "\n" + NOTICE
    return train, items, ways


def ngram_matches(train: list[str], items: list[str], n: int) -> set[int]:
    """Return the rows of items that share an n-gram of plain words with a training text."""

    def grams(text: str) -> set[tuple[str, ...]]:
        words = text.lower().translate(_PUNCTUATION).split()
        return {tuple(words[at : at + n]) for at in range(len(words) - n + 1)}

    train_grams = set().union(*map(grams, train))
    return {at for at, item in enumerate(items) if not train_grams.isdisjoint(grams(item))}


@section(
    "contamination",
    f"found of 200 | {' | '.join(WAYS)}",
    " | ".join(["{rule}", *(f"{{found[{way}]}}" for way in WAYS)]),
)
def measure_contamination(args: argparse.Namespace) -> Row:
    train, items, ways = planted_corpus(10 if args.small else 200)
    hits: dict[str, Iterable[int]] = {
        f"neardup, {share} of the 13-grams": nd.check_contamination(train, items, at_least=share).contaminated.tolist()
        for share in (0.5, 0.3)
    }
    hits |= {name: ngram_matches(train, items, n) for name, n in RULES.items()}
    counts = {rule: Counter(ways[at] for at in found) for rule, found in hits.items()}
    rows = [{"rule": rule, "found": {way: found[way] for way in WAYS}} for rule, found in counts.items()]
    train_file = corpus("G10k" if args.small else "N500k")
    print_progress(train_file.name)
    with tempfile.TemporaryDirectory() as folder:
        test = Path(folder, "items.jsonl")
        test.write_text("".join(json.dumps({"text": item}) + "\n" for item in items), "utf-8")
        output = ["--items", Path(folder, "o.csv"), "--force"]
        speed = measure_runs([*NEARDUP, "contamination", train_file, "--test", test, *output], args.runs)
    speed |= {"train": train_file.name, "bytes": train_file.stat().st_size}
    return {"items_of_each_kind": len(ways) // len(WAYS), "rows": rows, "speed": speed}


if __name__ == "__main__":
    run_sections(__doc__)
