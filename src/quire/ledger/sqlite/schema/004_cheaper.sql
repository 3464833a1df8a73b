-- The same indexes, told without IN: for a list SQLite makes a table of its own whenever a row is written.
DROP INDEX records_due;
DROP INDEX records_open;
CREATE INDEX records_due ON records (workflow, step, rank)
    WHERE (status = 'PENDING' OR status = 'WAITING' OR status = 'NEEDS_APPROVAL') AND due_at IS NOT NULL;
CREATE INDEX records_open ON records (epoch, workflow)
    WHERE (status = 'PENDING' OR status = 'WAITING' OR status = 'NEEDS_APPROVAL');
