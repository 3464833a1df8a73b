// What a person is asked, exactly what they approve, and their answer.
import { act, at, post } from "./api.js";
import { difference, textDiff } from "./diff.js";
import { h, moment, pretty, put } from "./dom.js";

export function questionCard({ record_id, asked, data, entry, send, done }) {
  const inputs = {};
  for (const name of asked.edit ?? []) {
    const value = data?.[name];
    const text = typeof value === "string" ? value : JSON.stringify(value ?? null);
    const input = h("textarea", { id: `edit-${record_id}-${name}`, rows: Math.min(8, Math.max(2, Math.ceil(text.length / 60))) });
    input.value = text;
    const change = h("div", { class: "change", "aria-live": "polite" });
    input.addEventListener("input", () => put(change, input.value === text ? null : [h("p", { class: "quiet" }, "Your change"), textDiff(text, input.value)]));
    inputs[name] = { input, text, change, isText: typeof value === "string" };
  }
  const note = h("input", { id: `note-${record_id}`, maxlength: 5000, placeholder: "Note (may be left empty)", "aria-label": "Note" });
  function edits() {
    const found = {};
    for (const [name, { input, text, isText }] of Object.entries(inputs)) {
      if (input.value === text) continue;
      if (isText) found[name] = input.value;
      else { try { found[name] = JSON.parse(input.value); } catch { found[name] = input.value; } }
    }
    return found;
  }
  const answer = send ?? ((choice) => post(at(record_id, "answer"), { choice, note: note.value, edits: edits(), seen: asked.hash }));
  async function give(choice) {
    const landed = await act(() => answer(choice, note.value, edits()), `${record_id}: ${choice}`);
    if (landed && done) done(landed);
  }
  if (asked.on === "doubt") {
    const field = h("input", { id: `value-${record_id}`, maxlength: 100000, "aria-label": "What it returned", placeholder: asked.needs_value ? "What it returned" : "What it returned (may be left empty)" });
    const isText = [asked.value, ...(asked.value?.anyOf ?? [])].some((one) => one?.type === "string");
    function returned() {
      if (field.value === "") return null;
      if (isText) return field.value;
      try { return JSON.parse(field.value); } catch { return field.value; }
    }
    const say = async (happened) => {
      const value = happened ? returned() : null;
      const landed = await act(() => post(at(record_id, "resolve"), { happened, value, effect: asked.name }), `${record_id}: ${happened ? "it happened" : "it did not happen"}`);
      if (landed && done) done(landed);
    };
    return h("div", { class: "question" }, h("p", { class: "asked" }, asked.question ?? `Did ${asked.name} happen?`),
      h("p", { class: "quiet" }, "A worker was lost in the middle of this effect. Look outside whether it happened, then say so."),
      field,
      h("div", { class: "row" }, h("button", { class: "primary", onclick: () => say(true) }, "It happened"),
        (asked.choices ?? ["not"]).includes("not") ? h("button", { onclick: () => say(false) }, "It did not") : null));
  }
  return h("div", { class: "question" },
    h("p", { class: "asked" }, asked.question),
    asked.show !== null && asked.show !== undefined ? h("figure", {}, h("figcaption", {}, "What will be approved"), h("pre", { class: "show" }, pretty(asked.show))) : null,
    difference(entry, data, "Changed in this step"),
    Object.entries(inputs).map(([name, { input, change }]) => [h("label", { for: input.id }, `${name} (may be edited)`), input, change]),
    asked.by?.length ? h("p", { class: "quiet" }, `For ${asked.by.join(", ")}${asked.quorum > 1 ? `; ${asked.votes.length} of ${asked.quorum} have answered` : ""}`) : null,
    asked.expires_at ? h("p", { class: "quiet" }, `Expires ${moment(asked.expires_at)}`) : null,
    note,
    h("div", { class: "row" }, (asked.choices ?? []).map((choice, number) =>
      h("button", { "data-key": choice === "reject" ? "r" : number === 0 ? "a" : null, class: number === 0 ? "primary" : choice === "reject" ? "danger" : "", onclick: () => give(choice) }, choice))));
}
