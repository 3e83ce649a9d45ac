"""Does a trained classifier beat the best threshold on one measure? On pairs that were labelled by hand.

    learned.py [learned untouched home] [--corpora msrp clough reuters reuters-titles] [--small]

Both are chosen on the same training folds and judged on the same held-out folds, as in ``neardup train``; intervals
are those of its bootstrap. Documents of msrp are sentences, so it gets the measures for sentences.

    msrp     sentence pairs; the training part
    clough   short answers and the articles they were or were not copied from; levels 1 to 3 count as copied
    reuters  pairs of newswire items judged in the labelling page (benchmarks/labels); by texts only, and with titles
             and times

untouched: the validation part of msrp, judged by a classifier of its training part.

home: the classifier of Reuters on other documents: how many candidates lie outside its training domain, how many pass,
whether a run stops, and with labels its precision and that of the best threshold.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from measuring import HERE, SHARED, Section, note, run_sections, table

import neardup as nd
from neardup.classifier.domain import DomainCounts

DATA = SHARED / "data"
#: In the order of the table that older results have.
HEADER = ["corpus", "pairs", "duplicates", "learned: F1", "precision", "recall", "best threshold", "its F1"]


class Case(NamedTuple):
    """A corpus, its labels, and the options of ``train``."""

    corpus: str
    labels: Path
    options: dict[str, Any]


CASES = {
    "msrp": Case(
        "msrp/msrp.jsonl.gz",
        DATA / "msrp" / "pairs.csv",
        {"only": "split=train", "vector": "short", "candidate_rule": "jaccard(words:1) >= 0.1"},
    ),
    "clough": Case(
        "clough/clough.jsonl",
        DATA / "clough" / "pairs.csv",
        {"label_column": "level", "positive": 1, "candidate_rule": "jaccard(words:1) >= 0.05"},
    ),
    "reuters": Case("reuters/reuters.jsonl.gz", HERE / "labels" / "reuters.csv", {}),
    "reuters-titles": Case(
        "reuters/reuters.jsonl.gz",
        HERE / "labels" / "reuters.csv",
        {"vector": "default, title, hours_apart", "title_column": "title", "time_column": "timestamp"},
    ),
}


def documents_of(case: Case) -> pa.Table:
    """Return the documents of a corpus with the compared columns."""
    path = DATA / case.corpus
    content = path.read_bytes()
    rows = [json.loads(line) for line in (gzip.decompress(content) if path.suffix == ".gz" else content).splitlines()]
    columns = ["id", "text", *(case.options[key] for key in ("title_column", "time_column") if key in case.options)]
    return pa.table({name: [str(row[name]) for row in rows] for name in columns})


def learned(args: argparse.Namespace) -> dict[str, Any]:
    """Train on each corpus."""
    rows = []
    for name in args.corpora or (["clough"] if args.small else list(CASES)):
        note(name)
        case = CASES[name]
        found = nd.train(documents_of(case), str(case.labels), **case.options)
        rows.append({"corpus": name} | {key: value for key, value in found.summary.items() if key != "wrong"})
    return {"rows": rows}


def learned_table(results: dict[str, Any]) -> str:
    """Return the trained classifier beside the best threshold."""
    rows = []
    for r in results["rows"]:
        figures, threshold, gain = r["figures"], r["threshold"], r["gain"]
        ahead = interval(gain["difference"]) + ("" if gain["beyond_chance"] else ", within chance")
        values = [f"{figures[name]['value']:.3f}" for name in ("precision", "recall")]
        counts = [f"{r['pairs']:,}", f"{r['duplicates']:,}"]
        of_threshold = [threshold["at"], interval(threshold["f1"])]
        rows.append([r["corpus"], *counts, interval(figures["f1"]), *values, *of_threshold, ahead])
    return table([*HEADER, "learned is ahead by"], rows)


def untouched(args: argparse.Namespace) -> dict[str, Any]:
    """Train on one part of msrp and judge another one."""
    if args.small:
        return {}
    case = CASES["msrp"]
    documents = documents_of(case)
    trained = nd.train(documents, str(case.labels), **case.options).classifier
    # The other documents would give millions of candidates, none of them labelled.
    with open(case.labels, newline="", encoding="utf-8") as rows:
        named = {row[side] for row in csv.DictReader(rows) if row["split"] == "val" for side in ("id1", "id2")}
    judged = documents.filter(pc.is_in(documents["id"], pa.array(sorted(named))))
    options: dict[str, Any] = {"only": "split=val", "ignore_unknown": True, "classifiers": [trained]}
    found = nd.compare(judged, str(case.labels), recipes=["default"], **options).to_dict()
    own = next(row for row in found["recipes"][-1]["rows"] if row["own"])
    return {"pairs": found["duplicates"] + found["others"], "own": own}


def untouched_table(results: dict[str, Any]) -> str:
    """Return the figures of the classifier's own cut."""
    names = ["accuracy", "precision", "recall", "f1"]
    rows = [[f"{results['pairs']:,}", *(interval(results["own"][name]) for name in names)]] if results else []
    return table(["pairs", *names], rows)


def _r8_labels() -> list[tuple[str, str, int]]:
    """Return the pairs of r8 that were made near-duplicates, in five groups."""
    groups = [range(11), range(11, 21), range(21, 31), range(31, 41), range(41, 50)]
    return [(f"file{i:02d}", f"file{j:02d}", 1) for group in groups for i in group for j in group if i < j]


#: Corpora, their documents, and labels where there are some, with what ``compare`` is told of these.
OTHER_CORPORA: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "reuters": ("reuters/reuters.jsonl.gz", None, {}),
    "r8": ("r8/r8.jsonl.gz", _r8_labels, {"complete": True}),
    "cornell": ("cornell/docs", lambda: str(DATA / "cornell" / "pairs.csv"), {"complete": True}),
    "clough": (
        "clough/clough.jsonl",
        lambda: str(DATA / "clough" / "pairs.csv"),
        {"label_column": "level", "positive": 1},
    ),
    "adzuna": ("adzuna/adzuna.jsonl.gz", None, {}),
    "peps": ("peps/peps.jsonl.gz", None, {}),
    "saudinews": ("saudinews/saudinews.jsonl.gz", None, {}),
}


def home(args: argparse.Namespace) -> dict[str, Any]:
    """Use the classifier of Reuters on each corpus."""
    case = CASES["reuters"]
    training = nd.train(documents_of(case), str(case.labels), **case.options)
    trained = training.classifier
    rows = []
    for name, (path, labels, options) in OTHER_CORPORA.items():
        if args.small and name not in ("clough", "cornell"):
            continue
        note(name)
        said = nd.dedup_files(str(DATA / path), classifier=trained, force_domain=True).summary["classifier"]
        row = {"corpus": name} | {key: said[key] for key in ("candidates", "outside", "passed")}
        row["why"] = trained.complaint(DomainCounts(row["candidates"], row["outside"], row["passed"]))
        if labels is not None:
            with nd.open_files(str(DATA / path)) as corpus:
                found = nd.compare(corpus, labels(), recipes=_RECIPES, classifiers=[trained], **options).to_dict()
            *thresholds, own = found["recipes"]
            best = max(thresholds, key=lambda one: one["best"]["f1"]["value"] or 0)
            row["precision"] = next(one for one in own["rows"] if one["own"])["precision"]
            row["threshold"] = {"recipe": best["name"], "at": best["best"]["threshold"]}
            row["threshold"]["precision"] = best["best"]["precision"]
        rows.append(row)
    return {"trained_passed": None if trained.domain is None else trained.domain.pass_share, "rows": rows}


_RECIPES = ["default", "ddd", "terms"]


def home_table(results: dict[str, Any]) -> str:
    """Return where a run continues, and where it stops."""
    rows = []
    for r in results["rows"]:
        shares = [f"{r[key] / max(r['candidates'], 1):.0%}" for key in ("outside", "passed")]
        then = "stops" if r["why"] else "goes on"
        best = r.get("threshold")
        precision = (
            [format_figure(r["precision"]), f"{format_figure(best['precision'])}, {best['recipe']}"]
            if best
            else ["", ""]
        )
        rows.append([r["corpus"], f"{r['candidates']:,}", *shares, then, *precision])
    return table(
        ["documents", "candidates", "outside", "pass", "a run", "its precision", "of the best threshold"], rows
    )


def format_figure(figure: dict[str, float | None]) -> str:
    """Return a figure to three places."""
    return "none" if figure["value"] is None else f"{figure['value']:.3f}"


def interval(figure: dict[str, float | None]) -> str:
    """Return a figure with its interval."""
    if figure["value"] is None:
        return "none"
    return f"{figure['value']:.3f} ({figure['low']:.3f} to {figure['high']:.3f})"


if __name__ == "__main__":
    run_sections(
        __doc__,
        {
            "learned": Section(learned, {"learned": learned_table}),
            "untouched": Section(untouched, {"learned-untouched": untouched_table}),
            "home": Section(home, {"home": home_table}),
        },
        lambda parser: parser.add_argument("--corpora", nargs="+", choices=list(CASES)),
    )
