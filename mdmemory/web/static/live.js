// What changes in the folder shows at once. While the page is hidden nothing is listened to: browsers allow few connections.
import { fetchPage, replacePart } from "./fetching.js";

export function watch() {
  const live = document.querySelector("main").dataset.live;
  if (!live) return;
  const [kind, what] = [live.slice(0, live.indexOf(":")), live.slice(live.indexOf(":") + 1)];
  let source = null, wasHidden = false;

  function open() {
    if (document.hidden || source) return;
    source = new EventSource("/changes");
    source.addEventListener("change", (event) => tell(kind, what, JSON.parse(event.data)));
    source.addEventListener("open", () => document.documentElement.classList.add("live"));
    if (wasHidden && kind === "replace") renew(what);
  }

  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      source?.close();
      source = null;
      wasHidden = true;
    } else open();
  });
  addEventListener("pagehide", () => source?.close());
  open();
}

async function renew(selector) {
  const page = await fetchPage(location.href).catch(() => null);
  if (page) replacePart(page, selector);
}

function tell(kind, what, { paths, journal }) {
  if (kind === "replace" && paths.length) renew(what);
  else if (kind === "journal" && journal) renew(what);
  else if (kind === "file" && paths.includes(what)) renew("article, #main > .head");
  else if (kind === "form" && paths.includes(what)) {
    say("This file has just changed elsewhere. When you save, edits of other lines are merged; of the same lines you will see both.");
  } else if (kind === "notice" && paths.length) say("Something has changed in the folder since.", true);
}

function say(text, canReload = false) {
  const news = document.getElementById("news");
  news.textContent = text;
  news.hidden = false;
  if (!canReload) return;
  const link = document.createElement("a");
  link.href = location.href;
  link.textContent = "Look again";
  news.append(" ", link);
}
