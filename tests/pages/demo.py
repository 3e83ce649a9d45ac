"""A page that uses every part, with texts that would like to be something else."""

from __future__ import annotations

import math
from typing import Any

import altair as alt

from neardup.pages.charts import COLOURS, finished, log_counts
from neardup.pages.diff import Shown
from neardup.pages.diff_view import side_by_side
from neardup.pages.html import (
    Chart,
    Html,
    bar,
    closing,
    command,
    facts,
    figures,
    fold,
    legend,
    notes,
    opening,
    search_field,
    section,
    table,
    text,
    tiles,
)
from neardup.pages.page import page

HOSTILE = (
    "</script><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\"> <b>bold</b> &lt;"
)
NAMES = {
    "attack": HOSTILE,
    "Arabic": "قال البنك المركزي يوم الاثنين إن سعر الفائدة سيبقى 2.5 في المئة",
    "Hebrew": "הבנק המרכזי הודיע ביום שני כי הריבית תישאר 2.5 אחוז. Reuters",
    "Chinese": "中国人民银行宣布下调利率十个基点",
    "Thai": "ธนาคารกลางประกาศคงอัตราดอกเบี้ยไว้ที่ร้อยละ 2.5",
    "emoji": "rates 📉 down 👩‍👩‍👧‍👦 family 🇪🇺",
    "controls": "nul \0 bell \a override \u202e desrever",
    "surrogate": "half \ud83d of a pair",
    "long": "Donaudampfschifffahrtsgesellschaft" * 9,
    "empty": "",
}
PAIRS = {
    "English": (
        Shown(
            "news-0417",
            "Harbour board widens the eastern channel",
            "The harbour board voted on Tuesday to widen the eastern channel at a cost of $40 million.\n"
            "Work begins in spring, a spokesman said, and will last for two years. "
            "The board had put off the plan twice.\nShips of up to 300 metres could then call at the port.",
            "2015-08-19T16:00Z",
        ),
        Shown(
            "news-0533",
            "Harbour board to widen eastern channel",
            "The harbour board voted on Monday to widen the eastern channel at a cost of $40 million.\n"
            "Work begins in spring and will last for two years. The board had put off the plan twice.\n"
            "Ships of up to 300 metres could then call at the port. Fishermen protested.",
            "2015-08-19T18:30Z",
        ),
    ),
    "Arabic": (
        Shown("ar-1", NAMES["Arabic"], NAMES["Arabic"] + " كما كان متوقعا."),
        Shown("ar-2", "", NAMES["Arabic"].replace("الاثنين", "الثلاثاء") + " كما كان متوقعا."),
    ),
    "Chinese": (
        Shown("zh-1", "", NAMES["Chinese"] + "。"),
        Shown("zh-2", "", NAMES["Chinese"].replace("十", "五") + "。"),
    ),
    "attack": (
        Shown(HOSTILE, HOSTILE, HOSTILE + " one \0 end"),
        Shown("<b>2</b>", "", HOSTILE + " two \ud800 end"),
    ),
    "long": (
        Shown(
            "long-1", "A long report", "\n".join(f"Line {at} says what it says, word for word." for at in range(120))
        ),
        Shown(
            "long-2",
            "A long report",
            "\n".join(
                f"Line {at} says what it {'said' if at in (3, 60) else 'says'}, word for word." for at in range(120)
            ),
        ),
    ),
    "empty": (Shown("nothing", "", ""), Shown("one", "", "one")),
}


def histogram(rows: list[dict[str, Any]]) -> dict[str, Any]:
    drawn = alt.Chart(alt.Data(values=rows)).mark_rect().transform_calculate(none="0.5")
    told = [alt.Tooltip("low:Q", format="~g"), alt.Tooltip("count:Q", format=",")]
    y = log_counts("count", "pairs", most=max(row["count"] for row in rows))
    return finished(drawn.encode(x=alt.X("low:Q"), x2="high:Q", y=y, y2="none:Q", tooltip=told))


def lines(rows: list[dict[str, Any]], names: list[str]) -> dict[str, Any]:
    faint = alt.condition("highlight == '' || datum.name == highlight", alt.value(1), alt.value(0.12))
    colour = alt.Color("name:N", scale=alt.Scale(domain=names, range=list(COLOURS[: len(names)])), legend=None)
    return finished(alt.Chart(alt.Data(values=rows)).mark_line().encode(x="x:Q", y="y:Q", color=colour, opacity=faint))


def bars(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return finished(alt.Chart(alt.Data(values=rows)).mark_bar().encode(x="count:Q", y=alt.Y("name:N", sort=None)))


def demo_charts() -> list[Chart]:
    """Return three kinds of charts."""
    counts = [(at / 50, int(10 ** (5.5 * math.exp(-at / 9)) - 1) + (40 if at > 44 else 0)) for at in range(50)]
    bins = [{"low": low, "high": low + 0.02, "count": count} for low, count in counts]
    names = ["words:2", "words:4", HOSTILE]
    curve = [
        {"name": name, "x": at / 20, "y": 10_000 * math.exp(-at / (4 + 2 * number)) // 1}
        for number, name in enumerate(names)
        for at in range(4, 21)
    ]
    scripts = [
        {"name": name, "count": 900 // (at + 1)} for at, name in enumerate(["Latin", "العربية", "漢字", HOSTILE])
    ]
    return [
        Chart(
            "similar",
            "Similarity of dropped documents",
            "to their keepers; counts on a logarithmic scale",
            "Histogram of Jaccard similarity, from 0 to 1, of 412,009 pairs: most are below 0.1.",
            histogram(bins),
            table(
                ["from", "to", "pairs"], [[row["low"], row["high"], row["count"]] for row in bins], left=0, tall=True
            ),
        ),
        Chart(
            "dropped",
            "Dropped documents by threshold",
            "all documents; stricter towards the right",
            "Lines of the number of dropped documents by threshold, falling from thousands at 0.2 to tens at 1.",
            lines(curve, names),
            table(
                ["recipe", "threshold", "documents"], [[row["name"], row["x"], row["y"]] for row in curve], tall=True
            ),
        ),
        Chart(
            "scripts",
            "Scripts",
            "of a sample of 2,000 documents",
            "Bars of the number of documents by script; Latin leads with 900.",
            bars(scripts),
            table(["script", "documents"], [[row["name"], row["count"]] for row in scripts]),
        ),
    ]


def demo(*, families: int = 12, data: dict[str, Any] | None = None) -> str:
    """Return the page."""
    charts = demo_charts()
    looks = {
        name: side_by_side(*pair, words=120, head=f"similarity 0.{83 + at}")
        for at, (name, pair) in enumerate(PAIRS.items())
    }
    groups = [
        fold(
            Html(f"Family {at + 1}: {7 - at % 5} documents, {text(name)}"),
            Html(
                "".join(fold(f"document {at}-{inner}", looks["English"], searched=f"{at}-{inner}") for inner in (1, 2))
            ),
            facts({"keeper": text(NAMES["Arabic"]), "similarity": 0.8571, "members": 7 - at % 5}),
            key=f"family-{at + 1}",
            searched=f"family-{at + 1} {name} {at}-1 {at}-2",
        )
        for at, name in enumerate((list(NAMES.values()) * families)[:families])
    ]
    cells = [
        [name, text(value), len(value), 1234567 // (at + 1), bar(at / 9, f"{at / 9:.1%}")]
        for at, (name, value) in enumerate(NAMES.items())
    ]
    body = [
        opening(
            "What was dropped, and why",
            "adzuna.jsonl.gz, 131,034 documents; recipe near-duplicates (9f3a07c1)",
            HOSTILE,
        ),
        tiles(
            [
                ("131,034", "documents came in", "from 3 files"),
                ("118,420", "stayed", "90.4 %"),
                ("12,614", "were dropped", "4,011 exact copies, 8,603 near-duplicates"),
                ("2,207", "families", "largest: 412 documents"),
                ("4.2 s", "on 2 cores", "310 MB at most"),
            ]
        ),
        notes(
            ["Only 500 of 2,207 families are listed: the largest. Raise --report-families for more.", HOSTILE],
            title="Not all is shown",
        ),
        section(
            "outlook",
            "How similar the corpus is",
            legend(["words:2", "words:4", HOSTILE], COLOURS),
            figures(charts[:2]),
            figures(charts[2:], wide=True),
            intro="Every pair of a sample of 2,000 documents, and all documents at each threshold.",
        ),
        section("pairs", "Pairs to read", *looks.values(), "A text that is not HTML: " + HOSTILE),
        section(
            "families",
            "Families",
            search_field("families", label="Search by id or word", noun="families"),
            *groups,
            intro="Documents that pairs connect, the largest first.",
        ),
        section(
            "texts",
            "All sorts of texts",
            table(
                ["kind", "text", "characters", "pairs per million", "share"],
                cells,
                caption="Names, and what they hold",
                left=2,
                best={2},
            ),
            table(
                ["hour", *(f"column {at}" for at in range(16))],
                [["2015-08-19T16:00Z", *range(1000, 17000, 1000)]] * 40,
                tall=True,
            ),
        ),
        section(
            "run",
            "The run",
            facts(
                {
                    "recipe": "near-duplicates",
                    "features": "words:4, sets",
                    "threshold": 0.7,
                    "texts": text(NAMES["long"]),
                }
            ),
            command("neardup dedup adzuna.jsonl.gz --threshold 0.7 -o kept.jsonl --report report.html"),
            notes([], title="nothing"),
        ),
        closing("neardup 0.1.0"),
    ]
    return page(
        "What was dropped, and why - neardup",
        "\n".join(body),
        charts,
        data=data or {"hostile": HOSTILE},
        scripts=["search.js"],
    )
