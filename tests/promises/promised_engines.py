"""One question to every engine: who stays, who goes for whom, which pairs there are. And the plainest answer to it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations
from typing import Any

import pyarrow as pa
from promised_corpora import rows_of

import neardup as nd

#: How many documents of each corpus the engines are asked about; all of the sample and of the small ones.
COUNTS = {"newswire": 199, "adzuna": 250, "clough": 100, "cornell": 100, "msrp": 400, "peps": 30, "r8": 1000}
COUNTS |= {"reuters": 1200, "saudinews": 250}


@dataclass(frozen=True)
class Question:
    """A recipe, what is chosen besides, and the engines that refuse it."""

    name: str
    choices: dict[str, Any]
    without: tuple[str, ...] = ()

    @property
    def needs_sample(self) -> bool:
        """Whether its features depend on the collection, which a window cannot know."""
        return self.choices.get("recipe") in ("cornell", "imatch") or "clip" in self.choices


QUESTIONS = (
    *(Question(name, {"recipe": name}) for name in ("default", "ddd", "jaccard", "cornell", "checksum", "imatch")),
    *(Question(name, {"recipe": name}) for name in ("lsh", "manber", "spotsigs", "supershingle")),
    Question("simhash", {"recipe": "simhash"}, ("spark",)),
    Question("terms", {"recipe": "terms"}, ("index", "spark")),
    Question("keep longest", {"recipe": "ddd", "keep": "longest"}),
    Question("keep shortest", {"threshold": 0.5, "keep": "shortest"}),
    Question("containment", {"measure": "containment", "threshold": 0.8, "jaccard_floor": 0.3}),
    Question("clip", {"features": "words:2", "clip": "df:2:0.5", "threshold": 0.7}),
    Question("second step", {"threshold": 0.5, "second_step": "edit >= 0.8"}),
)


def question_of(name: str) -> Question:
    """Return a question by its name."""
    return next(question for question in QUESTIONS if question.name == name)


@cache
def table_of(corpus: str, count: int) -> pa.Table:
    rows = rows_of(corpus)[:count]
    return pa.table({"id": [str(row["id"]) for row in rows], "text": [row["text"] for row in rows]})


Pairs = dict[tuple[str, str], float]


@dataclass(frozen=True)
class Answer:
    """What an engine says of documents; pairs are None where it gives none."""

    kept: set[str]
    dropped: dict[str, tuple[str, float]]
    pairs: Pairs | None


def in_memory(table: pa.Table, **options: Any) -> Answer:
    """The answer of ``nd.dedup``."""
    with nd.dedup(table, **options) as result:
        return of_result(result)


def of_result(result: nd.Result) -> Answer:
    """Return what a result says."""
    dropped = {drop.id: (drop.keeper, drop.similarity) for drop in result.dropped}
    return Answer(set(result.kept), dropped, {(pair.left, pair.right): pair.similarity for pair in result.pairs})


def in_a_window(table: pa.Table, *, keep: str = "first", needs_sample: bool = False, **options: Any) -> Answer:
    """The answer of an endless ``nd.Index`` that documents enter in keep order."""
    rows = table.select(["id", "text"]).to_pylist()
    sizes = {"longest": lambda row: -len(row["text"].encode()), "shortest": lambda row: len(row["text"].encode())}
    rows = sorted(rows, key=sizes[keep]) if keep in sizes else rows
    sample: dict[str, Any] = (
        {"sample": [row["text"] for row in table.select(["text"]).to_pylist()]} if needs_sample else {}
    )
    recipe = options.pop("recipe", None if "classifier" in options else "default")
    with nd.Index(recipe, window=None, **sample, **options) as index:
        verdicts = index.add_many(nd.Document(row["id"], row["text"]) for row in rows)
    kept = {verdict.id for verdict in verdicts if not verdict.is_duplicate}
    return Answer(kept, {v.id: (v.of or "", v.similarity or 0.0) for v in verdicts if v.is_duplicate}, None)


def check_equal(found: Answer, expected: Answer) -> None:
    assert found.kept == expected.kept
    assert found.dropped == expected.dropped
    if found.pairs is not None:
        assert found.pairs == expected.pairs


def plainly(texts: Mapping[str, str], *, n: int, threshold: Fraction, old: Mapping[str, str] | None = None) -> Answer:
    """All pairs compared, one after the other: sets of word n-grams, Jaccard in fractions, keepers as the rule says.

    Old documents come first, are all kept, and are not compared with each other.
    """
    sides = (("old", old or {}), ("new", texts))
    sets = {(side, name): _grams(text, n) for side, documents in sides for name, text in documents.items()}
    pairs: dict[tuple[tuple[str, str], tuple[str, str]], Fraction] = {}
    for left, right in combinations(sets, 2):
        if right[0] == "new" and (shared := len(sets[left] & sets[right])):
            similarity = Fraction(shared, len(sets[left]) + len(sets[right]) - shared)
            if similarity >= threshold:
                pairs[left, right] = similarity
    kept = [key for key in sets if key[0] == "old"]
    dropped: dict[str, tuple[str, float]] = {}
    for key in [key for key in sets if key[0] == "new"]:
        matches = [(pairs[keeper, key], keeper[1]) for keeper in kept if (keeper, key) in pairs]
        if matches:
            best = max(similarity for similarity, _ in matches)
            dropped[key[1]] = next(keeper for similarity, keeper in matches if similarity == best), float(best)
        else:
            kept.append(key)
    named_pairs = {(left[1], right[1]): float(similarity) for (left, right), similarity in pairs.items()}
    return Answer({name for side, name in kept if side == "new"}, dropped, None if old else named_pairs)


#: The question about new documents and old ones.
BOTH_SIDES: dict[str, Any] = {"features": "words:3", "threshold": 0.5}


def two_sides(corpus: str, count: int) -> tuple[pa.Table, pa.Table, Answer]:
    """The last fifth of a corpus as new documents, the rest as old ones, and the plainest answer to ``BOTH_SIDES``."""
    rows = table_of(corpus, count)
    rows = rows.filter(pa.array([text.isascii() for text in rows["text"].to_pylist()]))
    old, new = rows.slice(0, 4 * len(rows) // 5), rows.slice(4 * len(rows) // 5)
    texts, old_texts = (dict(zip(side["id"].to_pylist(), side["text"].to_pylist(), strict=True)) for side in (new, old))
    return new, old, plainly(texts, n=3, threshold=Fraction("0.5"), old=old_texts)


def _grams(text: str, n: int) -> set[tuple[str, ...]]:
    words = tuple(re.findall(r"\w+", text.casefold()))
    return {words[i : i + n] for i in range(max(len(words) - n + 1, 1))} if words else set()
