"""Recall of planted test items in training texts beside the rules of other tools, and the speed.

    contamination.py [contamination] [--train FILE] [--small]

The items are dissimilar paragraphs of Python proposals. Each is planted once into a training text, an item of Reuters'
newswire, in one of these ways:

    verbatim       unchanged
    re-wrapped     in lines of seven words, quoted with >
    re-punctuated  in capitals, with dashes between all words instead of punctuation
    excerpt        its first 60%
    paraphrased    one word in six replaced
    boilerplate    not planted; the item and a training text end with the same sentence of 18 words
    absent         not planted

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
from pathlib import Path
from typing import Any

from corpora import shared_records
from measuring import NEARDUP, Section, markdown_table, measure, print_progress, run_sections, summarize

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
    """Return an item as it is planted into a training text."""
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


def measure_contamination(args: argparse.Namespace) -> dict[str, Any]:
    """Return how many items of each way each rule finds, and what a run on a large corpus costs."""
    train, items, ways = planted_corpus(10 if args.small else 200)
    found_by_rule = {}
    for share in (0.5, 0.3):
        hits = nd.check_contamination(train, items, at_least=share).contaminated
        found_by_rule[f"neardup, {share} of the 13-grams"] = set(hits.tolist())
    found_by_rule |= {name: ngram_matches(train, items, n) for name, n in RULES.items()}
    rows = [{"rule": name, **Counter(ways[at] for at in hits)} for name, hits in found_by_rule.items()]
    results: dict[str, Any] = {"items_of_each_kind": len(ways) // len(WAYS), "rows": rows}
    if args.train:
        print_progress(args.train)
        with tempfile.TemporaryDirectory() as folder:
            test = Path(folder, "items.jsonl")
            test.write_text("".join(json.dumps({"text": item}) + "\n" for item in items), "utf-8")
            output = ["--items", Path(folder, "o.csv"), "--force"]
            command = [*NEARDUP, "contamination", args.train, "--test", test, *output]
            runs = [measure(command) for _ in range(args.runs)]
        train_file = Path(args.train)
        results["speed"] = {"train": train_file.name, "bytes": train_file.stat().st_size, **summarize(runs)}
    return results


def found_table(results: dict[str, Any]) -> str:
    """Return the number of items found by each rule, by way of planting."""
    per_way = results["items_of_each_kind"]
    rows = [[row["rule"], *(row.get(way, 0) for way in WAYS)] for row in results["rows"]]
    return markdown_table([f"found of {per_way}", *WAYS], rows)


if __name__ == "__main__":
    run_sections(
        __doc__,
        {"contamination": Section(measure_contamination, {"contamination": found_table})},
        lambda parser: parser.add_argument("--train", help="training texts to measure the speed on"),
    )
