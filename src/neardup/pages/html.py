"""Texts as HTML, and the parts of pages.

`fill` and the templates pass every value through `to_html`, which escapes all that is not HTML already.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from numbers import Integral, Real
from typing import Any, NamedTuple

from neardup.errors import OutputError
from neardup.pages.numbers import format_count

#: Control characters except tab and line feed, and lone surrogates: no page can hold them.
_UNSHOWABLE = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_CONTROL_PICTURES = 0x2400


class Html(str):
    """A text that is HTML already."""

    __slots__ = ()

    def __html__(self) -> Html:
        """Return itself: templates do not escape it again."""
        return self


def escape(value: object) -> Html:
    """Return a text that is safe between tags and in quoted attributes.

    Control characters become their pictures, and characters that UTF-8 cannot encode become U+FFFD.
    """
    return Html(html.escape(_UNSHOWABLE.sub(_picture, str(value)), quote=True))


def _picture(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code == ord("\r"):
        return "\n"
    return chr(_CONTROL_PICTURES + code) if code < 0x20 else "\u2421" if code == 0x7F else "\ufffd"


def to_html(value: object) -> Html:
    """Return a value as a page shows it: HTML unchanged, numbers formatted, anything else as escaped text.

    Integers get commas, other numbers three significant digits; None becomes the empty text.
    """
    if hasattr(value, "__html__"):
        return value if isinstance(value, Html) else Html(value.__html__())
    if value is None:
        return Html("")
    if isinstance(value, bool):
        return Html("yes" if value else "no")
    if isinstance(value, Integral):
        return Html(f"{int(value):,}")
    if isinstance(value, Real):
        number = float(value)
        return Html(f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}")
    return escape(value)


def join_html(parts: Iterable[object], between: str = "") -> Html:
    """Return parts joined by a separator."""
    return Html(to_html(between).join(to_html(part) for part in parts))


def plain_text(value: str) -> str:
    """Return the text of HTML without its tags; a plain text unchanged."""
    return html.unescape(re.sub("<[^>]*>", " ", value)).strip() if isinstance(value, Html) else value


_TITLE_LENGTH = 300
#: A line feed counts as this many characters, because it fills a line.
_LINE_FEED_SIZE = 40
#: Scripts without spaces, whose lines may break anywhere: Thai to Khmer, Chinese, Japanese, Hangul.
_UNSPACED_SCRIPTS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ua4cf\uac00-\ud7af\uf900-\ufaff\uff00-\uffef"
    "\U0001b000-\U0001b2ff\U00020000-\U0003ffff"
)
#: Of longer unbroken runs this much of the beginning and the end is shown, and this much of white space.
_LONGEST_RUN, _RUN_START, _RUN_END, _SPACE_START = 240, 120, 40, 4
_LONG_RUN = re.compile(rf"[^\s{_UNSPACED_SCRIPTS}]{{{_LONGEST_RUN + 1},}}|\s{{81,}}")
#: The most marks of a letter to show; no language writes more.
_MOST_MARKS = 8
#: Runs that may have more: to Python, no mark is part of a word.
_STACKED_MARKS = re.compile(rf"[^\w\s\0-\u02ff]{{{_MOST_MARKS + 1},}}")


class Excerpt(NamedTuple):
    """The part of a text that a page shows."""

    #: With a note for each omission inside it.
    html: Html
    #: The number of shown characters, where a line feed counts as a line; and of those after these.
    size: int
    rest: int


def make_excerpt(text: str, most: int) -> Excerpt:
    """Return a text cut to about ``most`` characters."""
    shown: list[str] = []
    size = at = 0
    for begin, end, kind in _omissions(text):
        stretch = text[at : at + _fitting_length(text[at:begin], most - size)]
        shown.append(escape(stretch))
        size += _size(stretch)
        at += len(stretch)
        if at < begin:
            break
        if begin < end:
            shown.append(_omission_html(end - begin, kind))
        at = end
    return Excerpt(Html("".join(shown)), size, len(text) - at)


def excerpt(text: str, most: int = _TITLE_LENGTH) -> Html:
    """Return a text cut to about ``most`` characters, with a note that counts the rest."""
    found = make_excerpt(text, most)
    return Html(found.html + format_rest(found.rest))


def format_rest(characters: int) -> Html:
    """Return the note on characters after the shown ones; empty if there are none."""
    return Html(_omission_html(characters, "more characters")) if characters else Html("")


def clip(text: str, most: int) -> str:
    """Return the beginning of a text in one line, with an ellipsis for each omission."""
    words = " ".join(text.split())
    shown, at = "", 0
    for begin, end, _ in _omissions(words):
        shown += words[at:begin] + ("…" if begin < end else "")
        at = end
        if len(shown) > most:
            return shown[:most].rstrip() + "…"
    return shown


def text(value: object) -> Html:
    """Return a name or a short text that keeps its own direction of writing."""
    plain = isinstance(value, str) and not isinstance(value, Html)
    return Html(f'<bdi dir="auto">{excerpt(str(value)) if plain else to_html(value)}</bdi>')


_NAMED_INPUTS = 4


def named_inputs(names: Sequence[str]) -> Html:
    """Return the names of the first inputs, and the number of others."""
    if not names:
        return Html("documents in memory")
    more = len(names) - _NAMED_INPUTS
    return join_html([join_html(map(text, names[:_NAMED_INPUTS]), ", "), f" and {more:,} more" if more > 0 else ""])


def _omissions(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the omissions inside a text, and then its end: begin, end and kind of each."""
    at = 0
    for begin, end in (*_excess_marks(text), (len(text), len(text))):
        for run in _LONG_RUN.finditer(text, at, begin):
            if run[0].isspace():
                yield run.start() + _SPACE_START, run.end(), "characters of white space"
            else:
                yield run.start() + _RUN_START, run.end() - _RUN_END, "characters"
        yield begin, end, "marks"
        at = end


def _excess_marks(text: str) -> Iterator[tuple[int, int]]:
    """Yield begin and end of the marks of a letter after the first ones that are shown."""
    for found in _STACKED_MARKS.finditer(text):
        at = found.start()
        for is_mark, same in groupby(found[0], key=lambda one: unicodedata.category(one).startswith("M")):
            end = at + sum(1 for _ in same)
            if is_mark and end - at > _MOST_MARKS:
                yield at + _MOST_MARKS, end
            at = end


def _size(text: str) -> int:
    return len(text) + (_LINE_FEED_SIZE - 1) * text.count("\n")


def _fitting_length(text: str, room: int) -> int:
    if _size(text) <= room:
        return len(text)
    used = 0
    for at, one in enumerate(text):
        used += _LINE_FEED_SIZE if one == "\n" else 1
        if used > room:
            return at
    return len(text)


def _omission_html(number: int, what: str) -> str:
    return f'<bdi class="dim left-out" dir="ltr"> … {number:,} {what} not shown … </bdi>'


def is_html(value: object) -> bool:
    """Return whether a value is HTML already."""
    return hasattr(value, "__html__")


_OPTION_NAME = re.compile(r"(?<!\S)--?[a-z][a-z-]*")
#: Cells of up to this many characters stand on one line; longer values of tiles are smaller.
_SHORT_CELL, _LONG_VALUE = 24, 14


@cache
def _environment() -> Any:
    """Return the environment of the templates; all that they print goes through `to_html`."""
    try:
        import jinja2
    except ImportError:
        raise OutputError(
            "pages need Jinja2, which is not installed; pip install 'neardup[report]' brings it"
        ) from None
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("neardup.pages"),
        autoescape=True,
        finalize=to_html,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["plain_text"] = plain_text
    parts = opening, tiles, notes, section, figures, search_field, facts, command, table, stages_table
    functions = text, excerpt, format_count, *parts
    made.globals |= {function.__name__: function for function in functions}
    return made


def render(template: str, **values: Any) -> Html:
    """Return a rendered template; it can call functions among the values."""
    return Html(_environment().get_template(template).render(**values))


def fill(frame: str, *values: object) -> Html:
    """Return HTML with values in the places of its braces, each as `to_html` gives it."""
    return Html(frame.format(*map(to_html, values)))


def paragraphs(content: Iterable[str]) -> Html:
    """Return parts that are not empty; those that are not HTML become paragraphs."""
    return join_html(part if is_html(part) else fill("<p>{}</p>", part) for part in content if part)


def opening(title: str, *lines: str) -> Html:
    """Return the head of a page: its title, and lines on its subject."""
    frame = '<header class="opening"><p class="brand" translate="no">neardup</p><h1 dir="auto">{}</h1>{}</header>'
    return fill(frame, title, join_html(fill('<p class="dim">{}</p>', line) for line in lines if line))


def closing(*lines: str) -> Html:
    """Return the foot of a page."""
    return fill('<footer class="closing">{}</footer>', paragraphs(lines))


def command(line: str) -> Html:
    """Return a command line that one click selects, and that does not break inside the name of an option."""
    shown = Html(_OPTION_NAME.sub(r'<span class="option">\g<0></span>', escape(line)))
    return fill('<pre class="command" tabindex="0" translate="no">{}</pre>', shown)


def bar(share: float, value: object = "") -> Html:
    """Return a value with a small bar beside it that shows a share from 0 to 1."""
    filled = f"{100 * min(max(share, 0.0), 1.0):.4g}"
    return fill('{}<span class="bar" aria-hidden="true"><i style="inline-size:{}%"></i></span>', value, filled)


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    caption: str = "",
    tall: bool = False,
    highlighted: Container[int] = (),
    text_columns: int = 1,
    search_texts: Sequence[str] | None = None,
) -> Html:
    """Return a table that scrolls sideways if it is too wide, and with ``tall`` has a maximum height.

    ``head`` has the names of the columns, none for a table of names and values; the first cell of each row is its
    header. The first ``text_columns`` columns are texts, all others numbers. ``highlighted`` are numbers of rows.
    ``search_texts`` has for each row the words by which a search field finds it; empty for the words of the row itself.
    """

    def cell(at: int, value: object, tag: str, scope: str = "") -> Html:
        long = isinstance(value, str) and len(plain_text(value)) > _SHORT_CELL
        aligned = f' class="text{" long" if long else ""}" dir="auto"' if at < text_columns else ""
        return fill(f"<{tag}{scope}{aligned}>{{}}</{tag}>", value)

    body = []
    for number, row in enumerate(rows):
        best = ' class="best"' if number in highlighted else ""
        search = "" if search_texts is None else fill(' data-search="{}"', search_texts[number])
        cells = [cell(0, row[0], "th", ' scope="row"'), *(cell(at, one, "td") for at, one in enumerate(row[1:], 1))]
        body.append(f"<tr{best}{search}>{''.join(cells)}</tr>")
    names = "".join(cell(at, name, "th", ' scope="col"') for at, name in enumerate(head))
    return fill(
        '<div class="scroll{}" tabindex="0" role="region" aria-label="{}"><table>{}{}<tbody>{}</tbody></table></div>',
        " tall" if tall else "",
        caption or ", ".join(map(plain_text, head)),
        fill("<caption>{}</caption>", caption) if caption else "",
        Html(f"<thead><tr>{names}</tr></thead>" if head else ""),
        Html("".join(body)),
    )


def stages_table(stages: Sequence[Mapping[str, Any]]) -> Html:
    """Return a table of the time and memory of the stages of a run; stages of the same name are added up."""
    costs: dict[str, tuple[float, float, int]] = {}
    for stage in stages:
        wall, cpu, _ = costs.get(stage["name"], (0.0, 0.0, 0))
        costs[stage["name"]] = wall + stage["wall_s"], cpu + stage["cpu_s"], stage["peak_memory_bytes"]
    whole = sum(wall for wall, _, _ in costs.values())
    rows = [
        [name, bar(wall / whole if whole else 0, f"{wall:.3f}"), f"{cpu:.3f}", f"{peak / 1e6:,.0f}"]
        for name, (wall, cpu, peak) in costs.items()
    ]
    return table(["stage", "time, s", "processor time, s", "peak memory so far, MB"], rows)


def facts(rows: Mapping[str, object]) -> Html:
    """Return a list of names and values."""
    items = join_html(fill("<div><dt>{}</dt><dd>{}</dd></div>", *row) for row in rows.items())
    return fill('<dl class="facts">{}</dl>', items)


def tiles(rows: Sequence[tuple[str, str, str]]) -> Html:
    """Return the headline of a page: tiles of a large value, its name and a note."""
    items = [
        fill(
            '<div><dt>{}</dt><dd><bdi class="value{}" dir="auto">{}</bdi>{}</dd></div>',
            label,
            " long" if len(plain_text(value)) > _LONG_VALUE else "",
            value,
            fill("<small>{}</small>", note) if note else "",
        )
        for value, label, note in rows
    ]
    return fill('<dl class="tiles">{}</dl>', join_html(items))


def notes(items: Sequence[str], *, title: str, plain: bool = False) -> Html:
    """Return a box with notes for the reader, quieter if ``plain``; empty without items."""
    if not items:
        return Html("")
    listed = join_html(fill('<li dir="auto">{}</li>', item) for item in items)
    frame = '<div class="notes{}" role="note"><strong>{}</strong><ul>{}</ul></div>'
    return fill(frame, " plain" if plain else "", title, listed)


def section(key: str, title: str, *content: str, intro: str = "") -> Html:
    """Return a section with a heading, which the table of contents lists; texts that are not HTML become paragraphs.

    ``key`` is its id, for links.
    """
    return fill(
        '<section id="{0}" aria-labelledby="{0}-title" data-contents="{1}"><h2><span id="{0}-title">{2}</span>'
        '<a class="anchor" href="#{0}" aria-label="Link to this section">#</a></h2>{3}{4}</section>',
        key,
        plain_text(title),
        title,
        fill('<p class="intro">{}</p>', intro) if intro else "",
        paragraphs(content),
    )


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart, as Vega-Lite, with its caption and its table of figures."""

    key: str
    title: str
    note: str
    #: A sentence for screen readers: what is drawn, in which units, and the main figures.
    description: str
    specification: Mapping[str, Any]
    figures_table: str = ""
    #: Why there is nothing to draw, shown instead of the chart; empty if there is.
    missing: str = ""


def figures(charts: Sequence[Chart], *, wide: bool = False) -> Html:
    """Return charts with captions and tables; ``wide`` gives each the whole width."""
    frame = '<div class="charts{}">{}</div>'
    return fill(frame, " wide" if wide else "", join_html(map(_figure, charts))) if charts else Html("")


def _figure(chart: Chart) -> Html:
    begin = '<figure aria-labelledby="{0}-title"><figcaption id="{0}-title">{1}{2}</figcaption>'
    if chart.missing:
        missing = f'{begin}<p class="dim missing">Nothing to show: {{3}}.</p></figure>'
        return fill(missing, chart.key, chart.title, "", chart.missing)
    height, table = chart.specification.get("height"), chart.figures_table
    return fill(
        f'{begin}<div class="chart" id="{{0}}" role="img" aria-label="{{3}}"{{4}}></div>'
        '<div class="behind"><span class="saves">'
        '<button type="button" data-save="svg" aria-label="Save this chart as SVG">SVG</button>'
        '<button type="button" data-save="png" aria-label="Save this chart as PNG">PNG</button></span>{5}</div>'
        "</figure>",
        chart.key,
        chart.title,
        fill("<small>{}</small>", chart.note) if chart.note else "",
        plain_text(chart.description),
        Html(f' style="min-height:{height}px"') if isinstance(height, int) else "",
        fill('<details data-print="no"><summary>The figures</summary>{}</details>', table) if table else "",
    )


def legend(
    names: Sequence[str],
    colours: Sequence[str],
    *,
    shapes: Sequence[str] = ("circle",),
    label: str = "Show one of them",
) -> Html:
    """Return buttons with the colours of the charts; each sets their parameter ``highlight`` to its name.

    ``shapes`` are those of the points in the charts, by their names in Vega; colours and shapes repeat.
    """
    button = (
        '<button type="button" aria-pressed="false" data-highlight="{}"><span class="{}" style="background:{}"></span>'
        "{}</button>"
    )
    buttons = (
        fill(button, name, shapes[at % len(shapes)], colours[at % len(colours)], text(name))
        for at, name in enumerate(names)
    )
    return fill('<div class="legend" role="group" aria-label="{}">{}</div>', label, join_html(buttons))


def fold(summary: str, *content: str, is_open: bool = False, search_text: str = "") -> Html:
    """Return content that a click on its summary opens; texts that are not HTML become paragraphs.

    A search field finds it by the words in ``search_text``.
    """
    return fill(
        '<details class="fold"{}{}><summary>{}</summary><div class="inside">{}</div></details>',
        fill(' data-search="{}"', search_text) if search_text else "",
        " open" if is_open else "",
        summary,
        paragraphs(content),
    )


def search_field(within: str, *, label: str, noun: str) -> Html:
    """Return a search field for the elements with ``data-search`` inside the element with the id ``within``.

    It hides those that lack one of its words. The page needs the script ``search.js``.
    """
    return fill(
        '<div class="search" role="search"><label for="{0}-search">{1}</label>'
        '<input type="search" id="{0}-search" data-within="{0}" data-noun="{2}" dir="auto" autocomplete="off" '
        'spellcheck="false" aria-controls="{0}"><output for="{0}-search" aria-live="polite"></output></div>',
        within,
        label,
        noun,
    )
