"""The report of a replay: what it is made of, taken while the replay runs, and texts from the corpus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from neardup.clock import Stage
from neardup.documents import Corpus
from neardup.features.statistics import Statistics
from neardup.flow.document import Document, Verdict
from neardup.flow.together import matching
from neardup.material import Material
from neardup.pairs import Names
from neardup.replay.arrived import Arrived
from neardup.replay.order import Item, Timeline
from neardup.replay.run import Totals
from neardup.replay.settings import Settings
from neardup.reporting.changes import named
from neardup.reporting.extent import Extent
from neardup.reporting.flow import Flow, Integers, Sources, counts_in_words
from neardup.reporting.flowcharts import by_lag, by_time
from neardup.reporting.flowed import About, flow_report
from neardup.reporting.flowsweep import Around
from neardup.reporting.model import Report
from neardup.sidebyside.shown import Shown
from neardup.times import utc

#: Bytes of texts that are read for the list of duplicates.
_READ = 64_000_000
_MORE = "The store held more than the corpus, so what came near the threshold without reaching it is not known."


class ReplayReport:
    """Takes verdicts while a replay runs, and makes its report.

    Parameters
    ----------
    settings : Settings
        Of the replay.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._arrived = Arrived()

    def see(self, items: Sequence[Item], verdicts: Sequence[Verdict]) -> None:
        """Take the verdicts of some documents."""
        self._arrived.see(items, verdicts)

    def made(
        self,
        corpus: Corpus,
        timeline: Timeline,
        around: Around,
        totals: Totals,
        *,
        extent: Extent,
        command: str,
        inputs: Sequence[str],
        quarantined: Mapping[str, int],
        stages: Sequence[Stage],
        statistics: Statistics | None = None,
    ) -> Report:
        """Return the report.

        Parameters
        ----------
        corpus, timeline : Corpus, Timeline
            What was replayed.
        around : Around
            The pairs that come near the threshold.
        totals : Totals
            What the replay came to.
        extent : Extent
            How much is listed.
        command, inputs : str, sequence of str
            What was typed.
        quarantined : mapping of str to int
            What was set aside, by reason.
        stages : sequence of Stage
            What the stages of the replay cost.
        statistics : Statistics, optional
            Of the collection, for recipes that need them.
        """
        settings = self._settings
        flow = self._arrived.flow(timeline)
        if flow.before:
            around = Around.nothing(around.loosest, _MORE)
        texts = _Texts(corpus, timeline, self._arrived, flow, settings, statistics)
        flags = ", ".join(f"{count:,} {flag}" for flag, count in sorted(totals.flags.items()))
        about = About(
            title="What a flow would have stopped, and why",
            command=command,
            inputs=inputs,
            recipe=settings.recipe,
            decision=settings.decision,
            window=settings.window,
            everything=settings.against == "everything",
            gone="This item came before the corpus, from the store, which keeps no text of it for this page.",
            quarantined=sorted(quarantined.items(), key=lambda item: (-item[1], item[0])),
            stages=stages,
            facts={"flags": flags} if flags else {},
            curves=[*by_time(flow), *by_lag(flow)],
        )
        sources = Sources(texts=texts.shown, words=texts.words, evidence=texts.evidence, matching=texts.matching)
        return flow_report(flow, about, sources, extent, around)


class _Texts:
    """Texts of items by place, from the corpus, and why two match."""

    def __init__(
        self,
        corpus: Corpus,
        timeline: Timeline,
        arrived: Arrived,
        flow: Flow,
        settings: Settings,
        statistics: Statistics | None,
    ) -> None:
        self._corpus, self._timeline, self._arrived, self._flow = corpus, timeline, arrived, flow
        self._settings, self._statistics = settings, statistics
        self._before = flow.before
        self._positions = np.searchsorted(timeline.rows, arrived.rows)

    @cached_property
    def _material(self) -> Material:
        names = Names(self._timeline.rows, self._timeline.ids)
        return Material(self._corpus, names, content=self._settings.recipe.content)

    def shown(self, places: Sequence[int]) -> dict[int, Shown]:
        there = [place for place in places if place >= self._before]
        positions = self._positions[np.array(there, np.int64) - self._before]
        self._material.load(positions)
        shown = map(self._material.shown, positions.tolist())
        return dict(zip(there, shown, strict=True))

    def words(self, places: Integers) -> dict[int, str]:
        sizes = self._timeline.sizes[self._positions[places - self._before]]
        # The latest ones first, as they are listed.
        some = places[::-1][np.cumsum(sizes[::-1]) <= _READ].tolist()
        shown = self.shown(some)
        return {place: named(shown[place]) for place in some}

    def evidence(self, place: int) -> str:
        number = place - self._before
        learned = self._arrived.learned.get(number)
        return learned if learned else counts_in_words(self._arrived.counts(number), self._settings.recipe)

    def matching(self, texts: Mapping[int, Shown]) -> set[tuple[int, int]] | None:
        recipe, decision = self._settings.recipe, self._settings.decision
        if decision is not None and recipe.content:
            # Its pages are here only as what was found in them.
            return None
        titles = self._titles(list(texts))
        documents = {
            place: Document(str(place), shown.text, utc(int(self._flow.times[place])), title=titles.get(place, ""))
            for place, shown in texts.items()
        }
        return matching(documents, recipe if decision else recipe.changed(content=""), decision, self._statistics)

    def _titles(self, places: Sequence[int]) -> dict[int, str]:
        titles: Any = self._timeline.titles
        if titles is None:
            return {}
        return {place: str(titles[int(self._positions[place - self._before])].as_py() or "") for place in places}
