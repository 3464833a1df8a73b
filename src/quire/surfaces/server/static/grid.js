// The grid of records: only the rows in sight are in the page.
import { act, post } from "./api.js";
import { ago, ask, h, pill, put, recordHref } from "./dom.js";
import { known, listen } from "./live.js";
import { COL, load, store, watch } from "./store.js";
import { startRecord } from "./start.js";

const STATUSES = ["PENDING", "RUNNING", "WAITING", "NEEDS_APPROVAL", "ERROR", "CANCELLED", "DONE"];
const COLUMNS = [
  ["status", "Status"], ["id", "Record"], ["workflow", "Workflow"], ["step", "Next step"], ["about", "About"],
  ["attempt", "Tries"], ["updated", "Changed"],
];
const state = { text: "", statuses: new Set(), workflow: "", step: "", sort: "updated", down: true, top: 0 };
const selected = new Set();

export function gridPage(main, query) {
  if (query.has("workflow")) { state.workflow = query.get("workflow"); state.step = query.get("step") ?? ""; }
  if (query.has("status")) state.statuses = new Set(query.get("status").split(",").filter(Boolean));
  const narrow = matchMedia("(max-width: 700px)");
  const height = () => (narrow.matches ? 58 : 34);
  let order = [];
  let focus = 0;

  const filter = h("input", { type: "search", id: "filter", placeholder: "Filter by id or text", "aria-label": "Filter by id or text", value: state.text, autocomplete: "off" });
  const workflow = h("select", { "aria-label": "Workflow" });
  const step = h("select", { "aria-label": "Next step" });
  const chips = h("div", { class: "chips", role: "group", "aria-label": "Filter by status" });
  const many = h("div", { class: "many", role: "toolbar", "aria-label": "Selected records" });
  const told = h("span", { class: "quiet", role: "status" });
  const head = h("div", { class: "grid-head", role: "row" });
  const spacer = h("div", { class: "spacer" });
  const body = h("div", { class: "grid-body", role: "rowgroup", tabindex: "0", "aria-label": "Records; arrow keys move, space selects, enter opens" }, spacer);
  const grid = h("div", { class: "grid", role: "grid", "aria-label": "Records", "aria-multiselectable": "true" }, head, body);
  put(main,
    h("h1", { class: "hidden" }, "Records"),
    chips,
    h("div", { class: "bar" }, filter, workflow, step,
      h("button", { class: "primary", onclick: () => startRecord(state.workflow) }, "Start a record")),
    h("div", { class: "under" }, told, many), grid);

  const pool = [];
  function rowElement() {
    const cells = {
      pick: h("input", { type: "checkbox", tabindex: "-1" }),
      status: h("span", { class: "c status" }), id: h("span", { class: "c id" }), link: h("a", { tabindex: "-1" }),
      workflow: h("span", { class: "c workflow" }), step: h("span", { class: "c step" }),
      about: h("span", { class: "c about" }), attempt: h("span", { class: "c attempt" }), updated: h("span", { class: "c updated" }),
    };
    const element = h("div", { class: "grid-row", role: "row" },
      h("span", { class: "c pick", role: "gridcell" }, cells.pick),
      COLUMNS.map(([name]) => { cells[name].setAttribute("role", "gridcell"); return cells[name]; }));
    cells.id.append(cells.link);
    const made = { element, cells, id: null, version: -1 };
    cells.pick.addEventListener("change", () => pick(made.id, cells.pick.checked));
    element.addEventListener("click", (event) => {
      focus = order.indexOf(made.id);
      if (event.target.closest("a, input")) return;
      if (event.shiftKey || event.ctrlKey || event.metaKey) pick(made.id, !selected.has(made.id));
      else location.hash = recordHref(made.id).slice(1);
    });
    spacer.append(element);
    return made;
  }

  function fill(made, id, place) {
    const row = store.rows.get(id);
    made.element.hidden = !row;
    if (!row) return;
    const { cells, element } = made;
    if (made.id !== id || made.version !== row[COL.version]) {
      put(cells.status, pill(row[COL.status]));
      cells.link.textContent = id;
      cells.link.href = recordHref(id);
      cells.id.title = id;
      cells.workflow.textContent = row[COL.workflow];
      cells.step.textContent = row[COL.step];
      cells.about.textContent = row[COL.about];
      cells.about.title = row[COL.about];
      cells.attempt.textContent = row[COL.attempt] || "";
      cells.pick.setAttribute("aria-label", `Select ${id}`);
      element.classList.toggle("fresh", made.id === id);
      made.id = id;
      made.version = row[COL.version];
    }
    cells.updated.textContent = ago(row[COL.updated]);
    cells.pick.checked = selected.has(id);
    element.setAttribute("aria-rowindex", place + 2);
    element.setAttribute("aria-selected", selected.has(id));
    element.classList.toggle("focus", place === focus && document.activeElement === body);
    element.style.transform = `translateY(${place * height()}px)`;
  }

  function draw() {
    const tall = body.clientHeight;
    const first = Math.max(0, Math.floor(body.scrollTop / height()) - 4);
    const count = Math.min(order.length - first, Math.ceil(tall / height()) + 8);
    while (pool.length < count) pool.push(rowElement());
    // A row keeps its element while it is in sight, so that a change is a change and not a new row.
    pool.forEach((made, number) => {
      if (number < count) fill(made, order[first + number], first + number);
      else { made.element.hidden = true; made.id = null; }
    });
  }

  const keys = { status: COL.status, id: COL.id, workflow: COL.workflow, step: COL.step, about: COL.about, attempt: COL.attempt, updated: COL.updated };
  function arrange() {
    const words = state.text.toLowerCase().trim();
    const rows = [];
    for (const row of store.rows.values()) {
      if (state.statuses.size && !state.statuses.has(row[COL.status])) continue;
      if (state.workflow && row[COL.workflow] !== state.workflow) continue;
      if (state.step && row[COL.step] !== state.step) continue;
      if (words && !row[COL.id].toLowerCase().includes(words) && !row[COL.about].toLowerCase().includes(words)) continue;
      rows.push(row);
    }
    const key = keys[state.sort];
    const sign = state.down ? -1 : 1;
    rows.sort((a, b) => (a[key] < b[key] ? -sign : a[key] > b[key] ? sign : a[0] < b[0] ? -1 : 1));
    order = rows.map((row) => row[COL.id]);
    // The head leaves the room that the scroll bar takes, so that columns stand under their names.
    head.style.paddingRight = `${10 + body.offsetWidth - body.clientWidth}px`;
    spacer.style.height = `${order.length * height()}px`;
    grid.setAttribute("aria-rowcount", order.length + 1);
    const all = store.rows.size;
    const shown = order.length === all ? `${all.toLocaleString()} records` : `${order.length.toLocaleString()} of ${all.toLocaleString()} records`;
    told.textContent = shown + (store.loading ? ", loading…" : "") + (store.full ? "; only the first 200,000 are here, filter by command line for more" : "");
    draw();
  }

  function heads() {
    const all = h("input", { type: "checkbox", "aria-label": "Select all that are listed" });
    all.checked = order.length > 0 && selected.size >= order.length;
    all.addEventListener("change", () => { selected.clear(); if (all.checked) order.forEach((id) => selected.add(id)); tools(); draw(); });
    put(head, h("span", { class: "c pick", role: "columnheader" }, all), COLUMNS.map(([name, label]) =>
      h("span", { class: `c ${name}`, role: "columnheader", "aria-sort": state.sort === name ? (state.down ? "descending" : "ascending") : "none" },
        h("button", { class: "plain", onclick: () => {
          state.down = state.sort === name ? !state.down : name === "updated";
          state.sort = name;
          heads();
          arrange();
        } }, label, state.sort === name ? (state.down ? " ↓" : " ↑") : ""))));
  }

  function pick(id, on) {
    if (on) selected.add(id); else selected.delete(id);
    tools();
    draw();
  }

  async function actOn(name, extra) {
    const ids = [...selected];
    const done = await act(() => post("/api/many", { act: name, record_ids: ids, ...extra }), (value) =>
      `${value.done} of ${ids.length}: ${name}` + (value.refused.length ? `; refused: ${value.refused[0].message}` : ""));
    if (done) { selected.clear(); tools(); draw(); }
  }

  function tools() {
    for (const id of selected) if (!store.rows.has(id)) selected.delete(id);
    if (!selected.size) { put(many); return; }
    const seen = {};
    for (const id of selected) { const hash = store.rows.get(id)[COL.hash]; if (hash) seen[id] = hash; }
    put(many, h("strong", {}, `${selected.size} selected`),
      h("button", { onclick: () => actOn("retry") }, "Retry"),
      h("button", { onclick: async () => {
        const given = await ask({ title: `Cancel ${selected.size} records?`, fields: [{ name: "reason", label: "Reason" }, { name: "undo", label: "Undo what they did", check: true }], yes: "Cancel them", danger: true });
        if (given) actOn("cancel", given);
      } }, "Cancel"),
      h("button", { onclick: async () => {
        const given = await ask({ title: `Approve ${Object.keys(seen).length} records?`, text: "Each is approved as it is shown now; one that has changed since is left alone.", fields: [{ name: "note", label: "Note" }], yes: "Approve them" });
        if (given) actOn("answer", { choice: "approve", note: given.note, seen });
      }, disabled: !Object.keys(seen).length }, "Approve"),
      h("button", { class: "plain", onclick: () => { selected.clear(); tools(); draw(); } }, "Select none"));
  }

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
    put(chips, STATUSES.map((status) => h("button", {
      class: `chip ${status.toLowerCase()}`, "aria-pressed": state.statuses.has(status), "data-status": status,
      onclick: () => {
        if (state.statuses.has(status)) state.statuses.delete(status); else state.statuses.add(status);
        counters();
        arrange();
      } }, h("span", {}, status.replace("_", " ")), h("b", {}, (sums[status] ?? 0).toLocaleString()))));
    options(workflow, "All workflows", [...names].sort().map((name) => [name, name]), state.workflow);
    options(step, "All steps", [...steps].sort().map(([name, count]) => [name, `${name} (${count})`]), state.step);
  }

  function options(select, every, found, value) {
    if (document.activeElement === select) return;
    put(select, h("option", { value: "" }, every), found.map(([name, label]) => h("option", { value: name }, label)));
    select.value = value;
  }

  // -- what the person does
  filter.addEventListener("input", () => { state.text = filter.value; body.scrollTop = 0; arrange(); });
  workflow.addEventListener("change", () => { state.workflow = workflow.value; state.step = ""; counters(); arrange(); });
  step.addEventListener("change", () => { state.step = step.value; arrange(); });
  body.addEventListener("scroll", () => { state.top = body.scrollTop; requestAnimationFrame(draw); }, { passive: true });
  body.addEventListener("keydown", (event) => {
    const page = Math.floor(body.clientHeight / height());
    const moves = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1, PageDown: page, PageUp: -page, Home: -order.length, End: order.length };
    if (event.target !== body) return;
    if (event.key in moves) {
      focus = Math.max(0, Math.min(order.length - 1, focus + moves[event.key]));
      const top = focus * height();
      if (top < body.scrollTop) body.scrollTop = top;
      else if (top + height() > body.scrollTop + body.clientHeight) body.scrollTop = top + height() - body.clientHeight;
      draw();
    } else if (event.key === " " && order[focus]) pick(order[focus], !selected.has(order[focus]));
    else if (event.key === "Enter" && order[focus]) location.hash = recordHref(order[focus]).slice(1);
    else return;
    event.preventDefault();
  });
  body.addEventListener("focus", draw);
  body.addEventListener("blur", draw);

  // -- what the ledger does: rows in sight at once, the order a little later
  let drawing = false;
  let arranging = null;
  const unwatch = watch(() => {
    if (!drawing) { drawing = true; requestAnimationFrame(() => { drawing = false; draw(); }); }
    arranging ??= setTimeout(() => { arranging = null; arrange(); }, store.rows.size > 20000 ? 1000 : 250);
  });
  const unlisten = listen((kind) => { if (kind === "counts") counters(); });
  const clock = setInterval(draw, 5000);
  const resized = new ResizeObserver(() => arrange());
  resized.observe(body);
  counters();
  heads();
  arrange();
  tools();
  body.scrollTop = state.top;
  if (!store.rows.size) load().catch(() => {});
  return () => { unwatch(); unlisten(); clearInterval(clock); clearTimeout(arranging); resized.disconnect(); };
}
