// The page reads without this script. It adds: theme, sorting and finding, arrow keys, and what print needs open.
"use strict";
(() => {
  const facts = JSON.parse(document.getElementById("facts").textContent);
  const root = document.documentElement;
  const make = (tag, text) => Object.assign(document.createElement(tag), { textContent: text });

  const theme = document.getElementById("theme");
  const isDark = () => root.dataset.theme === "dark" || (!root.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
  const name = () => { theme.textContent = isDark() ? "Light" : "Dark"; };
  theme.hidden = false;
  theme.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; name(); });
  name();

  // Tasks: each row keeps its place in the island of facts, whose numbers are not rounded.
  const table = document.getElementById("table");
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row, place) => ({ row, place, task: facts.tasks[place], text: row.textContent.toLowerCase() }));
  const value = ({ task, place }, key) => {
    if (key === "place") return place;
    if (key === "graded") return task.n_expected ? task.n_graded / task.n_expected : null;
    if (key === "labels") return Object.values(task.labels).concat(task.flags).join(" ");
    return /^\d+$/.test(key) ? task.numbers[Number(key)] : task[key];
  };
  const order = (a, b) => (typeof a === "string" ? a.localeCompare(b) : a - b);
  table.querySelectorAll("thead th").forEach((head) => {
    const button = make("button", head.textContent);
    button.type = "button";
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      table.querySelectorAll("thead th").forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const keyed = rows.map((entry) => ({ entry, key: value(entry, head.dataset.key) }));
      keyed.sort((a, b) => {
        if (a.key === null || b.key === null) return (a.key === null) - (b.key === null) || a.entry.place - b.entry.place;
        return (up ? order(a.key, b.key) : order(b.key, a.key)) || a.entry.place - b.entry.place;
      });
      body.append(...keyed.map(({ entry }) => entry.row));
    });
  });
  const form = document.getElementById("filter");
  const find = document.getElementById("find");
  const status = document.getElementById("status");
  const found = document.getElementById("found");
  const narrow = () => {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    let n = 0;
    for (const { row, task, text } of rows) {
      row.hidden = !(words.every((word) => text.includes(word)) && (!status.value || task.status === status.value));
      n += !row.hidden;
    }
    found.textContent = n === rows.length ? `${n} tasks` : `${n} of ${rows.length} tasks`;
  };
  form.hidden = false;
  form.addEventListener("input", narrow);
  form.addEventListener("submit", (event) => event.preventDefault());
  narrow();

  // A link to a task opens it.
  const open = () => {
    const target = /^#t\d+$/.test(location.hash) && document.getElementById(location.hash.slice(1));
    const details = target && target.querySelector("details");
    if (details) {
      details.open = true;
      target.scrollIntoView();
      details.querySelector("summary").focus({ preventScroll: true });
    }
  };
  addEventListener("hashchange", open);
  open();

  // Graphs: one node takes the focus; arrows follow edges and layers; the panel has the node's checkpoints.
  document.querySelectorAll(".graph").forEach((graph) => {
    const nodes = new Map([...graph.querySelectorAll("g.node")].map((node) => [node.dataset.n, node]));
    const panel = graph.querySelector(".panel");
    const show = (node) => {
      nodes.forEach((other) => { other.classList.toggle("on", other === node); other.tabIndex = other === node ? 0 : -1; });
      const source = graph.querySelector(`tr[data-n="${node.dataset.n}"] details`);
      const copy = source.cloneNode(true);
      const title = make("p", "");
      title.append(...copy.querySelector("summary").childNodes);
      copy.querySelector("summary").remove();
      panel.replaceChildren(title, ...copy.childNodes);
    };
    nodes.forEach((node) => {
      node.addEventListener("focus", () => show(node));
      node.addEventListener("click", () => node.focus());
      node.addEventListener("keydown", (event) => {
        const way = { ArrowLeft: "left", ArrowRight: "right", ArrowUp: "up", ArrowDown: "down" }[event.key];
        if (!way) return;
        event.preventDefault();
        const next = nodes.get(node.dataset[way]);
        if (next) next.focus();
      });
    });
  });

  // Trees: rows are summaries; only those that can be seen take part.
  document.querySelectorAll(".tree").forEach((tree) => {
    tree.addEventListener("keydown", (event) => {
      const row = event.target.closest("summary");
      if (!row) return;
      const seen = [...tree.querySelectorAll("summary")].filter((other) => other.checkVisibility ? other.checkVisibility() : other.offsetParent);
      const place = seen.indexOf(row);
      const details = row.parentElement;
      const above = details.parentElement.closest("details");
      if (event.key === "ArrowDown") (seen[place + 1] || row).focus();
      else if (event.key === "ArrowUp") (seen[place - 1] || row).focus();
      else if (event.key === "ArrowRight") { if (details.open) (seen[place + 1] || row).focus(); else details.open = true; }
      else if (event.key === "ArrowLeft") { if (details.open) details.open = false; else if (above && tree.contains(above)) above.querySelector("summary").focus(); }
      else if (event.key === "Home") seen[0].focus();
      else if (event.key === "End") seen[seen.length - 1].focus();
      else return;
      event.preventDefault();
    });
  });

  // Print: what matters is open, and closes again.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details.print:not([open]), article.task > details[open] details:not([open])")];
    opened.forEach((details) => { details.open = true; });
  });
  addEventListener("afterprint", () => { opened.forEach((details) => { details.open = false; }); opened = []; });
})();
