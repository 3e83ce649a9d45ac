"""Classifiers fitted on texts of a few templates, some with different facts."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.classifier.classifier import Classifier, parse_candidate_rule
from neardup.classifier.measurer import Measurer
from neardup.classifier.records import read_records
from neardup.classifier.vector import Vector, vector_statistics
from neardup.documents import corpus_of
from neardup.training.fit import MachineOptions, extract_machine, fit

SETS = "jaccard(words:1), containment(words:2), length_ratio"
FACTS = "jaccard(words:1), jaccard(words:2), numbers, word_edit"
WEIGHED = "dice(words:1), cosine(words:1:tfidf), numbers"
DATED = "jaccard(words:1), numbers, title, hours_apart"
RULE = "jaccard(words:1) >= 0.2"

_PLACES = ["oslo", "lima", "kyoto", "accra", "turin"]
_WORDS = [f"word{i}" for i in range(60)]


@dataclass(frozen=True)
class Texts:
    """Documents, and the story of each: documents of one story are duplicates."""

    rows: list[dict[str, Any]]
    story: list[int]

    @property
    def table(self) -> pa.Table:
        return pa.table({name: [row[name] for row in self.rows] for name in self.rows[0]})


def texts(count: int, seed: int = 1) -> Texts:
    """Stories in one or more wordings, reports of one template, and copies."""
    rng = random.Random(seed)
    rows: list[dict[str, Any]] = []
    story: list[int] = []
    for i in range(count):
        kind = rng.random()
        if rows and kind < 0.4:
            source = rng.randrange(len(rows))
            words = str(rows[source]["text"]).split()
            for _ in range(rng.choice([0, 1, 1, 2])):
                words[rng.randrange(len(words))] = rng.choice(_WORDS)
            text, number, hour = " ".join(words), story[source], rows[source]["hour"] + rng.randrange(3)
        elif kind < 0.7:
            place, figure, other = rng.choice(_PLACES), rng.randrange(100, 999), rng.randrange(10, 99)
            text, number, hour = (
                f"{place} port: {figure} ships came in, up {other} from last week",
                i,
                rng.randrange(500),
            )
        else:
            text, number, hour = " ".join(rng.choices(_WORDS, k=rng.randint(6, 14))), i, rng.randrange(500)
        title = None if rng.random() < 0.2 else " ".join(text.split()[:4])
        time = None if rng.random() < 0.2 else f"2024-03-{1 + hour // 24:02d}T{hour % 24:02d}:00:00Z"
        rows.append({"id": f"d{i}", "text": text, "title": title, "time": time, "hour": hour})
        story.append(number)
    return Texts(rows, story)


def fitted(
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.bool_],
    kernel: str = "linear",
    cost: float = 1.0,
    gamma: float | None = None,
) -> Any:
    """A fitted pipeline; gamma is that of scikit-learn, by default 1 / columns."""
    return fit(x, y, MachineOptions(kernel, cost, (gamma or 1 / x.shape[1]) * x.shape[1]))


@cache
def trained(vector: str = SETS, kernel: str = "linear", candidate_rule: str = RULE, content: str = "") -> Classifier:
    """A classifier fitted on pairs of 60 texts."""
    known, rng = texts(60, seed=7), np.random.default_rng(3)
    parsed, corpus = Vector.parse(vector), corpus_of(known.table)
    statistics = vector_statistics(parsed, corpus, threads=1)
    # All pairs within a story, and as many across stories.
    same = [(i, j) for j in range(60) for i in range(j) if known.story[i] == known.story[j]]
    others = [(i, j) for j in range(60) for i in range(j) if known.story[i] != known.story[j]]
    pairs = np.array(same + [others[k] for k in rng.choice(len(others), len(same), replace=False)])
    y = np.arange(len(pairs)) < len(same)
    records = read_records(known.table, [row["text"] for row in known.rows], parsed)
    measurer = Measurer(parsed, statistics)
    x = measurer.measure(measurer.prepare(records), pairs[:, 0], pairs[:, 1])
    machine = extract_machine(fitted(x, y, kernel), -1.5, 0.1)
    return Classifier(
        candidate_rule=parse_candidate_rule(candidate_rule, content=content),
        vector=parsed,
        statistics=statistics,
        machine=machine,
        scores=machine.score(x) + rng.normal(0, 0.7, len(x)),
        labels=y,
        training={"pairs": len(x)},
    )
