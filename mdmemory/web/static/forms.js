// Forms: preview, saving by Ctrl-Enter, and a question before something typed is lost.
import { fetchPage, replacePart } from "./fetching.js";

const PAUSE_MS = 250;

export function startForms() {
  for (const form of document.querySelectorAll("form[data-edit]")) {
    const before = new URLSearchParams(new FormData(form)).toString();
    const isChanged = () => new URLSearchParams(new FormData(form)).toString() !== before;
    let isSent = false;
    form.addEventListener("submit", () => { isSent = true; });
    addEventListener("beforeunload", (event) => { if (!isSent && isChanged()) event.preventDefault(); });
    form.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit(form.querySelector("[data-key=save]"));
    });
    startPreview(form);
  }
}

function startPreview(form) {
  const button = form.querySelector("[data-preview]");
  if (!button) return;
  const pane = () => document.getElementById("preview");
  let timer;

  async function show() {
    const values = new URLSearchParams(new FormData(form));
    values.set("do", "preview");
    const page = await fetchPage(form.action, { method: "POST", body: values }).catch(() => null);
    if (page && page.getElementById("preview")) replacePart(page, "#preview");
  }

  const press = () => button.setAttribute("aria-pressed", String(!pane().hidden));
  press();
  button.addEventListener("click", async (event) => {
    event.preventDefault();
    if (pane().hidden) await show();
    else pane().hidden = true;
    press();
  });
  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => { if (!pane().hidden) show(); }, PAUSE_MS);
  });
}
