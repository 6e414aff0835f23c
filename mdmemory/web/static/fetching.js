// A page of ours, fetched, and a part of it put in the place of the one that is shown.

export async function fetchPage(url, options = {}) {
  const answer = await fetch(url, { redirect: "error", ...options });
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

export function replacePart(page, selector) {
  const [now, then] = [document.querySelector(selector), page.querySelector(selector)];
  if (!now || !then) return;
  const focused = now.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  now.replaceWith(then);
  if (focused) [...then.querySelectorAll("a")].find((link) => link.getAttribute("href") === focused)?.focus();
}
