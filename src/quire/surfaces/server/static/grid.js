// The grid of records: only the rows in sight are in the page.
import { ago, h, pill, put, recordHref } from "./dom.js";
import { known, listen } from "./live.js";
import { acts, manyBar } from "./many.js";
import { arranged, rearranged } from "./order.js";
import { startRecord } from "./start.js";
import { COL, load, store, watch } from "./store.js";

const STATUSES = ["PENDING", "RUNNING", "WAITING", "NEEDS_APPROVAL", "ERROR", "CANCELLED", "DONE"];
const COLUMNS = [
  ["status", "Status"], ["id", "Record"], ["workflow", "Workflow"], ["step", "Next step"], ["about", "About"],
  ["attempt", "Tries"], ["updated", "Changed"],
];
const state = { text: "", statuses: new Set(), workflow: "", step: "", sort: "updated", down: true, top: 0, focus: null };
const selected = new Set();

// Where the grid is, as an address: a reload, a bookmark and the way back show the same rows.
export function gridHref() {
  const words = new URLSearchParams();
  if (state.text) words.set("text", state.text);
  if (state.statuses.size) words.set("status", [...state.statuses].join());
  if (state.workflow) words.set("workflow", state.workflow);
  if (state.step) words.set("step", state.step);
  if (state.sort !== "updated" || !state.down) words.set("sort", (state.down ? "-" : "") + state.sort);
  return words.size ? `#/?${words}` : "#/";
}

function fromAddress(query) {
  const sort = query.get("sort") ?? "-updated";
  Object.assign(state, {
    text: query.get("text") ?? "", workflow: query.get("workflow") ?? "", step: query.get("step") ?? "",
    statuses: new Set((query.get("status") ?? "").split(",").filter(Boolean)),
    down: sort.startsWith("-"), sort: COLUMNS.some(([name]) => name === sort.replace("-", "")) ? sort.replace("-", "") : "updated",
  });
}

// Data and results come as the beginning of their JSON.
function readable(about) {
  return about.startsWith("{") || about.startsWith('"') ? about.replace(/"((?:[^"\\]|\\.)*)":/g, "$1: ").replace(/^[{"]|[}"]$/g, "").replace(/",/g, '", ') : about;
}

export function gridPage(main, query) {
  fromAddress(query);
  const narrow = matchMedia("(max-width: 700px)");
  const height = () => (narrow.matches ? 62 : 34);
  let order = arranged(store.rows, state);
  let anchor = null;

  const filter = h("input", { type: "search", id: "filter", placeholder: "Filter by id or text  ( / )", "aria-label": "Filter by id or text", value: state.text, autocomplete: "off" });
  const workflow = h("select", { "aria-label": "Workflow" });
  const step = h("select", { "aria-label": "Next step" });
  const chips = h("div", { class: "chips", role: "group", "aria-label": "Filter by status" });
  const many = h("div", { class: "many", role: "toolbar", "aria-label": "Selected records" });
  const counted = h("span", { class: "quiet", role: "status", "aria-live": "polite" });
  const head = h("div", { class: "grid-head", role: "row" });
  const spacer = h("div", { class: "spacer", role: "presentation" });
  const body = h("div", { class: "grid-body", role: "rowgroup", tabindex: "0", "aria-label": "Records; arrow keys move, space selects, enter opens" }, spacer);
  const empty = h("div", { class: "empty", hidden: true });
  const grid = h("div", { class: "grid", role: "grid", "aria-label": "Records", "aria-multiselectable": "true" }, head, body, empty);
  put(main,
    h("h1", { class: "hidden" }, "Records"),
    chips,
    h("div", { class: "bar" }, filter, workflow, step,
      h("button", { class: "primary", onclick: () => startRecord(state.workflow) }, "Start a record")),
    h("div", { class: "under" }, counted, many), grid);

  // -- rows: a handful of elements, filled anew as they come into sight
  const pool = [];
  function rowElement() {
    const cells = { pick: h("input", { type: "checkbox", tabindex: "-1" }), link: h("a", { tabindex: "-1" }) };
    for (const [name] of COLUMNS) cells[name] = h("span", { class: `c ${name}`, role: "gridcell" });
    cells.id.append(cells.link);
    const element = h("div", { class: "grid-row", role: "row", id: `row${pool.length}` },
      h("span", { class: "c pick", role: "gridcell" }, cells.pick), COLUMNS.map(([name]) => cells[name]));
    const made = { element, cells, id: null, row: null };
    cells.pick.addEventListener("click", (event) => { event.stopPropagation(); choose(made.id, event.shiftKey); });
    element.addEventListener("click", (event) => {
      if (event.target.closest("a")) return;
      if (event.target.closest(".pick")) { choose(made.id, event.shiftKey); return; }
      state.focus = made.id;
      if (event.shiftKey || event.ctrlKey || event.metaKey) { event.preventDefault(); choose(made.id, event.shiftKey); return; }
      location.hash = recordHref(made.id).slice(1);
    });
    element.addEventListener("mousedown", (event) => { if (event.shiftKey) event.preventDefault(); });
    spacer.append(element);
    return made;
  }

  function fill(made, id, place) {
    const row = store.rows.get(id);
    made.element.hidden = !row;
    if (!row) return;
    const { cells, element } = made;
    if (made.row !== row) {
      const about = readable(row[COL.about]);
      if (made.row?.[COL.status] !== row[COL.status] || made.id !== id) put(cells.status, pill(row[COL.status]));
      cells.link.textContent = id;
      cells.link.href = recordHref(id);
      cells.id.title = id;
      cells.workflow.textContent = row[COL.workflow];
      cells.step.textContent = row[COL.step] || "–";
      cells.about.textContent = about;
      cells.about.title = about;
      cells.attempt.textContent = row[COL.attempt] || "";
      cells.pick.setAttribute("aria-label", `Select ${id}`);
      element.classList.toggle("fresh", made.id === id);
      made.id = id;
      made.row = row;
    }
    const past = ago(row[COL.updated]);
    if (cells.updated.textContent !== past) cells.updated.textContent = past;
    const on = selected.has(id);
    if (cells.pick.checked !== on) cells.pick.checked = on;
    element.setAttribute("aria-rowindex", place + 2);
    element.setAttribute("aria-selected", on);
    const here = id === state.focus && document.activeElement === body;
    element.classList.toggle("focus", here);
    if (here) body.setAttribute("aria-activedescendant", element.id);
    element.style.transform = `translateY(${place * height()}px)`;
  }

  function draw() {
    const first = Math.max(0, Math.floor(body.scrollTop / height()) - 4);
    const count = Math.max(0, Math.min(order.length - first, Math.ceil(body.clientHeight / height()) + 8));
    while (pool.length < count) pool.push(rowElement());
    // An element keeps its record while both are in sight, so that a change is a change and not a new row.
    const wanted = new Map();
    for (let place = first; place < first + count; place += 1) wanted.set(order[place], place);
    const free = [];
    for (const made of pool) {
      const place = made.id === null ? undefined : wanted.get(made.id);
      if (place === undefined) free.push(made);
      else { fill(made, made.id, place); wanted.delete(made.id); }
    }
    for (const [id, place] of wanted) fill(free.pop(), id, place);
    for (const made of free) { if (!made.element.hidden) made.element.hidden = true; made.id = null; made.row = null; }
  }

  function sized() {
    // The head leaves the room that the scroll bar takes, so that columns stand under their names.
    head.style.paddingRight = `${10 + body.offsetWidth - body.clientWidth}px`;
    spacer.style.height = `${order.length * height()}px`;
    grid.setAttribute("aria-rowcount", order.length + 1);
    const all = store.rows.size;
    const shown = order.length === all ? `${all.toLocaleString()} ${all === 1 ? "record" : "records"}` : `${order.length.toLocaleString()} of ${all.toLocaleString()} records`;
    const words = shown + (store.loading && !store.loaded ? ", loading…" : "") + (store.full ? "; only the first 200,000 are here, filter by command line for more" : "");
    if (counted.textContent !== words) counted.textContent = words;
    empty.hidden = order.length > 0 || (store.loading && !store.loaded);
    if (!empty.hidden) {
      put(empty, all ? [h("p", {}, "No record matches."), h("p", {}, h("button", { onclick: clear }, "Show all"))]
        : [h("p", {}, "There is no record yet."), h("p", { class: "quiet" }, "Start one here, or with quire start.")]);
    }
    draw();
  }

  function arrange() {
    order = arranged(store.rows, state);
    if (gridHref() !== (location.hash || "#/")) history.replaceState(null, "", gridHref());
    heads();
    sized();
  }

  function clear() {
    Object.assign(state, { text: "", workflow: "", step: "", statuses: new Set() });
    filter.value = "";
    counters();
    arrange();
  }

  function heads() {
    const all = h("input", { type: "checkbox", "aria-label": "Select all that are listed" });
    all.checked = order.length > 0 && order.every((id) => selected.has(id));
    all.indeterminate = !all.checked && selected.size > 0;
    all.addEventListener("change", () => { if (all.checked) order.forEach((id) => selected.add(id)); else selected.clear(); picked(); });
    put(head, h("span", { class: "c pick", role: "columnheader" }, all), COLUMNS.map(([name, label]) =>
      h("span", { class: `c ${name}`, role: "columnheader", "aria-sort": state.sort === name ? (state.down ? "descending" : "ascending") : "none" },
        h("button", { class: "plain", onclick: () => {
          state.down = state.sort === name ? !state.down : name === "updated" || name === "attempt";
          state.sort = name;
          arrange();
          head.querySelector(`.${name} button`).focus();
        } }, label, h("span", { class: "arrow", "aria-hidden": "true" }, state.sort === name ? (state.down ? "↓" : "↑") : "")))));
  }

  // -- selecting
  function picked() { manyBar(many, selected, picked); heads(); draw(); }

  // One more or less; with shift, all from the last one chosen to this one.
  function choose(id, range = false) {
    state.focus = id;
    const from = order.indexOf(anchor);
    const to = order.indexOf(id);
    if (range && from >= 0) for (let place = Math.min(from, to); place <= Math.max(from, to); place += 1) selected.add(order[place]);
    else if (selected.has(id)) selected.delete(id); else selected.add(id);
    if (!range) anchor = id;
    picked();
  }

  // -- counts
  function counters() {
    const sums = {};
    const steps = new Map();
    const names = new Set();
    for (const [name, at, status, count] of known.counts) {
      names.add(name);
      if (state.workflow && state.workflow !== name) continue;
      sums[status] = (sums[status] ?? 0) + count;
      if (at) steps.set(at, (steps.get(at) ?? 0) + count);
    }
    if (chips.children.length !== STATUSES.length) put(chips, STATUSES.map((status) => h("button", {
      class: `chip ${status.toLowerCase()}`, "data-status": status,
      onclick: () => {
        if (state.statuses.has(status)) state.statuses.delete(status); else state.statuses.add(status);
        counters();
        arrange();
      } }, h("i", { class: "dot", "aria-hidden": "true" }), h("span", {}, status.replace("_", " ")), h("b", {}))));
    for (const chip of chips.children) {
      chip.setAttribute("aria-pressed", state.statuses.has(chip.dataset.status));
      const count = sums[chip.dataset.status] ?? 0;
      chip.lastChild.textContent = count.toLocaleString();
      chip.classList.toggle("none", !count);
    }
    options(workflow, "All workflows", [...names].sort().map((name) => [name, name]), state.workflow);
    options(step, "All steps", [...steps].sort().map(([name, count]) => [name, `${name} (${count.toLocaleString()})`]), state.step);
  }

  function options(select, every, found, value) {
    if (document.activeElement === select) return;
    if (value && !found.some(([name]) => name === value)) found.push([value, value]);
    put(select, h("option", { value: "" }, every), found.map(([name, label]) => h("option", { value: name }, label)));
    select.value = value;
  }

  // -- what the person does
  filter.addEventListener("input", () => { state.text = filter.value; body.scrollTop = 0; arrange(); });
  filter.addEventListener("keydown", (event) => { if (event.key === "ArrowDown" || event.key === "Enter") { event.preventDefault(); body.focus(); } });
  workflow.addEventListener("change", () => { state.workflow = workflow.value; state.step = ""; counters(); arrange(); });
  step.addEventListener("change", () => { state.step = step.value; arrange(); });
  let scrolling = false;
  body.addEventListener("scroll", () => {
    state.top = body.scrollTop;
    if (!scrolling) { scrolling = true; requestAnimationFrame(() => { scrolling = false; draw(); }); }
  }, { passive: true });

  function moveTo(place, extend) {
    const to = Math.max(0, Math.min(order.length - 1, place));
    if (extend) {
      if (anchor === null) anchor = state.focus;
      choose(order[to], true);
    }
    state.focus = order[to];
    const top = to * height();
    if (top < body.scrollTop) body.scrollTop = top;
    else if (top + height() > body.scrollTop + body.clientHeight) body.scrollTop = top + height() - body.clientHeight;
    draw();
  }

  body.addEventListener("keydown", async (event) => {
    if (event.target !== body || event.altKey) return;
    const place = order.indexOf(state.focus);
    const page = Math.floor(body.clientHeight / height());
    const moves = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1, PageDown: page, PageUp: -page, Home: -order.length, End: order.length };
    const keys = { r: "retry", a: "approve", c: "cancel", p: "priority" };
    const mine = event.ctrlKey || event.metaKey;
    if (event.key in moves && !mine) moveTo(place < 0 ? 0 : place + moves[event.key], event.shiftKey);
    else if (event.key === "a" && mine) { order.forEach((id) => selected.add(id)); picked(); }
    else if (mine) return;
    else if (event.key === " " && place >= 0) choose(order[place], event.shiftKey);
    else if (event.key === "Enter" && place >= 0) location.hash = recordHref(order[place]).slice(1);
    else if (event.key === "Escape" && selected.size) { selected.clear(); picked(); }
    else if (event.key in keys && document.body.dataset.role !== "viewer") {
      const ids = selected.size ? [...selected] : place >= 0 ? [order[place]] : [];
      event.preventDefault();
      if (ids.length && await acts[keys[event.key]](ids)) { selected.clear(); picked(); }
      body.focus();
      return;
    } else return;
    event.preventDefault();
    event.stopPropagation();
  });
  body.addEventListener("focus", () => { if (!order.includes(state.focus)) state.focus = order[Math.floor(body.scrollTop / height())] ?? null; draw(); });
  body.addEventListener("blur", draw);

  // -- what the ledger does: rows in sight at the next frame, the order a little later
  const changed = new Set();
  let drawing = false;
  let arranging = null;
  const unwatch = watch((ids) => {
    for (const id of ids) changed.add(id);
    if (!drawing) { drawing = true; requestAnimationFrame(() => { drawing = false; draw(); }); }
    arranging ??= setTimeout(() => {
      arranging = null;
      order = changed.size > 5000 ? arranged(store.rows, state) : rearranged(order, store.rows, state, changed);
      changed.clear();
      sized();
    }, 250);
  });
  const unlisten = listen((kind) => { if (kind === "counts") counters(); });
  const clock = setInterval(draw, 1000);
  const resized = new ResizeObserver(() => sized());
  resized.observe(body);
  counters();
  heads();
  sized();
  picked();
  body.scrollTop = state.top;
  if (!store.loaded && !store.loading) load().catch(() => {});
  return () => { unwatch(); unlisten(); clearInterval(clock); clearTimeout(arranging); resized.disconnect(); };
}
