"""The page of a comparison: who leads, how surely, and the curves behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from neardup.evaluation.curves import (
    COLOURS,
    f1_by_threshold,
    interval_text,
    points_of,
    precision_recall,
    value_text,
)
from neardup.pages.frame import check_drawing, escaped, page


def comparison_page(content: Mapping[str, Any]) -> str:
    """Return the page of a comparison.

    Parameters
    ----------
    content : mapping
        What ``Comparison.to_dict`` gives.

    Raises
    ------
    OutputError
        If the packages that draw are not installed.
    """
    check_drawing("a page")
    recipes = content["recipes"]
    points = list(points_of(recipes))
    charts = {"recall": precision_recall(points, recipes)}
    captions = {"recall": ("Precision by recall", "grey: lines of equal F1; towards the upper right is better")}
    similar = [point for point in points if point["scale"] != "distance"]
    if any(point["scale"] in ("similarity", "probability") for point in similar):
        learned = any(point["scale"] == "probability" for point in similar)
        title = "threshold (of the probability for a decision)" if learned else "threshold"
        charts["threshold"] = f1_by_threshold(similar, recipes, title)
        fixed = "; dashed: recipes with one answer" if any(point["scale"] == "fixed" for point in similar) else ""
        captions["threshold"] = (
            "F1 by threshold",
            f"ringed: the best threshold; a chosen recipe shows its interval{fixed}",
        )
    distant = [point for point in points if point["scale"] == "distance"]
    if distant:
        charts["distance"] = f1_by_threshold(distant, recipes, "largest Hamming distance of a match")
        captions["distance"] = ("F1 by Hamming distance", "simhash: pairs at or below the distance match")
    figures = "".join(
        f'<figure><figcaption>{title}<small>{note}</small></figcaption><div class="chart" id="{key}"></div></figure>'
        for key, (title, note) in captions.items()
    )
    own = ", decisions also at their own" if any(map(_own_row, recipes)) else ""
    body = [
        "<h1>Recipes compared</h1>",
        f'<p class="dim">{_basis(content)}</p>',
        _warnings(content["warnings"]),
        f"<p>{_verdict(content)}</p>",
        f"<h2>Each recipe at its best threshold{own}</h2>",
        _best_table(content),
        f'<section><h2>Curves</h2>{_legend(recipes)}<div class="charts">{figures}</div></section>',
        "<h2>Every threshold</h2>",
        _full_table(recipes, accuracy=not content["complete"]),
        "<h2>How to read this</h2>",
        _notes(content),
        f'<p class="dim">neardup {escaped(content["version"])}</p>',
    ]
    return page("Recipes compared - neardup", "\n".join(body), charts)


def _basis(content: Mapping[str, Any]) -> str:
    rest = "all other pairs count as none" if content["complete"] else "pairs without a label count nowhere"
    return (
        f"{content['documents']:,} documents; {content['duplicates']:,} pairs labelled as duplicates and "
        f"{content['others']:,} as none, in {content['groups']:,} groups; {rest}."
    )


def _warnings(warnings: Sequence[str]) -> str:
    if not warnings:
        return ""
    items = "".join(f"<li>{escaped(warning)}</li>" for warning in warnings)
    return f'<div class="warnings" role="note"><strong>Before you trust the figures</strong><ul>{items}</ul></div>'


def _verdict(content: Mapping[str, Any]) -> str:
    best = next(recipe for recipe in content["recipes"] if recipe["name"] == content["best"])
    row = best["best"]
    head = (
        f"<strong>{escaped(best['name'])}</strong> at {row['threshold']:g} has the highest F1: {value_text(row['f1'])} "
        f"({interval_text(row['f1'])})."
    )
    if not content["leads"]:
        return head
    sure = [escaped(lead["over"]) for lead in content["leads"] if lead["beyond_chance"]]
    unsure = [escaped(lead["over"]) for lead in content["leads"] if not lead["beyond_chance"]]
    parts = [f" It leads beyond chance: {', '.join(sure)}."] if sure else []
    parts += [f" These labels cannot tell it from: {', '.join(unsure)}."] if unsure else []
    return head + "".join(parts)


def _best_table(content: Mapping[str, Any]) -> str:
    leads = {lead["over"]: lead for lead in content["leads"]}
    partial = not content["complete"]
    head = ["recipe", "threshold", "F1", "behind the best", "precision", "recall", *(["accuracy"] if partial else [])]
    head += ["returned", "correct", "missed", *(["unlabelled"] if partial else []), "CPU ms / doc"]
    rows = []
    for recipe in sorted(content["recipes"], key=lambda one: -(one["best"]["f1"]["value"] or 0)):
        lead = leads.get(recipe["name"])
        wall = f"<small>wall {recipe['wall_ms_per_document']:.2g}</small>"
        for row in (recipe["best"], *_own_row(recipe)):
            best = row is recipe["best"]
            cells = [f'<td title="{escaped(recipe["description"])}">{escaped(recipe["name"])}</td>']
            cells += _cells(recipe, row, accuracy=partial, unlabelled=partial)
            cells.insert(3, f"<td>{'' if lead is None or not best else _with_interval(lead['difference'])}</td>")
            cells.append(f"<td>{recipe['cpu_ms_per_document']:.2g}{wall}</td>" if best else "<td></td>")
            rows.append(_table_row(cells, best=best and recipe["name"] == content["best"]))
    return _table(head, rows)


def _own_row(recipe: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return a decision's row at its own working point, unless that is its best."""
    if recipe["scale"] != "probability" or recipe["best"]["own"]:
        return []
    return [row for row in recipe["rows"] if row["own"]]


def _full_table(recipes: Sequence[Mapping[str, Any]], *, accuracy: bool) -> str:
    head = ["recipe", "threshold", "F1", "precision", "recall", *(["accuracy"] if accuracy else [])]
    head += ["returned", "correct", "missed", "unlabelled"]
    rows = []
    for recipe in recipes:
        for row in recipe["rows"]:
            cells = [f"<td>{escaped(recipe['name'])}</td>", *_cells(recipe, row, accuracy=accuracy, unlabelled=True)]
            rows.append(_table_row(cells, best=row["threshold"] == recipe["best"]["threshold"]))
    return _table(head, rows, "scroll tall")


def _cells(recipe: Mapping[str, Any], row: Mapping[str, Any], *, accuracy: bool, unlabelled: bool) -> list[str]:
    sign = "&le; " if recipe["scale"] == "distance" else ""
    own = "<small>its own</small>" if row["own"] else ""
    written = f"{row['threshold']:.4g}" if recipe["scale"] == "probability" else f"{row['threshold']:g}"
    threshold = "one answer" if recipe["scale"] == "fixed" else f"{sign}{written}{own}"
    counts = ["returned", "correct", "missed", *(["unlabelled"] if unlabelled else [])]
    names = ["f1", "precision", "recall", *(["accuracy"] if accuracy else [])]
    figures = [f"<td>{_with_interval(row[name])}</td>" for name in names]
    return [f"<td>{threshold}</td>", *figures, *(f"<td>{row[name]:,}</td>" for name in counts)]


def _table_row(cells: Sequence[str], *, best: bool) -> str:
    return f"<tr{' class=best' if best else ''}>{''.join(cells)}</tr>"


def _table(head: Sequence[str], rows: Sequence[str], kind: str = "scroll") -> str:
    names = "".join(f'<th scope="col">{name}</th>' for name in head)
    table = f"<table><thead><tr>{names}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    return f'<div class="{kind}" tabindex="0">{table}</div>'


def _legend(recipes: Sequence[Mapping[str, Any]]) -> str:
    buttons = [
        f'<button type="button" aria-pressed="false" data-highlight="{escaped(recipe["name"])}">'
        f'<span style="background:{COLOURS[at % len(COLOURS)]}"></span>{escaped(recipe["name"])}</button>'
        for at, recipe in enumerate(recipes)
    ]
    return f'<div class="legend" role="group" aria-label="Show one recipe">{"".join(buttons)}</div>'


def _notes(content: Mapping[str, Any]) -> str:
    asked = {"a decision": any(recipe["scale"] == "probability" for recipe in content["recipes"])}
    asked["accuracy"] = not content["complete"]
    notes = {
        "returned": "Pairs that the recipe returns at the threshold and that carry a label.",
        "correct, missed": "Labelled duplicates that it returns, and that it does not.",
        "precision, recall": "correct / returned, and correct / all labelled duplicates.",
        "F1": "2 correct / (returned + all labelled duplicates): 1 is perfect.",
        "accuracy": "Labelled pairs on the right side: duplicates that are returned and others that are not, of all. "
        "It depends on how many of either were labelled, so compare it on the same labels only.",
        "intervals": f"95 %, from {content['resamples']:,} draws of groups with replacement: documents that labelled "
        "duplicates connect are one group and stand or fall together. A figure of 1 without an error in any group has "
        "an interval of no width, which does not mean that it is certain.",
        "a decision": "Its thresholds are those of the probability; its own is the cut that it was saved with.",
        "best threshold": "The highest F1, the strictest of equals. It is chosen on these labels, so expect a little "
        "less on other texts.",
        "behind the best": "How much F1 the best recipe has more, over the same draws. Where the interval holds 0, or "
        "fewer than six groups differ, the labels cannot tell the two apart.",
        "ms / doc": "Time of the whole run at the loosest threshold, reading included, divided by the documents; "
        "stricter thresholds are faster. Compiling is not counted.",
    }
    told = {name: text for name, text in notes.items() if asked.get(name, True)}
    return f"<dl>{''.join(f'<dt>{name}</dt><dd>{text}</dd>' for name, text in told.items())}</dl>"


def _with_interval(figure: Mapping[str, Any]) -> str:
    return f"{value_text(figure)}<small>{interval_text(figure)}</small>"
