"""Numbers as texts for people."""

from __future__ import annotations

from collections.abc import Sequence

_UNITS = ("", "k", "M", "G", "T")
_SIZES = ("bytes", "kB", "MB", "GB", "TB")
#: A character for each level of a sparkline, the first for 0; and the same in ASCII.
_BLOCKS, _ASCII = " ▁▂▃▄▅▆▇█", " .:-=+*#@"


def format_count(number: int, noun: str, nouns: str = "") -> str:
    """Return a number with its noun: 1 pair, 2,000 pairs."""
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"


def format_short(value: float) -> str:
    """Return a number below 10**13 in at most four characters: 0.5, 12, 345, 1.2k, 34k, 5M."""
    if 0 < value < 0.95:
        return f"{value:.1f}" if value >= 0.05 else "<.1"
    unit = 0
    while value >= 999.5 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    written = f"{value:.1f}" if value < 9.95 and value != round(value) else f"{value:.0f}"
    return f"{written.removesuffix('.0')}{_UNITS[unit]}"


def format_rate(value: float) -> str:
    """Return pairs per million with their significant digits: 12,345, 6.5, 0.021."""
    return f"{value:,.0f}" if value >= 10 or not value else f"{value:,.2g}"


def format_size(size: float) -> str:
    """Return a number of bytes with its unit: 12.3 MB."""
    unit = 0
    while size >= 999.5 and unit < len(_SIZES) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:,.0f} bytes" if unit == 0 else f"{size:.{1 if size < 100 else 0}f} {_SIZES[unit]}"


def format_share(part: float, of: float) -> str:
    """Return a part of a whole as a percentage: 49%, 3.2%, 0.04%; 0% of nothing."""
    value = 100 * part / of if of else 0.0
    if value in (0, 100) or 9.95 <= value < 99.5:
        return f"{value:.0f}%"
    # Less than all must not be rounded to 100%.
    digits = f"{min(value, 99.99):.2f}" if value >= 99.95 else f"{value:.1f}" if value >= 0.095 else f"{value:.2g}"
    return f"{digits}%"


def sparkline(counts: Sequence[int], cells: int, *, blocks: bool = True) -> str:
    """Return a histogram in ``cells`` characters whose heights are logarithms of the counts.

    The number of counts is a multiple of ``cells``; without ``blocks`` the characters are ASCII.
    """
    levels = _BLOCKS if blocks else _ASCII
    each = len(counts) // cells
    sums = [sum(counts[at * each : (at + 1) * each]) for at in range(cells)]
    # From 1 at the lowest level to the largest count at the highest, in equal steps of doublings.
    most = max(max(sums).bit_length() - 1, 1)
    return "".join(levels[0] if not one else levels[1 + round(7 * (one.bit_length() - 1) / most)] for one in sums)


def bar(part: float, cells: int, *, blocks: bool = True) -> str:
    """Return a part between 0 and 1 as a bar; any part above 0 has at least one character."""
    full = "█" if blocks else "#"
    return full * max(round(part * cells), int(part > 0))
