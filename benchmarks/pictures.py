"""Take the pictures of pages that docs/ shows, from the examples corpus, in Chromium.

    pictures.py

Each is written to docs/NAME.png. Playwright drives the browser (pip install '.[test]'; make browser). The pages show
only the project's own texts in examples/.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Any

from harness import NEARDUP, ROOT, find_browser
from playwright.sync_api import expect, sync_playwright

CORPUS = "examples/newswire.jsonl"
#: Width of the page and margin around a picture, in pixels.
WIDTH, MARGIN = 1100, 16
#: The commands that write the pages, without the path of the page, which comes last.
PAGES = {
    "explore": ("explore", CORPUS, "-o"),
    "report": ("dedup", CORPUS, "--threshold", "0.6", "--dry-run", "--report"),
}
#: The page of each picture, and the elements at its top and its bottom. A picture of a <details> opens it first.
PICTURES = {
    "explore": ("explore", ".opening", "#over-words"),
    "report": ("report", ".opening", "#reasons"),
    "explore-pairs": ("explore", "#suspects details", "#suspects details"),
}


def take_picture(browser: Any, path: Path, top: str, bottom: str) -> bytes:
    context = browser.new_context(viewport={"width": WIDTH, "height": 900}, reduced_motion="reduce")
    page = context.new_page()
    page.goto(path.as_uri())
    if top.endswith("details"):
        page.locator(top).first.evaluate("details => { details.open = true }")
    # A chart is drawn only when it comes near the viewport.
    page.set_viewport_size({"width": WIDTH, "height": page.evaluate("document.documentElement.scrollHeight")})
    expect(page.locator(".chart:not(:has(svg)):visible")).to_have_count(0, timeout=30_000)
    first, last = (page.locator(selector).first.bounding_box() for selector in (top, bottom))
    x, y = min(first["x"], last["x"]) - MARGIN, first["y"] - MARGIN
    right = max(box["x"] + box["width"] for box in (first, last)) + MARGIN
    rectangle = {"x": x, "y": y, "width": right - x, "height": last["y"] + last["height"] - y}
    image: bytes = page.screenshot(full_page=True, clip=rectangle)
    context.close()
    return image


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        for name, command in PAGES.items():
            subprocess.run([*NEARDUP, *command, f"{folder}/{name}.html"], cwd=ROOT, check=True)
        browser = playwright.chromium.launch(executable_path=find_browser(), args=["--no-sandbox"])
        for name, (page, top, bottom) in PICTURES.items():
            image = take_picture(browser, Path(folder, f"{page}.html"), top, bottom)
            (ROOT / "docs" / f"{name}.png").write_bytes(image)
            print(f"docs/{name}.png: {len(image) / 1000:.0f} kB")
        browser.close()


if __name__ == "__main__":
    main()
