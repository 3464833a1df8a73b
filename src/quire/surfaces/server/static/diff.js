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

// A table of the fields that differ, or null.
export function difference(before, after, caption) {
  if (before === null || before === undefined || typeof before !== "object") return null;
  const to = after ?? {};
  const names = [...new Set([...Object.keys(before), ...Object.keys(to)])].filter((name) => JSON.stringify(before[name]) !== JSON.stringify(to[name]));
  if (!names.length) return null;
  return h("table", { class: "diff" }, h("caption", {}, caption),
    h("thead", { class: "hidden" }, h("tr", {}, ["Field", "Change"].map((text) => h("th", { scope: "col" }, text)))),
    h("tbody", {}, names.map((name) => {
      const from = name in before ? pretty(before[name]) : "";
      const now = name in to ? pretty(to[name]) : "";
      const empty = !from.trim() || from === "null";
      return h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, empty ? h("ins", {}, now) : !(name in to) ? h("del", {}, from) : from.length + now.length > 60 || from.includes("\n") || now.includes("\n")
        ? textDiff(from, now) : [h("del", {}, from), " → ", h("ins", {}, now)]));
    })));
}
