// Several runs side by side, or folders of runs, each as the mean of its runs: curves first, then what differs.
import { get, header } from "./api.js";
import { Chart, swatch } from "./charts.js";
import { $, counted, empty, fill, fold, h, meanPage, problem, runPage, state } from "./dom.js";
import * as named from "./metric_names.js";

const METRICS = [
  [named.AGENT_RETURN, "Return of an agent", {}],
  [named.GAME_LENGTH, "Game length", { note: "plies", zero: true }],
  [named.SPEED, "Speed", { note: "transitions a second", zero: true }],
  [named.LOSS, "Loss", {}],
  [named.VALUE_LOSS, "Value loss", {}],
  [named.ENTROPY_LOSS, "Entropy loss", {}],
  [named.EXPLAINED_VARIANCE, "Explained variance", {}],
];
const MOST = 6;
const query = METRICS.map(([name]) => `metric=${name}`).join("&");
const asked = new URLSearchParams(location.search);
const nothing = { step: [], value: [] };

// What is compared, each with its curves and its settings.
async function readRun(name) {
  const path = `/api/runs/${encodeURIComponent(name)}`;
  const [details, curves] = await Promise.all([get(path), get(`${path}/curves?points=300&${query}`)]);
  const settings = new Map(details.settings.map((one) => [one.name, one.value]));
  const { "best so far": _, ...scores } = details.evaluations;
  return { label: name, page: runPage(name), sign: state(details.summary.state), curves, scores, settings };
}

async function readFolder(folder) {
  const found = await get(`/api/means?folder=${encodeURIComponent(folder)}&points=300&${query}`);
  return { label: folder, page: meanPage(folder), sign: h("span", { class: "dim" }, `mean of ${found.mean_of}`), ...found };
}

function chart(title, options, curves) {
  if (curves.every((curve) => !curve.step.length)) return null;
  const made = new Chart(title, options);
  made.named = true;
  made.set(curves);
  return made.element;
}

function strength(all) {
  const opponents = [...new Set(all.flatMap((one) => Object.keys(one.scores)))];
  const of = (column) => (opponent) => all.map((one) => {
    const curve = one.scores[opponent] ?? nothing;
    return { label: one.label, ...(column === "value" ? curve : { step: curve[column] ? curve.step : [], value: curve[column] }) };
  });
  const means = all.filter((one) => one.mean_of).length;
  const mixed = "95 % intervals: of a folder over its runs, of a run over its games";
  const note = !means ? "with 95 % intervals of the games" : means === all.length ? "with 95 % intervals of the mean over runs" : mixed;
  return opponents.flatMap((opponent) => [
    chart(`Return in games with ${opponent}`, { height: 200 }, of("returns")(opponent)),
    chart(`Score against ${opponent}`, { note, shares: true, height: 200 }, of("value")(opponent)),
  ]);
}

function settings(runs) {
  const keys = [...new Set(runs.flatMap((run) => [...run.settings.keys()]))];
  const differing = keys.filter((key) => new Set(runs.map((run) => run.settings.get(key))).size > 1);
  if (!differing.length) return empty("All settings are the same");
  // Algorithms have settings of their own, which would hide the few that are set differently.
  const shared = differing.filter((key) => runs.every((run) => run.settings.has(key)));
  const others = differing.filter((key) => !shared.includes(key));
  return [
    shared.length > 0 && table(runs, shared),
    others.length > 0 && h("details", {}, h("summary", {}, `Settings that only some of them have (${others.length})`), table(runs, others)),
  ];
}

function table(runs, keys) {
  return h("div", { class: "scroll" }, h("table", { class: "settings" },
    h("thead", {}, h("tr", {}, h("th", {}, "Setting"), runs.map((run) => h("th", {}, run.label)))),
    h("tbody", {}, keys.map((key) => h("tr", {}, h("th", { scope: "row" }, key), runs.map((run) => h("td", { class: "mono" }, run.settings.get(key) ?? "–"))))),
  ));
}

function members(folder) {
  return fold(`runs-${folder.label}`, `Runs in ${folder.label}`, h("ul", { class: "plain" }, folder.runs.map((run) =>
    h("li", { class: "row" }, h("a", { href: runPage(run.name) }, run.name), state(run.state)))));
}

function title(runs, folders) {
  if (folders.length === 1 && !runs.length) return `${folders[0].label}: mean of ${folders[0].mean_of}`;
  return `${[runs.length && counted(runs.length, "run"), folders.length && counted(folders.length, "folder")].filter(Boolean).join(" and ")} compared`;
}

function page(runs, folders) {
  const all = [...runs, ...folders];
  document.title = `${title(runs, folders)} – Keisei`;
  const curves = METRICS.map(([metric, name, options]) => chart(name, options, all.map((one) => ({ label: one.label, ...(one.curves[metric] ?? nothing) }))));
  const scores = strength(all);
  fill($("#main"), h("div", { class: "stack" },
    h("h1", {}, title(runs, folders)),
    h("div", { class: "row compared" }, all.map((one, place) => h("span", { class: "row" }, swatch(place), h("a", { href: one.page }, one.label), one.sign))),
    [...scores, ...curves].some(Boolean) ? h("div", { class: "grid large" }, scores, curves) : h("div", { class: "card" }, empty("There are no numbers yet")),
    runs.length > 1 && fold("differing", "Settings that differ", settings(runs), { always: true }),
    folders.map(members),
  ));
}

async function start() {
  header("runs");
  const [names, folders] = ["run", "folder"].map((kind) => [...new Set(asked.getAll(kind))]);
  if (names.length + folders.length > MOST) return fill($("#main"), h("div", { class: "card" }, empty(`At most ${MOST} are compared at once`, h("a", { href: "/" }, "Choose fewer"))));
  if (names.length < 2 && !folders.length) return fill($("#main"), h("div", { class: "card" }, empty("Choose two runs or more", h("a", { href: "/" }, "All runs"))));
  try {
    const [runs, means] = await Promise.all([Promise.all(names.map(readRun)), Promise.all(folders.map(readFolder))]);
    page(runs, means);
  } catch (error) {
    fill($("#main"), h("div", { class: "card stack" }, h("h1", {}, "Nothing to compare"), problem(error), h("p", {}, h("a", { href: "/" }, "All runs"))));
  }
}

start();
