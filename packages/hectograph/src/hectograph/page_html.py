"""The page of a book as HTML, whole in itself: no script, style or picture comes from elsewhere."""

BOOK = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Book</title>
<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">
<style>
*{box-sizing:border-box}html,body{height:100%;margin:0}
body{font:13px/1.3 system-ui,Arial,sans-serif;display:flex;flex-direction:column;color:#202124}
header{display:flex;gap:.6rem;align-items:center;padding:.5rem .8rem;border-bottom:1px solid #dadce0;flex-wrap:wrap}
header h1{font-size:16px;margin:0 .6rem 0 0;font-weight:500}header a{color:#1a73e8;text-decoration:none}
button{font:inherit;border:1px solid #dadce0;background:#fff;border-radius:4px;padding:.2rem .5rem;cursor:pointer}
button:hover{background:#f1f3f4}#bar{display:flex;border-bottom:1px solid #dadce0}
#name{width:6rem;padding:.3rem .6rem;border-right:1px solid #dadce0;color:#5f6368}
#formula{flex:1;border:0;padding:.3rem .6rem;font:inherit;outline:none}
#grid{flex:1;overflow:auto;outline:none}table{border-collapse:separate;border-spacing:0;table-layout:fixed}
th{background:#f8f9fa;font-weight:400;color:#5f6368;position:sticky;top:0;z-index:3;height:22px}
tbody th{left:0;z-index:2;width:46px}thead th:first-child{left:0;z-index:4;width:46px}
td,th{border-right:1px solid #e2e3e3;border-bottom:1px solid #e2e3e3;padding:0 3px;height:22px;overflow:hidden;
white-space:nowrap;text-overflow:clip}
td.at{outline:2px solid #1a73e8;outline-offset:-2px}td.new{animation:flash 1.2s}
@keyframes flash{from{background:#fff2a8}}
td.note::after{content:"";float:right;border:4px solid transparent;border-top-color:#f9ab00;border-right-color:#f9ab00}
tr.frozen td{position:sticky;z-index:1;background:#fff}tr.hide{display:none}
td input.edit{width:100%;border:0;outline:none;font:inherit;padding:0;background:transparent}
footer{display:flex;gap:2px;padding:.3rem .6rem;border-top:1px solid #dadce0;background:#f8f9fa;overflow:auto}
footer button{border:0;background:none;border-radius:4px 4px 0 0;padding:.3rem .8rem}
footer button.on{background:#fff;color:#188038;font-weight:600;box-shadow:0 1px 3px #0003}
#say{margin-left:auto;color:#b3261e;max-width:40rem}
</style></head><body>
<header><a href="/">books</a><h1 id="title"></h1>
<button data-do="insert_rows">insert row</button><button data-do="delete_rows">delete row</button>
<button data-do="insert_columns">insert column</button><button data-do="delete_columns">delete column</button>
<button data-do="sort" data-way="">sort A-Z</button><button data-do="sort" data-way="1">sort Z-A</button>
<button data-do="restore">undo</button><span id="say" role="alert"></span></header>
<div id="bar"><span id="name"></span><input id="formula" aria-label="content of the cell" spellcheck="false"></div>
<div id="grid" tabindex="0"></div><footer id="tabs"></footer>
<datalist id="words"></datalist>
<script>
"use strict";
const base = location.pathname.replace(/\\/$/, ""), grid = document.getElementById("grid");
const bar = document.getElementById("formula"), say = document.getElementById("say");
let data = null, key = "", sheet = "", top_ = 0, at = {r: 0, c: 0}, editing = null, shown = new Map();
const id = (r, c) => r + "," + c;
const name = (r, c) => data.columns[c] + (r + 1);
const held = (r, c) => (data.map && data.map.get(id(r, c))) || ["", {}];
const content = (r, c) => {
  const [t, l] = held(r, c); return l.f || (l.r !== undefined && isNaN(+t) ? t : (l.r ?? t)); };
async function look(force) {
  const query = new URLSearchParams({sheet, top: top_, after: force ? "" : key});
  let answer;
  try { answer = await (await fetch(base + "/data?" + query)).json(); }
  catch (e) { say.textContent = "the emulator does not answer"; return; }
  if (say.textContent === "the emulator does not answer") say.textContent = "";
  if (answer.same) return;
  const before = data && data.sheet === answer.sheet ? data.map : null;
  data = answer; key = answer.key; sheet = String(answer.sheet);
  data.map = new Map(data.cells.map(([r, c, t, l]) => [id(r, c), [t, l]]));
  document.title = data.title; document.getElementById("title").textContent = data.title;
  draw(before);
}
function draw(before) {
  if (editing) return;
  const last = Math.min(data.rows, data.top + 400), hidden = new Set(data.hidden);
  const table = document.createElement("table"), head = table.createTHead().insertRow();
  const group = document.createElement("colgroup");
  group.innerHTML = "<col style='width:46px'>" + data.widths.map(w => `<col style="width:${w}px">`).join("");
  table.prepend(group); table.style.width = 46 + data.widths.reduce((a, b) => a + b, 0) + "px";
  head.append(document.createElement("th"));
  for (const n of data.columns) { const h = document.createElement("th"); h.textContent = n; head.append(h); }
  const body = table.createTBody();
  if (data.top > 0) more(body, "earlier rows", Math.max(0, data.top - 300));
  for (let r = data.top; r < last; r++) {
    const row = body.insertRow(), number = document.createElement("th");
    number.textContent = r + 1; row.append(number);
    if (r < data.frozen) row.className = "frozen";
    if (hidden.has(r)) row.classList.add("hide");
    for (let c = 0; c < data.columns.length; c++) {
      const cell = row.insertCell(), [t, l] = held(r, c);
      cell.dataset.at = id(r, c);
      if (r < data.frozen) cell.style.top = 22 + 22 * r + "px";
      if (l.k !== undefined) { const box = document.createElement("input"); box.type = "checkbox"; box.checked = l.k;
        box.onchange = () => send({do: "edit", cell: name(r, c), text: box.checked ? "TRUE" : "FALSE"});
        cell.append(box); }
      else cell.textContent = t;
      if (l.b) cell.style.background = l.b;
      if (l.c) cell.style.color = l.c;
      if (l.w) cell.style.fontWeight = 700;
      if (l.i) cell.style.fontStyle = "italic";
      if (l.s) cell.style.textDecoration = "line-through";
      if (l.a) cell.style.textAlign = l.a;
      if (l.n) { cell.classList.add("note"); cell.title = l.n; }
      if (before && (before.get(id(r, c)) || [""])[0] !== t) cell.classList.add("new");
    }
  }
  if (last < data.rows) more(body, "later rows", data.top + 300);
  const left = grid.scrollLeft, down = grid.scrollTop;
  grid.replaceChildren(table); grid.scrollLeft = left; grid.scrollTop = down;
  const tabs = document.getElementById("tabs"); tabs.replaceChildren();
  for (const s of data.sheets) {
    const b = document.createElement("button"); b.textContent = s.title + (s.hidden ? " (hidden)" : "");
    b.className = s.id === data.sheet ? "on" : "";
    b.onclick = () => { sheet = String(s.id); top_ = 0; at = {r: 0, c: 0}; look(true); };
    tabs.append(b);
  }
  mark();
}
function more(body, text, to) {
  const b = document.createElement("button"), cell = body.insertRow().insertCell();
  cell.colSpan = data.columns.length + 1; b.textContent = text; cell.append(b);
  b.onclick = () => { top_ = to; look(true); };
}
const cellAt = (r, c) => grid.querySelector(`td[data-at="${id(r, c)}"]`);
function mark() {
  grid.querySelectorAll("td.at").forEach(c => c.classList.remove("at"));
  const cell = cellAt(at.r, at.c);
  if (cell) { cell.classList.add("at"); cell.scrollIntoView({block: "nearest", inline: "nearest"}); }
  document.getElementById("name").textContent = name(at.r, at.c);
  if (document.activeElement !== bar) bar.value = content(at.r, at.c);
}
function move(r, c) {
  at = {r: Math.max(0, Math.min(data.rows - 1, at.r + r)), c: Math.max(0, Math.min(data.columns.length - 1, at.c + c))};
  mark();
}
function edit(text) {
  const cell = cellAt(at.r, at.c); if (!cell) return;
  const input = document.createElement("input"); input.className = "edit"; input.value = text;
  const words = held(at.r, at.c)[1].o;
  if (words) { const list = document.getElementById("words");
    list.replaceChildren(...words.map(w => { const o = document.createElement("option"); o.value = w; return o; }));
    input.setAttribute("list", "words"); }
  cell.replaceChildren(input); editing = input; input.focus();
  const here = {...at};
  const done = keep => { if (editing !== input) return; editing = null;
    if (keep) send({do: "edit", cell: name(here.r, here.c), text: input.value}); else draw(null);
    grid.focus(); };
  input.onkeydown = e => { e.stopPropagation();
    if (e.key === "Enter") { done(true); move(1, 0); }
    else if (e.key === "Tab") { e.preventDefault(); done(true); move(0, 1); }
    else if (e.key === "Escape") done(false); };
  input.onblur = () => done(true);
}
async function send(what) {
  const answer = await fetch(base + "/edit", {method: "POST", headers: {"Content-Type": "application/json"},
    body: JSON.stringify({sheet: data.sheet, ...what})});
  const body = await answer.json();
  say.textContent = answer.ok ? "" : body.error.message;
  await look(true);
}
grid.onmousedown = e => {
  const cell = e.target.closest("td[data-at]"); if (!cell || e.target.tagName === "INPUT") return;
  const [r, c] = cell.dataset.at.split(",").map(Number); at = {r, c}; mark(); };
grid.ondblclick = e => {
  if (e.target.closest("td[data-at]") && e.target.tagName !== "INPUT") edit(content(at.r, at.c)); };
grid.onkeydown = e => {
  if (!data || e.ctrlKey || e.metaKey || e.altKey) return;
  const arrows = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], Tab: [0, 1]};
  if (arrows[e.key]) { e.preventDefault(); move(...arrows[e.key]); }
  else if (e.key === "Enter" || e.key === "F2") { e.preventDefault(); edit(content(at.r, at.c)); }
  else if (e.key === "Delete" || e.key === "Backspace") send({do: "edit", cell: name(at.r, at.c), text: ""});
  else if (e.key.length === 1) { e.preventDefault(); edit(e.key); }
};
grid.onpaste = e => { if (editing) return; e.preventDefault();
  send({do: "paste", cell: name(at.r, at.c), text: e.clipboardData.getData("text/plain").replace(/\\r?\\n$/, "")}); };
bar.onkeydown = e => {
  if (e.key === "Enter") { send({do: "edit", cell: name(at.r, at.c), text: bar.value}); grid.focus(); }
  else if (e.key === "Escape") { bar.value = content(at.r, at.c); grid.focus(); } };
document.querySelectorAll("button[data-do]").forEach(b => b.onclick = () => {
  const what = b.dataset.do, frozen = data.frozen || 1;
  if (what === "sort") send({do: what, range: `A${frozen + 1}:${data.columns.at(-1)}${data.rows}`, column: at.c + 1,
    descending: !!b.dataset.way});
  else if (what === "restore") send({do: what, versions: 1});
  else send({do: what, at: (what.endsWith("columns") ? at.c : at.r) + 1, count: 1});
});
look(true); setInterval(() => { if (!editing) look(false); }, 800);
</script></body></html>
"""
