// The timeline of one record as bars: a line for each visit of a step, runs and waits side by side.
import { s } from "./dom.js";

const NAMES = { runs: "ran", waits: "waited", asks: "asked a person", "backs off": "backed off", due: "was due" };

function length(seconds) {
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 120) return `${seconds.toFixed(1)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
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
  const count = Math.max(2, Math.floor(room / 110));
  for (let n = 0; n <= count; n += 1) {
    const moment = from + ((to - from) * n) / count;
    const anchor = n === 0 ? "start" : n === count ? "end" : "middle";
    ticks.push(s("line", { x1: x(moment), x2: x(moment), y1: 20, y2: tall, class: "tick" }),
      s("text", { x: x(moment), y: 13, "text-anchor": anchor, class: "axis" }, `+${length((moment - from) / 1000)}`));
  }
  return s("svg", { class: "gantt", width: wide, height: tall, viewBox: `0 0 ${wide} ${tall}`, role: "img", "aria-label": `Timeline of ${bars.length} spans over ${length((to - from) / 1000)}` },
    ticks,
    shown.map((line, number) => {
      const y = 26 + number * 28;
      const most = Math.max(3, Math.floor(label / 7.2) - 1);
      const name = line.step.length > most ? `${line.step.slice(0, most - 1)}…` : line.step;
      return [s("text", { x: 0, y: y + 15, class: "name" }, name), line.bars.map((bar) => {
        const wideBar = Math.max(3, x(bar.b) - x(bar.a));
        const told = `${bar.step}: ${NAMES[bar.kind] ?? bar.kind} for ${length((bar.b - bar.a) / 1000)}${bar.outcome ? `, then ${bar.outcome}` : ""}`;
        const left = Math.min(x(bar.a), wide - 16 - 3);
        return s("rect", { x: left, y: y + 2, width: wideBar, height: bar.kind === "runs" ? 18 : 10, rx: 3, class: `span ${bar.kind.replace(" ", "-")} ${bar.outcome === "broke" || bar.outcome === "failed" ? "bad" : ""}` }, s("title", {}, told));
      })];
    }));
}
