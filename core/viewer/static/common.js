// What every page has: the theme, a way to ask the server, and elements whose texts are texts.
// Nothing that a system, a page or a judge wrote becomes markup: it reaches the page through textContent alone.

export const make = (tag, name = "", ...inside) => {
  const element = document.createElement(tag);
  if (name) element.className = name;
  for (const child of inside) element.append(child instanceof Node ? child : String(child));
  return element;
};

export const number = (value, scale = 100) => (value === null || value === undefined ? "–" : fixed(value, scale <= 1 ? 3 : 2));
export const fixed = (value, places) => {
  if (value === null || value === undefined) return "–";
  const shown = Math.abs(value) < 1e15 ? value.toLocaleString("en-US", { minimumFractionDigits: places, maximumFractionDigits: places, roundingMode: "halfEven" }) : value.toPrecision(3);
  return shown.replace("-", "−");
};
export const count = (value) => value.toLocaleString("en-US");
export const money = (usd) => (usd === null || usd === undefined ? "unknown" : `${fixed(usd, usd >= 1 || usd === 0 ? 2 : 4)} $`);

const problem = document.getElementById("problem");
export const fail = (error) => {
  problem.textContent = String(error.message || error);
  problem.hidden = false;
};

const answered = async (response) => {
  if (!response.ok) throw new Error((await response.text()).slice(0, 500) || `the viewer answered ${response.status}`);
  return response.json();
};
export const ask = async (address) => answered(await fetch(address, { credentials: "same-origin" }));
export const tell = async (address, content) =>
  answered(await fetch(address, {
    method: "POST",
    credentials: "same-origin",
    headers: { "Content-Type": "application/json", "X-Leadline": "1" },
    body: JSON.stringify(content),
  }));

/** A function that runs once things have been quiet for a moment: typing asks once. */
export const later = (run, wait = 150) => {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(run, wait);
  };
};

const root = document.documentElement;
const theme = document.getElementById("theme");
const kept = (() => { try { return localStorage.getItem("theme"); } catch { return null; } })();
if (kept === "dark" || kept === "light") root.dataset.theme = kept;
const isDark = () => root.dataset.theme === "dark" || (!root.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
const name = () => { theme.textContent = isDark() ? "Light" : "Dark"; };
theme.hidden = false;
theme.addEventListener("click", () => {
  root.dataset.theme = isDark() ? "light" : "dark";
  try { localStorage.setItem("theme", root.dataset.theme); } catch { /* a browser that keeps nothing */ }
  name();
});
name();

for (const form of document.querySelectorAll("form")) form.addEventListener("submit", (event) => event.preventDefault());

// A table that is wider than the page can be scrolled by keyboard as well.
const reach = () => {
  for (const box of document.querySelectorAll(".wide")) {
    const isCut = box.scrollWidth > box.clientWidth;
    const caption = box.querySelector("caption");
    box.toggleAttribute("tabindex", isCut);
    if (isCut) box.tabIndex = 0;
    if (isCut && caption) {
      box.setAttribute("role", "region");
      box.setAttribute("aria-label", caption.textContent.slice(0, 120));
    }
  }
};
new ResizeObserver(reach).observe(document.body);
reach();
