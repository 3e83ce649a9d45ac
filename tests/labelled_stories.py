"""Labelled pairs of texts from templates: reworded stories, and reports of one template with different facts."""

from __future__ import annotations

import random
from typing import Any

from trained_classifiers import Texts, texts

Row = tuple[str, str, int]
_BLOCK = 10


def labelled(blocks: int = 16, *, mistakes: int = 0) -> tuple[Texts, list[Row]]:
    """Texts in blocks of ten, and pairs within blocks: all pairs of one story, and others that share words.

    Parameters
    ----------
    blocks : int
        The number of blocks; no pair crosses them.
    mistakes : int
        Every N-th label is wrong; none for 0.
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


def write_labels(path: Any, rows: list[Row], column: str = "label") -> Any:
    """Write labels as CSV."""
    path.write_text(f"id1,id2,{column}\n" + "".join(f"{one},{other},{label}\n" for one, other, label in rows))
    return path
