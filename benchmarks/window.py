r"""What it costs to know whether the window held an item already: CPU and wall time an item, memory, an hour's end.

    window.py [small] [million] [--out FILE]

    small    a window of 8,000 documents, on one core: items of Reuters as they are (0.8 KB), joins of neighbouring ones
             to 5 KB (for which later ones are joined in other orders), and joins of neighbouring mixes to 5 KB
    million  N1M, evenly over 24 hours, so that all of it is in the window; then 2,000 items more, one by one

All with the recipe ddd: 4-grams of the normal form, docq at or above 0.7. Sections that are not named stay as they are
in the results. N1M is a million mixes of paragraphs, made once from the pools that ../shared/bench/prepare leaves:

    cd $BENCH_HOME/corpora
    python ../shared/bench/make_corpus.py --pool pool_reuters.jsonl --pool pool_linuxdoc.jsonl \
        --n 1000000 --name N1M --seed 3 --out .
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from statistics import fmean
from typing import Any

import pyarrow as pa
from arrivals import (
    DAY,
    HOUR,
    RECIPE,
    START,
    arriving,
    documents_in,
    fresh,
    memory,
    renew,
    rows_of,
    spread,
    texts_of,
    timed,
    warm_up,
)
from corpora import corpus
from measuring import RESULTS, note, table

from neardup.features.extraction import Extractor
from neardup.stream.document import Document
from neardup.stream.index import Index

Row = dict[str, Any]

#: CPU microseconds an item that the window of 8,000 may take, by the characters of an item (0: as it is).
ALLOWED = {0: 100, 5000: 500}
#: Milliseconds and megabytes that the window of a million may take.
MEDIAN_MS, P99_MS, MEMORY_MB, HOUR_MS = 5, 20, 6000, 50
#: So many hours are let expire.
HOURS = 6


def small(news: str, mixes: str, window: int, items: int, batch: int) -> list[Row]:
    """Measure a window of some thousand documents, full from the start."""
    rows = []
    for name, size in ((news, 0), (news, 5000), (mixes, 5000)):
        for at_once in (batch, 1):
            note(
                f"{window:,} documents of {name}, {f'joined to {size:,}' if size else 'as they are'}, {at_once} at once"
            )
            found = fresh(_small, corpus(name), size, window, items, at_once)
            rows.append({"corpus": name, "window": window, "joined_to": size, "at_once": at_once} | found)
            rows[-1]["allowed_us"] = ALLOWED[size]
    return rows


def _small(file: Path, size: int, window: int, items: int, at_once: int) -> Row:
    warm_up(one_core=True)
    texts = list(texts_of(file))
    some: Iterable[str] = islice(joined(texts, size) if size else texts, window + items)
    documents = [Document(str(number), text) for number, text in enumerate(some)]
    if len(documents) <= window:
        raise SystemExit(f"{len(documents):,} items do not fill a window of {window:,}; take a larger corpus")
    index = Index(RECIPE, window=window)
    index.add_many(documents[:window])
    before, taken = index.statistics.duplicates, []
    # The last batch may be a short one; it is left out.
    last = window + (len(documents) - window) // at_once * at_once
    for begin in range(window, last, at_once):
        group = documents[begin : begin + at_once]
        if at_once == 1:
            taken.append(timed(lambda group=group: index.add(group[0])))  # type: ignore[misc]
        else:
            taken.append(timed(lambda group=group: index.add_many(group)))  # type: ignore[misc]
    found, extract = index.statistics, Extractor(index.recipe, None)
    features = []
    for begin in range(window, last, at_once):
        some = pa.array([document.text for document in documents[begin : begin + at_once]], pa.large_string())
        features.append(timed(lambda some=some: extract(some))[1])  # type: ignore[misc]
    return {
        "items": last - window,
        "item_bytes": round(fmean(len(document.text.encode()) for document in documents[window:last])),
        "duplicates": found.duplicates - before,
        "held": found.held,
        "cpu_us": spread((cpu for _, cpu in taken), 1e6 / at_once),
        "features_us": spread(features, 1e6 / at_once),
        "wall_us": spread((wall for wall, _ in taken), 1e6 / at_once),
    }


def joined(texts: Sequence[str], size: int) -> Iterator[str]:
    """Yield joins of neighbouring texts, of about so many characters; then of other orders of the shorter texts.

    A long text would be most of two joins, which were duplicates then.
    """
    for turn in range(100):
        order = [text for text in texts if not turn or len(text) < size / 4]
        if turn:
            random.Random(turn).shuffle(order)  # noqa: S311
        parts: list[str] = []
        length = 0
        for text in order:
            if parts and length + len(text) / 2 > size:
                yield "\n".join(parts)
                parts, length = [], 0
            parts.append(text)
            length += len(text) + 1


def million(name: str, documents: int | None, items: int, against: Sequence[str]) -> list[Row]:
    """Measure a window that holds a whole corpus, for each way to compare."""
    file = corpus(name)
    rows = []
    for one in against:
        note(f"{name}, compared with {one}")
        rows.append({"corpus": name, "against": one} | fresh(_million, file, documents, items, one))
    return rows


def _million(file: Path, documents: int | None, items: int, against: str) -> Row:
    warm_up(one_core=True)
    count = min(documents_in(file), documents or 1 << 62)
    filled = count - items - HOURS
    row: Row = {"documents": count, "memory_before_mb": memory()}
    index = Index(RECIPE, against=against)
    texts = texts_of(file)
    row["fill"] = list(_filled(index, arriving(islice(texts, filled), count), filled))
    taken = []
    for document in list(arriving(islice(texts, items), count, filled)):
        taken.append(timed(lambda one=document: index.add(one)))  # type: ignore[misc]
    found = index.statistics
    row |= {
        "items": items,
        "held": found.held,
        "duplicates": found.duplicates,
        "hours": found.segments,
        "wall_ms": spread((wall for wall, _ in taken), 1e3),
        "cpu_ms": spread((cpu for _, cpu in taken), 1e3),
        "memory_mb": memory(),
        "peak_mb": memory("VmHWM"),
        "window_mb": round(found.bytes / 1e6, 1),
    }
    row["expiring"] = []
    for hour, text in enumerate(islice(texts, HOURS), 1):
        document, before = Document(f"after-{hour}", text, START + DAY + hour * HOUR), len(index)
        wall, cpu = timed(lambda one=document: index.add(one))  # type: ignore[misc]
        gone = {"gone": before - len(index), "wall_ms": round(1e3 * wall, 2), "cpu_ms": round(1e3 * cpu, 2)}
        row["expiring"].append(gone | {"memory_mb": memory(), "window_mb": round(index.statistics.bytes / 1e6, 1)})
    return row


def _filled(index: Index, documents: Iterator[Document], count: int) -> Iterator[Row]:
    """Fill the window; yield what the items of each tenth took."""
    step = -(-count // 10)
    while some := list(islice(documents, 1)):
        cpu, wall, before = time.process_time(), time.perf_counter(), index.statistics.arrived
        index.add_many(chain(some, islice(documents, step - 1)))
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        found = index.statistics
        each = 1e6 / (found.arrived - before)
        note(f"  {found.arrived:,}: {cpu * each:.0f} µs an item, {memory():,.0f} MB")
        yield {
            "documents": found.arrived,
            "held": found.held,
            "cpu_us": round(cpu * each, 1),
            "wall_us": round(wall * each, 1),
            "memory_mb": memory(),
            "window_mb": round(found.bytes / 1e6, 1),
        }


def as_table(results: dict[str, Any]) -> str:
    """Return what an item costs in a small window as Markdown."""
    header = ["items", "window", "KB an item", "items at once", "CPU µs an item: median", "mean", "p99", "max"]
    header += ["of the median, features", "aim", "duplicates"]
    rows: list[list[object]] = [["Montanari & Puglisi 2012", "8,000", "", 1, "1,200,000", *[""] * 6]]
    for r in rows_of(results, "small"):
        cpu = [f"{r['cpu_us'][key]:,.0f}" for key in ("median", "mean", "p99", "max")]
        of = f"{r['duplicates']:,} of {r['items']:,}"
        items = f"{r['corpus']}, joined" if r["joined_to"] else r["corpus"]
        size, features = f"{r['item_bytes'] / 1000:.2f}", f"{r['features_us']['median']:,.0f}"
        rows.append([items, f"{r['window']:,}", size, r["at_once"], *cpu, features, r["allowed_us"], of])
    return table(header, rows)


def million_table(results: dict[str, Any]) -> str:
    """Return what an item, the memory and the end of an hour cost in a window of a million, as Markdown."""
    header = ["compared with", "documents", "held", "an item, ms: median", "p90", "p99", "max", "CPU ms: median", "p99"]
    header += ["RSS MB", "peak RSS MB", "window MB", "an hour expires, ms: median", "max"]
    rows: list[list[object]] = []
    for r in rows_of(results, "million"):
        ends = spread((hour["wall_ms"] for hour in r["expiring"]), 1)
        wall = [f"{r['wall_ms'][key]:.2f}" for key in ("median", "p90", "p99", "max")]
        cpu = [f"{r['cpu_ms'][key]:.2f}" for key in ("median", "p99")]
        sizes = [f"{r[key]:,.0f}" for key in ("memory_mb", "peak_mb", "window_mb")]
        expiring = [f"{ends['median']:.1f}", f"{ends['max']:.1f}"]
        rows.append([r["against"], f"{r['documents']:,}", f"{r['held']:,}", *wall, *cpu, *sizes, *expiring])
    rows.append(["aim", "", "", MEDIAN_MS, "", P99_MS, "", "", "", f"{MEMORY_MB:,}", "", "", HOUR_MS, ""])
    return table(header, rows)


def fill_table(results: dict[str, Any]) -> str:
    """Return what an item costs while the window fills, as Markdown."""
    rows: list[list[object]] = []
    for r in rows_of(results, "million"):
        for part in r["fill"]:
            sizes = [f"{part[key]:,.0f}" for key in ("cpu_us", "wall_us", "memory_mb", "window_mb")]
            rows.append([r["against"], f"{part['documents']:,}", f"{part['held']:,}", *sizes])
    header = ["compared with", "documents so far", "held", "CPU µs an item", "wall µs an item", "RSS MB", "window MB"]
    return table(header, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", help="small, million; all of them unless named")
    parser.add_argument("--news", default="R20k", help="the corpus of the small window")
    parser.add_argument("--mixes", default="N100k", help="another, the items of which are joined")
    parser.add_argument("--window", type=int, default=8000, help="documents of the small window")
    parser.add_argument("--batch", type=int, default=256, help="items at once in the small window")
    parser.add_argument("--small-items", type=int, default=8000, help="items measured there")
    parser.add_argument("--corpus", default="N1M", help="the corpus of the large window")
    parser.add_argument("--documents", type=int, help="only so many of its documents")
    parser.add_argument("--items", type=int, default=2000, help="of them the last so many one by one")
    parser.add_argument("--against", nargs="+", default=["originals", "everything"])
    parser.add_argument("--out", type=Path, default=RESULTS / "window.json")
    options = parser.parse_args()
    sections = {
        "small": lambda: small(options.news, options.mixes, options.window, options.small_items, options.batch),
        "million": lambda: million(options.corpus, options.documents, options.items, options.against),
    }
    if unknown := set(options.sections) - set(sections):
        parser.error(f"no section {min(unknown)}; there are {', '.join(sections)}")
    chosen = {name: act for name, act in sections.items() if name in (options.sections or sections)}
    results = renew(options.out, "window", chosen)
    print("\n\n".join(make(results) for make in (as_table, million_table, fill_table)))


if __name__ == "__main__":
    main()
