"""Texts in HTML, and the parts of pages, which are macros of ``templates/parts.html``.

Templates escape every value that is not HTML already, in the one way that `to_html` has.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby
from numbers import Integral, Real
from typing import Any, NamedTuple

from neardup.errors import OutputError
from neardup.pages.numbers import format_count

#: Control characters but tab and line feed, and halves of surrogate pairs: no page can hold them.
_UNSHOWABLE = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
#: Pictures of control characters begin here.
_PICTURES = 0x2400


class Html(str):
    """A text that is HTML already."""

    __slots__ = ()

    def __html__(self) -> Html:
        """Return itself: templates do not escape it again."""
        return self


def escape(value: object) -> Html:
    """Return a text that is safe between tags and in quoted attributes.

    Control characters become their pictures, and what no file of UTF-8 can hold U+FFFD.
    """
    return Html(html.escape(_UNSHOWABLE.sub(_picture, str(value)), quote=True))


def _picture(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code == ord("\r"):
        return "\n"
    return chr(_PICTURES + code) if code < 0x20 else "\u2421" if code == 0x7F else "\ufffd"


def to_html(value: object) -> Html:
    """Return a value as a page shows it: HTML as it is, numbers as people write them, all else as text.

    Whole numbers have commas, others three digits that count; nothing stands for None.
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
    """Return parts one after the other."""
    return Html(to_html(between).join(to_html(part) for part in parts))


def plain_text(value: str) -> str:
    """Return the text of HTML, or a text as it is."""
    return html.unescape(re.sub("<[^>]*>", " ", value)).strip() if isinstance(value, Html) else value


#: Characters of a name or a title.
_NAME = 300
#: What a line feed counts as, for it fills a line.
_LINE = 40
#: Of writing without spaces, which may break anywhere: from Thai to Khmer, Chinese, Japanese, Hangul.
_BREAKING = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ua4cf\uac00-\ud7af\uf900-\ufaff\uff00-\uffef"
    "\U0001b000-\U0001b2ff\U00020000-\U0003ffff"
)
#: Of longer runs without a break so much of the beginning and the end is shown; of white space so much.
_RUN, _BEGIN, _END, _SPACE = 240, 120, 40, 4
_LONG = re.compile(rf"[^\s{_BREAKING}]{{{_RUN + 1},}}|\s{{81,}}")
#: So many marks of a letter are shown; no language writes more.
_MARKS = 8
#: What may hold more: Python takes no mark for a part of a word.
_STACKED = re.compile(rf"[^\w\s\0-\u02ff]{{{_MARKS + 1},}}")


class Excerpt(NamedTuple):
    """What a page shows of a text."""

    #: It, and what is said of what is left out inside.
    html: Html
    #: Characters that are shown; a line feed counts as a line.
    size: int
    #: Characters behind those, of which nothing is said yet.
    rest: int


def make_excerpt(text: str, most: int) -> Excerpt:
    """Return what a page shows of a text, up to about ``most`` characters."""
    shown: list[str] = []
    size = at = 0
    for begin, end, kind in _cuts(text):
        stretch = text[at : at + _fitting(text[at:begin], most - size)]
        shown.append(escape(stretch))
        size += _size(stretch)
        at += len(stretch)
        if at < begin:
            break
        if begin < end:
            shown.append(_not_shown(end - begin, kind))
        at = end
    return Excerpt(Html("".join(shown)), size, len(text) - at)


def excerpt(text: str, most: int = _NAME) -> Html:
    """Return a text up to about so many characters, with what is left out counted beside it."""
    found = make_excerpt(text, most)
    return Html(found.html + format_rest(found.rest))


def format_rest(characters: int) -> Html:
    """Return what is said of characters behind those that are shown; nothing where there are none."""
    return Html(_not_shown(characters, "more characters")) if characters else Html("")


def clip(text: str, most: int) -> str:
    """Return how a text begins, for a line of a list, with an ellipsis in the place of what is left out."""
    words = " ".join(text.split())
    shown, at = "", 0
    for begin, end, _ in _cuts(words):
        shown += words[at:begin] + ("…" if begin < end else "")
        at = end
        if len(shown) > most:
            return shown[:most].rstrip() + "…"
    return shown


def text(value: object) -> Html:
    """Return a name, or a short text of a document, that runs in its own direction whatever stands around it."""
    plain = isinstance(value, str) and not isinstance(value, Html)
    return Html(f'<bdi dir="auto">{excerpt(str(value)) if plain else to_html(value)}</bdi>')


#: So many inputs are named.
_INPUTS = 4


def named_inputs(names: Sequence[str]) -> Html:
    """Return the names of the first inputs, and how many more there are."""
    if not names:
        return Html("documents in memory")
    more = len(names) - _INPUTS
    return join_html([join_html(map(text, names[:_INPUTS]), ", "), f" and {more:,} more" if more > 0 else ""])


def _cuts(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield what is left out inside of a text, and its end: where each begins and ends, and what it holds."""
    at = 0
    for begin, end in (*_stacks(text), (len(text), len(text))):
        for run in _LONG.finditer(text, at, begin):
            if run[0].isspace():
                yield run.start() + _SPACE, run.end(), "characters of white space"
            else:
                yield run.start() + _BEGIN, run.end() - _END, "characters"
        yield begin, end, "marks"
        at = end


def _stacks(text: str) -> Iterator[tuple[int, int]]:
    """Yield the marks of letters that have too many, without the first ones."""
    for found in _STACKED.finditer(text):
        at = found.start()
        for is_mark, same in groupby(found[0], key=lambda one: unicodedata.category(one).startswith("M")):
            end = at + sum(1 for _ in same)
            if is_mark and end - at > _MARKS:
                yield at + _MARKS, end
            at = end


def _size(text: str) -> int:
    return len(text) + (_LINE - 1) * text.count("\n")


def _fitting(text: str, room: int) -> int:
    """Return how many characters of a text there is room for."""
    if _size(text) <= room:
        return len(text)
    used = 0
    for at, one in enumerate(text):
        used += _LINE if one == "\n" else 1
        if used > room:
            return at
    return len(text)


def _not_shown(number: int, what: str) -> str:
    return f'<bdi class="dim left-out" dir="ltr"> … {number:,} {what} not shown … </bdi>'


#: The name of an option in a command line.
_OPTION = re.compile(r"(?<!\S)--?[a-z][a-z-]*")
#: Texts up to so many characters stand on one line in a table.
_SHORT = 24


@cache
def _environment() -> Any:
    """Return what renders templates: all that they print goes through `to_html`."""
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
    made.globals |= {"text": text, "excerpt": excerpt, "is_html": _is_html, "aligned": _aligned}
    made.globals |= {"with_options": _with_options, "format_count": format_count}
    return made


def render(template: str, **values: Any) -> Html:
    """Return what a template makes of values; functions among them it can call."""
    return Html(_environment().get_template(template).render(**values))


def render_macro(template: str, macro: str, *values: object) -> Html:
    """Return what a macro of a template makes of values."""
    return Html(getattr(_environment().get_template(template).module, macro)(*values))


def _part(macro: str, *values: object) -> Html:
    return render_macro("parts.html", macro, *values)


def _is_html(value: object) -> bool:
    return hasattr(value, "__html__")


def _with_options(line: str) -> Html:
    """Return a command line as HTML in which no line ends inside the name of an option."""
    return Html(_OPTION.sub(r'<span class="option">\g<0></span>', escape(line)))


def _aligned(at: int, left: int, value: object) -> Html:
    """Return the attributes of a cell: texts begin at the left, numbers end at the right."""
    if at >= left:
        return Html("")
    long = isinstance(value, str) and len(plain_text(value)) > _SHORT
    return Html(f' class="text{" long" if long else ""}" dir="auto"')


def opening(title: str, *lines: str) -> Html:
    """Return the head of a page: its title, and lines that say of what it is the page."""
    return _part("opening", title, lines)


def closing(*lines: str) -> Html:
    """Return the foot of a page: versions, and what made it."""
    return _part("closing", lines)


def command(line: str) -> Html:
    """Return a command line that one click selects."""
    return _part("command", line)


def bar(share: float, value: object = "") -> Html:
    """Return a value with a small bar beside it, which ``share``, from 0 to 1, fills."""
    return _part("bar", f"{100 * min(max(share, 0.0), 1.0):.4g}", value)


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    caption: str = "",
    tall: bool = False,
    best: Container[int] = (),
    left: int = 1,
    searched: Sequence[str] | None = None,
) -> Html:
    """Return a table that scrolls by itself where it is too wide.

    Without a head it is one of names and values. The first cell names its row. ``caption`` is what screen readers say
    first. A ``tall`` one scrolls by itself where it is too long; the rows of the numbers in ``best`` stand out; the
    first ``left`` columns are texts, all others numbers; ``searched`` holds for each row the words that a search field
    finds it by.
    """
    return _part("table", head, rows, caption, tall, best, left, searched)


def stages_table(stages: Sequence[Mapping[str, Any]]) -> Html:
    """Return the time and the memory of the stages of a run, as a table; those of one name are one."""
    costs: dict[str, tuple[float, float, int]] = {}
    for stage in stages:
        wall, cpu, _ = costs.get(stage["name"], (0.0, 0.0, 0))
        costs[stage["name"]] = wall + stage["wall_s"], cpu + stage["cpu_s"], stage["peak_memory_bytes"]
    whole = sum(wall for wall, _, _ in costs.values())
    rows = [
        [name, bar(wall / whole if whole else 0, f"{wall:.3f}"), f"{cpu:.3f}", f"{peak / 1e6:,.0f}"]
        for name, (wall, cpu, peak) in costs.items()
    ]
    return table(["stage", "time, s", "processor time, s", "peak of memory so far, MB"], rows)


def facts(rows: Mapping[str, object]) -> Html:
    """Return names and what is said of each, as a list."""
    return _part("facts", rows)


def tiles(rows: Sequence[tuple[str, str, str]]) -> Html:
    """Return the headline of a page: for each tile a value in large figures, what it is, and a note."""
    return _part("tiles", rows)


def notes(items: Sequence[str], *, title: str) -> Html:
    """Return a box of what a reader should know first; nothing where there are no items."""
    return _part("notes", items, title) if items else Html("")


def section(key: str, title: str, *content: str, intro: str = "") -> Html:
    """Return a section with a heading, which the page's table of contents lists.

    A link finds it by its ``key``. What it holds follows the ``intro``; texts that are not HTML become paragraphs.
    """
    return _part("section", key, title, content, intro)


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart, and what stands around it."""

    #: The id of its element.
    key: str
    #: What it shows, and how to read it.
    title: str
    note: str
    #: A sentence for who cannot see it: what is drawn, in which units, and what it comes to.
    told: str
    #: Vega-Lite.
    specification: Mapping[str, Any] = field(repr=False)
    #: The table of its figures.
    behind: Html = field(default=Html(""), repr=False)
    #: Why there is nothing to draw; it is said in the place of the chart.
    missing: str = ""


def figures(charts: Sequence[Chart], *, wide: bool = False) -> Html:
    """Return charts with their captions and the tables behind them; ``wide`` gives each the whole width."""
    return _part("figures", charts, wide) if charts else Html("")


def legend(
    names: Sequence[str],
    colours: Sequence[str],
    *,
    shapes: Sequence[str] = ("circle",),
    label: str = "Show one of them",
) -> Html:
    """Return buttons with the colours of a page's charts; each sets their parameter ``highlight`` to its name.

    ``shapes`` are those of the charts' points, as Vega names them; they and colours come round again.
    """
    return _part("legend", names, colours, shapes, label)


def fold(summary: str, *content: str, opened: bool = False, searched: str = "") -> Html:
    """Return content that is shown once its summary is pressed.

    Texts in it that are not HTML become paragraphs; a search field finds it by the words in ``searched``.
    """
    return _part("fold", summary, content, opened, searched)


def search_field(within: str, *, label: str, noun: str = "entries") -> Html:
    """Return a field that hides all elements with ``data-search`` in the element ``within`` that lack its words.

    The page needs the script ``search.js``.
    """
    return _part("search_field", within, label, noun)
