"""Link the first use of each term in the prose of a page to docs/terms.md.

    term_links.py PAGE.md ...

Headings, code, tables and existing links are left alone, and so are terms that the page already links.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

TERMS = Path(__file__).resolve().parent.parent / "docs" / "terms.md"
#: Terms that are not linked: everyday words, and words that whole pages are about.
_NOT_LINKED = {
    "audit",
    "document",
    "duplicate",
    "epoch",
    "exact",
    "label",
    "match",
    "measure",
    "original",
    "similarity",
}
_NOT_LINKED |= {"probability", "reach", "score", "torn", "vector"}
#: What is not prose: fenced code, tables of figures, code, links and pictures, headings and rows, indented code, HTML.
_NOT_PROSE = re.compile(
    r"^```.*?^```|<!-- table.*?<!-- end -->|`[^`\n]*`|!?\[[^\]]*\]\([^)]*\)|^[#|].*?$|^    .*?$|<[^>]*>|\*\*[^*]*\*\*",
    re.DOTALL | re.MULTILINE,
)


def anchors() -> list[str]:
    """Return the anchors of the terms, the longest first: ``second step`` before ``step``."""
    found = re.findall(r'<a id="([\w-]+)">', TERMS.read_text("utf-8"))
    return sorted(set(found) - _NOT_LINKED, key=len, reverse=True)


def link_terms(text: str, target: str) -> str:
    """Return the text of a page with its terms linked; ``target`` is the path to the page of terms."""
    for anchor in anchors():
        if f"terms.md#{anchor})" in text:
            continue
        plural = f"(?:{anchor[:-1]}ies|{anchor}s?)" if anchor.endswith("y") else f"{anchor.replace('-', ' ')}s?"
        word = re.compile(rf"(?<![\w-]){plural}(?![\w-])", re.IGNORECASE)
        # All other text is masked by as many characters, so that positions stay the same.
        prose = _NOT_PROSE.sub(lambda found: "\0" * len(found[0]), text)
        if found := word.search(prose):
            text = f"{text[: found.start()]}[{found[0]}]({target}#{anchor}){text[found.end() :]}"
    return text


if __name__ == "__main__":
    for name in sys.argv[1:]:
        page = Path(name)
        target = os.path.relpath(TERMS, page.resolve().parent)
        page.write_text(link_terms(page.read_text("utf-8"), target), "utf-8")
