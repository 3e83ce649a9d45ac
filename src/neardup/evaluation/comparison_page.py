"""The page of a comparison: tables, and curves of precision by recall and of F1 by threshold, as Vega-Lite.

The curves are figures 5 and 6 of Montanari & Puglisi 2012, section 4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from neardup.evaluation.scores import MIN_GROUPS
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
from neardup.pages.page import check_drawing, page

if TYPE_CHECKING:
    import altair as alt

#: The values of F1 whose lines the precision-recall chart shows.
_LEVELS = (0.2, 0.4, 0.6, 0.8, 0.9)
#: Pixels.
_HEIGHT = 330
_FIGURES = ("precision", "recall", "f1")
_SHOWN = "highlight == '' || datum.recipe == highlight"


def chart_points(recipes: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield a point for each recipe and threshold."""
    for recipe in recipes:
        for row in recipe["rows"]:
            point = {"recipe": recipe["name"], "scale": recipe["scale"], "threshold": row["threshold"]}
            point |= {name: row[name]["value"] for name in _FIGURES}
            point |= {f"{name} told": f"{format_value(row[name])} ({format_interval(row[name])})" for name in _FIGURES}
            yield point | {
                "low": row["f1"]["low"],
                "high": row["f1"]["high"],
                "returned": row["returned"],
                "correct": row["correct"],
                "best": row["threshold"] == recipe["best"]["threshold"],
            }


def _colored_chart(recipes: Sequence[Mapping[str, Any]]) -> alt.Chart:
    """Return a chart with a colour for each recipe, whose data is given later; those not chosen are faint."""
    import altair as alt

    names = [recipe["name"] for recipe in recipes]
    return alt.Chart().encode(
        color=alt.Color("recipe:N", **color_scale(names, legend=False)),
        opacity=alt.condition(_SHOWN, alt.value(1), alt.value(0.1)),
    )


def _point_tooltips() -> list[alt.Tooltip]:
    """Return what a point tells when the pointer is on it."""
    figures = {f"{name} told": ("", "F1" if name == "f1" else name) for name in _FIGURES}
    counts = {name: (",", name) for name in ("returned", "correct")}
    return tooltips(recipe=("", "recipe"), threshold=("~g", "threshold"), **figures, **counts)


def _dots(chart: alt.Chart, recipes: Sequence[Mapping[str, Any]]) -> list[alt.Chart]:
    """Return the points, the best ones ringed, and a larger unseen mark on each for the pointer to find."""
    import altair as alt

    names = [recipe["name"] for recipe in recipes]
    shaped = chart.encode(shape=alt.Shape("recipe:N", **color_scale(names, SHAPES, legend=False)))
    best = shaped.transform_filter("datum.best").mark_point(size=150, strokeWidth=2, clip=False)
    return [shaped.mark_point(filled=True, size=34, clip=False), best, hover_marks(chart, _point_tooltips(), size=260)]


def precision_recall(points: list[dict[str, Any]], recipes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the chart of precision by recall."""
    import altair as alt

    defined = [point for point in points if point["precision"] is not None]
    # Labels at the ends stay below their marks: moved inwards, they come too near to their neighbours.
    ends, axis = [_axis_start(defined, "recall"), 1], alt.Axis(labelFlush=False)
    x = alt.X("recall:Q", scale=alt.Scale(domain=ends), title="recall", axis=axis)
    y = alt.Y("precision:Q", scale=alt.Scale(domain=[_axis_start(defined, "precision"), 1]), title="precision")
    chart = _colored_chart(recipes).encode(x=x, y=y)
    lines = chart.mark_line(strokeWidth=1.5, clip=True).encode(order="threshold:Q")
    layers = [_equal_f1(x, y, defined), lines, *_dots(chart, recipes)]
    return finish_chart(alt.layer(*layers, data=alt.Data(values=defined)), height=_HEIGHT)


def _equal_f1(x: alt.X, y: alt.Y, points: list[dict[str, Any]]) -> alt.LayerChart:
    """Return the lines of equal F1, each named beside the chart, where it meets recall 1."""
    import altair as alt

    least = _axis_start(points, "precision")
    curve = [
        {"level": level, "recall": recall / 100, "precision": level * recall / (2 * recall - 100 * level)}
        for level in _LEVELS
        for recall in (100 * level / (2 - level), *range(int(100 * level / (2 - level)) + 1, 101))
    ]
    ends = [
        {"name": f"F1 {level:g}", "recall": 1, "precision": level / (2 - level)}
        for level in _LEVELS
        if level / (2 - level) > least
    ]
    lines = alt.Chart(alt.Data(values=curve)).mark_line(color=FAINT_COLOUR, opacity=0.5, strokeWidth=1, clip=True)
    names = alt.Chart(alt.Data(values=ends)).mark_text(align="left", baseline="middle", dx=10, fontSize=10)
    return alt.layer(
        lines.encode(x=x, y=y, detail="level:N"),
        names.encode(x=x, y=y, text="name:N"),
    )


def f1_by_threshold(points: list[dict[str, Any]], recipes: Sequence[Mapping[str, Any]], title: str) -> dict[str, Any]:
    """Return the chart of F1 by threshold; recipes that know one answer are lines across."""
    import altair as alt

    moving = [point for point in points if point["scale"] != "fixed"]
    fixed = [point for point in points if point["scale"] == "fixed"]
    scale = alt.Scale(domain=[_axis_start(points, "f1"), 1])
    y = alt.Y("f1:Q", scale=scale, title="F1")
    x = alt.X("threshold:Q", scale=alt.Scale(zero=False, nice=False, padding=10), title=title)
    coloured = _colored_chart(recipes)
    band = coloured.mark_area(clip=True).encode(
        x=x,
        y=alt.Y("low:Q", scale=scale, title="F1"),
        y2="high:Q",
        opacity=alt.condition("datum.recipe == highlight", alt.value(0.2), alt.value(0)),
    )
    chart = coloured.encode(x=x, y=y)
    rules = coloured.mark_rule(strokeDash=[5, 4], strokeWidth=1.5).encode(y=y, tooltip=_point_tooltips())
    layers = [band, chart.mark_line(strokeWidth=1.5, clip=True), *_dots(chart, recipes)]
    if fixed:
        layers.append(rules.properties(data=alt.Data(values=fixed)))
    return finish_chart(alt.layer(*layers, data=alt.Data(values=moving)), height=_HEIGHT)


def _axis_start(points: Sequence[Mapping[str, Any]], name: str) -> float:
    """Return where an axis begins: 0, or where all values are high, the tenth below them."""
    least = min((point[name] for point in points), default=0.0)
    return max(int(least * 10 - 0.5) / 10, 0.0) if least > 0.5 else 0.0


def format_value(figure: Mapping[str, Any]) -> str:
    """Return a figure for people."""
    return "none" if figure["value"] is None else f"{figure['value']:.3f}"


def format_interval(figure: Mapping[str, Any]) -> str:
    """Return a figure's interval for people; nothing where there is none."""
    return "" if figure["low"] is None else f"{figure['low']:.3f} to {figure['high']:.3f}"


Row = Mapping[str, Any]


def comparison_page(content: Mapping[str, Any], *, typed: str = "") -> str:
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
        _provenance_section(recipes, typed),
        closing(f"neardup {content['version']}"),
    ]
    return page("Recipes compared - neardup", "\n".join(body), charts)


def _provenance_section(recipes: Sequence[Row], typed: str) -> Html:
    """Return by what the page was made: the command, and what the recipes are."""
    said = [Html("<h3>Command</h3>"), command(typed)] if typed else []
    known = {
        one["name"]: join_html(filter(None, [one["description"], _fingerprints(one)]), Html("<br>")) for one in recipes
    }
    return section("made", "How this was made", *said, Html("<h3>Recipes</h3>"), facts(known))


def _fingerprints(recipe: Row) -> str:
    """Return the fingerprint of a recipe as it is, and of that with its best threshold."""
    own, best = next(row for row in recipe["rows"] if row["own"]), recipe["best"]
    at = "" if recipe["scale"] == "fixed" else f" at its own threshold, {_threshold(recipe, own)}"
    said = f"Fingerprint{at}: {recipe['fingerprint']}"
    if best["own"] or best["fingerprint"] is None:
        return f"{said}; it is the best here" if best["own"] and at else said
    return f"{said}; at the best one here, {_threshold(recipe, best)}: {best['fingerprint']}"


def _charts(points: list[dict[str, Any]], recipes: Sequence[Row]) -> Iterable[Chart]:
    """Yield the curves that these recipes have."""
    told = f"of {len(recipes)} recipes; the figures are in the table below."
    yield Chart(
        "recall",
        "Precision by recall",
        "grey: lines of equal F1; towards the upper right is better",
        f"Lines of precision by recall, {told}",
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
            f"Lines of F1, from 0 to 1, by threshold, {told}",
            f1_by_threshold(similar, recipes, axis),
            missing=_without_duplicates(similar),
        )
    distant = [point for point in points if point["scale"] == "distance"]
    if distant:
        yield Chart(
            "distance",
            "F1 by Hamming distance",
            "in bits; simhash: pairs at or below the distance match",
            f"Lines of F1, from 0 to 1, by the largest Hamming distance of a match, in bits, {told}",
            f1_by_threshold(distant, recipes, "largest Hamming distance of a match"),
            missing=_without_duplicates(distant),
        )


def _without_duplicates(points: Sequence[Row]) -> str:
    """Return that there is nothing to draw where F1 is 0 at every threshold."""
    return "" if any(point["f1"] for point in points) else "no labelled duplicate is returned at any threshold"


def _tile_rows(content: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    best = next(recipe for recipe in content["recipes"] if recipe["name"] == content["best"])
    row = best["best"]
    labelled = f"{content['duplicates']:,} duplicates, {content['others']:,} others"
    return [
        (best["name"], "has the highest F1", f"at {_threshold(best, row)}" if best["scale"] != "fixed" else ""),
        (format_value(row["f1"]), "F1", format_interval(row["f1"])),
        (format_value(row["precision"]), "precision", format_interval(row["precision"])),
        (format_value(row["recall"]), "recall", format_interval(row["recall"])),
        (f"{content['duplicates'] + content['others']:,}", "labelled pairs", labelled),
    ]


def _data_line(content: Mapping[str, Any]) -> str:
    rest = "all other pairs count as different" if content["complete"] else "pairs without a label do not count"
    return (
        f"{content['documents']:,} documents; {content['duplicates']:,} pairs labelled as duplicates and "
        f"{content['others']:,} as different, in {content['groups']:,} groups; {rest}."
    )


def _verdict(content: Mapping[str, Any]) -> str:
    best = next(recipe for recipe in content["recipes"] if recipe["name"] == content["best"])
    row = best["best"]
    at = "" if best["scale"] == "fixed" else f" at {_threshold(best, row)}"
    head = (
        f"<strong>{escape(best['name'])}</strong>{at} has the highest F1: {format_value(row['f1'])} "
        f"({format_interval(row['f1'])})."
    )
    if not content["leads"]:
        return head
    return head + "".join(f" {escape(sentence)}." for sentence in lead_sentences(content))


def cell_of(content: Mapping[str, Any]) -> str:
    """Return what a notebook shows, without a page's style: which recipe is best, and each at its best threshold."""
    return f'<div class="neardup" style="overflow-x:auto"><p>{_verdict(content)}</p>{_best_table(content)}</div>'


def lead_sentences(content: Mapping[str, Any]) -> list[str]:
    """Return which ones the best is better than beyond chance, which it may be, and of which too few groups tell."""
    best, leads = content["best"], content["leads"]
    few = [lead for lead in leads if lead["groups"] < MIN_GROUPS and (lead["groups"] or content["groups"] < MIN_GROUPS)]
    sure = [lead["over"] for lead in leads if lead["beyond_chance"]]
    alike = [lead["over"] for lead in leads if not lead["beyond_chance"] and lead not in few]
    found = [f"{best} is better than {_join_names(sure, 'and')}, beyond chance"] if sure else []
    found += [f"These labels cannot tell {best} from {_join_names(alike, 'or')}"] if alike else []
    by_groups: dict[int, list[str]] = {}
    for lead in sorted(few, key=lambda one: -int(one["groups"])):
        by_groups.setdefault(lead["groups"], []).append(lead["over"])
    differ = "; ".join(f"from {_join_names(over, 'and')} in {groups}" for groups, over in by_groups.items())
    return found + (
        [f"Too few groups for a test, which needs {MIN_GROUPS}: {best} differs {differ}"] if by_groups else []
    )


def _join_names(names: Sequence[str], last: str) -> str:
    return f" {last} ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _best_table(content: Mapping[str, Any]) -> Html:
    leads = {lead["over"]: lead for lead in content["leads"]}
    partial = not content["complete"]
    head = ["recipe", "threshold", "F1", Html("behind<br>the best"), "precision", "recall"]
    head += [*(["accuracy"] if partial else []), "returned", "correct", Html("CPU ms<br>/ doc")]
    rows: list[list[object]] = []
    best: set[int] = set()
    for recipe in sorted(content["recipes"], key=lambda one: -(one["best"]["f1"]["value"] or 0)):
        lead = leads.get(recipe["name"])
        wall = f"<br><small>wall {recipe['wall_ms_per_document']:.2g}</small>"
        for row in (recipe["best"], *_own_threshold_rows(recipe)):
            leading = row is recipe["best"]
            name = Html(f'<span title="{escape(recipe["description"])}">{escape(recipe["name"])}</span>')
            cells = [name, *_cells(recipe, row, ("returned", "correct"), accuracy=partial)]
            cells.insert(3, "" if lead is None or not leading else _with_interval(lead["difference"]))
            cells.append(Html(f"{recipe['cpu_ms_per_document']:.2g}{wall}") if leading else "")
            if leading and recipe["name"] == content["best"]:
                best.add(len(rows))
            rows.append(cells)
    return table(head, rows, best=best)


def _own_threshold_rows(recipe: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return a classifier's row at its own cut, unless that is its best."""
    if recipe["scale"] != "probability" or recipe["best"]["own"]:
        return []
    return [row for row in recipe["rows"] if row["own"]]


def _full_table(recipes: Sequence[Row], *, accuracy: bool) -> Html:
    counts = "returned", "correct", "missed", "unlabelled"
    head = ["recipe", "threshold", "F1", "precision", "recall", *(["accuracy"] if accuracy else []), *counts]
    rows: list[list[object]] = []
    best: set[int] = set()
    for recipe in recipes:
        for row in recipe["rows"]:
            if row["threshold"] == recipe["best"]["threshold"]:
                best.add(len(rows))
            rows.append([recipe["name"], *_cells(recipe, row, counts, accuracy=accuracy)])
    return table(head, rows, best=best, tall=True)


def _cells(recipe: Row, row: Row, counts: Sequence[str], *, accuracy: bool) -> list[object]:
    own = Html("<br><small>its own</small>") if row["own"] else ""
    names = ["f1", "precision", "recall", *(["accuracy"] if accuracy else [])]
    threshold = Html(f"{to_html(_threshold(recipe, row))}{own}")
    return [threshold, *(_with_interval(row[name]) for name in names), *(row[name] for name in counts)]


def _threshold(recipe: Row, row: Row) -> str:
    if recipe["scale"] == "fixed":
        return "one answer"
    written = f"{row['threshold']:.4g}" if recipe["scale"] == "probability" else f"{row['threshold']:g}"
    return f"\u2264 {written}" if recipe["scale"] == "distance" else written


def _glossary(content: Mapping[str, Any]) -> Html:
    asked = {"a classifier": any(recipe["scale"] == "probability" for recipe in content["recipes"])}
    asked["accuracy"] = not content["complete"]
    meanings = {
        "returned": "Pairs that the recipe returns at the threshold and that carry a label. Those without one are "
        "unlabelled and count nowhere.",
        "correct, missed": "Labelled duplicates that the recipe returns, and those that it does not.",
        "precision, recall": "correct / returned, and correct / all labelled duplicates.",
        "F1": "2 correct / (returned + all labelled duplicates): 1 is perfect.",
        "accuracy": "The share of labelled pairs judged rightly: duplicates that are returned, others that are not. "
        "It depends on how many of each are labelled, so compare it on the same labels only.",
        "intervals": f"95%, from {content['resamples']:,} draws of groups with replacement: documents that labelled "
        "duplicates connect are one group and stand or fall together. A figure of 1 without an error in any group has "
        "an interval without width; that does not make it certain.",
        "a classifier": "Its thresholds are those of the probability; its own is the cut that it was saved with.",
        "best threshold": "The highest F1, the strictest of equals. It is chosen on these labels, so expect a little "
        "less on other texts.",
        "behind the best": "How much higher the F1 of the best recipe is, over the same draws. If that holds 0, "
        f"the labels cannot tell the two apart; fewer than {MIN_GROUPS} groups that differ are too few for a test.",
        "ms / doc": "Time of the whole run at the loosest threshold, reading included, divided by the documents; "
        "stricter thresholds are faster. Compiling is not counted.",
    }
    return facts({name: text for name, text in meanings.items() if asked.get(name, True)})


def _with_interval(figure: Row) -> Html:
    # The break is for notebooks, which do not have the page's style.
    interval = format_interval(figure)
    return Html(f"{format_value(figure)}<br><small>{interval}</small>" if interval else format_value(figure))
