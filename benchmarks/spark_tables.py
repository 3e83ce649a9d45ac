"""The tables and the picture of what spark.py measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from measuring import HERE, table

Cell = dict[str, Any]

THRESHOLD, RECALL = 0.85, 0.95
#: The searches, as options of the command line.
SEARCHES: dict[str, list[str]] = {"exact": [], "lsh": ["--search", "lsh", "--set", f"recall={RECALL}"]}
#: Engines of neardup, and other ways.
LOCAL = ("memory", "cluster", "local[2]")
PEERS = {"minhash": "MLlib MinHashLSH", "bands": "bands in PySpark"}
NAMES = {"memory": "memory, 2 threads", "cluster": "Spark, 2 workers", "local[2]": "Spark, local[2]"} | PEERS
#: The files that have to be the same bytes.
OUTPUTS = ("kept.parquet", "duplicates.csv")
#: Where the split of the time is drawn.
PICTURE = HERE.parent / "docs" / "spark-stages.svg"
#: Stages in which candidates are verified end with one of these names.
_VERIFYING = ("routes", "sketched", "pairs")


def own_to(cells: list[Cell], row: Cell) -> list[Cell]:
    """Return all runs, on any engine, that have to give the bytes of a row."""
    key = row["corpus"], row["search"]
    return [cell for cell in cells if "sha256" in cell and (cell["corpus"], cell["search"]) == key]


def cell_of(results: dict[str, Any], name: str, what: str, search: str = "exact") -> Cell:
    """Return the first run of an engine and a search on a corpus."""
    key = (name, what, search)
    return next(c for c in results["cells"] if (c["corpus"], c["what"], c["search"]) == key)


def row_of(results: dict[str, Any], name: str, what: str, search: str = "exact") -> Cell | None:
    """Return what was found for a corpus, an engine and a search."""
    key = (name, what, search)
    return next((r for r in results["rows"] if (r["corpus"], r["what"], r["search"]) == key), None)


def corpora_of(results: dict[str, Any]) -> list[str]:
    """Return the corpora that Spark was measured on, small to large."""
    found = {r["corpus"]: r["documents"] for r in results["rows"] if r["what"] == "cluster"}
    return sorted(found, key=found.__getitem__)


def as_table(results: dict[str, Any]) -> str:
    """Return times of the engines as Markdown."""
    rows = []
    for r in results["rows"]:
        if r["what"] in LOCAL:
            by = cell_of(results, r["corpus"], r["what"], r["search"])["cpu_by"]
            workers = "" if r["what"] != "cluster" else f"{by.get('executors', 0) + by.get('python', 0):.1f}"
            same = "" if r["what"] == "memory" else ("yes" if r["same_bytes"] else "**no**")
            ratio = "" if r["what"] == "memory" else f"{r['over_memory']:.1f}"
            figures = [f"{r['wall_s']:.1f}", ratio, f"{r['cpu_s']:.1f}", workers, f"{r['peak_mb']:,.0f}"]
            rows.append([r["corpus"], NAMES[r["what"]], r["search"], *figures, f"{r['pairs']:,}", same])
    head = ["corpus", "engine", "search", "wall s", "over memory", "CPU s", "of these executors and Python", "peak MB"]
    return table([*head, "pairs", "the bytes of memory"], rows)


def stages_table(results: dict[str, Any]) -> str:
    """Return the cost of each stage on the largest corpus, and its growth from the smallest, as Markdown."""
    names = corpora_of(results)
    small, large = (row_of(results, name, "cluster") for name in (names[0], names[-1]))
    if small is None or large is None:
        raise SystemExit("the cluster was not measured")
    before = {stage["name"]: stage for stage in small["stages"]}
    rows = []
    for s in large["stages"]:
        first = before.get(s["name"], {})
        rows.append(
            [
                s["name"],
                f"{s['wall_s']:.2f}",
                f"{100 * s['wall_s'] / large['wall_s']:.0f} %",
                _times(s, first, "wall_s"),
                f"{s['worker_s']:.2f}" if "worker_s" in s else "",
                _times(s, first, "worker_s"),
                _mb(s, "shuffle_bytes"),
                _times(s, first, "shuffle_bytes"),
                _mb(s, "spilled_bytes"),
                _mb(s, "bytes"),
                s.get("skew", ""),
            ]
        )
    rest = large["wall_s"] - sum(s["wall_s"] for s in large["stages"])
    rows.append(["between and around", f"{rest:.2f}", f"{100 * rest / large['wall_s']:.0f} %", *[""] * 8])
    times = f"x {large['documents'] / small['documents']:.2f} documents"
    head = ["stage", "wall s", "share", f"wall, {times}", "worker s", f"worker, {times}", "shuffled MB"]
    return table([*head, f"shuffled, {times}", "spilled MB", "written MB", "skew"], rows)


def _times(stage: dict[str, Any], first: dict[str, Any], name: str) -> str:
    return f"x {stage[name] / first[name]:.1f}" if first.get(name) and name in stage else ""


def _mb(stage: dict[str, Any], name: str) -> str:
    return f"{stage[name] / 1e6:.1f}" if name in stage else ""


def shuffle_table(results: dict[str, Any]) -> str:
    """Return what exact search and LSH send and look at, as Markdown."""
    rows = []
    for name in corpora_of(results):
        for search in SEARCHES:
            r = row_of(results, name, "cluster", search)
            if r is None:
                continue
            found, documents = cell_of(results, name, "cluster", search)["counted"], r["documents"]
            by = {s["name"]: s.get("shuffle_bytes", 0) for s in r["stages"]}
            verify = sum(size for stage, size in by.items() if stage.endswith(_VERIFYING))
            listing = by.get("candidates", 0) + by.get("cells", 0)
            rows.append(
                [
                    name,
                    search,
                    f"{sum(by.values()) / documents:,.0f}",
                    f"{by.get('counts', 0) / documents:,.0f}",
                    f"{listing / documents:,.0f}",
                    f"{verify / documents:,.0f}",
                    f"{found['entries'] / documents:.1f}",
                    f"{found['longest_list']:,}",
                    f"{found['raw_candidates']:,}",
                    f"{found['verified']:,}",
                    f"{r['pairs']:,}",
                    f"{r.get('recall', 1.0):.4f}",
                ]
            )
    head = ["corpus", "search", "shuffled bytes a document", "for counts", "for candidates", "for verifying"]
    head += ["entries a document", "longest list", "candidates listed", "verified", "pairs", "recall"]
    return table(head, rows)


def peers_table(results: dict[str, Any]) -> str:
    """Return the engine beside other ways on the same cluster, as Markdown."""
    rows = []
    for name in dict.fromkeys(r["corpus"] for r in results["rows"] if r["what"] in PEERS):
        for what, search in [("cluster", "exact"), ("cluster", "lsh"), *((what, "lsh") for what in PEERS)]:
            r = row_of(results, name, what, search)
            if r is None:
                continue
            label = f"neardup, {search}" if what == "cluster" else NAMES[what]
            if "limit_s" in r:
                far = cell_of(results, name, what, search)["far"]
                got = f"ended after {r['limit_s']:.0f} s in {far.get('at', 'its start')}"
                got += f", {far['tasks_done']} of {far['tasks']} tasks" if far.get("tasks") else ""
                rows.append([name, label, got, "", f"{r['cpu_s']:.0f}", f"{r['peak_mb']:,.0f}", "", "", ""])
                continue
            over = f"{r['over_cluster']:.1f}" if "over_cluster" in r else ""
            found = [f"{r['pairs']:,}", f"{r.get('recall', 1.0):.4f}", f"{r.get('precision', 1.0):.4f}"]
            rows.append([name, label, f"{r['wall_s']:.1f}", over, f"{r['cpu_s']:.0f}", f"{r['peak_mb']:,.0f}", *found])
    head = ["corpus", "", "wall s", "over neardup, exact", "CPU s", "peak MB", "pairs", "recall", "precision"]
    return table(head, rows)


def faults_table(results: list[dict[str, Any]]) -> str:
    """Return what spark_faults.py found as Markdown."""
    rows = []
    for fault in results:
        ended = f"it ends; `--resume` takes {fault['resumed_stages']} stages as they are"
        ended = ended if fault["exit_code"] else "it goes on"
        killed = {"none": "nothing", "worker": "a worker and its executor", "driver": "the driver and its JVM"}
        name = killed.get(fault["fault"], f"an {fault['fault']}")
        rows.append([name, ended, "yes" if fault["same_bytes"] else "**no**"])
    return table(["killed with `kill -9`", "the command", "the bytes of memory"], rows)


def draw(results: dict[str, Any], file: Path = PICTURE) -> None:
    """Draw how the time of exact search on the cluster splits by stage."""
    import altair

    values: list[dict[str, Any]] = []
    order: list[str] = []
    names = corpora_of(results)
    for name in reversed(names):
        row = row_of(results, name, "cluster")
        if row is None:
            continue
        rest = row["wall_s"] - sum(stage["wall_s"] for stage in row["stages"])
        stages = [*((s["name"], s["wall_s"]) for s in row["stages"]), ("between and around", rest)]
        order = list(dict.fromkeys([*order, *(stage for stage, _ in stages)]))
        documents = f"{row['documents']:,} documents"
        values += [{"stage": stage, "seconds": round(wall, 2), "corpus": documents} for stage, wall in stages]
    corpora = list(dict.fromkeys(value["corpus"] for value in reversed(values)))
    chart = altair.Chart(altair.Data(values=values)).mark_bar()
    chart = chart.encode(
        y=altair.Y("stage:N", sort=order, title=None),
        x=altair.X("seconds:Q", title="wall seconds"),
        yOffset=altair.YOffset("corpus:N", sort=corpora),
        color=altair.Color("corpus:N", title=None, sort=corpora, legend=altair.Legend(orient="top")),
    )
    chart.properties(width=560, height=altair.Step(10), background="white").save(str(file))


def printed(results: dict[str, Any]) -> str:
    """Return all tables that there are figures for."""
    if not corpora_of(results):
        return peers_table(results)
    return "\n\n".join(made(results) for made in (as_table, stages_table, shuffle_table, peers_table))
