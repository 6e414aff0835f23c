// Search as you type: the same page is asked for, and its results are shown.
import { fetchPage, replacePart } from "./fetching.js";

const PAUSE_MS = 90;

export function startSearch() {
  const form = document.querySelector("form[data-search]");
  if (!form) return;
  let timer, asked = 0;

  async function search() {
    const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
    const url = `${form.getAttribute("action")}${query.size ? `?${query}` : ""}`;
    const number = ++asked;
    const page = await fetchPage(url).catch(() => null);
    if (!page || number !== asked) return;  // a later one is on its way
    history.replaceState(null, "", url);
    replacePart(page, form.dataset.search);
  }

  form.addEventListener("input", (event) => {
    clearTimeout(timer);
    timer = setTimeout(search, event.target.matches("select") ? 0 : PAUSE_MS);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(timer);
    search().then(() => document.querySelector("[data-row]")?.focus());
  });
}
