"""Does a classifier beat the best threshold of every recipe? On human labels, weak ones, and Reuters templates.

    learned.py [msrp] [clough] [r8] [peps] [reuters] [reuters-titles] [--out FILE]

Each corpus is a list of labelled pairs. A classifier is trained and a recipe's threshold is chosen on the same training
folds, and both are judged on the same other folds, in which no document of the training folds occurs (where pairs hang
together too much for that, the results say what was done instead). Intervals are those of a bootstrap over groups.

    msrp     sentence pairs judged by people; folds of its training part, and the untouched validation part
    clough   short answers and the articles they were or were not copied from; levels 1 to 3 count as copied
    r8       five groups of hand-made near-duplicates; of the others those with most words in common
    peps     revisions of Python proposals: same proposal or not, a weak label
    reuters  pairs of newswire items judged in the labelling page for this (benchmarks/labels); by the texts alone, and
             with titles and times beside them

A recipe's similarity of a pair is taken from a run at its loosest threshold; a pair that this does not find has 0.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import random
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from measuring import HERE, RESULTS, SHARED, machine, note, save, table

from neardup.api import compare, train
from neardup.classifier.classifier import CANDIDATE_RULE, rule_of
from neardup.classifier.vector import Vector
from neardup.documents import corpus_of
from neardup.evaluation.systems import grid_of
from neardup.pipeline.pipeline import run
from neardup.recipe import Recipe, load_recipe
from neardup.recipe import names as recipe_names
from neardup.training.figures import draw
from neardup.training.fit import KERNELS, out_of_fold_threshold
from neardup.training.folds import connected, folds_of
from neardup.training.labelled import LabelledPairs, LabelOptions, labelled_pairs
from neardup.training.training import TrainingPairs, learn

DATA = SHARED / "data"
LABELS = HERE / "labels" / "reuters.csv"
FOLDS, SEED = 5, 0
#: Where the recipes' runs begin.
LOOSEST = 0.1
#: At most so many pairs that are none, drawn from those that share the most words.
OTHERS = 3000
SHORT_RULE = "jaccard(words:1) >= 0.1"

Row = dict[str, Any]
Labelled = list[tuple[str, str, int]]


class Case(NamedTuple):
    """A corpus with labelled pairs.

    Attributes
    ----------
    documents : list of dict
        With id and text.
    labels : list of (id, id, 0 or 1)
        The pairs.
    vector, candidate_rule : str
        As ``neardup train`` takes them.
    kind : str
        What the labels are worth.
    """

    documents: list[Row]
    labels: Labelled
    vector: str
    candidate_rule: str
    kind: str


def documents_of(name: str) -> list[Row]:
    """Return the documents of a corpus."""
    folder = DATA / name
    packed = folder / f"{name}.jsonl.gz"
    if packed.exists():
        with gzip.open(packed, "rt", encoding="utf-8") as file:
            return [json.loads(line) for line in file]
    with (folder / f"{name}.jsonl").open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def rows_of(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def msrp() -> Case:
    rows = [row for row in rows_of(DATA / "msrp" / "pairs.csv") if row["split"] == "train"]
    labels = [(row["id1"], row["id2"], int(row["label"])) for row in rows]
    return Case(documents_of("msrp"), labels, "short", SHORT_RULE, "by hand")


def clough() -> Case:
    rows = rows_of(DATA / "clough" / "pairs.csv")
    labels = [(row["id1"], row["id2"], int(int(row["level"]) >= 1)) for row in rows]
    return Case(documents_of("clough"), labels, "default", "jaccard(words:1) >= 0.05", "by hand")


def r8() -> Case:
    documents = documents_of("r8")
    number = {row["id"]: int(row["id"].removeprefix("file")) for row in documents if row["near_dup_member"]}
    # The groups are 00 to 10, 11 to 20 and so on.
    group = {name: max(at - 1, 0) // 10 for name, at in number.items()}
    return _clustered(documents, group, "by hand, five groups")


def peps() -> Case:
    documents = documents_of("peps")
    return _clustered(documents, {row["id"]: row["cluster"] for row in documents}, "weak: same proposal")


def reuters() -> Case:
    votes: dict[tuple[str, str], list[int]] = {}
    for row in rows_of(LABELS):
        if row["label"] in ("0", "1"):
            votes.setdefault((row["id1"], row["id2"]), []).append(int(row["label"]))
    labels = [(*pair, int(2 * sum(v) > len(v))) for pair, v in sorted(votes.items()) if 2 * sum(v) != len(v)]
    return Case(documents_of("reuters"), labels, "default", CANDIDATE_RULE, "by hand, for this")


def reuters_titles() -> Case:
    return reuters()._replace(vector="default, title, hours_apart")


def _clustered(documents: list[Row], cluster: dict[str, Any], kind: str) -> Case:
    """Return all pairs of a cluster, and of the others those with the most words in common."""
    same = [(a, b) for a, b in combinations(sorted(cluster), 2) if cluster[a] == cluster[b]]
    held = {row["id"]: set(row["text"].lower().split()) for row in documents}
    names = sorted(held)
    drawn = random.Random(SEED)  # noqa: S311
    some = {tuple(sorted((a, b))) for a in cluster for b in drawn.sample(names, min(200, len(names))) if a != b}
    apart = [(a, b) for a, b in sorted(some) if cluster.get(a, a) != cluster.get(b, b)]
    likeness = {(a, b): len(held[a] & held[b]) / max(len(held[a] | held[b]), 1) for a, b in apart}
    nearest = sorted(apart, key=lambda pair: (-likeness[pair], pair))[:OTHERS]
    labels = [(*pair, 1) for pair in same] + [(*pair, 0) for pair in nearest]
    return Case(documents, labels, "default", "jaccard(words:1) >= 0.05", kind)


CASES: dict[str, Callable[[], Case]] = {"msrp": msrp, "clough": clough, "r8": r8, "peps": peps, "reuters": reuters}
CASES["reuters-titles"] = reuters_titles


def judged(name: str) -> Row:
    """Return the figures of a classifier, of every recipe, and of single measures on a corpus."""
    case = CASES[name]()
    columns = ("id", "text", "title", "timestamp") if "title" in case.vector else ("id", "text")
    corpus = pa.table({key: [str(row[key]) for row in case.documents] for key in columns})
    note(f"{name}: {len(case.labels):,} pairs")
    vector, candidate_rule = Vector.parse(case.vector), rule_of(case.candidate_rule)
    pairs = labelled_pairs(
        corpus_of(corpus),
        case.labels,
        vector,
        candidate_rule,
        LabelOptions(),
        threads=1,
        report=lambda stage, done, total: None,
    )
    folds = folds_of(pairs.left, pairs.right, pairs.duplicate, count=FOLDS, seed=SEED, decided=pairs.decided)
    if folds is None:
        raise SystemExit(f"{name}: the labels leave no folds")
    task = TrainingPairs(pairs.x, pairs.duplicate, pairs.left, pairs.right, pairs.decided, pairs.equal & pairs.inside)
    found = learn(task, folds, kernels=KERNELS, seed=SEED, report=lambda done, total: None)
    verdicts = {"learned": found.held_out.verdict, "best single measure": found.held_out.threshold}
    for recipe in map(load_recipe, recipe_names()):
        note(f"  {recipe.name}")
        x = similarity(recipe, corpus, pairs)[:, np.newaxis]
        verdicts[recipe.name] = out_of_fold_threshold(x, pairs.duplicate, folds.splits)
    groups = connected(pairs.left, pairs.right) if folds.by == "groups" else pairs.family
    drawn = draw(pairs.duplicate, groups, list(verdicts.values()))
    rows = [
        {"by": by, **drawn.figures(at).to_dict()} | ({} if by == "learned" else {"gain": drawn.gain(0, at).to_dict()})
        for at, by in enumerate(verdicts)
    ]
    return {
        "corpus": name,
        "labels": case.kind,
        "pairs": len(pairs),
        "duplicates": int(pairs.duplicate.sum()),
        "groups": len(np.unique(groups)),
        "folds_by": folds.by,
        "outside_the_net": int((pairs.duplicate & ~pairs.inside).sum()),
        "candidate_rule": case.candidate_rule,
        "vector": list(vector.names),
        "kernel": found.chosen.point.kernel,
        "rows": rows,
    }


def similarity(recipe: Recipe, corpus: pa.Table, pairs: LabelledPairs) -> npt.NDArray[np.float64]:
    """Return a recipe's similarity of each labelled pair, 0 where it lies below the loosest threshold."""
    if not recipe.needs_statistics:
        # Nothing but the pair decides, so the others need not be there.
        corpus = corpus.filter(pa.compute.is_in(corpus["id"], pa.array(pairs.names)))
    # A second step would hide the similarities of pairs that do not pass it.
    loosest = recipe.changed(threshold=grid_of(recipe, [LOOSEST]).thresholds[0], keep="first")
    result = run(corpus_of(corpus), loosest, pairs_per_document=None)
    place = {name: at for at, name in enumerate(pairs.names)}
    documents = np.array([place.get(name, -1) for name in corpus["id"].to_pylist()], np.int64)
    wanted = np.minimum(pairs.left, pairs.right) * len(place) + np.maximum(pairs.left, pairs.right)
    order = np.argsort(wanted)
    found = np.zeros(len(wanted))
    for part in result.pairs.arrays():
        left, right = documents[part.left], documents[part.right]
        inside = (left >= 0) & (right >= 0)
        left, right, values = left[inside], right[inside], part.similarity[inside]
        keys = np.minimum(left, right) * len(place) + np.maximum(left, right)
        at = np.minimum(np.searchsorted(wanted[order], keys), len(wanted) - 1)
        known = wanted[order][at] == keys
        found[order[at[known]]] = values[known]
    return found


def untouched() -> Row:
    """Train on msrp's training part, judge its validation part once, as the commands do it."""
    corpus = pa.table({key: [row[key] for row in documents_of("msrp")] for key in ("id", "text")})
    labels = str(DATA / "msrp" / "pairs.csv")
    classifier = train(corpus, labels, only="split=train", vector="short", candidate_rule=SHORT_RULE).classifier
    found = compare(corpus, labels, only="split=val", recipes=["default"], classifiers=[classifier], thresholds=[0.5])
    scored = next(one for one in found.recipes if one.name != "default")
    own = next(row for row in scored.rows if row.own)
    figures = {name: getattr(own, name)._asdict() for name in ("accuracy", "precision", "recall", "f1")}
    return {"pairs": found.duplicates + found.others, "duplicates": found.duplicates} | figures


def _said(figure: Row) -> str:
    if figure["value"] is None:
        return "none"
    return f"{figure['value']:.3f} ({figure['low']:.3f} to {figure['high']:.3f})"


def _best(rows: Sequence[Row]) -> Row:
    return max((row for row in rows if row["by"] != "learned"), key=lambda row: row["f1"]["value"] or 0.0)


def as_table(results: Row) -> str:
    """Return the classifier beside the best of all thresholds as Markdown."""
    header = ["corpus", "labels", "pairs", "duplicates", "learned: F1", "precision", "recall", "best threshold"]
    header += ["its F1", "learned is ahead by"]
    lines = []
    for case in results["cases"]:
        learned, best = case["rows"][0], _best(case["rows"])
        values = [learned[name]["value"] for name in ("precision", "recall")]
        ahead = _said(best["gain"]["difference"]) + ("" if best["gain"]["beyond_chance"] else ", within chance")
        lines.append(
            [case["corpus"], case["labels"], f"{case['pairs']:,}", f"{case['duplicates']:,}", _said(learned["f1"])]
            + [f"{value:.3f}" for value in values]
            + [best["by"], _said(best["f1"]), ahead]
        )
    return table(header, lines)


def every_table(results: Row) -> str:
    """Return F1 of every recipe's best threshold on every corpus as Markdown."""
    cases = results["cases"]
    lines = []
    for at, row in enumerate(cases[0]["rows"]):
        values = [case["rows"][at]["f1"]["value"] for case in cases]
        lines.append([row["by"], *("none" if value is None else f"{value:.3f}" for value in values)])
    return table(["threshold of", *(case["corpus"] for case in cases)], lines)


def untouched_table(results: Row) -> str:
    """Return the figures on msrp's validation part as Markdown."""
    row = results["untouched"]
    names = ("accuracy", "precision", "recall", "f1")
    return table(["pairs", *names], [[f"{row['pairs']:,}", *(_said(row[name]) for name in names)]])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="*", help="names of corpora as above; all of them unless named")
    parser.add_argument("--out", type=Path, default=RESULTS / "learned.json")
    options = parser.parse_args()
    if unknown := set(options.corpora) - set(CASES):
        parser.error(f"no corpus {min(unknown)}; there are {', '.join(CASES)}")
    before = json.loads(options.out.read_text("utf-8")) if options.out.exists() else {}
    kept = {case["corpus"]: case for case in before.get("cases", ())}
    chosen = [name for name in CASES if not options.corpora or name in options.corpora]
    kept |= {name: judged(name) for name in chosen}
    results: Row = {"machine": machine(), "cases": [kept[name] for name in CASES if name in kept]}
    results["untouched"] = untouched() if "msrp" in chosen else before.get("untouched")
    save(options.out, "learned", results)
    print("\n\n".join(make(results) for make in (as_table, every_table)))
    if results["untouched"]:
        print("\n" + untouched_table(results))


if __name__ == "__main__":
    main()
