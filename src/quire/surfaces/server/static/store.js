// The records as rows, kept in step with the ledger. 100,000 rows are a few megabytes.
import { get } from "./api.js";
import { listen } from "./live.js";

export const COL = { id: 0, workflow: 1, status: 2, step: 3, attempt: 4, priority: 5, updated: 6, created: 7, due: 8, version: 9, about: 10, hash: 11 };
const MOST = 200000;

export const store = { rows: new Map(), loading: false, loaded: false, full: false };
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
    // A priority changes without a new version, so the same version is taken, too.
    if (!known || known[COL.version] <= row[COL.version]) {
      store.rows.set(row[COL.id], row);
      ids.push(row[COL.id]);
    }
  }
  tell(ids);
}

let generation = 0;
let rested = 0;
// The newest first, so that something is there at once; then all, page by page in the order of ids.
export async function load() {
  const mine = (generation += 1);
  const begun = performance.now();
  store.loading = true;
  try {
    const first = await get("/api/grid?order=updated&limit=200");
    take(first.rows);
    let after = first.rows.length < 200 ? null : "";
    const found = new Set(first.rows.map((row) => row[COL.id]));
    while (after !== null) {
      const page = await get(`/api/grid?limit=5000&after=${encodeURIComponent(after)}`);
      if (mine !== generation) return;
      for (const row of page.rows) found.add(row[COL.id]);
      take(page.rows);
      after = page.next;
      if (found.size >= MOST) { store.full = after !== null; break; }
    }
    store.loaded = true;
  } finally {
    if (mine === generation) store.loading = false;
    // Loading anew may take a tenth of the server's time, however often everything changes.
    rested = performance.now() + 10 * (performance.now() - begun);
    tell([]);
  }
}

let resetting = null;
listen((kind, data) => {
  if (kind === "changes") take(data.rows);
  if (kind === "reset" && resetting === null && (store.loaded || store.loading)) {
    resetting = setTimeout(() => { resetting = null; load().catch(() => {}); }, Math.max(500, rested - performance.now()));
  }
});
