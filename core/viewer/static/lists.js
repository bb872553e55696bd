// Lists of any length: only the rows that can be seen are in the document.
//
// The box has the focus and names its active row (aria-activedescendant), so that drawing rows anew never loses the
// place. `draw(row, index)` fills a row's element; `get(index)` gives a row, or undefined while it is on its way.

import { make } from "/static/common.js";

let lists = 0;

export class List {
  constructor(box, { role, label, height, draw, get, open = () => {}, mark = () => {}, key = () => false, head = null, multi = false }) {
    Object.assign(this, { box, height, draw, get, open, mark, key });
    this.id = `list${(lists += 1)}`;
    this.rowRole = role === "tree" ? "treeitem" : "row";
    this.n = 0;
    this.active = 0;
    this.drawn = new Map();
    box.setAttribute("role", role);
    box.setAttribute("aria-label", label);
    if (multi) box.setAttribute("aria-multiselectable", "true");
    box.tabIndex = 0;
    this.head = head;
    if (head) box.append(head);
    this.body = make("div", "rows");
    this.body.setAttribute("role", role === "grid" ? "rowgroup" : "presentation");
    box.append(this.body);
    box.addEventListener("scroll", () => this.paint(), { passive: true });
    box.addEventListener("keydown", (event) => this.press(event));
    this.body.addEventListener("click", (event) => this.click(event));
    new ResizeObserver(() => this.paint()).observe(box);
  }

  /** Show so many rows, all of them new. */
  show(n) {
    this.n = n;
    this.active = Math.max(0, Math.min(this.active, n - 1));
    this.body.style.height = `${n * this.height}px`;
    if (this.body.getAttribute("role") === "rowgroup") this.box.setAttribute("aria-rowcount", n + 1);
    this.refresh();
  }

  /** Draw all rows anew that can be seen. */
  refresh() {
    for (const element of this.drawn.values()) element.remove();
    this.drawn.clear();
    this.paint();
  }

  paint() {
    const above = Math.floor(this.box.scrollTop / this.height) - 4;
    const room = Math.ceil(this.box.clientHeight / this.height) + 8;
    const first = Math.max(0, above);
    const last = Math.min(this.n, first + room);
    for (const [index, element] of this.drawn) {
      if ((index < first || index >= last) && index !== this.active) {
        element.remove();
        this.drawn.delete(index);
      }
    }
    for (let index = first; index < last; index += 1) this.put(index);
    if (this.n) this.put(this.active);
    if (this.n) this.box.setAttribute("aria-activedescendant", `${this.id}-${this.active}`);
    else this.box.removeAttribute("aria-activedescendant");
  }

  put(index) {
    if (this.drawn.has(index)) return;
    const element = make("div", "row-line");
    element.id = `${this.id}-${index}`;
    element.setAttribute("role", this.rowRole);
    if (this.rowRole === "row") element.setAttribute("aria-rowindex", index + 2);
    element.dataset.index = index;
    element.style.top = `${index * this.height}px`;
    element.style.height = `${this.height}px`;
    element.classList.toggle("active", index === this.active);
    const row = this.get(index);
    if (row === undefined) element.append(this.rowRole === "row" ? cell("…") : "…");
    else this.draw(element, row, index);
    // in the order of the list: what reads the document aloud reads rows in theirs
    let next = null;
    for (const [other, drawn] of this.drawn) if (other > index && (!next || other < Number(next.dataset.index))) next = drawn;
    this.body.insertBefore(element, next);
    this.drawn.set(index, element);
  }

  go(index) {
    if (!this.n) return;
    const before = this.drawn.get(this.active);
    if (before) before.classList.remove("active");
    this.active = Math.max(0, Math.min(this.n - 1, index));
    const top = this.active * this.height;
    const covered = this.head ? this.head.offsetHeight : 0;
    if (top < this.box.scrollTop) this.box.scrollTop = top;
    else if (top + this.height + covered > this.box.scrollTop + this.box.clientHeight) this.box.scrollTop = top + this.height + covered - this.box.clientHeight;
    this.paint();
    const now = this.drawn.get(this.active);
    if (now) now.classList.add("active");
  }

  press(event) {
    if (event.target !== this.box || event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(this.box.clientHeight / this.height) - 2);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -this.n, End: this.n };
    if (event.key in steps) this.go(this.active + steps[event.key]);
    else if (event.key === "Enter") this.open(this.active);
    else if (event.key === " ") this.mark(this.active);
    else if (!this.key(event.key, this.active)) return;
    event.preventDefault();
  }

  click(event) {
    const element = event.target.closest("[data-index]");
    if (!element || event.target.closest("a")) return;
    const index = Number(element.dataset.index);
    this.go(index);
    if (event.target.closest(".pick")) this.mark(index);
    else this.open(index, event.target);
  }
}

/** A cell of a row in a grid. */
export const cell = (inside, name = "") => {
  const element = make("span", `cell ${name}`.trim(), inside);
  element.setAttribute("role", "gridcell");
  return element;
};

/** The head of a grid; a click on a column sorts by it. `columns`: [key, text, class]. */
export const headOf = (columns, sort) => {
  const head = make("div", "row-head");
  head.setAttribute("role", "row");
  head.setAttribute("aria-rowindex", "1");
  for (const [key, text, name] of columns) {
    const column = make("span", `cell ${name || ""}`.trim());
    column.setAttribute("role", "columnheader");
    if (key) {
      const button = make("button", "", text);
      button.type = "button";
      button.addEventListener("click", () => {
        const up = column.getAttribute("aria-sort") !== "ascending";
        for (const other of head.children) other.removeAttribute("aria-sort");
        column.setAttribute("aria-sort", up ? "ascending" : "descending");
        sort(key, up);
      });
      column.append(button);
    } else column.append(text);
    head.append(column);
  }
  const group = make("div", "head-group");
  group.setAttribute("role", "rowgroup");
  group.append(head);
  return group;
};

/** Rows by a key; what has none stands last, equal ones as they were. */
export const sorted = (rows, value, up) => {
  const order = (a, b) => (typeof a === "string" ? a.localeCompare(b) : a - b);
  const keyed = rows.map((row, place) => ({ row, place, key: value(row) }));
  keyed.sort((a, b) => {
    if (a.key === null || b.key === null) return (a.key === null) - (b.key === null) || a.place - b.place;
    return (up ? order(a.key, b.key) : order(b.key, a.key)) || a.place - b.place;
  });
  return keyed.map(({ row }) => row);
};

/** Whether a text has every word. */
export const has = (text, words) => words.toLowerCase().split(/\s+/).every((word) => text.includes(word));
