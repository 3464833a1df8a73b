// What is done with several records at once. Each lands by itself; the answer names those that refused.
import { act, post } from "./api.js";
import { ask, h, put } from "./dom.js";
import { COL, store } from "./store.js";

const SAID = { retry: "retried", cancel: "cancelled", answer: "approved", prioritise: "got another priority" };
const plural = (count) => `${count.toLocaleString()} ${count === 1 ? "record" : "records"}`;

async function actOn(name, ids, extra) {
  return act(() => post("/api/many", { act: name, record_ids: ids, ...extra }), (value) =>
    `${plural(value.done)} ${SAID[name]}${value.refused.length ? `; ${value.refused.length} refused: ${value.refused[0].message}` : ""}`);
}

export const acts = {
  retry: (ids) => actOn("retry", ids),
  async cancel(ids) {
    const given = await ask({ title: `Cancel ${plural(ids.length)}?`, fields: [{ name: "reason", label: "Reason" }, { name: "undo", label: "Undo what they did", check: true }], yes: "Cancel them", danger: true });
    return given ? actOn("cancel", ids, given) : null;
  },
  async approve(ids) {
    const seen = {};
    for (const id of ids) { const hash = store.rows.get(id)?.[COL.hash]; if (hash) seen[id] = hash; }
    const asking = Object.keys(seen);
    if (!asking.length) { await ask({ title: "Nothing to approve", text: "None of these asks a question.", yes: "Good" }); return null; }
    const shown = asking.slice(0, 6).map((id) => `${id}: ${store.rows.get(id)[COL.about]}`).join("\n");
    const given = await ask({ title: `Approve ${plural(asking.length)}?`, text: "Each is approved as it is shown now; one that has changed since is left alone.", list: shown + (asking.length > 6 ? `\nand ${asking.length - 6} more` : ""), fields: [{ name: "note", label: "Note" }], yes: "Approve them" });
    return given ? actOn("answer", asking, { choice: "approve", note: given.note, seen }) : null;
  },
  async priority(ids) {
    const given = await ask({ title: `Priority of ${plural(ids.length)}`, text: "A point counts as a minute of waiting.", fields: [{ name: "priority", label: "Priority", type: "number", value: 0 }], yes: "Set" });
    return given ? actOn("prioritise", ids, { priority: Number.parseInt(given.priority, 10) || 0 }) : null;
  },
};

// The bar above the grid while something is selected.
export function manyBar(place, selected, done) {
  for (const id of selected) if (!store.rows.has(id)) selected.delete(id);
  if (!selected.size) { put(place); return; }
  const asking = [...selected].filter((id) => store.rows.get(id)[COL.hash]).length;
  const button = (label, name, key, attributes = {}) => h("button", { title: `${label} (${key})`, onclick: async () => { if (await acts[name]([...selected])) { selected.clear(); done(); } }, ...attributes }, label);
  put(place, h("strong", { role: "status" }, `${selected.size.toLocaleString()} selected`),
    button("Retry", "retry", "r"), button("Approve", "approve", "a", { disabled: !asking }), button("Priority", "priority", "p"),
    button("Cancel", "cancel", "c", { class: "danger" }),
    h("button", { class: "plain", title: "Select none (Escape)", onclick: () => { selected.clear(); done(); } }, "Select none"));
}
