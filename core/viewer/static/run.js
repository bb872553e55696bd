import { ask, count, fail, fixed, later, make, money, number } from "/static/common.js";
import { List, cell, has, headOf, sorted } from "/static/lists.js";

const box = document.getElementById("list");
const [find, status, found] = ["find", "status", "found"].map((id) => document.getElementById(id));
const run = box.dataset.run;
// what a reader came for stands before how the run was set up
document.getElementById("cautions").after(document.getElementById("tasks"));

const start = async () => {
  const { columns, scale, rows: tasks } = await ask(`/api/run/${run}/tasks`);
  let rows = tasks;
  let order = ["number", true];
  for (const task of tasks) task.text = [task.id, task.status, ...task.labels.flat(), ...task.flags].join(" ").toLowerCase();
  const value = (task) => {
    const [key] = order;
    if (key === "graded") return task.n_expected ? task.n_graded / task.n_expected : null;
    if (key === "labels") return task.labels.map(([, word]) => word).concat(task.flags).join(" ");
    return typeof key === "number" ? task.numbers[key] : task[key];
  };
  const draw = (element, task) => {
    const labels = cell("", "labels");
    for (const [key, word] of task.labels) labels.append(make("span", "tag", `${key} ${word}`), " ");
    for (const flag of task.flags) labels.append(make("span", "tag flag", `⚑ ${flag}`), " ");
    element.append(
      cell(task.number, "n"), cell(task.id, "name"), cell(make("span", `status ${task.status}`, task.status)),
      ...task.numbers.map((one, place) => cell(place ? number(one, scale) : make("b", "", number(one, scale)), "n")),
      cell(`${count(task.n_graded)}/${count(task.n_expected)}`, "n"),
      cell(task.cost_usd === null ? "–" : money(task.cost_usd), "n"), cell(fixed(task.latency_s, 1), "n"), labels,
    );
  };
  const narrow = () => {
    rows = sorted(tasks.filter((task) => (!status.value || task.status === status.value) && has(task.text, find.value)), value, order[1]);
    found.textContent = rows.length === tasks.length ? `${count(tasks.length)} tasks` : `${count(rows.length)} of ${count(tasks.length)} tasks`;
    list.show(rows.length);
  };
  const head = headOf(
    [["number", "#", "n"], ["id", "Task"], ["status", "Status"], ...columns.map((name, place) => [place || "0", name, "n"]),
      ["graded", "Judged", "n"], ["cost_usd", "Cost", "n"], ["latency_s", "Time, s", "n"], ["labels", "Labels and flags"]]
      .map(([key, ...rest]) => [key, ...rest]),
    (key, up) => { order = [key === "0" ? 0 : key, up]; narrow(); },
  );
  box.style.setProperty("--numbers", columns.length);
  const list = new List(box, {
    role: "grid", label: "Tasks", height: 34, draw, head, get: (index) => rows[index],
    open: (index) => location.assign(`/run/${run}/task/${rows[index].number}`),
  });
  find.addEventListener("input", later(narrow));
  status.addEventListener("input", narrow);
  narrow();
};
start().catch(fail);
