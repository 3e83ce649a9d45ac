"""The page of a comparison, and its notebook cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from neardup.documents.column_paths import column_words
from neardup.evaluation.intervals import MIN_GROUPS, format_interval, format_value
from neardup.pages import html
from neardup.pages.html import Html, escape
from neardup.pages.numbers import format_count
from neardup.pages.page import check_drawing, page

#: A system or a row of ``Comparison.to_dict``.
Json = Mapping[str, Any]


def comparison_page(content: Json, *, command_line: str = "") -> str:
    """Return the page of a comparison."""
    check_drawing("a page")
    from neardup.evaluation.comparison_charts import build_charts
    from neardup.pages.charts import COLOURS, SHAPES

    recipes = content["recipes"]
    charts = list(build_charts(recipes))
    own = ", classifiers also at their own" if any(map(_own_threshold_rows, recipes)) else ""
    body = [
        html.opening("Recipes compared", _data_line(content)),
        html.tiles(_tile_rows(content)),
        html.notes(content["warnings"], title="Before you trust the figures"),
        Html(f"<p>{_verdict(content)}</p>"),
        html.section("best", f"Each recipe at its best threshold{own}", _best_table(content)),
        html.section(
            "curves",
            "Curves",
            html.legend([one["name"] for one in recipes], COLOURS, shapes=SHAPES, label="Show one recipe"),
            html.figures(charts),
        ),
        html.section("all", "Every threshold", _full_table(recipes, accuracy=not content["complete"])),
        html.section("reading", "How to read this", _glossary(content)),
        _provenance_section(recipes, command_line),
        html.closing(f"neardup {content['version']}"),
    ]
    return page("Recipes compared - neardup", "\n".join(body), charts)


def _provenance_section(recipes: Sequence[Json], command_line: str) -> Html:
    commands = [Html("<h3>Command</h3>"), html.command(command_line)] if command_line else []
    rows = {
        recipe["name"]: html.join_html(filter(None, [recipe["description"], _fingerprints(recipe)]), Html("<br>"))
        for recipe in recipes
    }
    return html.section("made", "How this was made", *commands, Html("<h3>Recipes</h3>"), html.facts(rows))


def _fingerprints(recipe: Json) -> str:
    """Return the fingerprint of a recipe with its own threshold, and with its best one."""
    own, best = next(row for row in recipe["rows"] if row["own"]), recipe["best"]
    at = "" if recipe["scale"] == "fixed" else f" at its own threshold, {_threshold(recipe, own)}"
    fingerprint = f"Fingerprint{at}: {recipe['fingerprint']}"
    if best["own"]:
        return f"{fingerprint}; it is the best here" if at else fingerprint
    if best["fingerprint"] is None:
        return fingerprint
    return f"{fingerprint}; at the best one here, {_threshold(recipe, best)}: {best['fingerprint']}"


def _tile_rows(content: Json) -> list[tuple[str, str, str]]:
    best = next(recipe for recipe in content["recipes"] if recipe["name"] == content["best"])
    row, equals = best["best"], _equal_names(content, best)
    at = f"at {_threshold(best, row)}" if best["scale"] != "fixed" else ""
    also = f"as {'has' if len(equals) == 1 else 'have'} {format_count(len(equals), 'other')}" if equals else ""
    labelled = f"{content['duplicates']:,} duplicates, {content['others']:,} others"
    return [
        (best["name"], "has the highest F1", ", ".join(filter(None, (at, also)))),
        (format_value(row["f1"]), "F1", format_interval(row["f1"])),
        (format_value(row["precision"]), "precision", format_interval(row["precision"])),
        (format_value(row["recall"]), "recall", format_interval(row["recall"])),
        (f"{content['duplicates'] + content['others']:,}", "labelled pairs", labelled),
    ]


def _equal_names(content: Json, best: Json) -> list[str]:
    """Return the names of the other recipes whose best F1 is that of the best one."""
    others = (recipe for recipe in content["recipes"] if recipe is not best)
    return [recipe["name"] for recipe in others if recipe["best"]["f1"]["value"] == best["best"]["f1"]["value"]]


def _data_line(content: Json) -> str:
    rest = "all other pairs count as different" if content["complete"] else "pairs without a label do not count"
    columns = f" Columns: {column_words(content['columns'])}." if content["columns"] else ""
    return (
        f"{content['documents']:,} documents; {content['duplicates']:,} pairs labelled as duplicates and "
        f"{content['others']:,} as different, in {content['groups']:,} groups; {rest}.{columns}"
    )


def _verdict(content: Json) -> str:
    best = next(recipe for recipe in content["recipes"] if recipe["name"] == content["best"])
    row = best["best"]
    at = "" if best["scale"] == "fixed" else f" at {_threshold(best, row)}"
    head = (
        f"<strong>{escape(best['name'])}</strong>{at} has the highest F1: {format_value(row['f1'])} "
        f"({format_interval(row['f1'])})"
    )
    equals = _equal_names(content, best)
    head += f", as {'has' if len(equals) == 1 else 'have'} {escape(_join_names(equals, 'and'))}." if equals else "."
    if not content["leads"]:
        return head
    return head + "".join(f" {escape(sentence)}." for sentence in lead_sentences(content))


def notebook_html(content: Json) -> str:
    """Return the best recipe and each recipe at its best threshold, for a notebook, without a page's style."""
    return f'<div class="neardup" style="overflow-x:auto"><p>{_verdict(content)}</p>{_best_table(content)}</div>'


def lead_sentences(content: Json) -> list[str]:
    """Return sentences on the recipes that the best one beats, on ties, and on those with too few groups for a test."""
    best, leads = content["best"], content["leads"]
    few = [lead for lead in leads if lead["groups"] < MIN_GROUPS and (lead["groups"] or content["groups"] < MIN_GROUPS)]
    worse = [lead["over"] for lead in leads if lead["beyond_chance"]]
    ties = [lead["over"] for lead in leads if not lead["beyond_chance"] and lead not in few]
    sentences = [f"{best} is better than {_join_names(worse, 'and')}, beyond chance"] if worse else []
    sentences += [f"These labels cannot tell {best} from {_join_names(ties, 'or')}"] if ties else []
    by_groups: dict[int, list[str]] = {}
    for lead in sorted(few, key=lambda lead: -int(lead["groups"])):
        by_groups.setdefault(lead["groups"], []).append(lead["over"])
    if by_groups:
        differ = "; ".join(f"from {_join_names(names, 'and')} in {groups}" for groups, names in by_groups.items())
        sentences.append(f"Too few groups for a test, which needs {MIN_GROUPS}: {best} differs {differ}")
    return sentences


def _join_names(names: Sequence[str], last: str) -> str:
    return f" {last} ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _best_table(content: Json) -> Html:
    leads = {lead["over"]: lead for lead in content["leads"]}
    partial = not content["complete"]
    head = ["recipe", "threshold", "F1", Html("behind<br>the best"), "precision", "recall"]
    head += [*(["accuracy"] if partial else []), "returned", "correct", Html("CPU ms<br>/ doc")]
    rows: list[list[object]] = []
    best: set[int] = set()
    for recipe in sorted(content["recipes"], key=lambda one: -(one["best"]["f1"]["value"] or 0)):
        lead = leads.get(recipe["name"])
        wall = f"<br><small>wall {_format_ms(recipe['wall_ms_per_document'])}</small>"
        for row in (recipe["best"], *_own_threshold_rows(recipe)):
            leading = row is recipe["best"]
            name = Html(f'<span title="{escape(recipe["description"])}">{escape(recipe["name"])}</span>')
            cells = [name, *_cells(recipe, row, ("returned", "correct"), accuracy=partial)]
            cells.insert(3, "" if lead is None or not leading else _with_interval(lead["difference"]))
            cells.append(Html(f"{_format_ms(recipe['cpu_ms_per_document'])}{wall}") if leading else "")
            if leading and recipe["name"] == content["best"]:
                best.add(len(rows))
            rows.append(cells)
    return html.table(head, rows, highlighted=best)


def _format_ms(time: float) -> str:
    """Return milliseconds with two digits, or one below a tenth: a wider column would make the table scroll."""
    return f"{time:,.0f}" if time >= 10 else f"{time:.{1 if time < 0.1 else 2}g}"


def _own_threshold_rows(recipe: Json) -> list[Json]:
    """Return a classifier's row at its own cut, unless that is its best."""
    if recipe["scale"] != "probability" or recipe["best"]["own"]:
        return []
    return [row for row in recipe["rows"] if row["own"]]


def _full_table(recipes: Sequence[Json], *, accuracy: bool) -> Html:
    counts = "returned", "correct", "missed", "unlabelled"
    head = ["recipe", "threshold", "F1", "precision", "recall", *(["accuracy"] if accuracy else []), *counts]
    rows: list[list[object]] = []
    best: set[int] = set()
    for recipe in recipes:
        for row in recipe["rows"]:
            if row["threshold"] == recipe["best"]["threshold"]:
                best.add(len(rows))
            rows.append([recipe["name"], *_cells(recipe, row, counts, accuracy=accuracy)])
    return html.table(head, rows, highlighted=best, tall=True)


def _cells(recipe: Json, row: Json, counts: Sequence[str], *, accuracy: bool) -> list[object]:
    own = Html("<br><small>its own</small>") if row["own"] else ""
    names = ["f1", "precision", "recall", *(["accuracy"] if accuracy else [])]
    threshold = Html(f"{html.to_html(_threshold(recipe, row))}{own}")
    return [threshold, *(_with_interval(row[name]) for name in names), *(row[name] for name in counts)]


def _threshold(recipe: Json, row: Json) -> str:
    if recipe["scale"] == "fixed":
        return "one answer"
    written = f"{row['threshold']:.4g}" if recipe["scale"] == "probability" else f"{row['threshold']:g}"
    return f"\u2264 {written}" if recipe["scale"] == "distance" else written


def _glossary(content: Json) -> Html:
    meanings = {
        "returned": "Returned pairs with a label. Pairs without one are counted as unlabelled and not used.",
        "correct, missed": "Labelled duplicates that the recipe returns, and those that it does not.",
        "precision, recall": "correct / returned, and correct / all labelled duplicates.",
        "F1": "2 correct / (returned + all labelled duplicates): 1 is perfect.",
        "accuracy": "The share of labelled pairs with the right verdict: duplicates that are returned, and others that "
        "are not. It depends on how many of each are labelled, so compare it on the same labels only.",
        "intervals": f"95%, from {content['resamples']:,} draws of groups with replacement. Documents connected by "
        "labelled duplicates are one group and are drawn together. A figure of 1 without an error in any group has an "
        "interval of no width, which does not make it certain.",
        "a classifier": "Its thresholds are probabilities; its own threshold is the cut in its file.",
        "best threshold": "The threshold with the highest F1, the strictest of equals. It is chosen on these labels, "
        "so expect slightly lower figures on other texts.",
        "behind the best": "The lead of the best recipe in F1, over the same draws. If its interval contains 0, the "
        f"labels cannot tell the two apart; a test needs at least {MIN_GROUPS} groups in which they differ.",
        "ms / doc": "The time of the run at the loosest threshold, with reading and without compilation, divided by "
        "the number of documents. Stricter thresholds are faster.",
    }
    if not any(recipe["scale"] == "probability" for recipe in content["recipes"]):
        del meanings["a classifier"]
    if content["complete"]:
        del meanings["accuracy"]
    return html.facts(meanings)


def _with_interval(figure: Json) -> Html:
    # Notebooks lack the page's style and need the line break.
    interval = format_interval(figure)
    return Html(f"{format_value(figure)}<br><small>{interval}</small>" if interval else format_value(figure))
