"""Which features, measure and threshold tell a re-send from a template: candidates against judged pairs.

    default_recipe.py [--out results/default_recipe.json]

The judged pairs (judgements/*.csv, drawn and shown by judging.py) were drawn by strata of word-5-gram Jaccard
and of length; here they stand for all pairs of their stratum. A candidate recipe finds a known number of pairs
of each stratum; the share of good ones among those it finds and those it leaves comes from the judgements.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from judging import CENSUS, DRAWN, SHORT, STRATA, Pair, documents, is_short, read_judgements, strata
from measuring import RESULTS, machine, note, save, table

import neardup as nd

FEATURES = ["words:3", "words:4", "words:5", "words:6", "words:8", "qgrams:4", "qgrams:8", "qgrams:16"]
#: Measures with the floor on Jaccard that goes with them.
MEASURES = {"jaccard": 0.0, "overlap": 0.0, "containment": 0.3}
THRESHOLDS = [round(0.5 + 0.05 * step, 2) for step in range(10)]
#: Below this, character 4-grams match by the million and slowly: any two English texts share many.
LOWEST = {"qgrams:4": 0.7}
#: Lower ends of the strata; finer where all pairs were read.
EDGES = {"reuters": [0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 1.0], "adzuna": STRATA}
DRAWS = 4000

Cell = tuple[str, bool]


class Frame(NamedTuple):
    """The judged pairs and what they stand for: every pair's cell, each cell's size, its judgements."""

    cell_of: dict[Pair, Cell]
    sizes: Counter[Cell]
    judged: dict[Cell, list[tuple[Pair, bool]]]


@cache
def frame(corpus: str) -> Frame:
    """Return the frame of a corpus; a pair that the reader could not judge counts as not the same."""
    texts = documents(corpus)
    edges = EDGES[corpus]
    cell_of = {
        pair: (stratum, is_short(texts, pair)) for stratum, pairs in strata(corpus, edges).items() for pair in pairs
    }
    judged = defaultdict(list)
    for row in read_judgements(corpus):
        pair = (row["id1"], row["id2"])
        judged[cell_of[pair]].append((pair, row["label"] == "1"))
    return Frame(cell_of, Counter(cell_of.values()), dict(judged))


def search(corpus: str, features: str, measure: str, *, titles: bool) -> nd.Result:
    """Return the result for a corpus at the lowest threshold."""
    texts = documents(corpus)
    bodies = [f"{row['title']}\n{row['text']}" if titles else row["text"] for row in texts.values()]
    return nd.dedup(
        bodies,
        features=features,
        measure=measure,
        threshold=LOWEST.get(features, THRESHOLDS[0]),
        jaccard_floor=MEASURES[measure],
    )


def estimate(corpus: str, found: set[Pair]) -> dict[str, Any]:
    """Return precision and recall of found pairs with 95 % intervals.

    Pairs that were read count as read. Of the others, the share of good ones has the Beta distribution of the
    judgements and of one more, spread as in the whole cell. Found pairs outside the frame were not judged and
    count as wrong.
    """
    cells = frame(corpus)
    rng = np.random.default_rng(1)
    kept_good = np.zeros(DRAWS)
    left_good = np.zeros(DRAWS)
    inside = Counter(cells.cell_of[pair] for pair in found if pair in cells.cell_of)
    for cell, size in cells.sizes.items():
        judged = cells.judged.get(cell) or cells.judged.get((cell[0], not cell[1]), [])
        mean = (sum(good for _, good in judged) + 0.5) / (len(judged) + 1)
        for is_found, count, total in (
            (True, inside[cell], kept_good),
            (False, size - inside[cell], left_good),
        ):
            labels = [good for pair, good in judged if (pair in found) is is_found]
            good, unread = sum(labels), count - len(labels)
            total += good + unread * rng.beta(good + mean, len(labels) - good + 1 - mean, DRAWS)
    precision = kept_good / max(len(found), 1)
    recall = kept_good / (kept_good + left_good)
    judged_found = [good for pairs in cells.judged.values() for pair, good in pairs if pair in found]
    return {
        "pairs": len(found),
        "outside": sum(pair not in cells.cell_of for pair in found),
        "judged_found": len(judged_found),
        "judged_good": sum(judged_found),
        "precision": summary(precision),
        "recall": summary(recall),
    }


def summary(draws: np.ndarray[Any, np.dtype[np.float64]]) -> list[float]:
    """Return mean, 2.5 and 97.5 percentile."""
    return [round(float(x), 4) for x in (draws.mean(), *np.percentile(draws, [2.5, 97.5]))]


def within_a_day(corpus: str, found: set[Pair]) -> float | None:
    """Return the share of found pairs sent within 24 hours: re-sends are, templates come any day."""
    stamps = {name: row.get("timestamp") for name, row in documents(corpus).items()}
    if not found or not all(stamps.values()):
        return None
    times = {name: np.datetime64(str(stamp)) for name, stamp in stamps.items()}
    day = np.timedelta64(24, "h")
    return round(sum(abs(times[a] - times[b]) <= day for a, b in found) / len(found), 4)


def neighbours(features: str, measure: str, threshold: float) -> dict[str, Any]:
    """Return what a candidate finds among PEPs: next revisions, first and last, pairs of two PEPs."""
    texts = documents("peps")
    names = list(texts)
    result = nd.dedup(
        [row["text"] for row in texts.values()],
        features=features,
        measure=measure,
        threshold=threshold,
        jaccard_floor=MEASURES[measure],
    )
    found = {(names[left], names[right]) for left, right, _ in result.pairs}
    series = defaultdict(list)
    for name, row in texts.items():
        series[row["cluster"]].append((row["version"], name))
    next_in_time: list[Pair] = []
    first_and_last: list[Pair] = []
    for revisions in series.values():
        ordered = [name for _, name in sorted(revisions)]
        next_in_time += pairwise(ordered)
        if len(ordered) > 2:
            first_and_last.append((ordered[0], ordered[-1]))

    def share(pairs: list[Pair]) -> float:
        return round(sum((a, b) in found or (b, a) in found for a, b in pairs) / len(pairs), 4)

    return {
        "next_in_time": share(next_in_time),
        "next_pairs": len(next_in_time),
        "first_and_last": share(first_and_last),
        "of_two_peps": sum(texts[a]["cluster"] != texts[b]["cluster"] for a, b in found),
    }


def strata_counts(corpus: str) -> list[dict[str, Any]]:
    """Return each stratum's number of pairs and its judgements."""
    cells, labels = frame(corpus), defaultdict(list)
    for row in read_judgements(corpus):
        labels[cells.cell_of[row["id1"], row["id2"]]].append(row["label"])
    return [
        {
            "stratum": f"{stratum} {SHORT}" if short else stratum,
            "pairs": size,
            "judged": len(labels[stratum, short]),
            "same": labels[stratum, short].count("1"),
            "unsure": labels[stratum, short].count("?"),
        }
        for (stratum, short), size in sorted(cells.sizes.items())
    ]


def read_whole(corpus: str) -> list[dict[str, Any]]:
    """Return what the pairs are, range by range, where all of them were read."""
    census = CENSUS[corpus]
    if census is None:
        return []
    why = {(row["id1"], row["id2"]): (row["label"], row["why"]) for row in read_judgements(corpus)}
    edges = [edge for edge in EDGES[corpus] if census[0] <= edge <= census[1]]
    pairs = strata(corpus, edges)
    return [
        {"from": low, "to": high, "label": label, "why": reason, "pairs": count}
        for low, high in pairwise(edges)
        for (label, reason), count in Counter(why[pair] for pair in pairs[str(low)]).most_common()
    ]


def study() -> dict[str, Any]:
    """Return the counts of the strata and the figures of all candidates."""
    candidates = []
    for corpus in DRAWN:
        names = list(documents(corpus))
        for features in FEATURES:
            for measure in MEASURES:
                for titles in (False, True) if (features, measure) == ("words:5", "jaccard") else (False,):
                    note(f"{corpus} {features} {measure}{' with titles' if titles else ''}")
                    result = search(corpus, features, measure, titles=titles)
                    for threshold in THRESHOLDS:
                        if threshold < LOWEST.get(features, 0):
                            continue
                        narrowed = result.at(threshold)
                        found = {(names[left], names[right]) for left, right, _ in narrowed.pairs}
                        chosen = {
                            "corpus": corpus,
                            "features": features,
                            "measure": measure,
                            "threshold": threshold,
                        }
                        figures = estimate(corpus, found) | {"within_a_day": within_a_day(corpus, found)}
                        dropped = {"dropped": len(narrowed.dropped)}
                        candidates.append(chosen | {"titles": titles} | figures | dropped)
    revisions = []
    for features in ("words:3", "words:5", "words:8"):
        for threshold in (0.7, 0.8, 0.9):
            note(f"peps {features} {threshold}")
            figures = neighbours(features, "jaccard", threshold)
            revisions.append({"features": features, "measure": "jaccard", "threshold": threshold} | figures)
    return {
        "read_whole": read_whole("reuters"),
        "strata": {corpus: strata_counts(corpus) for corpus in DRAWN},
        "candidates": candidates,
        "peps": revisions,
    }


def _percent(interval: list[float]) -> str:
    mean, low, high = (100 * value for value in interval)
    return f"{mean:.0f} ({low:.0f}-{high:.0f})"


def _figures(row: dict[str, Any]) -> list[object]:
    return [
        f"{row['pairs']:,}",
        f"{row['dropped']:,}",
        f"{row['judged_good']} of {row['judged_found']}",
        _percent(row["precision"]),
        _percent(row["recall"]),
    ]


_HEADER = ["pairs", "dropped", "good of read", "precision %", "recall %"]


def _chosen(results: dict[str, Any], **wanted: object) -> list[dict[str, Any]]:
    return [row for row in results["candidates"] if all(row[key] == value for key, value in wanted.items())]


def strata_table(results: dict[str, Any]) -> str:
    """Return what was read, as Markdown."""
    rows = [
        [corpus, r["stratum"], f"{r['pairs']:,}", r["judged"], r["same"], r["unsure"]]
        for corpus, found in results["strata"].items()
        for r in found
    ]
    return table(["corpus", "Jaccard from", "pairs", "read", "same item", "unsure"], rows)


def read_whole_table(results: dict[str, Any]) -> str:
    """Return what lies in each range that was read whole, as Markdown."""
    ranges: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    counts: Counter[tuple[str, str]] = Counter()
    for row in results["read_whole"]:
        name = f"{row['from']:.2f}-{row['to']:.2f}"
        ranges[name][row["label"]].append(f"{row['pairs']} {row['why']}")
        counts[name, row["label"]] += row["pairs"]
    rows = [[name, counts[name, "1"], counts[name, "0"], "; ".join(found["0"])] for name, found in ranges.items()]
    return table(["Jaccard", "same item", "other facts", "which"], rows)


def threshold_table(results: dict[str, Any]) -> str:
    """Return word 5-grams and Jaccard on Reuters at every threshold, as Markdown."""
    rows = []
    for row in _chosen(results, corpus="reuters", features="words:5", measure="jaccard", titles=False):
        (titled,) = _chosen(
            results,
            corpus="reuters",
            features="words:5",
            measure="jaccard",
            titles=True,
            threshold=row["threshold"],
        )
        day = f"{100 * row['within_a_day']:.0f}"
        rows.append([row["threshold"], *_figures(row), day, _percent(titled["precision"]), _percent(titled["recall"])])
    return table(["threshold", *_HEADER, "sent within a day %", "precision with titles", "recall with titles"], rows)


def candidate_table(results: dict[str, Any], precision: float = 0.975) -> str:
    """Return each kind's lowest threshold on Reuters whose precision is high enough, as Markdown."""
    rows = []
    for features in FEATURES:
        for measure in MEASURES:
            candidates = _chosen(results, corpus="reuters", features=features, measure=measure, titles=False)
            fitting = [row for row in candidates if row["precision"][0] >= precision]
            name = f"{features} {measure}"
            rows.append(
                [name, fitting[0]["threshold"], *_figures(fitting[0])] if fitting else [name, "none", *[""] * 5]
            )
    return table(["", f"lowest threshold with {100 * precision:.1f} %", *_HEADER], rows)


def advert_table(results: dict[str, Any]) -> str:
    """Return word 5-grams and Jaccard on Adzuna, as Markdown."""
    found = _chosen(results, corpus="adzuna", features="words:5", measure="jaccard", titles=False)
    return table(["threshold", *_HEADER], [[row["threshold"], *_figures(row)] for row in found])


def revision_table(results: dict[str, Any]) -> str:
    """Return what is found among the revisions of PEPs, as Markdown."""
    rows = [
        [
            f"{r['features']} {r['measure']} {r['threshold']}",
            f"{100 * r['next_in_time']:.0f}",
            f"{100 * r['first_and_last']:.0f}",
            r["of_two_peps"],
        ]
        for r in results["peps"]
    ]
    return table(["", "of next revisions %", "of first and last %", "pairs of two PEPs"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=RESULTS / "default_recipe.json")
    options = parser.parse_args()
    results = {"machine": machine()} | study()
    save(options.out, "default_recipe", results)
    print(threshold_table(results))


if __name__ == "__main__":
    main()
