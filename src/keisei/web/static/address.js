// A game in the address of the page, so that a reload, Back and a copied link bring it back. What is played is the query,
// since the server's own links use it; the game itself comes after #, which browsers never send.

const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const DIGIT_BITS = 6;
const NAMES = ["start", "players"]; // the options that a person may choose

// Packs actions into as few bits as the largest of them needs. The first digit says how many these are.
export function packActions(actions) {
  if (!actions.length) return "";
  const largest = actions.reduce((one, other) => Math.max(one, other), 1);
  const width = largest.toString(2).length;
  const bits = `${actions.map((action) => action.toString(2).padStart(width, "0")).join("")}1`; // the 1 ends them
  const whole = bits.padEnd(Math.ceil(bits.length / DIGIT_BITS) * DIGIT_BITS, "0");
  let text = DIGITS[width];
  for (let at = 0; at < whole.length; at += DIGIT_BITS) text += DIGITS[parseInt(whole.slice(at, at + DIGIT_BITS), 2)];
  return text;
}

export function unpackActions(text) {
  const numbers = [...text].map((digit) => DIGITS.indexOf(digit));
  const width = numbers.shift();
  if (!width || numbers.includes(-1)) return [];
  const bits = numbers.map((number) => number.toString(2).padStart(DIGIT_BITS, "0")).join("");
  const end = bits.lastIndexOf("1");
  const actions = [];
  for (let at = 0; at + width <= end; at += width) actions.push(parseInt(bits.slice(at, at + width), 2));
  return actions;
}

// What is played: {run} or {game}; neither if the address does not say.
export function playedAt(place) {
  const query = new URLSearchParams(place.search);
  return query.get("run") ? { run: query.get("run") } : query.get("game") ? { game: query.get("game") } : {};
}

// The game: who plays, and its moves; null if the address holds none. `ply` is null where the newest position is shown.
export function gameAt(place) {
  const kept = new URLSearchParams(place.hash.slice(1));
  if (!kept.has("seed")) return null;
  const options = {};
  for (const name of NAMES) if (kept.has(name)) options[name] = name === "players" ? +kept.get(name) : kept.get(name);
  return {
    you: kept.has("you") ? +kept.get("you") : null,
    opponent: kept.get("against") ?? "random",
    options,
    seed: +kept.get("seed") || 0,
    actions: unpackActions(kept.get("moves") ?? ""),
    ply: kept.has("ply") ? +kept.get("ply") : null,
  };
}

export function addressOf(played, game = null) {
  const query = new URLSearchParams(played);
  if (!game) return `/play?${query}`;
  const kept = new URLSearchParams();
  if (game.you !== null) kept.set("you", game.you);
  kept.set("against", game.opponent);
  for (const [name, value] of Object.entries(game.options)) kept.set(name, value);
  kept.set("seed", game.seed);
  if (game.actions.length) kept.set("moves", packActions(game.actions));
  if (game.ply !== null) kept.set("ply", game.ply);
  return `/play?${query}#${kept}`;
}
