"use strict";
// Every page runs this script. Later scripts use `window.neardup`:
//   data              the data of the page for scripts, or {}
//   views             the drawn Vega views by the id of their chart; charts are drawn again for dark, light and print, so
//                     take them from here each time
//   set(name, value)  sets a parameter in every chart that has it, now and whenever one is drawn
//   drawn(act)        calls act(view, id) for every view, now and whenever one is drawn
//   reveal(element)   opens the folds around an element, and shows it if a search has hidden it
(() => {
  const json = (id) => JSON.parse(document.getElementById(id)?.textContent ?? "{}");
  const specifications = json("charts");
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const views = {};
  const turns = {};
  const values = new Map();
  const acts = [];

  // Charts

  function setSignal(view, name, value) {
    try {
      view.signal(name);
    } catch {
      return; // Not every chart has every parameter.
    }
    view.signal(name, value).runAsync();
  }

  function set(name, value) {
    values.set(name, value);
    for (const view of Object.values(views)) setSignal(view, name, value);
  }

  function drawn(act) {
    acts.push(act);
    for (const [id, view] of Object.entries(views)) act(view, id);
  }

  function config(background) {
    const style = getComputedStyle(root);
    const colour = (name) => style.getPropertyValue(name).trim();
    const [text, dim, line] = ["--text", "--dim", "--line"].map(colour);
    return {
      background, font: getComputedStyle(document.body).fontFamily, view: { stroke: null },
      axis: {
        labelColor: dim, titleColor: text, gridColor: line, gridOpacity: 0.7, domainColor: dim, tickColor: dim,
        titleFontWeight: "normal", labelFontSize: 12, titleFontSize: 12, titlePadding: 8, labelOverlap: true, labelSeparation: 6,
        labelFlush: false,
      },
      // The title stands above the axis, to be read horizontally.
      axisLeft: { titleAngle: 0, titleAlign: "left", titleAnchor: "end", titleBaseline: "bottom", titleX: 0, titleY: -8 },
      legend: {
        labelLimit: 240, labelColor: text, titleColor: text, labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal",
        layout: { top: { anchor: "start", offset: 24 } },
      },
      header: { labelColor: text, titleColor: text, labelFontSize: 12 },
      title: { color: text, fontSize: 14, anchor: "start" },
      text: { color: dim, fontSize: 12 },
      rule: { color: dim },
    };
  }

  const embedded = (element, specification, background) => vegaEmbed(element, specification, {
    ast: true, renderer: "svg", config: config(background), actions: false, defaultStyle: false,
    tooltip: { disableDefaultStyle: true },
  });

  async function draw(element) {
    const id = element.id;
    const turn = turns[id] = (turns[id] ?? 0) + 1;
    const description = element.ariaLabel;
    try {
      const result = await embedded(element, { ...specifications[id], description }, null);
      // To Vega it is a document of many marks; screen readers read the table of figures instead.
      element.setAttribute("role", "img");
      element.removeAttribute("aria-roledescription");
      element.querySelector("svg").setAttribute("aria-hidden", "true");
      if (turn !== turns[id]) return result.finalize();
      views[id]?.finalize();
      views[id] = result.view;
      for (const [name, value] of values) setSignal(result.view, name, value);
      for (const act of acts) act(result.view, id);
    } catch (error) {
      element.textContent = "This chart cannot be drawn: " + error.message;
    }
    return undefined;
  }

  // Drawing a chart takes some hundredths of a second, so it waits until the chart is near the window.
  const charts = [...document.querySelectorAll(".chart")].filter((element) => element.id in specifications);
  const near = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting) continue;
      near.unobserve(target);
      draw(target);
    }
  }, { rootMargin: "500px" });
  for (const element of charts) near.observe(element);
  dark.addEventListener("change", () => charts.forEach((element) => { if (turns[element.id]) draw(element); }));

  for (const button of document.querySelectorAll("[data-highlight]")) {
    button.addEventListener("click", () => {
      const chosen = button.getAttribute("aria-pressed") === "true" ? "" : button.dataset.highlight;
      for (const one of document.querySelectorAll("[data-highlight]")) {
        one.setAttribute("aria-pressed", String(one.dataset.highlight === chosen));
      }
      set("highlight", chosen);
    });
  }

  // A saved picture is dark on white and contains title and legend, for slides and papers.
  const named = (key, value) => (key === "legend" && value === null ? { orient: "bottom", title: null } : value);

  async function save(id, kind) {
    const figure = document.getElementById(id).closest("figure");
    const title = figure.querySelector("figcaption").firstChild.textContent;
    const away = document.createElement("div");
    const view = views[id];
    root.classList.add("paper");
    const specification = JSON.parse(JSON.stringify(specifications[id]), named);
    const whole = { ...specification, width: view ? view.width() + 60 : 560, title };
    const waiting = embedded(away, whole, "white");
    root.classList.remove("paper");
    const result = await waiting;
    for (const [name, value] of values) setSignal(result.view, name, value);
    const link = document.createElement("a");
    link.href = await result.view.toImageURL(kind, 2);
    link.download = id + "." + kind;
    link.click();
    result.finalize();
  }

  for (const button of document.querySelectorAll("[data-save]")) {
    button.addEventListener("click", () => save(button.closest("figure").querySelector(".chart").id, button.dataset.save));
  }

  // Folds

  function reveal(element) {
    for (let at = element; at; at = at.parentElement) {
      if (at.tagName === "DETAILS") at.open = true;
      at.hidden = false;
    }
  }

  function follow() {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    reveal(target);
    if (target.tagName === "DETAILS") target.firstElementChild.focus({ preventScroll: true });
    target.scrollIntoView();
  }

  addEventListener("hashchange", follow);
  follow();

  // The table of contents

  const contents = document.querySelector(".contents details");
  if (contents) {
    const wide = matchMedia("(min-width: 1200px)");
    const fit = () => { contents.open = wide.matches; };
    wide.addEventListener("change", fit);
    fit();
    contents.addEventListener("click", (event) => { if (event.target.closest("a") && !wide.matches) contents.open = false; });
  }

  // Print: everything is opened and drawn dark on white

  // The width of A4 within its margins, and the scale of its letters.
  const PAPER_PX = 688, PAPER_TYPE = 0.76;
  let closed = [];

  function fitTables() {
    const wide = [...document.querySelectorAll("main .scroll")].map((box) => [box.querySelector("table"), box.scrollWidth * PAPER_TYPE]);
    for (const [table, width] of wide) table.style.zoom = width > PAPER_PX ? PAPER_PX / width : "";
  }

  addEventListener("beforeprint", () => {
    root.classList.add("paper");
    closed = [...document.querySelectorAll('main details:not([open]):not([data-print="no"])')];
    for (const details of closed) details.open = true;
    fitTables();
    for (const element of charts) draw(element);
  });
  addEventListener("afterprint", () => {
    root.classList.remove("paper");
    for (const details of closed) details.open = false;
    for (const table of document.querySelectorAll("main .scroll table")) table.style.zoom = "";
    for (const element of charts) draw(element);
  });

  window.neardup = { data: json("data"), views, set, drawn, reveal };
})();
