import { ask, count, fail, fixed, later, make, money, number } from "/static/common.js";
import { List, cell, has, headOf, sorted } from "/static/lists.js";

const [find, state, grouped, found, chosenText] = ["find", "state", "grouped", "found", "chosen"].map((id) => document.getElementById(id));
const compare = document.getElementById("compare");
const difference = document.getElementById("difference");
const chosen = new Set();
let runs = [];
let rows = [];
let order = ["started_at", false];

const columns = [
  ["", "", "pick"], ["name", "Run"], ["state", "State"], ["benchmark", "Benchmark"], ["system", "System"], ["judge", "Judge"],
  ["value", "Headline", "n"], ["coverage", "Judged", "n"], ["usd", "Cost", "n"], ["started_at", "Started"],
];
const head = headOf(columns, (key, up) => { order = [key, up]; narrow(); });
const scaleOf = (run) => ([run.value, run.high].some((value) => value > 1) ? 100 : 1);
const interval = (run) => (run.low === null || run.high === null ? "" : ` [${number(run.low, scaleOf(run))} – ${number(run.high, scaleOf(run))}]`);

const draw = (element, row) => {
  if (row.title !== undefined) {
    element.classList.add("group");
    element.append(cell("", "pick"), cell(make("b", "", row.title), "wide-cell"));
    element.lastChild.append(" ", make("span", "note", `${row.n} jobs`));
    return;
  }
  const isChosen = chosen.has(row.id);
  element.setAttribute("aria-selected", isChosen);
  const word = make("span", `status ${{ complete: "scored", running: "running" }[row.state] || (row.state === "numbers missing" ? "withheld" : "error")}`, row.state);
  if (row.problem) word.title = row.problem;
  const value = cell("", "n");
  value.append(make("b", "", number(row.value, scaleOf(row))), make("span", "note", interval(row)));
  if (row.headline) value.title = row.headline;
  const cost = cell(money(row.usd) + (row.unknown_calls ? ` + ${count(row.unknown_calls)} ?` : ""), "n");
  if (row.unknown_calls) cost.title = `${count(row.unknown_calls)} calls of unknown cost are not in it`;
  element.append(
    cell(isChosen ? "☑" : "☐", "pick"),
    cell(row.sweep && grouped.checked ? row.name.split("/").pop() : row.name, "name"),
    cell(word),
    cell(row.benchmark),
    cell(row.effort ? `${row.system} · ${row.effort}` : row.system),
    cell(row.judge),
    value,
    cell(row.coverage === null ? "–" : `${fixed(100 * row.coverage, 1)} %`, "n"),
    cost,
    cell(row.started_at.slice(0, 16).replace("T", " ")),
  );
};

const choose = (index) => {
  const row = rows[index];
  const ids = row.title === undefined ? [row.id] : runs.filter((run) => run.sweep === row.title && run.has_report).map((run) => run.id);
  const all = ids.every((id) => chosen.has(id));
  for (const id of ids) if (all) chosen.delete(id); else chosen.add(id);
  told();
  list.refresh();
};
const told = () => {
  chosenText.textContent = chosen.size ? `${chosen.size} chosen` : "";
  compare.disabled = chosen.size < 2;
  difference.disabled = chosen.size !== 2;
};
const open = (index) => {
  const row = rows[index];
  if (row.title !== undefined) choose(index);
  else location.assign(row.has_report ? `/run/${row.id}` : `/run/${row.id}/live`);
};
const list = new List(document.getElementById("runs"), {
  role: "grid", label: "Runs", height: 34, draw, get: (index) => rows[index], open, mark: choose, head, multi: true,
});

const narrow = () => {
  const [key, up] = order;
  const shown = sorted(
    runs.filter((run) => (!state.value || run.state === state.value) && has(`${run.name} ${run.benchmark} ${run.system} ${run.effort} ${run.judge} ${run.state}`.toLowerCase(), find.value)),
    (run) => run[key], up,
  );
  rows = [];
  const done = new Set();
  for (const run of shown) {
    if (!grouped.checked || !run.sweep) rows.push(run);
    else if (!done.has(run.sweep)) {
      done.add(run.sweep);
      const jobs = shown.filter((other) => other.sweep === run.sweep);
      rows.push({ title: run.sweep, n: jobs.length }, ...jobs);
    }
  }
  found.textContent = shown.length === runs.length ? `${count(runs.length)} runs` : `${count(shown.length)} of ${count(runs.length)} runs`;
  list.show(rows.length);
};

const load = async () => {
  runs = await ask("/api/runs");
  for (const word of new Set(runs.map((run) => run.state))) {
    if (![...state.options].some((option) => option.value === word)) state.append(make("option", "", word));
  }
  narrow();
  if (runs.some((run) => run.state === "running")) setTimeout(() => load().catch(fail), 5000);
};

find.addEventListener("input", later(narrow));
state.addEventListener("input", narrow);
grouped.addEventListener("input", narrow);
compare.addEventListener("click", () => location.assign(`/compare?${[...chosen].map((id) => `run=${id}`).join("&")}`));
difference.addEventListener("click", () => {
  const [first, second] = [...chosen];
  location.assign(`/difference?first=${first}&second=${second}`);
});
load().catch(fail);
