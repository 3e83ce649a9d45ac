"""Invented web pages: articles within the navigation of news sites."""

from __future__ import annotations

import random
from importlib.util import find_spec

import pytest

#: For tests of what needs the library that finds the main content.
needs_html = pytest.mark.skipif(find_spec("trafilatura") is None, reason="trafilatura is not installed")
needs_fast_html = pytest.mark.skipif(find_spec("resiliparse") is None, reason="resiliparse is not installed")

_WHO = ["the council", "a spokesman", "the harbour master", "her sister", "the minister", "an old farmer", "the court"]
_DID = ["said on monday that", "denied again that", "wrote in a letter that", "doubts that", "was told at noon that"]
_WHAT = ["the bridge will close", "prices rose by a tenth", "two ships had left the port", "the dam would hold"]
_WHEN = ["before the winter", "in spite of the rain", "for the third year in a row", "while nobody was looking"]
_SITES = ["The Harbour Courier", "Valley Tribune", "Nachrichten vom Fluss"]


def paragraphs(seed: int, count: int = 6) -> list[str]:
    """Return the paragraphs of an article, which depend on the seed."""
    draw = random.Random(seed)
    return [
        " ".join(
            f"{draw.choice(_WHO)} {draw.choice(_DID)} {draw.choice(_WHAT)} {draw.choice(_WHEN)}, {draw.randrange(999)} "
            f"people and {draw.randrange(999)} others among them.".capitalize()
            for _ in range(4)
        )
        for _ in range(count)
    ]


def page(article: list[str], site: int) -> str:
    """Return a page with an article below the long navigation of a site, in the markup of news sites."""
    draw, name = random.Random(1000 + site), _SITES[site]
    links = "".join(
        f'<li><a href="/{site}/{i}">{name} section {draw.randrange(9999)} {draw.choice(_WHAT)}</a></li>'
        for i in range(90)
    )
    body = "".join(f"<p>{paragraph}</p>\n" for paragraph in article)
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{article[0][:40]} | {name}</title>'
        f"<style>p {{ margin: {site}em }}</style><script>var site = {site};</script></head>\n<body>"
        f"<header><nav><ul>{links}</ul></nav></header>\n<main><article><h1>{article[0][:40]}</h1>\n{body}</article></main>\n"
        f'<footer><p>Copyright {name}. <a href="/terms">Terms of use</a> <a href="/privacy">Privacy</a></p></footer>'
        "</body></html>\n"
    )


def newspaper() -> list[str]:
    """Return pages of three sites: twelve articles, some on two sites, some with one paragraph less or more."""
    found = []
    for seed in range(12):
        article = paragraphs(seed)
        found.append(page(article, seed % 3))
        if seed % 2:
            found.append(page(article, (seed + 1) % 3))
        if seed % 3 == 1:
            found.append(page(article[:-1], (seed + 2) % 3))
        if seed % 4 == 3:
            found.append(page([*article, *paragraphs(100 + seed, 1)], seed % 3))
    return found
