"""The lists of a report: families with their members, and the documents that went."""

from __future__ import annotations

from neardup.pages import parts
from neardup.pages.parts import Html, escaped, fold, joined, text
from neardup.reporting.model import COPY, EQUAL, KEPT, NEAR, Family, Member, Report
from neardup.reporting.wording import Wording

#: Said of a document whose text or features a dropped one had before it, where its keeper has others.
_OF_DROPPED = {COPY: "copy of a dropped one", EQUAL: "equal to a dropped one"}
#: Families so near to the top are open at first, where there are few.
_OPENED, _FEW = 1, 3


def families_section(report: Report) -> Html:
    """Return the families of a report, each of which opens into its members."""
    if not report.families_total:
        return Html("")
    shown = [
        _family(family, report.wording, opened=at < _OPENED and len(report.families) <= _FEW)
        for at, family in enumerate(report.families)
    ]
    field = parts.search_field("family-list", label="Find families by id or word", noun="families")
    listed = Html(f'<div id="family-list">{joined(shown)}</div>')
    return parts.section("families", "Families", field, listed, intro=report.wording.families)


def _family(family: Family, words: Wording, *, opened: bool) -> Html:
    first = family.members[0].document if family.members else None
    title = text(family.lead or (first.title or first.id if first else ""))
    similar = "" if family.smallest is None else f"similarities from {family.smallest:.3f}"
    similar += "" if family.mean is None else f", {family.mean:.3f} in the mean"
    if family.equal:
        similar = "all equal"
    elif family.smallest is not None and family.smallest == family.mean:
        similar = f"similarity {family.mean:.3f}"
    facts = [f"{family.documents:,} {words.documents}", f"{family.kept:,} {words.kept}", similar]
    if family.complete is False and family.pairs is not None:
        every = family.documents * (family.documents - 1) // 2
        facts.append(f"{family.pairs:,} of {every:,} pairs match")
    summary = Html(
        f'<span class="lead">{title}</span><small>{escaped("; ".join(fact for fact in facts if fact))} '
        '<span class="fate" hidden></span></small>'
    )
    more = [f"{family.hidden:,} more members are not listed"] if family.hidden else []
    if family.apart:
        pairs = "pair" if family.apart == 1 else "pairs"
        more.append(f"{family.apart:,} {pairs} of those listed match their {words.keeper}, but not each other")
    note = Html(f'<p class="dim">{escaped("; ".join(more))}.</p>') if more else Html("")
    members = Html(f'<ul class="members">{joined(_member(member, words) for member in family.members)}</ul>')
    inside = fold(summary, members, note, key=f"family-{family.number}", opened=opened, printed=False)
    return Html(f'<div class="family" data-search="">{inside}</div>')


def _member(member: Member, words: Wording) -> Html:
    document = member.document
    kept = member.why == KEPT
    states = f' data-goes="{escaped(member.goes)}"' if member.goes else ""
    about = [f"<strong>{text(document.title)}</strong>"] if document.title else []
    about += [f"<span>{text(document.id)}</span>"]
    about += [f'<span class="dim">{escaped(_time(document.time))}</span>'] if document.time else []
    if kept:
        about.append(f'<span class="chip stays">{escaped(words.kept)}</span>')
    else:
        chips = [] if member.why == member.to_keeper else [_OF_DROPPED[member.why]]
        about += [f'<span class="chip">{escaped(name)}</span>' for name in (*chips, member.to_keeper)]
        similarity = f"{member.similarity:.4f} " if member.to_keeper == NEAR else ""
        about.append(f"<span>{similarity}of {text(member.keeper)}</span>")
    said = f'<p class="why">{escaped(member.evidence)}</p>' if member.evidence else ""
    apart = ""
    if member.apart:
        names = joined((text(name) for name in member.apart), ", ")
        apart = f'<p class="apart">Matches its {escaped(words.keeper)}, but not {names}.</p>'
    return Html(
        f'<li class="{"kept" if kept else "gone"}"{states}><div class="about">{"".join(about)}'
        f'<span class="fate" hidden></span></div>{said}{apart}{member.look}</li>'
    )


def _time(value: str) -> str:
    return value.replace("T", " ", 1)


def rows_section(report: Report) -> Html:
    """Return the documents that went, as a list to search."""
    if not report.rows_total:
        return Html("")
    listed = {family.number for family in report.families}
    rows = [
        [
            text(row.id),
            text(row.words),
            text(row.keeper),
            row.why,
            f"{row.similarity:.4f}",
            Html(f'<a href="#family-{row.family}">{row.family:,}</a>') if row.family in listed else row.family or "",
        ]
        for row in report.rows
    ]
    words = report.wording
    head = [words.document, "title, or how it begins", words.keeper, "why", "similarity", "family"]
    field = parts.search_field("dropped-list", label="Find them by id or word", noun=words.documents)
    table = parts.table(head, rows, tall=True, left=4, searched=[""] * len(rows))
    some = len(report.rows) < report.rows_total
    intro = f"{len(report.rows):,} of {report.rows_total:,} are listed." if some else ""
    return parts.section(
        "dropped", words.sections[1], field, Html(f'<div id="dropped-list">{table}</div>'), intro=intro
    )
