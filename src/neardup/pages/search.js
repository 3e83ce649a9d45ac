"use strict";
// Fields with data-within hide the elements with data-search, in the element of that id, that lack one of the words.
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
    const said = field.parentElement.querySelector("output");
    let entries = null;
    const search = () => {
      entries ??= entriesOf(scope);
      const asked = folded(field.value).split(/\s+/u).filter(Boolean);
      let shown = 0, all = 0;
      for (const entry of entries) {
        const found = asked.every((word) => entry.words.includes(word));
        // What is found is not left folded away.
        for (let at = entry.element; asked.length && found && (at = at.parentElement?.closest("details")) && scope.contains(at);) at.open = true;
        if (entry.inner) {
          entry.element.classList.toggle("found", found && asked.length > 0);
        } else {
          entry.element.hidden = !found;
          all += 1;
          shown += found;
        }
      }
      said.textContent = asked.length ? `${numbers.format(shown)} of ${numbers.format(all)} ${field.dataset.noun} shown` : "";
    };
    let waiting = 0;
    field.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(search, 80);
    });
    if (field.value) search();
  }
})();
