// One run: what it does now, how strong it is, how it learns, who plays, and its games.
import { askForToken, get, header, isTrusted, post, stream } from "./api.js";
import { Board } from "./board.js";
import { Chart } from "./charts.js";
import { $, amend, bytes, count, duration, empty, fill, fold, folderOf, h, meanPage, notice, number, percent, problem, s, state } from "./dom.js";
import { games } from "./games.js";
import { labelsCard } from "./labels.js";
import { leagueCard, leagueParts } from "./league.js";
import * as named from "./metric_names.js";

const name = decodeURIComponent(location.pathname.split("/").slice(2).join("/"));
const path = `/api/runs/${encodeURIComponent(name)}`;
const LEARNING = [
  [named.LOSS, "Loss"],
  [named.POLICY_LOSS, "Policy loss"],
  [named.VALUE_LOSS, "Value loss"],
  [named.ENTROPY_LOSS, "Entropy loss"],
  [named.APPROX_KL, "KL of an update"],
  [named.EXPLAINED_VARIANCE, "Explained variance"],
  [named.CLIP_FRACTION, "Clipped", { shares: true }],
  [named.TD_ERROR, "TD error"],
  [named.Q_MEAN, "Mean Q"],
  [named.LEARNING_RATE, "Learning rate"],
  [named.EPSILON, "Epsilon", { shares: true }],
  [named.GAME_REWARD, "Reward of a game"],
  [named.GAME_LENGTH, "Plies of a game", { zero: true }],
  [named.FIRST_WINS, "First player wins", { shares: true }],
  [named.DRAWS, "Draws", { shares: true }],
];
const WORK = [
  [named.SPEED, "Transitions a second", { zero: true, height: 120 }],
  [named.WORKER_UTILISATION, "Workers at play", { shares: true, height: 120 }],
  [named.QUEUE_DEPTH, "Slabs that wait", { zero: true, height: 120 }],
  [named.POLICY_LAG, "Policy lag", { zero: true, height: 120 }],
];
const LEAGUE = [
  [named.LEAGUE_SCORE, "Score in the league", { shares: true }],
  [named.LEAGUE_WORST_SCORE, "Lowest score", { shares: true }],
];
// What says nothing of a world: its agents earn returns, and none of them wins by moving first.
const OF_DUELS = new Set([named.GAME_REWARD, named.FIRST_WINS, named.DRAWS]);
const known = new Set([...LEARNING, ...WORK, ...LEAGUE].map(([metric]) => metric));
const boring = /^(time|train\/n_updates|train\/gradient_steps|return\/|evaluation\/)/;

let details = null;
let live = null;
let trusted = false;
const RETURNS = "returns";
const charts = new Map();

// ---- The top: state, progress, buttons, numbers.

function isRunning() {
  return details.summary.state === "running";
}

function shownState() {
  return isRunning() && live?.paused ? "paused" : details.summary.state;
}

async function press(action, extra = {}) {
  if (!trusted) return askForToken();
  try {
    const { id } = await post(`${path}/control`, { action, ...extra });
    waiting.set(id, action);
    notice(`Asked: ${action}. The run answers after its update.`);
  } catch (error) {
    notice(error.message, true);
  }
}

const waiting = new Map();

function tellAnswers() {
  for (const answer of live?.answers ?? []) {
    if (waiting.delete(answer.id)) notice(`${answer.action}: ${answer.text}`, !answer.done);
  }
}

function buttons() {
  const running = isRunning();
  if (!running) return playLink();
  const button = (action, label, kind = "") =>
    h("button", { type: "button", class: kind, title: trusted ? "" : "Needs the token", "data-action": action, onclick: () => press(action) }, label);
  return h("div", { class: "row actions" },
    playLink(),
    live?.paused ? button("resume", "Resume", "main") : button("pause", "Pause"),
    button("checkpoint", "Checkpoint"),
    button("reset", "New games"),
    button("stop", "Stop", "danger"),
  );
}

function playLink() {
  if (details.summary.transitions === null) return null;
  return h("a", { class: "button", href: `/play?run=${encodeURIComponent(name)}` }, "Play against it");
}

const isWorld = () => details.is_world || Object.values(details.evaluations).some((curve) => curve.returns);

function meanReturn() {
  const known = Object.values(details.returns).filter((value) => value !== null);
  return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
}

// What agents earned in their last games; before any was finished, what they earned in matches.
function firstReturn() {
  const [opponent, curve] = Object.entries(details.evaluations).find(([, one]) => one.returns) ?? [];
  return meanReturn() === null && curve ? [`return with ${opponent}`, number(curve.returns.at(-1))] : ["return of an agent", number(meanReturn())];
}

function title() {
  const folder = folderOf(name);
  return h("h1", {}, folder && [h("a", { href: meanPage(folder), title: "the mean of the runs in this folder" }, folder), "/"], name.slice(folder ? folder.length + 1 : 0));
}

const CONTINUED = ["interrupted", "failed", "created"];
const REASONS = ["failed", "unreadable", "interrupted"];

function top() {
  const summary = details.summary;
  const bar = h("i");
  bar.style.width = `${100 * (live?.progress ?? 0)}%`;
  const tile = (label, value) => h("div", { class: "tile" }, h("b", {}, value), h("span", {}, label));
  const detail = REASONS.includes(summary.state) && summary.detail;
  return [
    h("div", { class: "row" }, title(), state(shownState()), h("span", { class: "dim" }, [summary.game, setting("learner.regime"), setting("model.network")].filter(Boolean).join(" · ")), h("span", { class: "grow" }), buttons()),
    detail && h("p", { class: summary.state === "interrupted" ? "dim" : "problem" }, detail),
    details.problem && !String(detail).includes(details.problem) && problem(details.problem),
    CONTINUED.includes(summary.state) && h("p", { class: "dim" }, "Continue the run: ", h("code", {}, `keisei train ${name}`)),
    live && isRunning() && h("div", { class: "bar progress", role: "progressbar", "aria-label": "progress of the run", "aria-valuenow": Math.round(100 * live.progress), "aria-valuemin": 0, "aria-valuemax": 100 }, bar),
    h("div", { class: "tiles", id: "tiles" },
      isWorld() && tile(...firstReturn()),
      tile("transitions", count(live?.transitions || summary.transitions)),
      tile("updates", count(live?.update || summary.updates)),
      live?.games ? tile("games", count(live.games)) : null,
      tile("trained", duration(live?.seconds || summary.training_seconds)),
      isRunning() && [
        tile("steps a second", count(live?.speed)),
        tile("workers at play", percent(live?.utilisation)),
        tile("slabs that wait", number(live?.queue?.filled)),
        tile("policy lag", number(live?.policy_lag)),
        tile("memory", bytes((live?.memory_bytes ?? 0) + (live?.workers ?? []).reduce((sum, one) => sum + one.memory_bytes, 0))),
      ],
      !isRunning() && Object.entries(summary.scores).slice(0, 3).map(([opponent, score]) => tile(`against ${opponent}`, percent(score))),
    ),
  ];
}

const setting = (wanted) => details.settings.find((one) => one.name === wanted)?.value;

// ---- Strength, curves.

function strength() {
  const curves = Object.entries(details.evaluations).map(([label, curve]) => ({ label, ...curve }));
  const chart = new Chart("Score in matches against", { note: "with 95 % intervals of the games", shares: true, height: isWorld() ? 200 : 280 });
  chart.named = true;
  chart.set(curves);
  return [isWorld() && Object.keys(details.returns).length > 0 && returns(), chart.element, isWorld() && returnsInMatches(curves)];
}

// What agents earn in a game while they learn; filled with the other curves.
function returns() {
  const chart = new Chart("Return of an agent in a game", { height: 240 });
  chart.named = true;
  charts.set(RETURNS, chart);
  return chart.element;
}

function returnsInMatches(curves) {
  if (!curves.some((curve) => curve.returns)) return null;
  const chart = new Chart("Return in matches with", { height: 160 });
  chart.named = true;
  return chart.set(curves.map(({ label, step, returns: value }) => (value ? { label, step, value } : { label, step: [], value: [] }))).element;
}

const agentOf = (metric) => (metric.startsWith("agent-") ? `agent ${+metric.slice(6).split("/")[0] + 1}` : "all agents");

function curve(metric, title, options = {}) {
  const chart = new Chart(title, options);
  chart.plot.title = details.meanings[metric] ?? metric;
  charts.set(metric, chart);
  return chart.element;
}

function curves(list) {
  return list.filter(([metric]) => details.metrics.includes(metric) && !(isWorld() && OF_DUELS.has(metric))).map(([metric, title, options]) => curve(metric, title, options));
}

function others() {
  const rest = details.metrics.filter((metric) => !known.has(metric) && !boring.test(metric) && !(metric in details.returns));
  return rest.map((metric) => [metric, metric, {}]);
}

async function loadCurves() {
  const shown = Object.keys(details.returns).slice(0, 6);
  if (charts.has(RETURNS)) {
    const found = await get(`${path}/curves?points=300&${shown.map((metric) => `metric=${encodeURIComponent(metric)}`).join("&")}`);
    charts.get(RETURNS).set(shown.map((metric) => ({ label: agentOf(metric), ...found[metric] })));
  }
  const names = [...charts.keys()].filter((metric) => metric !== RETURNS);
  for (let at = 0; at < names.length; at += 40) {
    const query = names.slice(at, at + 40).map((metric) => `metric=${encodeURIComponent(metric)}`).join("&");
    const found = await get(`${path}/curves?points=300&${query}`);
    for (const [metric, data] of Object.entries(found)) charts.get(metric).set([{ label: charts.get(metric).title, ...data }]);
  }
}

// ---- Workers.

function workers() {
  const list = live?.workers ?? [];
  const add = h("div", { class: "row" }, h("button", { type: "button", "data-action": "add-worker", onclick: () => press("add-worker") }, "Add a worker"));
  if (!list.length) return [empty("Workers are starting"), add];
  return [
    add,
    h("div", { class: "scroll" }, h("table", { class: "workers" },
      h("thead", {}, h("tr", {}, ["Worker", "State", "Plays tables", "Steps a second", "At play", "Memory", "Restarts", ""].map((title, at) => h("th", { class: [3, 5, 6].includes(at) ? "num" : "" }, title)))),
      h("tbody", {}, list.map(worker)))),
    live.last_error && h("p", { class: "small dim" }, "Last error: ", live.last_error),
  ];
}

function worker(one) {
  const bar = h("i");
  bar.style.width = `${100 * (1 - one.waiting_share)}%`;
  const tables = one.tables.length > 12 ? `${one.tables.slice(0, 12).join(", ")} …` : one.tables.join(", ");
  return h("tr", { title: one.last_error },
    h("td", { title: one.process_id ? `process ${one.process_id}` : "" }, one.worker),
    h("td", {}, state(one.state)),
    h("td", { class: "mono" }, tables || "–"),
    h("td", { class: "num" }, count(one.steps_per_second)),
    h("td", {}, h("div", { class: "bar", title: percent(1 - one.waiting_share) }, bar)),
    h("td", { class: "num" }, bytes(one.memory_bytes)),
    h("td", { class: "num" }, one.restarts),
    h("td", { class: "num" }, ["running", "paused"].includes(one.state) && h("button", { class: "quiet", type: "button", "aria-label": `remove worker ${one.worker}`, onclick: () => press("remove-worker", { worker: one.worker }) }, "Remove")),
  );
}

function events() {
  if (!details.events.length) return null;
  return h("details", {}, h("summary", {}, `What happened to workers (${details.events.length})`),
    h("ul", { class: "small" }, details.events.map((event) => h("li", {}, `update ${event.update}: worker ${event.worker} ${event.event} – ${event.detail.trim().split("\n").at(-1) || "no reason known"}`))));
}

// ---- Ratings.

function whiskers(rows) {
  const low = Math.min(...rows.map((row) => row.low));
  const span = Math.max(...rows.map((row) => row.high)) - low || 1;
  const x = (value) => (100 * (value - low)) / span;
  return h("div", { class: "whiskers" }, rows.map((row) => [
    h("span", {}, row.player),
    s("svg", { viewBox: "0 0 100 18", preserveAspectRatio: "none", "aria-hidden": true },
      s("line", { class: "track", x1: 0, x2: 100, y1: 9, y2: 9, "vector-effect": "non-scaling-stroke" }),
      s("line", { class: "span", x1: x(row.low), x2: x(row.high), y1: 9, y2: 9, "vector-effect": "non-scaling-stroke" }),
      s("line", { class: "span", x1: x(row.rating), x2: x(row.rating), y1: 3, y2: 15, "vector-effect": "non-scaling-stroke" })),
    h("span", { class: "num" }, `${Math.round(row.rating)} ±${Math.round((row.high - row.low) / 2)}`),
  ]));
}

function ratings() {
  if (!details.ratings.length) return empty("No ratings yet", h("span", {}, "They come with the first evaluation."));
  const best = details.ratings.slice(0, 12);
  return [whiskers(best), details.ratings.length > best.length && h("p", { class: "dim small" }, `and ${details.ratings.length - best.length} more`), h("p", { class: "dim small" }, "Elo with 95 % intervals; the random player has 0.")];
}

// ---- Settings.

function settings() {
  const changed = details.settings.filter((one) => one.usual !== null && one.usual !== one.value);
  const line = (one) => {
    const isChanged = one.usual !== null && one.usual !== one.value;
    return h("tr", { class: isChanged ? "changed" : "" }, h("td", {}, one.name), h("td", { class: "mono" }, one.value), h("td", { class: "mono" }, isChanged ? h("span", { class: "was" }, one.usual) : ""));
  };
  const table = (rows) => h("div", { class: "scroll" }, h("table", { class: "settings" },
    h("thead", {}, h("tr", {}, h("th", {}, "Setting"), h("th", {}, "Here"), h("th", {}, details.preset ? `In ${details.preset}` : ""))), h("tbody", {}, rows.map(line))));
  if (!details.settings.length) return null;
  return fold("settings", "Settings", [
    details.preset && h("p", { class: "dim small" }, changed.length ? `${changed.length} ${changed.length === 1 ? "differs" : "differ"} from the preset ${details.preset}:` : `All are those of the preset ${details.preset}.`),
    changed.length > 0 && table(changed),
    details.changes.length > 0 && h("ul", { class: "small" }, details.changes.map((change) => h("li", {}, change))),
    h("details", {}, h("summary", {}, `All ${details.settings.length} settings`), table(details.settings)),
  ]);
}

// ---- The live board: the last plies of a self-play game, one after the other.

const liveBoard = { board: new Board(), frames: [], at: 0, note: h("p", { class: "dim small" }), shown: false };

async function watch() {
  if (!live?.has_board || !isRunning() || document.hidden) return;
  try {
    const found = await get(`${path}/board`);
    if (!isRunning()) return;
    Object.assign(liveBoard, { frames: found.frames, at: 0, about: found });
    if (!liveBoard.shown) $("#live").hidden = false;
    liveBoard.shown = true;
  } catch {
    // the next update tries again
  }
}

function play() {
  const frame = liveBoard.frames[liveBoard.at];
  if (!frame || document.hidden || !isRunning()) return;
  liveBoard.at += 1;
  liveBoard.board.show({ ...frame, ...liveBoard.about, svg: frame.svg, value: frame.value, favourites: [] }, { arrows: false });
  const seat = liveBoard.about.seats[frame.seat];
  liveBoard.note.textContent = `Table ${liveBoard.about.table}, ply ${frame.ply}: ${seat} plays ${frame.move}, value ${number(frame.value)}`;
}

setInterval(play, 900);

// ---- The page.

function page() {
  const rest = curves(others());
  const [leagueCurves, work, learning] = [LEAGUE, WORK, LEARNING].map(curves);
  const liveCard = fold("live", "Self-play, live", [liveBoard.board.element, liveBoard.note], { always: true });
  liveCard.hidden = !liveBoard.shown || !isRunning();
  fill($("#main"), h("div", { class: "stack" },
    h("div", { class: "stack", id: "top" }, top()),
    h("div", { class: "two" },
      h("div", { class: "stack" }, strength(), isRunning() && fold("workers", "Workers", workers()), events(), work.length > 0 && fold("work", "Speed and work", h("div", { class: "grid" }, work))),
      h("div", { class: "stack" }, liveCard, fold("ratings", "Ratings", ratings()))),
    learning.length > 0 && fold("learning", "Learning", h("div", { class: "grid" }, learning)),
    leagueCurves.length > 0 && h("div", { class: "grid" }, leagueCurves),
    rest.length > 0 && h("details", {}, h("summary", {}, `More numbers (${rest.length})`), h("div", { class: "grid" }, rest)),
    leagueCard(details.league),
    fold("games", "Games", games(details, path, isWorld())),
    settings(),
    labelsCard(name, details.summary),
  ));
}

function refresh() {
  amend($("#top"), top());
  if (isRunning()) amend($("#workers > .body"), workers());
}

async function reload() {
  details = await get(path);
  live = details.live;
  document.title = `${name} – Keisei`;
  page();
  await loadCurves();
}

async function start() {
  header("runs");
  try {
    trusted = await isTrusted();
    await reload();
  } catch (error) {
    const heading = error.status === 404 ? "There is no such run" : "This run cannot be shown";
    return fill($("#main"), h("div", { class: "card stack" }, h("h1", {}, heading), problem(error), h("p", {}, h("a", { href: "/" }, "All runs"))));
  }
  watch();
  stream(`/api/stream?run=${encodeURIComponent(name)}`, async (event) => {
    const before = details.summary.state;
    live = event.live;
    details.summary.state = event.state;
    details.summary.detail = event.detail;
    tellAnswers();
    const fresh = Object.keys(event.points);
    for (const metric of fresh.filter((one) => one in details.returns)) {
      details.returns[metric] = event.points[metric].at(-1)[1];
      charts.get(RETURNS)?.push(agentOf(metric), event.points[metric]);
    }
    const unknown = fresh.some((metric) => !details.metrics.includes(metric) && !boring.test(metric));
    if (unknown || fresh.some((metric) => metric.startsWith(named.EVALUATION)) || before !== event.state) await reload().catch(() => {});
    else {
      refresh();
      if (event.league && $("#league")) amend($("#league > .body"), leagueParts(event.league));
      for (const metric of fresh) charts.get(metric)?.push(charts.get(metric).title, event.points[metric]);
    }
    if (liveBoard.at >= liveBoard.frames.length) watch();
  });
}

start();
