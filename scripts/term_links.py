"""Link each term to docs/terms.md where it first stands in the prose of a page.

    term_links.py PAGE.md ...

Headings, code, tables and what is a link already stay as they are, and so does a page that links a term.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

TERMS = Path(__file__).resolve().parent.parent / "docs" / "terms.md"
#: Words that are no terms everywhere: those of daily use, and those that a page is about.
_LEFT_OUT = {"audit", "document", "duplicate", "epoch", "exact", "label", "match", "measure", "original", "similarity"}
_LEFT_OUT |= {"probability", "reach", "score", "torn", "vector"}
#: What is no prose: fenced code, tables of figures, code, links and pictures, headings and rows, indented code, HTML.
_NO_PROSE = re.compile(
    r"^```.*?^```|<!-- table.*?<!-- end -->|`[^`\n]*`|!?\[[^\]]*\]\([^)]*\)|^[#|].*?$|^    .*?$|<[^>]*>|\*\*[^*]*\*\*",
    re.DOTALL | re.MULTILINE,
)


def anchors() -> list[str]:
    """Return the anchors of the terms, the longest first: a second step is no step."""
    found = re.findall(r'<a id="([\w-]+)">', TERMS.read_text("utf-8"))
    return sorted(set(found) - _LEFT_OUT, key=len, reverse=True)


def linked(text: str, to: str) -> str:
    """Return the text of a page with its terms linked; ``to`` is the way to the page of terms."""
    for anchor in anchors():
        if f"terms.md#{anchor})" in text:
            continue
        plural = f"(?:{anchor[:-1]}ies|{anchor}s?)" if anchor.endswith("y") else f"{anchor.replace('-', ' ')}s?"
        word = re.compile(rf"(?<![\w-]){plural}(?![\w-])", re.IGNORECASE)
        # What is no prose is hidden behind as many other characters, so that places stay.
        prose = _NO_PROSE.sub(lambda found: "\0" * len(found[0]), text)
        if found := word.search(prose):
            text = f"{text[: found.start()]}[{found[0]}]({to}#{anchor}){text[found.end() :]}"
    return text


if __name__ == "__main__":
    for name in sys.argv[1:]:
        page = Path(name)
        way = os.path.relpath(TERMS, page.resolve().parent)
        page.write_text(linked(page.read_text("utf-8"), way), "utf-8")
