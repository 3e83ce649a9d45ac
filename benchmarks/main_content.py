"""Web pages: how well main content is found, and how many pages a second are read on one core and on two.

    main_content.py [content-quality] [content-speed]

The quality is the F1 of words against articles marked by hand, for each page. The speed is that of whole runs of
``dedup``, beside those of the commit before pages were extracted in processes of their own.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import io
import json
import os
import re
import subprocess
import tarfile
import tempfile
import time
from collections import Counter
from pathlib import Path

from harness import NEARDUP, ROOT, SHARED, Row, measure_runs, run_sections, section

from neardup.text.encoding import decode_page
from neardup.text.extraction import METHODS

PAGES = SHARED / "data" / "html"
#: The last commit that extracted pages in threads.
BEFORE = "c572e224"
ROUNDS = 3


def words(text: str) -> Counter[str]:
    return Counter(re.findall(r"\w+", text.lower()))


def marked_pages() -> list[tuple[str, Counter[str]]]:
    """Return pages and the words of their articles."""
    if not PAGES.is_dir():
        raise SystemExit("this needs the pages in ../shared/data/html beside the project")
    rows = [json.loads(line) for line in (PAGES / "gold.jsonl").read_text("utf-8").splitlines()]
    return [(decode_page((PAGES / "pages" / f"{row['id']}.html").read_bytes()), words(row["text"])) for row in rows]


@section(
    "content-quality",
    "`--content` | library | F1, mean of the pages | lowest | precision | recall | CPU ms a page",
    "`{content}` | {library} | {f1:.3f} | {lowest:.2f} | {precision:.3f} | {recall:.3f} | {cpu_ms:.1f}",
)
def measure_quality(_: argparse.Namespace) -> Row:
    pages = marked_pages()
    rows: list[Row] = []
    for name, method in METHODS.items():
        seconds = []
        for _round in range(ROUNDS + 1):  # the first loads what is loaded once
            begin = time.process_time()
            found = [words(method.read(page).text) for page, _ in pages]
            seconds.append(time.process_time() - begin)
        common = [(gold & mine).total() for (_, gold), mine in zip(pages, found, strict=True)]
        f1 = [
            2 * both / max(1, gold.total() + mine.total())
            for both, (_, gold), mine in zip(common, pages, found, strict=True)
        ]
        library = f"{method.library} {importlib.metadata.version(method.library)}" if method.library else "none"
        row = {"content": name, "library": library, "f1": sum(f1) / len(f1), "lowest": min(f1)}
        row["precision"] = sum(common) / sum(mine.total() for mine in found)
        row["recall"] = sum(common) / sum(gold.total() for _, gold in pages)
        rows.append(row | {"cpu_ms": 1000 * min(seconds) / len(pages)})
    return {"pages": len(pages), "rows": rows}


@section(
    "content-speed",
    "`--content` | pages extracted in | cores | pages a second | seconds | CPU seconds | MB in all",
    "`{content}` | {place} | {threads} | {pages_a_second:.0f} | {wall_s:.1f} | {cpu_s:.1f} | {pss_mb:.0f}",
)
def measure_speed(args: argparse.Namespace) -> Row:
    pages = [page for page, _ in marked_pages()]
    count = 80 if args.small else 3_600
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        corpus, before = Path(folder, "pages.jsonl"), Path(folder, "before")
        # No two pages are equal, because equal ones are extracted once.
        lines = (json.dumps({"text": f"{pages[i % len(pages)]}<!-- {i} --><p>{i}</p>"}) for i in range(count))
        corpus.write_text("".join(f"{line}\n" for line in lines), "utf-8")
        git = ["git", "-C", str(ROOT), "archive", BEFORE, "src"]
        archive = subprocess.check_output(git)
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            files.extractall(before, filter="data")
        for content, place, env in (
            ("html", "threads, before", {"PYTHONPATH": str(before / "src")}),
            ("html", "processes", {}),
            ("html-fast", "processes", {}),
            ("tags", "processes", {}),
        ):
            cores = sorted(os.sched_getaffinity(0))
            command = [*NEARDUP, "dedup", corpus, "--content", content, "--dry-run"]
            with_environment = ["env", *(f"{name}={value}" for name, value in env.items()), *command]
            measure_runs(with_environment, 1)
            for threads in (1, 2):
                pinned = ["taskset", "-c", ",".join(map(str, cores[:threads])), *with_environment]
                found = measure_runs([*pinned, "--threads", threads], args.runs)
                row = {
                    "content": content,
                    "place": place,
                    "threads": threads,
                    "pages_a_second": count / found["wall_s"],
                }
                rows.append(row | found)
    return {"pages": count, "load": list(os.getloadavg()), "rows": rows}


if __name__ == "__main__":
    run_sections(__doc__)
