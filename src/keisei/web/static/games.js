// Finished games of a run: their list, and each of them move by move.
import { download, get } from "./api.js";
import { Board, favourites, moveList, verdict } from "./board.js";
import { empty, fill, h, number, percent, problem } from "./dom.js";

export function games(details, path, isWorld) {
  if (!details.games.length) return empty("No games are kept yet", h("span", {}, "The first games of each evaluation are kept."));
  return h("div", { class: "scroll tall" }, h("table", {},
    h("thead", {}, h("tr", {}, ["Update", ...(isWorld ? ["Played by", "With", "Score", "Turns"] : ["First", "Second", "Result", "Plies"]), "Ending", ""].map((title, at) => h("th", { class: at === 4 ? "num" : "" }, title)))),
    h("tbody", {}, details.games.slice(0, 40).map((game) => h("tr", {},
      h("td", {}, game.update), h("td", {}, game.first), h("td", {}, game.second),
      h("td", {}, isWorld ? percent(game.score) : game.score === 1 ? "1–0" : game.score === 0 ? "0–1" : "½–½"),
      h("td", { class: "num" }, game.plies), h("td", {}, game.ending.replaceAll("_", " ")),
      h("td", { class: "num" }, h("button", { type: "button", onclick: () => replay(game, path) }, "Replay")))))));
}

async function replay(game, path) {
  const board = new Board();
  const side = h("div", { class: "stack" });
  const slider = h("input", { type: "range", min: 0, max: game.plies, value: 0, "aria-label": "Ply" });
  const isRecord = !game.record.endsWith(".json");
  const note = h("p", { class: "dim small" });
  const step = (by) => goTo(Math.max(0, Math.min(+slider.max, +slider.value + by)));
  const dialog = h("dialog", { "aria-label": "Replay" }, h("div", { class: "stack" },
    h("div", { class: "row" }, h("h2", {}, `${game.first} – ${game.second}`), h("span", { class: "grow" }),
      isRecord && h("button", { type: "button", onclick: () => download(`${path}/record?record=${encodeURIComponent(game.record)}`, game.record.split("/").at(-1)) }, "Save the record"),
      h("button", { type: "button", onclick: () => dialog.close() }, "Close")),
    h("div", { class: "game" },
      h("div", { class: "stack" }, board.element, h("div", { class: "row" },
        h("button", { type: "button", "aria-label": "Back", onclick: () => step(-1) }, "‹"), slider,
        h("button", { type: "button", "aria-label": "Forward", onclick: () => step(1) }, "›"), note)),
      side)));
  slider.style.flex = "1";
  let wanted = 0;
  let judged = false;
  // The first judgement waits for the network to be loaded; the board does not.
  async function goTo(ply) {
    wanted = ply;
    slider.value = ply;
    if (!judged) await show(ply, "&judge=0");
    if (wanted === ply) await show(ply, "");
    judged = true;
  }
  async function show(ply, more) {
    try {
      const frame = await get(`${path}/replay?record=${encodeURIComponent(game.record)}&ply=${ply}${more}`);
      if (wanted !== ply) return;
      slider.max = frame.plies;
      board.show(frame);
      note.textContent = `ply ${frame.ply} of ${frame.plies}`;
      fill(side, h("p", {}, verdict(frame)), frame.value !== null && h("p", {}, `Value for ${frame.seats[frame.seat]}: `, h("b", {}, number(frame.value))), favourites(frame, frame.moves[frame.ply]), moveList(frame, goTo));
    } catch (error) {
      fill(side, problem(error));
    }
  }
  slider.addEventListener("input", () => goTo(+slider.value));
  // On the document: the button that had the focus is gone after a step.
  const keys = (event) => {
    if (event.target === slider) return;
    if (event.key === "ArrowLeft") step(-1);
    if (event.key === "ArrowRight") step(1);
  };
  document.addEventListener("keydown", keys);
  dialog.addEventListener("close", () => {
    document.removeEventListener("keydown", keys);
    dialog.remove();
  });
  document.body.append(dialog);
  dialog.showModal();
  goTo(0);
}
