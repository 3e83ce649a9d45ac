"use strict";
// The page of a service asks the service that it came from; what comes back as HTML has all texts escaped already.
(() => {
  const find = (id) => document.getElementById(id);
  const [index, trouble, asked, words] = ["index", "trouble", "asked", "words"].map(find);
  const tokenForm = find("token-form");
  const REFRESH_MS = 15000;
  let token = sessionStorage.getItem("neardup-token") ?? "";

  function say(message) {
    trouble.textContent = message;
    trouble.hidden = !message;
  }

  async function send(path, body) {
    const headers = { "Content-Type": "application/json", ...(token ? { Authorization: "Bearer " + token } : {}) };
    let reply;
    try {
      reply = await fetch(path, { method: "POST", headers, body: JSON.stringify(body), cache: "no-store" });
    } catch {
      throw new Error("The service does not answer; is it still running?");
    }
    const content = await reply.json();
    if (!reply.ok) throw new Error(content.detail);
    return content;
  }

  // Acts, and says what went wrong; a button waits meanwhile.
  async function attempt(act, button) {
    if (button) button.disabled = true;
    try {
      await act();
      say("");
    } catch (error) {
      say(error.message);
    } finally {
      if (button) button.disabled = false;
    }
  }

  const ask = (part, question = "") => send("/page/" + part, { index: index.value, asked: question });

  async function show(part, element, question) {
    const content = await ask(part, question);
    element.innerHTML = content.html;
    return content;
  }

  let minutes = [];
  const fill = (view) => view.data("minutes", minutes.map((minute) => ({ ...minute }))).resize().runAsync();

  async function flow() {
    const content = await show("flow", find("tiles"));
    find("recipe").textContent = content.recipe;
    if ([...index.options].map((one) => one.value).join() !== content.indexes.join()) {
      const chosen = index.value;
      index.replaceChildren(...content.indexes.map((name) => new Option(name, name, false, name === chosen)));
    }
    minutes = content.minutes;
    // Axes without anything on them say nothing.
    find("nothing").hidden = minutes.length > 0;
    find("drawn").hidden = !minutes.length;
    Object.values(neardup.views).forEach(fill);
  }

  let pages = 1;
  const stops = () => show("stopped", find("stops"), String(pages));
  const refresh = () => attempt(async () => { await flow(); await stops(); });

  find("ask-form").addEventListener("submit", (event) => {
    event.preventDefault();
    attempt(() => show("similar", find("similar"), asked.value), event.submitter);
  });
  find("search-form").addEventListener("submit", (event) => {
    event.preventDefault();
    attempt(() => show("found", find("found"), words.value), event.submitter);
  });
  tokenForm?.addEventListener("submit", (event) => {
    event.preventDefault();
    token = find("token").value.trim();
    sessionStorage.setItem("neardup-token", token);
    refresh();
  });
  index.addEventListener("change", () => {
    find("similar").replaceChildren();
    find("found").replaceChildren();
    pages = 1;
    refresh();
  });
  find("again").addEventListener("click", (event) => attempt(async () => { await flow(); await stops(); }, event.target));

  document.addEventListener("click", (event) => {
    if (event.target.id === "more") {
      pages += 1;
      attempt(async () => {
        const before = find("stops").querySelectorAll("[data-release]").length;
        await stops();
        find("stops").querySelectorAll("[data-release]")[before]?.focus();
      }, event.target);
    }
    const name = event.target.dataset?.release;
    if (name === undefined) return;
    if (!confirm("Release " + name + "?\n\nIt is an original from then on, and its copies are stopped. This cannot be taken back.")) return;
    const path = "/v1/indexes/" + index.value + "/documents/" + encodeURIComponent(name).replaceAll(".", "%2E") + "/release";
    attempt(async () => {
      await send(path, { by: "page" });
      const item = event.target.closest("li");
      const next = item.nextElementSibling ?? item.previousElementSibling;
      item.remove();
      (next?.querySelector("button") ?? find("again")).focus();
      await flow();
    }, event.target);
  });

  for (const kind of ["dragenter", "dragover", "dragleave", "drop"]) {
    asked.addEventListener(kind, (event) => {
      event.preventDefault();
      asked.classList.toggle("over", kind === "dragenter" || kind === "dragover");
    });
  }
  asked.addEventListener("drop", async (event) => {
    const file = event.dataTransfer.files[0];
    asked.value = file ? await file.text() : event.dataTransfer.getData("text");
    find("ask-form").requestSubmit();
  });

  neardup.drawn(fill);
  if (!tokenForm || token) refresh();
  setInterval(() => { if (!document.hidden && (!tokenForm || token)) attempt(flow); }, REFRESH_MS);
})();
