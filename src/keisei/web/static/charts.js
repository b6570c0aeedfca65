// Curves over transitions, drawn by uPlot. Curves differ by colour and by dashes. A curve keeps its place among all, so
// one without numbers takes no colour from another.
import { count, h, number, percent, s } from "./dom.js";

const DASHES = [[], [8, 4], [2, 4], [10, 4, 2, 4], [4, 2], [14, 5]];
const LONGEST = 4000;
const all = new Set();
const resized = new ResizeObserver((entries) => entries.forEach((entry) => entry.target.chart.resize()));

window.addEventListener("theme", () => all.forEach((chart) => chart.draw()));

// The colour of a CSS variable as the canvas needs it, for the light or dark page of this moment.
function colour(name, alpha = 1) {
  const probe = h("i");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return alpha === 1 ? found : found.replace("rgb(", "rgba(").replace(")", `, ${alpha})`);
}

// The line of a curve as a sign in a legend.
export function swatch(place) {
  const line = s("line", { x1: 0, y1: 4, x2: 26, y2: 4, "stroke-width": 2.5, "stroke-dasharray": DASHES[place % 6].join(" ") });
  line.style.stroke = `var(--c${place % 6})`;
  return s("svg", { class: "swatch", viewBox: "0 0 26 8", "data-place": place }, line);
}

export class Chart {
  // curves: [{label, step, value, low, high}], all as arrays.
  constructor(title, { note = "", shares = false, height = 150, zero = false } = {}) {
    Object.assign(this, { title, shares, height, zero });
    this.curves = [];
    this.value = h("span", { class: "value" });
    this.plot = h("div", {});
    this.legend = h("div", { class: "legend" });
    this.element = h(
      "section",
      { class: "card chart" },
      h("header", {}, h("h3", {}, title), h("span", { class: "dim small" }, note), this.value),
      this.plot,
      this.legend,
    );
    this.plot.chart = this;
    resized.observe(this.plot);
    all.add(this);
  }

  set(curves) {
    this.curves = curves.map((curve, place) => ({ place, ...curve })).filter((curve) => curve.step.length);
    this.draw();
    return this;
  }

  push(label, points) {
    let curve = this.curves.find((one) => one.label === label);
    if (!curve) this.curves.push((curve = { label, place: this.curves.length, step: [], value: [], low: [], high: [] }));
    for (const [step, value] of points) {
      if (step <= (curve.step.at(-1) ?? -1)) continue;
      curve.step.push(step);
      for (const column of ["value", "low", "high"]) curve[column]?.push(value);
    }
    if (curve.step.length > LONGEST) for (const column of Object.values(curve)) if (Array.isArray(column)) column.splice(0, 500);
    clearTimeout(this.later);
    this.later = setTimeout(() => this.draw(), 100);
  }

  shown(value) {
    return this.shares ? percent(value, 1) : number(value);
  }

  resize() {
    const width = this.plot.clientWidth;
    if (this.uplot && width && width !== this.uplot.width) this.uplot.setSize({ width, height: this.height });
    else if (!this.uplot) this.draw();
  }

  draw() {
    const width = this.plot.clientWidth;
    this.uplot?.destroy();
    this.uplot = null;
    this.tell();
    if (!this.curves.length) {
      const box = h("div", { class: "nothing" }, "no numbers yet");
      box.style.height = `${this.height}px`;
      this.plot.replaceChildren(box);
      return;
    }
    if (!width) return;
    this.plot.replaceChildren();
    this.uplot = new uPlot(this.options(width), this.data(), this.plot);
  }

  // The last values, in the legend, in the heading, and for those who do not see the picture.
  tell() {
    const last = (curve) => curve.value.findLast((value) => value !== null);
    this.value.textContent = this.curves.length === 1 ? this.shown(last(this.curves[0])) : "";
    const words = this.curves.map((curve) => `${curve.label} ${this.shown(last(curve))}`);
    this.plot.setAttribute("role", "img");
    this.plot.setAttribute("aria-label", `${this.title}: ${words.join(", ") || "no numbers yet"}`);
    if (this.curves.length < 2 && !this.named) return this.legend.replaceChildren();
    this.legend.replaceChildren(
      ...this.curves.map((curve) => h("span", {}, swatch(curve.place), curve.label, h("b", { class: "num" }, this.shown(last(curve))))),
    );
  }

  data() {
    const steps = [...new Set(this.curves.flatMap((curve) => curve.step))].sort((a, b) => a - b);
    const columns = [steps];
    for (const curve of this.curves) {
      for (const name of ["value", "low", "high"]) {
        const at = new Map(curve.step.map((step, index) => [step, (curve[name] ?? curve.value)[index]]));
        columns.push(steps.map((step) => at.get(step)));
      }
    }
    return columns;
  }

  options(width) {
    const grid = { stroke: colour("--line"), width: 1 };
    const ink = colour("--dim");
    const font = "12px system-ui, sans-serif";
    const series = [{ label: "transitions" }];
    const bands = [];
    this.curves.forEach((curve, index) => {
      const stroke = colour(`--c${curve.place % 6}`);
      const points = { show: curve.step.length < 40, size: 5, fill: stroke };
      series.push({ label: curve.label, stroke, width: 2, dash: DASHES[curve.place % 6], points, spanGaps: true });
      series.push({ points: { show: false }, spanGaps: true }, { points: { show: false }, spanGaps: true });
      bands.push({ series: [3 * index + 3, 3 * index + 2], fill: colour(`--c${curve.place % 6}`, this.curves.length > 3 ? 0.1 : 0.18) });
    });
    const axis = { stroke: ink, grid, ticks: { show: false }, font };
    return {
      width,
      height: this.height,
      series,
      bands,
      padding: [8, 18, 0, 0],
      legend: { show: false },
      cursor: { drag: { x: true, y: false }, points: { size: 7 } },
      scales: { x: { time: false }, y: this.range() },
      axes: [
        { ...axis, size: 28, values: (_, ticks) => ticks.map(count) },
        { ...axis, size: 52, values: (_, ticks) => ticks.map((tick) => (this.shares ? percent(tick) : number(tick))) },
      ],
      hooks: { setCursor: [(plot) => this.point(plot)] },
    };
  }

  range() {
    if (this.shares) return { range: [0, 1.02] };
    if (!this.zero) return {};
    return { range: (_, low, high) => [Math.min(0, low), high > 0 ? 1.08 * high : 1] };
  }

  // The numbers under the pointer, in the heading.
  point(plot) {
    const at = plot.cursor.idx;
    if (at === null || at === undefined) return this.curves.length === 1 ? this.tell() : (this.value.textContent = "");
    const values = this.curves.map((curve, index) => plot.data[3 * index + 1][at]);
    const known = values.filter((value) => value !== null && value !== undefined).map((value) => this.shown(value));
    this.value.textContent = `${count(plot.data[0][at])}: ${known.join(" · ")}`;
  }
}
