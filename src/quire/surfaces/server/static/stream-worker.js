// One stream for all tabs: a browser opens six connections to a server at most, and a stream keeps one for ever.
const ports = new Set();
const last = {};
let source = null;

function tell(message) {
  for (const port of ports) port.postMessage(message);
}

function connect() {
  source = new EventSource("/api/stream");
  source.onopen = () => { last.state = { kind: "state", data: "live" }; tell(last.state); };
  source.onerror = () => {
    last.state = { kind: "state", data: "away" };
    tell(last.state);
    if (source.readyState === EventSource.CLOSED) setTimeout(connect, 3000);
  };
  for (const kind of ["hello", "changes", "counts", "standing", "reset"]) {
    source.addEventListener(kind, (event) => {
      const message = { kind, data: JSON.parse(event.data) };
      if (kind === "counts" || kind === "standing") last[kind] = message;
      tell(message);
    });
  }
}

self.onconnect = (event) => {
  const port = event.ports[0];
  ports.add(port);
  port.onmessage = (message) => { if (message.data === "bye") ports.delete(port); };
  port.start();
  for (const message of Object.values(last)) port.postMessage(message);
  if (source === null) connect();
};
