"""How well the article of a news page is found: F1 of words against the articles marked by hand, and CPU time a page.

main_text.py [--rounds 3]

Beside neardup's choice (trafilatura within bounds) stand the plain removal of tags, which the paper used, and those of
trafilatura, resiliparse, readability-lxml (with lxml_html_clean), justext and boilerpy3 that are installed. A library
that fails at a page has found nothing there.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import logging
import re
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from measuring import RESULTS, SHARED, machine, note, save, table

PAGES = SHARED / "data" / "html"
Read = Callable[[bytes], str]


class Gold(NamedTuple):
    """A page and the words of its article."""

    page: bytes
    words: Counter[str]


def words(text: str) -> Counter[str]:
    return Counter(re.findall(r"\w+", text.lower()))


def gold() -> list[Gold]:
    """Return the pages of ../shared/data/html."""
    if not PAGES.is_dir():
        raise SystemExit("this needs the pages in ../shared/data/html beside the project")
    rows = [json.loads(line) for line in (PAGES / "gold.jsonl").read_text("utf-8").splitlines()]
    return [Gold((PAGES / "pages" / f"{row['id']}.html").read_bytes(), words(row["text"])) for row in rows]


def readers() -> dict[str, tuple[str, Read]]:
    """Return what is measured, by name: the package it is of, and what makes a text of a page."""
    from neardup.text.encoding import page_text
    from neardup.text.html import main_text, strip_tags

    found: dict[str, tuple[str, Read]] = {
        "neardup: main_text": ("neardup", main_text),
        "neardup: strip_tags": ("neardup", lambda page: strip_tags(page_text(page))),
    }
    for add in (_trafilatura, _resiliparse, _readability, _justext, _boilerpy3):
        try:
            found |= add(page_text)
        except ImportError as error:
            note(f"not measured: {error.name} is not installed")
    return found


def _trafilatura(text: Read) -> dict[str, tuple[str, Read]]:
    from trafilatura import extract

    return {
        "trafilatura": ("trafilatura", lambda page: extract(page) or ""),
        "trafilatura, fast": ("trafilatura", lambda page: extract(page, fast=True) or ""),
        "trafilatura, precision": ("trafilatura", lambda page: extract(page, favor_precision=True) or ""),
    }


def _resiliparse(text: Read) -> dict[str, tuple[str, Read]]:
    from resiliparse.extract.html2text import extract_plain_text

    def read(page: bytes) -> str:
        return str(extract_plain_text(text(page), main_content=True, alt_texts=False, comments=False))

    return {"resiliparse": ("resiliparse", read)}


def _readability(text: Read) -> dict[str, tuple[str, Read]]:
    from readability import Document

    from neardup.text.html import strip_tags

    return {"readability-lxml": ("readability-lxml", lambda page: strip_tags(Document(text(page)).summary()))}


def _justext(text: Read) -> dict[str, tuple[str, Read]]:
    import justext

    def read(page: bytes) -> str:
        # Without stop words: the pages are in nine languages.
        paragraphs = justext.justext(page, frozenset(), stopwords_low=0, stopwords_high=0)
        return "\n".join(paragraph.text for paragraph in paragraphs if not paragraph.is_boilerplate)

    return {"jusText": ("justext", read)}


def _boilerpy3(text: Read) -> dict[str, tuple[str, Read]]:
    from boilerpy3.extractors import ArticleExtractor

    extractor = ArticleExtractor(raise_on_failure=False)
    return {"boilerpy3": ("boilerpy3", lambda page: str(extractor.get_content(text(page))))}


def measured(name: str, package: str, read: Read, pages: list[Gold], rounds: int) -> dict[str, Any]:
    """Measure one reader on all pages; the time is that of the fastest round."""
    failed = 0
    texts: list[str] = []
    best = float("inf")
    for _ in range(rounds + 1):  # the first loads what is loaded once
        failed, texts = 0, []
        begin = time.process_time()
        for page in pages:
            try:
                texts.append(read(page.page))
            except Exception as error:
                failed += 1
                texts.append("")
                note(f"{name}: {type(error).__name__}")
        best = min(best, time.process_time() - begin)
    found = [words(text) for text in texts]
    common = [(page.words & mine).total() for page, mine in zip(pages, found, strict=True)]
    of_gold = [page.words.total() for page in pages]
    of_found = [mine.total() for mine in found]
    each = [_scores(*counts) for counts in zip(common, of_found, of_gold, strict=True)]
    micro = _scores(sum(common), sum(of_found), sum(of_gold))
    macro = [sum(values) / len(values) for values in zip(*each, strict=True)]
    row: dict[str, Any] = {"method": name, "package": package, "version": importlib.metadata.version(package)}
    for kind, (precision, recall, f1) in (("micro", micro), ("macro", macro)):
        row |= {f"{kind}_p": round(precision, 4), f"{kind}_r": round(recall, 4), f"{kind}_f1": round(f1, 4)}
    lowest = min(f1 for _, _, f1 in each)
    return row | {"lowest_f1": round(lowest, 4), "cpu_ms": round(1000 * best / len(pages), 2), "failed": failed}


def _scores(common: int, found: int, wanted: int) -> tuple[float, float, float]:
    """Return precision, recall and F1."""
    return common / max(1, found), common / max(1, wanted), 2 * common / max(1, found + wanted)


def as_table(results: dict[str, Any]) -> str:
    """Return the results as Markdown."""
    header = ["method", "micro P", "R", "F1", "macro P", "R", "F1", "lowest F1", "CPU ms a page"]
    names = ["micro_p", "micro_r", "micro_f1", "macro_p", "macro_r", "macro_f1", "lowest_f1"]
    rows = [
        [f"{r['method']} ({r['version']})", *(f"{r[name]:.3f}" for name in names), r["cpu_ms"]] for r in results["rows"]
    ]
    return table(header, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=RESULTS / "main_text.json")
    options = parser.parse_args()
    logging.disable()
    warnings.simplefilter("ignore")
    pages, where = gold(), machine()
    rows = []
    for name, (package, read) in readers().items():
        note(name)
        rows.append(measured(name, package, read, pages, options.rounds))
    results = {"machine": where, "pages": len(pages), "rows": rows}
    save(options.out, "main_text", results)
    print(as_table(results))


if __name__ == "__main__":
    main()
