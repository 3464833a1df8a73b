-- When each worker's lease ends on the clock of a boot, which nobody can set: the wall clock decides only across boots.
CREATE TABLE leases (
    worker_id TEXT PRIMARY KEY,
    boot_id TEXT NOT NULL,
    ends_at REAL NOT NULL
) WITHOUT ROWID;
