"""What a corpus is made of, as a part of the page."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from neardup.exploring.showing.wholecharts import lengths_chart
from neardup.exploring.telling import counted, lengths_in_words, share, sized
from neardup.pages.excerpts import clipped, excerpt, excerpt_of, rest_of
from neardup.pages.parts import Chart, Html, bar, escaped, figures, fold, joined, section, table, text

if TYPE_CHECKING:
    from neardup.exploring.boilerplate import Boilerplate, Passage
    from neardup.exploring.makeup import Copies, LargeFamily, Makeup
    from neardup.exploring.scripts import ScriptCount, Scripts
    from neardup.exploring.templates import Slot, Template

_EMPTY_LINES = re.compile(r"\s*\n\s*")
#: So many passages are shown before the others are folded away.
_LISTED = 6
#: Longer passages show this many characters before they are opened.
_PASSAGE = 420
#: Characters of a passage or a template that are shown once it is opened.
_QUOTED = 4_000
#: Fillers of a slot that its row shows.
_FILLERS = 4


def contents(makeup: Makeup, charts: list[Chart]) -> Html:
    """Return lengths, scripts, copies, boilerplate, templates and families."""
    measured = {"lengths": makeup.words, "sizes": makeup.sizes}
    drawn = [lengths_chart(lengths, key) for key, lengths in measured.items() if any(lengths.counts)]
    charts += drawn
    parts = [
        figures(drawn),
        _titled("Scripts and languages", _written_in(makeup.scripts)),
        _titled("Exact copies", _copies(makeup.copies, makeup.documents)),
        _titled("Passages that many documents share", _boilerplate(makeup.boilerplate)),
        _titled("Templates", _templates(makeup.templates)) if makeup.templates else "",
        _titled("The largest families", _families(makeup.families, makeup.families_found)),
        _titled("Files", _sources(makeup)) if makeup.sources else "",
    ]
    intro = (
        f"{counted(makeup.documents, 'document')}, {sized(makeup.bytes)} of text; of those in the sample "
        f"{lengths_in_words(makeup.words)}."
    )
    return section("contents", "What is the corpus made of?", *filter(None, parts), intro=intro)


def _titled(title: str, *content: str) -> Html:
    return joined([Html("<h3>"), title, Html("</h3>"), *content])


def _paragraph(words: str) -> Html:
    return Html(f"<p>{escaped(words)}</p>")


def _written_in(scripts: Scripts) -> Html:
    said = _paragraph(
        f"Of {counted(scripts.documents, 'document')} in the sample. Scripts go by letters; languages are a guess by "
        "stop words, unclear where these do not tell."
    )
    tables = (_shares("script", scripts.scripts), _shares("language", scripts.languages))
    return joined([said, Html(f'<div class="beside">{"".join(tables)}</div>')])


def _shares(what: str, counts: Sequence[ScriptCount]) -> Html:
    rows = [[one.name, _ids(one.ids[:1]), one.documents, bar(one.share, share(one.share, 1))] for one in counts]
    return table([what, "such as", "documents", "of the sample"], rows, caption=f"By {what}", left=2)


def _ids(ids: Sequence[str]) -> Html:
    return joined(map(text, ids), ", ")


def _copies(copies: Copies, documents: int) -> Html:
    if not copies.copies:
        return _paragraph("None: no two texts, empty ones aside, are equal byte for byte.")
    verb = "is" if copies.copies == 1 else "are"
    said = _paragraph(
        f"{counted(copies.copies, 'document')} ({share(copies.copies, documents)}) {verb} equal byte for byte to an "
        f"earlier one: {sized(copies.bytes)} of text. {counted(copies.groups, 'text is', 'texts are')} there more than "
        "once."
    )
    rows = [[text(one.begins), _ids(one.ids), one.documents, sized(one.bytes)] for one in copies.largest]
    head = ["begins", "such as", "documents", "each"]
    return joined([said, table(head, rows, caption="Texts that are there most often", left=2, tall=True)])


def _boilerplate(found: Boilerplate) -> Html:
    if not found.passages:
        return _paragraph(f"None: no {found.run} words in a row stand in {found.least:,} different texts.")
    listed = "" if found.found == len(found.passages) else f"; the {len(found.passages)} that fill most are listed"
    said = _paragraph(
        f"{counted(found.found, 'passage')} of at least {found.run} words in {found.least:,} texts or more{listed}. "
        f"They are in {counted(found.documents, 'document')} and cover {found.share_of_words:.1%} of all words."
    )
    items = [f"<li>{_passage(passage)}</li>" for passage in found.passages]
    first = Html(f'<ol class="passages">{"".join(items[:_LISTED])}</ol>')
    rest = Html(f'<ol class="passages" start="{_LISTED + 1}">{"".join(items[_LISTED:])}</ol>')
    more = counted(len(items) - _LISTED, "more passage")
    return joined([said, first, fold(more, rest) if len(items) > _LISTED else ""])


def _passage(passage: Passage) -> Html:
    unlike = "" if passage.unlike is None else f", {passage.unlike:,} of them unlike each other otherwise"
    about = (
        f"{counted(passage.documents, 'document')} ({share(passage.share, 1)}){unlike}; "
        f"{counted(passage.words, 'word')}; such as "
    )
    words = _EMPTY_LINES.sub("\n", passage.text)
    quoted = Html(f'<blockquote dir="auto">{excerpt(words, _QUOTED)}</blockquote>')
    if len(words) > _PASSAGE:
        quoted = fold(clipped(words, _PASSAGE), quoted)
    return Html(f'<p class="dim">{escaped(about)}{_ids(passage.ids)}</p>{quoted}')


def _templates(templates: Sequence[Template]) -> Html:
    said = _paragraph("Families that are one text with slots: what all of them say, and in each slot what one of them.")
    folds = (_template(one, opened=not at) for at, one in enumerate(templates))
    return joined([said, Html("<div>"), *folds, Html("</div>")])


def _template(template: Template, *, opened: bool) -> Html:
    summary = Html(
        f"<strong>{counted(template.documents, 'document')}</strong>, {counted(len(template.slots), 'slot')}, "
        f"{template.constant:,} words that never change ({share(template.share, 1)} of each)"
    )
    pieces = joined(_pieces(template))
    rows = [[f"{at}", _fillers(slot), slot.distinct] for at, slot in enumerate(template.slots, 1)]
    compared = f"{counted(template.compared, 'distinct text')} compared; such as "
    return fold(
        summary,
        Html(f'<p class="dim">{escaped(compared)}{_ids(template.ids)}</p>'),
        Html(f'<blockquote dir="auto">{pieces}</blockquote>'),
        table(["slot", "most often", "different fillers"], rows, caption="What the slots hold", tall=True, left=2),
        opened=opened,
    )


def _pieces(template: Template) -> Iterator[Html]:
    """Yield what all texts say, and in each slot what one of them says, up to where it is enough."""
    room = _QUOTED
    for at, (piece, slot) in enumerate(template.pieces):
        found = excerpt_of(_EMPTY_LINES.sub("\n", piece), room)
        slotted = f'<mark class="slot"><sup>{slot + 1}</sup><bdi>{found.html or "&nbsp;"}</bdi></mark>'
        yield found.html if slot < 0 else Html(slotted)
        room -= found.size
        if found.rest:
            yield rest_of(found.rest + sum(len(other) for other, _ in template.pieces[at + 1 :]))
            return


def _fillers(slot: Slot) -> Html:
    shown = [f"{text(filler) if filler else '(nothing)'} &times; {count:,}" for filler, count in slot.fillers]
    more = slot.distinct - min(len(shown), _FILLERS)
    return Html("; ".join(shown[:_FILLERS]) + (f"; {more:,} more" if more > 0 else ""))


def _families(families: Sequence[LargeFamily], found: int) -> Html:
    if not families:
        return _paragraph("None at the advised threshold, or nobody looked at the whole corpus.")
    rows = [
        [text(one.begins), _ids(one.ids), one.documents, one.pairs, one.smallest, one.mean, one.complete]
        for one in families
    ]
    head = ["begins", "such as", "documents", "matching pairs", "least alike", "mean", "all match all"]
    said = f"{counted(found, 'family', 'families')} at the advised threshold; the largest {len(families)}."
    return joined([_paragraph(said), table(head, rows, caption="The largest families", tall=True, left=2)])


def _sources(makeup: Makeup) -> Html:
    rows = [[text(one.name), one.documents, sized(one.bytes)] for one in makeup.sources]
    more = makeup.sources_found - len(makeup.sources)
    said = _paragraph(f"{more:,} more are not listed.") if more else ""
    return joined([table(["file", "documents", "text"], rows, caption="The largest files", tall=True), said])
