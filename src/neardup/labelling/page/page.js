"use strict";
// Texts beside each other come from the server as markup, in which they are escaped; all else enters as text nodes, and
// the policy of the server refuses any other way.
(() => {
  const markup = trustedTypes.createPolicy("pair", { createHTML: (html) => html });
  const KEYS = { s: "same", y: "same", d: "different", n: "different", u: "unsure", k: "skip", z: "undo" };
  // So soon after a pair appears nobody has read it: a key that comes then was meant for the one before.
  const TOO_SOON_MS = 200;
  const SOON_MS = 300;

  const one = (id) => document.getElementById(id);
  const numbers = new Intl.NumberFormat("en");
  let labeller = new URLSearchParams(location.search).get("labeller");
  let state = null;
  let busy = false;
  let appeared = 0;

  // The token is worth nothing any more.
  history.replaceState(null, "", labeller ? "?labeller=" + encodeURIComponent(labeller) : "/");

  function element(tag, name, text) {
    const made = document.createElement(tag);
    if (name) made.className = name;
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function words(count, noun) {
    return numbers.format(count) + " " + noun + (count === 1 ? "" : "s");
  }

  async function ask(path, sent) {
    let answer;
    try {
      answer = await fetch(path, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(sent),
      });
    } catch {
      throw new Error("neardup cannot be reached: it has ended, or this machine slept. No label is lost; start it again and open its new link.");
    }
    if (!(answer.headers.get("Content-Type") || "").startsWith("application/json")) throw new Error(await answer.text());
    const found = await answer.json();
    if (!answer.ok) throw new Error(found.error);
    return found;
  }

  async function act(path, sent) {
    if (busy) return;
    busy = true;
    delete one("keys").dataset.ready;
    lock();
    const slow = setTimeout(() => { one("waiting").hidden = false; one("texts").hidden = true; }, SOON_MS);
    try {
      show(await ask(path, sent));
      alarm("");
    } catch (error) {
      one("texts").hidden = !(state && state.pair);
      alarm(error.message);
    } finally {
      clearTimeout(slow);
      one("waiting").hidden = true;
      busy = false;
      lock();
      setTimeout(() => { if (!busy) one("keys").dataset.ready = "yes"; }, TOO_SOON_MS);
    }
  }

  function alarm(text) {
    one("alarm").textContent = text;
    one("alarm").hidden = !text;
  }

  function lock() {
    const able = state && state.pair && !busy;
    for (const button of one("keys").querySelectorAll("button")) {
      button.disabled = button.dataset.answer === "undo" ? busy || !state || !state.labeller : !able;
    }
  }

  // What the page shows

  function show(found) {
    state = found;
    one("question").textContent = found.heading;
    one("asking").hidden = found.labeller !== null;
    document.querySelector("footer").hidden = found.labeller === null;
    if (found.labeller === null) {
      one("texts").hidden = one("done").hidden = true;
      one("name").value = found.suggested;
      one("name").select();
      return;
    }
    labeller = found.labeller;
    history.replaceState(null, "", "?labeller=" + encodeURIComponent(labeller));
    document.title = "neardup: " + found.heading;
    one("labeller").textContent = labeller;
    showProgress(found.progress);
    showFacts(found.facts);
    showBefore(found.before);
    one("texts").hidden = !found.pair;
    one("done").hidden = !!found.pair;
    if (found.pair) one("texts").innerHTML = markup.createHTML(found.pair.html);
    else showDone(found.progress);
    scrollTo(0, 0);
    one("main").focus({ preventScroll: true });
    appeared = performance.now();
  }

  function showProgress(progress) {
    const { same, different, unsure } = progress.mine;
    const all = same + different + unsure;
    const parts = [same + " same", different + " different"];
    if (unsure) parts.push(unsure + " unsure");
    if (progress.skipped) parts.push(progress.skipped + " skipped");
    let text = all ? words(all, "pair") + " judged: " + parts.join(" · ") : "no pair judged yet";
    if (progress.goal !== null) text += " · " + progress.given + " of " + progress.goal;
    if (progress.left !== null) text += " · " + numbers.format(progress.left) + " to go";
    one("counts").textContent = text;
    const whole = progress.left !== null ? all + progress.left : all;
    for (const [name, count] of Object.entries(progress.mine)) {
      one("meter").querySelector("." + name).style.width = (whole ? (100 * count) / whole : 0) + "%";
    }
  }

  function showFacts(facts) {
    one("facts").replaceChildren(...facts.map((fact) => {
      const box = element("div");
      box.title = fact.meaning;
      box.append(element("dt", "", fact.name), element("dd", "", fact.value));
      return box;
    }));
    // Where nothing hovers, there is no other place for them.
    one("meanings").replaceChildren(...facts.flatMap((fact) => [
      element("dt", "", fact.name), element("dd", "", fact.meaning),
    ]));
    one("meanings").hidden = !facts.length;
  }

  function showBefore(before) {
    const line = one("before");
    line.replaceChildren();
    line.classList.remove("new");
    if (!before) return;
    void line.offsetWidth;
    line.classList.add("new");
    if (before.nothing) return line.append("There is nothing left to take back.");
    if (before.behind) return line.append("Not taken: that pair was judged in another window. This is the present one.");
    if (before.undone) return line.append("Taken back: ", element("b", "", before.undone), ". Judge it again.");
    if (before.answer === "skip") return line.append("Put aside.");
    line.append("Last answer: ", element("b", "", before.answer));
    for (const said of before.says) {
      line.append(" · ");
      const agrees = said.same === (before.answer === "same");
      const kind = said.same === null || before.answer === "unsure" ? "" : agrees ? "agrees" : "objects";
      line.append(element("span", kind, said.words));
    }
    if (before.reason) line.append(" (" + before.reason + ")");
  }

  function showDone(progress) {
    const [title, what] = one("done").querySelectorAll("h1, .what");
    const enough = progress.goal !== null && progress.given >= progress.goal;
    title.textContent = enough ? "That was the last one of " + progress.goal : "There is nothing left to ask";
    what.textContent = "Every label is in the store. Finish ends the program in the terminal; this window can be closed then.";
  }

  function foldOrUnfold() {
    const folds = [...one("texts").querySelectorAll("details")];
    const opened = folds.every((fold) => fold.open);
    for (const fold of folds) fold.open = !opened;
  }

  // What is done

  function answer(given) {
    if (given === "undo") return act("/api/undo", { labeller });
    if (!state || !state.pair || !one("keys").dataset.ready) return undefined;
    const seconds = (performance.now() - appeared) / 1000;
    return act("/api/answer", { labeller, pair: state.pair.ids, answer: given, seconds });
  }

  async function finish() {
    if (busy || !state || state.pair) return;
    busy = true;
    try {
      const { ended } = await ask("/api/finish", { labeller });
      one("done").replaceChildren(
        element("h1", "", "Thank you"),
        element("p", "", ended ? "neardup has ended; this window can be closed." : "Others are still labelling; this window can be closed."),
      );
      state = null;
    } catch (error) {
      alarm(error.message);
    } finally {
      busy = false;
      lock();
    }
  }

  function letter(event) {
    // Keyboards of other scripts have no such letters; then their places count.
    const key = event.key.length === 1 && event.key > "\u007f" && event.code.startsWith("Key") ? event.code.slice(3) : event.key;
    return key.length === 1 ? key.toLowerCase() : key;
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.repeat) return;
    if (one("help").open || event.target.closest("input, textarea, select")) return;
    const key = letter(event);
    if (key === "?") one("help").showModal();
    else if (!state || state.labeller === null) return;
    else if (key in KEYS) answer(KEYS[key]);
    else if (key === "Enter" && !state.pair && event.target.tagName !== "BUTTON") finish();
    else if (key === "e" && state.pair) foldOrUnfold();
    else return;
    event.preventDefault();
  });

  for (const button of one("keys").querySelectorAll("button")) {
    button.addEventListener("click", () => {
      // A button that keeps the focus would be pressed again by the space that scrolls.
      button.blur();
      answer(button.dataset.answer);
    });
  }
  one("back").addEventListener("click", () => answer("undo"));
  one("finish").addEventListener("click", finish);
  one("help-button").addEventListener("click", () => one("help").showModal());
  one("asking").addEventListener("submit", (event) => {
    event.preventDefault();
    labeller = one("name").value;
    act("/api/state", { labeller });
  });

  act("/api/state", { labeller });
})();
