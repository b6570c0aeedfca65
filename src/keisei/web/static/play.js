// A game against any player or checkpoint. The server knows the rules; the page holds the moves.
import { download, get, header, post } from "./api.js";
import { Board, favourites, moveList, verdict } from "./board.js";
import { $, fill, h, notice, number, problem } from "./dom.js";

const query = new URLSearchParams(location.search);
const board = new Board();
const side = h("div", { class: "stack" });
let games = [];
let runs = [];
let game = null;

const DEPTHS = { "search:1": "search, 1 ply", "search:2": "search, 2 plies", "search:3": "search, 3 plies" };

// ---- Who plays what.

const choice = { game: null, opponent: null, side: null, options: {} };

function fitting() {
  return runs.filter((run) => run.game === choice.game.name && run.transitions !== null);
}

function opponents() {
  const trained = fitting().flatMap((run) => [
    h("option", { value: `${run.name}@latest` }, `${run.name}, newest weights`),
    Object.keys(run.scores).length > 0 && h("option", { value: `${run.name}@best` }, `${run.name}, best`),
  ]);
  return [
    trained.length > 0 && h("optgroup", { label: "Trained" }, trained.filter(Boolean)),
    h("optgroup", { label: "Without a network" }, choice.game.players.map((name) => h("option", { value: name }, DEPTHS[name] ?? name))),
    h("option", { value: "person" }, "another person, here"),
  ];
}

function setup() {
  const run = runs.find((one) => one.name === query.get("run"));
  choice.game ??= games.find((one) => one.name === (run?.game ?? query.get("game"))) ?? games.find((one) => one.name === "connect-four") ?? games[0];
  const opponent = h("select", { id: "opponent" }, opponents());
  if (run && run.game === choice.game.name) opponent.value = `${run.name}@${Object.keys(run.scores).length ? "best" : "latest"}`;
  const seat = h("select", { id: "side" }, choice.game.seats.map((name, at) => h("option", { value: at }, name)));
  const sfen = h("input", { id: "start", class: "mono", placeholder: "startpos, or an SFEN" });
  const players = h("select", { id: "players" }, [2, 3, 4].map((number) => h("option", { value: number }, `${number} players`)));
  const begin = (event) => {
    event.preventDefault();
    const options = {};
    if (choice.game.options.includes("start") && sfen.value.trim()) options.start = sfen.value.trim();
    if (choice.game.options.includes("players")) options.players = +players.value;
    start(opponent.value, +seat.value, options);
  };
  const pick = h("select", { id: "game", onchange: (event) => {
    choice.game = games.find((one) => one.name === event.target.value);
    setup();
  } }, games.map((one) => h("option", { value: one.name, selected: one === choice.game }, one.name)));
  const form = h("form", { class: "row", id: "setup", onsubmit: begin },
    h("label", { class: "field" }, "Game", pick),
    h("label", { class: "field" }, "Against", opponent),
    h("label", { class: "field" }, "You are", seat),
    choice.game.options.includes("start") && h("label", { class: "field grow" }, "Position", sfen),
    choice.game.options.includes("players") && h("label", { class: "field" }, "Players", players),
    h("button", { class: "main" }, "New game"),
  );
  fill($("#setup-place"), form);
}

// ---- The game.

function judgeOf(opponent) {
  if (opponent.includes("@")) return opponent;
  const trained = fitting()[0];
  return trained ? `${trained.name}@latest` : "";
}

function start(opponent, mySeat, options) {
  const seats = Array.from({ length: options.players ?? choice.game.seats.length }, (_, at) => (at === mySeat ? "person" : opponent));
  const run = opponent.includes("@") ? opponent.slice(0, opponent.lastIndexOf("@")) : "";
  game = { run, game: run ? "" : choice.game.name, options, seats, view: opponent === "person" ? 0 : mySeat, seed: Math.floor(Math.random() * 1e9), actions: [], judge: judgeOf(opponent), thoughts: false, frame: null };
  board.onChoose = null; // what is shown is the game before
  ask();
}

// Asks the server for the position. An answer for a game that was left meanwhile is not shown.
async function ask(at = null) {
  const current = game;
  if (!current || current.busy) return;
  current.busy = true;
  try {
    const { run, game: name, options, seats, view, seed, actions, judge } = current;
    const frame = await post("/api/play", { run, game: name, options, seats, view, seed, actions, judge, at });
    if (game !== current) return;
    current.frame = frame;
    if (at === null) current.actions = frame.actions;
    draw();
  } catch (error) {
    if (game !== current) return;
    notice(error.message, true);
    if (current.frame) {
      current.actions = current.frame.actions;
      draw();
    } else fill(side, problem(error));
  } finally {
    current.busy = false;
  }
}

function choose(one) {
  game.actions = [...game.actions, one.action];
  ask();
}

// Takes back to the last move of a person, the answers to it included.
function takeBack() {
  const mine = game.seats.map((name, at) => (name === "person" ? at : -1)).filter((at) => at >= 0);
  if (mine.length === game.seats.length) game.actions = game.actions.slice(0, -1);
  else game.actions = game.actions.slice(0, game.lastMine ?? 0);
  ask();
}

function draw() {
  const frame = game.frame;
  const newest = frame.ply === frame.plies;
  const mine = newest && !frame.over && game.seats[frame.seat] === "person";
  if (mine) {
    game.turns = (game.turns ?? []).filter((at) => at < frame.plies);
    game.lastMine = game.turns.at(-1) ?? 0;
    game.turns.push(frame.plies);
  }
  const shown = game.thoughts ? frame : { ...frame, favourites: [] };
  board.show(shown, { choices: mine ? frame.choices : [], onChoose: mine ? choose : null, view: game.view });
  const again = (ply) => ask(ply === frame.plies ? null : ply);
  fill(side,
    h("p", { role: "status", id: "status", "data-game": game.seed }, h("b", {}, verdict(frame)), mine ? " – your move" : ""),
    frame.value !== null && h("p", { class: "dim" }, `Value for ${frame.seats[frame.seat]}: ${number(frame.value)}`),
    h("div", { class: "row" },
      h("button", { type: "button", id: "back", disabled: !game.actions.length || !newest, onclick: takeBack }, "Take back"),
      game.judge && h("label", { class: "row small" }, h("input", { type: "checkbox", checked: game.thoughts, onchange: (event) => { game.thoughts = event.target.checked; draw(); } }), "Show its thoughts"),
      frame.exports && h("button", { type: "button", id: "export", onclick: save }, "Save as KIF"),
      frame.has_sides && h("button", { type: "button", onclick: () => { game.view = (game.view + 1) % game.seats.length; ask(newest ? null : frame.ply); } }, "Turn the board"),
    ),
    shown.favourites.length > 0 && favourites(shown),
    h("h3", {}, "Moves"),
    frame.moves.length ? moveList(frame, again) : h("p", { class: "dim small" }, "None yet. Choose a place on the board, or use the arrow keys and Enter."),
    !newest && h("button", { type: "button", onclick: () => ask() }, "Back to the game"),
    frame.text && h("label", { class: "field" }, "This position", h("input", { class: "mono", id: "sfen", readOnly: true, value: frame.text, onfocus: (event) => event.target.select() })),
  );
}

async function save() {
  try {
    const { run, game: name, options, seats, seed, actions } = game;
    await download("/api/play/record", "game.kif", { run, game: name, options, seats, seed, actions });
  } catch (error) {
    notice(error.message, true);
  }
}

async function begin() {
  header("play");
  const main = $("#main");
  try {
    [{ games }, { runs }] = await Promise.all([get("/api/games"), get("/api/runs")]);
  } catch (error) {
    return fill(main, problem(error));
  }
  fill(main, h("div", { class: "stack" }, h("h1", {}, "Play"), h("div", { class: "card", id: "setup-place" }), h("div", { class: "card game" }, board.element, side)));
  setup();
  $("#setup").requestSubmit();
}

begin();
