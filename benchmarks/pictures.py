"""Take the pictures of pages that docs/ shows, from the examples corpus, in Chromium.

    pictures.py [NAME ...]

Each is written to docs/NAME.png; all are taken by default. Playwright drives the browser (pip install '.[test]';
make browser). The pages show only the project's own texts in examples/.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from measuring import HERE, find_browser
from playwright.sync_api import Page, expect, sync_playwright

ROOT = HERE.parent
CORPUS = "examples/newswire.jsonl"
DOCS = ROOT / "docs"
#: Width of the page and margin around a picture, in pixels.
WIDTH, MARGIN = 1100, 16
#: The commands that write the pages, without the path of the page, which comes last.
PAGES = {
    "explore": ("explore", CORPUS, "-o"),
    "report": ("dedup", CORPUS, "--threshold", "0.6", "--dry-run", "--report"),
}


def write_page(name: str, folder: Path) -> Path:
    """Write a page unless it exists, and return its path."""
    path = folder / f"{name}.html"
    if not path.exists():
        subprocess.run([sys.executable, "-m", "neardup", *PAGES[name], str(path)], cwd=ROOT, check=True)
    return path


class Picture(NamedTuple):
    """A part of a page, from the top of one element to the bottom of another; `opened` is a <details> to open first."""

    page: str
    first: str
    last: str
    opened: str = ""

    def rectangle(self, page: Page) -> dict[str, float]:
        """Return the rectangle of the picture in pixels."""
        boxes = [page.locator(selector).first.bounding_box() for selector in (self.first, self.last)]
        if boxes[0] is None or boxes[1] is None:
            raise SystemExit(f"page {self.page}: {self.first} or {self.last} is not on it; correct PICTURES")
        left, top = min(boxes[0]["x"], boxes[1]["x"]) - MARGIN, boxes[0]["y"] - MARGIN
        right = max(box["x"] + box["width"] for box in (boxes[0], boxes[1]))
        return {"x": left, "y": top, "width": right + MARGIN - left, "height": boxes[1]["y"] + boxes[1]["height"] - top}


PICTURES = {
    "explore": Picture("explore", ".opening", "#over-words"),
    "report": Picture("report", ".opening", "#reasons"),
    "explore-pairs": Picture("explore", "#suspects details", "#suspects details", opened="#suspects details"),
}


def take_picture(browser: Any, path: Path, picture: Picture) -> bytes:
    """Return the PNG of a part of a page."""
    context = browser.new_context(viewport={"width": WIDTH, "height": 900}, reduced_motion="reduce")
    page = context.new_page()
    page.goto(path.as_uri())
    if picture.opened:
        page.locator(picture.opened).first.evaluate("details => { details.open = true }")
    # A chart is drawn only when it comes near the viewport.
    page.set_viewport_size({"width": WIDTH, "height": page.evaluate("document.documentElement.scrollHeight")})
    expect(page.locator(".chart:not(:has(svg)):visible")).to_have_count(0, timeout=30_000)
    image: bytes = page.screenshot(full_page=True, clip=picture.rectangle(page))
    context.close()
    return image


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*PICTURES, []], metavar="NAME", help=", ".join(PICTURES))
    names = parser.parse_args().names or list(PICTURES)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=["--no-sandbox"])
        for name in names:
            picture = PICTURES[name]
            image = take_picture(browser, write_page(picture.page, Path(folder)), picture)
            (DOCS / f"{name}.png").write_bytes(image)
            print(f"docs/{name}.png: {len(image) / 1000:.0f} kB")
        browser.close()


if __name__ == "__main__":
    main()
