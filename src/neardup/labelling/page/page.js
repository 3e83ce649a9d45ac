"use strict";
// The two texts come from the server as markup, in which they are escaped. Everything else enters as text nodes; the
// server's policy refuses other markup.
(() => {
  const markup = trustedTypes.createPolicy("pair", { createHTML: (html) => html });
  const KEYS = { s: "same", y: "same", d: "different", n: "different", u: "unsure", k: "skip", z: "undo" };
  // Nobody reads a pair in so short a time: an earlier key was meant for the previous pair.
  const MIN_READING_MS = 200;
  const WAITING_NOTE_MS = 300;
  // A pair of more screens than this is folded.
  const LONG_SCREENS = 2;
  const COOKIE = "neardup-labeller";
  const rememberedName = () => decodeURIComponent(new RegExp(COOKIE + "=([^;]*)").exec(document.cookie)?.[1] ?? "");

  const byId = (id) => document.getElementById(id);
  const numbers = new Intl.NumberFormat("en");
  let labeller = new URLSearchParams(location.search).get("labeller");
  let state = null;
  let busy = false;
  let appeared = 0;
  let reading = 0;

  // The token in the address is used up.
  history.replaceState(null, "", labeller ? "?labeller=" + encodeURIComponent(labeller) : "/");

  function element(tag, name, text) {
    const node = document.createElement(tag);
    if (name) node.className = name;
    if (text !== undefined) node.textContent = text;
    return node;
  }

  function countOf(count, noun) {
    return numbers.format(count) + " " + noun + (count === 1 ? "" : "s");
  }

  async function request(path, body) {
    let response;
    try {
      response = await fetch(path, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(body),
      });
    } catch {
      throw new Error("neardup does not respond: it has ended, or this machine was asleep. No label is lost; start it again and open its new link.");
    }
    const isJson = (response.headers.get("Content-Type") || "").startsWith("application/json");
    if (!isJson) throw new Error(await response.text());
    const content = await response.json();
    if (!response.ok) throw new Error(content.error);
    return content;
  }

  async function update(path, body) {
    if (busy) return;
    busy = true;
    clearTimeout(reading);
    delete byId("keys").dataset.ready;
    updateButtons();
    const slow = setTimeout(() => { byId("waiting").hidden = false; byId("texts").hidden = true; }, WAITING_NOTE_MS);
    try {
      show(await request(path, body));
      showAlarm("");
    } catch (error) {
      byId("texts").hidden = !(state && state.pair);
      showAlarm(error.message);
    } finally {
      clearTimeout(slow);
      byId("waiting").hidden = true;
      busy = false;
      updateButtons();
      reading = setTimeout(() => { byId("keys").dataset.ready = "yes"; }, MIN_READING_MS);
    }
  }

  function showAlarm(text) {
    byId("alarm").textContent = text;
    byId("alarm").hidden = !text;
  }

  function updateButtons() {
    const canAnswer = state && state.pair && !busy;
    for (const button of byId("keys").querySelectorAll("button")) {
      button.disabled = button.dataset.answer === "undo" ? busy || !state || !state.labeller : !canAnswer;
    }
  }

  // Display

  function show(content) {
    state = content;
    byId("question").textContent = content.heading;
    byId("asking").hidden = content.labeller !== null;
    document.querySelector("footer").hidden = content.labeller === null;
    byId("rename").hidden = content.labeller === null;
    if (content.labeller === null) {
      byId("texts").hidden = byId("done").hidden = true;
      byId("name").value = rememberedName() || content.suggested;
      byId("name").select();
      return;
    }
    labeller = content.labeller;
    // A cookie, because the next run has another port.
    document.cookie = COOKIE + "=" + encodeURIComponent(labeller) + "; SameSite=Strict; Path=/; Max-Age=31536000";
    history.replaceState(null, "", "?labeller=" + encodeURIComponent(labeller));
    document.title = "neardup: " + content.heading;
    byId("labeller").textContent = labeller;
    showProgress(content.progress);
    showFacts(content.facts);
    showLastAnswer(content.before);
    byId("texts").hidden = !content.pair;
    byId("done").hidden = !!content.pair;
    if (content.pair) {
      byId("texts").innerHTML = markup.createHTML(content.pair.html);
      const isLong = byId("texts").scrollHeight > LONG_SCREENS * innerHeight;
      byId("unfold").hidden = !isLong;
      setFolded(isLong);
    } else {
      byId("unfold").hidden = true;
      showDone(content.progress);
    }
    scrollTo(0, 0);
    byId("main").focus({ preventScroll: true });
    appeared = performance.now();
  }

  function showProgress(progress) {
    const { same, different, unsure } = progress.mine;
    const all = same + different + unsure;
    const parts = [same + " same", different + " different"];
    if (unsure) parts.push(unsure + " unsure");
    if (progress.skipped) parts.push(progress.skipped + " skipped");
    let text = all ? countOf(all, "pair") + " judged: " + parts.join(" · ") : "no pair judged yet";
    if (progress.goal !== null) text += " · " + progress.given + " of " + progress.goal;
    if (progress.left !== null) text += " · " + numbers.format(progress.left) + " to go";
    byId("counts").textContent = text;
    const whole = progress.left !== null ? all + progress.left : all;
    for (const [name, count] of Object.entries(progress.mine)) {
      byId("meter").querySelector("." + name).style.width = (whole ? (100 * count) / whole : 0) + "%";
    }
  }

  function showFacts(facts) {
    byId("facts").replaceChildren(...facts.map((fact) => {
      const box = element("div");
      box.title = fact.meaning;
      box.append(element("dt", "", fact.name), element("dd", "", fact.value));
      return box;
    }));
    // Touch screens have no tooltips, so the help lists the meanings, too.
    byId("meanings").replaceChildren(...facts.flatMap((fact) => [
      element("dt", "", fact.name), element("dd", "", fact.meaning),
    ]));
    byId("meanings").hidden = !facts.length;
  }

  function showLastAnswer(before) {
    const line = byId("before");
    line.replaceChildren();
    line.classList.remove("new");
    if (!before) return;
    void line.offsetWidth;
    line.classList.add("new");
    if (before.nothing) return line.append("There is no answer left to undo.");
    if (before.behind) return line.append("Not stored: that pair was judged in another window. This is the current one.");
    if (before.undone) return line.append("Undone: ", element("b", "", before.undone), ". Judge it again.");
    if (before.answer === "skip") return line.append("Skipped.");
    line.append("Last answer: ", element("b", "", before.answer));
    for (const note of before.says) {
      line.append(" · ");
      const agrees = note.same === (before.answer === "same");
      const kind = note.same === null || before.answer === "unsure" ? "" : agrees ? "agrees" : "objects";
      line.append(element("span", kind, note.words));
    }
    if (before.reason) line.append(" (" + before.reason + ")");
  }

  function showDone(progress) {
    const [title, what] = byId("done").querySelectorAll("h1, .what");
    const enough = progress.goal !== null && progress.given >= progress.goal;
    title.textContent = enough ? "That was the last of " + progress.goal : "No pair is left";
    what.textContent = "Every label is in the store. Finish ends the program in the terminal; then you can close this window.";
  }

  // The end of a long pair is folded, as long equal passages are.
  function setFolded(folded) {
    byId("texts").classList.toggle("folded", folded);
    byId("unfold").querySelector("span").textContent = folded ? "show all of both texts" : "show the beginnings only";
  }

  function foldOrUnfold() {
    const folds = [...byId("texts").querySelectorAll("details")];
    const isLong = !byId("unfold").hidden;
    const opened = folds.every((fold) => fold.open) && !byId("texts").classList.contains("folded");
    for (const fold of folds) fold.open = !opened;
    if (isLong) setFolded(opened);
  }

  // Actions

  function answer(choice) {
    if (choice === "undo") return update("/api/undo", { labeller });
    if (!state || !state.pair || !byId("keys").dataset.ready) return undefined;
    const seconds = (performance.now() - appeared) / 1000;
    return update("/api/answer", { labeller, pair: state.pair.ids, answer: choice, seconds });
  }

  async function finish() {
    if (busy || !state || state.pair) return;
    busy = true;
    try {
      const { ended } = await request("/api/finish", { labeller });
      byId("done").replaceChildren(
        element("h1", "", "Thank you"),
        element("p", "", ended ? "neardup has ended; you can close this window." : "Others are still labelling; you can close this window."),
      );
      state = null;
    } catch (error) {
      showAlarm(error.message);
    } finally {
      busy = false;
      updateButtons();
    }
  }

  function keyOf(event) {
    // Keyboards of other scripts lack these letters, so the position of the key counts.
    const key = event.key.length === 1 && event.key > "\u007f" && event.code.startsWith("Key") ? event.code.slice(3) : event.key;
    return key.length === 1 ? key.toLowerCase() : key;
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.repeat) return;
    if (byId("help").open || event.target.closest("input, textarea, select")) return;
    const key = keyOf(event);
    if (key === "?") byId("help").showModal();
    else if (!state || state.labeller === null) return;
    else if (key in KEYS) answer(KEYS[key]);
    else if (key === "Enter" && !state.pair && event.target.tagName !== "BUTTON") finish();
    else if (key === "e" && state.pair) foldOrUnfold();
    else return;
    event.preventDefault();
  });

  for (const button of byId("keys").querySelectorAll("button")) {
    button.addEventListener("click", () => {
      // The space key, which scrolls, would press a focused button again.
      button.blur();
      answer(button.dataset.answer);
    });
  }
  byId("back").addEventListener("click", () => answer("undo"));
  byId("finish").addEventListener("click", finish);
  byId("help-button").addEventListener("click", () => byId("help").showModal());
  byId("unfold").addEventListener("click", () => setFolded(!byId("texts").classList.contains("folded")));
  byId("rename").addEventListener("click", () => {
    labeller = null;
    update("/api/state", { labeller });
  });
  byId("asking").addEventListener("submit", (event) => {
    event.preventDefault();
    labeller = byId("name").value;
    update("/api/state", { labeller });
  });

  // The name is asked once in a browser; one in the address or of the command comes first.
  async function begin() {
    await update("/api/state", { labeller });
    if (state && state.labeller === null && rememberedName()) await update("/api/state", { labeller: rememberedName() });
  }
  begin();
})();
