// Small helpers: elements, numbers as text, requests. Texts always go through textContent, so names are never markup.

export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "class") element.className = value;
    else if (name in element && !name.includes("-") && name !== "list") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(9).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export function s(tag, props = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(props)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

export const $ = (selector, root = document) => root.querySelector(selector);

export function fill(host, ...children) {
  host.replaceChildren(...children.flat(9).filter(Boolean));
  return host;
}

// Changes only what differs, so that a button stays under the pointer and keeps the focus. It is for parts that `h` has
// made and that nobody else holds.
export function amend(host, ...children) {
  amendChildren(host, h("div", {}, ...children));
}

function amendChildren(host, wanted) {
  const old = [...host.childNodes];
  const fresh = [...wanted.childNodes];
  fresh.forEach((node, at) => {
    const there = old[at];
    if (!there) host.append(node);
    else if (isAlike(there, node)) become(there, node);
    else if (!there.isEqualNode(node)) there.replaceWith(node);
  });
  old.slice(fresh.length).forEach((node) => node.remove());
}

function isAlike(there, node) {
  return there.nodeType === Node.ELEMENT_NODE && there.nodeName === node.nodeName && there.dataset.action === node.dataset.action;
}

function become(there, wanted) {
  for (const { name } of [...there.attributes]) if (!wanted.hasAttribute(name)) there.removeAttribute(name);
  for (const { name, value } of wanted.attributes) if (name !== "style" && there.getAttribute(name) !== value) there.setAttribute(name, value);
  there.style.cssText = wanted.style.cssText; // the attribute itself is refused by the content security policy
  there.onclick = wanted.onclick;
  amendChildren(there, wanted);
}

// A card that folds. Whether it is open is remembered until the tab is closed; on a phone it begins closed, unless it is
// what people come for.
export function fold(id, title, content, { always = false, after = null } = {}) {
  const key = `keisei-fold-${id}`;
  const known = sessionStorage.getItem(key);
  const open = known === null ? always || !matchMedia("(max-width: 640px)").matches : known === "open";
  const card = h("details", { class: "card fold", id, open },
    h("summary", {}, h("h2", {}, title), after), h("div", { class: "stack body", role: "region", "aria-label": title }, content));
  card.addEventListener("toggle", () => {
    if (card.isConnected) sessionStorage.setItem(key, card.open ? "open" : "closed");
  });
  return card;
}

// Every part of a run's name is a part of the address.
export const runPage = (name) => `/run/${name.split("/").map(encodeURIComponent).join("/")}`;
export const folderOf = (name) => name.split("/").slice(0, -1).join("/");
export const meanPage = (folder) => `/compare?folder=${encodeURIComponent(folder)}`;

// ---- Numbers as text.

export const counted = (value, thing) => `${value.toLocaleString("en")} ${thing}${value === 1 ? "" : "s"}`;

export function count(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  for (const [least, unit, letter] of [[1e9, 1e9, "B"], [1e6, 1e6, "M"], [1e4, 1e3, "k"]]) {
    if (size >= least) return `${trim(value / unit)}${letter}`;
  }
  return Math.round(value).toLocaleString("en");
}

const trim = (value) => (Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(3).replace(/\.?0+$/, ""));

export function number(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1e4) return count(value);
  if (size >= 100) return value.toFixed(0);
  if (size !== 0 && size < 1e-3) return value.toExponential(1);
  return String(+value.toPrecision(3));
}

export const percent = (value, digits = 0) =>
  value === null || value === undefined ? "–" : `${(100 * value).toFixed(digits)} %`;

export function bytes(value) {
  if (!value) return "–";
  return value >= 1 << 30 ? `${(value / (1 << 30)).toFixed(1)} GB` : `${Math.round(value / (1 << 20))} MB`;
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "–";
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  if (whole < 86400) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
  return `${Math.floor(whole / 86400)} d ${Math.floor((whole % 86400) / 3600)} h`;
}

export const ago = (time) => (time ? `${duration(Math.max(0, Date.now() / 1000 - time))} ago` : "–");

const SIGNS = { running: "●", paused: "❚❚", finished: "✓", interrupted: "◐", failed: "✕", created: "○", unreadable: "✕" };
export const state = (name) =>
  h("span", { class: `state ${name}`, "data-sign": SIGNS[name] ?? "·" }, name);

// ---- Messages.

export function notice(text, bad = false) {
  const box = h("div", { class: `notice${bad ? " bad" : ""}`, role: bad ? "alert" : "status" }, text);
  $(".notice")?.remove();
  document.body.append(box);
  setTimeout(() => box.remove(), 6000);
}

export const problem = (error) =>
  h("p", { class: "problem", role: "alert" }, error instanceof Error ? error.message : String(error));

export const empty = (title, ...rest) => h("div", { class: "empty" }, h("strong", {}, title), ...rest);
