// Which records are listed, and in which order. A change moves its own rows; the others keep their places.
import { COL } from "./store.js";

const KEYS = { status: COL.status, id: COL.id, workflow: COL.workflow, step: COL.step, about: COL.about, attempt: COL.attempt, updated: COL.updated };

export function matcher({ text, statuses, workflow, step }) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return (row) => (!statuses.size || statuses.has(row[COL.status]))
    && (!workflow || row[COL.workflow] === workflow)
    && (!step || row[COL.step] === step)
    && words.every((word) => row[COL.id].toLowerCase().includes(word) || row[COL.about].toLowerCase().includes(word));
}

export function comparer({ sort, down }) {
  const key = KEYS[sort];
  const sign = down ? -1 : 1;
  return (a, b) => (a[key] < b[key] ? -sign : a[key] > b[key] ? sign : a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0);
}

// All rows that match, sorted.
export function arranged(rows, state) {
  const match = matcher(state);
  const found = [];
  for (const row of rows.values()) if (match(row)) found.push(row);
  return found.sort(comparer(state)).map((row) => row[COL.id]);
}

// The same order after some records changed: what changed is taken out and merged in again.
export function rearranged(order, rows, state, changed) {
  const match = matcher(state);
  const compare = comparer(state);
  const moved = [];
  for (const id of changed) {
    const row = rows.get(id);
    if (row && match(row)) moved.push(row);
  }
  moved.sort(compare);
  const made = [];
  let next = 0;
  for (const id of order) {
    if (changed.has(id)) continue;
    const row = rows.get(id);
    if (!row) continue;
    while (next < moved.length && compare(moved[next], row) < 0) made.push(moved[next++][COL.id]);
    made.push(id);
  }
  while (next < moved.length) made.push(moved[next++][COL.id]);
  return made;
}
