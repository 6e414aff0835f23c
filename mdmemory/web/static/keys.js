// The keyboard: / searches, j and k go through a list, e edits, n makes a new memory, ? lists them, Esc leaves.

export function startKeys() {
  const help = document.getElementById("help");
  const button = document.querySelector("[data-help]");
  button.hidden = false;
  button.addEventListener("click", () => help.showModal());

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || help.open) return;
    const isTyping = event.target.matches("input:not([type=checkbox]), textarea, select");
    if (event.key === "Escape") leave(event.target, isTyping);
    else if (isTyping) return;
    else if (event.key === "?") help.showModal();
    else if (event.key === "j" || event.key === "k") step(event.key === "j" ? 1 : -1);
    else press(event);
  });
}

function press(event) {
  const row = document.activeElement;
  if (event.key === "e" && row.matches("[data-row][href^='/file/']")) return location.assign(row.getAttribute("href").replace("/file/", "/edit/"));
  const target = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
  if (!target) return;
  event.preventDefault();
  if (target.matches("input")) target.select();
  if (target.matches("input")) target.focus();
  else target.click();
}

function step(by) {
  const rows = [...document.querySelectorAll("[data-row]")];
  const now = rows.indexOf(document.activeElement);
  const next = rows[now < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, now + by))];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

function leave(target, isTyping) {
  if (isTyping || target.matches("[data-row]")) return target.blur();
  const back = document.querySelector("[data-back]")?.dataset.back;
  if (back) location.assign(back);
  else if (location.pathname !== "/") location.assign("/");
}
