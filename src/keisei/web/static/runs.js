// All runs at a glance, below their folders: filtered, sorted, compared by a setting.
import { get, header, stream } from "./api.js";
import { $, ago, count, counted, duration, empty, fill, folderOf, h, meanPage, percent, problem, runPage, state } from "./dom.js";
import { archivedBox, asksForTag, isHidden, tagList } from "./labels.js";

const runs = new Map();
const chosen = new Set(); // "run=…" and "folder=…", as the address of the comparison has them
const closed = new Set(JSON.parse(sessionStorage.getItem("keisei-closed-folders") ?? "[]"));
const view = { filter: "", sort: "last_seen", down: true, setting: "" };
let folder = "runs";

const COLUMNS = [
  ["name", "Run", (run) => run.name],
  ["game", "Game", (run) => run.game ?? ""],
  ["state", "State", (run) => run.state],
  ["transitions", "Transitions", (run) => run.transitions ?? -1],
  ["speed", "Per second", (run) => run.speed ?? -1],
  ["training_seconds", "Trained", (run) => run.training_seconds ?? -1],
  ["score", "Last scores", (run) => Math.max(-1, ...Object.values(run.scores))],
  ["last_seen", "Seen", (run) => run.last_seen ?? 0],
];

// Words must occur in a run's name, game, state or regime. #TAG is one of its tags, SETTING=VALUE and the like compare a setting.
function matches(run, filter) {
  const text = [run.name, run.game, run.paused ? "paused" : run.state, run.regime].join(" ").toLowerCase();
  return filter.toLowerCase().split(/\s+/).filter(Boolean).every((word) => {
    const tagged = asksForTag(run, word);
    if (tagged !== undefined) return tagged;
    const [, name, sign, value] = word.match(/^([\w.-]+)(=|<|>)(.+)$/) ?? [];
    if (!name) return text.includes(word);
    const found = Object.entries(run.settings).find(([setting]) => setting === name || setting.endsWith(`.${name}`))?.[1];
    if (found === undefined) return false;
    if (sign === "=") return found.toLowerCase() === value;
    return sign === "<" ? Number(found) < Number(value) : Number(found) > Number(value);
  });
}

function sorted() {
  const key = view.sort === "setting" ? (run) => run.settings[view.setting] ?? "" : COLUMNS.find(([id]) => id === view.sort)[2];
  const order = (a, b) => {
    const [x, y] = [key(a), key(b)];
    const [p, q] = [Number(x), Number(y)];
    const numeric = x !== "" && y !== "" && Number.isFinite(p) && Number.isFinite(q);
    return (numeric ? p - q : String(x).localeCompare(String(y))) || a.name.localeCompare(b.name);
  };
  const found = [...runs.values()].filter((run) => !isHidden(run) && matches(run, view.filter)).sort(order);
  return view.down ? found.reverse() : found;
}

function heading([id, label]) {
  const now = view.sort === id;
  const press = () => {
    view.down = now ? !view.down : !["name", "game", "state"].includes(id);
    view.sort = id;
    draw();
  };
  const numeric = ["transitions", "speed", "training_seconds"].includes(id);
  return h(
    "th",
    { class: numeric ? "num" : "", "aria-sort": now ? (view.down ? "descending" : "ascending") : undefined },
    h("button", { type: "button", onclick: press }, label, now ? (view.down ? " ↓" : " ↑") : ""),
  );
}

function scores(found) {
  const entries = Object.entries(found).slice(0, 4);
  return entries.map(([opponent, value]) => {
    const bar = h("i");
    bar.style.width = `${100 * value}%`;
    return h("div", { class: "score" }, h("span", {}, opponent), h("span", { class: "bar", "aria-hidden": "true" }, bar), h("span", { class: "num" }, percent(value)));
  });
}

function choice(kind, name) {
  const key = `${kind}=${encodeURIComponent(name)}`;
  const change = (event) => {
    if (event.target.checked) chosen.add(key);
    else chosen.delete(key);
    drawTools();
  };
  return h("input", { type: "checkbox", checked: chosen.has(key), "aria-label": `compare ${name}`, onchange: change });
}

function row(run, depth) {
  const detail = ["failed", "unreadable"].includes(run.state) ? run.detail : "";
  return h(
    "tr",
    {},
    h("td", {}, choice("run", run.name)),
    h("td", { class: `depth${depth}` }, h("a", { class: "name", href: runPage(run.name) }, run.name.split("/").slice(depth).join("/")), detail && h("div", { class: "small problem-text dim" }, detail.slice(0, 140)), tagList(run)),
    h("td", { class: "dim" }, run.game ?? "–"),
    h("td", {}, state(run.paused ? "paused" : run.state)),
    h("td", { class: "num", "data-label": "transitions" }, count(run.transitions)),
    h("td", { class: `num${run.speed ? "" : " empty-cell"}`, "data-label": "per second" }, run.speed ? count(run.speed) : "–"),
    h("td", { class: "num", "data-label": "trained" }, duration(run.training_seconds)),
    h("td", { class: "wide" }, scores(run.scores)),
    h("td", { class: "dim small", "data-label": "seen" }, ago(run.last_seen)),
    view.setting && h("td", { class: "mono wide", "data-label": view.setting }, run.settings[view.setting] ?? "–"),
  );
}

// ---- Folders: runs that belong together, such as the seeds of an experiment.

// The runs in their order, each below its folders. A folder stands where its first run does.
function tree(list) {
  const folders = new Map([["", { path: "", entries: [], runs: [] }]]);
  const folder = (path) => {
    if (!folders.has(path)) {
      folders.set(path, { path, entries: [], runs: [] });
      folder(folderOf(path)).entries.push(folders.get(path));
    }
    return folders.get(path);
  };
  for (const run of list) {
    folder(folderOf(run.name)).entries.push(run);
    for (let path = folderOf(run.name); path; path = folderOf(path)) folders.get(path).runs.push(run);
  }
  return folders.get("").entries;
}

function rows(entries, depth = 0) {
  return entries.flatMap((one) => one.entries ? [folderRow(one, depth), ...(closed.has(one.path) ? [] : rows(one.entries, depth + 1))] : [row(one, depth)]);
}

function folderRow(folder, depth) {
  const isOpen = !closed.has(folder.path);
  const press = () => {
    if (isOpen) closed.add(folder.path);
    else closed.delete(folder.path);
    sessionStorage.setItem("keisei-closed-folders", JSON.stringify([...closed]));
    draw();
    $(`[data-folder="${CSS.escape(folder.path)}"]`)?.focus();
  };
  const own = folder.runs.filter((run) => folderOf(run.name) === folder.path);
  const live = folder.runs.filter((run) => run.state === "running").length;
  return h("tr", { class: "folder" },
    h("td", {}, own.length > 0 && choice("folder", folder.path)),
    h("td", { class: `depth${depth}` }, h("button", { type: "button", class: "quiet name", "aria-expanded": String(isOpen), "data-folder": folder.path, onclick: press }, h("span", { "aria-hidden": "true" }, isOpen ? "▾" : "▸"), folder.path.split("/").at(-1))),
    h("td", { class: "dim", colSpan: 5 }, counted(folder.runs.length, "run"), live > 0 && `, ${live} being trained`, own.length > 1 && [" · ", h("a", { href: meanPage(folder.path) }, `mean of ${together(own)}`)]),
    h("td", { class: "wide" }, own.length > 1 && scores(meanScores(own))),
    h("td", { class: "dim small", "data-label": "seen" }, ago(Math.max(...folder.runs.map((run) => run.last_seen ?? 0)))),
    view.setting && h("td", {}),
  );
}

// Runs with a seed of their own each are seeds of one experiment.
function together(list) {
  const seeds = new Set(list.map((run) => run.settings["run.seed"]));
  return counted(list.length, seeds.size === list.length && !seeds.has(undefined) ? "seed" : "run");
}

// The means of the last scores against opponents that all runs have met.
function meanScores(list) {
  const names = Object.keys(list[0].scores).filter((name) => name !== "best" && list.every((run) => name in run.scores));
  return Object.fromEntries(names.map((name) => [name, list.reduce((sum, run) => sum + run.scores[name], 0) / list.length]));
}

function drawTools() {
  const compare = $("#compare");
  const isAllRuns = [...chosen].every((key) => key.startsWith("run="));
  compare.textContent = chosen.size > 1 ? `Compare ${chosen.size} ${isAllRuns ? "runs" : "rows"}` : "Compare";
  compare.disabled = chosen.size < 2;
}

function drawSettings() {
  const names = [...new Set([...runs.values()].flatMap((run) => Object.keys(run.settings)))].sort();
  const select = $("#setting");
  const before = view.setting;
  fill(select, h("option", { value: "" }, "none"), names.map((name) => h("option", { value: name, selected: name === before }, name)));
}

const SHOWN = 200;
let shown = SHOWN;

function draw() {
  const list = sorted();
  const body = $("#list");
  const live = [...runs.values()].filter((run) => run.state === "running").length;
  $("#about").textContent = runs.size ? `${counted(runs.size, "run")}, ${live} being trained${list.length < runs.size ? `, ${list.length} shown` : ""}` : "";
  if (!runs.size) {
    fill(body, empty(`There are no runs in ${folder} yet`, h("p", {}, "Start one, and it appears here: ", h("code", {}, "keisei train tictactoe-ppo"))));
    return;
  }
  if (!list.length) {
    fill(body, empty("No run fits", h("p", {}, "Try fewer words, a tag such as ", h("code", {}, "#strong"), ", a setting such as ", h("code", {}, "learning_rate<0.001"), ", or look among the archived runs")));
    return;
  }
  const more = list.length > shown && h("p", { class: "empty" }, h("button", { type: "button", onclick: () => ((shown += SHOWN), draw()) }, `Show more (${list.length - shown} left)`));
  fill(
    body,
    h("div", { class: "scroll" },
      h("table", { class: "runs" },
        h("thead", {}, h("tr", {}, h("th", {}, h("span", { class: "hidden" }, "Compare")), COLUMNS.map(heading), view.setting && heading(["setting", view.setting]))),
        h("tbody", {}, rows(tree(list.slice(0, shown)))),
      ),
    ),
    more,
  );
}

function page() {
  const filter = h("input", {
    type: "search",
    id: "filter",
    placeholder: "Filter: shogi running learning_rate<0.001",
    "aria-label": "Filter runs",
    oninput: (event) => {
      view.filter = event.target.value;
      shown = SHOWN;
      draw();
    },
  });
  filter.style.flex = "1 1 320px";
  const compare = () => (location.href = `/compare?${[...chosen].join("&")}`);
  fill(
    $("#main"),
    h("div", { class: "stack" },
      h("div", { class: "row" }, h("h1", {}, "Runs"), h("span", { id: "about", class: "dim" })),
      h("div", { class: "row" },
        filter,
        h("label", { class: "row small dim" }, "Setting", h("select", { id: "setting", "aria-label": "Show a setting", onchange: (event) => { view.setting = event.target.value; if (view.setting) { view.sort = "setting"; view.down = false; } draw(); } })),
        archivedBox(draw),
        h("button", { id: "compare", class: "main", type: "button", disabled: true, onclick: compare }, "Compare"),
      ),
      h("div", { class: "card", id: "list" }),
    ),
  );
}

async function start() {
  header("runs");
  try {
    const [{ runs: rows }, session] = await Promise.all([get("/api/runs"), get("/api/session")]);
    folder = session.folder;
    rows.forEach((run) => runs.set(run.name, run));
  } catch (error) {
    fill($("#main"), h("div", { class: "card stack" }, h("h1", {}, "Runs"), problem(error)));
    return;
  }
  page();
  drawSettings();
  draw();
  stream("/api/stream", (event) => {
    event.runs.forEach((run) => runs.set(run.name, run));
    event.gone.forEach((name) => runs.delete(name));
    const settings = new Set([...runs.values()].flatMap((run) => Object.keys(run.settings)));
    if (settings.size !== $("#setting").options.length - 1) drawSettings();
    draw();
  });
}

start();
