// What differs between two values, as text: fields that came, went or changed; long texts line by line.
import { h, pretty } from "./dom.js";

// The longest common run of lines, by the usual table; texts beyond a few hundred lines are shown whole.
function lines(before, after) {
  const a = before.split("\n");
  const b = after.split("\n");
  if (a.length * b.length > 90000) return [...a.map((text) => ["-", text]), ...b.map((text) => ["+", text])];
  const table = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) table[i][j] = a[i] === b[j] ? table[i + 1][j + 1] + 1 : Math.max(table[i + 1][j], table[i][j + 1]);
  }
  const made = [];
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) { made.push([" ", a[i]]); i += 1; j += 1; }
    else if (j >= b.length || (i < a.length && table[i + 1][j] >= table[i][j + 1])) { made.push(["-", a[i]]); i += 1; }
    else { made.push(["+", b[j]]); j += 1; }
  }
  return made;
}

export function textDiff(before, after) {
  return h("pre", { class: "lines" }, lines(before, after).map(([mark, text]) =>
    mark === " " ? h("span", {}, `  ${text}\n`) : h(mark === "+" ? "ins" : "del", {}, `${mark} ${text}\n`)));
}

// A table of fields: [name, before, after], undefined where it is not there; and of those that nobody knows any more. Or null.
function table(rows, unknown, caption) {
  if (!rows.length && !unknown.length) return null;
  return h("table", { class: "diff" }, caption ? h("caption", {}, caption) : null, h("colgroup", {}, h("col", { class: "field" }), h("col", {})),
    h("thead", { class: "hidden" }, h("tr", {}, ["Field", "Change"].map((text) => h("th", { scope: "col" }, text)))),
    h("tbody", {}, rows.map(([name, before, after]) => {
      const from = before === undefined ? "" : pretty(before);
      const now = after === undefined ? "" : pretty(after);
      const empty = !from.trim() || (from === "null" && after !== undefined);
      return h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, empty ? h("ins", {}, now) : after === undefined ? h("del", {}, from) : from.length + now.length > 60 || from.includes("\n") || now.includes("\n")
        ? textDiff(from, now) : [h("del", {}, from), " → ", h("ins", {}, now)]));
    }), unknown.map((name) => h("tr", {}, h("th", { scope: "row" }, name), h("td", { class: "quiet" }, "It changed. What it was is not known: it was too long for the log.")))));
}

// What differs between two objects.
export function difference(before, after, caption) {
  if (before === null || before === undefined || typeof before !== "object") return null;
  const to = after ?? {};
  const own = (one, name) => (Object.hasOwn(one, name) ? one[name] : undefined);
  const rows = [...new Set([...Object.keys(before), ...Object.keys(to)])].map((name) => [name, own(before, name), own(to, name)]);
  return table(rows.filter(([, was, now]) => JSON.stringify(was) !== JSON.stringify(now)), [], caption);
}

// A difference as the server sends it: of a version, or in a line of the log.
export function differences(one, caption) {
  const { changes = {}, came = [], went = [], changed = [] } = one ?? {};
  return table(Object.entries(changes).map(([name, [was, now]]) => [name, came.includes(name) ? undefined : was, went.includes(name) ? undefined : now]), changed, caption);
}
