// Requests to the server. The token comes in the address after #, which browsers never send, and goes into a header.
import { $, h, notice, s } from "./dom.js";

const KEY = "keisei-token";
const hidden = new URLSearchParams(location.hash.slice(1));
const given = hidden.get("token");
if (given) {
  sessionStorage.setItem(KEY, given);
  hidden.delete("token");
  history.replaceState(null, "", location.pathname + location.search + (hidden.size ? `#${hidden}` : ""));
}

const token = () => sessionStorage.getItem(KEY);
const headers = () => (token() ? { authorization: `Bearer ${token()}` } : {});

export class Refused extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

async function answered(response) {
  if (response.ok) return response;
  let text = response.statusText;
  try {
    text = (await response.json()).error ?? text;
  } catch {
    // not JSON: the status says enough
  }
  throw new Refused(response.status, text || `the server answered ${response.status}`);
}

async function ask(path, options = {}) {
  try {
    return await answered(await fetch(path, { ...options, headers: { ...headers(), ...options.headers } }));
  } catch (error) {
    if (error instanceof Refused && error.status === 401 && token()) sessionStorage.removeItem(KEY);
    if (error instanceof TypeError) throw new Error("The server does not answer. Is keisei serve still running?");
    throw error;
  }
}

export const get = async (path) => (await ask(path)).json();

const sent = (path, body) =>
  ask(path, { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" } });

export const post = async (path, body) => (await sent(path, body)).json();

export async function download(path, name, body = undefined) {
  const response = body === undefined ? await ask(path) : await sent(path, body);
  const link = h("a", { href: URL.createObjectURL(await response.blob()), download: name });
  link.click();
  URL.revokeObjectURL(link.href);
}

// Server-sent events by fetch, since EventSource cannot send a header. The connection is renewed when it breaks.
export async function stream(path, onEvent) {
  const line = $("#line");
  for (let wait = 1; ; wait = Math.min(30, 2 * wait)) {
    try {
      const response = await ask(path);
      line.className = "line live";
      line.textContent = "live";
      wait = 1;
      await readEvents(response.body, onEvent);
    } catch (error) {
      if (error instanceof Refused && error.status !== 503) return;
    }
    line.className = "line lost";
    line.textContent = "connection lost, trying again";
    await new Promise((done) => setTimeout(done, 1000 * wait));
  }
}

async function readEvents(body, onEvent) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ""; ; ) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) if (block.startsWith("data: ")) onEvent(JSON.parse(block.slice(6)));
  }
}

// ---- The token by hand, and the buttons of the header.

export function askForToken() {
  const field = h("input", { type: "password", autocomplete: "off", class: "mono", required: true });
  const dialog = h(
    "dialog",
    { "aria-label": "Token" },
    h(
      "form",
      {
        class: "wide",
        onsubmit: async (event) => {
          event.preventDefault();
          sessionStorage.setItem(KEY, field.value.trim());
          try {
            await get("/api/session");
            location.reload();
          } catch (error) {
            notice(error.message, true);
          }
        },
      },
      h("h2", {}, "The token of this server"),
      h("p", { class: "dim small" }, "The terminal in which keisei serve runs shows it. It is kept until this tab is closed."),
      h("label", { class: "field" }, "Token", field),
      h("div", { class: "row" }, h("button", { class: "main" }, "Use it"), h("button", { type: "button", onclick: () => dialog.close() }, "Cancel")),
    ),
  );
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

export const isTrusted = async () => (await get("/api/session")).trusted;

export function header(page) {
  $(`nav a[data-page="${page}"]`)?.setAttribute("aria-current", "page");
  const key = $("#token");
  key.textContent = token() ? "May control" : "Watch only";
  key.title = token() ? "This tab may control runs" : "Give the token to control runs";
  key.addEventListener("click", askForToken);
  const button = $("#theme");
  const dark = () => {
    const chosen = document.documentElement.dataset.theme;
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  };
  const show = () => {
    const half = s("path", { d: dark() ? "M8 1a7 7 0 0 1 0 14Z" : "M8 1a7 7 0 0 0 0 14Z", fill: "currentColor" });
    const circle = s("circle", { cx: 8, cy: 8, r: 7, fill: "none", stroke: "currentColor", "stroke-width": 1.6 });
    button.replaceChildren(s("svg", { viewBox: "0 0 16 16", width: 18, height: 18, "aria-hidden": true }, half, circle));
    button.setAttribute("aria-label", dark() ? "Switch to light" : "Switch to dark");
  };
  button.addEventListener("click", () => {
    const next = dark() ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    localStorage.setItem("keisei-theme", next);
    show();
    window.dispatchEvent(new Event("theme"));
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    show();
    window.dispatchEvent(new Event("theme"));
  });
  show();
}
