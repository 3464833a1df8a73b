-- The first schema. The columns of a table are the fields of its row type in quire.model, in order.

CREATE TABLE records (
    record_id TEXT PRIMARY KEY,
    workflow TEXT NOT NULL,
    step TEXT NOT NULL,
    visit INTEGER NOT NULL,
    status TEXT NOT NULL,
    data TEXT NOT NULL,
    entry TEXT,
    result TEXT,
    attempt INTEGER NOT NULL,
    losses INTEGER NOT NULL,
    due_at REAL,
    run_until REAL,
    worker TEXT,
    run_id TEXT,
    parent_id TEXT,
    generation INTEGER,
    place INTEGER,
    counted INTEGER NOT NULL,
    version INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    waits TEXT,
    question TEXT,
    note TEXT,
    last_error TEXT,
    dedupe_key TEXT,
    started_as TEXT NOT NULL,
    code_version INTEGER NOT NULL,
    fanouts INTEGER NOT NULL,
    ending TEXT,
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    priority INTEGER NOT NULL,
    cancel TEXT,
    log_seq INTEGER NOT NULL,
    log_hash TEXT NOT NULL,
    facts INTEGER NOT NULL,
    open_intents INTEGER NOT NULL,
    -- Order of claiming; see Record.rank.
    rank REAL
) WITHOUT ROWID;

-- Partial, so that what has ended costs nothing.
CREATE INDEX records_due ON records (workflow, step, rank)
    WHERE status IN ('PENDING', 'WAITING', 'NEEDS_APPROVAL') AND due_at IS NOT NULL;
CREATE INDEX records_running ON records (workflow, step) WHERE status = 'RUNNING';
CREATE INDEX records_children ON records (parent_id, generation, place) WHERE parent_id IS NOT NULL;

CREATE TABLE events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    record_id TEXT NOT NULL,
    n INTEGER NOT NULL,
    version INTEGER NOT NULL,
    at REAL NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    run_id TEXT,
    change_id TEXT NOT NULL,
    hash TEXT NOT NULL
);
CREATE UNIQUE INDEX events_of ON events (record_id, n);

CREATE TABLE receipts (
    key TEXT PRIMARY KEY,
    record_id TEXT NOT NULL,
    step TEXT NOT NULL,
    visit INTEGER NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    stage TEXT NOT NULL,
    fn TEXT NOT NULL,
    args_hash TEXT NOT NULL,
    args TEXT NOT NULL,
    value TEXT NOT NULL,
    nonce TEXT NOT NULL,
    worker TEXT NOT NULL,
    act_by REAL,
    seq INTEGER NOT NULL,
    at REAL NOT NULL,
    done_at REAL,
    undo TEXT NOT NULL,
    signature TEXT NOT NULL,
    key_id TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX receipts_of ON receipts (record_id, seq);
CREATE INDEX receipts_open ON receipts (act_by) WHERE stage = 'intended';

CREATE TABLE signals (
    signal_id TEXT PRIMARY KEY,
    record_id TEXT NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    at REAL NOT NULL,
    seq INTEGER NOT NULL,
    taken_by TEXT
) WITHOUT ROWID;
CREATE INDEX signals_of ON signals (record_id, seq);

CREATE TABLE fanins (
    parent_id TEXT NOT NULL,
    generation INTEGER NOT NULL,
    key TEXT NOT NULL,
    total INTEGER NOT NULL,
    "left" INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    bearable INTEGER NOT NULL,
    "limit" INTEGER,
    active INTEGER NOT NULL,
    next_place INTEGER NOT NULL,
    prefix TEXT NOT NULL,
    abandoned INTEGER NOT NULL,
    PRIMARY KEY (parent_id, generation)
) WITHOUT ROWID;
CREATE INDEX fanins_abandoned ON fanins (parent_id) WHERE abandoned AND "left" > 0;

CREATE TABLE workers (
    worker_id TEXT PRIMARY KEY,
    label TEXT NOT NULL,
    host TEXT NOT NULL,
    boot_id TEXT NOT NULL,
    pid INTEGER NOT NULL,
    started_at REAL NOT NULL,
    expires_at REAL NOT NULL,
    lease_seconds REAL NOT NULL,
    closed TEXT,
    knows TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX workers_open ON workers (expires_at) WHERE closed IS NULL;

CREATE TABLE controls (
    scope TEXT PRIMARY KEY,
    halted INTEGER NOT NULL,
    floor INTEGER NOT NULL,
    paused INTEGER NOT NULL,
    by TEXT NOT NULL,
    at REAL NOT NULL,
    reason TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE buckets (name TEXT PRIMARY KEY, tokens REAL NOT NULL, at REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL, version INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE blobs (hash TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID;

-- One row: the halt epoch, and where the records went if the ledger is sealed.
CREATE TABLE ledger (epoch INTEGER NOT NULL, sealed TEXT NOT NULL);
INSERT INTO ledger VALUES (1, '');

-- What people look at, for any SQLite browser.
CREATE VIEW state_table AS
SELECT record_id,
       status,
       step AS next_step,
       coalesce(dedupe_key, workflow || '|' || record_id || '|' || step) AS dedupe_key,
       run_id AS last_run_id,
       last_error,
       strftime('%Y-%m-%dT%H:%M:%SZ', updated_at, 'unixepoch') AS updated_at,
       workflow,
       question,
       note,
       data,
       result
FROM records;
