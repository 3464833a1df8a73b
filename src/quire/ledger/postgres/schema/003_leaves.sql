-- Lines that one statement writes of many records are one row, a leaf of the log (see ledger/postgres_leaves.py). The
-- columns are those of ``events``, each an array; one of a single element says that all lines have that value. ``before``
-- names for each record the leaf with its lines before these.
CREATE TABLE leaves (
    seq bigint PRIMARY KEY DEFAULT nextval('events_seq_seq'),
    record_id text[] COLLATE "C" NOT NULL,
    n bigint[] NOT NULL,
    version bigint[] NOT NULL,
    at float8[] NOT NULL,
    kind text[] NOT NULL,
    body text[] NOT NULL,
    run_id text[] NOT NULL,
    change_id text[] NOT NULL,
    -- NULL for a line that is archived and forgotten.
    hash text[] NOT NULL,
    before bigint[] NOT NULL
);
-- Not compressed: that would take longer than all the rest.
ALTER TABLE leaves
    ALTER record_id SET STORAGE EXTERNAL,
    ALTER n SET STORAGE EXTERNAL,
    ALTER version SET STORAGE EXTERNAL,
    ALTER at SET STORAGE EXTERNAL,
    ALTER kind SET STORAGE EXTERNAL,
    ALTER body SET STORAGE EXTERNAL,
    ALTER run_id SET STORAGE EXTERNAL,
    ALTER change_id SET STORAGE EXTERNAL,
    ALTER hash SET STORAGE EXTERNAL,
    ALTER before SET STORAGE EXTERNAL;
-- The numbers from one that is drawn to the next are all its own: a leaf numbers its lines from its own number on.
ALTER SEQUENCE events_seq_seq INCREMENT BY 1024;
-- The last leaf with a line of the record; NULL: there is none.
ALTER TABLE records ADD COLUMN log_at bigint;
