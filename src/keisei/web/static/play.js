// A game against any player or checkpoint, or one to watch. The server knows the rules; the page holds the moves.
import { addressOf, gameAt, playedAt } from "./address.js";
import { download, get, header, post } from "./api.js";
import { Board, favourites, moveList, valueText, verdict } from "./board.js";
import { $, fill, h, notice, number, problem } from "./dom.js";

const board = new Board();
const side = h("div", { class: "stack" });
const setupPlace = h("div", { class: "stack" });
const trouble = h("div", { class: "trouble" });
const card = h("div", { class: "card game" }, board.element, side);

let games = []; // those with a name
let runs = []; // the one that was seen last first
let played = {}; // {run} or {game}: what this page plays
let offer = null; // how it can be played
let trained = []; // the runs with checkpoints of this game
let game = null; // what is shown
let asking = null; // the question that the server has not answered yet
let isWatching = false; // steps follow by themselves

const DEPTHS = { "search:1": "search, 1 ply", "search:2": "search, 2 plies", "search:3": "search, 3 plies" };
const USUAL_GAME = "connect-four";
const PERSON = "person";
const BETWEEN_STEPS = 600; // milliseconds
const MOST_RETURNS = 12; // of more seats, only that of the one that looks is shown
const WAYS = { ArrowUp: ["up", "north"], ArrowDown: ["down", "south"], ArrowLeft: ["left", "west"], ArrowRight: ["right", "east"] };

// ---- What is played.

const updateOf = (name) => +name.split("-")[1];
const isPlayed = (run) => run.transitions !== null;
const shortName = (name) => name?.split("/").at(-1) ?? "?"; // games of one's own are named by their whole path

function menuOfGames() {
  const known = runs.filter((run) => isPlayed(run) || run.name === played.run);
  const select = h("select", { id: "game", onchange: () => {
    const [kind, ...name] = select.value.split(" ");
    go({ [kind]: name.join(" ") });
  } },
    known.length > 0 && h("optgroup", { label: "As a run was trained" }, known.map((run) => h("option", { value: `run ${run.name}` }, `${run.name} (${shortName(run.game)})`))),
    h("optgroup", { label: "Games" }, games.map((one) => h("option", { value: `game ${one.name}` }, one.name))),
  );
  select.value = played.run ? `run ${played.run}` : `game ${played.game}`;
  return h("label", { class: "field" }, "Game", select);
}

function menuOfOpponents() {
  const of = ({ run, best, checkpoints }) => h("optgroup", { label: run },
    h("option", { value: `${run}@latest` }, `${run}, newest weights (update ${updateOf(checkpoints[0])})`),
    best && h("option", { value: `${run}@best` }, `${run}, best (update ${updateOf(best)})`),
    checkpoints.map((name) => h("option", { value: `${run}@${name}` }, `${run}, ${name.replace(/-0*(?=\d)/, " ")}`)),
  );
  const canBeTwo = offer.seats.length > 1 && !offer.at_once;
  return h("select", { id: "opponent" },
    trained.map(of),
    h("optgroup", { label: "Without a network" }, offer.players.map((name) => h("option", { value: name }, DEPTHS[name] ?? name))),
    canBeTwo && h("option", { value: PERSON }, "another person, here"),
  );
}

function usualOpponent() {
  const own = trained.find((one) => one.run === played.run);
  return own ? `${own.run}@${own.best ? "best" : "latest"}` : offer.players[0];
}

function setup(shown) {
  const opponent = menuOfOpponents();
  opponent.value = shown.opponent;
  const seat = h("select", { id: "side" }, offer.seats.map((name, at) => h("option", { value: at }, name)), h("option", { value: "" }, "nobody: watch"));
  seat.value = shown.you ?? "";
  const sfen = h("input", { id: "start", class: "mono", placeholder: "startpos, or an SFEN", value: shown.options.start ?? "" });
  const players = h("select", { id: "players" }, [2, 3, 4].map((count) => h("option", { value: count }, `${count} players`)));
  players.value = shown.options.players ?? offer.seats.length;
  const canChoose = (name) => offer.options.includes(name);
  const begin = (event) => {
    event.preventDefault();
    const options = {};
    if (canChoose("start") && sfen.value.trim()) options.start = sfen.value.trim();
    if (canChoose("players")) options.players = +players.value;
    start({ opponent: opponent.value, you: seat.value === "" ? null : +seat.value, options });
  };
  fill(setupPlace, h("form", { class: "row", id: "setup", onsubmit: begin },
    menuOfGames(),
    h("label", { class: "field" }, offer.seats.length > 1 ? "Against" : "Player", opponent),
    h("label", { class: "field" }, "You are", seat),
    canChoose("start") && h("label", { class: "field grow" }, "Position", sfen),
    canChoose("players") && h("label", { class: "field" }, "Players", players),
    h("button", { class: "main" }, "New game"),
  ));
}

function tell(error) {
  fill(trouble, problem(error));
}

// Opens what the address names: another game, or another position of this one.
async function open() {
  [game, asking, isWatching] = [null, null, false];
  fill(trouble);
  played = playedAt(location);
  if (!played.run && !played.game) {
    const newest = runs.find(isPlayed);
    played = newest ? { run: newest.name } : { game: USUAL_GAME };
  }
  document.title = `${played.run ?? played.game} – Play – Keisei`;
  card.hidden = true;
  fill(setupPlace, h("div", { class: "row" }, menuOfGames()));
  const wanted = played;
  try {
    const found = await offered(wanted);
    if (wanted !== played) return; // another one was opened meanwhile
    [offer, trained] = found;
  } catch (error) {
    if (wanted === played) tell(error);
    return;
  }
  const kept = gameAt(location);
  const begun = { you: 0, opponent: usualOpponent(), options: usualOptions(), seed: newSeed(), actions: [], ply: null };
  setup(kept ?? begun);
  if (!kept) return show(begun);
  // Players do not go on by themselves where a game is only brought back.
  await show(kept, { at: kept.ply ?? (kept.you === null ? kept.actions.length : null) });
}

const newSeed = () => Math.floor(Math.random() * 1e9);
const usualOptions = () => (offer.options.includes("players") ? { players: offer.seats.length } : {});

async function offered(wanted) {
  const known = games.find((one) => one.name === wanted.game);
  if (wanted.game && !known) throw new Error(`No game is named “${wanted.game}”. Games are ${games.map((one) => one.name).join(", ")}.`);
  const one = known ?? (await get(`/api/games?run=${encodeURIComponent(wanted.run)}`)).games[0];
  const name = runs.find((run) => run.name === wanted.run)?.game ?? one.name;
  const { runs: found } = await get(`/api/players?game=${encodeURIComponent(name)}`);
  return [one, found.sort((a, b) => (b.run === wanted.run) - (a.run === wanted.run))];
}

function go(next) {
  history.pushState(null, "", addressOf(next));
  open();
}

// ---- The game.

function seatsOf({ you, opponent, options }) {
  return Array.from({ length: options.players ?? offer.seats.length }, (_, at) => (at === you ? PERSON : opponent));
}

// A network knows only games with the options that it was trained with.
function judgeOf({ opponent }) {
  if (opponent.includes("@")) return opponent;
  const known = trained.find((one) => (played.run ? one.run === played.run : !Object.keys(one.options).length));
  return known ? `${known.run}@latest` : "";
}

function start(chosen) {
  isWatching = false;
  show({ ...chosen, seed: newSeed(), actions: [], ply: null }, { isNew: true, at: chosen.you === null ? 0 : null });
}

// Asks the server for a game, and shows it. If it is refused, the game before stays. Only a new game is asked for while
// another answer is still to come, which is then not shown.
async function show(next, { at = null, chosen = null, isNew = false } = {}) {
  if (asking && !isNew) return;
  const question = (asking = {});
  try {
    const seats = seatsOf(next);
    const view = next.view ?? next.you ?? 0;
    const body = { ...played, options: next.options, seats, view, seed: next.seed, actions: next.actions, judge: judgeOf(next), chosen, at };
    const frame = await post("/api/play", body);
    if (asking !== question) return;
    fill(trouble);
    const isNewest = frame.ply === frame.plies;
    game = { ...next, seats, view, frame, actions: frame.actions, ply: isNewest ? null : frame.ply, thoughts: game?.thoughts ?? false };
    keep(isNew);
  } catch (error) {
    if (asking !== question) return;
    isWatching = false;
    tell(error);
  } finally {
    if (asking === question) asking = null;
  }
  card.hidden = !game;
  if (game) draw();
  if (isWatching) setTimeout(step, BETWEEN_STEPS);
}

// Keeps the game in the address. Only a new game is a step for Back, so that Back leaves a game after any number of moves.
function keep(isNew) {
  const address = addressOf(played, game);
  if (isNew) history.pushState(null, "", address);
  else history.replaceState(null, "", address);
}

const choose = (choice) => show(game, { chosen: choice.action });
const lookAt = (ply) => show(game, { at: ply });
const takeBack = () => show({ ...game, actions: game.actions.slice(0, game.frame.before) }, game.you === null ? { at: game.frame.plies } : {});

// Lets the players of a game that is watched make one step.
function step() {
  if (game?.you !== null || game.frame.over) isWatching = false;
  else return show(game);
  if (game) draw();
}

function watch() {
  isWatching = !isWatching;
  if (isWatching) step();
  else draw();
}

function draw() {
  const { frame } = game;
  const isNewest = frame.ply === frame.plies;
  const isMine = isNewest && !frame.over && game.seats[frame.seat] === PERSON;
  const shown = game.thoughts ? frame : { ...frame, favourites: [] };
  board.show(shown, { choices: isMine ? frame.choices : [], onChoose: isMine ? choose : null, view: game.view });
  fill(side,
    h("p", { role: "status", id: "status", "data-game": game.seed }, h("b", {}, verdict(frame)), isMine ? " – your move" : ""),
    frame.value !== null && h("p", { class: "dim", id: "value" }, valueText(frame, game.view)),
    returns(frame),
    h("div", { class: "row" }, buttons(frame, isNewest)),
    shown.favourites.length > 0 && favourites(shown),
    h("h3", {}, "Moves"),
    frame.moves.length ? moveList(frame, lookAt) : h("p", { class: "dim small" }, hint(isMine, frame)),
    !isNewest && h("button", { type: "button", onclick: () => lookAt(frame.plies) }, "Back to the game"),
    frame.text && h("label", { class: "field" }, "This position", h("input", { class: "mono", id: "sfen", readOnly: true, value: frame.text, onfocus: (event) => event.target.select() })),
  );
}

function hint(isMine, frame) {
  if (!isMine) return "None yet. Press Step or Watch.";
  const onBoard = frame.choices.some((choice) => choice.places.length);
  return onBoard ? "None yet. Choose a place on the board, or use the arrow keys and Enter." : "None yet. Choose one of the moves below the board.";
}

function buttons(frame, isNewest) {
  const judged = judgeOf(game);
  return [
    game.you === null && !frame.over && isNewest && [
      h("button", { type: "button", id: "watch", class: "main", onclick: watch }, isWatching ? "Pause" : "Watch"),
      h("button", { type: "button", id: "step", disabled: isWatching, onclick: step }, "Step"),
    ],
    h("button", { type: "button", id: "back", disabled: !game.actions.length || !isNewest || isWatching, onclick: takeBack }, "Take back"),
    judged && h("label", { class: "row small" }, h("input", { type: "checkbox", checked: game.thoughts, onchange: (event) => { game.thoughts = event.target.checked; draw(); } }), "Show its thoughts"),
    frame.exports && h("button", { type: "button", id: "export", onclick: save }, "Save as KIF"),
    frame.has_sides && h("button", { type: "button", onclick: () => show({ ...game, view: (game.view + 1) % game.seats.length }, { at: frame.ply }) }, "Turn the board"),
  ];
}

// What each seat has got so far, in games that count it.
function returns(frame) {
  if (!frame.returns.some((value) => value !== 0)) return null;
  const all = frame.seats.map((name, at) => `${name}: ${number(frame.returns[at])}`);
  const shown = all.length > MOST_RETURNS ? [all[game.view]] : all;
  return h("p", { class: "dim small", id: "returns" }, `So far: ${shown.join(", ")}`);
}

async function save() {
  try {
    const { options, seats, seed, actions } = game;
    await download("/api/play/record", "game.kif", { ...played, options, seats, seed, actions });
  } catch (error) {
    notice(error.message, true);
  }
}

// Arrow keys choose moves that are named like them, as in worlds, where the board itself has no places.
function steer(event) {
  if (!board.onChoose || event.target.closest?.("input, select, textarea, dialog, [data-place]")) return;
  const names = WAYS[event.key] ?? [];
  const choice = board.choices.find((one) => !one.places.length && names.includes(one.name.toLowerCase()));
  if (!choice) return;
  event.preventDefault();
  board.onChoose(choice);
}

async function begin() {
  header("play");
  const main = $("#main");
  try {
    [{ games }, { runs }] = await Promise.all([get("/api/games"), get("/api/runs")]);
  } catch (error) {
    return fill(main, problem(error));
  }
  runs.sort((a, b) => (b.last_seen ?? 0) - (a.last_seen ?? 0));
  fill(main, h("div", { class: "stack" }, h("h1", {}, "Play"), h("div", { class: "card stack" }, setupPlace, trouble), card));
  document.addEventListener("keydown", steer);
  window.addEventListener("popstate", open);
  await open();
}

begin();
