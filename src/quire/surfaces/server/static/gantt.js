// The timeline of one record as bars: a line for each visit of a step, runs and waits side by side.
import { h, lasting as length, moment, s } from "./dom.js";

const NAMES = { runs: "ran", waits: "waited", asks: "asked a person", "backs off": "backed off", due: "was due" };

function round(seconds) {
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 120) return `${Number(seconds.toFixed(1))} s`;
  if (seconds < 7200) return `${Number((seconds / 60).toFixed(1))} min`;
  return seconds < 172800 ? `${Number((seconds / 3600).toFixed(1))} h` : `${Number((seconds / 86400).toFixed(1))} d`;
}

// The same as rows, for whoever does not see bars or wants the figures.
export function ganttTable(spans, now) {
  const end = Date.parse(now);
  const tries = new Map();
  return h("details", {}, h("summary", {}, "As a table"), h("div", { class: "scroll" }, h("table", {},
    h("thead", {}, h("tr", {}, ["Step", "What", "From", "For", "Then", "Worker"].map((text) => h("th", { scope: "col" }, text)))),
    h("tbody", {}, spans.map((span) => {
      const key = span.step;
      if (span.kind === "runs") tries.set(key, (tries.get(key) ?? 0) + 1);
      return h("tr", {}, h("td", {}, span.step), h("td", {}, `${NAMES[span.kind] ?? span.kind}${span.kind === "runs" && tries.get(key) > 1 ? ` (${tries.get(key)}.)` : ""}`),
        h("td", { class: "nowrap" }, moment(span.from)), h("td", { class: "nowrap" }, length(((span.to ? Date.parse(span.to) : end) - Date.parse(span.from)) / 1000)), h("td", {}, span.outcome || "–"), h("td", {}, span.worker ?? ""));
    })))));
}

export function gantt(spans, now, wide) {
  const end = Date.parse(now);
  const bars = spans.map((span) => ({ ...span, a: Date.parse(span.from), b: span.to ? Date.parse(span.to) : end }));
  const lines = [];
  for (const bar of bars) {
    const line = lines.at(-1);
    if (line && line.step === bar.step) line.bars.push(bar);
    else lines.push({ step: bar.step, bars: [bar] });
  }
  const shown = lines.slice(-40);
  const from = Math.min(...shown.flatMap((line) => line.bars.map((bar) => bar.a)));
  const to = Math.max(from + 1, ...shown.flatMap((line) => line.bars.map((bar) => bar.b)));
  const label = Math.min(150, wide * 0.3);
  const room = wide - label - 16;
  const x = (moment) => label + ((moment - from) / (to - from)) * room;
  const tall = 30 + shown.length * 28;
  const ticks = [];
  // Round lengths: 1, 2 or 5 of something.
  const least = ((to - from) / 1000 / Math.max(1, room / 90));
  const ten = 10 ** Math.floor(Math.log10(least));
  const tick = ([1, 2, 5, 10].find((by) => by * ten >= least) ?? 10) * ten * 1000;
  for (let after = 0; after <= to - from; after += tick) {
    const at = x(from + after);
    ticks.push(s("line", { x1: at, x2: at, y1: 20, y2: tall, class: "tick" }),
      s("text", { x: at, y: 13, "text-anchor": after ? (at > wide - 40 ? "end" : "middle") : "start", class: "axis" }, after ? `+${round(after / 1000)}` : "0"));
  }
  return s("svg", { class: "gantt", width: wide, height: tall, viewBox: `0 0 ${wide} ${tall}`, role: "img", "aria-label": `Timeline of ${bars.length} spans over ${length((to - from) / 1000)}` },
    ticks,
    shown.map((line, number) => {
      const y = 26 + number * 28;
      const most = Math.max(3, Math.floor(label / 7.2) - 1);
      const name = line.step.length > most ? `${line.step.slice(0, most - 1)}…` : line.step;
      return [s("text", { x: 0, y: y + 15, class: "name" }, name), line.bars.map((bar) => {
        const wideBar = Math.max(3, x(bar.b) - x(bar.a));
        const summary = `${bar.step}: ${NAMES[bar.kind] ?? bar.kind} for ${length((bar.b - bar.a) / 1000)}${bar.outcome ? `, then ${bar.outcome}` : ""}`;
        const left = Math.min(x(bar.a), wide - 16 - 3);
        return s("rect", { x: left, y: y + 2, width: wideBar, height: bar.kind === "runs" ? 18 : 10, rx: 3, class: `span ${bar.kind.replace(" ", "-")} ${bar.outcome === "broke" || bar.outcome === "failed" ? "bad" : ""}` }, s("title", {}, summary));
      })];
    }));
}
