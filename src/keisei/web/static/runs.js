// All runs at a glance: filtered, sorted, compared by a setting.
import { get, header, stream } from "./api.js";
import { $, ago, count, duration, empty, fill, h, percent, problem, state } from "./dom.js";

const runs = new Map();
const chosen = new Set();
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

// Words must occur in a run's name, game, state or regime. SETTING=VALUE and the like compare a setting.
function matches(run, filter) {
  const text = [run.name, run.game, run.paused ? "paused" : run.state, run.regime].join(" ").toLowerCase();
  return filter.toLowerCase().split(/\s+/).filter(Boolean).every((word) => {
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
  const found = [...runs.values()].filter((run) => matches(run, view.filter)).sort(order);
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

function scores(run) {
  const entries = Object.entries(run.scores).slice(0, 4);
  return entries.map(([opponent, value]) => {
    const bar = h("i");
    bar.style.width = `${100 * value}%`;
    return h("div", { class: "score" }, h("span", {}, opponent), h("span", { class: "bar", "aria-hidden": "true" }, bar), h("span", { class: "num" }, percent(value)));
  });
}

function row(run) {
  const box = h("input", {
    type: "checkbox",
    checked: chosen.has(run.name),
    "aria-label": `compare ${run.name}`,
    onchange: (event) => {
      if (event.target.checked) chosen.add(run.name);
      else chosen.delete(run.name);
      drawTools();
    },
  });
  const detail = ["failed", "unreadable"].includes(run.state) ? run.detail : "";
  return h(
    "tr",
    {},
    h("td", {}, box),
    h("td", {}, h("a", { class: "name", href: `/run/${encodeURIComponent(run.name)}` }, run.name), detail && h("div", { class: "small problem-text dim" }, detail.slice(0, 140))),
    h("td", { class: "dim" }, run.game ?? "–"),
    h("td", {}, state(run.paused ? "paused" : run.state)),
    h("td", { class: "num", "data-label": "transitions" }, count(run.transitions)),
    h("td", { class: `num${run.speed ? "" : " empty-cell"}`, "data-label": "per second" }, run.speed ? count(run.speed) : "–"),
    h("td", { class: "num", "data-label": "trained" }, duration(run.training_seconds)),
    h("td", { class: "wide" }, scores(run)),
    h("td", { class: "dim small", "data-label": "seen" }, ago(run.last_seen)),
    view.setting && h("td", { class: "mono wide", "data-label": view.setting }, run.settings[view.setting] ?? "–"),
  );
}

function drawTools() {
  const compare = $("#compare");
  compare.textContent = chosen.size > 1 ? `Compare ${chosen.size} runs` : "Compare";
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
  if (!runs.size) {
    fill(body, empty(`There are no runs in ${folder} yet`, h("p", {}, "Start one, and it appears here: ", h("code", {}, "keisei train tictactoe-ppo"))));
    return;
  }
  if (!list.length) {
    fill(body, empty("No run fits", h("p", {}, "Try fewer words, or a setting such as ", h("code", {}, "learning_rate<0.001"))));
    return;
  }
  const more = list.length > shown && h("p", { class: "empty" }, h("button", { type: "button", onclick: () => ((shown += SHOWN), draw()) }, `Show more (${list.length - shown} left)`));
  fill(
    body,
    h("div", { class: "scroll" },
      h("table", { class: "runs" },
        h("thead", {}, h("tr", {}, h("th", {}, h("span", { class: "hidden" }, "Compare")), COLUMNS.map(heading), view.setting && heading(["setting", view.setting]))),
        h("tbody", {}, list.slice(0, shown).map(row)),
      ),
    ),
    more,
  );
  const live = [...runs.values()].filter((run) => run.state === "running").length;
  $("#about").textContent = `${runs.size} runs, ${live} being trained${list.length < runs.size ? `, ${list.length} shown` : ""}`;
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
  const compare = () => (location.href = `/compare?${[...chosen].map((name) => `run=${encodeURIComponent(name)}`).join("&")}`);
  fill(
    $("#main"),
    h("div", { class: "stack" },
      h("div", { class: "row" }, h("h1", {}, "Runs"), h("span", { id: "about", class: "dim" })),
      h("div", { class: "row" },
        filter,
        h("label", { class: "row small dim" }, "Setting", h("select", { id: "setting", "aria-label": "Show a setting", onchange: (event) => { view.setting = event.target.value; if (view.setting) { view.sort = "setting"; view.down = false; } draw(); } })),
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
    fill($("#main"), problem(error));
    return;
  }
  page();
  drawSettings();
  draw();
  stream("/api/stream", (event) => {
    event.runs.forEach((run) => runs.set(run.name, run));
    event.gone.forEach((name) => runs.delete(name));
    draw();
  });
}

start();
