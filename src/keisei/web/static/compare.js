// Several runs side by side: their curves in the same charts, and the settings in which they differ.
import { get, header } from "./api.js";
import { Chart } from "./charts.js";
import { $, empty, fill, h, problem, state } from "./dom.js";

const METRICS = [
  ["perf/transitions_per_second", "Speed", { note: "transitions a second", zero: true }],
  ["rollout/ep_len_mean", "Game length", { note: "plies", zero: true }],
  ["train/loss", "Loss", {}],
  ["train/value_loss", "Value loss", {}],
  ["train/entropy_loss", "Entropy loss", {}],
  ["train/explained_variance", "Explained variance", {}],
];

const names = new URLSearchParams(location.search).getAll("run").slice(0, 6);

function strength(details) {
  const opponents = [...new Set(details.flatMap((run) => Object.keys(run.evaluations)))].filter((name) => name !== "best so far");
  return opponents.map((opponent) => {
    const curves = details.map((run, index) => ({ label: names[index], ...(run.evaluations[opponent] ?? { step: [], value: [] }) }));
    return chart(`Score against ${opponent}`, { note: "with 95 % intervals", shares: true, height: 200 }, curves);
  });
}

function chart(title, options, curves) {
  const made = new Chart(title, options);
  made.named = true;
  made.set(curves);
  return made.element;
}

function settings(details) {
  const tables = details.map((run) => new Map(run.settings.map(({ name, value }) => [name, value])));
  const keys = [...new Set(tables.flatMap((table) => [...table.keys()]))];
  const differing = keys.filter((key) => new Set(tables.map((table) => table.get(key))).size > 1);
  if (!differing.length) return empty("All settings are the same");
  return h("div", { class: "scroll" }, h("table", { class: "settings" },
    h("thead", {}, h("tr", {}, h("th", {}, "Setting"), names.map((name) => h("th", {}, name)))),
    h("tbody", {}, differing.map((key) => h("tr", {}, h("th", { scope: "row" }, key), tables.map((table) => h("td", { class: "mono" }, table.get(key) ?? "–"))))),
  ));
}

async function start() {
  header("runs");
  const main = $("#main");
  if (names.length < 2) return fill(main, empty("Choose two runs or more", h("a", { href: "/" }, "All runs")));
  try {
    const paths = names.map((name) => `/api/runs/${encodeURIComponent(name)}`);
    const details = await Promise.all(paths.map(get));
    const query = METRICS.map(([name]) => `metric=${name}`).join("&");
    const curves = await Promise.all(paths.map((path) => get(`${path}/curves?points=300&${query}`)));
    fill(main, h("div", { class: "stack" },
      h("h1", {}, `${names.length} runs compared`),
      h("div", { class: "row" }, names.map((name, index) => h("span", { class: "row" }, h("a", { href: `/run/${encodeURIComponent(name)}` }, name), state(details[index].summary.state)))),
      h("section", { class: "card" }, h("h2", {}, "Settings that differ"), settings(details)),
      h("div", { class: "grid" }, strength(details)),
      h("div", { class: "grid" }, METRICS.map(([metric, title, options]) =>
        chart(title, options, names.map((name, index) => ({ label: name, ...(curves[index][metric] ?? { step: [], value: [] }) }))))),
    ));
  } catch (error) {
    fill(main, problem(error));
  }
}

start();
