r"""Take the pictures of the pages that the documents show, from the examples corpus, in a real browser.

    pictures.py [NAME ...]

Each is written to docs/NAME.png; by default all are. The browser is Chromium, which Playwright drives
(pip install '.[test]'; make browser). The pages hold no text but that of examples/, which is the project's own.
"""

from __future__ import annotations

import argparse
import base64
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from playwright.sync_api import Page, expect, sync_playwright

ROOT = Path(__file__).parent.parent
CORPUS = "examples/newswire.jsonl"
DOCS = ROOT / "docs"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
#: Pixels of the page's width, and around a picture.
WIDTH, ROOM = 1100, 16
#: A picture has so many colours at most.
COLOURS = 128

Bytes = npt.NDArray[np.uint8]

#: Runs in the page: the pixels of a PNG as text in base 64, with width and height.
PIXELS = """async (data) => {
  const image = new Image();
  image.src = "data:image/png;base64," + data;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = image.width;
  canvas.height = image.height;
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  const pixels = context.getImageData(0, 0, image.width, image.height).data;
  let text = "";
  for (let at = 0; at < pixels.length; at += 32768) text += String.fromCharCode(...pixels.subarray(at, at + 32768));
  return [image.width, image.height, btoa(text)];
}"""


#: The commands that write the pages; each is given the name of its page last.
PAGES = {
    "explore": ("explore", CORPUS, "-o"),
    "report": ("dedup", CORPUS, "--threshold", "0.6", "--dry-run", "--report"),
}


def written(name: str, folder: Path) -> Path:
    """Write a page, unless it is there."""
    path = folder / f"{name}.html"
    if not path.exists():
        subprocess.run([sys.executable, "-m", "neardup", *PAGES[name], str(path)], cwd=ROOT, check=True)
    return path


class Picture(NamedTuple):
    """A part of a page: from the top of one element to the bottom of another."""

    page: str
    first: str
    last: str

    def place(self, page: Page) -> dict[str, float]:
        """Return where it is."""
        boxes = [page.locator(one).first.bounding_box() for one in (self.first, self.last)]
        if boxes[0] is None or boxes[1] is None:
            raise SystemExit(f"the page {self.page} has no {self.first} or no {self.last}")
        left, top = min(boxes[0]["x"], boxes[1]["x"]) - ROOM, boxes[0]["y"] - ROOM
        right = max(box["x"] + box["width"] for box in (boxes[0], boxes[1]))
        return {"x": left, "y": top, "width": right + ROOM - left, "height": boxes[1]["y"] + boxes[1]["height"] - top}


PICTURES = {
    "explore": Picture("explore", ".opening", "#over-words"),
    "report": Picture("report", ".opening", "#reasons"),
    "explore-pairs": Picture("explore", "#pairs .band:has(details[open]) h3", "#pairs details[open]"),
}


def taken(browser: Any, path: Path, picture: Picture) -> Bytes:
    """Return the pixels of a part of a page, uint8[height, width, 3]."""
    context = browser.new_context(viewport={"width": WIDTH, "height": 900}, reduced_motion="reduce")
    page = context.new_page()
    page.goto(path.as_uri())
    # Charts are drawn once they are near the window.
    page.set_viewport_size({"width": WIDTH, "height": page.evaluate("document.documentElement.scrollHeight")})
    expect(page.locator(".chart:not(:has(svg))")).to_have_count(0, timeout=30_000)
    shot = page.screenshot(full_page=True, clip=picture.place(page))
    width, height, text = page.evaluate(PIXELS, base64.b64encode(shot).decode())
    context.close()
    pixels = np.frombuffer(base64.b64decode(text), np.uint8).reshape(height, width, 4)
    return pixels[:, :, :3]


def with_few_colours(pixels: Bytes, most: int = COLOURS) -> tuple[Bytes, Bytes]:
    """Return a palette, uint8[k, 3], and for each pixel its place in it: median cut [Heckbert 1982]."""
    flat = pixels.reshape(-1, 3)
    colours, inverse, counts = np.unique(flat, axis=0, return_inverse=True, return_counts=True)
    boxes = [np.arange(len(colours))]
    while len(boxes) < most:
        spread = [np.ptp(colours[box], axis=0).max() * np.sqrt(counts[box].sum()) for box in boxes]
        widest = int(np.argmax(spread))
        if not spread[widest]:
            break
        box = boxes.pop(widest)
        channel = int(np.argmax(np.ptp(colours[box], axis=0)))
        box = box[np.argsort(colours[box, channel], kind="stable")]
        half = np.searchsorted(np.cumsum(counts[box]), counts[box].sum() / 2)
        cut = int(np.clip(half, 1, len(box) - 1))
        boxes += [box[:cut], box[cut:]]
    palette = np.array([np.average(colours[box], axis=0, weights=counts[box]).round() for box in boxes], np.uint8)
    place = np.empty(len(colours), np.uint8)
    for at, box in enumerate(boxes):
        place[box] = at
    return palette, place[inverse.reshape(-1)].reshape(pixels.shape[:2])


def as_png(palette: Bytes, pixels: Bytes) -> bytes:
    """Return a PNG with a palette."""
    height, width = pixels.shape

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    # Each line begins with the number of its filter, 0 for none.
    lines = np.concatenate([np.zeros((height, 1), np.uint8), pixels], axis=1).tobytes()
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    parts = chunk(b"IHDR", head), chunk(b"PLTE", palette.tobytes()), chunk(b"IDAT", zlib.compress(lines, 9))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts) + chunk(b"IEND", b"")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*PICTURES, []], metavar="NAME", help=", ".join(PICTURES))
    names = parser.parse_args().names or list(PICTURES)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        found = next(filter(None, map(shutil.which, BROWSERS)), None)
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        for name in names:
            picture = PICTURES[name]
            pixels = taken(browser, written(picture.page, Path(folder)), picture)
            image = as_png(*with_few_colours(pixels))
            (DOCS / f"{name}.png").write_bytes(image)
            print(f"docs/{name}.png: {len(image) / 1000:.0f} kB")
        browser.close()


if __name__ == "__main__":
    main()
