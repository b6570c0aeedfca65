// The league of a run: who is in it, and how the learner fares against each. `keisei league` says the same in a terminal.
import { fold, h, percent, s } from "./dom.js";

const grouped = (value) => value.toLocaleString("en");
const together = (text) => text.replaceAll(" ", "\u00a0");
const games = (row) => (row.wins + row.draws + row.losses) / row.per_game;
const whole = (share) => (100 * share).toFixed(0);
const signed = (value) => `${value < -0.5 ? "−" : "+"}${Math.abs(value).toFixed(0)}`;

export function leagueCard(league) {
  if (!league) return null;
  return fold("league", "League", leagueParts(league));
}

export const leagueParts = (league) => [facts(league), members(league), league.matrix.length > 0 && matrix(league)];

function facts(league) {
  const worst = league.members.find((member) => member.number === league.worst);
  const list = [
    ["Members", `${grouped(league.size)} may be drawn, ${together(`${grouped(league.left)} left`)}`],
    ["Games", grouped(league.games)],
    ["Worst", worst ? `${worst.name} ${together(`with ${percent(worst.score, 1)}`)}` : "not known yet"],
    ["Forgotten", league.forgotten.length ? `${league.forgotten.length}: ${league.forgotten.join(", ")}` : "none"],
  ];
  return h("dl", { class: "facts" }, list.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

// ---- Members.

function members(league) {
  const heading = (title, kind = "") => h("th", { scope: "col", class: kind }, title);
  return [
    h("p", { class: "dim small" }, "The learner's score in its last games against each member, and the member's rating, with 95 % intervals."),
    h("div", { class: "scroll" }, h("table", { class: "members", "aria-label": "Members of the league" },
      h("thead", {}, h("tr", {}, heading("No"), heading("Member"), heading("Games", "num"), heading("Score", "num"), h("th", { class: "picture", "aria-hidden": "true" }), heading("Elo", "num"))),
      h("tbody", {}, league.members.map((one) => member(one, league.worst))))),
  ];
}

function member(one, worst) {
  const kind = one.kind === "snapshot" ? "" : one.kind;
  const about = [kind, one.number === worst && "worst", one.forgotten && "forgotten", !one.in_pool && "leaves"].filter(Boolean).join(", ");
  const played = games(one);
  return h("tr", { class: one.forgotten ? "forgotten" : "" },
    h("td", { class: "dim" }, one.number),
    h("th", { scope: "row" }, one.name, about && h("small", {}, ` ${about}`)),
    figure(grouped(played), one.recent_games < played && `last ${one.recent_games}`),
    one.score === null ? figure("–") : figure(percent(one.score), `${whole(one.low)} … ${whole(one.high)}`),
    h("td", { class: "picture", "aria-hidden": "true" }, one.score !== null && interval(one)),
    one.rating === null ? figure("–") : figure(signed(one.rating), `${signed(one.rating_low)} … ${signed(one.rating_high)}`),
  );
}

const figure = (text, more) => h("td", { class: "num" }, text, " ", h("small", {}, more || ""));

// The score and its interval on a line from 0 to 1, with a mark at one half.
function interval({ score, low, high }) {
  const line = (kind, x1, x2, y1, y2) => s("line", { class: kind, x1: 100 * x1, x2: 100 * x2, y1, y2, "vector-effect": "non-scaling-stroke" });
  return s("svg", { class: `interval ${score < 0.5 ? "below" : ""}`, viewBox: "0 0 100 18", preserveAspectRatio: "none" },
    line("track", 0, 1, 9, 9), line("track", 0.5, 0.5, 2, 16), line("span", low, high, 9, 9), line("span", score, score, 4, 14));
}

// ---- The win-rate matrix.

function matrix(league) {
  const cells = new Map(league.matrix.map((one) => [`${one.learner}\n${one.number}`, one]));
  const met = new Set(league.matrix.map((one) => one.number));
  const columns = league.members.filter((one) => one.in_pool && met.has(one.number));
  const learners = [...new Set(league.matrix.map((one) => one.learner))];
  return [
    h("p", { class: "dim small" }, "The learner after each snapshot (rows) against members (columns, by number): score in %, number of games. Blue is above half, orange below."),
    h("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": "Win-rate matrix" }, h("table", { class: "matrix" },
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Learner"), columns.map((one) => h("th", { scope: "col", title: one.name }, one.number)))),
      h("tbody", {}, learners.map((learner) => h("tr", {}, h("th", { scope: "row" }, learner), columns.map((one) => h("td", {}, cell(cells.get(`${learner}\n${one.number}`))))))))),
  ];
}

function cell(one) {
  if (!one) return h("span", { class: "dim" }, "·");
  const box = h("span", { title: `${one.wins}-${one.draws}-${one.losses}, 95 %: ${percent(one.low)} … ${percent(one.high)}` },
    `${whole(one.score)}±${whole((one.high - one.low) / 2)}`, h("small", {}, ` ${grouped(games(one))}`));
  const strength = Math.round(100 * Math.abs(one.score - 0.5));
  box.style.background = `color-mix(in oklab, var(--c${one.score >= 0.5 ? 0 : 1}) ${strength}%, var(--sunk))`;
  return box;
}
