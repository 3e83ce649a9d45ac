"""The naive twin of the sliding window: a list of documents, all of them compared with every arriving one.

Sets, lists and fractions; written from the rules of the flow, not from the library. ``QuickIndex`` gives the same by a
dictionary of features, for streams that are too long to compare all with all.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

import naive
import naive_learning
import numpy as np
from naive_kinds import Features, bands, feature_maker

from neardup.classifier.classifier import Classifier
from neardup.classifier.measurer import Measurer
from neardup.classifier.vector import NO_TIME, Records
from neardup.recipe import Recipe, load_recipe

HOUR = 3_600_000_000
_UNITS = {"s": 1_000_000, "m": 60_000_000, "h": HOUR, "d": 24 * HOUR}


class Expected(NamedTuple):
    """The expected verdict."""

    id: str
    kind: str
    of: str | None
    similarity: float | None
    flag: str
    counts: tuple[int, int, int] | None


def microseconds(timestamp: float | datetime | str) -> int:
    """Return a time in microseconds since 1970 (UTC); a time without a zone is in UTC."""
    if isinstance(timestamp, str):
        timestamp = datetime.fromisoformat(timestamp)
    if isinstance(timestamp, datetime):
        aware = timestamp if timestamp.tzinfo else timestamp.replace(tzinfo=UTC)
        return (aware - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    return round(Fraction(timestamp) * 1_000_000)


def width(window: str | int | float | timedelta | None) -> tuple[int | None, bool]:
    """Return W, None for endless, and whether it counts documents."""
    if window is None or window == "endless":
        return None, False
    if isinstance(window, timedelta):
        return window // timedelta(microseconds=1), False
    if isinstance(window, int):
        return window, True
    number, unit = re.fullmatch(r"([\d.]+) *([a-z]+)", str(window)).groups()  # type: ignore[union-attr]
    if unit == "documents":
        return int(number), True
    return int(Fraction(number) * _UNITS[unit]), False


_levenshtein = cache(naive.levenshtein)


@dataclass(eq=False)
class Item:
    """A document that arrived; ``t`` is its time and ``e`` the time by which it leaves, in units of the window."""

    id: str
    text: str
    features: Features
    t: int = 0
    e: int = 0
    flag: str = ""


class NaiveIndex:
    """The rules of the flow, step by step."""

    def __init__(
        self,
        recipe: Recipe | str = "default",
        *,
        window: str | int | float | timedelta | None = "24h",
        window_by: str = "time",
        against: str = "originals",
        now: Callable[[], float] = lambda: 0.0,
        sample: Sequence[str] = (),
    ) -> None:
        self.recipe = load_recipe(recipe) if isinstance(recipe, str) else recipe
        self.w, self.by_number = width(window)
        self.unit = HOUR if window_by == "hour" else 1
        self.w = self.w // self.unit if self.w is not None and not self.by_number else self.w
        self.against, self.now, self.features = against, now, feature_maker(self.recipe, sample)
        self.window: list[Item] = []
        self.clock: int | None = None
        self.pending: Item | None = None
        self.arrival: int | None = None
        self.arrived = 0
        self.judged: list[tuple[str, Expected]] = []

    def add(self, document: Any) -> Expected:
        expected = self._judge(document)
        self.judged.append((document.text, expected))
        return expected

    def _judge(self, document: Any) -> Expected:
        item = Item(document.id, document.text, self.features(document.text))
        self._place(item, document.timestamp)
        self.arrived += 1
        matches = self._partners(item)
        best = max(matches, key=lambda pair: pair[1], default=None)
        late = item.flag == "late"
        if not item.features:
            item.flag = "undecidable"
        elif not late and (best is None or self.against == "everything"):
            self._enter(item)
        if best is None and item.flag == "late":
            # By the exact text, among all that were ever judged; an original before a duplicate.
            equal = sorted((one for text, one in self.judged if text == item.text), key=lambda one: one.of is not None)
            if equal and equal[0].of is None:
                size = 64 if self.recipe.measure == "hamming" else len(item.features)
                return Expected(item.id, "exact", equal[0].id, 1.0, item.flag, (size, size, size))
            if equal:
                return equal[0]._replace(id=item.id, flag=item.flag)
        if best is None:
            return Expected(item.id, "original", None, None, item.flag, None)
        partner, similarity, counts = best
        kind = "exact" if partner.text == item.text else "near"
        return Expected(item.id, kind, partner.id, similarity, item.flag, counts)

    def add_many(self, documents: Iterable[Any]) -> list[Expected]:
        return [self.add(document) for document in documents]

    def query(self, text: str, k: int | None = None) -> list[tuple[str, float]]:
        """All that match at the clock's time, or the k nearest by the first measure; the most similar first."""
        item = Item("", text, self.features(text), t=self.arrived if self.by_number else self.clock or 0)
        matches = self._partners(item) if k is None else self._nearest(item)
        ranked = sorted(matches, key=lambda pair: -pair[1])
        return [(partner.id, similarity) for partner, similarity, _ in ranked[:k]]

    def remove(self, id: str) -> None:
        matches = next(item for item in self.window if item.id == id)
        self.window.remove(matches)

    def __iter__(self) -> Iterator[str]:
        return (item.id for item in self.window if self._is_in(item))

    def _place(self, item: Item, timestamp: Any) -> None:
        """Rules 1 to 6: give the item its time and its flag, and move the clock."""
        if self.by_number or self.w is None:
            item.t = item.e = self.clock = self.arrived
            return
        now = microseconds(self.now())
        if timestamp is None:
            now = self.arrival = now if self.arrival is None else max(self.arrival, now)
        t = (now if timestamp is None else microseconds(timestamp)) // self.unit
        if timestamp is not None and t > (now + HOUR) // self.unit:
            item.flag = "future"
            t = now // self.unit if self.clock is None else self.clock
        item.t = item.e = t
        if self.clock is None:
            self.clock = t
        elif t > self.clock + self.w:
            if self.pending is not None and abs(t - self.pending.t) <= self.w:
                self.clock = max(t, self.pending.t)
                self.pending.e = self.pending.t
                self.pending = None
            else:
                self.pending = item
                item.flag, item.e = "ahead", self.clock
        elif t < self.clock - self.w:
            item.flag = "late"
        else:
            self.clock = max(self.clock, t)
            if item.flag != "future":
                self.pending = None

    def _is_in(self, item: Item) -> bool:
        return self.w is None or self.clock is None or item.e >= self.clock - self.w

    def _enter(self, item: Item) -> None:
        self.window.append(item)

    def _near(self, item: Item) -> Iterator[tuple[Item, int, int, int]]:
        """Yield the possible partners in the window in order of arrival, with o, a and b."""
        for other in self.window:
            if self._is_in(other) and (self.w is None or abs(item.t - other.t) <= self.w):
                if self.recipe.measure == "hamming":
                    (left,), (right,) = item.features, other.features
                    yield other, 64 - naive.hamming(left, right), 64, 64
                else:
                    yield other, len(item.features & other.features), len(item.features), len(other.features)

    def _partners(self, item: Item) -> list[tuple[Item, float, tuple[int, int, int]]]:
        matches = []
        for other, *counts in self._near(item) if item.features else ():
            similarity = self._match(item, other, *counts)
            if similarity is not None:
                matches.append((other, similarity, (counts[0], counts[1], counts[2])))
        return matches

    def _nearest(self, item: Item) -> list[tuple[Item, float, tuple[int, int, int]]]:
        near = self._near(item) if item.features else ()
        return [(x, naive.similarity(self.recipe.measure, *c), (c[0], c[1], c[2])) for x, *c in near if c[0]]

    def _match(self, item: Item, other: Item, o: int, a: int, b: int) -> float | None:
        """Return the similarity of a matching pair, None for other pairs."""
        recipe = self.recipe
        floor = Fraction(str(recipe.jaccard_floor))
        if not naive.reaches(recipe.measure, o, a, b, recipe.exact_threshold):
            return None
        if floor and not naive.reaches("jaccard", o, a, b, floor):
            return None
        if recipe.search == "lsh" and not bands(item.text, recipe) & bands(other.text, recipe):
            return None
        return (
            naive.similarity(recipe.measure, o, a, b) if not recipe.second_step else self._second(item.text, other.text)
        )

    def _second(self, left: str, right: str) -> float | None:
        step = self.recipe.parsed_second_step
        assert step is not None
        if left == right:
            return 1.0
        if step.measure == "edit":
            a = b = max(len(left), len(right))
            o = a - _levenshtein(left, right)
            return o / a if Fraction(o, a) >= step.exact_threshold else None
        features_of = feature_maker(Recipe(features=step.features), ())
        o, a, b = len(features_of(left) & features_of(right)), len(features_of(left)), len(features_of(right))
        reached = naive.reaches(step.measure, o, a, b, step.exact_threshold)
        return naive.similarity(step.measure, o, a, b) if reached else None


class QuickIndex(NaiveIndex):
    """The same for measures of sets, with a dictionary from features to the documents in the window."""

    def __init__(self, *arguments: Any, **choices: Any) -> None:
        super().__init__(*arguments, **choices)
        self.holders: dict[Any, list[tuple[int, Item]]] = {}
        self.removed: set[Item] = set()

    def _enter(self, item: Item) -> None:
        super()._enter(item)
        for feature in item.features:
            self.holders.setdefault(feature, []).append((self.arrived, item))

    def remove(self, id: str) -> None:
        self.removed |= {item for item in self.window if item.id == id}
        super().remove(id)

    def _near(self, item: Item) -> Iterator[tuple[Item, int, int, int]]:
        shared: Counter[tuple[int, Item]] = Counter()
        for feature in item.features:
            if holders := self.holders.get(feature):
                holders[:] = [x for x in holders if x[1] not in self.removed and self._is_in(x[1])]
                shared.update(holders)
        at = float(self.recipe.exact_threshold)
        at = 1 / (1 + at) if self.recipe.measure == "euclidean" else at
        for (_, other), o in sorted(shared.items(), key=lambda x: x[0][0]):
            a, b = len(item.features), len(other.features)
            close = self.w is None or abs(item.t - other.t) <= self.w
            # Floating point skips pairs far below the threshold; fractions decide the rest.
            if close and naive.similarity(self.recipe.measure, o, a, b) > at - 1e-6:
                yield other, o, a, b


class NaiveClassifierIndex(NaiveIndex):
    """The rules of the flow with a classifier: every candidate is measured by itself, and g is its definition."""

    def __init__(self, classifier: Classifier, **choices: Any) -> None:
        super().__init__(classifier.candidate_rule, **choices)
        self.classifier = classifier
        self._measurer = Measurer(classifier.vector, classifier.statistics)
        self._documents: dict[str, Any] = {}

    def add(self, document: Any) -> Expected:
        self._documents[document.id] = document
        return super().add(document)

    def query(self, text: str, k: int | None = None) -> list[tuple[str, float]]:
        self._documents[""] = None
        return super().query(text, k)

    def _match(self, item: Item, other: Item, o: int, a: int, b: int) -> float | None:
        candidate_rule = self.classifier.candidate_rule
        if not naive.reaches(candidate_rule.measure, o, a, b, Fraction(str(candidate_rule.threshold))):
            return None
        if item.text == other.text:
            return 1.0
        g = self.g_of(item, other)
        if g < self.classifier.cut:
            return None
        probability = 1 / (1 + math.exp(self.classifier.machine.a * g + self.classifier.machine.b))
        return min(round(probability * 10**9), 10**9 - 1) / 10**9

    def g_of(self, item: Item, other: Item) -> float:
        """g of two documents, by the formula of support vector machines."""
        known = [self._documents[each.id] for each in (item, other)]
        titles = [document.title or None if document else None for document in known]
        times = [
            NO_TIME if document is None or document.timestamp is None else microseconds(document.timestamp)
            for document in known
        ]
        records = Records([item.text, other.text], titles, np.array(times))
        x = self._measurer.measure(self._measurer.prepare(records), np.array([0]), np.array([1]))[0]
        return naive_learning.g(self.classifier.machine, x.tolist())
