"use strict";
// The slider shows the results at another threshold, moves the line in the charts, and marks the listed documents
// (data-dropped-at) that would be decided otherwise.
(() => {
  const { sweep, wording } = window.neardup.data;
  const slider = document.getElementById("threshold");
  if (!sweep || !slider) return;
  const output = document.getElementById("threshold-said");
  const back = document.getElementById("threshold-back");
  const numbers = new Intl.NumberFormat("en");
  const signed = new Intl.NumberFormat("en", { signDisplay: "exceptZero" });
  const documents = [...document.querySelectorAll("[data-dropped-at]")].map((element) => ({
    element,
    fate: element.querySelector(".fate"),
    states: element.dataset.droppedAt,
  }));
  const families = [...document.querySelectorAll(".family")].map((element) => ({
    fate: element.querySelector("summary .fate"),
    members: documents.filter((one) => element.contains(one.element)),
  }));
  const pairs = (number) => `${numbers.format(number)} ${number === 1 ? "pair" : "pairs"}`;

  function strong(text) {
    const element = document.createElement("strong");
    element.textContent = text;
    return element;
  }

  function show() {
    const at = Number(slider.value);
    const isOwn = at === sweep.own_index;
    const threshold = sweep.names[at];
    const change = (name) => (isOwn ? "" : ` (${signed.format(sweep[name][at] - sweep[name][sweep.own_index])})`);
    output.replaceChildren(
      strong(sweep.rules[at]),
      isOwn ? ` as in this ${wording.run}: ` : " instead: ",
      `${numbers.format(sweep.kept[at])} ${wording.kept}, ${numbers.format(sweep.dropped[at])} ${wording.dropped_label}${change("dropped")}, `,
      `${pairs(sweep.pairs[at])}${change("pairs")}`,
    );
    slider.setAttribute("aria-valuetext", output.textContent);
    back.disabled = isOwn;
    window.neardup.set("cut", sweep.similarities[at]);
    for (const { element, fate, states } of documents) {
      const changed = states[at] !== states[sweep.own_index];
      element.classList.toggle("otherwise", changed);
      fate.hidden = !changed;
      if (changed) fate.textContent = `${states[at] === "1" ? wording.dropped_verb : wording.kept_verb} at ${threshold}`;
    }
    for (const { fate, members } of families) {
      const changed = members.filter(({ states }) => states[at] !== states[sweep.own_index]);
      fate.hidden = changed.length === 0;
      fate.textContent = changed.length ? `${changed.length} of those listed change at ${threshold}` : "";
    }
  }

  slider.addEventListener("input", show);
  back.addEventListener("click", () => {
    slider.value = String(sweep.own_index);
    show();
    slider.focus();
  });
  show();
})();
