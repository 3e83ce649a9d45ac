"""The page of a comparison: tables, and curves of precision by recall and of F1 by threshold, as Vega-Lite.

The curves are figures 5 and 6 of Montanari & Puglisi 2012, section 4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from neardup.evaluation.intervals import MIN_GROUPS
from neardup.pages.charts import COLOURS, FAINT_COLOUR, SHAPES, color_scale, finish_chart, hover_marks, tooltips
from neardup.pages.html import (
    Chart,
    Html,
    closing,
    command,
    escape,
    facts,
    figures,
    join_html,
    legend,
    notes,
    opening,
    section,
    table,
    tiles,
    to_html,
)
from neardup.pages.numbers import format_count
from neardup.pages.page import check_drawing, page

if TYPE_CHECKING:
    import altair as alt

#: The lines of equal F1 in the precision-recall chart.
_F1_LEVELS = (0.2, 0.4, 0.6, 0.8, 0.9)
#: The height of a chart in pixels.
_HEIGHT = 330
_FIGURES = ("precision", "recall", "f1")
#: A system or a row of ``Comparison.to_dict``.
Json = Mapping[str, Any]
_IS_HIGHLIGHTED = "highlight == '' || datum.recipe == highlight"


def chart_points(recipes: Sequence[Json]) -> Iterator[dict[str, Any]]:
    """Yield a point for each recipe and threshold."""
    for recipe in recipes:
        for row in recipe["rows"]:
            point = {"recipe": recipe["name"], "scale": recipe["scale"], "threshold": row["threshold"]}
            point |= {name: row[name]["value"] for name in _FIGURES}
            point |= {f"{name} text": f"{format_value(row[name])} ({format_interval(row[name])})" for name in _FIGURES}
            yield point | {
                "low": row["f1"]["low"],
                "high": row["f1"]["high"],
                "returned": row["returned"],
                "correct": row["correct"],
                "best": row["threshold"] == recipe["best"]["threshold"],
            }


def _colored_chart(recipes: Sequence[Json]) -> alt.Chart:
    """Return a chart without data that gives each recipe its colour; unselected recipes are faint."""
    import altair as alt

    names = [recipe["name"] for recipe in recipes]
    return alt.Chart().encode(
        color=alt.Color("recipe:N", **color_scale(names, legend=False)),
        opacity=alt.condition(_IS_HIGHLIGHTED, alt.value(1), alt.value(0.1)),
    )


def _point_tooltips() -> list[alt.Tooltip]:
    """Return the tooltips of a point."""
    figures = {f"{name} text": ("", "F1" if name == "f1" else name) for name in _FIGURES}
    counts = {name: (",", name) for name in ("returned", "correct")}
    return tooltips(recipe=("", "recipe"), threshold=("~g", "threshold"), **figures, **counts)


def _point_layers(chart: alt.Chart, recipes: Sequence[Json]) -> list[alt.Chart]:
    """Return the points, rings around the best ones, and larger invisible marks that the pointer hits."""
    import altair as alt

    names = [recipe["name"] for recipe in recipes]
    shaped = chart.encode(shape=alt.Shape("recipe:N", **color_scale(names, SHAPES, legend=False)))
    best = shaped.transform_filter("datum.best").mark_point(size=150, strokeWidth=2, clip=False)
    return [shaped.mark_point(filled=True, size=34, clip=False), best, hover_marks(chart, _point_tooltips(), size=260)]


def precision_recall(points: list[dict[str, Any]], recipes: Sequence[Json]) -> dict[str, Any]:
    """Return the chart of precision by recall."""
    import altair as alt

    defined = [point for point in points if point["precision"] is not None]
    # Flush labels would move the outer ones inwards, too near to their neighbours.
    ends, axis = [_axis_start(defined, "recall"), 1], alt.Axis(format=".2~f")
    x = alt.X("recall:Q", scale=alt.Scale(domain=ends), title="recall", axis=axis)
    scale = alt.Scale(domain=[_axis_start(defined, "precision"), 1])
    y = alt.Y("precision:Q", scale=scale, title="precision", axis=axis)
    chart = _colored_chart(recipes).encode(x=x, y=y)
    lines = chart.mark_line(strokeWidth=1.5, clip=True).encode(order="threshold:Q")
    layers = [_equal_f1(x, y, defined), lines, *_point_layers(chart, recipes)]
    return finish_chart(alt.layer(*layers, data=alt.Data(values=defined)), height=_HEIGHT)


def _equal_f1(x: alt.X, y: alt.Y, points: list[dict[str, Any]]) -> alt.LayerChart:
    """Return the lines of equal F1, each with its label to the right of the chart."""
    import altair as alt

    least = _axis_start(points, "precision")
    curve = [
        {"level": level, "recall": recall / 100, "precision": level * recall / (2 * recall - 100 * level)}
        for level in _F1_LEVELS
        for recall in (100 * level / (2 - level), *range(int(100 * level / (2 - level)) + 1, 101))
    ]
    ends = [
        {"name": f"F1 {level:g}", "recall": 1, "precision": level / (2 - level)}
        for level in _F1_LEVELS
        if level / (2 - level) > least
    ]
    lines = alt.Chart(alt.Data(values=curve)).mark_line(color=FAINT_COLOUR, opacity=0.5, strokeWidth=1, clip=True)
    names = alt.Chart(alt.Data(values=ends)).mark_text(align="left", baseline="middle", dx=10, fontSize=10)
    return alt.layer(
        lines.encode(x=x, y=y, detail="level:N"),
        names.encode(x=x, y=y, text="name:N"),
    )


def f1_by_threshold(points: list[dict[str, Any]], recipes: Sequence[Json], title: str) -> dict[str, Any]:
    """Return the chart of F1 by threshold; recipes without a choice of thresholds are horizontal lines."""
    import altair as alt

    moving = [point for point in points if point["scale"] != "fixed"]
    fixed = [point for point in points if point["scale"] == "fixed"]
    scale = alt.Scale(domain=[_axis_start(points, "f1"), 1])
    axis = alt.Axis(format=".2~f")
    y = alt.Y("f1:Q", scale=scale, title="F1", axis=axis)
    x = alt.X("threshold:Q", scale=alt.Scale(zero=False, nice=False, padding=10), title=title, axis=axis)
    coloured = _colored_chart(recipes)
    band = coloured.mark_area(clip=True).encode(
        x=x,
        y=alt.Y("low:Q", scale=scale, title="F1"),
        y2="high:Q",
        opacity=alt.condition("datum.recipe == highlight", alt.value(0.2), alt.value(0)),
    )
    chart = coloured.encode(x=x, y=y)
    rules = coloured.mark_rule(strokeDash=[5, 4], strokeWidth=1.5).encode(y=y, tooltip=_point_tooltips())
    layers = [band, chart.mark_line(strokeWidth=1.5, clip=True), *_point_layers(chart, recipes)]
    if fixed:
        layers.append(rules.properties(data=alt.Data(values=fixed)))
    return finish_chart(alt.layer(*layers, data=alt.Data(values=moving)), height=_HEIGHT)


def _axis_start(points: Sequence[Json], name: str) -> float:
    """Return the start of an axis: 0, or the tenth below the lowest value if that is above 0.5."""
    lowest = min((point[name] for point in points), default=0.0)
    return max(int(lowest * 10 - 0.5) / 10, 0.0) if lowest > 0.5 else 0.0


def format_value(figure: Json) -> str:
    """Return the value of a figure as people read it."""
    return "none" if figure["value"] is None else f"{figure['value']:.3f}"


def format_interval(figure: Json) -> str:
    """Return the interval of a figure as people read it; empty without one."""
    return "" if figure["low"] is None else f"{figure['low']:.3f} to {figure['high']:.3f}"


def comparison_page(content: Json, *, command_line: str = "") -> str:
    """Return the page of a comparison."""
    check_drawing("a page")
    recipes = content["recipes"]
    points = list(chart_points(recipes))
    charts = list(_charts(points, recipes))
    own = ", classifiers also at their own" if any(map(_own_threshold_rows, recipes)) else ""
    body = [
        opening("Recipes compared", _data_line(content)),
        tiles(_tile_rows(content)),
        notes(content["warnings"], title="Before you trust the figures"),
        Html(f"<p>{_verdict(content)}</p>"),
        section("best", f"Each recipe at its best threshold{own}", _best_table(content)),
        section(
            "curves",
            "Curves",
            legend([one["name"] for one in recipes], COLOURS, shapes=SHAPES, label="Show one recipe"),
            figures(charts),
        ),
        section("all", "Every threshold", _full_table(recipes, accuracy=not content["complete"])),
        section("reading", "How to read this", _glossary(content)),
        _provenance_section(recipes, command_line),
        closing(f"neardup {content['version']}"),
    ]
    return page("Recipes compared - neardup", "\n".join(body), charts)


def _provenance_section(recipes: Sequence[Json], command_line: str) -> Html:
    commands = [Html("<h3>Command</h3>"), command(command_line)] if command_line else []
    rows = {
        recipe["name"]: join_html(filter(None, [recipe["description"], _fingerprints(recipe)]), Html("<br>"))
        for recipe in recipes
    }
    return section("made", "How this was made", *commands, Html("<h3>Recipes</h3>"), facts(rows))


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


def _charts(points: list[dict[str, Any]], recipes: Sequence[Json]) -> Iterable[Chart]:
    """Yield the charts of these recipes."""
    summary = f"of {len(recipes)} recipes; the figures are in the table below."
    yield Chart(
        "recall",
        "Precision by recall",
        "grey: lines of equal F1; higher and further right is better",
        f"Lines of precision by recall, {summary}",
        precision_recall(points, recipes),
        missing="" if any(point["precision"] is not None for point in points) else "no recipe returns a labelled pair",
    )
    similar = [point for point in points if point["scale"] != "distance"]
    if any(point["scale"] in ("similarity", "probability") for point in similar):
        learned = any(point["scale"] == "probability" for point in similar)
        fixed = "; dashed: recipes with one answer" if any(point["scale"] == "fixed" for point in similar) else ""
        axis = "threshold (of the probability for a classifier)" if learned else "threshold"
        yield Chart(
            "threshold",
            "F1 by threshold",
            f"ringed: the best threshold; a chosen recipe shows its interval{fixed}",
            f"Lines of F1, from 0 to 1, by threshold, {summary}",
            f1_by_threshold(similar, recipes, axis),
            missing=_without_duplicates(similar),
        )
    distant = [point for point in points if point["scale"] == "distance"]
    if distant:
        yield Chart(
            "distance",
            "F1 by Hamming distance",
            "in bits; simhash: pairs at or below the distance match",
            f"Lines of F1, from 0 to 1, by the largest Hamming distance of a match, in bits, {summary}",
            f1_by_threshold(distant, recipes, "largest Hamming distance of a match"),
            missing=_without_duplicates(distant),
        )


def _without_duplicates(points: Sequence[Json]) -> str:
    """Return the message in place of a chart if F1 is 0 at every threshold; empty otherwise."""
    return "" if any(point["f1"] for point in points) else "no labelled duplicate is returned at any threshold"


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
    return (
        f"{content['documents']:,} documents; {content['duplicates']:,} pairs labelled as duplicates and "
        f"{content['others']:,} as different, in {content['groups']:,} groups; {rest}."
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
    return table(head, rows, highlighted=best)


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
    return table(head, rows, highlighted=best, tall=True)


def _cells(recipe: Json, row: Json, counts: Sequence[str], *, accuracy: bool) -> list[object]:
    own = Html("<br><small>its own</small>") if row["own"] else ""
    names = ["f1", "precision", "recall", *(["accuracy"] if accuracy else [])]
    threshold = Html(f"{to_html(_threshold(recipe, row))}{own}")
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
    return facts(meanings)


def _with_interval(figure: Json) -> Html:
    # Notebooks lack the page's style and need the line break.
    interval = format_interval(figure)
    return Html(f"{format_value(figure)}<br><small>{interval}</small>" if interval else format_value(figure))
