"""Hand-made classifiers, so that no test of their use depends on a training, and texts that they tell apart."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from neardup.classifier.classifier import Classifier, Machine, parse_candidate_rule
from neardup.classifier.vector import Vector, vector_statistics
from neardup.documents import corpus_of

SETS = "jaccard(words:1), containment(words:2), length_ratio"
FACTS = "jaccard(words:1), numbers, names, word_edit"
WEIGHED = "dice(words:1), cosine(words:1:tfidf), edit"
DATED = "jaccard(words:1), hours_apart, title"
RULE = "jaccard(words:1) >= 0.2"

#: Texts that document frequencies are taken from.
_SAMPLE = ["the fox ran.", "the dog said", "Owl and fox", "東京 fox", "dog dog dog", "is the owl there"]
_PLACES = ["oslo", "lima", "kyoto", "accra", "turin"]
_WORDS = [f"word{i}" for i in range(60)]


@cache
def make_classifier(
    vector: str = SETS,
    kernel: str = "linear",
    *,
    candidate_rule: str = RULE,
    content: str = "",
    weights: tuple[float, ...] = (),
    bias: float = -0.5,
    gamma: float = 0.5,
    cut: float = 0.0,
    steep: float = 1.7,
) -> Classifier:
    """A classifier with these weights, or three support vectors for ``rbf``; ``steep``: how fast p rises with g."""
    parsed = Vector.parse(vector)
    r, linear = len(parsed), kernel == "linear"
    machine = Machine(
        fill=np.linspace(0.2, 0.8, r),
        center=np.full(r, 0.45),
        scale=np.linspace(0.3, 0.5, r),
        gamma=0.0 if linear else gamma,
        support=np.array([weights or np.linspace(1.0, 0.4, r)])
        if linear
        else np.vstack([np.ones(r), -np.ones(r), np.linspace(-1, 1, r)]),
        dual=np.ones(1) if linear else np.array([1.5, -1.0, 0.25]),
        intercept=bias,
        a=-steep,
        b=0.1,
    )
    return Classifier(
        candidate_rule=parse_candidate_rule(candidate_rule, content=content),
        vector=parsed,
        statistics=vector_statistics(parsed, corpus_of(pa.table({"text": _SAMPLE})), threads=1),
        machine=machine,
        scores=np.array([-1.0, 0.5, 1.0]),
        labels=np.array([False, True, True]),
        cut=cut,
        training={"pairs": 3},
    )


@dataclass(frozen=True)
class Texts:
    """Documents, and the story of each: documents of one story are duplicates."""

    rows: list[dict[str, Any]]
    story: list[int]

    @property
    def table(self) -> pa.Table:
        return pa.Table.from_pylist(self.rows)


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
            text = f"{place} port: {figure} ships came in, up {other} from last week"
            number, hour = i, rng.randrange(500)
        else:
            text, number, hour = " ".join(rng.choices(_WORDS, k=rng.randint(6, 14))), i, rng.randrange(500)
        title = None if rng.random() < 0.2 else " ".join(text.split()[:4])
        time = None if rng.random() < 0.2 else f"2024-03-{1 + hour // 24:02d}T{hour % 24:02d}:00:00Z"
        rows.append({"id": f"d{i}", "text": text, "title": title, "time": time, "hour": hour})
        story.append(number)
    return Texts(rows, story)


#: Labelled pairs: two ids, and 1 for duplicates.
Row = tuple[str, str, int]
_BLOCK = 10


def labelled(blocks: int = 16, *, mistakes: int = 0) -> tuple[Texts, list[Row]]:
    """Texts in blocks of ten, and pairs within blocks: all pairs of one story, and others that share words.

    Every label number ``mistakes`` is wrong; none for 0.
    """
    rng = random.Random(5)
    rows: list[dict[str, Any]] = []
    story: list[int] = []
    pairs: list[Row] = []
    for block in range(blocks):
        known, first = texts(_BLOCK, seed=block), len(rows)
        rows += [row | {"id": f"d{first + at}"} for at, row in enumerate(known.rows)]
        story += [first + of for of in known.story]
        words = [set(str(row["text"]).split()) for row in known.rows]
        for j in range(_BLOCK):
            for i in range(j):
                same = known.story[i] == known.story[j]
                alike = len(words[i] & words[j]) / len(words[i] | words[j])
                if same or (alike > 0.25 and rng.random() < 0.5):
                    wrong = mistakes and len(pairs) % mistakes == mistakes - 1
                    pairs.append((f"d{first + i}", f"d{first + j}", int(same != bool(wrong))))
    return Texts(rows, story), pairs


def write_labels(path: Path, rows: list[Row]) -> Path:
    """Write labels as CSV."""
    path.write_text("id1,id2,label\n" + "".join(f"{one},{other},{label}\n" for one, other, label in rows))
    return path
