// The records as rows, kept in step with the ledger. 100,000 rows are a few megabytes.
import { get } from "./api.js";
import { listen } from "./live.js";

export const COL = { id: 0, workflow: 1, status: 2, step: 3, attempt: 4, priority: 5, updated: 6, created: 7, due: 8, version: 9, about: 10, hash: 11 };
const MOST = 200000;

export const store = { rows: new Map(), loading: false, full: false, changed: new Set() };
const watchers = new Set();

export function watch(watcher) {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

function tell(ids) {
  for (const watcher of watchers) watcher(ids);
}

function take(rows) {
  const ids = [];
  for (const row of rows) {
    const known = store.rows.get(row[COL.id]);
    if (!known || known[COL.version] <= row[COL.version]) {
      store.rows.set(row[COL.id], row);
      ids.push(row[COL.id]);
    }
  }
  tell(ids);
}

let generation = 0;
export async function load() {
  const mine = (generation += 1);
  store.loading = true;
  try {
    const first = await get("/api/grid?order=updated&limit=300");
    take(first.rows);
    let after = "";
    let seen = 0;
    const found = new Set();
    for (;;) {
      const page = await get(`/api/grid?limit=5000&after=${encodeURIComponent(after)}`);
      if (mine !== generation) return;
      for (const row of page.rows) found.add(row[COL.id]);
      take(page.rows);
      seen += page.rows.length;
      after = page.next;
      if (!after) break;
      if (seen >= MOST) { store.full = true; break; }
    }
  } finally {
    if (mine === generation) store.loading = false;
    tell([]);
  }
}

let resetting = null;
listen((kind, data) => {
  if (kind === "changes") take(data.rows);
  if (kind === "reset" && resetting === null) {
    resetting = setTimeout(() => { resetting = null; load().catch(() => {}); }, 500);
  }
});
