"""Pairs of an Arabic news crawl with vowel marks compared and with marks left out, as the normal forms do.

    vowel_marks.py [vowel-marks]

To be compared, each mark is replaced by a letter of its own, of another script.
"""

from __future__ import annotations

import argparse
import unicodedata

from corpora import shared_records
from harness import Row, run_sections, section

import neardup as nd

MARKS = [*range(0x610, 0x61B), 0x640, *range(0x64B, 0x653), *range(0x656, 0x65F), 0x670, *range(0x6D6, 0x6DD)]
LETTERS = {mark: chr(0x10D0 + number) for number, mark in enumerate(MARKS)}


@section(
    "vowel-marks",
    "threshold | pairs with marks compared | with marks left out | more | lost | dropped with marks compared"
    " | with marks left out",
    "{threshold} | {compared[pairs]:,} | {left_out[pairs]:,} | {more:.0%} | {lost} | {compared[dropped]:,} | "
    "{left_out[dropped]:,}",
)
def measure_marks(_: argparse.Namespace) -> Row:
    texts = [unicodedata.normalize("NFC", record["text"]) for record in shared_records("saudinews")]
    marked = [text.translate(LETTERS) for text in texts]
    words = sum(len(text.split()) for text in texts)
    marked_words = sum(not set(LETTERS.values()).isdisjoint(word) for text in marked for word in text.split())
    rows = []
    for threshold in (0.5, 0.85):
        row: Row = {"threshold": threshold}
        found = []
        for name, side in (("compared", marked), ("left_out", texts)):
            result = nd.dedup(side, features="words:5", threshold=threshold)
            row[name] = {key: result.summary[key] for key in ("pairs", "dropped")}
            found.append({(pair.left, pair.right) for pair in result.pairs})
        rows.append(row | {"more": len(found[1]) / len(found[0]) - 1, "lost": len(found[0] - found[1])})
    counts = {"documents": len(texts), "with_marks": sum(a != b for a, b in zip(texts, marked, strict=True))}
    return counts | {"words_a_marked_word": round(words / marked_words, 1), "rows": rows}


if __name__ == "__main__":
    run_sections(__doc__)
