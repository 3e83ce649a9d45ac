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
    with nd.Index(options.pop("recipe", None), window=None, **sample, **options) as index:
        verdicts = index.add_many(nd.Document(row["id"], row["text"]) for row in rows)
    kept = {verdict.id for verdict in verdicts if not verdict.is_duplicate}
    return Answer(kept, {v.id: (v.of or "", v.similarity or 0.0) for v in verdicts if v.is_duplicate}, None)


def hold_equal(found: Answer, expected: Answer) -> None:
    assert found.kept == expected.kept
    assert found.dropped == expected.dropped
    if found.pairs is not None:
        assert found.pairs == expected.pairs


def plainly(texts: Mapping[str, str], *, n: int, threshold: Fraction) -> Answer:
    """All pairs compared, one after the other: sets of word n-grams, Jaccard in fractions, keepers as the rule says."""
    sets = {name: _grams(text, n) for name, text in texts.items()}
    pairs: Pairs = {}
    for left, right in combinations(sets, 2):
        shared = len(sets[left] & sets[right])
        union = len(sets[left]) + len(sets[right]) - shared
        if shared and Fraction(shared, union) >= threshold:
            pairs[left, right] = shared / union
    kept: list[str] = []
    dropped: dict[str, tuple[str, float]] = {}
    for name in sets:
        found = [(pairs[keeper, name], keeper) for keeper in kept if (keeper, name) in pairs]
        if found:
            best = max(similarity for similarity, _ in found)
            dropped[name] = next((keeper, best) for similarity, keeper in found if similarity == best)
        else:
            kept.append(name)
    return Answer(set(kept), dropped, pairs)


#: The question about new documents and old ones.
BOTH_SIDES: dict[str, Any] = {"features": "words:3", "threshold": 0.5}


def two_sides(corpus: str, count: int) -> tuple[pa.Table, pa.Table, Answer]:
    """The last fifth of a corpus as new documents, the rest as old ones, and the plainest answer to ``BOTH_SIDES``."""
    rows = table_of(corpus, count)
    rows = rows.filter(pa.array([text.isascii() for text in rows["text"].to_pylist()]))
    old, new = rows.slice(0, 4 * len(rows) // 5), rows.slice(4 * len(rows) // 5)
    sides = [dict(zip(side["id"].to_pylist(), side["text"].to_pylist(), strict=True)) for side in (new, old)]
    return new, old, _plainly_against(*sides, n=3, threshold=Fraction("0.5"))


def _plainly_against(new: Mapping[str, str], old: Mapping[str, str], *, n: int, threshold: Fraction) -> Answer:
    """As ``plainly``, with old documents that all stay, come first, and are not compared with each other."""
    sets = {("old", name): _grams(text, n) for name, text in old.items()}
    sets |= {("new", name): _grams(text, n) for name, text in new.items()}
    kept, dropped = [one for one in sets if one[0] == "old"], dict[str, tuple[str, float]]()
    for side, name in sets:
        if side == "old":
            continue
        found: list[tuple[Fraction, str]] = []
        for keeper in kept:
            shared = len(sets[keeper] & sets[side, name])
            union = len(sets[keeper]) + len(sets[side, name]) - shared
            if shared and Fraction(shared, union) >= threshold:
                found.append((Fraction(shared, union), keeper[1]))
        if found:
            best = max(similarity for similarity, _ in found)
            dropped[name] = next(keeper for similarity, keeper in found if similarity == best), float(best)
        else:
            kept.append((side, name))
    return Answer({name for side, name in kept if side == "new"}, dropped, None)


def _grams(text: str, n: int) -> set[tuple[str, ...]]:
    words = tuple(re.findall(r"\w+", text.casefold()))
    return {words[i : i + n] for i in range(max(len(words) - n + 1, 1))} if words else set()
