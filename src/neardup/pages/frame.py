"""The frame of a page: its style, the charts' machinery, and a policy that lets the browser fetch nothing.

Charts are Vega-Lite, drawn by scripts that stand in the page. The policy names the scripts by their hashes, so that no
text of a document or recipe could run as one, even if it were not escaped.
"""

from __future__ import annotations

import hashlib
import html
import importlib.util
import json
from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from typing import Any

from neardup.errors import OutputError


def check_drawing(output: str) -> None:
    """Refuse a page where the packages that draw charts are not installed.

    Raises
    ------
    OutputError
        Saying how to get them.
    """
    if any(importlib.util.find_spec(name) is None for name in ("altair", "vl_convert")):
        raise OutputError(
            f'{output} needs packages that draw charts; pip install "neardup[report]", or write .json or .csv'
        )


def escaped(value: object) -> str:
    """Return a text that is safe between tags and in quoted attributes."""
    return html.escape(str(value), quote=True)


def page(title: str, body: str, charts: Mapping[str, Any]) -> str:
    """Return a whole page.

    Parameters
    ----------
    title : str
        Plain text.
    body : str
        HTML whose texts are escaped already. Elements of the class ``chart`` hold the charts by their ids; buttons with
        ``data-highlight`` set the charts' parameter ``highlight``.
    charts : mapping of str to dict
        Vega-Lite specifications by id.
    """
    # Inside a script element only "<" could end it, and as an escape it is the same JSON.
    specifications = json.dumps(charts, ensure_ascii=True).replace("<", "\\u003c")
    scripts = [_vega(), _DRAWING]
    allowed = " ".join(f"'sha256-{b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" for script in scripts)
    policy = (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; "
        "form-action 'none'; base-uri 'none'"
    )
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="referrer" content="no-referrer">',
            '<link rel="icon" href="data:,">',
            f"<title>{escaped(title)}</title>",
            f"<style>{_STYLE}</style>",
            "</head>",
            "<body>",
            f"<main>{body}</main>",
            f'<script type="application/json" id="charts">{specifications}</script>',
            *(f"<script>{script}</script>" for script in scripts),
            "</body>",
            "</html>",
        ]
    )


@cache
def _vega() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script that fits between script tags."""
    import altair
    import vl_convert

    version = ".".join(altair.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=version)
    return bundle.replace("</script", "<\\/script").replace("<!--", "<\\!--")


_STYLE = """
:root { color-scheme: light dark; --text: #1c1f24; --dim: #5b6270; --line: #d9dce2; --back: #ffffff; --soft: #f4f5f7;
  --warn: #fff4d6; --warn-line: #d9a514; --mark: #e8f0fe; }
@media (prefers-color-scheme: dark) { :root { --text: #e6e8ec; --dim: #a0a7b4; --line: #353a44; --back: #15171b;
  --soft: #1e2127; --warn: #33290d; --warn-line: #b78a17; --mark: #1d2b45; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--text);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
main { max-width: 1180px; margin: 0 auto; padding: 20px 16px 48px; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 4px; }
h2 { font-size: 1.15rem; margin: 32px 0 8px; }
p { margin: 6px 0; max-width: 90ch; }
p, li { overflow-wrap: anywhere; }
.dim { color: var(--dim); }
.warnings { background: var(--warn); border-left: 4px solid var(--warn-line); padding: 8px 14px; margin: 14px 0; }
.warnings ul { margin: 4px 0; padding-left: 18px; }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: 6px; }
.tall { max-height: 75vh; overflow-y: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: 6px 10px; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
th { background: var(--soft); font-weight: 600; vertical-align: bottom; position: sticky; top: 0; z-index: 1; }
th:first-child, td:first-child { text-align: left; position: sticky; left: 0; background: var(--back);
  max-width: min(45vw, 16em); overflow: hidden; text-overflow: ellipsis; }
th:first-child { background: var(--soft); z-index: 2; }
tr:last-child td { border-bottom: 0; }
tr.best td { background: var(--mark); font-weight: 600; }
td small { color: var(--dim); font-weight: 400; display: block; font-size: .85em; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 440px), 1fr)); gap: 20px 28px; }
.charts figure { margin: 0; min-width: 0; }
figcaption { font-weight: 600; margin-bottom: 4px; padding-right: 40px; min-height: 46px; }
figcaption small { display: block; font-weight: 400; color: var(--dim); }
.chart { width: 100%; min-height: 300px; }
.charts .chart.vega-embed.has-actions { padding-right: 0; }
.charts .chart.vega-embed summary { top: -46px; right: 0; }
.charts .chart.vega-embed .vega-actions { top: -8px; right: 0; }
.legend { display: flex; flex-wrap: wrap; gap: 6px; margin: 10px 0 14px; position: sticky; top: 0; z-index: 3;
  background: var(--back); padding: 6px 0; }
.legend button { font: inherit; font-size: .9em; color: var(--text); background: var(--soft); border: 1px solid
  var(--line); border-radius: 14px; padding: 2px 10px; cursor: pointer; max-width: 100%; overflow: hidden;
  text-overflow: ellipsis; white-space: nowrap; }
.legend button[aria-pressed="true"] { outline: 2px solid currentColor; }
.legend button span { display: inline-block; width: .75em; height: .75em; border-radius: 50%; margin-right: 6px; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 4px 14px; max-width: 90ch; }
dt { font-weight: 600; }
dd { margin: 0; }
@media (max-width: 520px) { dl { display: block; } dd { margin-bottom: 6px; } th, td { padding: 5px 7px; } }
#vg-tooltip-element { max-width: 90vw; }
"""

_DRAWING = """
(function () {
  const charts = JSON.parse(document.getElementById("charts").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  let views = [], chosen = "", drawing = 0;
  function config() {
    const style = getComputedStyle(document.documentElement);
    const colour = name => style.getPropertyValue(name).trim();
    return {
      background: null, font: "system-ui, sans-serif", view: {stroke: null},
      axis: {labelColor: colour("--dim"), titleColor: colour("--text"), gridColor: colour("--line"), gridOpacity: .6,
        domainColor: colour("--dim"), tickColor: colour("--dim"), titleFontWeight: "normal", labelFontSize: 12,
        labelOverlap: true, labelSeparation: 6,
        titleFontSize: 12},
      text: {color: colour("--dim")}
    };
  }
  function draw() {
    const turn = ++drawing;
    views.forEach(view => view.finalize());
    views = [];
    for (const element of document.querySelectorAll(".chart")) {
      const options = {ast: true, renderer: "svg", theme: dark.matches ? "dark" : undefined, config: config(),
        tooltip: {theme: dark.matches ? "dark" : "light"},
        actions: {export: true, source: false, compiled: false, editor: false}};
      vegaEmbed(element, charts[element.id], options).then(result => {
        if (turn !== drawing) { result.finalize(); return; }
        views.push(result.view);
        return result.view.signal("highlight", chosen).runAsync();
      }).catch(error => { element.textContent = "This chart cannot be drawn: " + error.message; });
    }
  }
  const buttons = document.querySelectorAll("[data-highlight]");
  for (const button of buttons) {
    button.addEventListener("click", () => {
      chosen = button.dataset.highlight === chosen ? "" : button.dataset.highlight;
      buttons.forEach(one => one.setAttribute("aria-pressed", String(one.dataset.highlight === chosen)));
      views.forEach(view => view.signal("highlight", chosen).runAsync());
    });
  }
  dark.addEventListener("change", draw);
  draw();
})();
"""
