import { ask, count, fail, later, make } from "/static/common.js";
import { List, cell } from "/static/lists.js";

const PART = 200;
const marks = { yes: "●", no: "○", missing: "?", other: "·" };
const verdict = (tone, word) => make("span", `m ${tone}`, word);

const field = (name, value) => {
  const row = make("div", "", make("dt", "", name), make("dd", "", value));
  return row;
};
const block = (title, text, isOpen = false) => {
  const body = make("div", "text", text);
  body.tabIndex = 0;
  body.setAttribute("role", "region");
  body.setAttribute("aria-label", title);
  const box = make("details", "", make("summary", "", title), body);
  box.open = isOpen;
  return box;
};

/** Passages of a page with what was quoted marked in them. */
const page = (told, whole) => {
  const box = make("div", "evidence");
  if (told.status === "not_at_hand") {
    box.append(make("p", "note", "The run’s pages are not at hand: name their store with --store, or the folder that it lies in."));
    return box;
  }
  const facts = [told.status === "ok" ? "" : `${told.status}${told.message ? `: ${told.message}` : ""}`, told.title, told.final_url, told.fetched_at && `as of ${told.fetched_at}`];
  box.append(make("p", "note", facts.filter(Boolean).join(" · ")));
  for (const [place, excerpt] of told.excerpts.entries()) {
    const at = excerpt.at.map(([start, end]) => `${count(start)}–${count(end)}`).join(", ");
    const word = excerpt.rung === "none" ? "not on the page" : excerpt.rung === "near" ? `near, ${Math.round(excerpt.ratio)} % alike` : excerpt.rung;
    const tone = excerpt.rung === "none" ? "no" : excerpt.rung === "near" ? "missing" : "yes";
    const line = make("blockquote", "", excerpt.text, " ", verdict(tone, word), " ", make("span", "note", [at && `characters ${at}`, excerpt.why_not].filter(Boolean).join("; ")));
    if (told.excerpts.length > 1) line.prepend(make("b", "", `${place + 1}. `));
    box.append(line);
  }
  if (!told.pieces.length) return box;
  const text = make("div", "text page");
  text.tabIndex = 0;
  text.setAttribute("role", "region");
  text.setAttribute("aria-label", "The page’s text");
  for (const piece of told.pieces) {
    if (piece.gap) text.append(make("span", "gap", `\n… ${count(piece.gap)} characters …\n`));
    else if (piece.mark !== undefined) text.append(make("mark", "", piece.text));
    else text.append(piece.text);
  }
  box.append(text);
  if (whole && told.pieces.some((piece) => piece.gap)) {
    const more = make("button", "", `The whole page, ${count(told.length)} characters`);
    more.type = "button";
    more.addEventListener("click", () => whole(box).catch(fail));
    box.append(more);
  }
  requestAnimationFrame(() => {
    const first = text.querySelector("mark");
    if (first) text.scrollTop = Math.max(0, first.offsetTop - text.offsetTop - 60);
  });
  return box;
};

const judgement = (row) => {
  const tone = row.error ? "missing" : "other";
  const box = make("div", "judgement", make("h4", "", `Repeat ${row.repeat}`, row.judge ? ` · ${row.judge}` : ""));
  if (row.verdict !== null) box.append(make("p", "", make("code", `verdict ${tone}`, row.verdict)));
  if (row.error) box.append(make("p", "caution", row.error));
  if (row.explanation) box.append(make("p", "reason", row.explanation));
  if (row.raw) box.append(block("The judge’s raw reply", row.raw));
  if (row.facts.length) box.append(make("p", "note", row.facts.map(([name, value]) => `${name} ${value}`).join(" · ")));
  return box;
};

const record = (told) => {
  const box = make("div", "");
  if (told.item.length || told.answer.length) {
    const list = make("dl", "record");
    for (const [name, value] of told.item) list.append(field(name, value));
    for (const [name, value] of told.answer) list.append(field(`answer: ${name}`, value));
    if (told.url) list.append(field("url", make("span", "url", told.url)));
    box.append(list);
  }
  box.append(block("The record as it was written", told.line));
  return box;
};

for (const section of document.querySelectorAll(".attempt")) {
  const { base, attempt } = section.dataset;
  const address = (what, more = {}) => `${base}/${what}?${new URLSearchParams({ attempt, ...more })}`;

  const answer = section.querySelector("details.answer");
  answer.addEventListener("toggle", async () => {
    const body = answer.querySelector(".body");
    if (!answer.open || body.childNodes.length) return;
    body.textContent = "…";
    try {
      const told = await ask(address("answer"));
      body.replaceChildren();
      if (told.text) {
        const text = make("div", "text tall", told.text);
        text.tabIndex = 0;
        text.setAttribute("role", "region");
        text.setAttribute("aria-label", "Answer");
        body.append(text);
      }
      for (const file of told.files) body.append(block(`${file.name} (${count(file.text.length)} characters)`, file.text, !told.text && told.files.length === 1));
      if (told.citations.length) {
        const list = make("ol", "citations");
        for (const one of told.citations) list.append(make("li", "", one.title, " ", make("span", "url", one.url), one.excerpt ? make("blockquote", "", one.excerpt) : ""));
        body.append(make("details", "", make("summary", "", `${count(told.citations.length)} citations`), list));
      }
      if (told.facts.length) {
        const list = make("dl", "record");
        for (const [name, value] of told.facts) list.append(field(name, value));
        body.append(list);
      }
      if (!body.childNodes.length) body.append(make("p", "note", "The answer is empty."));
    } catch (error) {
      body.textContent = error.message;
    }
  });

  /** Show one unit at the side: the record, its page, and every judgement. */
  let asked = 0;
  const show = async (side, unit) => {
    const mine = (asked += 1);
    side.setAttribute("aria-busy", "true");
    const told = await ask(address("unit", { unit }));
    if (mine !== asked) return;
    const parts = [make("h4", "unit", told.unit)];
    if (told.record) parts.push(record(told.record));
    const evidence = make("div", "");
    if (told.record && told.record.url) parts.push(make("h4", "", "On its page"), evidence);
    if (told.judgements.length) parts.push(...told.judgements.map(judgement));
    else parts.push(make("p", "note", "The folder has no judgement of it."));
    side.replaceChildren(...parts);
    side.scrollTop = 0;
    side.removeAttribute("aria-busy");
    if (told.record && told.record.url) {
      evidence.append("…");
      const put = async (whole) => page(await ask(address("evidence", { unit, ...(whole ? { whole: "1" } : {}) })), whole ? null : async (old) => old.replaceWith(await put(true)));
      try {
        const drawn = await put(false);
        if (mine === asked) evidence.replaceChildren(drawn);
      } catch (error) {
        evidence.replaceChildren(make("p", "caution", error.message));
      }
    }
  };

  const tree = section.querySelector("[data-kind=tree]");
  if (tree) startTree(tree, address, show).catch(fail);
  startUnits(section, address, show);
}

async function startTree(box, address, show) {
  const side = box.nextElementSibling;
  const all = await ask(address("tree"));
  // a row's parent is the last row before it that stands less deep
  const path = [];
  all.forEach((row, place) => {
    path.length = row.depth;
    row.parent = row.depth ? path[row.depth - 1] : null;
    path[row.depth] = row;
    row.place = place;
    row.folds = place + 1 < all.length && all[place + 1].depth > row.depth;
    // of the levels that hold records, few enough are open to be seen at once
    row.open = row.kind !== "entity" && (row.kind !== "tree" || row.parent === null);
  });
  let rows = [];
  const narrow = () => {
    rows = [];
    let hidden = Infinity;
    for (const row of all) {
      if (row.depth > hidden) continue;
      hidden = row.open ? Infinity : row.depth;
      rows.push(row);
    }
    list.show(rows.length);
  };
  const draw = (element, row) => {
    element.setAttribute("aria-level", row.depth + 1);
    if (row.folds) element.setAttribute("aria-expanded", row.open);
    element.classList.add(row.kind);
    element.style.paddingLeft = `${8 + 16 * row.depth}px`;
    element.append(make("span", "fold", row.folds ? (row.open ? "▾" : "▸") : ""));
    for (const tag of row.tags || []) element.append(make("span", "tag", tag), " ");
    for (const [name, tone] of row.marks || []) element.append(verdict(tone, `${name} ${{ yes: "holds", no: "fails", missing: "missing" }[tone]}`), " ");
    element.append(make("span", row.kind === "leaf" ? "url what" : "what", row.text));
    if (row.scores) element.append(make("span", "scores", row.scores));
    if (row.note) element.append(make("span", "scores", row.note));
    element.title = [row.text, row.scores, row.note].filter(Boolean).join(" · ");
  };
  const fold = (index, open) => {
    const row = rows[index];
    row.open = open;
    narrow();
  };
  const list = new List(box, {
    role: "tree", label: box.dataset.label, height: 28, draw, get: (index) => rows[index],
    open: (index) => {
      const row = rows[index];
      if (row.unit) show(side, row.unit).catch(fail);
      else if (row.folds) fold(index, !row.open);
    },
    key: (key, index) => {
      const row = rows[index];
      if (key === "ArrowRight") {
        if (row.folds && !row.open) fold(index, true);
        else if (row.folds) list.go(index + 1);
      } else if (key === "ArrowLeft") {
        if (row.folds && row.open) fold(index, false);
        else if (row.parent) list.go(rows.indexOf(row.parent));
      } else if (key === "*") {
        for (const other of all) if (other.parent === row.parent) other.open = true;
        narrow();
        list.go(rows.indexOf(row));
      } else return false;
      return true;
    },
  });
  narrow();
}

function startUnits(section, address, show) {
  const box = section.querySelector("[data-kind=units]");
  const side = box.nextElementSibling;
  const form = section.querySelector(".units-filter");
  const [find, tone, found] = [".find", ".tone", ".found"].map((name) => form.querySelector(name));
  let parts = new Map();
  let wanted = 0;
  const part = async (place) => {
    const mine = wanted;
    parts.set(place, null);
    const told = await ask(address("units", { from: place * PART, count: PART, find: find.value, tone: tone.value }));
    if (mine !== wanted) return;
    parts.set(place, told.rows);
    found.textContent = told.n === told.of ? `${count(told.of)} units` : `${count(told.n)} of ${count(told.of)} units`;
    if (told.n !== list.n) list.show(told.n);
    else list.refresh();
  };
  const get = (index) => {
    const place = Math.floor(index / PART);
    if (!parts.has(place)) part(place).catch(fail);
    const rows = parts.get(place);
    return rows ? rows[index % PART] : undefined;
  };
  const draw = (element, row) => {
    const said = cell("");
    const tone = row.is_error ? { yes: "no", no: "yes" }[row.tone] || row.tone : row.tone;
    const made = row.is_error ? { yes: "error made: ", no: "not made: " }[row.tone] || "" : "";
    said.append(verdict(tone, made + (row.said || "–")));
    if (row.marks.length > 1) {
      const ticks = make("span", "ticks", row.marks.slice(0, 20).map((mark) => marks[mark]).join(""));
      ticks.setAttribute("aria-hidden", "true");
      said.append(" ", ticks);
    }
    if (row.split) said.append(" ", make("span", "tag", "split"));
    element.append(cell(row.shown, "name"), said, cell(row.why, "why-cell"));
    element.title = row.why;
  };
  const list = new List(box, {
    role: "grid", label: box.dataset.label, height: 30, draw, get,
    open: (index) => {
      const row = get(index);
      if (row) show(side, row.unit).catch(fail);
    },
  });
  const restart = () => {
    wanted += 1;
    parts = new Map();
    list.active = 0;
    box.scrollTop = 0;
    part(0).catch(fail);
  };
  find.addEventListener("input", later(restart));
  tone.addEventListener("input", restart);
  restart();
}
