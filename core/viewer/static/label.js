import { ask, count, fail, tell } from "/static/common.js";

const box = document.getElementById("label");
const sheet = box.dataset.sheet;
const by = Object.fromEntries(["labeller", "done", "count", "row", "where", "asked", "note", "said", "comment", "context", "shown", "prompt", "prompt-box", "empty"].map((id) => [id, document.getElementById(id)]));
const problem = document.getElementById("problem");
let rows = [];
let at = 0;
let current = null;
let isBusy = false;

const told = () => {
  const done = rows.filter((row) => row.label).length;
  by.done.max = Math.max(1, rows.length);
  by.done.value = done;
  by.count.textContent = `${count(done)} of ${count(rows.length)} labelled`;
  by.said.textContent = rows[at].label ? `Labelled: ${rows[at].label}` : "Not labelled";
};

const show = async (place) => {
  at = Math.max(0, Math.min(rows.length - 1, place));
  current = await ask(`/api/sheet/${sheet}/${at}`);
  const { fields } = current;
  by.where.textContent = `Row ${at + 1} of ${rows.length} · task ${fields.task_id} · ${fields.unit}${fields.check ? ` · check ${fields.check}` : ""}`;
  by.asked.textContent = fields.asked;
  by.shown.textContent = fields.shown;
  by.context.hidden = !fields.shown;
  by.prompt.textContent = fields.prompt;
  by["prompt-box"].hidden = !fields.prompt;
  by.note.textContent = fields.note;
  by.note.hidden = !fields.note;
  by.comment.value = current.comment;
  if (!by.labeller.value) by.labeller.value = current.labeller;
  by.row.hidden = false;
  for (const text of [by.asked, by.shown, by.prompt]) text.scrollTop = 0;
  told();
};

/** The next row without a label, from here on and round; else the next one. */
const next = () => {
  for (let step = 1; step < rows.length; step += 1) {
    const place = (at + step) % rows.length;
    if (!rows[place].label) return show(place);
  }
  return show(Math.min(at + 1, rows.length - 1));
};

const once = async (work) => {
  if (isBusy || !current) return;
  isBusy = true;
  try {
    await work();
    problem.hidden = true;
  } catch (error) {
    fail(error);
  } finally {
    isBusy = false;
  }
};
const put = (label) => once(async () => {
  await tell(`/api/sheet/${sheet}`, { row: at, id: current.id, label, labeller: by.labeller.value, comment: by.comment.value });
  rows[at].label = label;
  await (label ? next() : show(at));
});
const move = (step) => once(() => show(at + step));

document.addEventListener("keydown", (event) => {
  if (event.target.closest("input, textarea, select") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.repeat) return; // a key that is held down labels one row, not all
  const keys = { y: () => put("yes"), n: () => put("no"), s: () => once(next), u: () => put(""), ArrowRight: () => move(1), ArrowLeft: () => move(-1) };
  if (!keys[event.key]) return;
  event.preventDefault();
  keys[event.key]();
});
for (const button of document.querySelectorAll(".choices button")) {
  button.addEventListener("click", () => ("skip" in button.dataset ? once(next) : put(button.dataset.label)));
}

const start = async () => {
  ({ rows } = await ask(`/api/sheet/${sheet}`));
  by.empty.hidden = rows.length > 0;
  if (!rows.length) return;
  const first = rows.findIndex((row) => !row.label);
  await show(first < 0 ? 0 : first);
};
start().catch(fail);
