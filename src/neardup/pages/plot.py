"""Charts for notebooks: Altair's, but what draws them never comes from the network."""

from __future__ import annotations

from typing import Any

import altair as alt
import vl_convert

from neardup.pages.page import vega_lite_version


def nothing(why: str) -> Plot:
    """Return what stands for a chart that has nothing to show."""
    return Plot(layer=[alt.Chart(alt.Data(values=[{}])).mark_text(fontSize=13, text=f"Nothing to show: {why}")])


class Plot(alt.LayerChart):  # type: ignore[misc]
    """A layered chart that a notebook shows as a picture, and that a file of HTML holds with all that draws it.

    Altair has a browser fetch Vega from a server. A picture needs no scripts and stays small in the notebook's file;
    with another renderer, which ``altair.renderers.enable`` chooses, Altair shows the chart in its own way.
    """

    def to_html(self, *args: Any, **options: Any) -> str:
        """Return a page as Altair makes it, with the scripts in it."""
        return str(super().to_html(*args, **({"inline": True} | options)))

    def save(self, fp: Any, format: str | None = None, **options: Any) -> None:
        """Write a file as Altair does, a page with the scripts in it."""
        is_page = format == "html" or (format is None and str(fp).endswith(".html"))
        super().save(fp, format, **({"inline": True} if is_page else {}) | options)

    def _repr_mimebundle_(self, *args: Any, **options: Any) -> Any:
        if alt.renderers.active != "default":
            return super()._repr_mimebundle_(*args, **options)
        return {"image/svg+xml": vl_convert.vegalite_to_svg(self.to_dict(), vl_version=vega_lite_version())}
