// A board of any game: the server's picture, places that can be clicked or reached by keys, and what a policy thinks.
import { fill, h, number, percent, s } from "./dom.js";

const sheets = new Map();

// The style of a game's pictures, below a class of its own. It is not inline, so the page needs no such permission.
function dress(look) {
  const name = `face-${look.name.replace(/[^a-z0-9-]/gi, "-")}`;
  if (!sheets.has(name)) {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(`.${name} { ${look.css} }`);
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
    sheets.set(name, sheet);
  }
  return name;
}

export class Board {
  constructor() {
    this.bar = h("i");
    this.valuebar = h("div", { class: "valuebar", role: "img", hidden: true }, this.bar);
    this.face = h("div", { class: "face" });
    this.caption = h("pre", { class: "caption" });
    this.legend = h("ul", { class: "letters" });
    this.list = h("div", { class: "choices" });
    this.picture = h("div", { class: "board" }, this.valuebar, this.face);
    this.element = h("div", { class: "stack" }, this.picture, this.caption, this.legend, this.list);
    this.face.addEventListener("keydown", (event) => this.key(event));
    this.face.addEventListener("click", (event) => {
      const name = event.target.closest?.("[data-place]")?.dataset.place;
      if (name) this.press(name);
    });
  }

  // frame: {svg, caption, legend, look, seat, seats, value, is_duel, scale, favourites}; choices: what may be played now.
  show(frame, { choices = [], onChoose = null, view = 0, arrows = true } = {}) {
    const focused = this.face.contains(document.activeElement) ? document.activeElement.dataset.place : null;
    Object.assign(this, { choices, onChoose, picked: [] });
    this.face.className = `face ${dress(frame.look)}`;
    const parsed = frame.svg ? new DOMParser().parseFromString(frame.svg, "image/svg+xml").documentElement : "";
    this.face.replaceChildren(parsed && document.importNode(parsed, true));
    this.picture.hidden = !parsed;
    this.explain(frame);
    this.places = [...this.face.querySelectorAll("[data-place]")];
    this.places.forEach((place) => place.setAttribute("tabindex", -1));
    if (arrows) (frame.favourites ?? []).slice(0, 3).forEach((one) => this.arrow(one));
    this.value(frame, view);
    const plain = onChoose ? choices.filter((choice) => !choice.places.length) : [];
    this.offer(plain);
    this.hint();
    const first = this.at(focused) ?? this.at(choices[0]?.places[0]) ?? this.places[0];
    if (onChoose && first) {
      first.setAttribute("tabindex", 0);
      if (focused) first.focus();
    }
  }

  // What the batch of a game without pictures says, and what its letters mean.
  explain({ caption = "", legend = [] }) {
    this.caption.textContent = caption;
    this.caption.hidden = !caption;
    this.legend.hidden = !legend.length;
    fill(this.legend, legend.map(({ letter, name, colour }) => {
      const sign = h("b", {}, letter);
      sign.style.background = colour;
      return h("li", {}, sign, name);
    }));
  }

  // Choices that have no place are a list. A button keeps the focus if it is offered again.
  offer(choices) {
    const focused = this.list.contains(document.activeElement) ? document.activeElement.textContent : null;
    fill(this.list, choices.map((choice) => h("button", { type: "button", onclick: () => this.onChoose(choice) }, choice.label || choice.name)));
    [...this.list.children].find((button) => button.textContent === focused)?.focus();
  }

  at(name) {
    return this.places?.find((place) => place.dataset.place === name);
  }

  value(frame, view) {
    const text = valueText(frame, view);
    this.valuebar.hidden = !text || scaleOf(frame) === "return"; // which has no ends
    this.bar.style.height = `${100 * share(frame, view)}%`;
    this.valuebar.setAttribute("aria-label", text);
    this.valuebar.title = text;
  }

  middle(name) {
    const place = this.at(name);
    if (!place) return null;
    const box = { x: +place.getAttribute("x"), y: +place.getAttribute("y"), w: +place.getAttribute("width"), t: +place.getAttribute("height") };
    return { x: box.x + box.w / 2, y: box.y + box.t / 2, r: Math.min(box.w, box.t) / 2, host: place.parentNode };
  }

  arrow({ places, probability }) {
    const [from, to] = [this.middle(places[0]), this.middle(places.at(-1))];
    if (!from || !to || probability < 0.02) return;
    const opacity = 0.25 + 0.55 * probability;
    if (places.length === 1) {
      from.host.append(s("circle", { class: "ring", cx: from.x, cy: from.y, r: from.r * 0.9, "stroke-opacity": opacity }));
      return;
    }
    const [dx, dy] = [to.x - from.x, to.y - from.y];
    const length = Math.hypot(dx, dy) || 1;
    const [ux, uy] = [dx / length, dy / length];
    const tip = { x: to.x - ux * 4, y: to.y - uy * 4 };
    const back = { x: tip.x - ux * 14, y: tip.y - uy * 14 };
    const line = s("line", { class: "arrow", x1: from.x, y1: from.y, x2: back.x, y2: back.y, "stroke-width": 3 + 5 * probability, opacity });
    const head = s("path", { class: "head", opacity, d: `M${tip.x} ${tip.y}L${back.x - uy * 8} ${back.y + ux * 8}L${back.x + uy * 8} ${back.y - ux * 8}Z` });
    from.host.append(line, head);
  }

  // ---- Choosing.

  open() {
    return this.onChoose ? this.choices.filter((choice) => this.picked.every((name, at) => choice.places[at] === name)) : [];
  }

  hint() {
    this.face.querySelectorAll(".hint").forEach((dot) => dot.remove());
    const next = new Set(this.open().map((choice) => choice.places[this.picked.length]));
    const first = new Set(this.onChoose ? this.choices.map((choice) => choice.places[0]) : []);
    for (const place of this.places) {
      const name = place.dataset.place;
      place.classList.toggle("can", next.has(name) || first.has(name));
      place.classList.toggle("from", this.picked.includes(name));
      if (this.picked.length && next.has(name)) {
        const at = this.middle(name);
        at.host.append(s("circle", { class: "hint", cx: at.x, cy: at.y, r: at.r * 0.32 }));
      }
    }
  }

  press(name) {
    if (!this.onChoose) return;
    const depth = this.picked.length;
    let next = this.open().filter((choice) => choice.places[depth] === name);
    if (next.length) this.picked.push(name);
    else {
      next = this.picked.at(-1) === name ? [] : this.choices.filter((choice) => choice.places[0] === name);
      this.picked = next.length ? [name] : [];
    }
    const whole = next.filter((choice) => choice.places.length === this.picked.length);
    this.hint();
    if (whole.length && whole.length === next.length) this.decide(whole);
  }

  decide(choices) {
    this.picked = [];
    if (choices.length === 1) return this.onChoose(choices[0]);
    const choose = this.onChoose;
    const dialog = h("dialog", { "aria-label": "Which move?" }, h("form", { method: "dialog" },
      h("h2", {}, "Which move?"),
      h("div", { class: "row" }, choices.map((choice, at) => h("button", { class: at ? "" : "main", onclick: () => choose(choice) }, choice.label || choice.name))),
      h("button", { class: "quiet" }, "Cancel"),
    ));
    dialog.addEventListener("close", () => (dialog.remove(), this.hint()));
    document.body.append(dialog);
    dialog.showModal();
  }

  key(event) {
    const place = event.target.closest?.("[data-place]");
    if (!place) return;
    const ways = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (event.key === "Enter" || event.key === " ") this.press(place.dataset.place);
    else if (event.key === "Escape" && this.picked.length) {
      this.picked = [];
      this.hint();
    } else if (event.key in ways) this.move(place, ...ways[event.key]);
    else return;
    event.preventDefault();
  }

  // Moves the focus to the nearest place in a direction.
  move(place, right, down) {
    const [x, y] = [+place.dataset.x, +place.dataset.y];
    let best = null;
    for (const other of this.places) {
      const [dx, dy] = [+other.dataset.x - x, +other.dataset.y - y];
      const along = dx * right + dy * down;
      const distance = along + 3 * Math.abs(dx * down + dy * right);
      if (along > 0.01 && (!best || distance < best.distance)) best = { other, distance };
    }
    if (!best) return;
    place.setAttribute("tabindex", -1);
    best.other.setAttribute("tabindex", 0);
    best.other.focus();
  }
}

// ---- What a policy thinks: its value as a text, and its favourite moves as a list.

const scaleOf = (frame) => frame.scale ?? (frame.is_duel ? "chance" : "return");

// A value between -1, a loss, and 1, a win, as a share of 1. In a duel it is that of the seat that looks.
function share(frame, view) {
  const mine = scaleOf(frame) !== "chance" || frame.seat === view ? frame.value : -frame.value;
  return (1 + Math.max(-1, Math.min(1, mine))) / 2;
}

// Says what a value means, with its scale: who wins with which chance, or what a seat can expect.
export function valueText(frame, view = 0) {
  if (frame.value === null || frame.value === undefined) return "";
  const scale = scaleOf(frame);
  if (scale === "chance") return `${frame.seats[view]} wins ${percent(share(frame, view))}`;
  const whose = frame.seats[frame.seat];
  if (scale === "score") return `Expected score of ${whose}: ${number(frame.value)} (a win is 1, a loss is negative)`;
  return `Expected return of ${whose} from here on: ${number(frame.value)}`;
}

export function favourites(frame, played = null) {
  if (!frame.favourites?.length) return null;
  return h("div", {},
    h("h3", {}, "Favourite moves"),
    h("ol", { class: "favourites" }, frame.favourites.map((one) => {
      const bar = h("i");
      bar.style.width = `${100 * one.probability}%`;
      const name = one.name + (one.name === played ? " ✓" : "");
      return h("li", { class: one.name === played ? "played" : "" }, h("span", {}, name), h("span", { class: "bar", "aria-hidden": "true" }, bar), h("span", { class: "num" }, percent(one.probability)));
    })),
  );
}

export function moveList(frame, goTo) {
  const list = h("div", { class: "moves", role: "group", "aria-label": "Moves" },
    frame.moves.map((name, at) => h("button", { type: "button", "aria-current": at + 1 === frame.ply ? "true" : undefined, onclick: () => goTo(at + 1) }, `${at + 1}. ${name}`)));
  queueMicrotask(() => {
    const now = list.querySelector("[aria-current]");
    if (now) list.scrollTop = now.offsetTop - list.offsetTop - 60;
  });
  return list;
}

export function verdict(frame) {
  const isAtOnce = frame.acting?.length > 1;
  if (!frame.result) return isAtOnce || frame.seats.length < 2 ? `Turn ${frame.ply + 1}` : `${frame.seats[frame.seat]} to move`;
  const { winner, ending, scores } = frame.result;
  const all = frame.is_duel || winner !== null ? "" : ` (${scores.map(number).join(", ")})`;
  if (frame.scale === "return" && winner === null) return `The game is over: ${ending}${all}`;
  return winner === null ? `A draw or no result: ${ending}${all}` : `${frame.seats[winner]} wins: ${ending}`;
}
