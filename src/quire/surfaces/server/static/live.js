// What changes, as it does. Listeners hear: changes, counts, standing, reset, state.
const listeners = new Set();

export const known = { counts: [], standing: [], state: "away" };

export function listen(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function tell(kind, data) {
  if (kind in known) known[kind] = data;
  for (const listener of [...listeners]) listener(kind, data);
}

function alone() {
  const source = new EventSource("/api/stream");
  source.onopen = () => tell("state", "live");
  source.onerror = () => {
    tell("state", "away");
    if (source.readyState === EventSource.CLOSED) setTimeout(alone, 3000);
  };
  for (const kind of ["hello", "changes", "counts", "standing", "reset"]) {
    source.addEventListener(kind, (event) => tell(kind, JSON.parse(event.data)));
  }
}

export function connect() {
  if (typeof SharedWorker === "undefined") {
    alone();
    return;
  }
  const worker = new SharedWorker("/static/stream-worker.js", { name: "quire" });
  worker.onerror = alone;
  worker.port.onmessage = (event) => tell(event.data.kind, event.data.data);
  worker.port.start();
  addEventListener("pagehide", () => worker.port.postMessage("bye"));
}
