"""An exploration put together by hand: every part of it is there, and its texts are hostile."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from neardup.documents.records import Names
from neardup.exploration.advice import Advice, Separation
from neardup.exploration.curve import Curve, Point
from neardup.exploration.examples import ExamplePair, Examples
from neardup.exploration.exploration import Exploration
from neardup.exploration.profile import (
    Copies,
    CopyGroup,
    CorpusProfile,
    LargeFamily,
    Lengths,
    ScriptCount,
    Scripts,
)
from neardup.exploration.sample import Sample
from neardup.exploration.shared_passages import Boilerplate, Passage
from neardup.exploration.templates import Slot, Template
from neardup.exploration.valley import Valley
from neardup.exploration.views import BINS, CUTOFFS, View
from neardup.keep.pairs import PairArrays
from neardup.pages.diff import ShownDocument
from neardup.recipe import Recipe

#: What must stay text, whatever it says.
HOSTILE = (
    "<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\"> <b>bold</b> </style></main>"
    "</details></script> --> ]]> \u202e desrever \u0000 \ud800 end"
)
ARABIC = "قال المتحدث باسم الوزارة إن الميناء سيفتح أبوابه يوم الأحد المقبل"
CHINESE = "港口将于星期日重新开放，发言人说。"


def view(features: str, counts: tuple[int, ...], pairs: int, **values: Any) -> View:
    """A histogram; what is not in it shares nothing."""
    recipe = Recipe(name="explored", features=features, **values.pop("recipe", {}))
    edges = [0] * (BINS + 1)
    edges[BINS] = counts[-1]
    given: dict[str, Any] = {
        "name": features,
        "recipe": recipe,
        "n": int(features.partition(":")[2]),
        "documents": 40,
        "empty": 1,
        "pairs": pairs,
        "zero": pairs - sum(counts),
        "counts": counts,
        "edges": tuple(edges),
        "valley": Valley(0.2, 0.5, 0.35, pairs - 40, 30, 12.5, features != "words:4"),
        "typical": 120,
    }
    return View(**(given | values))


def falling(n: int) -> tuple[int, ...]:
    """Many pairs of little similarity, few in the middle, some at the end."""
    low = (max(0, 80 // n - 9 * n * at) for at in range(30))
    return (*low, *(3 if at % 9 == 0 else 0 for at in range(30, 90)), *[2] * 10)


def shown(name: str, text: str = HOSTILE, title: str = "") -> ShownDocument:
    return ShownDocument(name, title, text, "2024-01-02")


def examples() -> tuple[Examples, ...]:
    """Two pairs for each cutoff but the last, which has none."""
    found = []
    for cutoff in CUTOFFS:
        pairs = [
            ExamplePair(
                shown(f"left-{cutoff:g}-{at}", f"{HOSTILE} the same words on both sides {at}", f"Left {HOSTILE}"),
                shown(f"right-{cutoff:g}-{at}", f"{ARABIC} the same words on both sides {CHINESE}", ""),
                cutoff + at / 1000,
                "one.jsonl" if at else "",
                "two.jsonl" if at else "",
                "the same words on both sides" if at else "",
                6 if at else 0,
            )
            for at in range(2)
        ]
        last = cutoff == CUTOFFS[-1]
        band = cutoff - 0.02, 1.01 if last else cutoff + 0.02
        found.append(Examples(cutoff, *band, 0 if last else 34, "sample", () if last else tuple(pairs)))
    return tuple(found)


def curve(recipe: Recipe, *, complete: bool = True) -> Curve:
    """Fewer pairs and dropped documents the higher the threshold; only the recipe's own where pairs are too many."""
    points = [
        Point(
            threshold=at / 100,
            dropped=round(20 * (1.1 - at / 100)),
            pairs=round(300 * (1.05 - at / 100)) if complete else None,
            families=4 if complete else None,
            largest_family=6 if complete else None,
        )
        for at in range(20, 101)
        if complete or at / 100 == recipe.threshold
    ]
    return Curve(recipe=recipe, documents=40, asked=0.2, complete=complete, most_pairs=1_000_000, points=tuple(points))


def lengths() -> Lengths:
    parts = (0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)
    sizes = (0, 1, 12, 80, 140, 210, 390, 600, 812)
    return Lengths(
        40,
        (10, 20, 50, 100, 200, 500, 1000),
        (2, 3, 10, 14, 8, 2),
        tuple(zip(parts, sizes, strict=True)),
        151.5,
        6_060,
        1,
        0,
    )


def profile() -> CorpusProfile:
    """Each kind of thing that a corpus can be made of."""
    scripts = ScriptCount("Latin", 30, 0.75, ("a", HOSTILE)), ScriptCount("Arabic", 10, 0.25, ("b",))
    passages = Passage(HOSTILE, 12, 9, 8, 7, 0.225, ("a", "b")), Passage(ARABIC * 12, 120, 5, 5, None, 0.125, ("b",))
    slots = Slot((("Monday", 4), (HOSTILE, 2), ("", 1)), 5), Slot((("seven", 7),), 1)
    pieces = (("On ", -1), (HOSTILE, 0), (" the harbour opened at ", -1), ("", 1), (HOSTILE, -1))
    return CorpusProfile(
        40,
        12_345,
        lengths(),
        Scripts(40, scripts),
        Copies(5, 2, 1_500, (CopyGroup(4, 300, ("a", "b"), HOSTILE), CopyGroup(3, 300, ("c",), ARABIC))),
        Boilerplate(passages, 5, 5, 8, 12, 0.18),
        (Template(1, 7, 6, ("a", HOSTILE), 60, 0.91, pieces, slots),),
        (
            LargeFamily(1, 7, 20, 0.46, 0.71, False, ("a", "b"), HOSTILE),
            LargeFamily(2, 3, 3, 1.0, 1.0, True, ("c",), ARABIC),
        ),
        4,
    )


def explored(**changes: Any) -> Exploration:
    """An exploration of 40 documents, two of which are not in the sample."""
    idf = {"weights": "idf", "measure": "weighted_jaccard"}
    weighted = view("words:3", falling(2), 703, recipe=idf, name="words:3, idf")
    views = (*(view(f"words:{n}", falling(n), 703) for n in range(1, 5)), weighted)
    advised = Recipe(name="explored", features="words:3", threshold=0.35)
    names = Names(np.arange(40), pa.array([f"d{at}" for at in range(40)]))
    given: dict[str, Any] = {
        "sample": Sample(
            positions=np.arange(38), texts=[HOSTILE] * 38, names=names, documents=40, bytes=12_345, seed=3
        ),
        "views": views,
        "pairs": PairArrays(np.array([0]), np.array([1]), np.array([0.5])),
        "advice": Advice(
            recipe=advised,
            reason=f"The valley of words:3 is the deepest. {HOSTILE}",
            command=("dedup", "it's here.jsonl", "--features", "words:3", "--threshold", "0.35", "-o", "x.jsonl"),
            separations=(
                ("words:1", Separation(0.3, 4, None)),
                ("words:3", Separation(0.05, 12, 0.61)),
            ),
            documents=400,
        ),
        "curve": curve(advised),
        "profile": profile(),
        "examples": examples(),
        "suspects": examples()[4].pairs,
        "notes": (f"Two documents were not drawn. {HOSTILE}",),
        # No file is called by what no name of a file can hold.
        "inputs": (f"it's here.jsonl {HOSTILE}".replace("\0", "").replace("\ud800", ""),),
        "stages": (
            {"name": "read", "wall_s": 0.1, "cpu_s": 0.1, "serial_cpu_s": 0.1, "peak_memory_bytes": 250_000_000},
        ),
        "version": "0.0.0",
    }
    return Exploration(**(given | changes))
