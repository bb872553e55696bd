import { ask, count, fail, fixed, make, money } from "/static/common.js";

const EVERY_MS = 1000;
const run = document.getElementById("live").dataset.run;
const state = document.getElementById("state");
const facts = document.getElementById("facts");
const seen = [];

const bar = document.getElementById("m-tasks");
const meter = (n, of) => {
  bar.max = Math.max(1, of, n);
  bar.value = n;
  document.getElementById("o-tasks").textContent = of ? `${count(n)} of ${count(of)}` : count(n);
};
const list = (counts) => Object.entries(counts).map(([name, n]) => `${name} ${count(n)}`).join(", ");
const fact = (name, value) => facts.append(make("div", "", make("dt", "", name), make("dd", "", value)));

const show = (told) => {
  const now = performance.now() / 1000;
  seen.push([now, told.submissions.n]);
  while (seen.length > 60) seen.shift();
  const [then, before] = seen[0];
  const rate = now - then > 5 && told.submissions.n > before ? (told.submissions.n - before) / (now - then) : null;
  const left = told.plan.submissions - told.submissions.n;
  meter(told.submissions.n, told.plan.submissions);
  facts.replaceChildren();
  fact("Started", told.started_at.slice(0, 19).replace("T", " ") || "–");
  if (told.finished_at) fact("Ended", told.finished_at.slice(0, 19).replace("T", " "));
  if (told.state === "running") fact("Answers a minute", rate === null ? "–" : fixed(60 * rate, 1));
  if (told.state === "running") fact("Left, about", rate === null || left <= 0 ? "–" : `${count(Math.ceil(left / rate / 60))} min`);
  fact("Rows of judgements", count(told.judgements.n));
  fact("Judgements planned", count(told.plan.judgements));
  fact("Rows decided by rule", count(told.judgements.by_rule));
  fact("Rows without a verdict", count(told.judgements.missing));
  fact("Answers by status", list(told.submissions.statuses) || "none yet");
  fact("Errors by kind", list(told.judgements.errors) || "none");
  fact("Solving", money(told.submissions.usd) + (told.submissions.unknown ? ` + ${count(told.submissions.unknown)} unknown` : ""));
  fact("Judging", money(told.judgements.usd) + (told.judgements.unknown ? ` + ${count(told.judgements.unknown)} unknown` : ""));
  const words = {
    running: "The run is going on.",
    stopped: "No process works on this folder, and no end is written: the run was killed. The same command goes on with it.",
    ended: `The run has ended, with exit code ${told.exit_code}.`,
  };
  if (state.dataset.state !== told.state) {
    state.dataset.state = told.state;
    state.replaceChildren(words[told.state]);
    if (told.state === "ended") {
      const link = make("a", "", "Its report");
      link.href = `/run/${run}`;
      state.append(" ", link);
    }
  }
};

const look = async () => {
  const told = await ask(`/api/run/${run}/live`);
  show(told);
  if (told.state === "running" || told.behind) setTimeout(() => look().catch(fail), told.behind ? 50 : EVERY_MS);
};
look().catch(fail);
