// The machine as a drawing: steps in layers, arrows between them, and at each step the records that stand there now.
import { s } from "./dom.js";

const SHOWN = ["PENDING", "RUNNING", "WAITING", "NEEDS_APPROVAL", "ERROR", "CANCELLED"];

// Each step lies after every step declared before it that leads to it.
function layered(steps) {
  const place = new Map(steps.map((step, number) => [step.name, number]));
  const depth = new Map();
  for (const step of steps) {
    const here = depth.get(step.name) ?? 0;
    depth.set(step.name, here);
    for (const name of step.then) {
      if (place.has(name) && place.get(name) > place.get(step.name)) depth.set(name, Math.max(depth.get(name) ?? 0, here + 1));
    }
  }
  const layers = [];
  for (const step of steps) (layers[depth.get(step.name)] ??= []).push(step);
  return layers.filter(Boolean);
}

// Side by side where there is room, one below the other where there is not.
function placed(layers, wide) {
  const size = { w: 168, h: 64, gapX: 56, gapY: 34 };
  const across = layers.length * size.w + (layers.length - 1) * size.gapX + 24 <= wide;
  const most = Math.max(...layers.map((layer) => layer.length));
  const boxes = new Map();
  if (!across) size.w = Math.min(size.w, (wide - 70 - (most - 1) * 16) / most);
  layers.forEach((layer, number) => {
    const length = across ? layer.length * size.h + (layer.length - 1) * size.gapY : layer.length * size.w + (layer.length - 1) * 16;
    const room = across ? most * size.h + (most - 1) * size.gapY : wide - 70;
    layer.forEach((step, place) => {
      const along = (room - length) / 2;
      boxes.set(step.name, across
        ? { step, layer: number, x: 12 + number * (size.w + size.gapX), y: 34 + along + place * (size.h + size.gapY), ...{ w: size.w, h: size.h } }
        : { step, layer: number, x: 35 + along + place * (size.w + 16), y: 20 + number * (size.h + 36), ...{ w: size.w, h: size.h } });
    });
  });
  return { boxes, across };
}

function path(from, to, across) {
  const [cx, cy, tx, ty] = [from.x + from.w / 2, from.y + from.h / 2, to.x + to.w / 2, to.y + to.h / 2];
  if (from === to) return across ? `M${cx - 16} ${from.y}C${cx - 26} ${from.y - 28} ${cx + 26} ${from.y - 28} ${cx + 16} ${from.y}` : `M${from.x + from.w} ${cy - 12}C${from.x + from.w + 28} ${cy - 22} ${from.x + from.w + 28} ${cy + 22} ${from.x + from.w} ${cy + 12}`;
  const next = to.layer === from.layer + 1;
  if (across) {
    if (next) { const x = from.x + from.w; const bend = (to.x - x) / 2; return `M${x} ${cy}C${x + bend} ${cy} ${to.x - bend} ${ty} ${to.x} ${ty}`; }
    if (to.layer > from.layer) { const high = Math.min(from.y, to.y) - 26; return `M${cx} ${from.y}C${cx} ${high} ${tx} ${high} ${tx} ${to.y}`; }
    const low = Math.max(from.y + from.h, to.y + to.h) + 30;
    return `M${cx} ${from.y + from.h}C${cx} ${low} ${tx} ${low} ${tx} ${to.y + to.h}`;
  }
  if (next) { const y = from.y + from.h; const bend = (to.y - y) / 2; return `M${cx} ${y}C${cx} ${y + bend} ${tx} ${to.y - bend} ${tx} ${to.y}`; }
  if (to.layer > from.layer) { const far = Math.max(from.x + from.w, to.x + to.w) + 26; return `M${from.x + from.w} ${cy}C${far} ${cy} ${far} ${ty} ${to.x + to.w} ${ty}`; }
  const far = Math.min(from.x, to.x) - 26;
  return `M${from.x} ${cy}C${far} ${cy} ${far} ${ty} ${to.x} ${ty}`;
}

// The drawing, and a way to give it other counts: rows of step, status, count.
export function graph(definition, wide) {
  const { boxes, across } = placed(layered(definition.steps), wide);
  const all = [...boxes.values()];
  const right = across ? Math.max(...all.map((box) => box.x + box.w)) + 12 : wide;
  const bottom = Math.max(...all.map((box) => box.y + box.h)) + 34;
  const slots = new Map();
  const nodes = all.map((box) => {
    const { step } = box;
    const counts = s("g", { class: "at" });
    const most = Math.floor((box.w - 20) / 7.6);
    const name = step.name.length > most ? `${step.name.slice(0, most - 1)}…` : step.name;
    const node = s("a", { class: `node${step.ends ? " ends" : ""}`, href: `#/?workflow=${encodeURIComponent(definition.name)}&step=${encodeURIComponent(step.name)}` },
      s("rect", { x: box.x, y: box.y, width: box.w, height: box.h, rx: step.rests ? 30 : 9 }),
      s("text", { x: box.x + box.w / 2, y: box.y + 25, "text-anchor": "middle", class: "name" }, name), counts);
    slots.set(step.name, { box, counts, node, before: "" });
    return node;
  });
  const drawn = s("svg", { class: "graph", width: right, height: bottom, viewBox: `0 0 ${right} ${bottom}`, role: "group", "aria-label": `The steps of ${definition.name} and the records at each` },
    s("defs", {}, s("marker", { id: "tip", viewBox: "0 0 10 10", refX: 9, refY: 5, markerWidth: 7, markerHeight: 7, orient: "auto-start-reverse" }, s("path", { d: "M0 0L10 5L0 10z" }))),
    all.flatMap((box) => box.step.then.filter((name) => boxes.has(name)).map((name) => s("path", { d: path(box, boxes.get(name), across), class: "edge", "marker-end": "url(#tip)" }))),
    nodes);

  function count(rows) {
    for (const [name, slot] of slots) {
      const found = SHOWN.map((status) => [status, rows.filter((row) => row[0] === name && row[1] === status).reduce((sum, row) => sum + row[2], 0)]).filter(([, number]) => number);
      const now = JSON.stringify(found);
      if (now === slot.before) continue;
      slot.before = now;
      const { box } = slot;
      slot.node.setAttribute("aria-label", `${name}: ${found.map(([status, number]) => `${number} ${status.replace("_", " ")}`).join(", ") || "no record"}`);
      slot.node.classList.toggle("busy", found.length > 0);
      const texts = found.map(([, number]) => number.toLocaleString());
      const length = texts.reduce((sum, text) => sum + 18 + text.length * 7.4, 0) - 6;
      let x = box.x + box.w / 2 - length / 2;
      slot.counts.replaceChildren(...found.map(([status], number) => {
        const made = s("g", { class: status.toLowerCase() }, s("title", {}, `${texts[number]} ${status}`),
          s("circle", { cx: x + 4, cy: box.y + 46, r: 4 }), s("text", { x: x + 11, y: box.y + 50.5, class: "count" }, texts[number]));
        x += 18 + texts[number].length * 7.4;
        return made;
      }));
      if (!found.length) slot.counts.append(s("text", { x: box.x + box.w / 2, y: box.y + 50, "text-anchor": "middle", class: "nobody" }, "–"));
    }
  }
  return { drawn, count };
}
