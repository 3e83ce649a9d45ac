"""Labelled pairs of texts made of templates: stories told again, and reports of the same form with other facts."""

from __future__ import annotations

import random
from typing import Any

from trained import Texts, texts

Row = tuple[str, str, int]


def labelled(count: int = 120, seed: int = 1) -> tuple[Texts, list[Row]]:
    """Texts, all pairs of one story, and pairs of others that share words."""
    known = texts(count, seed)
    words = [set(str(row["text"]).split()) for row in known.rows]
    rng = random.Random(seed)
    rows: list[Row] = []
    for j in range(count):
        for i in range(j):
            same = known.story[i] == known.story[j]
            close = len(words[i] & words[j]) / len(words[i] | words[j]) > 0.25
            if same or (close and rng.random() < 0.1):
                rows.append((f"d{i}", f"d{j}", int(same)))
    return known, rows


def write_labels(path: Any, rows: list[Row], column: str = "label") -> Any:
    """Write labels as CSV."""
    path.write_text(f"id1,id2,{column}\n" + "".join(f"{one},{other},{label}\n" for one, other, label in rows))
    return path
