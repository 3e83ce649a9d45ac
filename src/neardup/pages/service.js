"use strict";
// The page of a service loads its parts from the service; the service escapes all texts in the HTML that it returns.
(() => {
  const find = (id) => document.getElementById(id);
  const [index, trouble, text, words] = ["index", "trouble", "asked", "words"].map(find);
  const tokenForm = find("token-form");
  const REFRESH_MS = 15000;
  const name = find("by");
  name.value = localStorage.getItem("neardup-name") ?? "";
  name.addEventListener("change", () => localStorage.setItem("neardup-name", name.value.trim()));
  let token = sessionStorage.getItem("neardup-token") ?? "";

  function showError(message) {
    trouble.textContent = message;
    trouble.hidden = !message;
  }

  // Without a token there is nothing to ask for, nor to go to.
  function showParts(shown) {
    if (!tokenForm) return;
    tokenForm.hidden = shown;
    find("open").hidden = !shown;
    for (const contents of document.querySelectorAll("nav, .contents")) contents.hidden = !shown;
  }
  showParts(!tokenForm);

  async function send(path, body) {
    const headers = { "Content-Type": "application/json", ...(token ? { Authorization: "Bearer " + token } : {}) };
    let reply;
    try {
      reply = await fetch(path, { method: "POST", headers, body: JSON.stringify(body), cache: "no-store" });
    } catch {
      throw new Error("The service does not answer; is it still running?");
    }
    const content = await reply.json();
    if (reply.status === 401 && tokenForm) {
      showParts(false);
      throw new Error("This token is not known here; check it, or ask who runs the service.");
    }
    if (!reply.ok) throw new Error(content.detail);
    return content;
  }

  // Run an action and show its error; its button is disabled meanwhile.
  async function attempt(action, button) {
    if (button) button.disabled = true;
    try {
      await action();
      showError("");
    } catch (error) {
      showError(error.message);
    } finally {
      if (button) button.disabled = false;
    }
  }

  const loadPart = (part, question = "") => send("/page/" + part, { index: index.value, asked: question });

  async function showPart(part, element, question) {
    const content = await loadPart(part, question);
    element.innerHTML = content.html;
    return content;
  }

  async function showFlow() {
    const content = await showPart("flow", find("tiles"));
    find("recipe").textContent = content.recipe;
    if ([...index.options].map((option) => option.value).join() !== content.indexes.join()) {
      const chosen = index.value;
      index.replaceChildren(...content.indexes.map((name) => new Option(name, name, false, name === chosen)));
    }
    // Only now is it known that the token is right.
    showParts(true);
  }

  let pages = 1;
  const showStopped = () => showPart("stopped", find("stops"), String(pages));
  const refresh = (button) => attempt(async () => { await showFlow(); await showStopped(); }, button);

  find("ask-form").addEventListener("submit", (event) => {
    event.preventDefault();
    attempt(() => showPart("similar", find("similar"), text.value), event.submitter);
  });
  find("search-form").addEventListener("submit", (event) => {
    event.preventDefault();
    attempt(() => showPart("found", find("found"), words.value), event.submitter);
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
  find("again").addEventListener("click", (event) => refresh(event.target));

  document.addEventListener("click", (event) => {
    if (event.target.id === "more") {
      pages += 1;
      attempt(async () => {
        const before = find("stops").querySelectorAll("[data-release]").length;
        await showStopped();
        find("stops").querySelectorAll("[data-release]")[before]?.focus();
      }, event.target);
    }
    const id = event.target.dataset?.release;
    if (id === undefined) return;
    if (!name.value.trim()) {
      name.focus();
      showError("Give your name first: a release is recorded with it.");
      return;
    }
    if (!confirm("Release " + id + "?\n\nFrom then on it is an original, and its copies are stopped. This cannot be undone.")) return;
    attempt(async () => {
      await send("/page/release", { index: index.value, id, by: name.value.trim() });
      const item = event.target.closest("li");
      const next = item.nextElementSibling ?? item.previousElementSibling;
      item.remove();
      (next?.querySelector("button") ?? find("again")).focus();
      await showFlow();
    }, event.target);
  });

  for (const kind of ["dragenter", "dragover", "dragleave", "drop"]) {
    text.addEventListener(kind, (event) => {
      event.preventDefault();
      text.classList.toggle("over", kind === "dragenter" || kind === "dragover");
    });
  }
  text.addEventListener("drop", async (event) => {
    const file = event.dataTransfer.files[0];
    text.value = file ? await file.text() : event.dataTransfer.getData("text");
    find("ask-form").requestSubmit();
  });

  if (!tokenForm || token) refresh();
  setInterval(() => { if (!document.hidden && (!tokenForm || token)) attempt(showFlow); }, REFRESH_MS);
})();
