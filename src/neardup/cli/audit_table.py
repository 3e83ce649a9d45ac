"""What an audit found, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neardup.cli.screen import count_text, visible

if TYPE_CHECKING:
    from rich.table import Table

    from neardup.auditing.estimates import Point
    from neardup.auditing.finding import Audit
    from neardup.evaluation.scoring import Figure


def show_audit(found: Audit) -> None:
    """Print figures, strata and what to keep in mind to stdout."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    judged = found.same + found.different
    console.print(Text(f"{visible(found.point, lines=False)}; net: {visible(found.net, lines=False)}"))
    pairs = count_text(found.candidates, "pair")
    console.print(
        f"{count_text(found.documents, 'document')}, {pairs} of distinct texts above the net, {found.own.returned:,} "
        "returned"
    )
    unsure = f", {found.unsure:,} unsure" if found.unsure else ""
    console.print(f"{count_text(found.drawn, 'pair')} drawn, {judged:,} judged{unsure}; [dim]95 % intervals[/dim]")
    if judged:
        console.print()
        console.print(_points(found))
        number = found.duplicates
        if number.value is not None and number.low is not None and number.high is not None:
            ends = f"{number.low:,.0f} to {number.high:,.0f}"
            console.print(f"duplicates above the net: about {number.value:,.0f} pairs ({ends})")
    console.print()
    console.print(_strata(found))
    for note in found.notes():
        console.print(Text(visible(note, lines=False)))


def _points(found: Audit) -> Table:
    from rich.text import Text

    table = _table("returned at", "pairs", "precision", "recall above the net")
    for point in found.points:
        cells = [_threshold(found, point), f"{point.returned:,}", _figure(point.precision), _figure(point.recall)]
        table.add_row(*map(Text, cells), style="bold" if point.own else "")
    return table


def _strata(found: Audit) -> Table:
    from rich.text import Text

    names = dict.fromkeys(visible(found.scale_of(band).name, lines=False) for band in found.strata)
    table = _table(" / ".join(names), "returned", "pairs", "drawn", "judged", "same", "duplicates")
    for band in found.strata:
        counts = [f"{count:,}" for count in (band.pairs, band.drawn, band.judged, band.same)]
        share = _figure(band.share) if band.judged else ""
        cells = [band.between(found.scale_of(band)), "yes" if band.returned else "no", *counts, share]
        table.add_row(*map(Text, cells))
    return table


def _table(*names: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 0, 0, 1), show_edge=False)
    table.add_column(names[0], overflow="fold")
    for name in names[1:]:
        table.add_column(name, justify="right")
    return table


def _threshold(found: Audit, point: Point) -> str:
    sign = "<=" if found.scale.distance else ">="
    return f"{sign} {found.scale.shown(point.score):.4g}{' (audited)' if point.own else ''}"


def _figure(figure: Figure) -> str:
    if figure.value is None:
        return "not known"
    spread = "" if figure.low is None or figure.high is None else f" {figure.low:.2f}-{figure.high:.2f}"
    return f"{figure.value:.3f}{spread}"
