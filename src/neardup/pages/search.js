"use strict";
// A field with data-within hides those elements with data-search, inside the element of that id, that lack one of its words.
(() => {
  const numbers = new Intl.NumberFormat("en");
  const folded = (text) => text.normalize("NFKC").toUpperCase().toLowerCase();

  function entriesOf(scope) {
    return [...scope.querySelectorAll("[data-search]")].map((element) => ({
      element,
      words: folded(element.dataset.search || element.textContent),
      inner: Boolean(element.parentElement.closest("[data-search]")),
    }));
  }

  for (const field of document.querySelectorAll("input[data-within]")) {
    const scope = document.getElementById(field.dataset.within);
    const output = field.parentElement.querySelector("output");
    let entries = null;
    const search = () => {
      entries ??= entriesOf(scope);
      const words = folded(field.value).split(/\s+/u).filter(Boolean);
      let shown = 0, all = 0;
      for (const entry of entries) {
        const found = words.every((word) => entry.words.includes(word));
        // Open the folds around a match.
        for (let at = entry.element; words.length && found && (at = at.parentElement?.closest("details")) && scope.contains(at);) at.open = true;
        if (entry.inner) {
          entry.element.classList.toggle("found", found && words.length > 0);
        } else {
          entry.element.hidden = !found;
          all += 1;
          shown += found;
        }
      }
      output.textContent = words.length ? `${numbers.format(shown)} of ${numbers.format(all)} ${field.dataset.noun} shown` : "";
    };
    let waiting = 0;
    field.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(search, 80);
    });
    if (field.value) search();
  }
})();
