"""How a result shows itself in a notebook: some tables, without scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from neardup.findings import Findings
from neardup.pages.excerpts import clipped
from neardup.pages.parts import escaped
from neardup.reporting.families import reasons_of
from neardup.reporting.model import COPY, EQUAL, NEAR
from neardup.reporting.telling import value_at

#: So many of the largest families, and of the pairs nearest to the threshold, are listed.
_LISTED = 5
_NAME = 60
_CELL = 'style="text-align:left;padding:2px 12px 2px 0;vertical-align:top"'


def cell_of(found: Findings, summary: Mapping[str, Any]) -> str:
    """Return a result as HTML for a notebook's cell, its texts escaped.

    Parameters
    ----------
    found : Findings
        What the run found.
    summary : mapping
        That of the result.
    """
    head = f"{summary['documents']:,} documents: {summary['kept']:,} kept, {summary['dropped']:,} dropped"
    counts = dict(zip((COPY, EQUAL, NEAR), reasons_of(found), strict=True))
    rows: list[Sequence[object]] = [[name, f"{int(number.sum()):,}"] for name, number in counts.items()]
    rows += [[f"set aside: {name}", f"{number:,}"] for name, number in sorted(summary["set_aside"].items())]
    rows += [["families", f"{summary['families']:,}, the largest of {summary['largest_family']:,}"]]
    rows += [["pairs", f"{summary['pairs']:,}" + ("" if summary["all_pairs"] else ", only those with kept documents")]]
    rows += [["by", f"{found.recipe.in_words()}, keep {found.recipe.keep}"]]
    parts = [f"<p><strong>{escaped(head)}</strong></p>", _table(rows), _families(found), _borderline(found)]
    return f'<div class="neardup">{"".join(parts)}</div>'


def _families(found: Findings) -> str:
    sizes = found.families.documents
    largest = np.argsort(-sizes, kind="stable")[:_LISTED].tolist()
    rows = []
    for place in largest:
        members = np.flatnonzero(found.families.family == place + 1)
        named = ", ".join(_named(found, int(member)) for member in members[:_LISTED])
        more = f" and {len(members) - _LISTED:,} more" if len(members) > _LISTED else ""
        rows.append([f"{len(members):,}", f"from {found.families.smallest[place]:.3f}", named + more])
    return "<p>The largest families</p>" + _table(rows, ("documents", "similarities", "members")) if rows else ""


def _borderline(found: Findings) -> str:
    matches, similarity = found.matches, found.similarity
    nearest = np.argsort(similarity, kind="stable")[:_LISTED].tolist()
    rows = [
        [
            value_at(found.scale, float(similarity[at])),
            _named(found, int(matches.left[at])),
            _named(found, int(matches.right[at])),
        ]
        for at in nearest
    ]
    return "<p>Pairs that only just match</p>" + _table(rows, ("similarity", "left", "right")) if rows else ""


def _named(found: Findings, place: int) -> str:
    return clipped(str(found.documents.names.one(place)), _NAME)


def _table(rows: Sequence[Sequence[object]], head: Sequence[str] = ()) -> str:
    names = "".join(f'<th scope="col" {_CELL}>{escaped(name)}</th>' for name in head)
    lines = "".join("<tr>" + "".join(f"<td {_CELL}>{escaped(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    first = f"<thead><tr>{names}</tr></thead>" if head else ""
    return f"<table>{first}<tbody>{lines}</tbody></table>"
