// Order among runs: tags, a note, the archive, another name, and the trash.
import { askForToken, isTrusted, post } from "./api.js";
import { $, fill, h, notice } from "./dom.js";

// ---- The list of runs.

// Words of the filter that ask for a tag: #strong or tag:strong. Gives undefined for other words.
export function asksForTag(run, word) {
  const [, tag] = word.match(/^(?:#|tag:)(.*)$/) ?? [];
  if (tag === undefined) return undefined;
  return (run.tags ?? []).some((one) => one.toLowerCase().startsWith(tag));
}

let showsArchived = false;

// A run that is being trained is never hidden.
export const isHidden = (run) => run.archived && !showsArchived && run.state !== "running";

export const archivedBox = (onChange) =>
  h("label", { class: "row small dim" },
    h("input", { type: "checkbox", id: "archived", onchange: (event) => { showsArchived = event.target.checked; onChange(); } }),
    "Archived");

export const tagList = (run) =>
  (run.tags?.length || run.archived) &&
  h("div", { class: "row tags" }, (run.tags ?? []).map((tag) => h("span", { class: "tag" }, `#${tag}`)), run.archived && h("span", { class: "tag dim" }, "archived"));

// ---- The page of a run.

// A page that is drawn anew keeps what somebody is writing.
export function labelsCard(name, summary) {
  const there = $("#labels");
  if (there?.dataset.changed) return there;
  const path = `/api/runs/${encodeURIComponent(name)}`;
  const host = h("section", { class: "card", id: "labels", oninput: () => (host.dataset.changed = "yes") });

  async function ask(order, body) {
    if (!(await isTrusted())) return askForToken();
    try {
      return await post(`${path}/${order}`, body);
    } catch (error) {
      notice(error.message, true);
      return undefined;
    }
  }

  async function label(change) {
    const labels = await ask("labels", change);
    if (!labels) return;
    Object.assign(summary, labels);
    delete host.dataset.changed;
    draw();
    notice("Saved.");
  }

  function draw() {
    const tags = h("input", { type: "text", value: summary.tags.map((tag) => `#${tag}`).join(" "), placeholder: "#strong #baseline", "aria-label": "Tags", maxLength: 900 });
    const note = h("textarea", { rows: 3, value: summary.note, "aria-label": "Note", maxLength: 2000 });
    const save = (event) => {
      event.preventDefault();
      label({ tags: tags.value.split(/[\s,]+/).filter(Boolean), note: note.value });
    };
    const button = (text, onclick, kind = "") => h("button", { type: "button", class: kind, onclick }, text);
    fill(host,
      h("h2", {}, "Labels"),
      h("form", { class: "stack", onsubmit: save },
        h("label", { class: "field" }, "Tags", tags),
        h("label", { class: "field" }, "Note", note),
        h("div", { class: "row" },
          h("button", { class: "main" }, "Save"),
          button(summary.archived ? "Unarchive" : "Archive", () => label({ archived: !summary.archived })),
          h("span", { class: "grow" }),
          button("Rename", rename),
          button("Delete", remove, "danger"))));
  }

  function rename() {
    const field = h("input", { type: "text", class: "mono", value: name, required: true, "aria-label": "New name" });
    confirm("Rename the run", h("label", { class: "field" }, "Name", field), "Rename", "main", async () => {
      const answer = await ask("rename", { name: field.value.trim() });
      if (answer) location.href = `/run/${encodeURIComponent(answer.name)}`;
    });
  }

  function remove() {
    const text = h("p", {}, `${name} goes into the folder .trash beside the other runs, from where it can be moved back.`);
    confirm(`Delete ${name}?`, text, "Move to the trash", "danger", async () => {
      if (await ask("delete", { name })) location.href = "/";
    });
  }

  draw();
  return host;
}

// Asks once more. The dialog stays open if nothing has come of it.
function confirm(title, content, label, kind, act) {
  const dialog = h("dialog", { "aria-label": title },
    h("form", { class: "wide", onsubmit: async (event) => { event.preventDefault(); await act(); } },
      h("h2", {}, title),
      content,
      h("div", { class: "row" }, h("button", { class: kind }, label), h("button", { type: "button", onclick: () => dialog.close() }, "Cancel"))));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
