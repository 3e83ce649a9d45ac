"""Which planted test items are found in training texts, beside the rules of other tools; and at what speed.

    contamination.py [contamination] [--train FILE] [--small]

The items are paragraphs of Python proposals, no two of them alike; the training texts are Reuters' newswire, into which
each item is planted once, in one of these ways:

    verbatim       as it is
    re-wrapped     in lines of seven words, quoted with >
    re-punctuated  in capitals, a dash between all words in the place of punctuation
    excerpt        its first 60%
    paraphrased    one word in six is another one
    boilerplate    not planted; it and a training text end with one sentence of 18 words
    absent         not planted

Beside it stand the rules that two tools publish, written down again here, not their programs: lm-eval's (any 13-gram of
words in lower case without punctuation) and datatrove's n-gram decontamination (any 12-gram).
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import string
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from measuring import NEARDUP, SHARED, Section, measure, note, run_sections, summarize, table

import neardup as nd

WAYS = ["verbatim", "re-wrapped", "re-punctuated", "excerpt", "paraphrased", "boilerplate", "absent"]
PLANTED = 5
NOTICE = "This text may be copied and passed on by anyone as long as this notice goes with each copy of it."
RULES = {"any 13-gram (lm-eval)": 13, "any 12-gram (datatrove)": 12}
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def texts_of(name: str) -> list[str]:
    """Return the texts of a corpus."""
    with gzip.open(SHARED / "data" / name / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        return [json.loads(line)["text"] for line in file]


def paragraphs(count: int, rng: random.Random) -> list[str]:
    """Return paragraphs of 40 to 120 words, of which no two have three words in a row of twenty in common."""
    found = [
        " ".join(words)
        for text in texts_of("peps")
        for paragraph in text.split("\n\n")
        if 40 <= len(words := paragraph.split()) <= 120
    ]
    kept = nd.dedup(found, features="words:3", threshold=0.05).kept
    return rng.sample([found[at] for at in kept], count)


def plant(text: str, way: str, rng: random.Random) -> str:
    """Return what stands of an item in a training text."""
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


def corpora(each: int) -> tuple[list[str], list[str], list[str]]:
    """Return the training texts, the items, and how each item was planted."""
    rng = random.Random(16)  # noqa: S311
    train, ways = texts_of("reuters"), [way for way in WAYS for _ in range(each)]
    items = paragraphs(len(ways), rng)
    places = rng.sample(range(len(train)), len(ways) + 1)
    for at, (item, way) in enumerate(zip(items, ways, strict=True)):
        if WAYS.index(way) < PLANTED:
            train[places[at]] += "\n" + plant(item, way, rng)
        elif way == "boilerplate":
            items[at] += " " + NOTICE
    train[places[-1]] += "\n" + NOTICE
    return train, items, ways


def ngram_matches(train: list[str], items: list[str], n: int) -> set[int]:
    """Return the items of which any n-gram of plain words stands in a training text."""

    def grams(text: str) -> set[tuple[str, ...]]:
        words = text.lower().translate(_PUNCTUATION).split()
        return {tuple(words[at : at + n]) for at in range(len(words) - n + 1)}

    there = set().union(*map(grams, train))
    return {at for at, item in enumerate(items) if not there.isdisjoint(grams(item))}


def contamination(args: argparse.Namespace) -> dict[str, Any]:
    """Return how many of each kind each rule finds, and what a large corpus takes."""
    train, items, ways = corpora(10 if args.small else 200)
    found = {}
    for share in (0.5, 0.3):
        hits = nd.check_contamination(train, items, at_least=share).contaminated
        found[f"neardup, {share} of the 13-grams"] = set(hits.tolist())
    found |= {name: ngram_matches(train, items, n) for name, n in RULES.items()}
    rows = [{"rule": name, **Counter(ways[at] for at in hits)} for name, hits in found.items()]
    results: dict[str, Any] = {"items_of_each_kind": len(ways) // len(WAYS), "rows": rows}
    if args.train:
        note(args.train)
        with tempfile.TemporaryDirectory() as folder:
            test = Path(folder, "items.jsonl")
            test.write_text("".join(json.dumps({"text": item}) + "\n" for item in items), "utf-8")
            command = [
                *NEARDUP,
                "contamination",
                args.train,
                "--test",
                test,
                "--items",
                Path(folder, "o.csv"),
                "--force",
            ]
            runs = [measure(command) for _ in range(args.runs)]
        results["speed"] = {
            "train": Path(args.train).name,
            "bytes": Path(args.train).stat().st_size,
            **summarize(runs),
        }
    return results


def found_table(results: dict[str, Any]) -> str:
    """Return how many items of each kind were found."""
    each = results["items_of_each_kind"]
    rows = [[row["rule"], *(row.get(way, 0) for way in WAYS)] for row in results["rows"]]
    return table([f"found of {each}", *WAYS], rows)


if __name__ == "__main__":
    run_sections(
        __doc__,
        {"contamination": Section(contamination, {"contamination": found_table})},
        lambda parser: parser.add_argument("--train", help="training texts to measure the speed with"),
    )
