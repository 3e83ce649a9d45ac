"""The report of a run over a corpus."""

from __future__ import annotations

import platform
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import fields
from importlib import metadata
from typing import Any, TypedDict, Unpack

import numpy as np

from neardup.errors import RecipeError, option
from neardup.keep.keepers import Integers
from neardup.pages.documents import Material
from neardup.pages.html import clipped, escaped
from neardup.pages.page import check_drawing
from neardup.pages.report import COPY, EQUAL_FEATURES, NEAR, Case, Extent, Report, Row, binned
from neardup.pages.report_page import similarity_chart
from neardup.pages.sections import (
    DROPPED_LISTED,
    KEPT_LISTED,
    Cases,
    Picked,
    Reasons,
    Swept,
    Telling,
    case_of,
    chosen_cases,
    chosen_families,
    family_of,
    head_of,
    known_pairs,
    named,
    reasons_of,
    similarity_at,
    similarity_of,
    swept,
    value_at,
)
from neardup.recipe.recipe import CHAIN_VERSION
from neardup.search.findings import Findings
from neardup.search.margin import has_threshold
from neardup.version import __version__

_MEANINGS = {
    COPY: "the text of a document that comes before it, byte for byte",
    EQUAL_FEATURES: "other bytes, but the same features as a document that comes before it",
    NEAR: "features of its own, and a keeper that they match",
}


class Wanted(TypedDict, total=False):
    """What a report is called, and how much of a run it shows.

    Attributes
    ----------
    title, command : str
        The heading, and the command that made it; by default the usual one, and none.
    families : int
        So many of the largest families, 50 by default, and half as many of the others, drawn at random. Raising it
        makes pages larger.
    cases : int
        So many pairs just above and just below the threshold, 10 by default.
    rows : int
        So many dropped documents in the list to search, 2000 by default; a random part of them if they are more.
    seed : int
        Of what is drawn at random; another one draws others.
    title_column, time_column : str
        Columns of titles and times; by default they are found by their names.
    """

    title: str
    command: str
    families: int
    cases: int
    rows: int
    seed: int
    title_column: str
    time_column: str


def report_of(found: Findings, summary: Mapping[str, Any], **asked: Unpack[Wanted]) -> Report:
    """Return the report of a run.

    Parameters
    ----------
    found : Findings
        What the run found; its corpus is read once more, for the documents that are shown.
    summary : mapping
        That of the result.
    **asked
        As in ``Wanted``.

    Raises
    ------
    NeardupError
        If an option is unknown or out of range, or the corpus cannot be read again.
    """
    known: Mapping[str, Any] = asked
    for name in known:
        if name not in Wanted.__annotations__:
            raise RecipeError(f"{name!r} is no option of a report; its options are {', '.join(Wanted.__annotations__)}")
    wanted = Extent(**{field.name: known[field.name] for field in fields(Extent) if field.name in known})
    reasons = reasons_of(found)
    listed = chosen_families(found, wanted.families, wanted.seed)
    cases = chosen_cases(found, wanted.cases, wanted.seed)
    rows = _drawn(np.flatnonzero(found.goes), wanted.rows, wanted.seed)
    members = np.array([place for family in listed for place in (*family.stay, *family.go)], np.int64)
    material = Material(
        found.corpus,
        found.documents.names,
        content=found.recipe.content,
        threads=summary["threads"],
        title_column=asked.get("title_column", ""),
        time_column=asked.get("time_column", ""),
    )
    kept = found.kept.keeper[members]
    material.load(np.unique(np.concatenate([members, kept, rows, np.array(cases.positions, np.int64)])))
    loose, around = known_pairs(found)[0], found.margin
    unknown = "" if around is not None and around.matches is not None else _unknown(found)
    every = None
    if found.matches.complete and has_threshold(found.recipe):
        edges = np.array([case.edge for case in cases.every], np.int64)
        every = swept(found, members, edges, unknown)
    goes, matching = _fates(every, members, cases)
    evidence = Telling(found, [place for family in listed for place in family.go])

    def shown(picked: Sequence[Picked], *, near: bool = True) -> list[Case]:
        return [
            case_of(one, material, head_of(found, loose, one), matching.get(one.edge, ""), near=near) for one in picked
        ]

    return Report(
        title=asked.get("title") or "What was dropped, and why",
        documents=summary["documents"],
        kept=summary["kept"],
        command=asked.get("command", ""),
        inputs=found.corpus.inputs,
        recipe=found.recipe.to_toml(),
        in_words=f"{found.recipe.in_words()}, keep {found.recipe.keep}",
        fingerprint=found.recipe.fingerprint,
        versions=_versions(found),
        reasons=[(name, int(number.sum()), _MEANINGS[name]) for name, number in zip(_MEANINGS, reasons, strict=True)],
        quarantined=sorted(summary["set_aside"].items(), key=lambda item: (-item[1], item[0])),
        similarity=binned(found.kept.similarity[found.goes]),
        similarity_of=similarity_of(found),
        pair_similarity=binned(found.scale.similarities(loose)) if loose.complete else (),
        threshold=float(similarity_at(found.scale, found.scale.threshold)),
        families=[family_of(family, found, reasons, material, evidence, goes.__getitem__) for family in listed],
        families_total=summary["families"],
        largest_family=summary["largest_family"],
        cases_above=shown(cases.above),
        cases_below=shown(cases.below),
        cases_elsewhere=shown(cases.elsewhere, near=False),
        cases_note=unknown,
        sweep=every.sweep if every else None,
        stages=list(summary["stages"]),
        rows=[_row(place, found, reasons, material) for place in rows.tolist()],
        rows_total=summary["dropped"],
        facts=_facts(summary),
        notes=_notes(found, summary, wanted),
    )


def similarity_plot(found: Findings) -> Any:
    """Return the similarities of dropped documents to their keepers as an Altair chart, which loads nothing."""
    check_drawing("a chart")
    return similarity_chart(binned(found.kept.similarity[found.goes]), similarity_of(found), y="dropped documents")


def _drawn(places: Integers, most: int, seed: int) -> Integers:
    """Return the places, or some of them that are drawn at random, in order."""
    if len(places) <= most:
        return places
    return np.sort(np.random.default_rng(seed).choice(places, most, replace=False))


def _fates(every: Swept | None, members: Integers, cases: Cases) -> tuple[Mapping[int, str], Mapping[int, str]]:
    """Return at which thresholds documents go, and pairs match, as texts of 0 and 1."""
    if every is None:
        return dict.fromkeys(members.tolist(), ""), {}
    goes = ["".join("01"[go] for go in column) for column in every.goes.T.astype(int).tolist()]
    matches = ["".join("01"[match] for match in column) for column in every.matches.T.astype(int).tolist()]
    return (
        dict(zip(members.tolist(), goes, strict=True)),
        dict(zip((case.edge for case in cases.every), matches, strict=True)),
    )


def _unknown(found: Findings) -> str:
    """Return why pairs beyond the threshold are not known."""
    if found.margin is not None and found.margin.note:
        return found.margin.note
    if not found.matches.complete:
        return _too_many()
    looked = option("--report-margin 0.2", "margin=0.2")
    return f"Pairs beyond the threshold were not looked for; {looked} looks for them."


def _too_many() -> str:
    return (
        f"More pairs match than {option('--pairs-per-document')} allows to find: only those of dropped documents with "
        "kept ones are known, so other thresholds, and which members of a family do not match each other, are not."
    )


def _versions(found: Findings) -> dict[str, str]:
    versions = {
        "neardup": __version__,
        "chain of steps": str(CHAIN_VERSION),
        "Unicode": unicodedata.unidata_version,
        "Python": platform.python_version(),
    }
    if found.recipe.content == "html":
        versions["trafilatura"] = metadata.version("trafilatura")
    return versions


def _row(place: int, found: Findings, reasons: Reasons, material: Material) -> Row:
    shown = material.shown(place)
    return Row(
        shown.id,
        material.id(int(found.kept.keeper[place])),
        float(found.kept.similarity[place]),
        int(found.families.family[place]),
        reasons.of(place),
        named(shown),
    )


def _facts(summary: Mapping[str, Any]) -> dict[str, str]:
    facts = {
        "text": f"{summary['bytes_saved']:,} of {summary['text_bytes']:,} bytes dropped",
        "pairs": f"{summary['pairs']:,}" + ("" if summary["all_pairs"] else ", only those with kept documents"),
        "threads": f"{summary['threads']}",
    }
    if summary["undecidable"]:
        facts["undecidable"] = f"{summary['undecidable']:,} without anything to compare: kept, for nothing can match"
    if summary["without_keep_value"]:
        facts["keep order"] = f"{summary['without_keep_value']:,} without a value to go by, put last"
    if "decision" in summary:
        known = summary["decision"]
        cut = "no cut" if known["cut"] is None else f"g >= {known['cut']:.4g}"
        facts["decision"] = (
            f"{known['fingerprint']}, {cut}; {known['passed']:,} of {known['candidates']:,} candidates of its net pass "
            f"({known['net']}); it compares {known['vector']}"
        )
    search = summary["search"]
    if "bands" in search:
        facts["search"] = (
            f"LSH, {search['bands']} bands of {search['rows']} rows: finds {search['recall_at_threshold']:.2%} of the "
            f"pairs at Jaccard {search['jaccard_at_threshold']:.4g}"
        )
    return facts


def _notes(found: Findings, summary: Mapping[str, Any], wanted: Extent) -> list[str]:
    """Return what a reader of the page must know: what is sampled, cut or unknown."""
    notes = []
    shown = min(summary["families"], wanted.families + wanted.families // 2)
    if shown < summary["families"]:
        notes.append(
            f"{shown:,} of {summary['families']:,} families are shown: the {wanted.families:,} largest and a random "
            f"{shown - wanted.families:,} of the others ({option('--report-families', 'families')})."
        )
    if found.families.documents.max(initial=0) > DROPPED_LISTED + 1:
        notes.append(
            f"Of a family, up to {KEPT_LISTED} kept and {DROPPED_LISTED} dropped documents are listed, the least "
            "similar to their keepers first."
        )
    if summary["dropped"] > wanted.rows:
        every = option("--duplicates FILE writes all of them", "result.dropped has all of them")
        notes.append(
            f"The list of dropped documents holds a random {wanted.rows:,} of {summary['dropped']:,} "
            f"({option('--report-rows', 'rows')}); {every}."
        )
    if not found.matches.complete:
        notes.append(_too_many())
    return notes


#: So many of the largest families, and of the pairs nearest to the threshold, are listed.
_LISTED = 5
_NAME_IN_CELL = 60
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
    counts = dict(zip((COPY, EQUAL_FEATURES, NEAR), reasons_of(found), strict=True))
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
        named = ", ".join(_name_in_cell(found, int(member)) for member in members[:_LISTED])
        more = f" and {len(members) - _LISTED:,} more" if len(members) > _LISTED else ""
        rows.append([f"{len(members):,}", f"from {found.families.smallest[place]:.3f}", named + more])
    return "<p>The largest families</p>" + _table(rows, ("documents", "similarities", "members")) if rows else ""


def _borderline(found: Findings) -> str:
    matches, similarity = found.matches, found.similarity
    nearest = np.argsort(similarity, kind="stable")[:_LISTED].tolist()
    rows = [
        [
            value_at(found.scale, float(similarity[at])),
            _name_in_cell(found, int(matches.left[at])),
            _name_in_cell(found, int(matches.right[at])),
        ]
        for at in nearest
    ]
    return "<p>Pairs that only just match</p>" + _table(rows, ("similarity", "left", "right")) if rows else ""


def _name_in_cell(found: Findings, place: int) -> str:
    return clipped(str(found.documents.names.one(place)), _NAME_IN_CELL)


def _table(rows: Sequence[Sequence[object]], head: Sequence[str] = ()) -> str:
    names = "".join(f'<th scope="col" {_CELL}>{escaped(name)}</th>' for name in head)
    lines = "".join("<tr>" + "".join(f"<td {_CELL}>{escaped(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    first = f"<thead><tr>{names}</tr></thead>" if head else ""
    return f"<table>{first}<tbody>{lines}</tbody></table>"
