"""Altair charts for notebooks that load nothing from the network; a module of its own, because it imports Altair."""

from __future__ import annotations

from typing import Any

import altair as alt
import vl_convert

from neardup.pages.page import vega_lite_version


def empty_plot(reason: str) -> Plot:
    """Return a chart that says why there is nothing to show."""
    return Plot(layer=[alt.Chart(alt.Data(values=[{}])).mark_text(fontSize=13, text=f"Nothing to show: {reason}")])


class Plot(alt.LayerChart):  # type: ignore[misc]
    """A layered chart that notebooks show as a picture, and that is saved to HTML with all of its scripts.

    By default Altair makes the browser fetch Vega from a server. A picture needs no scripts, and stays small in the
    notebook's file. If ``altair.renderers.enable`` has chosen another renderer, Altair shows the chart with that.
    """

    def to_html(self, *args: Any, **options: Any) -> str:
        """Return Altair's page, with its scripts inside."""
        return str(super().to_html(*args, **({"inline": True} | options)))

    def save(self, fp: Any, format: str | None = None, **options: Any) -> None:
        """Write a file as Altair does, but a page with its scripts inside."""
        is_page = format == "html" or (format is None and str(fp).endswith(".html"))
        super().save(fp, format, **({"inline": True} if is_page else {}) | options)

    def _repr_mimebundle_(self, *args: Any, **options: Any) -> Any:
        if alt.renderers.active != "default":
            return super()._repr_mimebundle_(*args, **options)
        return {"image/svg+xml": vl_convert.vegalite_to_svg(self.to_dict(), vl_version=vega_lite_version())}
