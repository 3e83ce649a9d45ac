r"""Take the pictures of the pages that the documents show, from the examples corpus, in a real browser.

    pictures.py [NAME ...]

Each is written to docs/NAME.png; by default all are. The browser is Chromium, which Playwright drives
(pip install '.[test]'; make browser). The pages hold no text but that of examples/, which is the project's own.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from playwright.sync_api import Page, expect, sync_playwright

ROOT = Path(__file__).parent.parent
CORPUS = "examples/newswire.jsonl"
DOCS = ROOT / "docs"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
#: Pixels of the page's width, and around a picture.
WIDTH, MARGIN = 1100, 16
#: The commands that write the pages; each is given the name of its page last.
PAGES = {
    "explore": ("explore", CORPUS, "-o"),
    "report": ("dedup", CORPUS, "--threshold", "0.6", "--dry-run", "--report"),
}


def write_page(name: str, folder: Path) -> Path:
    """Write a page, unless it is there."""
    path = folder / f"{name}.html"
    if not path.exists():
        subprocess.run([sys.executable, "-m", "neardup", *PAGES[name], str(path)], cwd=ROOT, check=True)
    return path


class Picture(NamedTuple):
    """A part of a page: from the top of one element to the bottom of another, with what is opened for it."""

    page: str
    first: str
    last: str
    opened: str = ""

    def place(self, page: Page) -> dict[str, float]:
        """Return where it is."""
        boxes = [page.locator(one).first.bounding_box() for one in (self.first, self.last)]
        if boxes[0] is None or boxes[1] is None:
            raise SystemExit(f"the page {self.page} has no {self.first} or no {self.last}")
        left, top = min(boxes[0]["x"], boxes[1]["x"]) - MARGIN, boxes[0]["y"] - MARGIN
        right = max(box["x"] + box["width"] for box in (boxes[0], boxes[1]))
        return {"x": left, "y": top, "width": right + MARGIN - left, "height": boxes[1]["y"] + boxes[1]["height"] - top}


PICTURES = {
    "explore": Picture("explore", ".opening", "#over-words"),
    "report": Picture("report", ".opening", "#reasons"),
    "explore-pairs": Picture("explore", "#suspects details", "#suspects details", opened="#suspects details"),
}


def take_picture(browser: Any, path: Path, picture: Picture) -> bytes:
    """Return a part of a page as a PNG."""
    context = browser.new_context(viewport={"width": WIDTH, "height": 900}, reduced_motion="reduce")
    page = context.new_page()
    page.goto(path.as_uri())
    if picture.opened:
        page.locator(picture.opened).first.evaluate("details => { details.open = true }")
    # Charts are drawn once they are near the window.
    page.set_viewport_size({"width": WIDTH, "height": page.evaluate("document.documentElement.scrollHeight")})
    expect(page.locator(".chart:not(:has(svg)):visible")).to_have_count(0, timeout=30_000)
    shot: bytes = page.screenshot(full_page=True, clip=picture.place(page))
    context.close()
    return shot


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*PICTURES, []], metavar="NAME", help=", ".join(PICTURES))
    names = parser.parse_args().names or list(PICTURES)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        found = next(filter(None, map(shutil.which, BROWSERS)), None)
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        for name in names:
            picture = PICTURES[name]
            image = take_picture(browser, write_page(picture.page, Path(folder)), picture)
            (DOCS / f"{name}.png").write_bytes(image)
            print(f"docs/{name}.png: {len(image) / 1000:.0f} kB")
        browser.close()


if __name__ == "__main__":
    main()
